package oracle

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// review cancels what rules no longer ask for, the latest first; then it lowers
// sets that lapsed, in order of number (CYC-6).
func (g *slots) review() {
	g.giveUp()
	g.restore(g.back, present)
	for _, s := range g.mine(every) {
		for s.n > 0 && !g.stands(s) {
			g.lapse(s)
		}
	}
}

// stands tells whether a set's taker still wants, fits and deserves all its units, besides those of the sets before it.
func (g *slots) stands(s *set) bool {
	t, leaf, h := s.taker, s.taker.alloc.leaf, s.target
	soFar := func(ok func(o *set) bool) int64 {
		return g.rooms(func(o *set) bool { return o.number <= s.number && ok(o) })
	}
	units := soFar(func(o *set) bool { return o.taker == t }) / t.slots()
	here := soFar(func(o *set) bool { return o.taker == t && o.target == h }) / t.slots()
	switch {
	case t.short() < units:
		return false
	case !g.ok(h) || !g.meets(t, h) || g.size[h] < t.slots() || full(t, h, here-1) || g.small(t):
		return false
	case g.size[h]-g.on(h, false)-g.keeps(func(o *set) bool { return o.number <= s.number && o.target == h }) < 0:
		return false
	case g.over(leaf, 0, func(n plan.Node) int64 {
		return g.held(n, "", true) + soFar(func(o *set) bool { return g.under(n, o.taker.alloc.leaf) }) +
			g.lackingBelow(n, func(n plan.Node) int64 {
				return soFar(func(o *set) bool { return g.under(n, o.taker.alloc.leaf) })
			})
	}) != plan.None:
		return false
	case s.account == common:
		return g.draws(leaf, true)+soFar(func(o *set) bool { return o.taker.alloc.leaf == leaf }) <= g.quota[leaf] &&
			(g.left(s)[0] > 0 || g.arrives(s))
	case g.hybrid(leaf): // it was an owner
		return false
	case s.account != plan.Root:
		return g.held(leaf, owned, true)+g.lent(leaf,
			true)+soFar(func(o *set) bool { return o.account == leaf }) <= g.owns[leaf]
	}
	pool := func(n plan.Node) int64 {
		return g.held(n, sharePool, true) + soFar(func(o *set) bool {
			return o.account == plan.Root && g.under(n, o.taker.alloc.leaf)
		})
	}
	return pool(leaf) <= g.deserved[leaf] && g.covers(s) &&
		!slices.ContainsFunc(g.bars(leaf), func(n plan.Node) bool { return pool(n) > g.pooled(n) })
}

// covers tells whether what is idle beside a set and those before it is as much as owners may claim, now
// or once all that is under reclaim is gone.
func (g *slots) covers(s *set) bool {
	idle := func(net bool, room func(ok func(o *set) bool) int64) int64 {
		before := func(ok func(o *set) bool) int64 {
			return room(func(o *set) bool { return o.number <= s.number && ok(o) })
		}
		return g.spared(func(h *host) int64 {
			return g.size[h] - g.on(h, net) - before(func(o *set) bool { return o.target == h })
		}, func(leaf plan.Node) int64 {
			return g.owns[leaf] - g.held(leaf, owned, net) - g.lent(leaf, net) - before(func(o *set) bool {
				return o.account == leaf
			})
		})
	}
	return idle(false, g.keeps) >= 0 || idle(true, g.rooms) >= 0
}

// back tells whether a unit may be taken off the reclaim of a limit: it is borne again, and what its leaf is promised
// from the pools does not lapse by it, now or by the quotas of the next cycle, which loans lower; else the end of
// that set would bring the limit's reclaim back, and so on without end.
func (g *slots) back(u *unit) bool {
	leaf := u.leaf()
	promised := g.rooms(func(s *set) bool { return s.account == plan.Root && s.taker.alloc.leaf == leaf })
	switch {
	case g.foreign(u) || slices.Contains([]string{"window_switch", "plan_change"}, u.set.reason) && g.coming() >= 0:
		return false
	case u.set.reason == "reserve":
		return g.draws(leaf, true)+u.slots() <= g.quota[leaf]
	case promised == 0 || u.origin == owned:
		return g.bears(u)
	case u.origin == borrowed:
		return false
	}
	return g.bears(u) && g.held(leaf, sharePool, true)+promised+u.slots() <= g.deserved[leaf]
}

