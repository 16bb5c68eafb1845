package verify

import "slices"

// take lets a claim take what it can, and tells what it asks for and whether that was met.
func (p *pass) take(c ownClaim) (asked []int64, met bool) {
	switch r := c.rule; {
	case r.list != nil:
		return p.takeList(c)
	case r.remaining:
		for _, h := range p.of(r.group) {
			p.get(c, h, p.left[h])
		}
		return slices.Clone(p.sum), true
	case r.perHost != nil:
		return p.takePerHost(c)
	case r.amount != nil:
		return p.takeAmount(c)
	}
	return p.takeHosts(c)
}

// takeList takes what is left of the hosts that a rule lists.
func (p *pass) takeList(c ownClaim) (asked []int64, met bool) {
	missing := p.nothing()
	met = true
	for _, name := range c.rule.list {
		h := p.m.hosts[name]
		if h == nil || h.gone {
			met = false
			continue
		}
		has := p.nothing()
		if p.amount[name] != nil {
			p.get(c, name, p.left[name])
			plus(has, p.next.partOf(c.of, name, len(has)), 1)
		}
		if zero(has) || !slices.Equal(has, p.amount[name]) {
			plus(missing, plus(p.m.stated(h, p.plan), has, -1), 1)
			met = false
		}
	}
	return plus(missing, p.sum, 1), met
}

// stated is what the table of hosts says of a host, in a plan's figures.
func (m *model) stated(h *host, t *plan) []int64 {
	there := *h
	there.state = "ok"
	return slices.Clone(m.worth(&there, t))
}

// takeHosts takes a number of hosts.
func (p *pass) takeHosts(c ownClaim) (asked []int64, met bool) {
	n := c.rule.hosts
	if n == none {
		n = fraction{c.rule.percent, 100_000}.of(int64(len(p.of(c.rule.group))))
	}
	for _, h := range p.first(c) {
		if n > 0 && p.get(c, h, plus(slices.Clone(p.left[h]), p.kept(h), -1)) {
			n--
		}
	}
	for _, h := range p.candidates(c) {
		if n > 0 && p.get(c, h, p.left[h]) {
			n--
		}
	}
	return plus(slices.Clone(p.sum), p.average(c.rule.group), n), n == 0
}

// average is the average host of a group in the plan.
func (p *pass) average(group string) []int64 {
	v, n := p.nothing(), int64(0)
	for _, h := range p.hosts {
		if p.group[group][h] {
			plus(v, p.m.hosts[h].cap, 1)
			n++
		}
	}
	for d := range v {
		v[d] /= max(n, 1)
	}
	return v
}

// takePerHost takes a part of each host.
func (p *pass) takePerHost(c ownClaim) (asked []int64, met bool) {
	asked = p.nothing()
	named := func(d int) bool { return c.rule.perHost[d] != hostPart{none, none} }
	for _, h := range p.of(c.rule.group) {
		whole, v := p.amount[h], p.nothing()
		for d, part := range c.rule.perHost {
			switch {
			case part.amount != none:
				v[d] = min(part.amount, whole[d])
			case part.percent != none:
				v[d] = fraction{part.percent, 100_000}.of(whole[d])
			}
		}
		along(whole, v, named)
		plus(asked, v, 1)
		p.get(c, h, least(v, p.left[h]))
	}
	return asked, slices.Equal(asked, p.sum)
}

// takeAmount takes an aggregate amount: whole hosts that fit in it, with `partial` a part of one at the end.
func (p *pass) takeAmount(c ownClaim) (asked []int64, met bool) {
	rest := slices.Clone(c.rule.amount)
	named := func(d int) bool { return c.rule.amount[d] != none }
	gets := func(h string, v []int64) {
		if p.get(c, h, v) {
			plus(rest, v, -1)
		}
	}
	all := func(h string, v []int64) {
		some, fits := false, true
		for d, n := range v {
			some = some || named(d) && n > 0 && rest[d] > 0
			fits = fits && (!named(d) || n <= rest[d])
		}
		if some && fits {
			gets(h, slices.Clone(v))
		}
	}
	cut := func(h string) {
		v, some := p.nothing(), false
		for d, n := range p.left[h] {
			if named(d) {
				v[d] = min(n, rest[d])
				some = some || v[d] > 0
			}
		}
		if some {
			along(p.left[h], v, named)
			gets(h, v)
		}
	}
	for _, h := range p.first(c) {
		all(h, least(p.held(c, h), p.left[h]))
	}
	for _, h := range p.candidates(c) {
		all(h, p.left[h])
	}
	if c.rule.partial {
		for _, h := range p.first(c) {
			cut(h)
		}
		for _, h := range p.candidates(c) {
			cut(h)
		}
	}
	asked, met = slices.Clone(p.sum), true
	for d, n := range c.rule.amount {
		if named(d) {
			asked[d] = n
			met = met && rest[d] == 0
		}
	}
	return asked, met
}
