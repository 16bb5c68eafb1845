package cycle_test

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// drawHybrid draws a policy with one slot plan, or two, of hybrid branches, some with ownership branches beside them.
func drawHybrid(t *rapid.T) site {
	s := site{dims: choose(t, "dimensions", []string{"ncpus", "slots"}, []string{"slots", "ncpus"}, []string{"ncpus"}), lively: once(t, "lively", 3)}
	plans := choose(t, "plans", 1, 1, 1, 2)
	s.drawGroups(t, plans+between(t, "groups", 0, 1))
	s.drawConsumers(t, between(t, "consumers", 1, 13))
	for i := range s.consumers {
		s.consumers[i].grace = choose(t, "grace", graces...)
	}
	for z := range plans {
		s.groups[z].slots = s.drawExpression(t)
		p := slotPlan{name: fmt.Sprintf("g%d", z), zone: z, blended: true}
		p.drawSettings(t, false)
		in, mixed := s.drawMembers(t), once(t, "mixed", 2)
		for k, c := range s.consumers {
			if !in[k] {
				continue
			}
			policy := "hybrid"
			if mixed && once(t, "ownership", 2) {
				policy = "ownership"
			}
			if c.parent >= 0 {
				policy = p.member(c.parent).policy
			}
			p.members = append(p.members, slotMember{consumer: k, policy: policy})
		}
		for i := range p.members {
			s.drawMember(t, &p, i)
		}
		s.balance(&p)
		s.slots = append(s.slots, p)
	}
	return s
}

// drawBlend draws the settings of hybrid branches.
func (p *slotPlan) drawBlend(t *rapid.T) {
	if once(t, "evenly", 3) {
		p.settings = append(p.settings, "distribute_evenly: true")
	}
	if once(t, "shrink", 4) {
		p.settings = append(p.settings, "disable_reclaim_on_shrink: true")
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
	if once(t, "limit", 4) {
		e.most = between(t, "most", 0, 12)
	}
}

// balance makes the figures of hybrid consumers such that a policy file may have them: nobody reserves more than it
// owns, and no limit is below the reserves under it.
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
			e.most = max(e.most, below)
			need[e.consumer] = max(min(e.reserves, e.most), below)
		}
	}
}

// mixed tells whether some branch is not hybrid.
func (p *slotPlan) mixed() bool {
	for _, e := range p.members {
		if e.policy != "hybrid" {
			return true
		}
	}
	return false
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
