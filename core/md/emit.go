package md

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// EmitGrants adds the units given in this cycle, in the order of D-14. It returns
// their number. O(grants), when some went to takers O(holdings).
func (m *Planner) EmitGrants(g *decision.Grants) (units int64) {
	rows := m.grant.booked
	if m.promise.moved || m.p.Parcels.Owned {
		rows = m.grantedNow() // there were several steps, or some of those booked are gone
	}
	h, at := &m.s.Holding, g.Extend(len(rows))
	var plans, consumer, allocation, name, source int32
	last := cluster.SubID(cluster.NoID)
	for _, q := range rows {
		if sub := h.Sub[q]; sub != last {
			a := m.s.Sub.Alloc[sub]
			plans, consumer, allocation = m.p.Index, int32(m.s.Sub.Consumer[sub]), m.s.Alloc.Name[a]
			name, source, last = m.s.Sub.Name[sub], int32(m.s.Sub.Source[sub]), sub
		}
		g.Plan.Code[at], g.Consumer.Code[at], g.Allocation.Code[at], g.Sub.Code[at] = plans, consumer, allocation, name
		g.Source.Code[at], g.Host.Code[at] = source, int32(m.p.Parcels.Host[h.Parcel[q]])
		g.Origin.Code[at], g.Pool.Code[at], g.Lender.Code[at] = h.Origin[q], int32(h.Pool[q]), int32(h.Lender[q])
		g.Units[at] = h.Units[q]
		units += h.Units[q]
		at++
	}
	return units
}

// grantedNow lists the holdings of this cycle's grants, those of one sub-allocation and parcel made one.
func (m *Planner) grantedNow() (rows []cluster.HoldingID) {
	h := &m.s.Holding
	m.eachSub(func(sub cluster.SubID) {
		first := len(rows)
		for q := m.s.Sub.First[sub]; q != cluster.NoID; q = h.NextOfSub[q] {
			if h.Granted[q] > m.s.Cycle && h.Set[q] == cluster.NoID {
				rows = append(rows, q)
			}
		}
		slices.SortFunc(rows[first:], func(a, b cluster.HoldingID) int { return cmp.Compare(h.Parcel[a], h.Parcel[b]) })
		for i := first + 1; i < len(rows); {
			if h.Parcel[rows[i]] == h.Parcel[rows[i-1]] {
				m.s.Merge(rows[i-1], rows[i])
				rows = slices.Delete(rows, i, i+1)
			} else {
				i++
			}
		}
	})
	return rows
}

// eachSub calls f for every sub-allocation of the plan: consumers in tree order, allocations by arrival.
func (m *Planner) eachSub(f func(sub cluster.SubID)) {
	for leaf := range m.p.FirstAlloc {
		for a := m.p.FirstAlloc[leaf]; a != cluster.NoID; a = m.s.Alloc.Next[a] {
			for sub := m.s.Alloc.First[a]; sub != cluster.NoID; sub = m.s.Sub.Next[sub] {
				f(sub)
			}
		}
	}
}

func (m *Planner) key(k *decision.Key, sub cluster.SubID) {
	k.Add(m.p.Index, int32(m.s.Sub.Consumer[sub]), m.s.Alloc.Name[m.s.Sub.Alloc[sub]], m.s.Sub.Name[sub])
}

// EmitStates adds the plan's rows to consumers, amounts and shares.
func (m *Planner) EmitStates(c *decision.Cycle) {
	for n := plan.Root + 1; int(n) < m.policy.Len(); n++ {
		if !m.p.Terms.Member[n] {
			continue
		}
		id := int32(m.s.ConsumerOf[n])
		m.emitConsumer(&c.Consumers, n, id)
		m.emitAmounts(&c.Amounts, n, id)
		for _, o := range m.poolsAbove(n) {
			if at := o.at(n); m.pools.wanted[at] > 0 || m.pools.held[at] > 0 {
				m.emitShare(&c.Shares, o, n, id)
			}
		}
	}
}

// poolsAbove is the pools of the consumers above one, from the root down. The slice is borrowed until the next call.
func (m *Planner) poolsAbove(n plan.Node) []*pool {
	m.above = m.above[:0]
	for n = m.policy.Parent[n]; n != plan.None; n = m.policy.Parent[n] {
		if m.pools.index[n] != cluster.NoID {
			m.above = append(m.above, m.poolAt(n))
		}
	}
	slices.Reverse(m.above)
	return m.above
}

