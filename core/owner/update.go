package owner

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/ownership"
	"github.com/stintd/stint/core/plan"
)

// So many hosts may move, or one of so many, before a pass over all of them is as cheap as an update, where what they
// have may have changed. Where it is what is held there alone, most claims take what they had, and an update is cheaper
// however many there are.
const (
	updateMin  = 64
	updatePart = 8
)

// moved gives the hosts that moved since the last pass, by their numbers in its ground; not ok when there was none,
// when something else than hosts is not what it was, or when so many may have other sizes that all had better be looked
// at.
func (o *Passes) moved(e Env) (hosts []int32, ok bool) {
	set, s := e.Plan.Parcels.Moved, e.State
	if o.ground == nil || o.state != s || o.set != e.Window || set == nil ||
		e.Plan.Reassign && popcount(set) > max(updateMin, len(o.host)/updatePart) {
		return nil, false
	}
	o.changed = o.changed[:0]
	for w, bit := range set {
		for ; bit != 0; bit &= bit - 1 {
			h := cluster.HostID(w<<6 + bits.TrailingZeros64(bit))
			if s.Host.Plan[h] == e.Plan.Index {
				o.changed = append(o.changed, o.place[h])
			}
		}
	}
	return o.changed, true
}

// update is pass when only these hosts have changed: it decides the same.
func (o *Passes) update(e Env, moved []int32, out *Decisions) {
	o.ground.Use = o.ground.Use[:0]
	for _, i := range moved {
		h := o.host[i]
		o.was = capOf(o.ground, i, o.was)
		o.surveyHost(e, o.ground, i, e.State.Host.Parcel[h])
		if o.is = capOf(o.ground, i, o.is); !slices.Equal(o.was, o.is) {
			out.split = append(out.split, h) // what was public of it may be more or less, though no part is
		}
	}
	had, d := o.gave, &out.deeds
	o.gave = o.assigner.Update(o.ground, moved)
	*d = e.Plan.Deeds
	o.write(e, d)
	nodes, numbers := o.assigner.Moved()
	e.keepOthers(d, nodes)
	last := plan.None
	for i, n := range nodes {
		if n != last {
			o.reserve(e, d, n)
			last = n
		}
		o.was, o.is = partOf(had, n, numbers[i], o.was), partOf(o.gave, n, numbers[i], o.is)
		if h := o.host[numbers[i]]; out.note(e.State.ConsumerOf[n], h, o.was, o.is) {
			out.split = append(out.split, h)
		}
	}
	e.orderReserved(d)
}

// keepOthers has deeds say what was reserved of the last pass, but of some consumers, in memory of its own. O(rows).
func (e Env) keepOthers(d *cluster.Deeds, but []plan.Node) {
	was := &e.Plan.Deeds
	var rows []int
	for i, c := range was.Keeper {
		if _, drop := slices.BinarySearch(but, e.State.NodeOf[c]); !drop {
			rows = append(rows, i)
		}
	}
	d.Keeper, d.KeptOn = picked(was.Keeper, rows), picked(was.KeptOn, rows)
	d.KeptAmount, d.Reserved = make([][]int64, len(was.KeptAmount)), make([][]int64, len(was.Reserved))
	for dim := range d.KeptAmount {
		d.KeptAmount[dim], d.Reserved[dim] = picked(was.KeptAmount[dim], rows), slices.Clone(was.Reserved[dim])
	}
}

// orderReserved brings what is reserved into tree order, as a pass over all hosts has it. O(rows), with a logarithm.
func (e Env) orderReserved(d *cluster.Deeds) {
	rows := make([]int, len(d.Keeper))
	for i := range rows {
		rows[i] = i
	}
	slices.SortStableFunc(rows, func(a, b int) int {
		return cmp.Compare(e.State.NodeOf[d.Keeper[a]], e.State.NodeOf[d.Keeper[b]])
	})
	d.Keeper, d.KeptOn = picked(d.Keeper, rows), picked(d.KeptOn, rows)
	for dim, column := range d.KeptAmount {
		d.KeptAmount[dim] = picked(column, rows)
	}
}

// picked is some rows of a column.
func picked[T any](column []T, rows []int) []T {
	out := make([]T, len(rows))
	for i, row := range rows {
		out[i] = column[row]
	}
	return out
}

// capOf copies out what a host has, into the memory of v.
func capOf(g *ownership.Ground, i int32, v []int64) []int64 {
	v = v[:0]
	for _, column := range g.Cap {
		v = append(v, column[i])
	}
	return v
}

// partOf is what a consumer has of a host, all pieces together, by dimension, in the memory of sum. O(log deeds).
func partOf(d *ownership.Deeds, n plan.Node, host int32, sum []int64) []int64 {
	sum = sum[:0]
	from, to := run(d.Node, 0, len(d.Node), n)
	from, to = run(d.Host, from, to, host)
	for _, column := range d.Amount {
		amount := int64(0)
		for _, v := range column[from:to] {
			amount += v
		}
		sum = append(sum, amount)
	}
	return sum
}

// run is where v stands in rows from … to-1 of a sorted column.
func run[T ~int32](column []T, from, to int, v T) (first, end int) {
	first, _ = slices.BinarySearch(column[from:to], v)
	end, _ = slices.BinarySearch(column[from:to], v+1)
	return from + first, from + end
}

// popcount is the number of bits of a bitset.
func popcount(set []uint64) (n int) {
	for _, w := range set {
		n += bits.OnesCount64(w)
	}
	return n
}
