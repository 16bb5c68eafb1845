package verify

import (
	"slices"
)

// pass is a pass over what is owned in a plan, by docs/ownership.md, "A pass".
type pass struct {
	m     *model
	plan  *plan
	w     *window
	hosts []string                      // those of the plan that are there and have something, in host order
	group map[string]map[string]bool    // by group, its hosts among them
	used  map[string]map[string][]int64 // by host and owner: what is held on its parcels after settle
	had   map[string][]piece            // by host, consumers in tree order
	given map[string][]piece            // by consumer: what a keyframe says that it has; nil: a pass is made
	next  *estate

	// Of the domain that is being divided:
	up     string
	kids   []string           // by rank
	own    []string           // its hosts
	amount map[string][]int64 // by host: what it has
	left   map[string][]int64 // of that, what nobody took in this pass
	theirs map[string][]piece // by host: what the children had
	claims []ownClaim
	last   map[string]int  // by child: its last claim
	at     int             // the claim that takes
	sum    []int64         // what it took
	took   map[string]bool // of which hosts
}

// piece is what a consumer's rule took of a host; rule is -1 when the consumer's list is another now.
type piece struct {
	of   string
	rule int
	host string
	v    []int64
}

// ownClaim is a rule of a consumer.
type ownClaim struct {
	of   string
	i    int
	rule *ownRule
}

func (p *pass) nothing() []int64 { return make([]int64, len(p.m.policy.dimensions)) }

// divide gives the children of a consumer what their claims take of its domain.
func (p *pass) divide(up string) {
	p.up, p.kids, p.claims, p.last = up, p.m.policy.sorted(p.plan, p.w, up), nil, map[string]int{}
	for _, remaining := range []bool{false, true} {
		for _, k := range p.kids {
			for i := range p.w.entry[k].own {
				if rule := &p.w.entry[k].own[i]; rule.remaining == remaining {
					p.last[k] = len(p.claims)
					p.claims = append(p.claims, ownClaim{k, i, rule})
				}
			}
		}
	}
	if len(p.claims) == 0 {
		return
	}
	p.own, p.amount, p.left, p.theirs = nil, map[string][]int64{}, map[string][]int64{}, map[string][]piece{}
	for _, h := range p.hosts {
		v := p.m.hosts[h].cap
		if up != "/" {
			v = p.next.parts[part{up, h}]
		}
		if v == nil || zero(v) {
			continue
		}
		p.own, p.amount[h], p.left[h] = append(p.own, h), v, slices.Clone(v)
		for _, q := range p.had[h] {
			if parentOf(q.of) == up {
				p.theirs[h] = append(p.theirs[h], q)
			}
		}
	}
	for i, c := range p.claims {
		p.at, p.sum, p.took = i, p.nothing(), map[string]bool{}
		p.take(c)
		asked, met := p.asks(c)
		plus(p.next.asked(c.of, len(asked)), asked, 1)
		if !met {
			p.next.unmet[c.of] = true
		}
		p.next.open = p.next.open || !met || p.wants(c)
	}
}

// hads tells whether a piece is one that a claim had.
func hads(c ownClaim, q piece) bool { return q.of == c.of && (q.rule == c.i || q.rule < 0) }

// coming tells whether somebody had a piece by a claim that is still to come, and not by the one that takes.
func (p *pass) coming(q piece) bool {
	if hads(p.claims[p.at], q) {
		return false
	}
	if q.rule < 0 {
		last, ok := p.last[q.of]
		return ok && last > p.at
	}
	return slices.ContainsFunc(p.claims[p.at+1:], func(c ownClaim) bool { return hads(c, q) })
}

// heldOn is what is held of a consumer's part of a host.
func (p *pass) heldOn(path, host string) []int64 {
	v := p.nothing()
	for owner, used := range p.used[host] {
		if under(owner, path) {
			plus(v, used, 1)
		}
	}
	return v
}

func (p *pass) busy(path, host string) bool { return !zero(p.heldOn(path, host)) }

// kept is what of a host is left to those who had it busy and whose claims are still to come.
func (p *pass) kept(host string) []int64 {
	sum := p.nothing()
	for _, q := range p.theirs[host] {
		if p.coming(q) && p.busy(q.of, host) {
			plus(sum, q.v, 1)
		}
	}
	return least(p.left[host], sum)
}

// load is the largest part of the domain's amount that is held on a host.
func (p *pass) load(host string) int64 {
	most := int64(0)
	for d, n := range p.heldOn(p.up, host) {
		switch whole := p.amount[host][d]; {
		case n > 0 && n >= whole:
			most = one
		case n > 0:
			q, _ := times(n, whole)
			most = max(most, q)
		}
	}
	return most
}

