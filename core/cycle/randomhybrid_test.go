package cycle_test

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// drawHybrid draws a policy with one slot plan, or two, of hybrid branches, some with ownership branches beside them.
func drawHybrid(t *rapid.T) site {
	s := site{dims: choose(t, "dimensions", []string{"ncpus", "slots"}, []string{"slots", "ncpus"}, []string{"ncpus"}),
		lively: once(t, "lively", 2)}
	plans := choose(t, "plans", 1, 1, 1, 2)
	s.drawGroups(t, plans+between(t, "groups", 0, 1))
	s.drawConsumers(t, between(t, "consumers", 1, 13))
	for i := range s.consumers {
		s.consumers[i].grace = choose(t, "grace", graces...)
	}
	for z := range plans {
		s.groups[z].slots = s.drawExpression(t)
		p := slotPlan{name: fmt.Sprintf("g%d", z), zone: z, blended: true}
		s.drawSettings(t, &p)
		for k, in := range s.drawMembers(t) {
			if in {
				p.members = append(p.members, slotMember{consumer: k})
			}
		}
		s.drawPolicies(t, &p)
		s.drawWindows(t, &p)
		s.slots = append(s.slots, p)
	}
	return s
}

// drawPolicies draws the policies of the branches, and all figures.
func (s *site) drawPolicies(t *rapid.T, p *slotPlan) {
	of := choose(t, "policies", []string{"hybrid"}, []string{"hybrid"}, []string{"hybrid", "ownership"},
		[]string{"hybrid", "ownership", "ownership"}, []string{"ownership", "ownership", "share_ratio"})
	for i := range p.members {
		e := &p.members[i]
		if e.policy = choose(t, "policy", of...); s.consumers[e.consumer].parent >= 0 {
			e.policy = p.member(s.consumers[e.consumer].parent).policy
		}
	}
	for i := range p.members {
		s.drawMember(t, p, i)
	}
	s.balance(p)
}

// drawWindows cuts the day in some minutes after midnight, when cases begin. Members of the plan itself are those of
// the first window.
func (s *site) drawWindows(t *rapid.T, p *slotPlan) {
	if p.cuts, p.windows = nil, nil; !once(t, "windows", 2) {
		return
	}
	at, dated := between(t, "cut", 0, 8), once(t, "dated", 4)
	p.dated = dated
	p.cuts = []int{at}
	for range choose(t, "more windows", 1, 1, 2) {
		at += between(t, "lasts", 1, 12)
		p.cuts = append(p.cuts, at)
		p.windows = append(p.windows, slices.Clone(p.members))
	}
	for k := range p.windows {
		p.within(k+1, func() {
			switch between(t, "other policies", 0, 2) {
			case 0:
				s.drawPolicies(t, p)
			case 1:
				s.turn(t, p)
			default:
				s.drawFigures(t, p)
			}
		})
	}
}

// turn changes one branch to or from the hybrid policy.
func (s *site) turn(t *rapid.T, p *slotPlan) {
	at := p.members[between(t, "turned", 0, len(p.members)-1)].consumer
	for s.consumers[at].parent >= 0 {
		at = s.consumers[at].parent
	}
	to := "hybrid"
	if p.member(at).policy == "hybrid" {
		to = "ownership"
	}
	for i := range p.members {
		e, policy := &p.members[i], p.members[i].policy
		switch up := s.consumers[e.consumer].parent; {
		case up >= 0:
			policy = p.member(up).policy
		case e.consumer == at:
			policy = to
		case policy == "share_ratio" && to == "hybrid": // these two do not mix
			policy = "ownership"
		}
		if e.policy != policy {
			e.policy = policy
			s.drawMember(t, p, i)
		}
	}
	s.balance(p)
}

// drawFigures draws the figures of some members anew.
func (s *site) drawFigures(t *rapid.T, p *slotPlan) {
	for i := range p.members {
		if once(t, "figures", 3) {
			s.drawMember(t, p, i)
		}
	}
	s.balance(p)
}

// within does something to the members as one window has them.
func (p *slotPlan) within(window int, do func()) {
	if window == 0 {
		do()
		return
	}
	p.members, p.windows[window-1] = p.windows[window-1], p.members
	do()
	p.members, p.windows[window-1] = p.windows[window-1], p.members
}

// at is the window that is open at a time; the last one passes midnight.
func (p *slotPlan) at(us int64) int {
	minute, open := int(us/60e6%(24*60)), max(0, len(p.cuts)-1)
	for k, cut := range p.cuts {
		if cut <= minute {
			open = k
		}
	}
	if p.dated && open == 0 && us >= startUS+24*3600e6 { // it was open on the first day alone
		open = len(p.cuts) - 1
	}
	return open
}

// blended tells whether some plan is of the kind that has hybrid branches.
func (s *site) blended() bool {
	return slices.ContainsFunc(s.slots, func(p slotPlan) bool { return p.blended })
}

// windowed tells whether some plan has windows.
func (s *site) windowed() bool {
	return slices.ContainsFunc(s.slots, func(p slotPlan) bool { return len(p.cuts) > 0 })
}

// still tells whether the same windows are open and coming as a minute before.
func (s *site) still(us int64) bool {
	return !slices.ContainsFunc(s.slots, func(p slotPlan) bool {
		lead := int64(p.lead) * 60e6
		return p.at(us) != p.at(us-60e6) || p.at(us+lead) != p.at(us+lead-60e6)
	})
}

// reviseBlend changes some of a plan with hybrid branches.
func (s *site) reviseBlend(t *rapid.T, p *slotPlan) {
	for k := range len(p.windows) + 1 {
		p.within(k, func() {
			if once(t, "other policies", 5) {
				s.drawPolicies(t, p)
			} else {
				s.drawFigures(t, p)
			}
		})
	}
	if once(t, "other windows", 6) {
		s.drawWindows(t, p)
	}
}

