package ownership

import (
	"math/bits"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// Rows of the store. What is freed is given out again, so a row means something only while it is in use.
type (
	partID  int32
	pieceID int32
	claimID int32
)

// nothing is no row.
const nothing = -1

// part is what a consumer has of a host; the root's parts are the hosts. To the consumer's children it is the
// cell of their domain that they divide: their pieces of it are a chain in the order of their claims.
//
// In a sweep over a domain's claims a cell is either clean — its pieces are as a pass over the same ground would
// leave them, those of claims that had their turn are taken, the others to come — or soiled: then its
// chain is what was taken so far, up to and with cursor, and after it what was had by claims to come.
type part struct {
	number  int64
	load    int64 // of the cell, in 2⁴⁸ths
	node    plan.Node
	host    int32
	up      partID  // the cell of which it is a part
	first   pieceID // of the children's pieces
	cursor  pieceID // of a soiled cell: the last piece taken
	version uint32  // counts up when what others noted about the cell no longer holds
	seen    uint32  // the sweep, over the parent's domain, that noted the part
	special uint32  // of a cell: the search that ranked it for its claim
	turn    uint32  // of a cell: the claim's turn in which mine holds
	mine    partID  // of a cell: the part of the consumer whose claim has its turn
	busy    bool
	soiled  bool
}

// piece is a vector of a cell that a claim took. A piece of no claim, which only what was had can be,
// stands in its chain after the last claim of its consumer.
type piece struct {
	part          partID  // of the claim's consumer
	claim         claimID // nothing: of no claim
	next          pieceID // in the cell
	before, after pieceID // of the claim; of the consumer's pieces of no claim
}

// wide is a sum of amounts that cannot overflow, so that what went in can be taken out again.
type wide struct{ hi, lo uint64 }

func (w *wide) add(v int64) {
	var carry uint64
	w.lo, carry = bits.Add64(w.lo, uint64(v), 0)
	w.hi += carry
}

func (w *wide) sub(v int64) {
	var borrow uint64
	w.lo, borrow = bits.Sub64(w.lo, uint64(v), 0)
	w.hi -= borrow
}

// amount is the sum, saturated at the largest int64.
func (w wide) amount() int64 {
	if w.hi != 0 || w.lo > 1<<63-1 {
		return 1<<63 - 1
	}
	return int64(w.lo)
}

// store holds parts, pieces and their vectors, which stand beside them row by row.
type store struct {
	dims      int
	part      []part
	amount    []int64 // of parts
	left      []int64 // of soiled cells: less what was taken; in between: scratch of settle
	freePart  []partID
	piece     []piece
	gives     []int64 // of pieces
	freePiece []pieceID
	fixed     bool // may not grow: others use the same memory
}

// spent tells whether there is no room for a part and a piece more.
func (s *store) spent() bool {
	return s.fixed && (len(s.part) == cap(s.part) || len(s.piece) == cap(s.piece))
}

func (s *store) reset(dims int) {
	s.dims, s.fixed = dims, false
	s.part, s.amount, s.left, s.freePart = s.part[:0], s.amount[:0], s.left[:0], s.freePart[:0]
	s.piece, s.gives, s.freePiece = s.piece[:0], s.gives[:0], s.freePiece[:0]
}

// reserve makes room for so many parts and pieces, of an empty store.
func (s *store) reserve(parts, pieces int) {
	s.part, s.amount, s.left = roomy(s.part, parts), roomy(s.amount, parts*s.dims), roomy(s.left, parts*s.dims)
	s.piece, s.gives = roomy(s.piece, pieces), roomy(s.gives, pieces*s.dims)
}

// roomy is an empty slice with room for n. Fresh memory, unlike that of slices.Grow, is not written to before it is
// used.
func roomy[T any](v []T, n int) []T {
	if cap(v) < n {
		return make([]T, 0, n)
	}
	return v[:0]
}

func (s *store) amountOf(c partID) []int64 { return vector(s.amount, int(c), s.dims) }
func (s *store) leftOf(c partID) []int64   { return vector(s.left, int(c), s.dims) }
func (s *store) givesOf(p pieceID) []int64 { return vector(s.gives, int(p), s.dims) }

// vector is a row of flat columns. The row stays in place until the next row is made.
func vector(flat []int64, row, dims int) []int64 { return flat[row*dims : (row+1)*dims : (row+1)*dims] }

// newPart gives a part of nothing. The version goes on where that of the row's last part ended.
func (s *store) newPart(n plan.Node, h int32, up partID, number int64) partID {
	fresh := part{number: number, node: n, host: h, up: up, first: nothing, cursor: nothing}
	if k := len(s.freePart); k > 0 {
		id := s.freePart[k-1]
		s.freePart = s.freePart[:k-1]
		fresh.version = s.part[id].version + 1
		s.part[id] = fresh
		clear(s.amountOf(id))
		clear(s.leftOf(id))
		return id
	}
	s.part = append(s.part, fresh)
	s.amount, s.left = extended(s.amount, s.dims), extended(s.left, s.dims)
	return partID(len(s.part) - 1)
}

func (s *store) newPiece(of partID, c claimID, v []int64) pieceID {
	fresh := piece{part: of, claim: c, next: nothing, before: nothing, after: nothing}
	id := pieceID(len(s.piece))
	if k := len(s.freePiece); k > 0 {
		id = s.freePiece[k-1]
		s.freePiece = s.freePiece[:k-1]
		s.piece[id] = fresh
	} else {
		s.piece = append(s.piece, fresh)
		s.gives = extended(s.gives, s.dims)
	}
	copy(s.givesOf(id), v)
	return id
}

// extended appends so many zeros.
func extended(v []int64, by int) []int64 {
	n := len(v)
	v = slices.Grow(v, by)[:n+by]
	clear(v[n:])
	return v
}

// chain puts a piece behind the cursor of a cell and moves the cursor to it.
func (s *store) chain(c partID, p pieceID) {
	at := &s.part[c]
	if at.cursor == nothing {
		s.piece[p].next, at.first = at.first, p
	} else {
		s.piece[p].next, s.piece[at.cursor].next = s.piece[at.cursor].next, p
	}
	at.cursor = p
}

// following is the piece behind the cursor of a soiled cell: the first of those to come.
func (s *store) following(c partID) pieceID {
	if at := s.part[c].cursor; at != nothing {
		return s.piece[at].next
	}
	return s.part[c].first
}

// unchain takes the piece behind the cursor out of a cell's chain.
func (s *store) unchain(c partID) {
	p := s.following(c)
	if at := s.part[c].cursor; at != nothing {
		s.piece[at].next = s.piece[p].next
	} else {
		s.part[c].first = s.piece[p].next
	}
}

// useRow is what is held on the parcel of a host with a certain owner.
type useRow struct {
	owner plan.Node
	next  int32 // of the same host
}

// use is what is held, by host.
type use struct {
	first  []int32 // by host: its first row
	row    []useRow
	amount []int64
	free   []int32
}

func (u *use) reset(hosts int) {
	u.first = u.first[:0]
	for range hosts {
		u.first = append(u.first, nothing)
	}
	u.row, u.amount, u.free = u.row[:0], u.amount[:0], u.free[:0]
}

func (u *use) drop(h int32) {
	for r := u.first[h]; r != nothing; r = u.row[r].next {
		u.free = append(u.free, r)
	}
	u.first[h] = nothing
}

func (u *use) add(one Use, dims int) {
	r := int32(len(u.row))
	if k := len(u.free); k > 0 {
		r, u.free = u.free[k-1], u.free[:k-1]
	} else {
		u.row, u.amount = append(u.row, useRow{}), extended(u.amount, dims)
	}
	u.row[r] = useRow{one.Owner, u.first[one.Host]}
	u.first[one.Host] = r
	copy(vector(u.amount, int(r), dims), one.Amount)
}
