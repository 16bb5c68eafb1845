package decision

import (
	"io"
	"slices"
)

// The origins of a unit (SPEC chapter 8).
const (
	OriginOwned int32 = iota
	OriginPrivatePool
	OriginPublicPool
	OriginSharePool
	OriginBorrowed
	OriginHybrid
)

// Origins are the names of the origins, by value.
var Origins = Words{"owned", "private_pool", "public_pool", "share_pool", "borrowed", "hybrid"}

// The causes of a release.
const (
	CauseClient int32 = iota
	CauseDone
	CauseGraceExpired
	CauseHostLost
	CauseDemandGone
	CauseGangBroken
)

// Causes are the names of the causes, by value.
var Causes = Words{"client", "done", "grace_expired", "host_lost", "demand_gone", "gang_broken"}

// The reasons of a shortfall, in the order in which they would have to be lifted
// (see docs/decisions.md).
const (
	ReasonNotInPlan int32 = iota
	ReasonNoHostMatches
	ReasonShareLimit
	ReasonTooBig
	ReasonMaxPerHost
	ReasonFragmented
	ReasonLowerPriority
	ReasonOverQuota
	ReasonPoolExhausted
	ReasonConsumerLimit
	ReasonBorrowLimit
	ReasonGraceFilter
	ReasonWaitingForReclaim
	ReasonOwnershipUnmet
	ReasonReclaimBudget
	ReasonTooSmall
	ReasonGang
	ReasonBudget
)

// Reasons are the names of the reasons, by value.
var Reasons = Words{
	"not_in_plan", "no_host_matches", "share_limit", "too_big", "max_per_host", "fragmented",
	"lower_priority", "over_quota", "pool_exhausted", "consumer_limit", "borrow_limit", "grace_filter",
	"waiting_for_reclaim", "ownership_unmet", "reclaim_budget", "too_small", "gang",
	"budget",
}

// Key is the columns that name a sub-allocation in a plan.
type Key struct {
	Plan, Consumer, Allocation, Sub Coded
}

// Add appends a row's key.
func (k *Key) Add(plan, consumer, allocation, sub int32) {
	k.Plan.Add(plan)
	k.Consumer.Add(consumer)
	k.Allocation.Add(allocation)
	k.Sub.Add(sub)
}

// Grants are the units given in a cycle: one row per sub-allocation, host, origin, pool, lender and devices.
type Grants struct {
	Key
	Source, Host Coded
	Units        []int64
	Origin       Coded // Origins
	Pool         Coded // consumer paths; Null when owned
	Lender       Coded // consumer paths; Null when not lent
	Device       Coded // the devices of each unit, such as 4+5 (D-185); Null when it takes none
}

// Table is a view of the grants.
func (g *Grants) Table() Table {
	return Table{"grants", len(g.Units), []Column{
		text("plan", g.Plan), text("source", g.Source), text("consumer", g.Consumer),
		text("allocation", g.Allocation), text("sub", g.Sub), text("host", g.Host), ints("units", g.Units),
		text("origin", g.Origin), text("pool", g.Pool), text("lender", g.Lender), text(deviceColumn, g.Device),
	}}
}

// Releases are the units that came back in a cycle.
type Releases struct {
	Key
	Host    Coded
	Units   []int64
	Cause   Coded   // Causes
	Reclaim []int64 // id of the reclaim, 0 when none
	Origin  Coded
	Lender  Coded
	Device  Coded // of each unit

	// UnitSecondsLost is how long the units had run where a reclaim stopped them before their end (D-120), times the
	// units; else 0.
	UnitSecondsLost []float64

	Source Coded // whose demand it was; not in the table, for those who serve the sources
}

// Table is a view of the releases.
func (r *Releases) Table() Table {
	return Table{"releases", len(r.Units), []Column{
		text("plan", r.Plan), text("consumer", r.Consumer), text("allocation", r.Allocation),
		text("sub", r.Sub), text("host", r.Host), ints("units", r.Units), text("cause", r.Cause),
		ints("reclaim", r.Reclaim), text("origin", r.Origin), text("lender", r.Lender), lost(r.UnitSecondsLost),
		text(deviceColumn, r.Device),
	}}
}

// The steps of a reclaim.
const (
	ActionIssued int32 = iota
	ActionCancelled
)

// Actions are the names of the steps, by value.
var Actions = Words{"issued", "cancelled"}

// The reasons of a reclaim.
const (
	ReclaimRecall int32 = iota
	ReclaimFairShare
	ReclaimOverLimit
	ReclaimReserve
	ReclaimOwnershipChange
	ReclaimWindowSwitch
	ReclaimPlanChange
	ReclaimDrain
	ReclaimGang
)

