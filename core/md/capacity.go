package md

import (
	"math/bits"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/vecpack"
)

// capacities is the public parcels' capacity in units of each shape (MD-11).
type capacities struct {
	class  cluster.Shapes // distinct capacity vectors of the parcels
	column [][]int64      // by dimension, then class
	count  []int64        // parcels of the class
	units  []int64        // by ShapeID; unknown where not computed
	vector []int64
}

const unknown = -1

// sync recounts the classes when parcels changed and computes the capacity of
// shapes that are new since. Closed parcels count with what is held on them (D-4).
func (c *capacities) sync(s *cluster.State, p *cluster.Plan, parcels []uint64) {
	if p.Rebuilt || p.Resized || c.column == nil || shutChanged(p) {
		c.recount(p, len(s.Policy.Dimensions), parcels)
	}
	for len(c.units) < s.Shape.Len() {
		c.units = append(c.units, unknown)
	}
	for _, shape := range p.Pairs.Shape {
		if c.units[shape] == unknown {
			c.units[shape] = vecpack.Capacity(c.column, s.Shape.Size(shape), c.count)
		}
	}
}

// shutChanged tells whether what is held on a parcel that is not open changed.
func shutChanged(p *cluster.Plan) bool {
	for _, k := range p.Changed {
		if !p.Parcels.IsOpen(k) {
			return true
		}
	}
	return false
}

// recount sorts the parcels into classes of equal capacity. O(parcels × dimensions).
func (c *capacities) recount(p *cluster.Plan, dims int, parcels []uint64) {
	c.class, c.count, c.units = cluster.NewShapes(dims), c.count[:0], c.units[:0]
	c.column = make([][]int64, dims)
	c.vector = zeroed(c.vector, dims)
	for k := range p.Parcels.Len() {
		if !has(parcels, cluster.ParcelID(k)) {
			continue
		}
		open := p.Parcels.IsOpen(cluster.ParcelID(k))
		for d := range dims {
			c.vector[d] = p.Parcels.Cap[d][k]
			if !open {
				c.vector[d] -= p.Parcels.Free[d][k]
			}
		}
		i := int(c.class.Intern(c.vector))
		if i == len(c.count) {
			c.count = append(c.count, 0)
			for d, v := range c.vector {
				c.column[d] = append(c.column[d], v)
			}
		}
		c.count[i]++
	}
}

// rests are what there is of a pool's parcels for those who draw on it, in classes of equal rests: what an owner and nearer
// pools hold, and what is reserved, is taken off what is lent (MD-8).
type rests struct {
	version int64     // of its rests, 0: never computed
	sorted  int64     // the version that was sorted into classes
	column  [][]int64 // by dimension, then class
	count   []int64   // parcels of the class

	before  int64     // the version before, when few rests changed since; 0: many did
	was, is [][]int64 // by dimension, then parcel: rests that changed since the version before, as they were then and as they are

	cache capacityCache
}

// renewal is memory to bring rests up to what is held with.
type renewal struct {
	vector  []int64
	was, is [][]int64
}

// restLevel is the rests of all pools whose consumers are equally deep: none of them has a parcel of another.
type restLevel struct {
	rest  [][]int64 // by dimension, then row of owners.parcel
	stale []uint64  // bitset of rows that are to be computed anew
}

// layRests makes room for the rests, all of which are to be computed.
func (m *Planner) layRests() {
	p, rows, depth := &m.pools, len(m.owners.parcel), 0
	if !m.p.Parcels.Owned {
		rows = 0
	}
	for i := range p.list {
		depth = max(depth, int(m.policy.Depth[p.list[i].node]))
	}
	p.restOf = resized(p.restOf, depth+1)
	for i := range p.restOf {
		l := &p.restOf[i]
		l.rest = resized(l.rest, len(m.p.Parcels.Cap))
		for d := range l.rest {
			l.rest[d] = resized(l.rest[d], rows)
		}
		l.stale = resized(l.stale, (rows+63)/64)
		for w := range l.stale {
			l.stale[w] = ^uint64(0)
		}
	}
}

