package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// by tells an instant, and how long after the cycle it comes.
func (f *Facts) by(us int64) string {
	if us == f.NowUS {
		return instant(us) + " (now)"
	}
	return fmt.Sprintf("%s (in %s)", instant(us), soon(us-f.NowUS))
}

// soon is how long a time of µs lasts, to the second from one on.
func soon(us int64) string {
	const second = 1_000_000
	if us > second {
		us = (us + second/2) / second * second
	}
	return plan.Lasting(us)
}

// promisedTo are the reclaims under way for a sub-allocation. O(units under reclaim), of all takers together once.
func (p *part) promisedTo(t Taker) []Reclaim {
	if p.promises == nil {
		p.promises = map[Taker][]*going{}
		for i := range p.going {
			g := &p.going[i]
			p.promises[g.taker] = append(p.promises[g.taker], g)
		}
	}
	list, _ := p.together(p.promises[t])
	return list
}

// waiting says who gives back what is promised to a shortfall's units, by when and why.
func (p *part) waiting(s *Shortfall) string {
	list := p.promisedTo(Taker{s.Consumer, s.Allocation, s.Sub})
	if len(list) == 0 {
		return p.joining(s)
	}
	from, units, overdue := newTally[string](), int64(0), int64(0)
	last := &list[0]
	for i := range list {
		r := &list[i]
		from.add(r.Consumer, r.Units)
		if units += r.Units; r.Overdue {
			overdue += r.Units
		}
		if r.leftUS > last.leftUS {
			last = r
		}
	}
	who := listed(from.keys, 3)
	if overdue > 0 {
		return fmt.Sprintf("%s %s to give back %s for it by %s, and no client has confirmed that", who,
			verb(len(from.keys), "was", "were"), count(overdue, "unit"), last.Deadline)
	}
	text := fmt.Sprintf("%s %s back %s for it by %s", who, verb(len(from.keys), "gives", "give"), count(units, "unit"),
		p.f.by(p.f.NowUS+last.leftUS))
	return with(text, p.wants(last))
}

// joining says whose units must go before a shortfall's units fit, where no reclaim is for these alone: the blocker's.
func (p *part) joining(s *Shortfall) string {
	if s.Blocker == "" || s.Until == "" {
		return "it gets what others give back on the same hosts"
	}
	text := "it gets what others give back, the last of them " + s.Blocker
	list, _ := p.grouping(func(g *going) bool { return g.consumer == s.Blocker && instant(g.deadline) == s.Until })
	if len(list) == 0 {
		return text + " by " + s.Until
	}
	r := &list[0]
	text += " by " + p.f.by(p.f.NowUS+r.leftUS)
	switch {
	case r.Overdue:
		text = "it gets what others give back, the last of them " + s.Blocker + ", overdue since " + s.Until
	case r.For == nil:
		text = with(text, p.wants(r))
	}
	return text
}

// things are what a plan's owners own.
func (p *part) things() string {
	if p.slots != nil {
		return "slots"
	}
	return "hosts"
}

// wants says why a reclaim takes units back, to who waits for them.
func (p *part) wants(r *Reclaim) string {
	switch {
	case r.Reason == "recall" && r.For != nil:
		owners := p.lendersOf(r)
		if len(owners) == 0 || slices.Equal(owners, []string{r.For.Consumer}) {
			return "the units are on " + p.things() + " that " + r.For.Consumer + " owns"
		}
		return p.recalled(r)
	case r.Reason == "fair_share" && r.For != nil:
		return r.For.Consumer + " is below what it deserves, and " + r.Consumer + " above"
	case r.Reason == "over_limit":
		return r.Consumer + " holds more than it may by now"
	}
	return reclaimed[r.Reason].text
}

// overdue tells whether what a shortfall waits for was due before the cycle.
func (p *part) overdue(s *Shortfall) bool {
	list := p.promisedTo(Taker{s.Consumer, s.Allocation, s.Sub})
	return slices.ContainsFunc(list, func(r Reclaim) bool { return r.Overdue })
}

