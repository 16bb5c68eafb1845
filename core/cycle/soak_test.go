package cycle_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/oracle"
)

// TestSoak plays as many random cases of each kind as STINT_SOAK says, from the seed STINT_SEED or a random one, and
// prints how often each situation occurred: a rule that never came up was not tested.
func TestSoak(t *testing.T) {
	if os.Getenv("STINT_SOAK") == "" {
		t.Skip("STINT_SOAK gives no number of random cases: make soak does")
	}
	n := setCases(t, 0, 1)
	for _, k := range slices.Concat(kinds, gangKinds) {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			soak(t, k, n)
		})
	}
}

// setCases sets how many random cases are played next: so many, a fifth in short runs; in a soak one for `each` of
// STINT_SOAK, from the seed STINT_SEED or a random one.
func setCases(t *testing.T, n, each int) int {
	t.Helper()
	seed := uint64(seedMin)
	if text := os.Getenv("STINT_SOAK"); text != "" {
		soak, err := strconv.Atoi(text)
		if err != nil || soak < 1 {
			t.Fatalf("STINT_SOAK=%q: want a number of cases", text)
		}
		n, seed = max(1, soak/each), rand.Uint64()
		if text := os.Getenv("STINT_SEED"); text != "" {
			if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
				t.Fatalf("STINT_SEED=%q: %v", text, err)
			}
		}
		t.Logf("seed %d", seed)
	} else if testing.Short() {
		n = max(1, n/5)
	}
	setRapid(t, n, seed)
	return n
}

// soakSure is of how many cases a situation that comes up in a thousandth is missing by chance in one soak of 20,000.
const soakSure = 10_000

func soak(t *testing.T, k kind, n int) {
	counts, began := map[string]int{}, time.Now()
	check(t, k, func(p *player) {
		p.count(counts)
		p.save(t, k.name, counts["case"])
		if counts["case"]%5000 == 0 {
			t.Logf("%d cases in %v", counts["case"], time.Since(began).Round(time.Second))
		}
	})
	t.Logf("%d cases, %d cycles in %v", counts["case"], counts["cycle"], time.Since(began).Round(time.Millisecond))
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%-40s %8d  %6.2f %% of cases", name, counts[name], 100*float64(counts[name])/float64(counts["case"]))
	}
	floor := float64(counts["case"]) / 1000
	for _, name := range slices.Concat(situations, k.situations) {
		// no more below than chance allows
		if n >= soakSure && (counts[name] == 0 || float64(counts[name]) < floor-3*math.Sqrt(floor)) {
			t.Errorf("%s occurred %d times in %d cases: less than 0.1 %%", name, counts[name], counts["case"])
		}
	}
}

// save writes a case as a scenario file into the folder that STINT_SCENARIOS names, if it names one, so that what is
// outside of the cycle can be tried on it.
func (p *player) save(t *testing.T, kind string, n int) {
	dir := os.Getenv("STINT_SCENARIOS")
	if dir == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%06d.yaml", kind, n)), []byte(p.scenario()),
		0o644); err != nil {
		t.Fatal(err)
	}
}

// keepFailed writes the scenario of a case that fails into the folder that STINT_FAILED names, if it names one. A case
// gets smaller with each try, so the last one that is written is the smallest.
func keepFailed(t *rapid.T, kind, text string) {
	t.Helper()
	dir := os.Getenv("STINT_FAILED")
	if dir == "" {
		return
	}
	file := filepath.Join(dir, kind+".yaml")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Log("the case is kept as ", file)
}

