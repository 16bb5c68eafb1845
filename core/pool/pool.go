// Package pool is what the pools of an MD plan are (MD-2, MD-7 to MD-9), and what consumers have of them: usage
// (MD-12), demand (MD-13), quotas (MD-14) and the static share quota (MD-15), all in integers (docs/decisions.md,
// D-5). Capacity (MD-11) is a view. It is given a state and its views, changes neither, and writes columns of its own.
package pool

import (
	"cmp"
	"math"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/view"
)

// Env is what the figures of a plan's pools are made of.
type Env struct {
	State  *cluster.State
	Plan   *cluster.Plan
	Views  *view.Views
	Window *plan.MDWindow
}

// New is the environment of a plan in a state, whose views are up to date.
func New(s *cluster.State, p *cluster.Plan, v *view.Views) Env {
	return Env{s, p, v, &p.MD.Windows[p.Window]}
}

// List is whose pools there are: the root's, and those of all consumers but leaves with parcels in them; the deepest
// first, equally deep ones in tree order, the root's last.
func (e *Env) List() (list []plan.Node) {
	t := e.State.Policy
	for n := range plan.Node(t.Len()) {
		from, to := e.Views.Owned.Below(n)
		if n == plan.Root || from < to && !t.Leaf(n) {
			list = append(list, n)
		}
	}
	slices.SortStableFunc(list, func(a, b plan.Node) int { return cmp.Compare(t.Depth[b], t.Depth[a]) })
	return list
}

// ID is by what the state's labels name a consumer's pool.
func (e *Env) ID(pool plan.Node) cluster.ConsumerID { return e.State.ConsumerOf[pool] }

// Toward is the child of a consumer on the way down to one below it. O(depth).
func (e *Env) Toward(below, up plan.Node) plan.Node {
	for e.State.Policy.Parent[below] != up {
		below = e.State.Policy.Parent[below]
	}
	return below
}

// Owner is whose a parcel is, plan.Root when nobody owns it.
func (e *Env) Owner(k cluster.ParcelID) plan.Node {
	if owner := e.Plan.Parcels.Owner[k]; owner != cluster.NoID && e.State.NodeOf[owner] != plan.None {
		return e.State.NodeOf[owner]
	}
	return plan.Root
}

// Meet is through whose pool a leaf draws on a parcel: where the ways up from the leaf and from the owner meet. It is
// the leaf where the parcel is its own. O(depth).
func (e *Env) Meet(leaf plan.Node, k cluster.ParcelID) plan.Node {
	n := e.Owner(k)
	for !e.State.Policy.Within(leaf, n) {
		n = e.State.Policy.Parent[n]
	}
	return n
}

// Exists tells whether there is any parcel that a leaf draws on through a pool above it; the root's is always there.
func (e *Env) Exists(pool, leaf plan.Node) bool {
	if pool == plan.Root {
		return true
	}
	from, to := e.Views.Owned.Below(pool)
	own, end := e.Views.Owned.Below(e.Toward(leaf, pool))
	return to-from > end-own
}

// Grace is the most grace that who draws on an owner's parcel through the pool of a consumer may have (MD-9): the
// smallest of what the pool and the lenders have set, math.MaxInt64 where none has. A leaf's own parcels have none.
// O(depth).
func (e *Env) Grace(owner, pool plan.Node) int64 {
	if e.State.Policy.Leaf(pool) {
		return math.MaxInt64
	}
	us := unlessSet(e.Window.PrivateUS[pool])
	if pool == plan.Root {
		us = unlessSet(e.Plan.MD.PublicGraceUS)
	}
	for n := owner; n != pool; n = e.State.Policy.Parent[n] {
		us = min(us, unlessSet(e.Window.LendGraceUS[n]))
	}
	return us
}

func unlessSet(us int64) int64 {
	if us == plan.Unlimited {
		return math.MaxInt64
	}
	return us
}

// Spent is the consumer nearest to a leaf, below the consumer of a pool, whose budget is used up, plan.None where there
// is none: the leaf gets nothing new from the pool, and asks for nothing of it (BUD-2).
func (e *Env) Spent(pool, leaf plan.Node) plan.Node {
	return e.Plan.SpentBelow(&e.State.Policy.Tree, leaf, pool)
}

// Asks tells whether what a leaf is short of counts in a pool: the pool exists for it, and no budget is used up.
func (e *Env) Asks(pool, leaf plan.Node) bool {
	return e.Exists(pool, leaf) && e.Spent(pool, leaf) == plan.None
}

// Barred tells whether a ratio of 0 (D-6), or a budget that is used up, keeps a leaf from a pool above it.
func (e *Env) Barred(pool, leaf plan.Node) bool {
	if e.Spent(pool, leaf) != plan.None {
		return true
	}
	for n := leaf; n != pool; n = e.State.Policy.Parent[n] {
		if e.Window.Ratio[n] == 0 {
			return true
		}
	}
	return false
}

// EachSub calls f for the sub-allocations of a leaf in the order of D-14.
func (e *Env) EachSub(leaf plan.Node, f func(sub cluster.SubID)) {
	s := e.State
	for a := e.Plan.FirstAlloc[leaf]; a != cluster.NoID; a = s.Alloc.Next[a] {
		for sub := s.Alloc.First[a]; sub != cluster.NoID; sub = s.Sub.Next[sub] {
			f(sub)
		}
	}
}
