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
		f.bound[d] = min(f.room[d][k], m.p.Parcels.Available(d, k))
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

// enough chooses victims on one parcel that make room for a unit from a pool: one alone if there is such a one, the
// first in order; else units in order until it fits, less those that are not needed after all.
func (m *Planner) enough(o *pool, sub cluster.SubID, k cluster.ParcelID, gets int64) []victim {
	f, size, leaf := &m.fairness, m.s.Size(sub), m.s.Node(sub)
	rows, bound := m.givers(o, k, f.here[:0]), m.bounds(k, o.node)
	f.here, f.sum = rows, zeroed(f.sum, len(size))
	if sum := f.sum; !covers(bound, sum, size) {
		rows = slices.DeleteFunc(rows, func(q cluster.HoldingID) bool { return !helps(bound, sum, size, m.s.Size(m.s.Holding.Sub[q])) })
	}
	if m.together(o, rows, f.sum); !covers(bound, f.sum, size) {
		return nil
	}
	slices.SortFunc(rows, func(a, b cluster.HoldingID) int { return m.victimFirst(o, a, b, leaf) })
	for _, q := range rows {
		if mutant != 45 && covers(bound, m.s.Size(m.s.Holding.Sub[q]), size) {
			return []victim{{q, 1}}
		}
	}
	found := m.inTurn(o, leaf, size, bound, rows, gets)
	if !covers(bound, f.sum, size) {
		if mutant == 46 {
			return nil
		}
		return m.alike(o, sub, bound, rows, gets)
	}
	return m.needed(found, bound, f.sum, size)
}

// together adds up what units of some rows could take with one another at most, as those below one consumer next to the taker's way give no more
// than its margin.
func (m *Planner) together(o *pool, rows []cluster.HoldingID, sum []int64) {
	f, h := &m.fairness, &m.s.Holding
	f.branch = f.branch[:0]
	for _, q := range rows {
		f.branch = append(f.branch, m.nextToWay(m.s.Node(h.Sub[q])))
	}
	f.most, f.some = resized(f.most, len(sum)), resized(f.some, len(sum))
	for i, a := range f.branch {
		if slices.Contains(f.branch[:i], a) {
			continue // counted with the first
		}
		clear(f.most)
		clear(f.some)
		units, least := int64(0), int64(math.MaxInt64)
		for j, q := range rows[i:] {
			if f.branch[i+j] != a {
				continue
			}
			size := m.s.Size(h.Sub[q])
			add(f.some, size, h.Units[q])
			for d, u := range size {
				f.most[d] = max(f.most[d], u)
			}
			units, least = units+h.Units[q], min(least, m.yieldOf(o, m.pairIn(o, h.Sub[q])).gives)
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
func (m *Planner) inTurn(o *pool, leaf plan.Node, size, bound []int64, rows []cluster.HoldingID, gets int64) (found []victim) {
	sum := m.fairness.sum
	clear(sum)
	given := m.fairness.given[:0] // by the victims' branches where they part from the taker's
	for _, q := range rows {
		each := m.s.Size(m.s.Holding.Sub[q])
		if !helps(bound, sum, size, each) {
			continue
		}
		a, _ := m.part(m.s.Node(m.s.Holding.Sub[q]), leaf)
		at := slices.IndexFunc(given, func(w way) bool { return w.node == a })
		if at < 0 {
			at = len(given)
			given = append(given, way{node: a})
		}
		for n := int64(0); n < m.s.Holding.Units[q] && helps(bound, sum, size, each) && m.gives(o, q, leaf, given[at].more, gets); n++ {
			given[at].more -= m.change(m.pairIn(o, m.s.Holding.Sub[q]), -1)
			if n == 0 {
				found = append(found, victim{q, 0})
			}
			found[len(found)-1].units++
			add(sum, each, 1)
		}
	}
	m.fairness.given = given
	return found
}

// needed leaves of victims that are enough together those that are needed: of each, in order, it drops what the others do without.
func (m *Planner) needed(found []victim, bound, sum, size []int64) []victim {
	for i := range found {
		v := m.s.Size(m.s.Holding.Sub[found[i].q])
		for found[i].units > 0 {
			if add(sum, v, -1); !covers(bound, sum, size) {
				add(sum, v, 1)
				break
			}
			found[i].units--
		}
	}
	return slices.DeleteFunc(found, func(v victim) bool { return v.units == 0 })
}

// alike chooses victims of one leaf and size that make room for a unit by themselves: of those of which it takes the fewest.
func (m *Planner) alike(o *pool, sub cluster.SubID, bound []int64, rows []cluster.HoldingID, gets int64) (best []victim) {
	size, leaf, fewest := m.s.Size(sub), m.s.Node(sub), int64(math.MaxInt64)
	sum, tried := make([]int64, len(size)), map[cluster.PairID]bool{}
	for _, first := range rows {
		pair := m.pairIn(o, m.s.Holding.Sub[first])
		if tried[pair] {
			continue
		}
		tried[pair] = true
		clear(sum)
		var found []victim
		units, each := int64(0), -m.change(pair, -1)
		for _, q := range rows {
			for n := int64(0); n < m.s.Holding.Units[q] && m.pairIn(o, m.s.Holding.Sub[q]) == pair && !covers(bound, sum, size); n++ {
				if !m.gives(o, q, leaf, units*each, gets) {
					break
				}
				if n == 0 {
					found = append(found, victim{q, 0})
				}
				found[len(found)-1].units++
				units++
				add(sum, m.s.Size(m.s.Holding.Sub[q]), 1)
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
