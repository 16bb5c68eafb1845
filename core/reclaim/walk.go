package reclaim

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// ranking keeps the consumers of a pool in the order of MD-16.5's walk while stakes change: at each consumer the
// children of the highest share priority first, among equals by stake ÷ ratio, ties by tie. Only consumers with a
// member below them are listed. Backward it is the mirrored walk of MD-17.3. Nodes are numbered from the pool's
// consumer on.
type ranking struct {
	top      plan.Node
	tree     *plan.Tree
	priority []int32 // of the plan's window, by Node
	ratio    []int64 // in the pool
	tie      []int32
	stake    []int64 // as listed
	members  []int32 // leaves below a consumer that take part; of a leaf 1 or 0
	list     [][]int32
}

// reset empties the ranking for a pool. Tie orders siblings of equal priority and stake ÷ ratio, by Node; nil: the
// order of the tree.
func (r *ranking) reset(g *Stage, v *stakes, tie []int32) {
	n := len(v.stake)
	r.top, r.tree, r.priority = v.top, g.tree, g.Window.Priority
	r.ratio, r.tie, r.stake = column.Zeros(r.ratio, n), column.Zeros(r.tie, n), append(r.stake[:0], v.stake...)
	r.members = column.Zeros(r.members, n)
	for len(r.list) < n {
		r.list = append(r.list, nil)
	}
	for i := range n {
		at := v.top + plan.Node(i)
		r.list[i], r.ratio[i], r.tie[i] = r.list[i][:0], g.Ratio(v.top, at), int32(i)
		if tie != nil {
			r.tie[i] = tie[at]
		}
	}
}

// before compares siblings: below 0 when a comes before b. A ratio of 0 comes after all others.
func (r *ranking) before(a, b int32) int {
	if c := cmp.Compare(r.priority[r.top+plan.Node(b)], r.priority[r.top+plan.Node(a)]); c != 0 {
		return c
	}
	x, y := r.ratio[a], r.ratio[b]
	switch {
	case x == 0 || y == 0:
		if c := cmp.Compare(min(y, 1), min(x, 1)); c != 0 {
			return c
		}
	case share.Less(r.stake[a], x, r.stake[b], y):
		return -1
	case share.Less(r.stake[b], y, r.stake[a], x):
		return 1
	}
	return cmp.Compare(r.tie[a], r.tie[b])
}

// up is the number of a node's parent.
func (r *ranking) up(i int32) int32 { return int32(r.tree.Parent[r.top+plan.Node(i)] - r.top) }

// priorityOf is the share priority of a node.
func (r *ranking) priorityOf(i int32) int32 { return r.priority[r.top+plan.Node(i)] }

// fill takes in, at once, the leaves that in accepts. O(consumers × log).
func (r *ranking) fill(in func(leaf plan.Node) bool) {
	for i := int32(len(r.members)) - 1; i > 0; i-- {
		if at := r.top + plan.Node(i); r.tree.Leaf(at) && in(at) {
			r.members[i] = 1
		}
		if r.members[i] > 0 {
			up := r.up(i)
			r.members[up] += r.members[i]
			r.list[up] = append(r.list[up], i)
		}
	}
	for i := range r.members {
		slices.SortFunc(r.list[i], r.before)
	}
}

// has reports whether a leaf takes part.
func (r *ranking) has(leaf plan.Node) bool { return r.members[leaf-r.top] > 0 }

// set lets a leaf take part or not, and lists it and all above it by their present stakes. O(depth × siblings).
func (r *ranking) set(leaf plan.Node, in bool, stake []int64) {
	change := int32(0)
	if in != r.has(leaf) {
		change = 1
		if !in {
			change = -1
		}
	}
	for i := int32(leaf - r.top); i > 0; i = r.up(i) {
		list := &r.list[r.up(i)]
		if r.members[i] > 0 {
			at, _ := slices.BinarySearchFunc(*list, i, r.before)
			*list = slices.Delete(*list, at, at+1)
		}
		r.members[i] += change
		r.stake[i] = stake[i]
		if r.members[i] > 0 {
			at, _ := slices.BinarySearchFunc(*list, i, r.before)
			*list = slices.Insert(*list, at, i)
		}
	}
	r.members[0] += change
}

// first is the leaf whose turn it is, plan.None when none takes part.
func (r *ranking) first() plan.Node {
	if r.members[0] == 0 {
		return plan.None
	}
	i := int32(0)
	for !r.tree.Leaf(r.top + plan.Node(i)) {
		i = r.list[i][0]
	}
	return r.top + plan.Node(i)
}

// backward calls visit for the leaves in the order of the mirrored walk, until it is done.
func (r *ranking) backward(visit func(leaf plan.Node) (done bool)) { r.backwardFrom(0, visit) }

func (r *ranking) backwardFrom(i int32, visit func(leaf plan.Node) bool) (done bool) {
	if i > 0 && r.tree.Leaf(r.top+plan.Node(i)) {
		return visit(r.top + plan.Node(i))
	}
	for _, child := range slices.Backward(r.list[i]) {
		if r.backwardFrom(child, visit) {
			return true
		}
	}
	return false
}

// mirrored compares leaves of the pool as the mirrored walk has them.
func (r *ranking) mirrored(g *Stage, x, y plan.Node) int {
	if x == y {
		return 0
	}
	a, b := g.parting(x, y)
	return r.before(int32(b-r.top), int32(a-r.top))
}
