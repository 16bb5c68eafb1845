package oracle

import (
	"slices"

	"github.com/stintd/stint/core/plan"
)

// whole is a slot plan with exclusive placement in one cycle (SLOT-31): what counts is whole hosts, each with one
// holder, an allocation or a leaf. It takes from slots what knows no units: the tree, who owns what, the quotas.
type whole struct {
	*slots
	waits           []wait // what joined in this cycle
	need            map[plan.Node]int64
	dynamic, static map[plan.Node]int64 // share quotas, as of before anything is granted
}

// wait is a unit that waits for a host; room is what that costs: 0 where its holder is to get the host anyway.
type wait struct {
	sub     *sub
	host    *host
	room    int64
	account plan.Node // of a recall, else the root
}

func newWhole(c *Cluster, in int) *whole {
	s := &c.p.SlotPlans[in-len(c.p.MDPlans)]
	g := &whole{slots: &slots{frame: newFrame(c, in), s: s, w: &s.Windows[0], size: map[*host]int64{},
		owns:  map[plan.Node]int64{},
		pools: map[plan.Node]int64{}, wanted: map[plan.Node]int64{}}}
	g.known()
	all := int64(0) // S
	for _, h := range c.hosts {
		if slices.Contains(g.hosts, h) || g.taken(h) {
			g.size[h] = c.slotsOf(in, h)
		}
		if g.ok(h) || g.taken(h) {
			all += g.size[h]
		}
	}
	g.divide(plan.Root, all)
	for _, leaf := range g.leaves() {
		g.wanted[leaf] = g.placeable(leaf)
	}
	return g
}

// play is the plan's cycle after settle.
func (g *whole) play(r *Result) {
	g.label()
	g.need, g.dynamic, g.static = g.needs(), g.shares(g.needs()), g.shares(g.endless())
	g.review()
	g.promised()
	g.own()
	g.leave()
	g.overLimit()
	g.share()
	if !g.s.RecallFirst {
		g.borrow()
	}
	g.overMax()
	g.recall()
	if g.s.ShareReclaim {
		g.fairShare()
	}
	if g.s.RecallFirst {
		g.borrow()
	}
	g.explain(r)
	g.figures(r)
}

// placeable is a leaf's placeable demand D.
func (g *whole) placeable(leaf plan.Node) int64 {
	sum, most, counted := int64(0), int64(0), map[*host]bool{}
	for _, s := range g.below(leaf) {
		room := int64(0)
		for _, h := range g.candidates(s) {
			n := g.size[h] / s.slots()
			if g.small(s) {
				n = 0
			}
			if s.wanted > 0 && n > 0 && !counted[h] {
				counted[h] = true
				most += g.size[h]
			}
			if s.perHost != plan.Unlimited {
				n = min(n, s.perHost)
			}
			room += n
		}
		room += int64(len(g.units(func(u *unit) bool { return u.sub == s && !g.ok(u.host) })))
		sum += s.slots() * min(s.wanted, room)
	}
	for _, h := range g.held(func(h *host) bool { return !g.ok(h) && g.leaf(h) == leaf }) {
		most += g.size[h]
	}
	return min(sum, most)
}

// taken tells whether a host is held by somebody of the plan.
func (g *whole) taken(h *host) bool { return len(h.units) > 0 && h.units[0].sub.alloc.plan == g.in }

// held are the held hosts that ok accepts, in table order.
func (g *whole) held(ok func(h *host) bool) []*host {
	var list []*host
	for _, h := range g.Cluster.hosts {
		if g.taken(h) && ok(h) {
			list = append(list, h)
		}
	}
	return list
}

// holderOf is whom a host would serve that takes a unit: an allocation, or a
// leaf. holder is whom it serves, nil: nobody.
func (g *whole) holderOf(s *sub) any {
	if g.s.ExclusiveBy == "consumer" {
		return s.alloc.leaf
	}
	return s.alloc
}

func (g *whole) holder(h *host) any {
	if !g.taken(h) {
		return nil
	}
	return g.holderOf(h.units[0].sub)
}

// leaf, origin and lender are what all units of a held host have in common.
func (g *whole) leaf(h *host) plan.Node   { return h.units[0].leaf() }
func (g *whole) origin(h *host) string    { return h.units[0].origin }
func (g *whole) lender(h *host) plan.Node { return h.units[0].lender }

