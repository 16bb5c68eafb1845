package plan

import (
	"fmt"
	"slices"
)

// Warning is something in a policy that is legal but suspect (PLAN-7).
type Warning struct {
	File string
	Line int32
	Text string
}

// String is `file:line: text`.
func (w Warning) String() string { return fmt.Sprintf("%s:%d: %s", w.File, w.Line, w.Text) }

// lendingChecksMax bounds the search for a borrower of each lender.
const lendingChecksMax = 10_000_000

// warner gathers warnings.
type warner struct {
	p     *Policy
	found []Warning
	count int
}

func (c *warner) add(line int32, format string, args ...any) {
	w := Warning{c.p.File, line, fmt.Sprintf(format, args...)}
	if slices.Contains(c.found, w) {
		return
	}
	if c.count++; c.count <= faultsMax {
		c.found = append(c.found, w)
	}
}

// in names a plan and its window.
func in(plan string, w *Window) string {
	if w.Name == "" {
		return "plan " + plan
	}
	return "plan " + plan + ", window " + w.Name
}

// Warnings lists what is legal but suspect, as far as it can be told without
// hosts, in the order of the file; past a hundred the last entry gives the number of all.
func (p *Policy) Warnings() []Warning {
	c := &warner{p: p}
	c.absent()
	c.system()
	c.runtime()
	for i := range p.SlotPlans {
		c.slotPlan(&p.SlotPlans[i])
		s := &p.SlotPlans[i]
		c.gangWait("plan "+p.Groups[s.Group].Name, s.Line, s.GangWaitUS, s.Member)
	}
	for i := range p.MDPlans {
		c.mdPlan(&p.MDPlans[i])
		m := &p.MDPlans[i]
		c.gangWait("plan "+m.Name, m.Line, m.GangWaitUS, m.Member)
	}
	slices.SortStableFunc(c.found, func(a, b Warning) int { return int(a.Line - b.Line) })
	if c.count > len(c.found) {
		c.found = append(c.found,
			Warning{p.File, 0, fmt.Sprintf("%d warnings in all, %d of them are shown", c.count, len(c.found))})
	}
	return c.found
}

// absent warns of leaves that are in no plan.
func (c *warner) absent() {
	for n := Node(1); int(n) < c.p.Len(); n++ {
		if !c.p.Leaf(n) {
			continue
		}
		planned := slices.ContainsFunc(c.p.SlotPlans, func(s SlotPlan) bool { return s.Member[n] }) ||
			slices.ContainsFunc(c.p.MDPlans, func(m MDPlan) bool { return m.Member[n] })
		if !planned {
			c.add(c.p.Line[n], "%s is in no plan and can never get anything", c.p.Path[n])
		}
	}
}

// system warns of a system service that is in no slot plan, nor is anybody of its branch (PLAN-6).
func (c *warner) system() {
	for n, in := range c.p.Services() {
		entered := slices.ContainsFunc(c.p.SlotPlans, func(s SlotPlan) bool { return s.Member[n] })
		if in && c.p.Leaf(Node(n)) && !entered {
			c.add(c.p.Line[n], "%s belongs to a system branch, but no slot plan has it own a slot", c.p.Path[n])
		}
	}
}

// runtime warns of a min_runtime of consumers that are in slot plans alone, where it decides nothing (REQ-4).
func (c *warner) runtime() {
	for n := Node(1); int(n) < c.p.Len(); n++ {
		if c.p.RuntimeUS[n] == 0 || c.p.RuntimeUS[n] == c.p.RuntimeUS[c.p.Parent[n]] {
			continue
		}
		packed := slices.ContainsFunc(c.p.MDPlans, func(m MDPlan) bool {
			return slices.Contains(m.Member[n:c.p.End[n]], true)
		})
		if !packed {
			c.add(c.p.Line[n], "%s has a min_runtime, which decides nothing in slot plans, and is in no "+
				"multidimensional one", c.p.Path[n])
		}
	}
}

// gangWait warns of room that is held for a gang for no longer than a consumer has to give its units back: what is
// asked of that consumer never comes in time (REQ-3). A plan that does not say how long may have no gangs.
func (c *warner) gangWait(where string, line int32, waitUS int64, member []bool) {
	slowest := Root
	for n := Root; int(n) < c.p.Len(); n++ {
		if member[n] && c.p.Leaf(n) && c.p.ReclaimUS[n] > c.p.ReclaimUS[slowest] {
			slowest = n
		}
	}
	if us := c.p.ReclaimUS[slowest]; us >= waitUS && waitUS != gangWaitDefaultUS {
		c.add(line, "%s: gang_wait is %s, and %s has %s to give units back, so that no gang gets what it takes of it",
			where, Lasting(waitUS), c.p.Path[slowest], Lasting(us))
	}
}