// stir notes that what is held on a parcel changed by a pool of a depth: pools of less depth have other rests of it.
func (m *Planner) stir(k cluster.ParcelID, depth int) {
	if owner := m.p.Parcels.Owner[k]; owner != cluster.NoID {
		row := m.owners.row[k]
		for i := range m.pools.restOf[:min(depth, len(m.pools.restOf))] {
			m.pools.restOf[i].stale[row>>6] |= 1 << (uint(row) & 63)
		}
	}
}

// stirChanged notes so of all parcels that changed since the last cycle.
func (m *Planner) stirChanged() {
	if m.p.Parcels.Owned {
		for _, k := range m.p.Changed {
			m.stir(k, len(m.pools.restOf))
		}
	}
}

// refresh brings a pool's rests up to what is held now; freshen comes behind it. O(its parcels ÷ 64) when nothing changed.
func (m *Planner) refresh(o *pool, s *renewal) {
	if o.own == o.all {
		return
	}
	l, any := &m.pools.restOf[m.policy.Depth[o.node]], o.version == 0
	s.was, s.is = emptied(s.was, len(l.rest)), emptied(s.is, len(l.rest))
	for w := o.own >> 6; w <= (o.all-1)>>6; w++ {
		for set := l.stale[w] & o.mine(w); set != 0; set &= set - 1 {
			row := w<<6 + int32(bits.TrailingZeros64(set))
			any = m.leave(o, l, row, s) || any
		}
	}
	if !any {
		return
	}
	o.was, s.was, o.is, s.is = s.was, o.was, s.is, o.is
	if o.before = o.version; len(o.is[0]) > len(o.count)/4 {
		o.before = 0
	}
	o.version++
}

// freshen notes that a pool's rests are as they are now. Words of the bitset may be of two pools, so that two goroutines do not do it at once.
func (m *Planner) freshen(o *pool) {
	if o.own == o.all {
		return
	}
	l := &m.pools.restOf[m.policy.Depth[o.node]]
	for w := o.own >> 6; w <= (o.all-1)>>6; w++ {
		l.stale[w] &^= o.mine(w)
	}
}

// mine is the rows of a word of parcels that are a pool's.
func (o *pool) mine(w int32) uint64 {
	set := ^uint64(0)
	if w == o.own>>6 {
		set &^= 1<<(uint(o.own)&63) - 1
	}
	if w == (o.all-1)>>6 {
		set &= ^uint64(0) >> (63 - uint(o.all-1)&63)
	}
	return set
}

// emptied is so many columns without any rows, in the memory of those given.
func emptied(columns [][]int64, n int) [][]int64 {
	columns = resized(columns, n)
	for d := range columns {
		columns[d] = columns[d][:0]
	}
	return columns
}

// leave computes what there is of a parcel for those who draw on it through a pool, and tells whether it is another.
func (m *Planner) leave(o *pool, l *restLevel, row int32, s *renewal) (changed bool) {
	p, k := &m.p.Parcels, m.owners.parcel[row]
	depth, lent := m.policy.Depth[o.node], row >= o.lent
	s.vector = zeroed(s.vector, len(p.Cap))
	held := s.vector // by those nearer than the pool; on a parcel that is not open, through the pool
	open := p.IsOpen(k)
	if lent || !open {
		for q := p.First[k]; q != cluster.NoID; q = m.s.Holding.NextOnParcel[q] {
			if at := m.depthOf(q); at > depth && open && mutant != 21 || at == depth && !open {
				add(held, m.s.Size(m.s.Holding.Sub[q]), m.s.Holding.Units[q])
			}
		}
	}
	for d := range p.Cap {
		rest := held[d]
		if open {
			rest = p.Cap[d][k] - held[d]
			if lent && mutant != 20 {
				rest -= m.reservedBeyond(k, d, depth)
			}
		}
		held[d] = max(0, rest)
		changed = changed || l.rest[d][row] != held[d]
	}
	for d := range p.Cap {
		if changed && o.version > 0 { // the first are others than nothing
			s.was[d], s.is[d] = append(s.was[d], l.rest[d][row]), append(s.is[d], held[d])
		}
		l.rest[d][row] = held[d]
	}
	return changed
}

