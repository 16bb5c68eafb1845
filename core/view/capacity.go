package view

import (
	"math/bits"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/vecpack"
)

// Capacity is how many units of each size every pool has room for as if it were empty (MD-11). A parcel counts in the
// pools of all above its owner, and in its owner's, with what is there for those who draw on it through that pool, its
// *rest*: of a pool's own parcel all of it; of a lent one what is left beside what those below the pool's child hold
// that is on the way to the owner, and beside what lenders reserve and do not use (MD-8). A parcel whose host is not
// open counts with what is held on it through the pool (D-4).
type Capacity struct {
	views *Views

	// level has the rests of all pools of one depth by Row, as no parcel is in two of them: by depth, dimension, row.
	level [][][]int64
	known rows // by the pool's node: A is a shape, the units are the capacity
	last  lastPool

	reserved int // Reserves.Version that the rests go by
	touched  []Row
	was, is  [][]int64 // by dimension: rests of one pool that changed
	held     []int64
	class    classes

	device     int       // the dimension that is the sum of devices
	per        int64     // of each device; 0: the plan has none
	onDevices  [][]int64 // scratch of fits
	sizeOnThem []int64
}

// Of is the capacity of the pool of a consumer for a shape. O(1) where it was asked for since the pool's parcels
// changed much, else O(parcels of the pool).
func (v *Capacity) Of(s *cluster.State, pool plan.Node, shape cluster.ShapeID) int64 {
	v.last.turn(pool, s.Shape.Len())
	if v.last.asked[shape] != v.last.turns {
		v.last.asked[shape], v.last.units[shape] = v.last.turns, v.of(s, pool, shape)
	}
	return v.last.units[shape]
}

// lastPool is the capacities of the pool that was asked for last, which is mostly asked for again.
type lastPool struct {
	pool  plan.Node
	known bool
	turns int64   // how often it was another
	asked []int64 // by shape: the turn in which it was asked for
	units []int64 // by shape
}

// turn begins anew with another pool. O(1), but for shapes that are new.
func (v *lastPool) turn(pool plan.Node, shapes int) {
	for len(v.asked) < shapes {
		v.asked, v.units = append(v.asked, 0), append(v.units, 0)
	}
	if !v.known || v.pool != pool {
		v.known, v.pool = true, pool
		v.turns++
	}
}

// of is Of by all that is known.
func (v *Capacity) of(s *cluster.State, pool plan.Node, shape cluster.ShapeID) int64 {
	key := Key{A: int32(shape)}
	if units, ok := v.known.get(int32(pool), key); ok {
		return units - 1 // 1 more, as rows without units are removed
	}
	from, to := v.views.Owned.Below(pool)
	if from == to {
		return 0
	}
	v.class.sort(v.level[s.Policy.Depth[pool]], from, to)
	units := v.fits(v.class.column, s.Shape.Size(shape), v.class.count)
	v.known.add(int32(pool), key, units+1, 0)
	return units
}

// fits is how many units of a size rests take, each so many times. A part of a device is taken of each by itself: what
// is over on one is of no use beside another (D-185), and what is over of all devices, where a host is not open, counts
// as a smaller one.
func (v *Capacity) fits(rests [][]int64, size, count []int64) int64 {
	if v.per == 0 || size[v.device] == 0 || size[v.device] > v.per || v.per%size[v.device] == 0 {
		return vecpack.Capacity(rests, size, count) // by sums it is the same
	}
	g := size[v.device]
	v.onDevices, v.sizeOnThem = append(v.onDevices[:0], rests...), append(v.sizeOnThem[:0], size...)
	units := make([]int64, len(rests[v.device]))
	for i, rest := range rests[v.device] {
		units[i] = rest/v.per*(v.per/g) + rest%v.per/g
	}
	v.onDevices[v.device], v.sizeOnThem[v.device] = units, 1
	return vecpack.Capacity(v.onDevices, v.sizeOnThem, count)
}

// Rests are the rests of a pool's parcels by dimension, in the order of Owned.Below, in the view's own memory.
func (v *Capacity) Rests(s *cluster.State, pool plan.Node, dst [][]int64) [][]int64 {
	from, to := v.views.Owned.Below(pool)
	dst = dst[:0]
	for _, column := range v.level[s.Policy.Depth[pool]] {
		dst = append(dst, column[from:to])
	}
	return dst
}

