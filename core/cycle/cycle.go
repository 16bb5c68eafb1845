// Package cycle is the pure function at the centre of stint: the seven stages of
// SPEC chapter 2 in order, from a state to decisions and the next state. The package knows
// no clock and no randomness: the same state gives the same decisions, byte for byte.
package cycle

import (
	"cmp"
	"slices"
	"strings"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/pool"
	"github.com/stintd/stint/core/share"
	"github.com/stintd/stint/core/slot"
)

// planner has the stages of one plan: mdPlan those of an MD plan, slot.Planner those of a slot plan.
type planner interface {
	Attach(s *cluster.State, p *cluster.Plan, nowUS int64)
	Own()
	Entitle()
	Grant()
	Reclaim()
	Unite()
	Explain()
	EmitOwnership(o *decision.Ownership)
	EmitGrants(g *decision.Grants) (units int64)
	EmitShortfalls(t *decision.Shortfalls, details *cluster.Names) (units int64)
	EmitStates(c *decision.Cycle)
	EmitKeyframe(c *decision.Cycle)
}

// Runner runs the cycles of one state and keeps views of the state between cycles. A new
// Runner decides the same as an old Runner, and takes longer. The zero value is ready. A
// Runner is not safe for concurrent use.
type Runner struct {
	// Clock, when set, gives microseconds for the stage times of the summary. No decision
	// depends on the clock.
	Clock func() int64

	// Eager has MD plans keep lots and rooms of plans of any size, for tests of small plans. No decision depends on
	// Eager.
	Eager bool

	out      decision.Cycle
	dicts    decision.Dicts
	details  *cluster.Names
	devices  *cluster.Names // texts of the column device
	planner  []planner
	returned []returned          // scratch
	pick     func(ready int) int // for tests: the next of so many tasks that are ready; nil: tasks run side by side
	promised int64               // units that takers waited for as the cycle began
	stage    int
	lapUS    int64
}

// Run is one cycle with nothing known from earlier ones.
func Run(s *cluster.State, nowUS int64, out *decision.Cycle) {
	new(Runner).Run(s, nowUS, out)
}

// Run decides one cycle at nowUS (microseconds since 1970 UTC; an earlier now than
// the last cycle's counts as that, CYC-9) and moves the state on. What out holds
// is borrowed until the next Run.
func (r *Runner) Run(s *cluster.State, nowUS int64, out *decision.Cycle) {
	nowUS = max(nowUS, s.NowUS)
	s.Both = both
	r.begin(s)
	s.Settle(nowUS)
	pool.Remember(s, nowUS)
	r.lap()
	dirty := r.attach(s, nowUS)
	busy := r.busy(s)
	for _, m := range busy {
		m.Own()
	}
	r.lap()
	for _, m := range busy {
		m.Entitle()
	}
	r.lap()
	for _, m := range busy {
		m.Grant()
	}
	r.lap()
	for _, m := range busy {
		m.Reclaim()
	}
	r.lap()
	r.explain(s)
	r.lap()
	r.emit(s, nowUS, busy, dirty)
	s.Finish(s.Cycle+1, nowUS)
	r.lap()
	*out = r.out
}

// Try is Run of a state that has a Stop. It reports false when the cycle was given up before it was done: then
// the state and what out holds are good for nothing.
func (r *Runner) Try(s *cluster.State, nowUS int64, out *decision.Cycle) (done bool) {
	defer func() {
		switch v := recover(); v.(type) {
		case nil:
		case cluster.Stopped:
			done = false
		default:
			panic(v)
		}
	}()
	s.Yield()
	r.Run(s, nowUS, out)
	return true
}

// NextDue is when a budget is used up or renewed by what is held, or about when a ratio counts otherwise, after the
// last cycle of a state (BUD-2, D-165), or before where that is earlier. Other cycles until then decide the same,
// unless something is put in.
func NextDue(s *cluster.State, before int64) int64 { return pool.NextLowered(s, s.NextBudget(before)) }

