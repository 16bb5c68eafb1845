package server

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/explain"
	"github.com/stintd/stint/core/simulation"
)

// Rows of an answer to a what-if or a simulation.
const (
	answerRows    = 1_000
	answerRowsMax = 10_000
)

// window is which rows of an answer are given: so many behind the first ones.
type window struct{ after, limit int }

// limited reads the parameter limit.
func (q *request) limited() (int, error) {
	limit, err := q.number("limit", 1, answerRows)
	if err == nil && limit > answerRowsMax {
		err = badRequest("parameter limit=" + strconv.FormatInt(limit, 10) + ": must be at most " +
			strconv.Itoa(answerRowsMax))
	}
	return int(limit), err
}

// window reads the parameters limit and after.
func (q *request) window() (w window, err error) {
	if w.limit, err = q.limited(); err != nil {
		return w, err
	}
	after, err := q.number("after", 0, 0)
	w.after = int(min(after, 1<<31))
	return w, err
}

// rowsOf gives the window of a list, and how many rows stand behind it.
func rowsOf[T any](list []T, w window) (rows []T, more int) {
	rows = list[min(w.after, len(list)):]
	if len(rows) > w.limit {
		return rows[:w.limit], len(rows) - w.limit
	}
	return rows, 0
}

// cutComparison leaves the window of both lists.
func (w window) cutComparison(c *explain.Comparison) {
	c.Changes, c.ChangesMore = rowsOf(c.Changes, w)
	c.Reclaims, c.ReclaimsMore = rowsOf(c.Reclaims, w)
}

// cutSimulation leaves the window of the rows that are asked for.
func (w window) cutSimulation(a *simulation.Answer) { a.Rows, a.RowsMore = rowsOf(a.Rows, w) }

var windowParams = []param{
	query("limit", fmt.Sprintf("rows of a list at most (%d, at most %d); the member ..._more tells how many follow",
		answerRows, answerRowsMax), object{"type": "integer", "minimum": 1, "maximum": answerRowsMax}),
	query("after", "how many rows to leave out: the question is decided again, as things are then",
		object{"type": "integer", "minimum": 0}),
}

// cursor is the page of a list that a call asks for: so many rows behind the first ones. A limit of 0 asks for all.
type cursor struct {
	limit, after int
	at           string // the moment of the page before
}

// nextHeader is the header of an answer with the cursor of the next page. The last page has none.
const nextHeader = "Stint-Next"

var pageParams = []param{
	query("limit", fmt.Sprintf("rows at most (all, with cursor %d); at most %d", answerRows, answerRowsMax),
		object{"type": "integer", "minimum": 1, "maximum": answerRowsMax}),
	query("cursor", "the header "+nextHeader+" of the page before: the rows behind it", text),
}

// list refuses parameters that a list does not have, and reads those of a page.
func (q *request) list(names ...string) error {
	if err := q.known(append(names, "format", "limit", "cursor")...); err != nil {
		return err
	}
	given := q.query("cursor")
	if given == "" && q.query("limit") == "" {
		return nil
	}
	limit, err := q.limited()
	if err != nil || given == "" {
		q.page = cursor{limit: limit}
		return err
	}
	plain, bad := base64.RawURLEncoding.DecodeString(given)
	number, at, ok := strings.Cut(string(plain), " ")
	after, wrong := strconv.ParseUint(number, 10, 31)
	if bad != nil || wrong != nil || !ok {
		return badRequest("parameter cursor=" + given + ": must be the header " + nextHeader + " of the page before")
	}
	q.page = cursor{limit: limit, after: int(after), at: at}
	return nil
}

// turned gives the page of rows that is asked for. The rows are held, so that the header tells whether more follow. A
// page of another moment is refused: rows would be missing, or come twice.
func (q *request) turned(next rows, at moment) (rows, error) {
	p := q.page
	if p.limit == 0 {
		return next, nil
	}
	if p.at != "" && p.at != at.String() {
		return nil, problem{Type: "cursor", Status: 410, Detail: fmt.Sprintf("parameter cursor: the page before is of "+
			"cycle %s, and this list is of cycle %s: begin again without cursor", p.at, at)}
	}
	q.s.encodes <- struct{}{}
	defer func() { <-q.s.encodes }()
	var parts []*decision.Table
	skip, left := p.after, p.limit+1 // a row more tells that others follow
	for left > 0 {
		t, err := next(min(skip+left, partRowsMax))
		if err != nil {
			return nil, err
		}
		if t == nil {
			break
		}
		from := min(skip, t.Rows)
		t = t.Slice(from, min(t.Rows, from+left))
		skip, left = skip-from, left-t.Rows
		parts = append(parts, t)
	}
	if left == 0 {
		last := parts[len(parts)-1]
		parts[len(parts)-1] = last.Slice(0, last.Rows-1)
		plain := fmt.Appendf(nil, "%d %s", p.after+p.limit, at)
		q.Response.Header.Set(nextHeader, base64.RawURLEncoding.EncodeToString(plain))
	}
	return func(int) (*decision.Table, error) {
		if len(parts) == 0 {
			return nil, nil
		}
		defer func() { parts = parts[1:] }()
		return parts[0], nil
	}, nil
}
