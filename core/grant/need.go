package grant

import (
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/room"
)

// Needs are which parcels of a plan the requirements of sub-allocations select, and in which order they take them
// (REQ-1). They are good as long as the hosts and the parcels are the same. The zero value is ready.
type Needs struct {
	tables int64 // State.HostTables that they were made at
	codes  cluster.HostCodes
	bits   [][]uint64 // by NeedID: bitset of parcels
	turn   [][]int32  // by NeedID: a parcel's place in the order, of requirements that have one
	groups []int32    // by HostID: the first of the plan's groups that has it; empty: not known yet
}

// renew forgets what other hosts or parcels gave.
func (v *Needs) renew(e *Env) {
	if v.tables != e.State.HostTables {
		v.tables, v.bits, v.turn, v.groups = e.State.HostTables, v.bits[:0], v.turn[:0], v.groups[:0]
	}
}

// group is the first of the plan's groups that has a host, by its place in the plan.
func (v *Needs) group(e *Env, h cluster.HostID) int32 {
	if v.renew(e); len(v.groups) == 0 {
		v.groups = zeros(v.groups, e.State.Host.Len())
		for i := len(e.Plan.MD.Groups) - 1; i >= 0; i-- {
			for _, member := range e.State.Members(e.Plan.MD.Groups[i].Group) {
				v.groups[member] = int32(i)
			}
		}
	}
	return v.groups[h]
}

// Of is the bitset of the parcels that a requirement selects, nil for no requirement, and whether it has an order.
// O(parcels) on first sight.
func (v *Needs) Of(e *Env, need cluster.NeedID) (selected []uint64, ordered bool) {
	if need == cluster.NoID {
		return nil, false
	}
	v.renew(e)
	for int(need) >= len(v.bits) {
		v.bits, v.turn = append(v.bits, nil), append(v.turn, nil)
	}
	if v.bits[need] == nil {
		v.find(e, need)
	}
	return v.bits[need], v.turn[need] != nil
}

// find evaluates a requirement. One that names what no host has any more selects nothing.
func (v *Needs) find(e *Env, need cluster.NeedID) {
	s, host := e.State, e.Plan.Parcels.Host
	v.bits[need] = make([]uint64, e.Plan.Parcels.Words())
	r := s.Need.Parsed[need]
	bound, err := r.Bind(s)
	if err != nil {
		return
	}
	v.codes.Reset(s)
	var order []int32
	selector := bound.Selector(&v.codes, s.Host.Len())
	for k, h := range host {
		if selector.Match(int(h)) {
			v.bits[need][k>>6] |= 1 << (k & 63)
			order = append(order, int32(k))
		}
	}
	if !r.Ordered() {
		return
	}
	slices.SortStableFunc(order, func(a, b int32) int { return bound.Compare(int(host[a]), int(host[b])) })
	v.turn[need] = make([]int32, len(host))
	for i, k := range order {
		v.turn[need][k] = int32(i)
	}
}

// rows is the rows of a lot in the order of a requirement, nil where it has none.
func (v *Needs) rows(l *lot, need cluster.NeedID) []room.Row {
	if need == cluster.NoID || v.turn[need] == nil {
		return nil
	}
	order := make([]room.Row, 0, len(l.parcel))
	for row, k := range l.parcel {
		if v.bits[need][k>>6]>>(uint(k)&63)&1 == 1 {
			order = append(order, room.Row(row))
		}
	}
	turn := v.turn[need]
	slices.SortFunc(order, func(a, b room.Row) int { return int(turn[l.parcel[a]] - turn[l.parcel[b]]) })
	return order
}

// Limits is what consumers hold net from pools above them, by dimension and node, where a plan sets share limits
// (MD-18).
type Limits struct{ held [][]int64 }

// NewLimits adds up what consumers hold, nil where the plan sets no limit. O(consumers, and what they hold by size).
func NewLimits(e *Env) *Limits {
	limited := false
	for _, column := range e.Window.Limit {
		for n, most := range column {
			limited = limited || most != plan.Unlimited && e.Plan.Terms.Member[n]
		}
	}
	if !limited {
		return nil
	}
	v, s := &Limits{}, e.State
	for range e.Plan.Parcels.Cap {
		v.held = append(v.held, make([]int64, s.Policy.Len()))
	}
	for leaf := range plan.Node(s.Policy.Len()) {
		g := e.Views.Usage.Of(leaf)
		for i, key := range g.Key {
			if s.Policy.Leaf(leaf) && key.A != cluster.NoID {
				v.addUnits(e, leaf, s.NodeOf[key.A], s.Shape.Size(cluster.ShapeID(key.B)), g.Units[i]-g.Leaving[i])
			}
		}
	}
	for _, id := range e.Promises.Set {
		if top, ok := e.Promises.Pool(id); ok {
			taker := s.Set.Taker[id]
			v.addUnits(e, s.Node(taker), top, s.Size(taker), s.Set.Units[id])
		}
	}
	return v
}

// addUnits adds units that a leaf holds from a pool to what all below the pool's consumer hold.
func (v *Limits) addUnits(e *Env, leaf, top plan.Node, size []int64, units int64) {
	for n := leaf; n != top; n = e.State.Policy.Parent[n] {
		for d := range v.held {
			v.held[d][n] += size[d] * units
		}
	}
}

func (v *Limits) add(e *Env, leaf, top plan.Node, size []int64) { v.addUnits(e, leaf, top, size, 1) }

// Over tells whether one unit more from a pool would exceed a share limit of a leaf or of a branch above it, below the
// pool. A leaf's own parcels have none. O(depth × dimensions).
func (v *Limits) Over(e *Env, leaf, top plan.Node, size []int64) bool {
	for n := leaf; n != top; n = e.State.Policy.Parent[n] {
		for d := range v.held {
			if most := e.Window.Limit[d][n]; most != plan.Unlimited && size[d] > 0 && v.held[d][n]+size[d] > most {
				return true
			}
		}
	}
	return false
}