func (m *Planner) emitConsumer(t *decision.Consumers, n plan.Node, id int32) {
	t.Plan.Add(m.p.Index)
	t.Consumer.Add(id)
	t.Policy.Add(decision.PolicyMD)
	t.Rank = append(t.Rank, int64(m.set.Rank[n]))
	t.Demand = append(t.Demand, m.wanted[n])
	t.Held = append(t.Held, m.held[n])
	t.Short = append(t.Short, max(0, m.wanted[n]-m.held[n]))
	t.AddNoSlots()
}

func (m *Planner) emitAmounts(t *decision.Amounts, n plan.Node, id int32) {
	for d := range m.policy.Dimensions {
		limit := m.set.Limit[d][n]
		t.Plan.Add(m.p.Index)
		t.Consumer.Add(id)
		t.Dimension.Add(int32(d))
		configured, owned, reserved := m.owns(n, d)
		t.Configured = append(t.Configured, configured)
		t.Owned = append(t.Owned, owned)
		t.Reserved = append(t.Reserved, reserved)
		t.Held = append(t.Held, m.amounts.held[d][n])
		t.Lent = append(t.Lent, m.amounts.lent[d][n])
		t.StaticQuota = append(t.StaticQuota, m.amounts.quota[d][n])
		t.Limit = append(t.Limit, max(limit, 0))
		t.LimitNull = append(t.LimitNull, limit == plan.Unlimited)
	}
}

func (m *Planner) emitShare(t *decision.Shares, o *pool, n plan.Node, id int32) {
	at := o.at(n)
	t.Plan.Add(m.p.Index)
	t.Consumer.Add(id)
	t.Pool.Add(int32(o.id))
	t.Ratio = append(t.Ratio, m.set.Ratio[n])
	t.Priority = append(t.Priority, int64(m.set.Priority[n]))
	t.Usage = append(t.Usage, share.Float(m.pools.usage[at]))
	t.UsageDemand = append(t.UsageDemand, share.Float(m.pools.demand[at]))
	t.UsageQuota = append(t.UsageQuota, share.Float(m.pools.quota[at]))
	t.UnitsHeld = append(t.UnitsHeld, m.pools.held[at])
	t.UnitsWanted = append(t.UnitsWanted, m.pools.wanted[at])
}

// EmitShortfalls explains every sub-allocation of the plan that is short. details
// takes the texts of the column detail. It returns the units that are short. Cost: judge.
func (m *Planner) EmitShortfalls(t *decision.Shortfalls, details *cluster.Names) (units int64) {
	m.grant.Planner = m
	r := &m.reason
	r.last, r.subs = nil, r.subs[:0]
	m.eachSub(func(sub cluster.SubID) {
		if short := m.s.Short(sub); short > 0 && short > m.promise.units[sub] {
			leaf := m.s.Node(sub)
			r.subs = append(r.subs, judged{sub: sub, leaf: leaf, ask: ask{m.s.Sub.Shape[sub], m.s.Sub.Need[sub]}, stop: m.stops(leaf, sub)})
		}
	})
	m.judge(r.subs)
	next := 0
	m.eachSub(func(sub cluster.SubID) {
		short := m.s.Short(sub)
		if short == 0 {
			return
		}
		waits := min(short, m.promise.units[sub])
		if waits > 0 {
			m.emitShortfall(t, details, sub, waits, m.waiting(sub))
		}
		if short > waits {
			m.emitShortfall(t, details, sub, short-waits, m.why(&r.subs[next]))
			next++
		}
		units = share.Add(units, short)
	})
	return units
}

func (m *Planner) emitShortfall(t *decision.Shortfalls, details *cluster.Names, sub cluster.SubID, units int64, r reason) {
	m.key(&t.Key, sub)
	t.UnitsShort = append(t.UnitsShort, units)
	t.Reason.Add(r.code)
	t.Dimension.Add(r.dimension)
	blocker, detail := int32(decision.Null), decision.Null
	if r.blocker != plan.None {
		blocker = int32(m.s.ConsumerOf[r.blocker])
	}
	if r.detail != "" {
		detail = details.InternString(r.detail)
	}
	t.Blocker.Add(blocker)
	t.Detail.Add(detail)
	t.Until = append(t.Until, r.until)
	t.UntilNull = append(t.UntilNull, r.until == 0)
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
