package reclaim

import (
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/pool"
	"github.com/stintd/stint/core/room"
)

// rooms computes what a parcel has for those who draw on it through the pool of a consumer: as it is, beside what sets
// keep; and net, once all sets under way are done. Reserves of those who lend it there leave less. Both are in memory
// that is borrowed until the next call.
func (g *Stage) rooms(k cluster.ParcelID, top plan.Node) (now, net []int64) {
	g.s.Yield()
	now, net = g.buffer[0], g.buffer[1]
	copy(now, g.of(g.free, k))
	g.netFree(k, net)
	if g.Views.Reserves.Any(k) {
		g.Views.Reserves.Each(g.tree, k, top, func(keeper plan.Node, amount []int64) {
			g.reserve(k, keeper, amount, now, net)
		})
	}
	return now, net
}

// reserve lowers rooms to what a reserve leaves of a parcel: beside what outsiders of its keeper hold, and beside what
// is kept, or promised, there for such.
func (g *Stage) reserve(k cluster.ParcelID, keeper plan.Node, amount, now, net []int64) {
	left, depth := g.buffer[2], g.tree.Depth[keeper]
	clear(left)
	for i := g.open(k); i > 0; i = g.row[i].next {
		if one := &g.row[i]; one.set != noSet && g.depth(one) < depth {
			add(left, g.s.Shape.Size(one.shape), one.units) // under reclaim: it counts now
		}
	}
	rest := g.beside(k, keeper, amount)
	for d := range now {
		now[d] = min(now[d], rest[d]-left[d]-g.keptBeside(k, keeper, d))
	}
	for i := g.sets.firstOn[k] - 1; i >= 0; i = g.sets.list[i].next - 1 {
		if one := &g.sets.list[i]; !g.within(g.s.Node(one.taker), keeper) {
			add(rest, g.s.Size(one.taker), -one.units)
		}
	}
	for _, sub := range g.joined[k] {
		if !g.within(g.s.Node(sub), keeper) {
			add(rest, g.s.Size(sub), -1)
		}
	}
	for d := range net {
		net[d] = min(net[d], rest[d])
	}
}

// keptBeside is what sets of outsiders of a consumer keep on a parcel, in a dimension.
func (g *Stage) keptBeside(k cluster.ParcelID, keeper plan.Node, d int) (sum int64) {
	for i := g.sets.firstOn[k] - 1; i >= 0; i = g.sets.list[i].next - 1 {
		if !g.within(g.s.Node(g.sets.list[i].taker), keeper) {
			sum += g.keptBy(i)[d]
		}
	}
	return sum
}

// lesser computes the lesser of both rooms of a parcel.
func (g *Stage) lesser(k cluster.ParcelID, top plan.Node) []int64 {
	now, net := g.rooms(k, top)
	for d := range now {
		now[d] = min(now[d], net[d])
	}
	return now
}

// waitList is the net room of the parcels that are drawn on through a consumer's pool or one below it, or are its own,
// as rows of an index in the order of parcels. Reserves are left aside until somebody looked at a parcel in vain.
type waitList struct {
	parcel []cluster.ParcelID
	index  room.Index
	open   room.Set
	masks  masks
	hints  room.Hints[sought] // since the stage began
}

// sought is room for a unit of one size beside what one of another gives, NoID: beside nothing.
type sought struct{ shape, without cluster.ShapeID }

// waitsAt is the list of a consumer. O(its parcels and those of consumers below it × dimensions) for the first time.
func (g *Stage) waitsAt(top plan.Node) *waitList {
	if w := g.waits[top]; w != nil {
		return w
	}
	w := &waitList{parcel: g.parcelsOf(top)}
	w.index.Reset(len(w.parcel), g.mostOf(w.parcel))
	w.open.Reset(len(w.parcel))
	for row, k := range w.parcel {
		if g.p.Parcels.IsOpen(k) {
			g.netFree(k, w.index.Free(room.Row(row)))
			w.index.Put(room.Row(row), w.index.Free(room.Row(row)))
			w.open.Add(&w.index, room.Row(row))
		}
	}
	g.waits[top] = w
	return w
}

