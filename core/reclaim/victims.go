//go:build !rounds

package reclaim

import (
	"math"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// several chooses victims for a share among the rows on one parcel, which it sorts, that together make room for the
// taker's unit and lower the sum of squares: one after the other, less those that are not needed after all; where
// that leads to nothing, of one leaf and size alone, of those of which it takes the fewest. Nil: there are none.
func (g *Stage) several(k cluster.ParcelID, rows []int32) []victim {
	g.s.Yield()
	v, size, sum := g.fair.v, g.s.Size(g.fair.taker.sub), make([]int64, g.dims)
	bound := slices.Clone(g.lesser(k, v.top))
	for _, i := range rows {
		one := &g.row[i]
		surplus, gives := -v.deficit(one.leaf), v.gives(v.find(g, one.leaf, one.shape), 0)
		if g.mayGive(one.leaf, surplus, gives-1) { // what a unit counts may be one 2⁻⁴⁸ less than the one before
			add(sum, g.s.Shape.Size(one.shape), min(mostUnits(surplus, gives), one.units))
		}
	}
	if !covers(bound, sum, size) {
		return nil // not even all together
	}
	slices.SortFunc(rows, g.giverFirst)
	clear(sum)
	if list := g.inTurn(size, bound, sum, rows); covers(bound, sum, size) {
		if list = g.needed(list, size, bound, sum); g.lower(list) {
			return list
		}
	}
	return g.alike(size, bound, rows)
}

// inTurn chooses units of rows in order until a unit of a size fits: each that helps, that its leaf may give beside
// those before it, and that brings the leaf nearer to its quota or leaves the sum of squares lower all the same. What
// they take is added to sum.
func (g *Stage) inTurn(size, bound, sum []int64, rows []int32) (list []victim) {
	f, squares := &g.fair, g.fair.taker.begin()
	given := map[plan.Node]int64{}
	var gifts []gift
	for _, i := range rows {
		one := &g.row[i]
		row, of := f.v.find(g, one.leaf, one.shape), g.s.Shape.Size(one.shape)
		before := int64(0)
		for _, other := range gifts {
			if other.row == row {
				before = other.units
			}
		}
		n := int64(0)
		for ; n < one.units && helps(bound, sum, size, of); n++ {
			surplus, gives := -f.v.deficit(one.leaf)-given[one.leaf], f.v.gives(row, before+n)
			own, both := share.Squares{}, squares
			own.Add(surplus-share.Slack, gives)
			both.Add(surplus-share.Slack, gives)
			if !g.mayGive(one.leaf, surplus, gives) || !own.Lower() && !both.Lower() {
				break
			}
			squares = both
			given[one.leaf] += gives
			add(sum, of, 1)
		}
		if n > 0 {
			list, gifts = append(list, victim{i, n}), addGift(gifts, one.leaf, row, n)
		}
	}
	return list
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

// needed leaves of victims that are enough together those that are needed: of each, in order, it drops what the
// others do without; of several rows of one sub-allocation the last chosen first, so that units that were granted in
// this cycle stay chosen (CYC-1).
func (g *Stage) needed(list []victim, size, bound, sum []int64) []victim {
	last := func(sub cluster.SubID) int {
		for i := len(list) - 1; i >= 0; i-- {
			if list[i].units > 0 && g.row[list[i].row].sub == sub {
				return i
			}
		}
		return -1
	}
	for _, v := range list {
		one := &g.row[v.row]
		of := g.s.Shape.Size(one.shape)
		for i := last(one.sub); i >= 0; i = last(one.sub) {
			if add(sum, of, -1); !covers(bound, sum, size) {
				add(sum, of, 1)
				break
			}
			list[i].units--
		}
	}
	return slices.DeleteFunc(list, func(v victim) bool { return v.units == 0 })
}

// lower tells whether the sum of squares is lower when some units are given for the taker's.
func (g *Stage) lower(list []victim) bool {
	v, sum := g.fair.v, g.fair.taker.begin()
	var gifts []gift
	for _, one := range list {
		row := &g.row[one.row]
		gifts = addGift(gifts, row.leaf, v.find(g, row.leaf, row.shape), one.units)
	}
	eachGiver(v, gifts, -1, func(leaf plan.Node, gives int64) { sum.Add(-v.deficit(leaf)-share.Slack, gives) })
	return sum.Lower()
}

// alike chooses units of one leaf and size that make room for a unit by themselves: of those of which it takes the
// fewest.
func (g *Stage) alike(size, bound []int64, rows []int32) (best []victim) {
	v, sum, fewest, seen := g.fair.v, make([]int64, g.dims), int64(math.MaxInt64), []int32(nil)
	for n, i := range rows {
		leaf, of := g.row[i].leaf, g.s.Shape.Size(g.row[i].shape)
		pair := v.find(g, leaf, g.row[i].shape)
		if slices.Contains(seen, pair) {
			continue
		}
		seen = append(seen, pair)
		clear(sum)
		var list []victim
		units, surplus, may := int64(0), -v.deficit(leaf), true
		for _, j := range rows[n:] {
			if v.find(g, g.row[j].leaf, g.row[j].shape) != pair {
				continue
			}
			one := victim{j, 0}
			for may && one.units < g.row[j].units && !covers(bound, sum, size) {
				gives := v.gives(pair, units)
				if may = g.mayGive(leaf, surplus, gives); may {
					units, surplus, one.units = units+1, surplus-gives, one.units+1
					add(sum, of, 1)
				}
			}
			if one.units > 0 {
				list = append(list, one)
			}
		}
		if covers(bound, sum, size) && units < fewest && g.lower(list) {
			best, fewest = list, units
		}
	}
	return best
}
