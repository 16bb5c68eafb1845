package grant

import (
	"cmp"
	"math"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/pool"
)

// Given is how many units of their sets takers were given, a row for each set that gave any.
type Given struct {
	Set   column.Vector[cluster.SetID]
	Units column.Vector[int64]
}

// Promised gives takers what sets hold for them, where its room has come free (step 3 of docs/shares.md): sets in order
// of number, while the room of the parcel with what the set keeps covers a unit, and held units pass no share limit
// with it (MD-18.3). Gangs that wait come last, those with the earliest set first, each when it is given all of its
// min_units. Decisions are added to out.
// O(sets, what is held on their parcels where those have reserves, and by size where share limits are set).
func Promised(e *Env, out *Decisions, given *Given) {
	var waiting []cluster.SubID
	on := map[cluster.ParcelID][]taker{}
	limits := pool.HeldLimits(&e.Env)
	for _, id := range e.Promises.Set {
		k, sub := e.State.Aim(id), e.State.Set.Taker[id]
		forming := e.State.Forming(sub)
		if forming && !slices.Contains(waiting, sub) {
			waiting = append(waiting, sub)
		}
		if k == cluster.NoID {
			continue
		}
		if on[k] == nil {
			on[k] = takersOf(e, e.Promises.On(k))
		}
		if t := takerOf(on[k], id); !forming {
			t.units = min(e.State.Set.Units[id], roomOf(e, k, t, on[k]), limits.Left(&e.Env,
				t.leaf, e.Meet(t.leaf, k), t.size))
			t.give(e, k, limits, out, given)
		}
	}
	for _, sub := range waiting {
		promisedWhole(e, sub, on, limits, out, given)
	}
}

// takerOf is the taker of a set.
func takerOf(list []taker, id cluster.SetID) *taker {
	return &list[slices.IndexFunc(list, func(t taker) bool { return t.id == id })]
}

// promisedWhole gives a gang that waits what its sets hold for it, where that is all of its min_units.
func promisedWhole(e *Env, sub cluster.SubID, on map[cluster.ParcelID][]taker, limits *pool.Limits, out *Decisions,
	given *Given) {
	units := e.State.Staying(sub)
	var list []*taker
	for _, id := range e.Promises.Set {
		k := e.State.Aim(id)
		if e.State.Set.Taker[id] != sub || k == cluster.NoID {
			continue
		}
		t := takerOf(on[k], id)
		t.units = min(e.State.Set.Units[id], roomOf(e, k, t, on[k]), limits.Left(&e.Env, t.leaf,
			e.Meet(t.leaf, k), t.size))
		t.count(e, k, limits, t.units)
		units += t.units
		list = append(list, t)
	}
	for _, t := range list {
		k := e.State.Aim(t.id)
		t.count(e, k, limits, -t.units)
		if units < e.State.Sub.MinUnits[sub] {
			t.units = 0
			continue
		}
		t.give(e, k, limits, out, given)
	}
}

// taker is a set that gives.
type taker struct {
	id    cluster.SetID
	sub   cluster.SubID
	leaf  plan.Node
	size  []int64
	units int64 // given
}

// takersOf lists the sets of a parcel in order of number.
func takersOf(e *Env, sets []cluster.SetID) []taker {
	s, list := e.State, make([]taker, len(sets))
	for i, id := range sets {
		sub := s.Set.Taker[id]
		list[i] = taker{id: id, sub: sub, leaf: s.Node(sub), size: s.Size(sub)}
	}
	slices.SortFunc(list, func(a, b taker) int { return cmp.Compare(s.Set.Number[a.id], s.Set.Number[b.id]) })
	return list
}

// count adds units to what consumers above a set's taker hold.
func (t *taker) count(e *Env, k cluster.ParcelID, limits *pool.Limits, units int64) {
	if top := e.Meet(t.leaf, k); limits != nil && top != t.leaf {
		limits.Add(&e.Env, t.leaf, top, t.size, units)
	}
}

// give adds the rows of what a set gives.
func (t *taker) give(e *Env, k cluster.ParcelID, limits *pool.Limits, out *Decisions, given *Given) {
	t.count(e, k, limits, t.units)
	for range t.units {
		out.Sub.Add(t.sub)
		out.Parcel.Add(k)
	}
	if t.units > 0 {
		given.Set.Add(t.id)
		given.Units.Add(t.units)
	}
}

// roomOf is how many units of its taker the room of a set's parcel covers with what the set keeps, beside what sets of
// the parcel have given and what the others keep by now: dimension by dimension, for all and for outsiders of each
// lender beside its reserve.
func roomOf(e *Env, k cluster.ParcelID, t *taker, list []taker) int64 {
	units := int64(math.MaxInt64)
	fit := func(base func(d int) int64, counts func(leaf plan.Node) bool) {
		for d, size := range t.size {
			if size == 0 {
				continue
			}
			left := base(d)
			for i := range list {
				if o := &list[i]; counts(o.leaf) {
					if left -= o.units * o.size[d]; o.id != t.id {
						left -= keptAfter(e.State, o, d)
					}
				}
			}
			units = min(units, max(0, left)/size)
		}
	}
	fit(func(d int) int64 {
		free := e.Plan.Parcels.Available(d, k)
		if e.Plan.Parcels.Kept != nil {
			free += e.Plan.Parcels.Kept[d][k]
		}
		return free
	}, func(plan.Node) bool { return true })
	pool := e.Meet(t.leaf, k)
	e.Views.Reserves.Each(&e.State.Policy.Tree, k, pool, func(keeper plan.Node, amount []int64) {
		fit(func(d int) int64 { return e.Beside(k, keeper, d) - amount[d] },
			func(leaf plan.Node) bool { return !e.State.Policy.Within(leaf, keeper) })
	})
	return units
}

// keptAfter is what a set keeps when it has given some units: the room of the others that its victims do not occupy.
func keptAfter(s *cluster.State, t *taker, d int) int64 {
	if t.units == 0 {
		return s.Kept(t.id, d)
	}
	left := int64(0)
	for q := s.Set.First[t.id]; q != cluster.NoID; q = s.Holding.NextOfSet[q] {
		if s.Holding.Parcel[q] == s.Aim(t.id) {
			left += s.Size(s.Holding.Sub[q])[d] * s.Holding.Units[q]
		}
	}
	return max(0, (s.Set.Units[t.id]-t.units)*t.size[d]-left)
}

// Book takes what was given off the sets. What victims still hold of a set that has given all stays theirs. O(sets, and
// their victims).
func (g *Given) Book(s *cluster.State) {
	for i, id := range g.Set.Values() {
		rest := s.Set.Units[id] - g.Units.At(i)
		s.Promise(id, rest)
		for rest == 0 && s.Set.Number[id] > 0 {
			q := s.Set.First[id]
			s.Cancel(q, s.Holding.Units[q])
		}
	}
}