// Rebuild computes all rests anew. O(parcels × depth, and what is held on those that are lent or closed).
func (v *Capacity) Rebuild(s *cluster.State, p *cluster.Plan) {
	v.known.reset(s.Policy.Len())
	v.last.known = false
	v.class.stale, v.reserved = true, v.views.Reserves.Version()
	if p.MD == nil {
		return
	}
	v.device, v.per = p.MD.Device, p.MD.DevicePer
	rows, depth, dims := p.Parcels.Len(), int32(0), len(p.Parcels.Cap)
	for _, owner := range p.Parcels.Owner {
		depth = max(depth, s.Policy.Depth[ownerNode(s, owner)])
	}
	v.level = slices.Grow(v.level[:0], int(depth)+1)[:depth+1]
	for i := range v.level {
		v.level[i] = slices.Grow(v.level[i][:0], dims)[:dims]
		for d := range v.level[i] {
			v.level[i][d] = column.Zeros(v.level[i][d], rows)
		}
	}
	v.held = column.Zeros(v.held, dims)
	for row := range Row(rows) {
		k := v.views.Owned.Parcel[row]
		for n := ownerNode(s, p.Parcels.Owner[k]); n != plan.None; n = s.Policy.Parent[n] {
			v.rest(s, p, k, n)
			for d, rest := range v.held {
				v.level[s.Policy.Depth[n]][d][row] = rest
			}
		}
	}
}

// Apply computes the rests of parcels anew on which something changed, and corrects the capacities that are known by
// them.
func (v *Capacity) Apply(s *cluster.State, p *cluster.Plan, r Span) {
	if p.MD == nil {
		return
	}
	if v.reserved != v.views.Reserves.Version() {
		v.Rebuild(s, p)
		return
	}
	v.touched = v.touched[:0]
	for i := r.From; i < r.To; i++ {
		kind, k := r.Log.Kind.At(i), r.Log.Parcel.At(i)
		if r.Log.Plan.At(i) != p.Index {
			continue
		}
		if kind == cluster.ChangeResized || p.Parcels.Owner[k] != cluster.NoID || !p.Parcels.IsOpen(k) {
			v.touched = append(v.touched, v.views.Owned.RowOf(k))
		}
	}
	if len(v.touched) == 0 {
		return
	}
	v.class.stale, v.last.known = true, false
	slices.Sort(v.touched)
	v.touched = slices.Compact(v.touched)
	for depth := range v.level {
		v.correct(s, p, int32(depth))
	}
}

// correct is Apply for the pools of one depth: those of touched parcels are beside each other.
func (v *Capacity) correct(s *cluster.State, p *cluster.Plan, depth int32) {
	pool := plan.None
	v.begin(len(v.held))
	for _, row := range v.touched {
		k := v.views.Owned.Parcel[row]
		n := ownerNode(s, p.Parcels.Owner[k])
		if s.Policy.Depth[n] < depth {
			continue
		}
		for s.Policy.Depth[n] > depth {
			n = s.Policy.Parent[n]
		}
		if n != pool {
			v.settle(s, pool)
			v.begin(len(v.held))
			pool = n
		}
		v.rest(s, p, k, n)
		changed := false
		for d, rest := range v.held {
			changed = changed || v.level[depth][d][row] != rest
		}
		for d, rest := range v.held {
			if at := &v.level[depth][d][row]; changed {
				v.was[d], v.is[d] = append(v.was[d], *at), append(v.is[d], rest)
				*at = rest
			}
		}
	}
	v.settle(s, pool)
}

// begin empties the list of rests that changed.
func (v *Capacity) begin(dims int) {
	v.was, v.is = slices.Grow(v.was[:0], dims)[:dims], slices.Grow(v.is[:0], dims)[:dims]
	for d := range dims {
		v.was[d], v.is[d] = v.was[d][:0], v.is[d][:0]
	}
}

