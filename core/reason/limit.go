package reason

import (
	"fmt"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/ownership"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/pool"
	"github.com/stintd/stint/core/share"
)

// stop is what keeps a leaf's units from pools: a ratio of 0, a budget that is used up, or a share limit.
type stop struct {
	depth int32   // of the deepest pool that exists for the leaf and is stopped, as all above it are; -1: none is
	all   bool    // every pool that exists for it is
	why   verdict // of the deepest
}

// stops tells which pools are stopped for units of a leaf. O(depth² × dimensions).
func (r *Reasons) stops(leaf plan.Node, shape cluster.ShapeID) stop {
	e, s := r.env, stop{depth: -1, all: true}
	if !r.limited {
		s.all = false
		return s
	}
	for top := e.State.Policy.Parent[leaf]; top != plan.None; top = e.State.Policy.Parent[top] {
		if !e.Exists(top, leaf) {
			continue
		}
		if why, stopped := r.stopped(leaf, shape, top); stopped {
			s.depth, s.why = e.State.Policy.Depth[top], why
			return s
		}
		s.all = false
	}
	return s
}

// stopped is the ratio of 0 that keeps units of a leaf from a pool, the nearest to it, else the budget that is used up,
// else the share limit (D-26): as consumers held once everything was granted (D-23), else with what is promised now.
func (r *Reasons) stopped(leaf plan.Node, shape cluster.ShapeID, top plan.Node) (v verdict, yes bool) {
	e := r.env
	for n := leaf; n != top; n = e.State.Policy.Parent[n] {
		if e.Window.Ratio[n] == 0 {
			v = because(decision.ReasonShareLimit, "share ratio 0")
			v.blocker = n
			return v, true
		}
	}
	if n := e.Spent(top, leaf); n != plan.None {
		v = because(decision.ReasonBudget, "")
		v.detail, v.untilUS = e.State.Spending(e.Plan, n)
		v.blocker = n
		return v, true
	}
	for _, limits := range []*pool.Limits{e.Granted, e.Limits} {
		if n, d := limits.Over(&e.Env, leaf, top, e.State.Shape.Size(shape)); n != plan.None {
			v = because(decision.ReasonShareLimit,
				fmt.Sprintf("holds %d of at most %d %s from pools", limits.Held(n, d),
					e.Window.Limit[d][n], e.State.Policy.Dimensions[d]))
			v.blocker, v.dimension = n, int32(d)
			return v, true
		}
	}
	return v, false
}

// isLimited tells whether the plan has a share limit, a ratio of 0, which counts as a limit of 0 (MD-18), or a budget
// that is used up.
func (e *Env) isLimited() bool {
	for n, in := range e.Plan.Terms.Member {
		if in && n != int(plan.Root) && e.Window.Ratio[n] == 0 {
			return true
		}
	}
	return e.Limits != nil || e.Plan.Spent != nil
}

// unowned tells whether a rule of what a leaf owns that is not met stands against a unit: what it holds as its own is,
// with the unit, within what its rules ask for (docs/ownership.md).
func (r *Reasons) unowned(leaf plan.Node, shape cluster.ShapeID) (v verdict, yes bool) {
	e, deeds := r.env, &r.env.Plan.Deeds
	if deeds.Unmet == nil || deeds.Unmet[leaf] == ownership.None {
		return v, false
	}
	own := e.Views.Usage.From(leaf, cluster.NoID)
	for d, amount := range e.State.Shape.Size(shape) {
		if amount == 0 {
			continue
		}
		for i, key := range own.Key {
			amount = share.Add(amount, share.Mul(own.Units[i], e.State.Shape.Size(cluster.ShapeID(key.B))[d]))
		}
		if amount > deeds.Configured[d][leaf] {
			return v, false
		}
	}
	rule := e.Window.Own[leaf][deeds.Unmet[leaf]]
	detail := fmt.Sprintf("the rule on line %d of the policy is not met", rule.Line)
	return because(decision.ReasonOwnershipUnmet, detail), true
}

// rival is what keeps a unit from a leaf in a pool that is used up, that nearest to the root which exists for it and
// has any capacity for it: a sibling of higher share priority on its way from there, its own quota, or nothing but the
// pool's size.
func (r *Reasons) rival(leaf plan.Node, shape cluster.ShapeID) (code int32, blocker plan.Node) {
	e, t := r.env, &r.env.State.Policy.Tree
	top := plan.Root
	for n := leaf; n != plan.Root && e.capacity(plan.Root, shape) == 0; {
		if n = t.Parent[n]; e.Exists(n, leaf) && e.capacity(n, shape) > 0 {
			top = n
		}
	}
	f := e.Figures.Of(top)
	unit, over := share.Fraction(1, e.capacity(top, shape)), false
	blocker = plan.None
	for n := leaf; n != top; n = t.Parent[n] {
		if b := r.superior(f, n); b != plan.None {
			blocker = b // the one nearest to the root counts
		}
		usage := f.Usage[n-top]
		over = over || usage > 0 && usage-unit >= f.Quota[n-top]
	}
	switch {
	case blocker != plan.None:
		return decision.ReasonLowerPriority, blocker
	case over:
		return decision.ReasonOverQuota, plan.None
	}
	return decision.ReasonPoolExhausted, plan.None
}

// superior is the sibling of higher share priority that uses most of a pool.
func (r *Reasons) superior(f *pool.Figures, n plan.Node) plan.Node {
	e, best := r.env, plan.None
	for k := e.State.Policy.First[e.State.Policy.Parent[n]]; k != plan.None; k = e.State.Policy.Next[k] {
		usage := f.Usage[k-f.Pool]
		if e.Window.Priority[k] > e.Window.Priority[n] && usage > 0 &&
			(best == plan.None || usage > f.Usage[best-f.Pool]) {
			best = k
		}
	}
	return best
}