// parcelsOf is the parcels of a consumer and all below it in order.
func (g *Stage) parcelsOf(top plan.Node) []cluster.ParcelID {
	from, to := g.Views.Owned.Below(top)
	list := slices.Clone(g.Views.Owned.Parcel[from:to])
	slices.Sort(list)
	return list
}

// mostOf is, by dimension, the most that any of some parcels has.
func (g *Stage) mostOf(list []cluster.ParcelID) []int64 {
	most := make([]int64, g.dims)
	for d, column := range g.p.Parcels.Cap {
		for _, k := range list {
			most[d] = max(most[d], column[k])
		}
	}
	return most
}

// updateWait brings a list up to a parcel's net room.
func (g *Stage) updateWait(w *waitList, k cluster.ParcelID) {
	if at, ok := slices.BinarySearch(w.parcel, k); ok && w.open.Has(room.Row(at)) {
		row, net := room.Row(at), g.buffer[0]
		g.netFree(k, net)
		w.hints.Put(&w.index, &w.open, row, net)
	}
}

// join lets a unit wait for sets under way, when it will fit one of the parcels that its leaf draws on through the
// pool of a consumer, or owns, once they are done: the first that among, unless nil, accepts (CYC-6).
func (g *Stage) join(sub cluster.SubID, top plan.Node, among func(k cluster.ParcelID) bool) bool {
	w, size := g.waitsAt(top), g.s.Size(sub)
	need := w.index.Need(size)
	mask := w.masks.of(g, sub, top, w.parcel)
	row := w.hints.First(&w.index, &w.open, &need, mask, sought{g.s.Sub.Shape[sub], cluster.NoID})
	for ; row != room.NoRow; row = w.index.First(&w.open, &need, row+1, mask) {
		k := w.parcel[row]
		if among != nil && !among(k) || !g.mayUse(sub, k, top) {
			continue
		}
		_, net := g.rooms(k, top)
		if covers(net, g.none(), size) {
			j := pool.Join{Sub: sub, Parcel: k}
			g.Cycle.Joined = append(g.Cycle.Joined, j)
			g.expect(j)
			g.out.add(Row{Kind: Joined, Set: cluster.NoID, Sub: sub, Parcel: k, Units: 1})
			g.out.Again = true
			g.changed(k)
			return true
		}
		w.index.Put(row, net) // reserves leave no more
	}
	return false
}

// none is nothing, by dimension.
func (g *Stage) none() []int64 {
	clear(g.buffer[2])
	return g.buffer[2]
}

// masks are the rows of an index of parcels that those with one requirement and grace may use.
type masks struct {
	key  []maskKey
	bits [][]uint64
}

type maskKey struct {
	need  *plan.Requirement // nil: none; ids may be given anew
	grace int64
}

// masksMost is how many masks of a list are kept at most.
const masksMost = 1 << 8

// of is the mask of a sub-allocation that draws on parcels through the pool of a consumer, nil: all. O(parcels) for
// the first of its kind.
func (m *masks) of(g *Stage, sub cluster.SubID, top plan.Node, list []cluster.ParcelID) []uint64 {
	need := g.Views.Needs.Need(g.s, sub)
	key := maskKey{g.Views.Needs.Requirement(g.s, need), g.s.Policy.ReclaimUS[g.s.Node(sub)]}
	if i := slices.Index(m.key, key); i >= 0 {
		return m.bits[i]
	}
	if len(m.key) == masksMost {
		m.key, m.bits = m.key[:0], m.bits[:0]
	}
	selected, all := g.Selected(need), true
	bits := make([]uint64, (len(list)+63)/64)
	owner, grace := plan.None, int64(0)
	for row, k := range list {
		if at := g.Owner(k); at != owner {
			owner, grace = at, g.Grace(at, top)
		}
		if key.grace <= grace && (selected == nil || has(selected, int(k))) {
			bits[row>>6] |= 1 << (row & 63)
		} else {
			all = false
		}
	}
	if all {
		bits = nil
	}
	m.key, m.bits = append(m.key, key), append(m.bits, bits)
	return bits
}
