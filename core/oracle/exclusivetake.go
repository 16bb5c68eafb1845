package oracle

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// review takes hosts off the reclaim of rules that no longer ask for it, the latest first; then sets of takers lapse,
// in order of number, whose taker no longer wants, fits or deserves its unit.
func (g *whole) review() {
	var rules []*set
	for _, u := range g.units(func(u *unit) bool { return u.leaves() && u.set.taker == nil }) {
		if !slices.Contains(rules, u.set) {
			rules = append(rules, u.set)
		}
	}
	slices.SortFunc(rules, func(a, b *set) int { return cmp.Compare(b.number, a.number) })
	for _, s := range rules {
		back, h := false, s.target
		switch s.reason {
		case "drain", "ownership_change":
			back = slices.Contains(g.hosts, h) && h.State != "draining"
		default:
			back = g.bears(h)
		}
		if back {
			g.free(s)
		}
	}
	for _, s := range g.mine(func(*set) bool { return true }) {
		if !g.stands(s) {
			g.lapse(s)
		}
	}
}

// free cancels all that a set still takes.
func (g *whole) free(s *set) {
	for _, u := range g.units(func(u *unit) bool { return u.set == s }) {
		g.cancel(u)
	}
}

// lapse ends a set.
func (g *whole) lapse(s *set) {
	s.n = 0
	g.free(s)
}

// stands tells whether a set's taker still wants, fits and deserves its unit, besides those of the sets before it.
func (g *whole) stands(s *set) bool {
	t, leaf, h := s.taker, s.taker.alloc.leaf, s.target
	soFar := func(ok func(o *set) bool) int64 {
		sum := int64(0)
		for _, o := range g.mine(func(o *set) bool { return o.number <= s.number && ok(o) }) {
			sum += g.room(o)
		}
		return sum
	}
	units := int64(len(g.mine(func(o *set) bool { return o.number <= s.number && o.taker == t })))
	room := g.room(s)
	stranger := g.taken(h) && g.holder(h) != g.holderOf(t) &&
		len(g.units(func(u *unit) bool { return u.set == s })) == 0
	switch {
	case t.short() < units:
		return false
	case !g.ok(h) || !g.meets(t, h) || g.size[h] < t.slots() || full(t, h, 0) || g.small(t):
		return false
	case stranger || room == 0 && g.size[h]-g.used(h) < t.slots():
		return false
	case g.over(leaf, 0, func(n plan.Node) int64 {
		return g.of(n, "", true) + soFar(func(o *set) bool { return g.under(n, o.taker.alloc.leaf) })
	}) != plan.None:
		return false
	case room == 0:
		return true
	case s.account != plan.Root:
		return g.owns[leaf]-g.of(leaf, owned, true)-g.lent(leaf,
			true)-soFar(func(o *set) bool { return o.account == leaf })+room >= 1
	}
	pool := func(n plan.Node) int64 {
		return g.of(n, sharePool,
			true) + soFar(func(o *set) bool { return o.account == plan.Root && g.under(n, o.taker.alloc.leaf) }) - room
	}
	return pool(leaf) < g.deserved(leaf) && !slices.ContainsFunc(g.bars(leaf), func(n plan.Node) bool {
		return pool(n) >= g.pooled(n)
	})
}

// bears tells whether the account of a host's origin, its lender, the limits and every share.max bear it again.
func (g *whole) bears(h *host) bool {
	leaf, c := g.leaf(h), g.size[h]
	if g.net(h) {
		return true // it counts as it is
	}
	if g.over(leaf, c, g.claimed) != plan.None {
		return false
	}
	switch m := g.lender(h); g.origin(h) {
	case owned:
		return g.netAccount(leaf) >= c
	case sharePool:
		return g.netAccount(plan.Root) >= c && g.spared(leaf, c)
	default:
		most := g.w.BorrowLimit[leaf]
		return g.netAccount(m) >= c && g.lendable(m)-g.lent(m, true) >= c && g.agree(m, leaf) &&
			(most == plan.Unlimited || g.of(leaf, borrowed, true)+c <= most)
	}
}

