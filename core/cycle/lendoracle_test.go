package cycle_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/oracle"
	"github.com/stintd/stint/core/plan"
)

// TestLendOracle plays random cases of lending on the oracle alone, and holds its results against the promises of SPEC
// chapter 11, and counts situations.
func TestLendOracle(t *testing.T) {
	n, counts := setCases(t, casesMin/3, 10), map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		l := lone{landlord{&player{world: world{site: lendKind.draw(t), rows: map[string][]oracle.Demand{}},
			held:   map[holding]int64{},
			wanted: map[oracle.Key]int64{}, rules: map[oracle.Key]oracle.Demand{}, relabel: map[string]int{},
			changes: map[string]int{}, owns: map[string]int64{},
			ran: map[string]bool{}}}}
		l.compile(t)
		l.first = l.yaml()
		l.oracle = oracle.New(l.policy)
		whole := false
		defer func() {
			if !whole {
				keepFailed(t, "lend", l.scenario())
				t.Logf("%s\nIts last cycle: %+v", l.scenario(), l.last)
			}
		}()
		l.play(t)
		whole = true
		l.count(counts)
	})
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%-40s %8d  %6.2f %% of cases", name, counts[name], 100*float64(counts[name])/float64(counts["case"]))
	}
	for _, name := range lendKind.situations {
		if n >= 1000 && counts[name]*1000 < counts["case"] {
			t.Errorf("%s occurred %d times in %d cases: less than 0.1 %%", name, counts[name], counts["case"])
		}
	}
}

// lone plays a case on the oracle alone.
type lone struct{ landlord }

// compile puts the site's policy file in force.
func (l *lone) compile(t *rapid.T) {
	var err error
	if l.policy, err = plan.Parse("case.yaml", []byte(l.yaml())); err != nil {
		t.Fatalf("%v\n%s", err, l.yaml())
	}
}

// restMax is how many cycles a case may take to its fixed point.
const restMax = 80

func (l *lone) play(t *rapid.T) {
	for i := range l.upTo(t, "steps", 2, 6) {
		revised := ""
		if i > 0 && odds(t, "policy", 3) {
			for i := range l.plans {
				for k := range l.plans[i].members {
					l.plans[i].members[k].share = l.drawShare(t)
				}
			}
			l.reviseOwn(t)
			l.compile(t)
			l.oracle.SetPolicy(l.policy, false)
			revised = l.yaml()
		}
		s := l.drawStep(t, i == 0, l.last.Held)
		s.policy = revised
		l.give(s)
		for range s.cycles + 1 {
			l.run(t)
		}
	}
	for l.cycles < cutMax { // beyond the last switch of windows
		l.run(t)
	}
	for n := 0; n == 0 || !l.still(); n++ {
		if n == restMax {
			t.Fatalf("INV-10: no rest after %d cycles", restMax)
		}
		if due := l.confirm(); len(due) > 0 {
			l.give(step{releases: due})
		}
		l.run(t)
	}
	l.atRest(t)
	for range 2 {
		if l.run(t); !l.still() {
			t.Fatalf("CYC-2: no input, but %+v", l.last)
		}
	}
}

// still tells whether a cycle changed nothing and left nothing pending.
func (l *lone) still() bool {
	r := &l.last
	return len(r.Grants)+len(r.Releases)+len(r.Reclaims)+len(r.Owned)+r.Leaving+r.Promised == 0
}

// give gives the oracle a step's input.
func (l *lone) give(s step) {
	l.steps = append(l.steps, s)
	if len(s.hosts) > 0 {
		l.oracle.SetHosts(s.hosts, s.full)
	}
	if !s.late {
		l.oracle.Release(s.releases)
	}
	for _, d := range s.demand {
		l.oracle.SetDemand(d.source, d.rows)
	}
	l.oracle.Running(s.running)
	if s.late {
		l.oracle.Release(s.releases)
	}
	l.note(s)
}