// Touched is how many rows the last pass over a plan's ownership looked at, 0 where nothing is owned. Plans are
// numbered as in State.Plans.
func (r *Runner) Touched(plan int) int64 {
	if m, ok := r.planner[plan].(*mdPlan); ok {
		return m.passes.Touched()
	}
	return 0
}

// begin empties the tables of events and the times.
func (r *Runner) begin(s *cluster.State) {
	r.stage, r.promised = 0, s.Promised()
	r.out.Summary.StageUS = [len(decision.Stages)]int64{}
	if r.Clock != nil {
		r.lapUS = r.Clock()
	}
	plans := make(decision.Words, len(s.Plans))
	for i := range plans {
		plans[i] = s.Plans[i].Name
	}
	if r.details == nil {
		r.details, r.devices = &cluster.Names{}, &cluster.Names{}
	}
	*r.devices = cluster.Names{}
	r.dicts = decision.Dicts{
		Plan: plans, Source: &s.Source, Consumer: &s.Consumer, Label: &s.Label, Host: &s.Host.Names,
		Dimension: dimensions(s.Policy), Detail: r.details, Device: r.devices,
	}
	r.out.ResetEvents(&r.dicts)
	r.out.ResetKeyframe(&r.dicts)
}

// dimensions is the words of the column dimension: the policy's dimensions, and behind them slots, by which slot
// plans measure, unless the policy has a dimension of that name.
func dimensions(p *plan.Policy) decision.Words {
	if _, ok := p.Dimension("slots"); ok {
		return p.Dimensions
	}
	return append(slices.Clone(p.Dimensions), "slots")
}

// lap ends a stage.
func (r *Runner) lap() {
	if r.Clock != nil {
		now := r.Clock()
		r.out.Summary.StageUS[r.stage] += now - r.lapUS
		r.lapUS = now
	}
	r.stage++
}

// attach gives every plan its planner and tells whether anything changed. With a
// plan more or fewer, or for a Runner's first cycle, everything has.
func (r *Runner) attach(s *cluster.State, nowUS int64) (dirty bool) {
	if len(r.planner) != len(s.Plans) || s.NewPlan || s.Renumbered ||
		r.out.Summary.Cycle != s.Cycle || r.out.Summary.Cycle == 0 {
		r.planner = make([]planner, len(s.Plans))
		for i := range s.Plans {
			if r.planner[i] = newMD(r.Eager, r.devices); s.Plans[i].Slots != nil {
				r.planner[i] = new(slot.Planner)
			}
			s.Plans[i].Dirty, s.Plans[i].Rebuilt = true, true
		}
		dirty = true
	}
	for i := range s.Plans {
		r.planner[i].Attach(s, &s.Plans[i], nowUS)
		dirty = dirty || s.Plans[i].Dirty
	}
	return dirty || s.OutsideChanged() || s.Renamed // the last cycle's tables have the old ids
}

// busy is the planners of plans of which anything changed. No plan changes later in the cycle that is not among them.
func (r *Runner) busy(s *cluster.State) (busy []planner) {
	for i := range r.planner {
		if s.Plans[i].Dirty {
			busy = append(busy, r.planner[i])
		}
	}
	return busy
}

// shortfalls adds every shortfall with its reason, plan by plan.
func (r *Runner) shortfalls(s *cluster.State) {
	*r.details = cluster.Names{}
	sum := &r.out.Summary
	sum.UnitsShort = 0
	for i := range r.planner {
		sum.UnitsShort += r.planner[i].EmitShortfalls(&r.out.Shortfalls, r.details)
	}
	outside, short := s.Outside()
	for _, sub := range outside {
		r.outside(s, sub)
	}
	sum.UnitsShort += short
}

// outside is the shortfall of demand whose consumer takes part in no plan.
func (r *Runner) outside(s *cluster.State, sub cluster.SubID) {
	t := &r.out.Shortfalls
	t.Key.Add(decision.Null, int32(s.Sub.Consumer[sub]), s.Alloc.Name[s.Sub.Alloc[sub]], s.Sub.Name[sub])
	t.UnitsShort = append(t.UnitsShort, s.Short(sub))
	t.Reason.Add(decision.ReasonNotInPlan)
	t.Dimension.Add(decision.Null)
	t.Blocker.Add(decision.Null)
	t.Detail.Add(decision.Null)
	t.Until = append(t.Until, 0)
	t.UntilNull = append(t.UntilNull, true)
	t.Since, t.SinceNull = append(t.Since, s.Sub.ShortSince[sub]), append(t.SinceNull, false)
}

