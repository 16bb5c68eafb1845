package md

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// EmitGrants adds the units given in this cycle, in the order of D-14. It returns their number. It changes nothing that is held: Settle does,
// where several holdings are one. O(what was touched in the cycle, with a logarithm), or O(sub-allocations + grants) where that is not known any more.
func (m *Planner) EmitGrants(g *decision.Grants) (units int64) {
	rows := m.grant.booked
	switch m.twins = m.twins[:0]; {
	case m.promise.moved || m.grant.steps > 1:
		rows = m.grantedNow()
	case len(m.fairness.undone) > 0 && mutant != 76:
		rows = slices.DeleteFunc(rows, func(q cluster.HoldingID) bool { return !m.isGiven(q) })
	}
	h, first := &m.s.Holding, g.Extend(len(rows))
	var plans, consumer, allocation, name, source int32
	last := cluster.SubID(cluster.NoID)
	for i, q := range rows {
		if sub := h.Sub[q]; sub != last {
			a := m.s.Sub.Alloc[sub]
			plans, consumer, allocation = m.p.Index, int32(m.s.Sub.Consumer[sub]), m.s.Alloc.Name[a]
			name, source, last = m.s.Sub.Name[sub], int32(m.s.Sub.Source[sub]), sub
		}
		at := first + i
		g.Plan.Code[at], g.Consumer.Code[at], g.Allocation.Code[at], g.Sub.Code[at] = plans, consumer, allocation, name
		g.Source.Code[at], g.Host.Code[at] = source, int32(m.p.Parcels.Host[h.Parcel[q]])
		g.Origin.Code[at], g.Pool.Code[at], g.Lender.Code[at] = h.Origin[q], int32(h.Pool[q]), int32(h.Lender[q])
		g.Units[at] = h.Units[q]
		units += h.Units[q]
	}
	for _, t := range m.twins {
		g.Units[first+t.row] += h.Units[t.from]
		units += h.Units[t.from]
	}
	return units
}

// twin is a holding that is the same grant as another, which stands in a row of those of the cycle.
type twin struct {
	row        int
	into, from cluster.HoldingID
}

// unite makes one holding of those that EmitGrants found to be one.
func (m *Planner) unite() {
	for _, t := range m.twins {
		m.s.Merge(t.into, t.from)
	}
}

// grantedNow lists the holdings of this cycle's grants, those of one sub-allocation and parcel once: the others are its twins. The list is
// borrowed until the next call.
func (m *Planner) grantedNow() []cluster.HoldingID {
	m.rows = m.rows[:0]
	if touched, ok := m.s.Shifts.Touched(m.began); ok {
		m.listMade(touched)
		return m.rows
	}
	m.given = zeroed(m.given, (len(m.s.Sub.Wanted)+63)/64)
	for q, cycle := range m.s.Holding.Granted { // there are many more of them than of those that were given anything: as they stand in memory
		if sub := m.s.Holding.Sub[q]; cycle > m.s.Cycle && sub != cluster.NoID {
			m.given[sub>>6] |= 1 << (uint(sub) & 63)
		}
	}
	m.eachSub(func(sub cluster.SubID) {
		if m.given[sub>>6]>>(uint(sub)&63)&1 == 1 {
			m.listGiven(sub)
		}
	})
	return m.rows
}

// listMade lists them where all holdings are known that were touched since the cycle began: what it gave is among them.
func (m *Planner) listMade(touched []cluster.Touch) {
	h, keys, subs := &m.s.Holding, m.made[:0], m.subs[:0]
	for i := range touched {
		q := touched[i].Holding
		if touched[i].Plan == m.p.Index && m.isGiven(q) {
			keys = append(keys, uint64(h.Sub[q])<<32|uint64(q))
		}
	}
	slices.Sort(keys)
	keys = slices.Compact(keys) // some were touched several times
	for i, key := range keys {
		if sub := cluster.SubID(key >> 32); i == 0 || sub != subs[len(subs)-1] {
			subs = append(subs, sub)
		}
	}
	m.order = m.sortSubs(subs, m.order)
	m.subs, m.made = subs, keys
	for _, sub := range subs {
		first := len(m.rows)
		at, _ := slices.BinarySearch(keys, uint64(sub)<<32)
		for ; at < len(keys) && keys[at]>>32 == uint64(sub); at++ {
			m.rows = append(m.rows, cluster.HoldingID(uint32(keys[at])))
		}
		m.settleGiven(first)
	}
}

