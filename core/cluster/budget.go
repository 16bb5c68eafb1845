package cluster

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// hourUS is an hour in µs.
const hourUS = 60 * 60 * 1_000_000

// hoursMost is where hours used saturate.
const hoursMost = math.MaxInt64 / 128

// budgetMarks is into how many parts a budget is divided: the tables tell what was used when that passes another.
const budgetMarks = 100

// Budgets is what consumers of a plan used of their budgets in the period under way (BUD-1), a row for each that has
// one, in tree order.
type Budgets struct {
	Consumer []ConsumerID
	Used     []int64 // whole hours of what the budget counts
	rest     []int64 // and what it counts × µs, less than an hour's
	rate     []int64 // what it counts of what was held from pools when the last cycle ended
	told     []int64 // Used as the tables have it
	toldRest []int64
}

// budgetRows adds a row for each consumer of a plan that has a budget. What was used of a budget of the same measure
// goes on, by consumer; of a budget that is new nothing was.
func (s *State) budgetRows(p, was *Plan) {
	b := &p.Budgets
	for n, budget := range p.Terms.Budget {
		if budget.Hours == 0 {
			continue
		}
		c := s.ConsumerOf[n]
		b.Consumer = append(b.Consumer, c)
		row := [5]int64{}
		if was != nil {
			row = was.budgetOf(c, budget)
		}
		for i, column := range b.columns() {
			*column = append(*column, row[i])
		}
	}
}

// columns are the columns of figures.
func (b *Budgets) columns() [5]*[]int64 {
	return [5]*[]int64{&b.Used, &b.rest, &b.rate, &b.told, &b.toldRest}
}

// budgetOf is a consumer's row, if it has one that is of the same measure as a budget.
func (p *Plan) budgetOf(c ConsumerID, budget plan.Budget) (row [5]int64) {
	i := 0
	for _, was := range p.Terms.Budget {
		if was.Hours == 0 {
			continue
		}
		if p.Budgets.Consumer[i] == c && was.SameMeasure(budget) {
			for k, column := range p.Budgets.columns() {
				row[k] = (*column)[i]
			}
			return row
		}
		i++
	}
	return row
}

// inheritBudgets gives what was used of budgets to the consumers that others are renamed to.
func (p *Plan) inheritBudgets(heir map[ConsumerID]ConsumerID) { inherit(p.Budgets.Consumer, heir) }

// inherit replaces consumers by those that they are renamed to. NoID replaces a consumer whose name another takes, and
// that has no other name.
func inherit(column []ConsumerID, heir map[ConsumerID]ConsumerID) {
	taken := map[ConsumerID]bool{}
	for _, to := range heir {
		taken[to] = true
	}
	for i, c := range column {
		if to, ok := heir[c]; ok {
			column[i] = to
		} else if taken[c] {
			column[i] = NoID
		}
	}
}

// chargeBudgets adds to each budget what was held since the last cycle, in the period of now, and finds out which are
// used up. A plan of which a budget became that, or is no more, has changed. O(budgets + consumers of plans with any).
func (s *State) chargeBudgets(nowUS int64) {
	for i := range s.Plans {
		p := &s.Plans[i]
		if len(p.Budgets.Consumer) == 0 {
			p.Spent = nil
			continue
		}
		var spent []bool
		for row, n := 0, 0; n < len(p.Terms.Budget); n++ {
			budget := p.Terms.Budget[n]
			if budget.Hours == 0 {
				continue
			}
			was := p.Budgets.Used[row] >= budget.Hours
			if s.Cycle > 0 {
				renewed := p.Budgets.charge(row, s.NowUS, nowUS, budget.Per.Begin(nowUS, s.Policy.Location))
				p.Dirty = p.Dirty || renewed
			}
			is := p.Budgets.Used[row] >= budget.Hours
			if is && spent == nil {
				spent = make([]bool, s.Policy.Len())
			}
			if is {
				spent[n] = true
			}
			if is != was {
				p.Dirty = true
				if p.MD != nil {
					s.stir(p)
				}
			}
			row++
		}
		p.Spent = spent
	}
}

// charge adds what a row's consumer held from one instant to another, or from when the period began, with which what
// was used before is forgotten. It tells whether that was so.
func (b *Budgets) charge(row int, fromUS, toUS, beginUS int64) (renewed bool) {
	if renewed = beginUS > fromUS; renewed {
		b.Used[row], b.rest[row], fromUS = 0, 0, beginUS
	}
	hi, lo := bits.Mul64(uint64(b.rate[row]), uint64(toUS-fromUS))
	lo, carry := bits.Add64(lo, uint64(b.rest[row]), 0)
	if hi += carry; hi >= hourUS {
		b.Used[row], b.rest[row] = hoursMost, 0
		return renewed
	}
	hours, rest := bits.Div64(hi, lo, hourUS)
	b.Used[row], b.rest[row] = b.Used[row]+int64(min(hours, uint64(hoursMost-b.Used[row]))), int64(rest)
	return renewed
}

