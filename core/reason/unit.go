package reason

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/room"
	"github.com/stintd/stint/core/view"
)

// ask is what units have in common that are of one size and have one requirement.
type ask struct {
	shape cluster.ShapeID
	need  cluster.NeedID
	size  []int64
	dims  []int // in which the size is not 0
	place []int // by place in dims: of the size among tallies.size
	fit   []room.Need
	first map[search]room.Row

	bySums map[search]int // how many rows would take a unit by sums, whatever finds devices; of plans with devices
	count  int            // parcels on open hosts that the requirement selects
	bound  verdict        // whoever asks: no parcel for the requirement, or none large enough; fits: neither
}

// verdict is what stands against a unit.
type verdict struct {
	code      int32     // decision.Reasons, or fits
	dimension int32     // decision.Null: none is to blame
	blocker   plan.Node // plan.None: nobody is
	pool      plan.Node // whose pool a share limit is about, where that is still to be told
	sum       int       // of scatter.sums: the room that a reason fragmented is about
	detail    string
	untilUS   int64 // when it stands against it no more; 0: not known
}

// fits is the code where nothing about the unit itself stands against it: then priority and quota decide.
const fits = -1

// because is a verdict without dimension and blocker.
func because(code int32, detail string) verdict {
	return verdict{code: code, dimension: decision.Null, blocker: plan.None, detail: detail}
}

// viewer is whose units are judged together: they may have the same parcels.
type viewer struct {
	ask     int32
	of      plan.Node // the leaf, or its parent where it owns nothing
	us      int64     // reclaim_grace
	stopped int32     // depth of the deepest pool that a limit stops, -1: none
}

// span is the rows on which a leaf draws through one pool: from … to-1 without those of the hole.
type span struct {
	pool             plan.Node
	depth            int32
	hole             plan.Node // what is nearer to the leaf; plan.None: nothing is
	from, to         view.Row
	holeFrom, holeTo view.Row
}

// spansOf lists what a leaf draws on: its own parcels, then by pools up to the root.
func (r *Reasons) spansOf(leaf plan.Node) []span {
	e, t := r.env, &r.env.State.Policy.Tree
	r.spans = r.spans[:0]
	hole, holeFrom, holeTo := plan.None, view.Row(0), view.Row(0)
	for n := leaf; n != plan.None; n = t.Parent[n] {
		from, to := e.Views.Owned.Below(n)
		if hole == plan.None {
			holeFrom, holeTo = to, to
		}
		if to-from > holeTo-holeFrom {
			r.spans = append(r.spans, span{n, t.Depth[n], hole, from, to, holeFrom, holeTo})
		}
		hole, holeFrom, holeTo = n, from, to
	}
	return r.spans
}

// begin prepares an ask.
func (r *Reasons) begin(shape cluster.ShapeID, need cluster.NeedID) ask {
	e := r.env
	a := ask{shape: shape, need: need, size: e.State.Shape.Size(shape), count: r.masks.of(e, r.rooms.open, need).count}
	for d, v := range a.size {
		if v > 0 {
			a.dims, a.place = append(a.dims, d), append(a.place, r.tallies.placeOf(d, v))
		}
	}
	for depth := range r.rooms.level {
		a.fit = append(a.fit, r.need(depth, a.size))
	}
	at, ok := bound{shape, requirement(e, need)}, false
	if a.bound, ok = r.bounds[at]; !ok {
		a.bound = r.everywhere(&a)
		if len(r.bounds) < boundsMost {
			r.bounds[at] = a.bound
		}
	}
	return a
}

// bound is what everywhere goes by, beside hosts and their attributes.
type bound struct {
	shape cluster.ShapeID
	of    *plan.Requirement
}

// boundsMost is of how many asks it is kept at most whether there is a parcel for them.
const boundsMost = 1 << 16

// everywhere tells whether there is a parcel for a requirement, and one that is large enough.
func (r *Reasons) everywhere(a *ask) verdict {
	e := r.env
	if a.count == 0 {
		if a.need == cluster.NoID {
			return because(fits, "")
		}
		return because(decision.ReasonNoHostMatches, requirement(e, a.need).Text)
	}
	seen := counts{rows: a.count}
	for w, rows := range r.masks.of(e, r.rooms.open, a.need).rows {
		for ; rows != 0; rows &= rows - 1 {
			k, large := e.Views.Owned.Parcel[w<<6+bits.TrailingZeros64(rows)], true
			for i, d := range a.dims {
				if e.Plan.Parcels.Cap[d][k] < a.size[d] {
					seen.below[i]++
					large = false
				}
			}
			if large {
				return because(fits, "")
			}
		}
	}
	return r.scarce(decision.ReasonTooBig, a, &seen, "are smaller")
}

