//go:build !rounds

package grant

import (
	"math/bits"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/pool"
	"github.com/stintd/stint/core/share"
)

// kinds are the units of one size of each leaf in a loop, and how much each unit more adds to the leaf's usage.
type kinds struct {
	kind []kind
	size []size  // by ShapeID
	last []int32 // by ShapeID: scratch, the number of its latest kind, from 1
}

// size is a unit size in a pool: 2⁴⁸ ÷ capacity, as a whole and a rest.
type size struct {
	whole, rest, capacity int64
	known                 bool
}

// kind is how far the units of one size of a leaf are: what of rests has not come to a whole, and how many units the
// pool has room for beside those it has.
type kind struct {
	shape       cluster.ShapeID
	carry, left int64
}

// fill gives each ask its kind. Net is what leaves have of the pool.
func (k *kinds) fill(e *Env, q *pool.Queue, net *pool.Net, top plan.Node) {
	k.kind, k.size = k.kind[:0], column.Zeros(k.size, e.State.Shape.Len())
	k.last = column.Zeros(k.last, e.State.Shape.Len())
	for l, leaf := range q.Leaf {
		begin, asks := int32(len(k.kind)), q.Asks(int32(l))
		for i := range asks {
			a := &asks[i]
			if k.last[a.Shape] <= begin {
				k.kind = append(k.kind, k.begin(e, top, leaf, a.Shape, net))
				k.last[a.Shape] = int32(len(k.kind))
			}
			a.Kind = k.last[a.Shape] - 1
		}
	}
}

// begin is a leaf's units of a size before it is given any.
func (k *kinds) begin(e *Env, top, leaf plan.Node, shape cluster.ShapeID, net *pool.Net) kind {
	z := &k.size[shape]
	if !z.known {
		z.known, z.capacity = true, e.Views.Capacity.Of(e.State, top, shape)
		if z.capacity > 0 {
			z.whole, z.rest = share.One/z.capacity, share.One%z.capacity
		}
	}
	has := net.Of(leaf, shape)
	if z.capacity <= has { // a share is at most the whole
		return kind{shape: shape}
	}
	return kind{shape, mulMod(has, z.rest, z.capacity), z.capacity - has}
}

// mulMod is a × b mod m for 0 ≤ b < m.
func mulMod(a, b, m int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	return int64(bits.Rem64(hi, lo, uint64(m)))
}

// next is what one unit more adds to its leaf's usage: ⌊(n+1) × 2⁴⁸ ÷ capacity⌋ less the same of n, to the last 2⁻⁴⁸,
// and nothing once n is the capacity.
func (k *kinds) next(i int32) int64 {
	one := &k.kind[i]
	if one.left <= 0 {
		return 0
	}
	one.left--
	z := &k.size[one.shape]
	more := z.whole
	if one.carry += z.rest; one.carry >= z.capacity {
		one.carry -= z.capacity
		more++
	}
	return more
}