// ReclaimReasons are the names of the reasons, by value.
var ReclaimReasons = Words{
	"recall", "fair_share", "over_limit", "reserve", "ownership_change", "window_switch", "plan_change", "drain",
	"gang",
}

// Reclaims are the units to be given back: a row for each holding and step.
type Reclaims struct {
	Key
	Reclaim                            []int64 // the reclaim's id
	Action                             Coded   // Actions
	Host                               Coded
	Units                              []int64
	Reason                             Coded // ReclaimReasons
	ForConsumer, ForAllocation, ForSub Coded // the taker; Null for a rule
	Issued, Deadline                   []int64
	Device                             Coded // of each unit
	Source                             Coded // whose demand it is; not in the table, for those who serve the sources
}

// Table is a view of the reclaims.
func (r *Reclaims) Table() Table {
	return Table{"reclaims", len(r.Units), []Column{
		text("plan", r.Plan), ints("reclaim", r.Reclaim), text("action", r.Action), text("consumer", r.Consumer),
		text("allocation", r.Allocation), text("sub", r.Sub), text("host", r.Host), ints("units", r.Units),
		text("reason", r.Reason), text("for_consumer", r.ForConsumer), text("for_allocation", r.ForAllocation),
		text("for_sub", r.ForSub), instants("issued", r.Issued), instants("deadline", r.Deadline),
		text(deviceColumn, r.Device),
	}}
}

// Consumers has a row for every consumer of every plan.
type Consumers struct {
	Plan, Consumer, Policy    Coded
	Rank, Demand, Held, Short []int64
	UnitSecondsLost           []float64            // of it and those below it, in all cycles so far
	Budget                    []int64              // hours of what it counts
	BudgetDimension           Coded                // that, where it is not units
	BudgetUsed                []float64            // hours
	BudgetNull                []bool               // it has none
	Slot                      [slotColumns][]int64 // by slotNames; null in MD plans
	SlotNull                  []bool
	LimitNull                 []bool // null also where a slot plan sets no limit
}

// AddSlots appends a row's figures of a slot plan, by slotNames, in slots; without is whether no limit is set. What it
// lost is set to 0.
func (c *Consumers) AddSlots(figures [slotColumns]int64, without bool) {
	for i, v := range figures {
		c.Slot[i] = append(c.Slot[i], v)
	}
	c.UnitSecondsLost = append(c.UnitSecondsLost, 0)
	c.withoutBudget()
	c.SlotNull = append(c.SlotNull, false)
	c.LimitNull = append(c.LimitNull, without)
}

// withoutBudget adds a row without a budget.
func (c *Consumers) withoutBudget() {
	c.Budget, c.BudgetUsed, c.BudgetNull = append(c.Budget, 0), append(c.BudgetUsed, 0), append(c.BudgetNull, true)
	c.BudgetDimension.Add(Null)
}

// slotNames are the columns of consumers that only slot plans fill.
var slotNames = [...]string{
	"owned_configured", "owned", "reserved", slotLimit, "static_quota", "quota",
	"held_owned", "held_shared", "held_borrowed", "lent", "free",
}

const slotColumns = len(slotNames)

// Table is a view of the consumers.
func (c *Consumers) Table() Table {
	t := Table{"consumers", len(c.Held), []Column{
		text("plan", c.Plan), text("consumer", c.Consumer), text("policy", c.Policy),
		ints("rank", c.Rank), ints("demand", c.Demand), ints("held", c.Held), ints("short", c.Short),
		lost(c.UnitSecondsLost),
		{Name: budgetColumns[0], Type: Int, Int: c.Budget, Null: c.BudgetNull, Optional: true},
		text(budgetColumns[1], c.BudgetDimension),
		{Name: budgetColumns[2], Type: Float, Float: c.BudgetUsed, Null: c.BudgetNull, Optional: true},
	}}
	for i, name := range slotNames {
		null := c.SlotNull
		if name == slotLimit {
			null = c.LimitNull
		}
		t.Columns = append(t.Columns, Column{Name: name, Type: Int, Int: c.Slot[i], Null: null, Optional: true})
	}
	return t
}

// Amounts has a row for every consumer and dimension of every MD plan.
type Amounts struct {
	Plan, Consumer, Dimension                                   Coded
	Configured, Owned, Reserved, Held, Lent, StaticQuota, Limit []int64
	LimitNull                                                   []bool
}