// spared tells whether no set of a leaf's lapses when it holds c slots more from the pools (else that would bring the
// limit's reclaim back).
func (g *whole) spared(leaf plan.Node, c int64) bool {
	net, q := g.of(leaf, sharePool, true), g.deserved(leaf)
	for _, s := range g.mine(func(s *set) bool {
		return s.account == plan.Root && s.taker.alloc.leaf == leaf &&
			g.room(s) > 0
	}) {
		if net < q && net+c >= q {
			return false
		}
		net += g.room(s)
	}
	return true
}

// takeBack reclaims a whole host for a rule, or for a taker's set; false when the budget does not bear it. Units
// granted in this cycle are not granted at all.
func (g *whole) takeBack(h *host, s *set) bool {
	list := slices.DeleteFunc(slices.Clone(h.units), (*unit).leaves)
	old := slices.DeleteFunc(slices.Clone(list), func(u *unit) bool { return u.cycle == g.cycle })
	if !g.affords(int64(len(old))) {
		return false
	}
	s.plan, s.cycle, s.target, s.number = g.in, g.cycle, h, g.next()
	for _, u := range list {
		g.reclaim(u, s)
	}
	return true
}

// leave reclaims what is on draining hosts, then what is on hosts that left the plan.
func (g *whole) leave() {
	list := g.held(func(h *host) bool { return g.net(h) && (!slices.Contains(g.hosts, h) || h.State == "draining") })
	slices.SortStableFunc(list, func(a, b *host) int {
		return cmp.Compare(g.frame.place(a.units[0]), g.frame.place(b.units[0]))
	})
	for _, h := range list {
		reason := "drain"
		if !slices.Contains(g.hosts, h) {
			reason = "ownership_change"
		}
		g.takeBack(h, &set{reason: reason})
	}
}

// overLimit is SLOT-12.
func (g *whole) overLimit() {
	full := func(leaf plan.Node) bool { return g.owns[leaf] >= g.w.Owns[leaf] }
	for _, leaf := range g.leaves() { // (a)
		g.shed(func() int64 { return -g.netAccount(leaf) }, true, full(leaf),
			slices.Concat(g.loans(leaf), g.stays(leaf, owned)))
	}
	for _, leaf := range g.leaves() { // (b)
		g.shed(func() int64 { return g.lent(leaf, true) - g.lendable(leaf) }, true, full(leaf), g.loans(leaf))
	}
	for _, leaf := range g.leaves() { // (c)
		strangers := slices.DeleteFunc(g.loans(leaf), func(h *host) bool { return g.agree(leaf, g.leaf(h)) })
		g.shed(func() int64 { return 1 << 60 }, true, true, strangers)
	}
	for _, leaf := range g.leaves() { // (d)
		if most := g.w.BorrowLimit[leaf]; most != plan.Unlimited {
			g.shed(func() int64 { return g.of(leaf, borrowed, true) - most }, true, true, g.stays(leaf, borrowed))
		}
	}
	for _, ok := range []bool{true, false} { // (e)
		var tried []*host
		for more := true; more; {
			list := slices.DeleteFunc(g.furthest(), func(h *host) bool {
				return slices.Contains(tried, h) || g.ok(h) != ok
			})
			if more = len(list) > 0; more {
				tried = append(tried, list[0])
				g.shed(func() int64 { return g.usage(plan.Root) - g.pooled(plan.Root) }, false, false, list[:1])
			}
		}
	}
}

// overMax is SLOT-12 for what is over a maximum.
func (g *whole) overMax() {
	for n := plan.Node(g.p.Len() - 1); n > plan.Root; n-- {
		if most := g.w.Max[n]; g.member[n] && most != plan.Unlimited {
			for _, origin := range []string{borrowed, sharePool, owned} {
				for _, h := range g.okFirst(g.victims(func(h *host) bool {
					return g.under(n, g.leaf(h)) &&
						g.origin(h) == origin
				})) {
					if g.claimed(n)-most >= g.size[h] {
						g.takeBack(h, &set{reason: "over_limit"})
					}
				}
			}
		}
	}
}

// okFirst puts hosts that are ok before the rest.
func (g *whole) okFirst(list []*host) []*host {
	slices.SortStableFunc(list, func(a, b *host) int { return order(!g.ok(a)) - order(!g.ok(b)) })
	return list
}

// shed goes through hosts of a list that what is over covers whole: it relabels them, or takes
// them back, closed ones only if closed says so.
func (g *whole) shed(over func() int64, pool, closed bool, list []*host) {
	for _, h := range g.okFirst(list) {
		if over() >= g.size[h] && !g.rehome(h, pool) && (closed || g.ok(h)) {
			g.takeBack(h, &set{reason: "over_limit"})
		}
	}
}

