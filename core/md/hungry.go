package md

import (
	"math/bits"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// hungry is the demand that is outstanding once takers were given what was held for them: nothing else is granted any in the cycle.
type hungry struct {
	leaf  []plan.Node     // with outstanding demand, in tree order
	short []cluster.SubID // their sub-allocations with any, in the order of D-14
	first []int32         // by place in leaf, and one more: where its own begin in short
	place []int32         // by Node: its place in leaf, of those that have one

	need  []int64            // scratch, by place in leaf: how much is outstanding
	wants []uint64           // scratch: bitset by Node
	half  [2][]cluster.SubID // scratch
}

// of is the sub-allocations of a hungry leaf with outstanding demand.
func (h *hungry) of(leaf plan.Node) []cluster.SubID {
	i := h.place[leaf]
	return h.short[h.first[i]:h.first[i+1]]
}

// has tells whether a sub-allocation of a leaf is among them. O(those of the leaf).
func (h *hungry) has(leaf plan.Node, sub cluster.SubID) bool {
	_, listed := slices.BinarySearch(h.leaf, leaf)
	return listed && slices.Contains(h.of(leaf), sub)
}

// warm readies the line for all leaves with outstanding demand, and tells how much that is.
func (g *granter) warm() (short int64) {
	h := &g.hungry
	g.line.Reset(g.s, g.p)
	g.listHungry()
	h.need, h.first = resized(h.need, len(h.leaf)), resized(h.first, len(h.leaf)+1)
	h.half[0], h.half[1] = h.half[0][:0], h.half[1][:0]
	inHalves(len(h.leaf), func(from, to int) {
		list := &h.half[min(from, 1)]
		for i, leaf := range h.leaf[from:to] {
			h.first[from+i], h.need[from+i] = int32(len(*list)), g.line.Warm(leaf)
			g.eachSubOf(leaf, func(sub cluster.SubID) {
				if g.outstanding(sub) {
					*list = append(*list, sub)
				}
			})
		}
	})
	h.short = append(append(h.short[:0], h.half[0]...), h.half[1]...)
	for i := len(h.leaf) / 2; i < len(h.leaf) && len(h.half[1]) > 0; i++ {
		h.first[i] += int32(len(h.half[0]))
	}
	h.first[len(h.leaf)] = int32(len(h.short))
	for _, units := range h.need {
		short = share.Add(short, units)
	}
	return short
}

// listHungry lists the leaves with outstanding demand. O(sub-allocations).
func (g *granter) listHungry() {
	h := &g.hungry
	h.wants, h.leaf, h.place = zeroed(h.wants, (g.policy.Len()+63)/64), h.leaf[:0], resized(h.place, g.policy.Len())
	for sub := range g.s.Sub.Wanted {
		if g.outstanding(cluster.SubID(sub)) {
			leaf := g.s.Node(cluster.SubID(sub))
			h.wants[leaf>>6] |= 1 << (uint(leaf) & 63)
		}
	}
	for w, set := range h.wants {
		for ; set != 0; set &= set - 1 {
			leaf := plan.Node(w<<6 + bits.TrailingZeros64(set))
			h.place[leaf] = int32(len(h.leaf))
			h.leaf = append(h.leaf, leaf)
		}
	}
}
