package md

import (
	"math/bits"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// before tells whether sibling a is served before sibling b: the higher share
// priority, then the less usage ÷ ratio, then the order of the plan (MD-16).
func (g *granter) before(a, b plan.Node) bool {
	x, y := &g.twig[a], &g.twig[b]
	if x.priority != y.priority {
		return x.priority > y.priority
	}
	if x.ratio == y.ratio {
		return x.usage < y.usage || x.usage == y.usage && a < b
	}
	xh, xl := bits.Mul64(uint64(x.usage), uint64(y.ratio))
	yh, yl := bits.Mul64(uint64(y.usage), uint64(x.ratio))
	if xh != yh {
		return xh < yh
	}
	return xl < yl || xl == yl && a < b
}

// sink lets the child at i of a heap down to its place. Only the top of a heap
// ever changes while granting, and only to a later place.
func (g *granter) sink(h []plan.Node, i int) {
	n := h[i]
	for {
		c := 2*i + 1
		if c >= len(h) {
			break
		}
		if c+1 < len(h) && g.before(h[c+1], h[c]) {
			c++
		}
		if g.before(n, h[c]) {
			break
		}
		h[i] = h[c]
		i = c
	}
	h[i] = n
}

// settle brings the heaps on a leaf's path to order after it was served. The leaf
// and all above it stand on top of their heaps; a leaf that has had its fill goes,
// and so does every branch that this leaves empty.
func (g *granter) settle(leaf plan.Node, stays bool) {
	for n := g.twig[leaf].parent; n != plan.None; {
		t := &g.twig[n]
		if !stays {
			t.size--
			g.kept[t.first] = g.kept[t.first+t.size]
		}
		if stays = t.size > 0; stays {
			g.sink(g.heap(t), 0)
		}
		n = t.parent
	}
}

// lessSatisfied tells whether sub-allocation a of an allocation is served before b: the
// lesser fraction held ÷ wanted, then the earlier row (CYC-10).
func (g *granter) lessSatisfied(a, b cluster.SubID) bool {
	x, y := &g.hot[a], &g.hot[b]
	if share.Less(x.held, x.wanted, y.held, y.wanted) {
		return true
	}
	return x.seq < y.seq && !share.Less(y.held, y.wanted, x.held, x.wanted)
}

// sinkSub is sink for the sub-allocations of a queue.
func (g *granter) sinkSub(h []cluster.SubID, i int) {
	n := h[i]
	for {
		c := 2*i + 1
		if c >= len(h) {
			break
		}
		if c+1 < len(h) && g.lessSatisfied(h[c+1], h[c]) {
			c++
		}
		if g.lessSatisfied(n, h[c]) {
			break
		}
		h[i] = h[c]
		i = c
	}
	h[i] = n
}

// popSub takes the top off a queue.
func (g *granter) popSub(q *queue) {
	n := len(q.subs) - 1
	q.subs[0] = q.subs[n]
	q.subs = q.subs[:n]
	if n > 1 {
		g.sinkSub(q.subs, 0)
	}
}

// mulMod is a × b mod m for 0 ≤ b < m.
func mulMod(a, b, m int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	return int64(bits.Rem64(hi, lo, uint64(m)))
}

// resized is s with n entries, old ones kept, so that their memory is used again.
func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return append(s[:cap(s)], make([]T, n-cap(s))...)[:n]
	}
	return s[:n]
}
