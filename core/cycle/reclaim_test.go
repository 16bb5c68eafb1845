package cycle_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/md"
	"github.com/stintd/stint/core/oracle"
	"github.com/stintd/stint/core/pool"
	"github.com/stintd/stint/core/reclaim"
	"github.com/stintd/stint/core/view"
)

// TestReclaims plays random cases and holds what core/reclaim takes back and cancels in each cycle against what the
// oracle does, with grants in between that core/md makes. Plans that reclaim for preference while granting are passed
// over.
func TestReclaims(t *testing.T) {
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
			g := taken{seen: map[string]int{}}
			rapid.Check(t, func(t *rapid.T) { g.play(t, k) })
			t.Logf("%d plans' cycles compared, %d passed over; %v", g.compared, g.passed, g.seen)
			if !testing.Short() && g.compared < n {
				t.Error("too little was compared")
			}
			for what, times := range g.seen {
				all[what] += times
			}
		})
	}
	for _, what := range []string{
		"recall", "fair_share", "over_limit", "reserve", "drain", "ownership_change", "window_switch", "cancelled", "lapsed",
		"several victims", "handed over", "not granted after all", "joined", "turned",
	} {
		if all[what] == 0 && !testing.Short() {
			t.Errorf("never came up: %s", what)
		}
	}
}

// taken takes back beside the engine, and compares with the oracle when the cycle is over.
type taken struct {
	compared, passed int
	seen             map[string]int

	plans          []string
	reclaims, held counter
	state          *cluster.State // after what was expected
	steps          int            // that the case had then
}

// play plays a case.
func (g *taken) play(t *rapid.T, k kind) {
	p := newPlayer(t, k)
	g.plans = nil
	p.watch = func(t *rapid.T) {
		g.compare(t, p)
		g.steps = len(p.steps)
		g.take(t, p.engine.Clone(), p.nowUS)
	}
	for i := range p.upTo(t, "steps", 1+2*p.eager(), 6) {
		p.step(t, i)
	}
	p.end(t)
	g.compare(t, p)
}

// compare compares what was expected with what the oracle did, and the turns of fair reclaim with the engine's.
func (g *taken) compare(t *rapid.T, p *player) {
	if len(g.plans) == 0 {
		return
	}
	reclaims, held := counter{}, counter{}
	for _, u := range p.last.Reclaims {
		if slices.Contains(g.plans, u.Plan) {
			u.For.Plan = ""
			reclaims[fmt.Sprint(u.Key, u.Host, " ", u.Action, " ", u.Reason, u.For, u.DeadlineUS)] += u.Units
		}
	}
	for _, u := range p.last.Held {
		if slices.Contains(g.plans, u.Plan) {
			held[fmt.Sprint(u.Key, u.Host, label(u.Origin, u.Lender, u.Pool))] += u.Units<<32 + u.Leaving
		}
	}
	for what, lists := range map[string][2]counter{"reclaims": {g.reclaims, reclaims}, "held": {g.held, held}} {
		if got, want := lines(lists[0]), lines(lists[1]); !slices.Equal(got, want) {
			t.Logf("%s", p.scenario())
			diff := difference(strings.Join(got, "\n"), strings.Join(want, "\n"))
			t.Fatalf("cycle %d: %s of %v:\n%s", p.cycles, what, g.plans, diff)
		}
	}
	g.compared += len(g.plans)
	s := p.engine
	if len(p.steps) > g.steps {
		return // what came since may let all take their turns anew
	}
	for sub, seq := range g.state.Sub.Seq {
		if s.Sub.Alloc[sub] == cluster.NoID || s.Sub.Seq[sub] != seq || s.Sub.Plan[sub] < 0 {
			continue // it is another by now
		}
		got, want := g.state.Sub.Turns[sub], s.Sub.Turns[sub]
		if slices.Contains(g.plans, s.Plans[s.Sub.Plan[sub]].Name) && got != want {
			t.Logf("%s", p.scenario())
			t.Fatalf("cycle %d: sub-allocation %d has %d turns, the engine %d", p.cycles, sub, got, want)
		}
	}
}

// take carries a copy of the state through a cycle of its MD plans.
func (g *taken) take(t *rapid.T, s *cluster.State, nowUS int64) {
	s.Settle(nowUS)
	g.plans, g.reclaims, g.held, g.state = nil, counter{}, counter{}, s
	for i := range s.Plans {
		p := &s.Plans[i]
		if p.MD == nil {
			continue
		}
		if g.cycle(s, p, nowUS) {
			g.plans = append(g.plans, p.Name)
		} else {
			g.passed++
		}
	}
	if err := s.Verify(); err != nil {
		t.Fatalf("after a cycle: %v", err)
	}
	g.list(s)
}

// cycle is a plan's cycle: core/md owns and grants, core/reclaim does the rest. It is false, and nothing but the
// owning is done, where the plan reclaims for preference while granting.
func (g *taken) cycle(s *cluster.State, p *cluster.Plan, nowUS int64) bool {
	m := new(md.Planner)
	p.Rebuilt, p.Dirty = true, true
	m.Attach(s, p, nowUS)
	if m.Own(); p.MD.ReclaimForPref && p.Parcels.Owned {
		return false
	}
	var views view.Views
	var stage reclaim.Stage
	of := reclaim.NewCycle(s, p)
	nears := p.Coming != cluster.NoID
	g.stage(s, p, &views, of, nowUS, func(out *reclaim.Decisions, e *reclaim.Env) {
		stage.Begin(e, out)
		if stage.Restore(); !nears { // else what the coming window would do is tried before
			stage.Review()
		}
	})
	m.Reviewed = !nears
	m.Entitle()
	var coming []reclaim.Taken
	if nears {
		coming = foreseen(s, p, nowUS)
	}
	m.Grant(func() {})
	g.stage(s, p, &views, of, nowUS, func(out *reclaim.Decisions, e *reclaim.Env) {
		stage.Few = int(s.Cycle % 3) // all ways to look for victims are tried
		stage.Begin(e, out)
		if stage.Rules(); nears {
			stage.MakeWay(coming)
			return
		}
		stage.Recall()
		stage.Fair()
	})
	return true
}

