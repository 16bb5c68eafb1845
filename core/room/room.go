// Package room is the index of free room: how much each row, mostly a parcel, has free, laid out for three questions:
// which is the first row from here that has room for this size, which rows have, how many are they. A row's amounts in
// the first four dimensions stand in one word of four lanes of 16 bits, rounded down where a lane is too narrow; the
// exact amounts of a row stand side by side behind it. Blocks of 64 rows have the most of any of their rows in each
// lane, spans of 64 blocks the most of their blocks, so that what is full is passed over 64 or 4,096 rows at a time.
package room

import (
	"math/bits"

	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/vecpack"
)

// Row is a row of an index.
type Row int32

// NoRow is no row.
const NoRow Row = -1

// Index is the free room of rows. Reset comes first.
type Index struct {
	rows  int
	dims  int
	shift [vecpack.Lanes]uint // by which amounts are rounded down in the words
	exact bool                // the words say all
	most  []int64             // by dimension: what a row may have at most
	word  []uint64            // by row, in whole blocks
	free  []int64             // by row, then dimension
}

// Reset makes an index of so many rows without any room. Most is by dimension what a row will have at most.
func (x *Index) Reset(rows int, most []int64) {
	words := (rows + 63) &^ 63
	if cap(x.word) < words || cap(x.free) < rows*len(most) {
		x.word, x.free = column.Make[uint64](words), column.Make[int64](rows*len(most))
	}
	x.rows, x.dims, x.most = rows, len(most), append(x.most[:0], most...)
	x.word, x.free = x.word[:words], x.free[:rows*len(most)]
	clear(x.word)
	for i := range x.free {
		x.free[i] = -1
	}
	x.shift, x.exact = [vecpack.Lanes]uint{}, len(most) <= vecpack.Lanes
	for d := range min(len(most), vecpack.Lanes) {
		for most[d]>>x.shift[d] > vecpack.LaneMax {
			x.shift[d]++
			x.exact = false
		}
	}
}

// Rows is the number of rows.
func (x *Index) Rows() int { return x.rows }

// Exact tells whether the words say all: then a row's lane is its amount, 0 where that is below 0.
func (x *Index) Exact() bool { return x.exact }

// Word is a row's amounts in packed lanes.
func (x *Index) Word(row Row) uint64 { return x.word[row] }

// Free is what a row has free by dimension, in the index's own memory; below 0 where nothing fits.
func (x *Index) Free(row Row) []int64 {
	at := int(row) * x.dims
	return x.free[at : at+x.dims : at+x.dims]
}

// Put sets what a row has free; who puts more than the most, which counts as that in words, does not Take. Sets that
// the row is in are told by Set.Add.
func (x *Index) Put(row Row, free []int64) {
	copy(x.Free(row), free)
	x.word[row] = x.pack(free)
}

// Shut makes a row one that nothing fits.
func (x *Index) Shut(row Row) {
	for d := range x.Free(row) {
		x.Free(row)[d] = -1
	}
	x.word[row] = 0
}

// Take takes a unit off a row that it fits.
func (x *Index) Take(row Row, need *Need) {
	free := x.Free(row)
	for _, d := range need.dims {
		free[d] -= need.size[d]
	}
	if x.exact {
		x.word[row] -= need.word
	} else {
		x.word[row] = x.pack(free)
	}
}

func (x *Index) pack(free []int64) (word uint64) {
	for d := range min(len(free), vecpack.Lanes) {
		word |= uint64(min(max(0, free[d]), x.most[d])>>x.shift[d]) << (16 * d)
	}
	return word
}

// Need is a size as an index sees it.
type Need struct {
	size  []int64
	dims  []int32 // in which the size is not 0
	word  uint64
	never bool // no row may have so much
}

// Need prepares a size, of which some dimension is not 0. It is good until the next Reset.
func (x *Index) Need(size []int64) Need {
	n := Need{size: size}
	var lane [vecpack.Lanes]int64
	for d, v := range size[:x.dims] {
		if v == 0 {
			continue
		}
		n.dims = append(n.dims, int32(d))
		if n.never = n.never || v > x.most[d]; !n.never && d < len(lane) {
			lane[d] = v >> x.shift[d]
		}
	}
	n.word = vecpack.Pack(lane[:])
	return n
}

