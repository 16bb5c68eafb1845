package oracle

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// Placement of MD plans (MD-20), by docs/spec/md.md.

// scale is the largest of the steps in which best fit looks at free room and sizes.
const scale = 1023

// lots are the parcels that a sub-allocation may use in the pool, those of one preference together (MD-6).
func (q pool) lots(s *sub) (lots [][]parcel) {
	list := q.usable(s)
	slices.SortStableFunc(list, func(a, b parcel) int { return cmp.Compare(q.merit(a), q.merit(b)) })
	for i, t := range list {
		if i == 0 || q.merit(t) != q.merit(list[i-1]) {
			lots = append(lots, nil)
		}
		lots[len(lots)-1] = append(lots[len(lots)-1], t)
	}
	return lots
}

// merit orders the parcels of the pool: what it owns by its preference, best first; what is lent by the owner's, worst
// first.
func (q pool) merit(t parcel) int {
	switch group := q.group[t.host]; {
	case t.owner != q.at:
		return 100 - int(q.w.Preference[group][t.owner])
	case q.at == plan.Root:
		return 0
	default:
		return int(q.w.Preference[group][q.at])
	}
}

// window is how many candidates best fit has for a unit (MD-20.3).
func (g *round) window() int64 { return min(128, max(2, int64(len(g.vectors))/64)) }

// frontier is the first parcels of a lot that take a unit, for n units (MD-20.2).
func (g *round) frontier(lot []parcel, n int64, takes func(t parcel) bool) (list []parcel) {
	for _, t := range lot {
		if int64(len(list)) == max(16, g.window()*n) {
			break
		}
		if takes(t) {
			list = append(list, t)
		}
	}
	return list
}

// best are the n parcels of a frontier that score most, in parcel order; of a short one as many as it is windows.
func (g *round) best(s *sub, front []parcel, n int64) []parcel {
	at := make([]int, len(front))
	scores, sums := make([]uint64, len(front)), make([]uint64, len(front))
	for i, t := range front {
		at[i] = i
		scores[i], sums[i] = g.score(s, t)
	}
	slices.SortStableFunc(at, func(a, b int) int {
		return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(sums[a], sums[b]))
	})
	at = at[:min(n, max(1, int64(len(at))/g.window()), int64(len(at)))]
	slices.Sort(at)
	list := make([]parcel, len(at))
	for i, k := range at {
		list[i] = front[k]
	}
	return list
}

// score is how alike a parcel's room and a unit are, in 0 … 512, and Σ f (MD-20.1).
func (g *round) score(s *sub, t parcel) (score, sum uint64) {
	var fu, ff, uu uint64
	room := g.room(s.alloc.leaf, t)
	for d, most := range g.largest {
		if most == 0 {
			continue
		}
		f, _ := muldiv(scale, uint64(min(max(0, room[d]), most)), uint64(most))
		u := g.step(s, d)
		fu, ff, uu, sum = fu+f*u, ff+f*f, uu+u*u, sum+f
	}
	if ff*uu == 0 {
		return 0, sum
	}
	score, _ = muldiv(512, fu*fu, ff*uu)
	return score, sum
}

// step is a unit's size in a dimension in 1023rds of the largest amount, rounded up.
func (g *round) step(s *sub, d int) uint64 {
	most := uint64(g.largest[d])
	if most == 0 {
		return 0
	}
	part, rest := muldiv(scale, min(uint64(s.size[d]), most), most)
	return part + min(rest, 1)
}

// largest is the most of a unit's sizes in these steps: kinds are placed in this order (MD-16.6).
func (f *filling) largest(s *sub) (most uint64) {
	for d := range s.size {
		most = max(most, f.round.step(s, d))
	}
	return most
}

// deal gives what was placed to the asks (MD-16.9).
func (f *filling) deal() {
	for _, k := range f.kinds {
		at := 0
		for _, s := range k.subs {
			for range f.given[s] {
				u := k.placed[at]
				u.sub, at = s, at+1
				s.held++
				f.Cluster.label(u, u.owner)
			}
		}
		if at != len(k.placed) {
			panic(fmt.Sprintf("BUG: %d units of a kind were placed, %d given", len(k.placed), at))
		}
	}
}
