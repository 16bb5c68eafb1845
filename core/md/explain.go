package md

import (
	"fmt"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
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
}

// ask is what a reason of the unit itself depends on.
type ask struct {
	shape cluster.ShapeID
	need  cluster.NeedID
}

// reasons is what depends on shape and requirement alone, found once a cycle for each.
type reasons struct {
	byAsk map[ask]reason
	mask  []uint64
}

// fits is the code of "nothing about the unit itself stands against it": then priority and quota decide.
const fits = -1

// why gives the reason of a sub-allocation that is short. Leaves' usages, quotas
// and the parcels must be those after granting.
func (m *Planner) why(sub cluster.SubID) reason {
	leaf := m.s.Node(sub)
	key := ask{m.s.Sub.Shape[sub], m.s.Sub.Need[sub]}
	bound, ok := m.reason.byAsk[key]
	if !ok {
		bound = m.ofUnit(key, nil)
		m.reason.byAsk[key] = bound
	}
	if bound.code == decision.ReasonNoHostMatches {
		return bound
	}
	for n := leaf; n != plan.Root; n = m.policy.Parent[n] {
		if m.set.Ratio[n] == 0 {
			return reason{decision.ReasonShareLimit, decision.Null, n, "share ratio 0"}
		}
	}
	if n, d, over := m.grant.overLimit(leaf, sub); over {
		return reason{decision.ReasonShareLimit, int32(d), n, fmt.Sprintf("holds %d of at most %d %s from pools",
			m.pooled[d][n], m.limit(n, d), m.policy.Dimensions[d])}
	}
	if bound.code != decision.ReasonTooBig && m.s.Sub.MaxPerHost[sub] != plan.Unlimited {
		bound = m.ofUnit(key, m.blocked(sub))
	}
	if bound.code != fits {
		return bound
	}
	bound.code, bound.blocker = m.rival(leaf, m.s.Sub.Shape[sub])
	return bound
}

// blocked is the parcels on which a sub-allocation holds its max_per_host.
func (m *Planner) blocked(sub cluster.SubID) []uint64 {
	set := make([]uint64, m.p.Parcels.Words())
	on := map[cluster.ParcelID]int64{}
	for q := m.s.Sub.First[sub]; q != cluster.NoID; q = m.s.Holding.NextOfSub[q] {
		k := m.s.Holding.Parcel[q]
		if on[k] += m.s.Holding.Units[q]; on[k] >= m.s.Sub.MaxPerHost[sub] {
			set[k>>6] |= 1 << (uint(k) & 63)
		}
	}
	return set
}

// ofUnit tells what stands against a unit of a shape and requirement by itself:
// requirement, size, max_per_host (blocked parcels, nil: none), a scattered pool.
// O(parcels × dimensions).
func (m *Planner) ofUnit(key ask, blocked []uint64) reason {
	size, p := m.s.Shape.Size(key.shape), &m.p.Parcels
	mask := append(m.reason.mask[:0], p.Open...)
	m.reason.mask = mask
	if set, _ := m.desk.Selected(key.need); set != nil {
		for w := range mask {
			mask[w] &= set[w]
		}
		if empty(mask) {
			return reason{decision.ReasonNoHostMatches, decision.Null, plan.None, m.s.Need.String(int32(key.need))}
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
	if blocked != nil {
		if vecpack.FirstAtLeast(mask, blocked, 0, p.Free, size, need) >= 0 {
			return reason{decision.ReasonMaxPerHost, decision.Null, plan.None, "it would fit, but only where max_per_host is reached"}
		}
		for w := range mask {
			mask[w] &^= blocked[w]
		}
		if empty(mask) {
			return reason{decision.ReasonMaxPerHost, decision.Null, plan.None, "max_per_host is reached on every host that it may use"}
		}
	}
	for _, d := range need {
		if vecpack.Sum(mask, p.Free[d]) < size[d] {
			none.dimension = m.scarce(fits, mask, p.Free, size, "have less free").dimension
			return none
		}
	}
	return m.scarce(decision.ReasonFragmented, mask, p.Free, size, "have less free")
}

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

// rival tells what stands against a leaf in a pool that is used up: a sibling of
// higher share priority on its way from the root, its own quota, or nothing but
// the pool's size.
func (m *Planner) rival(leaf plan.Node, shape cluster.ShapeID) (code int32, blocker plan.Node) {
	unit, over := share.Fraction(1, m.capacity.of(shape)), false
	blocker = plan.None
	for n := leaf; n != plan.Root; n = m.policy.Parent[n] {
		if b := m.superior(n); b != plan.None {
			blocker = b // the one nearest to the root counts
		}
		over = over || m.usage[n] > 0 && m.usage[n]-unit >= m.quota.quota[n]
	}
	switch {
	case blocker != plan.None:
		return decision.ReasonLowerPriority, blocker
	case over:
		return decision.ReasonOverQuota, plan.None
	}
	return decision.ReasonPoolExhausted, plan.None
}

// superior is the sibling of higher share priority that uses most of the pool.
func (m *Planner) superior(n plan.Node) plan.Node {
	best := plan.None
	for c := m.policy.First[m.policy.Parent[n]]; c != plan.None; c = m.policy.Next[c] {
		if m.set.Priority[c] > m.set.Priority[n] && m.usage[c] > 0 && (best == plan.None || m.usage[c] > m.usage[best]) {
			best = c
		}
	}
	return best
}