// of are the domain's hosts of a group.
func (p *pass) of(group string) (list []string) {
	for _, h := range p.own {
		if p.group[group][h] {
			list = append(list, h)
		}
	}
	return list
}

// held is what a claim had of a host.
func (p *pass) held(c ownClaim, host string) []int64 {
	v := p.nothing()
	for _, q := range p.theirs[host] {
		if hads(c, q) {
			plus(v, q.v, 1)
		}
	}
	return v
}

// closed tells whether nothing new may start on a host.
func (p *pass) closed(host string) bool {
	state := p.m.hosts[host].state
	return state == "closed" || state == "draining"
}

// wants tells whether a claim that was met has less than a whole host where hosts count, or a closed one that it chose.
func (p *pass) wants(c ownClaim) bool {
	return c.rule.chooses() && slices.ContainsFunc(p.next.pieces, func(q piece) bool {
		mine := q.of == c.of && q.rule == c.i
		less := c.rule.amount == nil && !slices.Equal(q.v, p.amount[q.host])
		return mine && (less || p.closed(q.host))
	})
}

// cession says in favour of whom a claim gives up an idle host of its own, where another host serves the claim as well.
type cession int

const (
	keeps    cession = iota
	toLister         // another child lists the host
	toBetter         // the host is closed or, where hosts count, only a part of it is open to the claim
)

// cedes is how a claim leaves a host that it had.
func (p *pass) cedes(c ownClaim, host string) cession {
	hosts := c.rule.amount == nil
	switch {
	case p.busy(c.of, host):
		return keeps
	case p.closed(host) || hosts && !slices.Equal(p.open(host), p.amount[host]):
		return toBetter
	case hosts && p.listedBeside(c, host):
		return toLister
	}
	return keeps
}

// open is what a claim may take of a host that it had.
func (p *pass) open(host string) []int64 { return plus(slices.Clone(p.left[host]), p.kept(host), -1) }

// first are the hosts of which a claim had something, in the order in which it takes them again: busy ones, the most
// loaded first, then idle ones; of either those that are not closed before those that are.
func (p *pass) first(c ownClaim) []string {
	list := slices.DeleteFunc(p.of(c.rule.group), func(h string) bool { return zero(p.held(c, h)) })
	merit := map[string][]int64{}
	for _, h := range list {
		merit[h] = []int64{1, bit(p.closed(h)), 0}
		if p.busy(c.of, h) {
			merit[h] = []int64{0, bit(p.closed(h)), -p.load(h)}
		}
	}
	slices.SortStableFunc(list, func(a, b string) int { return slices.Compare(merit[a], merit[b]) })
	return list
}

// candidates are the hosts that a claim may take besides, the best first.
func (p *pass) candidates(c ownClaim) []string {
	list := slices.DeleteFunc(p.of(c.rule.group), func(h string) bool {
		return zero(p.left[h]) || p.took[h] && c.rule.amount == nil // where hosts count, one counts once
	})
	merit := map[string][]int64{}
	for _, h := range list {
		merit[h] = p.merit(c, h)
	}
	slices.SortStableFunc(list, func(a, b string) int { return slices.Compare(merit[a], merit[b]) })
	return list
}

// bit is 1 for what is true, else 0.
func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// merit orders candidates, the least first: whole before parts, public before kept, open before closed.
func (p *pass) merit(c ownClaim, host string) []int64 {
	part, shut, load := bit(!slices.Equal(p.left[host], p.amount[host])), bit(p.closed(host)), p.load(host)
	if zero(p.kept(host)) {
		awaited := bit(slices.ContainsFunc(p.theirs[host], p.coming))
		return []int64{part, 0, shut, bit(p.listedBeside(c, host)), load, awaited}
	}
	others, rank := false, len(p.kids)
	for _, q := range p.theirs[host] {
		if p.coming(q) {
			if others = others || q.of != c.of; p.busy(q.of, host) {
				rank = min(rank, slices.Index(p.kids, q.of))
			}
		}
	}
	return []int64{part, 1, shut, bit(others), -int64(rank), load}
}

// serves tells whether a candidate's merit is 0 in so many places: 3 for one that is whole, public and not closed, 5
// for one that is listed by no other child, and idle, besides.
func (p *pass) serves(c ownClaim, host string, places int) bool {
	return slices.Max(p.merit(c, host)[:places]) == 0
}

// get gives a claim something of a host; false when that is nothing.
func (p *pass) get(c ownClaim, host string, v []int64) bool {
	if zero(v) {
		return false
	}
	v = slices.Clone(v)
	plus(p.left[host], v, -1)
	plus(p.sum, v, 1)
	p.took[host] = true
	p.next.give(piece{c.of, c.i, host, v})
	return true
}
