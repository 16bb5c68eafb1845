package md

import (
	"fmt"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/ownership"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
	"github.com/stintd/stint/vecpack"
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

// ask is what a reason of the unit itself depends on, in a view.
type ask struct {
	shape cluster.ShapeID
	need  cluster.NeedID
}

// reasons is what depends on shape, requirement and the parcels that a leaf may use alone, found once for each.
type reasons struct {
	view view
	mask []uint64
	last *reason // until all that leaves is gone
}

// fits is the code of "nothing about the unit itself stands against it": then priority and quota decide.
const fits = -1

// why gives the reason of a sub-allocation that is short (D-7, docs/shares.md). Leaves' usages, quotas
// and the parcels must be those after granting.
func (m *Planner) why(sub cluster.SubID) reason {
	leaf := m.s.Node(sub)
	stop, key := m.stops(leaf, sub), ask{m.s.Sub.Shape[sub], m.s.Sub.Need[sub]}
	nothing := stop.all && len(m.owned(leaf)) == 0
	if nothing {
		m.lookFreely() // only the requirement comes before
	} else {
		m.look(leaf, stop.depth)
	}
	found := m.reason.view.found
	bound, ok := found[key]
	if !ok {
		bound = m.ofUnit(key, nil)
		found[key] = bound
	}
	if bound.code == decision.ReasonNoHostMatches {
		return bound
	}
	if nothing {
		return stop.reason
	}
	if bound.code != decision.ReasonTooBig && m.s.Sub.MaxPerHost[sub] != plan.Unlimited {
		bound = m.ofUnit(key, m.blocked(sub))
	}
	switch bound.code {
	case decision.ReasonTooBig, decision.ReasonMaxPerHost, decision.ReasonGraceFilter:
		return bound
	}
	if r, unmet := m.unmet(leaf, sub); unmet {
		return r
	}
	switch {
	case stop.all:
		return stop.reason
	case bound.code == decision.ReasonShareLimit:
		r, _ := m.stopped(leaf, sub, bound.top)
		return r
	case bound.code != fits:
		return bound
	case m.fairness.denied[sub]:
		return reason{code: decision.ReasonReclaimBudget, dimension: decision.Null, blocker: plan.None,
			detail: fmt.Sprintf("the plan reclaims at most %d units a cycle", m.p.Terms.ReclaimBudget)}
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

// blocked is the parcels of hosts on which a sub-allocation holds its max_per_host.
func (m *Planner) blocked(sub cluster.SubID) []uint64 {
	set := make([]uint64, m.p.Parcels.Words())
	on := map[cluster.ParcelID]int64{}
	for q := m.s.Sub.First[sub]; q != cluster.NoID; q = m.s.Holding.NextOfSub[q] {
		k := m.p.Parcels.Begin(m.s.Holding.Parcel[q])
		if on[k] += m.s.Holding.Units[q]; on[k] >= m.s.Sub.MaxPerHost[sub] {
			for end := m.p.Parcels.End(k); k < end; k++ {
				set[k>>6] |= 1 << (uint(k) & 63)
			}
		}
	}
	return set
}

// ofUnit tells what stands against a unit of a shape and requirement by itself, in the view at hand:
// requirement, size, max_per_host (blocked parcels, nil: none), grace, pools that are stopped, scattered room.
// O(parcels × dimensions).
func (m *Planner) ofUnit(key ask, blocked []uint64) reason {
	size, p, v := m.s.Shape.Size(key.shape), &m.p.Parcels, &m.reason.view
	mask := append(m.reason.mask[:0], p.Open...)
	m.reason.mask = mask
	if set, _ := m.desk.Selected(key.need); set != nil {
		for w := range mask {
			mask[w] &= set[w]
		}
		if empty(mask) {
			return reason{code: decision.ReasonNoHostMatches, dimension: decision.Null, blocker: plan.None, detail: m.s.Need.String(int32(key.need))}
		}
	}
	none := reason{code: fits, dimension: decision.Null, blocker: plan.None}
	if empty(mask) {
		return none
	}
	need := make([]int, 0, len(size))
	for d, u := range size {
		if u > 0 {
			need = append(need, d)
		}
	}
	if vecpack.FirstAtLeast(mask, nil, 0, p.Cap, size, need) < 0 {
		return m.scarce(decision.ReasonTooBig, mask, p.Cap, size, "are smaller")
	}
	free, kept := v.room, v.keptBy(mask)
	fit := vecpack.FirstAtLeast(mask, nil, 0, free, size, need) >= 0
	if blocked != nil {
		for w := range mask {
			mask[w] &^= blocked[w]
		}
		within := fit
		if fit = vecpack.FirstAtLeast(mask, nil, 0, free, size, need) >= 0; within && !fit {
			return reason{code: decision.ReasonMaxPerHost, dimension: decision.Null, blocker: plan.None, detail: "it would fit, but only where max_per_host is reached"}
		}
		if empty(mask) {
			return reason{code: decision.ReasonMaxPerHost, dimension: decision.Null, blocker: plan.None, detail: "max_per_host is reached on every host that it may use"}
		}
	}
	if v.of != plan.None {
		if kept || fit && v.only(mask, v.grace, v.stopped, free, size, need) {
			return graceFilter
		}
		if fit && v.only(mask, v.stopped, v.grace, free, size, need) {
			none.code, none.top = decision.ReasonShareLimit, m.deepest(mask, size, need)
			return none
		}
		for w := range mask {
			mask[w] &^= v.grace[w] | v.stopped[w]
		}
		fit = fit && vecpack.FirstAtLeast(mask, nil, 0, free, size, need) >= 0
	}
	none.dimension = m.scarce(fits, mask, free, size, "have less free").dimension
	if fit { // on room that was not granted after all (CYC-1)
		return none
	}
	for _, d := range need {
		if sum(mask, free[d]) < size[d] {
			return none
		}
	}
	return m.scarce(decision.ReasonFragmented, mask, free, size, "have less free")
}

var graceFilter = reason{code: decision.ReasonGraceFilter, dimension: decision.Null, blocker: plan.None,
	detail: "only work that can be given back sooner may use what is free"}

// scarce names the dimension in which most parcels of a set have less than a unit takes.
func (m *Planner) scarce(code int32, mask []uint64, column [][]int64, size []int64, what string) reason {
	r, most := reason{code: code, dimension: decision.Null, blocker: plan.None}, 0
	for d, u := range size {
		if u > 0 {
			if n := vecpack.CountBelow(mask, column[d], u); n > most {
				most, r.dimension = n, int32(d)
			}
		}
	}
	if r.dimension != decision.Null {
		r.detail = fmt.Sprintf("a unit takes %d %s, %d of %d hosts %s",
			size[r.dimension], m.policy.Dimensions[r.dimension], most, popcount(mask), what)
	}
	return r
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