// drawBlend draws the settings of hybrid branches.
func (p *slotPlan) drawBlend(t *rapid.T) {
	if once(t, "evenly", 3) {
		p.settings = append(p.settings, "distribute_evenly: true")
	}
	if once(t, "shrink", 4) {
		p.settings = append(p.settings, "disable_reclaim_on_shrink: true")
	}
	if once(t, "lead", 3) {
		p.lead = choose(t, "lead", 1, 2, 3, 5)
	}
	if p.configured = 0; once(t, "configured", 3) {
		p.configured = between(t, "configured slots", 1, 15) + between(t, "and more", 0, 15)
	}
}

// drawHybridMember draws a hybrid consumer's figures.
func (s *site) drawHybridMember(t *rapid.T, e *slotMember) {
	if once(t, "own rank", 6) {
		e.rank = between(t, "plan rank", 0, 3)
	}
	if s.consumers[e.consumer].leaf {
		e.owns = choose(t, "owns", 0, 0, 1, 2, 3, 4, 6, 9)
	} else {
		e.owns = choose(t, "family", 0, 0, 0, 1, 3)
	}
	if once(t, "reserve", 2) {
		e.reserves = choose(t, "reserves", 1, 1, 2, 3, 5)
	}
	if s.consumers[e.consumer].leaf && once(t, "limit", 4) {
		e.most = between(t, "most", 0, 12)
	} else if !s.consumers[e.consumer].leaf && once(t, "limit", 2) {
		e.most = choose(t, "most", 2, 2, 3, 3, 4, 5, 6, 8, 10)
	}
}

// balance makes the figures of hybrid consumers such that a policy file may have them: nobody reserves more than it
// owns, and no limit is below its own reserve or those under it.
func (s *site) balance(p *slotPlan) {
	need := map[int]int{}
	for i := len(p.members) - 1; i >= 0; i-- {
		e := &p.members[i]
		if e.policy != "hybrid" {
			continue
		}
		e.reserves = min(e.reserves, s.owned(p, e.consumer))
		below := 0
		for _, k := range p.members {
			if s.consumers[k.consumer].parent == e.consumer {
				below += need[k.consumer]
			}
		}
		need[e.consumer] = max(e.reserves, below)
		if e.most >= 0 {
			e.most = max(e.most, need[e.consumer])
		}
	}
}

// mixed tells whether some branch is not hybrid, in some window.
func (p *slotPlan) mixed() bool {
	for _, e := range slices.Concat(append(p.windows, p.members)...) {
		if e.policy != "hybrid" {
			return true
		}
	}
	return false
}

// writeWindows writes the windows. Of those after the first, every entry gives all keys that its policy knows.
func (s *site) writeWindows(b *strings.Builder, p *slotPlan) {
	if len(p.cuts) == 0 {
		return
	}
	if p.lead > 0 {
		fmt.Fprintf(b, "    lead: %dm\n", p.lead)
	}
	b.WriteString("    windows:\n")
	for k, cut := range p.cuts {
		end := p.cuts[(k+1)%len(p.cuts)]
		switch {
		case p.dated && k == 0:
			fmt.Fprintf(b, "      - {name: w0, from: \"2026-01-05 %02d:%02d\", until: \"2026-01-05 %02d:%02d\"}\n",
				cut/60, cut%60, end/60, end%60)
			continue
		case p.dated && k == len(p.cuts)-1:
			end = p.cuts[1] // the first window is open beside it
		}
		fmt.Fprintf(b, "      - {name: w%d, hours: \"%02d:%02d-%02d:%02d\"", k, cut/60, cut%60, end/60, end%60)
		if k == 0 {
			b.WriteString("}\n")
			continue
		}
		b.WriteString(", consumers: [\n")
		p.within(k, func() {
			for i := range p.members {
				b.WriteString("          ")
				s.writeEntry(b, p, &p.members[i])
				b.WriteString(",\n")
			}
		})
		b.WriteString("        ]}\n")
	}
}

// writeEntry writes an entry that leaves nothing of what the plan itself says.
func (s *site) writeEntry(b *strings.Builder, p *slotPlan, e *slotMember) {
	c, most := s.consumers[e.consumer], e.most
	fmt.Fprintf(b, "{path: %s, rank: %d", c.path, max(e.rank, c.rank*min(1, -min(0, e.rank))))
	if c.parent < 0 {
		b.WriteString(", policy: " + e.policy)
	}
	if e.policy != "share_ratio" {
		fmt.Fprintf(b, ", owns: %d", s.owned(p, e.consumer))
	}
	if e.policy == "hybrid" {
		if most < 0 {
			most = 500
		}
		fmt.Fprintf(b, ", reserves: %d, limit: %d}", e.reserves, most)
		return
	}
	if e.policy == "ownership" && c.leaf {
		writePeers(b, "lend", e.lend, "to", e.lendTo)
		if e.borrow == -2 {
			b.WriteString(", borrow: {limit: 0}")
		} else {
			writePeers(b, "borrow", e.borrow, "from", e.borrowFrom)
		}
	}
	fmt.Fprintf(b, ", share: {ratio: %d", e.ratio)
	if most >= 0 {
		fmt.Fprintf(b, ", max: %d", most)
	}
	b.WriteString("}}")
}

// writeHybrid writes the figures that only hybrid consumers have.
func (e *slotMember) writeHybrid(b *strings.Builder) {
	if e.reserves > 0 {
		fmt.Fprintf(b, ", reserves: %d", e.reserves)
	}
	if e.most >= 0 {
		fmt.Fprintf(b, ", limit: %d", e.most)
	}
}
