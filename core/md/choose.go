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

// giver is a holding of which a unit may be taken for the taker of the round, with what choosing among them goes by.
type giver struct {
	q            cluster.HoldingID
	pair         cluster.PairID
	leaf, beside plan.Node // the consumer next to the taker's way that the leaf is below, or is
	units, gives int64     // gives: share, by one unit
	size         []int64
}

// giverOf is a holding of a pair as one.
func (m *Planner) giverOf(o *pool, q cluster.HoldingID, pair cluster.PairID) giver {
	of := m.yieldOf(o, pair)
	return giver{q, pair, of.leaf, m.nextToWay(of.leaf), m.s.Holding.Units[q], of.gives, m.s.Shape.Size(m.p.Pairs.Shape[pair])}
}

// enough chooses victims on one parcel that make room for a unit from a pool: one alone if there is such a one, the
// first in order; else units in order until it fits, less those that are not needed after all.
func (m *Planner) enough(o *pool, sub cluster.SubID, k cluster.ParcelID) []victim {
	f, size := &m.fairness, m.s.Size(sub)
	rows, bound := m.givers(o, k, f.here[:0]), m.bounds(k, o.node)
	f.here, f.sum = rows, zeroed(f.sum, len(size))
	if sum := f.sum; !covers(bound, sum, size) {
		rows = slices.DeleteFunc(rows, func(g giver) bool { return !helps(bound, sum, size, g.size) })
	}
	if m.together(o, rows, f.sum); !covers(bound, f.sum, size) {
		return nil
	}
	slices.SortFunc(rows, func(a, b giver) int { return m.victimFirst(o, &a, &b) })
	for i := range rows {
		if mutant != 45 && covers(bound, rows[i].size, size) {
			return []victim{{rows[i].q, 1}}
		}
	}
	found := m.inTurn(o, size, bound, rows)
	if !covers(bound, f.sum, size) {
		if mutant == 46 {
			return nil
		}
		return m.alike(o, size, bound, rows)
	}
	return m.needed(found, bound, f.sum, size)
}

// together adds up what units of some rows could take with one another at most, as those below one consumer next to the taker's way give no more
// than its margin.
func (m *Planner) together(o *pool, rows []giver, sum []int64) {
	f := &m.fairness
	f.most, f.some = resized(f.most, len(sum)), resized(f.some, len(sum))
	for i := range rows {
		a := rows[i].beside
		if slices.ContainsFunc(rows[:i], func(g giver) bool { return g.beside == a }) {
			continue // counted with the first
		}
		clear(f.most)
		clear(f.some)
		units, least := int64(0), int64(math.MaxInt64)
		for j := i; j < len(rows); j++ {
			g := &rows[j]
			if g.beside != a {
				continue
			}
			add(f.some, g.size, g.units)
			for d, u := range g.size {
				f.most[d] = max(f.most[d], u)
			}
			units, least = units+g.units, min(least, g.gives)
		}
		bear := m.marginAt(o, a).units(least)
		for d := range sum {
			if bear < units {
				f.some[d] = min(f.some[d], share.Mul(bear, f.most[d]))
			}
			sum[d] = share.Add(sum[d], f.some[d])
		}
	}
}

// inTurn chooses units in order, each that helps and may be given beside those before it, until a unit of a size fits; sum is what they take.
func (m *Planner) inTurn(o *pool, size, bound []int64, rows []giver) (found []victim) {
	sum, given := m.fairness.sum, m.fairness.given[:0]
	clear(sum)
	for i := range rows {
		g := &rows[i]
		if !helps(bound, sum, size, g.size) {
			continue
		}
		at := slices.IndexFunc(given, func(w way) bool { return w.node == g.beside })
		if at < 0 {
			at = len(given)
			given = append(given, way{node: g.beside})
		}
		for n := int64(0); n < g.units && helps(bound, sum, size, g.size) && m.stillAhead(o, g.beside, given[at].more+g.gives); n++ {
			given[at].more += g.gives
			if n == 0 {
				found = append(found, victim{g.q, 0})
			}
			found[len(found)-1].units++
			add(sum, g.size, 1)
		}
	}
	m.fairness.given = given
	return found
}

// stillAhead tells whether a consumer next to the taker's way is ahead when those below it give so much share and the taker has its unit.
func (m *Planner) stillAhead(o *pool, a plan.Node, gives int64) bool {
	c := &m.fairness.claim
	return m.aheadAt(o, a, c.way[m.policy.Depth[a]], gives, c.gets)
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

// alike chooses victims of one leaf and size that make room for a unit by themselves: of those of which it takes the fewest.
func (m *Planner) alike(o *pool, size, bound []int64, rows []giver) (best []victim) {
	sum, fewest := m.fairness.sum, int64(math.MaxInt64)
	for i := range rows {
		pair := rows[i].pair
		if slices.ContainsFunc(rows[:i], func(g giver) bool { return g.pair == pair }) {
			continue // tried with the first
		}
		clear(sum)
		var found []victim
		units := int64(0)
		for j := i; j < len(rows) && !covers(bound, sum, size); j++ {
			g := &rows[j]
			if g.pair != pair {
				continue
			}
			for n := int64(0); n < g.units && !covers(bound, sum, size) && m.stillAhead(o, g.beside, (units+1)*g.gives); n++ {
				if n == 0 {
					found = append(found, victim{g.q, 0})
				}
				found[len(found)-1].units++
				units++
				add(sum, g.size, 1)
			}
		}
		if covers(bound, sum, size) && units < fewest {
			best, fewest = found, units
		}
	}
	return best
}

func add(sum, size []int64, units int64) {
	for d, u := range size {
		sum[d] += u * units
	}
}
