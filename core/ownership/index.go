package ownership

import (
	"math"
	"slices"
	"sort"

	"github.com/stintd/stint/core/plan"
)

// key is what candidates are sorted by, packed: smaller is better. From the highest bit on: part, kept, closed,
// second (public: another child lists the host; kept: others than the consumer itself had something), the victim
// (31 bits, kept only; last in rank first), load (49 bits, of which 29 are in hi), had (public only), host (32 bits).
type key struct{ hi, lo uint64 }

func (a key) compare(b key) int {
	switch {
	case a.hi != b.hi && a.hi < b.hi || a.hi == b.hi && a.lo < b.lo:
		return -1
	case a == b:
		return 0
	}
	return 1
}

// ranked is what a key is made of. The victim is the rank of the consumer from whom the host is taken.
type ranked struct {
	part, kept, closed, second, had bool
	victim, host                    int32
	load                            int64
}

// key packs what candidates are sorted by.
func (r ranked) key() (k key) {
	k.hi = bit(r.part)<<63 | bit(r.kept)<<62 | bit(r.closed)<<61 | bit(r.second)<<60 | uint64(r.load)>>20
	if r.kept {
		k.hi |= uint64(math.MaxInt32-r.victim) << 29
	}
	k.lo = uint64(r.load)&(1<<20-1)<<33 | bit(r.had)<<32 | uint64(uint32(r.host))
	return k
}

// free tells whether a candidate is whole, public, and not closed.
func (a key) free() bool { return a.hi>>61 == 0 }

// best tells whether a candidate is free, listed by no other child, and idle.
func (a key) best() bool { return a.hi == 0 && a.lo>>33 == 0 }

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// entry says how a stranger, one who has nothing to come of the cell and does not list it, ranks a cell
// while claims at the places from … to-1 have their turn. It holds as long as the cell has that version.
type entry struct {
	key
	cell     partID
	version  uint32
	from, to int32 // to is bounded when the key is no more than a lower bound
}

const (
	start   int32 = -1            // before the first claim
	end     int32 = math.MaxInt32 // after the last
	bounded       = end - 1       // after the last, too
)

// block is a run of entries in order of their keys, and what is true of all of them.
type block struct {
	entry []entry
	from  int32   // the smallest from
	to    int32   // the largest to
	low   []int64 // by dimension: no cell has less left
	known bool    // whether low is known
}

const (
	blockFill = 64 // entries of a block as it is laid out
	blockMax  = 2 * blockFill
)

// index has the entries of a domain's cells of a group in order of their keys, in blocks, so that one goes in or out
// in the time of a search and a move within a block, and whole blocks are passed over unread.
type index struct {
	block []block
	all   []entry // memory of the blocks as they were laid out
}

// lay makes the index of entries alone, which it sorts. It keeps their memory and gives back other memory for the next
// list.
func (x *index) lay(list []entry) (spare []entry) {
	x.all, spare = list, x.all
	if order := func(a, b entry) int { return a.key.compare(b.key) }; !slices.IsSortedFunc(list, order) {
		spare = slices.Grow(spare[:0], len(list))[:len(list)]
		if deal(spare, list) {
			x.all, spare = spare, list
		} else {
			slices.SortFunc(x.all, order)
		}
	}
	x.block = slices.Grow(x.block[:0], (len(list)+blockFill-1)/blockFill)
	for part := range slices.Chunk(x.all, blockFill) {
		x.block = append(x.block, block{entry: slices.Clip(part)})
		x.block[len(x.block)-1].sum()
	}
	return spare
}

// dealMax is among how many kinds of entries deal deals.
const dealMax = 16

// deal sorts a list into out when its keys are of few kinds but for their hosts, and those of a kind stand in order, as
// they do where nothing is held yet: by counting. Else it does nothing and returns false.
func deal(out, list []entry) bool {
	type kind struct {
		key
		count int
	}
	var kinds []kind
	at := 0
	for i := range list {
		k := list[i].key
		if at >= len(kinds) || kinds[at].hi != k.hi || kinds[at].lo>>32 != k.lo>>32 {
			at = slices.IndexFunc(kinds, func(one kind) bool { return one.hi == k.hi && one.lo>>32 == k.lo>>32 })
		}
		switch {
		case at < 0 && len(kinds) == dealMax:
			return false
		case at < 0:
			at = len(kinds)
			kinds = append(kinds, kind{key: k})
		case kinds[at].lo > k.lo:
			return false
		}
		kinds[at].lo = k.lo
		kinds[at].count++
	}
	slices.SortFunc(kinds, func(a, b kind) int { return a.key.compare(b.key) })
	from := 0
	for i := range kinds {
		kinds[i].count, from = from, from+kinds[i].count
	}
	for i := range list {
		k := list[i].key
		for at = 0; kinds[at].hi != k.hi || kinds[at].lo>>32 != k.lo>>32; at++ {
		}
		out[kinds[at].count] = list[i]
		kinds[at].count++
	}
	return true
}

