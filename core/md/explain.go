package md

import (
	"fmt"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/ownership"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// reason is why a sub-allocation's next unit is not granted (docs/decisions.md, D-7).
type reason struct {
	code      int32     // decision.Reasons
	dimension int32     // index into the policy's dimensions, decision.Null when none is to blame
	blocker   plan.Node // plan.None when nobody is
	detail    string
	until     int64     // µs, 0: not known
	top       plan.Node // whose pool a limit is about
}

// fits is the code of "nothing about the unit itself stands against it": then priority and quota decide.
const fits = -1

// why gives the reason of a sub-allocation that is short (D-7, docs/shares.md), after judge.
func (m *Planner) why(one *judged) reason {
	leaf, sub, bound := one.leaf, one.sub, one.bound
	switch {
	case m.p.TooSmall(m.s, sub):
		return reason{code: decision.ReasonTooSmall, dimension: decision.Null, blocker: plan.None}
	case bound.code == decision.ReasonNoHostMatches:
		return bound
	case one.stop.all && len(m.owned(leaf)) == 0:
		return one.stop.reason
	}
	switch bound.code {
	case decision.ReasonTooBig, decision.ReasonMaxPerHost, decision.ReasonGraceFilter:
		return bound
	}
	if r, unmet := m.unmet(leaf, sub); unmet {
		return r
	}
	switch {
	case one.stop.all:
		return one.stop.reason
	case bound.code == decision.ReasonShareLimit:
		r, _ := m.stopped(leaf, sub, bound.top)
		return r
	case bound.code != fits:
		return bound
	case m.fairness.denied[sub]:
		return reason{code: decision.ReasonReclaimBudget, dimension: decision.Null, blocker: plan.None, detail: m.p.BudgetDetail()}
	}
	bound.code, bound.blocker = m.rival(leaf, m.s.Sub.Shape[sub])
	return bound
}

// stop is what keeps a unit from pools: a share limit or a ratio of 0.
type stop struct {
	depth  int32 // of the deepest pool that exists for it and is stopped; -1: none is
	all    bool  // every pool that exists for it is stopped
	reason reason
}

// stops tells from which pools a share limit, or a ratio of 0, keeps a unit of a sub-allocation. It keeps it from all above one, too.
func (m *Planner) stops(leaf plan.Node, sub cluster.SubID) stop {
	s := stop{depth: -1}
	if len(m.pooled) == 0 {
		return s
	}
	s.all = true
	for n := m.policy.Parent[leaf]; n != plan.None; n = m.policy.Parent[n] {
		if m.pools.index[n] == cluster.NoID || !m.exists(m.poolAt(n), leaf) {
			continue
		}
		if r, stopped := m.stopped(leaf, sub, n); stopped {
			s.depth, s.reason = m.policy.Depth[n], r
			return s
		}
		s.all = false
	}
	return s
}

// stopped tells whether a share limit, or a ratio of 0, keeps a unit of a sub-allocation from the pool of a consumer.
func (m *Planner) stopped(leaf plan.Node, sub cluster.SubID, top plan.Node) (r reason, limited bool) {
	for n := leaf; n != top; n = m.policy.Parent[n] {
		if m.set.Ratio[n] == 0 {
			return reason{code: decision.ReasonShareLimit, dimension: decision.Null, blocker: n, detail: "share ratio 0"}, true
		}
	}
	for _, pooled := range [][][]int64{m.pooled, m.claimed} { // as granted; then with what is promised since
		if n, d, over := m.overLimitOf(pooled, leaf, sub, top); over {
			return reason{code: decision.ReasonShareLimit, dimension: int32(d), blocker: n, detail: fmt.Sprintf("holds %d of at most %d %s from pools",
				pooled[d][n], m.limit(n, d), m.policy.Dimensions[d])}, true
		}
	}
	return r, false
}

// unmet tells whether a rule of what a leaf owns that is not met stands against a unit: what it holds as its own is,
// with the unit, within what its rules ask for.
func (m *Planner) unmet(leaf plan.Node, sub cluster.SubID) (r reason, yes bool) {
	deeds := &m.p.Deeds
	if deeds.Unmet == nil || deeds.Unmet[leaf] == ownership.None {
		return r, false
	}
	for d, u := range m.s.Size(sub) {
		if u == 0 {
			continue
		}
		for q := m.p.FirstPair[leaf]; q != cluster.NoID; q = m.p.Pairs.Next[q] {
			if m.p.Pairs.Pool[q] == cluster.NoID {
				u = share.Add(u, share.Mul(m.p.Pairs.Units[q], m.s.Shape.Size(m.p.Pairs.Shape[q])[d]))
			}
		}
		if u > deeds.Configured[d][leaf] {
			return r, false
		}
	}
	rule := m.set.Own[leaf][deeds.Unmet[leaf]]
	return reason{code: decision.ReasonOwnershipUnmet, dimension: decision.Null, blocker: plan.None,
		detail: fmt.Sprintf("the rule on line %d of the policy is not met", rule.Line)}, true
}

// rival tells what stands against a leaf in a pool that is used up, the one nearest to the root that exists for it and has any
// capacity: a sibling of higher share priority on its way from there, its own quota, or nothing but
// the pool's size.
func (m *Planner) rival(leaf plan.Node, shape cluster.ShapeID) (code int32, blocker plan.Node) {
	o := m.root()
	for n := leaf; n != plan.Root && m.capacity(m.root(), shape) == 0; {
		n = m.policy.Parent[n]
		if m.pools.index[n] != cluster.NoID && m.exists(m.poolAt(n), leaf) && m.capacity(m.poolAt(n), shape) > 0 {
			o = m.poolAt(n)
		}
	}
	unit, over := share.Fraction(1, m.capacity(o, shape)), false
	blocker = plan.None
	for n := leaf; n != o.node; n = m.policy.Parent[n] {
		if b := m.superior(o, n); b != plan.None {
			blocker = b // the one nearest to the root counts
		}
		usage := m.pools.usage[o.at(n)]
		over = over || usage > 0 && usage-unit >= m.pools.quota[o.at(n)]
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
func (m *Planner) superior(o *pool, n plan.Node) plan.Node {
	best := plan.None
	for c := m.policy.First[m.policy.Parent[n]]; c != plan.None; c = m.policy.Next[c] {
		usage := m.pools.usage[o.at(c)]
		if m.set.Priority[c] > m.set.Priority[n] && usage > 0 && (best == plan.None || usage > m.pools.usage[o.at(best)]) {
			best = c
		}
	}
	return best
}
