package cycle_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math"
	"runtime"
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

// casesMin is how many random cases an ordinary test run plays.
const casesMin = 2000

// TestProperties plays random cases: the engine against the oracle, and the promises of SPEC chapter 11.
func TestProperties(t *testing.T) {
	n := casesMin
	if testing.Short() {
		n = casesMin / 10
	}
	check(t, n, 0, func(*player) {})
}

// check plays n random cases from a seed (0: a random one) and shows every player that came through.
func check(t *testing.T, n int, seed uint64, seen func(*player)) {
	t.Helper()
	for name, v := range map[string]string{"rapid.checks": fmt.Sprint(n), "rapid.nofailfile": "true"} {
		if err := flag.Set(name, v); err != nil {
			t.Fatal(err)
		}
	}
	if seed != 0 {
		if err := flag.Set("rapid.seed", fmt.Sprint(seed)); err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		p := newPlayer(t)
		whole := false
		defer func() {
			if !whole {
				t.Logf("%s", p.scenario())
			}
		}()
		for i := range upTo(t, "steps", 1, 6) {
			p.step(t, i)
		}
		seen(p)
		whole = true
	})
}

// holding is units of a sub-allocation on a host.
type holding struct {
	oracle.Key
	host string
}

// player plays one case on the oracle, the engine and a twin of the engine that
// sees the same input with other codes and forgets everything between cycles.
type player struct {
	world
	policy       *plan.Policy
	oracle       *oracle.Cluster
	engine, twin *cluster.State
	runner       cycle.Runner
	out, twinOut decision.Cycle
	nowUS        int64
	cycles       int
	revised      int
	steps        []step
	last         oracle.Result
	seen         []oracle.Result

	// The ledger: what the engine's own grants and releases add up to.
	held   map[holding]int64
	wanted map[oracle.Key]int64
	rules  map[oracle.Key]oracle.Demand
	// renewed are the sources whose newest snapshot came after the step's releases: what those did to its numbers is gone.
	renewed map[string]bool
}

func newPlayer(t *rapid.T) *player {
	p := &player{world: world{site: drawSite(t), rows: map[string][]oracle.Demand{}}, held: map[holding]int64{},
		wanted: map[oracle.Key]int64{}, rules: map[oracle.Key]oracle.Demand{}, nowUS: 1767571200e6}
	var err error
	if p.policy, err = plan.Parse("case.yaml", []byte(p.yaml())); err != nil {
		t.Fatalf("%v\n%s", err, p.yaml())
	}
	p.oracle = oracle.New(p.policy)
	p.engine, p.twin = p.state(t), p.state(t)
	return p
}

func (p *player) state(t *rapid.T) *cluster.State {
	s, err := cluster.New(p.policy)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return s
}

// step draws a step, gives it to all three and runs its cycles.
func (p *player) step(t *rapid.T, i int) {
	if i > 0 && odds(t, "policy", 3) {
		p.revise(t)
	}
	s := p.drawStep(t, i == 0, p.last.Held)
	p.steps = append(p.steps, s)
	p.apply(t, p.engine, s, 0)
	p.apply(t, p.twin, s, 3)
	if len(s.hosts) > 0 {
		p.oracle.SetHosts(s.hosts, s.full)
	}
	if !s.late {
		p.oracle.Release(s.releases)
	}
	for _, d := range s.demand {
		p.oracle.SetDemand(d.source, d.rows)
	}
	p.oracle.Running(s.running)
	if s.late {
		p.oracle.Release(s.releases)
	}
	p.note(s)
	for k := range s.cycles + 1 { // the last one changes nothing (CYC-2)
		p.run(t, k > 0)
		if i == 0 && k == 0 && p.plain {
			p.fair(t)
		}
	}
}

// revise puts a policy of other shares and limits in force.
func (p *player) revise(t *rapid.T) {
	p.revised++
	for i := range p.plans {
		for k := range p.plans[i].members {
			p.plans[i].members[k].share = p.drawShare(t)
		}
	}
	var err error
	if p.policy, err = plan.Parse("case.yaml", []byte(p.yaml())); err != nil {
		t.Fatalf("%v\n%s", err, p.yaml())
	}
	p.oracle.SetPolicy(p.policy)
	for _, s := range []*cluster.State{p.engine, p.twin} {
		if err := s.SetPolicy(p.policy); err != nil {
			t.Fatalf("%v\n%s", err, p.yaml())
		}
	}
}

