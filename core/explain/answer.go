package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// remedies say what would change a shortfall, by its reason.
var remedies = map[string]func(p *part, s *Shortfall) string{
	"not_in_plan": func(*part, *Shortfall) string { return "It would take an entry for it in a plan" },
	"no_host_matches": func(_ *part, s *Shortfall) string {
		if s.Requirement == nil {
			return "It would take hosts that match, or a wider requirement"
		}
		_, remedy := s.Requirement.missed()
		return remedy
	},
	"share_limit": func(_ *part, s *Shortfall) string {
		if s.Detail == "share ratio 0" {
			return fmt.Sprintf("It would take a share.ratio of %s above 0", s.Blocker)
		}
		return fmt.Sprintf("It would take a higher share.limit of %s", s.Blocker)
	},
	"too_big":      func(*part, *Shortfall) string { return "It would take smaller units, or larger hosts" },
	"too_small":    func(*part, *Shortfall) string { return "It would take fewer, larger units" },
	"max_per_host": func(*part, *Shortfall) string { return "It would take more hosts, or a higher max_per_host" },
	"fragmented":   scattered,
	"pool_exhausted": func(p *part, s *Shortfall) string {
		if p.md != nil && !p.takesBack(s.Consumer) || p.slots != nil && !p.slots.ShareReclaim {
			return "More comes when work of others ends, with share_reclaim, or with more hosts"
		}
		return "More comes when work of others ends, or with more hosts"
	},
	"lower_priority": func(_ *part, s *Shortfall) string {
		return fmt.Sprintf("More comes when %s wants less, or with a share.priority as high", s.Blocker)
	},
	"over_quota": func(p *part, _ *Shortfall) string {
		if p.slots != nil && p.Policy == "hybrid" {
			return "More comes when others want less, or with more owned"
		}
		return "More comes when others want less, or with a larger share.ratio"
	},
	"consumer_limit": func(p *part, s *Shortfall) string {
		word := "share.max"
		if p.slots != nil && p.Policy == "hybrid" {
			word = "limit"
		}
		return fmt.Sprintf("It would take a higher %s of %s", word, s.Blocker)
	},
	"borrow_limit": func(*part, *Shortfall) string { return "It would take a higher borrow.limit" },
	"grace_filter": func(p *part, s *Shortfall) string {
		if _, most := p.admits(s); most > 0 {
			return "It would take a reclaim_grace of at most " + plan.Lasting(most)
		}
		return "It would take a shorter reclaim_grace"
	},
	"ownership_unmet": func(*part, *Shortfall) string {
		return "It would take more hosts of the groups that it owns of, or a better rank"
	},
	"reclaim_budget": func(*part, *Shortfall) string {
		return "More comes in the next cycles, or with a larger reclaim_budget"
	},
	"gang": func(*part, *Shortfall) string {
		return "It starts once so many fit at the same time, or with a smaller min_units"
	},
	"budget": func(_ *part, s *Shortfall) string {
		return fmt.Sprintf("More comes when the next period begins, at %s, or with a larger budget of %s", s.Until,
			s.Blocker)
	},
	"waiting_for_reclaim": func(p *part, s *Shortfall) string {
		if p.overdue(s) {
			return "It would take that client's release, or overdue_after in the plan"
		}
		return ""
	},
}

// answer says in a sentence or two what the consumer or allocation is short of, why, and what would change it. Of
// several reasons it tells the one of most units.
func (p *part) answer() string {
	what := p.target.Consumer
	if p.target.Allocation != nil {
		what += ":" + *p.target.Allocation
	}
	end, leaving := ".", p.leaving()
	if leaving != "" {
		end = "; " + leaving + "."
	}
	switch {
	case p.Demand == 0 && p.Held == 0:
		return what + " wants nothing" + end
	case p.missing == 0 && p.Held == 0:
		return what + " holds nothing, and is short of nothing" + end
	case p.missing == 0:
		return fmt.Sprintf("%s has all that it wants, %s%s", what, count(p.Held, p.Unit), end)
	case len(p.Shortfalls) == 0:
		return fmt.Sprintf("%s is short of %s%s", what, count(p.missing, "unit"), end)
	}
	main, others := p.mainReason()
	text := fmt.Sprintf("%s is short of %s", what, count(p.missing, "unit"))
	if others > 0 {
		text += fmt.Sprintf("; for %s of them", grouped(p.missing-others))
	}
	text += p.those(main) + ": " + strings.TrimSuffix(main.Text, ".") + "."
	sentences := []string{text}
	if remedy := remedies[main.Reason]; remedy != nil {
		sentences = append(sentences, remedy(p, main))
	}
	if roomless(main.Reason) {
		if main.Reason != decision.Reasons[decision.ReasonPoolExhausted] { // whose text says it
			sentences = append(sentences, main.Requirement.open())
		}
		sentences = append(sentences, p.shut())
	}
	if others > 0 {
		sentences = append(sentences, p.secondary(main))
	}
	for _, sentence := range append(sentences[1:], leaving) {
		if sentence != "" {
			text += " " + sentence + "."
		}
	}
	return text
}

// ofIts begins what is said of some of a consumer's units.
func ofIts(units int64) string {
	if units == 1 {
		return "1 of its units is"
	}
	return grouped(units) + " of its units are"
}

// mainReason is the shortfall whose reason and blocker have most units, the first of them, and how many units have
// others.
func (p *part) mainReason() (main *Shortfall, others int64) {
	type cause struct{ reason, blocker, dimension string }
	of, sum, best := map[cause]int64{}, int64(0), cause{}
	for i := range p.Shortfalls {
		s := &p.Shortfalls[i]
		c := cause{s.Reason, s.Blocker, s.Dimension}
		of[c] += s.Units
		sum += s.Units
	}
	for i := range p.Shortfalls {
		s := &p.Shortfalls[i]
		if c := (cause{s.Reason, s.Blocker, s.Dimension}); main == nil || of[c] > of[best] {
			main, best = s, c
		}
	}
	return main, sum - of[best]
}

// roomless tells whether a reason is one for which there is no room.
func roomless(reason string) bool {
	at := slices.Index(decision.Reasons[:], reason)
	return at >= 0 && reasons[at].room
}

// fragmented says what of a sub-allocation's units free room would carry that no single host has.
func fragmented(_ *part, s *Shortfall) string {
	if decision.IsDeviceDetail(s.Detail) {
		return with("hosts have room enough in sum, but not on single devices", s.Detail)
	}
	free, detail, ok := decision.ReadTogetherDetail(s.Detail)
	if !ok { // of a slot plan, or an earlier version of the log
		return with("there is room enough in sum, but on no single host", s.Detail)
	}
	return with(fmt.Sprintf("the free %s %s would carry so many if these were on fewer hosts", grouped(free),
		s.Dimension), detail)
}

// scattered says when more comes where room is scattered over hosts, or over devices.
func scattered(_ *part, s *Shortfall) string {
	if decision.IsDeviceDetail(s.Detail) {
		return "More comes when enough work on the same devices ends, or with units that take less of them"
	}
	return "More comes when work on one host ends, or with smaller units"
}
