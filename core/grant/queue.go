package grant

import (
	"math/bits"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/pool"
	"github.com/stintd/stint/core/share"
)

// queue is what the leaves of a pool are short of, in the order in which each is served (CYC-10): allocations by
// arrival, the sub-allocations of one so that they keep pace, the least satisfied fraction first (D-9). All asks stand
// in the order of D-14.
type queue struct {
	leaf  []int32 // numbers of the leaves, from the pool's consumer on
	lines []line  // by leaf
	alloc []int32 // where the asks of an allocation begin; one more at the end
	ask   []ask
	given int32   // the ask that was served last
	heap  []int32 // by place of ask: of the allocation of each leaf that is served, asks that may get something, the next one first
}

// line is where a leaf is in its queue.
type line struct {
	first, end int32 // its allocations, from the first to one past the last
	alloc      int32 // the one that is served
	size       int32 // of its heap
}

// ask is what a sub-allocation is short of.
type ask struct {
	sub         cluster.SubID
	shape       cluster.ShapeID
	kind        int32 // its leaf and size: see kinds
	search      int32 // where it looks for room: see finders
	passed      bool  // it fits nowhere, and will not in this loop
	has, wanted int64 // what is held or promised, and what is wanted
	most        bool  // it has a max_per_host
}

// fill lists what the leaves of a pool are short of beside what they are promised, of those that may draw on it; with
// all, what is promised besides. O(sub-allocations below the pool's consumer).
func (q *queue) fill(e *Env, top plan.Node, all bool) {
	s, t := e.State, e.State.Policy
	q.leaf, q.lines, q.alloc, q.ask = q.leaf[:0], q.lines[:0], q.alloc[:0], q.ask[:0]
	grace := e.Grace(top, top)
	for leaf := top; leaf < t.End[top]; leaf++ {
		if !t.Leaf(leaf) || !e.Plan.Terms.Member[leaf] || t.ReclaimUS[leaf] > grace || e.Barred(top, leaf) {
			continue
		}
		first := int32(len(q.alloc))
		for a := e.Plan.FirstAlloc[leaf]; a != cluster.NoID; a = s.Alloc.Next[a] {
			from := int32(len(q.ask))
			for sub := s.Alloc.First[a]; sub != cluster.NoID; sub = s.Sub.Next[sub] {
				q.add(e, sub, all)
			}
			if int32(len(q.ask)) > from {
				q.alloc = append(q.alloc, from)
			}
		}
		if end := int32(len(q.alloc)); end > first {
			q.leaf, q.lines = append(q.leaf, int32(leaf-top)), append(q.lines, line{first, end, first - 1, 0})
		}
	}
	q.alloc = append(q.alloc, int32(len(q.ask)))
	q.heap = zeros(q.heap, len(q.ask))
	for i := range q.lines {
		q.advance(int32(i))
	}
}

// add adds a sub-allocation that is short of something.
func (q *queue) add(e *Env, sub cluster.SubID, all bool) {
	s := e.State
	one := ask{sub: sub, shape: s.Sub.Shape[sub], has: s.Sub.Held[sub], wanted: s.Sub.Wanted[sub]}
	if !all {
		one.has += e.Promises.Units[sub]
	}
	if one.has < one.wanted && !e.Plan.TooSmall(s, sub) && !e.Undone[sub] {
		one.most = s.Sub.MaxPerHost[sub] != plan.Unlimited
		q.ask = append(q.ask, one)
	}
}

// next is the ask of a leaf whose turn it is, after advance.
func (q *queue) next(l int32) int32 { return q.heap[q.alloc[q.lines[l].alloc]] }

// settle puts the ask whose turn it is where it now belongs, behind those that are less satisfied, or drops it.
func (q *queue) settle(l int32) {
	one := &q.lines[l]
	h := q.heap[q.alloc[one.alloc]:][:one.size]
	if a := &q.ask[h[0]]; a.passed || a.has >= a.wanted {
		h[0] = h[len(h)-1]
		one.size--
		h = h[:one.size]
	}
	q.sink(h, 0)
}

