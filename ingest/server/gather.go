package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/stintd/stint/core/decision"
)

// gathered is what a division answers with a table.
type gathered struct {
	division string
	next     rows
	at       moment
	release  func()
	page     cursor
}

// byNumber are parameters that name a cycle, whose numbers each division has for itself.
var byNumber = []string{"cycle", "before", "last", "until", "version"}

// gatherAll answers with the rows of all divisions, one behind the other: each says of which division it is, and of
// which cycle of that.
func (s *Server) gatherAll(q *request, r *route) (err error) {
	for _, name := range byNumber {
		if q.query(name) != "" {
			return s.whichDivision("parameter " + name + ": each division numbers its cycles by itself")
		}
	}
	if r.name == "/v1/cycles/{cycle}/{table}" && !strings.HasPrefix(q.rest, "latest/") {
		return s.whichDivision("each division numbers its cycles by itself; latest is there for all")
	}
	var all []gathered
	release := func() {
		for _, g := range all {
			g.release()
		}
	}
	var missing error
	for _, d := range s.divisions {
		var g gathered
		g, err = s.gatherOne(q, r, d)
		if p := asProblemOrNone(err); p.Status == http.StatusNotFound {
			missing = err
			continue
		}
		if err != nil {
			release()
			return err
		}
		all = append(all, g)
	}
	if len(all) == 0 {
		return missing
	}
	var vector []string
	at := moment{}
	for _, g := range all {
		vector = append(vector, fmt.Sprintf("%s=%d", g.division, g.at.cycle))
		at.logged = at.logged || g.at.logged
	}
	at.all = strings.Join(vector, ", ")
	next, err := concatenated(all)
	if err == nil {
		q.packs, q.page = r.is(packs), all[0].page
		err = q.rows(next, at, release)
	}
	if err != nil {
		release()
		return err
	}
	for _, name := range []string{"ETag", "Cache-Control"} {
		q.Response.Header.Del(name)
	}
	q.Response.Header.Set("Stint-Cycle", at.all)
	return nil
}

// asProblemOrNone is an error as the client would get it.
func asProblemOrNone(err error) (p problem) {
	if err != nil {
		p = asProblem(err)
	}
	return p
}

// gatherOne is the table of a division.
func (s *Server) gatherOne(q *request, r *route, d *Server) (g gathered, err error) {
	if d.far {
		return g, s.whichDivision("other processes decide " + d.o.Division + ", and this one has not its tables")
	}
	q.wentTo = append(q.wentTo, d)
	sub := &request{RequestCtx: q.RequestCtx, s: d, who: q.who, subject: q.subject, caller: q.caller, rest: q.rest,
		gather: &g}
	if err = d.answer(sub, r); err != nil {
		p := asProblem(err)
		p.Detail = "division " + d.o.Division + ": " + p.Detail
		return g, p
	}
	if r.name == "/v1/hosts" {
		g.next = planned(g.next)
	}
	return g, nil
}

// planned leaves of hosts those that are in a plan: each division has all hosts, and those of others are in none of
// its.
func planned(next rows) rows {
	return func(most int) (*decision.Table, error) {
		t, err := next(most)
		if err != nil || t == nil {
			return t, err
		}
		in := words(t, "plan", func(string) bool { return true })
		return matching(t, in)(t.Rows)
	}
}

// concatenated are the rows of several tables, one behind the other, with the columns of all. Column `division` comes
// first, then `cycle`.
func concatenated(all []gathered) (rows, error) {
	var heads []*decision.Table // without rows
	for _, g := range all {
		t, err := g.next(0)
		if err != nil {
			return nil, err
		}
		heads = append(heads, t)
	}
	columns := columnsOf(heads)
	begun := false
	return func(most int) (*decision.Table, error) {
		for at := 0; at < len(all); at++ {
			t, err := all[at].next(most)
			if err != nil {
				return nil, err
			}
			if t != nil {
				all, begun = all[at:], true
				return all[0].wide(t, columns), nil
			}
		}
		if all = nil; begun {
			return nil, nil
		}
		begun = true
		return (&gathered{}).wide(&decision.Table{Name: heads[0].Name}, columns), nil
	}, nil
}

// columnsOf are the columns that some of several tables have. One that not all have may be without a value.
func columnsOf(heads []*decision.Table) (columns []decision.Column) {
	for _, t := range heads {
		for _, c := range t.Columns {
			if !slices.ContainsFunc(columns, func(has decision.Column) bool { return has.Name == c.Name }) {
				columns = append(columns, decision.Column{Name: c.Name, Type: c.Type})
			}
		}
	}
	for i := range columns {
		columns[i].Optional = slices.ContainsFunc(heads, func(t *decision.Table) bool {
			c := t.Column(columns[i].Name)
			return columns[i].Type != decision.Text && columns[i].Type != decision.List && (c == nil || c.Optional)
		})
	}
	return columns
}

// wide is rows of a division with columns of its name, of the cycle, and those that all tables have together.
func (g *gathered) wide(t *decision.Table, columns []decision.Column) *decision.Table {
	out := &decision.Table{Name: t.Name, Rows: t.Rows}
	out.Columns = append(out.Columns, decision.Column{
		Name: divisionParam, Type: decision.Text, Code: make([]int32, t.Rows), Dict: decision.Words{g.division},
	})
	if !slices.ContainsFunc(columns, func(c decision.Column) bool { return c.Name == "cycle" }) {
		out.Columns = append(out.Columns, ints("cycle", slices.Repeat([]int64{g.at.cycle}, t.Rows)))
	}
	for _, c := range columns {
		if has := t.Column(c.Name); has != nil {
			optional := c.Optional
			c = *has
			c.Optional = optional
		} else {
			c = valueless(c, t.Rows)
		}
		out.Columns = append(out.Columns, c)
	}
	return out
}

// valueless is a column without values.
func valueless(c decision.Column, rows int) decision.Column {
	switch c.Type {
	case decision.Text:
		c.Code, c.Dict = slices.Repeat([]int32{decision.Null}, rows), decision.Words{}
	case decision.List:
		c.Lists = make([][]string, rows)
	case decision.Float:
		c.Float, c.Null = make([]float64, rows), slices.Repeat([]bool{true}, rows)
	default:
		c.Int, c.Null = make([]int64, rows), slices.Repeat([]bool{true}, rows)
	}
	return c
}
