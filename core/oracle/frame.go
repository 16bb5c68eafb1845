package oracle

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// terms are the settings that MD and slot plans have in common.
type terms struct {
	name              string
	member            []bool
	rank              []int32
	ratio             []int64
	budget, overdueUS int64
	confirmed         bool
}

func (c *Cluster) terms(in int) terms {
	if in < len(c.p.MDPlans) {
		m := &c.p.MDPlans[in]
		w := c.mdWindow(in)
		return terms{m.Name, m.Member, w.Rank, w.Ratio, m.ReclaimBudget, m.OverdueAfterUS, m.ReleaseConfirmed}
	}
	s := &c.p.SlotPlans[in-len(c.p.MDPlans)]
	w := &s.Windows[c.window(in)]
	return terms{c.p.Groups[s.Group].Name, s.Member, w.Rank, w.Ratio, s.ReclaimBudget, s.OverdueAfterUS,
		s.ReleaseConfirmed}
}

// frame is what a cycle needs to know of a plan of either kind. Its hosts and their order do not change in a cycle.
type frame struct {
	*Cluster
	terms
	in       int
	hosts    []*host       // in host order
	spent    int64         // of the reclaim budget
	undone   map[*sub]bool // a grant of this cycle was taken back: they get nothing more in it
	matching map[string][]bool
	reviewed int64          // sets up to this number count as promised
	joined   []joined       // in this cycle
	denied   map[*sub]bool  // a set that the budget did not bear, in this cycle
	forming  map[*sub]bool  // gangs that wait, as of the last mark
	partial  map[*sub]bool  // of those, the ones of which something is left
	core     map[*unit]bool // units that formed gangs may not do without, as of the last mark
	gaveUp   map[*sub]bool  // gangs that have waited for too long
	bonds    map[*sub]any   // to which value of its attribute a gang is held
	firm     bool           // what is promised is held by sets, and the budget is asked for all of them at once
}

func newFrame(c *Cluster, in int) frame {
	return frame{Cluster: c, terms: c.terms(in), in: in, hosts: c.order[in], undone: map[*sub]bool{},
		matching: map[string][]bool{},
		reviewed: math.MaxInt64, denied: map[*sub]bool{}, gaveUp: map[*sub]bool{}, bonds: map[*sub]any{}}
}

// children are the members of the plan below a consumer, in plan order.
func (f *frame) children(n plan.Node) []plan.Node {
	var list []plan.Node
	for k := f.p.First[n]; k != plan.None; k = f.p.Next[k] {
		if f.member[k] {
			list = append(list, k)
		}
	}
	return list
}

// under tells whether a consumer is n or below it.
func (f *frame) under(n, leaf plan.Node) bool { return !gone(n) && leaf >= n && leaf < f.p.End[n] }

// below are the sub-allocations of a consumer and all below it, in the order of D-14.
func (f *frame) below(n plan.Node) []*sub {
	var list []*sub
	for leaf := n; leaf < f.p.End[n]; leaf++ {
		for _, a := range f.allocs {
			if a.plan == f.in && a.leaf == leaf {
				list = append(list, a.subs...)
			}
		}
	}
	return list
}

// units are the plan's units that ok accepts; those of hosts that left it come last.
func (f *frame) units(ok func(u *unit) bool) []*unit {
	var list []*unit
	for _, h := range f.Cluster.hosts {
		for _, u := range h.units {
			if u.sub.alloc.plan == f.in && ok(u) {
				list = append(list, u)
			}
		}
	}
	return list
}

// choose goes down to a leaf that is in the tree, at each consumer to the child that comes before the others.
func (f *frame) choose(n plan.Node, tree map[plan.Node]bool, before func(a, b plan.Node) bool) plan.Node {
	best := plan.None
	for _, k := range f.children(n) {
		if f.alive(k, tree) && (best == plan.None || before(k, best)) {
			best = k
		}
	}
	if f.p.Leaf(best) {
		return best
	}
	return f.choose(best, tree, before)
}