// rehome relabels a host where an account bears it.
func (g *whole) rehome(h *host, pool bool) bool {
	leaf, c, moved := g.leaf(h), g.size[h], int64(0)
	if g.origin(h) == borrowed {
		moved = c
	}
	switch m := g.lends(leaf, c, moved, g.lender(h)); {
	case g.account(leaf) >= c:
		g.relabel(h, owned, plan.None)
	case pool && g.idlePool(leaf) >= c && !g.barred(leaf):
		g.relabel(h, sharePool, plan.None)
	case m != plan.None:
		g.relabel(h, borrowed, m)
	default:
		return false
	}
	return true
}

// victims are hosts that are not under reclaim, last rank first, then newest first.
func (g *whole) victims(ok func(h *host) bool) []*host {
	list := g.held(func(h *host) bool { return g.net(h) && ok(h) })
	slices.SortFunc(list, func(a, b *host) int { return g.lastRank(g.lead(a), g.lead(b)) })
	return list
}

// loans are the hosts that others have borrowed from a leaf, in the order of recall.
func (g *whole) loans(leaf plan.Node) []*host {
	return g.victims(func(h *host) bool { return g.lender(h) == leaf })
}

// above is how far a leaf is above what it deserves from the pools.
func (g *whole) above(leaf plan.Node) int64 { return g.of(leaf, sharePool, true) - g.deserved(leaf) }

// furthest are the hosts that leaves have from the pools: those of the leaf furthest above its quota first.
func (g *whole) furthest() []*host {
	list := g.victims(func(h *host) bool { return g.origin(h) == sharePool })
	slices.SortStableFunc(list, func(a, b *host) int { return cmp.Compare(g.above(g.leaf(b)), g.above(g.leaf(a))) })
	return list
}

// recall is ④.
func (g *whole) recall() {
	g.skip = map[*sub]bool{}
	for _, leaf := range g.ranked(g.leaves()) {
		for g.offer(g.allocsOf(leaf), true, func(s *sub) bool {
			if g.skip[s] {
				return false
			}
			h, c := g.place(s)
			if h != nil && (c == 0 || g.roomy(leaf, c, false) && g.pass(leaf, c)) {
				g.give(s, h, owned, plan.None)
				return true
			}
			return g.joinOwn(s) || g.joinNew(s, leaf) || g.seize(s, leaf, "recall", g.loans(leaf))
		}) {
		}
	}
}

// pass moves loans of an owner to other lenders until ① bears a host of c slots; when that cannot be, none is moved.
func (g *whole) pass(leaf plan.Node, c int64) bool {
	bears := func() bool { return g.account(leaf) >= 1 && g.spare() >= c-g.account(leaf) }
	if bears() {
		return false // it is for the next cycle
	}
	var moved []*host
	for _, h := range g.loans(leaf) {
		if m := g.lends(g.leaf(h), g.size[h], g.size[h], leaf); m != plan.None {
			g.relabel(h, borrowed, m)
			moved = append(moved, h)
		}
		if bears() {
			return true
		}
	}
	for _, h := range moved {
		g.relabel(h, borrowed, leaf)
	}
	return false
}

// fairShare is ⑤.
func (g *whole) fairShare() {
	g.skip = map[*sub]bool{}
	g.loop(func(leaf plan.Node) bool {
		return g.offer(g.allocsOf(leaf), true, func(s *sub) bool {
			if g.skip[s] {
				return false
			}
			if h, c := g.place(s); h != nil && c == 0 {
				g.give(s, h, sharePool, plan.None)
				return true
			}
			if g.joinOwn(s) {
				return true
			}
			if g.usage(leaf) >= g.deserved(leaf) {
				return false
			}
			return g.joinNew(s, plan.Root) || g.seize(s, plan.Root, "fair_share",
				slices.DeleteFunc(g.furthest(), func(h *host) bool {
					return g.leaf(h) == leaf || g.above(g.leaf(h)) < g.size[h]
				}))
		})
	})
}

