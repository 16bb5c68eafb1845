package cycle_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"pgregory.net/rapid"
)

// This file makes what consumers of MD plans own in random cases: first drawn freely, then cut down to what a policy
// may say.

var ownSituations = []string{
	"owned assigned", "owned trimmed", "owned stolen from a later rank", "owned a part", "owned by a child",
	"window switch", "short ownership_unmet", "grant owned", "grant public_pool", "relabel public_pool to public_pool",
	"relabel public_pool to owned", "relabel owned to public_pool", "relabel owned to private_pool", "own host_list",
	"own hosts", "own percent", "own amount", "own partial", "own per_host", "own percent of each host",
	"own remaining", "own several rules", "own reserve hosts", "own reserve percent", "own reserve amount",
	"own group preference", "own consumer preference", "own overlapping groups", "own rebalance",
	"short waiting_for_reclaim", "reclaim issued fair_share", "promised room", "md reclaim_budget: 1",
	"md release: confirmed", "md lead", "reclaim issued window_switch", "another host serves as well",
}

// cutMax is the last minute at which windows switch.
const cutMax = 12

// deed is what a consumer owns in a plan or one of its windows.
type deed struct {
	rules   []ownRule
	reserve string // "" for none
	rank    int    // in a window, -1: the plan's
	share   *share // in a window, nil: the plan's
}

// ownRule is one entry of `own`.
type ownRule struct {
	form    string // the key
	zone    int    // of its group; -1 for a host list
	n       int    // hosts, or percent
	hosts   []string
	parts   map[string]string // by dimension: of amount and per_host
	partial bool
}

// drawOwn draws a policy with MD plans whose consumers own hosts.
func drawOwn(t *rapid.T) site { return drawOwning(t, false) }

// drawOwning draws one for cases of lending or others.
func drawOwning(t *rapid.T, lend bool) site {
	s := site{own: true, lend: lend, dims: dimensions[:choose(t, "dimensions", 1, 2, 2, 3)],
		timezone: choose(t, "timezone", "UTC", "UTC", "UTC", "Asia/Kolkata")}
	plans := choose(t, "plans", 1, 1, 1, 2)
	s.drawGroups(t, plans+between(t, "groups", 0, 2))
	least := 2
	if s.waves = lend && once(t, "waves", 3); s.waves {
		least = len(wavesParent)
	}
	s.drawConsumers(t, between(t, "consumers", least, 8))
	for i := range plans {
		var zones []int
		for z := range s.groups {
			if z%plans == i && (z == i || !odds(t, "no group", 6)) {
				zones = append(zones, z)
			}
		}
		s.overlap(t, zones)
		m := s.drawPlan(t, fmt.Sprintf("p%d", i), zones)
		if once(t, "rebalance", 2) {
			m.settings = append(m.settings,
				fmt.Sprint("ownership_rebalance: ", choose(t, "ownership_rebalance", 1, 2, 3)))
		}
		m.preference = map[int]int{}
		for _, z := range m.zones {
			if once(t, "preference of a group", 3) {
				m.preference[z] = between(t, "preference", 1, 10)
			}
		}
		if once(t, "windows", 3) {
			m.cut = between(t, "cut", 2, cutMax)
			s.drawLead(t, &m)
		}
		s.plans = append(s.plans, m)
		s.drawDeeds(t, &s.plans[i])
	}
	return s
}

// dayLead is a lead by which the first window comes as soon as the second one is open, for the rest of a case.
const dayLead = 23 * 60

// drawLead draws how long before another window a plan prepares for it. Where there are waves it does not: there is
// nothing that one recall could take from another then.
func (s *site) drawLead(t *rapid.T, m *mdPlan) {
	if m.lead = 0; !s.waves && once(t, "lead", 2) {
		m.lead = choose(t, "minutes", 1, 2, 2, 3, 3, 5, 5, cutMax, dayLead)
	}
}

// second tells whether the second window is open in a minute of the case.
func (m *mdPlan) second(s *site, minute int) bool {
	evening := 22 * 60
	if s.timezone == "Asia/Kolkata" {
		evening -= 5*60 + 30
	}
	minute %= 24 * 60
	return m.cut > 0 && m.cut <= minute && minute < evening
}