// NextBudget is when a budget of a plan is used up next by what is held, or renewed, after the last cycle, or before
// where that is earlier. O(budgets).
func (s *State) NextBudget(before int64) int64 {
	for i := range s.Plans {
		p, row := &s.Plans[i], 0
		for _, budget := range p.Terms.Budget {
			if budget.Hours == 0 {
				continue
			}
			before = min(before, budget.Per.End(s.NowUS, s.Policy.Location),
				p.Budgets.usedUpAt(row, budget.Hours, s.NowUS))
			row++
		}
	}
	return before
}

// usedUpAt is when a row's budget will be used up by what its consumer held when a cycle ended; math.MaxInt64 where
// that is never, or was before.
func (b *Budgets) usedUpAt(row int, hours, fromUS int64) int64 {
	left, rate := hours-b.Used[row], b.rate[row]
	if left <= 0 || rate <= 0 {
		return math.MaxInt64
	}
	hi, lo := bits.Mul64(uint64(left), hourUS)
	lo, borrow := bits.Sub64(lo, uint64(b.rest[row]), 0)
	lo, carry := bits.Add64(lo, uint64(rate-1), 0)
	if hi += carry - borrow; hi >= uint64(rate) {
		return math.MaxInt64
	}
	lasts, _ := bits.Div64(hi, lo, uint64(rate))
	return saturatingAdd(fromUS, int64(min(lasts, math.MaxInt64)))
}

// tellBudgets makes what was used of a budget what the tables tell, where another hundredth of it is used. What the
// tables tell follows from that alone, and not from what else of a plan is decided anew. O(budgets).
func (s *State) tellBudgets() {
	for i := range s.Plans {
		p, row := &s.Plans[i], 0
		b := &p.Budgets
		for _, budget := range p.Terms.Budget {
			if budget.Hours == 0 {
				continue
			}
			if mark(b.Used[row], b.rest[row], budget.Hours) != mark(b.told[row], b.toldRest[row], budget.Hours) {
				b.told[row], b.toldRest[row] = b.Used[row], b.rest[row]
				p.Dirty = true
			}
			row++
		}
	}
}

// mark is how many hundredths of a budget are used.
func mark(used, rest, hours int64) int64 { return (used*budgetMarks + rest*budgetMarks/hourUS) / hours }

// rateBudgets computes what consumers hold from pools, by what their budgets count. O(pairs × depth), in a slot plan
// O(holdings of consumers with budgets).
func (s *State) rateBudgets(p *Plan) {
	b := &p.Budgets
	if len(b.Consumer) == 0 {
		return
	}
	clear(b.rate)
	rowOf := make([]int, s.Policy.Len())
	for i, c := range b.Consumer {
		rowOf[s.NodeOf[c]] = i + 1
	}
	add := func(n plan.Node, shape ShapeID, units int64) {
		if i := rowOf[n] - 1; i >= 0 {
			if of := p.Terms.Budget[n].Of; of != plan.BudgetOfUnits {
				units = saturatingMul(units, s.Shape.Size(shape)[of])
			}
			b.rate[i] = saturatingAdd(b.rate[i], units)
		}
	}
	if p.Slots != nil {
		for _, c := range b.Consumer {
			s.eachPooled(p, s.NodeOf[c], add)
		}
		return
	}
	for i, leaf := range p.Pairs.Leaf {
		units, pool := p.Pairs.Units[i], p.Pairs.Pool[i]
		if units == 0 || pool == NoID {
			continue
		}
		for n := leaf; n != plan.None && n != s.NodeOf[pool]; n = s.Policy.Parent[n] {
			add(n, p.Pairs.Shape[i], units)
		}
	}
}

// eachPooled calls f with the units that a leaf of a slot plan holds from share pools or as loans.
func (s *State) eachPooled(p *Plan, leaf plan.Node, f func(n plan.Node, shape ShapeID, units int64)) {
	for a := p.FirstAlloc[leaf]; a != NoID; a = s.Alloc.Next[a] {
		for sub := s.Alloc.First[a]; sub != NoID; sub = s.Sub.Next[sub] {
			for q := s.Sub.First[sub]; q != NoID; q = s.Holding.NextOfSub[q] {
				switch s.Holding.Origin[q] {
				case decision.OriginSharePool, decision.OriginBorrowed:
					f(leaf, s.Sub.Shape[sub], s.Holding.Units[q])
				}
			}
		}
	}
}

// Told is what a row's consumer had used when the tables told it last, in hours.
func (b *Budgets) Told(row int) float64 { return hours(b.told[row], b.toldRest[row]) }

// Spending tells which budget of a consumer is used up, and when its next period begins.
func (s *State) Spending(p *Plan, n plan.Node) (detail string, untilUS int64) {
	budget := p.Terms.Budget[n]
	detail = fmt.Sprintf("its budget of %s is used up", budget)
	return detail, budget.Per.End(s.orphanUS, s.Policy.Location)
}

// hours is so many hours and parts of one.
func hours(whole, rest int64) float64 { return float64(whole) + float64(rest)/hourUS }

// SpentBelow is the consumer nearest to a leaf, below the consumer of a pool, whose budget is used up: the leaf gets
// nothing new from the pool. plan.None: there is none. O(depth).
func (p *Plan) SpentBelow(t *plan.Tree, leaf, pool plan.Node) plan.Node {
	if p.Spent == nil {
		return plan.None
	}
	for n := leaf; n != pool; n = t.Parent[n] {
		if p.Spent[n] {
			return n
		}
	}
	return plan.None
}
