package oracle

import (
	"slices"
	"time"

	"github.com/stintd/stint/core/plan"
)

// Windows (PLAN-1), switches between them, and what a new policy file leaves behind (PLAN-2, PLAN-4), by
// docs/slots.md.

// season is which window of a plan holds.
type season struct {
	window int    // of the last cycle, -1 before the first
	reason string // why units that are foreign go
}

// StartAt says when the oracle's time 0 is, in µs since 1970. Only windows go by it.
func (c *Cluster) StartAt(us int64) { c.startUS = us }

// Wait lets time go by before the next cycle, beside the minute that there is between two.
func (c *Cluster) Wait(us int64) { c.nowUS += us }

// newYear forgets which windows held: of a new policy file none has been open yet.
func (c *Cluster) newYear(reason string) {
	c.seasons = make([]season, len(c.p.MDPlans)+len(c.p.SlotPlans))
	for i := range c.seasons {
		c.seasons[i] = season{-1, reason}
	}
}

// turn opens the windows of a cycle.
func (c *Cluster) turn() {
	for i := range c.p.SlotPlans {
		s, now := &c.seasons[len(c.p.MDPlans)+i], c.windowAt(&c.p.SlotPlans[i], c.nowUS)
		if s.window >= 0 && s.window != now {
			s.reason = "window_switch"
		}
		s.window = now
	}
}

// epochUS is when the oracle's time 0 is unless StartAt says otherwise: 2026-01-05T00:00:00Z, a Monday.
const epochUS = 1767571200e6

// mdWindow is the window of an MD plan that is open now, or when something is tried as of then.
func (c *Cluster) mdWindow(in int) *plan.MDWindow {
	return c.mdWindowAt(in, c.nowUS+c.lookUS)
}

// mdWindowAt is the window of an MD plan that is open at a time. A dated one comes first (PLAN-8).
func (c *Cluster) mdWindowAt(in int, us int64) *plan.MDWindow {
	list := c.p.MDPlans[in].Windows
	at := slices.IndexFunc(list, func(w plan.MDWindow) bool { return w.Dated() && c.open(w.Window, us) })
	if at < 0 {
		at = slices.IndexFunc(list, func(w plan.MDWindow) bool { return c.open(w.Window, us) })
	}
	return &list[at]
}

// windowAt is the window of a plan that is open at a time. A dated one comes first (PLAN-8).
func (c *Cluster) windowAt(s *plan.SlotPlan, us int64) int {
	if at := slices.IndexFunc(s.Windows,
		func(w plan.SlotWindow) bool { return w.Dated() && c.open(w.Window, us) }); at >= 0 {
		return at
	}
	return slices.IndexFunc(s.Windows, func(w plan.SlotWindow) bool { return c.open(w.Window, us) })
}

// open tells whether a window is open at a time: it began at most as long ago as it lasts.
func (c *Cluster) open(w plan.Window, us int64) bool {
	const day, week = 24 * 60, 7 * 24 * 60
	if w.Dated() {
		return c.startUS+us >= w.SinceUS && c.startUS+us < w.UntilUS
	}
	t := time.UnixMicro(c.startUS + us).In(c.p.Location)
	minute := (int(t.Weekday())+6)%7*day + t.Hour()*60 + t.Minute()
	lasts := (int(w.To) - int(w.From) + day) % day
	if lasts == 0 {
		lasts = day
	}
	for d := range 7 {
		if w.Days>>d&1 == 1 && (minute-d*day-int(w.From)+2*week)%week < lasts {
			return true
		}
	}
	return false
}

// window is the index of the window whose settings hold.
func (c *Cluster) window(in int) int { return max(0, c.seasons[in].window) }

// coming is the window that a switch within `lead` opens, -1: none.
func (g *slots) coming() int {
	if next := g.windowAt(g.s, g.nowUS+g.s.LeadUS); next != g.window(g.in) {
		return next
	}
	return -1
}

// under plays something as if another window held: all figures are those of that one.
func (g *slots) underWindow(window int, play func(n *slots)) {
	now := g.seasons[g.in].window
	g.seasons[g.in].window = window
	n := newSlots(g.Cluster, g.in)
	n.spent, n.denied, n.undone, n.bonds = g.spent, g.denied, g.undone, g.bonds
	play(n)
	g.seasons[g.in].window, g.spent = now, n.spent
	g.bill()
}

// foreign tells whether a unit's origin is hybrid and its leaf is not, or the other way round.
func (g *slots) foreign(u *unit) bool {
	return u.origin != "" && !u.sub.alloc.orphan && (u.origin == hybrid) != g.hybrid(u.leaf())
}

// as is what a unit counts as: its origin, "foreign" when it is that; what orphans hold counts as nothing.
func (g *slots) as(u *unit) string {
	if u.sub.alloc.orphan {
		return "orphan"
	}
	if g.foreign(u) {
		return "foreign"
	}
	return u.origin
}

// strange tells whether a unit is foreign, or borrowed from a leaf that is hybrid by now.
func (g *slots) strange(u *unit) bool {
	return g.foreign(u) || g.hasLeaf(u.lender) && g.hybrid(u.lender)
}

