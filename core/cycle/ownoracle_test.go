package cycle_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/oracle"
	"github.com/stintd/stint/core/plan"
)

// TestOwnOracle plays random cases with ownership on the oracle alone: what is owned is nested and there, and
// passes between which nothing changes soon move nothing.
func TestOwnOracle(t *testing.T) {
	setRapid(t, casesMin/3, seedMin)
	rapid.Check(t, func(t *rapid.T) {
		p := &player{world: world{site: drawOwn(t), rows: map[string][]oracle.Demand{}}, changes: map[string]int{},
			owns: map[string]int64{}}
		set := func() {
			var err error
			if p.policy, err = plan.Parse("case.yaml", []byte(p.yaml())); err != nil {
				t.Fatalf("%v\n%s", err, p.yaml())
			}
		}
		set()
		p.oracle = oracle.New(p.policy)
		l := landlord{p}
		for i := range p.upTo(t, "steps", 3, 6) {
			if i > 0 && once(t, "policy", 2) {
				for i := range p.plans {
					for k := range p.plans[i].members {
						p.plans[i].members[k].share = p.drawShare(t)
					}
				}
				p.reviseOwn(t)
				set()
				p.oracle.SetPolicy(p.policy, false)
			}
			s := p.drawStep(t, i == 0, p.last.Held)
			if len(s.hosts) > 0 {
				p.oracle.SetHosts(s.hosts, s.full)
			}
			for _, d := range s.demand {
				p.oracle.SetDemand(d.source, d.rows)
			}
			p.oracle.Running(s.running)
			p.oracle.Release(s.releases)
			for range s.cycles + 1 {
				l.cycle(t)
			}
		}
		for l.cycles < cutMax { // beyond the last switch of windows
			l.cycle(t)
		}
		for range 40 { // policies that say the same are in force one after the other
			p.oracle.SetPolicy(p.policy, false)
			held := fmt.Sprint(p.last.Held, p.last.Leaving)
			l.cycle(t)
			if r := &p.last; held == fmt.Sprint(r.Held, r.Leaving) &&
				len(r.Reclaims)+len(r.Grants)+len(r.Releases)+len(r.Owned) == 0 {
				for range passesMax {
					p.oracle.SetPolicy(p.policy, false)
					l.cycle(t)
					if len(p.last.Owned) == 0 {
						return
					}
				}
				t.Fatalf("nothing changed, but %v\n%s", p.last.Owned, p.yaml())
			}
		}
		t.Fatalf("no rest: %+v\n%s", p.last, p.yaml())
	})
}

// passesMax is how many passes may move anything when nothing changed in between: after a consumer's rules changed, the
// first says which rule has what, by which the second may order what it takes.
const passesMax = 3

// landlord adds up who owns what, by the oracle.
type landlord struct{ *player }

func (l *landlord) cycle(t *rapid.T) {
	l.cycles++
	l.last = l.oracle.Cycle()
	l.countOwned()
	l.estates(t)
	for _, c := range l.last.Consumers {
		for d, name := range l.dims {
			sum := int64(0)
			for h := range hostsMax {
				sum += l.owns[ownKey(c.Plan, c.Path, hostName(h), name)]
			}
			if c.Owned[d] != sum || c.Reserved[d] > sum || c.Configured[d] < 0 {
				t.Fatalf("%s owns %d %s: %+v", c.Path, sum, name, c)
			}
		}
	}
	for _, u := range l.last.Held {
		if u.Origin == "owned" && (u.Lender != "" || u.Pool != "") || u.Origin == "public_pool" && u.Pool != "/" {
			t.Fatalf("held: %+v", u)
		}
	}
}
