//go:build !rounds

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

// fair is what fair reclaim works with (MD-17).
type fair struct {
	pools   []*stakes
	figures pool.Figures
	short   []plan.Node // leaves that ask for anything, in order

	v      *stakes     // of the pool in turn, as all below. Leaves are numbered from its consumer on
	line   []int32     // by leaf: its line of the queue
	takers share.Order // leaves that ask, by deficit ÷ ratio
	givers share.Order // leaves above their quotas, by surplus ÷ ratio
	banded share.Order // those of them that may be above by their bands
	kinds  map[kind]*trial
	taker  taker
}

// taker is a unit that looks for victims.
type taker struct {
	sub     cluster.SubID
	leaf    plan.Node
	deficit int64 // of its leaf
	gets    int64 // what it adds to the stake of its leaf
	banded  bool  // the deficit is as large as the band
}

// kind is what takers' units have in common that look for the same victims.
type kind struct {
	leaf  plan.Node
	shape cluster.ShapeID
	need  cluster.NeedID
	sub   cluster.SubID // with a max_per_host, else NoID
}

// trial is what a kind of units has found in vain so far: none of it is looked at again in the pool's turns.
type trial struct {
	over    bool // no victims at all
	single  bool // no victim that alone makes one fit
	few     bool // several make one fit on no parcels but these
	parcels []cluster.ParcelID
}