// net tells whether any unit of a host is not under reclaim.
func (g *whole) net(h *host) bool {
	return slices.ContainsFunc(h.units, func(u *unit) bool { return !u.leaves() })
}

// total adds up the slots of the held hosts that ok accepts; net: without those under reclaim.
func (g *whole) total(net bool, ok func(h *host) bool) int64 {
	sum := int64(0)
	for _, h := range g.held(ok) {
		if !net || g.net(h) {
			sum += g.size[h]
		}
	}
	return sum
}

// of is what a consumer and all below it hold of an origin, "" for all.
func (g *whole) of(n plan.Node, origin string, net bool) int64 {
	return g.total(net, func(h *host) bool { return g.under(n, g.leaf(h)) && (origin == "" || origin == g.origin(h)) })
}

func (g *whole) lent(leaf plan.Node, net bool) int64 {
	return g.total(net, func(h *host) bool { return g.lender(h) == leaf })
}

// room is what a set's unit will cost: its whole host, unless its holder has that by now.
func (g *whole) room(s *set) int64 {
	if g.holder(s.target) == g.holderOf(s.taker) {
		return 0
	}
	return g.size[s.target]
}

// kept is what of a set's room no victim occupies any more: all or nothing.
func (g *whole) kept(s *set) int64 {
	if len(g.units(func(u *unit) bool { return u.set == s })) > 0 {
		return 0
	}
	return g.room(s)
}

// rooms adds up the rooms of sets, and of what joined; keeps what sets keep.
func (g *whole) rooms(ok func(taker *sub, account plan.Node) bool) int64 {
	sum := int64(0)
	for _, s := range g.mine(func(s *set) bool { return ok(s.taker, s.account) }) {
		sum += g.room(s)
	}
	for _, w := range g.waits {
		if ok(w.sub, w.account) {
			sum += w.room
		}
	}
	return sum
}

func (g *whole) keeps(account plan.Node) int64 {
	sum := int64(0)
	for _, s := range g.mine(func(s *set) bool { return s.account == account }) {
		sum += g.kept(s)
	}
	return sum
}

// account is what is free now of a leaf's own, or of the pool for the root; netAccount what will be.
func (g *whole) account(a plan.Node) int64 {
	if a == plan.Root {
		return g.pooled(a) - g.of(a, sharePool, false) - g.keeps(a)
	}
	return g.owns[a] - g.of(a, owned, false) - g.lent(a, false) - g.keeps(a)
}

func (g *whole) netAccount(a plan.Node) int64 {
	rooms := g.rooms(func(_ *sub, account plan.Node) bool { return account == a })
	if a == plan.Root {
		return g.pooled(a) - g.of(a, sharePool, true) - rooms
	}
	return g.owns[a] - g.of(a, owned, true) - g.lent(a, true) - rooms
}

// idlePool is what is free now for a leaf of the pools that it may draw from, beside what sets keep.
func (g *whole) idlePool(leaf plan.Node) int64 {
	least := int64(1 << 60)
	for _, n := range g.bars(leaf) {
		kept := int64(0)
		for _, s := range g.mine(func(s *set) bool {
			return s.account == plan.Root &&
				g.under(n, s.taker.alloc.leaf)
		}) {
			kept += g.kept(s)
		}
		least = min(least, g.pooled(n)-g.of(n, sharePool, false)-kept)
	}
	return least
}

// netPool is what will be free of them, once all that is under way is done and a host, if one is given, is given back.
func (g *whole) netPool(leaf plan.Node, h *host) int64 {
	least := int64(1 << 60)
	for _, n := range g.bars(leaf) {
		back := int64(0)
		if h != nil && g.under(n, g.leaf(h)) {
			back = g.size[h]
		}
		least = min(least, g.pooled(n)-g.usage(n)+back)
	}
	return least
}

// reserver is the set that keeps a host, or takes it back for a taker; nil: none.
func (g *whole) reserver(h *host) *set {
	for _, s := range g.mine(func(s *set) bool { return s.target == h }) {
		return s
	}
	return nil
}

// spare is what of the empty hosts no owner could claim; netSpare the same once all that is under way is done.
func (g *whole) spare() int64 {
	sum := int64(0)
	for _, h := range g.hosts {
		if g.ok(h) && !g.taken(h) && g.reserver(h) == nil {
			sum += g.size[h]
		}
	}
	for _, leaf := range g.leaves() {
		sum -= max(0, g.account(leaf))
	}
	return sum
}

