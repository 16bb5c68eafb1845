package explain

import (
	"fmt"

	"github.com/stintd/stint/core/plan"
)

// explainSlots tells of each figure of a consumer in a slot plan where it comes from (SPEC chapter 3, docs/slots.md).
func (p *part) explainSlots() {
	columns := []column{p.figure("rank", "rank"), p.figure("wanted", "demand"), p.figure("held", "held"),
		p.figure("short", "short"), p.figure("owned", "owned")}
	if p.slot.Policy[p.node] == plan.Hybrid {
		columns = append(columns, p.figure("reserved", "reserved"), p.figure("quota", "quota"),
			p.figure("limit", "slot_limit"))
		p.around(columns, column{"owns", func(n plan.Node) any { return p.slot.Owns[n] }})
		p.hybrid()
	} else {
		columns = append(columns, p.figure("shared", "held_shared"), p.figure("borrowed", "held_borrowed"),
			p.figure("lent", "lent"), p.figure("quota", "quota"), p.figure("limit", "slot_limit"))
		p.around(columns, column{"ratio", func(n plan.Node) any { return p.slot.Ratio[n] }})
		p.owned()
		p.holds()
		p.entitled()
	}
	p.budgeted()
	p.limits()
	p.exclusive()
}

// owned tells what a consumer under the ownership policy owns, keeps and lends.
func (p *part) owned() {
	n := p.node
	configured, owned, reserved := p.of(n, "owned_configured"), p.of(n, "owned"), p.of(n, "reserved")
	switch {
	case p.slot.Policy[n] == plan.ShareRatio:
		p.point("owned", owned, "owns nothing: under the share_ratio policy the whole group is one share pool",
			"SLOT-15")
		return
	case configured == 0:
		p.point("owned", owned, "owns nothing", "SLOT-1")
	case owned < configured:
		text := fmt.Sprintf("owns %s of the %s configured: there are fewer than are owned in all, and owners are "+
			"served in rank order, reserves first",
			count(owned, "slot"), grouped(configured))
		if s, ok := p.f.slotsOf(p.Plan); ok {
			text += fmt.Sprintf(" (the group has %s)", count(s, "slot"))
		}
		p.point("owned", owned, text, "SLOT-1", "SLOT-13")
	default:
		p.point("owned", owned, fmt.Sprintf("owns %s, as configured (owns: %d)", count(owned, "slot"), configured),
			"SLOT-1")
	}
	if !p.tree().Leaf(n) {
		family := owned
		for _, c := range p.siblings(n) {
			family -= p.of(c, "owned")
		}
		if family > 0 && len(p.siblings(n)) == len(p.besides(n)) {
			p.say(fmt.Sprintf("%s of that no child owns: %s the family pool, which those below share, and others "+
				"what they do not need",
				grouped(family), is(family)), "SLOT-1", "SLOT-5")
		}
		return
	}
	if owned > 0 {
		p.lends(owned, reserved)
	}
}

// lends tells what an owner keeps and lends.
func (p *part) lends(owned, reserved int64) {
	n := p.node
	text := fmt.Sprintf("keeps all %s: lend.limit is 0, so nothing is lent, even if idle", grouped(owned))
	if may := owned - reserved; may > 0 {
		text = fmt.Sprintf("keeps %s, which is never lent; up to %s may be lent when idle (lend.limit: %d), to %s",
			grouped(reserved), grouped(may), p.slot.LendLimit[n], p.peers(p.slot.LendTo[n]))
	}
	p.point("reserved", reserved, text, "SLOT-2", "SLOT-10")
	if lent := p.of(n, "lent"); lent > 0 {
		p.point("lent", lent, fmt.Sprintf("others hold %s of its slots: %s; it gets them back when it wants them",
			grouped(lent), p.borrowers()), "SLOT-5", "SLOT-8")
	}
	if free := p.of(n, "free"); free > 0 {
		p.point("free", free, fmt.Sprintf("%s of its own slots %s idle and promised to nobody", grouped(free),
			is(free)), "SLOT-5", "SLOT-10")
	}
}

