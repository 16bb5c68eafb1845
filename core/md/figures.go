package md

import (
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// figures are what the tables of states show that goes by what is held, under reclaim or not. Reclaim does not change that, but for the few units
// of this cycle that it takes back (CYC-1): so they are added up on a goroutine of their own beside it, and those of leaves
// that lost some, and of consumers above these, are corrected. What both read nobody writes meanwhile: columns that reclaim may write to are
// copied, and the capacities of pools but the public one are the goroutine's until it is done.
type figures struct {
	held  []int64       // by SubID, as it was
	pairs cluster.Pairs // Units and Leaving as they were; pairs that are new hold nothing
	begun bool
	asked chan struct{} // closed when it asks for no capacity any more; nil: nobody need wait
	done  chan struct{} // closed when they are added up; nil: as asked
	was   []poolFigures // scratch
}

// poolFigures is what a consumer has of a pool.
type poolFigures struct{ usage, wanted, held, demand int64 }

// readyFigures copies what they go by, if it is known what is drawn from each pool. O(pairs + sub-allocations), besides what the census is behind.
func (m *Planner) readyFigures() {
	f := &m.figures
	m.canvass()
	m.laySources()
	if f.begun = !m.p.Parcels.Owned || m.census.known; !f.begun {
		return
	}
	m.findPublic()
	units, leaving := f.pairs.Units, f.pairs.Leaving
	f.pairs, f.held = m.p.Pairs, append(f.held[:0], m.s.Sub.Held...)
	f.pairs.Units, f.pairs.Leaving = append(units[:0], m.p.Pairs.Units...), append(leaving[:0], m.p.Pairs.Leaving...)
}

// beginFigures begins to add them up, where they are readied.
func (m *Planner) beginFigures() {
	f := &m.figures
	if !f.begun {
		return
	}
	asked, done := make(chan struct{}), make(chan struct{})
	f.asked, f.done = asked, done
	go func() {
		m.useAll(&f.pairs)
		m.countAll(f.held)
		m.keepAll(&f.pairs)
		close(asked)
		m.Amounts(&f.pairs)
		m.sumPools()
		m.sumAmounts()
		m.Quota()
		close(done)
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

// wait waits until capacities may be asked for by others, where figures are being added up.
func (f *figures) wait() {
	if f.asked != nil {
		<-f.asked
		f.asked = nil
	}
}

// end waits until they are added up, where they are being.
func (f *figures) end() {
	if f.wait(); f.done != nil {
		<-f.done
		f.done = nil
	}
}

// endFigures waits for them, and brings them up to what is held now. It is false where all are to be added up.
func (m *Planner) endFigures() bool {
	m.figures.end()
	if !m.figures.begun {
		return false
	}
	flows := m.census.flows
	if m.canvassSome(); m.p.Parcels.Owned && (!m.census.known || !m.lendSince(flows)) {
		return false
	}
	var leaves []plan.Node
	for sub := range m.fairness.undone { // sums: in any order
		leaves = append(leaves, m.s.Node(sub))
	}
	slices.Sort(leaves)
	for _, leaf := range slices.Compact(leaves) {
		if mutant != 70 && !m.figureAgain(leaf) {
			return false
		}
	}
	m.leftSince()
	m.quotaAgain()
	return true
}

// leftSince notes of which pools more or less is under reclaim than when figures were begun: where nothing is outstanding quotas go by that.
func (m *Planner) leftSince() {
	p := &m.p.Pairs
	for q, leaving := range p.Leaving {
		if (q >= len(m.figures.pairs.Leaving) || leaving != m.figures.pairs.Leaving[q]) && mutant != 74 {
			if o := m.poolOf(p.Pool[q]); o != nil && !o.short {
				o.again = true
			}
		}
	}
}

// figureAgain adds up the figures of one leaf, and corrects those of the consumers above it. It is false where these may not be corrected.
// O(what the leaf has × depth).
func (m *Planner) figureAgain(leaf plan.Node) bool {
	p, pairs, was := &m.pools, &m.p.Pairs, m.figures.was[:0]
	m.eachPoolAbove(leaf, func(o *pool) {
		at := o.at(leaf)
		was = append(was, poolFigures{p.usage[at], p.wanted[at], p.held[at], p.demand[at]})
		p.usage[at], p.wanted[at], p.held[at], p.demand[at], o.again = 0, 0, 0, 0, true
	})
	m.figures.was = was
	wanted, held := m.wanted[leaf], m.held[leaf]
	m.wanted[leaf], m.held[leaf] = 0, 0
	var amount [plan.DimensionsMax]int64
	for d, column := range m.amounts.held {
		amount[d], column[leaf] = column[leaf], 0
	}
	for q := m.p.FirstPair[leaf]; q != cluster.NoID; q = pairs.Next[q] {
		m.usePair(pairs, q)
		m.holdPair(pairs, q)
	}
	m.eachSubOf(leaf, func(sub cluster.SubID) { m.countSub(sub, leaf, m.s.Sub.Held[sub]) })
	if mutant == 71 {
		return true
	}
	ok := m.correct(m.wanted, 0, leaf, plan.Root, wanted) && m.correct(m.held, 0, leaf, plan.Root, held)
	for d, column := range m.amounts.held {
		ok = ok && m.correct(column, 0, leaf, plan.Root, amount[d])
	}
	m.eachPoolAbove(leaf, func(o *pool) {
		ok = ok && m.correct(p.usage, o.figures, leaf, o.node, was[0].usage) && m.correct(p.wanted, o.figures, leaf, o.node, was[0].wanted) &&
			m.correct(p.held, o.figures, leaf, o.node, was[0].held) && m.correct(p.demand, o.figures, leaf, o.node, was[0].demand)
		was = was[1:]
	})
	return ok
}

// correct corrects a figure of those above a leaf, up to a top, of which those below it begin at a place, by what that of the leaf has become
// since it was so much.
func (m *Planner) correct(figure []int64, from int32, leaf, top plan.Node, was int64) bool {
	at := figure[from:]
	by := at[leaf-top] - was
	if by == 0 {
		return true
	}
	if at[0] >= sumMax || by >= sumMax {
		return false
	}
	for n := leaf; n != top; {
		n = m.policy.Parent[n]
		at[n-top] += by
	}
	return true
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
