package cycle

import (
	"cmp"
	"maps"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/grant"
	"github.com/stintd/stint/core/plan"
)

// Gangs in an MD plan (REQ-3; docs/shares.md, "Gangs"). Where there are none, none of this does anything.

// lacking is by kind of unit the least of the min_units of which not all were found: no more will be, for others of the
// kind, as long as nothing has changed but for the worse.
type lacking map[gangKind]int64

type gangKind struct {
	leaf  plan.Node
	shape cluster.ShapeID
	need  cluster.NeedID
	label int32 // of what it is together by
}

// kindOf is the kind of a gang's units.
func kindOf(s *cluster.State, sub cluster.SubID) gangKind {
	return gangKind{s.Node(sub), s.Sub.Shape[sub], s.Sub.Need[sub], s.Sub.Together[sub]}
}

// has tells whether a gang is known to find too little. With a max_per_host nothing is known.
func (l lacking) has(s *cluster.State, sub cluster.SubID) bool {
	least, ok := l[kindOf(s, sub)]
	return ok && s.Sub.MinUnits[sub] >= least && s.Sub.MaxPerHost[sub] == plan.Unlimited
}

// add notes that a gang finds too little.
func (l lacking) add(s *cluster.State, sub cluster.SubID) {
	key, least := kindOf(s, sub), s.Sub.MinUnits[sub]
	if known, ok := l[key]; s.Sub.MaxPerHost[sub] == plan.Unlimited && (!ok || least < known) {
		l[key] = least
	}
}

// giveUp lets the sets of gangs lapse that wait for longer than gang_wait.
func (m *mdPlan) giveUp() {
	if len(m.gangs) > 0 {
		m.takeBack(func() { m.gaveUp = m.stage.GiveUp(m.p.MD.GangWaitUS) })
	}
}

// grantTogether lets gangs that still wait after the last pool form over all that their leaves draw on.
func (m *mdPlan) grantTogether(e *grant.Env) {
	if len(m.gangs) == 0 {
		return
	}
	m.views.FollowHeld(m.s, m.p)
	failed := lacking{}
	for _, sub := range m.granter.Waiting(e, m.gangs) {
		if !grant.MayForm(e, sub) || failed.has(m.s, sub) {
			continue
		}
		_, prefers := m.views.Needs.Seeks(sub)
		if !m.granter.Fits(e, sub) {
			failed.add(m.s, sub) // room only falls
			continue
		}
		for top, left := m.s.Node(sub), m.s.Sub.MinUnits[sub]; left > 0; top = m.s.Policy.Parent[top] {
			var out grant.Decisions
			left -= m.granter.Part(e, top, sub, left, &out)
			if m.book(e, &out) {
				m.views.FollowHeld(m.s, m.p)
			}
		}
		if prefers {
			m.views.Needs.Free(sub)
		}
		m.gave = true
		m.p.Continue() // capacities are as they were before
	}
}

// takeGangs takes back for gangs that wait, leaf by leaf in rank order: for each all of its min_units or nothing. Then
// it makes gangs whole of which something was taken.
func (m *mdPlan) takeGangs() {
	if len(m.gangs) == 0 {
		return
	}
	if m.forecast == nil {
		failed := lacking{}
		for _, leaf := range m.waitingLeaves() {
			m.takeGangsOf(leaf, failed)
		}
	}
	m.takeBack(func() { m.stage.Complete(m.gangs) })
	for id := range m.s.Set.Of(m.p) {
		if taker := m.s.Set.Taker[id]; taker != cluster.NoID && m.s.Forming(taker) {
			m.p.Continue() // they are given up in time
			break
		}
	}
}

