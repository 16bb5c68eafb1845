package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// What a summary shows at most, how many consumers of a plan at least before it becomes brief and when it is, and the
// widths of its bars.
const (
	consumersShown = 40
	consumersLeast = 12
	consumersBrief = 3
	reasonsShown   = 6
	barMin, barMax = 10, 28
)

// reasonTexts are the commoner reasons of a shortfall in words.
var reasonTexts = map[int32]string{
	decision.ReasonWaitingForReclaim: "others are giving it back",
	decision.ReasonConsumerLimit:     "held back by a maximum or a limit",
	decision.ReasonReclaimBudget:     "the cycle took back as much as it may",
	decision.ReasonBorrowLimit:       "borrows as much as it may",
	decision.ReasonNotInPlan:         "their consumer takes part in no plan",
	decision.ReasonNoHostMatches:     "no host meets the requirement",
	decision.ReasonShareLimit:        "held back by a share limit, or by a ratio of 0",
	decision.ReasonTooBig:            "larger than any host",
	decision.ReasonBudget:            "whose budget of the period is used up",
	decision.ReasonTooSmall:          "units so small that the hosts would hold too many",
	decision.ReasonOwnershipUnmet:    "what their consumer is to own could not be assigned",
	decision.ReasonMaxPerHost:        "fit only where max_per_host is reached",
	decision.ReasonFragmented:        "room enough in sum, but scattered",
	decision.ReasonLowerPriority:     "a higher share priority comes first",
	decision.ReasonOverQuota:         "at or above their share of the pool",
	decision.ReasonPoolExhausted:     "the pool is full",
	decision.ReasonGang:              "gangs of which not enough units fit at once",
}

// summary prints the last cycle at a glance, for a person.
type summary struct {
	*batch
	paint
	w      io.Writer
	width  int
	height int // 0: any
	log    string
	cycles int64

	brief bool                     // reasons and capacity are a sentence each
	shown int                      // consumers of a plan
	of    map[string][]consumerRow // by plan: all of them
	text  strings.Builder
}

func newSummary(b *batch, w io.Writer, log string, cycles int64) *summary {
	if !b.out.Keyframe {
		b.runner.Keyframe(&b.out) // what is free is known by host
	}
	return &summary{batch: b, paint: painter(w), w: w, width: widthOf(w), height: heightOf(w), log: log,
		cycles: cycles, of: map[string][]consumerRow{}}
}

// print writes the summary so that it fits what is seen at once, with the line that the shell asks on: by fewer
// consumers, and where too few would be left, by sentences in place of tables.
func (s *summary) print() error {
	for _, least := range []int{consumersLeast, consumersBrief} {
		s.brief = least == consumersBrief
		fewer := sort.Search(consumersShown-least, func(fewer int) bool { return s.fits(consumersShown - fewer) })
		if s.fits(consumersShown - fewer) {
			break
		}
	}
	_, err := io.WriteString(s.w, s.text.String())
	return err
}

// fits composes the text with so many consumers of a plan, and tells whether it can be seen at once.
func (s *summary) fits(consumers int) bool {
	s.shown = consumers
	s.text.Reset()
	s.compose()
	return s.height == 0 || strings.Count(s.text.String(), "\n") < s.height
}

func (s *summary) compose() {
	s.header()
	p := s.state.Policy
	for i := range p.MDPlans {
		f := mdFigures
		if p.MDPlans[i].Owns() {
			f = ownFigures
		}
		s.plan(p.MDPlans[i].Name, f)
	}
	for i := range p.SlotPlans {
		s.plan(p.Groups[p.SlotPlans[i].Group].Name, slotFigures)
	}
	s.reasons()
	s.capacity()
	s.footer()
}

func (s *summary) header() {
	sum := &s.out.Summary
	name := s.state.Policy.Cluster
	if name == "" {
		name = "cluster"
	}
	first := []string{fmt.Sprintf("%s  cycle %s at %s", s.bold(name), grouped(sum.Cycle),
		time.UnixMicro(sum.NowUS).UTC().Format("2006-01-02 15:04:05 UTC"))}
	if sum.Window != "" {
		first = append(first, "window "+sum.Window)
	}
	first = append(first, count(sum.Hosts, "host"), count(int64(s.state.Policy.Len()-1), "consumer"))
	second := []string{count(sum.UnitsWanted, "unit") + " wanted", s.good(grouped(sum.UnitsHeld)) + " held",
		s.shortness(sum.UnitsShort) + " short"}
	if sum.UnitsWanted > 0 {
		second = append(second, percent(float64(sum.UnitsHeld)/float64(sum.UnitsWanted))+" met")
	}
	if sum.UnitsLeaving > 0 {
		second = append(second, grouped(sum.UnitsLeaving)+" under reclaim")
	}
	if sum.UnitsOverdue > 0 && s.confirmed() {
		second = append(second, s.bad(grouped(sum.UnitsOverdue))+" overdue")
	}
	fmt.Fprintf(&s.text, "%s\n%s\n", wrapped(first, s.width), s.tight(second))
}