// sum finds what is true of all entries of a block.
func (b *block) sum() {
	b.from, b.to, b.known = end, start, false
	for i := range b.entry {
		b.from, b.to = min(b.from, b.entry[i].from), max(b.to, b.entry[i].to)
	}
}

// insert puts an entry in its place.
func (x *index) insert(e entry) {
	i := sort.Search(len(x.block), func(i int) bool {
		list := x.block[i].entry
		return list[len(list)-1].compare(e.key) >= 0
	})
	if i == len(x.block) && i > 0 {
		i--
	} else if i == len(x.block) {
		x.block = append(x.block, block{from: end, to: start})
	}
	b := &x.block[i]
	k, _ := slices.BinarySearchFunc(b.entry, e.key, func(a entry, k key) int { return a.key.compare(k) })
	b.entry = slices.Insert(b.entry, k, e)
	b.from, b.to, b.known = min(b.from, e.from), max(b.to, e.to), false
	if len(b.entry) > blockMax {
		x.block = slices.Insert(x.block, i+1, block{entry: slices.Clone(b.entry[blockFill:])})
		x.block[i].entry = slices.Clip(x.block[i].entry[:blockFill])
		x.block[i].sum()
		x.block[i+1].sum()
	}
}

// size is the number of entries, those that hold no longer included.
func (x *index) size() (n int) {
	for i := range x.block {
		n += len(x.block[i].entry)
	}
	return n
}

// sift takes the entries that hold no longer out of a block; empty blocks go. It tells whether the block is still
// there.
func (x *index) sift(i int, s *store) bool {
	b := &x.block[i]
	n := len(b.entry)
	b.entry = slices.DeleteFunc(b.entry, func(e entry) bool { return s.part[e.cell].version != e.version })
	switch {
	case len(b.entry) == 0:
		x.block = slices.Delete(x.block, i, i+1)
		return false
	case len(b.entry) < n:
		b.sum()
	}
	return true
}

// rank is the key of a cell for a consumer (plan.None: a stranger) when claims at a place take: first is the first
// piece behind that place, left what is left, begun whether something was taken.
func (a *Assigner) rank(d *domain, n plan.Node, c partID, first pieceID, left []int64, begun bool) key {
	kept, others, had, victim := false, false, false, int32(0)
	for p := first; p != nothing; p = a.piece[p].next {
		at := &a.piece[p]
		owner := &a.part[at.part]
		if at.claim == nothing && owner.node == n {
			continue
		}
		had, others = true, others || owner.node != n
		if !owner.busy {
			continue
		}
		if common(a.givesOf(p), left) {
			kept = true
		}
		if r := a.g.Rank[owner.node] + 1; victim == 0 || r < victim {
			victim = r
		}
	}
	at := &a.part[c]
	r := ranked{part: begun, kept: kept, closed: a.shut(at.host), load: at.load, host: at.host}
	if kept {
		r.second, r.victim = others, victim-1
	} else {
		r.second, r.had = d.listedBeside(at.host, n), had
	}
	return r.key()
}

// common tells whether two vectors have something of the same dimension.
func common(a, b []int64) bool {
	for i, v := range a {
		if v > 0 && b[i] > 0 {
			return true
		}
	}
	return false
}

// entriesMax is up to how many pieces of a cell each place has an entry of its own.
const entriesMax = 4

// entries appends how a clean cell ranks from the first place to the last.
func (a *Assigner) entries(list []entry, d *domain, c partID) []entry {
	at := &a.part[c]
	left := a.scratch
	copy(left, a.amountOf(c))
	from, pieces := start, 0
	for p := at.first; p != nothing; p = a.piece[p].next {
		pieces++
	}
	for p := at.first; ; p = a.piece[p].next {
		to := end
		if p != nothing {
			to = a.place(p)
		}
		if zero(left) {
			return list
		}
		e := entry{cell: c, version: at.version, from: from, to: to}
		if from != start && pieces > entriesMax {
			e.to, e.key = bounded, ranked{part: true, load: at.load, host: at.host}.key()
			return append(list, e)
		}
		e.key = a.rank(d, plan.None, c, p, left, from != start)
		list = append(list, e)
		if p == nothing {
			return list
		}
		from = to
		for i, v := range a.givesOf(p) {
			left[i] -= v
		}
	}
}
