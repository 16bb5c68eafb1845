package md

import (
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// figures are what the tables of states show that goes by what is held, under reclaim or not. Reclaim does not change that, but for the few units
// of this cycle that it takes back (CYC-1): so leaves' figures are added up on a goroutine of their own beside it, and those of leaves
// that lost some are added up again. What both read nobody writes meanwhile: columns that reclaim may write to are copied, and the
// capacities of pools but the public one are the goroutine's until it is done.
type figures struct {
	held  []int64       // by SubID, as it was
	pairs cluster.Pairs // Units as they were; pairs that are new hold nothing
	begun bool
	done  chan struct{} // closed when they are added up; nil: nobody need wait
}

// beginFigures begins to add them up, if it is known what is drawn from each pool. O(pairs + sub-allocations) to copy what they go by.
func (m *Planner) beginFigures() {
	f := &m.figures
	if f.begun = !m.p.Rebuilt && (!m.p.Parcels.Owned || m.census.known); f.begun {
		m.canvassSome()
		f.begun = !m.p.Parcels.Owned || m.census.known
	}
	if !f.begun {
		return
	}
	m.findPublic()
	units := f.pairs.Units
	f.pairs, f.held, f.done = m.p.Pairs, append(f.held[:0], m.s.Sub.Held...), make(chan struct{})
	f.pairs.Units = append(units[:0], m.p.Pairs.Units...)
	go func() {
		m.useAll(&f.pairs)
		m.countAll(f.held)
		m.Amounts(&f.pairs)
		close(f.done)
	}()
}

// findPublic finds the capacities of the public pool in units of all shapes in use.
func (m *Planner) findPublic() {
	c := &m.census
	c.public = resized(c.public, m.s.Shape.Len())
	for shape := range c.public {
		if c.public[shape] = unknown; m.public.capacity.units[shape] != unknown {
			c.public[shape] = m.capacity(m.root(), cluster.ShapeID(shape))
		}
	}
}

// wait waits until leaves' figures are added up, where they are being.
func (f *figures) wait() {
	if f.done != nil {
		<-f.done
		f.done = nil
	}
}

// endFigures waits for them, and brings them up to what is held now. It is false where all are to be added up.
func (m *Planner) endFigures() bool {
	m.figures.wait()
	if !m.figures.begun {
		return false
	}
	if m.canvassSome(); m.p.Parcels.Owned && !m.census.known {
		return false
	}
	var leaves []plan.Node
	for sub := range m.fairness.undone { // sums: in any order
		leaves = append(leaves, m.s.Node(sub))
	}
	slices.Sort(leaves)
	for _, leaf := range slices.Compact(leaves) {
		if mutant != 70 {
			m.figureAgain(leaf)
		}
	}
	return true
}

// figureAgain adds up the figures of one leaf.
func (m *Planner) figureAgain(leaf plan.Node) {
	p, pairs := &m.pools, &m.p.Pairs
	for _, from := range m.census.of(leaf) {
		p.wanted[from.at], p.held[from.at], p.demand[from.at] = 0, 0, 0
	}
	m.wanted[leaf], m.held[leaf] = 0, 0
	for _, held := range m.amounts.held {
		held[leaf] = 0
	}
	for q := m.p.FirstPair[leaf]; q != cluster.NoID; q = pairs.Next[q] {
		if o := m.poolOf(pairs.Pool[q]); o != nil {
			p.usage[o.at(leaf)] = 0
		}
	}
	for q := m.p.FirstPair[leaf]; q != cluster.NoID; q = pairs.Next[q] {
		m.usePair(pairs, q)
		m.holdPair(pairs, q)
	}
	m.eachSubOf(leaf, func(sub cluster.SubID) { m.countSub(sub, leaf, m.s.Sub.Held[sub]) })
}

// useAll adds up the shares that leaves hold (MD-12), of pairs as they stand in memory. O(pairs).
func (m *Planner) useAll(pairs *cluster.Pairs) {
	clear(m.pools.usage)
	for q := range pairs.Units {
		m.usePair(pairs, cluster.PairID(q))
	}
}

// usePair adds the share that is held of a pair.
func (m *Planner) usePair(pairs *cluster.Pairs, q cluster.PairID) {
	units := pairs.Units[q]
	if units <= 0 {
		return
	}
	if o := m.poolOf(pairs.Pool[q]); o != nil {
		at := &m.pools.usage[o.at(pairs.Leaf[q])]
		*at = share.Add(*at, share.Fraction(units, m.capacityNow(o, pairs.Shape[q])))
	}
}

// sumPools adds up the figures of consumers in pools, and what they want and hold, of those of their leaves. O(consumers in pools).
func (m *Planner) sumPools() {
	m.sumUp(m.wanted)
	m.sumUp(m.held)
	p := &m.pools
	for i := range p.list {
		for _, figure := range [...][]int64{p.usage, p.wanted, p.held, p.demand} {
			m.sumIn(&p.list[i], figure)
		}
	}
}
