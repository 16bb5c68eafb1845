package oracle

import (
	"cmp"
	"maps"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// event is what units of a sub-allocation on a host have in common: granted, held or released (then with a cause).
type event struct {
	sub          *sub
	host         *host
	cause        string
	origin       string
	lender, pool plan.Node
	devices      string
}

// stopped is a unit that a reclaim stopped, and the cycle that granted it.
type stopped struct {
	event
	cycle int64
}

// claim is what reclaimed units have in common.
type claim struct {
	sub            *sub
	host           *host
	action, reason string
	taker          *sub
	due            int64
	devices        string
}

// Cycle runs one scheduling cycle, a minute after the last one.
func (c *Cluster) Cycle() Result { return c.CycleAt(c.nowUS + 60_000_000) }

// CycleAt runs one scheduling cycle at a time in µs since 2026-01-05T00:00:00Z: settle, then plan by plan what remains
// of it.
func (c *Cluster) CycleAt(nowUS int64) Result {
	c.cycle++
	lastUS := c.nowUS
	if c.cycle > 1 {
		lastUS = c.times[c.cycle-1]
	}
	c.nowUS = max(c.nowUS, nowUS) // CYC-9
	if c.cycle == 1 {
		lastUS = c.nowUS
	}
	c.times[c.cycle] = c.nowUS
	c.turn()
	c.spend(lastUS)
	c.notes = map[string]int{}
	c.settle()
	c.decay(lastUS)
	var r Result
	for in := range c.order {
		switch {
		case in < len(c.p.MDPlans):
			c.own(in, &r)
			newRound(c, in).play(&r)
		case c.p.SlotPlans[in-len(c.p.MDPlans)].Placement == plan.Exclusive:
			newWhole(c, in).play(&r)
		default:
			newSlots(c, in).play(&r)
		}
	}
	held, granted, leaving := map[event]int64{}, map[event]int64{}, map[event]int64{}
	for _, u := range c.units() {
		e := event{u.sub, u.host, "", u.origin, u.lender, u.pool, deviceText(u.devices)}
		held[e]++
		if u.cycle == c.cycle {
			granted[e]++
		}
		if u.leaves() {
			leaving[e]++
			r.Leaving++
		}
	}
	c.sets = slices.DeleteFunc(c.sets, func(s *set) bool { return s.n == 0 })
	for _, s := range c.sets {
		r.Promised += int(s.n)
	}
	r.Grants, r.Releases = c.rows(granted, nil), c.rows(c.released, nil)
	r.Held, r.Reclaims = c.rows(held, leaving), c.claims()
	c.lose(r.Releases)
	c.rateAll()
	for i := range r.Consumers {
		one := &r.Consumers[i]
		for in := range c.order {
			if n, ok := c.p.Find(one.Path); ok && c.terms(in).name == one.Plan {
				if of, used, ok := c.hoursUsed(in, n); ok {
					one.Budget, one.BudgetUsed = of, used
				}
			}
		}
	}
	r.Notes = c.notes
	r.Revoked, c.revoked = c.revoked, 0
	clear(c.released)
	clear(c.reclaimed)
	return r
}

// lose notes in rows of releases how long units that a reclaim stopped had run, in whole milliseconds each. What ran
// before the first cycle began with it.
func (c *Cluster) lose(rows []Units) {
	for _, u := range c.stopped {
		ran := (c.nowUS - c.times[max(u.cycle, 1)]) / 1000
		for i := range rows {
			r := &rows[i]
			if r.Key == c.key(u.sub) && r.Host == u.host.Name && r.Cause == u.cause && r.Origin == u.origin &&
				r.Lender == c.path(u.lender) && r.Device == u.devices {
				r.LostMS += ran
				break // two sizes of one name are rows of one line
			}
		}
	}
	c.stopped = nil
}

// row orders what concerns sub-allocations on hosts as D-14 says.
func (c *Cluster) row(s, t *sub, h, i *host) int {
	x, y := s.alloc, t.alloc
	return cmp.Or(cmp.Compare(x.plan, y.plan), cmp.Compare(x.leaf, y.leaf), cmp.Compare(x.arrival, y.arrival),
		cmp.Compare(s.arrival, t.arrival),
		cmp.Compare(slices.Index(c.order[x.plan], h), slices.Index(c.order[x.plan], i)),
		cmp.Compare(h.Name, i.Name))
}

// rows lists counted events by D-14, then by cause, origin, lender, pool and devices.
func (c *Cluster) rows(m, leaving map[event]int64) []Units {
	var rows []Units
	for _, e := range slices.SortedFunc(maps.Keys(m), func(a, b event) int {
		return cmp.Or(c.row(a.sub, b.sub, a.host, b.host), cmp.Compare(a.cause, b.cause),
			cmp.Compare(a.origin, b.origin),
			cmp.Compare(a.lender, b.lender), cmp.Compare(a.pool, b.pool), cmp.Compare(a.devices, b.devices))
	}) {
		rows = append(rows, Units{Key: c.key(e.sub), Host: e.host.Name, Cause: e.cause, Origin: e.origin,
			Lender: c.path(e.lender), Pool: c.path(e.pool), Device: e.devices, Units: m[e], Leaving: leaving[e]})
	}
	return rows
}

// claims lists what was put under reclaim and taken off by D-14, then by action, reason, deadline, taker and devices.
func (c *Cluster) claims() []Reclaim {
	var rows []Reclaim
	for _, e := range slices.SortedFunc(maps.Keys(c.reclaimed), func(a, b claim) int {
		return cmp.Or(c.row(a.sub, b.sub, a.host, b.host), cmp.Compare(a.action, b.action),
			cmp.Compare(a.reason, b.reason),
			cmp.Compare(a.due, b.due), cmp.Compare(a.taker.came(), b.taker.came()), cmp.Compare(a.devices, b.devices))
	}) {
		r := Reclaim{Key: c.key(e.sub), Host: e.host.Name, Action: e.action, Reason: e.reason, Units: c.reclaimed[e],
			DeadlineUS: e.due, Device: e.devices}
		if e.taker != nil {
			r.For = c.key(e.taker)
		}
		rows = append(rows, r)
	}
	return rows
}

// units are all units that are held.
func (c *Cluster) units() []*unit {
	var list []*unit
	for _, h := range c.hosts {
		list = append(list, h.units...)
	}
	return list
}

// settle applies CYC-5: what is under reclaim and due, then what hosts can no longer carry, then what nobody wants any
// more, then what is left of broken gangs; and D-12.
func (c *Cluster) settle() {
	for _, h := range slices.Concat(c.gone, c.hosts) {
		for _, u := range slices.Clone(h.units) {
			if c.due(u) {
				c.take(u, "grace_expired")
			}
		}
	}
	c.forsake()
	c.vacated()
	c.excess()
	for _, h := range slices.Concat(c.gone, c.hosts) {
		for _, u := range slices.Clone(h.units) {
			if c.unseated(u) {
				c.notes["lost with a device"]++
				c.take(u, "host_lost")
			}
		}
		for u := c.first(h.units, c.lost(h)); u != nil; u = c.first(h.units, c.lost(h)) {
			c.take(u, "host_lost")
		}
	}
	c.gone = nil
	c.broken()
	for _, a := range c.allocs {
		a.subs = slices.DeleteFunc(a.subs, func(s *sub) bool { return !s.named && s.held == 0 })
	}
	c.allocs = slices.DeleteFunc(c.allocs, func(a *alloc) bool { return len(a.subs) == 0 })
}

// vacated releases what is held on hosts that are lost: of which nothing is left.
func (c *Cluster) vacated() {
	for _, h := range slices.Concat(c.gone, c.hosts) {
		in := c.planOf(h)
		if in < 0 && len(h.units) > 0 {
			in = h.units[0].sub.alloc.plan
		}
		for _, u := range slices.Clone(h.units) {
			there := h.State != "unavail" && !slices.Contains(c.gone, h) && slices.Max(c.capacity(in, h)) > 0
			if !there || u.sub.alloc.plan != in {
				c.take(u, "host_lost")
			}
		}
	}
}

// excess releases what is held beyond what is wanted (CYC-5).
func (c *Cluster) excess() {
	for _, a := range c.allocs {
		for _, s := range a.subs {
			for s.held > s.wanted {
				var units []*unit
				for _, h := range slices.Concat(c.gone, c.hosts) {
					units = append(units, h.units...)
				}
				c.take(c.first(units, func(u *unit) bool { return u.sub == s }), "demand_gone")
			}
		}
	}
}

// due tells whether a unit's reclaim frees it now: at its deadline or, where clients confirm, overdue_after later
// (CYC-8).
func (c *Cluster) due(u *unit) bool {
	t := c.terms(u.sub.alloc.plan)
	switch {
	case !u.leaves():
		return false
	case !t.confirmed:
		return u.due <= c.nowUS
	}
	return t.overdueUS != plan.Unlimited && u.due+t.overdueUS <= c.nowUS
}

// lost tells which units a host cannot carry any longer: all when it is not there, those of a plan that it is no
// longer in when it is in another one (D-25), and those that take something of which it holds too much (D-11).
func (c *Cluster) lost(h *host) func(u *unit) bool {
	in, there := c.planOf(h), h.State != "unavail" && !slices.Contains(c.gone, h)
	if in < 0 && len(h.units) > 0 { // one that left its plan goes on as if closed
		in = h.units[0].sub.alloc.plan
	}
	var over []bool
	if there && in >= 0 {
		held := c.used(in, h)
		for d, n := range c.capacity(in, h) {
			over = append(over, held[d] > n)
		}
	}
	return func(u *unit) bool {
		return !there || in >= 0 && (u.sub.alloc.plan != in || touches(u.sub.size, over))
	}
}

func touches(size []int64, over []bool) bool {
	for d, o := range over {
		if o && size[d] > 0 {
			return true
		}
	}
	return false
}

// first finds the unit that goes first in CYC-5's order among those that ok accepts, nil when there is none.
func (c *Cluster) first(units []*unit, ok func(u *unit) bool) *unit {
	var best *unit
	for _, u := range units {
		if ok(u) && (best == nil || c.sooner(u, best) < 0) {
			best = u
		}
	}
	return best
}

// sooner is CYC-5's order: under reclaim, then borrowed, then from pools, then owned; last rank first; newest first.
func (c *Cluster) sooner(a, b *unit) int {
	class := func(u *unit) int {
		switch {
		case u.lender != plan.None:
			return 0
		case u.origin != owned:
			return 1
		}
		return 2
	}
	switch {
	case a.leaves() == b.leaves():
		return cmp.Or(cmp.Compare(class(a), class(b)), c.lastRank(a, b))
	case a.leaves():
		return -1
	}
	return 1
}

// lastRank orders units last rank first, then newest first.
func (c *Cluster) lastRank(a, b *unit) int {
	return cmp.Or(c.rankOrder(a.sub.alloc.plan, b.leaf(), a.leaf()), c.newest(a, b))
}

// newest orders units newest first (D-10). What is equal by it stands in the order of lender, pool and reclaim, the
// last first, then what counts under the hybrid policy before what is owned, at last that on the highest devices first.
func (c *Cluster) newest(a, b *unit) int {
	return cmp.Or(cmp.Compare(b.cycle, a.cycle), cmp.Compare(b.sub.arrival, a.sub.arrival),
		cmp.Compare(c.place(b), c.place(a)),
		c.laterConsumer(a.lender, b.lender), c.laterConsumer(a.pool, b.pool), cmp.Compare(b.number, a.number),
		order(b.origin == hybrid)-order(a.origin == hybrid), byDevices(a, b))
}

// laterConsumer orders consumers, the last first; those that the policy in force has not come last, by path.
func (c *Cluster) laterConsumer(a, b plan.Node) int {
	if gone(a) && gone(b) {
		return cmp.Compare(c.path(b), c.path(a))
	}
	return cmp.Compare(b, a)
}

// place is where a unit's host stands in host order; those that left the plan stand behind its hosts.
func (c *Cluster) place(u *unit) int {
	hosts := c.order[u.sub.alloc.plan]
	if i := slices.Index(hosts, u.host); i >= 0 {
		return i
	}
	return len(hosts) + slices.Index(c.hosts, u.host)
}

// rankOrder compares two consumers by rank, level by level from the root; siblings of equal rank by the order of the
// list.
func (c *Cluster) rankOrder(in int, a, b plan.Node) int {
	if gone(a) || gone(b) { // orphans come after all
		return order(gone(a)) - order(gone(b))
	}
	pa, pb, rank := c.way(a), c.way(b), c.terms(in).rank
	for i := range min(len(pa), len(pb)) {
		if pa[i] != pb[i] {
			return cmp.Or(cmp.Compare(rank[pa[i]], rank[pb[i]]), cmp.Compare(pa[i], pb[i]))
		}
	}
	return 0
}

// order puts what is true after what is not.
func order(after bool) int {
	if after {
		return 1
	}
	return 0
}

// way is a consumer and those above it, from the first level down; the root is left out.
func (c *Cluster) way(n plan.Node) []plan.Node {
	var p []plan.Node
	for ; n > plan.Root; n = c.p.Parent[n] {
		p = append([]plan.Node{n}, p...)
	}
	return p
}
