package pool

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// Figures are what the consumers in one pool have of it, by their place in the tree less the pool's consumer's.
type Figures struct {
	Pool   plan.Node
	Held   []int64 // units
	Wanted []int64 // units: those held, and those outstanding
	Usage  []int64 // share usage (MD-12)
	Demand []int64 // usage demand (MD-13)
	Quota  []int64 // usage quota (MD-14)

	staying []int64 // share usage of what is not under reclaim
	claims  claims
	divider share.Divider
	family  family
}

// Book is the figures of all pools of a plan.
type Book struct {
	List    []plan.Node // whose pools there are: Env.List
	figures []Figures
	at      []int32 // by node: in figures, -1: it has no pool
}

// Sum adds up the figures of all pools as things are held now, with what sets promise.
func (b *Book) Sum(e *Env, promises *Promises) {
	b.List, b.at = e.List(), column.Zeros(b.at, e.State.Policy.Len())
	for n := range b.at {
		b.at[n] = -1
	}
	for len(b.figures) < len(b.List) {
		b.figures = append(b.figures, Figures{})
	}
	limits := NewLimits(e, promises)
	for i, n := range b.List {
		b.at[n] = int32(i)
		b.figures[i].Sum(e, n, promises, limits)
	}
}

// Of is the figures of a consumer's pool, nil where it has none.
func (b *Book) Of(n plan.Node) *Figures {
	if b.at[n] < 0 {
		return nil
	}
	return &b.figures[b.at[n]]
}

// family is the children of a consumer in a plan while something is divided among them.
type family struct {
	node              []plan.Node
	priority          []int32
	ratio, limit, out []int64
}

// Sum adds up the figures of one pool as things are held now, with what sets promise. O(consumers of the
// pool × log, and their sub-allocations).
func (f *Figures) Sum(e *Env, pool plan.Node, promises *Promises, limits *Limits) {
	t := e.State.Policy
	f.Pool = pool
	n := int(t.End[pool] - pool)
	for _, figure := range []*[]int64{&f.Held, &f.Wanted, &f.Usage, &f.staying} {
		*figure = column.Zeros(*figure, n)
	}
	for leaf := pool; leaf < t.End[pool]; leaf++ {
		if t.Leaf(leaf) && e.Plan.Terms.Member[leaf] {
			f.sumLeaf(e, leaf)
		}
	}
	for _, figure := range [][]int64{f.Held, f.Wanted, f.Usage, f.staying} {
		e.sumUp(pool, figure)
	}
	f.Divide(e, pool, f.Usage[0], promises.More, limits)
	if !f.claims.outstanding { // what is to be given back is no longer due
		copy(f.Quota, f.staying)
	}
}

// sumLeaf adds up the figures of one leaf.
func (f *Figures) sumLeaf(e *Env, leaf plan.Node) {
	s, at := e.State, leaf-f.Pool
	g := e.Views.Usage.From(leaf, e.ID(f.Pool))
	for i := 0; i < len(g.Key); {
		shape, units, leaving := g.Key[i].B, int64(0), int64(0)
		for ; i < len(g.Key) && g.Key[i].B == shape; i++ {
			units, leaving = units+g.Units[i], leaving+g.Leaving[i]
		}
		whole := max(units, e.Views.Capacity.Of(s, f.Pool, cluster.ShapeID(shape)))
		f.Held[at] += units
		f.Usage[at] = share.Add(f.Usage[at], share.Fraction(units, whole))
		f.staying[at] = share.Add(f.staying[at], share.Fraction(units-leaving, whole))
	}
	f.Wanted[at] = f.Held[at]
	if e.Asks(f.Pool, leaf) {
		e.EachSub(leaf, func(sub cluster.SubID) { f.Wanted[at] = share.Add(f.Wanted[at], max(0, s.Short(sub))) })
	}
}

