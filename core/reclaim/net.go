package reclaim

import (
	"fmt"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/pool"
	"github.com/stintd/stint/core/share"
)

// netLog is how what is net differs by now from what the view of usage says: units that leaves came to have, or gave,
// by pool (CYC-7).
type netLog struct {
	last []int32 // by Node: one more than the latest move in the consumer's pool, 0: none
	move []netMove
	by   map[subPool]int64
	all  map[cluster.SubID]int64
	live *stakes // of the pool in turn, kept up to date; nil: none
}

type netMove struct {
	leaf  plan.Node
	shape cluster.ShapeID
	units int64
	next  int32
}

func (v *netLog) reset(nodes int) {
	v.last, v.move, v.live = column.Zeros(v.last, nodes), v.move[:0], nil
	v.by, v.all = map[subPool]int64{}, map[cluster.SubID]int64{}
}

// count adds units of a sub-allocation to what its leaf has net from a pool; NoID: of its own, which count in no pool.
// O(depth × dimensions).
func (g *Stage) count(from cluster.ConsumerID, leaf plan.Node, sub cluster.SubID, units int64) {
	g.net.by[subPool{sub, from}] += units
	g.net.all[sub] += units
	shape := g.s.Sub.Shape[sub]
	if from == cluster.NoID || leaf == plan.None || units == 0 {
		return
	}
	top, v := g.s.NodeOf[from], &g.net
	v.move = append(v.move, netMove{leaf, shape, units, v.last[top]})
	v.last[top] = int32(len(v.move))
	if v.live != nil && v.live.top == top {
		v.live.add(g, leaf, v.live.find(g, leaf, shape), units)
	}
	if g.limits != nil {
		g.limits.Add(&g.Env.Env, leaf, top, g.s.Shape.Size(shape), units)
	}
}

// stakes are what leaves have net in one pool: units by leaf and shape, the share usage of these, and the quotas that
// it is held against.
type stakes struct {
	top   plan.Node
	start []int32 // by node less the pool's: where the rows of a leaf begin; one more at the end
	shape []cluster.ShapeID
	units []int64
	whole []int64 // the pool's capacity
	late  []int32 // by node less the pool's: one more than the last row that was added behind all others, 0: none
	next  []int32 // by row from the last start on: likewise of the leaf's row before it
	stake []int64 // by node less the pool's
	quota []int64
	laid  int32 // Net.last of the pool when the stakes were laid
}

// layStakes computes the stakes in a pool. O(consumers of the pool, what they hold from it by size, moves).
func (g *Stage) layStakes(v *stakes, top plan.Node) {
	v.top, v.next, v.laid = top, v.next[:0], g.net.last[top]
	v.late = column.Zeros(v.late, int(g.tree.End[top]-top))
	v.start, v.shape, v.units, v.whole = v.start[:0], v.shape[:0], v.units[:0], v.whole[:0]
	v.stake = column.Zeros(v.stake, int(g.tree.End[top]-top))
	for n := top; n < g.tree.End[top]; n++ {
		first := len(v.shape)
		if v.start = append(v.start, int32(first)); !g.tree.Leaf(n) {
			continue
		}
		rows := g.Views.Usage.From(n, g.ID(top))
		for i, key := range rows.Key { // those of one size stand together
			shape, last := cluster.ShapeID(key.B), len(v.shape)-1
			if last < first || v.shape[last] != shape {
				v.addRow(g, shape, 0)
				last++
			}
			v.units[last] += rows.Units[i] - rows.Leaving[i]
		}
	}
	v.start = append(v.start, int32(len(v.shape)))
	for i := g.net.last[top]; i > 0; i = g.net.move[i-1].next {
		one := &g.net.move[i-1]
		row := v.find(g, one.leaf, one.shape) // it may grow the columns
		v.units[row] += one.units
	}
	for at := range v.stake {
		v.eachRow(top+plan.Node(at), func(row int32) bool {
			v.stake[at] += share.Fraction(v.units[row], v.whole[row])
			return false
		})
	}
	for n := g.tree.End[top] - 1; n > top; n-- {
		v.stake[g.tree.Parent[n]-top] += v.stake[n-top]
	}
}

func (v *stakes) addRow(g *Stage, shape cluster.ShapeID, units int64) {
	v.shape, v.units = append(v.shape, shape), append(v.units, units)
	v.whole = append(v.whole, g.Views.Capacity.Of(g.s, v.top, shape))
}

// find is the row of a leaf's units of one size. O(sizes of the leaf).
func (v *stakes) find(g *Stage, leaf plan.Node, shape cluster.ShapeID) (row int32) {
	if v.eachRow(leaf, func(i int32) bool {
		row = i
		return v.shape[i] == shape
	}) {
		return row
	}
	at := leaf - v.top
	row = int32(len(v.shape))
	v.next, v.late[at] = append(v.next, v.late[at]), row+1
	v.addRow(g, shape, 0)
	return row
}

