package md

import (
	"math/bits"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// view is the plan's parcels as a leaf sees them: which its grace, or a pool that is stopped for it, keeps from it, and what room
// they have for it.
type view struct {
	of      plan.Node // the leaf, or its parent when it stands for all leaves there; None: nothing is kept from any leaf
	leaf    plan.Node
	us      int64    // the leaf's reclaim_grace
	depth   int32    // of the deepest pool that is stopped, -1: none
	grace   []uint64 // bitset of parcels
	stopped []uint64
	room    [][]int64 // by dimension, then parcel
	found   map[ask]reason

	all     map[ask]reason // of the view of those from whom nothing is kept
	own     [][]int64      // memory of room
	free    [][]int64      // what is free beside what sets keep and what is missing on the host
	patched []int64        // scratch
	longest int64          // reclaim_grace within all graces that are set
}

// look makes the view that of a leaf for which pools of some depth and above are stopped. Leaves without parcels of their own
// share that of their parent.
func (m *Planner) look(leaf plan.Node, depth int32) {
	v, us, of := &m.reason.view, m.policy.ReclaimUS[leaf], leaf
	if v.free == nil {
		m.lookFree()
	}
	switch {
	case us <= v.longest && depth < 0 && m.reserve.first == nil:
		m.lookFreely()
		return
	case len(m.owned(leaf)) == 0:
		of = m.policy.Parent[leaf]
	}
	if of == v.of && us == v.us && depth == v.depth {
		return
	}
	v.of, v.leaf, v.us, v.depth, v.found = of, leaf, us, depth, map[ask]reason{}
	p := &m.p.Parcels
	v.grace, v.stopped = zeroed(v.grace, p.Words()), zeroed(v.stopped, p.Words())
	v.own = resized(v.own, len(v.free))
	for d := range v.free {
		v.own[d] = append(v.own[d][:0], v.free[d]...)
	}
	v.room = v.own
	v.patched = resized(v.patched, len(v.free))
	for k := range cluster.ParcelID(p.Len()) {
		top := m.meet(leaf, k)
		if top == leaf {
			continue
		}
		bit := uint64(1) << (uint(k) & 63)
		if us > m.grace(p.Owner[k], top) {
			v.grace[k>>6] |= bit
		}
		if m.policy.Depth[top] <= depth {
			v.stopped[k>>6] |= bit
		}
		if m.reserved(k, top) {
			m.spare(k, top, false, v.patched)
			for d := range v.room {
				v.room[d][k] = min(v.room[d][k], v.patched[d])
			}
		}
	}
}

// lookFreely makes the view that of a leaf from which nothing is kept.
func (m *Planner) lookFreely() {
	v := &m.reason.view
	if v.free == nil {
		m.lookFree()
	}
	v.of, v.room, v.found = plan.None, v.free, v.all
}

// lookFree readies what all views have in common.
func (m *Planner) lookFree() {
	v, p := &m.reason.view, &m.p.Parcels
	v.free, v.all = p.Free, map[ask]reason{}
	if p.Kept != nil || p.Owed != nil {
		v.free = make([][]int64, len(p.Free))
		for d, column := range p.Free {
			v.free[d] = make([]int64, len(column))
			for k := range column {
				v.free[d][k] = p.Available(d, cluster.ParcelID(k))
			}
		}
	}
	v.longest = m.poolGrace(plan.Root)
	if m.p.Parcels.Owned {
		for n := range m.policy.Parent {
			v.longest = min(v.longest, unlessSet(m.set.LendGraceUS[n]), unlessSet(m.set.PrivateUS[n]))
		}
	}
}

// keptBy tells whether the leaf's grace keeps all parcels of a bitset from it.
func (v *view) keptBy(mask []uint64) bool {
	if v.of == plan.None {
		return false
	}
	for w := range mask {
		if mask[w]&^v.grace[w] != 0 {
			return false
		}
	}
	return true
}

// only tells whether a unit has room on a parcel that is kept from the leaf, and not by the other reason too.
func (v *view) only(mask, kept, other []uint64, room [][]int64, size []int64, need []int) bool {
	for w := range mask {
		for set := mask[w] & kept[w] &^ other[w]; set != 0; set &= set - 1 {
			k, ok := w<<6+bits.TrailingZeros64(set), true
			for _, d := range need {
				ok = ok && room[d][k] >= size[d]
			}
			if ok {
				return true
			}
		}
	}
	return false
}

// deepest is the deepest consumer whose stopped pool alone keeps the leaf from parcels where a unit has room.
func (m *Planner) deepest(mask []uint64, size []int64, need []int) plan.Node {
	v, best := &m.reason.view, plan.Root
	for w := range mask {
		for set := mask[w] & v.stopped[w] &^ v.grace[w]; set != 0; set &= set - 1 {
			k, ok := cluster.ParcelID(w<<6+bits.TrailingZeros64(set)), true
			for _, d := range need {
				ok = ok && v.room[d][k] >= size[d]
			}
			if top := m.meet(v.leaf, k); ok && m.policy.Depth[top] > m.policy.Depth[best] {
				best = top
			}
		}
	}
	return best
}

// sum is what there is on the parcels of a bitset, those with less than nothing left aside.
func sum(mask []uint64, room []int64) (sum int64) {
	for w, set := range mask {
		for ; set != 0; set &= set - 1 {
			sum = share.Add(sum, max(0, room[w<<6+bits.TrailingZeros64(set)]))
		}
	}
	return sum
}
