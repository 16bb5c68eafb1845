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

// mdPlan carries out one MD plan. Each stage asks the packages of docs/architecture.md ("The rooms of an MD plan") for
// decisions in the order of docs/shares.md, books the decisions, and lets the views follow the change log. Between
// cycles an mdPlan keeps views and memory; a new mdPlan decides the same.
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
	devices *cluster.Names // the dictionary of the column device

	// Of the cycle under way.
	cycle    *reclaim.Cycle
	forecast *forecast // of the coming window; nil: no window comes
	granted  bool      // the grant stage is over: capacities stay as they are
	gave     bool      // leaves or pools were given something
	// holdings that were booked, some named several times; after Unite once each, as D-14 has them
	given    []cluster.HoldingID
	bookings int
	gangs    []cluster.SubID        // the plan's gangs (REQ-3)
	gaveUp   map[cluster.SubID]bool // those that have waited for too long
	young    bool                   // min_runtime kept units from being taken back

	promises pool.Promises
	stood    *pool.Limits // what consumers held once everything was granted
	figures  pool.Book

	// As of the last cycle in which anything of the plan changed.
	consumers pool.Consumers
	amounts   pool.Amounts
	shares    pool.Shares
	short     reason.Shortfalls
}

// newMD is a planner for an MD plan. Devices is the dictionary of the column device.
func newMD(eager bool, devices *cluster.Names) *mdPlan {
	return &mdPlan{granter: grant.New(eager), reasons: reason.Reasons{Eager: eager}, devices: devices}
}

// Attach points the planner at a state and the plan it is to carry out.
func (m *mdPlan) Attach(s *cluster.State, p *cluster.Plan, nowUS int64) {
	m.s, m.p, m.nowUS = s, p, nowUS
}

// Own assigns hosts to their owners, where anything that ownership depends on has changed.
func (m *mdPlan) Own() {
	m.forecast, m.granted, m.gave, m.young = nil, false, false, false
	m.given, m.bookings = m.given[:0], 0
	m.passes.Decide(owner.New(m.s, m.p), &m.owned)
	m.owned.Book(m.s, m.p)
	m.p.Owe()
	m.p.Seen = len(m.p.Changed)
}

// Entitle brings the views up, with capacities (MD-11), and cancels what no rule asks for any more.
func (m *mdPlan) Entitle() {
	m.cycle, m.gangs, m.gaveUp = reclaim.NewCycle(m.s, m.p), m.s.Gangs(m.p, m.gangs), nil
	m.bind()
	m.takeBack(m.stage.Restore)
}

// Grant reviews the sets under way, gives takers the units that sets promised, then grants free room: of a leaf's own
// parcels to the leaf, and of pools from the deepest up (MD-7, MD-8, MD-16). Within the lead of a coming window Grant
// grants what a cycle under that window would.
func (m *mdPlan) Grant() {
	if m.p.Coming != cluster.NoID {
		m.forecast = m.foresee()
	}
	m.takeBack(m.stage.Review)
	m.grantPromised()
	m.giveUp()
	m.bind()
	if m.forecast != nil {
		m.grantForecast()
	} else {
		m.grantOwn()
		m.grantPools()
	}
	if m.granter.Formed() {
		m.p.Continue()
	}
	m.granted = true
}

// Reclaim takes back units for rules, for owners that lent them (MD-10) and for fair shares (MD-17); within the lead of
// a coming window, those that a cycle under that window would.
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
	m.takeGangs()
	if m.gave && m.hasTakers() {
		m.p.Continue() // after these grants the next review may let sets lapse
	}
}

// hasTakers tells whether any set of the plan has a taker.
func (m *mdPlan) hasTakers() bool {
	for id := range m.s.Set.Of(m.p) {
		if m.s.Set.Taker[id] != cluster.NoID {
			return true
		}
	}
	return false
}

// takeBack brings the views up, lets core/reclaim decide, and books the decisions.
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

// beginTaking lays core/reclaim's stage over the state. The views must be up to date.
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
}

// env is the plan with its views, which are not brought up.
func (m *mdPlan) env() pool.Env { return pool.New(m.s, m.p, &m.views) }

// grantEnv brings the views up, and is the environment of grants.
func (m *mdPlan) grantEnv() *grant.Env {
	m.views.Follow(m.s, m.p)
	e := &grant.Env{Env: m.env(), Promises: &m.promises, Undone: m.cycle.Undone}
	m.sumPromises(e.Env)
	e.Limits = pool.NewLimits(&e.Env, e.Promises)
	return e
}

// sumPromises adds up the units promised to takers of sets, and to units that joined a set.
func (m *mdPlan) sumPromises(e pool.Env) {
	m.promises.Sum(e)
	for _, j := range m.cycle.Joined {
		m.promises.Add(j)
	}
}

// book books grants, and tells whether there were any.
func (m *mdPlan) book(e *grant.Env, out *grant.Decisions) bool {
	if out.Sub.Len() == 0 {
		return false
	}
	runs, parcels := out.Runs(e, m.s.Cycle+1, nil)
	m.given = m.s.HoldAll(m.given, runs, parcels)
	m.bookings++
	return true
}

// grantPromised gives takers the units that sets promised.
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

// grantOwn gives leaves the free room of their own parcels. Decisions about sets on these parcels are booked together
// with the grants.
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

// grantPools grants the free room of pools, the deepest first. Pools of one depth have neither parcels nor leaves in
// common, so their grants are booked together.
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
	m.grantTogether(e)
	m.stood = e.Limits
}

// Explain computes the figures of the state tables and the reason of each shortfall (D-7). It is for plans that
// changed.
func (m *mdPlan) Explain() {
	m.views.FollowHeld(m.s, m.p)
	e := &reason.Env{
		Env: m.env(), Promises: &m.promises, Figures: &m.figures, Denied: m.cycle.Denied, Granted: m.stood,
	}
	m.bind()
	m.sumPromises(e.Env)
	e.Limits = pool.NewLimits(&e.Env, e.Promises)
	e.Figures.Sum(&e.Env, e.Promises)
	m.consumers, m.amounts, m.shares = pool.Consumers{}, pool.Amounts{}, pool.Shares{}
	m.consumers.Add(&e.Env)
	m.amounts.Add(&e.Env, e.Figures)
	m.shares.Add(&e.Env, e.Figures)
	m.bindShort()
	m.short = reason.Shortfalls{Details: new(cluster.Names)}
	m.reasons.Explain(e, &m.short)
}

// Unite makes one holding of several that the cycle's bookings gave a sub-allocation on one parcel, on the same
// devices, and sorts the cycle's grants as D-14 has them.
func (m *mdPlan) Unite() {
	if m.bookings == 0 {
		return
	}
	h, n := &m.s.Holding, 0
	rows := emit.Given(m.s, m.p, m.s.Cycle+1, m.given)
	for i, q := range rows {
		if i > 0 && h.Sub[rows[n-1]] == h.Sub[q] && h.Parcel[rows[n-1]] == h.Parcel[q] && h.On(rows[n-1]) == h.On(q) {
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

// EmitGrants adds the cycle's grants, and gives their units.
func (m *mdPlan) EmitGrants(t *decision.Grants) (units int64) {
	return emit.Grants(t, m.s, m.p, m.given, m.devices)
}

// EmitShortfalls adds the shortfalls, and gives their units. Texts of the column detail go into details.
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
func (m *mdPlan) EmitKeyframe(c *decision.Cycle) { emit.Keyframe(c, m.s, m.p, m.devices) }
