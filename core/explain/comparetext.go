package explain

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// What a comparison shows people at most.
const (
	changesShown = 40
	namesShown   = 6
)

// Write writes a comparison for people. What the other policy is called is the caller's to say. The only errors are
// w's.
func (c *Comparison) Write(w io.Writer, policy string, style Style) error {
	t := &writer{Style: style.withDefaults()}
	fmt.Fprintf(&t.b, "%s at %s, under %s in place of revision %d; nothing of it is committed\n\n",
		t.Bold("cycle "+grouped(c.Cycle)), c.Now, policy, c.Revision)
	t.totals(c)
	if len(c.Changes) == 0 {
		t.b.WriteString("\nit makes no difference to anybody\n")
	} else {
		t.b.WriteByte('\n')
		t.balance("gain", c.balance(func(n int64) bool { return n > 0 }))
		t.balance("lose", c.balance(func(n int64) bool { return n < 0 }))
		t.changes(c)
	}
	if len(c.Reclaims) > 0 {
		t.head("what it puts under reclaim, by " + c.upTo() +
			"; takers get of that in later cycles, when it has come back")
		for i, r := range c.Reclaims {
			if i == changesShown {
				t.more(len(c.Reclaims) - i)
				break
			}
			t.line(2, r.sentence(), r.Rules)
		}
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

func (t *writer) totals(c *Comparison) {
	cells := [][]string{{"units", "in force", "under it", ""}}
	for _, f := range []struct {
		name          string
		before, after int64
	}{
		{"wanted", c.Before.Wanted, c.After.Wanted}, {"granted in the cycle", c.Before.Granted, c.After.Granted},
		{"put under reclaim in it", c.Before.Reclaimed, c.After.Reclaimed},
		{"held after it", c.Before.Held, c.After.Held},
		{"short after it", c.Before.Short, c.After.Short},
	} {
		cells = append(cells, []string{f.name, grouped(f.before), grouped(f.after), signed(f.after - f.before)})
	}
	if s := c.Settled; s != nil {
		cells = append(cells, []string{"held in the end", grouped(s[0].Held), grouped(s[1].Held),
			signed(s[1].Held - s[0].Held)},
			[]string{"that is after", s[0].words(), s[1].words(), ""})
	}
	t.aligned(cells)
}

// words is how far ahead was looked.
func (s Settling) words() string {
	text := count(s.Cycles, "cycle")
	if !s.Stable {
		text = "over " + text
	}
	return text
}

// signed is a difference, "" when there is none.
func signed(n int64) string {
	if n == 0 {
		return ""
	}
	if n > 0 {
		return "+" + grouped(n)
	}
	return grouped(n)
}

// upTo is by when all that the other policy puts under reclaim is due.
func (c *Comparison) upTo() string {
	last := ""
	for _, r := range c.Reclaims {
		last = max(last, r.Latest)
	}
	return last
}

// gain is what the other policy brings a consumer: in the end, or, when that was not looked at, after the cycle when
// what it puts under reclaim has come back.
func (c *Change) gain() int64 {
	if c.Settled != nil {
		return c.Settled.grows()
	}
	return c.Held.grows() - c.Reclaimed.grows()
}

// balance lists leaves whose gain is asked for, the greatest first.
func (c *Comparison) balance(asked func(int64) bool) (words []string) {
	var of []Change
	for _, change := range c.Changes {
		if change.Leaf && asked(change.gain()) {
			of = append(of, change)
		}
	}
	slices.SortStableFunc(of, func(a, b Change) int {
		return cmp.Compare(max(b.gain(), -b.gain()), max(a.gain(), -a.gain()))
	})
	for i := range of {
		words = append(words, fmt.Sprintf("%s %s (%s)", of[i].Consumer, signed(of[i].gain()), of[i].Plan))
	}
	return words
}

func (t *writer) balance(what string, words []string) {
	if len(words) > 0 {
		text := t.Bold(what)
		if what == "lose" {
			text = t.Bad(what)
		}
		fmt.Fprintf(&t.b, "%s  %s\n", text, listed(words, namesShown))
	}
}

// changes writes a table for each plan, of the consumers to whom it makes a difference.
func (t *writer) changes(c *Comparison) {
	var plans []string
	for i := range c.Changes {
		if !slices.Contains(plans, c.Changes[i].Plan) {
			plans = append(plans, c.Changes[i].Plan)
		}
	}
	for _, name := range plans {
		var cells [][]string
		more := 0
		for i := range c.Changes {
			if c.Changes[i].Plan != name {
				continue
			}
			if cells == nil {
				cells = [][]string{c.Changes[i].heading()}
			}
			if len(cells) > changesShown {
				more++
				continue
			}
			cells = append(cells, c.Changes[i].cells())
		}
		t.b.WriteByte('\n')
		t.aligned(cells)
		t.more(more)
	}
	if c.Same > 0 {
		fmt.Fprintf(&t.b, "\nno difference to %s\n", count(int64(c.Same), "other consumer"))
	}
}

func (c *Change) heading() []string {
	head := []string{"plan " + c.Plan, "wanted", "held", "quota", "short", "reclaimed"}
	if c.Quota != nil {
		head[0] = "slot plan " + c.Plan
	}
	if c.Settled != nil {
		head = append(head, "in the end")
	}
	return head
}

func (c *Change) cells() []string {
	quota := ""
	if c.Quota != nil {
		quota = c.Quota.words()
	} else if u := c.Usage; u.Before != nil || u.After != nil {
		quota = both(fraction(u.Before), fraction(u.After))
	}
	cells := []string{c.Consumer, c.Demand.words(), c.Held.words(), quota, c.Short.words(), c.Reclaimed.words()}
	if c.Settled != nil {
		cells = append(cells, c.Settled.words())
	}
	return cells
}

func fraction(f *float64) string {
	if f == nil {
		return "-"
	}
	return percent(*f)
}

// words is a figure before and after, once when they are the same.
func (p Pair) words() string {
	text := func(n *int64) string {
		if n == nil {
			return "-"
		}
		return grouped(*n)
	}
	words := both(text(p.Before), text(p.After))
	if p.Before != nil && p.After != nil && p.grows() != 0 {
		words += " (" + signed(p.grows()) + ")"
	}
	return words
}

func both(before, after string) string {
	if before == after {
		return before
	}
	return before + " → " + after
}

func (r *Taking) sentence() string {
	text := fmt.Sprintf("%s of %s", count(r.Units, "unit"), r.Consumer)
	if r.For != nil {
		text += " for " + *r.For
	}
	text += ", due " + r.Earliest
	if r.Latest != r.Earliest {
		text += " to " + r.Latest
	}
	return strings.TrimSpace(text + ": " + reclaimed[r.Reason].text)
}