// advance goes on to the leaf's next allocation when the one that is served has nothing more, and tells whether the
// leaf has anything.
func (q *queue) advance(l int32) bool {
	one := &q.lines[l]
	for one.size == 0 && one.alloc+1 < one.end {
		one.alloc++
		from, to := q.alloc[one.alloc], q.alloc[one.alloc+1]
		h := q.heap[from:from]
		for i := from; i < to; i++ {
			if q.ask[i].has < q.ask[i].wanted {
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

// again begins the queue of a leaf anew: what was passed over may fit now.
func (q *queue) again(l int32) {
	one := &q.lines[l]
	for i := q.alloc[one.first]; i < q.alloc[one.end]; i++ {
		q.ask[i].passed = false
	}
	one.alloc, one.size = one.first-1, 0
	q.advance(l)
}

// sink lets the ask at i of a heap down to its place.
func (q *queue) sink(h []int32, i int) {
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
func (q *queue) lessSatisfied(a, b int32) bool {
	x, y := &q.ask[a], &q.ask[b]
	if share.Less(x.has, x.wanted, y.has, y.wanted) {
		return true
	}
	return a < b && !share.Less(y.has, y.wanted, x.has, x.wanted)
}

// kinds are the units of one size of each leaf in a loop, and how much each unit more adds to the leaf's usage.
type kinds struct {
	kind []kind
	size []size  // by ShapeID
	last []int32 // by ShapeID: scratch, the number of its latest kind, from 1
}

// size is a unit size in a pool: 2⁴⁸ ÷ capacity, as a whole and a rest.
type size struct {
	whole, rest, capacity int64
	known                 bool
}

// kind is how far the units of one size of a leaf are: what of rests has not come to a whole, and how many units the
// pool has room for beside those it has.
type kind struct {
	shape       cluster.ShapeID
	carry, left int64
}

// fill gives each ask its kind. Net is what leaves have of the pool.
func (k *kinds) fill(e *Env, q *queue, net *pool.Net, top plan.Node) {
	k.kind, k.size, k.last = k.kind[:0], zeros(k.size, e.State.Shape.Len()), zeros(k.last, e.State.Shape.Len())
	for l, leaf := range q.leaf {
		begin, one := int32(len(k.kind)), &q.lines[l]
		for i := q.alloc[one.first]; i < q.alloc[one.end]; i++ {
			a := &q.ask[i]
			if k.last[a.shape] <= begin {
				k.kind = append(k.kind, k.begin(e, top, top+plan.Node(leaf), a.shape, net))
				k.last[a.shape] = int32(len(k.kind))
			}
			a.kind = k.last[a.shape] - 1
		}
	}
}

// begin is a leaf's units of a size before it is given any.
func (k *kinds) begin(e *Env, top, leaf plan.Node, shape cluster.ShapeID, net *pool.Net) kind {
	z := &k.size[shape]
	if !z.known {
		z.known, z.capacity = true, e.Views.Capacity.Of(e.State, top, shape)
		if z.capacity > 0 {
			z.whole, z.rest = share.One/z.capacity, share.One%z.capacity
		}
	}
	has := net.Of(leaf, shape)
	if z.capacity <= has { // a share is at most the whole
		return kind{shape: shape}
	}
	return kind{shape, mulMod(has, z.rest, z.capacity), z.capacity - has}
}

// mulMod is a × b mod m for 0 ≤ b < m.
func mulMod(a, b, m int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	return int64(bits.Rem64(hi, lo, uint64(m)))
}

// next is what one unit more adds to its leaf's usage: ⌊(n+1) × 2⁴⁸ ÷ capacity⌋ less the same of n, to the last 2⁻⁴⁸,
// and nothing once n is the capacity.
func (k *kinds) next(i int32) int64 {
	one := &k.kind[i]
	if one.left <= 0 {
		return 0
	}
	one.left--
	z := &k.size[one.shape]
	more := z.whole
	if one.carry += z.rest; one.carry >= z.capacity {
		one.carry -= z.capacity
		more++
	}
	return more
}