// equalRanks tells whether some of a plan's consumers stand at the same rank wherever their branches part, so that only
// the order of the list of consumers decides among them: false of fewer than two.
func (c *warner) equalRanks(among func(n Node) bool, rank []int32) bool {
	within := make([]bool, c.p.Len()) // such a consumer is it, or below it
	some := 0
	for n := Node(c.p.Len() - 1); n > Root; n-- {
		if among(n) {
			within[n] = true
			some++
		}
		up := c.p.Parent[n]
		within[up] = within[up] || within[n]
	}
	for n := Node(1); int(n) < c.p.Len(); n++ {
		for o := c.p.Next[n]; within[n] && o != None; o = c.p.Next[o] {
			if within[o] && rank[o] != rank[n] {
				return false
			}
		}
	}
	return some > 1
}

func (c *warner) slotPlan(s *SlotPlan) {
	name := c.p.Groups[s.Group].Name
	for i := range s.Windows {
		w := &s.Windows[i]
		where := in(name, &w.Window)
		if c.equalRanks(func(n Node) bool { return s.Member[n] && w.BorrowLimit[n] != 0 }, w.Rank) {
			c.add(s.Line, "%s: all who borrow have the same rank; who borrows first, and gives back last, goes by "+
				"the order of consumers", where)
		}
		c.leafless(s.Member, func(n Node) bool { return w.Owns[n] > 0 }, where, "slots")
		c.slotStarved(s, w, where)
		c.slotLending(s, w, where)
		c.slotReserves(s, w, where)
	}
	c.lendsTooMuch(s, name)
	c.lendingServices(s, name)
	for n := range Node(c.p.Len()) {
		if c.p.First[n] == None {
			continue
		}
		most := &s.Windows[0]
		for i := range s.Windows {
			if s.Windows[i].Owns[n] > most.Owns[n] {
				most = &s.Windows[i]
			}
		}
		for i := range s.Windows {
			if w := &s.Windows[i]; w.Owns[n] < most.Owns[n] && !c.passedOn(n, w, most) {
				c.add(c.p.Line[n], "%s: the parent %s owns %d, in window %s it owns %d, and nobody owns more in "+
					"its place", in(name, &w.Window),
					c.p.Path[n], w.Owns[n], most.Name, most.Owns[n])
			}
		}
	}
}

// passedOn tells whether what a parent owns less in a window somebody beside it owns more, as by day and by night.
func (c *warner) passedOn(n Node, w, most *SlotWindow) bool {
	for ; n != Root; n = c.p.Parent[n] {
		for o := c.p.First[c.p.Parent[n]]; o != None; o = c.p.Next[o] {
			if o != n && w.Owns[o] > most.Owns[o] {
				return true
			}
		}
	}
	return false
}

// slotStarved warns of a ratio of 0 with nothing owned, and of leaves that can never get anything.
func (c *warner) slotStarved(s *SlotPlan, w *SlotWindow, where string) {
	shut := make([]bool, c.p.Len()) // by a limit of 0 here or above
	for n := Node(1); int(n) < c.p.Len(); n++ {
		if !s.Member[n] {
			continue
		}
		shut[n] = shut[c.p.Parent[n]] || w.Limit[n] == 0 || w.Max[n] == 0
		switch {
		case shut[n] && c.p.Leaf(n):
			c.add(c.p.Line[n], "%s: %s can never get anything, a limit is 0", where, c.p.Path[n])
		case w.Policy[n] != Hybrid && w.Ratio[n] == 0 && w.Owns[n] == 0 && w.BorrowLimit[n] == 0:
			c.add(c.p.Line[n], "%s: %s has share ratio 0, owns nothing and does not borrow", where, c.p.Path[n])
		}
	}
}

// accepts tells whether a list of peers, nil for any, lets a consumer n deal with other.
func (c *warner) accepts(peers []Peer, n, other Node) bool {
	return peers == nil || slices.ContainsFunc(peers, func(p Peer) bool {
		return p.Any || p.Siblings && c.p.Parent[n] == c.p.Parent[other] ||
			p.Node != Root && other >= p.Node && other < c.p.End[p.Node]
	})
}

