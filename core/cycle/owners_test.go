package cycle_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/oracle"
	"github.com/stintd/stint/core/plan"
)

// TestOwners plays random MD plans in which consumers own hosts and parts of hosts on the engine alone: it decides the
// same as a twin that forgets everything, its figures add up, nothing is too much on a parcel that is not under
// reclaim, no leaf goes short beside its own free parcels, and it comes to rest.
func TestOwners(t *testing.T) {
	setCases(t, casesMin, 1)
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) { playOwners(t, seen) })
	t.Log(seen)
	for _, what := range []string{"assigned", "trimmed", "split", "owned", "private_pool", "lent", "overfull",
		"ownership_unmet", "relabelled", "ownership_change cancelled", "pass for an unmet claim"} {
		if seen[what] == 0 && !testing.Short() {
			t.Errorf("never seen: %s (%v)", what, seen)
		}
	}
}

// owner plays one case.
type owner struct {
	player
	seen map[string]int
}

func playOwners(t *rapid.T, seen map[string]int) {
	p := &owner{player: player{world: world{site: drawMD(t), rows: map[string][]oracle.Demand{}}, nowUS: startUS},
		seen: seen}
	var log strings.Builder
	whole := false
	defer func() {
		if !whole {
			t.Logf("%s\n%s", log.String(), p.parcels())
		}
	}()
	p.drawOwn(t)
	fmt.Fprintf(&log, "%s\n", p.first)
	p.engine, p.twin = p.state(t), p.state(t)
	for i := range p.upTo(t, "steps", 1, 6) {
		if i > 0 && odds(t, "policy", 3) {
			p.drawOwn(t)
			fmt.Fprintf(&log, "%s\n", p.first)
			for _, s := range []*cluster.State{p.engine, p.twin} {
				if err := s.SetPolicy(p.policy, false); err != nil {
					t.Fatal(err)
				}
			}
		}
		s := p.drawStep(t, i == 0, p.holds())
		fmt.Fprintf(&log, "step %+v\n", s)
		p.apply(t, p.engine, s, 0)
		p.apply(t, p.twin, s, 3)
		for range s.cycles + 1 {
			p.cycle(t)
			fmt.Fprintf(&log, "cycle %d\n%s\n%s", p.cycles, p.parcels(), p.decided())
		}
	}
	for n := 0; !p.out.Summary.Stable(); n++ {
		if n == cyclesMax {
			t.Fatalf("no fixed point after %d cycles with the same input", n)
		}
		if due := p.overdue(); len(due) > 0 {
			for junk, s := range []*cluster.State{p.engine, p.twin} {
				p.apply(t, s, step{releases: due}, 3*junk)
			}
		}
		p.cycle(t)
	}
	p.calm = p.remembers()
	for range 2 {
		before := stateOf(&p.out)
		if p.cycle(t); !p.out.Summary.Stable() || stateOf(&p.out) != before || len(p.out.Ownership.Amount) > 0 {
			t.Fatalf("CYC-2: the fixed point does not stay")
		}
	}
	whole = true
}

// holds is what the engine holds.
func (p *owner) holds() (units []oracle.Units) {
	h := &p.out.Holdings
	for i, n := range h.Units {
		units = append(units, oracle.Units{Key: keyAt(h.Key, i), Host: h.Host.At(i), Units: n})
	}
	return units
}

var memberLine = regexp.MustCompile(`- \{path: ([^,]+), `)

