package reclaim

import (
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/pool"
	"github.com/stintd/stint/core/share"
)

// fair is the memory of fair reclaim (MD-17).
type fair struct {
	pools   []*stakes
	figures pool.Figures
	short   []plan.Node // leaves that ask for anything, in order

	v      *stakes       // of the pool in turn, as all below. Leaves are numbered from its consumer on
	line   []int32       // by leaf: one more than its line of the queue, 0: it has none
	pass   pass          // which of the passes
	takers ranking       // leaves with asks that take part in the pass
	givers ranking       // leaves with a surplus
	vain   map[kind]bool // units for which no victims were found in the pass
	taker  taker
	within bool    // the taker stays within its quota
	free   bool    // it does, or its deficit is its band
	keen   []int32 // by node: leaves with units that may be in an allowed move whatever the taker's deficit
}

// pass is one of the three times that the takers of a pool have turns.
type pass int

const (
	byPriority pass = iota // leaves with a deficit, and moves from branches of lower priority alone
	byQuota                // leaves with a deficit, and all moves
	byJoining              // leaves without a deficit, which only join
	passes
)

// taker is the unit that looks for victims, or all units that a gang looks for.
type taker struct {
	sub     cluster.SubID
	leaf    plan.Node
	deficit int64 // of its leaf
	gets    int64 // what the unit, or the gang, adds to the stake of its leaf

	// Of a gang, which has victims for unit after unit. Deficit and gets are as before the first one.
	got  int64    // what its units have added
	gave []giving // what leaves have given for them
}

// kind is what takers' units have in common that look for the same victims.
type kind struct {
	leaf  plan.Node
	shape cluster.ShapeID
	need  cluster.NeedID
	sub   cluster.SubID // with a max_per_host, else NoID
}

// Fair takes back from leaves above their quotas for leaves below theirs (step 8, MD-17): pool by pool, from the
// deepest up.
func (g *Stage) Fair() {
	g.beginFair()
	for g.nextPool() {
		for g.nextPass() {
			for g.takeTurn() {
			}
		}
	}
}

// beginFair computes the quotas of all pools of which anybody may take, before the first one's turns.
func (g *Stage) beginFair() {
	f := &g.fair
	f.short, f.pools = g.shortLeaves(f.short[:0]), f.pools[:0]
	if len(f.short) == 0 {
		return
	}
	for _, top := range g.List() {
		if slices.ContainsFunc(g.inside(f.short, top), func(leaf plan.Node) bool { return g.mayTake(leaf, top) }) {
			v := &stakes{}
			g.layStakes(v, top)
			g.deserve(v, &f.figures)
			f.pools = append(f.pools, v)
		}
	}
}

// nextPool readies the turns of the takers of the next pool, false where there is none.
func (g *Stage) nextPool() bool {
	f := &g.fair
	if g.net.live = nil; len(f.pools) == 0 {
		return false
	}
	v := f.pools[0]
	if g.net.last[v.top] != v.laid { // a gang went with what it held from this pool, too
		g.layStakes(v, v.top)
	}
	g.lineUp(v)
	f.pools = f.pools[1:]
	return true
}

// shortLeaves lists the leaves that want more than they hold, in order.
func (g *Stage) shortLeaves(list []plan.Node) []plan.Node {
	for leaf := range plan.Node(g.tree.Len()) {
		if !g.tree.Leaf(leaf) || !g.p.Terms.Member[leaf] {
			continue
		}
		short := false
		g.EachSub(leaf, func(sub cluster.SubID) { short = short || g.s.Short(sub) > 0 })
		if short {
			list = append(list, leaf)
		}
	}
	return list
}

// inside is those of some leaves in order that are below a consumer.
func (g *Stage) inside(list []plan.Node, top plan.Node) []plan.Node {
	from, _ := slices.BinarySearch(list, top)
	to, _ := slices.BinarySearch(list, g.tree.End[top])
	return list[from:to]
}

// mayTake tells whether a leaf may take for its share of a pool.
func (g *Stage) mayTake(leaf, top plan.Node) bool {
	return g.Window.ShareReclaim[leaf] && !g.Barred(top, leaf)
}

// lineUp readies the turns of a pool's takers.
func (g *Stage) lineUp(v *stakes) {
	f := &g.fair
	f.v, f.pass, g.net.live = v, -1, v
	g.choice.begin(g, v.top)
	f.line = column.Zeros(f.line, len(v.stake))
	g.queue.Reset()
	for _, leaf := range g.inside(f.short, v.top) {
		if g.mayTake(leaf, v.top) && g.ask(leaf) {
			f.line[leaf-v.top] = int32(len(g.queue.Leaf))
		}
	}
	f.givers.reset(g, v, g.p.RankOrder)
	f.givers.fill(f.gives)
	f.keen = column.Zeros(f.keen, len(v.stake))
	f.givers.backward(func(leaf plan.Node) bool {
		g.countKeen(leaf)
		return false
	})
}