// takes tells whether a host may take a unit of a sub-allocation beside what is promised to it there.
func (g *whole) takes(s *sub, h *host) bool {
	return g.ok(h) && g.meets(s, h) && g.size[h] >= s.slots() && !full(s, h, g.pledgedOn(s, h))
}

// joinOwn lets a unit wait for a host that its holder is promised, and that has room left.
func (g *whole) joinOwn(s *sub) bool {
	for _, h := range g.hosts {
		mine, left := false, g.size[h]
		for _, t := range g.mine(func(t *set) bool { return t.target == h && g.holderOf(t.taker) == g.holderOf(s) }) {
			mine, left = true, left-t.taker.slots()
		}
		for _, w := range g.waits {
			if w.host == h && g.holderOf(w.sub) == g.holderOf(s) {
				mine, left = true, left-w.sub.slots()
			}
		}
		for _, u := range h.units {
			if !u.leaves() {
				left -= u.sub.slots()
			}
		}
		if mine && g.takes(s, h) && left >= s.slots() {
			g.waits = append(g.waits, wait{s, h, 0, plan.None})
			return true
		}
	}
	return false
}

// joinNew lets a unit wait for the first host that is to come free, and that nobody is promised.
func (g *whole) joinNew(s *sub, account plan.Node) bool {
	list := g.choice(s)
	i := slices.IndexFunc(list, func(h *host) bool { return g.comes(h) && g.takes(s, h) })
	if i < 0 {
		return false
	}
	c, own := g.size[list[i]], int64(0)
	if account != plan.Root {
		own = max(0, g.netAccount(account))
	}
	has := g.netAccount(account)
	if account == plan.Root {
		has = g.netPool(s.alloc.leaf, nil)
	}
	if g.over(s.alloc.leaf, c, g.claimed) != plan.None || has < 1 || g.netSpare() < c-own {
		return false
	}
	g.waits = append(g.waits, wait{s, list[i], c, account})
	return true
}

// seize makes a set for a unit, of the first host in the list that it may use.
func (g *whole) seize(s *sub, account plan.Node, reason string, list []*host) bool {
	for _, h := range list {
		c := g.size[h]
		if !g.takes(s, h) || g.reserver(h) != nil || g.over(s.alloc.leaf, c, g.claimed) != plan.None ||
			account != plan.Root && g.netAccount(account)+c < 1 ||
			account == plan.Root && (g.netPool(s.alloc.leaf, h) < 1 || g.netSpare() < 0) {
			continue
		}
		t := &set{reason: reason, taker: s, account: account}
		if !g.takeBack(h, t) {
			g.skip[s], g.denied[s] = true, true
			return false
		}
		t.n = 1
		g.sets = append(g.sets, t)
		return true
	}
	return false
}

// explain gives every shortfall its reasons.
func (g *whole) explain(r *Result) {
	for _, s := range g.below(plan.Root) {
		waits := min(s.short(), g.pledged(s))
		if waits > 0 {
			f := g.waiting(s)
			f.Key, f.Units = g.key(s), waits
			r.Shortfalls = append(r.Shortfalls, f)
		}
		if s.short() > waits {
			f := g.reason(s)
			f.Key, f.Units = g.key(s), s.short()-waits
			r.Shortfalls = append(r.Shortfalls, f)
		}
	}
}

// waiting is the shortfall of promised units: until the last deadline of what leaves the hosts that they wait for
// (where units joined and nothing does, of all that leaves).
func (g *whole) waiting(s *sub) Shortfall {
	f, joins := Shortfall{Reason: "waiting_for_reclaim"}, false
	list := g.units(func(u *unit) bool { return u.leaves() && u.set.taker == s })
	for _, w := range g.waits {
		if w.sub == s {
			list, joins = append(list, g.units(func(u *unit) bool { return u.leaves() && u.host == w.host })...), true
		}
	}
	if joins && len(list) == 0 {
		list = g.units((*unit).leaves)
	}
	slices.SortFunc(list, func(a, b *unit) int {
		return cmp.Or(cmp.Compare(b.due, a.due), cmp.Compare(a.set.number, b.set.number),
			cmp.Compare(a.leaf(), b.leaf()))
	})
	if len(list) > 0 {
		f.UntilUS, f.Blocker = list[0].due, g.path(list[0].leaf())
	}
	return f
}