// explain has the planner of each changed plan compute what consumers deserve, and the reason of each shortfall. Plans
// are explained side by side.
func (r *Runner) explain(s *cluster.State) {
	var list []task
	for i, m := range r.planner {
		if s.Plans[i].Dirty {
			m.Unite()
			list = append(list, task{reads: theState, writes: planThing(i), do: m.Explain})
		}
	}
	r.run(list)
	for i, m := range r.planner {
		if md, ok := m.(*mdPlan); ok && s.Plans[i].Dirty {
			md.figures.Hold(s, md.p)
		}
	}
}

// emit fills the decision columns and the summary: the tables of events for busy plans, and the tables of states for
// all plans where any changed. Tables are filled side by side.
func (r *Runner) emit(s *cluster.State, nowUS int64, busy []planner, dirty bool) {
	sum := &r.out.Summary
	sum.UnitsGranted = 0
	r.nameDevices(s, busy)
	reads, writes := r.planners(s)
	reads |= theState
	list := []task{{reads: reads, writes: writes | theGrants, do: func() {
		for _, m := range busy {
			sum.UnitsGranted += m.EmitGrants(&r.out.Grants)
		}
	}}}
	if dirty {
		s.NoteShort(nowUS)
		r.out.ResetStates(&r.dicts)
		list = append(list,
			task{reads: reads, writes: writes | theShortfalls, do: func() { r.shortfalls(s) }},
			// shortfalls of slot plans leave sums for states
			task{reads: reads, writes: writes | theStates, do: func() {
				for _, m := range r.planner {
					m.EmitStates(&r.out)
				}
			}})
	}
	list = append(list, task{reads: reads, writes: theEvents, do: func() {
		for _, m := range busy {
			m.EmitOwnership(&r.out.Ownership)
		}
		sum.UnitsReleased, sum.UnitMSLost = r.releases(s)
		sum.UnitsReclaimed, sum.UnitsCancelled = r.reclaims(s)
	}})
	r.run(list)
	sum.Cycle, sum.NowUS, sum.Revision = s.Cycle+1, nowUS, s.Revision
	sum.UnitsLeaving, sum.UnitsPromised, sum.UnitsOverdue = s.Leaving(), max(r.promised, s.Promised()), s.Overdue(nowUS)
	sum.Relabelled, sum.Window, sum.Restated, sum.SubAllocations = s.Relabelled, windows(s), dirty, s.SubAllocations()
	if dirty {
		sum.Hosts, sum.UnitsHeld, sum.Consumers = 0, s.HeldUnits(), int64(len(r.out.Consumers.Held))
		r.lost(s)
		r.budgets(s)
		sum.UnitsWanted = sum.UnitsHeld + sum.UnitsShort
		for i := range s.Plans {
			sum.Hosts += int64(s.Plans[i].Parcels.Hosts())
		}
	}
	if s.NewPlan {
		r.out.Plans = decision.Plans{
			Revision: []int64{s.Revision}, Author: decision.Coded{Code: []int32{decision.Null}},
			Message: decision.Coded{Code: []int32{decision.Null}},
			Digest:  decision.Coded{Code: []int32{0}, Dict: decision.Words{s.Policy.Digest}},
		}
	}
}

// nameDevices gives the devices of the cycle's events their codes, before tables are filled side by side that look them
// up.
func (r *Runner) nameDevices(s *cluster.State, busy []planner) {
	for i := range s.Released {
		s.Released[i].Devices.Code(r.devices)
	}
	for i := range s.Reclaims {
		s.Reclaims[i].Devices.Code(r.devices)
	}
	for _, m := range busy {
		if md, ok := m.(*mdPlan); ok && md.p.HasDevices() {
			for _, q := range md.given {
				s.Holding.On(q).Code(r.devices)
			}
		}
	}
}