// Table is a view of the amounts.
func (a *Amounts) Table() Table {
	return Table{"amounts", len(a.Held), []Column{
		text("plan", a.Plan), text("consumer", a.Consumer), text("dimension", a.Dimension),
		ints("configured", a.Configured), ints("owned", a.Owned), ints("reserved", a.Reserved),
		ints("held", a.Held), ints("lent", a.Lent), ints("static_quota", a.StaticQuota),
		{Name: shareLimit, Type: Int, Int: a.Limit, Null: a.LimitNull, Optional: true},
	}}
}

// Shares has a row for every consumer in an MD pool in which it has demand or use.
type Shares struct {
	Plan, Consumer, Pool           Coded
	Ratio, Priority                []int64
	Usage, UsageDemand, UsageQuota []float64
	UnitsHeld, UnitsWanted         []int64

	// Of plans with a half-life (D-164): null in the rows of others.
	DecayedUsage, EffectiveRatio []float64
	HistoryNull                  []bool
}

// Table is a view of the shares.
func (s *Shares) Table() Table {
	return Table{"shares", len(s.Usage), []Column{
		text("plan", s.Plan), text("consumer", s.Consumer), text("pool", s.Pool),
		ints("ratio", s.Ratio), ints("priority", s.Priority), floats("usage", s.Usage),
		floats("usage_demand", s.UsageDemand), floats("usage_quota", s.UsageQuota),
		ints("units_held", s.UnitsHeld), ints("units_wanted", s.UnitsWanted),
		{Name: "decayed_usage", Type: Float, Float: s.DecayedUsage, Null: s.HistoryNull, Optional: true},
		{Name: "effective_ratio", Type: Float, Float: s.EffectiveRatio, Null: s.HistoryNull, Optional: true},
	}}
}

// Shortfalls has a row for every sub-allocation and reason; the units of a
// sub-allocation's rows add up to what it is short of.
type Shortfalls struct {
	Key
	UnitsShort []int64
	Reason     Coded // Reasons
	Dimension  Coded
	Blocker    Coded // consumer paths
	Detail     Coded
	Until      []int64
	UntilNull  []bool
}

// Table is a view of the shortfalls.
func (s *Shortfalls) Table() Table {
	return Table{"shortfalls", len(s.UnitsShort), []Column{
		text("plan", s.Plan), text("consumer", s.Consumer), text("allocation", s.Allocation), text("sub", s.Sub),
		ints("units_short", s.UnitsShort), text("reason", s.Reason), text("dimension", s.Dimension),
		text("blocker", s.Blocker), text("detail", s.Detail),
		{Name: "until", Type: Time, Int: s.Until, Null: s.UntilNull, Optional: true},
	}}
}

// The steps of ownership.
const (
	ActionAssigned int32 = iota
	ActionTrimmed
)

// OwnerActions are the names of the steps of ownership, by value.
var OwnerActions = Words{"assigned", "trimmed"}

// Ownership is the parts of hosts that consumers were assigned, or that were trimmed: a row for
// each consumer, host, action and dimension in which the part changed.
type Ownership struct {
	Plan, Consumer, Host, Action, Dimension Coded
	Amount                                  []int64
}

// Table is a view of the changes of ownership.
func (o *Ownership) Table() Table {
	return Table{"ownership", len(o.Amount), []Column{
		text("plan", o.Plan), text("consumer", o.Consumer), text("host", o.Host), text("action", o.Action),
		text("dimension", o.Dimension), ints("amount", o.Amount),
	}}
}

// Holdings is a keyframe: what is held where.
type Holdings struct {
	Key
	Source, Host         Coded
	Units                []int64
	Origin, Pool, Lender Coded
	Granted              []int64 // cycle of the grant
	Device               Coded   // of each unit
}

// Table is a view of the holdings.
func (h *Holdings) Table() Table {
	return Table{"holdings", len(h.Units), []Column{
		text("plan", h.Plan), text("source", h.Source), text("consumer", h.Consumer),
		text("allocation", h.Allocation), text("sub", h.Sub), text("host", h.Host), ints("units", h.Units),
		text("origin", h.Origin), text("pool", h.Pool), text("lender", h.Lender), ints("granted", h.Granted),
		text(deviceColumn, h.Device),
	}}
}

// Hosts is a keyframe: capacity and use per host and dimension.
type Hosts struct {
	Plan, Host, State, Dimension Coded
	Capacity, Used               []int64
}