// shareIn is the share of a member in a minute of the case.
func (m *mdPlan) shareIn(s *site, e *member, minute int) share {
	if m.second(s, minute) {
		if other := m.deeds[1][e.consumer].share; other != nil {
			return *other
		}
	}
	return e.share
}

// nears tells whether another window will be open a lead after a minute of the case.
func (m *mdPlan) nears(s *site, minute int) bool {
	return m.second(s, minute) != m.second(s, minute+m.lead)
}

// overlap lets a listed group of a plan have hosts of its other groups.
func (s *site) overlap(t *rapid.T, zones []int) {
	z := zones[len(zones)-1]
	if len(zones) < 2 || !once(t, "overlap", 2) {
		return
	}
	listed := len(s.groups[z].hosts) > 0
	for h := range hostsMax {
		if of := zoneOf(h, len(s.groups)); of == z && !listed ||
			of != z && slices.Contains(zones, of) && once(t, "also", 3) {
			s.groups[z].hosts = append(s.groups[z].hosts, hostName(h))
		}
	}
}

// drawDeeds draws what members of a plan own, in every window.
func (s *site) drawDeeds(t *rapid.T, m *mdPlan) {
	m.deeds = []map[int]*deed{{}}
	for k := range m.members {
		m.deeds[0][m.members[k].consumer] = s.drawDeed(t, m)
		m.members[k].preference = nil
		for _, z := range m.zones {
			if once(t, "consumer's preference", 8) {
				if m.members[k].preference == nil {
					m.members[k].preference = map[int]int{}
				}
				m.members[k].preference[z] = between(t, "preference", 1, 10)
			}
		}
	}
	s.settleDeeds(t, m)
}

// settleDeeds gives the second window its own variant, where there is one, and tidies all.
func (s *site) settleDeeds(t *rapid.T, m *mdPlan) {
	m.deeds = m.deeds[:1]
	if m.cut > 0 {
		other := map[int]*deed{}
		for _, e := range m.members {
			copied := *m.deeds[0][e.consumer]
			if other[e.consumer] = &copied; once(t, "window of its own", 3) {
				other[e.consumer] = s.drawDeed(t, m)
			}
			if once(t, "window's rank", 6) {
				other[e.consumer].rank = between(t, "rank", 0, 3)
			}
			if !s.waves && once(t, "window's share", 6) {
				share := s.drawShare(t)
				other[e.consumer].share = &share
			}
		}
		m.deeds = append(m.deeds, other)
	}
	for _, deeds := range m.deeds {
		s.tidy(m, deeds)
	}
	for _, e := range m.members { // nothing may be reserved where nothing is owned, and a window cannot take a key away
		if slices.ContainsFunc(m.deeds, func(deeds map[int]*deed) bool { return len(deeds[e.consumer].rules) == 0 }) {
			for _, deeds := range m.deeds {
				deeds[e.consumer].reserve = ""
			}
		}
	}
}

func (s *site) drawDeed(t *rapid.T, m *mdPlan) *deed {
	d := &deed{rank: -1}
	for range choose(t, "rules", 0, 0, 1, 1, 1, 2, 3) {
		d.rules = append(d.rules, s.drawRule(t, m))
	}
	switch between(t, "reserve", 0, 7) {
	case 0:
		d.reserve = fmt.Sprintf("hosts: %d", between(t, "reserved hosts", 0, 2))
	case 1:
		d.reserve = fmt.Sprintf("percent: %d", choose(t, "reserved percent", 0, 30, 50, 100))
	case 2:
		d.reserve = fmt.Sprintf("amount: {%s: %d}", choose(t, "reserved dimension", s.dims...),
			between(t, "reserved", 0, 6))
	}
	return d
}

