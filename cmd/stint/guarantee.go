package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/stintd/stint/core/plan"
)

// peersShown is how many of those it lends to or borrows from a consumer's line names.
const peersShown = 2

// guarantees prints what each consumer of a policy is guaranteed; b is nil while no hosts are given.
func guarantees(w io.Writer, p *plan.Policy, b *batch) error {
	var text strings.Builder
	if b != nil {
		b.owned(&text, p)
		b.staticQuotas(&text, p)
	}
	for i := range p.SlotPlans {
		s := &p.SlotPlans[i]
		var there []slotsThere
		if b != nil {
			there = b.slotsIn(s)
		}
		for window := range s.Windows {
			v := slotView{p: p, s: s, w: &s.Windows[window]}
			if there != nil {
				v.there = &there[window]
			}
			fmt.Fprintf(&text, "\n%s\n", v.render())
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// owned writes what consumers own of an MD plan's hosts, of one with windows in that of the last cycle, and what of
// that is reserved.
func (b *batch) owned(text *strings.Builder, p *plan.Policy) {
	a := &b.out.Amounts
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
	for i := range p.MDPlans {
		m := &p.MDPlans[i]
		g := grid{head: append([]string{"owned, plan " + m.Name}, p.Dimensions...)}
		if w := &m.Windows[m.WindowAt(b.state.NowUS, p.Location)]; w.Name != "" {
			g.head[0] += ", window " + w.Name
		}
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
		if m.Owns() {
			fmt.Fprintf(text, "\n%s\n", g.render())
		}
	}
}

// staticQuotas writes what each consumer gets of an MD plan when everybody asks for everything (MD-15), of one with
// windows in that of the last cycle.
func (b *batch) staticQuotas(text *strings.Builder, p *plan.Policy) {
	a := &b.out.Amounts
	grids := map[string]*grid{}
	for row := range a.Held {
		name := a.Plan.At(row)
		g := grids[name]
		if g == nil {
			g = &grid{head: append([]string{"static share quota, plan " + name}, p.Dimensions...)}
			grids[name] = g
		}
		if a.Dimension.At(row) == p.Dimensions[0] {
			g.add(indented(a.Consumer.At(row)))
		}
		last := &g.rows[len(g.rows)-1]
		*last = append(*last, grouped(a.StaticQuota[row]))
	}
	for i := range p.MDPlans {
		m := &p.MDPlans[i]
		if g := grids[m.Name]; g != nil {
			if w := &m.Windows[m.WindowAt(b.state.NowUS, p.Location)]; w.Name != "" {
				g.head[0] += ", window " + w.Name
			}
			fmt.Fprintf(text, "\n%s\n", g.render())
		}
	}
}

// slotsThere is what of a slot plan's figures depends on hosts, while a window is open.
type slotsThere struct {
	slots                   int64   // S
	owned, reserved, static []int64 // by Node
}

// slotsIn gives a plan's figures on the hosts of the batch, by window: nobody wants anything, so that a cycle in
// each window tells them.
func (b *batch) slotsIn(s *plan.SlotPlan) []slotsThere {
	p := b.state.Policy
	there := make([]slotsThere, len(s.Windows))
	first := opens(s, b.state.NowUS, p.Location)
	order := make([]int, len(s.Windows))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(first[i], first[j]) })
	for _, window := range order {
		b.cycle(first[window])
		if !b.out.Keyframe {
			b.runner.Keyframe(&b.out)
		}
		there[window] = b.slotsNow(p, p.Groups[s.Group].Name)
	}
	return there
}

// opens is when each window of a plan opens next (µs since 1970): within two weeks, one of which has no shift of clocks.
func opens(s *plan.SlotPlan, nowUS int64, at *time.Location) []int64 {
	first := make([]int64, len(s.Windows))
	for i := range first {
		first[i] = -1
	}
	for range 15 * 24 * 60 {
		if i := s.WindowAt(nowUS, at); first[i] < 0 {
			first[i] = nowUS
		}
		nowUS += time.Minute.Microseconds()
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
	t := c.Table()
	now.owned, now.reserved, now.static = make([]int64, n), make([]int64, n), make([]int64, n)
	for row := range c.Held {
		if node, ok := p.Find(c.Consumer.At(row)); ok && c.Plan.At(row) == name {
			now.owned[node] = t.Column("owned").Int[row]
			now.reserved[node] = t.Column("reserved").Int[row]
			now.static[node] = t.Column("static_quota").Int[row]
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
}

func (v *slotView) render() string {
	g := grid{
		head: []string{
			"slot plan " + v.p.Groups[v.s.Group].Name, "policy", "rank", "owns", "owns now", "reserved", "pool",
			"static share", "ratio", "at most", "lends", "borrows", "grace",
		},
		words: []int{1, 10, 11},
	}
	for n := plan.Root + 1; int(n) < v.p.Len(); n++ {
		if v.s.Member[n] {
			g.add(v.row(n)...)
		}
	}
	g.squeeze()
	return v.window() + g.render() + "\n" + v.sums()
}

// window is a line such as "window night: 20:00-08:00 sat sun (Europe/London)", nothing in a plan without windows.
func (v *slotView) window() string {
	w := v.w
	if w.Name == "" {
		return ""
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

// row is the line of a consumer; what does not concern it stays empty.
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
		cell["grace"] = lasting(us)
	}
	if v.there != nil {
		if v.missing() && policy != plan.ShareRatio {
			cell["now"] = grouped(v.there.owned[n])
		}
		if policy != plan.Hybrid {
			cell["static"] = grouped(v.there.static[n])
		}
	}
	var row []string
	for _, key := range []string{"name", "policy", "rank", "owns", "now", "reserved", "pool", "static", "ratio", "most", "lends", "borrows", "grace"} {
		row = append(row, cell[key])
	}
	return row
}

// lasting is a duration in µs as a policy file has it: 5m, not 5m0s.
func lasting(us int64) string {
	text := (time.Duration(us) * time.Microsecond).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// owned is what a consumer owns: of the slots that are there, if that is known.
func (v *slotView) owned(n plan.Node) int64 {
	if v.there != nil {
		return v.there.owned[n]
	}
	return v.w.Owns[n]
}

// children is what the children of a consumer own together.
func (v *slotView) children(n plan.Node) (slots int64) {
	for c := v.p.First[n]; c != plan.None; c = v.p.Next[c] {
		slots += v.owned(c)
	}
	return slots
}

// reserved is what of the owned nobody else gets: never lent, or the reserve of the hybrid policy.
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

// missing tells whether what is owned is not what was configured, since there are more slots or fewer.
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
	switch {
	case hybrid && others > 0 && whole != plan.Unlimited:
		parts = append(parts, grouped(max(0, whole-others))+" divided among the hybrid branches")
	case hybrid:
	case whole != plan.Unlimited:
		parts = append(parts, grouped(max(0, whole-owns))+" in the cluster's pool")
	default:
		parts = append(parts, "whatever else there is in the cluster's pool")
	}
	return strings.Join(parts, "  ·  ")
}
