// Package reason tells why sub-allocations of an MD plan are short: the first thing that stops their next unit (D-7,
// and step 9 of docs/shares.md). It is given the state as it is after a cycle's grants and reclaims, with what the
// cycle knows beside, and gives back columns; it changes nothing.
package reason

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/pool"
	"github.com/stintd/stint/core/room"
)

// Env is what reasons go by.
type Env struct {
	pool.Env
	Promises *pool.Promises
	Figures  *pool.Book
	Granted  *pool.Limits           // what consumers held net once everything was granted; nil: the plan sets no limit
	Limits   *pool.Limits           // what they hold now
	Denied   map[cluster.SubID]bool // the reclaim budget did not bear what they would have taken
}

func (e *Env) capacity(top plan.Node, shape cluster.ShapeID) int64 {
	return e.Views.Capacity.Of(e.State, top, shape)
}

// Shortfalls are units that are short, in the order of D-14: of a sub-allocation those that are promised, then the
// others.
type Shortfalls struct {
	Sub       column.Vector[cluster.SubID]
	Units     column.Vector[int64]
	Reason    column.Vector[int32]     // decision.Reasons
	Dimension column.Vector[int32]     // of the policy, decision.Null: none is to blame
	Blocker   column.Vector[plan.Node] // plan.None: nobody is
	Until     column.Vector[int64]     // µs; 0: not known
	Detail    column.Vector[int32]     // of Details, decision.Null: none
	Details   *cluster.Names           // set by the caller
}

// add adds a row.
func (t *Shortfalls) add(sub cluster.SubID, units int64, v *verdict, untilUS int64) {
	detail := decision.Null
	if v.detail != "" {
		detail = t.Details.InternString(v.detail)
	}
	t.Sub.Add(sub)
	t.Units.Add(units)
	t.Reason.Add(v.code)
	t.Dimension.Add(v.dimension)
	t.Blocker.Add(v.blocker)
	t.Until.Add(untilUS)
	t.Detail.Add(detail)
}

// Reasons finds them, and keeps from cycle to cycle what is known of room. The zero value is ready.
type Reasons struct {
	Eager bool // what saves time where parcels are many is done wherever it may be. It decides nothing

	env     *Env
	rooms   rooms
	tallies tallies
	masks   masks
	waits   waits
	bounds  map[bound]verdict
	limited bool // the plan has a share limit, a ratio of 0, or a budget that is used up

	short   []short
	asks    []ask
	askOf   map[askKey]int32
	judged  map[viewer]verdict
	scatter scatter
	spans   []span   // scratch
	full    []uint64 // scratch: bitset of rows
	fullRow []room.Row
}

// short is a sub-allocation that is short.
type short struct {
	sub   cluster.SubID
	leaf  plan.Node
	ask   int32 // NoID: nothing of it but what is promised
	waits int64 // units promised
	units int64 // others
}

type askKey struct {
	shape cluster.ShapeID
	need  cluster.NeedID
}

// Explain adds the shortfalls of a plan. O(sub-allocations, what changed since the last time, and of what is asked for
// in different ways, for those who may have different parcels: blocks of parcels that may have room).
func (r *Reasons) Explain(e *Env, out *Shortfalls) {
	r.env, r.limited = e, e.isLimited()
	r.list()
	r.ready()
	r.waits.sum(e)
	for i := range r.short {
		one := &r.short[i]
		if one.waits > 0 {
			v, untilUS := r.waits.reason(one.sub)
			out.add(one.sub, one.waits, &v, untilUS)
		}
		if one.units > 0 {
			r.explain(one, out)
		}
	}
}

// explain adds the rows of units that are not promised.
func (r *Reasons) explain(one *short, out *Shortfalls) {
	v, rest := r.why(one), one.units
	switch until := v.untilUS; {
	case r.env.State.Forming(one.sub):
		v = r.whole(one, v)
		out.add(one.sub, rest, &v, until)
		return
	case v.code == decision.ReasonFragmented:
		a, sum := &r.asks[one.ask], &r.scatter.sums[v.sum]
		if n := r.scatter.take(r, a, sum, rest); n > 0 {
			out.add(one.sub, n, &v, 0)
			rest -= n
		}
		v = r.outrun(one, v.dimension)
	}
	if rest > 0 {
		out.add(one.sub, rest, &v, v.untilUS)
	}
}

// list lists who is short, and what is asked for. O(sub-allocations).
func (r *Reasons) list() {
	e := r.env
	r.short, r.asks, r.askOf = r.short[:0], r.asks[:0], map[askKey]int32{}
	for leaf := range e.Plan.FirstAlloc {
		e.EachSub(plan.Node(leaf), func(sub cluster.SubID) {
			units := e.State.Short(sub)
			if units <= 0 || e.State.Sub.Orphan[sub] {
				return
			}
			one := short{sub: sub, leaf: plan.Node(leaf), ask: cluster.NoID, waits: min(units, e.Promises.Units[sub])}
			if one.units = units - one.waits; one.units > 0 {
				one.ask = r.ask(askKey{e.State.Sub.Shape[sub], e.Views.Needs.Need(e.State, sub)})
			}
			r.short = append(r.short, one)
		})
	}
}

