package slot

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

func (m *Planner) key(k *decision.Key, sub cluster.SubID) {
	k.Add(m.p.Index, int32(m.s.Sub.Consumer[sub]), m.s.Alloc.Name[m.s.Sub.Alloc[sub]], m.s.Sub.Name[sub])
}

// rowOrder sorts holdings of one sub-allocation as tables show them: by host, then what they count as.
func (m *Planner) rowOrder(a, b cluster.HoldingID) int {
	h := &m.s.Holding
	return cmp.Or(cmp.Compare(h.Parcel[a], h.Parcel[b]), cmp.Compare(h.Origin[a], h.Origin[b]),
		cmp.Compare(h.Pool[a], h.Pool[b]),
		cmp.Compare(h.Lender[a], h.Lender[b]), cmp.Compare(h.Granted[a], h.Granted[b]))
}

// alike tells whether two holdings of one sub-allocation are one row in a table.
func (m *Planner) alike(a, b cluster.HoldingID) bool { return m.rowOrder(a, b) == 0 }

// eachRow calls f for what is held by each sub-allocation since a cycle: consumers in tree order,
// rows in rowOrder. The slice is borrowed.
func (m *Planner) eachRow(since int64, f func(sub cluster.SubID, rows []cluster.HoldingID)) {
	for leaf := range plan.Node(m.policy.Len()) {
		m.eachOf(leaf, func(sub cluster.SubID) { m.rowsOf(sub, since, f) })
	}
}

// rowsOf is eachRow for one sub-allocation.
func (m *Planner) rowsOf(sub cluster.SubID, since int64, f func(sub cluster.SubID, rows []cluster.HoldingID)) {
	h, rows := &m.s.Holding, m.rows[:0]
	for q := m.s.Sub.First[sub]; q != cluster.NoID; q = h.NextOfSub[q] {
		if h.Granted[q] >= since {
			rows = append(rows, q)
		}
	}
	if m.rows = rows; len(rows) == 0 {
		return
	}
	slices.Reverse(rows) // they are listed newest first: mostly that sorts them
	if !slices.IsSortedFunc(rows, m.rowOrder) {
		slices.SortFunc(rows, m.rowOrder)
	}
	f(sub, rows)
}

// EmitGrants adds the units given in this cycle, in the order of D-14. It returns their number.
func (m *Planner) EmitGrants(g *decision.Grants) (units int64) {
	h := &m.s.Holding
	m.eachRow(m.s.Cycle+1, func(sub cluster.SubID, rows []cluster.HoldingID) {
		n := 1
		for i := 1; i < len(rows); i++ {
			if !m.alike(rows[i], rows[i-1]) {
				n++
			}
		}
		consumer, allocation := int32(m.s.Sub.Consumer[sub]), m.s.Alloc.Name[m.s.Sub.Alloc[sub]]
		name, source := m.s.Sub.Name[sub], int32(m.s.Sub.Source[sub])
		at := g.Extend(n) - 1
		for i, q := range rows {
			units += h.Units[q]
			if i > 0 && m.alike(q, rows[i-1]) {
				g.Units[at] += h.Units[q]
				continue
			}
			at++
			g.Plan.Code[at], g.Consumer.Code[at] = m.p.Index, consumer
			g.Allocation.Code[at], g.Sub.Code[at] = allocation, name
			g.Source.Code[at], g.Host.Code[at], g.Units[at] = source, int32(m.p.Parcels.Host[h.Parcel[q]]), h.Units[q]
			g.Origin.Code[at], g.Pool.Code[at], g.Lender.Code[at] = h.Origin[q], int32(h.Pool[q]), int32(h.Lender[q])
			g.Device.Code[at] = decision.Null
		}
	})
	return units
}

// EmitStates adds the plan's rows to the table consumers.
func (m *Planner) EmitStates(c *decision.Cycle) {
	n := m.policy.Len()
	sums := make([]slotRow, n)
	m.keepBorrowed()
	for _, leaf := range m.tree.leaves {
		sums[leaf] = m.leafRow(leaf)
	}
	for c := plan.Node(n - 1); c > plan.Root; c-- {
		sums[m.policy.Parent[c]].add(&sums[c])
	}
	if m.tree.hybrid {
		for n, free := range m.freeShown() {
			if m.isHybrid(plan.Node(n)) {
				sums[n].free = free
			}
		}
	}
	t := &c.Consumers
	for n := plan.Root + 1; int(n) < m.policy.Len(); n++ {
		if m.p.Terms.Member[n] {
			m.emitConsumer(t, n, &sums[n])
		}
	}
}

// slotRow is the figures of a consumer that add up over the tree.
type slotRow struct {
	demand, held, short              int64
	quota, own, shared, borrow, lent int64
	free                             int64
}

