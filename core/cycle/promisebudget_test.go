package cycle_test

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// broke is whose budgets are used up, and by what ratios count, as text: what changes with the time alone.
func (p *player) broke() (text string) {
	for i := range p.engine.Plans {
		text += fmt.Sprint(p.engine.Plans[i].Name, p.engine.Plans[i].Spent, p.engine.Plans[i].History.Factor)
	}
	return text
}

// remembers tells whether a plan lowers ratios by what was used.
func (p *player) remembers() bool {
	return slices.ContainsFunc(p.engine.Plans, func(s cluster.Plan) bool { return len(s.History.Factor) > 0 })
}

// spent tells whether the budget of a consumer of a plan, or of one above it, is used up.
func (p *player) spent(name, path string) bool {
	for i := range p.engine.Plans {
		s := &p.engine.Plans[i]
		if n, ok := p.policy.Find(path); ok && s.Name == name &&
			s.SpentBelow(&p.policy.Tree, n, plan.Root) != plan.None {
			return true
		}
	}
	return false
}

// budgets holds what the table consumers tells of budgets against the oracle: it may be as of some cycles ago, while
// less than a hundredth more was used since.
func (p *player) budgets(t *rapid.T) {
	got := map[string]int{}
	for i := range p.out.Consumers.Held {
		got[fmt.Sprint(p.out.Consumers.Plan.At(i), " ", p.out.Consumers.Consumer.At(i))] = i
	}
	for _, c := range p.last.Consumers {
		i, ok := got[fmt.Sprint(c.Plan, " ", c.Path)]
		if !ok {
			t.Fatalf("cycle %d: no row of %s", p.cycles, c.Path)
		}
		o, what := &p.out.Consumers, c.Budget.What
		if c.Budget.Of == plan.BudgetOfUnits || c.Budget.Hours == 0 {
			what = ""
		}
		if o.BudgetNull[i] != (c.Budget.Hours == 0) || o.Budget[i] != c.Budget.Hours ||
			o.BudgetDimension.At(i) != what {
			t.Fatalf("cycle %d: %s has a budget of %d %s, the oracle says %v", p.cycles, c.Path, o.Budget[i],
				o.BudgetDimension.At(i), c.Budget)
		}
		if late := c.BudgetUsed - o.BudgetUsed[i]; late < -1e-6 || late > float64(c.Budget.Hours)/100+1e-6 {
			t.Fatalf("cycle %d: %s has used %v of %v, the oracle says %v", p.cycles, c.Path, o.BudgetUsed[i], c.Budget,
				c.BudgetUsed)
		}
		if c.Budget.Hours > 0 && c.BudgetUsed >= float64(c.Budget.Hours) {
			p.changes["budget used up"]++
		}
	}
}