// confirm are the releases of clients that confirm what is under reclaim.
func (l *lone) confirm() (rows []oracle.Holding) {
	for _, u := range l.last.Held {
		if u.Leaving > 0 && l.mdPlan(u.Plan).confirms {
			rows = append(rows, oracle.Holding{Consumer: u.Consumer, Allocation: u.Allocation, Sub: u.Sub, Host: u.Host,
				Units: u.Leaving})
		}
	}
	return rows
}

// run is a cycle and all that must hold after it.
func (l *lone) run(t *rapid.T) {
	l.cycle(t)
	l.countRelabels()
	l.seen = append(l.seen, l.last)
	l.sums(t)
	for name := range l.hosts {
		l.bearable(t, name)
	}
	for _, g := range l.last.Grants {
		l.granted(t, g)
	}
	for _, r := range l.last.Reclaims {
		if for1 := r.For.Consumer != ""; for1 != (r.Reason == "recall" || r.Reason == "fair_share") {
			t.Fatalf("INV-7: %+v", r)
		}
	}
	for _, c := range l.last.Consumers {
		l.reserved(t, c)
	}
}

// sums holds INV-9: what is held is what was held, and granted, less what was released; and wanted less what is short.
func (l *lone) sums(t *rapid.T) {
	for _, u := range l.last.Releases {
		l.held[holding{u.Key, u.Host}] -= u.Units
	}
	for _, u := range l.last.Grants {
		l.held[holding{u.Key, u.Host}] += u.Units
	}
	stated := map[holding]int64{}
	for _, u := range l.last.Held {
		stated[holding{u.Key, u.Host}] += u.Units
	}
	if maps.DeleteFunc(l.held, func(_ holding, n int64) bool { return n == 0 }); !maps.Equal(l.held, stated) {
		t.Fatalf("INV-9: held should be %v and is %v", l.held, stated)
	}
	short := map[string]int64{}
	for _, s := range l.last.Shortfalls {
		short[s.Plan+s.Consumer] += s.Units
	}
	for _, c := range l.last.Consumers {
		if n, leaf := short[c.Plan+c.Path]; c.Demand != c.Held+c.Short || leaf && n != c.Short {
			t.Fatalf("INV-9: %+v is short of %d", c, n)
		}
	}
}

// heldOn is whose parcel a unit lies on: that follows from what it counts as.
func heldOn(u oracle.Units) string {
	switch {
	case u.Origin == "owned":
		return u.Consumer
	case u.Lender != "":
		return u.Lender
	}
	return u.Pool
}

// beneath tells whether a consumer is another one or below it.
func beneath(n, up string) bool { return up == "/" || n == up || strings.HasPrefix(n, up+"/") }

// meet is where the ways up from two consumers meet.
func meet(a, b string) string {
	for !beneath(b, a) {
		a = a[:strings.LastIndex(a, "/")]
		if a == "" {
			return "/"
		}
	}
	return a
}

// parcel is what a consumer has of a host and none of its children, by dimension; "/" has what nobody owns.
func (l *lone) parcel(in, host, owner string) map[string]int64 {
	v := map[string]int64{}
	for _, d := range l.dims {
		if v[d] = l.owns[ownKey(in, owner, host, d)]; owner == "/" && l.planOf(host) == in &&
			l.hosts[host].State != "unavail" {
			v[d] = l.capacity(in, l.hosts[host])[d]
		}
		for _, c := range l.consumers {
			if up := c.path[:strings.LastIndex(c.path, "/")]; up == strings.TrimSuffix(owner, "/") {
				v[d] -= l.owns[ownKey(in, c.path, host, d)]
			}
		}
	}
	return v
}

// on is what is held of a dimension on a host by units that ok accepts, less what is under reclaim where net is true.
func (l *lone) on(host, dim string, net bool, ok func(u oracle.Units) bool) (sum int64) {
	for _, u := range l.last.Held {
		if u.Host != host || !ok(u) {
			continue
		}
		if net {
			u.Units -= u.Leaving
		}
		sum += u.Units * l.rules[u.Key].Size[dim]
	}
	return sum
}

