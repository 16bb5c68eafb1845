package explain

import (
	"fmt"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// part is one plan's explanation while it is made.
type part struct {
	f *Facts
	Part
	target Target
	node   plan.Node // of the consumer; None when the policy has it no more

	slots  *plan.SlotPlan // nil in an MD plan
	slot   *plan.SlotWindow
	md     *plan.MDPlan // nil in a slot plan
	set    *plan.MDWindow
	member []bool

	table tableView // consumers
	row   []int     // by Node, in table; -1: none
	hold  *tally[holder]
	lend  *tally[holder]

	missing int64   // units that the target is short of, as far as shortfalls tell
	going   []going // under reclaim in the plan

	amountsOf, sharesOf map[key][]int // made when first asked for
	idle                map[string][]idle
	closed              *string
	promises            map[Taker][]*going
}

// Explain tells why a target has what it has: all plans that have anything to do with it, in the policy's order, and
// demand that is in none. Cost: the rows of the cycle's tables, and of the reclaims before it.
func Explain(f *Facts, t Target) (*Explanation, error) {
	e := &Explanation{Cycle: f.Cycle, Now: f.now(), Revision: f.Revision, Consumer: t.Consumer,
		Allocation: t.Allocation, Plans: []Part{}}
	hold, lend := f.held(t.Consumer)
	going := f.going()
	for _, p := range f.parts(t) {
		p.hold, p.lend = inPlan(hold, p.Plan), inPlan(lend, p.Plan)
		for _, g := range going {
			if g.plan == p.Plan {
				p.going = append(p.going, g)
			}
		}
		if p.explain() {
			p.Answer = p.answer()
			e.Plans = append(e.Plans, p.Part)
		}
	}
	if len(e.Plans) == 0 {
		return nil, fmt.Errorf("%s takes part in no plan, and wants and holds nothing", t.Consumer)
	}
	return e, nil
}

// inPlan is what of a tally is of one plan.
func inPlan(t *tally[holder], name string) *tally[holder] {
	in := newTally[holder]()
	t.each(func(h holder, units int64) {
		if h.plan == name {
			in.add(h, units)
		}
	})
	return in
}

// parts are the plans, and last what is in none.
func (f *Facts) parts(t Target) (parts []*part) {
	p := f.Policy
	node, ok := p.Find(t.Consumer)
	if !ok {
		node = plan.None
	}
	rows := index(f.Consumers)
	add := func(n *part, name string) {
		n.f, n.target, n.node, n.Plan, n.table = f, t, node, name, view(f.Consumers)
		n.row = make([]int, p.Len())
		for i, path := range p.Path {
			n.row[i] = -1
			if at := rows[key{name, path}]; len(at) > 0 {
				n.row[i] = at[0]
			}
		}
		n.Tables, n.Points, n.Happened = []Grid{}, []Point{}, []Point{}
		n.Shortfalls, n.Leaving, n.Coming = []Shortfall{}, []Reclaim{}, []Reclaim{}
		parts = append(parts, n)
	}
	for i := range p.MDPlans {
		m := &p.MDPlans[i]
		w := &m.Windows[m.WindowAt(f.NowUS, p.Location)]
		add(&part{md: m, set: w, member: m.Member, Part: Part{Kind: "md", Policy: "md", Window: w.Name, Unit: "unit"}},
			m.Name)
	}
	for i := range p.SlotPlans {
		s := &p.SlotPlans[i]
		w := &s.Windows[s.WindowAt(f.NowUS, p.Location)]
		n := &part{slots: s, slot: w, member: s.Member, Part: Part{Kind: "slots", Window: w.Name, Unit: "slot"}}
		if node != plan.None && s.Member[node] {
			n.Policy = w.Policy[node].String()
		}
		add(n, p.Groups[s.Group].Name)
	}
	add(&part{Part: Part{Unit: "unit"}}, "")
	return parts
}

// explain fills the part and tells whether there is anything in it.
func (p *part) explain() bool {
	member := p.node != plan.None && p.member != nil && p.member[p.node] && p.row[p.node] >= 0
	p.shortfalls()
	p.reclaims()
	p.events()
	switch {
	case p.target.Allocation != nil:
		p.allocation()
		return p.Demand > 0 || len(p.Leaving) > 0
	case member && p.slots != nil:
		p.totals()
		p.explainSlots()
	case member:
		p.totals()
		p.explainMD()
	default:
		p.outside()
		return p.Demand > 0 || len(p.Leaving) > 0
	}
	return true
}

// totals are the consumer's own figures.
func (p *part) totals() {
	p.Demand, p.Held, p.Short = p.of(p.node, "demand"), p.of(p.node, "held"), p.of(p.node, "short")
	text := fmt.Sprintf("wants %s: %s held and %s short", count(p.Demand, p.Unit), grouped(p.Held), grouped(p.Short))
	if !p.tree().Leaf(p.node) {
		text += "; the sums of those below it"
	}
	p.point("demand", p.Demand, text, "INV-9")
	if us := p.tree().ReclaimUS[p.node]; us > 0 && p.tree().Leaf(p.node) {
		rule := "MD-10"
		if p.slots != nil {
			rule = "SLOT-9"
		}
		p.say(fmt.Sprintf("what is taken back of it may go on for %s (reclaim_grace)", plan.Lasting(us)), rule, "CYC-8")
	}
}

// allocation fills the figures of the target's allocation. Its demand is the sum of the units held and the units short.
func (p *part) allocation() {
	p.Short = p.missing
	by := newTally[label]()
	p.hold.each(func(h holder, units int64) {
		if h.allocation == *p.target.Allocation {
			p.Held += units
			by.add(h.label, units)
		}
	})
	p.Unit, p.Demand = "unit", p.Held+p.Short
	if p.Demand == 0 {
		return
	}
	p.point("demand", p.Demand, fmt.Sprintf("wants %s: %s held and %s short", count(p.Demand, "unit"), grouped(p.Held),
		grouped(p.Short)), "INV-9")
	p.labels(by)
	p.say("the allocations of a leaf are served in order of arrival, the sub-allocations of one so that they keep pace",
		"CYC-10", "D-9")
}

// outside is demand and work of a consumer that has no place in the plan.
func (p *part) outside() {
	p.Short = p.missing
	p.hold.each(func(_ holder, units int64) { p.Held += units })
	p.Unit, p.Demand = "unit", p.Held+p.Short
	if p.Held > 0 {
		p.point("held", p.Held, fmt.Sprintf("holds %s without a place in the plan: it was removed, or has children "+
			"now; all of it is reclaimed with its grace",
			count(p.Held, "unit")), "PLAN-4", "D-37")
	}
}

// labels tells as what units are held.
func (p *part) labels(by *tally[label]) {
	by.each(func(l label, units int64) {
		text, rules := l.sentence(p.Unit, units, p.slots != nil)
		p.point("held", units, text, rules...)
	})
}

// sentence tells what units count as, in whatever kind of plan.
func (l label) sentence(unit string, n int64, slots bool) (text string, rules []string) {
	what, from := count(n, unit), ""
	if l.lender != "" {
		from = ", lent by " + l.lender
	}
	switch {
	case l.origin == "owned" && slots:
		return what + " on slots that it owns", []string{"SLOT-5", "SLOT-10"}
	case l.origin == "owned":
		return what + " on hosts, or parts of hosts, that it owns itself", []string{"MD-7"}
	case l.origin == "share_pool" && l.pool == "/":
		return what + " from the cluster's share pool", []string{"SLOT-5", "SLOT-6"}
	case l.origin == "share_pool":
		return what + " from the family pool of " + l.pool, []string{"SLOT-1", "SLOT-5"}
	case l.origin == "borrowed":
		return what + " borrowed from " + l.lender, []string{"SLOT-3", "SLOT-7"}
	case l.origin == "hybrid":
		return what + " under the hybrid policy, where all slots are shared", []string{"SLOT-20", "SLOT-26"}
	case l.origin == "public_pool":
		return what + " from the public pool" + from, lentRules(l, "MD-7", "MD-16")
	case l.origin == "private_pool":
		return what + " from the private pool of " + l.pool + from, lentRules(l, "MD-2", "MD-7")
	}
	return what + " that ran before the first cycle and have no origin yet", []string{"D-21"}
}

// lentRules adds the rule of lending where a lender is named.
func lentRules(l label, rules ...string) []string {
	if l.lender != "" {
		rules = append(rules, "MD-8")
	}
	return rules
}

// of is a figure of a consumer in the table consumers, 0 where it has none.
func (p *part) of(n plan.Node, column string) int64 {
	if p.row[n] < 0 {
		return 0
	}
	return p.table.num(column, p.row[n])
}

// limited is the limit of a consumer in the table consumers; ok is false when it has none.
func (p *part) limited(n plan.Node) (limit int64, ok bool) {
	if p.row[n] < 0 || p.table.null("slot_limit", p.row[n]) {
		return 0, false
	}
	return p.table.num("slot_limit", p.row[n]), true
}

// point adds a sentence about a figure.
func (p *part) point(figure string, value int64, text string, rules ...string) {
	p.Points = append(p.Points, Point{Figure: figure, Value: &value, Text: text, Rules: rules})
}

// say adds a sentence that is about no figure of its own.
func (p *part) say(text string, rules ...string) {
	p.Points = append(p.Points, Point{Text: text, Rules: rules})
}

// way is the consumer and all above it, from the first level down.
func (p *part) way(n plan.Node) (nodes []plan.Node) {
	for ; n != plan.Root && n != plan.None; n = p.tree().Parent[n] {
		nodes = append(nodes, n)
	}
	slices.Reverse(nodes)
	return nodes
}

// amountRows and shareRows find the rows of consumers in the tables amounts and shares.
func (p *part) amountRows() map[key][]int {
	if p.amountsOf == nil {
		p.amountsOf = index(p.f.Amounts)
	}
	return p.amountsOf
}

func (p *part) shareRows() map[key][]int {
	if p.sharesOf == nil {
		p.sharesOf = index(p.f.Shares)
	}
	return p.sharesOf
}

func (p *part) tree() *plan.Policy { return p.f.Policy }

// besides are the children of a consumer that take part in the plan, of whatever figures are known.
func (p *part) besides(up plan.Node) (nodes []plan.Node) {
	t := p.tree()
	for c := t.First[up]; c != plan.None; c = t.Next[c] {
		if p.member[c] {
			nodes = append(nodes, c)
		}
	}
	return nodes
}

// siblings are the children of a consumer that take part in the plan, as far as their figures are known.
func (p *part) siblings(up plan.Node) (nodes []plan.Node) {
	t := p.tree()
	for c := t.First[up]; c != plan.None; c = t.Next[c] {
		if p.member[c] && p.row[c] >= 0 {
			nodes = append(nodes, c)
		}
	}
	return nodes
}