// borrowers are those who hold what a consumer lends, with their units.
func (p *part) borrowers() string {
	by := newTally[string]()
	p.lend.each(func(h holder, units int64) { by.add(h.consumer, units) })
	return by.words("unit")
}

// words lists what was summed, such as "/A 3 units and /B 1 unit".
func (t *tally[K]) words(unit string) string {
	var words []string
	t.each(func(k K, n int64) { words = append(words, fmt.Sprintf("%v %s", k, count(n, unit))) })
	if len(words) == 0 {
		return "not told since when"
	}
	return listed(words, 5)
}

// peers names whom a list of lend.to or borrow.from admits.
func (p *part) peers(list []plan.Peer) string {
	if list == nil {
		return "any"
	}
	var words []string
	for _, peer := range list {
		switch {
		case peer.Any:
			words = append(words, "any")
		case peer.Siblings:
			words = append(words, "siblings")
		default:
			words = append(words, p.tree().Path[peer.Node])
		}
	}
	return listed(words, len(words))
}

// holds tells as what slots are held.
func (p *part) holds() {
	n := p.node
	own, shared, borrowed := p.of(n, "held_owned"), p.of(n, "held_shared"), p.of(n, "held_borrowed")
	if own > 0 {
		p.point("held_owned", own, fmt.Sprintf("holds %s of its own, the first to be used", count(own, "slot")),
			"SLOT-5")
	}
	if shared > 0 {
		by := newTally[string]()
		p.hold.each(func(h holder, units int64) {
			if h.origin == "share_pool" {
				by.add(h.pool, units)
			}
		})
		p.point("held_shared", shared, fmt.Sprintf("holds %s from %s", count(shared, "slot"), pools(by)), "SLOT-5",
			"SLOT-6")
	}
	if borrowed > 0 {
		by := newTally[string]()
		p.hold.each(func(h holder, units int64) {
			if h.origin == "borrowed" {
				by.add("from "+h.lender, units)
			}
		})
		p.point("held_borrowed", borrowed,
			fmt.Sprintf("holds %s borrowed: %s; their owners may recall them", count(borrowed, "slot"),
				by.words("unit")),
			"SLOT-3", "SLOT-7", "SLOT-8")
	}
	p.foreign(own + shared + borrowed)
	if p.tree().Leaf(n) && p.slot.Policy[n] == plan.Ownership {
		switch limit := p.slot.BorrowLimit[n]; limit {
		case 0:
			p.say("may not borrow", "SLOT-3")
		case plan.Unlimited:
			p.say("may borrow without limit, from "+p.peers(p.slot.BorrowFrom[n]), "SLOT-3")
		default:
			p.say(fmt.Sprintf("may borrow up to %s, from %s", count(limit, "slot"), p.peers(p.slot.BorrowFrom[n])),
				"SLOT-3")
		}
	}
}

// pools names the share pools of units: one, or each with its part.
func pools(by *tally[string]) string {
	var names, words []string
	by.each(func(pool string, units int64) {
		name := "the family pool of " + pool
		if pool == "/" {
			name = "the cluster's share pool"
		}
		names = append(names, name)
		words = append(words, count(units, "unit")+" of "+name)
	})
	switch len(names) {
	case 0:
		return "share pools, not told since when"
	case 1:
		return names[0]
	}
	return "share pools: " + listed(words, 5)
}

// foreign tells of slots that count under none of the consumer's labels.
func (p *part) foreign(labelled int64) {
	if rest := p.of(p.node, "held") - labelled; rest > 0 {
		p.say(fmt.Sprintf("%s %s held under the policy that the branch had before; %s relabelled or reclaimed",
			count(rest, "slot"), is(rest), is(rest)),
			"PLAN-2", "CYC-3")
	}
}

