package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kinds of Change.
const (
	Added   = "added"
	Removed = "removed"
	Renamed = "renamed"
	Changed = "changed"
)

// Change is one thing in which a policy differs from another, in the words of the policy file.
type Change struct {
	Kind  string `json:"kind"`            // added, removed, renamed, changed
	Where string `json:"where"`           // such as "consumer /A" or "plan G, window night, /A"
	Key   string `json:"key,omitempty"`   // of a change: the key
	Was   string `json:"was,omitempty"`   // its value before; of what is renamed, the name
	Is    string `json:"is,omitempty"`    // its value now; of what is added, its keys that have not their defaults
	Plan  string `json:"plan,omitempty"`  // the plan, where it is in one
	About string `json:"about,omitempty"` // the consumer, where it is about one
}

// String is the change in a line.
func (c Change) String() string {
	switch {
	case c.Kind == Changed:
		return fmt.Sprintf("%s: %s %s → %s", c.Where, c.Key, orNone(c.Was), orNone(c.Is))
	case c.Kind == Renamed:
		return fmt.Sprintf("%s: was %s", c.Where, c.Was)
	case c.Is != "":
		return fmt.Sprintf("%s %s: %s", c.Where, c.Kind, c.Is)
	}
	return c.Where + " " + c.Kind
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// fact is a key with its value as text, and whether that is the default.
type fact struct {
	key, value string
	usual      bool
}

// item is something of a policy that has keys, in each time window if it has windows. Items that are the same in two
// policies have facts of the same keys, in the same order.
type item struct {
	name        string // what it is called, but for the consumer that it is about
	plan, about string
	windows     []string                      // "" alone: it has none
	facts       func(w int, to []fact) []fact // appends those in a window: they are made when they are compared
}

// where names the item in a window; "" is all.
func (it *item) where(window string) string {
	switch {
	case it.about == "" || it.plan == "":
		return it.name + it.about
	case window == "":
		return it.name + ", " + it.about
	}
	return it.name + ", window " + window + ", " + it.about
}

// rows are an item's facts by window, in the memory of others that are not needed any more.
func (it *item) rows(to [][]fact) [][]fact {
	to = slices.Grow(to[:0], len(it.windows))[:len(it.windows)]
	for w := range to {
		to[w] = it.facts(w, to[w][:0])
	}
	return to
}

// wholeDay are the windows of an item that has none.
var wholeDay = []string{""}

// simple is an item without windows.
func simple(name, plan string, facts ...fact) item {
	return item{name: name, plan: plan, windows: wholeDay,
		facts: func(_ int, to []fact) []fact { return append(to, facts...) }}
}

// pair is a window of an item in two policies; before is -1 where there was none.
type pair struct {
	window        string
	before, after int
}

// pairs finds for each window what to compare it with: the window of the same name, or what held all day.
func (it *item) pairs(then *item) (list []pair) {
	for w, name := range it.windows {
		at := slices.Index(then.windows, name)
		switch {
		case at >= 0:
			list = append(list, pair{name, at, w})
		case slices.Contains(then.windows, ""):
			list = append(list, pair{name, slices.Index(then.windows, ""), w})
		case name == "":
			for at, old := range then.windows {
				list = append(list, pair{old, at, w})
			}
		default:
			list = append(list, pair{name, -1, w})
		}
	}
	return list
}

// Difference lists what differs between two policies: items that came and went, and keys that have other values, once
// where that is so in all windows. The order is that of the later file; what went comes last. The first changes are
// listed, most at most; count is the number of all. was is nil where there was no policy: all came. Time: consumers ×
// plans × windows.
func Difference(was, is *Policy, most int) (list []Change, count int) {
	tell := func(more ...Change) {
		count += len(more)
		list = append(list, more[:min(len(more), most-len(list))]...)
	}
	if was == nil {
		is.items(same, func(now item) { tell(now.whole(Added)...) })
		return list, count
	}
	if was.Digest == is.Digest {
		return nil, 0
	}
	heirs := map[string]string{} // old path → new path
	for n, from := range is.RenamedFrom {
		if _, ok := was.Find(from); from != "" && ok {
			heirs[from] = is.Path[n]
			tell(Change{Kind: Renamed, Where: "consumer " + is.Path[n], Was: from, About: is.Path[n]})
		}
	}
	var before []item
	was.items(func(path string) string {
		if to, ok := heirs[path]; ok {
			return to
		}
		return path
	}, func(then item) { before = append(before, then) })
	old := make(map[[2]string]*item, len(before))
	for i := range before {
		old[before[i].key()] = &before[i]
	}
	c := &comparer{}
	is.items(same, func(now item) {
		if then, ok := old[now.key()]; ok {
			delete(old, now.key())
			tell(c.since(&now, then)...)
			return
		}
		tell(now.whole(Added)...)
	})
	for i := range before {
		if it := &before[i]; old[it.key()] != nil {
			tell(it.whole(Removed)...)
		}
	}
	return list, count
}

// same names a consumer by its own path.
func same(path string) string { return path }

// key is what an item is known by in both policies.
func (it *item) key() [2]string { return [2]string{it.name, it.about} }

// whole tells that the item came or went.
func (it *item) whole(kind string) (list []Change) {
	for w, name := range it.windows {
		c := Change{Kind: kind, Where: it.where(name), Is: unusual(it.facts(w, nil)), Plan: it.plan, About: it.about}
		list = append(list, c)
	}
	return it.once(list, len(it.windows))
}

// comparer compares items, one after another: it keeps the memory of their facts.
type comparer struct{ then, now [][]fact }

// since tells what changed of an item.
func (c *comparer) since(it, then *item) (list []Change) {
	pairs := it.pairs(then)
	c.then, c.now = then.rows(c.then), it.rows(c.now)
	for k := range c.now[0] {
		var of []Change
		for _, p := range pairs {
			if p.before < 0 {
				continue
			}
			if a, b := c.then[p.before][k], c.now[p.after][k]; a.value != b.value {
				of = append(of, Change{Changed, it.where(p.window), b.key, a.value, b.value, it.plan, it.about})
			}
		}
		list = append(list, it.once(of, len(pairs))...)
	}
	for _, p := range pairs {
		if p.before < 0 {
			is := unusual(c.now[p.after])
			list = append(list, Change{Kind: Added, Where: it.where(p.window), Is: is, Plan: it.plan, About: it.about})
		}
	}
	return list
}

// once tells changes that are the same in all windows without their windows.
func (it *item) once(list []Change, windows int) []Change {
	if len(list) < 2 || len(list) < windows {
		return list
	}
	for _, c := range list {
		if c.Was != list[0].Was || c.Is != list[0].Is {
			return list
		}
	}
	list[0].Where = it.where("")
	return list[:1]
}

// unusual is what keys have not their defaults.
func unusual(facts []fact) string {
	var parts []string
	for _, f := range facts {
		if !f.usual {
			parts = append(parts, f.key+" "+f.value)
		}
	}
	return strings.Join(parts, ", ")
}

// items adds all that a policy has keys for; named gives the path by which a consumer is told.
func (p *Policy) items(named func(path string) string, add func(item)) {
	add(simple("policy", "",
		textFact("cluster", p.Cluster, ""), textFact("timezone", zoneName(p.Location), "UTC"),
		durationFact("interval", p.IntervalUS, time.Minute.Microseconds()),
		textFact("dimensions", strings.Join(p.Dimensions, ", "), "")))
	for i := range p.Groups {
		g := &p.Groups[i]
		add(simple("resource group "+g.Name, "",
			textFact("hosts", strings.Join(g.Hosts, ", "), ""), textFact("select", g.Select.text(), ""),
			textFact("slots", g.Slots.text(), "")))
	}
	for n := Root + 1; int(n) < p.Len(); n++ {
		add(item{name: "consumer ", about: named(p.Path[n]), windows: wholeDay, facts: func(_ int, to []fact) []fact {
			return append(to, numberFact("rank", int64(p.Rank[n]), 0), durationFact("reclaim_grace", p.ReclaimUS[n], 0),
				durationFact("min_runtime", p.RuntimeUS[n], 0), textFact("admins", strings.Join(p.Admins[n], ", "), ""),
				textFact("users", strings.Join(p.Users[n], ", "), ""), flagFact("system", p.System[n], false))
		}})
	}
	for _, d := range p.Divisions {
		add(simple("division "+d.Name, "", textFact("plans", strings.Join(d.Plans, ", "), "")))
	}
	for i := range p.SlotPlans {
		p.slotItems(&p.SlotPlans[i], named, add)
	}
	for i := range p.MDPlans {
		p.mdItems(&p.MDPlans[i], named, add)
	}
}

func zoneName(at *time.Location) string {
	if at == nil {
		return "UTC"
	}
	return at.String()
}

// text is the requirement as it was written; "" where there is none.
func (q *Requirement) text() string {
	if q == nil {
		return ""
	}
	return q.Text
}

func textFact(key, value, usual string) fact { return fact{key, value, value == usual} }
func flagFact(key string, value, usual bool) fact {
	return fact{key, strconv.FormatBool(value), value == usual}
}

func numberFact(key string, value, usual int64) fact {
	if value == Unlimited && usual == Unlimited {
		return fact{key, "", true}
	}
	return fact{key, strconv.FormatInt(value, 10), value == usual}
}

func durationFact(key string, us, usual int64) fact {
	if us == Unlimited {
		return fact{key, "", usual == Unlimited}
	}
	return fact{key, Lasting(us), us == usual}
}

// Lasting is a duration in µs as a policy file has it: 5m, not 5m0s.
func Lasting(us int64) string {
	text := (time.Duration(us) * time.Microsecond).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

func (p *Policy) slotItems(s *SlotPlan, named func(string) string, add func(item)) {
	name := p.Groups[s.Group].Name
	where := "plan " + name
	add(simple(where, name,
		numberFact("configured_slots", s.ConfiguredSlots, Unlimited),
		flagFact("allow_overcommit", s.AllowOvercommit, false),
		textFact("placement", s.Placement.String(), "stacked"), textFact("exclusive", s.ExclusiveBy, "allocation"),
		textFact("recall", pick(s.RecallFirst, "before_borrow", "last"), "last"),
		flagFact("share_reclaim", s.ShareReclaim, true),
		textFact("share_quota", pick(s.StaticQuota, "static", "dynamic"), "dynamic"),
		flagFact("distribute_evenly", s.DistributeEvenly, false),
		flagFact("disable_reclaim_on_shrink", s.NoShrinkReclaim, false),
		numberFact("reclaim_budget", s.ReclaimBudget, Unlimited),
		textFact("release", pick(s.ReleaseConfirmed, "confirmed", "assumed"), "assumed"),
		durationFact("overdue_after", s.OverdueAfterUS, Unlimited), durationFact("lead", s.LeadUS, 0),
		durationFact("gang_wait", s.GangWaitUS, gangWaitDefaultUS)))
	windows := make([]*Window, len(s.Windows))
	for i := range s.Windows {
		windows[i] = &s.Windows[i].Window
	}
	names := p.windowItems(where, name, windows, add)
	for n := Root + 1; int(n) < p.Len(); n++ {
		if s.Member[n] {
			add(item{name: where, plan: name, about: named(p.Path[n]), windows: names,
				facts: func(w int, to []fact) []fact { return p.slotFacts(s, &s.Windows[w], n, named, to) }})
		}
	}
}

// slotFacts appends what a consumer has set in a window of a slot plan.
func (p *Policy) slotFacts(s *SlotPlan, w *SlotWindow, n Node, named func(string) string, to []fact) []fact {
	policy := ""
	if p.Parent[n] == Root {
		policy = w.Policy[n].String()
	}
	lend, borrow := "", ""
	if limit := w.LendLimit[n]; limit > 0 {
		lend = strconv.FormatInt(limit, 10) + " to " + p.peers(w.LendTo[n], named)
	}
	switch limit := w.BorrowLimit[n]; limit {
	case 0:
	case Unlimited:
		borrow = "any number from " + p.peers(w.BorrowFrom[n], named)
	default:
		borrow = strconv.FormatInt(limit, 10) + " from " + p.peers(w.BorrowFrom[n], named)
	}
	return append(to,
		numberFact("rank", int64(w.Rank[n]), int64(p.Rank[n])), textFact("policy", policy, ""),
		numberFact("owns", w.Owns[n], 0),
		numberFact("reserves", w.Reserves[n], 0), numberFact("limit", w.Limit[n], Unlimited),
		textFact("lend", lend, ""), textFact("borrow", borrow, ""),
		numberFact("share.ratio", w.Ratio[n], 1), numberFact("share.max", w.Max[n], Unlimited),
		textFact("budget", budgetOf(s.Budget, n).String(), ""))
}

// peers names whom a consumer lends to or borrows from.
func (p *Policy) peers(list []Peer, named func(string) string) string {
	if list == nil {
		return "any"
	}
	names := make([]string, len(list))
	for i, peer := range list {
		switch {
		case peer.Any:
			names[i] = "any"
		case peer.Siblings:
			names[i] = "siblings"
		default:
			names[i] = named(p.Path[peer.Node])
		}
	}
	return strings.Join(names, ", ")
}

func (p *Policy) mdItems(m *MDPlan, named func(string) string, add func(item)) {
	where := "plan " + m.Name
	var groups, over []string
	for _, g := range m.Groups {
		text := p.Groups[g.Group].Name
		if g.Preference != preferenceDefault {
			text += fmt.Sprintf(" (preference %d)", g.Preference)
		}
		groups = append(groups, text)
	}
	for d, n := range m.OvercommitMilli {
		if n != milli {
			over = append(over, p.Dimensions[d]+" "+decimal(n))
		}
	}
	devices := ""
	if m.HasDevices() {
		devices = fmt.Sprintf("%s %d each", p.Dimensions[m.Device], m.DevicePer)
	}
	add(simple(where, m.Name,
		textFact("resource_groups", strings.Join(groups, ", "), ""),
		textFact("overcommit", strings.Join(over, ", "), ""),
		textFact("devices", devices, ""),
		textFact("placement", m.Placement.String(), "best_fit"),
		durationFact("public_pool.grace", m.PublicGraceUS, Unlimited),
		flagFact("reclaim_for_preference", m.ReclaimForPref, false),
		numberFact("ownership_rebalance", int64(m.OwnershipRebalance), 10),
		flagFact("share_reclaim", m.ShareReclaim, true),
		textFact("fair_band", decimal(m.FairBandMilli), "0.01"),
		durationFact("share.half_life", m.HalfLifeUS, 0), textFact("share.weight", decimal(m.HistoryMilli), "1"),
		numberFact("reclaim_budget", m.ReclaimBudget, Unlimited),
		textFact("release", pick(m.ReleaseConfirmed, "confirmed", "assumed"), "assumed"),
		durationFact("overdue_after", m.OverdueAfterUS, Unlimited), durationFact("lead", m.LeadUS, 0),
		durationFact("gang_wait", m.GangWaitUS, gangWaitDefaultUS)))
	windows := make([]*Window, len(m.Windows))
	for i := range m.Windows {
		windows[i] = &m.Windows[i].Window
	}
	names := p.windowItems(where, m.Name, windows, add)
	for n := Root + 1; int(n) < p.Len(); n++ {
		if m.Member[n] {
			add(item{name: where, plan: m.Name, about: named(p.Path[n]), windows: names,
				facts: func(w int, to []fact) []fact { return p.mdFacts(m, &m.Windows[w], n, to) }})
		}
	}
}

// mdFacts appends what a consumer has set in a window of an MD plan.
func (p *Policy) mdFacts(m *MDPlan, w *MDWindow, n Node, to []fact) []fact {
	var own, limits, prefers []string
	for i := range w.Own[n] {
		own = append(own, p.ruleText(m, &w.Own[n][i]))
	}
	for d := range w.Limit {
		if w.Limit[d][n] != Unlimited {
			limits = append(limits, fmt.Sprintf("%s %d", p.Dimensions[d], w.Limit[d][n]))
		}
	}
	for g := range m.Groups {
		if at := w.Preference[g][n]; at != w.Preference[g][p.Parent[n]] {
			prefers = append(prefers, fmt.Sprintf("%s %d", p.Groups[m.Groups[g].Group].Name, at))
		}
	}
	return append(to,
		numberFact("rank", int64(w.Rank[n]), int64(p.Rank[n])), textFact("own", strings.Join(own, "; "), ""),
		textFact("reserve", p.reserveText(w.Reserve[n]), ""), textFact("preference", strings.Join(prefers, ", "), ""),
		durationFact("lend_grace", w.LendGraceUS[n], Unlimited),
		durationFact("private_pool_grace", w.PrivateUS[n], Unlimited),
		flagFact("share_reclaim", w.ShareReclaim[n], w.ShareReclaim[p.Parent[n]]),
		numberFact("share.priority", int64(w.Priority[n]), 0), numberFact("share.ratio", w.Ratio[n], 1),
		textFact("share.limit", strings.Join(limits, ", "), ""), textFact("budget", budgetOf(m.Budget, n).String(), ""))
}

// ruleText is a rule of ownership in words such as "20 hosts of Compute".
func (p *Policy) ruleText(m *MDPlan, rule *OwnRule) string {
	of := ""
	if rule.Group >= 0 {
		of = " of " + p.Groups[m.Groups[rule.Group].Group].Name
	}
	switch {
	case rule.HostList != nil:
		return "hosts " + strings.Join(rule.HostList, ", ")
	case rule.Hosts != Unlimited:
		return fmt.Sprintf("%d hosts%s", rule.Hosts, of)
	case rule.Percent != Unlimited:
		return decimal(rule.Percent) + " % of the hosts" + of
	case rule.Remaining:
		return "what remains" + of
	case rule.PerHost != nil:
		var parts []string
		for d, part := range rule.PerHost {
			switch {
			case part.Percent != Unlimited:
				parts = append(parts, fmt.Sprintf("%s %s %%", p.Dimensions[d], decimal(part.Percent)))
			case part.Amount != Unlimited:
				parts = append(parts, fmt.Sprintf("%s %d", p.Dimensions[d], part.Amount))
			}
		}
		return strings.Join(parts, ", ") + " of each host" + of
	}
	text := p.amountText(rule.Amount) + of
	if rule.Partial {
		text += " (partial)"
	}
	return text
}

func (p *Policy) reserveText(r Reserve) string {
	switch {
	case r.Hosts != Unlimited:
		return fmt.Sprintf("%d hosts", r.Hosts)
	case r.Percent != Unlimited:
		return decimal(r.Percent) + " %"
	}
	return p.amountText(r.Amount)
}

// amountText is an amount by dimension, such as "gpus 8, ncpus 64".
func (p *Policy) amountText(amount []int64) string {
	var parts []string
	for d, n := range amount {
		if n != Unlimited {
			parts = append(parts, fmt.Sprintf("%s %d", p.Dimensions[d], n))
		}
	}
	return strings.Join(parts, ", ")
}

// windowItems adds the windows of a plan and returns their names.
func (p *Policy) windowItems(where, name string, windows []*Window, add func(item)) (names []string) {
	for _, w := range windows {
		names = append(names, w.Name)
		if w.Name == "" {
			continue
		}
		if w.Dated() {
			add(simple(where+", window "+w.Name, name, textFact("hours", "", ""),
				textFact("days", "", ""),
				textFact("from", w.Opens(p.Location), ""), textFact("until", w.Closes(p.Location), "")))
			continue
		}
		to := w.To
		if to == 0 {
			to = dayMinutes
		}
		var days []string
		for d, day := range dayNames {
			if w.Days != everyDay && w.Days>>d&1 != 0 {
				days = append(days, day)
			}
		}
		add(simple(where+", window "+w.Name, name,
			textFact("hours", clock(w.From)+"-"+clock(to), ""), textFact("days", strings.Join(days, ", "), ""),
			textFact("from", "", ""), textFact("until", "", "")))
	}
	return names
}

func pick(yes bool, a, b string) string {
	if yes {
		return a
	}
	return b
}

// String is the placement's name in the file.
func (p Placement) String() string {
	return [...]string{"best_fit", "stacked", "balanced", "exclusive"}[p]
}