// bears tells whether the account of a unit's origin, its lender, the limits and every share.max bear it again.
func (g *slots) bears(u *unit) bool {
	leaf, k := u.leaf(), u.slots()
	if g.over(leaf, k, g.beside(g.claimed, leaf, k)) != plan.None ||
		u.origin != owned && !g.hybrid(leaf) && g.over(leaf, k,
			func(n plan.Node) int64 { return g.claimed(n) + g.dueBelow(n, leaf) }) != plan.None {
		return false
	}
	switch m := u.lender; u.origin {
	case owned:
		return g.netAccount(leaf) >= k
	case hybrid: // while nobody lacks anything, what they have too much stands in nobody's way
		return g.netAccount(common) >= k ||
			total(g.hybridLeaves(), g.belowQuota) == 0 && g.rooms(func(s *set) bool { return s.account == common }) == 0
	case sharePool:
		return g.pooled(plan.Root)-g.usage(plan.Root) >= k
	default:
		if !g.hasLeaf(m) {
			return false
		}
		most := g.w.BorrowLimit[leaf]
		return g.netAccount(m) >= k && g.lendable(m)-g.lent(m, true) >= k && g.agree(m, leaf) &&
			(most == plan.Unlimited || g.held(leaf, borrowed, true)+k <= most)
	}
}

// hasLeaf tells whether a consumer is a leaf of the plan (still).
func (g *slots) hasLeaf(n plan.Node) bool {
	return n > plan.Root && g.member[n] && g.p.Leaf(n)
}

// agree tells whether lender and borrower admit each other.
func (g *slots) agree(m, leaf plan.Node) bool {
	return g.admits(g.w.LendTo[m], m, leaf) && g.admits(g.w.BorrowFrom[leaf], leaf, m)
}

// overLimit reclaims what is above a limit, or what nothing carries any more, and cannot be relabelled (SLOT-12).
func (g *slots) overLimit() {
	g.skip = map[*sub]bool{}
	// What goes from a closed host makes S smaller by as much: where S is what an
	// owner or the pools lack, nobody has more by it.
	anew := func(u *unit) bool { return g.rehome(u, true) }
	whole := func(leaf plan.Node) bool { return g.owns[leaf] >= g.w.Owns[leaf] || g.hybrid(leaf) }
	for _, leaf := range g.leaves() { // (a)
		g.shed(func() bool { return g.netAccount(leaf) < 0 }, anew, whole(leaf), func() []*unit {
			return slices.Concat(g.loans(leaf), g.victims(func(u *unit) bool {
				return u.leaf() == leaf && g.as(u) == owned
			}))
		})
	}
	for _, leaf := range g.leaves() { // (b)
		g.shed(func() bool { return g.lent(leaf, true) > g.lendable(leaf) }, anew, whole(leaf), func() []*unit {
			return g.loans(leaf)
		})
	}
	for _, leaf := range g.leaves() { // (c)
		g.shed(func() bool { return true }, anew, true, func() []*unit {
			return slices.DeleteFunc(g.loans(leaf), func(u *unit) bool { return g.owed(u) || g.agree(leaf, u.leaf()) })
		})
	}
	g.shed(func() bool { return true }, anew, true, func() []*unit { // a lender that is gone lends nothing
		return g.victims(func(u *unit) bool { return !g.hasLeaf(u.lender) && g.as(u) == borrowed })
	})
	for _, leaf := range g.leaves() { // (d)
		most := g.w.BorrowLimit[leaf]
		g.shed(func() bool { return most != plan.Unlimited && g.held(leaf, borrowed, true) > most }, anew, true,
			func() []*unit { return g.movable(leaf, borrowed) })
	}
	// (e)
	g.shed(func() bool { return g.usage(plan.Root) > g.pooled(plan.Root) },
		func(u *unit) bool { return g.rehome(u, false) }, false,
		func() []*unit { return g.furthest(nil) })
}

// overMax is SLOT-12 for what is over a maximum (f): loans first, then what is shared, then the rest, of which what
// fills reserves below it goes last (SLOT-26). Of hybrid branches one origin is like another.
func (g *slots) overMax() {
	g.skip = map[*sub]bool{}
	for n := plan.Node(g.p.Len() - 1); n > plan.Root; n-- { // children come before their parents
		for _, goes := range []func(u *unit) bool{
			func(u *unit) bool { return u.origin == borrowed && !g.hybrid(n) },
			func(u *unit) bool { return u.origin == sharePool && !g.hybrid(n) },
			func(u *unit) bool { return !g.fills(n, u) },
			func(*unit) bool { return true },
		} {
			g.shed(func() bool { return g.most(n) != plan.Unlimited && g.claimed(n) > g.most(n) },
				func(*unit) bool { return false }, true,
				func() []*unit {
					return g.victims(func(u *unit) bool { return g.under(n, u.leaf()) && goes(u) })
				})
		}
	}
}

