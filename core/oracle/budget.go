package oracle

import (
	"fmt"
	"math/big"
	"slices"
	"sort"
	"time"

	"github.com/stintd/stint/core/plan"
)

// Budgets (BUD-1, BUD-2), by docs/budgets.md.

// purse is a consumer's budget in a plan.
type purse struct{ plan, path string }

// spending is what was used of a budget.
type spending struct {
	budget plan.Budget
	used   *big.Int // of what it counts, times µs, in the period of the last cycle
	rate   int64    // of what it counts, held from pools when the last cycle ended
}

// budgets are those of a plan by consumer, nil: none.
func (c *Cluster) budgets(in int) []plan.Budget {
	if in < len(c.p.MDPlans) {
		return c.p.MDPlans[in].Budget
	}
	return c.p.SlotPlans[in-len(c.p.MDPlans)].Budget
}

// eachBudget calls f for each budget.
func (c *Cluster) eachBudget(f func(in int, n plan.Node, key purse, b plan.Budget)) {
	for in := range c.order {
		for n, b := range c.budgets(in) {
			if b.Hours > 0 {
				f(in, plan.Node(n), purse{c.terms(in).name, c.p.Path[n]}, b)
			}
		}
	}
}

// spend counts what was held since the cycle at a time, and finds out whose budgets are used up.
func (c *Cluster) spend(lastUS int64) {
	c.broke = map[int]map[plan.Node]bool{}
	c.eachBudget(func(in int, n plan.Node, key purse, b plan.Budget) {
		s, ok := c.purses[key]
		if !ok || s.budget.What != b.What || s.budget.Per != b.Per {
			s = &spending{used: new(big.Int)}
			c.purses[key] = s
		}
		s.budget = b
		now := c.period(b.Per, c.nowUS)
		if c.period(b.Per, lastUS) != now {
			s.used = new(big.Int)
		}
		from := lastUS + int64(sort.Search(int(c.nowUS-lastUS), func(us int) bool {
			return c.period(b.Per, lastUS+int64(us)) == now
		}))
		s.used.Add(s.used, new(big.Int).Mul(big.NewInt(s.rate), big.NewInt(c.nowUS-from)))
		if c.broke[in] == nil {
			c.broke[in] = map[plan.Node]bool{}
		}
		c.broke[in][n] = s.used.Cmp(new(big.Int).Mul(big.NewInt(b.Hours), big.NewInt(3600e6))) >= 0
	})
}

// period names the period that a time is in.
func (c *Cluster) period(per plan.Period, us int64) string {
	t := time.UnixMicro(c.startUS + us).In(c.p.Location)
	switch per {
	case plan.PerDay:
		return t.Format("2006-01-02")
	case plan.PerMonth:
		return t.Format("2006-01")
	}
	year, week := t.ISOWeek()
	return fmt.Sprint(year, " ", week)
}

// rateAll finds what each budget counts of what is held from pools.
func (c *Cluster) rateAll() {
	c.eachBudget(func(in int, n plan.Node, key purse, b plan.Budget) {
		s := c.purses[key]
		s.rate = 0
		for _, u := range c.units() {
			leaf := u.leaf()
			if u.sub.alloc.plan != in || gone(leaf) || leaf < n || leaf >= c.p.End[n] {
				continue
			}
			if in < len(c.p.MDPlans) {
				if u.origin == owned || !slices.Contains(c.way(c.p.Parent[n]), u.pool) && u.pool != plan.Root {
					continue
				}
			} else if u.origin != sharePool && u.origin != borrowed {
				continue
			}
			if b.Of == plan.BudgetOfUnits {
				s.rate++
			} else {
				s.rate += u.sub.size[b.Of]
			}
		}
	})
}

// renamePurses gives what was used to those whom a policy renames consumers to.
func (c *Cluster) renamePurses(p *plan.Policy, heir map[string]string) {
	was := c.purses
	c.purses = map[purse]*spending{}
	for key, s := range was {
		if to, ok := heir[key.path]; ok {
			c.purses[purse{key.plan, to}] = s
		}
	}
	for key, s := range was {
		if _, taken := c.purses[key]; !taken && heir[key.path] == "" {
			c.purses[key] = s
		}
	}
	for key, s := range c.purses { // one that has no budget for a while begins anew
		kept := false
		for in := range c.order {
			at := planNamed(p, key.plan, in < len(c.p.MDPlans))
			if n, ok := p.Find(key.path); ok && at >= 0 && c.terms(in).name == key.plan {
				list := p.SlotPlans
				budgets := []plan.Budget(nil)
				if at < len(p.MDPlans) {
					budgets = p.MDPlans[at].Budget
				} else {
					budgets = list[at-len(p.MDPlans)].Budget
				}
				kept = kept || budgets != nil && budgets[n].Hours > 0 && budgets[n].What == s.budget.What &&
					budgets[n].Per == s.budget.Per
			}
		}
		if !kept {
			delete(c.purses, key)
		}
	}
}

// usedUp is the budget nearest to a leaf, of those on a way from it up, that is used up; plan.None: none is.
func (f *frame) usedUp(way []plan.Node) plan.Node {
	for _, n := range slices.Backward(way) {
		if f.broke[f.in][n] {
			return n
		}
	}
	return plan.None
}

// hoursUsed is what was used of a consumer's budget, in hours; ok is false where it has none.
func (c *Cluster) hoursUsed(in int, n plan.Node) (of plan.Budget, used float64, ok bool) {
	list := c.budgets(in)
	if list == nil || list[n].Hours == 0 {
		return of, 0, false
	}
	hours, _ := new(big.Rat).SetFrac(c.purses[purse{c.terms(in).name, c.p.Path[n]}].used, big.NewInt(3600e6)).Float64()
	return list[n], hours, true
}

// renewed is when the period after the one under way begins, in µs.
func (c *Cluster) renewed(in int, n plan.Node) int64 {
	per := c.budgets(in)[n].Per
	now := c.period(per, c.nowUS)
	return c.nowUS + int64(sort.Search(32*24*3600e6, func(us int) bool {
		return c.period(per, c.nowUS+int64(us)) != now
	}))
}
