package slot

import (
	"math/big"
	"slices"

	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// hybrids are the figures of hybrid branches, by Node, in slots (SLOT-20 … SLOT-28).
type hybrids struct {
	configured int64   // C: what the owns are parts of
	owned      []int64 // effective owned, rounded down
	cut        []bool  // whether that cut something off
	reserve    []int64 // effective reserve
	use        []int64 // u: what a consumer can use
	quota      []int64
	above      []int64 // held above the quota; of a branch the sum of its leaves
	gives      []int64 // what of above is to be taken
	all        bool    // whether others than those that are to give do so too
	wanting    wanting // see Planner.wanting
	free       []int64 // what of its reserve, or of those below it, is neither held nor promised
	below      []int64 // Σ free of the children
	laid       bool    // whether these two are there

	siblings []plan.Node
	owns     []int64
	most     []int64
	part     []int64
	order    []int32
	divider  share.Divider
}

// isHybrid tells whether a consumer of the plan is under the hybrid policy.
func (m *Planner) isHybrid(n plan.Node) bool {
	return m.p.Terms.Member[n] && m.set.Policy[n] == plan.Hybrid && n != plan.Root
}

// hybridQuotas computes what hybrid consumers own, keep in reserve, can use and deserve.
// O(consumers × log children), more when reserves bind while slots are short.
func (m *Planner) hybridQuotas() {
	h, n := &m.hybrid, m.policy.Len()
	for _, list := range []*[]int64{&h.use, &h.quota, &h.above, &h.gives} {
		*list = column.Zeros(*list, n)
	}
	m.ownHybrid()
	if !m.tree.hybrid {
		return
	}
	below := make([]int64, n)
	for c := plan.Node(n - 1); c > plan.Root; c-- {
		if !m.isHybrid(c) {
			continue
		}
		want := below[c]
		if m.policy.Leaf(c) {
			want = m.quota.demand[c]
		}
		h.use[c] = max(want, h.reserve[c])
		if limit := m.set.Limit[c]; limit != plan.Unlimited {
			h.use[c] = min(h.use[c], limit)
		}
		up := m.policy.Parent[c]
		below[up] = share.Add(below[up], h.use[c])
	}
	m.layFree()
	h.quota[plan.Root] = m.owned.hybrid
	for c := range plan.Node(n) {
		if c == plan.Root || m.isHybrid(c) && !m.policy.Leaf(c) {
			m.divideHybrid(c)
		}
	}
}

// ownHybrid scales what hybrid consumers own to the slots there are (SLOT-21, SLOT-30).
func (m *Planner) ownHybrid() {
	h := &m.hybrid
	h.owned = column.Zeros(h.owned, m.policy.Len())
	h.reserve, h.cut = column.Zeros(h.reserve, m.policy.Len()), resized(h.cut, m.policy.Len())
	h.configured = 0
	for _, c := range m.tree.child[plan.Root] {
		if m.isHybrid(c) || !m.tree.mixed {
			h.configured = share.Add(h.configured, m.set.Owns[c])
		}
	}
	if v := m.p.Slots.ConfiguredSlots; v != plan.Unlimited && !m.tree.mixed {
		h.configured = v
	}
	for c := plan.Node(len(h.owned) - 1); c > plan.Root; c-- {
		if !m.isHybrid(c) {
			continue
		}
		below := h.reserve[c] // what its children reserve is no one else's at its level either
		h.owned[c], h.cut[c] = share.Scale(m.set.Owns[c], m.owned.hybrid, h.configured)
		h.reserve[c] = min(m.set.Reserves[c], h.owned[c])
		if limit := m.set.Limit[c]; limit != plan.Unlimited {
			h.reserve[c] = min(h.reserve[c], limit)
		}
		if h.reserve[c] = max(h.reserve[c], below); m.policy.Parent[c] != plan.Root {
			h.reserve[m.policy.Parent[c]] += h.reserve[c]
		}
	}
}

// divideHybrid hands a consumer's quota to its hybrid children (SLOT-23 … SLOT-25).
func (m *Planner) divideHybrid(n plan.Node) {
	h := &m.hybrid
	h.siblings, h.owns = h.siblings[:0], h.owns[:0]
	for _, c := range m.tree.child[n] {
		if m.isHybrid(c) {
			h.siblings = append(h.siblings, c)
			h.owns = append(h.owns, m.set.Owns[c])
		}
	}
	k := len(h.siblings)
	h.most, h.part, h.order = column.Zeros(h.most, k), column.Zeros(h.part, k), resized(h.order, k)
	left := h.quota[n]
	if m.p.Slots.DistributeEvenly {
		left = m.evenOwned(left)
	} else {
		left = m.scaledOwned(left)
	}
	for i, c := range h.siblings {
		h.quota[c] = h.part[i]
	}
	m.evenRest(left)
}

// scaledOwned divides by effective owned, and leaves what only those can use who own nothing (SLOT-23).
func (m *Planner) scaledOwned(q int64) (left int64) {
	h := &m.hybrid
	weights, floors := make([]*big.Int, len(h.siblings)), make([]int64, len(h.siblings))
	var sum, scaled big.Int
	for i, c := range h.siblings { // m of each, times C
		weights[i] = new(big.Int).Mul(big.NewInt(h.use[c]), big.NewInt(h.configured))
		if scaled.Mul(big.NewInt(h.owns[i]), big.NewInt(m.owned.hybrid)); scaled.Cmp(weights[i]) < 0 {
			weights[i].Set(&scaled)
		}
		sum.Add(&sum, weights[i])
		floors[i], h.most[i] = h.reserve[c], h.use[c]
	}
	if scaled.Mul(big.NewInt(q), big.NewInt(h.configured)); scaled.Cmp(&sum) < 0 {
		m.shorten(q, weights, floors, nil)
		return 0
	}
	clear(h.order)
	return h.divider.FillByPriority(q, h.order, h.owns, h.most, h.part)
}

// shorten divides less than everybody should have: none below its reserve while there is enough for those.
func (m *Planner) shorten(q int64, weights []*big.Int, floors, limits []int64) {
	var reserved int64
	for _, v := range floors {
		reserved = share.Add(reserved, v)
	}
	if reserved > q {
		floors, limits = make([]int64, len(floors)), floors
	}
	share.Between(q, weights, floors, limits, m.hybrid.part)
}

// evenOwned divides by the owns as configured, and leaves what is for all alike (SLOT-25).
func (m *Planner) evenOwned(q int64) (left int64) {
	h := &m.hybrid
	weights, floors := make([]*big.Int, len(h.siblings)), make([]int64, len(h.siblings))
	var owns, own int64
	for i, c := range h.siblings {
		h.most[i] = min(h.use[c], h.owns[i])
		weights[i], floors[i] = big.NewInt(h.owns[i]), min(h.reserve[c], h.owns[i])
		owns, own = share.Add(owns, h.owns[i]), share.Add(own, h.most[i])
	}
	if q >= own {
		copy(h.part, h.most)
		return q - own
	}
	m.shorten(q, weights, floors, h.most)
	return 0
}

// evenRest divides what is left equally among those who can use more; where the policy goes by
// owned slots, only those who own nothing can.
func (m *Planner) evenRest(left int64) {
	if left == 0 {
		return
	}
	h := &m.hybrid
	for i, c := range h.siblings {
		h.most[i], h.owns[i], h.order[i] = h.use[c]-h.quota[c], 1, 0
	}
	h.divider.FillByPriority(left, h.order, h.owns, h.most, h.part)
	for i, c := range h.siblings {
		h.quota[c] += h.part[i]
	}
}

// hybridIdle is how many slots of the hybrid branches nobody holds.
func (m *Planner) hybridIdle() int64 {
	return m.owned.hybrid - m.figure.hybridHeld - m.figure.keptHybrid
}

// netHybrid is hybridIdle as if what is under reclaim had been given back.
func (m *Planner) netHybrid() int64 {
	return m.owned.hybrid - m.figure.hybridNet - m.figure.roomHybrid[plan.Root]
}

// layFree computes what reserves still need idle, of every hybrid consumer (SLOT-28). O(consumers).
func (m *Planner) layFree() {
	h := &m.hybrid
	h.free, h.below = column.Zeros(h.free, len(h.quota)), column.Zeros(h.below, len(h.quota))
	for c := plan.Node(len(h.quota) - 1); c > plan.Root; c-- {
		if m.isHybrid(c) {
			h.free[c] = max(h.below[c], m.lacks(c))
			h.below[m.policy.Parent[c]] += h.free[c]
		}
	}
	h.laid = true
}

// mixed is what hybrid leaves at and below a hybrid consumer hold of what hybrid branches have.
func (m *Planner) mixed(n plan.Node) int64 { return m.figure.total[n] - m.figure.owed[n] }

// lacks is how much of its reserve a hybrid consumer neither holds nor is promised.
func (m *Planner) lacks(n plan.Node) int64 {
	return max(0, m.hybrid.reserve[n]-m.mixed(n)-m.figure.roomHybrid[n])
}

// refree brings free up to what a leaf holds now. O(depth).
func (m *Planner) refree(leaf plan.Node) {
	h := &m.hybrid
	if !h.laid {
		return
	}
	for n := leaf; n != plan.Root; n = m.policy.Parent[n] {
		now := max(h.below[n], m.lacks(n))
		h.below[m.policy.Parent[n]] += now - h.free[n]
		h.free[n] = now
	}
}

// freeAfter is what all reserves together still need idle once a leaf holds so many slots more. O(depth).
func (m *Planner) freeAfter(leaf plan.Node, k int64) int64 {
	h, f := &m.hybrid, &m.figure
	var delta int64
	for n := leaf; n != plan.Root; n = m.policy.Parent[n] {
		now := max(h.below[n]+delta, h.reserve[n]-m.mixed(n)-f.roomHybrid[n]-k, 0)
		delta = now - h.free[n]
	}
	return h.below[plan.Root] + delta
}

// reservesWith gives what reserves below a consumer, or below the root, need idle once a hybrid taker has its unit and
// victims are gone, which may have filled them: that is not for the taker, or its set would lapse when they are gone.
// O((victims + 1) × depth).
func (m *Planner) reservesWith(w *want, victims []victim) func(n plan.Node) int64 {
	if !m.isHybrid(w.leaf) {
		return nothing
	}
	h, f := &m.hybrid, &m.figure
	more, below := map[plan.Node]int64{}, map[plan.Node]int64{}
	var ways []plan.Node
	add := func(leaf plan.Node, slots int64) {
		for n := leaf; n != plan.Root; n = m.policy.Parent[n] {
			if _, listed := more[n]; !listed {
				ways = append(ways, n)
			}
			more[n] += slots
		}
	}
	add(w.leaf, w.k)
	for _, v := range victims {
		add(m.s.Node(m.s.Holding.Sub[v.q]), -v.units*m.slots(m.s.Holding.Sub[v.q]))
	}
	slices.Sort(ways)
	for _, n := range slices.Backward(ways) { // children come after their parents
		now := max(h.below[n]+below[n], h.reserve[n]-m.mixed(n)-f.roomHybrid[n]-more[n], 0)
		below[m.policy.Parent[n]] += now - h.free[n]
	}
	return func(n plan.Node) int64 {
		return h.below[n] + below[n]
	}
}

// mayHold tells whether a hybrid leaf may get a unit (SLOT-26): within the bound and what is idle,
// leaving owners' and reserves' slots alone.
func (m *Planner) mayHold(leaf plan.Node, k int64, promised bool, bound int64) bool {
	f := &m.figure
	more := k
	if promised { // its room counts already, in reserves too
		more = 0
	}
	return f.net[kindHybrid][leaf]+f.roomHybrid[leaf]+more <= bound && m.hybridIdle() >= k && f.idle-k >= f.claims &&
		m.hybridIdle()-k >= m.freeAfter(leaf, more)
}

// grantHybrid hands idle slots to hybrid leaves: in rank order up to their quotas, then what is left (SLOT-26).
func (m *Planner) grantHybrid() {
	if !m.tree.hybrid {
		return
	}
	for _, leaf := range m.tree.leaves {
		if m.isHybrid(leaf) {
			bound := m.hybrid.quota[leaf]
			m.serveAll(leaf, kindHybrid, bound)
		}
	}
	for _, leaf := range m.tree.leaves {
		if m.isHybrid(leaf) && (m.hybridIdle() > 0 || len(m.gang.subs) > 0) {
			m.serveAll(leaf, kindHybrid, unbound)
		}
	}
}

// freeShown is the column free of hybrid consumers (SLOT-28): while somebody is short, what reserves
// still hold ready; else the idle slots, in proportion to what is owned. O(consumers × log children).
func (m *Planner) freeShown() []int64 {
	h, f := &m.hybrid, &m.figure
	free := make([]int64, len(h.quota))
	short := slices.ContainsFunc(m.tree.leaves, func(leaf plan.Node) bool {
		return m.isHybrid(leaf) && m.quota.demand[leaf] > f.held[kindHybrid][leaf]
	})
	if short {
		below := make([]int64, len(free))
		for n := plan.Node(len(free) - 1); n > plan.Root; n-- {
			if m.isHybrid(n) {
				free[n] = max(below[n], h.reserve[n]-m.mixed(n), 0)
				below[m.policy.Parent[n]] += free[n]
			}
		}
		return free
	}
	free[plan.Root] = max(0, m.owned.hybrid-f.hybridHeld)
	for n := range plan.Node(len(free)) {
		if free[n] > 0 && (n == plan.Root || !m.policy.Leaf(n)) {
			m.shareOut(free, n, func(c plan.Node) int64 { return m.set.Owns[c] })
		}
	}
	return free
}

// shareOut divides a consumer's figure among its hybrid children in proportion to weights, by rank order.
func (m *Planner) shareOut(figure []int64, n plan.Node, weight func(c plan.Node) int64) {
	h := &m.hybrid
	h.siblings, h.owns, h.most = h.siblings[:0], h.owns[:0], h.most[:0]
	for _, c := range m.tree.child[n] {
		if m.isHybrid(c) {
			h.siblings = append(h.siblings, c)
			h.owns = append(h.owns, weight(c))
			h.most = append(h.most, figure[n])
		}
	}
	h.part, h.order = column.Zeros(h.part, len(h.siblings)), resized(h.order, len(h.siblings))
	clear(h.order)
	h.divider.FillByPriority(figure[n], h.order, h.owns, h.most, h.part)
	for i, c := range h.siblings {
		figure[c] = h.part[i]
	}
}
