package cycle_test

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/oracle"
)

// slotPlan is a slot plan of one group, with its settings as they stand in the file.
type slotPlan struct {
	name     string
	zone     int
	settings []string // "key: value"
	budget   int      // reclaim_budget, -1: none
	shares   bool     // share_reclaim
	static   bool     // share_quota
	confirms bool     // release: confirmed, without overdue_after: only clients end what is due
	members  []slotMember

	blended    bool // some branches are hybrid
	configured int  // configured_slots, 0: none
	// minutes of the day at which windows begin, the last of them ends at the first; nil: no windows
	cuts    []int
	windows [][]slotMember // the members as the windows after the first have them
	dated   bool           // the first window is open once
	lead    int            // minutes
}

// slotMember is a consumer's entry. Limits are -1 where there is none.
type slotMember struct {
	consumer    int
	rank        int    // -1: the consumer's
	policy      string // of its branch
	owns        int    // of a branch: beyond its children's
	lend        int    // the limit
	lendTo      []string
	borrow      int // -2: no borrowing
	borrowFrom  []string
	ratio, most int // most: share.max or limit
	reserves    int
	budget      string // as a key of its entry
}

// drawSlots draws a policy with slot plans; some have an MD plan on other hosts beside them.
func drawSlots(t *rapid.T) site {
	s := site{dims: choose(t, "dimensions", []string{"ncpus", "slots"}, []string{"slots", "ncpus"}, []string{"ncpus"}),
		even: once(t, "even", 6)}
	s.barter = !s.even && once(t, "barter", 2)
	s.lively = !s.barter && once(t, "lively", 3)
	plans, mds := choose(t, "plans", 1, 1, 1, 2), 0
	if once(t, "md", 5) {
		mds = 1
	}
	s.drawGroups(t, plans+mds+between(t, "groups", 0, 1))
	least := 1
	if s.barter {
		least = 6
	}
	s.drawConsumers(t, between(t, "consumers", least, 13))
	for i := range s.consumers {
		s.consumers[i].grace = choose(t, "grace", graces...)
	}
	for z := range plans {
		s.groups[z].slots = s.drawExpression(t)
		p := slotPlan{name: fmt.Sprintf("g%d", z), zone: z}
		s.drawSettings(t, &p)
		in, ratios := s.drawMembers(t), !s.barter && once(t, "ratios alone", 4)
		for k, c := range s.consumers {
			if !in[k] {
				continue
			}
			policy := choose(t, "policy", "ownership", "ownership", "ownership", "share_ratio")
			if ratios {
				policy = "share_ratio"
			}
			if c.parent >= 0 {
				policy = p.member(c.parent).policy
			}
			p.members = append(p.members, slotMember{consumer: k, policy: policy})
		}
		budgets := !s.even && once(t, "budgets", 5)
		for i := range p.members {
			s.drawMember(t, &p, i)
			if budgets && s.consumers[p.members[i].consumer].leaf {
				p.members[i].budget = drawBudget(t, "slots")
			}
		}
		s.slots = append(s.slots, p)
	}
	if mds > 0 {
		s.plans = append(s.plans, s.drawPlan(t, "p0", []int{plans}))
	}
	return s
}

// drawExpression draws the slot expression of a group.
func (s *site) drawExpression(t *rapid.T) string {
	if !slices.Contains(s.dims, "slots") {
		return choose(t, "slots", "(ncpus*1)", "(ncpus/2)", "3")
	}
	return choose(t, "slots", "", "", "", "slots", "3", "(ncpus*2)", "(ncpus/2)", "(slots - 2)")
}

// slotsOf is what a slot expression is for a host.
func slotsOf(expression string, h oracle.Host) int64 {
	ncpus, slots := h.Size["ncpus"], h.Size["slots"]
	return map[string]int64{"": slots, "slots": slots, "3": 3, "(ncpus*1)": ncpus, "(ncpus*2)": 2 * ncpus,
		"(ncpus/2)":   ncpus / 2,
		"(slots - 2)": max(0, slots-2)}[expression]
}

