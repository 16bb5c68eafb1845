package pool

import (
	"math"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// Queue is what leaves are short of, a line for each leaf, in the order in which it is served (CYC-10): allocations by
// arrival, the sub-allocations of one so that they keep pace, the least satisfied fraction first (D-9). All asks stand
// in the order of D-14.
type Queue struct {
	Leaf  []plan.Node // by line
	Ask   []Ask
	lines []line
	alloc []int32 // where the asks of an allocation begin
	heap  []int32 // by place of ask: of the allocation that a line serves, asks that may get anything, the next first
}

// line is where a leaf is in its queue.
type line struct {
	first, end int32 // its allocations, from the first to one past the last
	alloc      int32 // the one that is served
	size       int32 // of its heap
}

// Ask is what a sub-allocation is short of.
type Ask struct {
	Sub          cluster.SubID
	Shape        cluster.ShapeID
	Passed       bool  // it gets nothing more, of a line that does not begin again
	Gone         bool  // it gets nothing more
	Has, Wanted  int64 // what is held or promised, and what is wanted
	Least        int64 // so many units are given at once: of a gang that waits all of its min_units, else 1
	Kind, Search int32 // for who serves it
}

// Fit is how many units of a size an amount of room takes.
func Fit(free, size []int64) int64 {
	units := int64(math.MaxInt64)
	for d, u := range size {
		if u > 0 {
			units = min(units, max(0, free[d])/u)
		}
	}
	return units
}

// Reset empties the queue.
func (q *Queue) Reset() {
	q.Leaf, q.Ask, q.lines, q.alloc, q.heap = q.Leaf[:0], q.Ask[:0], q.lines[:0], q.alloc[:0], q.heap[:0]
}

// Add adds a line for a leaf behind the others, and tells whether the leaf is short of anything: of what its
// sub-allocations want beside what they have.
func (q *Queue) Add(e *Env, leaf plan.Node, has func(sub cluster.SubID) int64) bool {
	s, first := e.State, int32(len(q.alloc))
	for a := e.Plan.FirstAlloc[leaf]; a != cluster.NoID; a = s.Alloc.Next[a] {
		from := int32(len(q.Ask))
		for sub := s.Alloc.First[a]; sub != cluster.NoID; sub = s.Sub.Next[sub] {
			one := Ask{Sub: sub, Shape: s.Sub.Shape[sub], Has: has(sub), Wanted: s.Sub.Wanted[sub]}
			if one.Has < one.Wanted && !e.Plan.TooSmall(s, sub) {
				if one.Least = 1; s.Forming(sub) {
					one.Least = s.Sub.MinUnits[sub]
				}
				q.Ask, q.heap = append(q.Ask, one), append(q.heap, 0)
			}
		}
		if int32(len(q.Ask)) > from {
			q.alloc = append(q.alloc, from)
		}
	}
	end := int32(len(q.alloc))
	if end == first {
		return false
	}
	q.Leaf, q.lines = append(q.Leaf, leaf), append(q.lines, line{first, end, first - 1, 0})
	return q.Advance(int32(len(q.lines) - 1))
}

// asks is where the asks of some allocations begin and end.
func (q *Queue) asks(first, end int32) (from, to int32) {
	if from, to = q.alloc[first], int32(len(q.Ask)); int(end) < len(q.alloc) {
		to = q.alloc[end]
	}
	return from, to
}

// Asks is all asks of a line.
func (q *Queue) Asks(l int32) []Ask {
	from, to := q.Span(l)
	return q.Ask[from:to]
}

// Span is where the asks of a line begin and end in Ask.
func (q *Queue) Span(l int32) (from, to int32) { return q.asks(q.lines[l].first, q.lines[l].end) }

// Alone tells whether the ask whose turn it is has no other of its allocation beside it.
func (q *Queue) Alone(l int32) bool { return q.lines[l].size == 1 }

// Next is the ask of a line whose turn it is, after Advance.
func (q *Queue) Next(l int32) int32 { return q.heap[q.alloc[q.lines[l].alloc]] }

// Settle puts the ask whose turn it is where it now belongs, behind those that are less satisfied, or drops it.
func (q *Queue) Settle(l int32) {
	one := &q.lines[l]
	h := q.heap[q.alloc[one.alloc]:][:one.size]
	if a := &q.Ask[h[0]]; a.Passed || a.Has >= a.Wanted {
		h[0] = h[len(h)-1]
		one.size--
		h = h[:one.size]
	}
	q.sink(h, 0)
}

// Advance goes on to the line's next allocation when the one that is served has nothing more, and tells whether the
// line has anything.
func (q *Queue) Advance(l int32) bool {
	one := &q.lines[l]
	for one.size == 0 && one.alloc+1 < one.end {
		one.alloc++
		from, to := q.asks(one.alloc, one.alloc+1)
		h := q.heap[from:from]
		for i := from; i < to; i++ {
			if q.Ask[i].Has < q.Ask[i].Wanted && !q.Ask[i].Gone {
				h = append(h, i)
			}
		}
		one.size = int32(len(h))
		for i := len(h)/2 - 1; i >= 0; i-- {
			q.sink(h, i)
		}
	}
	return one.size > 0
}

// Again begins a line anew: what was passed over may get something now.
func (q *Queue) Again(l int32) {
	asks, one := q.Asks(l), &q.lines[l]
	for i := range asks {
		asks[i].Passed = false
	}
	one.alloc, one.size = one.first-1, 0
	q.Advance(l)
}

// sink lets the ask at i of a heap down to its place.
func (q *Queue) sink(h []int32, i int) {
	for {
		c := 2*i + 1
		if c >= len(h) {
			return
		}
		if c+1 < len(h) && q.lessSatisfied(h[c+1], h[c]) {
			c++
		}
		if !q.lessSatisfied(h[c], h[i]) {
			return
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
}

// lessSatisfied tells whether an ask is served before another of its allocation.
func (q *Queue) lessSatisfied(a, b int32) bool {
	x, y := &q.Ask[a], &q.Ask[b]
	if share.Less(x.Has, x.Wanted, y.Has, y.Wanted) {
		return true
	}
	return a < b && !share.Less(y.Has, y.Wanted, x.Has, x.Wanted)
}