// mayLend tells whether a host of c slots may be lent (SLOT-10).
func (g *whole) mayLend(c int64) bool {
	left := -c
	for _, h := range g.hosts {
		if g.ok(h) && !g.taken(h) && g.reserver(h) == nil {
			left += g.size[h]
		}
	}
	for _, leaf := range g.leaves() {
		unfilled := min(g.reserved(leaf), g.owns[leaf]) - g.of(leaf, owned, false) - g.keeps(leaf)
		left -= min(max(0, g.account(leaf)), max(0, unfilled, g.wanted[leaf]-g.claimed(leaf)))
	}
	return g.spare() >= 0 || left >= 0
}

func (g *whole) netSpare() int64 {
	sum := int64(0)
	for _, h := range g.hosts {
		if g.comes(h) {
			sum += g.size[h]
		}
	}
	for _, leaf := range g.leaves() {
		sum -= max(0, g.netAccount(leaf))
	}
	return sum
}

// comes tells whether a host is empty, or will be, and nobody is promised it.
func (g *whole) comes(h *host) bool {
	return g.ok(h) && (!g.taken(h) || !g.net(h)) && g.reserver(h) == nil &&
		!slices.ContainsFunc(g.waits, func(w wait) bool { return w.host == h })
}

// pledged is how many units of a sub-allocation are promised, in all; pledgedOn on one host.
func (g *whole) pledged(s *sub) int64 {
	n := int64(len(g.mine(func(t *set) bool { return t.taker == s })))
	for _, w := range g.waits {
		if w.sub == s {
			n++
		}
	}
	return n
}

func (g *whole) pledgedOn(s *sub, h *host) int64 {
	n := int64(len(g.mine(func(t *set) bool { return t.taker == s && t.target == h })))
	for _, w := range g.waits {
		if w.sub == s && w.host == h {
			n++
		}
	}
	return n
}

// needs is what every consumer could take from pools.
func (g *whole) needs() map[plan.Node]int64 {
	use, need := map[plan.Node]int64{}, map[plan.Node]int64{}
	for n := plan.Node(g.p.Len() - 1); n >= plan.Root; n-- {
		if !g.member[n] {
			continue
		}
		if g.p.Leaf(n) {
			use[n] = min(g.wanted[n], g.owns[n]) + g.of(n, borrowed, true)
			if need[n] = max(0, g.wanted[n]-use[n]); g.barred(n) {
				need[n] = 0
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

// deserved is q.
func (g *whole) deserved(leaf plan.Node) int64 {
	if g.s.StaticQuota {
		q := g.static[leaf]
		for _, n := range g.way(leaf) {
			q = min(q, g.need[n])
		}
		return q
	}
	return g.dynamic[leaf]
}

// usage is what a consumer and all below it have from the pools, and are promised.
func (g *whole) usage(n plan.Node) int64 {
	return g.of(n, sharePool, true) + g.rooms(func(s *sub, account plan.Node) bool {
		return account == plan.Root && g.under(n, s.alloc.leaf)
	})
}

// claimed is what a consumer and all below it will hold.
func (g *whole) claimed(n plan.Node) int64 {
	return g.of(n, "", true) + g.rooms(func(s *sub, _ plan.Node) bool { return g.under(n, s.alloc.leaf) })
}

// roomy tells whether every share.max bears c slots more beside what is held and, unless they are promised, what sets
// will take beside it.
func (g *whole) roomy(leaf plan.Node, c int64, promised bool) bool {
	has := g.bound
	if promised {
		has = func(n plan.Node) int64 { return g.of(n, "", false) }
	}
	return g.over(leaf, c, has) == plan.None
}

// bound is what counts to a share.max beside which a host must fit.
func (g *whole) bound(n plan.Node) int64 {
	sum := g.of(n, "", false)
	for _, s := range g.mine(func(s *set) bool { return g.under(n, s.taker.alloc.leaf) }) {
		if len(g.units(func(u *unit) bool { return u.set == s && g.under(n, u.leaf()) })) == 0 {
			sum += g.room(s)
		}
	}
	for _, w := range g.waits {
		if g.under(n, w.sub.alloc.leaf) {
			sum += w.room
		}
	}
	return sum
}

// covered tells whether all that a sub-allocation is short of is promised.
func (g *whole) covered(s *sub) bool { return g.pledged(s) >= s.short() }