// drawSettings draws what a plan says beside its consumers; in even cases nothing that stands in the way of INV-5.
func (s *site) drawSettings(t *rapid.T, p *slotPlan) {
	p.lead = 0
	p.settings, p.budget, p.shares, p.static, p.confirms = nil, -1, true, false, false
	set := func(format string, a ...any) { p.settings = append(p.settings, fmt.Sprintf(format, a...)) }
	if once(t, "balanced", 3) != s.barter {
		set("placement: balanced")
	}
	if once(t, "recall", 3) != s.barter {
		set("recall: before_borrow")
	}
	if once(t, "confirmed", 4) {
		set("release: confirmed")
		if p.confirms = once(t, "overdue", 2); !p.confirms {
			set("overdue_after: %ds", choose(t, "overdue_after", 0, 60, 90))
		}
	}
	if p.blended {
		p.drawBlend(t)
	}
	if s.even {
		return
	}
	if !s.barter && once(t, "share_reclaim", 5) {
		set("share_reclaim: false")
		p.shares = false
	}
	if once(t, "static", 4) {
		set("share_quota: static")
		p.static = true
	}
	if once(t, "budget", 4) {
		p.budget = choose(t, "reclaim_budget", 1, 1, 2, 3, 5)
		set("reclaim_budget: %d", p.budget)
	}
}

// drawMember draws a consumer's figures anew.
func (s *site) drawMember(t *rapid.T, p *slotPlan, i int) {
	e := &p.members[i]
	leaf := s.consumers[e.consumer].leaf
	*e = slotMember{consumer: e.consumer, policy: e.policy, rank: -1, borrow: -2, most: -1, ratio: 1}
	if e.policy == "hybrid" {
		s.drawHybridMember(t, e)
		return
	}
	if once(t, "own rank", 6) {
		e.rank = between(t, "plan rank", 0, 3)
	}
	if e.ratio = choose(t, "ratio", 1, 1, 1, 1, 2, 2, 3, 5); once(t, "barred", 15) ||
		!leaf && once(t, "barred branch", 5) {
		e.ratio = 0
	}
	if !s.even && once(t, "max", 10) {
		e.most = between(t, "most", 1, 12)
	} else if !s.even && !leaf && once(t, "max of a branch", 3) {
		e.most = between(t, "most of a branch", 2, 8)
	}
	if e.policy != "ownership" {
		return
	}
	lends, borrows := once(t, "lend", 2), once(t, "borrow", 2)
	switch {
	case s.barter && leaf:
		e.owns, lends, borrows = choose(t, "owns", 0, 0, 0, 1, 2, 4), true, true
	case s.lively && !leaf:
	case s.lively:
		e.owns, lends = choose(t, "owns", 1, 2, 3, 4, 6), lends || once(t, "lends", 2)
		borrows = borrows || once(t, "borrows", 2)
	case leaf:
		e.owns = choose(t, "owns", 0, 1, 2, 3, 4, 6)
	default:
		e.owns = choose(t, "family", 0, 0, 0, 1, 3)
	}
	if leaf && lends {
		e.lend, e.lendTo = choose(t, "lent", 1, 2, 3, 100), s.drawPeers(t, e.consumer)
	}
	if leaf && borrows {
		e.borrow, e.borrowFrom = choose(t, "borrowed", -1, -1, 1, 2, 4), s.drawPeers(t, e.consumer)
	}
}

// drawPeers draws a list of whom to lend to or borrow from: mostly any.
func (s *site) drawPeers(t *rapid.T, self int) (list []string) {
	if !once(t, "peers", 3) {
		return nil
	}
	for range between(t, "listed", 1, 3) {
		peer := "siblings"
		switch between(t, "peer", 0, 5) {
		case 0:
			peer = "any"
		case 1:
		default:
			if c := between(t, "peer", 0, len(s.consumers)-1); c != self {
				peer = s.consumers[c].path
			}
		}
		if !slices.Contains(list, peer) {
			list = append(list, peer)
		}
	}
	return list
}

