package share

import "math/bits"

// Entrant is a node of the tree that a Race goes round, by number. Parents have lower
// numbers than their children.
type Entrant struct {
	Usage, Ratio int64
	Priority     int32 // larger is served first
	Tie          int32 // among equals the smaller is served first; no two siblings have the same
	Parent       int32 // -1: the root
	In           bool  // a leaf that may get something
}

// family is the children of a node in the race: seat[first : first+size], the next to be served on top.
type family struct{ first, size, parent int32 }

// seat is what is compared of a child, beside its siblings': a turn touches few cache lines.
type seat struct {
	usage, ratio        int64
	priority, tie, node int32
}

// Race serves the leaves of a tree in turns: from the root always the child of the highest
// priority, among equals the one with the least usage ÷ ratio, down to a leaf (MD-16, SLOT-5).
// Usages may only grow, and only those of the leaf served and of all above it. What is below a ratio of 0 does not
// take part. It keeps its memory from race to race; the zero value is ready.
type Race struct {
	node   []Entrant
	family []family
	seat   []seat
}

// Reset makes room for a tree of n nodes, which the caller fills in before Start.
func (r *Race) Reset(n int) []Entrant {
	r.node = resized(r.node, n)
	clear(r.node)
	r.family = resized(r.family, n)
	clear(r.family)
	r.seat = resized(r.seat, n)
	return r.node
}

// Start lines up the leaves that are In and tells whether there are any. O(nodes).
func (r *Race) Start() bool {
	for c := len(r.node) - 1; c > 0; c-- {
		if e := &r.node[c]; e.Ratio > 0 && (e.In || r.family[c].size > 0) {
			e.In = true // with what is below it
			r.family[e.Parent].size++
		} else {
			e.In, r.family[c].size = false, 0
		}
	}
	r.node[0].In = true
	used := int32(0)
	for c := range r.node { // parents come before their children
		e, f := &r.node[c], &r.family[c]
		f.parent, f.first, used, f.size = e.Parent, used, used+f.size, 0
		if e.In = e.In && (c == 0 || r.node[e.Parent].In); e.In && c > 0 {
			above := &r.family[e.Parent]
			r.seat[above.first+above.size] = seat{e.Usage, e.Ratio, e.Priority, e.Tie, int32(c)}
			above.size++
		}
	}
	for c := range r.family {
		h := r.heap(&r.family[c])
		for i := len(h)/2 - 1; i >= 0; i-- {
			sink(h, i)
		}
	}
	return r.family[0].size > 0
}

// Next is the leaf whose turn it is, -1 when none is left. O(depth).
func (r *Race) Next() int32 {
	at := int32(0)
	for f := &r.family[0]; f.size > 0; f = &r.family[at] {
		at = r.seat[f.first].node
	}
	if at == 0 {
		return -1
	}
	return at
}

// Served adds to the usages of the leaf that Next gave and of all above it, and drops the leaf
// unless it stays. The usages of those in the race stand in it alone until they are dropped. O(depth × log children).
func (r *Race) Served(leaf int32, usage int64, stays bool) {
	for n := r.family[leaf].parent; n >= 0; {
		f := &r.family[n]
		h := r.heap(f)
		h[0].usage += usage // a pool's usages add up to no more than a few times the pool
		if !stays {
			r.node[h[0].node].Usage = h[0].usage
			f.size--
			h[0] = h[f.size]
			h = h[:f.size]
		}
		if stays = len(h) > 0; stays {
			sink(h, 0)
		}
		n = f.parent
	}
	r.node[0].Usage += usage
}

func (r *Race) heap(f *family) []seat { return r.seat[f.first : f.first+f.size] }

// before tells whether a sibling is served before another.
func (x *seat) before(y *seat) bool {
	if x.priority != y.priority {
		return x.priority > y.priority
	}
	if x.ratio == y.ratio {
		return x.usage < y.usage || x.usage == y.usage && x.tie < y.tie
	}
	xh, xl := bits.Mul64(uint64(x.usage), uint64(y.ratio))
	yh, yl := bits.Mul64(uint64(y.usage), uint64(x.ratio))
	if xh != yh {
		return xh < yh
	}
	return xl < yl || xl == yl && x.tie < y.tie
}

// sink lets the child at i of a heap down to its place. Only the top of a heap ever changes
// during a race, and only to a later place.
func sink(h []seat, i int) {
	n := h[i]
	from := i
	for {
		c := 2*i + 1
		if c >= len(h) {
			break
		}
		if c+1 < len(h) && h[c+1].before(&h[c]) {
			c++
		}
		if n.before(&h[c]) {
			break
		}
		h[i] = h[c]
		i = c
	}
	if i != from {
		h[i] = n
	}
}

// resized is s with n entries, old ones kept, so that their memory is used again.
func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return append(s[:cap(s)], make([]T, n-cap(s))...)[:n]
	}
	return s[:n]
}
