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
	c.Plan, c.Consumer = Coded{[]int32{0, 0, 1}, plans}, Coded{[]int32{0, 1, 0}, paths}
	c.Policy = Coded{[]int32{0, 0, 0}, plans}
	a := Amounts{
		Plan: Coded{[]int32{0, 0, 1}, plans}, Consumer: Coded{[]int32{1, 1, 0}, paths},
		Dimension: Coded{[]int32{0, 1, 0}, dims}, Configured: make([]int64, 3), Owned: []int64{4, 5, 6},
		Reserved: make([]int64, 3), Held: []int64{7, 8, 9}, Lent: make([]int64, 3), StaticQuota: make([]int64, 3),
		Limit: []int64{0, 10, 0}, LimitNull: []bool{true, false, true},
	}
	consumers, amounts := c.Table(), a.Table()
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
	cycles := ints("cycle", []int64{1, 2})
	consumers := Table{"consumers", 2, []Column{cycles, text("plan", 0), text("consumer", 1)}}
	amounts := Table{"amounts", 2, []Column{cycles, text("plan", 0), text("consumer", 1), text("dimension", 2),
		ints("held", []int64{7, 8})}}
	wide := Wide(&consumers, &amounts)
	if got := wide.Column("held_ncpus").Int; !slices.Equal(got, []int64{7, 8}) || wide.Column("cycle_ncpus") != nil {
		t.Errorf("held_ncpus %v", got)
	}
}