// strangers are a leaf's strange units that are not under reclaim, the oldest first.
func (g *slots) strangers(leaf plan.Node) []*unit {
	list := g.units(func(u *unit) bool { return u.leaf() == leaf && !u.leaves() && g.strange(u) })
	slices.SortFunc(list, func(a, b *unit) int { return g.newest(b, a) })
	return list
}

// owed tells whether a unit of a leaf that is hybrid by now is a loan yet of an owner that is not: until it is given
// back, it is the owner's slots that it takes, and none that hybrid branches have.
func (g *slots) owed(u *unit) bool {
	return u.origin == borrowed && g.foreign(u) && g.hasLeaf(u.lender) && !g.hybrid(u.lender)
}

// draws is what hybrid leaves at and below a consumer hold of what hybrid branches have.
func (g *slots) draws(n plan.Node, net bool) int64 {
	return g.taken(net, func(u *unit) bool { return g.under(n, u.leaf()) && g.hybrid(u.leaf()) && !g.owed(u) })
}

// naturalize settles what a switch or a new policy file made strange: what is borrowed goes; of the others the oldest
// become what the leaf's policy knows as far as it owns that much, the rest goes. What runs comes before what the leaf
// is promised. With ahead nothing is relabelled: what would be stays as it is.
func (g *slots) naturalize(reason string, ahead bool) {
	for _, leaf := range g.leaves() {
		stays := int64(0)
		for _, u := range g.strangers(leaf) {
			switch {
			case u.leaves(): // with others of its gang
			case u.origin == borrowed,
				g.hybrid(leaf) && g.labelled(leaf)+stays+u.slots() > floor(g.owned[leaf]),
				!g.hybrid(leaf) && g.unused(leaf)-stays < u.slots():
				g.rule(u, reason)
			case ahead:
				stays += u.slots()
			case g.hybrid(leaf):
				g.relabel(u, hybrid, plan.None)
			default:
				g.relabel(u, owned, plan.None)
				g.forgo(leaf)
			}
		}
	}
}

// unused is what of a leaf's own neither it nor anybody else holds, net.
func (g *slots) unused(leaf plan.Node) int64 {
	return g.owns[leaf] - g.held(leaf, owned, true) - g.lent(leaf, true)
}

// forgo lets a leaf's recalls lapse, the latest first, by as many slots as they promise beyond what is unused of its
// own.
func (g *slots) forgo(leaf plan.Node) {
	beyond := -g.netAccount(leaf)
	for _, s := range slices.Backward(g.mine(func(s *set) bool { return s.account == leaf })) {
		for s.n > 0 && beyond > 0 {
			beyond -= s.taker.slots()
			g.lapse(s)
			g.notes["forwent a recall for work from before a switch"]++
		}
	}
}

// disband ends recalls of leaves that are hybrid by now: nothing is theirs to recall.
func (g *slots) disband() {
	for _, s := range g.mine(func(s *set) bool { return s.reason == "recall" && g.hybrid(s.taker.alloc.leaf) }) {
		for s.n > 0 {
			g.lapse(s)
		}
	}
}

// labelled is what a hybrid leaf holds, net, that is labelled so.
func (g *slots) labelled(leaf plan.Node) int64 {
	return g.taken(true, func(u *unit) bool { return u.leaf() == leaf && u.origin == hybrid })
}

// switchOver settles foreign units; then it takes back what a coming switch would, if that is near.
func (g *slots) switchOver() {
	g.naturalize(g.seasons[g.in].reason, false)
	if len(g.units(g.owed)) > 0 {
		g.notes["owed after a switch"]++
	}
	if next := g.coming(); next >= 0 {
		g.underWindow(next, func(n *slots) {
			n.entitle()
			n.naturalize("window_switch", true)
			n.ahead = true
			n.overLimit()
			n.overMax()
		})
	}
}

// lasts tells whether a unit that is about to be granted could stay when the coming window opens.
func (g *slots) lasts(s *sub, origin string, lender plan.Node) (ok bool) {
	next, leaf, k := g.coming(), s.alloc.leaf, s.slots()
	if next < 0 {
		return true
	}
	g.underWindow(next, func(n *slots) {
		left := func(n *slots, m plan.Node) int64 { return n.owns[m] - g.held(m, owned, false) - g.lent(m, false) }
		switch {
		case n.hybrid(leaf) && !g.hybrid(leaf):
			ok = origin != borrowed && g.holds(leaf)+k <= floor(n.owned[leaf])
		case !n.hybrid(leaf) && g.hybrid(leaf):
			ok = g.holds(leaf)+k <= n.owns[leaf]
		case n.over(leaf, k, n.holds) != plan.None:
		case origin == owned:
			ok = left(n, leaf) >= k
		case origin == sharePool:
			ok = n.pooled(plan.Root)-g.held(plan.Root, sharePool, false) >= k
		case origin == borrowed:
			most := n.w.BorrowLimit[leaf]
			ok = left(n, lender) >= k && n.lendable(lender)-g.lent(lender, false) >= k && n.agree(lender, leaf) &&
				(most == plan.Unlimited || g.held(leaf, borrowed, false)+k <= most)
		default:
			ok = n.all-g.blend(false) >= k
		}
	})
	return ok
}