// situations must each occur in one case of a thousand, but for chance, of every kind; the others in those of one kind.
var (
	situations = []string{
		"release client", "release demand_gone", "release done", "release grace_expired", "release host_lost",
		"reclaim issued over_limit", "reclaim cancelled over_limit", "reclaim issued drain",
		"reclaim issued ownership_change", "revised policy", "short fragmented", "short max_per_host",
		"short no_host_matches", "short over_quota", "short pool_exhausted", "short share_limit", "short too_big",
		"placement balanced", "placement stacked", "requirement order", "requirement select", "saved and loaded",
		"running", "full host table", "host closed", "host draining", "host unavail", "host out of its group",
	}
	mdSituations = []string{
		"several plans", "short lower_priority", "placement best_fit", "overcommit", "plain first cycle",
		"equal priority and ratio", "equal priority, other ratio", "other priority",
		"reclaim issued fair_share", "short waiting_for_reclaim",
	}
	fairSituations = []string{
		"short lower_priority", "placement best_fit", "equal priority and ratio", "equal priority, other ratio",
		"other priority", "reclaim cancelled drain", "reclaim cancelled ownership_change", "reclaim issued fair_share",
		"reclaim cancelled fair_share", "short waiting_for_reclaim", "short reclaim_budget",
		"several victims for one unit", "taken from a lower priority", "taken from a ratio of 0",
		"taken from a greater share", "joined a reclaim under way", "promised room", "overdue",
		"md share_reclaim: false", "md reclaim_budget: 1", "md release: confirmed", "md overdue_after: 90s",
		"md consumer takes nothing back", "md fair_band: 0", "md fair_band: 1", "within its band",
		"too young to be taken", "fewer victims on another parcel",
		"a victim that would make the move one for the worse", "a set that lowers the sum no more",
	}
	slotSituations = []string{
		"several plans", "reclaim cancelled drain", "reclaim cancelled ownership_change", "grant owned",
		"grant share_pool", "grant borrowed", "grant from a family pool", "unit of several slots",
		"reclaim issued recall", "reclaim cancelled recall", "reclaim issued fair_share",
		"reclaim cancelled fair_share", "relabel borrowed to owned", "relabel borrowed to share_pool",
		"relabel borrowed to borrowed", "relabel share_pool to owned", "relabel share_pool to borrowed",
		"relabel owned to share_pool", "relabel owned to borrowed", "granted and taken back in a cycle",
		"short borrow_limit", "short consumer_limit", "short reclaim_budget", "short waiting_for_reclaim",
		"joined a reclaim under way", "promised room", "overdue", "even case", "md plan beside", "placement: balanced",
		"recall: before_borrow", "release: confirmed", "overdue_after: 60s", "share_reclaim: false",
		"share_quota: static", "reclaim_budget: 1", "lend to any", "lend to siblings", "lend to a list",
		"borrow from any", "borrow from siblings", "borrow from a list", "most of a leaf", "most of a branch",
		"ratio 0 of a leaf", "ratio 0 of a branch", "drew from its own pool below a ratio of 0",
		"made way for an owner below a maximum", "lent while somebody has more than its part",
		"stayed on a closed host", "divided what is asked by ratios", "a victim alone where the newest come to an end",
	}
)

// hybridSituations must come up beside hybrid branches.
var hybridSituations = []string{
	"grant hybrid", "grant owned", "grant share_pool", "grant borrowed", "unit of several slots",
	"granted and taken back in a cycle", "reclaim issued fair_share", "reclaim cancelled fair_share",
	"reclaim issued reserve", "reclaim issued recall", "reclaim cancelled recall", "short consumer_limit",
	"short reclaim_budget", "short waiting_for_reclaim", "joined a reclaim under way", "promised room", "overdue",
	"distribute_evenly: true", "disable_reclaim_on_shrink: true", "configured_slots", "reclaim_budget: 1",
	"mixed group", "hybrid branches alone", "limit of a leaf", "limit of a branch", "reserve of a leaf",
	"reserve of a branch", "windows", "dated window", "lead", "other policies in another window",
	"reclaim issued window_switch", "reclaim cancelled window_switch",
	"moved within more than the hybrid branches' part", "a reserve below a limit is filled by others",
	"owed after a switch",
	"a victim alone where the newest come to an end",
	"lent while somebody has more than its part", "removed by force", "renamed", "added", "reclaim issued plan_change",
	"relabel hybrid to owned", "relabel owned to hybrid",
}

// count adds the situations of a case, each as often as it occurred in another cycle or row.
func (p *player) count(n map[string]int) {
	n["case"]++
	n["cycle"] += len(p.seen)
	n["cycle to the fixed point"] += p.settled
	n["turns that end when the plan forgets"] += p.forgot
	add := func(name string, is bool) {
		if is {
			n[name]++
		}
	}
	for name, times := range p.relabel {
		n["relabel "+name] += times
	}
	for name, times := range p.changes {
		n[name] += times
	}
	for _, r := range p.seen {
		for name, times := range r.Notes {
			n[name] += times
		}
		for _, u := range r.Releases {
			n["release "+u.Cause]++
		}
		for _, u := range r.Reclaims {
			n["reclaim "+u.Action+" "+u.Reason]++
		}
		waiting := -r.Promised
		for _, s := range r.Shortfalls {
			n["short "+s.Reason]++
			if s.Reason == "waiting_for_reclaim" {
				waiting += int(s.Units)
			}
		}
		add("joined a reclaim under way", waiting > 0)
		add("promised room", r.Promised > 0)
		add("granted and taken back in a cycle", r.Revoked > 0)
		p.countGrants(n, r)
		p.countShares(n, r)
	}
	add("overdue", p.late > 0)
	n["saved and loaded"] += p.reloads
	for i, s := range p.steps {
		add("plain first cycle", i == 0 && p.plain)
		add("revised policy", s.policy != "")
		add("running", len(s.running) > 0)
		add("full host table", s.full && i > 0)
		for _, h := range s.hosts {
			n["host "+h.State]++
			add("host out of its group", h.Attr["in"] == false)
		}
		for _, d := range s.demand {
			for _, r := range d.rows {
				add("requirement select", strings.Contains(r.Requirement, "select"))
				add("requirement order", strings.Contains(r.Requirement, "order"))
				add("unit of several slots", p.slotPlan(r.Plan) != nil && r.Size["slots"] > 1)
			}
		}
	}
	add("several plans", len(p.plans)+len(p.slots) > 1)
	add("md plan beside", len(p.plans) > 0)
	add("even case", p.even)
	for i := range p.plans {
		p.plans[i].count(n)
		p.countDeeds(&p.plans[i], n)
	}
	if p.own {
		p.countOwn(n)
	}
	if p.devices {
		p.countDevices(n)
	}
	for i := range p.slots {
		p.slots[i].count(n, &p.site)
	}
}

