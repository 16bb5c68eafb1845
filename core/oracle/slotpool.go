package oracle

import (
	"slices"

	"github.com/stintd/stint/core/plan"
)

// The share pools of a slot plan (SLOT-4 … SLOT-6): who may draw from which. A ratio of 0 keeps a consumer and all
// below it from the pools above it, not from its own.

// barred tells whether a leaf gets nothing from any share pool.
func (g *slots) barred(leaf plan.Node) bool {
	return g.hybrid(leaf) || !gone(leaf) && g.ratio[leaf] == 0
}

// bars are the consumers that have a ratio of 0 on a leaf's way, and the root: none of them bears that those below it
// have more from pools than the pools at and below it are.
func (g *slots) bars(leaf plan.Node) []plan.Node {
	return append(slices.DeleteFunc(g.way(leaf), func(n plan.Node) bool { return g.ratio[n] > 0 }), plan.Root)
}

// weight is what a consumer's usage is divided by in turns. One that is kept from pools above it takes only what is its
// own, and so it comes first.
func (g *slots) weight(n plan.Node) uint64 {
	if g.ratio[n] == 0 {
		return 1 << 40
	}
	return uint64(g.ratio[n])
}

// idlePool is what is free now for a leaf of the pools that it may draw from.
func (g *slots) idlePool(leaf plan.Node) int64 {
	least := int64(1 << 60)
	for _, n := range g.bars(leaf) {
		kept := g.keeps(func(s *set) bool { return s.account == plan.Root && g.under(n, s.taker.alloc.leaf) })
		least = min(least, g.pooled(n)-g.held(n, sharePool, false)-kept)
	}
	return least
}

// netPool is what will be free for a leaf of the pools that it may draw from, once all sets under way are done and
// victims are gone.
func (g *slots) netPool(leaf plan.Node, victims []*unit) int64 {
	least := g.spared(g.netFree, g.netAccount) + g.of(plan.Root, victims)
	for _, n := range g.bars(leaf) {
		least = min(least, g.pooled(n)-g.usage(n)+g.of(n, victims))
	}
	return least
}

// endless is needs for the static share quota: without end for all that may get anything.
func (g *slots) endless() map[plan.Node]int64 {
	need := map[plan.Node]int64{}
	for _, leaf := range g.leaves() {
		if !g.barred(leaf) {
			for _, n := range append(g.way(leaf), plan.Root) {
				need[n] = 1 << 60
			}
		}
	}
	return need
}

// asks is what a consumer, and those below it who may, would take of a pool above it.
func (g *slots) asks(n plan.Node, need map[plan.Node]int64) int64 {
	if n != plan.Root && g.ratio[n] == 0 {
		return 0
	}
	if g.p.Leaf(n) {
		return need[n]
	}
	return min(need[n], g.asksBelow(n, need))
}

// asksBelow is what those below a consumer would take of its own pool.
func (g *slots) asksBelow(n plan.Node, need map[plan.Node]int64) int64 {
	sum := int64(0)
	for _, k := range g.children(n) {
		sum = min(1<<60, sum+g.asks(k, need))
	}
	return sum
}
