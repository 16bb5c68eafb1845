package explain

import (
	"fmt"
	"strings"

	"github.com/stintd/stint/core/plan"
)

// admits says who admits no work of a leaf's grace, and the longest grace that somebody of them admits; 0: nobody of
// whom it is known.
func (p *part) admits(s *Shortfall) (text string, mostUS int64) {
	leaf, ok := p.tree().Find(s.Consumer)
	if !ok || p.md == nil {
		return "", 0
	}
	grace := p.tree().ReclaimUS[leaf]
	var words []string
	add := func(who string, us int64) {
		if us != plan.Unlimited && us < grace {
			words = append(words, fmt.Sprintf("%s at most %s", who, plan.Lasting(us)))
			mostUS = max(mostUS, us)
		}
	}
	add("the public pool", p.md.PublicGraceUS)
	way := p.way(leaf)
	for i := len(way) - 1; i >= 0; i-- {
		add("the private pool of "+p.tree().Path[way[i]], p.set.PrivateUS[way[i]])
	}
	for n, us := range p.set.LendGraceUS {
		if n != int(plan.Root) && p.member[n] && len(p.set.Own[n]) > 0 {
			add(p.tree().Path[n], us)
		}
	}
	if len(words) == 0 {
		return "", 0
	}
	return fmt.Sprintf("it may go on for %s when it is taken back (reclaim_grace), and who has room admits less: %s",
		plan.Lasting(grace), listed(words, 3)), mostUS
}

// perHost says that max_per_host keeps a unit off.
func (p *part) perHost(s *Shortfall) string {
	if most, ok := p.f.asked().most[Taker{s.Consumer, s.Allocation, s.Sub}]; ok {
		return fmt.Sprintf("at most %s of it may be on one host (max_per_host), and every host with room has as many",
			count(most, "unit"))
	}
	return "its max_per_host keeps it off: " + s.Detail
}

// limitReached says whose limit is reached.
func limitReached(s *Shortfall) string {
	detail := strings.TrimPrefix(s.Detail, s.Blocker+" ")
	if s.Blocker == s.Consumer {
		return "its limit is reached: it " + detail
	}
	return "the limit of " + s.Blocker + ", above it, is reached: " + s.Blocker + " " + detail
}

// idle is what a consumer keeps in reserve and does not use.
type idle struct {
	node   plan.Node
	amount int64
}

// kept tells of slots that are idle and reserved by their owners, or in a multidimensional plan of what owners keep in
// reserve of the scarce dimension; "" where nobody does.
func (p *part) kept(s *Shortfall) string {
	if p.f.Part {
		return ""
	}
	var words []string
	services := p.tree().Services()
	for _, k := range p.reserves(s.Dimension) {
		who := p.tree().Path[k.node]
		if within(s.Consumer, who) {
			continue
		}
		if services[k.node] {
			who += " (a system service)"
		}
		what := grouped(k.amount) + " " + s.Dimension
		if p.slots != nil {
			what = count(k.amount, "slot")
		}
		words = append(words, who+" keeps "+what+" in reserve")
	}
	return listed(words, 3)
}

// reserves lists who keeps what of a dimension in reserve and idle; in slot plans it is slots. O(consumers), once.
func (p *part) reserves(dimension string) (list []idle) {
	if p.idle == nil {
		p.idle = map[string][]idle{}
	}
	if list, ok := p.idle[dimension]; ok {
		return list
	}
	v := view(p.f.Amounts)
	for n := plan.Root + 1; int(n) < len(p.row); n++ {
		amount := int64(0)
		switch {
		case !p.member[n] || p.row[n] < 0:
		case p.md != nil:
			for _, row := range p.amountRows()[p.key(n)] {
				if v.text("dimension", row) == dimension {
					amount = v.num("reserved", row) - v.num("held", row)
				}
			}
		case !p.tree().Leaf(n):
		case p.slot.Policy[n] == plan.Hybrid:
			amount = min(p.of(n, "free"), p.slot.Reserves[n])
		default:
			amount = min(p.of(n, "free"), p.of(n, "reserved"))
		}
		if amount > 0 {
			list = append(list, idle{n, amount})
		}
	}
	p.idle[dimension] = list
	return list
}

// most names who else holds most in the plan.
func (p *part) most(s *Shortfall) string {
	if p.f.Part {
		return ""
	}
	best, units := "", int64(0)
	for n := plan.Root + 1; int(n) < len(p.row); n++ {
		if p.row[n] >= 0 && p.tree().Leaf(n) && p.tree().Path[n] != s.Consumer && p.of(n, "held") > units {
			best, units = p.tree().Path[n], p.of(n, "held")
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("%s holds most, %s", best, count(units, p.Unit))
}

// owed says how much of what a leaf's rules ask for it owns.
func (p *part) owed(s *Shortfall) string {
	leaf, ok := p.tree().Find(s.Consumer)
	if !ok || p.md == nil {
		return "what it is to own could not be assigned in full: " + s.Detail
	}
	v := view(p.f.Amounts)
	var words []string
	for _, row := range p.amountRows()[p.key(leaf)] {
		if want, got := v.num("configured", row), v.num("owned", row); want > got {
			words = append(words, fmt.Sprintf("%s of %s %s", grouped(got), grouped(want), v.text("dimension", row)))
		}
	}
	if len(words) == 0 {
		return "what it is to own could not be assigned in full: " + s.Detail
	}
	return fmt.Sprintf("it owns %s that its rules ask for, since owners of a better rank come first and hosts are "+
		"too few (%s)",
		listed(words, 3), s.Detail)
}

// shareLimited says whose share limit, or ratio of 0, keeps a unit from pools.
func shareLimited(_ *part, s *Shortfall) string {
	who, whose := "it", "its share ratio is 0"
	if s.Blocker != s.Consumer {
		who, whose = s.Blocker+", above it,", "the share ratio of "+s.Blocker+", above it, is 0"
	}
	if s.Detail == "share ratio 0" {
		return whose + ", so pools give it nothing"
	}
	return who + " " + s.Detail
}