// fills tells whether reserves below a consumer would want more if a unit were gone.
func (g *slots) fills(n plan.Node, u *unit) bool {
	if !g.hybrid(u.leaf()) || g.owed(u) || g.wanting(n, u) <= g.wanting(n) {
		return false
	}
	g.notes["what fills a reserve is left"]++
	return true
}

// shed takes the first unit of a list, those on ok hosts first, again and again while something is over: it
// finds it a new home, or reclaims it, from other hosts only if closed says so. A sub-allocation for which
// the budget does not bear that is left alone.
func (g *slots) shed(over func() bool, home func(u *unit) bool, closed bool, list func() []*unit) {
	passed := map[*unit]bool{}
	for over() {
		units := slices.DeleteFunc(list(), func(u *unit) bool { return g.skip[u.sub] || passed[u] })
		slices.SortStableFunc(units, func(a, b *unit) int {
			return cmp.Or(order(g.breaks(a, nil))-order(g.breaks(b, nil)), order(!g.ok(a.host))-order(!g.ok(b.host)))
		})
		if len(units) == 0 {
			return
		}
		reason, u := "over_limit", units[0]
		if g.ahead {
			reason = "window_switch"
		}
		switch {
		case !g.ahead && home(u):
		case !closed && !g.ok(u.host):
			passed[u] = true
			g.notes["stayed on a closed host"]++
		case !g.rule(u, reason):
			g.skip[u.sub] = true
		}
	}
}

// rehome relabels a unit where an account bears it: the leaf's own, the pool if asked, another lender.
func (g *slots) rehome(u *unit, pool bool) bool {
	leaf, k, moved := u.leaf(), u.slots(), int64(0)
	if u.origin == borrowed {
		moved = k
	}
	if g.owed(u) {
		return false
	}
	if g.ownIdle(leaf) >= k {
		g.relabel(u, owned, plan.None)
		return true
	}
	if pool && g.idlePool(leaf) >= k && !g.barred(leaf) {
		g.relabel(u, sharePool, plan.None)
		return true
	}
	m := g.lender(leaf, k, moved, u.lender)
	if m != plan.None {
		g.relabel(u, borrowed, m)
	}
	return m != plan.None
}

// victims are units that are not leaving, last rank first, then newest first.
func (g *slots) victims(ok func(u *unit) bool) []*unit {
	list := g.units(func(u *unit) bool { return !u.leaves() && ok(u) })
	slices.SortFunc(list, g.lastRank)
	return list
}

// loans are what others have borrowed from a leaf, in the order in which they are recalled.
func (g *slots) loans(leaf plan.Node) []*unit {
	return g.victims(func(u *unit) bool { return u.lender == leaf && (g.as(u) == borrowed || g.owed(u)) })
}

// furthest are the units that leaves have from the pool, those of the leaf furthest above its quota first, ties last
// rank first, then newest first; those chosen already count as given back.
func (g *slots) furthest(chosen []*unit) []*unit {
	above := map[plan.Node]int64{}
	for _, leaf := range g.leaves() {
		above[leaf] = g.held(leaf, sharePool, true) - g.deserved[leaf] - g.of(leaf, chosen)
	}
	list := g.victims(func(u *unit) bool { return g.as(u) == sharePool && !slices.Contains(chosen, u) })
	slices.SortStableFunc(list, func(a, b *unit) int { return cmp.Compare(above[b.leaf()], above[a.leaf()]) })
	return list
}

// recall is ④: owners in rank order take back what they lent, or wait for what a rule takes back for them. A
// sub-allocation for which nothing can be done is passed over for the rest of the step, in ⑤ too.
func (g *slots) recall() {
	g.skip = map[*sub]bool{}
	for _, leaf := range g.ranked(g.leaves()) {
		for g.serve(leaf, g.counted, func(s *sub) bool {
			loans := func(chosen []*unit) []*unit {
				return slices.DeleteFunc(g.loans(leaf), func(u *unit) bool { return slices.Contains(chosen, u) })
			}
			take := func(s *sub) bool {
				return g.joinOr(s, leaf, "recall", func() bool {
					return g.seizeOf(s, leaf, "recall", g.lentBy(leaf), loans)
				})
			}
			switch h := g.host(s); {
			case g.enoughPledged(s) || g.skip[s] || g.hybrid(leaf):
				return false
			case g.waits(s):
				g.skip[s] = !g.promiseAll(s, take)
				return !g.skip[s]
			case h != nil && g.ownIdle(leaf) < s.slots() && g.mayLend(s.slots()) && g.lasts(s, owned, plan.None) &&
				g.pass(leaf, s.slots()):
				g.give(s, h, owned, plan.None)
				return true
			}
			g.skip[s] = false
			if done := take(s); !done && (g.skip[s] || !g.makeWay(s) || !take(s)) {
				g.skip[s] = true
			}
			return !g.skip[s]
		}) {
		}
	}
}

