package md

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// census is what one pass over the holdings, as they stand in memory, tells: there are many more of them than of anything else, and their
// lists lead all over it. It is kept from cycle to cycle, and brought up by what flowed meanwhile.
type census struct {
	depths int
	depth  []int32 // by ConsumerID
	drawn  []int64 // by SubID, then depth: units held from the pool of the consumer of that depth above it
	lent   []int64 // by Node of the lender, depth of the pool, then dimension: what is held on its parcels through that
	some   []bool  // by Node: whether anything is lent
	public []int64 // by ShapeID: capacity of the public pool, unknown where nobody asked

	source []source // of all leaves, the nearest first
	first  []int32  // by Node, and one more: where its sources begin; nil: not laid since the pools were

	known bool  // drawn, lent and some are right, of a plan in which anything is owned
	flows int64 // State.Shifts.Flows, as of which they are
}

// sumMax is what a sum is at most, to be brought up by what flowed, or was corrected: far below where sums saturate.
const sumMax = 1 << 62

// source is a pool that exists for a leaf.
type source struct {
	pool  int32 // in pools.list
	depth int32
	at    int32 // where the leaf's figures in it stand
}

// canvass brings the census up to what is held now: by what flowed since the last one, or by a pass over all. O(flows), or O(holdings).
func (m *Planner) canvass() {
	if m.canvassSome(); m.p.Parcels.Owned && !m.census.known {
		m.canvassAll()
	}
}

// canvassSome is canvass as far as it is known by now what flowed; the rest is left for that.
func (m *Planner) canvassSome() {
	if c := &m.census; c.known {
		c.known = m.canvassFlows()
		c.flows = m.s.Shifts.Flows()
	}
}

// canvassFlows adds what flowed since the last census. It is not true when that is not known, or might not come to what a pass gives.
func (m *Planner) canvassFlows() bool {
	c, subs := &m.census, len(m.s.Sub.Wanted)
	flows, ok := m.s.Shifts.Since(c.flows)
	if !c.known || !ok {
		return false
	}
	if was := len(c.drawn); was < subs*c.depths {
		c.drawn = resized(c.drawn, subs*c.depths)
		clear(c.drawn[was:])
	}
	for i := range flows {
		f := &flows[i]
		if f.Plan != m.p.Index || f.Pool == cluster.NoID {
			continue
		}
		depth := int(c.depth[f.Pool])
		c.drawn[int(f.Sub)*c.depths+depth] += f.Units
		if f.Lender == cluster.NoID {
			continue
		}
		at := m.lentBy(f.Lender, depth)
		for d, u := range m.s.Shape.Size(f.Shape) {
			units, sign := f.Units, int64(1)
			if units < 0 {
				units, sign = -units, -1
			}
			amount := share.Mul(units, u)
			if at[d] += sign * amount; amount >= sumMax || at[d] < 0 || at[d] > sumMax {
				return false
			}
		}
	}
	return true
}

// canvassAll makes a pass over the holdings as they stand in memory.
func (m *Planner) canvassAll() {
	c, h, dims := &m.census, &m.s.Holding, len(m.policy.Dimensions)
	c.depths, c.depth = 0, resized(c.depth, len(m.s.NodeOf))
	for id, n := range m.s.NodeOf {
		if n != plan.None {
			c.depth[id], c.depths = m.policy.Depth[n], max(c.depths, int(m.policy.Depth[n])+1)
		}
	}
	c.drawn = zeroed(c.drawn, len(m.s.Sub.Wanted)*c.depths)
	c.lent, c.some = zeroed(c.lent, m.policy.Len()*c.depths*dims), zeroed(c.some, m.policy.Len())
	several := len(m.s.Plans) > 1
	for q, sub := range h.Sub {
		pool := h.Pool[q]
		if sub == cluster.NoID || pool == cluster.NoID || several && m.s.Sub.Plan[sub] != m.p.Index {
			continue
		}
		depth := int(c.depth[pool])
		c.drawn[int(sub)*c.depths+depth] += h.Units[q]
		if lender := h.Lender[q]; lender != cluster.NoID {
			at := m.lentBy(lender, depth)
			for d, u := range m.s.Size(sub) {
				at[d] = share.Add(at[d], share.Mul(h.Units[q], u))
			}
		}
	}
	c.known, c.flows = true, m.s.Shifts.Flows()
	for _, amount := range c.lent {
		c.known = c.known && amount <= sumMax
	}
}

// lentBy is what is held on a lender's parcels through the pool of a depth, by dimension.
func (m *Planner) lentBy(lender cluster.ConsumerID, depth int) []int64 {
	c, n, dims := &m.census, int(m.s.NodeOf[lender]), len(m.policy.Dimensions)
	c.some[n] = true
	return c.lent[(n*c.depths+depth)*dims:][:dims]
}