// eachRow calls f for the rows of a leaf until it is done, and tells whether it was.
func (v *stakes) eachRow(leaf plan.Node, f func(row int32) (done bool)) bool {
	at, laid := leaf-v.top, v.start[len(v.start)-1]
	for i := v.start[at]; i < v.start[at+1]; i++ {
		if f(i) {
			return true
		}
	}
	for i := v.late[at] - 1; i >= 0; i = v.next[i-laid] - 1 {
		if f(i) {
			return true
		}
	}
	return false
}

// step is how much units of a row more, or less, change the stake of its leaf.
func (v *stakes) step(row int32, units int64) int64 {
	n, whole := v.units[row], v.whole[row]
	if n < 0 || n+units < 0 {
		panic(fmt.Sprintf("BUG: %d units more than the %d that are net of a leaf and size", units, n))
	}
	return share.Fraction(n+units, whole) - share.Fraction(n, whole)
}

// gives returns what units of a row count that come after so many that are given before them.
func (v *stakes) gives(row int32, before, units int64) int64 {
	n, whole := v.units[row]-before, v.whole[row]
	return share.Fraction(n, whole) - share.Fraction(n-units, whole)
}

// add adds units to a row, and what they count to the stakes of its leaf and of all above it.
func (v *stakes) add(g *Stage, leaf plan.Node, row int32, units int64) {
	step := v.step(row, units)
	v.units[row] += units
	for n := leaf; ; n = g.tree.Parent[n] {
		if v.stake[n-v.top] += step; n == v.top {
			return
		}
	}
}

// deficit is how far a leaf is below its quota by what is net. A surplus is below 0.
func (v *stakes) deficit(leaf plan.Node) int64 { return v.quota[leaf-v.top] - v.stake[leaf-v.top] }

// surplus is how far a leaf is above its quota by what is net.
func (v *stakes) surplus(leaf plan.Node) int64 { return -v.deficit(leaf) }

// band is how far a leaf must be from its quota before a unit of its own that counts so much moves for that.
func (g *Stage) band(v *stakes, leaf plan.Node, unit int64) int64 {
	return share.Band(v.quota[leaf-v.top], unit, g.p.MD.FairBandMilli)
}

// deserve computes the quotas of a pool that its stakes are held against: those of MD-14, by what is net.
func (g *Stage) deserve(v *stakes, f *pool.Figures) {
	f.Divide(&g.Env.Env, v.top, v.stake[0], g.more, g.limits)
	v.quota = append(v.quota[:0], f.Quota...)
}

// more is how many units more are net of a sub-allocation by now than the views say: from a pool, and of all.
func (g *Stage) more(sub cluster.SubID, from cluster.ConsumerID) (there, all int64) {
	return g.net.by[subPool{sub, from}], g.net.all[sub]
}

// lacks is how many units that the views have of a sub-allocation are not granted after all: of a pool, and of all.
func (g *Stage) lacks(sub cluster.SubID, from cluster.ConsumerID) (there, all int64) {
	if len(g.undone) == 0 {
		return 0, 0
	}
	return g.undone[subPool{sub, from}], g.undone[subPool{sub, cluster.NoID}]
}

// unpromised is how many of the units that a sub-allocation is short of are not promised.
func (g *Stage) unpromised(sub cluster.SubID) int64 {
	_, undone := g.lacks(sub, cluster.NoID)
	return g.s.Short(sub) + undone - g.sets.promised[sub]
}

// layLimits adds up what consumers hold net, where the plan sets share limits (MD-18). O(consumers, and what they hold
// by size).
func (g *Stage) layLimits() {
	if g.limits = nil; !g.limited() {
		return
	}
	g.limits = pool.StayingLimits(&g.Env.Env)
	for top, i := range g.net.last {
		for ; i > 0; i = g.net.move[i-1].next {
			one := &g.net.move[i-1]
			g.limits.Add(&g.Env.Env, one.leaf, plan.Node(top), g.s.Shape.Size(one.shape), one.units)
		}
	}
}

// limited tells whether any share limit is set, or a ratio of 0, which counts as one of 0, or was.
func (g *Stage) limited() bool {
	for i := range g.sets.list {
		if g.sets.list[i].taker == cluster.NoID {
			return true // it may have been taken back for one
		}
	}
	for n, in := range g.p.Terms.Member {
		for d := 0; in && plan.Node(n) != plan.Root && d < g.dims; d++ {
			if g.ShareLimit(plan.Node(n), d) != plan.Unlimited {
				return true
			}
		}
	}
	return false
}

// stopped tells whether a share limit of a leaf, or of a consumer above it, stands against a unit more from a pool.
func (g *Stage) stopped(leaf, top plan.Node, size []int64) bool {
	n, _ := g.limits.Over(&g.Env.Env, leaf, top, size)
	return n != plan.None
}

// isOver tells whether a consumer holds more net than its share limit in a dimension.
func (g *Stage) isOver(n plan.Node, d int) bool { return g.limits.Beyond(&g.Env.Env, n, d, 0) > 0 }