// member finds a consumer's entry.
func (p *slotPlan) member(consumer int) *slotMember {
	return &p.members[slices.IndexFunc(p.members, func(e slotMember) bool { return e.consumer == consumer })]
}

// owned is what a consumer owns, as a branch at least what its children do.
func (s *site) owned(p *slotPlan, consumer int) int {
	n := p.member(consumer).owns
	for _, e := range p.members {
		if s.consumers[e.consumer].parent == consumer {
			n += s.owned(p, e.consumer)
		}
	}
	return n
}

func (s *site) writeSlots(b *strings.Builder) {
	for i := range s.slots {
		p := &s.slots[i]
		if i == 0 {
			b.WriteString("slot_plans:\n")
		}
		fmt.Fprintf(b, "  - resource_group: %s\n", p.name)
		for _, line := range p.settings {
			b.WriteString("    " + line + "\n")
		}
		if p.configured > 0 && !p.mixed() {
			fmt.Fprintf(b, "    configured_slots: %d\n    allow_overcommit: true\n", p.configured)
		}
		b.WriteString("    consumers:\n")
		for i := range p.members {
			s.writeMember(b, p, &p.members[i])
		}
		s.writeWindows(b, p)
	}
}

func (s *site) writeMember(b *strings.Builder, p *slotPlan, e *slotMember) {
	c := s.consumers[e.consumer]
	b.WriteString("      - {path: " + c.path)
	if c.parent < 0 {
		b.WriteString(", policy: " + e.policy)
	}
	if e.rank >= 0 {
		fmt.Fprintf(b, ", rank: %d", e.rank)
	}
	if n := s.owned(p, e.consumer); n > 0 {
		fmt.Fprintf(b, ", owns: %d", n)
	}
	if e.policy == "hybrid" {
		e.writeHybrid(b)
		b.WriteString("}\n")
		return
	}
	if e.lend > 0 {
		writePeers(b, "lend", e.lend, "to", e.lendTo)
	}
	if e.borrow > -2 {
		writePeers(b, "borrow", e.borrow, "from", e.borrowFrom)
	}
	fmt.Fprintf(b, ", share: {ratio: %d", e.ratio)
	if e.most >= 0 {
		fmt.Fprintf(b, ", max: %d", e.most)
	}
	b.WriteString("}" + e.budget + "}\n")
}

// writePeers writes a key lend or borrow.
func writePeers(b *strings.Builder, name string, limit int, key string, list []string) {
	fmt.Fprintf(b, ", %s: {", name)
	if limit >= 0 {
		fmt.Fprintf(b, "limit: %d", limit)
	}
	if len(list) > 0 {
		fmt.Fprintf(b, "%s%s: [%s]", ", "[:2*min(limit+1, 1)], key, strings.Join(list, ", "))
	}
	b.WriteString("}")
}

// slotPlan finds a slot plan by name, nil when it is none.
func (s *site) slotPlan(name string) *slotPlan {
	if i := slices.IndexFunc(s.slots, func(p slotPlan) bool { return p.name == name }); i >= 0 {
		return &s.slots[i]
	}
	return nil
}

// reviseSlots changes some of what the slot plans say: figures, ranks, settings, slot expressions.
func (s *site) reviseSlots(t *rapid.T) {
	for i := range s.slots {
		p := &s.slots[i]
		if p.blended {
			s.reviseBlend(t, p)
		}
		for k := range p.members {
			if !p.blended && once(t, "figures", 3) {
				s.drawMember(t, p, k)
			}
		}
		if once(t, "settings", 3) {
			s.drawSettings(t, p)
		}
		if once(t, "expression", 6) {
			s.groups[p.zone].slots = s.drawExpression(t)
		}
	}
	for i := range s.consumers {
		if once(t, "consumer", 4) {
			s.consumers[i].rank, s.consumers[i].grace = choose(t, "rank", 0, 0, 1, 2), choose(t, "grace", graces...)
		}
	}
}
