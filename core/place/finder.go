package place

import (
	"math/bits"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// Finder finds the parcel for the next unit of so many slots, among the parcels that a requirement allows. It is good
// for one grant stage: free room only falls then, except where the field is told otherwise, so that the finder's
// cursors go forward.
type Finder struct {
	field   *Field
	slots   int64
	allowed []uint64           // bitset of parcels, nil: all
	order   []cluster.ParcelID // in which parcels are preferred, nil: the field's
	gained  int                // of the field, when next was set back or nothing was found
	next    int                // in order: none before it has room
	dry     bool               // nothing was found
	cursor  [classes]cluster.ParcelID
	seen    [classes]int // of the index's entered
}

// Reset makes the finder look for another size. allowed is a bitset of the parcels that may be used (nil: all); Forbid
// clears bits in it. order, unless nil, lists the parcels in the order of preference instead of the field's.
func (q *Finder) Reset(f *Field, slots int64, allowed []uint64, order []cluster.ParcelID) {
	*q = Finder{field: f, slots: slots, allowed: allowed, order: order, gained: f.gained}
	for c := range q.seen {
		q.seen[c] = len(f.of[c].entered)
	}
}

// Forbid takes a parcel out of those that may be used. The finder must have been given a bitset of its own.
func (q *Finder) Forbid(k cluster.ParcelID) { q.allowed[k>>6] &^= 1 << (uint(k) & 63) }

// Find is the parcel that the next unit goes to, NoID when it fits nowhere.
func (q *Finder) Find() cluster.ParcelID {
	if gained := q.field.gained; q.gained != gained {
		q.gained, q.next, q.dry = gained, 0, false
	}
	if q.dry {
		return cluster.NoID
	}
	at := cluster.ParcelID(cluster.NoID)
	switch {
	case q.order != nil:
		at = q.inOrder()
	case q.field.balanced:
		at = q.widest()
	default:
		at = q.first(begun)
		if at == cluster.NoID {
			at = q.first(fresh)
		}
	}
	q.dry = at == cluster.NoID
	return at
}

// has tells whether a parcel is open and allowed and has room for a unit.
func (q *Finder) has(k cluster.ParcelID) bool {
	return q.field.class[k] != shut && q.field.free[k] >= q.slots &&
		(q.allowed == nil || q.allowed[k>>6]>>(uint(k)&63)&1 == 1)
}

// inOrder is Find over an explicit order.
func (q *Finder) inOrder() cluster.ParcelID {
	for ; q.next < len(q.order); q.next++ {
		if k := q.order[q.next]; q.has(k) {
			return k
		}
	}
	return cluster.NoID
}

// first is the first parcel of a class that has room for a unit, NoID when there is none. Parcels that came into the
// class set its cursor back.
func (q *Finder) first(class int8) cluster.ParcelID {
	x, at := &q.field.of[class], &q.cursor[class]
	for _, k := range x.entered[q.seen[class]:] {
		if k < *at && q.has(k) {
			*at = k
		}
	}
	q.seen[class] = len(x.entered)
	for b := int(*at >> 6); b < len(x.set); b++ {
		if b&63 == 0 && x.span[b>>6] < q.slots {
			b |= 63
			continue
		}
		if x.block[b] >= q.slots {
			if k := q.inBlock(x, b, *at, q.slots); k != cluster.NoID {
				*at = k
				return k
			}
			x.lower(b, q.field.free)
		}
		if b&63 == 63 {
			x.lowerSpan(b >> 6)
		}
	}
	*at = cluster.ParcelID(len(x.set) << 6)
	return cluster.NoID
}

// inBlock is the first allowed parcel of a block, from one on, that has so much free; NoID when there is none.
func (q *Finder) inBlock(x *index, block int, from cluster.ParcelID, least int64) cluster.ParcelID {
	set := x.set[block]
	if q.allowed != nil {
		set &= q.allowed[block]
	}
	if int(from>>6) == block {
		set &^= 1<<(uint(from)&63) - 1
	}
	for ; set != 0; set &= set - 1 {
		if k := block<<6 + bits.TrailingZeros64(set); q.field.free[k] >= least {
			return cluster.ParcelID(k)
		}
	}
	return cluster.NoID
}

// widest is the parcel with the most free, the first of equal ones; NoID when none has room for a unit. It looks only
// at blocks that may have a better one than was found.
func (q *Finder) widest() cluster.ParcelID {
	x, best, least := &q.field.of[begun], cluster.ParcelID(cluster.NoID), q.slots
	for b := 0; b < len(x.set); b++ {
		if b&63 == 0 && x.span[b>>6] < least {
			b |= 63
			continue
		}
		if x.block[b] >= least {
			x.lower(b, q.field.free)
			for k := q.inBlock(x, b, 0, least); k != cluster.NoID; k = q.inBlock(x, b, k, least) {
				best, least = k, q.field.free[k]+1
			}
		}
		if b&63 == 63 {
			x.lowerSpan(b >> 6)
		}
	}
	return best
}

// Order sorts the parcels that a requirement allows by its order keys, ties in host order.
func Order(b *plan.Bound, p *cluster.Parcels, allowed []uint64) []cluster.ParcelID {
	order := make([]cluster.ParcelID, 0, p.Len())
	for k := range p.Len() {
		if allowed == nil || allowed[k>>6]>>(uint(k)&63)&1 == 1 {
			order = append(order, cluster.ParcelID(k))
		}
	}
	slices.SortStableFunc(order, func(a, c cluster.ParcelID) int {
		return b.Compare(int(p.Host[a]), int(p.Host[c]))
	})
	return order
}