// Table is a view of the hosts.
func (h *Hosts) Table() Table {
	return Table{"hosts", len(h.Used), []Column{
		text("plan", h.Plan), text("host", h.Host), text("state", h.State),
		text("dimension", h.Dimension), ints("capacity", h.Capacity), ints("used", h.Used),
	}}
}

// Owners is a keyframe: who owns what of which host in MD plans, a row for each piece and dimension of which it has
// something.
type Owners struct {
	Plan, Consumer, Host, Dimension Coded
	Rule, Part, Since, Amount       []int64
}

// Table is a view of the owners.
func (o *Owners) Table() Table {
	return Table{"owners", len(o.Amount), []Column{
		text("plan", o.Plan), text("consumer", o.Consumer), text("host", o.Host), ints("rule", o.Rule),
		ints("part", o.Part), ints("since", o.Since), text("dimension", o.Dimension), ints("amount", o.Amount),
	}}
}

// Plans is the revisions applied in a cycle.
type Plans struct {
	Revision                []int64
	Author, Message, Digest Coded
}

// Table is a view of the plans.
func (p *Plans) Table() Table {
	return Table{"plans", len(p.Revision), []Column{
		ints("revision", p.Revision), text("author", p.Author), text("message", p.Message), text("digest", p.Digest),
	}}
}

// Cycle is all that one cycle decided. The event tables hold what happened in it;
// the state tables (consumers, amounts, shares, shortfalls) what is true after it.
type Cycle struct {
	Summary    Summary
	Grants     Grants
	Reclaims   Reclaims
	Releases   Releases
	Consumers  Consumers
	Amounts    Amounts
	Shares     Shares
	Shortfalls Shortfalls
	Ownership  Ownership
	Plans      Plans
	Holdings   Holdings    // filled on demand: keyframes
	Hosts      Hosts       // filled on demand: keyframes
	Owners     Owners      // filled on demand: keyframes
	Keyframe   bool        // whether Holdings, Hosts and Owners are filled
	Standing   *Standing   // what is new of what stands besides, for the log; nil where nobody asked for it
	State      io.WriterTo // the state after the cycle, saved, for the log; nil where it gets none
}

// EventTables are views of the tables of what happened in the cycle.
func (c *Cycle) EventTables() []Table {
	return []Table{c.Grants.Table(), c.Reclaims.Table(), c.Releases.Table(), c.Ownership.Table(), c.Plans.Table()}
}

// StateTables are views of the tables of what is true after the cycle.
func (c *Cycle) StateTables() []Table {
	return []Table{c.Consumers.Table(), c.Amounts.Table(), c.Shares.Table(), c.Shortfalls.Table()}
}

// Tables are the event and state tables in the log's order, without cycles and without keyframes. The digest is of
// these: a table belongs to it by being one of events or one of states.
func (c *Cycle) Tables() []Table {
	events, states := c.EventTables(), c.StateTables()
	return slices.Concat(events[:3], states, events[3:]) // ownership and plans stand behind the states
}

// Dicts are the dictionaries that the tables of one cycle share.
type Dicts struct {
	Plan, Source, Consumer, Label, Host, Dimension, Detail, Device Dict
}

func (k *Key) reset(d *Dicts) {
	k.Plan.reset(d.Plan)
	k.Consumer.reset(d.Consumer)
	k.Allocation.reset(d.Label)
	k.Sub.reset(d.Label)
}

// ResetEvents empties the tables of what happened in a cycle, keeping their memory.
func (c *Cycle) ResetEvents(d *Dicts) {
	g, r, t := &c.Grants, &c.Releases, &c.Reclaims
	t.Key.reset(d)
	t.Action.reset(Actions)
	t.Host.reset(d.Host)
	t.Reason.reset(ReclaimReasons)
	t.ForConsumer.reset(d.Consumer)
	t.ForAllocation.reset(d.Label)
	t.ForSub.reset(d.Label)
	t.Source.reset(d.Source)
	t.Device.reset(d.Device)
	t.Reclaim, t.Units, t.Issued, t.Deadline = t.Reclaim[:0], t.Units[:0], t.Issued[:0], t.Deadline[:0]
	g.Key.reset(d)
	g.Source.reset(d.Source)
	g.Host.reset(d.Host)
	g.Origin.reset(Origins)
	g.Pool.reset(d.Consumer)
	g.Lender.reset(d.Consumer)
	g.Device.reset(d.Device)
	g.Units = g.Units[:0]
	r.Key.reset(d)
	r.Host.reset(d.Host)
	r.Cause.reset(Causes)
	r.Origin.reset(Origins)
	r.Lender.reset(d.Consumer)
	r.Device.reset(d.Device)
	r.Source.reset(d.Source)
	r.Units, r.Reclaim, r.UnitSecondsLost = r.Units[:0], r.Reclaim[:0], r.UnitSecondsLost[:0]
	o := &c.Ownership
	o.Plan.reset(d.Plan)
	o.Consumer.reset(d.Consumer)
	o.Host.reset(d.Host)
	o.Action.reset(OwnerActions)
	o.Dimension.reset(d.Dimension)
	o.Amount = o.Amount[:0]
	c.Plans = Plans{}
}

