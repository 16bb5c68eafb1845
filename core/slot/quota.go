package slot

import (
	"math"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// quotas are what consumers deserve, by Node, in slots (SLOT-6, SLOT-11).
type quotas struct {
	demand  []int64 // what could be placed were the hosts empty (D)
	need    []int64 // what of it is to come from share pools, under every share.max
	left    []int64 // of need, not yet in a part
	asks    []int64 // of that, what is for the pool that is divided
	dynamic []int64 // share quota under today's demand
	static  []int64 // whoever is busy
	deserve []int64 // q: what entitles to reclaim

	borrowed []int64             // what of loans the quotas shown have in them
	wanted   []int64             // scratch: what of its loans a lender wants back beyond what is being recalled
	loans    []cluster.HoldingID // scratch: the loans of those

	divider share.Divider
	zero    []int32
	ratio   []int64
	limit   []int64
	part    []int64

	fits   map[fit]int64     // units that the empty ok hosts would take
	apart  map[fitBy][]int64 // by value of an attribute
	tables int64
}

// fit is what the number of units that fit depends on.
type fit struct {
	shape cluster.ShapeID
	need  cluster.NeedID
	most  int64
}

// Entitle adds up what is held and computes what every consumer deserves from the share pools.
// O(holdings + sub-allocations + consumers × depth), and hosts × units of a new kind.
func (m *Planner) Entitle() {
	m.beginReclaim()
	m.gang.gather(m.s, m.p)
	m.bind()
	m.dropUnfit()
	if m.whole {
		m.tidy()
	}
	m.tally()
	m.label()
	m.settleForeign()
	m.prepareSwitch()
	m.entitle()
}

// entitle is Entitle from the figures as they are.
func (m *Planner) entitle() {
	q, n := &m.quota, m.policy.Len()
	q.demand, q.need, q.left = column.Zeros(q.demand, n), column.Zeros(q.need, n), resized(q.left, n)
	q.dynamic, q.static = column.Zeros(q.dynamic, n), column.Zeros(q.static, n)
	m.demands()
	m.needs()
	m.hybridQuotas()
	m.pour(q.dynamic, false)
	m.pour(q.static, true)
	q.deserve = append(q.deserve[:0], q.dynamic...)
	if m.p.Slots.StaticQuota {
		for n := range q.deserve {
			q.deserve[n] = q.static[n]
			// What owners leave of a maximum counts, too.
			for c := plan.Node(n); c > plan.Root; c = m.policy.Parent[c] {
				q.deserve[n] = min(q.deserve[n], q.need[c])
			}
		}
	}
}

// demands adds up what of every leaf's demand could be placed.
func (m *Planner) demands() {
	q := &m.quota
	if q.fits == nil || q.tables != m.s.HostTables || m.p.Rebuilt || m.p.Resized {
		q.fits, q.apart, q.tables = map[fit]int64{}, map[fitBy][]int64{}, m.s.HostTables
	}
	for _, leaf := range m.tree.leaves {
		m.eachOf(leaf, func(sub cluster.SubID) {
			units := min(m.s.Sub.Wanted[sub], share.Add(m.placeable(sub), m.figure.shut[sub]))
			if units < m.s.Sub.MinUnits[sub] {
				units = 0 // none of it is ever of use
			}
			q.demand[leaf] = share.Add(q.demand[leaf], share.Mul(units, m.slots(sub)))
		})
		if m.whole && q.demand[leaf] > 0 {
			q.demand[leaf] = min(q.demand[leaf], m.reach(leaf))
		}
	}
}

// eachOf calls f for a leaf's sub-allocations: allocations by arrival.
func (m *Planner) eachOf(leaf plan.Node, f func(sub cluster.SubID)) {
	for a := m.p.FirstAlloc[leaf]; a != cluster.NoID; a = m.s.Alloc.Next[a] {
		for sub := m.s.Alloc.First[a]; sub != cluster.NoID; sub = m.s.Sub.Next[sub] {
			f(sub)
		}
	}
}

// placeable is how many units of a sub-allocation the ok hosts would take were they empty.
func (m *Planner) placeable(sub cluster.SubID) int64 {
	key := fit{m.s.Sub.Shape[sub], m.s.Sub.Need[sub], m.s.Sub.MaxPerHost[sub]}
	slots := m.slots(sub)
	if m.p.TooSmall(m.s, sub) {
		return 0
	}
	if m.asksPlace(sub) {
		if places := m.desk.Bonds.Must(sub); places != nil {
			return m.placeableTogether(sub, places)
		}
	}
	if slots == 1 && key.need == cluster.NoID && key.most == plan.Unlimited {
		return m.figure.okay
	}
	units, ok := m.quota.fits[key]
	if !ok {
		m.eachPlaceable(key, slots, func(_ cluster.ParcelID, n int64) { units += n })
		m.quota.fits[key] = units
	}
	return units
}

// eachPlaceable calls f for the ok hosts with how many units of a kind each would take were it empty. O(parcels).
func (m *Planner) eachPlaceable(of fit, slots int64, f func(k cluster.ParcelID, units int64)) {
	selected, _ := m.desk.Selected(of.need)
	for k := range m.p.Parcels.Len() {
		if !m.p.Parcels.IsOpen(cluster.ParcelID(k)) || selected != nil && selected[k>>6]>>(uint(k)&63)&1 == 0 {
			continue
		}
		n := m.p.Parcels.Cap[0][k] / slots
		if of.most != plan.Unlimited {
			n = min(n, of.most)
		}
		f(cluster.ParcelID(k), n)
	}
}

// needs is what leaves need beyond what they own and borrow, under every share.max. Whose budget is used up needs no
// more than it holds.
func (m *Planner) needs() {
	q, f := &m.quota, &m.figure
	use := make([]int64, len(q.need))
	for _, leaf := range m.tree.leaves {
		if m.set.Policy[leaf] == plan.Hybrid {
			continue
		}
		use[leaf] = min(q.demand[leaf], m.owned.of[leaf]) + f.net[kindBorrow][leaf]
		if !m.tree.barred[leaf] {
			q.need[leaf] = max(0, q.demand[leaf]-use[leaf])
		}
		if m.spent(leaf) {
			q.need[leaf] = min(q.need[leaf], f.net[kindShare][leaf])
		}
	}
	for n := plan.Node(len(q.need) - 1); n > plan.Root; n-- {
		if most := m.tree.most[n]; m.p.Terms.Member[n] && most != plan.Unlimited {
			q.need[n] = min(q.need[n], max(0, most-use[n]))
		}
		up := m.policy.Parent[n]
		use[up] = share.Add(use[up], use[n])
		q.need[up] = share.Add(q.need[up], q.need[n])
	}
}

// pour divides every pool, the deepest first; what nobody below needs goes up (SLOT-5, SLOT-6).
// static: whole, among those who may draw from pools or with whom some below them may.
func (m *Planner) pour(quota []int64, static bool) {
	copy(m.quota.left, m.quota.need)
	up := make([]int64, len(quota))
	for _, n := range m.tree.branches {
		amount := m.owned.pool[n] + up[n]
		if amount == 0 {
			continue
		}
		if m.tree.zeroed {
			m.ask(n)
		}
		given := m.divide(n, amount, quota, static)
		if n != plan.Root {
			up[m.policy.Parent[n]] += amount - given
		}
	}
}

// divide hands a pool of a branch down its tree, as much as all above it leave it, and tells how much.
func (m *Planner) divide(n plan.Node, amount int64, quota []int64, static bool) (given int64) {
	if !static {
		for c := n; c != plan.None; c = m.policy.Parent[c] {
			amount = min(amount, m.quota.left[c])
		}
	}
	if amount == 0 {
		return 0
	}
	given = m.below(n, amount, quota, static)
	for c := n; c != plan.None; c = m.policy.Parent[c] {
		m.quota.left[c] -= given
		quota[c] += given
	}
	return given
}

// ask computes what each consumer below a branch, and those below it who may, would take of the branch's pool: behind a
// ratio of 0 nobody does. O(consumers below).
func (m *Planner) ask(branch plan.Node) {
	q := &m.quota
	q.asks = resized(q.asks, m.policy.Len())
	clear(q.asks[branch:m.policy.End[branch]])
	for n := m.policy.End[branch] - 1; n > branch; n-- {
		if m.policy.Leaf(n) {
			q.asks[n] = q.left[n]
		}
		if q.asks[n] = min(q.asks[n], q.left[n]); m.set.Ratio[n] > 0 {
			up := m.policy.Parent[n]
			q.asks[up] = share.Add(q.asks[up], q.asks[n])
		}
	}
}

// below divides an amount among a consumer's children, in rank order, and on down.
func (m *Planner) below(n plan.Node, amount int64, quota []int64, static bool) (given int64) {
	q, children := &m.quota, m.tree.child[n]
	q.zero, q.ratio = resized(q.zero, len(children)), resized(q.ratio, len(children))
	q.limit = resized(q.limit, len(children))
	for i, c := range children {
		q.zero[i], q.ratio[i], q.limit[i] = 0, m.set.Ratio[c], q.left[c]
		if !m.tree.live[c] {
			q.ratio[i] = 0
		}
		if m.tree.zeroed {
			q.limit[i] = q.asks[c]
		}
		if static {
			q.limit[i] = math.MaxInt64
		}
	}
	q.part = resized(q.part, len(children))
	q.divider.FillByPriority(amount, q.zero, q.ratio, q.limit, q.part)
	parts := append([]int64(nil), q.part...) // the children's children use the scratch
	for i, c := range children {
		part := parts[i]
		if part == 0 {
			continue
		}
		given += part
		quota[c] += part
		q.left[c] -= part
		if !m.policy.Leaf(c) {
			m.below(c, part, quota, static)
		}
	}
	return given
}

// keepBorrowed computes what of loans the quotas shown have in them: those that are not being recalled, of each lender
// no more than it can do without; what would be recalled first is left out (SLOT-11). O(leaves), and one pass over the
// holdings where a lender wants back more than is being recalled, or is gone.
func (m *Planner) keepBorrowed() {
	q, f := &m.quota, &m.figure
	q.borrowed = append(q.borrowed[:0], f.net[kindBorrow]...)
	q.wanted = column.Zeros(q.wanted, m.policy.Len())
	var of int64
	some := false
	for _, lender := range m.tree.leaves {
		of += f.net[kindBorrow][lender] + f.net[kindOwed][lender] - f.net[kindLent][lender]
		beyond := f.net[kindLent][lender] - max(0, m.owned.of[lender]-min(q.demand[lender], m.owned.of[lender]))
		q.wanted[lender], some = max(0, beyond), some || beyond > 0
	}
	if some || of != 0 {
		m.leaveOut(of != 0)
	}
}

// leaveOut takes off the quotas shown what lenders want back, in the order of recall, and, where gone
// says that there is any, what is borrowed of a lender that is gone: it carries nothing. O(holdings),
// and sorting the loans that are wanted back.
func (m *Planner) leaveOut(gone bool) {
	q, h := &m.quota, &m.s.Holding
	q.loans = q.loans[:0]
	for row, sub := range h.Sub {
		if sub == cluster.NoID || h.Lender[row] == cluster.NoID && h.Origin[row] != decision.OriginBorrowed {
			continue
		}
		id, lender := cluster.HoldingID(row), m.lenderOf(h.Lender[row])
		if lender != plan.None && q.wanted[lender] == 0 || lender == plan.None && !gone ||
			m.s.Sub.Plan[sub] != m.p.Index || !m.counts(id) {
			continue
		}
		switch {
		case lender != plan.None && (!m.foreign(m.s.Node(sub), h.Origin[row]) || m.owed(id)):
			q.loans = append(q.loans, id)
		case lender == plan.None && h.Origin[row] == decision.OriginBorrowed && !m.s.Sub.Orphan[sub] &&
			!m.isHybrid(m.s.Node(sub)):
			q.borrowed[m.s.Node(sub)] -= m.pieces(id) * m.worth(id)
		}
	}
	slices.SortFunc(q.loans, m.lastRank)
	for _, row := range q.loans {
		leaf, lender, v := m.s.Node(h.Sub[row]), m.lenderOf(h.Lender[row]), m.worth(row)
		n := m.pieces(row)
		if v > 0 { // a host that has no slots any more is worth none
			n = min(n, (q.wanted[lender]+v-1)/v)
		}
		q.borrowed[leaf], q.wanted[lender] = q.borrowed[leaf]-n*v, max(0, q.wanted[lender]-n*v)
	}
}
