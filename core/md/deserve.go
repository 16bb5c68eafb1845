package md

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// deserved are the quotas that steer fair reclaim (MD-17): those of MD-14, by what is net. They are computed before sets are reviewed,
// and again before anything is taken back for a share.
type deserved struct {
	demand, quota []int64 // by pool and consumer: see pool.at
	asked         []bool  // by number of the pool: its quotas are
	divider       quotas
}

// deserveOf computes the quotas of the pools of which some sets take for a share.
func (m *Planner) deserveOf(ids []cluster.SetID) {
	if len(ids) == 0 {
		return
	}
	v := &m.fairness.deserved
	v.asked = zeroed(v.asked, len(m.pools.list))
	for _, id := range ids {
		v.asked[m.pools.index[m.meet(m.s.Node(m.s.Set.Taker[id]), m.s.Aim(id))]] = true
	}
	for i, asked := range v.asked {
		if o := &m.pools.list[i]; asked {
			m.refresh(o, &m.grant.renew)
			m.freshen(o)
			m.weigh(o)
		}
	}
	m.canvass()
	m.deserve()
}

// deserve computes the quotas of the pools that are asked for, of which the stakes are kept. O(sub-allocations × depth + consumers in the pools ×
// log children).
func (m *Planner) deserve() {
	v, u := &m.fairness.deserved, &m.s.Sub
	v.demand, v.quota = zeroed(v.demand, len(m.pools.stake)), zeroed(v.quota, len(m.pools.stake))
	m.laySources()
	for sub, a := range u.Alloc {
		if a != cluster.NoID && u.Plan[sub] == m.p.Index && !u.Orphan[sub] {
			m.demandOf(cluster.SubID(sub), m.s.NodeOf[u.Consumer[sub]])
		}
	}
	for i, asked := range v.asked {
		o := &m.pools.list[i]
		if !asked {
			continue
		}
		m.sumIn(o, v.demand)
		v.quota[o.figures] = m.pools.stake[o.figures]
		for node := o.node; node < o.end; node++ {
			if m.policy.First[node] != plan.None && v.quota[o.at(node)] > 0 {
				v.divider.divide(m, o, node, v.demand, v.quota)
			}
		}
	}
}

// demandOf adds the usage demand of a sub-allocation (MD-13) to that of its leaf, in the pools that are asked for.
func (m *Planner) demandOf(sub cluster.SubID, leaf plan.Node) {
	v, u := &m.fairness.deserved, &m.s.Sub
	for _, from := range m.census.of(leaf) {
		if !v.asked[from.pool] {
			continue
		}
		held := u.Held[sub]
		if short := max(0, u.Wanted[sub]-held); held+short > 0 {
			if m.p.Parcels.Owned {
				held = m.drawnFrom(sub, &m.pools.list[from.pool], int(from.depth))
			}
			if at := &v.demand[from.at]; held+short > 0 {
				*at = share.Add(*at, share.Demand(held+short, m.capacity(&m.pools.list[from.pool], u.Shape[sub])))
			}
		}
	}
}

// drawnFrom is what a sub-allocation holds from a pool: as the census has it, but for those that lost units since, of which
// there are few.
func (m *Planner) drawnFrom(sub cluster.SubID, o *pool, depth int) (units int64) {
	h := &m.s.Holding
	if !m.fairness.undone[sub] {
		return m.census.drawn[int(sub)*m.census.depths+depth]
	}
	for q := m.s.Sub.First[sub]; q != cluster.NoID; q = h.NextOfSub[q] {
		if h.Pool[q] == o.id {
			units += h.Units[q]
		}
	}
	return units
}

// deficit is how far a leaf is below its quota in a pool by what is net. A surplus is below 0.
func (m *Planner) deficit(o *pool, leaf plan.Node) int64 {
	at := o.at(leaf)
	return m.fairness.deserved.quota[at] - m.pools.stake[at]
}

// band is how far a leaf must be from its quota before a unit of its own that counts so much moves for that.
func (m *Planner) band(o *pool, leaf plan.Node, unit int64) int64 {
	return share.Band(m.fairness.deserved.quota[o.at(leaf)], unit, m.p.MD.FairBandMilli)
}
