package grant

import (
	"math/bits"

	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/pool"
)

// race gives the leaves of a pool their turns (MD-16): from the pool's consumer always to the child of the highest
// share priority, among equals to the one with the least usage ÷ ratio, ties in plan order. Each consumer has a winner
// tree over its children: the children in plan order below, above any two of them the number of the one that is served
// first, at the top whoever is next. A turn changes one child of each consumer on the way, so that it costs a
// comparison for each doubling of its siblings.
//
// Nodes are numbered from the pool's consumer on, 0, in the order of the policy: parents before their children.
type race struct {
	seat   []seat  // by node
	parent []int32 // by node
	place  []int32 // by node: among its siblings that take part
	first  []int32 // by node: where its tree begins
	width  []int32 // by node: how many children its tree has room for, a power of two; 0: it is a leaf
	alive  []int32 // by node: children that take part still
	tree   []int32 // nodes, nobody: none
}

// seat is what siblings are compared by.
type seat struct {
	usage, ratio int64
	priority     int32
}

// nobody is the number of no node.
const nobody = -1

// begin lines up the leaves of a pool that take part, given by their numbers, and tells whether there are any. Those
// with a ratio of 0 on their way do not. Usage is by node.
func (r *race) begin(e *pool.Env, top plan.Node, leaves []int32, usage []int64) bool {
	t, w := &e.State.Policy.Tree, e.Window
	n := int(t.End[top] - top)
	r.seat, r.parent, r.place = column.Zeros(r.seat, n), column.Zeros(r.parent, n), column.Zeros(r.place, n)
	r.first, r.width = column.Zeros(r.first, n), column.Zeros(r.width, n)
	r.alive, r.tree = column.Zeros(r.alive, n), r.tree[:0]
	in := make([]bool, n)
	for _, leaf := range leaves {
		in[leaf] = true
	}
	for i := n - 1; i > 0; i-- {
		at := top + plan.Node(i)
		r.parent[i] = int32(t.Parent[at] - top)
		r.seat[i] = seat{usage[i], e.Ratio(top, at), w.Priority[at]}
		if in[i] = in[i] && w.Ratio[at] > 0; in[i] {
			in[r.parent[i]] = true
			r.alive[r.parent[i]]++
		}
	}
	r.seat[0].usage, r.parent[0] = usage[0], nobody
	for i := range n {
		if r.alive[i] > 0 {
			r.width[i] = 1 << bits.Len32(uint32(r.alive[i]-1))
			r.first[i] = int32(len(r.tree))
			for range 2 * r.width[i] {
				r.tree = append(r.tree, nobody)
			}
			r.alive[i] = 0
		}
		if up := r.parent[i]; i > 0 && in[i] {
			r.place[i] = r.alive[up]
			r.tree[r.first[up]+r.width[up]+r.place[i]] = int32(i)
			r.alive[up]++
		}
	}
	for i := range n {
		tree := r.treeOf(int32(i))
		for at := int(r.width[i]) - 1; at > 0; at-- {
			tree[at] = r.better(tree[2*at], tree[2*at+1])
		}
	}
	return r.alive[0] > 0
}

// treeOf is the tree of a node: the winner at 1, the winner of those below at 2i and 2i+1 at i, the children from the
// width on.
func (r *race) treeOf(node int32) []int32 {
	from := r.first[node]
	return r.tree[from : from+2*r.width[node]]
}

// better is which of two siblings is served first; a comes before b in the plan.
func (r *race) better(a, b int32) int32 {
	switch {
	case b == nobody:
		return a
	case a == nobody || r.seat[b].before(&r.seat[a]):
		return b
	}
	return a
}

// before tells whether a sibling is served before one that comes before it in the plan.
func (x *seat) before(y *seat) bool {
	if x.priority != y.priority {
		return x.priority > y.priority
	}
	if x.ratio == y.ratio {
		return x.usage < y.usage
	}
	xh, xl := bits.Mul64(uint64(x.usage), uint64(y.ratio))
	yh, yl := bits.Mul64(uint64(y.usage), uint64(x.ratio))
	return xh < yh || xh == yh && xl < yl
}

// next is the leaf whose turn it is, nobody when none takes part any more. O(depth).
func (r *race) next() int32 {
	if r.alive[0] == 0 {
		return nobody
	}
	node := int32(0)
	for r.width[node] > 0 {
		node = r.tree[r.first[node]+1]
	}
	return node
}

// served adds to the usage of a leaf and of all above it, and drops the leaf unless it stays. O(depth × log children).
func (r *race) served(leaf int32, usage int64, stays bool) {
	for node := leaf; node != 0; node = r.parent[node] {
		r.seat[node].usage += usage
		up := r.parent[node]
		tree := r.treeOf(up)
		at := r.width[up] + r.place[node]
		if !stays {
			tree[at] = nobody
			r.alive[up]--
			stays = r.alive[up] > 0
		}
		for at >>= 1; at > 0; at >>= 1 {
			tree[at] = r.better(tree[2*at], tree[2*at+1])
		}
	}
}
