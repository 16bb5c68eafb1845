package md

import (
	"math"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
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
	size, leaf := m.s.Size(sub), m.s.Node(sub)
	rows, sum, bound := m.givers(o, k, m.fairness.here[:0]), zeroed(m.fairness.sum, len(size)), m.bounds(k, o.node)
	m.fairness.sum = sum
	for _, q := range rows {
		add(sum, m.s.Size(m.s.Holding.Sub[q]), m.s.Holding.Units[q])
	}
	if m.fairness.here = rows; !covers(bound, sum, size) {
		return nil // not even all together
	}
	slices.SortFunc(rows, func(a, b cluster.HoldingID) int { return m.victimFirst(o, a, b, leaf) })
	for _, q := range rows {
		if mutant != 45 && covers(bound, m.s.Size(m.s.Holding.Sub[q]), size) {
			return []victim{{q, 1}}
		}
	}
	clear(sum)
	var found []victim
	given := map[plan.Node]int64{} // by the victims' branches where they part from the taker's
	for _, q := range rows {
		each := m.s.Size(m.s.Holding.Sub[q])
		for n := int64(0); n < m.s.Holding.Units[q] && helps(bound, sum, size, each); n++ {
			a, _ := m.part(m.s.Node(m.s.Holding.Sub[q]), leaf)
			if !m.gives(o, q, leaf, given[a], gets) {
				break
			}
			given[a] -= m.change(m.pairIn(o, m.s.Holding.Sub[q]), -1)
			if n == 0 {
				found = append(found, victim{q, 0})
			}
			found[len(found)-1].units++
			add(sum, each, 1)
		}
	}
	if !covers(bound, sum, size) {
		if mutant == 46 {
			return nil
		}
		return m.alike(o, sub, bound, rows, gets)
	}
	return m.needed(found, bound, sum, size)
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
