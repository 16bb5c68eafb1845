package plan

import "math"

// balance checks what the children of a consumer own of each group together against what it owns itself (MD-2), form by
// form, as far as both are counted alike: what depends on the hosts, `check --hosts` sees.
func (c *ownCheck) balance(up Node) {
	b := balance{ownCheck: c, up: up, at: up, who: "the children of " + c.p.Path[up], owns: "it owns"}
	if up == Root {
		b.at, b.who, b.owns = c.firstOwner(), "the first-level consumers", "it has"
		if b.at == None {
			return
		}
	}
	fits := true
	for b.g = range c.d.Groups {
		fits = b.hosts() && fits
		for b.d = range c.p.Dimensions {
			b.parts()
			if up != Root {
				b.amounts()
			}
		}
	}
	if fits {
		b.allHosts()
	}
}

// firstOwner is the first consumer of the first level that owns anything.
func (c *ownCheck) firstOwner() Node {
	at := c.p.First[Root]
	for at != None && (!c.d.Member[at] || len(c.w.Own[at]) == 0) {
		at = c.p.Next[at]
	}
	return at
}

// balance is a consumer and its children, of a group and a dimension.
type balance struct {
	*ownCheck
	up, at    Node
	who, owns string // in messages
	g, d      int
}

func (b *balance) group() *Group { return &b.p.Groups[b.ownCheck.d.Groups[b.g].Group] }

// below adds up a figure of the rules of all children.
func (b *balance) below(figure func(r *OwnRule) int64) (sum int64) {
	for n := b.p.First[b.up]; n != None; n = b.p.Next[n] {
		for i := range b.w.Own[n] {
			sum = saturated(sum, figure(&b.w.Own[n][i]))
		}
	}
	return sum
}

// own adds up a figure of the consumer's own rules of the group; Unlimited when one of them has it not, or a list may
// reach into the group.
func (b *balance) own(figure func(r *OwnRule) (n int64, ok bool)) (sum int64) {
	for i := range b.w.Own[b.up] {
		r := &b.w.Own[b.up][i]
		if r.HostList == nil && r.Group != b.g {
			continue
		}
		n, ok := figure(r)
		if !ok || r.HostList != nil {
			return Unlimited
		}
		sum = saturated(sum, n)
	}
	return sum
}

// hosts checks numbers and percentages of whole hosts of the group, and tells whether there is nothing to say of them.
func (b *balance) hosts() bool {
	limit, exact := Unlimited, true
	switch group := b.group(); {
	case b.up != Root:
		limit = b.groupHosts(b.up, b.g)
		exact = b.own(func(r *OwnRule) (int64, bool) { return r.Hosts, r.Hosts != Unlimited }) == limit
	case group.Hosts != nil:
		limit = int64(len(group.Hosts))
	}
	percent := b.below(func(r *OwnRule) int64 {
		if r.HostList != nil || r.Group != b.g {
			return 0
		}
		return max(r.Percent, 0)
	})
	count := b.below(func(r *OwnRule) int64 {
		switch {
		case r.HostList != nil || r.Group != b.g:
			return 0
		case r.Percent != Unlimited && limit != Unlimited && exact && percent <= 100*milli:
			return portion(limit, r.Percent)
		}
		return max(r.Hosts, 0)
	})
	if percent > 100*milli {
		b.say(b.at, "own", "%s own %s%% of group %s", b.who, decimal(percent), b.group().Name)
	}
	if limit != Unlimited && count > limit {
		b.say(b.at, "own", "%s own %d hosts of group %s, %s %d", b.who, count, b.group().Name, b.owns, limit)
		return false
	}
	return true
}

// allHosts checks the hosts of all groups together, those that lists name included.
func (b *balance) allHosts() {
	limit, owns := wholeHosts(b.w.Own[b.up]), b.owns
	if b.up == Root {
		limit, owns = Unlimited, "there are"
		if all := b.listed(); all != nil {
			limit = int64(len(all))
		}
	}
	named := map[string]bool{} // a host that two list is reported already
	count := b.below(func(r *OwnRule) int64 {
		for _, h := range r.HostList {
			named[h] = true
		}
		return max(r.Hosts, 0)
	})
	count = saturated(count, int64(len(named)))
	if limit != Unlimited && count > limit {
		b.say(b.at, "own", "%s own %d hosts, %s %d", b.who, count, owns, limit)
	}
}

// parts checks what rules take of each host.
func (b *balance) parts() {
	of := func(r *OwnRule) Part {
		if r.PerHost == nil || r.Group != b.g {
			return Part{Unlimited, Unlimited}
		}
		return r.PerHost[b.d]
	}
	name := b.p.Dimensions[b.d]
	if percent := b.below(func(r *OwnRule) int64 { return max(of(r).Percent, 0) }); percent > 100*milli {
		b.say(b.at, "own", "%s own %s%% of the %s of each host of group %s", b.who, decimal(percent), name,
			b.group().Name)
		return
	}
	has := b.own(func(r *OwnRule) (int64, bool) { return of(r).Amount, of(r).Amount != Unlimited })
	if b.up == Root || has == Unlimited {
		return
	}
	sum := b.below(func(r *OwnRule) int64 {
		if p := of(r); p.Percent != Unlimited {
			return portion(has, p.Percent)
		}
		return max(of(r).Amount, 0)
	})
	if sum > has {
		b.say(b.at, "own", "%s own %d %s of each host of group %s, %s %d", b.who, sum, name, b.group().Name, b.owns,
			has)
	}
}

// amounts checks aggregate amounts.
func (b *balance) amounts() {
	of := func(r *OwnRule) int64 {
		if r.Amount == nil || r.Group != b.g {
			return Unlimited
		}
		return r.Amount[b.d]
	}
	has := b.own(func(r *OwnRule) (int64, bool) { return of(r), of(r) != Unlimited })
	if sum := b.below(func(r *OwnRule) int64 { return max(of(r), 0) }); has != Unlimited && sum > has {
		b.say(b.at, "own", "%s own %d %s of group %s, %s %d", b.who, sum, b.p.Dimensions[b.d], b.group().Name, b.owns,
			has)
	}
}

// portion is a percentage, in thousandths of a percent, of a number, rounded down.
func portion(n, percent int64) int64 {
	const whole = 100 * milli
	if n/whole > math.MaxInt64/whole {
		return math.MaxInt64
	}
	return n/whole*percent + n%whole*percent/whole
}