// scarce names the dimension in which most of the parcels counted have less than a unit takes.
func (r *Reasons) scarce(code int32, a *ask, c *counts, what string) verdict {
	v, most := because(code, ""), 0
	for i, d := range a.dims {
		if c.below[i] > most {
			most, v.dimension = c.below[i], int32(d)
		}
	}
	if v.dimension != decision.Null && code != fits {
		v.detail = fmt.Sprintf("a unit takes %d %s, %d of %d hosts %s", a.size[v.dimension],
			r.env.State.Policy.Dimensions[v.dimension], most, c.rows, what)
	}
	return v
}

// together ends a detail with what parcels have free of a dimension, all together.
func (r *Reasons) together(a *ask, c *counts, dimension int32) string {
	i := slices.Index(a.dims, int(dimension))
	return decision.TogetherDetail(c.free[i].carries(1))
}

// judge tells what stands against a leaf's unit by itself: max_per_host, its grace, pools that are stopped, scattered
// room. Full is the rows of hosts that may get no more of the sub-allocation.
func (r *Reasons) judge(a *ask, leaf plan.Node, stopped int32, full []room.Row) verdict {
	spans := r.spansOf(leaf)
	for _, row := range full {
		r.full[row>>6] |= 1 << (uint(row) & 63)
	}
	v := r.fullEverywhere(a, spans, full)
	if v.code == fits {
		v = r.judgeRoom(a, leaf, spans, stopped, full)
	}
	for _, row := range full {
		r.full[row>>6] &^= 1 << (uint(row) & 63)
	}
	return v
}

// judgeRoom is judge but for max_per_host.
func (r *Reasons) judgeRoom(a *ask, leaf plan.Node, spans []span, stopped int32, full []room.Row) verdict {
	us := r.env.State.Policy.ReclaimUS[leaf]
	reached, some, graced, limited := false, false, false, plan.None
	for i := range spans {
		o := &spans[i]
		m := r.maskOf(a, o, us)
		fit := r.first(a, o, m.within, true) != room.NoRow
		reached = reached || fit || r.counts(a, o, us).rows > 0
		switch {
		case o.depth > stopped:
			some = some || fit
			graced = graced || m.beyond != nil && r.first(a, o, m.beyond, true) != room.NoRow
		case fit && limited == plan.None: // they come from the deepest up
			limited = o.pool
		}
	}
	switch {
	case !reached || graced:
		return because(decision.ReasonGraceFilter, "only work that can be given back sooner may use what is free")
	case limited != plan.None:
		v := because(decision.ReasonShareLimit, "")
		v.pool = limited
		return v
	}
	sum := r.countMay(a, spans, us, stopped, full)
	if some || sum.carries(a) == 0 { // some: room came free after it had its turn (CYC-1)
		return r.scarce(fits, a, &sum, "")
	}
	v, is := r.onNoDevice(a, spans, us, stopped, full)
	if !is {
		v = r.scarce(decision.ReasonFragmented, a, &sum, "have less free")
		v.detail += r.together(a, &sum, v.dimension)
	}
	v.sum = r.scatter.add(&sum)
	return v
}

// fullEverywhere tells whether only hosts have room, or there are only hosts, that may get no more of the
// sub-allocation.
func (r *Reasons) fullEverywhere(a *ask, spans []span, full []room.Row) verdict {
	if len(full) == 0 {
		return because(fits, "")
	}
	reach := r.masks.of(r.env, r.rooms.open, a.need)
	left := reach.count
	for _, row := range full {
		if has(reach.rows, row) {
			left--
		}
	}
	fit, fitLeft := false, false
	for i := range spans {
		fit = fit || r.first(a, &spans[i], reach.rows, false) != room.NoRow
		fitLeft = fitLeft || r.first(a, &spans[i], reach.rows, true) != room.NoRow
	}
	switch {
	case fit && !fitLeft:
		return because(decision.ReasonMaxPerHost, "it would fit, but only where max_per_host is reached")
	case left == 0:
		return because(decision.ReasonMaxPerHost, "max_per_host is reached on every host that it may use")
	}
	return because(fits, "")
}

// maskOf is the rows that a unit may use through the pool of a span.
func (r *Reasons) maskOf(a *ask, o *span, us int64) mask {
	return r.masks.usableBy(r.env, r.rooms.open, a.need, graceKey{o.depth, us})
}

// first is the first row of a span and a mask with room for a unit, of hosts that are not full where those are left
// out.
func (r *Reasons) first(a *ask, o *span, mask []uint64, notFull bool) room.Row {
	l := &r.rooms.level[o.depth]
	row, to := r.firstOf(a, o, mask), room.Row(o.to)
	for row != room.NoRow {
		switch at := view.Row(row); {
		case at >= o.holeFrom && at < o.holeTo:
			row = room.Row(o.holeTo)
		case notFull && has(r.full, row):
			row++
		default:
			return row
		}
		if row >= to {
			return room.NoRow
		}
		row = l.index.FirstIn(&l.set, &a.fit[o.depth], row, to, mask)
	}
	return room.NoRow
}

