package cycle_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/grant"
	"github.com/stintd/stint/core/md"
	"github.com/stintd/stint/core/oracle"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/pool"
	"github.com/stintd/stint/core/reason"
	"github.com/stintd/stint/core/reclaim"
	"github.com/stintd/stint/core/view"
)

// TestWhole plays random cases and holds whole cycles of MD plans by the new rooms, but for who owns what, against the
// oracle: what is granted, taken back, held and short.
func TestWhole(t *testing.T) {
	n := casesMin / 20
	if testing.Short() {
		n /= 5
	}
	setRapid(t, n, seedMin)
	all := map[string]int{}
	for _, k := range kinds {
		if k.name == "slot" || k.name == "hybrid" { // they have few MD plans, or none
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			g := whole{seen: map[string]int{}}
			rapid.Check(t, func(t *rapid.T) { g.play(t, k) })
			t.Logf("%v", g.seen)
			for what, times := range g.seen {
				all[what] += times
			}
		})
	}
	for _, what := range []string{
		"given what was promised", "own beside sets", "promised for preference", "lapsed for an own parcel", "granted for a lead",
	} {
		if all[what] == 0 && !testing.Short() {
			t.Errorf("never came up: %s", what)
		}
	}
}

// whole plays cycles on a state of its own, which gets the same input, and compares with the oracle when one is over.
type whole struct {
	seen  map[string]int
	state *cluster.State
	plans []*planCycle
	short []string // shortfalls, as lines
}

// play plays a case.
func (g *whole) play(t *rapid.T, k kind) {
	p := newPlayer(t, k)
	g.state, g.plans = p.state(t), nil
	p.beside = g.state
	p.watch = func(t *rapid.T) { g.cycles(p.nowUS) }
	p.after = func(t *rapid.T) {
		g.compare(t, p)
		g.state.Finish(g.state.Cycle+1, p.nowUS)
	}
	for i := range p.upTo(t, "steps", 1+2*p.eager(), 6) {
		p.step(t, i)
	}
	p.end(t)
}

// cycles carries the state through a cycle of all its plans.
func (g *whole) cycles(nowUS int64) {
	s := g.state
	s.Settle(nowUS)
	g.short = nil
	for len(g.plans) < len(s.Plans) {
		eager := len(s.Policy.Dimensions)%2 > 0
		one := &planCycle{whole: g, granter: grant.Granter{Eager: eager}, reasons: reason.Reasons{Eager: eager}}
		g.plans = append(g.plans, one)
	}
	for i := range s.Plans {
		one := g.plans[i]
		one.s, one.p, one.nowUS, one.granted, one.joined = s, &s.Plans[i], nowUS, false, nil
		one.own()
		one.play()
		one.explain()
	}
}

// planCycle is a cycle of one MD plan.
type planCycle struct {
	*whole
	s       *cluster.State
	p       *cluster.Plan
	nowUS   int64
	views   view.Views
	stage   reclaim.Stage
	of      *reclaim.Cycle
	granter grant.Granter
	joined  []pool.Join
	granted bool
	lap     func(string)
	stood   *pool.Limits // as consumers held once everything was granted
	reasons reason.Reasons
}

// own is stage own.
func (c *planCycle) own() {
	m := new(md.Planner)
	c.p.Rebuilt, c.p.Dirty = true, true
	m.Attach(c.s, c.p, c.nowUS)
	m.Own()
}

// play is the stages behind it.
func (c *planCycle) play() {
	if c.lap == nil {
		c.lap = func(string) {}
	}
	c.of = reclaim.NewCycle(c.s, c.p)
	var tried *planCycle
	c.decide(func() { c.stage.Restore() })
	if c.p.Coming != cluster.NoID {
		tried = c.foresee()
	}
	c.decide(func() { c.stage.Review() })
	c.lap("restore+review")
	c.promised()
	c.lap("promised")
	if tried != nil {
		given, taken := tried.outcome()
		e := c.grantEnv()
		var out grant.Decisions
		grant.Follow(e, &given, &out)
		c.seen["granted for a lead"] += c.book(e, &out)
		c.views.Follow(c.s, c.p)
		c.stood, c.granted = c.grantEnv().Limits, true
		c.decide(func() {
			c.stage.Rules()
			c.stage.MakeWay(taken)
		})
		return
	}
	c.owners()
	c.lap("owners")
	for _, n := range c.grantEnv().List() {
		e := c.grantEnv()
		var out grant.Decisions
		c.granter.Pool(e, n, &out)
		c.book(e, &out)
	}
	c.stood, c.granted = c.grantEnv().Limits, true
	c.lap("pools")
	c.decide(func() {
		c.stage.Rules()
		c.stage.Recall()
		c.stage.Fair()
	})
	c.lap("reclaim")
}

// decide lets core/reclaim decide, and books it.
func (c *planCycle) decide(do func()) {
	if c.granted {
		c.views.FollowHeld(c.s, c.p)
	} else {
		c.views.Follow(c.s, c.p)
	}
	var out reclaim.Decisions
	c.stage.Begin(c.reclaimEnv(), &out)
	do()
	c.bookReclaims(&out)
}

