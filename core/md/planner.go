// Package md carries out multidimensional plans (SPEC chapter 4): capacities and
// shares of pools, fair granting, quotas and the reasons of shortfalls. A Planner
// is one plan's stages; core/cycle calls them in order.
package md

import (
	"math/bits"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/place"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
	"github.com/stintd/stint/vecpack"
)

// Planner carries out one MD plan. Between cycles it keeps what depends on the
// plan alone: classes of equal hosts, capacities by shape, usages, the parcels'
// order, and scratch memory. A new Planner decides the same as an old one; it
// only has more to compute.
type Planner struct {
	Subs int64 // sub-allocations of the plan, as of the last Count

	s      *cluster.State
	p      *cluster.Plan
	policy *plan.Policy
	set    *plan.MDWindow

	desk     place.Desk
	capacity capacities

	// By Node, of the public pool.
	usage  []int64   // share usage (MD-12)
	pooled [][]int64 // by dimension: amount held and not under reclaim; empty when nothing is limited
	// Like pooled, once the cycle has taken back and promised all that it may.
	claimed [][]int64

	wanted []int64 // units
	held   []int64

	nowUS    int64
	budget   int64 // units that this cycle may still put under reclaim
	promise  promises
	fairness fairs
	grant    granter
	quota    quotas
	reason   reasons
	amounts  amounts
}

// Attach points the planner at a state and the plan it is to carry out. Cheap.
func (m *Planner) Attach(s *cluster.State, p *cluster.Plan, nowUS int64) {
	m.nowUS = nowUS
	m.s, m.p, m.policy, m.set = s, p, s.Policy, &p.MD.Windows[p.Window]
}

// Own brings the parcels' order up to the hosts (stage own). Nobody owns anything
// yet: every parcel is public.
func (m *Planner) Own() { m.desk.Sync(m.s, m.p) }

// Entitle computes the capacity of the pool in units of every shape in use
// (MD-11) and the shares that are held or promised (MD-12, CYC-7). O(classes of hosts × shapes).
func (m *Planner) Entitle() {
	m.capacity.sync(m.s, m.p)
	n := m.policy.Len()
	m.returned()
	m.tally()
	m.pooled = m.pooled[:0]
	if !m.limited() {
		return
	}
	for d := range m.policy.Dimensions {
		held := make([]int64, n)
		for q, leaf := range m.p.Pairs.Leaf {
			stays := m.promise.net[q]
			held[leaf] = share.Add(held[leaf], share.Mul(stays, m.s.Shape.Size(m.p.Pairs.Shape[q])[d]))
		}
		m.sumUp(held)
		m.pooled = append(m.pooled, held)
	}
	m.restore()
}

// limited tells whether the plan sets any share limit, or a ratio of 0, which
// counts as a limit of 0 (MD-18).
func (m *Planner) limited() bool {
	for id, number := range m.s.Set.Number {
		if number > 0 && m.s.Set.Plan[id] == m.p.Index && m.s.Set.Reason[id] == decision.ReclaimOverLimit {
			return true // under way for a limit that may be gone
		}
	}
	for n, in := range m.p.Terms.Member {
		if in && m.set.Ratio[n] == 0 && n != int(plan.Root) {
			return true
		}
	}
	for _, column := range m.set.Limit {
		for n, v := range column {
			if v != plan.Unlimited && m.p.Terms.Member[n] {
				return true
			}
		}
	}
	return false
}

// sumUp adds every consumer's figure to its parent's, from the leaves up. O(consumers).
func (m *Planner) sumUp(figure []int64) {
	for n := len(figure) - 1; n > 0; n-- {
		p := m.policy.Parent[n]
		figure[p] = share.Add(figure[p], figure[n])
	}
}

// Settle computes the figures that the tables of states show, when the plan changed, and gives
// the plan's sub-allocations.
func (m *Planner) Settle() (subAllocations int64) {
	if m.p.Dirty {
		m.use()
		m.Quota()
		m.Amounts()
		m.Count()
	}
	return m.Subs
}

