package scenario

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// expect is what the decisions of a step must look like.
type expect struct {
	rows, none []partial
	sums       []sum
	keyframe   bool // a table is asked for that only keyframes fill
}

// partial is some columns of a row of a table.
type partial struct {
	table string
	line  int
	cells []cell
}

// sum is what a column adds up to over the rows that match, in all cycles of a step.
type sum struct {
	partial
	column string
	equals cell
}

// cell is the value expected in a column.
type cell struct {
	column string
	text   string // as written
	null   bool
	number float64
	whole  bool // an exact comparison with int
	int    int64
}

// tolerance is how near a fraction must be (SPEC 9.1).
const tolerance = 1e-4

// consumersName is the one table that is seen joined with another (SPEC chapter 8, amounts).
const consumersName = "consumers"

// schema is every table of SPEC chapter 8 with its columns, without rows.
func schema(policy *plan.Policy) []decision.Table {
	var c decision.Cycle
	var s decision.Standing
	figures := decision.NewFigures(policy.Dimensions, len(policy.SlotPlans) > 0)
	s.Loans.Amounts, s.SubAllocations.Size = figures, figures
	return slices.Concat([]decision.Table{*c.View("cycles")}, c.Tables(), c.KeyframeTables(), s.Tables())
}

// tableOf is the schema of a table under a policy: with a column per dimension where the dimensions are columns.
func tableOf(name string, policy *plan.Policy) (decision.Table, bool) {
	tables := schema(policy)
	i := slices.IndexFunc(tables, func(t decision.Table) bool { return t.Name == name })
	if i < 0 {
		return decision.Table{}, false
	}
	t := tables[i]
	if name == consumersName {
		t = decision.Tree(&t)
		var amounts decision.Amounts
		for _, c := range amounts.Schema().Table().Columns {
			if c.Type == decision.Int {
				for _, d := range policy.Dimensions {
					t.Columns = append(t.Columns, decision.Column{Name: c.Name + "_" + d, Type: decision.Int})
				}
			}
		}
	}
	return t, true
}

func (f *file) expect(n ast.Node, policy *plan.Policy) (e expect, err error) {
	v, err := f.object(n, "expect", "rows", "none", "sums")
	if err != nil {
		return e, err
	}
	if e.rows, err = f.partials(v["rows"], "rows", policy); err != nil {
		return e, err
	}
	if e.none, err = f.partials(v["none"], "none", policy); err != nil {
		return e, err
	}
	if v["sums"] != nil {
		list, err := f.list(v["sums"], "sums")
		if err != nil {
			return e, err
		}
		for _, n := range list {
			s, err := f.sum(n, policy)
			if err != nil {
				return e, err
			}
			e.sums = append(e.sums, s)
		}
	}
	asks := func(p partial) bool { return slices.Contains([]string{"holdings", "hosts", "owners"}, p.table) }
	e.keyframe = slices.ContainsFunc(e.rows, asks) || slices.ContainsFunc(e.none, asks) ||
		slices.ContainsFunc(e.sums, func(s sum) bool { return asks(s.partial) })
	return e, nil
}

// partials reads `rows` or `none`: partial rows by table.
func (f *file) partials(n ast.Node, what string, policy *plan.Policy) (all []partial, err error) {
	if n == nil {
		return nil, nil
	}
	tables, err := f.pairs(n, what)
	if err != nil {
		return nil, err
	}
	for _, p := range tables {
		t, err := f.table(p.at, p.key, policy)
		if err != nil {
			return nil, err
		}
		list, err := f.list(p.value, what+" of "+p.key)
		if err != nil {
			return nil, err
		}
		for _, row := range list {
			one := partial{table: p.key}
			one.line, _ = start(row)
			if one.cells, err = f.cells(row, &t); err != nil {
				return nil, err
			}
			if len(one.cells) == 0 {
				return nil, f.fail(row, "%s of %s: a row needs at least one column", what, p.key)
			}
			all = append(all, one)
		}
	}
	return all, nil
}

func (f *file) table(at ast.Node, name string, policy *plan.Policy) (decision.Table, error) {
	t, ok := tableOf(name, policy)
	if !ok {
		var known []string
		for _, t := range schema(policy) {
			known = append(known, t.Name)
		}
		return t, f.fail(at, "there is no table %q; there are %s", name, strings.Join(known, ", "))
	}
	return t, nil
}

func (f *file) sum(n ast.Node, policy *plan.Policy) (s sum, err error) {
	v, err := f.object(n, "a sum", "table", "where", "column", "equals")
	if err != nil {
		return s, err
	}
	s.line, _ = start(n)
	for _, key := range []string{"table", "column", "equals"} {
		if v[key] == nil {
			return s, f.fail(n, "a sum needs %s", key)
		}
	}
	if s.partial.table, err = f.text(v["table"], "table"); err != nil {
		return s, err
	}
	t, err := f.table(v["table"], s.partial.table, policy)
	if err != nil {
		return s, err
	}
	if v["where"] != nil {
		if s.cells, err = f.cells(v["where"], &t); err != nil {
			return s, err
		}
	}
	if s.column, err = f.text(v["column"], "column"); err != nil {
		return s, err
	}
	if s.equals, err = f.cell(pair{s.column, v["column"], v["equals"]}, &t); err != nil {
		return s, err
	}
	if c := t.Column(s.column); c.Type != decision.Int && c.Type != decision.Float || s.equals.null {
		return s, f.fail(v["column"], "column %s of %s cannot be summed up to %q", s.column, t.Name, s.equals.text)
	}
	return s, nil
}

