package md

import (
	"math"

	"github.com/stintd/stint/core/plan"
)

// tops numbers the consumers that rows of what is held tell apart: those so deep that they are not too many to be told by a byte, and leaves
// above them. The lists begin with the root, for those to whom no number is left where the first level alone has too many.
type tops struct {
	of      []uint8     // by Node: of the one that it is or is below
	list    []plan.Node // in tree order
	firstOf []uint8     // by number: of its consumer of the first level
	firsts  []plan.Node // those of the first level, in tree order
}

// layTops numbers them.
func (m *Planner) layTops() {
	t, deepest := &m.fairness.onHand.tops, m.topDepth()
	t.list, t.firstOf, t.firsts = append(t.list[:0], plan.Root), append(t.firstOf[:0], 0), append(t.firsts[:0], plan.Root)
	t.of = resized(t.of, m.policy.Len())
	for n := plan.Root + 1; int(n) < m.policy.Len(); n++ {
		depth := m.policy.Depth[n]
		if depth == 1 && len(t.firsts) < elsewhere {
			t.firsts = append(t.firsts, n)
		}
		switch {
		case depth > deepest:
			t.of[n] = t.of[m.policy.Parent[n]]
		case !m.isTop(n, deepest) || len(t.list) == elsewhere:
			t.of[n] = 0
		default:
			t.of[n] = uint8(len(t.list))
			t.list, t.firstOf = append(t.list, n), append(t.firstOf, uint8(len(t.firsts)-1))
		}
	}
	m.fairness.claim.first = resized(m.fairness.claim.first, len(t.firsts))
}

// isTop tells whether a consumer is as deep as those that are told apart, or a leaf above them.
func (m *Planner) isTop(n plan.Node, deepest int32) bool {
	return m.policy.Depth[n] == deepest || m.policy.Depth[n] < deepest && m.policy.Leaf(n)
}

// topDepth is how deep they are: as deep as there are numbers for all.
func (m *Planner) topDepth() int32 {
	for deepest := int32(1); ; deepest++ {
		n, below := 0, false
		for node := plan.Root + 1; int(node) < m.policy.Len(); node++ {
			if m.isTop(node, deepest+1) {
				n++
			}
			below = below || m.policy.Depth[node] > deepest
		}
		if !below || n >= elsewhere {
			return deepest
		}
	}
}

// layTopMargins works out what units below each of them, and below those of the first level, may give, the first time in a round.
func (m *Planner) layTopMargins(o *pool) {
	t, c := &m.fairness.onHand.tops, &m.fairness.claim
	if c.first[0].round == c.round {
		return
	}
	for i, n := range t.firsts {
		if c.first[i] = (margin{c.round, math.MaxInt64}); n != plan.Root && c.onWay[n] != c.round {
			c.first[i] = *m.marginAt(o, n)
		}
	}
	c.limit[elsewhere] = math.MaxInt64
	for i, n := range t.list {
		c.limit[i] = math.MaxInt64
		if c.onWay[n] != c.round { // the root is
			if beside := m.marginAt(o, m.nextToWay(n)); !beside.bears(math.MaxInt64) {
				c.limit[i] = beside.most
			}
		}
	}
}