// tight is wrapped, or one line where closer parts make it one.
func (s *summary) tight(parts []string) string {
	lines, line := wrapped(parts, s.width), strings.Join(parts, " · ")
	if strings.Contains(lines, "\n") && text.StringWidthWithoutEscSequences(line) <= s.width {
		return line
	}
	return lines
}

// confirmed tells whether any plan waits for clients to confirm what they
// release: only then can units be overdue (CYC-8).
func (s *summary) confirmed() bool {
	p := s.state.Policy
	return slices.ContainsFunc(p.MDPlans, func(m plan.MDPlan) bool { return m.ReleaseConfirmed }) ||
		slices.ContainsFunc(p.SlotPlans, func(m plan.SlotPlan) bool { return m.ReleaseConfirmed })
}

// shortness is a number of units that are short: red, unless there are none.
func (s *summary) shortness(n int64) string {
	if n == 0 {
		return "0"
	}
	return s.bad(grouped(n))
}

// eighths are the ends of a bar.
var eighths = []string{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"}

// bar draws a fraction of width, with a mark where the second fraction ends; a negative one has none.
func (s *summary) bar(fraction, mark float64, width int) string {
	if width < barMin {
		return ""
	}
	parts := int(min(max(fraction, 0), 1)*float64(width)*8 + 0.5)
	cells := make([]string, width)
	for i := range cells {
		switch full := parts / 8; {
		case i < full:
			cells[i] = s.good("█")
		case i == full && parts%8 > 0:
			cells[i] = s.good(eighths[parts%8])
		default:
			cells[i] = " "
		}
	}
	if mark >= 0 {
		if at := min(int(mark*float64(width)), width-1); cells[at] == " " {
			cells[at] = s.faint("▏")
		}
	}
	return strings.Join(cells, "")
}

// reason is the shortfalls of one reason and dimension.
type reason struct {
	code      int32
	dimension string
	units     int64
	rows      int
}

func (s *summary) reasons() {
	f := &s.out.Shortfalls
	type key struct {
		code      int32
		dimension string
	}
	place := map[key]int{}
	var all []reason
	for row, units := range f.UnitsShort {
		k := key{f.Reason.Code[row], f.Dimension.At(row)}
		i, ok := place[k]
		if !ok {
			i = len(all)
			place[k] = i
			all = append(all, reason{code: k.code, dimension: k.dimension})
		}
		all[i].units += units
		all[i].rows++
	}
	if len(all) == 0 {
		return
	}
	slices.SortFunc(all, func(a, b reason) int {
		return cmp.Or(cmp.Compare(b.units, a.units), cmp.Compare(a.code, b.code), cmp.Compare(a.dimension, b.dimension))
	})
	if s.brief {
		fmt.Fprintf(&s.text, "\n%s\n", s.reasonLine(all))
		return
	}
	g := s.reasonGrid(all[:min(len(all), reasonsShown)], true)
	if g.width() > s.width+gap { // on a narrow terminal without explanations
		g = s.reasonGrid(all[:min(len(all), reasonsShown)], false)
	}
	fmt.Fprintf(&s.text, "\n%s\n", g.render())
	if n := len(all) - reasonsShown; n > 0 {
		fmt.Fprintln(&s.text, s.faint("and "+count(int64(n), "more reason")))
	}
}

// reasonLine is as many reasons as a line has room for.
func (s *summary) reasonLine(all []reason) string {
	var line string
	for i, r := range all {
		longer, more := line+"  ·  ", count(int64(len(all)-i), "more reason")
		if i == 0 {
			longer = "why short  "
		}
		one := grouped(r.units) + " " + string(decision.Reasons.Bytes(r.code))
		if r.dimension != "" {
			one += " (" + r.dimension + ")"
		}
		room := s.width
		if i < len(all)-1 {
			room -= text.StringWidthWithoutEscSequences("  ·  " + more)
		}
		if i > 0 && text.StringWidthWithoutEscSequences(longer+one) > room {
			return longer + more
		}
		line = longer + one
	}
	return line
}

// reasonGrid is the table of reasons, explained in words or not.
func (s *summary) reasonGrid(list []reason, explained bool) *grid {
	g := &grid{head: []string{"why short", "units", "scarce", ""}, words: []int{2, 3}}
	for _, r := range list {
		words := count(int64(r.rows), "sub-allocation")
		if text := reasonTexts[r.code]; text != "" && explained {
			words = text + " (" + words + ")"
		}
		g.add(string(decision.Reasons.Bytes(r.code)), grouped(r.units), r.dimension, s.faint(words))
	}
	return g
}

// capacity shows how much of each dimension is used on the hosts of the plans, overcommit included. Slot plans
// measure by slots, whether or not the policy has a dimension of that name.
func (s *summary) capacity() {
	h := &s.out.Hosts
	type amount struct{ used, capacity int64 }
	sums := map[string]amount{}
	for row := range h.Used {
		name := h.Dimension.At(row)
		sum := sums[name]
		sums[name] = amount{sum.used + h.Used[row], sum.capacity + h.Capacity[row]}
	}
	names := slices.Clone(s.state.Policy.Dimensions)
	if !slices.Contains(names, "slots") {
		names = append(names, "slots")
	}
	if s.brief {
		var parts []string
		for _, name := range names {
			if sum := sums[name]; sum.capacity > 0 {
				parts = append(parts, name+" "+percent(float64(sum.used)/float64(sum.capacity)))
			}
		}
		if len(parts) > 0 {
			parts[0] = "used       " + parts[0]
			fmt.Fprintln(&s.text, wrapped(parts, s.width))
		}
		return
	}
	g := grid{head: []string{"capacity", "used", "of", "", ""}, words: []int{4}}
	for _, name := range names {
		sum, ok := sums[name]
		switch fraction := float64(sum.used) / float64(sum.capacity); {
		case ok && sum.capacity > 0:
			g.add(name, grouped(sum.used), grouped(sum.capacity), percent(fraction),
				s.bar(fraction, -1, min(barMax, s.width-52)))
		case ok:
			g.add(name, grouped(sum.used), grouped(sum.capacity), "", "")
		}
	}
	if len(g.rows) > 0 {
		fmt.Fprintf(&s.text, "\n%s\n", g.render())
	}
}

func (s *summary) footer() {
	if !s.brief {
		s.text.WriteByte('\n')
	}
	fmt.Fprintf(&s.text, "%s in %s: %s granted, %s released", count(s.cycles, "cycle"), took(s.tookUS),
		count(s.granted, "unit"), grouped(s.released))
	if n := s.granted + s.released; n > 0 && s.tookUS > 0 {
		fmt.Fprintf(&s.text, ", %s a second", grouped(n*1_000_000/s.tookUS))
	}
	table, leaf := "grants", s.leaf(func(c *decision.Consumers, row int) int64 { return c.Held[row] })
	if s.out.Summary.UnitsShort > 0 {
		table, leaf = "shortfalls", s.leaf(func(c *decision.Consumers, row int) int64 { return c.Short[row] })
	}
	next := []string{"stint query --log " + s.log + " " + table}
	if leaf != "" {
		next = append(next, "stint explain --log "+s.log+" "+leaf)
	}
	next = append(next, "stint serve --log "+s.log)
	for i := range next {
		next[i] = s.mark(next[i])
	}
	fmt.Fprintf(&s.text, "\nlog:  %s\nnext: %s   a page: http://127.0.0.1:7468/\n", s.log,
		strings.Join(next, "\n      "))
}

// leaf is a leaf as the shell reads it, the first of those with the most of something; "" when none has any.
func (s *summary) leaf(of func(c *decision.Consumers, row int) int64) string {
	c := &s.out.Consumers
	best, most := "", int64(0)
	for row := range c.Held {
		if n := of(c, row); n > most && s.isLeaf(c.Consumer.At(row)) {
			best, most = c.Consumer.At(row), n
		}
	}
	if strings.ContainsAny(best, " '\"\\$`&|;<>()*?[]#~!{}") {
		best = "'" + strings.ReplaceAll(best, "'", `'\''`) + "'"
	}
	return best
}

func (s *summary) isLeaf(path string) bool {
	n, ok := s.state.Policy.Find(path)
	return ok && s.state.Policy.Leaf(n)
}

func took(us int64) string {
	d := time.Duration(us) * time.Microsecond
	switch {
	case d < 10*time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}

func percent(f float64) string { return fmt.Sprintf("%.1f %%", 100*f) }

// count is a number and its noun, in the plural where that is due.
func count(n int64, what string) string {
	if n != 1 {
		what += "s"
	}
	return grouped(n) + " " + what
}