func (f *file) cells(n ast.Node, t *decision.Table) ([]cell, error) {
	pairs, err := f.pairs(n, "a row of "+t.Name)
	if err != nil {
		return nil, err
	}
	var cells []cell
	for _, p := range pairs {
		c, err := f.cell(p, t)
		if err != nil {
			return nil, err
		}
		cells = append(cells, c)
	}
	return cells, nil
}

// cell reads an expected value and checks that the column exists and can hold it.
func (f *file) cell(p pair, t *decision.Table) (cell, error) {
	column := t.Column(p.key)
	if column == nil {
		var known []string
		for _, c := range t.Columns {
			known = append(known, c.Name)
		}
		return cell{}, f.fail(p.at, "table %s has no column %q; it has %s", t.Name, p.key, strings.Join(known, ", "))
	}
	c := cell{column: p.key}
	var err error
	if _, c.null = p.value.(*ast.NullNode); c.null {
		c.text = "null"
		return c, nil
	}
	if c.text, err = f.text(p.value, p.key); err != nil {
		return c, err
	}
	switch column.Type {
	case decision.Int, decision.Float:
		if c.number, err = strconv.ParseFloat(c.text, 64); err != nil || math.IsNaN(c.number) ||
			math.IsInf(c.number, 0) {
			return c, f.fail(p.value, "column %s of %s, value %q: must be a number or null", p.key, t.Name, c.text)
		}
		if c.int, err = strconv.ParseInt(c.text, 10, 64); err == nil {
			c.whole = true
		} else if c.whole = c.number == math.Trunc(c.number) && math.Abs(c.number) < 1<<53; c.whole {
			c.int = int64(c.number)
		}
	case decision.Time:
		at, err := time.Parse(time.RFC3339Nano, c.text)
		if err != nil {
			return c, f.fail(p.value, "column %s of %s, value %q: must be an instant such as "+
				"2026-01-05T08:00:00Z or null", p.key, t.Name, c.text)
		}
		c.int, c.whole = at.UnixMicro(), true
	}
	return c, nil
}

// matches tells whether a column's row is what the cell expects.
func (c *cell) matches(column *decision.Column, row int) bool {
	if isNull(column, row) {
		return c.null || column.Type == decision.Text && c.text == ""
	}
	if c.null {
		return false
	}
	switch column.Type {
	case decision.Int, decision.Time:
		return c.fits(float64(column.Int[row]), column.Int[row])
	case decision.Float:
		v := column.Float[row]
		if c.whole {
			return v == c.number
		}
		return math.Abs(v-c.number) <= tolerance
	case decision.List:
		return slices.Contains(column.Lists[row], c.text)
	}
	return string(column.Dict.Bytes(column.Code[row])) == c.text
}

// fits compares a number as SPEC 9.1 says: exactly when whole, else within the tolerance.
func (c *cell) fits(f float64, i int64) bool {
	if c.whole {
		return i == c.int
	}
	return math.Abs(f-c.number) <= tolerance
}

func isNull(c *decision.Column, row int) bool {
	if c.Type == decision.Text {
		return c.Code[row] == decision.Null
	}
	return c.Null != nil && c.Null[row]
}

// show is a value as a report prints it.
func show(c *decision.Column, row int) string {
	if isNull(c, row) {
		return "null"
	}
	switch c.Type {
	case decision.Int:
		return strconv.FormatInt(c.Int[row], 10)
	case decision.Float:
		return strconv.FormatFloat(math.Round(c.Float[row]*1e6)/1e6, 'f', -1, 64)
	case decision.Time:
		return time.UnixMicro(c.Int[row]).UTC().Format(time.RFC3339Nano)
	case decision.List:
		return strings.Join(c.Lists[row], " ")
	}
	if text := string(c.Dict.Bytes(c.Code[row])); text != "" {
		return text
	}
	return `""`
}

// columns are the columns that a partial row names. A table read from a cycle lacks the columns of a dimension
// that no row has: then nothing matches.
func (p *partial) columns(t *decision.Table) ([]*decision.Column, bool) {
	columns, all := make([]*decision.Column, len(p.cells)), true
	for i := range p.cells {
		columns[i] = t.Column(p.cells[i].column)
		all = all && columns[i] != nil
	}
	return columns, all
}

// match lists the rows that have all cells of p.
func (p *partial) match(t *decision.Table) []int {
	columns, ok := p.columns(t)
	if !ok {
		return nil
	}
	var found []int
rows:
	for row := range t.Rows {
		for i := range p.cells {
			if !p.cells[i].matches(columns[i], row) {
				continue rows
			}
		}
		found = append(found, row)
	}
	return found
}

// closest lists up to n rows that have the most cells of p, texts counting before figures; ties in row order.
func (p *partial) closest(t *decision.Table, n int) []int {
	columns, _ := p.columns(t)
	type scored struct{ row, score int }
	rows := make([]scored, t.Rows)
	best := 0
	for row := range rows {
		rows[row].row = row
		for i, c := range columns {
			if c == nil || !p.cells[i].matches(c, row) {
				continue
			}
			if rows[row].score++; c.Type == decision.Text {
				rows[row].score += len(columns)
			}
		}
		best = max(best, rows[row].score)
	}
	var found []int
	for _, r := range rows {
		if r.score == best && len(found) < n {
			found = append(found, r.row)
		}
	}
	return found
}
