package explain

import (
	"fmt"
	"slices"

	"github.com/stintd/stint/core/decision"
)

// going is units under reclaim after the cycle.
type going struct {
	id                                    int64
	plan, consumer, allocation, sub, host string
	units                                 int64
	reason                                string
	taker                                 Taker // zero: a rule
	issued, deadline                      int64
}

// reclaimed are the words for a reason of a reclaim and its rules: in slot plans, there of holders under the hybrid
// policy, and in MD plans.
var reclaimed = map[string]struct {
	text              string
	slots, hybrid, md []string
}{
	"recall": {"those who own it want it back", []string{"SLOT-5", "SLOT-8"}, []string{"SLOT-30"},
		[]string{"MD-10"}},
	"fair_share": {"the taker is below what it deserves, the holder above", []string{"SLOT-5", "SLOT-6"},
		[]string{"SLOT-27"}, []string{"MD-17"}},
	"over_limit": {"it is above a limit, or nothing carries it any more", []string{"SLOT-12"},
		[]string{"SLOT-12", "SLOT-27"}, []string{"MD-18", "D-23"}},
	"reserve": {"what is reserved is to be kept free", []string{"SLOT-10", "INV-3"},
		[]string{"SLOT-27", "INV-3"}, []string{"MD-5", "INV-3"}},
	"ownership_change": {"the host left the plan, or its parts have other owners", []string{"REQ-2"}, nil,
		[]string{"MD-4", "D-25"}},
	"window_switch": {"another time window opened, or will", []string{"PLAN-2"}, nil, []string{"PLAN-2"}},
	"plan_change": {"a new policy file leaves it no place", []string{"PLAN-2", "PLAN-4"}, nil,
		[]string{"PLAN-4", "D-37"}},
	"drain": {"the host drains", []string{"D-25"}, nil, []string{"D-25"}},
	"gang": {"others of its gang go, and what is left is less than its min_units", []string{"REQ-3"},
		[]string{"REQ-3"}, []string{"REQ-3"}},
}

// where names units of a reclaim on a host.
type where struct {
	id                                    int64
	plan, consumer, allocation, sub, host string
}

// going gives what is under reclaim after the cycle: issued, neither cancelled nor come back. What is under reclaim
// by Holdings, where that tells, is taken from there, and reason and taker from the reclaims that are still known.
func (f *Facts) going() []going {
	known, units := map[where]*going{}, newTally[where]()
	for _, t := range f.Past {
		v := view(t)
		for row := range t.Rows {
			at := f.where(v, row)
			if v.text("action", row) != "issued" {
				units.add(at, -v.num("units", row))
				continue
			}
			units.add(at, v.num("units", row))
			known[at] = &going{
				id: at.id, plan: at.plan, consumer: at.consumer, allocation: at.allocation, sub: at.sub, host: at.host,
				reason: v.text("reason", row),
				taker: Taker{f.renamed(v.text("for_consumer", row)), v.text("for_allocation", row),
					v.text("for_sub", row)},
				issued: v.num("issued", row), deadline: v.num("deadline", row),
			}
		}
	}
	due := map[where]int64{}
	if v := view(f.Holdings); v.has("reclaim") {
		units = newTally[where]()
		for row := range f.Holdings.Rows {
			if v.num("reclaim", row) > 0 {
				at := f.where(v, row)
				units.add(at, v.num("units", row))
				due[at] = max(due[at], v.num("deadline", row))
			}
		}
	} else {
		v := view(f.Returned)
		for row := range f.Returned.Rows {
			if v.num("reclaim", row) > 0 {
				units.add(f.where(v, row), -v.num("units", row))
			}
		}
	}
	var all []going
	units.each(func(at where, n int64) {
		g := going{id: at.id, plan: at.plan, consumer: at.consumer, allocation: at.allocation, sub: at.sub,
			host: at.host}
		if k := known[at]; k != nil {
			g = *k
		}
		if us, ok := due[at]; ok {
			g.deadline = us
		}
		if g.units = n; n > 0 {
			all = append(all, g)
		}
	})
	return all
}

func (f *Facts) where(v tableView, row int) where {
	return where{v.num("reclaim", row), v.text("plan", row), f.renamed(v.text("consumer", row)),
		v.text("allocation", row), v.text("sub", row), v.text("host", row)}
}

