// Package slot carries out slot plans (SPEC chapter 3; docs/slots.md settles every step and
// tie): ownership, lending and borrowing, share pools, recall and fair reclaim. A Planner is
// one plan's stages; core/cycle calls them in order.
package slot

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/place"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// Planner carries out one slot plan. Every cycle in which something of the plan changed it
// computes its figures anew from the holdings; what it keeps in between is memory, and what
// depends on hosts alone. A new Planner decides the same as an old one.
type Planner struct {
	s      *cluster.State
	p      *cluster.Plan
	policy *plan.Policy
	set    *plan.SlotWindow
	nowUS  int64

	revision int64 // of the policy that the trees are of
	plan     int32
	trees    []*tree // by window; nil: not grown yet
	tree     *tree   // of the window gone by
	desk     place.Desk
	line     line
	race     share.Race
	figure   figures
	owned    owned
	quota    quotas
	hybrid   hybrids
	coming   coming

	whole     bool // exclusive placement: what counts is whole hosts
	exclusive exclusive

	gift     []gift  // what was given and is not yet booked
	dealt    []gift  // the same by sub-allocation
	end      []int32 // by SubID, of those served: where its part of dealt begins
	served   []cluster.SubID
	parcel   []cluster.ParcelID
	booked   []cluster.HoldingID
	rows     []cluster.HoldingID
	promised []int64 // by SubID: Σ units of its sets and what joined them this cycle
	setsOf   map[cluster.SubID][]cluster.SetID
	lendFrom plan.Node // no leaf before it has anything to lend
	lapses   int       // so far in this cycle: room may have come free
	opened   []int     // by Node: lapses when the leaf's queue was opened

	reclaim reclaims
	gang    gangs
	reason  reasons
}

// tree is the plan's consumers in the orders that the rules go by.
type tree struct {
	leaves   []plan.Node   // in rank order
	rankOf   []int32       // by Node: place in rank order
	child    [][]plan.Node // by Node: its members in rank order
	most     []int64       // by Node: share.max, or the hybrid limit; plan.Unlimited when not set
	maxed    bool          // whether any is set
	summed   bool          // whether what is held is to be added up over the tree
	branches []plan.Node   // the deepest first, then in tree order; the root is the last
	barred   []bool        // by Node: a leaf that takes nothing from share pools: its ratio is 0, or it is hybrid
	// by Node: takes from pools above it: what is not barred, a leaf or a branch with such a leaf below
	live   []bool
	zeroed bool // whether a branch has a ratio of 0: only what is above it is not for those below
	hybrid bool // whether any branch is hybrid
	mixed  bool // and others are not
	shares bool // whether all are under the share-ratio policy
}

// Attach points the planner at a state and the plan it is to carry out. Cheap, but for a new revision.
func (m *Planner) Attach(s *cluster.State, p *cluster.Plan, nowUS int64) {
	m.s, m.p, m.policy, m.nowUS = s, p, s.Policy, nowUS
	m.whole = p.Slots.Placement == plan.Exclusive
	if m.revision != s.Revision || m.plan != p.Index {
		m.revision, m.plan = s.Revision, p.Index
		m.trees = make([]*tree, len(p.Slots.Windows))
	}
	m.goBy(p.Window)
}

// goBy makes the settings of a time window those that the planner goes by.
func (m *Planner) goBy(window int) {
	m.set = &m.p.Slots.Windows[window]
	if m.trees[window] == nil {
		m.trees[window] = m.grow()
	}
	m.tree = m.trees[window]
}