func (c *planCycle) bookReclaims(out *reclaim.Decisions) {
	out.Book(c.s, c.p, c.nowUS)
	c.joined = c.joined[:0]
	for _, j := range c.of.Joined {
		c.joined = append(c.joined, pool.Join{Sub: j.Sub, Parcel: j.Parcel})
	}
}

func (c *planCycle) reclaimEnv() *reclaim.Env {
	env := pool.New(c.s, c.p, &c.views)
	return &reclaim.Env{Env: env, Cycle: c.of, NowUS: c.nowUS, Selected: func(need cluster.NeedID) []uint64 {
		set, _ := c.views.Needs.Of(c.s, c.p, need)
		return set
	}}
}

// grantEnv is what grants go by, as things are now.
func (c *planCycle) grantEnv() *grant.Env {
	c.views.Follow(c.s, c.p)
	e := &grant.Env{Env: pool.New(c.s, c.p, &c.views), Promises: new(pool.Promises), Undone: c.of.Undone}
	e.Promises.Sum(e.Env)
	for _, j := range c.joined {
		e.Promises.Add(j)
	}
	e.Limits = pool.NewLimits(&e.Env, e.Promises)
	return e
}

// book books what was granted, and gives the units.
func (c *planCycle) book(e *grant.Env, out *grant.Decisions) int {
	runs, parcels := out.Runs(e, c.s.Cycle+1, nil)
	c.s.HoldAll(nil, runs, parcels, nil)
	return len(parcels)
}

// promised gives what sets promise.
func (c *planCycle) promised() {
	e := c.grantEnv()
	var out grant.Decisions
	var given grant.Given
	grant.Promised(e, &out, &given)
	c.seen["given what was promised"] += c.book(e, &out)
	given.Book(c.s)
}

// owners gives leaves their own parcels.
func (c *planCycle) owners() {
	e := c.grantEnv()
	var out grant.Decisions
	var decided reclaim.Decisions
	sets := len(e.Promises.Set) > 0 || c.p.MD.ReclaimForPref
	if sets {
		c.stage.Begin(c.reclaimEnv(), &decided)
	}
	for leaf := range plan.Node(c.s.Policy.Len()) {
		from, to := c.views.Owned.Own(leaf)
		switch {
		case !c.s.Policy.Leaf(leaf) || !c.p.Terms.Member[leaf] || from == to:
		case sets:
			before := out.Sub.Len()
			c.granter.Own(e, leaf, &c.stage, &out)
			c.seen["own beside sets"] += out.Sub.Len() - before
		default:
			c.granter.Pool(e, leaf, &out)
		}
	}
	c.book(e, &out)
	if sets {
		for i := range decided.Len() {
			switch r := decided.At(i); {
			case r.Kind == reclaim.Opened || r.Kind == reclaim.Joined:
				c.seen["promised for preference"]++
			case r.Kind == reclaim.Promised && int(r.Set) < len(c.s.Set.Units) && r.Units < c.s.Set.Units[r.Set]:
				c.seen["lapsed for an own parcel"]++
			}
		}
		c.bookReclaims(&decided)
	}
}

// foresee plays the cycle on a copy as if the coming window were open.
func (c *planCycle) foresee() *planCycle {
	s := c.s.Clone()
	p := &s.Plans[c.p.Index]
	p.Window, p.Coming = p.Coming, cluster.NoID
	p.RankOrder = cluster.RankOrder(&s.Policy.Tree, p.MD.Windows[p.Window].Rank)
	p.Reassign, p.Rebuilt = true, true
	tried := &planCycle{whole: c.whole, s: s, p: p, nowUS: c.nowUS}
	tried.own()
	tried.play()
	copy(c.s.Sub.Turns, s.Sub.Turns)
	c.p.Turned = c.p.Turned || p.Turned
	return tried
}

// outcome is what a trial granted and keeps, and what it has under reclaim.
func (c *planCycle) outcome() (given grant.Prospects, taken []reclaim.Taken) {
	h, p := &c.s.Holding, &c.p.Parcels
	promised := map[cluster.HostID]bool{}
	for id, number := range c.s.Set.Number {
		if number > 0 && c.s.Set.Plan[id] == c.p.Index && c.s.Set.Taker[id] != cluster.NoID && c.s.Set.Units[id] > 0 {
			promised[c.s.Set.Target[id]] = true
		}
	}
	for _, j := range c.joined {
		promised[p.Host[j.Parcel]] = true
	}
	for k, host := range p.Host {
		for q := p.First[k]; q != cluster.NoID; q = h.NextOnParcel[q] {
			if h.Set[q] == cluster.NoID {
				continue
			}
			at := slices.IndexFunc(taken, func(o reclaim.Taken) bool { return o.Sub == h.Sub[q] && o.Host == host })
			if at < 0 {
				at = len(taken)
				taken = append(taken, reclaim.Taken{Sub: h.Sub[q], Host: host})
			}
			taken[at].Units += h.Units[q]
			taken[at].Due = max(taken[at].Due, h.Due[q], c.nowUS)
		}
	}
	e := pool.New(c.s, c.p, &c.views)
	for leaf := range plan.Node(c.s.Policy.Len()) {
		e.EachSub(leaf, func(sub cluster.SubID) {
			units := map[cluster.HostID]int64{}
			var hosts []cluster.HostID
			for q := c.s.Sub.First[sub]; q != cluster.NoID; q = h.NextOfSub[q] {
				host := p.Host[h.Parcel[q]]
				if h.Set[q] == cluster.NoID && h.Granted[q] > c.s.Cycle && (h.Pool[q] == cluster.NoID || !promised[host]) {
					if units[host] == 0 {
						hosts = append(hosts, host)
					}
					units[host] += h.Units[q]
				}
			}
			slices.SortFunc(hosts, func(a, b cluster.HostID) int { return cmp.Compare(c.s.Host.Parcel[a], c.s.Host.Parcel[b]) })
			for _, host := range hosts {
				given.Sub.Add(sub)
				given.Host.Add(host)
				given.Units.Add(units[host])
			}
		})
	}
	return given, taken
}