// settle corrects a pool's capacities by the rests that changed; where those are many it forgets the capacities.
func (v *Capacity) settle(s *cluster.State, pool plan.Node) {
	if pool == plan.None || len(v.was[0]) == 0 {
		return
	}
	if from, to := v.views.Owned.Below(pool); len(v.was[0]) > int(to-from)/4 {
		v.known.clear(int32(pool))
		return
	}
	g := v.known.of(int32(pool))
	for i, key := range g.Key {
		size := s.Shape.Size(cluster.ShapeID(key.A))
		g.Units[i] += v.fits(v.is, size, nil) - v.fits(v.was, size, nil)
	}
}

// rest leaves in held what there is of a parcel for those who draw on it through the pool of a consumer that owns it
// or is above its owner.
func (v *Capacity) rest(s *cluster.State, p *cluster.Plan, k cluster.ParcelID, pool plan.Node) {
	clear(v.held)
	open, owner, depth := p.Parcels.IsOpen(k), ownerNode(s, p.Parcels.Owner[k]), s.Policy.Depth[pool]
	if open && owner == pool {
		for d := range v.held {
			v.held[d] = p.Parcels.Cap[d][k]
		}
		return
	}
	g := v.views.ByParcel.On(k)
	for i := range g.Key {
		at := poolDepth(s, owner, g.Key[i])
		if open && at > depth || !open && at == depth {
			for d, u := range s.Size(cluster.SubID(g.Key[i].A)) {
				v.held[d] += u * g.Units[i]
			}
		}
	}
	if !open {
		return
	}
	for d := range v.held {
		beyond := int64(0) // how much more than its insiders hold a lender reserves, at most
		v.views.Reserves.Each(&s.Policy.Tree, k, pool, func(keeper plan.Node, amount []int64) {
			rest := amount[d]
			for i := range g.Key {
				if poolDepth(s, owner, g.Key[i]) >= s.Policy.Depth[keeper] {
					rest -= s.Size(cluster.SubID(g.Key[i].A))[d] * g.Units[i]
				}
			}
			beyond = max(beyond, rest)
		})
		v.held[d] = max(0, p.Parcels.Cap[d][k]-v.held[d]-beyond)
	}
}

// poolDepth is how deep the consumer is through whose pool units on a parcel are held; of its leaf's own parcel, the
// leaf.
func poolDepth(s *cluster.State, owner plan.Node, label Key) int32 {
	if label.B == cluster.NoID {
		return s.Policy.Depth[owner]
	}
	return s.Policy.Depth[s.NodeOf[label.B]]
}

// classes are the distinct rests of a pool, and how many parcels have each: pools have many equal parcels.
type classes struct {
	column   [][]int64
	count    []int64
	index    []int32 // classes by hash, from 1
	from, to Row
	depth    *[]int64 // of which level
	stale    bool
}

// sort makes the classes of the rests from one row to another, unless they are those already. O(rows).
func (c *classes) sort(level [][]int64, from, to Row) {
	if !c.stale && c.from == from && c.to == to && c.depth == &level[0] {
		return
	}
	c.from, c.to, c.depth, c.stale, c.count = from, to, &level[0], false, c.count[:0]
	c.column = slices.Grow(c.column[:0], len(level))[:len(level)]
	for d := range c.column {
		c.column[d] = c.column[d][:0]
	}
	c.index = column.Zeros(c.index, 1<<bits.Len32(uint32(2*(to-from)+1)))
	for row := from; row < to; row++ {
		at := c.find(level, row)
		if *at == 0 {
			for d := range level {
				c.column[d] = append(c.column[d], level[d][row])
			}
			c.count = append(c.count, 0)
			*at = int32(len(c.count))
		}
		c.count[*at-1]++
	}
}

// find is where the class of a row is in the index, or would be.
func (c *classes) find(level [][]int64, row Row) *int32 {
	var hash uint64
	for d := range level {
		hash = (hash ^ uint64(level[d][row])) * 0x9e3779b97f4a7c15
		hash ^= hash >> 29
	}
	for i := int(hash) & (len(c.index) - 1); ; i = (i + 1) & (len(c.index) - 1) {
		if at := &c.index[i]; *at == 0 || c.alike(level, row, int(*at-1)) {
			return at
		}
	}
}

func (c *classes) alike(level [][]int64, row Row, class int) bool {
	for d := range level {
		if c.column[d][class] != level[d][row] {
			return false
		}
	}
	return true
}
