package server

import (
	"strings"
	"testing"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/export"
)

// TestConcatenated puts tables of two divisions together of which each has a column that the other lacks, part by part,
// and tables without rows.
func TestConcatenated(t *testing.T) {
	words := decision.Words{"/A", "/B"}
	east := &decision.Table{Name: "t", Rows: 2, Columns: []decision.Column{
		{Name: "consumer", Type: decision.Text, Code: []int32{0, decision.Null}, Dict: words},
		ints("units", []int64{1, 2}),
	}}
	west := &decision.Table{Name: "t", Rows: 1, Columns: []decision.Column{
		{Name: "consumer", Type: decision.Text, Code: []int32{1}, Dict: words},
		{Name: "ratio", Type: decision.Float, Float: []float64{.5}},
	}}
	for _, c := range []struct {
		tables []*decision.Table
		want   string
	}{
		{[]*decision.Table{east, west}, "division,cycle,consumer,units,ratio\ne,7,/A,1,\ne,7,,2,\nw,9,/B,,0.5\n"},
		{[]*decision.Table{east.Slice(0, 0), west}, "division,cycle,consumer,units,ratio\nw,9,/B,,0.5\n"},
		{[]*decision.Table{east.Slice(0, 0), west.Slice(0, 0)}, "division,cycle,consumer,units,ratio\n"},
	} {
		for _, format := range []string{"csv", "arrow", "parquet", "json"} {
			next, err := concatenated([]gathered{
				{division: "e", next: all(c.tables[0]), at: moment{cycle: 7}, release: func() {}},
				{division: "w", next: all(c.tables[1]), at: moment{cycle: 9}, release: func() {}},
			})
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			parts, err := export.NewParts(&b, format, 0)
			if err != nil {
				t.Fatal(err)
			}
			for {
				part, err := next(1)
				if err != nil {
					t.Fatal(err)
				}
				if part == nil {
					break
				}
				if err := parts.Write(part); err != nil {
					t.Fatalf("%s: %v", format, err)
				}
			}
			if err := parts.Close(); err != nil {
				t.Fatal(err)
			}
			if format == "csv" && b.String() != c.want {
				t.Errorf("got\n%sexpected\n%s", b.String(), c.want)
			}
		}
	}
}
