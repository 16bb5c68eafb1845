package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/stintd/stint/core/plan"
)

// peersShown is the number of peers that a consumer's line names.
const peersShown = 2

// guarantee is what a consumer of a plan gets in one of its windows when everybody asks for everything.
type guarantee struct {
	plan, window, consumer string
	of                     map[string]int64 // by dimension
}

// guarantees tells the guarantees of each consumer of a policy, as text of so many columns and as rows; b is nil while
// no hosts are given.
func guarantees(p *plan.Policy, b *batch, width int) (text string, rows []guarantee) {
	if b == nil {
		for i := range p.SlotPlans {
			for w := range p.SlotPlans[i].Windows {
				v := slotView{p: p, s: &p.SlotPlans[i], w: &p.SlotPlans[i].Windows[w], width: width}
				text += "\n" + v.render() + "\n"
				rows = append(rows, v.guarantees()...)
			}
		}
		return text, rows
	}
	texts, guaranteed := map[[2]int]string{}, map[[2]int][]guarantee{}
	list := b.occasions()
	for _, o := range list {
		b.cycle(o.atUS)
		at := [2]int{o.plan, o.window}
		if o.plan < len(p.MDPlans) {
			texts[at], guaranteed[at] = b.mdView(&p.MDPlans[o.plan], &p.MDPlans[o.plan].Windows[o.window].Window)
			continue
		}
		if !b.out.Keyframe {
			b.runner.Keyframe(&b.out)
		}
		s := &p.SlotPlans[o.plan-len(p.MDPlans)]
		there := b.slotsNow(p, p.Groups[s.Group].Name)
		there.gets = b.everything(p.Groups[s.Group].Name, slotsDimension, s.Member)
		v := slotView{p: p, s: s, w: &s.Windows[o.window], there: &there, width: width}
		texts[at], guaranteed[at] = "\n"+v.render()+"\n", v.guarantees()
	}
	slices.SortFunc(list, func(a, b occasion) int {
		return cmp.Or(cmp.Compare(a.plan, b.plan), cmp.Compare(a.window, b.window))
	})
	for _, o := range list {
		at := [2]int{o.plan, o.window}
		text += texts[at]
		rows = append(rows, guaranteed[at]...)
	}
	return text, rows
}

// slotsDimension is the unit of slot plans, whether or not the policy has a dimension of that name.
const slotsDimension = "slots"

// mdView tells the hosts that consumers of an MD plan own, and their holdings when everybody asks for everything, in
// the window of the last cycle.
func (b *batch) mdView(m *plan.MDPlan, w *plan.Window) (text string, rows []guarantee) {
	p := b.state.Policy
	where := ", plan " + m.Name
	if w.Name != "" {
		where += ", window " + w.Name
	}
	if m.Owns() {
		text = "\n" + b.owned(m, where) + "\n"
	}
	var all []gets
	for _, d := range p.Dimensions {
		all = append(all, b.everything(m.Name, d, m.Member))
	}
	g := grid{head: append([]string{"guaranteed" + where}, p.Dimensions...)}
	for n := plan.Root + 1; int(n) < p.Len(); n++ {
		if !m.Member[n] {
			continue
		}
		row, cells := guarantee{m.Name, w.Name, p.Path[n], map[string]int64{}}, []string{indented(p.Path[n])}
		for _, one := range all {
			row.of[one.dimension] = one.held[p.Path[n]]
			cells = append(cells, grouped(one.held[p.Path[n]]))
		}
		rows = append(rows, row)
		g.add(cells...)
	}
	g.line()
	sums := []string{"together"}
	there := []string{"of what there is"}
	for _, one := range all {
		sum := int64(0)
		for n := p.First[plan.Root]; n != plan.None; n = p.Next[n] {
			sum += one.held[p.Path[n]]
		}
		sums, there = append(sums, grouped(sum)), append(there, grouped(one.there))
	}
	g.add(sums...)
	g.add(there...)
	return text + "\n" + g.render() + "\n", rows
}