// stage lets core/reclaim decide, and books it.
func (g *taken) stage(
	s *cluster.State, p *cluster.Plan, v *view.Views, of *reclaim.Cycle, nowUS int64,
	do func(out *reclaim.Decisions, e *reclaim.Env),
) {
	v.Follow(s, p)
	var out reclaim.Decisions
	do(&out, &reclaim.Env{Env: pool.New(s, p, v), Cycle: of, NowUS: nowUS, Selected: func(need cluster.NeedID) []uint64 {
		set, _ := v.Needs.Of(s, p, need)
		return set
	}})
	g.count(s, &out)
	out.Book(s, p, nowUS)
}

// count counts what decisions say.
func (g *taken) count(s *cluster.State, out *reclaim.Decisions) {
	reason, units := map[cluster.SetID]int32{}, map[cluster.SetID]int64{}
	for i := range out.Len() {
		switch r := out.At(i); r.Kind {
		case reclaim.Opened:
			reason[r.Set] = r.Reason
			g.seen[decision.ReclaimReasons[r.Reason]]++
		case reclaim.Promised:
			if before, ok := units[r.Set]; ok && before > 1 && r.Units > 0 {
				g.seen["several victims"]++
			}
			if units[r.Set] = 0; int(r.Set) < len(s.Set.Number) && r.Units < s.Set.Units[r.Set] {
				g.seen["lapsed"]++
			}
		case reclaim.Reclaimed:
			if units[r.Set] += r.Units; s.Sub.Orphan[r.Sub] {
				g.seen["an orphan's"]++
			}
		case reclaim.HandedOver:
			g.seen["handed over"]++
		case reclaim.Cancelled:
			g.seen["cancelled"]++
		case reclaim.Undone:
			g.seen["not granted after all"]++
		case reclaim.Turned:
			g.seen["turned"]++
		case reclaim.Joined:
			g.seen["joined"]++
		}
	}
}

// foreseen is what a plan's coming window would take back, tried on a copy.
func foreseen(s *cluster.State, of *cluster.Plan, nowUS int64) (list []reclaim.Taken) {
	s = s.Clone()
	p := &s.Plans[of.Index]
	p.Window, p.Coming = p.Coming, cluster.NoID
	p.RankOrder = cluster.RankOrder(&s.Policy.Tree, p.MD.Windows[p.Window].Rank)
	p.Reassign, p.Rebuilt = true, true
	var trial md.Planner
	trial.Attach(s, p, nowUS)
	trial.Own()
	trial.Entitle()
	trial.Grant(func() {})
	trial.Reclaim(func() {})
	h := &s.Holding
	for k, host := range p.Parcels.Host {
		for q := p.Parcels.First[k]; q != cluster.NoID; q = h.NextOnParcel[q] {
			if h.Set[q] == cluster.NoID {
				continue
			}
			at := slices.IndexFunc(list, func(o reclaim.Taken) bool { return o.Sub == h.Sub[q] && o.Host == host })
			if at < 0 {
				at = len(list)
				list = append(list, reclaim.Taken{Sub: h.Sub[q], Host: host})
			}
			list[at].Units += h.Units[q]
			list[at].Due = max(list[at].Due, h.Due[q], nowUS)
		}
	}
	return list
}

// list lists what a cycle put under reclaim, cancelled, and left held.
func (g *taken) list(s *cluster.State) {
	name := func(sub cluster.SubID) oracle.Key {
		return oracle.Key{
			Plan: s.Plans[s.Sub.Plan[sub]].Name, Consumer: s.Consumer.String(int32(s.Sub.Consumer[sub])),
			Allocation: s.Label.String(s.Alloc.Name[s.Sub.Alloc[sub]]), Sub: s.Label.String(s.Sub.Name[sub]),
		}
	}
	for _, r := range s.Reclaims {
		key, taker := name(r.Sub), oracle.Key{}
		if !slices.Contains(g.plans, key.Plan) {
			continue
		}
		if r.Taker != cluster.NoID {
			taker = name(r.Taker)
			taker.Plan = ""
		}
		host := s.Host.Names.String(int32(r.Host))
		action, reason := decision.Actions[r.Action], decision.ReclaimReasons[r.Reason]
		g.reclaims[fmt.Sprint(key, host, " ", action, " ", reason, taker, r.Deadline-startUS)] += r.Units
	}
	h := &s.Holding
	for q, sub := range h.Sub {
		if sub == cluster.NoID || s.Sub.Plan[sub] < 0 || !slices.Contains(g.plans, s.Plans[s.Sub.Plan[sub]].Name) {
			continue
		}
		units := h.Units[q] << 32
		if h.Set[q] != cluster.NoID {
			units += h.Units[q]
		}
		g.held[rowOf(s, &s.Plans[s.Sub.Plan[sub]], cluster.HoldingID(q))] += units
	}
}
