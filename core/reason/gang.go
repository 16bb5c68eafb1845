package reason

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/pool"
	"github.com/stintd/stint/core/room"
	"github.com/stintd/stint/core/view"
)

// whole is the reason of units of a gang that waits (REQ-3): how many would fit now, and what stands in the way of the
// next: a limit that those reach, else what stands against a unit that fits nowhere.
func (r *Reasons) whole(one *short, v verdict) verdict {
	units, stop := r.fitting(one, &r.asks[one.ask])
	if units > 0 && stop != fits {
		v.code, v.detail = stop, ""
	}
	v.detail = decision.GangDetail(units, r.env.State.Sub.MinUnits[one.sub], r.env.Views.Needs.Where(one.sub), v.code,
		v.detail)
	v.code = decision.ReasonGang
	return v
}

// fitting is how many units of a gang that waits would fit now, of its min_units: on what its leaf draws on, from the
// nearest up, as far as share limits and max_per_host bear them; and which of these stops more, fits: neither.
// O(parcels).
func (r *Reasons) fitting(one *short, a *ask) (units int64, stop int32) {
	stop = fits
	e, most := r.env, r.env.State.Sub.MinUnits[one.sub]
	on, perHost := map[cluster.HostID]int64{}, e.State.Sub.MaxPerHost[one.sub]
	if perHost != plan.Unlimited {
		for q := e.State.Sub.First[one.sub]; q != cluster.NoID; q = e.State.Holding.NextOfSub[q] {
			on[e.Plan.Parcels.Host[e.State.Holding.Parcel[q]]] += e.State.Holding.Units[q]
		}
	}
	spans, us := r.spansOf(one.leaf), e.State.Policy.ReclaimUS[one.leaf]
	var spent []plan.Node
	for i := range spans {
		o := &spans[i]
		if e.Barred(o.pool, one.leaf) {
			continue
		}
		r.eachRow(a, o, us, func(row view.Row, free []int64) bool {
			n := min(pool.Fit(free, a.size), most-units)
			if perHost != plan.Unlimited {
				host := e.Plan.Parcels.Host[e.Views.Owned.Parcel[row]]
				if most := max(0, perHost-on[host]); most < n {
					n, stop = most, decision.ReasonMaxPerHost
				}
				on[host] += n
			}
			if e.Limits == nil {
				units += n
				return units < most
			}
			for range n {
				if over, _ := e.Limits.Over(&e.Env, one.leaf, o.pool, a.size); over != plan.None {
					stop = decision.ReasonShareLimit
					return false
				}
				e.Limits.Add(&e.Env, one.leaf, o.pool, a.size, 1)
				spent = append(spent, o.pool)
				units++
			}
			return units < most
		})
	}
	for _, top := range spent {
		e.Limits.Add(&e.Env, one.leaf, top, a.size, -1)
	}
	return units, stop
}

// eachRow calls f for the rows of a span that a unit may use and what is free there, until it is false.
func (r *Reasons) eachRow(a *ask, o *span, us int64, f func(row view.Row, free []int64) bool) {
	l, mask := &r.rooms.level[o.depth], r.maskOf(a, o, us).within
	for row := o.from; row < o.to; row++ {
		if row >= o.holeFrom && row < o.holeTo || !has(mask, room.Row(row)) || !l.set.Has(room.Row(row)) {
			continue
		}
		if !f(row, l.index.Free(room.Row(row))) {
			return
		}
	}
}
