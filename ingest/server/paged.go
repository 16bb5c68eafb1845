package server

import (
	"fmt"
	"strconv"

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

// window reads the parameters limit and after.
func (q *request) window() (w window, err error) {
	limit, err := q.number("limit", 1, answerRows)
	if err == nil && limit > answerRowsMax {
		err = badRequest("parameter limit=" + strconv.FormatInt(limit, 10) + ": must be at most " +
			strconv.Itoa(answerRowsMax))
	}
	if err != nil {
		return w, err
	}
	after, err := q.number("after", 0, 0)
	return window{int(min(after, 1<<31)), int(limit)}, err
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
