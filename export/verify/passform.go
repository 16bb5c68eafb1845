package verify

import "slices"

// take lets a claim take what it can; or what a keyframe says that it took.
func (p *pass) take(c ownClaim) {
	switch r := c.rule; {
	case p.given != nil:
		for _, q := range p.given[c.of] {
			if q.rule == c.i && p.left[q.host] != nil {
				p.get(c, q.host, q.v)
			}
		}
	case r.list != nil:
		for _, name := range r.list {
			if p.amount[name] != nil {
				p.get(c, name, p.left[name])
			}
		}
	case r.remaining:
		for _, h := range p.of(r.group) {
			p.get(c, h, p.left[h])
		}
	case r.perHost != nil:
		for _, h := range p.of(r.group) {
			p.get(c, h, least(p.share(c, h), p.left[h]))
		}
	case r.amount != nil:
		p.takeAmount(c)
	default:
		p.takeHosts(c)
	}
}

// asks is what a claim asks for, of what it took, and whether it is met.
func (p *pass) asks(c ownClaim) (asked []int64, met bool) {
	asked, met = slices.Clone(p.sum), true
	switch r := c.rule; {
	case r.list != nil:
		return p.asksList(c)
	case r.remaining:
	case r.perHost != nil:
		asked = p.nothing()
		for _, h := range p.of(r.group) {
			plus(asked, p.share(c, h), 1)
		}
		met = slices.Equal(asked, p.sum)
	case r.amount != nil:
		for d, n := range r.amount {
			if n != none {
				asked[d], met = n, met && p.sum[d] >= n
			}
		}
	default:
		missing := p.number(r) - int64(len(p.took))
		return plus(asked, p.average(r.group), missing), missing == 0
	}
	return asked, met
}

// asksList is asks of a rule that lists hosts.
func (p *pass) asksList(c ownClaim) (asked []int64, met bool) {
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

// number is how many hosts a rule asks for.
func (p *pass) number(r *ownRule) int64 {
	if r.hosts != none {
		return r.hosts
	}
	return fraction{r.percent, 100_000}.of(int64(len(p.of(r.group))))
}

// takeHosts takes a number of hosts.
func (p *pass) takeHosts(c ownClaim) {
	n := p.number(c.rule)
	get := func(h string, v []int64) {
		if n > 0 && !p.took[h] && p.get(c, h, v) {
			n--
		}
	}
	had := p.first(c)
	again := func(what cession) {
		for _, h := range had {
			if p.cedes(c, h) == what {
				get(h, p.open(h))
			}
		}
	}
	others := func(serves func(h string) bool) {
		for _, h := range p.candidates(c) {
			if serves(h) {
				get(h, p.left[h])
			}
		}
	}
	again(keeps)
	others(func(h string) bool { return p.serves(c, h, 5) })
	again(toLister)
	others(func(h string) bool { return p.serves(c, h, 3) })
	again(toBetter)
	others(func(string) bool { return true })
}

// listedBeside tells whether another child of the domain than the claim's lists a host.
func (p *pass) listedBeside(c ownClaim, host string) bool {
	return slices.ContainsFunc(p.claims, func(o ownClaim) bool {
		return o.of != c.of && slices.Contains(o.rule.list, host)
	})
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

// share is the part of a host that a rule asks for.
func (p *pass) share(c ownClaim, host string) []int64 {
	whole, v := p.amount[host], p.nothing()
	for d, part := range c.rule.perHost {
		switch {
		case part.amount != none:
			v[d] = min(part.amount, whole[d])
		case part.percent != none:
			v[d] = fraction{part.percent, 100_000}.of(whole[d])
		}
	}
	along(whole, v, func(d int) bool { return c.rule.perHost[d] != hostPart{none, none} })
	return v
}

// takeAmount takes an aggregate amount: whole hosts that fit in it, with `partial` a part of one at the end.
func (p *pass) takeAmount(c ownClaim) {
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
	turns := func(own, other func(h string)) {
		for _, what := range []cession{keeps, toBetter} {
			for _, h := range p.first(c) {
				if p.cedes(c, h) == what {
					own(h)
				}
			}
			for _, h := range p.candidates(c) {
				if what == toBetter || p.serves(c, h, 3) {
					other(h)
				}
			}
		}
	}
	turns(func(h string) { all(h, least(p.held(c, h), p.left[h])) }, func(h string) { all(h, p.left[h]) })
	if c.rule.partial {
		turns(cut, cut)
	}
}