// Divide computes the quotas of one pool, and the demands that they go by, when so much of the pool is divided (MD-13,
// MD-14). The other figures stay as they were. O(consumers of the pool × log, and their sub-allocations).
func (f *Figures) Divide(e *Env, pool plan.Node, total int64, more More, limits *Limits) {
	f.Pool = pool
	n := int(e.State.Policy.End[pool] - pool)
	f.Demand, f.Quota = column.Zeros(f.Demand, n), column.Zeros(f.Quota, n)
	f.claimUsable(e, more)
	f.cap(e, limits)
	for i, leaf := range f.claims.leaf {
		f.Demand[leaf-pool] = share.Add(f.Demand[leaf-pool], f.claims.demand[i])
	}
	e.sumUp(pool, f.Demand)
	f.Quota[0] = total
	for n := pool; n < e.State.Policy.End[pool]; n++ { // parents come before their children
		f.divide(e, n, f.Demand, f.Quota)
	}
}

// Outstanding tells whether some sub-allocation may use more of the pool than is net.
func (f *Figures) Outstanding() bool { return f.claims.outstanding }

// divide divides what a consumer has of a total among its children (MD-14): by falling share priority, in proportion to
// ratio as it counts in the pool, none above its demand, what is left over again.
func (f *Figures) divide(e *Env, up plan.Node, demand, total []int64) {
	c := &f.family
	if total[up-f.Pool] == 0 {
		return
	}
	e.children(c, up)
	if len(c.node) == 0 {
		return
	}
	for i, n := range c.node {
		c.ratio[i] = e.Ratio(f.Pool, n)
		c.limit = append(c.limit, demand[n-f.Pool])
	}
	c.out = column.Zeros(c.out, len(c.node))
	f.divider.FillByPriority(total[up-f.Pool], c.priority, c.ratio, c.limit, c.out)
	for i, n := range c.node {
		total[n-f.Pool] = c.out[i]
	}
}

// children are the children of a consumer that take part in the plan.
func (e *Env) children(c *family, up plan.Node) {
	c.node, c.priority, c.ratio, c.limit = c.node[:0], c.priority[:0], c.ratio[:0], c.limit[:0]
	for n := e.State.Policy.First[up]; n != plan.None; n = e.State.Policy.Next[n] {
		if e.Plan.Terms.Member[n] {
			c.node, c.priority = append(c.node, n), append(c.priority, e.Window.Priority[n])
			c.ratio = append(c.ratio, e.Window.Ratio[n])
		}
	}
}

// Static is the pool's part of the static share quotas of one dimension (MD-15), by place in the tree less the pool's
// consumer's: what open hosts have of the parcels that the pool's consumer owns itself, divided as if every leaf wanted
// everything, so that the highest priority takes all of it.
func (f *Figures) Static(e *Env, pool plan.Node, dim int, part []int64) []int64 {
	t, c := e.State.Policy, &f.family
	part = column.Zeros(part, int(t.End[pool]-pool))
	from, to := e.Views.Owned.Own(pool)
	for _, k := range e.Views.Owned.Parcel[from:to] {
		if e.Plan.Parcels.IsOpen(k) {
			part[0] = share.Add(part[0], e.Plan.Parcels.Cap[dim][k])
		}
	}
	for up := pool; up < t.End[pool]; up++ {
		e.children(c, up)
		best, sum := int32(0), int64(0)
		for i, n := range c.node {
			switch {
			case c.ratio[i] == 0 || !e.hasLeaf(n):
				c.ratio[i] = 0
			case sum == 0 || c.priority[i] > best:
				best, sum = c.priority[i], c.ratio[i]
			case c.priority[i] == best:
				sum = share.Add(sum, c.ratio[i])
			}
		}
		for i, n := range c.node {
			if c.ratio[i] > 0 && c.priority[i] == best {
				part[n-pool] = share.Part(part[up-pool], c.ratio[i], sum)
			}
		}
	}
	return part
}

// hasLeaf tells whether a consumer is a leaf, or has one below it that takes part in the plan.
func (e *Env) hasLeaf(n plan.Node) bool {
	if e.State.Policy.Leaf(n) {
		return true
	}
	for k := e.State.Policy.First[n]; k != plan.None; k = e.State.Policy.Next[k] {
		if e.Plan.Terms.Member[k] && e.hasLeaf(k) {
			return true
		}
	}
	return false
}
