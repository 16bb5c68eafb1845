package plan

import (
	"fmt"
	"strings"
)

var (
	ownForms = []string{"hosts", "percent", "host_list", "amount", "remaining", "per_host"}

	noReserve = Reserve{Hosts: Unlimited, Percent: Unlimited}
)

// own reads the rules of what a consumer owns (MD-1).
func (r *reader) own(p *Policy, d *MDPlan, v value) []OwnRule {
	list, _ := r.list(v, ownRulesMax)
	out := make([]OwnRule, 0, len(list))
	for _, one := range list {
		if rule, ok := r.ownRule(p, d, one); ok {
			out = append(out, rule)
		}
	}
	return out
}

func (r *reader) ownRule(p *Policy, d *MDPlan, v value) (rule OwnRule, ok bool) {
	rule = OwnRule{Group: -1, Hosts: Unlimited, Percent: Unlimited, Line: v.line()}
	f, ok := r.fields(v, ownObject.names...)
	if !ok {
		return rule, false
	}
	form := ""
	for _, key := range ownForms {
		if at, has := f.get(key); has && form == "" {
			form = key
			ok = r.ownForm(p, &rule, key, at)
		} else if has {
			r.fault(at, "the entry has %s already; it takes one of hosts, percent, host_list, amount, "+
				"remaining, per_host", form)
			ok = false
		}
	}
	if form == "" {
		r.fault(v, "the entry needs one of hosts, percent, host_list, amount, remaining, per_host")
		return rule, false
	}
	if at, has := f.get("partial"); has {
		rule.Partial, _ = r.boolean(at)
		if form != "amount" {
			r.fault(at, "partial goes with amount only")
		}
	}
	at, grouped := f.get("group")
	switch {
	case form == "host_list" && grouped:
		r.fault(at, "a host_list has no group")
	case form == "host_list":
	case !grouped:
		r.fault(v, "group is missing")
		ok = false
	default:
		g, found := r.planGroup(p, at)
		if found {
			if rule.Group = d.group(g); rule.Group < 0 {
				r.fault(at, "the group is none of the plan's resource_groups")
			}
		}
		ok = ok && rule.Group >= 0
	}
	return rule, ok
}

// ownForm reads the key that makes the rule's form.
func (r *reader) ownForm(p *Policy, rule *OwnRule, key string, v value) (ok bool) {
	switch key {
	case "hosts":
		rule.Hosts, ok = r.whole(v)
	case "percent":
		rule.Percent, ok = r.percent(v)
	case "host_list":
		rule.HostList, ok = r.names(v, hostsMax)
		if ok && len(rule.HostList) == 0 {
			r.fault(v, "the list is empty")
			ok = false
		}
	case "amount":
		rule.Amount, ok = r.amounts(p, v), true
	case "remaining":
		rule.Remaining, ok = r.boolean(v)
		if ok && !rule.Remaining {
			r.fault(v, "must be true; leave the entry out otherwise")
			ok = false
		}
	case "per_host":
		rule.PerHost, ok = filled(len(p.Dimensions), Part{Unlimited, Unlimited}), true
		r.perDimension(p, v, func(d int, at value) { rule.PerHost[d] = r.part(at) })
	}
	return ok
}

// part reads an amount of each host, or a percentage such as 25%.
func (r *reader) part(v value) Part {
	if kindName(v.node) == "text" {
		if n, ok := r.percent(v); ok {
			return Part{Unlimited, n}
		}
		return Part{Unlimited, Unlimited}
	}
	return Part{r.limit(v), Unlimited}
}

// reserve reads what of the owned is never lent (MD-5).
func (r *reader) reserve(p *Policy, v value) Reserve {
	out := noReserve
	f, ok := r.fields(v, reserveObject.names...)
	if !ok {
		return out
	}
	if len(f) != 1 {
		r.fault(v, "must have one of hosts, percent, amount")
		return out
	}
	switch f[0].key {
	case "hosts":
		out.Hosts = r.limit(f[0].value)
	case "percent":
		if n, ok := r.percent(f[0].value); ok {
			out.Percent = n
		}
	case "amount":
		out.Amount = r.amounts(p, f[0].value)
	}
	return out
}

// ownCheck checks the merged ownership of one window of an MD plan, as far as
// that can be told without hosts (MD-2, MD-5).
type ownCheck struct {
	check
	d *MDPlan
	w *MDWindow
}

func (c *ownCheck) all() {
	listed := c.listed()
	for n := Node(0); int(n) < c.p.Len(); n++ {
		if !c.d.Member[n] {
			continue
		}
		if c.p.First[n] != None {
			c.children(n)
		}
		if n == Root {
			continue
		}
		if listed != nil {
			c.known(n, listed)
		}
		c.reserved(n)
	}
}

// listed gives the hosts of the plan when all its groups list theirs, else nil.
func (c *ownCheck) listed() map[string]bool {
	hosts := map[string]bool{}
	for _, g := range c.d.Groups {
		if c.p.Groups[g.Group].Hosts == nil {
			return nil
		}
		for _, h := range c.p.Groups[g.Group].Hosts {
			hosts[h] = true
		}
	}
	return hosts
}

// known checks that the hosts a consumer lists are hosts of the plan.
func (c *ownCheck) known(n Node, listed map[string]bool) {
	for _, rule := range c.w.Own[n] {
		for _, h := range rule.HostList {
			if !listed[h] {
				c.say(n, "own", "%s owns host %s, which is in no resource group of the plan", c.p.Path[n], h)
				return
			}
		}
	}
}