// use adds up the shares that are held (MD-12).
func (m *Planner) use() {
	m.usage = zeroed(m.usage, m.policy.Len())
	for q, leaf := range m.p.Pairs.Leaf {
		m.usage[leaf] = share.Add(m.usage[leaf], share.Fraction(m.p.Pairs.Units[q], m.capacity.of(m.p.Pairs.Shape[q])))
	}
	m.sumUp(m.usage)
}

// Count adds up what every consumer wants and holds, in units, and the plan's
// sub-allocations in Subs.
func (m *Planner) Count() {
	n := m.policy.Len()
	m.wanted, m.held, m.Subs = zeroed(m.wanted, n), zeroed(m.held, n), 0
	m.eachSub(func(sub cluster.SubID) {
		leaf := m.s.Node(sub)
		m.wanted[leaf] = share.Add(m.wanted[leaf], m.s.Sub.Wanted[sub])
		m.held[leaf] += m.s.Sub.Held[sub]
		m.Subs++
	})
	m.sumUp(m.wanted)
	m.sumUp(m.held)
}

// capacities is the public pool's capacity in units of each shape (MD-11).
type capacities struct {
	class  cluster.Shapes // distinct capacity vectors of the pool's parcels
	column [][]int64      // by dimension, then class
	count  []int64        // parcels of the class
	units  []int64        // by ShapeID; unknown where not computed
	vector []int64
}

const unknown = -1

// of is the capacity for a shape in use.
func (c *capacities) of(shape cluster.ShapeID) int64 { return c.units[shape] }

// sync recounts the classes when parcels changed and computes the capacity of
// shapes that are new since. Closed parcels count with what is held on them (D-4).
func (c *capacities) sync(s *cluster.State, p *cluster.Plan) {
	if p.Rebuilt || p.Resized || c.column == nil || shutChanged(p) {
		c.recount(p, len(s.Policy.Dimensions))
	}
	for len(c.units) < s.Shape.Len() {
		c.units = append(c.units, unknown)
	}
	for _, shape := range p.Pairs.Shape {
		if c.units[shape] == unknown {
			c.units[shape] = vecpack.Capacity(c.column, s.Shape.Size(shape), c.count)
		}
	}
}

// shutChanged tells whether what is held on a parcel that is not open changed.
func shutChanged(p *cluster.Plan) bool {
	for _, k := range p.Changed {
		if !p.Parcels.IsOpen(k) {
			return true
		}
	}
	return false
}

// recount sorts the parcels into classes of equal capacity. O(parcels × dimensions).
func (c *capacities) recount(p *cluster.Plan, dims int) {
	c.class, c.count, c.units = cluster.NewShapes(dims), c.count[:0], c.units[:0]
	c.column = make([][]int64, dims)
	c.vector = zeroed(c.vector, dims)
	for k := range p.Parcels.Len() {
		open := p.Parcels.IsOpen(cluster.ParcelID(k))
		for d := range dims {
			c.vector[d] = p.Parcels.Cap[d][k]
			if !open {
				c.vector[d] -= p.Parcels.Free[d][k]
			}
		}
		i := int(c.class.Intern(c.vector))
		if i == len(c.count) {
			c.count = append(c.count, 0)
			for d, v := range c.vector {
				c.column[d] = append(c.column[d], v)
			}
		}
		c.count[i]++
	}
}

// empty tells whether a bitset has no bit.
func empty(set []uint64) bool {
	for _, w := range set {
		if w != 0 {
			return false
		}
	}
	return true
}

// popcount is the number of bits of a bitset.
func popcount(set []uint64) (n int) {
	for _, w := range set {
		n += bits.OnesCount64(w)
	}
	return n
}

// zeroed is s with n zeros, in its own memory when that is large enough.
func zeroed[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}
