package oracle

import (
	"slices"

	"github.com/stintd/stint/core/plan"
)

// What the claims of a pass take, by docs/ownership.md, "A pass".

// take lets a claim take what it can, and tells what it asks for and whether that was met.
func (p *pass) take(t title) (asked []int64, met bool) {
	switch {
	case t.rule.HostList != nil:
		return p.takeList(t)
	case t.rule.Remaining:
		for _, h := range p.group(t) {
			p.get(t, h, p.left(h))
		}
		return p.got(t), true
	case t.rule.PerHost != nil:
		return p.takePerHost(t)
	case t.rule.Amount != nil:
		return p.takeAmount(t)
	}
	return p.takeHosts(t)
}

// takeList takes what is left of the hosts that a rule lists.
func (p *pass) takeList(t title) (asked []int64, met bool) {
	missing := p.nothing()
	met = true
	for _, name := range t.rule.HostList {
		i := slices.IndexFunc(p.Cluster.hosts, func(h *host) bool { return h.Name == name })
		if i < 0 {
			met = false
			continue
		}
		h := p.Cluster.hosts[i]
		if slices.Contains(p.hosts, h) {
			p.get(t, h, p.left(h))
		}
		has := p.part(p.pieces, t.of, h)
		if all := slices.Contains(p.hosts, h) && !zero(has) && slices.Equal(has, p.amount(h)); !all {
			plus(missing, plus(p.capacity(p.in, h), has, -1), 1)
			met = false
		}
	}
	return plus(missing, p.got(t), 1), met
}

// takeHosts takes a number of hosts.
func (p *pass) takeHosts(t title) (asked []int64, met bool) {
	n := t.rule.Hosts
	if n == plan.Unlimited {
		q, _ := muldiv(uint64(len(p.group(t))), uint64(t.rule.Percent), 100_000)
		n = int64(q)
	}
	own := p.own(t)
	again := func(what cession) {
		for _, h := range own {
			if n > 0 && p.cedes(t, h) == what && p.get(t, h, p.open(h)) {
				n--
			}
		}
	}
	others := func(places int) {
		for _, h := range p.candidates(t) {
			if n > 0 && p.serves(t, h, places) && p.get(t, h, p.left(h)) {
				n--
				if slices.ContainsFunc(own, func(h *host) bool { return p.cedes(t, h) != keeps }) {
					p.notes["another host serves as well"]++
				}
			}
		}
	}
	again(keeps)
	others(asGood)
	again(toLister)
	others(mayReplace)
	again(toBetter)
	for _, h := range p.candidates(t) {
		if n > 0 && p.get(t, h, p.left(h)) {
			n--
		}
	}
	return plus(p.got(t), p.average(t), n), n == 0
}

// cession says in favour of whom a claim gives up an idle host of its own, where another host serves the claim as well.
type cession int

const (
	keeps    cession = iota
	toLister         // another child lists the host
	toBetter         // the host is closed or, where hosts count, only a part of it is open to the claim
)

// cedes is how a claim that chooses its hosts leaves one that it had.
func (p *pass) cedes(t title, h *host) cession {
	hosts := t.rule.Amount == nil
	switch {
	case p.busy(t.of, h):
		return keeps
	case closed(h) || hosts && !slices.Equal(p.open(h), p.amount(h)):
		return toBetter
	case hosts && p.listedBeside(t, h):
		return toLister
	}
	return keeps
}

// listedBeside tells whether another child of the domain lists a host.
func (p *pass) listedBeside(t title, h *host) bool {
	return slices.ContainsFunc(p.claims, func(o title) bool {
		return o.of != t.of && slices.Contains(o.rule.HostList, h.Name)
	})
}

// average is the average host of a claim's group in the plan.
func (p *pass) average(t title) []int64 {
	v, n := p.nothing(), int64(0)
	all := p.grouped[p.m.Groups[t.rule.Group].Group]
	for _, h := range p.hosts {
		if slices.Contains(all, h) {
			plus(v, p.capacity(p.in, h), 1)
			n++
		}
	}
	for d := range v {
		v[d] /= max(n, 1)
	}
	return v
}

// fraction is a/b, 0 when b is.
type fraction struct{ a, b uint64 }

// larger is the larger of f and a/b, b being more than 0.
func (f fraction) larger(a, b int64) fraction {
	if f.b == 0 || less(uint64(a), f.b, f.a, uint64(b)) > 0 {
		return fraction{uint64(a), uint64(b)}
	}
	return f
}

// of is so much of n, rounded down.
func (f fraction) of(n int64) int64 {
	if f.b == 0 {
		return 0
	}
	q, _ := muldiv(uint64(n), f.a, f.b)
	return int64(q)
}

// along completes what is taken in named dimensions of a whole by what goes along in the others.
func along(whole, taken []int64, named func(d int) bool) {
	var f fraction
	for d, n := range whole {
		if named(d) && n > 0 {
			f = f.larger(taken[d], n)
		}
	}
	for d, n := range whole {
		if !named(d) {
			taken[d] = f.of(n)
		}
	}
}

// takePerHost takes a part of each host.
func (p *pass) takePerHost(t title) (asked []int64, met bool) {
	asked = p.nothing()
	named := func(d int) bool {
		return t.rule.PerHost[d] != plan.Part{Amount: plan.Unlimited, Percent: plan.Unlimited}
	}
	for _, h := range p.group(t) {
		whole, v := p.amount(h), p.nothing()
		for d, part := range t.rule.PerHost {
			switch {
			case part.Amount != plan.Unlimited:
				v[d] = min(part.Amount, whole[d])
			case part.Percent != plan.Unlimited:
				v[d] = fraction{uint64(part.Percent), 100_000}.of(whole[d])
			}
		}
		along(whole, v, named)
		plus(asked, v, 1)
		v = least(v, p.left(h))
		p.get(t, h, v)
	}
	return asked, slices.Equal(asked, p.got(t))
}

// takeAmount takes an aggregate amount: whole hosts that fit in it, and with `partial` a part of one at the end.
func (p *pass) takeAmount(t title) (asked []int64, met bool) {
	rest := slices.Clone(t.rule.Amount)
	named := func(d int) bool { return t.rule.Amount[d] != plan.Unlimited }
	gets := func(h *host, v []int64) {
		if p.get(t, h, v) {
			plus(rest, v, -1)
		}
	}
	all := func(h *host, v []int64) {
		some, fits := false, true
		for d, n := range v {
			some = some || named(d) && n > 0 && rest[d] > 0
			fits = fits && (!named(d) || n <= rest[d])
		}
		if some && fits {
			gets(h, v)
		}
	}
	cut := func(h *host) {
		left, v, some := p.left(h), p.nothing(), false
		for d := range v {
			if named(d) {
				v[d] = min(left[d], rest[d])
				some = some || v[d] > 0
			}
		}
		if some {
			along(left, v, named)
			gets(h, v)
		}
	}
	turns := func(own, other func(h *host)) {
		for _, what := range []cession{keeps, toBetter} {
			for _, h := range p.own(t) {
				if p.cedes(t, h) == what {
					own(h)
				}
			}
			for _, h := range p.candidates(t) {
				if what == toBetter || p.serves(t, h, mayReplace) {
					other(h)
				}
			}
		}
	}
	turns(func(h *host) { all(h, least(p.held(t, h), p.left(h))) }, func(h *host) { all(h, p.left(h)) })
	if t.rule.Partial {
		turns(cut, cut)
	}
	asked, met = p.got(t), true
	for d, n := range t.rule.Amount {
		if named(d) {
			asked[d] = n
			met = met && rest[d] == 0
		}
	}
	return asked, met
}