// reclaims tells what is under reclaim of the target, and for it.
func (p *part) reclaims() {
	about := func(consumer, allocation string) bool {
		return consumer != "" && within(consumer, p.target.Consumer) &&
			(p.target.Allocation == nil || allocation == *p.target.Allocation)
	}
	p.Leaving, p.LeavingMore = p.grouping(func(g *going) bool { return about(g.consumer, g.allocation) })
	p.Coming, p.ComingMore = p.grouping(func(g *going) bool { return about(g.taker.Consumer, g.taker.Allocation) })
}

// grouping puts what is under reclaim, and chosen, together by holder, reason, taker and deadline.
func (p *part) grouping(chosen func(*going) bool) (list []Reclaim, more int) {
	var some []*going
	for i := range p.going {
		if chosen(&p.going[i]) {
			some = append(some, &p.going[i])
		}
	}
	return p.together(some)
}

// together is grouping of what was chosen.
func (p *part) together(chosen []*going) (list []Reclaim, more int) {
	list = []Reclaim{}
	type group struct {
		consumer, allocation, sub, reason string
		taker                             Taker
		deadline                          int64
	}
	at := map[group]int{}
	for _, g := range chosen {
		k := group{g.consumer, g.allocation, g.sub, g.reason, g.taker, g.deadline}
		j, ok := at[k]
		if !ok && len(list) == listMax {
			more++
			continue
		}
		if !ok {
			j = len(list)
			at[k] = j
			r := Reclaim{Consumer: g.consumer, Allocation: g.allocation, Sub: g.sub, Reason: g.reason,
				Deadline: instant(g.deadline), leftUS: g.deadline - p.f.NowUS}
			r.Overdue = r.leftUS < 0
			if g.taker.Consumer != "" {
				r.For = &g.taker
			}
			if g.issued > 0 {
				r.Issued = instant(g.issued)
			}
			list = append(list, r)
		}
		list[j].Units += g.units
		if !slices.Contains(list[j].Hosts, g.host) {
			list[j].Hosts = append(list[j].Hosts, g.host)
		}
	}
	for i := range list {
		slices.Sort(list[i].Hosts) // a log has the order of issue, a state that of hosts
		p.sentence(&list[i])
	}
	return list, more
}

// sentence tells of a reclaim.
func (p *part) sentence(r *Reclaim) {
	r.Text = fmt.Sprintf("%s of %s on %s", count(r.Units, "unit"), name(r.Consumer, r.Allocation, r.Sub),
		listed(r.Hosts, 3))
	if r.For != nil {
		r.Text += " for " + name(r.For.Consumer, r.For.Allocation, r.For.Sub)
	}
	if r.Overdue {
		r.Text += fmt.Sprintf(", overdue since %s: the client has not confirmed", r.Deadline)
	} else {
		r.Text += fmt.Sprintf(", due %s (in %s)", r.Deadline, soon(r.leftUS))
	}
	r.Rules = []string{"CYC-6"}
	if w, ok := reclaimed[r.Reason]; ok {
		text := w.text
		if r.Reason == "recall" {
			text = p.recalled(r)
		}
		if r.Reason == "fair_share" && p.md != nil && r.For != nil {
			if moved := p.moves(r); moved != "" {
				text = moved
			}
		}
		r.Text += ": " + text
		r.Rules = p.rules(r.Consumer, w.slots, w.hybrid, w.md)
	}
	if r.Overdue {
		r.Rules = append(slices.Clone(r.Rules), "CYC-8")
	}
}

// name is a sub-allocation as it is written on the command line.
func name(consumer, allocation, sub string) string {
	text := consumer + ":" + allocation
	if sub != "" {
		text += "/" + sub
	}
	return text
}

// caused are the words for why units came back.
var caused = map[string]struct {
	text  string
	rules []string
}{
	"client":        {"the client gave them back", []string{"CYC-8"}},
	"done":          {"their work is done", []string{"CYC-8"}},
	"grace_expired": {"their grace was over", []string{"CYC-8", "SLOT-9"}},
	"host_lost":     {"their host was lost, or shrank", []string{"CYC-5"}},
	"demand_gone":   {"they are not wanted any more", []string{"CYC-5"}},
	"gang_broken":   {"fewer than their gang's min_units were left", []string{"REQ-3"}},
}