func (f *frame) alive(n plan.Node, tree map[plan.Node]bool) bool {
	return tree[n] || slices.ContainsFunc(f.children(n), func(k plan.Node) bool { return f.alive(k, tree) })
}

// less compares two products, such as usages times the other's ratio.
func less(a, b, c, d uint64) int {
	ah, al := bits.Mul64(a, b)
	ch, cl := bits.Mul64(c, d)
	return cmp.Or(cmp.Compare(ah, ch), cmp.Compare(al, cl))
}

// serve offers the units that a leaf wants in the order of CYC-10, until one is taken. has is how many units of a
// sub-allocation count as held.
func (f *frame) serve(leaf plan.Node, has func(s *sub) int64, take func(s *sub) bool) bool {
	return slices.ContainsFunc(f.allocs, func(a *alloc) bool {
		return a.plan == f.in && a.leaf == leaf && f.offer(a, has, take)
	})
}

// offer offers the units that an allocation wants, the least satisfied first (D-9), until one is taken.
func (f *frame) offer(a *alloc, has func(s *sub) int64, take func(s *sub) bool) bool {
	subs := slices.DeleteFunc(slices.Clone(a.subs), func(s *sub) bool {
		return s.short() <= 0 || f.undone[s] || f.small(s)
	})
	slices.SortStableFunc(subs, func(a, b *sub) int {
		return less(uint64(has(a)), uint64(b.wanted), uint64(has(b)), uint64(a.wanted))
	})
	return slices.ContainsFunc(subs, take)
}

func held(s *sub) int64 { return s.held }

// ok tells whether a host of the plan may get units (INV-1).
func (f *frame) ok(h *host) bool { return h.State == "ok" && slices.Contains(f.hosts, h) }

// meets tells whether a host meets a sub-allocation's requirement, and has the value that its gang is held to.
func (f *frame) meets(s *sub, h *host) bool {
	if value, held := f.bonds[s]; held && s.place(h) != value {
		return false
	}
	if f.matching[s.req] == nil {
		f.matching[s.req] = f.matches(parsed(s.req))
	}
	return f.matching[s.req][slices.Index(f.Cluster.hosts, h)]
}

// candidates are the hosts that a sub-allocation may use, full or not, in host order.
func (f *frame) candidates(s *sub) []*host {
	return slices.DeleteFunc(slices.Clone(f.hosts), func(h *host) bool { return !f.ok(h) || !f.meets(s, h) })
}

// full tells whether a host with some more units of a sub-allocation holds as many as max_per_host allows.
func full(s *sub, h *host, more int64) bool {
	for _, u := range h.units {
		if u.sub == s {
			more++
		}
	}
	return s.perHost != plan.Unlimited && more >= s.perHost
}

// ordered tells by a requirement's order, where it has one, which of two hosts takes the next unit (REQ-1).
func (f *frame) ordered(s *sub) func(a, b *host) bool {
	r := parsed(s.req)
	if r == nil || !r.Ordered() {
		return nil
	}
	b := f.bind(r)
	return func(x, y *host) bool {
		return b.Less(slices.Index(f.Cluster.hosts, x), slices.Index(f.Cluster.hosts, y))
	}
}

// affords tells whether the reclaim budget bears a set of so many units (CYC-4): the first of a cycle always.
func (f *frame) affords(units int64) bool {
	return f.firm || f.budget == plan.Unlimited || units == 0 || f.spent == 0 || f.spent+units <= f.budget
}

