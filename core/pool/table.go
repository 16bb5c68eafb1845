package pool

import (
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// Shares are the shares of consumers in pools (the table of that name), in fixed point: a row for each consumer below a
// pool that Figures.concerns; consumers in tree order, of each the pools from the root down.
type Shares struct {
	Consumer, Pool       column.Vector[plan.Node]
	Ratio, Priority      column.Vector[int64]
	Usage, Demand, Quota column.Vector[int64]
	Held, Wanted         column.Vector[int64] // units

	// decayed usage, and in hundredths what of the ratio counts; of plans with a half-life
	Decayed, Factor column.Vector[int64]
}

// Add adds the rows of a plan. O(consumers × depth).
func (t *Shares) Add(e *Env, b *Book) {
	var pools []plan.Node
	e.eachMember(func(n plan.Node) {
		pools = pools[:0]
		for up := e.State.Policy.Parent[n]; up != plan.None; up = e.State.Policy.Parent[up] {
			pools = append(pools, up)
		}
		for _, pool := range slices.Backward(pools) {
			f := b.Of(pool)
			if f == nil || !f.concerns(n-pool) {
				continue
			}
			t.Consumer.Add(n)
			t.Pool.Add(pool)
			t.Ratio.Add(e.Window.Ratio[n])
			t.Priority.Add(int64(e.Window.Priority[n]))
			t.Usage.Add(f.Usage[n-pool])
			t.Demand.Add(f.Demand[n-pool])
			t.Quota.Add(f.Quota[n-pool])
			t.Held.Add(f.Held[n-pool])
			t.Wanted.Add(f.Wanted[n-pool])
			if h := &e.Plan.History; len(h.Told) > 0 {
				row := h.At(&e.State.Policy.Tree, n, pool)
				t.Decayed.Add(h.Told[row])
				t.Factor.Add(h.Factor[row])
			}
		}
	})
}

// concerns tells whether the consumer at a place in the tree holds, waits for or may use anything of the pool. One that
// neither holds nor waits may have a demand: for units that it holds elsewhere and has to give back.
func (f *Figures) concerns(at plan.Node) bool { return f.Wanted[at] > 0 || f.Demand[at] > 0 }

// eachMember calls f for the consumers that take part in the plan but the root, in tree order.
func (e *Env) eachMember(f func(n plan.Node)) {
	for n := plan.Root + 1; int(n) < e.State.Policy.Len(); n++ {
		if e.Plan.Terms.Member[n] {
			f(n)
		}
	}
}

// Consumers are what consumers want and hold, in units, with all below them: a row for each, in tree order.
type Consumers struct {
	Consumer           column.Vector[plan.Node]
	Rank, Wanted, Held column.Vector[int64]
}

// Add adds the rows of a plan. O(consumers + sub-allocations).
func (t *Consumers) Add(e *Env) {
	wanted, held := make([]int64, e.State.Policy.Len()), make([]int64, e.State.Policy.Len())
	for leaf := range wanted {
		e.EachSub(plan.Node(leaf), func(sub cluster.SubID) {
			wanted[leaf] = share.Add(wanted[leaf], e.State.Sub.Wanted[sub])
			held[leaf] += e.State.Sub.Held[sub]
		})
	}
	e.sumUp(plan.Root, wanted)
	e.sumUp(plan.Root, held)
	e.eachMember(func(n plan.Node) {
		t.Consumer.Add(n)
		t.Rank.Add(int64(e.Window.Rank[n]))
		t.Wanted.Add(wanted[n])
		t.Held.Add(held[n])
	})
}

// Amounts are what consumers own, hold, lend and may hold, with all below them: a row for each consumer and dimension,
// consumers in tree order. A consumer without a share limit has none in Limit.
type Amounts struct {
	Consumer                    column.Vector[plan.Node]
	Dimension                   column.Vector[int32]
	Configured, Owned, Reserved column.Vector[int64]
	Held, Lent, Static, Limit   column.Vector[int64]
}

// Add adds the rows of a plan. O(dimensions × (consumers × depth + parcels × depth + what is held by size)).
func (t *Amounts) Add(e *Env, b *Book) {
	dims := len(e.Plan.Parcels.Cap)
	held, lent := make([][]int64, dims), make([][]int64, dims)
	static, owned := make([][]int64, dims), make([][]int64, dims)
	for d := range dims {
		held[d], lent[d], static[d] = e.held(d), e.lent(d), e.static(b, d)
		owned[d] = make([]int64, e.State.Policy.Len())
		for i, c := range e.Plan.Deeds.Consumer {
			owned[d][e.State.NodeOf[c]] += e.Plan.Deeds.Amount[d][i]
		}
	}
	e.eachMember(func(n plan.Node) {
		for d := range dims {
			t.Consumer.Add(n)
			t.Dimension.Add(int32(d))
			t.Held.Add(held[d][n])
			t.Lent.Add(lent[d][n])
			t.Static.Add(static[d][n])
			if e.Plan.Deeds.Configured == nil {
				t.Configured.Add(0)
				t.Owned.Add(0)
				t.Reserved.Add(0)
			} else {
				t.Configured.Add(e.Plan.Deeds.Configured[d][n])
				t.Owned.Add(owned[d][n])
				t.Reserved.Add(e.Plan.Deeds.Reserved[d][n])
			}
			if most := e.Window.Limit[d][n]; most == plan.Unlimited {
				t.Limit.AddNull()
			} else {
				t.Limit.Add(most)
			}
		}
	})
}

// held is what consumers hold of a dimension, by node.
func (e *Env) held(d int) []int64 {
	sum := make([]int64, e.State.Policy.Len())
	for leaf := range sum {
		g := e.Views.Usage.Of(plan.Node(leaf))
		for i, key := range g.Key {
			sum[leaf] = share.Add(sum[leaf], share.Mul(g.Units[i], e.State.Shape.Size(cluster.ShapeID(key.B))[d]))
		}
	}
	e.sumUp(plan.Root, sum)
	return sum
}

// lent is what outsiders of consumers hold of a dimension on parcels of these, and of those below them, by node: what
// is lent through a pool is of all from the lender up to below the pool's consumer.
func (e *Env) lent(d int) []int64 {
	s, sum := e.State, make([]int64, e.State.Policy.Len())
	for lender, n := range s.NodeOf {
		g := e.Views.Loans.By(cluster.ConsumerID(lender))
		for i, key := range g.Key {
			amount := share.Mul(g.Units[i], s.Shape.Size(cluster.ShapeID(key.B))[d])
			for up := n; up != plan.None && up != s.NodeOf[key.C]; up = s.Policy.Parent[up] {
				sum[up] = share.Add(sum[up], amount)
			}
		}
	}
	return sum
}

// static is the static share quotas of a dimension (MD-15), by node: of each consumer its parts of all pools above it.
func (e *Env) static(b *Book, d int) []int64 {
	sum := make([]int64, e.State.Policy.Len())
	var part []int64
	for _, pool := range b.List {
		part = b.Of(pool).Static(e, pool, d, part)
		for i, v := range part[1:] {
			at := &sum[int(pool)+1+i]
			*at = share.Add(*at, v)
		}
	}
	return sum
}
