package oracle

import (
	"cmp"
	"maps"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// slots is one slot plan in one cycle, by docs/slots.md. The figures in maps by consumer are settled before anything is
// granted; all others are counted from the units each time.
type slots struct {
	frame
	s      *plan.SlotPlan
	w      *plan.SlotWindow
	size   map[*host]int64     // S_h
	owns   map[plan.Node]int64 // o
	pools  map[plan.Node]int64 // F of branches; the root's is the cluster's pool
	wanted map[plan.Node]int64 // D of leaves
	quotas
	hybrids
	ahead  bool                // SLOT-12 is for a coming window: nothing is relabelled
	skip   map[*sub]bool       // the same in this step
	swept  map[plan.Node]int64 // by leaf, taken back from the pools in this step
	gaveUp map[*sub]bool       // gangs that gave up in this cycle: they make no room in it
}

// quotas are what leaves are entitled to from the pools.
type quotas struct {
	dynamic, static map[plan.Node]int64 // share quotas
	deserved        map[plan.Node]int64 // q
	quota           map[plan.Node]int64 // of hybrid consumers
}

func newSlots(c *Cluster, in int) *slots {
	s := &c.p.SlotPlans[in-len(c.p.MDPlans)]
	g := &slots{frame: newFrame(c, in), s: s, w: &s.Windows[c.window(in)], size: map[*host]int64{},
		owns:  map[plan.Node]int64{},
		pools: map[plan.Node]int64{}, wanted: map[plan.Node]int64{}}
	g.bill()
	all := g.taken(false, func(u *unit) bool { return !g.ok(u.host) }) // S
	for _, h := range g.hosts {
		g.size[h] = c.slotsOf(in, h)
		if g.ok(h) {
			all += g.size[h]
		}
	}
	g.divide(plan.Root, all)
	return g
}

// known panics for what the oracle does not know.
func (g *slots) known() {
	if len(g.s.Windows) > 1 {
		panic("oracle: windows")
	}
	for _, n := range g.children(plan.Root) {
		if g.w.Policy[n] == plan.Hybrid {
			panic("oracle: hybrid")
		}
	}
}

// play is the plan's cycle after settle.
func (g *slots) play(r *Result) {
	g.frame.hold()
	g.disband()
	g.label()
	g.switchOver()
	g.entitle()
	g.review()
	g.naturalize(g.seasons[g.in].reason, false) // what was to go to takers that no longer wait
	g.promised()
	g.frame.hold()
	g.own()
	g.leave()
	g.overLimit()
	g.share()
	if !g.s.RecallFirst {
		g.borrow()
	}
	g.deal()
	g.overMax()
	g.rejoin()
	g.recall()
	g.fairShare()
	g.takeBack()
	if g.s.RecallFirst {
		g.borrow()
	}
	g.explain(r)
	g.figures(r)
}

// leaves are the leaves of the plan in tree order.
func (g *slots) leaves() []plan.Node {
	var list []plan.Node
	for n := plan.Root; int(n) < g.p.Len(); n++ {
		if g.member[n] && g.p.Leaf(n) {
			list = append(list, n)
		}
	}
	return list
}

// inner are the consumers of the plan that have others below them, in tree order.
func (g *slots) inner() []plan.Node {
	var list []plan.Node
	for n := plan.Root + 1; int(n) < g.p.Len(); n++ {
		if g.member[n] && !g.p.Leaf(n) {
			list = append(list, n)
		}
	}
	return list
}

// ranked puts consumers in rank order.
func (g *slots) ranked(list []plan.Node) []plan.Node {
	slices.SortStableFunc(list, func(a, b plan.Node) int { return g.rankOrder(g.in, a, b) })
	return list
}

// reserved is what of a consumer's own is not for lending (r).
func (g *slots) reserved(n plan.Node) int64 {
	if g.p.Leaf(n) {
		return g.w.Owns[n] - min(g.w.LendLimit[n], g.w.Owns[n])
	}
	return total(g.children(n), g.reserved)
}

// divide gives a consumer what it owns and divides that below it: reserves by rank, then the rest by rank; what is
// left of a branch's is its family pool (SLOT-1, SLOT-13). What first-level owners leave is
// for the hybrid branches, if there are any.
func (g *slots) divide(n plan.Node, got int64) {
	g.owns[n] = got
	kids, part := g.ranked(slices.DeleteFunc(g.children(n), g.hybrid)), map[plan.Node]int64{}
	give := func(k plan.Node, most int64) {
		most = min(most, got)
		part[k] += most
		got -= most
	}
	for _, k := range kids {
		give(k, g.reserved(k))
	}
	for _, k := range kids {
		give(k, g.w.Owns[k]-g.reserved(k))
	}
	for _, k := range kids {
		g.divide(k, part[k])
	}
	if n == plan.Root && len(kids) < len(g.children(n)) {
		g.scale(got)
		got = 0
	}
	if !g.p.Leaf(n) {
		g.pools[n] = got
	}
}

// pooled is T, or the part of it that comes from a consumer and all below it.
func (g *slots) pooled(n plan.Node) int64 { return g.pools[n] + total(g.children(n), g.pooled) }

// lendable is how much of what a leaf owns may be lent: its limit, and never the reserve (SLOT-13, INV-3).
func (g *slots) lendable(n plan.Node) int64 { return max(0, g.owns[n]-g.reserved(n)) }

// placeable is a leaf's placeable demand D.
func (g *slots) placeable(leaf plan.Node) int64 {
	sum := int64(0)
	for _, s := range g.below(leaf) {
		name, prefers := s.asksFor()
		room := g.capacity(s, func(*host) bool { return true })
		if name != "" && !prefers && g.waits(s) { // where it could be together, whatever it is promised
			value, held := g.bonds[s]
			delete(g.bonds, s)
			room = 0
			for _, v := range g.values(s) {
				room = max(room, g.capacityAt(s, v))
			}
			if held {
				g.bonds[s] = value
			}
		}
		room += int64(len(g.units(func(u *unit) bool { return u.sub == s && !g.ok(u.host) })))
		if room < s.least {
			room = 0 // none of it is ever of use
		}
		sum += s.slots() * min(s.wanted, room)
	}
	return sum
}

// capacity is how many units of a sub-allocation hosts of a kind would take, were they empty.
func (g *slots) capacity(s *sub, of func(h *host) bool) int64 {
	return total(g.candidates(s), func(h *host) int64 {
		n := g.size[h] / s.slots()
		if g.small(s) || !of(h) {
			n = 0
		}
		if s.perHost != plan.Unlimited {
			n = min(n, s.perHost)
		}
		return n
	})
}

// capacityAt is the same of hosts with a value of the attribute by which a gang is to be together.
func (g *slots) capacityAt(s *sub, v any) int64 {
	return g.capacity(s, func(h *host) bool { return s.place(h) == v })
}

// entitle settles what leaves are entitled to from the pools.
func (g *slots) entitle() {
	for _, leaf := range g.leaves() {
		g.wanted[leaf] = g.placeable(leaf)
	}
	need := g.needs()
	g.quota = g.quotasOf()
	g.dynamic, g.static = g.shares(maps.Clone(need)), g.shares(g.endless())
	g.deserved = g.dynamic
	if g.s.StaticQuota {
		g.deserved = map[plan.Node]int64{}
		for _, leaf := range g.leaves() {
			g.deserved[leaf] = g.static[leaf]
			for _, n := range g.way(leaf) {
				g.deserved[leaf] = min(g.deserved[leaf], need[n])
			}
		}
	}
}

// total adds up a figure of each of a list.
func total[T any](list []T, figure func(T) int64) int64 {
	sum := int64(0)
	for _, one := range list {
		sum += figure(one)
	}
	return sum
}

// taken adds up the slots of the units that ok accepts; net leaves out those under reclaim (CYC-7).
func (g *slots) taken(net bool, ok func(u *unit) bool) int64 {
	return total(g.units(func(u *unit) bool { return ok(u) && !(net && u.leaves()) }), (*unit).slots)
}

// held is what a consumer and all below it hold of an origin, "" for all.
func (g *slots) held(n plan.Node, origin string, net bool) int64 {
	return g.taken(net, func(u *unit) bool { return g.under(n, u.leaf()) && (origin == "" || origin == g.as(u)) })
}

// lent is what others have borrowed from a leaf, orphans and those too who have changed to the hybrid policy.
func (g *slots) lent(leaf plan.Node, net bool) int64 {
	return g.taken(net, func(u *unit) bool {
		return u.lender == leaf && u.origin == borrowed && (!g.foreign(u) || g.owed(u))
	})
}

// on is what is held on a host.
func (g *slots) on(h *host, net bool) int64 {
	return g.taken(net, func(u *unit) bool { return u.host == h })
}

// rooms adds up the rooms of sets, joins the slots of units that have joined.
func (g *slots) rooms(ok func(s *set) bool) int64 {
	return total(g.mine(ok), func(s *set) int64 { return s.room()[0] })
}

func (g *slots) joins(ok func(j joined) bool) int64 {
	list := slices.DeleteFunc(slices.Clone(g.joined), func(j joined) bool { return !ok(j) })
	return total(list, func(j joined) int64 { return j.sub.slots() })
}

// keeps adds up what sets keep.
func (g *slots) keeps(ok func(s *set) bool) int64 {
	return total(g.mine(ok), func(s *set) int64 { return g.kept(s)[0] })
}

// free is what a host has for units now; netFree what it will have once all sets under way are done.
func (g *slots) free(h *host) int64 {
	return g.size[h] - g.on(h, false) - g.keeps(func(s *set) bool { return s.target == h })
}

func (g *slots) netFree(h *host) int64 {
	return g.size[h] - g.on(h,
		true) - g.rooms(func(s *set) bool { return s.target == h }) - g.joins(func(j joined) bool {
		return j.host == h
	})
}

// account is what is free now of an account: a leaf's own, or the pool for the root.
func (g *slots) account(a plan.Node) int64 {
	kept := g.keeps(func(s *set) bool { return s.account == a })
	if a == common {
		return g.all - g.blend(false) - kept
	}
	if a == plan.Root {
		return g.pooled(a) - g.held(a, sharePool, false) - kept
	}
	return g.owns[a] - g.held(a, owned, false) - g.lent(a, false) - kept
}

// netAccount is what will be free of an account once all sets under way are done.
func (g *slots) netAccount(a plan.Node) int64 {
	gone := g.rooms(func(s *set) bool { return s.account == a }) + g.joins(func(j joined) bool {
		return j.account == a
	})
	if a == common {
		return g.all - g.blend(true) - gone
	}
	return g.owns[a] - g.held(a, owned, true) - g.lent(a, true) - gone
}

// ownIdle is what a leaf may use of its own beside what it is promised: where units of hybrid leaves are to give that,
// the account counts it as free.
func (g *slots) ownIdle(leaf plan.Node) int64 {
	return min(g.account(leaf), g.owns[leaf]-g.held(leaf, owned, true)-g.lent(leaf, true)-g.rooms(func(s *set) bool {
		return s.account == leaf
	}))
}

// spare is what of the idle slots no owner could claim.
func (g *slots) spare() int64 { return g.spared(g.free, g.account) }

// mayLend tells whether so many idle slots may be lent: none of them is anybody's claim, or else owners neither reserve
// nor want them (SLOT-10).
func (g *slots) mayLend(k int64) bool {
	return g.spare() >= 0 || g.unneeded() >= k
}

// unneeded is how many idle slots owners neither reserve nor want.
func (g *slots) unneeded() int64 {
	left := int64(0)
	for _, h := range g.hosts {
		if g.ok(h) {
			left += max(0, g.free(h))
		}
	}
	for _, leaf := range g.leaves() {
		if !g.hybrid(leaf) {
			kept := g.keeps(func(s *set) bool { return s.account == leaf })
			unfilled := min(g.reserved(leaf), g.owns[leaf]) - g.held(leaf, owned, false) - kept
			left -= min(max(0, g.account(leaf)), max(0, unfilled, g.wanted[leaf]-g.claimed(leaf)))
		}
	}
	return left
}

func (g *slots) spared(free func(h *host) int64, own func(leaf plan.Node) int64) int64 {
	sum := int64(0)
	for _, h := range g.hosts {
		if g.ok(h) {
			sum += max(0, free(h))
		}
	}
	for _, leaf := range g.leaves() {
		sum -= max(0, own(leaf))
	}
	return sum
}

// needs is what every consumer could take from pools (SLOT-6): what it can use of the
// demand beyond its own and what it borrowed.
func (g *slots) needs() map[plan.Node]int64 {
	use, need := map[plan.Node]int64{}, map[plan.Node]int64{}
	for n := plan.Node(g.p.Len() - 1); n >= plan.Root; n-- { // children come before their parents
		switch {
		case !g.member[n]:
			continue
		case g.p.Leaf(n):
			use[n] = min(g.wanted[n], g.owns[n]) + g.held(n, borrowed, true)
			if need[n] = max(0, g.wanted[n]-use[n]); g.barred(n) {
				need[n] = 0
			}
			if g.broke[g.in][n] {
				need[n] = min(need[n], g.held(n, sharePool, true))
			}
		}
		for _, k := range g.children(n) {
			use[n] += use[k]
			need[n] += need[k]
		}
		if most := g.w.Max[n]; n != plan.Root && most != plan.Unlimited {
			need[n] = min(need[n], max(0, most-use[n]))
		}
	}
	return need
}

// shares divides the pools, the deepest first, down their branches; what nobody there needs
// goes up (SLOT-6). Only leaves have a quota.
func (g *slots) shares(need map[plan.Node]int64) map[plan.Node]int64 {
	quota, over := map[plan.Node]int64{}, map[plan.Node]int64{}
	branches := append([]plan.Node{plan.Root}, g.inner()...)
	slices.SortStableFunc(branches, func(a, b plan.Node) int { return cmp.Compare(g.p.Depth[b], g.p.Depth[a]) })
	for _, n := range branches {
		pool := g.pools[n] + over[n]
		part := min(pool, g.asksBelow(n, need))
		for _, up := range append(g.way(n), plan.Root) { // no more than a max on the way can use
			part = min(part, need[up])
		}
		g.pour(n, part, need, quota)
		if n != plan.Root {
			over[g.p.Parent[n]] += pool - part
		}
	}
	return quota
}

// pour divides an amount below a consumer: by water-filling, what rounding leaves in rank order (SLOT-24).
func (g *slots) pour(n plan.Node, amount int64, need, quota map[plan.Node]int64) {
	if g.p.Leaf(n) {
		quota[n] += amount
		for _, up := range append(g.way(n), plan.Root) {
			need[up] -= amount
		}
		return
	}
	var caps, ratios []uint64
	kids := g.ranked(g.children(n))
	for _, k := range kids {
		caps, ratios = append(caps, uint64(g.asks(k, need))), append(ratios, uint64(g.ratio[k]))
	}
	for i, part := range fill(uint64(amount), caps, ratios) {
		g.pour(kids[i], int64(part), need, quota)
	}
}

// usage is what a consumer and all below it have from the pools: net share, and the room promised to them.
func (g *slots) usage(n plan.Node) int64 {
	return g.held(n, sharePool,
		true) + g.rooms(func(s *set) bool { return s.account == plan.Root && g.under(n, s.taker.alloc.leaf) }) +
		g.joins(func(j joined) bool { return j.account == plan.Root && g.under(n, j.sub.alloc.leaf) })
}

// over finds the share.max nearest to a leaf that k slots more would exceed, None when all bear them.
func (g *slots) over(leaf plan.Node, k int64, has func(n plan.Node) int64) plan.Node {
	for _, n := range slices.Backward(g.way(leaf)) {
		if most := g.most(n); most != plan.Unlimited && has(n)+k > most {
			return n
		}
	}
	return plan.None
}

// most is the cap on all that a consumer holds: its share.max, under the hybrid policy its limit.
func (g *slots) most(n plan.Node) int64 {
	if g.hybrid(n) {
		return g.w.Limit[n]
	}
	return g.w.Max[n]
}

// bill charges sets that take what is shared to the account that their takers have by now.
func (g *slots) bill() {
	for _, s := range g.mine(func(s *set) bool { return s.reason == "fair_share" }) {
		if s.account = plan.Root; g.hybrid(s.taker.alloc.leaf) {
			s.account = common
		}
	}
}

// bound is what counts to a share.max beside which a unit must fit: what is held and what sets will take beside it.
func (g *slots) bound(n plan.Node) int64 {
	sum := g.holds(n) + g.joins(func(j joined) bool { return g.under(n, j.sub.alloc.leaf) })
	for _, s := range g.mine(func(s *set) bool { return g.under(n, s.taker.alloc.leaf) }) {
		sum += max(0, s.room()[0]-g.taken(false, func(u *unit) bool { return u.set == s && g.under(n, u.leaf()) }))
	}
	return sum
}

// holds is what a consumer and all below it hold.
func (g *slots) holds(n plan.Node) int64 { return g.held(n, "", false) }

// claimed is what they will hold once all sets under way are done.
func (g *slots) claimed(n plan.Node) int64 {
	return g.held(n, "", true) + g.rooms(func(s *set) bool { return g.under(n, s.taker.alloc.leaf) }) +
		g.joins(func(j joined) bool { return g.under(n, j.sub.alloc.leaf) })
}