// Word is a size in packed lanes.
func (n *Need) Word() uint64 { return n.word }

// Size is the size that was prepared.
func (n *Need) Size() []int64 { return n.size }

// Never tells whether the size is more than any row may have.
func (n *Need) Never() bool { return n.never }

// Fits tells whether a row has room for a size.
func (x *Index) Fits(row Row, need *Need) bool {
	return !need.never && vecpack.Covers(x.word[row], need.word) && x.exactly(row, need)
}

// exactly is Fits for a row whose word covers the size.
func (x *Index) exactly(row Row, need *Need) bool {
	free := x.Free(row)
	for _, d := range need.dims {
		if free[d] < need.size[d] {
			return false
		}
	}
	return true
}

// Set is some rows of an index, with the most that those of each block have. A search that finds nothing in a block
// lowers its most to what it is. The zero value is empty; Reset comes first.
type Set struct {
	rows  []uint64 // bitset by row
	block []uint64 // by block: no row of the set there has more in any lane
	span  []uint64 // by span: no block has more
	top   uint64   // no span has more
	count int
}

// Reset makes a set empty, for an index of so many rows.
func (s *Set) Reset(rows int) {
	blocks := (rows + 63) / 64
	s.rows, s.block = column.Zeros(s.rows, blocks), column.Zeros(s.block, blocks)
	s.span = column.Zeros(s.span, (blocks+63)/64)
	s.top, s.count = 0, 0
}

// Len is the number of rows in the set.
func (s *Set) Len() int { return s.count }

// Has tells whether a row is in the set.
func (s *Set) Has(row Row) bool { return s.rows[row>>6]>>(uint(row)&63)&1 == 1 }

// May tells whether a row of the set may have room for a size. O(1).
func (s *Set) May(need *Need) bool { return s.count > 0 && vecpack.Covers(s.top, need.word) }

// Most is what no row of the set has more of in any lane.
func (s *Set) Most() uint64 { return s.top }

// Add adds a row, or tells that a row of the set has got more room.
func (s *Set) Add(x *Index, row Row) {
	if b := row >> 6; !s.Has(row) {
		s.rows[b] |= 1 << (uint(row) & 63)
		s.count++
	}
	w := x.word[row]
	s.block[row>>6] = vecpack.Most(s.block[row>>6], w)
	s.span[row>>12] = vecpack.Most(s.span[row>>12], w)
	s.top = vecpack.Most(s.top, w)
}

// Remove removes a row of the set.
func (s *Set) Remove(row Row) {
	s.rows[row>>6] &^= 1 << (uint(row) & 63)
	s.count--
}

// First is the first row of a set from one on that has room for a size and whose bit is set in mask (nil: any), NoRow
// when there is none. O(blocks that may have room, and spans).
func (x *Index) First(s *Set, need *Need, from Row, mask []uint64) Row {
	return x.FirstIn(s, need, from, Row(x.rows), mask)
}

// FirstIn is First among the rows from … to-1.
func (x *Index) FirstIn(s *Set, need *Need, from, to Row, mask []uint64) Row {
	if need.never || !s.May(need) {
		return NoRow
	}
	blocks := int(to+63) >> 6
	for b := int(from >> 6); b < blocks; {
		if !vecpack.Covers(s.span[b>>6], need.word) {
			b = (b | 63) + 1
			continue
		}
		end := min((b|63)+1, blocks)
		next := vecpack.FirstWord(s.block[:end], b, need.word)
		if next < 0 {
			s.lower(b >> 6)
			b = end
			continue
		}
		switch row := x.inBlock(s, need, next, from, mask); {
		case row >= to:
			return NoRow
		case row != NoRow:
			return row
		}
		b = next + 1
	}
	if from == 0 && int(to) == x.rows && mask == nil {
		s.top = vecpack.MostOf(s.span)
	}
	return NoRow
}

