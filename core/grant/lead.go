package grant

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/plan"
)

// Prospects are units that the window which comes would grant and keep (docs/shares.md, "Lead"): a row for each
// sub-allocation and host, in the order of D-14, hosts in host order.
type Prospects struct {
	Sub   column.Vector[cluster.SubID]
	Host  column.Vector[cluster.HostID]
	Units column.Vector[int64]
}

// Follow grants what the coming window would, as far as the present one bears it: while a sub-allocation was granted
// less in this cycle on a host than the row says, and is short of more than it is promised. It stands in for what
// leaves and pools are given. Decisions are added to out; limits are brought up by them. O(units × parcels of a host,
// and what the sub-allocations hold).
func Follow(e *Env, list *Prospects, out *Decisions) {
	f := follower{env: e, given: map[cluster.ParcelID][]cluster.SubID{}, more: map[cluster.SubID]int64{}}
	for i, sub := range list.Sub.Values() {
		host := list.Host.At(i)
		for left := list.Units.At(i) - grantedOn(e, sub, host); left > 0 && f.wants(sub); left-- {
			k := f.place(sub, host)
			if k == cluster.NoID {
				break
			}
			out.Sub.Add(sub)
			out.Parcel.Add(k)
		}
	}
}

// follower is what Follow has granted so far.
type follower struct {
	env   *Env
	given map[cluster.ParcelID][]cluster.SubID // a unit each
	more  map[cluster.SubID]int64
}

// grantedOn is how many units a sub-allocation was granted on a host in this cycle.
func grantedOn(e *Env, sub cluster.SubID, host cluster.HostID) (units int64) {
	h := &e.State.Holding
	for q := e.State.Sub.First[sub]; q != cluster.NoID; q = h.NextOfSub[q] {
		if h.Granted[q] > e.State.Cycle && e.Plan.Parcels.Host[h.Parcel[q]] == host {
			units += h.Units[q]
		}
	}
	return units
}

// wants tells whether a sub-allocation is short of more than it is promised.
func (f *follower) wants(sub cluster.SubID) bool {
	s := f.env.State
	return s.Short(sub)-f.more[sub] > f.env.Promises.Units[sub] && !f.env.Plan.TooSmall(s, sub) && !s.Forming(sub)
}

// place takes room for a unit on the first parcel of a host, by pools from the nearest up, that may take it; NoID when
// none may.
func (f *follower) place(sub cluster.SubID, host cluster.HostID) cluster.ParcelID {
	e, leaf, size := f.env, f.env.State.Node(sub), f.env.State.Size(sub)
	best, depth := cluster.ParcelID(cluster.NoID), int32(-1)
	for k, end := e.State.Host.Parcel[host], e.Plan.Parcels.End(e.State.Host.Parcel[host]); k < end; k++ {
		pool := e.Meet(leaf, k)
		over, _ := e.Limits.Over(&e.Env, leaf, pool, size)
		bears := over == plan.None && !e.Barred(pool, leaf) &&
			e.State.Policy.ReclaimUS[leaf] <= e.Grace(e.Owner(k), pool)
		if e.State.Policy.Depth[pool] > depth && bears && f.fits(k, pool, size) {
			best, depth = k, e.State.Policy.Depth[pool]
		}
	}
	if best == cluster.NoID {
		return best
	}
	f.given[best] = append(f.given[best], sub)
	if f.more[sub]++; e.Limits != nil {
		e.Limits.Add(&e.Env, leaf, e.Meet(leaf, best), size, 1)
	}
	return best
}

// fits tells whether a parcel has room for a unit beside what was granted there.
func (f *follower) fits(k cluster.ParcelID, pool plan.Node, size []int64) bool {
	e, fits := f.env, true
	for d, u := range size {
		free := e.Plan.Parcels.Available(d, k)
		for _, sub := range f.given[k] {
			free -= e.State.Size(sub)[d]
		}
		fits = fits && (u == 0 || free >= u)
	}
	e.Views.Reserves.Each(&e.State.Policy.Tree, k, pool, func(keeper plan.Node, amount []int64) {
		for d, u := range size {
			left := e.Promises.Left(k, keeper, d) - amount[d]
			for _, sub := range f.given[k] {
				if !e.Within(sub, keeper) {
					left -= e.State.Size(sub)[d]
				}
			}
			fits = fits && (u == 0 || left >= u)
		}
	})
	return fits
}
