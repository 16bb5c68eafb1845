package reclaim

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// queue is the order in which units that leaves are short of and not promised are served (CYC-10): allocation after
// allocation, of one the ask that has the least of what it wants (docs/decisions.md, D-9), promised units counted in.
type queue struct {
	line  []line
	alloc []askHeap
	ask   []ask
}

// line is what one leaf asks for: its allocations, and the first of them that asks for anything yet.
type line struct {
	leaf       plan.Node
	first, end int32
}

// askHeap is the asks of one allocation, the next to be served on top.
type askHeap struct{ first, size int32 }

type ask struct {
	sub         cluster.SubID
	row         int32 // ties are served in the order of rows
	has, wanted int64
}

func (q *queue) reset() { q.line, q.alloc, q.ask = q.line[:0], q.alloc[:0], q.ask[:0] }

// add adds a leaf, if it asks for anything, and tells whether it does.
func (q *queue) add(g *Stage, leaf plan.Node) bool {
	one := line{leaf, int32(len(q.alloc)), 0}
	last := cluster.AllocID(cluster.NoID)
	g.EachSub(leaf, func(sub cluster.SubID) {
		left := g.unpromised(sub)
		if left <= 0 || g.Cycle.Undone[sub] || g.p.TooSmall(g.s, sub) {
			return
		}
		if a := g.s.Sub.Alloc[sub]; a != last {
			last = a
			q.alloc = append(q.alloc, askHeap{int32(len(q.ask)), 0})
		}
		wanted := g.s.Sub.Wanted[sub]
		q.ask = append(q.ask, ask{sub, int32(len(q.ask)), wanted - left, wanted})
		q.alloc[len(q.alloc)-1].size++
	})
	one.end = int32(len(q.alloc))
	for i := one.first; i < one.end; i++ {
		h := q.heap(i)
		for at := len(h)/2 - 1; at >= 0; at-- {
			sink(h, at)
		}
	}
	if one.first == one.end {
		return false
	}
	q.line = append(q.line, one)
	return true
}

func (q *queue) heap(alloc int32) []ask {
	a := q.alloc[alloc]
	return q.ask[a.first : a.first+a.size]
}

// next is the sub-allocation of a line whose turn it is, ok false when it asks for nothing any more.
func (q *queue) next(l int) (sub cluster.SubID, ok bool) {
	one := &q.line[l]
	for ; one.first < one.end; one.first++ {
		if h := q.heap(one.first); len(h) > 0 {
			return h[0].sub, true
		}
	}
	return cluster.NoID, false
}

// settle takes in that the one whose turn it is was promised a unit, or was not and is passed over from now on.
func (q *queue) settle(l int, served bool) {
	a := q.line[l].first
	h := q.heap(a)
	if served {
		h[0].has++
	}
	if n := len(h) - 1; !served || h[0].has >= h[0].wanted {
		h[0], h = h[n], h[:n]
		q.alloc[a].size--
	}
	sink(h, 0)
}

// before tells whether an ask is served before another.
func (x *ask) before(y *ask) bool {
	if share.Less(x.has, x.wanted, y.has, y.wanted) {
		return true
	}
	return x.row < y.row && !share.Less(y.has, y.wanted, x.has, x.wanted)
}

// sink lets the ask at a place of a heap down to where it belongs.
func sink(h []ask, at int) {
	for {
		child := 2*at + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h[child+1].before(&h[child]) {
			child++
		}
		if !h[child].before(&h[at]) {
			return
		}
		h[at], h[child] = h[child], h[at]
		at = child
	}
}