// ask is the number of what is asked for.
func (r *Reasons) ask(key askKey) int32 {
	at, ok := r.askOf[key]
	if !ok {
		at = int32(len(r.asks))
		r.askOf[key] = at
		r.asks = append(r.asks, ask{shape: key.shape, need: key.need, size: r.env.State.Shape.Size(key.shape)})
	}
	return at
}

// ready brings up what is known of room, and prepares the asks.
func (r *Reasons) ready() {
	e, stale := r.env, r.masks.stale(r.env)
	news := r.rooms.follow(e, func(depth int32, row room.Row, was, is []int64) {
		n := e.Owner(e.Views.Owned.Parcel[row])
		for ; n != plan.None && e.State.Policy.Depth[n] >= depth; n = e.State.Policy.Parent[n] {
			r.tallies.move(place{depth, n}, row, was, is)
		}
	})
	if stale || news != sameHosts {
		r.masks.reset(e)
		r.tallies.reset()
		r.bounds = map[bound]verdict{}
	}
	r.tallies.know(e.State, len(e.Plan.Parcels.Cap), r.asks)
	r.judged, r.full = map[viewer]verdict{}, column.Zeros(r.full, e.Plan.Parcels.Words())
	r.scatter.reset()
	for i := range r.asks {
		r.asks[i] = r.begin(r.asks[i].shape, r.asks[i].need)
	}
}

// why is the reason of units that are not promised: the first of D-7 that applies.
func (r *Reasons) why(one *short) verdict {
	e, a := r.env, &r.asks[one.ask]
	e.State.Yield()
	if e.Plan.TooSmall(e.State, one.sub) {
		return because(decision.ReasonTooSmall, "")
	}
	if a.bound.code == decision.ReasonNoHostMatches {
		return a.bound
	}
	stop := r.stops(one.leaf, a.shape)
	if from, to := e.Views.Owned.Own(one.leaf); stop.all && from == to {
		return stop.why
	}
	v := r.itself(one, a, stop.depth)
	switch v.code {
	case decision.ReasonTooBig, decision.ReasonMaxPerHost, decision.ReasonGraceFilter:
		return v
	}
	if own, yes := r.unowned(one.leaf, a.shape); yes {
		return own
	}
	switch {
	case stop.all:
		return stop.why
	case v.code == decision.ReasonShareLimit:
		v, _ = r.stopped(one.leaf, a.shape, v.pool)
		return v
	case v.code != fits:
		return v
	}
	return r.outrun(one, v.dimension)
}

// outrun is the reason of units that nothing about them stops: the reclaim budget, or others of a pool, which is scarce
// in a dimension.
func (r *Reasons) outrun(one *short, dimension int32) verdict {
	if r.env.Denied[one.sub] {
		return because(decision.ReasonReclaimBudget, r.env.Plan.BudgetDetail())
	}
	v := verdict{dimension: dimension}
	v.code, v.blocker = r.rival(one.leaf, r.asks[one.ask].shape)
	return v
}

// itself is what stands against a unit by itself: size, max_per_host, grace, stopped pools, scattered room.
func (r *Reasons) itself(one *short, a *ask, stopped int32) verdict {
	e := r.env
	if a.bound.code != fits || a.count == 0 {
		return a.bound
	}
	if e.State.Sub.MaxPerHost[one.sub] != plan.Unlimited {
		return r.judge(a, one.leaf, stopped, r.fullRows(one.sub))
	}
	who := viewer{one.ask, one.leaf, e.State.Policy.ReclaimUS[one.leaf], stopped}
	if from, to := e.Views.Owned.Own(one.leaf); from == to {
		who.of = e.State.Policy.Parent[one.leaf]
	}
	v, ok := r.judged[who]
	if !ok {
		v = r.judge(a, one.leaf, stopped, nil)
		r.judged[who] = v
	}
	return v
}

// fullRows is the rows of hosts on which a sub-allocation holds its max_per_host.
func (r *Reasons) fullRows(sub cluster.SubID) []room.Row {
	e, p, on := r.env, &r.env.Plan.Parcels, map[cluster.ParcelID]int64{}
	r.fullRow = r.fullRow[:0]
	for q := e.State.Sub.First[sub]; q != cluster.NoID; q = e.State.Holding.NextOfSub[q] {
		k, most := p.Begin(e.State.Holding.Parcel[q]), e.State.Sub.MaxPerHost[sub]
		was := on[k]
		if on[k] += e.State.Holding.Units[q]; was >= most || on[k] < most {
			continue
		}
		for end := p.End(k); k < end; k++ {
			r.fullRow = append(r.fullRow, room.Row(e.Views.Owned.RowOf(k)))
		}
	}
	return r.fullRow
}

// Rebuilt is how often all rooms were made anew.
func (r *Reasons) Rebuilt() int { return r.rooms.rebuilt }
