package explain

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// shown is how many shortfalls and reclaims people are shown; programs get all that an explanation lists.
const shown = 100

// Style is how an explanation is written for people. The zero value is 100 columns wide and without colours.
type Style struct {
	Width           int
	Bold, Bad, Mark func(string) string // headings; what is missing; rules
}

func (s Style) withDefaults() Style {
	plain := func(text string) string { return text }
	if s.Width <= 0 {
		s.Width = 100
	}
	for _, f := range []*func(string) string{&s.Bold, &s.Bad, &s.Mark} {
		if *f == nil {
			*f = plain
		}
	}
	return s
}

// writer writes lines of a width.
type writer struct {
	Style
	b strings.Builder
}

// Write writes an explanation for people. The only errors are w's.
func (e *Explanation) Write(w io.Writer, style Style) error {
	t := &writer{Style: style.withDefaults()}
	what := e.Consumer
	if e.Allocation != nil {
		what += ":" + *e.Allocation
	}
	for i := range e.Plans {
		answer := e.Plans[i].Answer
		if len(e.Plans) > 1 {
			answer = strings.TrimSpace("plan "+e.Plans[i].Plan) + ": " + answer
		}
		t.paragraph(answer)
	}
	t.b.WriteByte('\n')
	fmt.Fprintf(&t.b, "%s after cycle %s at %s, revision %d\n", t.Bold(what), grouped(e.Cycle), e.Now, e.Revision)
	for i := range e.Plans {
		t.part(&e.Plans[i])
	}
	_, err := io.WriteString(w, t.b.String())
	return err
}

func (t *writer) part(p *Part) {
	head := "in no plan"
	switch p.Kind {
	case "md":
		head = "plan " + p.Plan
	case "slots":
		head = "slot plan " + p.Plan
		if p.Policy != "" {
			head += ", policy " + p.Policy
		}
	}
	if p.Window != "" {
		head += ", window " + p.Window
	}
	short := grouped(p.Short) + " short"
	if p.Short > 0 {
		short = t.Bad(short)
	}
	fmt.Fprintf(&t.b, "\n%s: %s wanted  ·  %s held  ·  %s\n", t.Bold(head), count(p.Demand, p.Unit), grouped(p.Held),
		short)
	for i := range p.Tables {
		t.grid(&p.Tables[i])
	}
	t.points("figures", p.Points)
	t.points("this cycle", p.Happened)
	if len(p.Shortfalls) > 0 {
		t.head("why short")
		for i := range p.Shortfalls[:min(len(p.Shortfalls), shown)] {
			s := &p.Shortfalls[i]
			words := s.Reason
			if s.Dimension != "" {
				words += " (" + s.Dimension + ")"
			}
			t.line(2, fmt.Sprintf("%s short of %s, %s: %s", name(s.Consumer, s.Allocation, s.Sub),
				count(s.Units, "unit"), words, s.Text), s.Rules)
			for _, b := range s.Because {
				t.line(6, b.Text, b.Rules)
			}
		}
		t.more(p.ShortfallsMore + max(0, len(p.Shortfalls)-shown))
	}
	t.reclaims("being taken back of it", p.Leaving, p.LeavingMore)
	t.reclaims("being taken back for it", p.Coming, p.ComingMore)
}

// more tells of rows that were left out.
func (t *writer) more(rows int) {
	if rows > 0 {
		fmt.Fprintf(&t.b, "… and %s more\n", grouped(int64(rows)))
	}
}

// paragraph writes sentences, broken at the width.
func (t *writer) paragraph(s string) {
	words := strings.Fields(s)
	t.broken("", "", words, len(words))
}

func (t *writer) head(title string) { fmt.Fprintf(&t.b, "\n%s\n", t.Bold(title)) }

func (t *writer) points(title string, points []Point) {
	if len(points) == 0 {
		return
	}
	t.head(title)
	for _, p := range points {
		t.line(2, p.Text, p.Rules)
	}
}

func (t *writer) reclaims(title string, list []Reclaim, more int) {
	if len(list) == 0 {
		return
	}
	t.head(title)
	for i := range list[:min(len(list), shown)] {
		t.line(2, list[i].Text, list[i].Rules)
	}
	t.more(more + max(0, len(list)-shown))
}

// line writes a sentence and its rules, broken at the width; what goes on stands further in.
func (t *writer) line(indent int, text string, rules []string) {
	words := strings.Fields(text)
	plain := len(words)
	if len(rules) > 0 {
		words = append(words, strings.Fields("["+strings.Join(rules, ", ")+"]")...)
	}
	t.broken(strings.Repeat(" ", indent)+"- ", strings.Repeat(" ", indent+2), words, plain)
}

// broken writes words, broken at the width, the first line behind one text and the others behind another of its length.
// Those from plain on are marked.
func (t *writer) broken(first, others string, words []string, plain int) {
	at := 0
	for i, w := range words {
		n := utf8.RuneCountInString(w)
		switch {
		case i == 0:
			t.b.WriteString(first)
			at = len(first)
		case at+1+n > t.Width:
			t.b.WriteString("\n" + others)
			at = len(others)
		default:
			t.b.WriteByte(' ')
			at++
		}
		if at += n; i >= plain {
			w = t.Mark(w)
		}
		t.b.WriteString(w)
	}
	t.b.WriteByte('\n')
}

// grid writes a table: names to the left, figures to the right.
func (t *writer) grid(g *Grid) {
	if len(g.Rows) == 0 {
		return
	}
	cells := [][]string{append([]string{g.Title}, g.Columns...)}
	for _, r := range g.Rows {
		row := []string{r.Name}
		for _, v := range r.Values {
			row = append(row, cell(v))
		}
		cells = append(cells, row)
	}
	t.b.WriteByte('\n')
	t.aligned(cells)
	t.more(g.More)
}

// aligned writes rows of cells: the first column to the left, the others to the right; the first row is the heading.
func (t *writer) aligned(cells [][]string) {
	width := make([]int, len(cells[0]))
	for _, row := range cells {
		for i, c := range row {
			width[i] = max(width[i], utf8.RuneCountInString(c))
		}
	}
	for r, row := range cells {
		line := ""
		for i, c := range row {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c))
			if r == 0 {
				c = t.Bold(c)
			}
			if i == 0 {
				line = c + pad
			} else {
				line += "  " + pad + c
			}
		}
		t.b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

// cell is a value of a grid: whole, a share, or none.
func cell(v any) string {
	switch v := v.(type) {
	case int64:
		return grouped(v)
	case float64:
		return percent(v)
	}
	return "-"
}
