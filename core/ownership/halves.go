package ownership

import (
	"slices"

	"github.com/stintd/stint/core/plan"
)

// halvedMin is by how many pieces of the first level a full pass goes in two halves at once.
const halvedMin = 1 << 12

// sweepAll makes full sweeps over all domains. It is not true when the store was too small for two halves: then a pass
// has to be begun anew, in one.
func (a *Assigner) sweepAll(had *Deeds) bool {
	if len(a.domains) < 3 || a.domains[0].node != plan.Root {
		a.sweepSome(had, 0, len(a.domains))
		return true
	}
	a.sweepSome(had, 0, 1)
	if cut := a.cut(); cut > 1 && cut < len(a.domains) {
		return a.sweepHalves(had, cut)
	}
	a.sweepSome(had, 1, len(a.domains))
	return true
}

// both calls two functions, of which neither writes what the other reads: at once, where Both says how.
func (a *Assigner) both(f, g func()) {
	if a.Both != nil {
		a.Both(f, g)
		return
	}
	f()
	g()
}

// cut is the first domain of the second half: with those before it the consumers of the first level have at least half
// of what all of them have. 0 when the pass had better go in one. (A cut within the branch in the middle, the domain of
// which is swept before then, has the halves of five equal branches even, and the pass was no faster for it.)
func (a *Assigner) cut() int {
	t, all := a.g.Tree, 0
	for n := t.First[plan.Root]; n != plan.None; n = t.Next[n] {
		all += len(a.cellsOf[n])
	}
	if least := a.halved; a.cramped || all < least || least == 0 && all < halvedMin {
		return 0
	}
	some := 0
	for n := t.First[plan.Root]; n != plan.None; n = t.Next[n] {
		if some += len(a.cellsOf[n]); 2*some >= all {
			cut, _ := slices.BinarySearchFunc(a.domains, t.End[n], func(d domain, n plan.Node) int {
				return int(d.node) - int(n)
			})
			return cut
		}
	}
	return 0
}

// seam is where the two halves of a pass meet.
type seam struct {
	parts, pieces int     // the rows of the store where the second half begins
	number        int64   // that of the first new part of either half
	shared        []int64 // what was counted before
}

// sweepHalves sweeps the domains before the cut and those from it on at once: what is below one consumer of the first
// level has nothing to do with what is below another. Each half has its share of the room in the store, and numbers new
// parts as if it were alone; what comes of it is what sweeps one after the other give. It is not true when one of the
// halves needed more room.
func (a *Assigner) sweepHalves(had *Deeds, cut int) bool {
	at := a.seam(cut)
	b := a.half(at)
	a.store = a.between(len(a.part), at.parts, len(a.piece), at.pieces)
	a.both(func() { a.sweepSome(had, 1, cut) }, func() { b.sweepSome(had, cut, len(b.domains)) })
	a.other = b.kept()
	if a.cramped = a.cramped || b.cramped; a.cramped {
		return false
	}
	a.unite(b, at)
	return true
}

// seam parts the room of the store by how many pieces are awaited of the consumers below those of the first level.
func (a *Assigner) seam(cut int) seam {
	var awaited [2]int
	for n, pieces := range a.awaited {
		switch n := plan.Node(n); {
		case n == plan.Root || a.g.Tree.Parent[n] == plan.Root:
		case n < a.domains[cut].node:
			awaited[0] += pieces
		default:
			awaited[1] += pieces
		}
	}
	share := func(rows int) int { return rows * (awaited[0] + 1) / (awaited[0] + awaited[1] + 2) }
	parts, pieces := a.room()
	return seam{
		parts: len(a.part) + share(parts-len(a.part)), pieces: len(a.piece) + share(pieces-len(a.piece)),
		number: a.next, shared: slices.Clone(a.shared),
	}
}

// room is how many parts and pieces there can be without copying them.
func (s *store) room() (parts, pieces int) {
	return min(cap(s.part), cap(s.amount)/s.dims, cap(s.left)/s.dims), min(cap(s.piece), cap(s.gives)/s.dims)
}

// between is a store in the same memory, with so many parts and pieces, and room for so many of them.
func (s store) between(parts, maxParts, pieces, maxPieces int) store {
	vectors, maxVectors, gives, maxGives := parts*s.dims, maxParts*s.dims, pieces*s.dims, maxPieces*s.dims
	return store{
		dims: s.dims, part: s.part[:parts:maxParts], amount: s.amount[:vectors:maxVectors],
		left: s.left[:vectors:maxVectors], freePart: s.freePart, piece: s.piece[:pieces:maxPieces],
		gives: s.gives[:gives:maxGives], freePiece: s.freePiece, fixed: true,
	}
}

// half is an Assigner for the second half: with what the two share, and the rest of the store.
func (a *Assigner) half(at seam) *Assigner {
	b := *a
	b.memory, b.other = a.other, memory{}
	b.suit(a.dims, len(a.group), a.hosts)
	parts, pieces := a.room()
	b.store = a.between(at.parts, parts, at.pieces, pieces)
	b.freePart, b.freePiece, b.unsettled, b.dead = nil, nil, nil, nil
	b.shared, b.touched, b.skipped = slices.Clone(a.shared), 0, 0
	return &b
}

// unite takes over what the second half did.
func (a *Assigner) unite(b *Assigner, at seam) {
	for i := at.parts; i < len(b.part); i++ {
		if b.part[i].number >= at.number {
			b.part[i].number += a.next - at.number
		}
	}
	a.next += b.next - at.number
	for i, v := range b.shared {
		a.shared[i] += v - at.shared[i]
	}
	freePart, freePiece := append(a.freePart, b.freePart...), append(a.freePiece, b.freePiece...)
	for id := len(a.part); id < at.parts; id++ { // room that the first half did not need
		freePart = append(freePart, partID(id))
	}
	for id := len(a.piece); id < at.pieces; id++ {
		freePiece = append(freePiece, pieceID(id))
	}
	a.store = b.store
	a.freePart, a.freePiece, a.fixed = freePart, freePiece, false
	a.unsettled, a.dead = append(a.unsettled, b.unsettled...), append(a.dead, b.dead...)
	a.epoch, a.turns, a.searches = max(a.epoch, b.epoch), max(a.turns, b.turns), max(a.searches, b.searches)
	a.touched, a.skipped = a.touched+b.touched, a.skipped+b.skipped
}
