package cycle

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/emit"
	"github.com/stintd/stint/core/grant"
	"github.com/stintd/stint/core/owner"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/pool"
	"github.com/stintd/stint/core/reason"
	"github.com/stintd/stint/core/reclaim"
	"github.com/stintd/stint/core/view"
)

// mdPlan carries out one MD plan: its stages ask the rooms for decisions in the order of docs/shares.md, book each, and
// let the views follow before the next. Between cycles it keeps views, which follow the change log, and memory. One that
// knows nothing decides the same.
type mdPlan struct {
	s     *cluster.State
	p     *cluster.Plan
	nowUS int64

	passes  owner.Passes
	owned   owner.Decisions
	views   view.Views
	stage   reclaim.Stage
	taken   reclaim.Decisions
	granter grant.Granter
	reasons reason.Reasons

	// Of the cycle under way.
	cycle    *reclaim.Cycle
	forecast *forecast // what the window that comes would do; nil: none comes
	joined   []pool.Join
	granted  bool                // everything is granted: capacities stay as they are
	gave     bool                // leaves or pools were given something
	given    []cluster.HoldingID // what was booked, some of it several times; once united, in the order of D-14
	bookings int
	young    bool // units were left alone that have not run for long enough

	promises pool.Promises
	stood    *pool.Limits // what consumers held once everything was granted
	figures  pool.Book

	// As of the last cycle in which anything of the plan changed.
	consumers pool.Consumers
	amounts   pool.Amounts
	shares    pool.Shares
	short     reason.Shortfalls
}

// newMD is a planner for an MD plan.
func newMD(eager bool) *mdPlan {
	return &mdPlan{granter: grant.Granter{Eager: eager}, reasons: reason.Reasons{Eager: eager}}
}

// Attach points the planner at a state and the plan it is to carry out.
func (m *mdPlan) Attach(s *cluster.State, p *cluster.Plan, nowUS int64) {
	m.s, m.p, m.nowUS = s, p, nowUS
}

// Own assigns what consumers own, where anything that it depends on has changed.
func (m *mdPlan) Own() {
	m.forecast, m.joined, m.granted, m.gave, m.young = nil, m.joined[:0], false, false, false
	m.given, m.bookings = m.given[:0], 0
	m.passes.Decide(owner.New(m.s, m.p), &m.owned)
	m.owned.Book(m.s, m.p)
	m.p.Owe()
	m.p.Seen = len(m.p.Changed)
}

// Entitle brings the views up, with capacities (MD-11), and cancels what no rule asks for any more.
func (m *mdPlan) Entitle() {
	m.cycle = reclaim.NewCycle(m.s, m.p)
	m.takeBack(m.stage.Restore)
}

// Grant reviews the sets under way, gives takers what these hold for them, then leaves what is free on their own
// parcels, and hands out what is free in the pools, from the deepest up (MD-7, MD-8, MD-16). Before a window that comes
// it grants what that would.
func (m *mdPlan) Grant() {
	if m.p.Coming != cluster.NoID {
		m.forecast = m.foresee()
	}
	m.takeBack(m.stage.Review)
	m.grantPromised()
	if m.forecast != nil {
		m.grantForecast()
	} else {
		m.grantOwn()
		m.grantPools()
	}
	m.granted = true
}

// Reclaim takes back what rules ask for, what owners want of what they lent (MD-10), and what is held beyond fair shares
// (MD-17); before a window that comes, what that would.
func (m *mdPlan) Reclaim() {
	m.takeBack(func() {
		m.stage.Rules()
		if m.forecast != nil {
			m.stage.MakeWay(m.forecast.taken)
			return
		}
		m.stage.Recall()
		m.stage.Fair()
	})
	if m.gave && m.hasTakers() {
		m.p.Continue() // by what was granted, sets that stood may not stand any more
	}
}

// hasTakers tells whether any set of the plan has a taker.
func (m *mdPlan) hasTakers() bool {
	for id, number := range m.s.Set.Number {
		if number > 0 && m.s.Set.Plan[id] == m.p.Index && m.s.Set.Taker[id] != cluster.NoID {
			return true
		}
	}
	return false
}

// takeBack lets core/reclaim decide over what is held now, and books it.
func (m *mdPlan) takeBack(decide func()) {
	if m.granted {
		m.views.FollowHeld(m.s, m.p)
	} else {
		m.views.Follow(m.s, m.p)
	}
	m.beginTaking()
	decide()
	m.bookTaken()
}

// beginTaking lays core/reclaim's stage over the state, with which the views are.
func (m *mdPlan) beginTaking() {
	selected := func(need cluster.NeedID) []uint64 {
		set, _ := m.views.Needs.Of(m.s, m.p, need)
		return set
	}
	env := &reclaim.Env{Env: m.env(), Cycle: m.cycle, NowUS: m.nowUS, Selected: selected}
	m.stage.Begin(env, &m.taken)
}

// bookTaken books what core/reclaim decided.
func (m *mdPlan) bookTaken() {
	m.taken.Book(m.s, m.p, m.nowUS)
	m.young = m.young || m.taken.Young
	m.joined = m.joined[:0]
	for _, j := range m.cycle.Joined {
		m.joined = append(m.joined, pool.Join(j))
	}
}

// env is the plan with its views as they are.
func (m *mdPlan) env() pool.Env { return pool.New(m.s, m.p, &m.views) }

// grantEnv brings the views up, and is what grants go by as things are held now.
func (m *mdPlan) grantEnv() *grant.Env {
	m.views.Follow(m.s, m.p)
	e := &grant.Env{Env: m.env(), Promises: &m.promises, Undone: m.cycle.Undone}
	m.sumPromises(e.Env)
	e.Limits = pool.NewLimits(&e.Env, e.Promises)
	return e
}

