package export

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stintd/stint/core/decision"
)

// wideSample is a table with a column without a value, one that all rows have in common, a long text and many figures.
func wideSample(rows int) *decision.Table {
	t := &decision.Table{Name: "t", Rows: rows}
	text := func(name string, words ...string) {
		c := coded(words...)
		t.Columns = append(t.Columns, decision.Column{Name: name, Type: decision.Text, Code: c.Code[:rows],
			Dict: c.Dict})
	}
	number := func(name string, n ...int64) {
		t.Columns = append(t.Columns, decision.Column{Name: name, Type: decision.Int, Int: n[:rows]})
	}
	text("plan", "gpu", "gpu", "gpu")
	text("consumer", "/Risk/Intraday", "/Research", "/Risk/Overnight")
	number("demand", 1_200_000, 17, 0)
	text("blocker", "-", "-", "-")
	number("held_by_owner", 1_000_000, 16, 0)
	number("held_from_pools", 100_000, 1, 0)
	text("detail", "the pool holds 18 units of this size and 17 are in use", "-", "no host matches")
	number("under_reclaim", 5, 6, 7)
	return t
}

// TestPrintFits holds what a terminal of 80 columns shows, and that --all leaves nothing out.
func TestPrintFits(t *testing.T) {
	for _, c := range []struct {
		name string
		rows int
		o    PrintOptions
		want string
	}{
		{"wide enough", 2, PrintOptions{Width: 200}, `
plan  consumer         demand  held_by_owner  held_from_pools  detail                                                  under_reclaim
gpu   /Risk/Intraday  1200000        1000000           100000  the pool holds 18 units of this size and 17 are in use              5
gpu   /Research            17             16                1  -                                                                   6
`},
		{"blocks", 3, PrintOptions{Width: 80}, `
in all rows: plan gpu
consumer          demand  held_by_owner  held_from_pools
/Risk/Intraday   1200000        1000000           100000
/Research             17             16                1
/Risk/Overnight        0              0                0

consumer         detail
/Risk/Intraday   the pool holds 18 units of this size and 17 are in use
/Research        -
/Risk/Overnight  no host matches

consumer         under_reclaim
/Risk/Intraday               5
/Research                    6
/Risk/Overnight              7
`},
		{"one row", 1, PrintOptions{Width: 60}, `
plan             gpu
consumer         /Risk/Intraday
demand           1200000
held_by_owner    1000000
held_from_pools  100000
detail           the pool holds 18 units of this size and 17
                 are in use
under_reclaim    5
`},
		{"all", 1, PrintOptions{Width: 60, All: true}, `
plan  consumer         demand  blocker  held_by_owner  held_from_pools  detail                                                  under_reclaim
gpu   /Risk/Intraday  1200000  -              1000000           100000  the pool holds 18 units of this size and 17 are in use              5
`},
	} {
		var b strings.Builder
		if err := Print(&b, wideSample(c.rows), "table", c.o); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if want := c.want[1:]; b.String() != want {
			t.Errorf("%s:\n%s\nexpected\n%s", c.name, b.String(), want)
		}
	}
}

// TestPrintWidths prints on lines of any width: no line is longer where no value is, and every value is there.
func TestPrintWidths(t *testing.T) {
	for width := 40; width < 160; width++ {
		for rows := 1; rows <= 3; rows++ {
			var b strings.Builder
			if err := Print(&b, wideSample(rows), "table", PrintOptions{Width: width}); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(b.String()) {
				if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > max(width, 46) {
					t.Errorf("width %d, %d rows: a line of %d columns: %s", width, rows, n, line)
				}
			}
			for _, word := range []string{"/Risk/Intraday", "1200000", "1000000", "100000", "units", "under_reclaim",
				"5", "gpu"} {
				if !strings.Contains(b.String(), word) {
					t.Errorf("width %d, %d rows: %s is missing:\n%s", width, rows, word, b.String())
				}
			}
		}
	}
}