// planners is what the tasks of emit read and write of planners: slot planners add up their figures when a table asks.
func (r *Runner) planners(s *cluster.State) (reads, writes thing) {
	for i := range s.Plans {
		if reads |= planThing(i); s.Plans[i].Slots != nil {
			writes |= planThing(i)
		}
	}
	return reads, writes
}

// windows names the time windows in force: one window by its name, several by the names of plan and window.
func windows(s *cluster.State) string {
	var names []string
	for i := range s.Plans {
		p, name := &s.Plans[i], ""
		if p.MD != nil {
			name = p.MD.Windows[p.Window].Name
		} else {
			name = p.Slots.Windows[p.Window].Name
		}
		if name != "" {
			names = append(names, p.Name+":"+name)
		}
	}
	if len(names) == 1 {
		_, name, _ := strings.Cut(names[0], ":")
		return name
	}
	return strings.Join(names, " ")
}

// reclaims adds the steps of reclaims, in the order in which they were taken, and gives two counts of units: those
// newly under reclaim, and those whose reclaim was cancelled.
func (r *Runner) reclaims(s *cluster.State) (issued, cancelled int64) {
	t := &r.out.Reclaims
	for _, v := range s.Reclaims {
		t.Key.Add(s.Sub.Plan[v.Sub], int32(s.Sub.Consumer[v.Sub]), s.Alloc.Name[s.Sub.Alloc[v.Sub]], s.Sub.Name[v.Sub])
		t.Source.Add(int32(s.Sub.Source[v.Sub]))
		t.Reclaim = append(t.Reclaim, v.Number)
		t.Action.Add(v.Action)
		t.Host.Add(int32(v.Host))
		t.Units = append(t.Units, v.Units)
		t.Reason.Add(v.Reason)
		taker := [3]int32{decision.Null, decision.Null, decision.Null}
		if v.Taker != cluster.NoID {
			taker = [3]int32{int32(s.Sub.Consumer[v.Taker]), s.Alloc.Name[s.Sub.Alloc[v.Taker]], s.Sub.Name[v.Taker]}
		}
		t.ForConsumer.Add(taker[0])
		t.ForAllocation.Add(taker[1])
		t.ForSub.Add(taker[2])
		t.Issued = append(t.Issued, v.Issued)
		t.Deadline = append(t.Deadline, v.Deadline)
		t.Device.Add(v.Devices.Code(r.devices))
		t.TakerWait = append(t.TakerWait, float64(max(0, v.WaitedUS))/1e6)
		t.TakerWaitNull = append(t.TakerWaitNull, v.WaitedUS < 0)
		if v.Action == decision.ActionIssued {
			issued += v.Units
		} else {
			cancelled += v.Units
		}
	}
	return issued, cancelled
}

// returned is a release: its place in State.Released, and the first keys of the table's order.
type returned struct {
	plan, at     int32
	node         plan.Node
	arrival, seq int64
}

// inOrder lists the releases in the order of D-14.
func (r *Runner) inOrder(s *cluster.State) []returned {
	list := r.returned[:0]
	for i := range s.Released {
		sub := s.Released[i].Sub
		list = append(list, returned{s.Sub.Plan[sub], int32(i), s.Node(sub), s.Alloc.Arrival[s.Sub.Alloc[sub]],
			s.Sub.Seq[sub]})
	}
	slices.SortFunc(list, func(a, b returned) int {
		switch {
		case a.plan != b.plan:
			return cmp.Compare(a.plan, b.plan)
		case a.node != b.node:
			return cmp.Compare(a.node, b.node)
		case a.arrival != b.arrival:
			return cmp.Compare(a.arrival, b.arrival)
		case a.seq != b.seq:
			return cmp.Compare(a.seq, b.seq)
		}
		x, y := &s.Released[a.at], &s.Released[b.at]
		// A state that was saved and loaded has its sets at other places: the order of State.Released must not count.
		return cmp.Or(host(x, y), cmp.Compare(x.Cause, y.Cause), cmp.Compare(x.Number, y.Number),
			cmp.Compare(x.Devices, y.Devices), cmp.Compare(a.at, b.at))
	})
	r.returned = list
	return list
}