// reserved checks a reserve against what is owned where both are counted alike.
func (c *ownCheck) reserved(n Node) {
	res, own := c.w.Reserve[n], c.w.Own[n]
	if res.Hosts == Unlimited && res.Percent == Unlimited && res.Amount == nil {
		return
	}
	if len(own) == 0 {
		c.say(n, "reserve", "%s has a reserve, but owns nothing", c.p.Path[n])
		return
	}
	if hosts := wholeHosts(own); res.Hosts != Unlimited && hosts != Unlimited && res.Hosts > hosts {
		c.say(n, "reserve", "%s reserves %d hosts, it owns %d", c.p.Path[n], res.Hosts, hosts)
	}
	for d, want := range res.Amount {
		var sum int64
		for _, rule := range own {
			if rule.Amount == nil || rule.Amount[d] == Unlimited {
				sum = Unlimited
				break
			}
			sum = saturated(sum, rule.Amount[d])
		}
		if want != Unlimited && sum != Unlimited && want > sum {
			c.say(n, "reserve", "%s reserves %d %s, it owns %d", c.p.Path[n], want, c.p.Dimensions[d], sum)
		}
	}
}

// wholeHosts is the number of hosts that rules give, Unlimited when one of them is no number of hosts.
func wholeHosts(own []OwnRule) (hosts int64) {
	for _, rule := range own {
		switch {
		case rule.HostList != nil:
			hosts = saturated(hosts, int64(len(rule.HostList)))
		case rule.Hosts != Unlimited:
			hosts = saturated(hosts, rule.Hosts)
		default:
			return Unlimited
		}
	}
	return hosts
}

// children checks what the children of a consumer own against what it owns itself; the root owns all.
func (c *ownCheck) children(up Node) {
	whole := c.domain(up)
	lister := map[string]Node{} // host → the child that lists it
	within := true
	for n := c.p.First[up]; n != None; n = c.p.Next[n] {
		own := c.w.Own[n]
		if len(own) == 0 {
			continue
		}
		if up != Root && !c.within(n, up, whole) {
			within = false
			continue
		}
		for _, rule := range own {
			c.lists(n, rule, lister)
		}
	}
	if within && !c.accepted {
		c.balance(up)
	}
}

// groupHosts is how many hosts of a group a consumer can own at most, Unlimited when its rules do not tell.
func (c *ownCheck) groupHosts(n Node, g int) (hosts int64) {
	for _, rule := range c.w.Own[n] {
		switch {
		case rule.HostList != nil:
			hosts = saturated(hosts, int64(len(rule.HostList)))
		case rule.Group != g:
		case rule.Hosts != Unlimited:
			hosts = saturated(hosts, rule.Hosts)
		default:
			return Unlimited
		}
	}
	return hosts
}

// lists notes the hosts that a child lists; two siblings cannot own the same host.
func (c *ownCheck) lists(n Node, rule OwnRule, lister map[string]Node) {
	for _, h := range rule.HostList {
		if other, twice := lister[h]; twice {
			c.say(n, "own", "%s lists host %s, which %s lists too", c.p.Path[n], h, c.p.Path[other])
			return
		}
		lister[h] = n
	}
}

// domain is what a consumer owns, as its children's rules are checked against it.
type domain struct {
	groups    []bool          // by group of the plan: some rule is of it
	lists     bool            // some rule is a host list: it may reach into every group
	listsOnly map[string]bool // the hosts, when all rules are host lists
}

func (c *ownCheck) domain(n Node) (d domain) {
	d.groups, d.listsOnly = make([]bool, len(c.d.Groups)), map[string]bool{}
	for _, rule := range c.w.Own[n] {
		if rule.HostList == nil {
			d.groups[rule.Group], d.listsOnly = true, nil
		}
		d.lists = d.lists || rule.HostList != nil
	}
	if d.listsOnly != nil {
		for _, rule := range c.w.Own[n] {
			for _, h := range rule.HostList {
				d.listsOnly[h] = true
			}
		}
	}
	return d
}

// within checks that what a child owns can be part of what its parent owns.
func (c *ownCheck) within(n, up Node, whole domain) bool {
	if len(c.w.Own[up]) == 0 {
		c.say(n, "own", "%s owns hosts, its parent %s owns none", c.p.Path[n], c.p.Path[up])
		return false
	}
	for _, rule := range c.w.Own[n] {
		if rule.HostList == nil && !whole.lists && !whole.groups[rule.Group] {
			c.say(n, "own", "%s owns of group %s, of which its parent %s owns nothing", c.p.Path[n],
				c.p.Groups[c.d.Groups[rule.Group].Group].Name, c.p.Path[up])
			return false
		}
		if whole.listsOnly == nil {
			continue
		}
		for _, h := range rule.HostList {
			if !whole.listsOnly[h] {
				c.say(n, "own", "%s lists host %s, which its parent %s does not", c.p.Path[n], h, c.p.Path[up])
				return false
			}
		}
	}
	return true
}

// RuleText is a consumer's list of rules as a text that is the same for lists that mean the same, in whatever
// revision of the policy: groups and dimensions stand in it by their names.
func (p *Policy) RuleText(m *MDPlan, rules []OwnRule) string {
	var b strings.Builder
	for _, r := range rules {
		group := ""
		if r.Group >= 0 {
			group = p.Groups[m.Groups[r.Group].Group].Name
		}
		fmt.Fprintf(&b, "%q %q %d %d %t %t", group, r.HostList, r.Hosts, r.Percent, r.Remaining, r.Partial)
		for d, v := range r.Amount {
			if v != Unlimited {
				fmt.Fprintf(&b, " %s=%d", p.Dimensions[d], v)
			}
		}
		for d, v := range r.PerHost {
			if v.Amount != Unlimited || v.Percent != Unlimited {
				fmt.Fprintf(&b, " %s:%d,%d", p.Dimensions[d], v.Amount, v.Percent)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
