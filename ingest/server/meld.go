package server

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
)

// melding gives the texts of several columns, each with a dictionary of its own, codes of one dictionary.
type melding struct{ names cluster.Names }

// codes are a column's codes in the common dictionary. A column that is not there has no values.
func (m *melding) codes(c *decision.Column) []int32 {
	if c == nil {
		return nil
	}
	known := map[int32]int32{}
	var dense []int32 // in place of known where the dictionary is no larger than the rows
	if c.Dict != nil && c.Dict.Len() <= 4*len(c.Code)+16 {
		dense = make([]int32, c.Dict.Len())
	}
	out := make([]int32, len(c.Code))
	for row, code := range c.Code {
		if code == decision.Null {
			out[row] = decision.Null
			continue
		}
		var at int32
		if dense != nil {
			at = dense[code]
		} else {
			at = known[code]
		}
		if at == 0 {
			at = m.names.Intern(c.Dict.Bytes(code)) + 1
			if dense != nil {
				dense[code] = at
			} else {
				known[code] = at
			}
		}
		out[row] = at - 1
	}
	return out
}

// at is the code of a row, null where the column is not there.
func at(codes []int32, row int) int32 {
	if codes == nil {
		return decision.Null
	}
	return codes[row]
}

// text is a text column of codes of the common dictionary.
func (m *melding) text(name string, codes []int32) decision.Column {
	if codes == nil {
		codes = []int32{}
	}
	return decision.Column{Name: name, Type: decision.Text, Code: codes, Dict: &m.names}
}

// ints is a column of numbers.
func ints(name string, values []int64) decision.Column {
	return decision.Column{Name: name, Type: decision.Int, Int: values}
}

// optional is a column of numbers that may be missing.
func optional(name string, values []int64, null []bool) decision.Column {
	return decision.Column{Name: name, Type: decision.Int, Int: values, Null: null, Optional: true}
}

// instants is a column of times.
func instants(name string, values []int64) decision.Column {
	return decision.Column{Name: name, Type: decision.Time, Int: values}
}