// releases adds the units that came back since the last cycle, and gives their number and the work that reclaims
// stopped, in unit-milliseconds (D-120).
func (r *Runner) releases(s *cluster.State) (units, lost int64) {
	t, rowMS := &r.out.Releases, int64(0)
	last := cluster.Release{Sub: cluster.NoID}
	for _, one := range r.inOrder(s) {
		v := s.Released[one.at]
		units, lost = units+v.Units, share.Add(lost, v.LostMS)
		same := sameRelease(v, last)
		if last = v; same {
			rowMS = share.Add(rowMS, v.LostMS)
			t.Units[len(t.Units)-1] += v.Units
			t.UnitSecondsLost[len(t.Units)-1] = decision.Seconds(rowMS)
			continue
		}
		rowMS = v.LostMS
		t.UnitSecondsLost = append(t.UnitSecondsLost, decision.Seconds(rowMS))
		t.Key.Add(s.Sub.Plan[v.Sub], int32(s.Sub.Consumer[v.Sub]), s.Alloc.Name[s.Sub.Alloc[v.Sub]], s.Sub.Name[v.Sub])
		t.Source.Add(int32(s.Sub.Source[v.Sub]))
		t.Host.Add(int32(v.Host))
		t.Units = append(t.Units, v.Units)
		t.Cause.Add(v.Cause)
		t.Reclaim = append(t.Reclaim, v.Number)
		t.Origin.Add(v.Origin)
		t.Lender.Add(int32(v.Lender))
		t.Device.Add(v.Devices.Code(r.devices))
	}
	return units, lost
}

// lost fills the column unit_seconds_lost of consumers: the work that each consumer has lost so far (D-120).
func (r *Runner) lost(s *cluster.State) {
	t, below, of := &r.out.Consumers, []int64(nil), decision.Null
	for i, p := range t.Plan.Code {
		if p != of {
			below, of = s.LostBelow(&s.Plans[p]), p
		}
		if below != nil {
			t.UnitSecondsLost[i] = decision.Seconds(below[s.NodeOf[t.Consumer.Code[i]]])
		}
	}
}

// budgets fills the columns of consumers that tell of budgets (BUD-1). Consumers with budgets stand in the same order
// there as in the table.
func (r *Runner) budgets(s *cluster.State) {
	t, names, of, row := &r.out.Consumers, dimensions(s.Policy), decision.Null, 0
	for i, p := range t.Plan.Code {
		if p != of {
			of, row = p, 0
		}
		b, c := &s.Plans[p].Budgets, cluster.ConsumerID(t.Consumer.Code[i])
		if row == len(b.Consumer) || b.Consumer[row] != c {
			continue
		}
		budget := s.Plans[p].Terms.Budget[s.NodeOf[c]]
		t.Budget[i], t.BudgetUsed[i], t.BudgetNull[i] = budget.Hours, b.Told(row), false
		if at := slices.Index(names, budget.What); at >= 0 {
			t.BudgetDimension.Code[i] = int32(at)
		}
		row++
	}
}

// host compares two releases by host, in host order; releases from several parcels of one host are equal.
func host(a, b *cluster.Release) int {
	if a.Host == b.Host {
		return 0
	}
	return cmp.Compare(a.Parcel, b.Parcel)
}

// sameRelease tells whether two releases are one row: the table says nothing of the parcels of a host, nor since when
// units ran.
func sameRelease(a, b cluster.Release) bool {
	a.Units, b.Units, a.Parcel, b.Parcel = 0, 0, 0, 0
	a.Granted, b.Granted, a.LostMS, b.LostMS = 0, 0, 0, 0
	return a == b
}

// Keyframe fills the keyframe tables of out with what is held after the last Run (SPEC chapter 8).
func (r *Runner) Keyframe(out *decision.Cycle) {
	for i := range r.planner {
		r.planner[i].EmitKeyframe(&r.out)
	}
	r.out.Keyframe = true
	out.Holdings, out.Hosts, out.Owners, out.Keyframe = r.out.Holdings, r.out.Hosts, r.out.Owners, true
}