// leaving says how many units of the target are being taken back, for whom, by when and why; "" for none. Of several
// reclaims it tells the taker and reason of most units. That others of their gang go is the reason of what has no
// other.
func (p *part) leaving() string {
	if len(p.Leaving) == 0 {
		return ""
	}
	type cause struct{ reason, taker string }
	of, all := newTally[cause](), int64(0)
	why := map[cause]*Reclaim{}
	for i := range p.Leaving {
		r := &p.Leaving[i]
		c := cause{reason: r.Reason}
		if r.For != nil {
			c.taker = r.For.Consumer
		}
		of.add(c, r.Units)
		if all += r.Units; why[c] == nil || r.leftUS > why[c].leftUS {
			why[c] = r
		}
	}
	const gang = "gang"
	best := of.keys[0]
	for _, c := range of.keys {
		more := of.of[c] > of.of[best]
		if with, only := c.reason == gang, best.reason == gang; with != only {
			more = only
		}
		if more {
			best = c
		}
	}
	r := why[best]
	text := ofIts(all) + " taken back"
	if best.taker != "" {
		text += " for " + best.taker
	}
	if r.Overdue {
		text += ", overdue since " + r.Deadline
	} else {
		text += " by " + p.f.by(p.f.NowUS+r.leftUS)
	}
	words := reclaimed[r.Reason].text
	if r.Reason == "recall" {
		words = p.recalled(r)
		if owners := p.lendersOf(r); r.For != nil && slices.Equal(owners, []string{r.For.Consumer}) {
			words = "the units are on " + p.things() + " that " + r.For.Consumer + " lent and wants back"
		}
	}
	text = with(text, words)
	if len(of.keys) > 1 {
		text += fmt.Sprintf("; that is so for %s of them", grouped(of.of[best]))
	}
	if least := p.wholeGang(); least > 0 && best.reason != gang {
		text += fmt.Sprintf("; a gang that would keep fewer than its %s goes whole (min_units)", count(least, "unit"))
	}
	return text
}

// wholeGang gives the min_units of a gang of the target of which fewer units stay, the largest of several; 0 for none,
// or where that is not known.
func (p *part) wholeGang() (least int64) {
	known := p.f.asked().least
	if len(known) == 0 {
		return 0
	}
	stays := map[Taker]int64{}
	p.hold.each(func(h holder, units int64) { stays[Taker{h.consumer, h.allocation, h.sub}] += units })
	for i := range p.Leaving {
		r := &p.Leaving[i]
		stays[Taker{r.Consumer, r.Allocation, r.Sub}] -= r.Units
	}
	for i := range p.Leaving {
		r := &p.Leaving[i]
		of := Taker{r.Consumer, r.Allocation, r.Sub}
		if n := known[of]; n > 1 && stays[of] < n {
			least = max(least, n)
		}
	}
	return least
}

// those names whose units are short for a shortfall's reason, where that is not the target alone.
func (p *part) those(s *Shortfall) string {
	var names []string
	for i := range p.Shortfalls {
		o := &p.Shortfalls[i]
		same := o.Reason == s.Reason && o.Blocker == s.Blocker && o.Dimension == s.Dimension
		if same && !slices.Contains(names, o.Consumer) {
			names = append(names, o.Consumer)
		}
	}
	if slices.Equal(names, []string{p.target.Consumer}) {
		return ""
	}
	return " (" + listed(names, 2) + ")"
}

// freeOf is the most that is free, all together, of the scarce dimension of shortfalls like one of the reason
// fragmented in an MD plan, 0 for other reasons.
func (p *part) freeOf(s *Shortfall) (most int64) {
	if s.Reason != decision.Reasons[decision.ReasonFragmented] {
		return 0
	}
	for i := range p.Shortfalls {
		o := &p.Shortfalls[i]
		free, _, ok := decision.ReadTogetherDetail(o.Detail)
		if ok && o.Reason == s.Reason && o.Dimension == s.Dimension {
			most = max(most, free)
		}
	}
	return most
}

// fullness says how full the plan's open hosts are in a dimension, where a keyframe of the cycle tells it.
func (p *part) fullness(dimension string) string {
	used, there, _, _ := p.inUse(dimension)
	if there == 0 {
		return ""
	}
	return fmt.Sprintf("; the pool is %s full", percent(float64(used)/float64(there)))
}

// secondary tells of the reason of most units besides the main one.
func (p *part) secondary(main *Shortfall) string {
	same := func(a, b *Shortfall) bool {
		return a.Reason == b.Reason && a.Blocker == b.Blocker && a.Dimension == b.Dimension
	}
	type cause struct{ reason, blocker, dimension string }
	of := map[cause]int64{}
	var next *Shortfall
	at := func(s *Shortfall) cause { return cause{s.Reason, s.Blocker, s.Dimension} }
	for i := range p.Shortfalls {
		s := &p.Shortfalls[i]
		if same(s, main) {
			continue
		}
		if of[at(s)] += s.Units; next == nil || of[at(s)] > of[at(next)] {
			next = s
		}
	}
	text := fmt.Sprintf("For %s more%s: %s", grouped(of[at(next)]), p.those(next), strings.TrimSuffix(next.Text, "."))
	if free := p.freeOf(next); free > 0 {
		text = fmt.Sprintf("Of %s units %s would fit the free %s %s if these were on fewer hosts%s",
			grouped(p.missing), grouped(of[at(next)]), grouped(free), next.Dimension, p.fullness(next.Dimension))
	}
	if len(of) > 1 {
		text += ". The other reasons are below"
	}
	return text
}