// pass moves loans of an owner to other lenders until k slots of its own are free;
// when that cannot be, none is moved (SLOT-8).
func (g *slots) pass(leaf plan.Node, k int64) bool {
	var moved []*unit
	for _, u := range g.loans(leaf) {
		if m := g.lender(u.leaf(), u.slots(), u.slots(), leaf); m != plan.None && !g.owed(u) {
			g.relabel(u, borrowed, m)
			moved = append(moved, u)
		}
		if g.ownIdle(leaf) >= k {
			return true
		}
	}
	for _, u := range moved {
		g.relabel(u, borrowed, leaf)
	}
	return false
}

// fairShare is ⑤: leaves below their quota take from those above theirs.
func (g *slots) fairShare() {
	g.skip = map[*sub]bool{}
	if !g.s.ShareReclaim {
		return
	}
	if g.swept = map[plan.Node]int64{}; g.ratios() {
		g.divideAsked()
	}
	usage := func(n plan.Node) int64 {
		sum := g.usage(n)
		for leaf, slots := range g.swept { // what is taken back here still counts in the turns
			if g.under(n, leaf) {
				sum += slots
			}
		}
		return sum
	}
	g.race(g.tree(), usage, func(leaf plan.Node) bool {
		return g.serve(leaf, g.counted, func(s *sub) bool {
			if g.enoughPledged(s) || g.skip[s] || !g.waits(s) && !g.within(s) {
				return false
			}
			lists := []func(chosen []*unit) []*unit{func(chosen []*unit) []*unit {
				return slices.DeleteFunc(g.furthest(chosen), func(u *unit) bool { return !g.yields(u, s, chosen) })
			}}
			if g.ratios() && total(g.parties(), func(leaf plan.Node) int64 { return g.gives[leaf] }) > 0 {
				g.notes["divided what is asked by ratios"]++
			}
			if g.ratios() { // of what is asked of all; where those units do not serve, of all that is above
				lists = slices.Insert(lists, 0, func(chosen []*unit) []*unit { return g.toGive(s, chosen) })
			}
			take := func(s *sub) bool {
				return g.joinOr(s, plan.Root, "fair_share", func() bool {
					return g.seizeOf(s, plan.Root, "fair_share", g.ofPool(s), lists...)
				})
			}
			if g.waits(s) {
				g.skip[s] = !g.promiseAll(s, func(s *sub) bool {
					return g.joinOr(s, leaf, "recall", func() bool {
						return g.seizeOf(s, leaf, "recall", g.lentBy(leaf), func(chosen []*unit) []*unit {
							return slices.DeleteFunc(g.loans(leaf), func(u *unit) bool {
								return slices.Contains(chosen, u)
							})
						})
					}) || g.within(s) && take(s)
				})
			} else {
				g.skip[s] = !take(s)
			}
			return !g.skip[s]
		})
	})
}

// toGive are the units that leaves have to give of what is asked of all, of the one that has most to give first.
func (g *slots) toGive(taker *sub, chosen []*unit) []*unit {
	give := map[plan.Node]int64{}
	for _, leaf := range g.parties() {
		give[leaf] = g.gives[leaf] - (g.start[leaf] - g.shared(leaf)) - g.of(leaf, chosen)
	}
	list := g.victims(func(u *unit) bool {
		return g.as(u) == sharePool && give[u.leaf()] > 0 && !slices.Contains(chosen, u) && g.yields(u, taker, chosen)
	})
	slices.SortStableFunc(list, func(a, b *unit) int { return cmp.Compare(give[b.leaf()], give[a.leaf()]) })
	return list
}

// yields tells whether a unit may be taken from the pool for a taker, after those chosen: its leaf is above its quota
// by all of it, or is not worse off than the taker even then, where their branches part.
func (g *slots) yields(u *unit, taker *sub, chosen []*unit) bool {
	above := g.held(u.leaf(), sharePool, true) - g.deserved[u.leaf()] - g.of(u.leaf(), chosen)
	if above <= 0 || above >= u.slots() {
		return above > 0
	}
	gone := append(slices.Clone(chosen), u)
	a, b := g.part(u.leaf(), taker.alloc.leaf)
	victim := g.usage(a) - g.of(a, gone)
	other := g.usage(b) - g.of(b, gone) + taker.slots()
	return less(uint64(victim), g.weight(b), uint64(other), g.weight(a)) >= 0
}