// owned is the part of an MD plan's hosts that consumers own in the window of the last cycle, and the reserved part.
func (b *batch) owned(m *plan.MDPlan, where string) string {
	a, p := &b.out.Amounts, b.state.Policy
	cell := func(row int) string {
		switch owned, configured, reserved := a.Owned[row], a.Configured[row], a.Reserved[row]; {
		case configured == 0 && owned == 0:
			return ""
		case configured > owned && reserved > 0:
			return fmt.Sprintf("%s of %s, %s reserved", grouped(owned), grouped(configured), grouped(reserved))
		case configured > owned:
			return fmt.Sprintf("%s of %s", grouped(owned), grouped(configured))
		case reserved > 0:
			return fmt.Sprintf("%s, %s reserved", grouped(owned), grouped(reserved))
		default:
			return grouped(owned)
		}
	}
	g := grid{head: append([]string{"owned" + where}, p.Dimensions...)}
	for row := range a.Held {
		if a.Plan.At(row) != m.Name {
			continue
		}
		if a.Dimension.At(row) == p.Dimensions[0] {
			g.add(indented(a.Consumer.At(row)))
		}
		last := &g.rows[len(g.rows)-1]
		*last = append(*last, cell(row))
	}
	return g.render()
}

// slotsThere are the figures of a slot plan that depend on hosts, while a window is open.
type slotsThere struct {
	slots           int64   // S
	owned, reserved []int64 // by Node
	gets            gets
}

// never is when a dated window that is over opens next.
const never = -1

// opens is when each of some windows is open next (µs since 1970): now, when its date comes, or within two weeks, one
// of which has no shift of clocks, of now or of a dated window's end.
func opens(windows []*plan.Window, at func(us int64) int, nowUS int64) []int64 {
	first, from := make([]int64, len(windows)), []int64{nowUS}
	for i, w := range windows {
		if first[i] = never; w.Dated() && w.UntilUS > nowUS {
			first[i], from = max(nowUS, w.SinceUS), append(from, w.UntilUS)
		}
	}
	slices.Sort(from)
	for _, us := range from {
		for range 15 * 24 * 60 {
			if i := at(us); first[i] == never {
				first[i] = us
			}
			us += time.Minute.Microseconds()
		}
	}
	return first
}

// slotsNow reads a slot plan's figures off the last cycle.
func (b *batch) slotsNow(p *plan.Policy, name string) (now slotsThere) {
	h := &b.out.Hosts
	for row := range h.Capacity {
		if h.Plan.At(row) == name && h.State.At(row) == "ok" {
			now.slots += h.Capacity[row]
		}
	}
	c, n := &b.out.Consumers, p.Len()
	t := c.Schema().Table()
	now.owned, now.reserved = make([]int64, n), make([]int64, n)
	for row := range c.Held {
		if node, ok := p.Find(c.Consumer.At(row)); ok && c.Plan.At(row) == name {
			now.owned[node] = t.Column("owned").Int[row]
			now.reserved[node] = t.Column("reserved").Int[row]
		}
	}
	return now
}

// slotView is a slot plan in one of its windows, on its way to the screen.
type slotView struct {
	p     *plan.Policy
	s     *plan.SlotPlan
	w     *plan.SlotWindow
	there *slotsThere // nil while no hosts are given
	width int         // of the screen
}

func (v *slotView) render() string {
	g := grid{
		head: []string{
			"slot plan " + v.p.Groups[v.s.Group].Name, "policy", "rank", "owns", "owns now", "reserved", "pool",
			"ratio", "at most", "guaranteed", "lends", "borrows", "grace",
		},
		words: []int{1, 10, 11},
	}
	for n := plan.Root + 1; int(n) < v.p.Len(); n++ {
		if v.s.Member[n] {
			g.add(v.row(n)...)
		}
	}
	texts := g.split(9) // who lends and borrows goes below where the screen is too narrow
	if g.squeeze(); g.width() <= v.width+gap {
		return v.window() + g.render() + "\n" + v.sums()
	}
	text := v.window()
	for i := range texts {
		texts[i].rows = slices.DeleteFunc(texts[i].rows,
			func(row []string) bool { return strings.Join(row[1:], "") == "" })
		if texts[i].squeeze(); len(texts[i].head) > 1 {
			text += texts[i].render() + "\n\n"
		}
	}
	return strings.TrimSuffix(text, "\n") + v.sums()
}

