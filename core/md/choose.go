package md

import (
	"math"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// victim is units that may be taken back for a taker.
type victim struct {
	q     cluster.HoldingID
	units int64
}

// bounds computes the lesser of room and net room of a parcel for those who draw on it through a consumer's pool, by dimension:
// what a unit needs beyond that must be taken back. The result is borrowed until the next call.
func (m *Planner) bounds(k cluster.ParcelID, top plan.Node) []int64 {
	f, dims := &m.fairness, len(m.p.Parcels.Cap)
	f.bound = resized(f.bound, dims)
	for d := range f.bound {
		f.bound[d] = min(m.netFree(d, k), m.p.Parcels.Available(d, k))
	}
	if m.reserved(k, top) {
		least := make([]int64, dims)
		for _, net := range [2]bool{false, true} {
			m.spare(k, top, net, least)
			for d := range least {
				f.bound[d] = min(f.bound[d], least[d])
			}
		}
	}
	return f.bound
}

// covers tells whether a unit fits what there is with what is taken back besides.
func covers(bound, besides, size []int64) bool {
	for d, u := range size {
		if u > 0 && bound[d]+besides[d] < u {
			return false
		}
	}
	return true
}

// helps tells whether a victim frees something of which a unit still lacks room, besides what is taken already.
func helps(bound, besides, size, victim []int64) bool {
	for d, u := range size {
		if u > 0 && victim[d] > 0 && bound[d]+besides[d] < u {
			return true
		}
	}
	return false
}

// giver is a holding of which units may be taken for the taker of the round, with what choosing among them goes by.
type giver struct {
	q     cluster.HoldingID
	pair  cluster.PairID
	leaf  plan.Node
	units int64
	size  []int64
}

// several chooses victims on one parcel that together make room for a unit from a pool and lower the sum of squares: one after the other in order, less
// those that are not needed after all; where that leads to nothing, of one leaf and size alone, of those of which it takes the fewest. Nil: there are none.
func (m *Planner) several(o *pool, sub cluster.SubID, k cluster.ParcelID) []victim {
	f, size := &m.fairness, m.s.Size(sub)
	rows, bound := m.giversOn(o, k, f.here[:0]), m.bounds(k, o.node)
	f.here, f.sum = rows, zeroed(f.sum, len(size))
	for i := range rows {
		add(f.sum, rows[i].size, rows[i].units)
	}
	if !covers(bound, f.sum, size) {
		return nil
	}
	slices.SortFunc(rows, func(a, b giver) int { return m.victimFirst(&a, &b) })
	clear(f.sum)
	if found := m.inTurn(o, size, bound, rows); covers(bound, f.sum, size) {
		if found = m.needed(found, bound, f.sum, size); m.lower(o, found) {
			return found
		}
	}
	return m.alike(o, size, bound, rows)
}

// lower tells whether the sum of squares is lower when some units are given for the taker's.
func (m *Planner) lower(o *pool, found []victim) bool {
	f, sum := &m.fairness, m.fairness.taker.begin()
	f.moved = f.moved[:0]
	for _, v := range found {
		f.moved = addMoved(f.moved, m.pairIn(o, m.s.Holding.Sub[v.q]), v.units)
	}
	m.eachGiver(f.moved, -1, func(leaf plan.Node, gives int64) { sum.Add(-m.deficit(o, leaf)-share.Slack, gives) })
	return sum.Lower() || mutant == 48
}

// alike chooses victims of one leaf and size that make room for a unit by themselves: of those of which it takes the fewest.
func (m *Planner) alike(o *pool, size, bound []int64, rows []giver) (best []victim) {
	sum, fewest := m.fairness.sum, int64(math.MaxInt64)
	for i := range rows {
		pair := rows[i].pair
		if mutant == 46 || slices.ContainsFunc(rows[:i], func(g giver) bool { return g.pair == pair }) {
			continue // tried with the first
		}
		clear(sum)
		var found []victim
		units, surplus := int64(0), -m.deficit(o, rows[i].leaf)
		for j := i; j < len(rows) && !covers(bound, sum, size); j++ {
			g := &rows[j]
			if g.pair != pair {
				continue
			}
			for n := int64(0); n < g.units && !covers(bound, sum, size); n++ {
				gives := m.change(pair, -units) - m.change(pair, -units-1)
				if !m.mayGive(o, g.leaf, surplus, gives) {
					break
				}
				if n == 0 {
					found = append(found, victim{g.q, 0})
				}
				found[len(found)-1].units++
				units, surplus = units+1, surplus-gives
				add(sum, g.size, 1)
			}
		}
		if covers(bound, sum, size) && units < fewest && m.lower(o, found) {
			best, fewest = found, units
		}
	}
	return best
}

// inTurn chooses units in order until a unit of a size fits: each that helps, that its leaf may give beside those before it, and that brings the leaf
// nearer to its quota or leaves the sum of squares lower all the same. What they take is added to fairs.sum.
func (m *Planner) inTurn(o *pool, size, bound []int64, rows []giver) (found []victim) {
	f, sum := &m.fairness, m.fairness.taker.begin()
	given, moved := map[plan.Node]int64{}, f.moved[:0]
	for i := range rows {
		g := &rows[i]
		for n := int64(0); n < g.units && helps(bound, f.sum, size, g.size); n++ {
			before := int64(0)
			for _, one := range moved {
				if one.pair == g.pair {
					before = one.units
				}
			}
			surplus, gives := -m.deficit(o, g.leaf)-given[g.leaf], m.change(g.pair, -before)-m.change(g.pair, -before-1)
			if !m.mayGive(o, g.leaf, surplus, gives) {
				break
			}
			own, all := share.Squares{}, sum
			own.Add(surplus-share.Slack, gives)
			if all.Add(surplus-share.Slack, gives); !own.Lower() && !all.Lower() && mutant != 83 {
				break
			}
			if sum = all; n == 0 {
				found = append(found, victim{g.q, 0})
			}
			found[len(found)-1].units++
			given[g.leaf] += gives
			moved = addMoved(moved, g.pair, 1)
			add(f.sum, g.size, 1)
		}
	}
	f.moved = moved
	return found
}

// needed leaves of victims that are enough together those that are needed: of each, in order, it drops what the others do
// without. Of several holdings of one sub-allocation the last chosen is dropped first, so that units which were granted in
// this cycle stay chosen (CYC-1).
func (m *Planner) needed(found []victim, bound, sum, size []int64) []victim {
	for i := range found {
		sub := m.s.Holding.Sub[found[i].q]
		v := m.s.Size(sub)
		for last := m.lastOf(found, sub); last >= 0; last = m.lastOf(found, sub) {
			if add(sum, v, -1); !covers(bound, sum, size) {
				add(sum, v, 1)
				break
			}
			found[last].units--
		}
	}
	return slices.DeleteFunc(found, func(v victim) bool { return v.units == 0 })
}

// lastOf is the last of the victims of a sub-allocation of which units are still chosen, -1: none.
func (m *Planner) lastOf(found []victim, sub cluster.SubID) int {
	if mutant == 78 {
		return slices.IndexFunc(found, func(v victim) bool { return v.units > 0 && m.s.Holding.Sub[v.q] == sub })
	}
	for i := len(found) - 1; i >= 0; i-- {
		if found[i].units > 0 && m.s.Holding.Sub[found[i].q] == sub {
			return i
		}
	}
	return -1
}

func add(sum, size []int64, units int64) {
	for d, u := range size {
		sum[d] += u * units
	}
}