func anything(oracle.Units) bool { return true }

// budget tells whether a plan takes back only some units a cycle.
func (l *lone) budget(name string) bool {
	return slices.ContainsFunc(l.mdPlan(name).settings, func(s string) bool {
		return strings.HasPrefix(s, "reclaim_budget")
	})
}

// bearable holds INV-1: no host holds more than it has, and no parcel, but for what is under reclaim.
func (l *lone) bearable(t *rapid.T, host string) {
	in := l.planOf(host)
	if in == "" {
		return
	}
	owners := []string{"/"}
	for _, c := range l.consumers {
		owners = append(owners, c.path)
	}
	for _, d := range l.dims {
		if l.on(host, d, false, anything) > l.capacity(in, l.hosts[host])[d] {
			t.Fatalf("INV-1: %s holds too much %s", host, d)
		}
		for _, o := range owners {
			if n := l.on(host, d, true, func(u oracle.Units) bool { return heldOn(u) == o }); n > l.parcel(in, host,
				o)[d] && !l.budget(in) {
				t.Fatalf("INV-1: %s's parcel of %s holds %d %s, it is %v", o, host, n, d, l.parcel(in, host, o))
			}
		}
	}
}

// granted holds what a grant needs: an ok host (INV-1), a grace within the pool's (MD-9), and room in limits above
// (INV-4).
func (l *lone) granted(t *rapid.T, g oracle.Units) {
	if l.hosts[g.Host].State != "ok" {
		t.Fatalf("INV-1: %+v", g)
	}
	if g.Origin == "owned" {
		return
	}
	if why := l.barred(g.Plan, g.Consumer, heldOn(g)); why != "" {
		t.Fatalf("%s: %+v", why, g)
	}
	for _, e := range l.mdPlan(g.Plan).members {
		path := l.consumers[e.consumer].path
		if !beneath(g.Consumer, path) || beneath(g.Pool, path) {
			continue
		}
		for d, most := range l.mdPlan(g.Plan).shareIn(&l.site, &e, l.cycles).limit {
			sum := int64(0)
			for name := range l.hosts {
				sum += l.on(name, d, true, func(u oracle.Units) bool { return l.above(u, g.Plan, path) })
			}
			if l.rules[g.Key].Size[d] > 0 && sum > int64(most) {
				t.Fatalf("INV-4: %s holds %d %s from pools, after %+v", path, sum, d, g)
			}
		}
	}
}

// above tells whether a unit is held by a consumer, or one below it, from a pool above it.
func (l *lone) above(u oracle.Units, in, path string) bool {
	return u.Plan == in && u.Origin != "owned" && beneath(u.Consumer, path) && !beneath(u.Pool, path)
}

// barred is why a leaf may hold nothing of a consumer's parcels: a ratio of 0, or its grace; "" when it may.
func (l *lone) barred(in, leaf, owner string) string {
	pool, m := meet(leaf, owner), l.mdPlan(in)
	if leaf == owner {
		return ""
	}
	i := slices.IndexFunc(l.consumers, func(c consumer) bool { return c.path == leaf })
	within := func(text, key string) bool { // a text may say a grace in seconds, less than an hour
		_, most, ok := strings.Cut(text, key+": ")
		n, err := time.ParseDuration(most[:strings.Index(most, "s")+1])
		return !ok || err == nil && time.Duration(l.consumers[i].grace)*time.Second <= n
	}
	if pool == "/" && slices.ContainsFunc(m.settings, func(s string) bool { return !within(s, "{grace") }) {
		return "MD-9"
	}
	for _, e := range m.members {
		path := l.consumers[e.consumer].path
		switch {
		case beneath(leaf, path) && !beneath(pool, path) && m.shareIn(&l.site, &e, l.cycles).ratio == 0:
			return "D-6"
		case path == pool && !within(e.lendGrace, "private_pool_grace"),
			beneath(owner, path) && !beneath(pool, path) && !within(e.lendGrace, " lend_grace"):
			return "MD-9"
		}
	}
	return ""
}

