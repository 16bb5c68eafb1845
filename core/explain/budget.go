package explain

import (
	"fmt"
	"strconv"

	"github.com/stintd/stint/core/plan"
)

// usedUp tells whose budget is used up, and what of it was used.
func (p *part) usedUp(s *Shortfall) string {
	n, ok := p.tree().Find(s.Blocker)
	if !ok || p.member == nil {
		return with("a budget is used up", s.Detail)
	}
	whose := "its budget"
	if s.Blocker != s.Consumer {
		whose = "the budget of " + s.Blocker
	}
	budget := p.budgetOf(n)
	if budget.Hours == 0 {
		return with(whose+" is used up", s.Detail)
	}
	return fmt.Sprintf("%s of %s is used up%s: nothing new of pools is for it; what it holds stays", whose, budget,
		p.ofBudget(n))
}

// budgetOf is a consumer's budget in the plan, of 0 hours where it has none.
func (p *part) budgetOf(n plan.Node) plan.Budget {
	var list []plan.Budget
	if p.md != nil {
		list = p.md.Budget
	} else if p.slots != nil {
		list = p.slots.Budget
	}
	if list == nil {
		return plan.Budget{}
	}
	return list[n]
}

// ofBudget tells what of a consumer's budget is used, as the table has it.
func (p *part) ofBudget(n plan.Node) string {
	if p.row[n] < 0 || p.table.null("budget_used", p.row[n]) {
		return ""
	}
	return " (" + hours(p.table.real("budget_used", p.row[n])) + " used)"
}

// hours is a number of hours, whole from ten on.
func hours(h float64) string {
	if h < 10 {
		return strconv.FormatFloat(float64(int64(h*10))/10, 'f', -1, 64)
	}
	return grouped(int64(h))
}

// budgeted tells what a consumer has used of its budget, and those above it that have one.
func (p *part) budgeted() {
	for n := p.node; n > plan.Root; n = p.tree().Parent[n] {
		budget := p.budgetOf(n)
		if budget.Hours == 0 || p.row[n] < 0 || p.table.null("budget_used", p.row[n]) {
			continue
		}
		used := p.table.real("budget_used", p.row[n])
		text := fmt.Sprintf("has used %s of its budget of %s", hours(used), budget)
		if n != p.node {
			text = fmt.Sprintf("%s, and with it all below, has used %s of its budget of %s", p.tree().Path[n],
				hours(used), budget)
		}
		if used >= float64(budget.Hours) {
			text += ", which is used up: until the next period it gets nothing new of pools"
		}
		p.Points = append(p.Points, Point{Figure: "budget", Text: text, Rules: []string{"BUD-1", "BUD-2"}})
	}
}
