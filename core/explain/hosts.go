package explain

import (
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// Asked is what was asked for after a cycle, and of which hosts: the tables Requests and Inventory of core/engine.
type Asked struct{ Requests, Inventory *decision.Table }

// fixedColumns are those of an inventory before the dimensions: plan, host and state.
const fixedColumns = 3

// wordColumns are the attributes whose texts are words of a host, as its name is (REQ-1).
var wordColumns = [...]string{"type", "model"}

// fleet is the hosts of an inventory as requirements ask for them.
type fleet struct {
	t     *decision.Table
	dims  int
	words map[string]bool // made when first asked for
}

// Column finds a dimension or attribute, or the name or state of a host (plan.Hosts).
func (f *fleet) Column(name string) (col int, kind plan.Kind, ok bool) {
	first := fixedColumns
	if name == "host" || name == "state" {
		first = 1
	}
	for i := first; i < len(f.t.Columns); i++ {
		if c := &f.t.Columns[i]; c.Name == name {
			switch {
			case c.Type == decision.Text:
				return i, plan.Text, true
			case c.Type == decision.Int && i >= fixedColumns+f.dims:
				return i, plan.Boolean, true
			}
			return i, plan.Number, true
		}
	}
	return 0, 0, false
}

// NumberAt gives a dimension or a number (plan.Hosts).
func (f *fleet) NumberAt(col, host int) (v float64, ok bool) {
	c := &f.t.Columns[col]
	if c.Type == decision.Int {
		return float64(c.Int[host]), true
	}
	return c.Float[host], !c.Null[host]
}

// TextAt gives a text attribute, the name or the state of a host (plan.Hosts).
func (f *fleet) TextAt(col, host int) (v []byte, ok bool) {
	c := &f.t.Columns[col]
	if c.Code[host] == decision.Null {
		return nil, false
	}
	return c.Dict.Bytes(c.Code[host]), true
}

// BoolAt gives an attribute that is true or false (plan.Hosts).
func (f *fleet) BoolAt(col, host int) (v, ok bool) {
	c := &f.t.Columns[col]
	return c.Int[host] == 1, !c.Null[host]
}

// HasWord tells whether any host's name, type or model is the word (plan.Hosts).
func (f *fleet) HasWord(word string) bool {
	if f.words == nil {
		f.words = map[string]bool{}
		for _, name := range append([]string{"host"}, wordColumns[:]...) {
			if col, kind, ok := f.Column(name); ok && kind == plan.Text {
				for row := range f.t.Rows {
					if v, ok := f.TextAt(col, row); ok {
						f.words[string(v)] = true
					}
				}
			}
		}
	}
	return f.words[word]
}

// WordAt tells whether this host's name, type or model is the word (plan.Hosts).
func (f *fleet) WordAt(word string, host int) bool {
	for _, name := range append([]string{"host"}, wordColumns[:]...) {
		if col, kind, ok := f.Column(name); ok && kind == plan.Text {
			if v, ok := f.TextAt(col, host); ok && string(v) == word {
				return true
			}
		}
	}
	return false
}

// ofPlan lists the rows of a plan's hosts.
func (f *fleet) ofPlan(name string) (rows []int) {
	in := &f.t.Columns[0]
	for row := range f.t.Rows {
		if in.Code[row] != decision.Null && string(in.Dict.Bytes(in.Code[row])) == name {
			rows = append(rows, row)
		}
	}
	return rows
}

// word is a host's name or state.
func (f *fleet) word(col, row int) string {
	v, _ := f.TextAt(col, row)
	return string(v)
}

func (f *fleet) name(row int) string  { return f.word(1, row) }
func (f *fleet) state(row int) string { return f.word(2, row) }
func (f *fleet) open(row int) bool    { return f.state(row) == "ok" }
