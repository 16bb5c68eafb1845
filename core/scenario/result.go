package scenario

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/standing"
)

// Result is how a scenario went.
type Result struct {
	File      string `json:"file"`
	Line      int    `json:"line"`
	Name      string `json:"name"`
	Rule      string `json:"rule,omitempty"`
	Steps     int    `json:"steps"`
	Cycles    int    `json:"cycles"`
	MissCount int    `json:"miss_count"`
	Misses    []Miss `json:"misses,omitempty"` // the first missesMax
	// suspect about hosts and groups at the end, such as a select that matches nothing
	Warnings []string `json:"warnings,omitempty"`
}

// OK tells whether all was as expected.
func (r *Result) OK() bool { return r.MissCount == 0 }

// Miss is one expectation that was not met.
type Miss struct {
	Step     int      `json:"step"`  // from 1
	Line     int      `json:"line"`  // of the expectation
	Cycle    int64    `json:"cycle"` // in which it was found
	Kind     string   `json:"kind"`  // rows, none, sums or until_stable
	Table    string   `json:"table,omitempty"`
	Columns  []string `json:"columns,omitempty"`
	Expected []string `json:"expected,omitempty"` // by column
	// the closest rows (rows), the rows that must not be (none), the sum (sums)
	Got     [][]string `json:"got,omitempty"`
	Note    string     `json:"note"`
	differs [][]bool   // by row of Got and column
}

func (r *Result) miss(m Miss) {
	r.MissCount++
	if len(r.Misses) < missesMax {
		r.Misses = append(r.Misses, m)
	}
}

// gotMax bounds the rows that a miss shows.
const gotMax = 3

// checker compares the cycles of one step with what it expects.
type checker struct {
	*player
	step   *step
	number int
	totals []total // by sum
}

// total is a sum on its way through the cycles of a step.
type total struct {
	int   int64
	float float64
	rows  int
}

// cycle checks the cycle just run; last tells that it is the step's last one.
func (c *checker) cycle(last bool) {
	seen := map[string]*decision.Table{}
	for i := range c.step.expect.none {
		p := &c.step.expect.none[i]
		t := c.table(seen, p.table)
		if rows := p.match(t); len(rows) > 0 {
			c.miss(p, "none", t, rows[:min(len(rows), gotMax)], plural(len(rows), "row")+" like this must not be")
		}
	}
	for i := range c.step.expect.sums {
		c.totals[i].add(&c.step.expect.sums[i], c.table(seen, c.step.expect.sums[i].table))
	}
	if !last {
		return
	}
	for i := range c.step.expect.rows {
		p := &c.step.expect.rows[i]
		t := c.table(seen, p.table)
		if len(p.match(t)) == 0 {
			c.miss(p, "rows", t, p.closest(t, gotMax), "no such row among "+plural(t.Rows, "row"))
		}
	}
	for i := range c.step.expect.sums {
		c.sum(&c.step.expect.sums[i], &c.totals[i])
	}
}

// table finds a table of the last cycle; one that no rule fills yet is empty.
func (c *checker) table(seen map[string]*decision.Table, name string) *decision.Table {
	if t := seen[name]; t != nil {
		return t
	}
	var t decision.Table
	switch name {
	case "loans", "sub_allocations", "attributes":
		for _, one := range standing.Keep(c.state, nil, standing.Frozen()).Whole().Tables() {
			if seen[one.Name] = &one; one.Name == name {
				t = one
			}
		}
	case consumersName:
		t = *c.out.Wide()
	default:
		if decided := c.out.View(name); decided != nil {
			t = *decided
		} else {
			t, _ = tableOf(name, c.state.Policy)
		}
	}
	seen[name] = &t
	return &t
}