// countGrants counts what was granted, by what and where.
func (p *player) countGrants(n map[string]int, r oracle.Result) {
	for _, g := range r.Grants {
		if m := p.mdPlan(g.Plan); m != nil {
			n["placement "+m.placement]++
			n["grant "+g.Origin]++
			if len(m.overcommit) > 0 {
				n["overcommit"]++
			}
			continue
		}
		n["grant "+g.Origin]++
		if g.Pool != "" && g.Pool != "/" {
			n["grant from a family pool"]++
		}
		if slices.Contains(p.slotPlan(g.Plan).settings, "placement: balanced") {
			n["placement balanced"]++
		} else {
			n["placement stacked"]++
		}
	}
}

// count counts what an MD plan says of reclaim.
func (m *mdPlan) count(n map[string]int) {
	for _, line := range m.settings {
		n["md "+line]++
	}
	for _, e := range m.members {
		if e.modest {
			n["md consumer takes nothing back"]++
		}
		if e.ratio == 0 {
			n["md ratio of 0"]++
		}
	}
}

// count counts what a slot plan says.
func (p *slotPlan) count(n map[string]int, s *site) {
	for _, line := range p.settings {
		n[line]++
	}
	if len(p.cuts) > 0 {
		n["windows"]++
		if p.dated {
			n["dated window"]++
		}
	}
	if len(p.cuts) > 0 && p.lead > 0 {
		n["lead"]++
	}
	for _, members := range p.windows {
		if slices.ContainsFunc(members, func(e slotMember) bool { return e.policy != p.member(e.consumer).policy }) {
			n["other policies in another window"]++
		}
	}
	if p.configured > 0 && !p.mixed() {
		n["configured_slots"]++
	}
	if p.blended && p.mixed() {
		n["mixed group"]++
	} else if p.blended {
		n["hybrid branches alone"]++
	}
	peers := func(name string, list []string, is bool) {
		for _, peer := range list {
			if strings.HasPrefix(peer, "/") {
				peer = "a list"
			}
			n[name+" "+peer]++
		}
		if is && len(list) == 0 {
			n[name+" any"]++
		}
	}
	for _, e := range p.members {
		where := "branch"
		if s.consumers[e.consumer].leaf {
			where = "leaf"
		}
		if e.most >= 0 && e.policy == "hybrid" {
			n["limit of a "+where]++
		} else if e.most >= 0 {
			n["most of a "+where]++
		}
		if e.reserves > 0 {
			n["reserve of a "+where]++
		}
		if e.ratio == 0 {
			n["ratio 0 of a "+where]++
		}
		peers("lend to", e.lendTo, e.lend > 0)
		peers("borrow from", e.borrowFrom, e.borrow > -2)
	}
}

// countShares counts pairs of siblings that both want something of a pool, by what decides between them.
func (p *player) countShares(n map[string]int, r oracle.Result) {
	for i, a := range r.Shares {
		for _, b := range r.Shares[i+1:] {
			switch parent := a.Path[:strings.LastIndex(a.Path, "/")+1]; {
			case a.Plan != b.Plan || a.Path == "/" || b.Path[:strings.LastIndex(b.Path, "/")+1] != parent:
			case a.Priority != b.Priority:
				n["other priority"]++
			case a.Ratio != b.Ratio:
				n["equal priority, other ratio"]++
			default:
				n["equal priority and ratio"]++
			}
		}
	}
}