// apply gives a step's input to an engine; junk words change every code of its dictionaries.
func (p *player) apply(t *rapid.T, st *cluster.State, s step, junk int) {
	try := func(err error) {
		if err != nil {
			t.Fatalf("input refused: %v", err)
		}
	}
	w := tables{p.policy, junk}
	if len(s.hosts) > 0 {
		try(st.SetHosts(w.hosts(s.hosts), s.full))
	}
	release := func(now bool) {
		if now && len(s.releases) > 0 {
			_, err := st.Release(w.holdings(s.releases))
			try(err)
		}
	}
	release(!s.late)
	for _, d := range s.demand {
		try(st.SetDemand(d.source, w.demand(d.rows)))
	}
	if len(s.running) > 0 {
		try(st.AddRunning(s.source, w.holdings(s.running)))
	}
	release(s.late)
}

// note takes a step's input into the ledger.
func (p *player) note(s step) {
	p.renewed = map[string]bool{}
	for _, d := range s.demand {
		p.renewed[d.source] = !s.late
		for k := range p.rules {
			if strings.HasPrefix(k.Allocation, d.source) {
				delete(p.rules, k)
				p.wanted[k] = 0
			}
		}
		for _, r := range d.rows {
			p.rules[key(r)], p.wanted[key(r)] = r, r.Units
		}
	}
	for _, r := range s.running {
		for k := range p.rules {
			if k.Consumer == r.Consumer && k.Allocation == r.Allocation && k.Sub == r.Sub && k.Plan == p.planOf(r.Host) {
				p.held[holding{k, r.Host}] += r.Units
			}
		}
	}
}

// planOf is the plan of a host, "" when none.
func (w *world) planOf(host string) string {
	for _, m := range w.plans {
		if h, ok := w.hosts[host]; ok && slices.Contains(m.zones, int(h.Attr["zone"].(float64))) {
			return m.name
		}
	}
	return ""
}

// run is one cycle of all three, and everything that must hold after it.
func (p *player) run(t *rapid.T, still bool) {
	p.cycles++
	p.nowUS += 60e6
	before, waiting := stateOf(&p.out), p.out.Summary.UnitsLeaving > 0
	var fresh cycle.Runner // knows nothing of earlier cycles
	p.runner.Run(p.engine, p.nowUS, &p.out)
	procs := runtime.GOMAXPROCS(1 + p.cycles%3)
	fresh.Run(p.twin, p.nowUS, &p.twinOut)
	runtime.GOMAXPROCS(procs)
	p.runner.Keyframe(&p.out)
	fresh.Keyframe(&p.twinOut)
	p.last = p.oracle.Cycle()
	p.seen = append(p.seen, p.last)
	if a, b := everything(&p.out), everything(&p.twinOut); decision.Digest(a) != decision.Digest(b) {
		t.Fatalf("INV-8: the twin decides otherwise:\n%s", difference(dump(a), dump(b)))
	}
	if err := p.engine.Verify(); err != nil {
		t.Fatalf("cycle %d: %v", p.cycles, err)
	}
	want, got := expected(p.last), tabled(&p.out, len(p.dims))
	for _, table := range []string{"releases", "grants", "reclaims", "held", "consumers", "amounts", "shares", "shortfalls"} {
		if table == "shares" {
			p.shares(t)
		} else if !slices.Equal(got[table], want[table]) {
			t.Fatalf("cycle %d: %s: engine and oracle differ:\n%s", p.cycles, table,
				difference(strings.Join(got[table], "\n"), strings.Join(want[table], "\n")))
		}
	}
	p.ledger(t)
	p.conserving(t)
	if still && !waiting && p.out.Summary.UnitsLeaving == 0 {
		if n := len(p.out.Grants.Units) + len(p.out.Releases.Units) + len(p.out.Reclaims.Units); n > 0 {
			t.Fatalf("CYC-2: cycle %d has the same input and still %d grants and releases", p.cycles, n)
		}
		if stateOf(&p.out) != before {
			t.Fatalf("CYC-2: cycle %d has the same input and other tables:\n%s", p.cycles, difference(stateOf(&p.out), before))
		}
	}
}

