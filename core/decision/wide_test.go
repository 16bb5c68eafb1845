package decision

import (
	"fmt"
	"slices"
	"testing"
)

// TestWide joins two dimensions onto three consumers, one of them without amounts.
func TestWide(t *testing.T) {
	paths, plans, dims := Words{"/A", "/B", "/C"}, Words{"p", "q"}, Words{"ncpus", "gpus"}
	var c Consumers
	for i := range paths {
		c.Held = append(c.Held, int64(i))
	}
	c.Rank, c.Demand, c.Short, c.SlotNull = make([]int64, 3), make([]int64, 3), make([]int64, 3), make([]bool, 3)
	c.Plan, c.Consumer = Coded{Code: []int32{0, 0, 1}, Dict: plans}, Coded{Code: []int32{0, 1, 0}, Dict: paths}
	c.Policy = Coded{Code: []int32{0, 0, 0}, Dict: plans}
	a := Amounts{
		Plan: Coded{Code: []int32{0, 0, 1}, Dict: plans}, Consumer: Coded{Code: []int32{1, 1, 0}, Dict: paths},
		Dimension: Coded{Code: []int32{0, 1, 0}, Dict: dims}, Configured: make([]int64, 3), Owned: []int64{4, 5, 6},
		Reserved: make([]int64, 3), Held: []int64{7, 8, 9}, Lent: make([]int64, 3), StaticQuota: make([]int64, 3),
		Limit: []int64{0, 10, 0}, LimitNull: []bool{true, false, true},
	}
	consumers, amounts := c.Schema().Table(), a.Schema().Table()
	narrow := len(consumers.Columns)
	wide := Wide(&consumers, &amounts)
	narrow += len(treeColumns)
	if len(consumers.Columns)+len(treeColumns) != narrow || wide.Columns[narrow].Name != "configured_ncpus" {
		t.Errorf("columns: %d before, %d after, then %s", narrow, len(consumers.Columns), wide.Columns[narrow].Name)
	}
	for name, want := range map[string][]string{
		"held":             {"0", "1", "2"},
		"owned_gpus":       {"-", "5", "-"},
		"held_ncpus":       {"-", "7", "9"},
		"share_limit_gpus": {"-", "10", "-"},
	} {
		var got []string
		column := wide.Column(name)
		if column == nil {
			t.Errorf("no column %s", name)
			continue
		}
		for row := range wide.Rows {
			if column.Null != nil && column.Null[row] {
				got = append(got, "-")
			} else {
				got = append(got, fmt.Sprint(column.Int[row]))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, expected %v", name, got, want)
		}
	}
}

// TestWideCycles keeps the rows of several cycles apart.
func TestWideCycles(t *testing.T) {
	words := Words{"p", "/A", "ncpus"}
	text := func(name string, code int32) Column {
		return Column{Name: name, Type: Text, Code: []int32{code, code}, Dict: words}
	}
	cycles := Column{Name: "cycle", Int: []int64{1, 2}}
	consumers := Table{Name: "consumers", Rows: 2, Columns: []Column{cycles, text("plan", 0), text("consumer", 1)}}
	amounts := Table{Name: "amounts", Rows: 2, Columns: []Column{cycles, text("plan", 0), text("consumer", 1),
		text("dimension", 2), {Name: "held", Int: []int64{7, 8}}}}
	wide := Wide(&consumers, &amounts)
	if got := wide.Column("held_ncpus").Int; !slices.Equal(got, []int64{7, 8}) || wide.Column("cycle_ncpus") != nil {
		t.Errorf("held_ncpus %v", got)
	}
}
