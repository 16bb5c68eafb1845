package md

import (
	"math"
	"slices"

	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// pact is that a set of this cycle takes for fair share from below one sibling for below another: it stands as long as the
// first is still ahead.
type pact struct{ from, to plan.Node }

// pacts are those in the pool whose takers are served: no set takes from another of the same cycle what that stands on, or it
// would lapse at once, and both would come and go for ever (INV-10).
type pacts struct {
	of    [][]pact // by Node: those that it is a side of
	known map[pact]bool
	way   []way // scratch

	version int64   // of the pacts and the shares that they go by
	bound   []bound // by Node
}

// bound is how far a share may fall or rise.
type bound struct{ version, fall, rise int64 }

// way is by how much the share of a consumer changes by what those below it give and get.
type way struct {
	node plan.Node
	more int64
}

// forgetPacts readies them for another pool. O(those listed before).
func (m *Planner) forgetPacts() {
	v := &m.fairness.pacts
	if len(v.of) != m.policy.Len() {
		v.of, v.known, v.bound = make([][]pact, m.policy.Len()), map[pact]bool{}, make([]bound, m.policy.Len())
	}
	for p := range v.known {
		v.of[p.from], v.of[p.to] = v.of[p.from][:0], v.of[p.to][:0]
	}
	clear(v.known)
	v.version++
}

// addPact notes that a set takes from a leaf for another.
func (m *Planner) addPact(victim, taker plan.Node) {
	v := &m.fairness.pacts
	p := pact{}
	if p.from, p.to = m.part(victim, taker); !v.known[p] {
		v.known[p] = true
		v.version++
		v.of[p.from], v.of[p.to] = append(v.of[p.from], p), append(v.of[p.to], p)
	}
}

// boundOf is how far the share of a consumer may fall or rise, others' as they are, before a pact that stands does not any more. O(its pacts)
// when anything changed since it was asked for last.
func (m *Planner) boundOf(o *pool, n plan.Node) *bound {
	v := &m.fairness.pacts
	b := &v.bound[n]
	if b.version == v.version {
		return b
	}
	*b = bound{v.version, math.MaxInt64, math.MaxInt64}
	for _, p := range v.of[n] {
		x, y := m.pools.stake[o.at(p.from)], m.pools.stake[o.at(p.to)]
		ra, rb := m.set.Ratio[p.from], m.set.Ratio[p.to]
		if !m.leads(p.from, p.to, x, y, even) || m.set.Priority[p.from] != m.set.Priority[p.to] || ra == 0 || rb == 0 {
			continue // it does not stand, or does whatever their shares
		}
		if p.from == n {
			b.fall = min(b.fall, x, x+even-reach(y, ra, rb))
		} else {
			most, _ := share.Scale(x+even, rb, ra)
			b.rise = min(b.rise, most-y)
		}
	}
	return b
}

// bearAll tells whether all pacts that stand in a pool still do when victims of a unit give, and the taker has it.
func (m *Planner) bearAll(o *pool, taker plan.Node, gets int64, victims []victim) bool {
	if len(m.fairness.pacts.known) == 0 || mutant == 55 {
		return true
	}
	v := &m.fairness.pacts
	v.way = v.way[:0]
	m.along(o, taker, gets)
	for i, x := range victims {
		pair := m.pairIn(o, m.s.Holding.Sub[x.q])
		if slices.ContainsFunc(victims[:i], func(y victim) bool { return m.pairIn(o, m.s.Holding.Sub[y.q]) == pair }) {
			continue // counted with the first
		}
		units := int64(0)
		for _, y := range victims[i:] {
			if m.pairIn(o, m.s.Holding.Sub[y.q]) == pair {
				units += y.units
			}
		}
		m.along(o, m.p.Pairs.Leaf[pair], m.change(pair, -units))
	}
	return m.bearWay(o)
}

// along adds what a leaf gets more to all on its way up to a pool.
func (m *Planner) along(o *pool, leaf plan.Node, more int64) {
	v := &m.fairness.pacts
	for n := leaf; n != o.node; n = m.policy.Parent[n] {
		i := slices.IndexFunc(v.way, func(w way) bool { return w.node == n })
		if i < 0 {
			i = len(v.way)
			v.way = append(v.way, way{node: n})
		}
		v.way[i].more += more
	}
}

// bearWay tells whether the pacts of those on the ways stand, as far as they stand now.
func (m *Planner) bearWay(o *pool) bool {
	v := &m.fairness.pacts
	change := func(n plan.Node) int64 {
		if i := slices.IndexFunc(v.way, func(w way) bool { return w.node == n }); i >= 0 {
			return v.way[i].more
		}
		return 0
	}
	for _, w := range v.way {
		for _, p := range v.of[w.node] {
			x, y := m.pools.stake[o.at(p.from)], m.pools.stake[o.at(p.to)]
			if m.leads(p.from, p.to, x, y, even) && !m.leads(p.from, p.to, x+change(p.from), y+change(p.to), even) {
				return false
			}
		}
	}
	return true
}