// isGiven tells whether a holding is what this cycle gave in this plan, and did not take back. The row of a holding that
// was taken back may be another plan's by now.
func (m *Planner) isGiven(q cluster.HoldingID) bool {
	h, sub := &m.s.Holding, m.s.Holding.Sub[q]
	return sub != cluster.NoID && m.s.Sub.Plan[sub] == m.p.Index && h.Granted[q] > m.s.Cycle && h.Set[q] == cluster.NoID
}

// listGiven adds the holdings that a sub-allocation was given in this cycle.
func (m *Planner) listGiven(sub cluster.SubID) {
	first := len(m.rows)
	for q := m.s.Sub.First[sub]; q != cluster.NoID; q = m.s.Holding.NextOfSub[q] {
		if m.isGiven(q) {
			m.rows = append(m.rows, q)
		}
	}
	m.settleGiven(first)
}

// settleGiven sorts the holdings from one on, all of a sub-allocation, by their parcels, and notes which are one with others.
func (m *Planner) settleGiven(first int) {
	h, rows := &m.s.Holding, m.rows[first:]
	if len(rows) == 0 || m.inHostOrder(rows) {
		return
	}
	slices.SortFunc(rows, func(a, b cluster.HoldingID) int {
		return cmp.Or(cmp.Compare(h.Parcel[a], h.Parcel[b]), cmp.Compare(a, b))
	})
	last := 0
	for i := 1; i < len(rows); i++ {
		if h.Parcel[rows[i]] == h.Parcel[rows[last]] {
			m.twins = append(m.twins, twin{first + last, rows[last], rows[i]})
		} else {
			last++
			rows[last] = rows[i]
		}
	}
	m.rows = m.rows[:first+last+1]
}

// inHostOrder sorts holdings by their parcels. It is not true, and nothing has changed, where two are on one.
func (m *Planner) inHostOrder(rows []cluster.HoldingID) bool {
	keys := m.keys[:0]
	for _, q := range slices.Backward(rows) { // the newest are listed first, on the last parcels mostly
		keys = append(keys, uint64(m.s.Holding.Parcel[q])<<32|uint64(q))
	}
	if m.keys = keys; !slices.IsSorted(keys) {
		slices.Sort(keys)
	}
	for i := 1; i < len(keys); i++ {
		if keys[i]>>32 == keys[i-1]>>32 {
			return false
		}
	}
	for i, key := range keys {
		rows[i] = cluster.HoldingID(uint32(key))
	}
	return true
}

// subOrder is what the order of eachSub goes by, in one place.
type subOrder struct {
	node         plan.Node
	sub          cluster.SubID
	arrival, seq int64
}

// sortSubs brings sub-allocations of the plan into the order of eachSub. It works in the memory of order, and gives it back.
func (m *Planner) sortSubs(subs []cluster.SubID, order []subOrder) []subOrder {
	u := &m.s.Sub
	order = order[:0]
	for _, sub := range subs {
		order = append(order, subOrder{m.s.Node(sub), sub, m.s.Alloc.Arrival[u.Alloc[sub]], u.Seq[sub]})
	}
	slices.SortFunc(order, func(a, b subOrder) int {
		switch {
		case a.node != b.node:
			return cmp.Compare(a.node, b.node)
		case a.arrival != b.arrival:
			return cmp.Compare(a.arrival, b.arrival)
		}
		return cmp.Compare(a.seq, b.seq)
	})
	for i := range order {
		subs[i] = order[i].sub
	}
	return order
}