// sumPromises adds up what sets and those who joined them are promised now.
func (m *mdPlan) sumPromises(e pool.Env) {
	m.promises.Sum(e)
	for _, j := range m.joined {
		m.promises.Add(j)
	}
}

// book books what was granted, and tells whether it was anything.
func (m *mdPlan) book(e *grant.Env, out *grant.Decisions) bool {
	if out.Sub.Len() == 0 {
		return false
	}
	runs, parcels := out.Runs(e, m.s.Cycle+1, nil)
	m.given = m.s.HoldAll(m.given, runs, parcels)
	m.bookings++
	return true
}

// grantPromised gives takers what sets hold for them.
func (m *mdPlan) grantPromised() {
	e := m.grantEnv()
	if len(e.Promises.Set) == 0 {
		return
	}
	var out grant.Decisions
	var given grant.Given
	grant.Promised(e, &out, &given)
	if m.book(e, &out) {
		m.p.Continue()
	}
	given.Book(m.s)
}

// grantOwn gives leaves what is free on their own parcels. What sets decide meanwhile is booked with it.
func (m *mdPlan) grantOwn() {
	if !m.p.Parcels.Owned {
		return
	}
	e := m.grantEnv()
	var out grant.Decisions
	sets := len(e.Promises.Set) > 0 || m.p.MD.ReclaimForPref
	if sets {
		m.beginTaking()
	}
	for leaf := range plan.Node(m.s.Policy.Len()) {
		from, to := m.views.Owned.Own(leaf)
		switch {
		case !m.s.Policy.Leaf(leaf) || !m.p.Terms.Member[leaf] || from == to:
		case sets:
			m.granter.Own(e, leaf, &m.stage, &out)
		default:
			m.granter.Pool(e, leaf, &out)
		}
	}
	m.gave = m.book(e, &out) || m.gave
	if sets {
		m.bookTaken()
	}
}

// grantPools hands out what is free in the pools. Pools of one depth have neither parcels nor leaves in common, so that
// what they give is booked together.
func (m *mdPlan) grantPools() {
	e, depth := m.grantEnv(), m.s.Policy.Depth
	for list := e.List(); len(list) > 0; {
		n := 1
		for n < len(list) && depth[list[n]] == depth[list[0]] {
			n++
		}
		var out grant.Decisions
		for _, top := range list[:n] {
			m.granter.Pool(e, top, &out)
		}
		if m.book(e, &out) {
			m.gave = true
			m.views.Follow(m.s, m.p)
		}
		list = list[n:]
	}
	m.stood = e.Limits
}

// Explain adds up what consumers have and deserve, and finds why those are short who are (D-7), where anything of the
// plan changed.
func (m *mdPlan) Explain() {
	m.views.FollowHeld(m.s, m.p)
	e := &reason.Env{
		Env: m.env(), Promises: &m.promises, Figures: &m.figures, Denied: m.cycle.Denied, Granted: m.stood,
	}
	m.sumPromises(e.Env)
	e.Limits = pool.NewLimits(&e.Env, e.Promises)
	e.Figures.Sum(&e.Env)
	m.consumers, m.amounts, m.shares = pool.Consumers{}, pool.Amounts{}, pool.Shares{}
	m.consumers.Add(&e.Env)
	m.amounts.Add(&e.Env, e.Figures)
	m.shares.Add(&e.Env, e.Figures)
	m.short = reason.Shortfalls{Details: new(cluster.Names)}
	m.reasons.Explain(e, &m.short)
}

// Unite makes one holding of those that a sub-allocation was given on one parcel by several bookings, and brings what
// was given into order.
func (m *mdPlan) Unite() {
	if m.bookings == 0 {
		return
	}
	h, n := &m.s.Holding, 0
	rows := emit.Given(m.s, m.p, m.s.Cycle+1, m.given)
	for i, q := range rows {
		if i > 0 && h.Sub[rows[n-1]] == h.Sub[q] && h.Parcel[rows[n-1]] == h.Parcel[q] {
			m.s.Merge(rows[n-1], q)
			continue
		}
		rows[n] = q
		n++
	}
	m.given = rows[:n]
}

// EmitOwnership adds the parts of hosts that changed in this cycle.
func (m *mdPlan) EmitOwnership(t *decision.Ownership) { emit.Ownership(t, m.p, &m.owned) }

// EmitGrants adds what was given in this cycle, and gives its units.
func (m *mdPlan) EmitGrants(t *decision.Grants) (units int64) {
	return emit.Grants(t, m.s, m.p, m.given)
}

// EmitShortfalls adds who is short, and gives the units. Details takes the texts of the column detail.
func (m *mdPlan) EmitShortfalls(t *decision.Shortfalls, details *cluster.Names) (units int64) {
	return emit.Shortfalls(t, m.s, m.p, &m.short, details)
}

// EmitStates adds the plan's rows to consumers, amounts and shares.
func (m *mdPlan) EmitStates(c *decision.Cycle) {
	emit.Consumers(&c.Consumers, m.s, m.p, &m.consumers)
	emit.Amounts(&c.Amounts, m.s, m.p, &m.amounts)
	emit.Shares(&c.Shares, m.s, m.p, &m.shares)
}

// EmitKeyframe adds the plan's rows to the tables of keyframes.
func (m *mdPlan) EmitKeyframe(c *decision.Cycle) { emit.Keyframe(c, m.s, m.p) }
