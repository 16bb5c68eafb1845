package oracle

import (
	"cmp"
	"maps"
	"math/big"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// Gangs in MD plans (REQ-3), by docs/shares.md, "Gangs".

// gang tells whether a sub-allocation is to hold at least so many units, or none.
func (s *sub) gang() bool { return s.least > 1 && !s.alloc.orphan }

// asks lowers the least number of a gang to what it wants.
func (s *sub) asks() { s.least = max(1, min(s.least, s.wanted)) }

// staying is what a sub-allocation holds that is not under reclaim.
func (c *Cluster) staying(s *sub) []*unit {
	return slices.DeleteFunc(c.units(), func(u *unit) bool { return u.sub != s || u.leaves() })
}

// broken releases what is left of gangs that hold something, but less than their least number.
func (c *Cluster) broken() {
	for _, a := range c.allocs {
		for _, s := range a.subs {
			if n := int64(len(c.staying(s))); !s.gang() || n == 0 || n >= s.least {
				continue
			}
			for _, u := range c.units() {
				if u.sub == s {
					c.take(u, "gang_broken")
				}
			}
		}
	}
}

// formed tells whether a sub-allocation is no gang that waits for all of its least number.
func (f *frame) formed(s *sub) bool { return !s.gang() || int64(len(f.staying(s))) >= s.least }

// mark notes which gangs wait, and which units are the last ones that formed gangs may not do without: all but the
// newest.
func (g *round) mark() {
	g.core, g.forming, g.partial = map[*unit]bool{}, map[*sub]bool{}, map[*sub]bool{}
	for _, s := range g.below(plan.Root) {
		if !s.gang() {
			continue
		}
		units := g.staying(s)
		if int64(len(units)) < s.least {
			g.forming[s], g.partial[s] = true, len(units) > 0
			continue
		}
		slices.SortFunc(units, g.newest)
		for _, u := range units[int64(len(units))-s.least:] {
			g.core[u] = true
		}
	}
}

// form places all of the least number of a gang that holds nothing, or none of it.
func (g *round) form(s *sub, place func(s *sub) bool) bool {
	if g.partial[s] || s.short()-g.pledged(s) < s.least {
		return false
	}
	delete(g.forming, s)
	if !g.somewhere(s, func() bool { return g.several(s, s.least, place) == s.least }) {
		g.forming[s] = true
		return false
	}
	g.loose = true // what it wants besides may fit where it has had its turn
	return true
}

// several places so many units of a sub-allocation, or none where they do not all fit; it tells how many do.
func (g *round) several(s *sub, units int64, place func(s *sub) bool) (n int64) {
	for n < units && place(s) {
		n++
	}
	if n < units {
		g.withdraw(s, n)
	}
	return n
}

// withdraw takes so many of a sub-allocation's units back that were placed last.
func (g *round) withdraw(s *sub, units int64) {
	for range units {
		list := g.units(func(u *unit) bool { return u.sub == s })
		g.drop(slices.MaxFunc(list, func(a, b *unit) int { return cmp.Compare(a.row, b.row) }))
	}
}

// placeFree grants one unit on own parcels by preference, where they have room.
func (g *round) placeFree(s *sub) bool {
	leaf := s.alloc.leaf
	own := g.pool(leaf).usable(s)
	for preference := int8(1); preference <= 10; preference++ {
		list := slices.DeleteFunc(slices.Clone(own), func(t parcel) bool {
			return g.w.Preference[g.group[t.host]][leaf] != preference
		})
		if to, ok := g.spot(s, list); ok {
			g.grantOn(s, to)
			return true
		}
	}
	return false
}

// placeAnywhere grants one unit on own parcels, else from the nearest pool that has room.
func (g *round) placeAnywhere(s *sub) bool {
	if g.placeFree(s) {
		return true
	}
	for n := g.p.Parent[s.alloc.leaf]; n != plan.None; n = g.p.Parent[n] {
		if q := g.pool(n); !q.barred(s.alloc.leaf) && q.place(s) {
			return true
		}
	}
	return false
}

// together lets gangs that still wait form over own parcels and all pools: leaf by leaf, as MD-16 has them in the
// root's pool before any of them does; at last leaves that a ratio of 0 keeps from that.
func (g *round) together() {
	q, has := g.pool(plan.Root), map[plan.Node]uint64{}
	tree, rest := map[plan.Node]bool{}, []plan.Node(nil)
	for n := range plan.Node(g.p.Len()) {
		has[n] = q.stake(n)
		switch waits := slices.ContainsFunc(g.below(n), func(s *sub) bool { return g.forming[s] }); {
		case !g.p.Leaf(n) || !waits:
		case q.barred(n):
			rest = append(rest, n)
		default:
			tree[n] = true
		}
	}
	serve := func(leaf plan.Node) {
		tried := map[*sub]bool{}
		for g.serve(leaf, g.counted, func(s *sub) bool {
			if !g.forming[s] || tried[s] {
				return false
			}
			tried[s] = true
			formed := g.form(s, g.placeAnywhere)
			if formed {
				g.notes["gang formed over several pools"]++
			}
			return formed
		}) {
		}
	}
	for len(tree) > 0 {
		leaf := q.choose(plan.Root, tree, func(a, b plan.Node) bool {
			return q.before(a, b, func(n plan.Node) uint64 { return has[n] })
		})
		serve(leaf)
		delete(tree, leaf)
	}
	for _, leaf := range rest {
		serve(leaf)
	}
}

// promisedWhole grants a gang that waits what its sets hold room for, once they hold it for all of its least number.
func (g *round) promisedWhole(s *sub) {
	var list []*set
	given := map[*set]int64{}
	units := int64(len(g.staying(s)))
	for _, t := range g.mine(func(t *set) bool { return t.taker == s }) {
		for list = append(list, t); t.n > 0 && g.frees(t); t.n-- {
			g.grantOn(s, g.parcel(t.target, t.owner))
			given[t]++
			units++
		}
	}
	for _, t := range list {
		switch {
		case units < s.least:
			g.withdraw(s, given[t])
			t.n += given[t]
		case t.n == 0:
			g.trim(t, t.room())
		}
	}
	if units >= s.least {
		g.notes["gang formed by promises"]++
	}
}

// frees tells whether the room for a unit of a set's taker has come free.
func (g *round) frees(s *set) bool {
	to := g.parcel(s.target, s.owner)
	return fits(s.taker.size, plus(g.room(s.taker.alloc.leaf, to), g.kept(s), 1)) && !g.atLimit(s)
}

// atLimit tells whether a share limit stands against a unit of a set's taker by what is held (MD-18.3).
func (g *round) atLimit(s *set) bool {
	q := g.pool(g.meet(s.taker.alloc.leaf, s.owner))
	_, _, hit := q.limited(s.taker, func(n plan.Node) []int64 {
		v := make([]int64, len(s.taker.size))
		for _, u := range g.units(present) {
			if g.limitedBy(u, n) {
				plus(v, u.sub.size, 1)
			}
		}
		return v
	})
	return hit
}

// giveUp lets all sets of gangs lapse that wait and are not promised all of their least number any more; where late is
// true, of those that have waited for longer than the plan's gang_wait.
func (g *round) giveUp(late bool) {
	for _, s := range g.holders(plan.Root) {
		sets := g.mine(func(t *set) bool { return t.taker == s })
		if g.formed(s) || len(sets) == 0 {
			continue
		}
		if late && g.nowUS-g.times[sets[0].cycle] > g.m.GangWaitUS {
			g.gaveUp[s] = true
			g.notes["gang gave up"]++
		} else if late || int64(len(g.staying(s)))+g.pledged(s) >= s.least {
			continue
		}
		for _, t := range slices.Backward(sets) {
			for t.n > 0 {
				g.lapse(t)
			}
		}
		s.took()
	}
}

// gangs lets gangs that wait take back for all of their least number at once: leaf by leaf in rank order.
func (g *round) gangs() {
	leaves := slices.DeleteFunc(g.nodes(), func(n plan.Node) bool { return !g.p.Leaf(n) })
	slices.SortStableFunc(leaves, func(a, b plan.Node) int { return g.rankOrder(g.in, a, b) })
	for _, leaf := range leaves {
		tried := map[*sub]bool{}
		for g.serve(leaf, g.counted, func(s *sub) bool {
			if g.formed(s) || tried[s] {
				return false
			}
			tried[s] = true
			return g.gather(s)
		}) {
		}
	}
}

// gather makes sets for all of the least number of a gang, or none.
func (g *round) gather(s *sub) bool {
	if len(g.staying(s)) > 0 || g.pledged(s) > 0 || s.short() < s.least || s.turns >= 5 || g.gaveUp[s] {
		return false
	}
	delete(g.bonds, s)
	return g.among(s, func() []any { return g.roomiest(s, g.values(s), g.roomAt) }, func() bool {
		return g.gatherHere(s)
	})
}

// gatherHere is gather where the gang may be.
func (g *round) gatherHere(s *sub) bool {
	undo, spent := g.attempt(), g.spent
	g.mark()
	g.firm = true
	ok := g.gatherAll(s)
	g.firm = false
	for _, u := range g.units(func(u *unit) bool { return u.leaves() && u.set.taker == s }) {
		ok = ok && u.due <= g.nowUS+g.m.GangWaitUS
	}
	taken := g.spent - spent
	if ok {
		if g.spent = spent; g.affords(taken) {
			g.spent += taken
			s.turns += s.turns % 2
			g.notes["gang takes back"]++
			return true
		}
	}
	undo()
	g.denied[s] = g.denied[s] || ok
	return false
}

// gatherAll makes sets for units of a gang until they are its least number.
func (g *round) gatherAll(s *sub) bool {
	leaf, n := s.alloc.leaf, int64(0)
	for n < s.least && (g.holdAnywhere(s) || g.recallFor(s) == served) {
		n++
	}
	for _, q := range g.pools() {
		g.due[q.at] = q.deserved(q.stake(q.at))
	}
	for x := g.p.Parent[leaf]; x != plan.None && n < s.least; x = g.p.Parent[x] {
		q := g.pool(x)
		if q.barred(leaf) || !q.w.ShareReclaim[leaf] {
			continue
		}
		q.begin()
		n = q.gatherIn(s, n)
	}
	return n == s.least
}

// gatherIn finds room for more units of a gang in the pool, and tells how many have room then (MD-17.7).
func (q pool) gatherIn(s *sub, n int64) int64 {
	leaf := s.alloc.leaf
	clear(q.has)
	began := q.deficit(leaf)
	progress := &gathering{all: q.step(leaf, s.size, s.least-n), deficit: began, sum: new(big.Int)}
	for ; n < s.least; n++ {
		if (q.stops(s) || !q.hold(s)) && !q.moveFor(s, false, progress) {
			return n
		}
		clear(q.has)
		progress.got = began - q.deficit(leaf)
	}
	return n
}

// stops tells whether a share limit stands against a unit more from the pool.
func (q pool) stops(s *sub) bool {
	_, _, hit := q.limited(s, q.claimed)
	return hit
}

// holdAnywhere holds free room for a unit of a gang on own parcels, else in the nearest pool that has some.
func (g *round) holdAnywhere(s *sub) bool {
	for x := s.alloc.leaf; x != plan.None; x = g.p.Parent[x] {
		if q := g.pool(x); !q.barred(s.alloc.leaf) && !q.stops(s) && q.hold(s) {
			return true
		}
	}
	return false
}

// hold holds room for a unit of a gang on the first parcel that has it: what is free, and what the gang's own victims
// there leave beside its other units.
func (q pool) hold(s *sub) bool {
	for _, t := range q.usable(s) {
		if !q.takes(s, t, 0) || !fits(s.size, q.netRoom(s.alloc.leaf, t)) {
			continue
		}
		var own *set
		for _, o := range q.setsOn(t) {
			if o.taker == s {
				own = o
			}
		}
		more := s.size
		if own != nil {
			kept := q.kept(own)
			own.n++
			more = plus(q.kept(own), kept, -1)
			own.n--
		}
		if !fits(more, q.room(s.alloc.leaf, t)) {
			continue
		}
		if own != nil {
			own.n++
			return true
		}
		return q.claim(&set{reason: "recall", target: t.host, owner: t.owner, taker: s}, nil)
	}
	return false
}

// attempt gives a function that makes everything what it is now.
func (g *round) attempt() (undo func()) {
	restore, was, turns := g.remember(), *g, map[*sub]int{}
	was.joined, was.denied, was.undone = slices.Clone(g.joined), maps.Clone(g.denied), maps.Clone(g.undone)
	was.due, was.has, was.passed = maps.Clone(g.due), maps.Clone(g.has), maps.Clone(g.passed)
	was.vain, was.only = maps.Clone(g.vain), maps.Clone(g.only)
	for _, a := range g.allocs {
		for _, s := range a.subs {
			turns[s] = s.turns
		}
	}
	return func() {
		restore()
		*g = was
		for s, n := range turns {
			s.turns = n
		}
	}
}

// keepWhole lets what was taken for a gang's sake alone stay, where the gang has its least number then.
func (g *round) keepWhole() {
	for _, s := range g.below(plan.Root) {
		n := len(g.staying(s))
		tied := g.units(func(u *unit) bool { return u.sub == s && u.leaves() && u.set.reason == "gang" })
		if !s.gang() || n == 0 || g.formed(s) || int64(n+len(tied)) < s.least {
			continue
		}
		slices.SortFunc(tied, func(a, b *unit) int { return cmp.Compare(b.number, a.number) })
		for _, u := range tied {
			g.cancel(u)
		}
		g.notes["gang stays after all"]++
	}
}

// complete takes the rest of gangs of which so much was taken that they hold less than their least number, at the last
// deadline of what goes already.
func (g *round) complete() {
	for _, s := range g.below(plan.Root) {
		if !s.gang() || len(g.staying(s)) == 0 || g.formed(s) {
			continue
		}
		due := g.nowUS
		for _, u := range g.units(func(u *unit) bool { return u.sub == s && u.leaves() }) {
			due = max(due, u.due)
		}
		list := g.staying(s)
		slices.SortFunc(list, g.newest)
		for _, u := range list {
			if g.reclaim(u, &set{number: g.next(), plan: g.in, reason: "gang"}); u.leaves() {
				g.reclaimed[claim{u.sub, u.host, "issued", "gang", nil, u.due, deviceText(u.devices)}]--
				u.due = due
				g.reclaimed[claim{u.sub, u.host, "issued", "gang", nil, u.due, deviceText(u.devices)}]++
			}
		}
		g.notes["gang goes whole"]++
	}
	maps.DeleteFunc(g.reclaimed, func(_ claim, n int64) bool { return n == 0 })
}

// fitting is how many units of a gang that waits would fit now, of its least number.
func (g *round) fitting(s *sub) int64 {
	was := maps.Clone(g.forming)
	delete(g.forming, s)
	n := int64(0)
	for n < s.least && g.placeAnywhere(s) {
		n++
	}
	g.withdraw(s, n)
	g.forming = was
	return n
}

// coreLast orders units that formed gangs may not do without behind all others.
func (f *frame) coreLast(a, b *unit) int { return order(f.core[a]) - order(f.core[b]) }

// byHost orders units host by host, of each in CYC-5's order, those that gangs may not do without last.
func (f *frame) byHost(a, b *unit) int {
	return cmp.Or(cmp.Compare(f.place(a), f.place(b)), f.coreLast(a, b), f.sooner(a, b))
}

// firstBut is first, of what formed gangs may not do without only where nothing else is.
func (f *frame) firstBut(units []*unit, ok func(u *unit) bool) *unit {
	if u := f.first(units, func(u *unit) bool { return !f.core[u] && ok(u) }); u != nil {
		return u
	}
	return f.first(units, ok)
}
