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
	first, size  int32 // its children in the race are kept[first : first+size], the next to be served on top
}

// Race serves the leaves of a tree in turns: from the root always the child of the highest
// priority, among equals the one with the least usage ÷ ratio, down to a leaf (MD-16, SLOT-5).
// Usages may only grow, and only those of the leaf served and of all above it. What is below a ratio of 0 does not
// take part. It keeps its memory from race to race; the zero value is ready.
type Race struct {
	node []Entrant
	kept []int32
}

// Reset makes room for a tree of n nodes, which the caller fills in before Start.
func (r *Race) Reset(n int) []Entrant {
	r.node = resized(r.node, n)
	clear(r.node)
	r.kept = resized(r.kept, n)
	return r.node
}

// Start lines up the leaves that are In and tells whether there are any. O(nodes).
func (r *Race) Start() bool {
	for c := len(r.node) - 1; c > 0; c-- {
		if e := &r.node[c]; e.Ratio > 0 && (e.In || e.size > 0) {
			e.In = true // with what is below it
			r.node[e.Parent].size++
		} else {
			e.In, e.size = false, 0
		}
	}
	r.node[0].In = true
	used := int32(0)
	for c := range r.node { // parents come before their children
		e := &r.node[c]
		e.first, used, e.size = used, used+e.size, 0
		if e.In = e.In && (c == 0 || r.node[e.Parent].In); e.In && c > 0 {
			above := &r.node[e.Parent]
			r.kept[above.first+above.size] = int32(c)
			above.size++
		}
	}
	for c := range r.node {
		h := r.heap(&r.node[c])
		for i := len(h)/2 - 1; i >= 0; i-- {
			r.sink(h, i)
		}
	}
	return r.node[0].size > 0
}

// Next is the leaf whose turn it is, -1 when none is left. O(depth).
func (r *Race) Next() int32 {
	at := int32(0)
	for e := &r.node[0]; e.size > 0; e = &r.node[at] {
		at = r.kept[e.first]
	}
	if at == 0 {
		return -1
	}
	return at
}

// Served adds to the usages of the leaf that Next gave and of all above it, and drops the leaf
// unless it stays. O(depth × log children).
func (r *Race) Served(leaf int32, usage int64, stays bool) {
	r.node[leaf].Usage += usage
	for n := r.node[leaf].Parent; n >= 0; {
		e := &r.node[n]
		e.Usage += usage // a pool's usages add up to no more than a few times the pool
		if !stays {
			e.size--
			r.kept[e.first] = r.kept[e.first+e.size]
		}
		if stays = e.size > 0; stays {
			r.sink(r.heap(e), 0)
		}
		n = e.Parent
	}
}

func (r *Race) heap(e *Entrant) []int32 { return r.kept[e.first : e.first+e.size] }

// before tells whether sibling a is served before sibling b.
func (r *Race) before(a, b int32) bool {
	x, y := &r.node[a], &r.node[b]
	if x.Priority != y.Priority {
		return x.Priority > y.Priority
	}
	if x.Ratio == y.Ratio {
		return x.Usage < y.Usage || x.Usage == y.Usage && x.Tie < y.Tie
	}
	xh, xl := bits.Mul64(uint64(x.Usage), uint64(y.Ratio))
	yh, yl := bits.Mul64(uint64(y.Usage), uint64(x.Ratio))
	if xh != yh {
		return xh < yh
	}
	return xl < yl || xl == yl && x.Tie < y.Tie
}

// sink lets the child at i of a heap down to its place. Only the top of a heap ever changes
// during a race, and only to a later place.
func (r *Race) sink(h []int32, i int) {
	n := h[i]
	for {
		c := 2*i + 1
		if c >= len(h) {
			break
		}
		if c+1 < len(h) && r.before(h[c+1], h[c]) {
			c++
		}
		if r.before(n, h[c]) {
			break
		}
		h[i] = h[c]
		i = c
	}
	h[i] = n
}

// resized is s with n entries, old ones kept, so that their memory is used again.
func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return append(s[:cap(s)], make([]T, n-cap(s))...)[:n]
	}
	return s[:n]
}