// add sums the rows of a cycle that match.
func (a *total) add(s *sum, t *decision.Table) {
	column := t.Column(s.column)
	for _, row := range s.match(t) {
		a.rows++
		if column == nil || isNull(column, row) {
			continue
		}
		if column.Type == decision.Int {
			a.int += column.Int[row]
			a.float += float64(column.Int[row])
		} else {
			a.float += column.Float[row]
		}
	}
}

func (c *checker) sum(s *sum, a *total) {
	t, _ := tableOf(s.table, c.state.Policy)
	got, met := strconv.FormatInt(a.int, 10), s.equals.fits(a.float, a.int)
	if t.Column(s.column).Type == decision.Float {
		got, met = strconv.FormatFloat(a.float, 'g', 6, 64), a.float == s.equals.number ||
			!s.equals.whole && s.equals.fits(a.float, 0)
	}
	if met {
		return
	}
	m := Miss{Step: c.number, Line: s.line, Cycle: c.out.Summary.Cycle, Kind: "sums", Table: s.table,
		Note: fmt.Sprintf("sum of %s over %s", s.column, plural(a.rows, "row"))}
	row := []string{}
	for _, cell := range s.cells {
		m.Columns, m.Expected = append(m.Columns, cell.column), append(m.Expected, cell.text)
		row = append(row, cell.text)
	}
	m.Columns, m.Expected = append(m.Columns, "sum of "+s.column), append(m.Expected, s.equals.text)
	m.Got = [][]string{append(row, got)}
	m.differs = [][]bool{make([]bool, len(m.Columns))}
	m.differs[0][len(s.cells)] = true
	c.result.miss(m)
}

func (c *checker) miss(p *partial, kind string, t *decision.Table, rows []int, note string) {
	m := Miss{Step: c.number, Line: p.line, Cycle: c.out.Summary.Cycle, Kind: kind, Table: p.table, Note: note}
	columns, _ := p.columns(t)
	for _, cell := range p.cells {
		m.Columns, m.Expected = append(m.Columns, cell.column), append(m.Expected, cell.text)
	}
	for _, row := range rows {
		got, differs := make([]string, len(columns)), make([]bool, len(columns))
		for i, column := range columns {
			if column == nil {
				got[i], differs[i] = "null", true
				continue
			}
			got[i], differs[i] = show(column, row), !p.cells[i].matches(column, row)
		}
		m.Got, m.differs = append(m.Got, got), append(m.differs, differs)
	}
	c.result.miss(m)
}

// Print writes a result's misses for a person: expected and got below each other, figures that differ marked with ≠.
// What is suspect about the hosts is told only where something was missed, since it may be meant.
func (r *Result) Print(w io.Writer) error {
	var b strings.Builder
	if len(r.Misses) > 0 {
		for _, line := range r.Warnings {
			fmt.Fprintf(&b, "    warning: %s\n", line)
		}
	}
	for _, m := range r.Misses {
		fmt.Fprintf(&b, "    %s:%d: step %d, cycle %d", r.File, m.Line, m.Step, m.Cycle)
		if m.Table != "" {
			fmt.Fprintf(&b, ", %s", m.Table)
		}
		fmt.Fprintf(&b, ": %s\n", m.Note)
		if len(m.Columns) == 0 {
			continue
		}
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintf(t, "      \t%s\n", strings.Join(m.Columns, "\t"))
		label := "expected"
		if m.Kind == "none" {
			label = "unwanted"
		}
		fmt.Fprintf(t, "      %s\t%s\n", label, strings.Join(m.Expected, "\t"))
		for i, row := range m.Got {
			shown := slices.Clone(row)
			for k := range shown {
				if m.differs[i][k] {
					shown[k] += " ≠"
				}
			}
			fmt.Fprintf(t, "      got\t%s\n", strings.Join(shown, "\t"))
		}
		if len(m.Got) == 0 {
			fmt.Fprintf(t, "      got\tnothing\n")
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if n := r.MissCount - len(r.Misses); n > 0 {
		fmt.Fprintf(&b, "    and %d more\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