// of adds up the slots of those of some units that a consumer and all below it hold.
func (g *slots) of(n plan.Node, units []*unit) int64 {
	return total(units, func(u *unit) int64 {
		if g.under(n, u.leaf()) {
			return u.slots()
		}
		return 0
	})
}

// takes tells whether a host may take a unit of a sub-allocation beside what is promised to it there, if there is room.
func (g *slots) takes(s *sub, h *host) bool {
	more := g.rooms(func(t *set) bool { return t.taker == s && t.target == h }) + g.joins(func(j joined) bool {
		return j.sub == s && j.host == h
	})
	return g.ok(h) && g.meets(s, h) && g.size[h] >= s.slots() && !full(s, h, more/s.slots())
}

// join lets a unit wait for sets under way, when it will fit once they are done (CYC-6).
func (g *slots) join(s *sub, account plan.Node) bool {
	k := s.slots()
	if g.netFor(s, account, nil) < k || g.over(s.alloc.leaf, k, g.beside(g.claimed, s.alloc.leaf, k)) != plan.None {
		return false
	}
	for _, h := range g.hosts {
		if g.takes(s, h) && g.netFree(h) >= k {
			g.joined = append(g.joined, joined{sub: s, host: h, account: account})
			return true
		}
	}
	return false
}

// seize makes a set for a unit: on the host of the first candidate where candidates make it fit. next lists the
// candidates that are left once some are chosen.
func (g *slots) seize(s *sub, account plan.Node, reason string, next func(chosen []*unit) []*unit) bool {
	all := next
	next = func(chosen []*unit) []*unit {
		return slices.DeleteFunc(all(chosen), func(u *unit) bool { return !g.spares(u, s, chosen) })
	}
	var tried []*host
	for _, u := range next(nil) {
		if slices.Contains(tried, u.host) {
			continue
		}
		tried = append(tried, u.host)
		if chosen := g.pick(s, u.host, account, next); chosen != nil {
			if !g.claim(&set{reason: reason, target: u.host, taker: s, account: account}, chosen) {
				g.skip[s] = true
				return false
			}
			for _, u := range chosen {
				if account == plan.Root {
					g.swept[u.leaf()] += u.slots()
				}
			}
			return true
		}
	}
	return false
}

// pick chooses the victims for a unit on a host, nil when they cannot make it fit: one after the other, those not
// needed being dropped again; where nothing more may be taken before it fits, the first that makes it fit alone (D-96).
func (g *slots) pick(s *sub, h *host, account plan.Node, next func(chosen []*unit) []*unit) []*unit {
	if !g.takes(s, h) {
		return nil
	}
	var chosen []*unit
	for !g.enough(s, h, account, chosen) {
		list := next(chosen)
		i := slices.IndexFunc(list, func(u *unit) bool { return u.host == h })
		if i < 0 {
			return g.alone(s, h, account, next(nil))
		}
		chosen = append(chosen, list[i])
	}
	for _, u := range slices.Backward(slices.Clone(chosen)) {
		if rest := slices.DeleteFunc(slices.Clone(chosen), func(v *unit) bool { return v == u }); g.enough(s, h,
			account, rest) {
			chosen = rest
		}
	}
	return chosen
}

// alone is the first candidate on a host that makes a unit fit by itself.
func (g *slots) alone(s *sub, h *host, account plan.Node, list []*unit) []*unit {
	for _, u := range list {
		if one := []*unit{u}; u.host == h && g.enough(s, h, account, one) {
			g.notes["a victim alone where the newest come to an end"]++
			return one
		}
	}
	return nil
}

// enough tells whether victims on a host make a unit fit there, in its account and below every share.max.
func (g *slots) enough(s *sub, h *host, account plan.Node, victims []*unit) bool {
	k, freed := s.slots(), g.of(plan.Root, victims)
	holds := g.bound
	if account > plan.Root { // what makes way for it is on its way
		holds = g.claimed
	}
	return g.free(h)+freed >= k && g.netFor(s, account, victims) >= k &&
		g.over(s.alloc.leaf, k, func(n plan.Node) int64 {
			return holds(n) - g.of(n, victims) + g.lackingBelow(n, g.filling(s.alloc.leaf, k, victims))
		}) == plan.None
}