func (s *site) drawRule(t *rapid.T, m *mdPlan) ownRule {
	r := ownRule{form: choose(t, "form", "host_list", "hosts", "hosts", "percent", "amount", "amount", "per_host",
		"per_host", "remaining"),
		zone: choose(t, "of group", m.zones...)}
	parts := func(of func() string) {
		r.parts = map[string]string{}
		for range choose(t, "named", 1, 1, 2) {
			r.parts[choose(t, "named dimension", s.dims...)] = of()
		}
	}
	switch r.form {
	case "host_list":
		r.zone = -1
		for h := range hostsMax {
			if slices.Contains(m.zones, zoneOf(h, len(s.groups))) && once(t, "listed host", 5) {
				r.hosts = append(r.hosts, hostName(h))
			}
		}
		if len(r.hosts) > 1 && once(t, "other order", 3) {
			slices.Reverse(r.hosts)
		}
	case "hosts":
		r.n = choose(t, "own hosts", 0, 1, 1, 1, 2, 2, 3)
	case "percent":
		r.n = choose(t, "own percent", 20, 34, 50, 50, 67, 100)
	case "amount":
		parts(func() string { return fmt.Sprint(between(t, "amount", 1, 14)) })
		r.partial = !once(t, "whole", 3)
	case "per_host":
		parts(func() string {
			return choose(t, "part", "1", "2", "3", "25%", "50%", "33.3%", "70%", "100%")
		})
	}
	return r
}

// tidy cuts what consumers own down to what a policy may say (core/plan/own.go), parents first.
func (s *site) tidy(m *mdPlan, deeds map[int]*deed) {
	kids, listed := map[int][]ownRule{}, map[int]map[string]bool{} // by parent
	for _, e := range m.members {                                  // in the order of consumers, parents before children
		d, up := deeds[e.consumer], s.consumers[e.consumer].parent
		var parent []ownRule
		if up >= 0 {
			parent = deeds[up].rules
		}
		if listed[up] == nil {
			listed[up] = map[string]bool{}
		}
		d.rules = slices.DeleteFunc(slices.Clone(d.rules), func(r ownRule) bool {
			return up >= 0 && !within(&r, parent)
		})
		var kept []ownRule
		for _, r := range d.rules {
			if r.form == "host_list" {
				r.hosts = slices.DeleteFunc(slices.Clone(r.hosts), func(h string) bool {
					return listed[up][h] || up >= 0 && !reaches(parent, h)
				})
			}
			if all := append(slices.Clone(kids[up]), r); r.form == "host_list" && len(r.hosts) == 0 ||
				!s.balanced(m, up, &r, parent, all) {
				continue
			}
			for _, h := range r.hosts {
				listed[up][h] = true
			}
			kids[up] = append(kids[up], r)
			kept = append(kept, r)
		}
		d.rules = kept
		d.reserve = s.tidyReserve(d)
	}
}

// balanced tells whether the rules of a consumer's children fit what it owns, as far as the policy file tells; r is the
// last of them.
func (s *site) balanced(m *mdPlan, up int, r *ownRule, parent, all []ownRule) bool {
	most := s.groupHosts(up, r.zone, parent)
	exact := !slices.ContainsFunc(parent, func(p ownRule) bool { return p.form == "host_list" })
	whole, total := 0, 0 // hosts that all have, and that they may have
	percent, hosts, of := 0, 0, map[string]int{}
	for _, o := range all {
		if o.form == "hosts" || o.form == "host_list" {
			total += o.n + len(o.hosts)
		}
		if o.zone != r.zone {
			continue
		}
		switch o.form {
		case "hosts":
			hosts += o.n
		case "percent":
			percent += o.n
			if exact && most >= 0 {
				hosts += most * o.n / 100
			}
		case "amount", "per_host":
			for d, text := range o.parts {
				if figure, share := strings.CutSuffix(text, "%"); share {
					n, _ := strconv.ParseFloat(figure, 64)
					of["% "+d] += int(n*1000 + 0.5)
				} else {
					n, _ := strconv.Atoi(text)
					of[o.form+" "+d] += n
				}
			}
		}
	}
	if up < 0 {
		there := map[string]bool{} // groups may overlap
		for _, z := range m.zones {
			for _, h := range s.groups[z].hosts {
				there[h] = true
			}
			if len(s.groups[z].hosts) == 0 {
				total = 0 // a group that selects has any number
			}
		}
		whole = len(there)
	}
	for _, p := range parent {
		if whole += p.n + len(p.hosts); p.form != "hosts" && p.form != "host_list" {
			total = 0
		}
	}
	for _, d := range s.dims {
		if of["% "+d] > 100_000 {
			return false
		}
		for _, form := range []string{"amount", "per_host"} {
			has, known := 0, up >= 0
			for _, p := range parent {
				n, err := strconv.Atoi(p.parts[d])
				known = known && p.form != "host_list" && (p.zone != r.zone || p.form == form && err == nil)
				if p.zone == r.zone {
					has += n
				}
			}
			if form == "per_host" && of["% "+d] > 0 && known {
				return false // an absolute part and percentages of it
			}
			if known && of[form+" "+d] > has {
				return false
			}
		}
	}
	return percent <= 100 && (most < 0 || hosts <= most) && total <= whole
}