// events tells what the cycle gave to the target, and what came back or was put under reclaim of it.
func (p *part) events() {
	back, granted := newTally[string](), newTally[label]()
	p.each(p.f.Releases, func(v tableView, row int) { back.add(v.text("cause", row), v.num("units", row)) })
	p.each(p.f.Grants, func(v tableView, row int) {
		granted.add(label{v.text("origin", row), v.text("pool", row), v.text("lender", row)}, v.num("units", row))
	})
	back.each(func(cause string, n int64) {
		p.happened(n, fmt.Sprintf("%s came back: %s", count(n, "unit"), caused[cause].text), caused[cause].rules...)
	})
	granted.each(func(l label, n int64) {
		text, rules := l.sentence("unit", n, p.slots != nil)
		p.happened(n, "granted "+text, rules...)
	})
	p.turned()
}

// each calls f for the rows of a table of events that are the target's in this plan.
func (p *part) each(t *decision.Table, f func(v tableView, row int)) {
	v := view(t)
	mine := p.f.under(v, "consumer", p.target.Consumer)
	for row := range t.Rows {
		if mine(row) && v.text("plan", row) == p.Plan &&
			(p.target.Allocation == nil || v.text("allocation", row) == *p.target.Allocation) {
			f(v, row)
		}
	}
}

func (p *part) happened(units int64, text string, rules ...string) {
	p.Happened = append(p.Happened, Point{Value: &units, Text: text, Rules: rules})
}

// turn is units of a row of reclaims.
type turn struct {
	where
	reason, taker string
	deadline      int64
	units         int64
	told          int64 // of issued ones: how many were under reclaim before
}

// holding is where without the reclaim.
func (w where) holding() where {
	w.id = 0
	return w
}

// turned tells which units the cycle put under reclaim, and how reclaims ended that the cycle cancelled.
func (p *part) turned() {
	var issued, cancelled []*turn
	p.each(p.f.Reclaims, func(v tableView, row int) {
		s := &turn{where: p.f.where(v, row), reason: v.text("reason", row), deadline: v.num("deadline", row),
			units: v.num("units", row)}
		s.taker = name(p.f.renamed(v.text("for_consumer", row)), v.text("for_allocation", row), v.text("for_sub", row))
		if v.text("action", row) == "issued" {
			issued = append(issued, s)
		} else {
			cancelled = append(cancelled, s)
		}
	})
	over, anew := p.followed(issued, cancelled)
	type group struct{ reason, consumer string }
	put, ended := newTally[group](), int64(0)
	for _, s := range issued {
		put.add(group{s.reason, s.consumer}, s.units)
	}
	for _, s := range cancelled {
		ended += s.units
	}
	put.each(func(g group, n int64) {
		w := reclaimed[g.reason]
		p.happened(n, fmt.Sprintf("%s put under reclaim: %s", count(n, "unit"), w.text),
			p.rules(g.consumer, w.slots, w.hybrid, w.md)...)
	})
	if anew > 0 {
		p.happened(anew, fmt.Sprintf("%s of that had been under reclaim before: that one ended", count(anew, "unit")),
			"CYC-6", "D-24")
	}
	over.each(func(taker string, n int64) {
		p.happened(n, fmt.Sprintf("%s still under reclaim, due as before: an owner took it over: %s", count(n, "unit"),
			taker), "MD-10", "CYC-6")
	})
	if ended > 0 {
		p.happened(ended, fmt.Sprintf("%s not reclaimed after all: nothing asks for it any more", count(ended, "unit")),
			"CYC-6", "D-24")
	}
}

// followed takes off those of cancelled reclaims that are under a later one from the same cycle. An owner that takes
// over what is taken back for others (docs/shares.md) has the same deadline: for the holder nothing ended, and it is
// taken off what was issued too; over has that by taker. The others were put under reclaim anew.
func (p *part) followed(issued, cancelled []*turn) (over *tally[string], anew int64) {
	later := map[where][]*turn{}
	for _, s := range issued {
		later[s.holding()] = append(later[s.holding()], s)
	}
	over = newTally[string]()
	for _, s := range cancelled {
		for _, next := range later[s.holding()] {
			if p.md != nil && next.id > s.id && next.reason == "recall" && next.deadline == s.deadline {
				n := min(s.units, next.units)
				over.add(next.taker, n)
				s.units, next.units = s.units-n, next.units-n
			}
		}
	}
	for _, s := range cancelled {
		for _, next := range later[s.holding()] {
			if next.id > s.id {
				n := min(s.units, next.units-next.told)
				s.units, next.told, anew = s.units-n, next.told+n, anew+n
			}
		}
	}
	return over, anew
}
