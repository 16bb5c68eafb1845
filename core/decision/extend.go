package decision

import "slices"

// extend adds rows to columns, whose values the caller sets, and gives the number of the first.
func extend(rows int, text []*Coded, ints ...*[]int64) (first int) {
	first = len(text[0].Code)
	for _, c := range text {
		c.Code = slices.Grow(c.Code, rows)[:first+rows]
	}
	for _, c := range ints {
		*c = slices.Grow(*c, rows)[:first+rows]
	}
	return first
}

// Extend adds rows, whose values the caller sets, and gives the number of the first.
func (g *Grants) Extend(rows int) (first int) { return extend(rows, g.text(), &g.Units) }

// Reserve makes room for rows.
func (g *Grants) Reserve(rows int) {
	first, text := g.Extend(rows), g.text()
	for _, c := range text {
		c.Code = c.Code[:first]
	}
	g.Units = g.Units[:first]
}

// text is the columns that are coded.
func (g *Grants) text() []*Coded {
	return []*Coded{&g.Plan, &g.Consumer, &g.Allocation, &g.Sub, &g.Source, &g.Host, &g.Origin, &g.Pool, &g.Lender,
		&g.Device}
}

// ExtendMD adds rows of an MD plan: what only slot plans have is null in them, what they lost is 0, they have no
// budgets, the caller sets all other values. It gives the number of the first.
func (c *Consumers) ExtendMD(rows int) (first int) {
	ints := []*[]int64{&c.Rank, &c.Demand, &c.Held, &c.Short}
	for i := range c.Slot {
		ints = append(ints, &c.Slot[i])
	}
	first = extend(rows, []*Coded{&c.Plan, &c.Consumer, &c.Policy}, ints...)
	for i := range c.Slot {
		clear(c.Slot[i][first:])
	}
	for range rows {
		c.UnitSecondsLost = append(c.UnitSecondsLost, 0)
		c.withoutBudget()
		c.SlotNull, c.LimitNull = append(c.SlotNull, true), append(c.LimitNull, true)
	}
	return first
}

// Extend adds rows, whose values the caller sets, and gives the number of the first.
func (a *Amounts) Extend(rows int) (first int) {
	first = extend(rows, []*Coded{&a.Plan, &a.Consumer, &a.Dimension},
		&a.Configured, &a.Owned, &a.Reserved, &a.Held, &a.Lent, &a.StaticQuota, &a.Limit)
	a.LimitNull = slices.Grow(a.LimitNull, rows)[:first+rows]
	return first
}

// Extend adds rows, whose values the caller sets, and gives the number of the first.
func (s *Shares) Extend(rows int) (first int) {
	first = extend(rows, []*Coded{&s.Plan, &s.Consumer, &s.Pool}, &s.Ratio, &s.Priority, &s.UnitsHeld, &s.UnitsWanted)
	for _, c := range []*[]float64{&s.Usage, &s.UsageDemand, &s.UsageQuota, &s.DecayedUsage, &s.EffectiveRatio} {
		*c = slices.Grow(*c, rows)[:first+rows]
	}
	s.HistoryNull = slices.Grow(s.HistoryNull, rows)[:first+rows]
	return first
}

// Extend adds rows, whose values the caller sets, and gives the number of the first.
func (s *Shortfalls) Extend(rows int) (first int) {
	first = extend(rows, []*Coded{&s.Plan, &s.Consumer, &s.Allocation, &s.Sub, &s.Reason, &s.Dimension, &s.Blocker,
		&s.Detail}, &s.UnitsShort, &s.Until)
	s.UntilNull = slices.Grow(s.UntilNull, rows)[:first+rows]
	return first
}

// Extend adds rows, whose values the caller sets, and gives the number of the first.
func (o *Ownership) Extend(rows int) (first int) {
	return extend(rows, []*Coded{&o.Plan, &o.Consumer, &o.Host, &o.Action, &o.Dimension}, &o.Amount)
}