// within tells whether a rule may stand below a parent's.
func within(r *ownRule, parent []ownRule) bool {
	return slices.ContainsFunc(parent, func(p ownRule) bool {
		return p.form == "host_list" || r.form == "host_list" || p.zone == r.zone
	})
}

// reaches tells whether a parent's rules may give a host.
func reaches(parent []ownRule, host string) bool {
	return slices.ContainsFunc(parent, func(p ownRule) bool {
		return p.form != "host_list" || slices.Contains(p.hosts, host)
	})
}

// groupHosts is how many hosts of a group a consumer's children may own, -1 when that is not known.
func (s *site) groupHosts(up, zone int, parent []ownRule) int {
	if zone < 0 {
		return -1
	}
	if up < 0 {
		if n := len(s.groups[zone].hosts); n > 0 {
			return n
		}
		return -1
	}
	sum := 0
	for _, r := range parent {
		switch {
		case r.form == "host_list":
			sum += len(r.hosts)
		case r.zone != zone:
		case r.form == "hosts":
			sum += r.n
		default:
			return -1
		}
	}
	return sum
}

// tidyReserve is a reserve that fits what is owned, where that is counted alike.
func (s *site) tidyReserve(d *deed) string {
	form, most, _ := strings.Cut(d.reserve, ": ")
	if len(d.rules) == 0 {
		return ""
	}
	hosts, counted, amounts := 0, true, true
	for _, r := range d.rules {
		hosts += r.n + len(r.hosts)
		counted = counted && (r.form == "hosts" || r.form == "host_list")
		amounts = amounts && r.form == "amount"
	}
	switch {
	case form == "hosts" && counted && most > fmt.Sprint(hosts): // one digit each
		return fmt.Sprintf("hosts: %d", hosts)
	case form == "amount" && amounts:
		return "percent: 40"
	}
	return d.reserve
}

// ownText is what a consumer owns as keys of its entry.
func (s *site) ownText(d *deed) string {
	var list []string
	for _, r := range d.rules {
		var value string
		switch r.form {
		case "host_list":
			value = "[" + strings.Join(r.hosts, ", ") + "]"
		case "hosts", "percent":
			value = fmt.Sprint(r.n)
		case "remaining":
			value = "true"
		default:
			var parts []string
			for _, d := range slices.Sorted(maps.Keys(r.parts)) {
				parts = append(parts, d+": "+r.parts[d])
			}
			value = "{" + strings.Join(parts, ", ") + "}"
		}
		text := r.form + ": " + value
		if r.zone >= 0 {
			text = fmt.Sprintf("group: g%d, %s", r.zone, text)
		}
		if r.partial {
			text += ", partial: true"
		}
		list = append(list, "{"+text+"}")
	}
	text := ", own: [" + strings.Join(list, ", ") + "]"
	if d.reserve != "" {
		text += ", reserve: {" + d.reserve + "}"
	}
	return text
}

// preferText is preferences as a key of a consumer's entry.
func preferText(by map[int]int) string {
	var list []string
	for _, z := range slices.Sorted(maps.Keys(by)) {
		list = append(list, fmt.Sprintf("g%d: %d", z, by[z]))
	}
	if len(list) == 0 {
		return ""
	}
	return ", preference: {" + strings.Join(list, ", ") + "}"
}