// reason is what stops the next unit that nothing is promised to: the first that applies. Its host is the next one, c
// that one's slots, or those of the unit where there is none.
func (g *whole) reason(s *sub) Shortfall {
	if g.small(s) {
		return Shortfall{Reason: "too_small"}
	}
	leaf, hosts := s.alloc.leaf, g.candidates(s)
	h, c := g.place(s)
	if h == nil {
		c = s.slots()
	}
	large := slices.DeleteFunc(slices.Clone(hosts), func(h *host) bool { return g.size[h] < s.slots() })
	allowed := slices.DeleteFunc(slices.Clone(large), func(h *host) bool { return full(s, h, 0) })
	most := s.perHost
	s.perHost = plan.Unlimited
	elsewhere, _ := g.place(s)
	s.perHost = most
	over := g.over(leaf, c, g.bound)
	limit := g.w.BorrowLimit[leaf]
	own, pool, spare := g.account(leaf), g.idlePool(leaf), g.spare()
	payable := own >= 1 && spare >= c-own || pool >= 1 && spare >= c && !g.barred(leaf) ||
		g.mayLend(c) && g.lends(leaf, c, 0, plan.None) != plan.None
	switch {
	case len(hosts) == 0 && s.req != "":
		return Shortfall{Reason: "no_host_matches"}
	case len(hosts) > 0 && len(large) == 0:
		return Shortfall{Reason: "too_big"}
	case over != plan.None:
		return Shortfall{Reason: "consumer_limit", Blocker: g.path(over)}
	case len(hosts) > 0 && h == nil && (elsewhere != nil || len(allowed) == 0):
		return Shortfall{Reason: "max_per_host"}
	case g.denied[s]:
		return Shortfall{Reason: "reclaim_budget"}
	case limit > 0 && limit != plan.Unlimited && g.of(leaf, borrowed, false)+c > limit:
		return Shortfall{Reason: "borrow_limit"}
	case len(hosts) > 0 && h == nil && payable:
		return Shortfall{Reason: "fragmented"}
	}
	for _, n := range slices.Backward(g.way(leaf)) {
		if g.ratio[n] == 0 && g.pooled(n) < g.pooled(plan.Root) {
			return Shortfall{Reason: "share_limit", Blocker: g.path(n)}
		}
	}
	if q := g.deserved(leaf); g.of(leaf, sharePool, false) > 0 && g.usage(leaf) >= q && q < g.pooled(plan.Root) {
		return Shortfall{Reason: "over_quota"}
	}
	return Shortfall{Reason: "pool_exhausted"}
}

// keepsBorrowed is what a leaf borrowed and its quota shows (SLOT-11).
func (g *whole) keepsBorrowed(leaf plan.Node) int64 {
	sum := int64(0)
	for _, m := range g.leaves() {
		beyond := g.lent(m, true) - max(0, g.owns[m]-min(g.wanted[m], g.owns[m]))
		for _, h := range g.loans(m) {
			if beyond -= g.size[h]; beyond+g.size[h] <= 0 && g.leaf(h) == leaf {
				sum += g.size[h]
			}
		}
	}
	return sum
}

// figures adds the consumers' columns: demand, held and short are of units, all others of whole hosts.
func (g *whole) figures(r *Result) {
	for n := plan.Root + 1; int(n) < g.p.Len(); n++ {
		if !g.member[n] {
			continue
		}
		c := Consumer{Plan: g.name, Path: g.path(n), Held: g.slots.holds(n)}
		for _, s := range g.below(n) {
			c.Demand += s.wanted * s.slots()
		}
		c.Short = c.Demand - c.Held
		f := &SlotFigures{OwnedConfigured: g.w.Owns[n], Owned: g.owns[n], Reserved: min(g.reserved(n), g.owns[n]),
			Limit:     g.w.Max[n],
			HeldOwned: g.of(n, owned, false), HeldShared: g.of(n, sharePool, false),
			HeldBorrowed: g.of(n, borrowed, false)}
		for _, leaf := range g.leaves() {
			if g.under(n, leaf) {
				f.StaticQuota += g.static[leaf]
				f.Quota += min(g.wanted[leaf], g.owns[leaf]) + g.dynamic[leaf] + g.keepsBorrowed(leaf)
				f.Lent += g.lent(leaf, false)
				f.Free += max(0, g.account(leaf))
			}
		}
		c.Slots = f
		r.Consumers = append(r.Consumers, c)
	}
}