// expected is the oracle's result as lines by table; tabled is the engine's.
func expected(r oracle.Result) map[string][]string {
	m := map[string][]string{}
	for _, u := range r.Grants {
		m["grants"] = append(m["grants"], fmt.Sprint(u.Key, u.Host, " ", u.Units))
	}
	releases := map[string]int64{} // two sizes of one name may go at once
	for _, u := range r.Releases {
		releases[fmt.Sprint(u.Key, u.Host, " ", u.Cause)] += u.Units
	}
	m["releases"] = lines(releases)
	reclaims := map[string]int64{}
	for _, u := range r.Reclaims {
		reclaims[fmt.Sprint(u.Key, u.Host, " ", u.Cause)] += u.Units
	}
	m["reclaims"] = lines(reclaims)
	held := map[string]int64{}
	for _, u := range r.Held {
		held[fmt.Sprint(u.Key, u.Host)] += u.Units
	}
	m["held"] = lines(held)
	for _, c := range r.Consumers {
		m["consumers"] = append(m["consumers"], fmt.Sprint(c.Plan, " ", c.Path, " ", c.Demand, c.Held, c.Short))
		m["amounts"] = append(m["amounts"], fmt.Sprint(c.Plan, " ", c.Path, " ", c.Amount, c.StaticPart))
	}
	for _, s := range r.Shortfalls {
		m["shortfalls"] = append(m["shortfalls"], fmt.Sprintf("%v %d %s %q %q", s.Key, s.Units, s.Reason, s.Dimension, s.Blocker))
	}
	return m
}

func tabled(c *decision.Cycle, dims int) map[string][]string {
	m := map[string][]string{}
	for i, n := range c.Grants.Units {
		m["grants"] = append(m["grants"], fmt.Sprint(keyAt(c.Grants.Key, i), c.Grants.Host.At(i), " ", n))
	}
	releases, held := map[string]int64{}, map[string]int64{}
	for i, n := range c.Releases.Units {
		releases[fmt.Sprint(keyAt(c.Releases.Key, i), c.Releases.Host.At(i), " ", c.Releases.Cause.At(i))] += n
	}
	for i, n := range c.Holdings.Units {
		held[fmt.Sprint(keyAt(c.Holdings.Key, i), c.Holdings.Host.At(i))] += n
	}
	reclaims := map[string]int64{}
	for i, n := range c.Reclaims.Units {
		reclaims[fmt.Sprint(keyAt(c.Reclaims.Key, i), c.Reclaims.Host.At(i), " ", c.Reclaims.Action.At(i))] += n
	}
	m["releases"], m["held"], m["reclaims"] = lines(releases), lines(held), lines(reclaims)
	for i, n := range c.Consumers.Held {
		m["consumers"] = append(m["consumers"], fmt.Sprint(c.Consumers.Plan.At(i), " ", c.Consumers.Consumer.At(i), " ",
			c.Consumers.Demand[i], n, c.Consumers.Short[i]))
	}
	for i := 0; i < len(c.Amounts.Held); i += dims {
		m["amounts"] = append(m["amounts"], fmt.Sprint(c.Amounts.Plan.At(i), " ", c.Amounts.Consumer.At(i), " ",
			c.Amounts.Held[i:i+dims], c.Amounts.StaticQuota[i:i+dims]))
	}
	for i, n := range c.Shortfalls.UnitsShort {
		m["shortfalls"] = append(m["shortfalls"], fmt.Sprintf("%v %d %s %q %q", keyAt(c.Shortfalls.Key, i), n,
			c.Shortfalls.Reason.At(i), c.Shortfalls.Dimension.At(i), c.Shortfalls.Blocker.At(i)))
	}
	return m
}

func keyAt(k decision.Key, i int) oracle.Key {
	return oracle.Key{Plan: k.Plan.At(i), Consumer: k.Consumer.At(i), Allocation: k.Allocation.At(i), Sub: k.Sub.At(i)}
}

func lines(m map[string]int64) []string {
	var list []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if m[k] != 0 {
			list = append(list, fmt.Sprint(k, " ", m[k]))
		}
	}
	return list
}

