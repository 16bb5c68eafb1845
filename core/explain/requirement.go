package explain

import (
	"fmt"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// Requirement tells how many of a plan's hosts meet what a sub-allocation requires, all of it and each condition by
// itself.
type Requirement struct {
	Text    string   `json:"text"`
	Hosts   int64    `json:"hosts"` // of the plan
	Match   int64    `json:"match"` // of these meet all of it
	Open    int64    `json:"open"`  // of these are ok
	Clauses []Clause `json:"clauses"`

	shut []string // hosts that meet all of it and are not ok
	rows map[string]bool
}

// Clause is a condition of a requirement, of those that && joins.
type Clause struct {
	Text  string `json:"text"`
	Match int64  `json:"match"` // hosts of the plan that meet it
	Open  int64  `json:"open"`  // of these are ok
}

// knowledge is what was asked for and of which hosts, found when it is first needed. Of a cycle of which nobody can
// tell it why says so.
type knowledge struct {
	read  bool
	why   error
	fleet *fleet
	need  map[Taker]string           // the requirement of who has one
	most  map[Taker]int64            // max_per_host of who has one
	least map[Taker]int64            // min_units of gangs
	of    map[[2]string]*Requirement // by plan and text
	held  *tally[holder]             // by everybody, made when first asked for
	lent  map[where][]string         // whose hosts units are on, made when first asked for
}

// asked is what was asked for and of which hosts; nil where it is not known.
func (f *Facts) asked() *knowledge {
	s := &f.known
	if f.Asked == nil || s.read {
		return s
	}
	s.read = true
	a, err := f.Asked()
	if err != nil || a == nil {
		s.why = err
		return s
	}
	s.fleet = &fleet{t: a.Inventory, dims: len(f.Policy.Dimensions)}
	s.need, s.most = map[Taker]string{}, map[Taker]int64{}
	s.least, s.of = map[Taker]int64{}, map[[2]string]*Requirement{}
	v := view(a.Requests)
	for row := range v.Rows {
		who := func() Taker {
			return Taker{f.renamed(v.text("consumer", row)), v.text("allocation", row), v.text("sub", row)}
		}
		if text := v.text("requirement", row); text != "" {
			s.need[who()] = text
		}
		if !v.null("max_per_host", row) {
			s.most[who()] = v.num("max_per_host", row)
		}
		if n := v.num("min_units", row); n > 1 {
			s.least[who()] = n
		}
	}
	return s
}

// requirement is what a shortfall's units require of hosts; nil: nothing, or it is not known.
func (p *part) requirement(s *Shortfall) *Requirement {
	known := p.f.asked()
	text := known.need[Taker{s.Consumer, s.Allocation, s.Sub}]
	if text == "" || p.Plan == "" {
		return nil
	}
	at := [2]string{p.Plan, text}
	r, ok := known.of[at]
	if !ok {
		r = known.fleet.meets(p.Plan, text)
		known.of[at] = r
	}
	return r
}

// meets counts the hosts of a plan that meet a requirement; nil where it has no select part, or names what no host has
// any more. O(hosts × conditions).
func (f *fleet) meets(name, text string) *Requirement {
	q, err := plan.ParseRequirement(text)
	if err != nil || !q.Selects() {
		return nil
	}
	all, err := q.Bind(f)
	if err != nil {
		return nil
	}
	r := &Requirement{Text: text, Clauses: []Clause{}, rows: map[string]bool{}}
	rows := f.ofPlan(name)
	for _, row := range rows {
		if !all.Match(row) {
			continue
		}
		r.Match++
		r.rows[f.name(row)] = true
		if f.open(row) {
			r.Open++
		} else {
			r.shut = append(r.shut, f.name(row)+" "+f.state(row))
		}
	}
	r.Hosts = int64(len(rows))
	for _, clause := range q.Clauses() {
		b, err := clause.Bind(f)
		if err != nil {
			return nil
		}
		c := Clause{Text: clause.Text}
		for _, row := range rows {
			if b.Match(row) {
				c.Match++
				if f.open(row) {
					c.Open++
				}
			}
		}
		r.Clauses = append(r.Clauses, c)
	}
	return r
}

// missed says why no host meets a requirement, and what would help.
func (r *Requirement) missed() (text, remedy string) {
	var none, some []string
	for _, c := range r.Clauses {
		if c.Match == 0 {
			none = append(none, c.Text)
		} else {
			some = append(some, fmt.Sprintf("%s %s", grouped(c.Match), verb(int(c.Match), "meets ", "meet ")+c.Text))
		}
	}
	of := fmt.Sprintf("none of the plan's %s", count(r.Hosts, "host"))
	remedy = "It would take such hosts, or a wider requirement"
	switch {
	case r.Hosts == 0:
		return "the plan has no host", "It would take hosts"
	case r.Match > 0 && r.Open == 0:
		if r.Match == 1 {
			text = fmt.Sprintf("the only host that meets %s takes nothing new: %s", r.Text, r.shut[0])
			return text, "It would take that host to be ok again"
		}
		text = fmt.Sprintf("the %s that meet %s take nothing new: %s", count(r.Match, "host"), r.Text,
			listed(r.shut, 5))
		return text, "It would take one of them to be ok again"
	case r.Match > 0:
		return "no host that it may use meets what it requires: " + r.Text, remedy
	case len(none) > 0:
		return of + " meets " + either(none) + ", which it requires", remedy
	}
	return of + " meets all that it requires: " + listed(some, len(some)) + ", no host all of that", remedy
}

// open says how many of the plan's hosts are ok and meet a requirement, where not all do; "" where there is none.
func (r *Requirement) open() string {
	if r == nil || r.Open == r.Hosts {
		return ""
	}
	return fmt.Sprintf("Of the plan's %s %s ok and %s %s", count(r.Hosts, "host"),
		grouped(r.Open)+verb(int(r.Open), " is", " are"), verb(int(r.Open), "meets", "meet"), r.Text)
}

// either joins words by "or".
func either(words []string) string {
	text := words[0]
	for _, w := range words[1:] {
		text += " or " + w
	}
	return text
}

// clauses tells of each condition of a requirement how many of the plan's hosts meet it.
func (r *Requirement) clauses() (points []Point) {
	tell := func(what string, match, open int64) {
		text := fmt.Sprintf("%s of %s %s %s", grouped(match), count(r.Hosts, "host"), verb(int(match), "meets", "meet"),
			what)
		if shut := match - open; shut > 0 {
			text += fmt.Sprintf(", %s of them not ok", grouped(shut))
		}
		points = append(points, because(text, "REQ-1"))
	}
	if len(r.Clauses) > 1 {
		for _, c := range r.Clauses {
			tell(c.Text, c.Match, c.Open)
		}
		tell("all of that", r.Match, r.Open)
		return points
	}
	tell(r.Text, r.Match, r.Open)
	return points
}

// everybody is what all consumers hold. O(holdings), once.
func (f *Facts) everybody() *tally[holder] {
	if f.known.held == nil {
		f.known.held, _ = f.held("/")
	}
	return f.known.held
}

// lentAt names the owners of what units are on, of those that are lent. O(holdings), once.
func (f *Facts) lentAt(at where) []string {
	if f.known.lent == nil {
		f.known.lent = map[where][]string{}
		f.everybody().each(func(h holder, _ int64) {
			at := where{plan: h.plan, consumer: h.consumer, allocation: h.allocation, sub: h.sub, host: h.host}
			if h.lender != "" && !slices.Contains(f.known.lent[at], h.lender) {
				f.known.lent[at] = append(f.known.lent[at], h.lender)
			}
		})
	}
	return f.known.lent[at]
}

// holders tells who holds the hosts that meet a requirement, and whose they are.
func (p *part) holders(r *Requirement) (points []Point) {
	type who struct{ consumer, owner string }
	by := newTally[who]()
	p.f.everybody().each(func(h holder, units int64) {
		if h.plan != p.Plan || !r.rows[h.host] {
			return
		}
		owner := h.lender
		if h.origin == "owned" {
			owner = h.consumer
		}
		by.add(who{h.consumer, owner}, units)
	})
	var words []string
	by.each(func(w who, units int64) {
		text := fmt.Sprintf("%s %s", w.consumer, count(units, "unit"))
		switch w.owner {
		case "":
		case w.consumer:
			text += " (its own)"
		default:
			text += " (lent by " + w.owner + ")"
		}
		words = append(words, text)
	})
	if len(words) == 0 {
		return nil
	}
	return []Point{because("who holds "+verb(int(r.Match), "that host: ", "those hosts: ")+listed(words, 5), "INV-9")}
}

// shut tells of the plan's hosts that are not ok; "" where all are, or nobody knows.
func (p *part) shut() string {
	if p.closed == nil {
		text := p.notOpen()
		p.closed = &text
	}
	return *p.closed
}

// notOpen is shut, found in O(hosts).
func (p *part) notOpen() string {
	known := p.f.asked()
	if known.fleet == nil || p.Plan == "" {
		return ""
	}
	by, all := newTally[string](), 0
	var names []string
	for _, row := range known.fleet.ofPlan(p.Plan) {
		all++
		if !known.fleet.open(row) {
			by.add(known.fleet.state(row), 1)
			names = append(names, known.fleet.name(row)+" "+known.fleet.state(row))
		}
	}
	if len(names) == 0 {
		return ""
	}
	if len(names) == all {
		return fmt.Sprintf("The plan has no host that takes anything new: %s", listed(names, 5))
	}
	return fmt.Sprintf("%s of the plan's %s %s nothing new: %s", grouped(int64(len(names))), count(int64(all), "host"),
		verb(len(names), "takes", "take"), listed(names, 5))
}

// hosts tells which hosts a shortfall's units may use, and, where there is no room, who holds those and which are not
// ok.
func (p *part) hosts(s *Shortfall, room bool) (points []Point) {
	if known := p.f.asked(); known.why != nil {
		return []Point{because("which hosts meet its requirement is not known: "+known.why.Error(), "REQ-1")}
	}
	if r := s.Requirement; r != nil {
		points = append(points, r.clauses()...)
		if room && r.Match > 0 && !p.f.Part {
			points = append(points, p.holders(r)...)
		}
	}
	if shut := p.shut(); room && shut != "" {
		points = append(points, because(shut, "INV-1"))
	}
	return points
}
