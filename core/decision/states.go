package decision

import "github.com/stintd/stint/core/column"

// Consumers has a row for every consumer of every plan.
type Consumers struct {
	Plan, Consumer, Policy    Coded
	Rank, Demand, Held, Short []int64
	UnitSecondsLost           []float64            // of it and those below it, in all cycles so far
	Budget                    []int64              // hours of what it counts
	BudgetDimension           Coded                // that, where it is not units
	BudgetUsed                []float64            // hours
	BudgetNull                []bool               // it has none
	Slot                      [slotColumns][]int64 // by slotLines; null in MD plans
	SlotNull                  []bool
	LimitNull                 []bool // null also where a slot plan sets no limit
}

// Schema declares the columns. parent, depth and leaf follow from the paths: see Tree.
func (c *Consumers) Schema() column.Schema {
	const inUnits = "units; slots in slot plans"
	lines := make([]column.Line, 0, 14+slotColumns)
	lines = append(lines,
		planLine(&c.Plan, ""),
		consumerLine(&c.Consumer, ""),
		column.Line{Name: "parent", Type: Text, Nullable: true, Since: 2, Count: column.Uncounted,
			Doc: "the consumer above it, null without any"},
		column.Line{Name: "depth", Since: 2, Count: column.Uncounted, Doc: "1 for those without a parent"},
		column.Line{Name: "leaf", Since: 2, Count: column.Uncounted, Doc: "1 when no consumer is below it, else 0: " +
			"figures of leaves add up to those of the plan (in `views.sql` a boolean)"},
		column.Line{Name: "policy", Of: &c.Policy, Words: Policies,
			Doc: "`md`; slot plans: `ownership`, `share_ratio`, `hybrid`"},
		column.Line{Name: "rank", Of: column.Ints(&c.Rank)},
		column.Line{Name: "demand", Of: column.Ints(&c.Demand), Doc: inUnits},
		column.Line{Name: "held", Of: column.Ints(&c.Held), Doc: inUnits},
		column.Line{Name: "short", Of: column.Ints(&c.Short), Doc: inUnits},
		lostLine(column.Floats(&c.UnitSecondsLost), "in all cycles so far"),
		column.Line{Name: "budget", Of: column.Ints(&c.Budget), Null: &c.BudgetNull, Since: 6, Count: column.Uncounted,
			Doc: "hours that it may [use of pools](budgets.md) in a period; null: it has no budget"},
		column.Line{Name: "budget_dimension", Of: &c.BudgetDimension, Dict: "dimension", Nullable: true, Since: 6,
			Count: column.Uncounted, Doc: "of what; null: of units"},
		column.Line{Name: "budget_used", Of: column.Floats(&c.BudgetUsed), Null: &c.BudgetNull, Since: 6,
			Count: column.IfChanged, Doc: "hours used in the period, as of the last cycle in which anything of the " +
				"plan changed or another hundredth of a budget was used"})
	for i := range c.Slot {
		l := slotLines[i]
		l.Of, l.Null = column.Ints(&c.Slot[i]), &c.SlotNull
		if l.Name == "slot_limit" {
			l.Null = &c.LimitNull
		}
		lines = append(lines, l)
	}
	return column.Schema{Name: "consumers", Lines: lines}
}

const heldAs = "what it holds as its own, from share pools, from lenders; hybrid: up to owned, none, above owned"

// slotLines are the columns of consumers that only slot plans fill.
var slotLines = [...]column.Line{
	{Name: "owned_configured", Doc: "slots, as all that follow; null in MD plans. `owns` of the policy"},
	{Name: "owned", Doc: "what it owns of the slots there are now: less than configured when slots are missing; " +
		"hybrid: its part of them, more or less, rounded down"},
	{Name: "reserved", Doc: "the part of it that is never lent; hybrid: that is kept free"},
	{Name: "slot_limit", Was: "limit", Until: 1, Doc: "`share.max`; hybrid: `limit`; null: none"},
	{Name: "static_quota", Doc: "its part of the share pools, whoever is busy; hybrid: as owned"},
	{Name: "quota", Doc: "what it owns and can use + its part of the share pools under today's demand + what it " +
		"borrowed; hybrid: its part of all slots under today's demand"},
	{Name: "held_owned", Doc: heldAs}, {Name: "held_shared", Doc: heldAs}, {Name: "held_borrowed", Doc: heldAs},
	{Name: "lent", Doc: "its slots that others hold; hybrid: 0"},
	{Name: "free", Doc: "its own slots that nobody holds or is promised; hybrid: what its reserve keeps free, or " +
		"when nobody is short its part of the idle slots"},
}

const slotColumns = len(slotLines)

// AddSlots appends a row's figures of a slot plan, by slotLines, in slots; without is whether no limit is set. What it
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

// ExtendMD adds rows of an MD plan: what only slot plans have is null in them, what they lost is 0, they have no
// budgets, the caller sets all other values. It gives the number of the first.
func (c *Consumers) ExtendMD(rows int) (first int) {
	first = c.Schema().Extend(rows)
	for i := range c.Slot {
		clear(c.Slot[i][first:])
	}
	clear(c.UnitSecondsLost[first:])
	clear(c.Budget[first:])
	clear(c.BudgetUsed[first:])
	for row := first; row < first+rows; row++ {
		c.BudgetDimension.Code[row], c.BudgetNull[row] = Null, true
		c.SlotNull[row], c.LimitNull[row] = true, true
	}
	return first
}