// capacityNow is a pool's capacity in units of a shape in use, after canvass, for those who add up figures. Most ask for the public pool's.
func (m *Planner) capacityNow(o *pool, shape cluster.ShapeID) int64 {
	if o.node != plan.Root {
		return m.capacityOf(o, shape)
	}
	units := &m.census.public[shape]
	if *units == unknown {
		*units = m.capacityOf(o, shape)
	}
	return *units
}

// lend adds up what is held on parcels by outsiders of those that own them: of all that lend them, up to the pool.
func (m *Planner) lend() {
	c, dims := &m.census, len(m.policy.Dimensions)
	if !m.p.Parcels.Owned {
		return
	}
	for node, some := range c.some {
		if !some {
			continue
		}
		for n := plan.Node(node); n != plan.Root; n = m.policy.Parent[n] {
			at := c.lent[node*c.depths*dims:][:int(m.policy.Depth[n])*dims] // of the pools above it
			for i, amount := range at {
				m.amounts.lent[i%dims][n] = share.Add(m.amounts.lent[i%dims][n], amount)
			}
		}
	}
}

// lendSince corrects that by what flowed after the first so many flows. It is false where it may not be corrected.
func (m *Planner) lendSince(flows int64) bool {
	since, ok := m.s.Shifts.Since(flows)
	if !ok {
		return false
	}
	for i := range since {
		f := &since[i]
		if f.Plan != m.p.Index || f.Pool == cluster.NoID || f.Lender == cluster.NoID {
			continue
		}
		pool := m.s.NodeOf[f.Pool]
		for d, u := range m.s.Shape.Size(f.Shape) {
			lent, amount := m.amounts.lent[d], share.Mul(max(f.Units, -f.Units), u)
			if f.Units < 0 {
				amount = -amount
			}
			for n := m.s.NodeOf[f.Lender]; m.policy.Depth[n] > m.policy.Depth[pool]; n = m.policy.Parent[n] {
				if lent[n] >= sumMax || amount >= sumMax {
					return false
				}
				lent[n] += amount
			}
		}
	}
	return true
}

// countAll adds up what every leaf wants and holds, in units, in all and in each pool, and the usage demands (MD-13): of the
// sub-allocations as they stand in memory, of which so much is held. O(sub-allocations × depth).
func (m *Planner) countAll(held []int64) {
	n, p, u := m.policy.Len(), &m.pools, &m.s.Sub
	m.wanted, m.held = zeroed(m.wanted, n), zeroed(m.held, n)
	clear(p.wanted)
	clear(p.held)
	clear(p.demand)
	for i := range p.list {
		p.list[i].short = false
	}
	m.laySources()
	for sub, a := range u.Alloc {
		if a == cluster.NoID || u.Plan[sub] != m.p.Index || u.Orphan[sub] {
			continue
		}
		m.countSub(cluster.SubID(sub), m.s.NodeOf[u.Consumer[sub]], held[sub])
	}
}

// countSub is countAll for a sub-allocation that holds so much.
func (m *Planner) countSub(sub cluster.SubID, leaf plan.Node, all int64) {
	p, wanted := &m.pools, m.s.Sub.Wanted[sub]
	m.wanted[leaf] = share.Add(m.wanted[leaf], wanted)
	m.held[leaf] += all
	short, sources := max(0, wanted-all), m.census.of(leaf)
	for i := range sources {
		from, held := &sources[i], all
		if m.p.Parcels.Owned {
			held = m.census.drawn[int(sub)*m.census.depths+int(from.depth)]
		}
		if held+short == 0 {
			continue
		}
		o := &p.list[from.pool]
		p.wanted[from.at], p.held[from.at] = share.Add(p.wanted[from.at], held+short), p.held[from.at]+held
		p.demand[from.at] = share.Add(p.demand[from.at], share.Demand(held+short, m.capacityNow(o, m.s.Sub.Shape[sub])))
		o.short = o.short || short > 0
	}
}

// of is the sources of a leaf, after laySources.
func (c *census) of(leaf plan.Node) []source { return c.source[c.first[leaf]:c.first[leaf+1]] }

// laySources lists the pools that exist for each leaf, unless that is done. O(consumers × depth).
func (m *Planner) laySources() {
	c := &m.census
	if c.first != nil {
		return
	}
	c.source, c.first = c.source[:0], make([]int32, 0, m.policy.Len()+1)
	for leaf := range plan.Node(m.policy.Len()) {
		c.first = append(c.first, int32(len(c.source)))
		for n := m.policy.Parent[leaf]; n != plan.None && m.policy.Leaf(leaf); n = m.policy.Parent[n] {
			if i := m.pools.index[n]; i != cluster.NoID && m.exists(&m.pools.list[i], leaf) {
				c.source = append(c.source, source{i, m.policy.Depth[n], m.pools.list[i].at(leaf)})
			}
		}
	}
	c.first = append(c.first, int32(len(c.source)))
}
