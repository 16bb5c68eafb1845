// Package place says which parcel of a slot plan gets the next unit: stacked or balanced (SLOT-31, docs/decisions.md
// D-1 … D-3). The answer is a function of the slots that are free on the parcels; all else that the package keeps
// makes the answer quick.
package place

import (
	"math/bits"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// The classes of parcels. Stacked plans fill parcels that are begun before the others; in balanced plans all parcels
// are of the first class.
const (
	begun   int8 = iota // something is held there, or kept for a taker
	fresh               // all of its slots are free
	classes             // how many there are
	shut    int8 = -1   // the parcel gets no grants
)

// Field is the free slots of a plan's parcels. It is a copy: Take takes units off it while granting, Sync brings it up
// to the parcels between cycles.
type Field struct {
	parcels  *cluster.Parcels
	balanced bool
	free     []int64 // by parcel: free slots, 0 where it has less than nothing
	class    []int8  // by parcel
	of       [classes]index
	gained   int // parcels that gained room since Sync
}

// Sync brings the field up to a plan's parcels at the start of a cycle. The cost follows the parcels that changed.
func (f *Field) Sync(p *cluster.Plan) {
	balanced := p.Terms.Placement == plan.Balanced
	p.Seen, f.gained = len(p.Changed), 0
	for c := range f.of {
		f.of[c].entered = f.of[c].entered[:0]
	}
	if !p.Rebuilt && f.parcels == &p.Parcels && f.balanced == balanced {
		for _, k := range p.Changed {
			f.put(k)
		}
		return
	}
	f.parcels, f.balanced = &p.Parcels, balanced
	n := f.parcels.Len()
	f.free, f.class = resize(f.free, n), resize(f.class, n)
	for c := range f.of {
		f.of[c].begin(n)
	}
	for k := range n {
		f.class[k] = shut
		f.put(cluster.ParcelID(k))
	}
}

// put copies a parcel and gives it its class.
func (f *Field) put(k cluster.ParcelID) {
	if !f.parcels.IsOpen(k) {
		f.enter(k, shut)
		return
	}
	free, class := f.parcels.Available(0, k), begun
	if !f.balanced && free >= f.parcels.Cap[0][k] {
		class = fresh
	}
	f.free[k] = max(0, free)
	f.enter(k, class)
}

// enter moves a parcel to a class, and tells the finders.
func (f *Field) enter(k cluster.ParcelID, class int8) {
	if was := f.class[k]; was != shut && was != class {
		f.of[was].set[k>>6] &^= 1 << (uint(k) & 63)
	}
	f.class[k] = class
	if class != shut {
		f.of[class].add(k, f.free[k])
	}
}

// Take takes slots off an open parcel that has them.
func (f *Field) Take(k cluster.ParcelID, slots int64) {
	f.free[k] -= slots
	if f.class[k] == fresh {
		f.enter(k, begun)
	}
}

// Regain brings the field up to a parcel that gained room while granting.
func (f *Field) Regain(k cluster.ParcelID) {
	f.gained++
	f.put(k)
}

// index finds parcels of one class by their free slots.
type index struct {
	set     []uint64           // bitset of the parcels
	block   []int64            // by word of set: no parcel there has more free
	span    []int64            // by 64 blocks: no parcel there has more free
	entered []cluster.ParcelID // parcels that came into the class, or gained room in it, since Sync
}

// begin makes the index empty, for so many parcels.
func (x *index) begin(parcels int) {
	words := (parcels + 63) / 64
	x.set, x.block, x.span = resize(x.set, words), resize(x.block, words), resize(x.span, (words+63)/64)
	clear(x.set)
	clear(x.block)
	clear(x.span)
}

// add puts a parcel in, or notes that it has more free.
func (x *index) add(k cluster.ParcelID, free int64) {
	block, span := &x.block[k>>6], &x.span[k>>12]
	x.set[k>>6] |= 1 << (uint(k) & 63)
	*block, *span = max(*block, free), max(*span, free)
	x.entered = append(x.entered, k)
}

// lower brings the bound of a block down to what its parcels have.
func (x *index) lower(block int, free []int64) {
	most := int64(0)
	for set := x.set[block]; set != 0; set &= set - 1 {
		most = max(most, free[block<<6+bits.TrailingZeros64(set)])
	}
	x.block[block] = most
}

// lowerSpan brings the bound of a span down to those of its blocks.
func (x *index) lowerSpan(span int) {
	most := int64(0)
	for _, block := range x.block[span<<6 : min((span+1)<<6, len(x.block))] {
		most = max(most, block)
	}
	x.span[span] = most
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return append(s[:cap(s)], make([]T, n-cap(s))...)[:n]
	}
	return s[:n]
}