// gives reports whether a leaf has a surplus.
func (f *fair) gives(leaf plan.Node) bool { return f.v.surplus(leaf) > share.Slack }

// nextPass readies the next pass over the takers of the pool, false after the last one. What was passed over in one is
// tried again in the next.
func (g *Stage) nextPass() bool {
	f := &g.fair
	if f.pass++; f.pass == passes || len(g.queue.Leaf) == 0 {
		return false
	}
	f.vain = map[kind]bool{}
	for l := range g.queue.Leaf {
		g.queue.Again(int32(l))
	}
	f.takers.reset(g, f.v, nil)
	f.takers.fill(g.isTaker)
	return true
}

// isTaker reports whether a leaf takes part in the pass: it has asks left, and a deficit or, in the last pass, none.
func (g *Stage) isTaker(leaf plan.Node) bool {
	f := &g.fair
	l := f.line[leaf-f.v.top] - 1
	return l >= 0 && f.v.deficit(leaf) > share.Slack == (f.pass < byJoining) && g.queue.Advance(l)
}

// takeTurn gives the taker whose turn it is one, false where there is none any more.
func (g *Stage) takeTurn() bool {
	f := &g.fair
	leaf := f.takers.first()
	if leaf == plan.None {
		return false
	}
	if !g.serveTaker(leaf, f.line[leaf-f.v.top]-1) {
		f.takers.set(leaf, false, f.v.stake)
		return true
	}
	g.reorder(leaf)
	return true
}

// reorder puts a leaf, of which the stake changed, where it belongs now.
func (g *Stage) reorder(leaf plan.Node) {
	f := &g.fair
	f.givers.set(leaf, f.gives(leaf), f.v.stake)
	f.takers.set(leaf, g.isTaker(leaf), f.v.stake)
	g.countKeen(leaf)
	g.recount(leaf)
}

// serveTaker promises a leaf one unit more of the pool, if it may have one. An ask that cannot be served is passed
// over.
func (g *Stage) serveTaker(leaf plan.Node, l int32) (served bool) {
	q := &g.queue
	for !served && q.Advance(l) {
		sub := q.Ask[q.Next(l)].Sub
		served = !g.Cycle.Undone[sub] && g.mayPromise(sub) && (g.joins(leaf, sub) || g.takeFor(leaf, sub))
		g.settleAsk(l, served)
	}
	return served
}

// joins lets a unit join sets under way in the pool in turn, unless a share limit stands against it.
func (g *Stage) joins(leaf plan.Node, sub cluster.SubID) bool {
	top := g.fair.v.top
	return (g.leaves > 0 || g.sets.units > 0) && !g.stopped(leaf, top, g.s.Size(sub)) && g.join(sub, top, nil)
}

// ask adds a line to the queue for what a leaf is short of and not promised, and tells whether that is anything.
func (g *Stage) ask(leaf plan.Node) bool {
	return g.queue.Add(&g.Env.Env, leaf, func(sub cluster.SubID) int64 {
		wanted := g.s.Sub.Wanted[sub]
		if left := g.unpromised(sub); left > 0 && !g.Cycle.Undone[sub] && !g.s.Forming(sub) {
			return wanted - left
		}
		return wanted
	})
}

// settleAsk takes in that the ask whose turn it is was promised a unit, or was not and is passed over from now on.
func (g *Stage) settleAsk(l int32, served bool) {
	a := &g.queue.Ask[g.queue.Next(l)]
	if a.Passed = !served; served {
		a.Has++
		g.Cycle.Promises--
	}
	g.queue.Settle(l)
}

// mayPromise tells whether the cycle may promise anybody one unit more, and notes that it may not.
func (g *Stage) mayPromise(sub cluster.SubID) bool {
	if g.Cycle.Promises > 0 {
		return true
	}
	g.Cycle.Denied[sub], g.out.Again = true, true
	return false
}

// takeFor makes a set for one unit of a sub-allocation whose leaf is below its quota.
func (g *Stage) takeFor(leaf plan.Node, sub cluster.SubID) bool {
	f, v := &g.fair, g.fair.v
	key := kind{leaf, g.s.Sub.Shape[sub], g.Views.Needs.Need(g.s, sub), cluster.NoID}
	if g.s.Sub.MaxPerHost[sub] != plan.Unlimited {
		key.sub = sub
	}
	if f.pass == byJoining || g.turnsOf(sub) >= turnsMost || f.vain[key] {
		return false
	}
	g.beginTaker(taker{
		sub: sub, leaf: leaf, deficit: v.deficit(leaf), gets: v.step(v.find(g, leaf, key.shape), 1),
	})
	move := g.choose()
	if move == nil {
		f.vain[key] = true
		return false
	}
	return g.carryOut(move)
}

// carryOut makes the set of a move, and tells whether the budget bore it.
func (g *Stage) carryOut(m *move) bool {
	if !g.issue(decision.ReclaimFairShare, g.fair.taker.sub, m.parcel, m.victims, nil) {
		return false
	}
	for _, v := range m.victims {
		g.reorder(g.row[v.row].leaf)
	}
	return true
}