// waitingLeaves lists the leaves with gangs that wait, in rank order.
func (m *mdPlan) waitingLeaves() (leaves []plan.Node) {
	for _, sub := range m.gangs {
		leaf := m.s.Node(sub)
		if known := len(leaves) > 0 && leaves[len(leaves)-1] == leaf; !known && m.s.Short(sub) > 0 && m.s.Forming(sub) {
			leaves = append(leaves, leaf) // gangs come leaf by leaf
		}
	}
	slices.SortFunc(leaves, func(a, b plan.Node) int { return cmp.Compare(m.p.RankOrder[a], m.p.RankOrder[b]) })
	return leaves
}

// takeGangsOf takes back for the gangs of a leaf.
func (m *mdPlan) takeGangsOf(leaf plan.Node, failed lacking) {
	m.views.FollowHeld(m.s, m.p)
	m.beginTaking()
	for _, sub := range m.stage.Gangs(leaf) {
		if m.gaveUp[sub] || failed.has(m.s, sub) {
			continue
		}
		m.views.FollowHeld(m.s, m.p)
		m.views.Needs.Free(sub) // nothing of it stays
		places, prefers := m.views.Needs.Seeks(sub)
		if places == nil {
			m.gather(sub, failed)
			continue
		}
		done, lacks := false, true
		for _, value := range m.nearest(sub, places) {
			m.views.Needs.Hold(sub, value)
			if done = m.gather(sub, nil); done {
				clear(failed)
				break
			}
			lacks = lacks && m.stage.Lacks()
		}
		if prefers || !done {
			m.views.Needs.Free(sub)
		}
		switch {
		case prefers && !done:
			m.gather(sub, failed)
		case !done && lacks:
			failed.add(m.s, sub)
		}
	}
}

// gather takes back for a gang, and tells whether it did. It notes in failed, unless nil, that too little was found.
func (m *mdPlan) gather(sub cluster.SubID, failed lacking) bool {
	was := *m.cycle
	m.cycle.Undone = maps.Clone(was.Undone)
	m.beginTaking()
	if m.stage.Gather(sub, m.p.MD.GangWaitUS) {
		m.bookTaken()
		clear(failed)
		return true
	}
	if failed != nil && m.stage.Lacks() {
		failed.add(m.s, sub)
	}
	if m.young = m.young || m.taken.Young; m.taken.Young || m.cycle.Promises < m.s.Sub.MinUnits[sub] {
		m.p.Continue() // a later cycle may find more
	}
	m.cycle.Budget, m.cycle.Spent, m.cycle.Undone, m.cycle.Joined = was.Budget, was.Spent, was.Undone, was.Joined
	return false
}

// nearestMost is for how many values of its attribute a gang tries to take back in a cycle, at most (D-109).
const nearestMost = 64

// nearest lists the values of an attribute, those first where the most of a gang's min_units fit now, of as many in the
// order of the plan's hosts.
func (m *mdPlan) nearest(sub cluster.SubID, places *cluster.Places) []int32 {
	e := &grant.Env{Env: m.env(), Promises: &m.promises, Undone: m.cycle.Undone}
	m.sumPromises(e.Env)
	units, values := m.granter.Room(e, sub, places), make([]int32, places.Own)
	for i := range values {
		values[i] = int32(i)
		units[i] = min(units[i], m.s.Sub.MinUnits[sub])
	}
	slices.SortStableFunc(values, func(a, b int32) int { return cmp.Compare(units[b], units[a]) })
	return values[:min(len(values), nearestMost)]
}

// bind holds the gangs that must be together to the value of what they have.
func (m *mdPlan) bind() { m.views.Needs.Begin(m.s, m.p, m.gangs) }

// bindShort does so for what shortfalls tell: gangs that wait are held to the value where the most of them fit.
func (m *mdPlan) bindShort() {
	m.bind()
	for _, sub := range m.gangs {
		places, prefers := m.views.Needs.Seeks(sub)
		if places == nil || prefers || m.s.Short(sub) <= 0 {
			continue
		}
		if values := m.nearest(sub, places); len(values) > 0 {
			m.views.Needs.Hold(sub, values[0])
		} else {
			m.views.Needs.Hold(sub, cluster.NoID)
		}
	}
}
