package export

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stintd/stint/core/decision"
)

// Where keeps the rows whose column has a value. Numbers compare as numbers, shares to
// within 1e-4, instants as RFC 3339; a list matches when it has the value. An empty value
// matches rows that have none, and empty texts.
type Where struct {
	Column, Value string
}

// ParseWhere reads column=value.
func ParseWhere(s string) (Where, error) {
	column, value, ok := strings.Cut(s, "=")
	if !ok || column == "" {
		return Where{}, fmt.Errorf("%q is not of the form column=value", s)
	}
	return Where{column, value}, nil
}

// matcher tells of a row whether it matches all of where.
func matcher(t *decision.Table, where []Where) (func(row int) bool, error) {
	tests := make([]func(int) bool, len(where))
	for i, w := range where {
		c := t.Column(w.Column)
		if c == nil {
			names := make([]string, len(t.Columns))
			for i := range t.Columns {
				names[i] = t.Columns[i].Name
			}
			return nil, fmt.Errorf("table %s has no column %q; it has %s", t.Name, w.Column, strings.Join(names, ", "))
		}
		test, err := w.test(c)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", w.Column, err)
		}
		tests[i] = test
	}
	return func(row int) bool {
		for _, test := range tests {
			if !test(row) {
				return false
			}
		}
		return true
	}, nil
}

func (w Where) test(c *decision.Column) (func(row int) bool, error) {
	if w.Value == "" && c.Type != decision.List {
		return func(row int) bool { return value(c, row) == "" }, nil
	}
	switch c.Type {
	case decision.Text:
		return func(row int) bool {
			return c.Code[row] != decision.Null && string(c.Dict.Bytes(c.Code[row])) == w.Value
		}, nil
	case decision.List:
		return func(row int) bool {
			return slices.Contains(c.Lists[row], w.Value) || w.Value == "" && len(c.Lists[row]) == 0
		}, nil
	case decision.Float:
		want, err := strconv.ParseFloat(w.Value, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is no number", w.Value)
		}
		return func(row int) bool { return !c.IsNull(row) && math.Abs(c.Float[row]-want) <= 1e-4 }, nil
	}
	want, err := int64(0), error(nil)
	if c.Type == decision.Time {
		var at time.Time
		if at, err = time.Parse(time.RFC3339, w.Value); err != nil {
			return nil, fmt.Errorf("%q is no instant such as 2026-01-05T08:00:00Z", w.Value)
		}
		want = at.UnixMicro()
	} else if want, err = strconv.ParseInt(w.Value, 10, 64); err != nil {
		return nil, fmt.Errorf("%q is no whole number", w.Value)
	}
	return func(row int) bool { return !c.IsNull(row) && c.Int[row] == want }, nil
}