// depthOf is how deep the consumer is through whose pool a holding is held; of its leaf's own, the leaf.
func (m *Planner) depthOf(q cluster.HoldingID) int32 {
	pool := m.s.Holding.Pool[q]
	if pool == cluster.NoID {
		pool = m.p.Parcels.Owner[m.s.Holding.Parcel[q]]
	}
	return m.policy.Depth[m.s.NodeOf[pool]]
}

// classify sorts a pool's rests into classes, leaving out those of nothing, unless they are.
func (m *Planner) classify(o *pool) {
	if o.sorted == o.version {
		return
	}
	l := &m.pools.restOf[m.policy.Depth[o.node]]
	o.sorted, o.count = o.version, o.count[:0]
	o.column = resized(o.column, len(l.rest))
	for d := range o.column {
		o.column[d] = o.column[d][:0]
	}
	size := 1 << bits.Len32(uint32(2*(o.all-o.own)))
	index := make([]int32, size) // classes, from 1
	for row := o.own; row < o.all; row++ {
		var hash uint64
		some := int64(0)
		for d := range l.rest {
			v := l.rest[d][row]
			some |= v
			hash = (hash ^ uint64(v)) * 0x9e3779b97f4a7c15
			hash ^= hash >> 29
		}
		if some == 0 {
			continue
		}
		i := int(hash) & (size - 1)
		for index[i] != 0 && !o.alike(int(index[i]-1), l, row) {
			i = (i + 1) & (size - 1)
		}
		if index[i] == 0 {
			for d := range l.rest {
				o.column[d] = append(o.column[d], l.rest[d][row])
			}
			o.count = append(o.count, 0)
			index[i] = int32(len(o.count))
		}
		o.count[index[i]-1]++
	}
}

// alike tells whether a row's rest is that of a class.
func (o *rests) alike(class int, l *restLevel, row int32) bool {
	for d := range l.rest {
		if o.column[d][class] != l.rest[d][row] {
			return false
		}
	}
	return true
}

// capacity is a pool's capacity in units of a shape in use (MD-11), as of the last refresh. O(classes) where many rests are others than when it
// was asked for last, else O(those).
func (m *Planner) capacity(o *pool, shape cluster.ShapeID) int64 {
	if o.node != plan.Root {
		m.figures.wait()
	}
	return m.capacityOf(o, shape)
}

// capacityOf is capacity for who adds up figures.
func (m *Planner) capacityOf(o *pool, shape cluster.ShapeID) int64 {
	if mutant == 22 {
		o = m.root()
	}
	units := int64(0)
	if o.node == plan.Root {
		units = m.public.capacity.units[shape]
	}
	if o.own == o.all {
		return units
	}
	entry := o.cache.find(shape)
	if size := m.s.Shape.Size(shape); entry.version != o.version {
		if entry.version == o.before && o.before != 0 {
			entry.units += vecpack.Capacity(o.is, size, nil) - vecpack.Capacity(o.was, size, nil)
		} else {
			m.classify(o)
			entry.units = vecpack.Capacity(o.column, size, o.count)
		}
		entry.version = o.version
	}
	return units + entry.units
}

// capacityCache is the capacities of a pool by shape that were asked for: an open hash table.
type capacityCache struct {
	entry []cached
	used  int
}

type cached struct {
	key     uint32 // the shape, from 1; 0: free
	version int64
	units   int64
}

// find gives the entry of a shape, a new one with version 0. It is good until the next find.
func (c *capacityCache) find(shape cluster.ShapeID) *cached {
	if 2*c.used >= len(c.entry) {
		old := c.entry
		c.entry, c.used = make([]cached, max(16, 2*len(old))), 0
		for _, e := range old {
			if e.key != 0 {
				*c.slot(e.key) = e
				c.used++
			}
		}
	}
	key := uint32(shape) + 1
	e := c.slot(key)
	if e.key == 0 {
		*e = cached{key: key}
		c.used++
	}
	return e
}

// slot is where a key is, or would be.
func (c *capacityCache) slot(key uint32) *cached {
	mask := uint32(len(c.entry) - 1)
	for i := key * 0x9e3779b9 >> 8 & mask; ; i = (i + 1) & mask {
		if e := &c.entry[i]; e.key == 0 || e.key == key {
			return e
		}
	}
}