// Amounts has a row for every consumer and dimension of every MD plan.
type Amounts struct {
	Plan, Consumer, Dimension                                   Coded
	Configured, Owned, Reserved, Held, Lent, StaticQuota, Limit []int64
	LimitNull                                                   []bool
}

// Schema declares the columns.
func (a *Amounts) Schema() column.Schema {
	const owned = "what it owns of hosts, and what of that is never to be lent"
	return column.Schema{Name: "amounts", Lines: []column.Line{
		planLine(&a.Plan, ""),
		consumerLine(&a.Consumer, ""),
		dimensionLine(&a.Dimension),
		{Name: "configured", Of: column.Ints(&a.Configured),
			Doc: "what its rules ask for: what they got and, where they are not met, what is missing"},
		{Name: "owned", Of: column.Ints(&a.Owned), Doc: owned},
		{Name: "reserved", Of: column.Ints(&a.Reserved), Doc: owned},
		{Name: "held", Of: column.Ints(&a.Held), Doc: "what it holds, wherever"},
		{Name: "lent", Of: column.Ints(&a.Lent), Doc: "what others hold on its hosts and parts of hosts"},
		{Name: "static_quota", Of: column.Ints(&a.StaticQuota),
			Doc: "its part of the pool when every leaf wants without end"},
		{Name: "share_limit", Of: column.Ints(&a.Limit), Null: &a.LimitNull, Was: "limit", Until: 1, Doc: "null: none"},
	}}
}

// Extend adds rows, whose values the caller sets, and gives the number of the first.
func (a *Amounts) Extend(rows int) (first int) { return a.Schema().Extend(rows) }

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

// Schema declares the columns.
func (s *Shares) Schema() column.Schema {
	const units = "held from the pool; held from it or short"
	return column.Schema{Name: "shares", Lines: []column.Line{
		planLine(&s.Plan, ""),
		consumerLine(&s.Consumer, ""),
		{Name: "pool", Of: &s.Pool, Dict: consumers},
		{Name: "ratio", Of: column.Ints(&s.Ratio)},
		{Name: "priority", Of: column.Ints(&s.Priority)},
		{Name: "usage", Of: column.Floats(&s.Usage),
			Doc: "the part of the pool it holds: Σ units ÷ the units of that size that the empty pool takes"},
		{Name: "usage_demand", Of: column.Floats(&s.UsageDemand), Doc: "the part that it holds or wants"},
		{Name: "usage_quota", Of: column.Floats(&s.UsageQuota), Doc: "the part it deserves of what is used"},
		{Name: "units_held", Of: column.Ints(&s.UnitsHeld), Doc: units},
		{Name: "units_wanted", Of: column.Ints(&s.UnitsWanted), Doc: units},
		{Name: "decayed_usage", Of: column.Floats(&s.DecayedUsage), Null: &s.HistoryNull, Since: 7,
			Count: column.IfChanged,
			Doc:   "the usage averaged over the past, in a plan that [remembers](memory.md); null: it does not"},
		{Name: "effective_ratio", Of: column.Floats(&s.EffectiveRatio), Null: &s.HistoryNull, Since: 7,
			Count: column.Uncounted,
			Doc: "what of the ratio counts for that; both as of the last cycle in which that was another by a " +
				"hundredth for anybody in the plan, or another hundredth of the pool was used"},
	}}
}

// Extend adds rows, whose values the caller sets, and gives the number of the first.
func (s *Shares) Extend(rows int) (first int) { return s.Schema().Extend(rows) }

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
	Since      []int64
	SinceNull  []bool
}

// Schema declares the columns.
func (s *Shortfalls) Schema() column.Schema {
	return column.Schema{Name: "shortfalls", Lines: []column.Line{
		planLine(&s.Plan, ""),
		consumerLine(&s.Consumer, ""),
		allocationLine(&s.Allocation, ""),
		subLine(&s.Sub, ""),
		{Name: "units_short", Of: column.Ints(&s.UnitsShort)},
		{Name: "reason", Of: &s.Reason, Words: Reasons, Doc: "below"},
		{Name: "dimension", Of: &s.Dimension, Nullable: true, Doc: "the scarce one"},
		{Name: "blocker", Of: &s.Blocker, Dict: consumers, Nullable: true, Doc: "the consumer that stands in the way"},
		{Name: "detail", Of: &s.Detail, Nullable: true, Doc: "in words and numbers"},
		{Name: "until", Of: column.Ints(&s.Until), Type: Time, Null: &s.UntilNull, Doc: "when it may end"},
		{Name: "since", Of: column.Ints(&s.Since), Type: Time, Null: &s.SinceNull, Since: 10, Count: column.Uncounted,
			Doc: "the time of the cycle since which the sub-allocation has been short without a break; null in " +
				"cycles of earlier versions"},
	}}
}

// Extend adds rows, whose values the caller sets, and gives the number of the first.
func (s *Shortfalls) Extend(rows int) (first int) { return s.Schema().Extend(rows) }