// writeOwnWindows writes the two windows of an MD plan: the first one began in the evening before.
func (s *site) writeOwnWindows(b *strings.Builder, m *mdPlan) {
	if m.cut == 0 {
		return
	}
	at := fmt.Sprintf("00:%02d", m.cut)
	if s.timezone == "Asia/Kolkata" {
		at = fmt.Sprintf("05:%02d", 30+m.cut)
	}
	if m.lead > 0 {
		fmt.Fprintf(b, "    lead: %dm\n", m.lead)
	}
	fmt.Fprintf(b, "    windows:\n      - {name: early, hours: \"22:00-%s\"}\n      - name: late\n        hours: "+
		"\"%s-22:00\"\n        consumers:\n", at, at)
	for _, e := range m.members {
		d := m.deeds[1][e.consumer]
		rank, reserve := "", ""
		if d.rank >= 0 {
			rank = fmt.Sprintf(", rank: %d", d.rank)
		}
		if d.reserve == "" && m.deeds[0][e.consumer].reserve != "" {
			reserve = ", reserve: {percent: 0}" // a key that is left out would be the plan's
		}
		share := ""
		if d.share != nil {
			share = ", " + d.share.text()
		}
		fmt.Fprintf(b, "          - {path: %s%s%s%s%s}\n", s.consumers[e.consumer].path, rank, s.ownText(d), reserve,
			share)
	}
}

// reviseOwn changes what consumers own, ranks and windows.
func (s *site) reviseOwn(t *rapid.T) {
	for i := range s.plans {
		m := &s.plans[i]
		if m.deeds == nil || s.devices {
			continue
		}
		if s.lend {
			s.drawGraces(t, m)
		}
		if once(t, "other windows", 3) {
			m.cut = choose(t, "cut", 0, 3, 6, 9, cutMax)
			s.drawLead(t, m)
		}
		for k := range m.members {
			if once(t, "rank changes", 5) {
				m.members[k].rank = between(t, "rank", 0, 3)
			}
		}
		if once(t, "other history", 4) {
			m.drawHistory(t)
		}
		if once(t, "all change", 4) {
			s.drawDeeds(t, m)
			continue
		}
		for _, e := range m.members { // here and there another list, else the same
			if once(t, "owns something else", 4) {
				m.deeds[0][e.consumer] = s.drawDeed(t, m)
			}
		}
		s.settleDeeds(t, m)
	}
}

// countDeeds counts what a plan says of ownership.
func (s *site) countDeeds(m *mdPlan, n map[string]int) {
	add := func(name string, is bool) {
		if is {
			n[name]++
		}
	}
	for _, line := range m.settings {
		add("own rebalance", strings.HasPrefix(line, "ownership_rebalance"))
	}
	add("md lead", m.cut > 0 && m.lead > 0)
	add("own group preference", len(m.preference) > 0)
	for h := range hostsMax {
		home := zoneOf(h, len(s.groups))
		add("own overlapping groups", slices.ContainsFunc(m.zones, func(z int) bool {
			return z != home && slices.Contains(m.zones, home) && slices.Contains(s.groups[z].hosts, hostName(h))
		}))
	}
	for _, e := range m.members {
		add("own consumer preference", len(e.preference) > 0)
	}
	for _, deeds := range m.deeds {
		for _, d := range deeds {
			add("own several rules", len(d.rules) > 1)
			form, _, _ := strings.Cut(d.reserve, ":")
			n["own reserve "+form]++
			for _, r := range d.rules {
				n["own "+r.form]++
				add("own partial", r.partial)
				add("own percent of each host", strings.Contains(fmt.Sprint(r.parts), "%"))
			}
		}
	}
}

// switches tells whether a window of the first hour is yet to begin.
func (p *player) switches() bool {
	return slices.ContainsFunc(p.plans, func(m mdPlan) bool { return int64(m.cut) > (p.nowUS-startUS)/60e6 })
}

// switched tells whether the last cycle was the first one of a window, or of what is done before one comes.
func (p *player) switched() bool {
	minute := int((p.nowUS - startUS) / 60e6)
	return slices.ContainsFunc(p.plans, func(m mdPlan) bool {
		return m.second(&p.site, minute) != m.second(&p.site, minute-1) ||
			m.nears(&p.site, minute) != m.nears(&p.site, minute-1)
	})
}