// shares holds usages, demands and quotas against the oracle's: those it computes exactly to 1e-9.
func (p *player) shares(t *rapid.T) {
	type row struct{ usage, demand, quota float64 }
	got := map[string]row{}
	for i, u := range p.out.Shares.Usage {
		s := &p.out.Shares
		got[fmt.Sprint(s.Plan.At(i), " ", s.Consumer.At(i), " ", s.Pool.At(i), s.Priority[i], s.Ratio[i], s.UnitsHeld[i], s.UnitsWanted[i])] =
			row{u, s.UsageDemand[i], s.UsageQuota[i]}
	}
	for _, s := range p.last.Shares {
		name := fmt.Sprint(s.Plan, " ", s.Path, " /", s.Priority, s.Ratio, s.UnitsHeld, s.UnitsWanted)
		g, ok := got[name]
		usage, _ := s.Usage.Float64()
		if !ok || math.Abs(g.usage-usage) > 1e-9 || math.Abs(g.demand-math.Ldexp(float64(s.Demand), -48)) > 1e-9 ||
			math.Abs(g.quota-math.Ldexp(float64(s.Quota), -48)) > 1e-9 {
			t.Fatalf("cycle %d: shares %s: engine %v (there: %v), oracle %+v", p.cycles, name, g, ok, s)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Fatalf("cycle %d: shares that the oracle does not have: %v", p.cycles, got)
	}
}

// ledger holds INV-9 and INV-1: what was granted and released adds up to what is held, that to what is wanted less
// what is short, and fits the hosts.
func (p *player) ledger(t *rapid.T) {
	for i, n := range p.out.Releases.Units {
		k := keyAt(p.out.Releases.Key, i)
		p.held[holding{k, p.out.Releases.Host.At(i)}] -= n
		if p.out.Releases.Cause.At(i) == "done" && !p.renewed[k.Allocation[:len(sources[0])]] {
			p.wanted[k] = max(0, p.wanted[k]-n)
		}
	}
	for i, n := range p.out.Grants.Units {
		host := p.out.Grants.Host.At(i)
		p.held[holding{keyAt(p.out.Grants.Key, i), host}] += n
		if p.hosts[host].State != "ok" {
			t.Fatalf("INV-1: a grant on %s, which is %q", host, p.hosts[host].State)
		}
	}
	held, stated := map[oracle.Key]int64{}, map[holding]int64{}
	for h, n := range p.held {
		held[h.Key] += n
	}
	for i, n := range p.out.Holdings.Units {
		stated[holding{keyAt(p.out.Holdings.Key, i), p.out.Holdings.Host.At(i)}] += n
	}
	maps.DeleteFunc(p.held, func(_ holding, n int64) bool { return n == 0 })
	if !maps.Equal(p.held, stated) {
		t.Fatalf("INV-9: held should be %v and is %v", p.held, stated)
	}
	short := map[oracle.Key]int64{}
	for i, n := range p.out.Shortfalls.UnitsShort {
		short[keyAt(p.out.Shortfalls.Key, i)] += n
	}
	for k, n := range p.wanted {
		if held[k]+short[k] != n || held[k] > n {
			t.Fatalf("INV-9: %v wants %d, holds %d, is short of %d", k, n, held[k], short[k])
		}
	}
	for name := range p.hosts {
		for d, n := range p.free(name) {
			if n < 0 {
				t.Fatalf("INV-1: %s holds %d of %s too many", name, -n, d)
			}
		}
	}
}

// free is what the ledger says is left of a host; nothing may be left of one that is not there.
func (p *player) free(name string) map[string]int64 {
	h, free := p.hosts[name], map[string]int64{}
	if i := slices.IndexFunc(p.plans, func(m mdPlan) bool { return m.name == p.planOf(name) }); i >= 0 {
		free = p.capacity(p.plans[i], h)
	}
	for k, n := range p.held {
		if k.host == name {
			for d, u := range p.rules[k.Key].Size {
				free[d] -= n * u
			}
		}
	}
	return free
}

// conserving holds INV-6: no unmet unit that its rules allow fits an ok host.
func (p *player) conserving(t *rapid.T) {
	for i := range p.out.Shortfalls.UnitsShort {
		k := keyAt(p.out.Shortfalls.Key, i)
		r := p.rules[k]
		if p.barred(k) {
			continue
		}
		for name, h := range p.hosts {
			if h.State != "ok" || p.planOf(name) != k.Plan || !meets(r.Requirement, h) ||
				r.MaxPerHost != plan.Unlimited && p.held[holding{k, name}] >= r.MaxPerHost {
				continue
			}
			fits, free := true, p.free(name)
			for d, n := range r.Size {
				fits = fits && n <= free[d]
			}
			if fits {
				t.Fatalf("INV-6: %v is short, and a unit of it fits %s", k, name)
			}
		}
	}
}

// fair holds INV-5 after the first cycle of a plain case (one unit size, all hosts empty before, nothing but the
// pool holds anyone back), from its definition: no sibling of equal priority could give up a unit for one of another
// that still wants and can use it, and be ahead of it even then; and no lower priority holds what a higher one could use.
func (p *player) fair(t *rapid.T) {
	for _, m := range p.plans {
		held, hungry := map[int]int64{}, map[int]bool{} // by member, with all below it
		for i, e := range m.members {
			path := p.consumers[e.consumer].path
			for h, n := range p.held {
				if h.Plan == m.name && (h.Consumer == path || strings.HasPrefix(h.Consumer, path+"/")) {
					held[i] += n
				}
			}
			for k := range p.rules {
				if k.Plan == m.name && (k.Consumer == path || strings.HasPrefix(k.Consumer, path+"/")) && !p.barred(k) &&
					p.placeable(k) && p.wanted[k] > p.heldBy(k) {
					hungry[i] = true
				}
			}
		}
		for a, x := range m.members {
			for b, y := range m.members {
				if a == b || held[a] == 0 || !hungry[b] || p.consumers[x.consumer].parent != p.consumers[y.consumer].parent {
					continue
				}
				if x.priority < y.priority {
					t.Fatalf("INV-5: in %s %s holds units while %s, of higher priority, could use them", m.name,
						p.consumers[x.consumer].path, p.consumers[y.consumer].path)
				}
				if x.priority == y.priority && (held[a]-1)*int64(y.ratio) > (held[b]+1)*int64(x.ratio) {
					t.Fatalf("INV-5: in %s %s has %d units, ratio %d, and %s %d, ratio %d", m.name, p.consumers[x.consumer].path,
						held[a], x.ratio, p.consumers[y.consumer].path, held[b], y.ratio)
				}
			}
		}
	}
}

// placeable tells whether a unit fits an empty ok host of its plan.
func (p *player) placeable(k oracle.Key) bool {
	m := p.plans[slices.IndexFunc(p.plans, func(m mdPlan) bool { return m.name == k.Plan })]
	for name, h := range p.hosts {
		if h.State != "ok" || p.planOf(name) != k.Plan {
			continue
		}
		fits, room := true, p.capacity(m, h)
		for d, n := range p.rules[k].Size {
			fits = fits && n <= room[d]
		}
		if fits {
			return true
		}
	}
	return false
}

func (p *player) heldBy(k oracle.Key) (n int64) {
	for h, units := range p.held {
		if h.Key == k {
			n += units
		}
	}
	return n
}

// meets tells whether a host meets a requirement, by what the generator meant.
func meets(text string, h oracle.Host) bool {
	for _, n := range needs {
		if strings.HasPrefix(text, n.text) {
			return n.met(h)
		}
	}
	return true
}

// barred tells whether the share ratio 0 or a share limit stands above a sub-allocation.
func (p *player) barred(k oracle.Key) bool {
	m := p.plans[slices.IndexFunc(p.plans, func(m mdPlan) bool { return m.name == k.Plan })]
	for _, e := range m.members {
		path := p.consumers[e.consumer].path
		if path != k.Consumer && !strings.HasPrefix(k.Consumer, path+"/") {
			continue
		}
		if e.ratio == 0 {
			return true
		}
		for d, most := range e.limit {
			sum := p.rules[k].Size[d]
			for h, n := range p.held {
				if h.Plan == k.Plan && (h.Consumer == path || strings.HasPrefix(h.Consumer, path+"/")) {
					sum += n * p.rules[h.Key].Size[d]
				}
			}
			if p.rules[k].Size[d] > 0 && sum > int64(most) {
				return true
			}
		}
	}
	return false
}

// everything is all tables of a cycle, the keyframes included.
func everything(c *decision.Cycle) []decision.Table {
	return append(c.Tables(), c.Holdings.Table(), c.Hosts.Table())
}

// stateOf is the digest of the state tables and keyframes.
func stateOf(c *decision.Cycle) string {
	return decision.Digest(slices.DeleteFunc(everything(c), func(t decision.Table) bool {
		return t.Name == "grants" || t.Name == "reclaims" || t.Name == "releases" || t.Name == "plans"
	}))
}

// dump is tables as text, a line a row.
func dump(tables []decision.Table) string {
	var b strings.Builder
	for _, t := range tables {
		for row := range t.Rows {
			b.WriteString(t.Name)
			for _, col := range t.Columns {
				switch {
				case col.Null != nil && col.Null[row]:
					b.WriteString(" -")
				case col.Type == decision.Float:
					fmt.Fprintf(&b, " %s=%x", col.Name, col.Float[row])
				case col.Type == decision.Text:
					fmt.Fprintf(&b, " %s=%q", col.Name, (&decision.Coded{Code: col.Code, Dict: col.Dict}).At(row))
				default:
					fmt.Fprintf(&b, " %s=%d", col.Name, col.Int[row])
				}
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// difference lists the lines that only one of two texts has; without any, both in their order.
func difference(a, b string) string {
	in, left := map[string]int{}, []string{}
	for s := range strings.SplitSeq(b, "\n") {
		in[s]++
	}
	for s := range strings.SplitSeq(a, "\n") {
		if in[s]--; in[s] < 0 {
			left = append(left, "got  "+s)
		}
	}
	for _, s := range slices.Sorted(maps.Keys(in)) {
		for range max(0, in[s]) {
			left = append(left, "want "+s)
		}
	}
	return cmp.Or(strings.Join(left, "\n"), "other order, got\n"+a+"\nwant\n"+b)
}