// drawOwn draws what the members of every plan own, and parses the policy with that.
func (p *owner) drawOwn(t *rapid.T) {
	for i := range p.plans {
		for k := range p.plans[i].members {
			p.plans[i].members[k].share = p.drawShare(t)
		}
	}
	text := p.yaml()
	head, body, _ := strings.Cut(text, "md_plans:\n")
	for try := 0; ; try++ {
		owns := map[string]bool{}
		in := -1
		lines := strings.Split(body, "\n")
		for i, line := range lines {
			if strings.Contains(line, "- name: ") {
				in++
				clear(owns)
				if odds(t, "rebalance", 2) {
					lines[i] += fmt.Sprintf("\n    ownership_rebalance: %d", upTo(t, "every", 1, 3))
				}
			}
			m := memberLine.FindStringSubmatch(line)
			if m == nil || try == 4 {
				continue
			}
			up := m[1][:strings.LastIndexByte(m[1], '/')]
			if up != "" && !owns[up] || odds(t, "owns nothing", 3) {
				continue
			}
			if rules := p.drawDeeds(t, p.plans[in].zones); len(rules) > 0 {
				owns[m[1]] = true
				lines[i] = strings.Replace(line, "- {path: "+m[1]+", ",
					"- {path: "+m[1]+", own: ["+strings.Join(rules, ", ")+"], "+
						pick(t, "preference", "", "",
							fmt.Sprintf("preference: {g%d: %d}, ", p.plans[in].zones[0], upTo(t, "prefers", 1, 10))), 1)
			}
		}
		p.first = head + "md_plans:\n" + strings.Join(lines, "\n")
		policy, err := plan.Parse("case.yaml", []byte(p.first))
		if err == nil {
			p.policy = policy
			return
		}
		if try == 4 {
			t.Fatalf("%v\n%s", err, p.first)
		}
	}
}

// drawDeeds draws the rules of what a consumer owns.
func (p *owner) drawDeeds(t *rapid.T, zones []int) (rules []string) {
	for range upTo(t, "rules", 1, 3) {
		group := fmt.Sprintf("{group: g%d, ", pick(t, "zone", zones...))
		amount := fmt.Sprintf("{%s: %d}", pick(t, "of", p.dims...), upTo(t, "amount", 1, 20))
		rules = append(rules, pick(t, "form",
			group+fmt.Sprintf("hosts: %d}", upTo(t, "hosts", 1, 4)),
			group+fmt.Sprintf("percent: %d}", upTo(t, "percent", 1, 60)),
			group+"amount: "+amount+"}",
			group+"amount: "+amount+", partial: true}",
			group+fmt.Sprintf("per_host: {%s: %d}}", pick(t, "of", p.dims...), upTo(t, "each", 1, 4)),
			group+fmt.Sprintf("per_host: {%s: %d%%}}", pick(t, "of", p.dims...), upTo(t, "each percent", 10, 90)),
			group+"remaining: true}",
			fmt.Sprintf("{host_list: [%s]}", hostName(upTo(t, "listed", 0, hostsMax-1))),
		))
	}
	return rules
}

// cycle is one cycle of engine and twin, and what must hold after it.
func (p *owner) cycle(t *rapid.T) {
	if p.cycles++; !p.calm {
		p.nowUS += 60e6
	}
	before := make([]int32, len(p.engine.Plans))
	due := make([]bool, len(p.engine.Plans))
	for i := range p.engine.Plans {
		q := &p.engine.Plans[i]
		before[i], due[i] = q.Since, !q.Reassign && q.Deeds.Open
	}
	fresh := cycle.Runner{Eager: true}
	p.runner.Run(p.engine, p.nowUS, &p.out)
	fresh.Run(p.twin, p.nowUS, &p.twinOut)
	p.runner.Keyframe(&p.out)
	fresh.Keyframe(&p.twinOut)
	if a, b := everything(&p.out), everything(&p.twinOut); decision.Digest(a) != decision.Digest(b) {
		t.Fatalf("INV-8: cycle %d: the twin decides otherwise:\n%s", p.cycles, difference(dump(a), dump(b)))
	}
	if err := p.engine.Verify(); err != nil {
		t.Fatalf("cycle %d: %v", p.cycles, err)
	}
	for i := range p.engine.Plans {
		q := &p.engine.Plans[i]
		p.onParcels(t, q)
		if due[i] && before[i] > 0 && q.Since == 0 {
			p.seen["pass for an unmet claim"]++
		}
	}
	p.short(t)
	p.note()
}

// note counts what came up.
func (p *owner) note() {
	for i := range p.out.Ownership.Amount {
		p.seen[p.out.Ownership.Action.At(i)]++
	}
	for i := range p.out.Grants.Units {
		p.seen[p.out.Grants.Origin.At(i)]++
	}
	h := &p.out.Holdings
	for i := range h.Units {
		p.seen[h.Origin.At(i)]++
		if h.Lender.At(i) != "" {
			p.seen["lent"]++
		}
		if i > 0 && keyAt(h.Key, i) == keyAt(h.Key, i-1) && h.Host.At(i) == h.Host.At(i-1) &&
			h.Granted[i] == h.Granted[i-1] {
			p.seen["split"]++
		}
	}
	for i := range p.out.Shortfalls.UnitsShort {
		p.seen[p.out.Shortfalls.Reason.At(i)]++
	}
	for i := range p.out.Reclaims.Units {
		p.seen[p.out.Reclaims.Reason.At(i)+" "+p.out.Reclaims.Action.At(i)]++
	}
	if p.out.Summary.Relabelled {
		p.seen["relabelled"]++
	}
}