// eachSub calls f for every sub-allocation of the plan: consumers in tree order, allocations by arrival.
func (m *Planner) eachSub(f func(sub cluster.SubID)) {
	for leaf := range m.p.FirstAlloc {
		m.eachSubOf(plan.Node(leaf), f)
	}
}

// eachSubOf calls f for those of a leaf.
func (m *Planner) eachSubOf(leaf plan.Node, f func(sub cluster.SubID)) {
	for a := m.p.FirstAlloc[leaf]; a != cluster.NoID; a = m.s.Alloc.Next[a] {
		for sub := m.s.Alloc.First[a]; sub != cluster.NoID; sub = m.s.Sub.Next[sub] {
			f(sub)
		}
	}
}

func (m *Planner) key(k *decision.Key, sub cluster.SubID) {
	k.Add(m.p.Index, int32(m.s.Sub.Consumer[sub]), m.s.Alloc.Name[m.s.Sub.Alloc[sub]], m.s.Sub.Name[sub])
}

// EmitOwnership adds the parts of hosts that changed in this cycle: of each what went, then what came. O(changes).
func (m *Planner) EmitOwnership(t *decision.Ownership) {
	rows := 0
	m.eachMoved(func(_ *change, _ int32, _ int, _ int64) { rows++ })
	at := t.Extend(rows)
	m.eachMoved(func(one *change, action int32, d int, amount int64) {
		t.Plan.Code[at], t.Consumer.Code[at], t.Host.Code[at] = m.p.Index, int32(one.consumer), int32(one.host)
		t.Action.Code[at], t.Dimension.Code[at], t.Amount[at] = action, int32(d), amount
		at++
	})
}

// eachMoved calls f for what went and what came of the parts of hosts that changed in this cycle, by dimension.
func (m *Planner) eachMoved(f func(one *change, action int32, d int, amount int64)) {
	for i := range m.owners.changes {
		one, dims := &m.owners.changes[i], len(m.p.Parcels.Cap)
		by := m.owners.by[i*dims : (i+1)*dims]
		for d, v := range by {
			if v < 0 {
				f(one, decision.ActionTrimmed, d, -v)
			}
		}
		for d, v := range by {
			if v > 0 {
				f(one, decision.ActionAssigned, d, v)
			}
		}
	}
}

// EmitStates adds the plan's rows to consumers, amounts and shares.
func (m *Planner) EmitStates(c *decision.Cycle) {
	members, rows := 0, 0
	for n := plan.Root + 1; int(n) < m.policy.Len(); n++ {
		if m.p.Terms.Member[n] {
			members++
		}
	}
	for i := range m.pools.list {
		o := &m.pools.list[i]
		for n := o.node + 1; n < o.end; n++ {
			if m.shows(o, n) {
				rows++
			}
		}
	}
	row := c.Consumers.ExtendMD(members)
	amount, part := c.Amounts.Extend(members*len(m.policy.Dimensions)), c.Shares.Extend(rows)
	cluster.Both(rows >= 1<<8, func() {
		m.eachMember(func(n plan.Node, id int32) {
			m.emitConsumer(&c.Consumers, row, n, id)
			row++
			for d := range m.policy.Dimensions {
				m.emitAmount(&c.Amounts, amount, n, id, d)
				amount++
			}
		})
	}, func() {
		m.eachMember(func(n plan.Node, id int32) {
			for _, o := range m.poolsAbove(n) {
				if m.shows(o, n) {
					m.emitShare(&c.Shares, part, o, n, id)
					part++
				}
			}
		})
	})
}

// eachMember calls f for the consumers that take part in the plan but the root, in tree order.
func (m *Planner) eachMember(f func(n plan.Node, id int32)) {
	for n := plan.Root + 1; int(n) < m.policy.Len(); n++ {
		if m.p.Terms.Member[n] {
			f(n, int32(m.s.ConsumerOf[n]))
		}
	}
}

