package cycle_test

import (
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stintd/stint/core/oracle"
)

// TestSoak plays as many random cases as STINT_SOAK says, from the seed STINT_SEED or a random one, and prints how
// often each situation occurred: a rule that never came up was not tested.
func TestSoak(t *testing.T) {
	text := os.Getenv("STINT_SOAK")
	if text == "" {
		t.Skip("STINT_SOAK is not set: it gives the number of random cases")
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("STINT_SOAK=%q: want a number of cases", text)
	}
	seed := rand.Uint64()
	if text := os.Getenv("STINT_SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("STINT_SEED=%q: %v", text, err)
		}
	}
	t.Logf("seed %d", seed)
	setRapid(t, n, seed)
	counts, began := map[string]int{}, time.Now()
	check(t, kinds[0], func(p *player) { p.count(counts) })
	t.Logf("%d cases, %d cycles in %v", counts["case"], counts["cycle"], time.Since(began).Round(time.Millisecond))
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%-32s %8d  %6.2f %% of cases", name, counts[name], 100*float64(counts[name])/float64(counts["case"]))
	}
	for _, name := range situations {
		if n >= 1000 && counts[name]*1000 < counts["case"] {
			t.Errorf("%s occurred %d times in %d cases: less than 0.1 %%", name, counts[name], counts["case"])
		}
	}
}

// situations must each occur in one case of a thousand.
var situations = []string{
	"release client", "release demand_gone", "release done", "release grace_expired", "release host_lost",
	"reclaim cancelled", "reclaim issued", "revised policy",
	"short fragmented", "short lower_priority", "short max_per_host", "short no_host_matches", "short over_quota",
	"short pool_exhausted", "short share_limit", "short too_big",
	"placement balanced", "placement best_fit", "placement stacked", "requirement order", "requirement select",
	"plain first cycle", "running", "full host table", "equal priority and ratio", "equal priority, other ratio", "other priority",
	"host closed", "host draining", "host unavail", "overcommit", "several plans",
}

// count adds the situations of a case, each as often as it occurred in another cycle or row.
func (p *player) count(n map[string]int) {
	n["case"]++
	n["cycle"] += len(p.seen)
	add := func(name string, is bool) {
		if is {
			n[name]++
		}
	}
	for _, r := range p.seen {
		for _, u := range r.Releases {
			n["release "+u.Cause]++
		}
		for _, u := range r.Reclaims {
			n["reclaim "+u.Action]++
		}
		for _, s := range r.Shortfalls {
			n["short "+s.Reason]++
		}
		for _, g := range r.Grants {
			m := p.mdPlan(g.Plan)
			if m == nil {
				continue
			}
			n["placement "+m.placement]++
			add("overcommit", len(m.overcommit) > 0)
		}
		p.countShares(n, r)
	}
	for i, s := range p.steps {
		add("plain first cycle", i == 0 && p.plain)
		add("revised policy", s.policy != "")
		add("running", len(s.running) > 0)
		add("full host table", s.full && i > 0)
		for _, h := range s.hosts {
			add("host "+h.State, true)
		}
		for _, d := range s.demand {
			for _, r := range d.rows {
				add("requirement select", strings.Contains(r.Requirement, "select"))
				add("requirement order", strings.Contains(r.Requirement, "order"))
			}
		}
	}
	add("several plans", len(p.plans) > 1)
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
