package cycle_test

import (
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
	"github.com/stintd/stint/core/view"
)

// granted hands out beside the engine, and compares what core/grant would hand out in each cycle with what the oracle does
// when the cycle is over. Cycles are passed over in which more than that happens before reclaim, or in which reclaim takes
// grants back: where sets are under way, where a window is near, and where preferences make an owner recall.
type granted struct {
	compared, passed, rows int

	lines counter // what the last cycle was expected to grant, of the plans in plans
	plans []string
}

func (g *granted) begin(*player) { g.plans = nil }

func (g *granted) look(t *rapid.T, p *player) {
	g.compare(t, p)
	g.grant(t, p.engine.Clone(), p.nowUS)
}

func (g *granted) end(t *rapid.T, p *player) { g.compare(t, p) }

func (g *granted) report(t *testing.T, cases int) {
	t.Logf("core/grant: %d cycles compared, %d passed over; %d rows of grants", g.compared, g.passed, g.rows)
	if !testing.Short() && (g.compared < cases || g.rows < 2*cases) {
		t.Error("core/grant: too little was compared")
	}
}

// compare compares what was expected with what the oracle did.
func (g *granted) compare(t *rapid.T, p *player) {
	if len(g.plans) == 0 || p.last.Revoked > 0 {
		g.passed++
		return
	}
	want := counter{}
	for _, u := range p.last.Grants {
		if slices.Contains(g.plans, u.Plan) {
			want[fmt.Sprint(u.Key, u.Host, label(u.Origin, u.Lender, u.Pool))] += u.Units
			g.rows++
		}
	}
	if got := lines(g.lines); !slices.Equal(got, lines(want)) {
		t.Logf("%s", p.scenario())
		t.Fatalf("cycle %d: grants of %v:\n%s", p.cycles, g.plans, difference(strings.Join(got, "\n"), strings.Join(lines(want), "\n")))
	}
	g.compared++
}

// grant carries a copy of the state to its grant stage, and hands out.
func (g *granted) grant(t *rapid.T, s *cluster.State, nowUS int64) {
	s.Settle(nowUS)
	g.plans, g.lines = nil, counter{}
	var planners []*md.Planner
	for i := range s.Plans {
		p := &s.Plans[i]
		if p.MD == nil {
			continue
		}
		m := new(md.Planner)
		p.Rebuilt, p.Dirty = true, true
		m.Attach(s, p, nowUS)
		m.Own()
		planners = append(planners, m)
	}
	for i, m := range planners {
		if underWay(s, int32(i)) { // else it changes nothing of the state, and goes on reading it beside what comes then
			m.Entitle()
		}
	}
	for i := range planners { // MD plans come first
		if p := &s.Plans[i]; plainly(s, p) {
			g.plans = append(g.plans, p.Name)
			g.hand(t, s, p)
		}
	}
}

// underWay tells whether any reclaim of a plan is.
func underWay(s *cluster.State, p int32) bool {
	for id, number := range s.Set.Number {
		if number > 0 && s.Set.Plan[id] == p {
			return true
		}
	}
	return false
}

// plainly tells whether nothing but grants by MD-7 and MD-16 happens in a plan before reclaim.
func plainly(s *cluster.State, p *cluster.Plan) bool {
	for id, number := range s.Set.Number {
		if number > 0 && s.Set.Plan[id] == p.Index && s.Set.Taker[id] != cluster.NoID {
			return false
		}
	}
	return p.Coming == cluster.NoID && !(p.MD.ReclaimForPref && p.Parcels.Owned)
}

// hand hands out what is free in a plan: leaves' own parcels, then pools from the deepest up, each booked before the
// next.
func (g *granted) hand(t *rapid.T, s *cluster.State, p *cluster.Plan) {
	var views view.Views
	var granter grant.Granter
	views.Follow(s, p)
	e := grant.Env{Env: pool.New(s, p, &views), Promises: new(pool.Promises)}
	e.Promises.Sum(e.Env)
	e.Limits = pool.NewLimits(&e.Env, e.Promises)
	turn := func(n plan.Node) {
		var out grant.Decisions
		granter.Pool(&e, n, &out)
		runs, parcels := out.Runs(&e, s.Cycle+1, nil)
		for _, q := range s.HoldAll(nil, runs, parcels, nil) {
			g.lines[rowOf(s, p, q)] += s.Holding.Units[q]
		}
		views.Follow(s, p)
	}
	for leaf := range plan.Node(s.Policy.Len()) {
		if from, to := views.Owned.Own(leaf); s.Policy.Leaf(leaf) && p.Terms.Member[leaf] && from < to {
			turn(leaf)
		}
	}
	for _, n := range e.List() {
		turn(n)
	}
	if err := s.Verify(); err != nil {
		t.Fatalf("after grants: %v", err)
	}
}

// rowOf is a holding as a line of the table grants.
func rowOf(s *cluster.State, p *cluster.Plan, q cluster.HoldingID) string {
	name := func(c cluster.ConsumerID) string {
		if c == cluster.NoID {
			return ""
		}
		return s.Consumer.String(int32(c))
	}
	h, sub := &s.Holding, s.Holding.Sub[q]
	row := oracle.Key{
		Plan: p.Name, Consumer: name(s.Sub.Consumer[sub]),
		Allocation: s.Label.String(s.Alloc.Name[s.Sub.Alloc[sub]]), Sub: s.Label.String(s.Sub.Name[sub]),
	}
	at := fmt.Sprint(row, s.Host.Names.String(int32(p.Parcels.Host[h.Parcel[q]])))
	return at + label(decision.Origins[h.Origin[q]], name(h.Lender[q]), name(h.Pool[q]))
}