// search is where units of one kind look for room: what a consumer and all below it own, in the level of a depth.
type search struct {
	place
	mask *uint64 // the first word of its mask, which is told apart by that
}

// firstOf is first with the hole, whoever looks: most units fit nowhere, which is found out once.
func (r *Reasons) firstOf(a *ask, o *span, mask []uint64) room.Row {
	l, key := &r.rooms.level[o.depth], search{place{o.depth, o.pool}, &mask[0]}
	row, ok := a.first[key]
	if !ok {
		row = l.index.FirstIn(&l.set, &a.fit[o.depth], room.Row(o.from), room.Row(o.to), mask)
		if a.first == nil {
			a.first = map[search]room.Row{}
		}
		a.first[key] = row
	}
	return row
}

// counts is what some rows come to for an ask.
type counts struct {
	rows  int
	set   rowSet
	below [plan.DimensionsMax]int   // by place in the ask's dims: rows that have less
	free  [plan.DimensionsMax]total // as below
}

// carries is how many units all room together would carry, if it could be cut at will.
func (c *counts) carries(a *ask) int64 {
	n := int64(math.MaxInt64)
	for i, d := range a.dims {
		n = min(n, c.free[i].carries(a.size[d]))
	}
	return n
}

// countMay counts the rows that a unit may be given, but for those of full hosts.
func (r *Reasons) countMay(a *ask, spans []span, us int64, stopped int32, full []room.Row) (sum counts) {
	for i := range spans {
		if o := &spans[i]; o.depth > stopped {
			one := r.counts(a, o, us)
			sum.rows += one.rows
			sum.set += one.set
			for i := range a.dims {
				sum.below[i] += one.below[i]
				sum.free[i].plus(one.free[i])
			}
		}
	}
	for _, row := range full {
		o := r.spanOf(spans, row)
		if o.depth <= stopped || !has(r.maskOf(a, o, us).within, row) {
			continue
		}
		sum.rows--
		sum.set -= rowAt(o.depth, row)
		free := r.rooms.level[o.depth].index.Free(row)
		for i, d := range a.dims {
			if sum.free[i].sub(max(0, free[d])); free[d] < a.size[d] {
				sum.below[i]--
			}
		}
	}
	return sum
}

// spanOf is the span that a row is in.
func (r *Reasons) spanOf(spans []span, row room.Row) *span {
	for i := range spans {
		o := &spans[i]
		if at := view.Row(row); at >= o.from && at < o.to && (at < o.holeFrom || at >= o.holeTo) {
			return o
		}
	}
	panic(fmt.Sprintf("BUG: row %d is in no span", row))
}

// counts counts the rows of a span that a unit may use.
func (r *Reasons) counts(a *ask, o *span, us int64) (c counts) {
	m := r.maskOf(a, o, us)
	if m.beyond == nil {
		us = anyGrace
	}
	r.count(&c, a, o, o.pool, us, m.within, 1)
	if o.hole != plan.None {
		r.count(&c, a, o, o.hole, us, m.within, -1)
	}
	return c
}

// anyGrace stands for graces that keep nobody out.
const anyGrace = -1

// fewMost is how many rows are counted without a tally.
const fewMost = 64

// count adds what a consumer and all below it own to counts, or takes it off where sign is -1.
func (r *Reasons) count(c *counts, a *ask, o *span, n plan.Node, us int64, mask []uint64, sign int) {
	from, to := r.env.Views.Owned.Below(n)
	l := &r.rooms.level[o.depth]
	if to-from <= fewMost && !r.Eager {
		for row := room.Row(from); row < room.Row(to); row++ {
			if has(mask, row) && l.set.Has(row) {
				c.addRow(a, rowAt(o.depth, row), l.index.Free(row), sign)
			}
		}
		return
	}
	t := r.tallies.of(l, place{o.depth, n}, from, to, requirement(r.env, a.need), us, mask)
	c.rows += sign * t.rows
	c.set += rowSet(sign) * t.set
	for i, d := range a.dims {
		c.below[i] += sign * int(t.below[d][a.place[i]])
		if sign > 0 {
			c.free[i].plus(t.free[d])
		} else {
			c.free[i].less(t.free[d])
		}
	}
}

// addRow adds what a row has free, or takes it off.
func (c *counts) addRow(a *ask, at rowSet, free []int64, sign int) {
	c.rows += sign
	c.set += rowSet(sign) * at
	for i, d := range a.dims {
		if free[d] < a.size[d] {
			c.below[i] += sign
		}
		if sign > 0 {
			c.free[i].add(max(0, free[d]))
		} else {
			c.free[i].sub(max(0, free[d]))
		}
	}
}
