package slot

import (
	"cmp"
	"math/big"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
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
	for _, column := range []*[]int64{&h.use, &h.quota, &h.above, &h.gives} {
		*column = zeroed(*column, n)
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
	h.owned, h.reserve, h.cut = zeroed(h.owned, m.policy.Len()), zeroed(h.reserve, m.policy.Len()), resized(h.cut, m.policy.Len())
	h.configured = 0
	for _, c := range m.tree.child[plan.Root] {
		if m.isHybrid(c) || !m.tree.mixed {
			h.configured = share.Add(h.configured, m.set.Owns[c])
		}
	}
	if v := m.p.Slots.ConfiguredSlots; v != plan.Unlimited && !m.tree.mixed {
		h.configured = v
	}
	for c := range h.owned {
		if !m.isHybrid(plan.Node(c)) {
			continue
		}
		h.owned[c], h.cut[c] = share.Scale(m.set.Owns[c], m.owned.hybrid, h.configured)
		h.reserve[c] = min(m.set.Reserves[c], h.owned[c])
		if limit := m.set.Limit[c]; limit != plan.Unlimited {
			h.reserve[c] = min(h.reserve[c], limit)
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
	h.most, h.part, h.order = zeroed(h.most, k), zeroed(h.part, k), resized(h.order, k)
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
	h.free, h.below = zeroed(h.free, len(h.quota)), zeroed(h.below, len(h.quota))
	for c := plan.Node(len(h.quota) - 1); c > plan.Root; c-- {
		if m.isHybrid(c) {
			h.free[c] = max(h.below[c], m.lacks(c))
			h.below[m.policy.Parent[c]] += h.free[c]
		}
	}
	h.laid = true
}

// lacks is how much of its reserve a hybrid consumer neither holds nor is promised.
func (m *Planner) lacks(n plan.Node) int64 {
	return max(0, m.hybrid.reserve[n]-m.figure.total[n]-m.figure.roomHybrid[n])
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
		now := max(h.below[n]+delta, h.reserve[n]-f.total[n]-f.roomHybrid[n]-k, 0)
		delta = now - h.free[n]
	}
	return h.below[plan.Root] + delta
}

// mayHold tells whether a hybrid leaf may get a unit (SLOT-26): within the bound and what is idle,
// leaving owners' and reserves' slots alone.
func (m *Planner) mayHold(leaf plan.Node, k int64, promised bool, bound int64) bool {
	f := &m.figure
	holds := f.net[kindHybrid][leaf] + f.roomHybrid[leaf]
	if !promised {
		holds += k
	}
	return holds <= bound && m.hybridIdle() >= k && f.idle-k >= f.claims && m.hybridIdle()-k >= m.freeAfter(leaf, k)
}

// grantHybrid hands idle slots to hybrid leaves: in rank order up to their quotas, then what is left (SLOT-26).
func (m *Planner) grantHybrid() {
	if !m.tree.hybrid {
		return
	}
	for _, leaf := range m.tree.leaves {
		if m.isHybrid(leaf) {
			m.serveAll(leaf, kindHybrid, m.hybrid.quota[leaf])
		}
	}
	for _, leaf := range m.tree.leaves {
		if m.isHybrid(leaf) && m.hybridIdle() > 0 {
			m.serveAll(leaf, kindHybrid, unbound)
		}
	}
}

// reclaimHybrid takes back what hybrid leaves hold above their quotas, for those below theirs, for
// reserves, and for owners beside them (SLOT-27, SLOT-30).
func (m *Planner) reclaimHybrid() {
	if !m.tree.hybrid {
		return
	}
	m.reopen()
	if over := m.figure.hybridNet - m.owned.hybrid; m.tree.mixed && over > 0 {
		m.forOwners(over)
	}
	if m.below0Quota() > 0 { // what they hold beyond their part stands between those and their quotas
		m.measureAbove()
		clear(m.hybrid.gives)
		m.spread(plan.Root, -m.netHybrid())
		m.byRule(-m.netHybrid(), decision.ReclaimOverLimit)
	}
	m.measureAbove()
	m.missing()
	m.forTakers(decision.ReclaimFairShare, func(leaf plan.Node, k int64) bool {
		f := &m.figure
		return m.isHybrid(leaf) && f.net[kindHybrid][leaf]+f.roomHybrid[leaf]+m.reclaim.joinedBy[leaf]+k <= m.hybrid.quota[leaf]
	})
	m.byRule(m.hybrid.below[plan.Root]-max(0, m.netHybrid()), decision.ReclaimReserve)
}

// measureAbove computes how far each hybrid consumer is above what it may keep.
func (m *Planner) measureAbove() {
	h := &m.hybrid
	clear(h.above)
	for c := plan.Node(len(h.above) - 1); c > plan.Root; c-- {
		if !m.isHybrid(c) {
			continue
		}
		if m.policy.Leaf(c) {
			h.above[c] = max(0, m.figure.net[kindHybrid][c]-m.keeps(c))
		}
		h.above[m.policy.Parent[c]] += h.above[c]
	}
}

// keeps is what a hybrid leaf may hold without giving: its quota, or what it owns as configured where
// shrinkage alone took it away and the plan does not reclaim for that.
func (m *Planner) keeps(leaf plan.Node) int64 {
	keeps := m.hybrid.quota[leaf]
	if m.p.Slots.NoShrinkReclaim && m.owned.hybrid < m.hybrid.configured {
		keeps = max(keeps, m.set.Owns[leaf])
	}
	return keeps
}

// missing says who gives how much for those below their quotas: as much as they are below, less what
// is idle. Where a limit keeps a branch from what is idle, those in it give (SLOT-27). O(consumers).
func (m *Planner) missing() {
	h, f := &m.hybrid, &m.figure
	clear(h.gives)
	need := make([]int64, len(h.gives))
	for n := plan.Node(len(need) - 1); n >= plan.Root; n-- {
		head := max(0, m.netHybrid())
		switch {
		case n == plan.Root:
		case !m.isHybrid(n):
			continue
		case m.policy.Leaf(n):
			need[n] = max(0, h.quota[n]-f.net[kindHybrid][n]-f.roomHybrid[n])
			fallthrough
		default:
			head = unbound
			if most := m.tree.most[n]; most != plan.Unlimited {
				head = max(0, most-f.stays[n])
			}
		}
		if inside := min(need[n]-head, h.above[n]-h.gives[n]); inside > 0 {
			m.spread(n, inside)
			need[n] -= inside
		}
		if n != plan.Root {
			need[m.policy.Parent[n]] += need[n]
		}
	}
}

// below0Quota is how many slots hybrid leaves are below their quotas.
func (m *Planner) below0Quota() (slots int64) {
	f := &m.figure
	for _, leaf := range m.tree.leaves {
		if m.isHybrid(leaf) {
			slots = share.Add(slots, max(0, m.hybrid.quota[leaf]-f.net[kindHybrid][leaf]-f.roomHybrid[leaf]))
		}
	}
	return slots
}

// spread adds so much to what those below a consumer give who are above their quotas: in proportion to
// how far they still are, level by level, rounded in reverse rank order.
func (m *Planner) spread(from plan.Node, slots int64) {
	h := &m.hybrid
	more := make([]int64, len(h.gives))
	more[from] = max(0, min(slots, h.above[from]-h.gives[from]))
	for n := from; n < m.policy.End[from]; n++ {
		if more[n] == 0 {
			continue
		}
		h.gives[n] += more[n]
		h.siblings, h.owns = h.siblings[:0], h.owns[:0]
		for _, c := range slices.Backward(m.tree.child[n]) {
			if m.isHybrid(c) {
				h.siblings = append(h.siblings, c)
				h.owns = append(h.owns, h.above[c]-h.gives[c])
			}
		}
		h.part, h.order = zeroed(h.part, len(h.siblings)), resized(h.order, len(h.siblings))
		clear(h.order)
		h.divider.FillByPriority(more[n], h.order, h.owns, h.owns, h.part)
		for i, c := range h.siblings {
			more[c] = h.part[i]
		}
	}
	for n := m.policy.Parent[from]; n >= plan.Root; n = m.policy.Parent[n] {
		h.gives[n] += more[from]
	}
}

// forTakers makes sets for the unpromised units of leaves, in rank order, that may have them.
func (m *Planner) forTakers(reason int32, may func(leaf plan.Node, k int64) bool) {
	if m.whole {
		m.forHosts(reason, may)
		return
	}
	for _, leaf := range m.tree.leaves {
		if !may(leaf, 1) {
			continue
		}
		for more := m.open(leaf); more; more = m.line.Advance(leaf) {
			for sub := m.line.Next(leaf); sub != cluster.NoID; sub = m.line.Next(leaf) {
				if may(leaf, m.slots(sub)) && m.promise(leaf, sub, reason, m.hybridVictims) {
					m.line.Settle(leaf)
				} else {
					m.line.Pass(leaf)
				}
			}
		}
	}
}

// givers lists the hybrid leaves that still have to give something: the one that gives most
// first, of equals the last in rank.
func (m *Planner) givers() (leaves []plan.Node) {
	for _, leaf := range slices.Backward(m.tree.leaves) {
		if m.isHybrid(leaf) && m.hybrid.gives[leaf] > 0 {
			leaves = append(leaves, leaf)
		}
	}
	slices.SortStableFunc(leaves, func(a, b plan.Node) int { return cmp.Compare(m.hybrid.gives[b], m.hybrid.gives[a]) })
	return leaves
}

// mayTake tells whether a unit of a hybrid leaf may be taken, so many slots of it being chosen already.
func (m *Planner) mayTake(q cluster.HoldingID, chosen int64) bool {
	leaf, v := m.s.Node(m.s.Holding.Sub[q]), m.worth(q)
	least := int64(1)
	if m.whole {
		least = v
	}
	return m.hybrid.gives[leaf]-chosen >= least && m.figure.net[kindHybrid][leaf]-chosen-m.keeps(leaf) >= v
}

// hybridVictims chooses among what hybrid leaves have to give.
func (m *Planner) hybridVictims(w *want) []victim {
	for _, leaf := range m.givers() {
		if leaf == w.leaf {
			continue
		}
		for _, q := range m.stays(leaf, kindHybrid) {
			k := m.s.Holding.Parcel[q]
			if !m.tryHost(w, k) || !m.mayTake(q, 0) {
				continue
			}
			if found := m.enoughHybrid(w, k); found != nil {
				for _, v := range found {
					m.give0(v)
				}
				return found
			}
			w.failed[k] = true
		}
	}
	return nil
}

// give0 takes what was chosen off what its leaf has to give.
func (m *Planner) give0(v victim) {
	sub := m.s.Holding.Sub[v.q]
	m.hybrid.gives[m.s.Node(sub)] -= v.units * m.slots(sub)
}

// enoughHybrid takes units of one host, each from the leaf that then has most to give.
func (m *Planner) enoughHybrid(w *want, k cluster.ParcelID) []victim {
	h := &m.s.Holding
	chosen, used := map[plan.Node]int64{}, map[cluster.HoldingID]int64{}
	next := func() (best cluster.HoldingID) {
		best = cluster.NoID
		for q := m.p.Parcels.First[k]; q != cluster.NoID; q = h.NextOnParcel[q] {
			leaf := m.s.Node(h.Sub[q])
			if h.Set[q] != cluster.NoID || used[q] == h.Units[q] || leaf == w.leaf || !m.isHybrid(leaf) || !m.mayTake(q, chosen[leaf]) {
				continue
			}
			if best == cluster.NoID || m.takenFirst(q, best, chosen) {
				best = q
			}
		}
		return best
	}
	return m.enough(w, k, func(yield func(cluster.HoldingID) bool) {
		for q := next(); q != cluster.NoID; q = next() {
			chosen[m.s.Node(h.Sub[q])] += m.slots(h.Sub[q])
			used[q]++
			if !yield(q) {
				return
			}
		}
	})
}

// takenFirst tells whether holding a is taken before holding b.
func (m *Planner) takenFirst(a, b cluster.HoldingID, chosen map[plan.Node]int64) bool {
	h := &m.s.Holding
	x, y := m.s.Node(h.Sub[a]), m.s.Node(h.Sub[b])
	gx, gy := m.hybrid.gives[x]-chosen[x], m.hybrid.gives[y]-chosen[y]
	switch {
	case gx != gy:
		return gx > gy
	case x != y:
		return m.tree.rankOf[x] > m.tree.rankOf[y]
	}
	return m.newest(a, b) < 0
}

// byRule takes back so many slots of what is still to be given, for no taker.
func (m *Planner) byRule(slots int64, reason int32) {
	for slots > 0 {
		taken := int64(0)
		for _, leaf := range m.givers() {
			if taken = m.takeNewest(leaf, reason); taken > 0 {
				break
			}
		}
		if taken == 0 {
			return
		}
		slots -= taken
	}
}

// takeNewest takes back the newest unit of a leaf that may be taken, and tells how many slots that were.
func (m *Planner) takeNewest(leaf plan.Node, reason int32) int64 {
	for _, q := range m.stays(leaf, kindHybrid) {
		k := m.s.Holding.Parcel[q]
		if !m.p.Parcels.IsOpen(k) || !m.mayTake(q, 0) {
			continue
		}
		slots := m.worth(q)
		if m.takeBack(q, 1, reason) == 0 {
			return 0
		}
		m.hybrid.gives[leaf] -= slots
		return slots
	}
	return 0
}

// forOwners takes back what hybrid branches hold above their part, as far as ownership branches need
// it for owned demand or for what they keep in reserve (SLOT-30).
func (m *Planner) forOwners(over int64) {
	m.measureAbove()
	clear(m.hybrid.gives)
	m.spread(plan.Root, over)
	m.forTakers(decision.ReclaimRecall, func(leaf plan.Node, k int64) bool {
		return !m.isHybrid(leaf) && m.netOwn(leaf)-m.reclaim.joinedOwn[leaf] >= k
	})
	var reserved int64
	for _, leaf := range m.tree.leaves {
		if !m.isHybrid(leaf) {
			reserved += max(0, m.owned.reserved[leaf]-m.figure.net[kindOwn][leaf])
		}
	}
	m.byRule(min(m.figure.hybridNet-m.owned.hybrid, max(0, reserved-m.reclaim.netIdle)), decision.ReclaimReserve)
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
				free[n] = max(below[n], h.reserve[n]-f.total[n], 0)
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
	h.part, h.order = zeroed(h.part, len(h.siblings)), resized(h.order, len(h.siblings))
	clear(h.order)
	h.divider.FillByPriority(figure[n], h.order, h.owns, h.most, h.part)
	for i, c := range h.siblings {
		figure[c] = h.part[i]
	}
}