func (a *slotRow) add(b *slotRow) {
	a.demand, a.held, a.short = share.Add(a.demand, b.demand), a.held+b.held, share.Add(a.short, b.short)
	a.quota, a.own, a.shared = share.Add(a.quota, b.quota), a.own+b.own, a.shared+b.shared
	a.borrow, a.lent, a.free = a.borrow+b.borrow, a.lent+b.lent, a.free+b.free
}

// leafRow is the figures of a leaf.
func (m *Planner) leafRow(leaf plan.Node) (r slotRow) {
	m.eachOf(leaf, func(sub cluster.SubID) {
		k := m.slots(sub)
		r.demand = share.Add(r.demand, share.Mul(m.s.Sub.Wanted[sub], k))
		r.held += m.s.Sub.Held[sub] * k
		r.short = share.Add(r.short, share.Mul(m.s.Short(sub), k))
	})
	f := &m.figure
	r.own, r.shared = f.held[kindOwn][leaf], f.held[kindShare][leaf]
	r.borrow, r.lent = f.held[kindBorrow][leaf], f.held[kindLent][leaf]
	r.free = max(0, m.own0(leaf))
	if m.isHybrid(leaf) {
		held := f.held[kindHybrid][leaf]
		r.own = min(held, m.hybrid.owned[leaf])
		r.borrow, r.quota = held+f.held[kindOwed][leaf]-r.own, m.hybrid.quota[leaf]
		return r
	}
	r.quota = share.Add(min(m.quota.demand[leaf], m.owned.of[leaf]), m.quota.dynamic[leaf]+m.quota.borrowed[leaf])
	return r
}

func (m *Planner) emitConsumer(t *decision.Consumers, n plan.Node, r *slotRow) {
	t.Plan.Add(m.p.Index)
	t.Consumer.Add(int32(m.s.ConsumerOf[n]))
	t.Policy.Add(policyName[m.set.Policy[n]])
	t.Rank = append(t.Rank, int64(m.set.Rank[n]))
	t.Demand = append(t.Demand, r.demand)
	t.Held = append(t.Held, r.held)
	t.Short = append(t.Short, r.short)
	limit, owned, reserved, static := m.tree.most[n], m.owned.of[n], m.owned.reserved[n], m.quota.static[n]
	if m.isHybrid(n) {
		owned, reserved, static = m.hybrid.owned[n], m.hybrid.reserve[n], m.hybrid.owned[n]
		r.quota = m.hybrid.quota[n]
	}
	t.AddSlots([...]int64{
		m.set.Owns[n], owned, reserved, max(limit, 0), static, r.quota,
		r.own, r.shared, r.borrow, r.lent, r.free,
	}, limit == plan.Unlimited)
}

// policyName is the word of a policy in decision.Policies.
var policyName = [...]int32{
	plan.Ownership: decision.PolicyOwnership, plan.ShareRatio: decision.PolicyShareRatio,
	plan.Hybrid: decision.PolicyHybrid,
}

// EmitKeyframe adds the plan's rows to the keyframe tables.
func (m *Planner) EmitKeyframe(c *decision.Cycle) {
	t, h := &c.Holdings, &m.s.Holding
	emit := func(sub cluster.SubID, rows []cluster.HoldingID) {
		for i, q := range rows {
			if i > 0 && m.alike(q, rows[i-1]) {
				t.Units[len(t.Units)-1] += h.Units[q] // a part of it is under reclaim
				continue
			}
			m.key(&t.Key, sub)
			t.Source.Add(int32(m.s.Sub.Source[sub]))
			t.Host.Add(int32(m.p.Parcels.Host[h.Parcel[q]]))
			t.Units = append(t.Units, h.Units[q])
			t.Origin.Add(h.Origin[q])
			t.Pool.Add(int32(h.Pool[q]))
			t.Lender.Add(int32(h.Lender[q]))
			t.Granted = append(t.Granted, h.Granted[q])
			t.Device.Add(decision.Null)
		}
	}
	m.eachRow(0, emit)
	m.s.EachOrphan(m.p, func(sub cluster.SubID) { m.rowsOf(sub, 0, emit) })
	o, p := &c.Hosts, &m.p.Parcels
	for k, host := range p.Host {
		o.Plan.Add(m.p.Index)
		o.Host.Add(int32(host))
		o.State.Add(int32(m.s.Host.State[host]))
		o.Dimension.Add(m.slotsWord())
		o.Capacity = append(o.Capacity, p.Cap[0][k])
		o.Used = append(o.Used, p.Cap[0][k]-p.Free[0][k])
	}
}

// slotsWord is the code of the dimension slots in the tables' dictionary: core/cycle puts the
// word behind the policy's dimensions when it is none of them.
func (m *Planner) slotsWord() int32 {
	if d, ok := m.policy.Dimension("slots"); ok {
		return int32(d)
	}
	return int32(len(m.policy.Dimensions))
}

// EmitOwnership adds nothing: of a slot plan's hosts nobody owns a part.
func (m *Planner) EmitOwnership(*decision.Ownership) {}