// grow makes the orders of consumers in a window.
func (m *Planner) grow() *tree {
	n := m.policy.Len()
	t := &tree{shares: true}
	t.most = make([]int64, n)
	for c := range t.most {
		t.most[c] = plan.Unlimited
	}
	t.child, t.barred, t.live = make([][]plan.Node, n), make([]bool, n), make([]bool, n)
	t.rankOf = cluster.RankOrder(&m.policy.Tree, m.set.Rank)
	for c := plan.Root + 1; int(c) < n; c++ {
		if !m.p.Terms.Member[c] {
			continue
		}
		up := m.policy.Parent[c]
		t.child[up] = append(t.child[up], c)
		hybrid := m.set.Policy[c] == plan.Hybrid
		t.hybrid, t.mixed = t.hybrid || hybrid, t.mixed || !hybrid
		t.shares = t.shares && m.set.Policy[c] == plan.ShareRatio
		t.barred[c] = m.set.Ratio[c] == 0 || hybrid
		t.zeroed = t.zeroed || m.set.Ratio[c] == 0 && !m.policy.Leaf(c)
		if t.most[c] = m.set.Max[c]; hybrid {
			t.most[c] = m.set.Limit[c]
		}
		t.maxed = t.maxed || t.most[c] != plan.Unlimited
		if m.policy.Leaf(c) {
			t.leaves = append(t.leaves, c)
		}
	}
	for c := range plan.Node(n) {
		if c == plan.Root || m.p.Terms.Member[c] && !m.policy.Leaf(c) {
			t.branches = append(t.branches, c)
		}
	}
	slices.SortStableFunc(t.branches, func(a, b plan.Node) int {
		return cmp.Compare(m.policy.Depth[b], m.policy.Depth[a])
	})
	byRank := func(a, b plan.Node) int { return cmp.Compare(t.rankOf[a], t.rankOf[b]) }
	t.mixed = t.mixed && t.hybrid
	t.summed = t.maxed || t.hybrid || len(m.p.Slots.Windows) > 1
	for _, leaf := range t.leaves {
		for c := leaf; c != plan.Root && !t.live[c] && !t.barred[c]; c = m.policy.Parent[c] {
			t.live[c] = true
		}
	}
	slices.SortFunc(t.leaves, byRank)
	for _, children := range t.child {
		slices.SortFunc(children, byRank)
	}
	return t
}

// slots is how many slots a unit of a sub-allocation takes.
func (m *Planner) slots(sub cluster.SubID) int64 { return m.s.Size(sub)[0] }

// Own counts the slots and says who owns how many (SLOT-1, SLOT-13).
// O(parcels that changed, consumers).
func (m *Planner) Own() {
	m.desk.Sync(m.s, m.p)
	m.desk.Begin(&m.desk)
	m.count()
	m.own()
}

// owned is who owns what, by Node, in slots.
type owned struct {
	whole    int64   // S
	of       []int64 // o
	reserved []int64 // never lent
	pool     []int64 // F: what a branch owns beyond its children; of the root, the cluster's pool
	hybrid   int64   // H: of the hybrid branches together
	below    []int64 // Σ pool of the consumer and all below it
	pools    int64   // T: below of the root
}

// own divides the slots by rank, level by level, reserved before the rest.
func (m *Planner) own() {
	o, n := &m.owned, m.policy.Len()
	o.of, o.reserved, o.pool = column.Zeros(o.of, n), column.Zeros(o.reserved, n), column.Zeros(o.pool, n)
	for c := plan.Node(n - 1); c > plan.Root; c-- {
		if !m.p.Terms.Member[c] {
			continue
		}
		if m.policy.Leaf(c) {
			if m.set.Policy[c] != plan.Hybrid {
				o.reserved[c] = m.set.Owns[c] - min(m.set.LendLimit[c], m.set.Owns[c])
			}
		}
		up := m.policy.Parent[c]
		o.reserved[up] = share.Add(o.reserved[up], o.reserved[c])
	}
	o.of[plan.Root], o.hybrid = o.whole, 0
	for c := range plan.Node(n) {
		if c == plan.Root || m.p.Terms.Member[c] && !m.policy.Leaf(c) && m.set.Policy[c] != plan.Hybrid {
			o.pool[c] = m.deal(m.tree.child[c], o.of[c])
		}
	}
	if m.tree.hybrid {
		o.hybrid, o.pool[plan.Root] = o.pool[plan.Root], 0
	}
	o.below = append(o.below[:0], o.pool...)
	for c := plan.Node(n - 1); c > plan.Root; c-- {
		o.below[m.policy.Parent[c]] += o.below[c]
	}
	o.pools = o.below[plan.Root]
}

// deal gives siblings, in rank order, what they own of so much, reserved before the rest, and
// tells what is left.
func (m *Planner) deal(siblings []plan.Node, left int64) int64 {
	o := &m.owned
	owns := func(c plan.Node) int64 {
		if m.set.Policy[c] == plan.Hybrid {
			return 0 // these share what is left
		}
		return m.set.Owns[c]
	}
	for _, c := range siblings {
		o.reserved[c] = min(o.reserved[c], owns(c))
		o.of[c] = min(o.reserved[c], left)
		left -= o.of[c]
	}
	for _, c := range siblings {
		more := min(owns(c)-o.reserved[c], left)
		o.of[c] += more
		left -= more
	}
	for _, c := range siblings {
		o.reserved[c] = min(o.reserved[c], o.of[c])
	}
	return left
}

// resized is s with n entries, old ones kept, so that their memory is used again.
func resized[T any](s []T, n int) []T {
	if cap(s) < n {
		return append(s[:cap(s)], make([]T, n-cap(s))...)[:n]
	}
	return s[:n]
}
