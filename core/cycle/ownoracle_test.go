package cycle_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/oracle"
	"github.com/stintd/stint/core/plan"
)

// TestOwnOracle plays random cases with ownership on the oracle alone: what is owned is nested and there, and a pass
// after which nothing changed moves nothing.
func TestOwnOracle(t *testing.T) {
	setRapid(t, casesMin/10, seedMin)
	rapid.Check(t, func(t *rapid.T) {
		p := &player{world: world{site: ownKind.draw(t), rows: map[string][]oracle.Demand{}}}
		set := func() {
			var err error
			if p.policy, err = plan.Parse("case.yaml", []byte(p.yaml())); err != nil {
				t.Fatalf("%v\n%s", err, p.yaml())
			}
		}
		set()
		p.oracle = oracle.New(p.policy)
		l := landlord{player: p, owns: map[string]int64{}}
		for i := range p.upTo(t, "steps", 1, 5) {
			if i > 0 && odds(t, "policy", 3) {
				for i := range p.plans {
					for k := range p.plans[i].members {
						p.plans[i].members[k].share = p.drawShare(t)
					}
				}
				p.reviseOwn(t)
				set()
				p.oracle.SetPolicy(p.policy)
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
			p.oracle.SetPolicy(p.policy)
			held := fmt.Sprint(p.last.Held, p.last.Leaving)
			l.cycle(t)
			if r := &p.last; held == fmt.Sprint(r.Held, r.Leaving) && len(r.Reclaims)+len(r.Grants)+len(r.Releases)+len(r.Owned) == 0 {
				p.oracle.SetPolicy(p.policy)
				l.cycle(t)
				if len(p.last.Owned) > 0 {
					t.Fatalf("nothing changed, but %v\n%s", p.last.Owned, p.yaml())
				}
				return
			}
		}
		t.Fatalf("no rest: %+v\n%s", p.last, p.yaml())
	})
}

// landlord adds up who owns what.
type landlord struct {
	*player
	owns map[string]int64 // by plan, consumer, host and dimension
}

func (l *landlord) cycle(t *rapid.T) {
	l.cycles++
	l.last = l.oracle.Cycle()
	for _, o := range l.last.Owned {
		if o.Action == "trimmed" {
			o.Amount = -o.Amount
		}
		l.owns[ownKey(o.Plan, o.Consumer, o.Host, o.Dimension)] += o.Amount
	}
	for _, m := range l.plans {
		for h := range hostsMax {
			for _, d := range l.dims {
				l.nested(t, &m, hostName(h), d)
			}
		}
	}
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

func ownKey(words ...string) string { return strings.Join(words, " ") }

// nested holds that children own no more of a host than their parent does, and the first level what there is.
func (l *landlord) nested(t *rapid.T, m *mdPlan, host, dim string) {
	sums := map[int]int64{}
	for _, e := range m.members {
		n := l.owns[ownKey(m.name, l.consumers[e.consumer].path, host, dim)]
		if n < 0 {
			t.Fatalf("%s owns %d %s of %s", l.consumers[e.consumer].path, n, dim, host)
		}
		sums[l.consumers[e.consumer].parent] += n
	}
	for up, sum := range sums {
		most := int64(0)
		if up >= 0 {
			most = l.owns[ownKey(m.name, l.consumers[up].path, host, dim)]
		} else if l.planOf(host) == m.name && l.hosts[host].State != "unavail" {
			most = l.capacity(m.name, l.hosts[host])[dim]
		}
		if sum > most {
			t.Fatalf("%s: children of %d own %d %s of %s, which has %d", m.name, up, sum, dim, host, most)
		}
	}
}
