package md

import (
	"slices"

	"github.com/stintd/stint/core/plan"
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
}

// way is what is given and got by all below a consumer.
type way struct {
	node        plan.Node
	gives, gets int64
}

// forgetPacts readies them for another pool. O(those listed before).
func (m *Planner) forgetPacts() {
	v := &m.fairness.pacts
	if len(v.of) != m.policy.Len() {
		v.of, v.known = make([][]pact, m.policy.Len()), map[pact]bool{}
	}
	for p := range v.known {
		v.of[p.from], v.of[p.to] = v.of[p.from][:0], v.of[p.to][:0]
	}
	clear(v.known)
}

// addPact notes that a set takes from a leaf for another.
func (m *Planner) addPact(victim, taker plan.Node) {
	v := &m.fairness.pacts
	p := pact{}
	if p.from, p.to = m.part(victim, taker); !v.known[p] {
		v.known[p] = true
		v.of[p.from], v.of[p.to] = append(v.of[p.from], p), append(v.of[p.to], p)
	}
}

// bear tells whether all pacts that stand in a pool still do when a leaf gives, and another gets, so much share of it.
func (m *Planner) bear(o *pool, victim, taker plan.Node, gives, gets int64) bool {
	if len(m.fairness.pacts.known) == 0 || mutant == 55 {
		return true
	}
	v := &m.fairness.pacts
	v.way = v.way[:0]
	m.along(o, taker, 0, gets)
	m.along(o, victim, gives, 0)
	return m.bearWay(o)
}

// bearAll is bear for all victims of a unit together.
func (m *Planner) bearAll(o *pool, taker plan.Node, gets int64, victims []victim) bool {
	if len(m.fairness.pacts.known) == 0 || mutant == 55 {
		return true
	}
	v := &m.fairness.pacts
	v.way = v.way[:0]
	m.along(o, taker, 0, gets)
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
		m.along(o, m.p.Pairs.Leaf[pair], -m.change(pair, -units), 0)
	}
	return m.bearWay(o)
}

// along adds what a leaf gives and gets to all on its way up to a pool.
func (m *Planner) along(o *pool, leaf plan.Node, gives, gets int64) {
	v := &m.fairness.pacts
	for n := leaf; n != o.node; n = m.policy.Parent[n] {
		i := slices.IndexFunc(v.way, func(w way) bool { return w.node == n })
		if i < 0 {
			i = len(v.way)
			v.way = append(v.way, way{node: n})
		}
		v.way[i].gives += gives
		v.way[i].gets += gets
	}
}

// bearWay tells whether the pacts of those on the ways stand, as far as they stand now.
func (m *Planner) bearWay(o *pool) bool {
	v := &m.fairness.pacts
	change := func(n plan.Node) int64 {
		if i := slices.IndexFunc(v.way, func(w way) bool { return w.node == n }); i >= 0 {
			return v.way[i].gets - v.way[i].gives
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