// window is a line such as "window night: 20:00-08:00 sat sun (Europe/London)", nothing in a plan without windows.
func (v *slotView) window() string {
	w := v.w
	if w.Name == "" {
		return ""
	}
	if w.Dated() {
		return fmt.Sprintf("window %s: %s to %s (%s)\n", w.Name, w.Opens(v.p.Location), w.Closes(v.p.Location),
			v.p.Location)
	}
	to := w.To
	if to == 0 {
		to = 24 * 60
	}
	days := ""
	for i, day := range []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"} {
		if every := uint8(1<<7 - 1); w.Days != every && w.Days>>i&1 != 0 {
			days += " " + day
		}
	}
	return fmt.Sprintf("window %s: %s-%s%s (%s)\n", w.Name, clock(w.From), clock(to), days, v.p.Location)
}

func clock(minute int32) string { return fmt.Sprintf("%02d:%02d", minute/60, minute%60) }

// guarantees are rows of what consumers get when everybody asks for everything;
// without hosts, what they own as configured.
func (v *slotView) guarantees() (rows []guarantee) {
	for n := plan.Root + 1; int(n) < v.p.Len(); n++ {
		if !v.s.Member[n] {
			continue
		}
		slots := v.w.Owns[n]
		if v.there != nil {
			slots = v.there.gets.held[v.p.Path[n]]
		}
		rows = append(rows, guarantee{v.p.Groups[v.s.Group].Name, v.w.Name, v.p.Path[n],
			map[string]int64{slotsDimension: slots}})
	}
	return rows
}

// row is the line of a consumer; cells that do not concern the consumer stay empty.
func (v *slotView) row(n plan.Node) []string {
	w, policy := v.w, v.w.Policy[n]
	cell := map[string]string{"name": indented(v.p.Path[n]), "rank": grouped(int64(w.Rank[n]))}
	if v.p.Parent[n] == plan.Root {
		cell["policy"] = policy.String()
	}
	most := w.Max[n]
	if policy == plan.Hybrid {
		most = w.Limit[n]
	} else {
		cell["ratio"] = grouped(w.Ratio[n])
	}
	if most != plan.Unlimited {
		cell["most"] = grouped(most)
	}
	if policy != plan.ShareRatio {
		cell["owns"], cell["reserved"] = grouped(w.Owns[n]), grouped(v.reserved(n))
	}
	if policy == plan.Ownership && v.p.First[n] != plan.None {
		cell["pool"] = grouped(v.owned(n) - v.children(n))
	}
	if v.p.Leaf(n) && w.LendLimit[n] > 0 {
		cell["lends"] = v.peers(min(w.LendLimit[n], w.Owns[n]), "to", w.LendTo[n])
	}
	if v.p.Leaf(n) && w.BorrowLimit[n] != 0 {
		cell["borrows"] = v.peers(w.BorrowLimit[n], "from", w.BorrowFrom[n])
	}
	if us := v.p.ReclaimUS[n]; us > 0 && v.p.Leaf(n) {
		cell["grace"] = plan.Lasting(us)
	}
	if v.there != nil {
		if v.missing() && policy != plan.ShareRatio {
			cell["now"] = grouped(v.there.owned[n])
		}
		cell["gets"] = grouped(v.there.gets.held[v.p.Path[n]])
	}
	var row []string
	for _, key := range []string{"name", "policy", "rank", "owns", "now", "reserved", "pool", "ratio", "most", "gets",
		"lends", "borrows", "grace"} {
		row = append(row, cell[key])
	}
	return row
}

// owned is the number of slots that a consumer owns: of the slots that are there, if these are known.
func (v *slotView) owned(n plan.Node) int64 {
	if v.there != nil {
		return v.there.owned[n]
	}
	return v.w.Owns[n]
}

// children is the sum of the slots that the children of a consumer own.
func (v *slotView) children(n plan.Node) (slots int64) {
	for c := v.p.First[n]; c != plan.None; c = v.p.Next[c] {
		slots += v.owned(c)
	}
	return slots
}