// Fair takes back from those above their quotas for those below theirs, wherever that makes a unit fit and lowers the
// sum of the squares of distances from quotas (step 8): pool by pool, from the deepest up.
func (g *Stage) Fair() {
	for g.beginFair(); g.nextPool(); {
		for g.takeTurn() {
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
	g.lineUp(f.pools[0])
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

// lineUp readies the turns of a pool's takers. Those that are not below their quotas may join what is under way.
func (g *Stage) lineUp(v *stakes) {
	f := &g.fair
	f.v, f.kinds, g.net.live = v, map[kind]*trial{}, v
	g.choice.begin(g, v.top)
	n := len(v.stake)
	for _, list := range [...]*share.Order{&f.takers, &f.givers, &f.banded} {
		list.Reset(n)
	}
	f.takers.Last, f.line = true, column.Zeros(f.line, n)
	g.queue.Reset()
	for _, leaf := range g.inside(f.short, v.top) {
		if g.mayTake(leaf, v.top) && g.ask(leaf) {
			f.line[leaf-v.top] = int32(len(g.queue.Leaf) - 1)
			f.takers.Add(int32(leaf-v.top), v.deficit(leaf), g.Ratio(v.top, leaf), int32(leaf))
		}
	}
	for leaf := v.top; leaf < g.tree.End[v.top]; leaf++ {
		if g.tree.Leaf(leaf) && g.p.Terms.Member[leaf] {
			f.rate(g, leaf, (*share.Order).Add)
		}
	}
	f.takers.Sort()
	f.givers.Sort()
	f.banded.Sort()
}

// takeTurn gives the taker whose turn it is one, false where there is none any more.
func (g *Stage) takeTurn() bool {
	f, list := &g.fair, &g.fair.takers
	if len(list.List) == 0 {
		return false
	}
	id := list.List[len(list.List)-1]
	if leaf := f.v.top + plan.Node(id); g.serveTaker(leaf, f.line[id]) {
		list.Move(id, f.v.deficit(leaf))
	} else {
		list.Remove(id)
	}
	return true
}

// rate puts a leaf among those above their quotas, if it is.
func (f *fair) rate(g *Stage, leaf plan.Node, put func(o *share.Order, id int32, distance, ratio int64, tie int32)) {
	surplus, id := -f.v.deficit(leaf), int32(leaf-f.v.top)
	if surplus <= share.Slack {
		return
	}
	put(&f.givers, id, surplus, g.Ratio(f.v.top, leaf), -g.p.RankOrder[leaf])
	if surplus+share.Slack >= g.band(f.v, leaf, f.v.least(leaf)) {
		put(&f.banded, id, surplus, g.Ratio(f.v.top, leaf), -g.p.RankOrder[leaf])
	}
}

// least is about what the unit of a leaf counts that counts least, or less.
func (v *stakes) least(leaf plan.Node) int64 {
	least := share.One
	for i, at := v.start[leaf-v.top], leaf-v.top; i < v.start[at+1]; i++ {
		switch {
		case v.units[i] > v.whole[i]:
			return 0
		case v.units[i] > 0:
			least = min(least, share.One/v.whole[i]) // what a unit counts differs from this by less than one 2⁻⁴⁸
		}
	}
	return least
}

// reorder puts a leaf, of which the stake changed, where it belongs now.
func (g *Stage) reorder(leaf plan.Node) {
	f := &g.fair
	id := int32(leaf - f.v.top)
	for _, list := range [...]*share.Order{&f.givers, &f.banded} {
		if list.Has(id) {
			list.Remove(id)
		}
	}
	f.rate(g, leaf, (*share.Order).Put)
	if f.takers.Has(id) {
		f.takers.Move(id, f.v.deficit(leaf))
	}
	g.recount(leaf)
}

// serveTaker promises a leaf one unit more of the pool, if it may have one, and tells whether it may want another.
func (g *Stage) serveTaker(leaf plan.Node, l int32) (stays bool) {
	g.s.Yield()
	q := &g.queue
	for q.Advance(l) {
		sub := q.Ask[q.Next(l)].Sub
		served := !g.Cycle.Undone[sub] && g.mayPromise(sub) && !g.stopped(leaf, g.fair.v.top, g.s.Size(sub)) &&
			((g.leaves > 0 || g.sets.units > 0) && g.join(sub, g.fair.v.top, nil) || g.takeFor(leaf, sub))
		if g.settleAsk(l, served); served {
			g.reorder(leaf)
			return q.Advance(l)
		}
	}
	return false
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

// takeFor makes a set for one unit of a sub-allocation whose leaf is below its quota: of one victim, the first in
// order that alone makes it fit; else of several, on the parcel that takes the fewest of the first ones where they
// do.
func (g *Stage) takeFor(leaf plan.Node, sub cluster.SubID) bool {
	g.s.Yield()
	f := &g.fair
	v, deficit := f.v, f.v.deficit(leaf)
	if g.turnsOf(sub) >= turnsMost || deficit <= share.Slack {
		return false
	}
	key := kind{leaf, g.s.Sub.Shape[sub], g.Views.Needs.Need(g.s, sub), cluster.NoID}
	if g.s.Sub.MaxPerHost[sub] != plan.Unlimited {
		key.sub = sub
	}
	t := f.kinds[key]
	if t == nil {
		t = &trial{}
		f.kinds[key] = t
	}
	if t.over {
		return false
	}
	gets := v.step(v.find(g, leaf, key.shape), 1)
	f.taker = taker{sub, leaf, deficit, gets, deficit+share.Slack >= g.band(v, leaf, gets)}
	k, victims := g.choose(t)
	if t.over = victims == nil; t.over {
		return false
	}
	if !g.issue(decision.ReclaimFairShare, sub, k, victims, nil) {
		return false
	}
	for _, v := range victims {
		g.reorder(g.row[v.row].leaf)
	}
	return true
}

// mayGive tells whether a leaf that is so far above its quota may give a unit that counts so much to the taker: it or
// the taker is as far from its quota as its band.
func (g *Stage) mayGive(leaf plan.Node, surplus, gives int64) bool {
	f := &g.fair
	return surplus > share.Slack && (f.taker.banded || surplus+share.Slack >= g.band(f.v, leaf, gives))
}

// begin is what the taker's unit changes of the sum of squares.
func (t *taker) begin() (sum share.Squares) {
	sum.Add(t.deficit-share.Slack, t.gets)
	return sum
}

// mostUnits is how many units that count so much one may give that is so far above its quota, or more: it is above it
// before each.
func mostUnits(surplus, gives int64) int64 {
	if gives <= 1 {
		return 1 << 32
	}
	return (surplus-share.Slack-1)/(gives-1) + 1 // what a unit counts may be one 2⁻⁴⁸ less than the one before
}