// entitled tells what a consumer deserves of the share pools.
func (p *part) entitled() {
	n, up := p.node, p.tree().Parent[p.node]
	static, pools, ratios := p.of(n, "static_quota"), p.pools(), int64(0)
	for _, c := range p.besides(up) {
		ratios += p.slot.Ratio[c]
	}
	switch zero := p.barred(n); {
	case zero == n && p.tree().Leaf(n):
		p.point("static_quota", static, "deserves nothing of any share pool: its share ratio is 0", "SLOT-6", "D-6")
	case zero != plan.None:
		p.point("static_quota", static, fmt.Sprintf("its part of the share pools, whoever is busy, is %s: the share "+
			"ratio of %s is 0, so that those below it get nothing of the pools above it, only of its own",
			grouped(static), p.tree().Path[zero]), "SLOT-4", "SLOT-6")
	case p.f.Part:
		p.point("static_quota", static, fmt.Sprintf("its part of the share pools, whoever is busy, is %s: its ratio "+
			"is %d, of %d among the children of %s",
			grouped(static), p.slot.Ratio[n], ratios, p.tree().Path[up]), "SLOT-6", "SLOT-24")
	case pools == 0:
		p.point("static_quota", static, "there are no slots in share pools", "SLOT-1", "SLOT-6")
	default:
		p.point("static_quota", static, fmt.Sprintf("its part of the share pools, whoever is busy, is %s of %s: its "+
			"ratio is %d, of %d among the children of %s",
			grouped(static), count(pools, "slot"), p.slot.Ratio[n], ratios, p.tree().Path[up]), "SLOT-6", "SLOT-24")
	}
	p.point("quota", p.of(n, "quota"), p.quotaText(pools), "SLOT-11", "SLOT-6")
	if p.slots.StaticQuota {
		p.say("share_quota is static: below its static part it takes from those above theirs", "SLOT-6")
	}
	if !p.slots.ShareReclaim {
		p.say("share_reclaim is off: nothing is taken from those above their share", "SLOT-5")
	}
}

// pools is how many slots the share pools have together, 0 too where nobody has a share ratio.
func (p *part) pools() (slots int64) {
	for _, c := range p.siblings(plan.Root) {
		slots += p.of(c, "static_quota")
	}
	return slots
}

// quotaText takes a quota apart: what is owned and can be used, what is borrowed, and the rest from share pools. How
// much of what is borrowed counts is in no table while some of it is wanted back. What hosts can take of the demand is
// in no table; unless the quota covers all of it, what is owned counts at most, and the rest at least.
func (p *part) quotaText(pools int64) string {
	n := p.node
	quota, borrowed, demand := p.of(n, "quota"), p.of(n, "held_borrowed"), p.of(n, "demand")
	text := "deserves " + count(quota, "slot")
	if borrowed > 0 && p.tree().Leaf(n) && (len(p.Leaving) > 0 || p.slots.ReclaimBudget != plan.Unlimited) {
		text += fmt.Sprintf(": what it can use of the %s that it owns, what of the %s borrowed its lenders do not "+
			"want back", grouped(p.of(n, "owned")), grouped(borrowed))
		if pools > 0 {
			text += ", and its part of share pools under today's demand"
		}
		return text
	}
	use := min(demand, p.of(n, "owned"), quota-borrowed)
	rest := quota - borrowed - use
	most, least := "up to ", "at least "
	if quota >= demand || pools == 0 {
		most, least = "", ""
	}
	var parts []string
	if use > 0 {
		parts = append(parts, fmt.Sprintf("%s%s of what it owns", most, grouped(use)))
	}
	if borrowed > 0 {
		parts = append(parts, fmt.Sprintf("%s borrowed", grouped(borrowed)))
	}
	if pools > 0 && (rest > 0 || use > 0) {
		parts = append(parts, fmt.Sprintf("%s%s of share pools under today's demand", least, grouped(rest)))
	}
	switch {
	case !p.tree().Leaf(n):
		return text + ", the sum of what those below it do"
	case len(parts) == 0:
		return text
	}
	return text + ": " + listed(parts, len(parts))
}

// barred is the nearest consumer, a leaf or above it, whose share ratio is 0; None when there is none.
func (p *part) barred(n plan.Node) plan.Node {
	for ; n > plan.Root; n = p.tree().Parent[n] {
		if p.ratio(n) == 0 {
			return n
		}
	}
	return plan.None
}

// ratio is a consumer's share ratio.
func (p *part) ratio(n plan.Node) int64 {
	if p.md != nil {
		return p.set.Ratio[n]
	}
	return p.slot.Ratio[n]
}