// onParcels holds what a plan's parcels hold against what they have (INV-1).
func (p *owner) onParcels(t *rapid.T, q *cluster.Plan) {
	h, s := &p.engine.Holding, p.engine
	for k := range q.Parcels.Host {
		for d := range q.Parcels.Cap {
			over := -q.Parcels.Free[d][k]
			if over <= 0 {
				continue
			}
			p.seen["overfull"]++
			for row := q.Parcels.First[k]; row != cluster.NoID; row = h.NextOnParcel[row] {
				if h.Set[row] != cluster.NoID {
					over -= h.Units[row] * s.Size(h.Sub[row])[d]
				}
			}
			if over > 0 && q.Terms.ReclaimBudget == plan.Unlimited {
				t.Fatalf("INV-1: parcel %d has %d too much of dimension %d that nobody takes back\n%s", k, over, d,
					p.parcels())
			}
		}
	}
}

// short holds that what is short does not fit a parcel of its leaf's own (INV-2).
func (p *owner) short(t *rapid.T) {
	s := p.engine
	for sub := range s.Sub.Wanted {
		id := cluster.SubID(sub)
		if s.Sub.Alloc[sub] == cluster.NoID || s.Sub.Plan[sub] < 0 || s.Short(id) == 0 {
			continue
		}
		q, need := &s.Plans[s.Sub.Plan[sub]], ""
		if n := s.Sub.Need[sub]; n != cluster.NoID {
			need = s.Need.String(int32(n))
		}
		for k, c := range q.Parcels.Owner {
			name := s.Host.Names.String(int32(q.Parcels.Host[k]))
			if c != s.Sub.Consumer[sub] || !q.Parcels.IsOpen(cluster.ParcelID(k)) || !meets(need, p.hosts[name]) {
				continue
			}
			fits, held := true, int64(0)
			for d, u := range s.Size(id) {
				fits = fits && (u == 0 || q.Parcels.Available(d, cluster.ParcelID(k)) >= u)
			}
			for row := s.Sub.First[sub]; row != cluster.NoID; row = s.Holding.NextOfSub[row] {
				if q.Parcels.Host[s.Holding.Parcel[row]] == q.Parcels.Host[k] {
					held += s.Holding.Units[row]
				}
			}
			if fits && held < s.Sub.MaxPerHost[sub] {
				t.Fatalf("INV-2: cycle %d: sub-allocation %d is short beside its own parcel of %s", p.cycles, sub, name)
			}
		}
	}
}

// parcels shows the engine's parcels and what is on them.
func (p *owner) parcels() string {
	var b strings.Builder
	s := p.engine
	if s == nil {
		return ""
	}
	for i := range s.Plans {
		q := &s.Plans[i].Parcels
		for k := range q.Host {
			owner := "-"
			if q.Owner[k] != cluster.NoID {
				owner = s.Consumer.String(int32(q.Owner[k]))
			}
			fmt.Fprintf(&b, "%s %d %s %s", s.Plans[i].Name, k, s.Host.Names.String(int32(q.Host[k])), owner)
			for d := range q.Cap {
				fmt.Fprintf(&b, " %d/%d", q.Available(d, cluster.ParcelID(k)), q.Cap[d][k])
			}
			var on []string
			for row := q.First[k]; row != cluster.NoID; row = s.Holding.NextOnParcel[row] {
				on = append(on, fmt.Sprintf("%s×%d %s set %d",
					s.Consumer.String(int32(s.Sub.Consumer[s.Holding.Sub[row]])), s.Holding.Units[row],
					decision.Origins[s.Holding.Origin[row]], s.Holding.Set[row]))
			}
			slices.Sort(on)
			fmt.Fprintf(&b, " %v\n", on)
		}
	}
	return b.String()
}
