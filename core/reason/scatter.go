package reason

import (
	"math/bits"

	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/room"
)

// scatter shares free room that no single host has among the units that are short for it, so that reasons of the kind
// fragmented name no more units than it could carry (docs/spec/md.md, Reasons).
type scatter struct {
	sums  []counts           // the rooms that verdicts are about
	taken map[rowSet]amounts // by the rows of a sum: what units named so far would take of it
	whole amounts            // what they would take of the plan
	free  amounts            // of the plan; nil: not known yet
}

// amounts are totals by dimension.
type amounts []total

// rowSet tells apart sets of rows, each seen in the level of a depth: the sum of a mark of each row.
type rowSet uint64

// rowAt is the mark of a row in the level of a depth: all bits depend on both (splitmix64).
func rowAt(depth int32, row room.Row) rowSet {
	x := (uint64(depth)<<32 | uint64(uint32(row))) + 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return rowSet(x ^ x>>31)
}

// reset forgets the units of the cycle before.
func (s *scatter) reset() {
	s.sums, s.taken, s.whole, s.free = s.sums[:0], map[rowSet]amounts{}, nil, nil
}

// add keeps a sum, and gives its place.
func (s *scatter) add(sum *counts) int {
	s.sums = append(s.sums, *sum)
	return len(s.sums) - 1
}

// take gives how many of some units a sum and the plan still carry, and counts these as named. O(dimensions), and once
// in a cycle O(parcels × dimensions).
func (s *scatter) take(r *Reasons, a *ask, sum *counts, units int64) int64 {
	if s.free == nil {
		s.free, s.whole = r.freeOfPlan(), make(amounts, len(r.rooms.most))
	}
	taken := s.taken[sum.set]
	if taken == nil {
		taken = make(amounts, len(r.rooms.most))
		s.taken[sum.set] = taken
	}
	for i, d := range a.dims {
		here, all := sum.free[i], s.free[d]
		here.less(taken[d])
		all.less(s.whole[d])
		units = min(units, here.carries(a.size[d]), all.carries(a.size[d]))
	}
	for _, d := range a.dims {
		hi, lo := bits.Mul64(uint64(units), uint64(a.size[d]))
		taken[d].plus(total{hi, lo})
		s.whole[d].plus(total{hi, lo})
	}
	return units
}

// freeOfPlan is the room that parcels on open hosts have for their owners. O(parcels × dimensions).
func (r *Reasons) freeOfPlan() amounts {
	e, sum := r.env, make(amounts, len(r.rooms.most))
	for n := range plan.Node(e.State.Policy.Len()) {
		depth := e.State.Policy.Depth[n]
		from, to := e.Views.Owned.Own(n)
		for row := from; row < to; row++ {
			l := &r.rooms.level[depth]
			if !l.set.Has(room.Row(row)) {
				continue
			}
			for d, amount := range l.index.Free(room.Row(row))[:len(sum)] {
				sum[d].add(max(0, amount))
			}
		}
	}
	return sum
}