// explain tells who is short.
func (c *planCycle) explain() {
	c.views.FollowHeld(c.s, c.p)
	e := &reason.Env{
		Env: pool.New(c.s, c.p, &c.views), Promises: new(pool.Promises), Figures: new(pool.Book),
		Denied: c.of.Denied, Granted: c.stood,
	}
	e.Promises.Sum(e.Env)
	for _, j := range c.joined {
		e.Promises.Add(j)
	}
	e.Limits = pool.NewLimits(&e.Env, e.Promises)
	e.Figures.Sum(&e.Env)
	out := reason.Shortfalls{Details: new(cluster.Names)}
	c.reasons.Explain(e, &out)
	c.short = append(c.short, shortLines(e, &out)...)
}

// compare compares with what the oracle did.
func (g *whole) compare(t *rapid.T, p *player) {
	got, s := map[string]counter{"grants": {}, "reclaims": {}, "held": {}}, g.state
	for q, sub := range s.Holding.Sub {
		if sub == cluster.NoID {
			continue
		}
		row := rowOf(s, &s.Plans[s.Sub.Plan[sub]], cluster.HoldingID(q))
		if got["held"][row] += s.Holding.Units[q] << 32; s.Holding.Set[q] != cluster.NoID {
			got["held"][row] += s.Holding.Units[q]
		}
		if s.Holding.Granted[q] > s.Cycle {
			got["grants"][row] += s.Holding.Units[q]
		}
	}
	for _, v := range s.Reclaims {
		got["reclaims"][reclaimRow(s, &v)] += v.Units
	}
	want := map[string]counter{"grants": {}, "reclaims": {}, "held": {}}
	for _, u := range p.last.Grants {
		want["grants"][fmt.Sprint(u.Key, u.Host, label(u.Origin, u.Lender, u.Pool))] += u.Units
	}
	for _, u := range p.last.Held {
		want["held"][fmt.Sprint(u.Key, u.Host, label(u.Origin, u.Lender, u.Pool))] += u.Units<<32 + u.Leaving
	}
	for _, u := range p.last.Reclaims {
		u.For.Plan = ""
		want["reclaims"][fmt.Sprint(u.Key, u.Host, " ", u.Action, " ", u.Reason, u.For, u.DeadlineUS)] += u.Units
	}
	for _, what := range []string{"grants", "reclaims", "held"} {
		if a, b := lines(got[what]), lines(want[what]); !slices.Equal(a, b) {
			t.Logf("%s", p.scenario())
			t.Fatalf("cycle %d: %s:\n%s", p.cycles, what, difference(strings.Join(a, "\n"), strings.Join(b, "\n")))
		}
		g.seen[what] += len(want[what])
	}
	var short []string
	for i, row := range p.last.Shortfalls {
		if !strings.Contains(decision.Reasons[p.out.Shortfalls.Reason.Code[i]], "not_in_plan") {
			short = append(short, fmt.Sprintf("%v %d %s %q %q %d %s", row.Key, row.Units, row.Reason, row.Dimension, row.Blocker,
				row.UntilUS, p.out.Shortfalls.Detail.At(i)))
		}
	}
	if !slices.Equal(g.short, short) {
		t.Logf("%s", p.scenario())
		t.Fatalf("cycle %d: short:\n%s", p.cycles, difference(strings.Join(g.short, "\n"), strings.Join(short, "\n")))
	}
	g.seen["short"] += len(short)
}

// reclaimRow is a step of a reclaim as a line.
func reclaimRow(s *cluster.State, v *cluster.Reclaimed) string {
	name := func(sub cluster.SubID) oracle.Key {
		key := keyOf(s, &s.Plans[s.Sub.Plan[sub]], sub)
		return key
	}
	taker := oracle.Key{}
	if v.Taker != cluster.NoID {
		taker = name(v.Taker)
		taker.Plan = ""
	}
	return fmt.Sprint(name(v.Sub), s.Host.Names.String(int32(v.Host)), " ", decision.Actions[v.Action], " ",
		decision.ReclaimReasons[v.Reason], taker, v.Deadline-startUS)
}