// reserved holds INV-3 as far as sums go: others hold no more of what a consumer owns than it does not reserve.
func (l *lone) reserved(t *rapid.T, c oracle.Consumer) {
	if l.budget(c.Plan) {
		return
	}
	for d, dim := range l.dims {
		sum := int64(0)
		for name := range l.hosts {
			if l.planOf(name) == c.Plan {
				sum += l.on(name, dim, true, func(u oracle.Units) bool {
					return beneath(heldOn(u), c.Path) && !beneath(u.Consumer, c.Path)
				})
			}
		}
		if sum > 0 && sum > c.Owned[d]-c.Reserved[d] {
			t.Fatalf("INV-3: others hold %d %s of %s: %+v", sum, dim, c.Path, c)
		}
	}
}

// atRest holds INV-2 and INV-6, where nothing is under way: no unit that is short fits what its leaf may use, be it
// that outsiders hold it.
func (l *lone) atRest(t *rapid.T) {
	for _, s := range l.last.Shortfalls {
		if l.mdPlan(s.Plan).nears(&l.site, l.cycles) {
			continue // what is idle is for those who will have it then
		}
		r := l.rules[s.Key]
		for host, h := range l.hosts {
			if h.State != "ok" || l.planOf(host) != s.Plan || !meets(r.Requirement, h) ||
				r.MaxPerHost != plan.Unlimited && l.held[holding{s.Key, host}] >= r.MaxPerHost {
				continue
			}
			owners := []string{"/"}
			for _, e := range l.mdPlan(s.Plan).members {
				owners = append(owners, l.consumers[e.consumer].path)
			}
			for _, o := range owners {
				l.idle(t, s, host, o)
			}
		}
	}
}

// idle holds that a unit that is short does not fit an owner's parcel.
func (l *lone) idle(t *rapid.T, s oracle.Shortfall, host, o string) {
	pool, parcel := meet(s.Consumer, o), l.parcel(s.Plan, host, o)
	if l.barred(s.Plan, s.Consumer, o) != "" || s.Consumer != o && (l.limited(s.Key, pool) || s.Reason == "budget") {
		return
	}
	for _, c := range l.last.Consumers { // where a reserve lies is not ours to say
		if c.Plan == s.Plan && beneath(o, c.Path) && !beneath(pool, c.Path) &&
			slices.ContainsFunc(c.Reserved, func(n int64) bool { return n > 0 }) {
			return
		}
	}
	free, back := true, pool != "/"
	for d, n := range l.rules[s.Key].Size {
		here := func(u oracle.Units) bool { return heldOn(u) == o }
		free = free && (n == 0 || n+l.on(host, d, false, here) <= parcel[d])
		back = back &&
			(n == 0 ||
				n+l.on(host, d, false,
					func(u oracle.Units) bool { return here(u) && beneath(u.Consumer, pool) }) <= parcel[d])
	}
	if free {
		t.Fatalf("INV-6: %+v fits %s's part of %s", s, o, host)
	}
	if back {
		t.Fatalf("INV-2: %+v would fit %s's part of %s, were outsiders of %s gone", s, o, host, pool)
	}
}

// limited tells whether a share limit below a pool stops a unit.
func (l *lone) limited(k oracle.Key, pool string) bool {
	for _, e := range l.mdPlan(k.Plan).members {
		path := l.consumers[e.consumer].path
		if !beneath(k.Consumer, path) || beneath(pool, path) {
			continue
		}
		for d, most := range l.mdPlan(k.Plan).shareIn(&l.site, &e, l.cycles).limit {
			sum := l.rules[k].Size[d]
			for name := range l.hosts {
				sum += l.on(name, d, true, func(u oracle.Units) bool { return l.above(u, k.Plan, path) })
			}
			if l.rules[k].Size[d] > 0 && sum > int64(most) {
				return true
			}
		}
	}
	return false
}
