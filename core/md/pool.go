package md

import (
	"math/bits"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/vecpack"
)

// pool is a set of parcels that leaves may draw from, and what they have of it. The public pool is the
// root's; its parcels are those that nobody owns.
type pool struct {
	id       cluster.ConsumerID // of the consumer whose pool it is
	parcels  []uint64           // bitset; nil: all
	capacity capacities

	// By Node.
	usage        []int64 // share usage (MD-12)
	stake        []int64 // share usage of what is net
	wanted, held []int64 // units, outstanding ones included; held from the pool
}

// lay makes the public pool's parcels those without an owner.
func (o *pool) lay(s *cluster.State, p *cluster.Plan) {
	o.id = s.ConsumerOf[plan.Root]
	if !p.Parcels.Owned {
		o.parcels = nil
		return
	}
	if o.parcels != nil && !p.Rebuilt {
		return
	}
	o.parcels = zeroed(o.parcels, p.Parcels.Words())
	for k, owner := range p.Parcels.Owner {
		if owner == cluster.NoID {
			o.parcels[k>>6] |= 1 << (uint(k) & 63)
		}
	}
}

// has tells whether a bitset of parcels, nil for all, has one.
func has(parcels []uint64, k cluster.ParcelID) bool {
	return parcels == nil || parcels[k>>6]>>(uint(k)&63)&1 == 1
}

// holds is how many units a sub-allocation holds from the pool. O(its holdings), where anything is owned.
func (o *pool) holds(s *cluster.State, p *cluster.Plan, sub cluster.SubID) (units int64) {
	if !p.Parcels.Owned {
		return s.Sub.Held[sub]
	}
	for q := s.Sub.First[sub]; q != cluster.NoID; q = s.Holding.NextOfSub[q] {
		if s.Holding.Pool[q] == o.id {
			units += s.Holding.Units[q]
		}
	}
	return units
}

// row is how units of the public pool count.
func (o *pool) row(sub cluster.SubID, cycle int64) cluster.Holding {
	return cluster.Holding{Sub: sub, Granted: cycle, Origin: decision.OriginPublicPool, Pool: o.id, Lender: cluster.NoID}
}

// capacities is a pool's capacity in units of each shape (MD-11).
type capacities struct {
	class  cluster.Shapes // distinct capacity vectors of the pool's parcels
	column [][]int64      // by dimension, then class
	count  []int64        // parcels of the class
	units  []int64        // by ShapeID; unknown where not computed
	vector []int64
}

const unknown = -1

// of is the capacity for a shape in use.
func (c *capacities) of(shape cluster.ShapeID) int64 { return c.units[shape] }

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

// recount sorts the pool's parcels into classes of equal capacity. O(parcels × dimensions).
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

// next is the first of the pool's parcels from k on, NoID when there is none.
func (o *pool) next(k cluster.ParcelID) cluster.ParcelID {
	if o.parcels == nil {
		return k
	}
	w := int(k >> 6)
	for set := o.parcels[w] >> (uint(k) & 63) << (uint(k) & 63); ; set = o.parcels[w] {
		if set != 0 {
			return cluster.ParcelID(w<<6 + bits.TrailingZeros64(set))
		}
		if w++; w == len(o.parcels) {
			return cluster.NoID
		}
	}
}