// slotLending warns of lenders that no borrower can borrow from.
func (c *warner) slotLending(s *SlotPlan, w *SlotWindow, where string) {
	var lenders, borrowers []Node
	for n := range Node(c.p.Len()) {
		if w.LendLimit[n] > 0 && w.Owns[n] > 0 {
			lenders = append(lenders, n)
		}
		if w.BorrowLimit[n] != 0 && s.Member[n] {
			borrowers = append(borrowers, n)
		}
	}
	checks := 0
	for _, l := range lenders {
		can := slices.ContainsFunc(borrowers, func(b Node) bool {
			checks++
			return b != l && c.accepts(w.LendTo[l], l, b) && c.accepts(w.BorrowFrom[b], b, l)
		})
		if checks > lendingChecksMax {
			c.add(s.Line, "%s: too many lenders and borrowers to check who can borrow from whom", where)
			return
		}
		if !can {
			c.add(c.p.Line[l], "%s: %s lends, but nobody can borrow from it", where, c.p.Path[l])
		}
	}
}

// slotReserves warns when all that hybrid consumers own is reserved.
func (c *warner) slotReserves(s *SlotPlan, w *SlotWindow, where string) {
	owners := 0
	for n := range c.p.Len() {
		if w.Policy[n] != Hybrid || w.Owns[n] == 0 {
			continue
		}
		if owners++; w.Reserves[n] < w.Owns[n] {
			return
		}
	}
	if owners > 0 {
		c.add(s.Line, "%s: all that is owned is reserved, nothing can be shared", where)
	}
}

func (c *warner) mdPlan(m *MDPlan) {
	for i := range m.Windows {
		w := &m.Windows[i]
		where := in(m.Name, &w.Window)
		c.remaining(m, w, where)
		c.leafless(m.Member, func(n Node) bool { return len(w.Own[n]) > 0 }, where, "hosts")
		c.mdStarved(m, w, where)
		c.mdLending(m, w, where)
		owners, whole := 0, 0
		for n := range c.p.Len() {
			if len(w.Own[n]) > 0 && m.Member[n] {
				owners++
				if r := w.Reserve[n]; r.Percent == 100*milli ||
					r.Hosts != Unlimited && r.Hosts == wholeHosts(w.Own[n]) {
					whole++
				}
			}
		}
		if owners > 0 && owners == whole {
			c.add(m.Line, "%s: all that is owned is reserved, nothing can be lent", where)
		}
	}
}

// chooses tells whether a consumer's rules leave it a choice of hosts: lists, and parts of every host, do not.
func (c *warner) chooses(w *MDWindow, n Node) bool {
	return slices.ContainsFunc(w.Own[n], func(r OwnRule) bool { return r.HostList == nil && r.PerHost == nil })
}

// mdStarved warns of a ratio of 0 with nothing owned, and of leaves that can never get anything.
func (c *warner) mdStarved(m *MDPlan, w *MDWindow, where string) {
	owns := make([]bool, c.p.Len()) // it, or one above it
	for n := Node(1); int(n) < c.p.Len(); n++ {
		owns[n] = len(w.Own[n]) > 0 || owns[c.p.Parent[n]]
		if !m.Member[n] || owns[n] {
			continue
		}
		if w.Ratio[n] == 0 {
			c.add(c.p.Line[n], "%s: %s has share ratio 0 and owns nothing", where, c.p.Path[n])
		}
		if c.p.Leaf(n) && slices.ContainsFunc(w.Limit, func(d []int64) bool { return d[n] == 0 }) {
			c.add(c.p.Line[n], "%s: %s has a share limit of 0 and owns nothing", where, c.p.Path[n])
		}
	}
}

// mdLending warns of lenders and pools whose grace shuts everybody out (MD-9).
func (c *warner) mdLending(m *MDPlan, w *MDWindow, where string) {
	least, second := Unlimited, Unlimited // the smallest graces of two leaves
	var quickest Node
	for n := Node(1); int(n) < c.p.Len(); n++ {
		if !m.Member[n] || !c.p.Leaf(n) {
			continue
		}
		switch g := c.p.ReclaimUS[n]; {
		case least == Unlimited || g < least:
			quickest, least, second = n, g, least
		case second == Unlimited || g < second:
			second = g
		}
	}
	if m.PublicGraceUS != Unlimited && least > m.PublicGraceUS {
		c.add(m.Line,
			"%s: public_pool.grace is below the reclaim grace of every consumer; nobody can use the public pool", where)
	}
	for n := Node(1); int(n) < c.p.Len(); n++ {
		others := least
		if n == quickest {
			others = second
		}
		if m.Member[n] && c.p.Leaf(n) && len(w.Own[n]) > 0 && w.LendGraceUS[n] != Unlimited &&
			others > w.LendGraceUS[n] {
			c.add(c.p.Line[n],
				"%s: lend_grace of %s is below the reclaim grace of every other consumer; nobody can borrow from it",
				where, c.p.Path[n])
		}
	}
}