// inBlock is First for one block.
func (x *Index) inBlock(s *Set, need *Need, b int, from Row, mask []uint64) Row {
	set, most := vecpack.CoverRows(x.word[b<<6:b<<6+64], s.rows[b], need.word)
	if s.block[b] = most; b == int(from>>6) {
		set &^= 1<<(uint(from)&63) - 1
	}
	if mask != nil {
		set &= mask[b]
	}
	for ; set != 0; set &= set - 1 {
		if row := Row(b<<6 + bits.TrailingZeros64(set)); x.exact || x.exactly(row, need) {
			return row
		}
	}
	return NoRow
}

// lower makes the most of a span what its blocks have.
func (s *Set) lower(span int) {
	s.span[span] = vecpack.MostOf(s.block[span<<6 : min(len(s.block), span<<6+64)])
}

// Mask sets in dst, a bitset by row, the bits of the rows of a set that have room for a size, and clears all others.
// O(rows ÷ 64 and the rows of the set).
func (x *Index) Mask(dst []uint64, s *Set, need *Need) {
	for b := range s.block {
		dst[b] = 0
		if !need.never && s.rows[b] != 0 && vecpack.Covers(s.block[b], need.word) {
			dst[b], s.block[b] = vecpack.CoverRows(x.word[b<<6:b<<6+64], s.rows[b], need.word)
			for set := dst[b]; !x.exact && set != 0; set &= set - 1 {
				if i := bits.TrailingZeros64(set); !x.exactly(Row(b<<6+i), need) {
					dst[b] &^= 1 << i
				}
			}
		}
	}
}

// Count is how many rows of a set have room for a size and their bit set in mask (nil: any).
func (x *Index) Count(s *Set, need *Need, mask []uint64) (n int) {
	for b := range s.block {
		if s.rows[b] == 0 || need.never || !vecpack.Covers(s.block[b], need.word) {
			continue
		}
		set, most := vecpack.CoverRows(x.word[b<<6:b<<6+64], s.rows[b], need.word)
		if s.block[b] = most; mask != nil {
			set &= mask[b]
		}
		for ; set != 0; set &= set - 1 {
			i := bits.TrailingZeros64(set)
			if x.exact || x.exactly(Row(b<<6+i), need) {
				n++
			}
		}
	}
	return n
}

// Hints remember of searches which rows they found to have no room, so that the next one for the same begins behind
// those: by what is sought and the first word of the mask. The zero value is ready.
type Hints[K comparable] struct {
	rose []Row // rows that got more room
	at   map[hintKey[K]]hint
}

type hintKey[K comparable] struct {
	sought K
	mask   *uint64
}

// hint is where a search was: no row before next has room but for those that rose after the first so many did.
type hint struct {
	next Row
	seen int
}

// roseMost is how many rows that rose are looked at; where more did, a search begins at the first row again.
const roseMost = 1 << 8

// Reset forgets all.
func (h *Hints[K]) Reset() { h.rose, h.at = h.rose[:0], nil }

// Put is Index.Put and Set.Add of a row. A row that gets less may be put without the hints.
func (h *Hints[K]) Put(x *Index, s *Set, row Row, free []int64) {
	rose := !s.Has(row)
	for d, was := range x.Free(row) {
		rose = rose || free[d] > was
	}
	x.Put(row, free)
	if s.Add(x, row); rose {
		h.rose = append(h.rose, row)
	}
}

// First is First from the first row on, for what is sought, which has one size and one set.
func (h *Hints[K]) First(x *Index, s *Set, need *Need, mask []uint64, sought K) Row {
	key := hintKey[K]{sought: sought}
	if len(mask) > 0 {
		key.mask = &mask[0]
	}
	at := h.at[key]
	if len(h.rose)-at.seen > roseMost {
		at = hint{seen: len(h.rose)}
	}
	for _, row := range h.rose[at.seen:] {
		if row < at.next && s.Has(row) && x.Fits(row, need) && (mask == nil || mask[row>>6]>>(uint(row)&63)&1 == 1) {
			at.next = row
		}
	}
	row := x.First(s, need, at.next, mask)
	if at = (hint{row, len(h.rose)}); row == NoRow {
		at.next = Row(x.rows)
	}
	if h.at == nil {
		h.at = map[hintKey[K]]hint{}
	}
	h.at[key] = at
	return row
}
