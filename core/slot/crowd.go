package slot

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// crowd is the leaves that hold from share pools, as victims: a heap, by default the one furthest above its
// quota on top, of equals the last in rank. What a leaf holds is listed when it is first asked for.
type crowd struct {
	*Planner
	leaf []plan.Node
	key  func(leaf plan.Node) int64        // what the order goes by, the most first
	rows map[plan.Node][]cluster.HoldingID // newest first; those used up are skipped
}

// gather makes the crowd of the leaves of a kind. O(leaves).
func (m *Planner) gather(in func(leaf plan.Node) bool) *crowd {
	c := &crowd{Planner: m, key: m.excess, rows: map[plan.Node][]cluster.HoldingID{}}
	for _, leaf := range m.tree.leaves {
		if in(leaf) {
			c.leaf = append(c.leaf, leaf)
		}
	}
	c.heap()
	return c
}

func (c *crowd) heap() {
	for i := len(c.leaf)/2 - 1; i >= 0; i-- {
		c.sink(i)
	}
}

// before tells whether leaf a gives before leaf b.
func (c *crowd) before(a, b plan.Node) bool {
	x, y := c.key(a), c.key(b)
	return x > y || x == y && c.tree.rankOf[a] > c.tree.rankOf[b]
}

// sink lets the leaf at i of the heap down to its place, after it gave something.
func (c *crowd) sink(i int) {
	n := c.leaf[i]
	for {
		k := 2*i + 1
		if k >= len(c.leaf) {
			break
		}
		if k+1 < len(c.leaf) && c.before(c.leaf[k+1], c.leaf[k]) {
			k++
		}
		if c.before(n, c.leaf[k]) {
			break
		}
		c.leaf[i] = c.leaf[k]
		i = k
	}
	c.leaf[i] = n
}

// settle brings the heap to order after victims were taken, at best of the top alone.
func (c *crowd) settle() {
	if !c.reclaim.lone {
		c.heap()
	} else if len(c.leaf) > 0 {
		c.sink(0)
	}
}

// pop takes the top off the heap.
func (c *crowd) pop() (leaf plan.Node) {
	leaf = c.leaf[0]
	n := len(c.leaf) - 1
	c.leaf[0] = c.leaf[n]
	c.leaf = c.leaf[:n]
	if n > 1 {
		c.sink(0)
	}
	return leaf
}

// push puts leaves back.
func (c *crowd) push(leaves []plan.Node) {
	if len(leaves) > 0 {
		c.leaf = append(c.leaf, leaves...)
		c.heap()
	}
}

// of lists what a leaf holds from the pools and is not under reclaim, newest first.
func (c *crowd) of(leaf plan.Node) []cluster.HoldingID {
	rows, ok := c.rows[leaf]
	if !ok {
		rows = c.stays(leaf, kindShare)
	}
	for len(rows) > 0 && !c.gives(rows[0], leaf) {
		rows = rows[1:]
	}
	c.rows[leaf] = rows
	return rows
}

// gives tells whether a holding is still a leaf's, from the pools, and not under reclaim.
func (c *crowd) gives(q cluster.HoldingID, leaf plan.Node) bool {
	h := &c.s.Holding
	return h.Sub[q] != cluster.NoID && h.Units[q] > 0 && h.Set[q] == cluster.NoID &&
		h.Origin[q] == decision.OriginSharePool && c.s.Node(h.Sub[q]) == leaf
}