// shows tells whether a consumer in a pool has a row in the table shares.
func (m *Planner) shows(o *pool, n plan.Node) bool {
	at := o.at(n)
	return m.p.Terms.Member[n] && (m.pools.wanted[at] > 0 || m.pools.held[at] > 0)
}

// poolsAbove is the pools of the consumers above one, from the root down. The slice is borrowed until the next call.
func (m *Planner) poolsAbove(n plan.Node) []*pool {
	m.above = m.above[:0]
	m.eachPoolAbove(n, func(o *pool) { m.above = append(m.above, o) })
	slices.Reverse(m.above)
	return m.above
}

func (m *Planner) emitConsumer(t *decision.Consumers, at int, n plan.Node, id int32) {
	t.Plan.Code[at], t.Consumer.Code[at], t.Policy.Code[at] = m.p.Index, id, decision.PolicyMD
	t.Rank[at], t.Demand[at], t.Held[at] = int64(m.set.Rank[n]), m.wanted[n], m.held[n]
	t.Short[at] = max(0, m.wanted[n]-m.held[n])
}

func (m *Planner) emitAmount(t *decision.Amounts, at int, n plan.Node, id int32, d int) {
	limit := m.set.Limit[d][n]
	t.Plan.Code[at], t.Consumer.Code[at], t.Dimension.Code[at] = m.p.Index, id, int32(d)
	t.Configured[at], t.Owned[at], t.Reserved[at] = m.owns(n, d)
	t.Held[at], t.Lent[at], t.StaticQuota[at] = m.amounts.held[d][n], m.amounts.lent[d][n], m.amounts.quota[d][n]
	t.Limit[at], t.LimitNull[at] = max(limit, 0), limit == plan.Unlimited
}

func (m *Planner) emitShare(t *decision.Shares, row int, o *pool, n plan.Node, id int32) {
	at := o.at(n)
	t.Plan.Code[row], t.Consumer.Code[row], t.Pool.Code[row] = m.p.Index, id, int32(o.id)
	t.Ratio[row], t.Priority[row] = m.set.Ratio[n], int64(m.set.Priority[n])
	t.Usage[row], t.UsageDemand[row] = share.Float(m.pools.usage[at]), share.Float(m.pools.demand[at])
	t.UsageQuota[row] = share.Float(m.pools.quota[at])
	t.UnitsHeld[row], t.UnitsWanted[row] = m.pools.held[at], m.pools.wanted[at]
}

// EmitShortfalls explains every sub-allocation of the plan that is short, as judgeShort found. details
// takes the texts of the column detail. It returns the units that are short. O(sub-allocations that are short).
func (m *Planner) EmitShortfalls(t *decision.Shortfalls, details *cluster.Names) (units int64) {
	r := &m.reason
	r.last = nil
	at, next := t.Extend(r.rows), 0
	for _, sub := range r.short {
		short := m.s.Short(sub)
		waits := min(short, m.promise.units[sub])
		if waits > 0 {
			m.emitShortfall(t, at, details, sub, waits, m.waiting(sub))
			at++
		}
		if short > waits {
			m.emitShortfall(t, at, details, sub, short-waits, m.why(&r.subs[next]))
			at, next = at+1, next+1
		}
		units = share.Add(units, short)
	}
	return units
}