// reclaim puts a unit under reclaim. One granted in this cycle is not granted at all (CYC-1); one that is under reclaim
// goes over to another set and keeps its deadline.
func (f *frame) reclaim(u *unit, s *set) {
	if u.leaves() { // of a set that ends for it
		f.reclaimed[claim{u.sub, u.host, "cancelled", u.set.reason, u.set.taker, u.due, deviceText(u.devices)}]++
		f.reclaimed[claim{u.sub, u.host, "issued", s.reason, s.taker, u.due, deviceText(u.devices)}]++
		u.set, u.number = s, f.next()
		return
	}
	if u.cycle == f.cycle {
		f.undone[u.sub] = true
		f.revoked++
		f.drop(u)
		return
	}
	f.spent++
	if f.grace(u) < f.p.ReclaimUS[u.leaf()] {
		f.notes["deadline by the grace of a lender or a pool"]++
	}
	u.set, u.number, u.due = s, f.next(), f.nowUS+f.grace(u)
	f.reclaimed[claim{u.sub, u.host, "issued", s.reason, s.taker, u.due, deviceText(u.devices)}]++
}

// cancel takes a unit off its reclaim; what an orphan holds goes at the same time without a taker.
func (c *Cluster) cancel(u *unit) {
	c.reclaimed[claim{u.sub, u.host, "cancelled", u.set.reason, u.set.taker, u.due, deviceText(u.devices)}]++
	if u.sub.alloc.orphan {
		c.detain(u, u.due)
		return
	}
	u.set, u.number, u.due = nil, 0, 0
}

// rule reclaims a unit because a rule wants it; false when the budget does not bear it.
func (f *frame) rule(u *unit, reason string) bool {
	if f.breaks(u, nil) {
		return f.reclaimGang(u.sub, reason)
	}
	if u.cycle < f.cycle && !f.affords(1) {
		return false
	}
	f.reclaim(u, &set{number: f.next(), plan: f.in, reason: reason})
	return true
}

// stays tells whether a unit is not under reclaim.
func stays(u *unit) bool { return !u.leaves() }

// leave reclaims what is on draining hosts, then what is on hosts that left the plan (D-25),
// host by host, of each in the order of CYC-5.
func (f *frame) leave() {
	list := slices.DeleteFunc(f.units(stays), func(u *unit) bool {
		return u.sub.alloc.orphan || slices.Contains(f.hosts, u.host) && u.host.State != "draining"
	})
	slices.SortStableFunc(list, f.byHost)
	for _, u := range list {
		if f.dropped(u) {
			continue // with others of its gang
		}
		reason := "drain"
		if !slices.Contains(f.hosts, u.host) {
			reason = "ownership_change"
		}
		if gang := f.breaks(u, nil); !f.rule(u, reason) && !gang {
			return
		}
	}
}

// restore takes units off reclaims that no rule asks for any more, the latest first (CYC-6, D-24): when the host is
// back (and bears the unit), or when all limits bear it.
func (f *frame) restore(bears, bearsThere func(u *unit) bool) {
	list := f.units(func(u *unit) bool {
		return u.leaves() && u.set.taker == nil && !u.sub.alloc.orphan && !f.leavesWhole(u)
	})
	turn := func(u *unit) int { // in MD plans a cause of the host comes before one of a parcel, and that before a limit
		return slices.Index([]string{"drain", "ownership_change"}, u.set.reason) & 3
	}
	slices.SortFunc(list, func(a, b *unit) int {
		order := cmp.Compare(b.number, a.number)
		if f.in < len(f.p.MDPlans) {
			order = cmp.Or(cmp.Compare(turn(a), turn(b)), order)
		}
		return order
	})
	for _, u := range list {
		back := false
		switch u.set.reason {
		case "drain":
			back = slices.Contains(f.hosts, u.host) && u.host.State != "draining"
		case "ownership_change":
			back = slices.Contains(f.hosts, u.host) && u.host.State != "draining" && bearsThere(u)
		case "gang": // that is for later to say
		case "window_switch":
			back = f.in >= len(f.p.MDPlans) && bears(u) // an MD plan's stay
		default:
			back = bears(u)
		}
		if back {
			f.cancel(u)
		}
	}
}