// reserved is the part of the owned slots that nobody else gets: never lent, or the reserve of the hybrid policy.
func (v *slotView) reserved(n plan.Node) (slots int64) {
	w := v.w
	switch {
	case v.there != nil:
		return v.there.reserved[n]
	case w.Policy[n] == plan.Hybrid && w.Limit[n] != plan.Unlimited:
		return min(w.Reserves[n], w.Limit[n])
	case w.Policy[n] == plan.Hybrid:
		return w.Reserves[n]
	case v.p.First[n] == plan.None:
		return w.Owns[n] - min(w.LendLimit[n], w.Owns[n])
	}
	for c := v.p.First[n]; c != plan.None; c = v.p.Next[c] {
		slots += v.reserved(c)
	}
	return slots
}

// missing tells whether owned and configured slots differ, since there are more slots or fewer.
func (v *slotView) missing() bool { return !slices.Equal(v.there.owned, v.w.Owns) }

// peers says how many slots, and to or from whom.
func (v *slotView) peers(limit int64, way string, peers []plan.Peer) string {
	text := "no limit"
	if limit != plan.Unlimited {
		text = grouped(limit)
	}
	var names []string
	for _, peer := range peers {
		switch {
		case peer.Any:
			names = append(names, "any")
		case peer.Siblings:
			names = append(names, "siblings")
		default:
			names = append(names, v.p.Path[peer.Node])
		}
	}
	if len(names) > peersShown {
		names = append(names[:peersShown], fmt.Sprintf("%d more", len(names)-peersShown))
	}
	if len(names) == 0 {
		return text
	}
	return text + " " + way + " " + strings.Join(names, ", ")
}

// sums is the line below: the slots in all, what is owned of them, and what nobody owns.
func (v *slotView) sums() string {
	var parts []string
	configured, hybrid, others := v.s.ConfiguredSlots, false, int64(0)
	for c := v.p.First[plan.Root]; c != plan.None; c = v.p.Next[c] {
		switch {
		case !v.s.Member[c]:
		case v.w.Policy[c] == plan.Hybrid:
			hybrid = true
		default:
			others += v.owned(c)
		}
	}
	owns := v.children(plan.Root)
	whole := configured
	switch {
	case v.there != nil && configured != plan.Unlimited:
		whole = v.there.slots
		parts = append(parts, fmt.Sprintf("%s there now, %s configured", count(whole, "slot"), grouped(configured)))
	case v.there != nil:
		whole = v.there.slots
		parts = append(parts, count(whole, "slot")+" there now")
	case configured != plan.Unlimited:
		parts = append(parts, count(configured, "slot")+" configured")
	}
	parts = append(parts, grouped(owns)+" owned")
	if v.there != nil {
		sum := int64(0)
		for c := v.p.First[plan.Root]; c != plan.None; c = v.p.Next[c] {
			sum += v.there.gets.held[v.p.Path[c]]
		}
		parts = append(parts, fmt.Sprintf("%s guaranteed of %s there are", grouped(sum), grouped(v.there.slots)))
	}
	switch {
	case hybrid && others > 0 && whole != plan.Unlimited:
		parts = append(parts, grouped(max(0, whole-others))+" divided among the hybrid branches")
	case hybrid:
	case whole != plan.Unlimited:
		parts = append(parts, grouped(max(0, whole-owns))+" in the cluster's pool")
	default:
		parts = append(parts, "whatever else there is in the cluster's pool")
	}
	return wrapped(parts, v.width)
}

// wrapped puts parts beside each other, in lines of so many columns.
func wrapped(parts []string, width int) (lines string) {
	const between = "  ·  "
	line := 0
	for i, part := range parts {
		n := text.StringWidthWithoutEscSequences(part)
		switch {
		case i == 0:
		case line+len(between)-1+n > width:
			lines, line = lines+"\n", 0
		default:
			lines, line = lines+between, line+text.StringWidthWithoutEscSequences(between)
		}
		lines, line = lines+part, line+n
	}
	return lines
}
