package md

import (
	"math/bits"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// warm readies the line for all leaves with outstanding demand, and tells how much that is.
func (g *granter) warm() (short int64) {
	g.line.Reset(g.s, g.p)
	g.listHungry()
	g.need = resized(g.need, len(g.hungry))
	inHalves(len(g.hungry), func(from, to int) {
		for i, leaf := range g.hungry[from:to] {
			g.need[from+i] = g.line.Warm(leaf)
		}
	})
	for _, units := range g.need {
		short = share.Add(short, units)
	}
	return short
}

// listHungry lists the leaves with outstanding demand. O(sub-allocations).
func (g *granter) listHungry() {
	g.wants, g.hungry = zeroed(g.wants, (g.policy.Len()+63)/64), g.hungry[:0]
	for sub := range g.s.Sub.Wanted {
		if g.outstanding(cluster.SubID(sub)) {
			leaf := g.s.Node(cluster.SubID(sub))
			g.wants[leaf>>6] |= 1 << (uint(leaf) & 63)
		}
	}
	for w, set := range g.wants {
		for ; set != 0; set &= set - 1 {
			g.hungry = append(g.hungry, plan.Node(w<<6+bits.TrailingZeros64(set)))
		}
	}
}