// limits tells of each maximum on the way up what is held of it.
func (p *part) limits() {
	word := "share.max"
	rule := []string{"SLOT-4"}
	if p.slot.Policy[p.node] == plan.Hybrid {
		word, rule = "limit", []string{"SLOT-20", "SLOT-22"}
	}
	way := p.way(p.node)
	for i := len(way) - 1; i >= 0; i-- {
		n := way[i]
		limit, ok := p.limited(n)
		if !ok {
			continue
		}
		what := "holds"
		if n != p.node {
			what = p.tree().Path[n] + " above it holds"
		}
		p.point("limit", limit, fmt.Sprintf("%s %s of at most %s (%s)", what, grouped(p.of(n, "held")),
			count(limit, "slot"), word), rule...)
	}
}

// hybrid tells of the figures of a consumer under the hybrid policy.
func (p *part) hybrid() {
	n, w := p.node, p.slot
	owned, reserved, quota := p.of(n, "owned"), p.of(n, "reserved"), p.of(n, "quota")
	all := p.slots.ConfiguredSlots
	var first, others int64 // what first-level consumers own under the hybrid policy, and under others
	mixed := false
	for _, c := range p.besides(plan.Root) {
		if w.Policy[c] == plan.Hybrid {
			first += w.Owns[c]
		} else {
			others, mixed = others+p.of(c, "owned"), true
		}
	}
	if all == plan.Unlimited || mixed {
		all = first
	}
	text := fmt.Sprintf("effective owned is %s: owns %d × the slots that hybrid branches have ÷ %d, rounded down",
		grouped(owned), w.Owns[n], all)
	if s, ok := p.f.slotsOf(p.Plan); ok && (!p.f.Part || !mixed) {
		text = fmt.Sprintf("effective owned is %s: owns %d × %s ÷ %d, rounded down", grouped(owned), w.Owns[n],
			count(max(0, s-others), "slot"), all)
	}
	rules := []string{"SLOT-21"}
	if mixed {
		rules = append(rules, "SLOT-30")
	}
	p.point("owned", owned, text, rules...)
	if w.Reserves[n] > 0 {
		p.point("reserved", reserved, fmt.Sprintf("%s of that %s kept free for it: the least of reserves %d, its "+
			"limit and effective owned, and no less than the reserves below it",
			grouped(reserved), is(reserved), w.Reserves[n]), "SLOT-21", "INV-3")
	}
	if own, above := p.of(n, "held_owned"), p.of(n, "held_borrowed"); above > 0 {
		p.point("held_borrowed", above, fmt.Sprintf("holds %s up to what it owns and %s above it, from slots that "+
			"others leave idle", grouped(own), grouped(above)), "SLOT-20", "SLOT-23")
	}
	p.foreign(p.of(n, "held_owned") + p.of(n, "held_borrowed"))
	up, whole := p.tree().Parent[n], "the slots that there are"
	if up != plan.Root {
		whole = fmt.Sprintf("the quota of %s, %s", p.tree().Path[up], grouped(p.of(up, "quota")))
	}
	rules = []string{"SLOT-22", "SLOT-23", "SLOT-24"}
	how := "first each what it owns and can use, then the rest in proportion to what is owned"
	if p.slots.DistributeEvenly {
		rules = []string{"SLOT-22", "SLOT-25", "SLOT-24"}
		how = "first each what it owns and can use, then the rest evenly"
	}
	p.point("quota", quota, fmt.Sprintf("deserves %s under today's demand: its part of %s, divided among its "+
		"siblings and it: %s", count(quota, "slot"), whole, how), rules...)
	if free := p.of(n, "free"); free > 0 {
		p.point("free", free, fmt.Sprintf("%s free for it: what its reserve keeps, or, while nobody is short, its "+
			"part of the idle slots", count(free, "slot")), "SLOT-28")
	}
}

// exclusive tells that whole hosts count.
func (p *part) exclusive() {
	if p.slots.Placement == plan.Exclusive {
		p.say(fmt.Sprintf("hosts serve one %s at a time: each counts whole, with all its slots; demand, held and "+
			"short alone count units", p.slots.ExclusiveBy), "SLOT-31")
	}
}