func (m *Planner) emitShortfall(t *decision.Shortfalls, at int, details *cluster.Names, sub cluster.SubID, units int64, r reason) {
	a, blocker, detail := m.s.Sub.Alloc[sub], decision.Null, decision.Null
	if r.blocker != plan.None {
		blocker = int32(m.s.ConsumerOf[r.blocker])
	}
	if r.detail != "" {
		detail = details.InternString(r.detail)
	}
	t.Plan.Code[at], t.Consumer.Code[at], t.Allocation.Code[at] = m.p.Index, int32(m.s.Sub.Consumer[sub]), m.s.Alloc.Name[a]
	t.Sub.Code[at], t.UnitsShort[at], t.Reason.Code[at] = m.s.Sub.Name[sub], units, r.code
	t.Dimension.Code[at], t.Blocker.Code[at], t.Detail.Code[at] = r.dimension, blocker, detail
	t.Until[at], t.UntilNull[at] = r.until, r.until == 0
}

// EmitKeyframe adds the plan's rows to the keyframe tables.
func (m *Planner) EmitKeyframe(c *decision.Cycle) {
	h := &c.Holdings
	var rows []cluster.HoldingID
	emit := func(sub cluster.SubID) {
		rows = rows[:0]
		for q := m.s.Sub.First[sub]; q != cluster.NoID; q = m.s.Holding.NextOfSub[q] {
			rows = append(rows, q)
		}
		slices.SortFunc(rows, func(a, b cluster.HoldingID) int {
			return cmp.Or(cmp.Compare(m.s.Holding.Parcel[a], m.s.Holding.Parcel[b]), cmp.Compare(m.s.Holding.Granted[a], m.s.Holding.Granted[b]))
		})
		for i, q := range rows {
			if i > 0 && m.s.Holding.Parcel[q] == m.s.Holding.Parcel[rows[i-1]] && m.s.Holding.Granted[q] == m.s.Holding.Granted[rows[i-1]] {
				h.Units[len(h.Units)-1] += m.s.Holding.Units[q] // a part of it is under reclaim
				continue
			}
			m.key(&h.Key, sub)
			h.Source.Add(int32(m.s.Sub.Source[sub]))
			h.Host.Add(int32(m.p.Parcels.Host[m.s.Holding.Parcel[q]]))
			h.Units = append(h.Units, m.s.Holding.Units[q])
			h.Origin.Add(m.s.Holding.Origin[q])
			h.Pool.Add(int32(m.s.Holding.Pool[q]))
			h.Lender.Add(int32(m.s.Holding.Lender[q]))
			h.Granted = append(h.Granted, m.s.Holding.Granted[q])
		}
	}
	m.eachSub(emit)
	m.s.EachOrphan(m.p, emit)
	o, p := &c.Hosts, &m.p.Parcels
	for k, end := cluster.ParcelID(0), cluster.ParcelID(0); int(k) < p.Len(); k = end {
		end = p.End(k)
		for d := range m.policy.Dimensions {
			o.Plan.Add(m.p.Index)
			o.Host.Add(int32(p.Host[k]))
			o.State.Add(int32(m.s.Host.State[p.Host[k]]))
			o.Dimension.Add(int32(d))
			var whole, free int64
			for i := k; i < end; i++ {
				whole, free = whole+p.Cap[d][i], free+p.Free[d][i]
			}
			o.Capacity = append(o.Capacity, whole)
			o.Used = append(o.Used, whole-free)
		}
	}
	m.emitOwners(&c.Owners)
}

// emitOwners adds who owns what, and by which rule, in which order it came, how long the last pass is ago: with these a reader can make the
// next pass.
func (m *Planner) emitOwners(t *decision.Owners) {
	for i, consumer := range m.p.Deeds.Consumer {
		for d, column := range m.p.Deeds.Amount {
			if column[i] == 0 {
				continue
			}
			t.Plan.Add(m.p.Index)
			t.Consumer.Add(int32(consumer))
			t.Host.Add(int32(m.p.Deeds.Host[i]))
			t.Dimension.Add(int32(d))
			t.Rule, t.Part = append(t.Rule, int64(m.p.Deeds.Rule[i])+1), append(t.Part, m.p.Deeds.Number[i]+1)
			t.Since, t.Amount = append(t.Since, int64(m.p.Since)), append(t.Amount, column[i])
		}
	}
}
