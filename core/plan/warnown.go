package plan

// leafless warns of owners in a plan that no leaf below takes part in: the topmost of each branch.
func (c *warner) leafless(member []bool, owns func(n Node) bool, where, what string) {
	uses := make([]bool, c.p.Len()) // it is a leaf of the plan, or has one below it
	for n := Node(c.p.Len() - 1); n > Root; n-- {
		if uses[n] = uses[n] || member[n] && c.p.Leaf(n); uses[n] {
			uses[c.p.Parent[n]] = true
		}
	}
	told := make([]bool, c.p.Len())
	for n := Root + 1; int(n) < c.p.Len(); n++ {
		if told[n] = told[c.p.Parent[n]]; told[n] || uses[n] || !member[n] || !owns(n) {
			continue
		}
		told[n] = true
		c.add(c.p.Line[n],
			"%s: %s owns %s, but no leaf below it takes part in the plan, so that none has them as its own",
			where, c.p.Path[n], what)
	}
}

// lendsTooMuch warns of lend limits above what is owned in every window: in some it is usual, where windows differ in
// what is owned alone.
func (c *warner) lendsTooMuch(s *SlotPlan, name string) {
	for n := Root + 1; int(n) < c.p.Len(); n++ {
		most, limit, always := int64(0), int64(0), true
		for i := range s.Windows {
			w := &s.Windows[i]
			always = always && w.LendLimit[n] > w.Owns[n] && w.LendLimit[n] != Unlimited
			most, limit = max(most, w.Owns[n]), max(limit, w.LendLimit[n])
		}
		switch {
		case !s.Member[n] || !always:
		case most == 0:
			c.add(c.p.Line[n], "plan %s: lend.limit of %s is %d, but it owns no slot", name, c.p.Path[n], limit)
		default:
			c.add(c.p.Line[n], "plan %s: lend.limit of %s is %d, above the %d that it owns at most", name, c.p.Path[n],
				limit, most)
		}
	}
}

// lendingServices warns of system services that may lend all their slots in one plan, while another keeps them alive:
// without that it is a fault (PLAN-6).
func (c *warner) lendingServices(s *SlotPlan, name string) {
	services := c.p.Services()
	for n := Root + 1; int(n) < c.p.Len(); n++ {
		if !services[n] || !s.Member[n] || !c.p.Leaf(n) {
			continue
		}
		for i := range s.Windows {
			w := &s.Windows[i]
			if w.Policy[n] == Ownership && w.Owns[n] > 0 && w.LendLimit[n] >= w.Owns[n] {
				c.add(c.p.Line[n], "%s: the system service %s may lend all its slots, %d of %d", in(name, &w.Window),
					c.p.Path[n], w.LendLimit[n], w.Owns[n])
			}
		}
	}
}

// remaining warns of siblings of one rank that both own what remains of a group: the first of them has all of it.
func (c *warner) remaining(m *MDPlan, w *MDWindow, where string) {
	type heap struct {
		up, group int32
		rank      int32
	}
	first := map[heap]Node{}
	for n := Root + 1; int(n) < c.p.Len(); n++ {
		for i := range w.Own[n] {
			r := &w.Own[n][i]
			if !r.Remaining || !m.Member[n] {
				continue
			}
			k := heap{int32(c.p.Parent[n]), int32(r.Group), w.Rank[n]}
			if before, ok := first[k]; ok && before != n {
				c.add(r.Line, "%s: %s and %s both own what remains of %s, and have the same rank: %s gets all of it",
					where, c.p.Path[before], c.p.Path[n], c.p.Groups[m.Groups[r.Group].Group].Name, c.p.Path[before])
				continue
			}
			first[k] = n
		}
	}
}

// EqualRanks warns of plans in which all who choose hosts to own have the same rank. It decides something only where
// the hosts are too few for all of them, which the policy alone does not tell.
func (p *Policy) EqualRanks(m *MDPlan) []Warning {
	c := &warner{p: p}
	for i := range m.Windows {
		w := &m.Windows[i]
		if c.equalRanks(func(n Node) bool { return m.Member[n] && len(w.Own[n]) > 0 && c.chooses(w, n) }, w.Rank) {
			c.add(m.Line, "%s: all who own hosts have the same rank, and there are too few hosts for all; "+
				"who chooses first goes by the order of consumers", in(m.Name, &w.Window))
		}
	}
	return c.found
}
