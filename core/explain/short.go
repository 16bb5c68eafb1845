package explain

import (
	"fmt"
	"strings"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// reason says what a reason of a shortfall means: a sentence, the rules it follows from, and, where one step or one
// level of the tree does not tell it all, the points that it rests on.
type reason struct {
	text    func(p *part, s *Shortfall) string
	md      []string // rules in MD plans
	slots   []string // in slot plans, under the ownership and share-ratio policies
	hybrid  []string // under the hybrid policy; nil: as slots
	because func(p *part, s *Shortfall, leaf plan.Node) []Point
	room    bool // there is no room: hosts that are not ok have a part in it
}

// reasons are by the code of decision.Reasons. All units that a sub-allocation is short of, and that nothing is
// promised for, have the reason that stops its next unit: the first that would have to be lifted (D-7). In an MD plan
// fragmented names no more units than the free room would carry, and the rest has the reason that follows.
var reasons = [...]reason{
	decision.ReasonNotInPlan: {
		text: func(_ *part, s *Shortfall) string {
			return s.Consumer + " takes part in no plan of the policy in force"
		},
		md: []string{"D-7"}, slots: []string{"D-7"},
	},
	decision.ReasonNoHostMatches: {
		text: func(_ *part, s *Shortfall) string {
			if s.Requirement == nil {
				return "no host that is ok and that it may use meets its requirement " + s.Detail
			}
			text, _ := s.Requirement.missed()
			return text
		},
		md: []string{"REQ-1", "D-7"}, slots: []string{"REQ-1", "D-7"},
	},
	decision.ReasonShareLimit: {
		text: shareLimited,
		md:   []string{"MD-18", "D-6", "D-26"}, slots: []string{"SLOT-6", "D-6"}, because: (*part).ratiosAndLimits,
	},
	decision.ReasonTooBig: {
		text: func(_ *part, s *Shortfall) string {
			return with("a unit is larger than any host that it may use, even when that is empty", s.Detail)
		},
		md: []string{"MD-7", "D-7"}, slots: []string{"SLOT-22", "D-7"},
		room: true,
	},
	decision.ReasonMaxPerHost: {
		text: (*part).perHost,
		md:   []string{"D-7"}, slots: []string{"SLOT-22", "D-7"},
	},
	decision.ReasonFragmented: {
		text: fragmented,
		md:   []string{"MD-11", "D-7"}, slots: []string{"SLOT-31", "D-7"},
		room: true,
	},
	decision.ReasonLowerPriority: {
		text: func(p *part, s *Shortfall) string {
			return with(s.Blocker+" has a higher share priority and uses the pool", s.Detail)
		},
		md: []string{"MD-14", "MD-16", "D-7"}, slots: []string{"D-7"}, because: (*part).priorities,
		room: true,
	},
	decision.ReasonOverQuota: {
		text: func(p *part, s *Shortfall) string {
			if p.md != nil {
				return with(p.fullest(s)+" has its share of the pool, and others use the rest", s.Detail)
			}
			text := with("it has what it deserves", s.Detail)
			if p.slots != nil && p.slots.Placement == plan.Exclusive {
				text += fmt.Sprintf("; a host serves one %s at a time, and counts with all its slots",
					p.slots.ExclusiveBy)
			}
			return text
		},
		md: []string{"MD-14", "MD-17", "D-7"}, slots: []string{"SLOT-6", "D-7"},
		hybrid: []string{"SLOT-23", "SLOT-26", "D-7"}, because: (*part).quotas,
		room: true,
	},
	decision.ReasonPoolExhausted: {
		text: func(p *part, s *Shortfall) string {
			if p.md != nil {
				return p.exhausted(s)
			}
			return p.noSlot(s)
		},
		md: []string{"MD-16", "D-7"}, slots: []string{"SLOT-5", "D-7"}, hybrid: []string{"SLOT-26", "D-7"},
		because: (*part).room,
		room:    true,
	},
	decision.ReasonConsumerLimit: {
		text: func(_ *part, s *Shortfall) string { return limitReached(s) },
		md:   []string{"D-7"}, slots: []string{"SLOT-4", "D-7"}, hybrid: []string{"SLOT-20", "SLOT-22", "D-7"},
		because: (*part).maxima,
	},
	decision.ReasonBorrowLimit: {
		text: func(_ *part, s *Shortfall) string {
			return "it borrows as much as it may: " + strings.TrimPrefix(s.Detail, "borrows ")
		},
		md: []string{"D-7"}, slots: []string{"SLOT-3", "D-7"}, because: (*part).steps,
	},
	decision.ReasonGraceFilter: {
		text: func(p *part, s *Shortfall) string {
			if text, _ := p.admits(s); text != "" {
				return "there is room, but " + text
			}
			return with("there is room, but its reclaim_grace is longer than the owner or the pool admits", s.Detail)
		},
		md: []string{"MD-9", "D-7"}, slots: []string{"D-7"}, because: (*part).graces,
	},
	decision.ReasonWaitingForReclaim: {
		text: (*part).waiting,
		md:   []string{"CYC-6", "CYC-7"}, slots: []string{"CYC-6", "CYC-7"}, because: (*part).promised,
	},
	decision.ReasonOwnershipUnmet: {
		text: (*part).owed,
		md:   []string{"MD-1", "MD-3", "MD-4"}, slots: []string{"D-7"}, because: (*part).unowned,
	},
	decision.ReasonReclaimBudget: {
		text: func(_ *part, s *Shortfall) string {
			return "others hold what it deserves, and " + strings.Replace(s.Detail, " 1 units", " 1 unit", 1) +
				": the rest follows in later cycles"
		},
		md: []string{"CYC-4"}, slots: []string{"CYC-4"}, because: (*part).budget,
	},
	decision.ReasonTooSmall: {
		text: func(_ *part, s *Shortfall) string {
			return with("a unit is so small that the hosts would hold too many of it; ask for fewer, larger units",
				s.Detail)
		},
		md: []string{"D-52"}, slots: []string{"D-52"},
	},
	decision.ReasonGang: {
		text: gangFits,
		md:   []string{"REQ-3", "D-7"}, slots: []string{"REQ-3", "D-7"},
	},
	decision.ReasonBudget: {
		text: (*part).usedUp,
		md:   []string{"BUD-2", "D-7"}, slots: []string{"BUD-2", "D-7"},
	},
}

// listMax is how many shortfalls and reclaims an explanation lists.
const listMax = 1000

// with is a sentence with its figures, where there are any.
func with(text, detail string) string {
	if detail != "" {
		text += ": " + detail
	}
	return text
}

// shortfalls explains the rows of the plan's shortfalls that the target is about.
func (p *part) shortfalls() {
	v := view(p.f.Shortfalls)
	mine := p.f.under(v, "consumer", p.target.Consumer)
	for row := range v.Rows {
		if !mine(row) || v.text("plan", row) != p.Plan ||
			p.target.Allocation != nil && v.text("allocation", row) != *p.target.Allocation {
			continue
		}
		p.missing += v.num("units_short", row)
		if len(p.Shortfalls) == listMax {
			p.ShortfallsMore++
			continue
		}
		s := Shortfall{
			Consumer: v.text("consumer", row), Allocation: v.text("allocation", row), Sub: v.text("sub", row),
			Units: v.num("units_short", row), Reason: v.text("reason", row), Dimension: v.text("dimension", row),
			Blocker: v.text("blocker", row), Detail: v.text("detail", row),
		}
		if !v.null("until", row) {
			s.Until = instant(v.num("until", row))
		}
		p.why(&s)
		p.Shortfalls = append(p.Shortfalls, s)
	}
}

// why puts a shortfall's reason into words.
func (p *part) why(s *Shortfall) {
	s.Rules, s.Because = []string{}, []Point{}
	for code, r := range reasons {
		if decision.Reasons[code] != s.Reason {
			continue
		}
		s.Requirement, s.MinUnits = p.requirement(s), p.f.asked().least[Taker{s.Consumer, s.Allocation, s.Sub}]
		s.Text, s.Rules = r.text(p, s), p.rules(s.Consumer, r.slots, r.hybrid, r.md)
		leaf, ok := p.tree().Find(s.Consumer)
		if ok && r.because != nil && p.member != nil {
			s.Because = append(s.Because, r.because(p, s, leaf)...)
		}
		s.Because = append(s.Because, p.hosts(s, r.room)...)
		p.nextOfGang(s)
		return
	}
	s.Text = s.Reason // of a later version of the log
}

// rules chooses by the plan's kind, and in slot plans by a consumer's policy; hybrid nil is as slots.
func (p *part) rules(consumer string, slots, hybrid, md []string) []string {
	if p.md != nil {
		return md
	}
	if n, ok := p.tree().Find(consumer); ok && hybrid != nil && p.slots != nil && p.member[n] &&
		p.slot.Policy[n] == plan.Hybrid {
		return hybrid
	}
	return slots
}

func because(text string, rules ...string) Point { return Point{Text: text, Rules: rules} }

// maxima are the limits on a leaf's way up, from the leaf.
func (p *part) maxima(s *Shortfall, leaf plan.Node) (points []Point) {
	if p.slots == nil { // of another kind of plan than the reason is of
		return nil
	}
	word, rule := "share.max", "SLOT-4"
	if p.slot != nil && p.slot.Policy[leaf] == plan.Hybrid {
		word, rule = "limit", "SLOT-20"
	}
	way := p.way(leaf)
	for i := len(way) - 1; i >= 0; i-- {
		n, path := way[i], p.tree().Path[way[i]]
		limit, ok := p.limited(n)
		text := fmt.Sprintf("%s holds %s and has no %s", path, count(p.of(n, "held"), "slot"), word)
		if ok {
			text = fmt.Sprintf("%s holds %s of at most %s (%s)", path, grouped(p.of(n, "held")), count(limit, "slot"),
				word)
		}
		if path == s.Blocker {
			text += ": this stops it"
		}
		points = append(points, because(text, rule))
	}
	return points
}

// ratiosAndLimits are the share ratios on a leaf's way up, and in MD plans the share limits.
func (p *part) ratiosAndLimits(s *Shortfall, leaf plan.Node) (points []Point) {
	amounts := p.amountRows()
	v := view(p.f.Amounts)
	way := p.way(leaf)
	for i := len(way) - 1; i >= 0; i-- {
		n := way[i]
		text, rules := fmt.Sprintf("%s has the share ratio %d", p.tree().Path[n], p.ratio(n)), []string{"SLOT-6", "D-6"}
		if p.md != nil {
			rules = []string{"MD-18"}
			for _, row := range amounts[p.key(n)] {
				if !v.null("share_limit", row) {
					text += fmt.Sprintf("; may have %s %s from pools, and holds %s wherever",
						grouped(v.num("share_limit", row)), v.text("dimension", row), grouped(v.num("held", row)))
				}
			}
		}
		if p.tree().Path[n] == s.Blocker {
			text += ": this stops it"
		}
		points = append(points, because(text, rules...))
	}
	return points
}

// pooled is a consumer's row of shares in the pool nearest to the root in which it has one, -1: none.
func (p *part) pooled(v tableView, rows map[key][]int, n plan.Node) int {
	if of := rows[p.key(n)]; len(of) > 0 {
		return of[0]
	}
	return -1
}

// priorities compares the blocker with the consumer beside it on the leaf's way.
func (p *part) priorities(s *Shortfall, leaf plan.Node) (points []Point) {
	blocker, ok := p.tree().Find(s.Blocker)
	if !ok || p.md == nil {
		return nil
	}
	v, rows := view(p.f.Shares), p.shareRows()
	for _, n := range p.way(leaf) {
		if p.tree().Parent[n] != p.tree().Parent[blocker] {
			continue
		}
		for _, c := range []plan.Node{blocker, n} {
			text := fmt.Sprintf("%s has the share priority %d", p.tree().Path[c], p.set.Priority[c])
			if row := p.pooled(v, rows, c); row >= 0 {
				text += fmt.Sprintf(" and uses %s of the pool, %s", percent(v.real("usage", row)),
					count(v.num("units_held", row), "unit"))
			}
			points = append(points, because(text, "MD-14"))
		}
	}
	return points
}

// quotas goes up from a leaf: what each level uses and what it deserves. For slots under the ownership policy it is the
// steps by which demand is met.
func (p *part) quotas(s *Shortfall, leaf plan.Node) (points []Point) {
	if p.slots != nil && p.slot.Policy[leaf] != plan.Hybrid {
		return p.steps(s, leaf)
	}
	v, rows := view(p.f.Shares), p.shareRows()
	way := p.way(leaf)
	for i := len(way) - 1; i >= 0; i-- {
		n, path := way[i], p.tree().Path[way[i]]
		if p.slots != nil {
			points = append(points,
				because(fmt.Sprintf("%s wants %s, holds %s, and its quota is %s", path,
					count(p.of(n, "demand"), "slot"),
					grouped(p.of(n, "held")), grouped(p.of(n, "quota"))), "SLOT-23", "SLOT-26"))
			continue
		}
		if row := p.pooled(v, rows, n); row >= 0 {
			ratio, rules := fmt.Sprintf("ratio %d", p.set.Ratio[n]), []string{"MD-14"}
			if c := counted(v, row); c < 1 {
				ratio += fmt.Sprintf(", of which %s counts for what it used lately", times(c))
				rules = []string{"MD-14", "D-165"}
			}
			points = append(points,
				because(fmt.Sprintf("%s uses %s of the pool and deserves %s (priority %d, %s)", path,
					percent(v.real("usage", row)),
					percent(v.real("usage_quota", row)), p.set.Priority[n], ratio), rules...))
		}
	}
	return points
}

// steps goes through the steps in which a leaf's demand is met under the ownership and share-ratio policies (SLOT-5).
func (p *part) steps(_ *Shortfall, leaf plan.Node) (points []Point) {
	if p.slots == nil { // of another kind of plan than the reason is of
		return nil
	}
	owned, own, lent, free := p.of(leaf, "owned"), p.of(leaf, "held_owned"), p.of(leaf, "lent"), p.of(leaf, "free")
	text := "it owns nothing"
	if owned > 0 {
		text = fmt.Sprintf("of the %s that it owns it holds %s, others hold %s, and %s %s idle and promised to nobody",
			count(owned, "slot"), grouped(own), grouped(lent), grouped(free), is(free))
	}
	points = append(points, because("its own: "+text, "SLOT-5", "SLOT-10"))
	text = fmt.Sprintf("it holds %s from them", count(p.of(leaf, "held_shared"), "slot"))
	for _, n := range p.way(p.tree().Parent[leaf]) {
		text += fmt.Sprintf("; %s holds %s", p.tree().Path[n], grouped(p.of(n, "held_shared")))
	}
	all := int64(0)
	for _, c := range p.siblings(plan.Root) {
		all += p.of(c, "held_shared")
	}
	if !p.f.Part { // of some is not all
		text += fmt.Sprintf("; all hold %s", grouped(all))
		if p.pools() > 0 {
			text += " of " + grouped(p.pools())
		}
	}
	points = append(points, because("share pools: "+text, "SLOT-5", "SLOT-6"))
	switch limit := p.slot.BorrowLimit[leaf]; {
	case p.slot.Policy[leaf] == plan.ShareRatio:
	case limit == 0:
		points = append(points, because("borrowing: it may borrow nothing", "SLOT-3"))
	case limit == plan.Unlimited:
		points = append(points,
			because(fmt.Sprintf("borrowing: it borrows %s, and may more; %s", grouped(p.of(leaf, "held_borrowed")),
				p.lenders(leaf)), "SLOT-3", "SLOT-7"))
	default:
		points = append(points,
			because(fmt.Sprintf("borrowing: it borrows %s of at most %s; %s", grouped(p.of(leaf, "held_borrowed")),
				count(limit, "slot"), p.lenders(leaf)),
				"SLOT-3", "SLOT-7"))
	}
	if lent > 0 {
		points = append(points, because(fmt.Sprintf("recall: others hold %s of its slots", grouped(lent)), "SLOT-8"))
	}
	return points
}

// lenders tells who lends slots that are idle now, as far as reserves and what is lent already let them.
func (p *part) lenders(leaf plan.Node) string {
	if p.f.Part {
		return "who has idle slots is not told here"
	}
	by := newTally[string]()
	for c := range p.row {
		n := plan.Node(c)
		if n == leaf || n == plan.Root || !p.member[n] || p.row[n] < 0 || !p.tree().Leaf(n) ||
			p.slot.Policy[n] == plan.Hybrid {
			continue
		}
		if rest := min(p.of(n, "free"), p.of(n, "owned")-p.of(n, "reserved")-p.of(n, "lent")); rest > 0 {
			by.add(p.tree().Path[n], rest)
		}
	}
	if len(by.keys) == 0 {
		return "nobody has an idle slot that is lent"
	}
	return "idle and lent to whom lend.to names: " + by.words("slot")
}

// graces compares the leaf's grace with what the plan's pools and owners admit.
func (p *part) graces(s *Shortfall, leaf plan.Node) (points []Point) {
	if p.md == nil { // of another kind of plan than the reason is of
		return nil
	}
	grace := p.tree().ReclaimUS[leaf]
	points = append(points, because(fmt.Sprintf("the reclaim_grace of %s is %s", s.Consumer, plan.Lasting(grace)),
		"MD-9"))
	if p.md.PublicGraceUS != plan.Unlimited {
		points = append(points,
			because(fmt.Sprintf("the public pool admits graces up to %s", plan.Lasting(p.md.PublicGraceUS)), "MD-9"))
	}
	way := p.way(leaf)
	for i := len(way) - 1; i >= 0; i-- {
		if us := p.set.PrivateUS[way[i]]; us != plan.Unlimited {
			points = append(points,
				because(fmt.Sprintf("the private pool of %s admits graces up to %s", p.tree().Path[way[i]],
					plan.Lasting(us)), "MD-9"))
		}
	}
	strict := newTally[string]()
	for n, us := range p.set.LendGraceUS {
		if p.member[n] && n != 0 && us != plan.Unlimited && us < grace {
			strict.add(p.tree().Path[n], 1)
		}
	}
	if len(strict.keys) > 0 {
		points = append(points, because("owners that lend for shorter graces only: "+listed(strict.keys, 5), "MD-9"))
	}
	return points
}

// promised are the reclaims under way for a sub-allocation.
func (p *part) promised(s *Shortfall, _ plan.Node) (points []Point) {
	for _, r := range p.promisedTo(Taker{s.Consumer, s.Allocation, s.Sub}) {
		points = append(points, because(r.Text, r.Rules...))
	}
	if len(points) == 0 {
		points = append(points, because("it joins what others give back on the same hosts", "CYC-6"))
	}
	return points
}

// unowned is what the leaf's rules ask for and what it got, by dimension.
func (p *part) unowned(_ *Shortfall, leaf plan.Node) (points []Point) {
	v := view(p.f.Amounts)
	for _, row := range p.amountRows()[p.key(leaf)] {
		if want, got := v.num("configured", row), v.num("owned", row); want > got {
			points = append(points,
				because(fmt.Sprintf("owns %s of %s %s", grouped(got), grouped(want), v.text("dimension", row)), "MD-3",
					"MD-4"))
		}
	}
	return points
}

// budget is what the plan took back in this cycle.
func (p *part) budget(*Shortfall, plan.Node) []Point {
	v, units := view(p.f.Reclaims), int64(0)
	for row := range v.Rows {
		if v.text("plan", row) == p.Plan && v.text("action", row) == "issued" {
			units += v.num("units", row)
		}
	}
	return []Point{because(fmt.Sprintf("the plan put %s under reclaim in this cycle", count(units, "unit")), "CYC-4")}
}