// ResetStates empties the tables of what is true after a cycle, keeping their memory.
func (c *Cycle) ResetStates(d *Dicts) {
	n, a, s, f := &c.Consumers, &c.Amounts, &c.Shares, &c.Shortfalls
	n.Plan.reset(d.Plan)
	n.Consumer.reset(d.Consumer)
	n.Policy.reset(Policies)
	n.Rank, n.Demand, n.Held, n.Short = n.Rank[:0], n.Demand[:0], n.Held[:0], n.Short[:0]
	for i := range n.Slot {
		n.Slot[i] = n.Slot[i][:0]
	}
	n.BudgetDimension.reset(d.Dimension)
	n.Budget, n.BudgetUsed, n.BudgetNull = n.Budget[:0], n.BudgetUsed[:0], n.BudgetNull[:0]
	n.UnitSecondsLost, n.SlotNull, n.LimitNull = n.UnitSecondsLost[:0], n.SlotNull[:0], n.LimitNull[:0]
	a.Plan.reset(d.Plan)
	a.Consumer.reset(d.Consumer)
	a.Dimension.reset(d.Dimension)
	a.Configured, a.Owned, a.Reserved, a.Held = a.Configured[:0], a.Owned[:0], a.Reserved[:0], a.Held[:0]
	a.Lent, a.StaticQuota, a.Limit, a.LimitNull = a.Lent[:0], a.StaticQuota[:0], a.Limit[:0], a.LimitNull[:0]
	s.Plan.reset(d.Plan)
	s.Consumer.reset(d.Consumer)
	s.Pool.reset(d.Consumer)
	s.Ratio, s.Priority, s.Usage = s.Ratio[:0], s.Priority[:0], s.Usage[:0]
	s.UsageDemand, s.UsageQuota = s.UsageDemand[:0], s.UsageQuota[:0]
	s.UnitsHeld, s.UnitsWanted = s.UnitsHeld[:0], s.UnitsWanted[:0]
	s.DecayedUsage, s.EffectiveRatio, s.HistoryNull = s.DecayedUsage[:0], s.EffectiveRatio[:0], s.HistoryNull[:0]
	f.Key.reset(d)
	f.Reason.reset(Reasons)
	f.Dimension.reset(d.Dimension)
	f.Blocker.reset(d.Consumer)
	f.Detail.reset(d.Detail)
	f.UnitsShort, f.Until, f.UntilNull = f.UnitsShort[:0], f.Until[:0], f.UntilNull[:0]
}

// ResetKeyframe empties the keyframe tables, keeping their memory.
func (c *Cycle) ResetKeyframe(d *Dicts) {
	h, o, w := &c.Holdings, &c.Hosts, &c.Owners
	h.Key.reset(d)
	h.Source.reset(d.Source)
	h.Host.reset(d.Host)
	h.Origin.reset(Origins)
	h.Pool.reset(d.Consumer)
	h.Lender.reset(d.Consumer)
	h.Device.reset(d.Device)
	h.Units, h.Granted = h.Units[:0], h.Granted[:0]
	o.Plan.reset(d.Plan)
	o.Host.reset(d.Host)
	o.State.reset(States)
	o.Dimension.reset(d.Dimension)
	o.Capacity, o.Used = o.Capacity[:0], o.Used[:0]
	w.Plan.reset(d.Plan)
	w.Consumer.reset(d.Consumer)
	w.Host.reset(d.Host)
	w.Dimension.reset(d.Dimension)
	w.Rule, w.Part, w.Since, w.Amount = w.Rule[:0], w.Part[:0], w.Since[:0], w.Amount[:0]
	c.Keyframe = false
}

// The policies of consumers in plans.
const (
	PolicyOwnership int32 = iota
	PolicyShareRatio
	PolicyHybrid
	PolicyMD // of MD plans
)

// Policies are the names of the policies, by value.
var Policies = Words{"ownership", "share_ratio", "hybrid", "md"}

// States are the names of host states, by core/cluster's HostState.
var States = Words{"ok", "closed", "draining", "unavail"}
