package slot

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// line is the order of demand within each of one plan's leaves (CYC-10, docs/decisions.md D-9): allocations by arrival,
// the sub-allocations of one so that they keep pace. It knows no share and no host. It counts what is given on copies
// made for it; the caller books it later. It keeps its memory; reset comes first.
type line struct {
	Sub []turn // by SubID, of the leaves that were warmed

	s      *cluster.State
	p      *cluster.Plan
	queues []queue // by Node
}

// turn is what serving needs of a sub-allocation, in one place.
type turn struct {
	Held, Wanted int64
	Bar          int64 // units of Wanted that are not to be served now; they count as held
	seq          int64
	Given        int32 // units given since warm
	Find         int32 // for the caller; 0 after warm
	Passed       bool  // for the caller: it is not to be served though it wants something; false after warm
}

// queue is a leaf's demand: the allocation being served and its sub-allocations that may
// still get something, the least satisfied on top.
type queue struct {
	alloc cluster.AllocID
	subs  []cluster.SubID
}

// reset points the line at a plan.
func (l *line) reset(s *cluster.State, p *cluster.Plan) {
	l.s, l.p = s, p
	l.queues = resized(l.queues, len(p.FirstAlloc))
	for n := range l.queues {
		l.queues[n].subs = l.queues[n].subs[:0]
	}
	l.Sub = resized(l.Sub, len(s.Sub.Wanted))
}

// warm copies what serving needs of a leaf's sub-allocations, and adds up what they are short of. Those with units that
// are too small for the plan (D-52) want no more than they hold.
func (l *line) warm(leaf plan.Node) (short int64) {
	b := &l.s.Sub
	for a := l.p.FirstAlloc[leaf]; a != cluster.NoID; a = l.s.Alloc.Next[a] {
		for sub := l.s.Alloc.First[a]; sub != cluster.NoID; sub = b.Next[sub] {
			wanted := b.Wanted[sub]
			if l.p.TooSmall(l.s, sub) {
				wanted = min(wanted, b.Held[sub])
			}
			l.Sub[sub] = turn{Held: b.Held[sub], Wanted: wanted, seq: b.Seq[sub]}
			short = share.Add(short, max(0, wanted-b.Held[sub]))
		}
	}
	return short
}

// open puts a leaf's queue at its first sub-allocation that may get something, and tells whether
// there is one. The leaf must have been warmed.
func (l *line) open(leaf plan.Node) bool { return l.openFrom(leaf, l.p.FirstAlloc[leaf]) }

// openFrom makes a leaf's queue stand at the first allocation from a on that is short
// of something, and tells whether there is one.
func (l *line) openFrom(leaf plan.Node, a cluster.AllocID) bool {
	q := &l.queues[leaf]
	for ; a != cluster.NoID; a = l.s.Alloc.Next[a] {
		l.fill(q, a)
		if len(q.subs) > 0 {
			return true
		}
	}
	q.subs = q.subs[:0]
	return false
}

// openAt is open for one allocation alone: the queue does not go on to the next.
func (l *line) openAt(a cluster.AllocID) bool {
	q := &l.queues[l.s.NodeOf[l.s.Alloc.Consumer[a]]]
	l.fill(q, a)
	return len(q.subs) > 0
}

// fill makes a queue that of one allocation.
func (l *line) fill(q *queue, a cluster.AllocID) {
	q.alloc, q.subs = a, q.subs[:0]
	for sub := l.s.Alloc.First[a]; sub != cluster.NoID; sub = l.s.Sub.Next[sub] {
		if l.wants(sub) {
			q.subs = append(q.subs, sub)
		}
	}
	for i := len(q.subs)/2 - 1; i >= 0; i-- {
		l.sink(q.subs, i)
	}
}

func (l *line) wants(sub cluster.SubID) bool {
	t := &l.Sub[sub]
	return !t.Passed && t.Held+t.Bar < t.Wanted
}

// next is the sub-allocation of a leaf whose turn it is, NoID when none is left in the
// allocation being served.
func (l *line) next(leaf plan.Node) cluster.SubID {
	if q := &l.queues[leaf]; len(q.subs) > 0 {
		return q.subs[0]
	}
	return cluster.NoID
}

// pass drops the sub-allocation whose turn it is: nothing more of it can be served.
func (l *line) pass(leaf plan.Node) {
	q := &l.queues[leaf]
	n := len(q.subs) - 1
	q.subs[0] = q.subs[n]
	q.subs = q.subs[:n]
	if n > 1 {
		l.sink(q.subs, 0)
	}
}

// served counts a unit for the sub-allocation whose turn it is.
func (l *line) served(leaf plan.Node) {
	q := &l.queues[leaf]
	sub := q.subs[0]
	l.Sub[sub].Held++
	l.Sub[sub].Given++
	l.settle(leaf)
}

// settle puts the sub-allocation whose turn it is where it now belongs.
func (l *line) settle(leaf plan.Node) {
	q := &l.queues[leaf]
	if !l.wants(q.subs[0]) {
		l.pass(leaf)
	} else {
		l.sink(q.subs, 0)
	}
}

// advance goes on to the leaf's next allocation that may get something when the one being served
// has nothing more, and tells whether the leaf has anything.
func (l *line) advance(leaf plan.Node) bool {
	q := &l.queues[leaf]
	return len(q.subs) > 0 || l.openFrom(leaf, l.s.Alloc.Next[q.alloc])
}

// lessSatisfied tells whether sub-allocation a of an allocation is served before b: the
// lesser fraction held ÷ wanted, then the earlier row (CYC-10).
func (l *line) lessSatisfied(a, b cluster.SubID) bool {
	x, y := &l.Sub[a], &l.Sub[b]
	hx, hy := x.Held+x.Bar, y.Held+y.Bar
	if share.Less(hx, x.Wanted, hy, y.Wanted) {
		return true
	}
	return x.seq < y.seq && !share.Less(hy, y.Wanted, hx, x.Wanted)
}

// sink lets the sub-allocation at i of a heap down to its place.
func (l *line) sink(h []cluster.SubID, i int) {
	n := h[i]
	for {
		c := 2*i + 1
		if c >= len(h) {
			break
		}
		if c+1 < len(h) && l.lessSatisfied(h[c+1], h[c]) {
			c++
		}
		if l.lessSatisfied(n, h[c]) {
			break
		}
		h[i] = h[c]
		i = c
	}
	h[i] = n
}
