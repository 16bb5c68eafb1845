package oracle

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// New policy files (PLAN-3, PLAN-4), by D-37.

// firstGone is the node of the first consumer that is not in the policy in force; those of others go down from it.
const firstGone = plan.Node(-10)

// gone tells whether a consumer is not in the policy in force.
func gone(n plan.Node) bool { return n <= firstGone }

// path is a consumer's path, "" for none.
func (c *Cluster) path(n plan.Node) string {
	switch {
	case n == plan.None:
		return ""
	case gone(n):
		return c.former[firstGone-n]
	}
	return c.p.Path[n]
}

// goneNode is the node of a path that is not in the policy in force.
func (c *Cluster) goneNode(path string) plan.Node {
	i := slices.Index(c.former, path)
	if i < 0 {
		i = len(c.former)
		c.former = append(c.former, path)
	}
	return firstGone - plan.Node(i)
}

// SetPolicy replaces the policy by one with the same dimensions. Consumers are matched by path, or by the one that they
// are renamed from, plans by name. Unless forced, nobody may lose a place in which something is held.
func (c *Cluster) SetPolicy(p *plan.Policy, forced bool) {
	same := slices.Equal(c.p.Path, p.Path)
	if !slices.Equal(c.p.Dimensions, p.Dimensions) || len(p.MDPlans) != len(c.p.MDPlans) ||
		len(p.MDPlans) > 0 && !same {
		panic("oracle: other dimensions, or consumers beside an MD plan")
	}
	heir := map[string]string{}
	for n, old := range p.RenamedFrom {
		if old != "" {
			heir[old] = p.Path[n]
		}
	}
	to := func(n plan.Node) plan.Node {
		if n <= plan.Root && !gone(n) {
			return n
		}
		path := cmp.Or(heir[c.path(n)], c.path(n))
		if k, ok := p.Find(path); ok {
			return k
		}
		return c.goneNode(path)
	}
	into := make([]int, len(c.order))
	for in := range into {
		into[in] = planNamed(p, c.terms(in).name, in < len(p.MDPlans))
	}
	for _, a := range c.allocs {
		c.moveAlloc(a, p, into[a.plan], to(a.leaf), forced)
	}
	c.allocs = slices.DeleteFunc(c.allocs, func(a *alloc) bool { return a.plan < 0 || a.orphan && !a.holds() })
	for _, h := range slices.Concat(c.gone, c.hosts) {
		for _, u := range h.units {
			u.lender, u.pool, u.owner = to(u.lender), to(u.pool), to(u.owner)
		}
	}
	c.renamePurses(p, heir)
	c.renamePasts(p, heir)
	for _, s := range c.sets {
		s.plan, s.account = into[s.plan], to(s.account)
	}
	c.equipped = map[int]bool{}
	for in := range p.MDPlans {
		m := &p.MDPlans[in]
		if old := planNamed(c.p, m.Name, true); old >= 0 && c.p.MDPlans[old].Device < 0 && m.Device >= 0 {
			c.equipped[in] = true
		}
	}
	c.p = p
	c.revision++
	c.newYear("plan_change")
	c.arrange()
}

// moveAlloc puts an allocation where a new policy has its leaf. One whose leaf has no place in its plan is an orphan:
// it gets nothing more, and gives back what it holds (PLAN-4).
func (c *Cluster) moveAlloc(a *alloc, p *plan.Policy, in int, leaf plan.Node, forced bool) {
	if in < 0 && a.holds() {
		panic(fmt.Sprintf("oracle: a plan is gone in which %s holds something", c.path(a.leaf)))
	}
	place := in >= 0 && !gone(leaf) && p.Leaf(leaf) && membersOf(p, in)[leaf]
	if !place && !forced && !a.orphan && a.holds() {
		panic(fmt.Sprintf("oracle: %s holds something, and its place is gone", c.path(a.leaf)))
	}
	if !place && !a.orphan {
		a.orphan, a.graceUS = true, c.p.ReclaimUS[a.leaf]
		for _, s := range a.subs {
			s.named, s.wanted = false, s.held
		}
	}
	if a.plan, a.leaf = in, leaf; a.orphan && !gone(leaf) { // who has that path now is another one
		a.leaf = c.goneNode(p.Path[leaf])
	}
}

// holds tells whether anything of an allocation is held.
func (a *alloc) holds() bool {
	return slices.ContainsFunc(a.subs, func(s *sub) bool { return s.held > 0 })
}

// planNamed is the index of a policy's plan of a name, -1: none.
func planNamed(p *plan.Policy, name string, md bool) int {
	if md {
		return slices.IndexFunc(p.MDPlans, func(m plan.MDPlan) bool { return m.Name == name })
	}
	i := slices.IndexFunc(p.SlotPlans, func(s plan.SlotPlan) bool { return p.Groups[s.Group].Name == name })
	if i < 0 {
		return i
	}
	return len(p.MDPlans) + i
}

// membersOf are the consumers that take part in a plan of a policy.
func membersOf(p *plan.Policy, in int) []bool {
	if in < len(p.MDPlans) {
		return p.MDPlans[in].Member
	}
	return p.SlotPlans[in-len(p.MDPlans)].Member
}

// forsake ends the sets that orphans are takers of, and those of plans that got devices; it puts what orphans hold
// under reclaim, whatever the budget says; they want no more than that.
func (c *Cluster) forsake() {
	units := []*unit{}
	for _, h := range slices.Concat(c.gone, c.hosts) {
		units = append(units, h.units...)
	}
	ends := func(s *set) bool { return s.taker.alloc.orphan || c.equipped[s.plan] }
	for _, u := range units {
		if u.leaves() && u.set.taker != nil && ends(u.set) {
			c.cancel(u)
		}
	}
	for _, s := range c.sets {
		if c.equipped[s.plan] {
			c.notes["sets end as a plan gets devices"]++
		}
	}
	c.sets, c.equipped = slices.DeleteFunc(c.sets, ends), nil
	for _, a := range c.allocs {
		for _, s := range a.subs {
			if !a.orphan {
				continue
			}
			for _, u := range units {
				if u.sub == s && !u.leaves() {
					c.detain(u, c.nowUS+a.graceUS)
				}
			}
			s.wanted = s.held
		}
	}
}

// detain puts a unit of an orphan under reclaim.
func (c *Cluster) detain(u *unit, dueUS int64) {
	u.set, u.number, u.due = &set{number: c.next(), plan: u.sub.alloc.plan, reason: "plan_change"}, c.next(), dueUS
	c.reclaimed[claim{u.sub, u.host, "issued", "plan_change", nil, dueUS, deviceText(u.devices)}]++
}
