package pool

import (
	"math"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// Limits is what consumers hold net from pools above them, by dimension and node, where a plan sets share limits
// (MD-18). A nil one is of a plan that sets none.
type Limits struct{ held [][]int64 }

// NewLimits adds up what consumers hold net, nil where the plan sets no limit. O(consumers, what they hold by size, and
// sets).
func NewLimits(e *Env, promises *Promises) *Limits {
	if !e.limited() {
		return nil
	}
	v, s := StayingLimits(e), e.State
	for _, id := range promises.Set {
		if pool, ok := promises.Pool(id); ok {
			taker := s.Set.Taker[id]
			v.Add(e, s.Node(taker), pool, s.Size(taker), s.Set.Units[id])
		}
	}
	for _, j := range promises.Joined {
		leaf := s.Node(j.Sub)
		v.Add(e, leaf, e.Meet(leaf, j.Parcel), s.Size(j.Sub), 1)
	}
	return v
}

// HeldLimits is limits by what consumers hold, with what is under reclaim and without what is promised; nil where the
// plan sets none.
func HeldLimits(e *Env) *Limits {
	if !e.limited() {
		return nil
	}
	return limitsBy(e, func(units, leaving int64) int64 { return units })
}

// StayingLimits is limits by what consumers hold that is not under reclaim, without what is promised.
func StayingLimits(e *Env) *Limits {
	return limitsBy(e, func(units, leaving int64) int64 { return units - leaving })
}

// limitsBy is limits by what counts of what consumers hold.
func limitsBy(e *Env, counts func(units, leaving int64) int64) *Limits {
	v, s := &Limits{}, e.State
	for range e.Plan.Parcels.Cap {
		v.held = append(v.held, make([]int64, s.Policy.Len()))
	}
	for leaf := range plan.Node(s.Policy.Len()) {
		g := e.Views.Usage.Of(leaf)
		for i, key := range g.Key {
			if s.Policy.Leaf(leaf) && key.A != cluster.NoID {
				v.Add(e, leaf, s.NodeOf[key.A], s.Shape.Size(cluster.ShapeID(key.B)), counts(g.Units[i], g.Leaving[i]))
			}
		}
	}
	return v
}

// LimitsOf is limits by what consumers hold, by dimension and node, nil where the plan sets none.
func LimitsOf(e *Env, held [][]int64) *Limits {
	if !e.limited() {
		return nil
	}
	return &Limits{held}
}

// limited tells whether the plan sets any share limit, or a ratio of 0, which counts as one of 0.
func (e *Env) limited() bool {
	for n, ratio := range e.Window.Ratio {
		if ratio == 0 && e.Plan.Terms.Member[n] && plan.Node(n) != plan.Root {
			return true
		}
	}
	for _, column := range e.Window.Limit {
		for n, most := range column {
			if most != plan.Unlimited && e.Plan.Terms.Member[n] {
				return true
			}
		}
	}
	return false
}

// Add adds units that a leaf holds from a pool to what all below the pool's consumer hold.
func (v *Limits) Add(e *Env, leaf, pool plan.Node, size []int64, units int64) {
	for n := leaf; n != pool; n = e.State.Policy.Parent[n] {
		for d := range v.held {
			v.held[d][n] += size[d] * units
		}
	}
}

// Held is what a consumer holds net of a dimension from pools above it.
func (v *Limits) Held(n plan.Node, dim int) int64 { return v.held[dim][n] }

// Over is the share limit that one unit more from a pool would exceed: of the leaf, or of the nearest consumer above it
// below the pool, and its first dimension; plan.None when there is none. A leaf's own parcels have none.
// O(depth × dimensions).
func (v *Limits) Over(e *Env, leaf, pool plan.Node, size []int64) (n plan.Node, dim int) {
	if v == nil {
		return plan.None, 0
	}
	for n := leaf; n != pool; n = e.State.Policy.Parent[n] {
		for d := range v.held {
			if size[d] > 0 && v.Beyond(e, n, d, size[d]) > 0 {
				return n, d
			}
		}
	}
	return plan.None, 0
}

// Left is how many units more of a size share limits leave a leaf from a pool, math.MaxInt64 where there are none.
// O(depth × dimensions).
func (v *Limits) Left(e *Env, leaf, pool plan.Node, size []int64) int64 {
	units := int64(math.MaxInt64)
	if v == nil {
		return units
	}
	for n := leaf; n != pool; n = e.State.Policy.Parent[n] {
		for d, u := range size {
			if u > 0 && e.ShareLimit(n, d) != plan.Unlimited {
				units = min(units, max(0, -v.Beyond(e, n, d, 0))/u)
			}
		}
	}
	return units
}

// Beyond is by how much a consumer holds more than its share limit in a dimension, with an amount more; below 0: less.
func (v *Limits) Beyond(e *Env, n plan.Node, dim int, more int64) int64 {
	most := e.ShareLimit(n, dim)
	if most == plan.Unlimited {
		return -1
	}
	return v.held[dim][n] + more - most
}

// ShareLimit is a consumer's in a dimension, plan.Unlimited where it has none. A ratio of 0 counts as one of 0 (D-6).
func (e *Env) ShareLimit(n plan.Node, dim int) int64 {
	if e.Window.Ratio[n] == 0 {
		return 0
	}
	return e.Window.Limit[dim][n]
}
