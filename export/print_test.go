package export

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stintd/stint/core/decision"
)

func printSample() *decision.Table {
	words := coded("/A", "-", "/Long \"name\" <&>,")
	return &decision.Table{Name: "t", Rows: 3, Columns: []decision.Column{
		{Name: "consumer", Type: decision.Text, Code: words.Code, Dict: words.Dict},
		{Name: "held", Type: decision.Int, Int: []int64{7, 1234567, 0}, Null: []bool{false, false, true}},
		{Name: "usage", Type: decision.Float, Float: []float64{1.0 / 3, 0, 1}},
		{Name: "until", Type: decision.Time, Int: []int64{1767600000_000000, 1767600000_250000, 0},
			Null: []bool{false, false, true}},
		{Name: "inputs", Type: decision.List, Lists: [][]string{{"a/1", "b/2"}, nil, {"c/3"}}},
	}}
}

// TestPrint prints a table with every type and nulls in every format.
func TestPrint(t *testing.T) {
	for _, c := range []struct {
		format  string
		options PrintOptions
		want    string
	}{
		{"table", PrintOptions{}, `
consumer              held   usage  until                    inputs
/A                       7  0.3333  2026-01-05T08:00:00Z     a/1 b/2
-                  1234567  0.0000  2026-01-05T08:00:00.25Z
/Long "name" <&>,        -  1.0000  -                        c/3
`},
		{"table", PrintOptions{RowsMax: 1}, `
consumer  held   usage  until                 inputs
/A           7  0.3333  2026-01-05T08:00:00Z  a/1 b/2
… and 2 more rows
`},
		{"table", PrintOptions{Where: []Where{{"held", "8"}}}, `
none of the 3 rows in t matches
`},
		{"csv", PrintOptions{}, `
consumer,held,usage,until,inputs
/A,7,0.3333333333333333,2026-01-05T08:00:00Z,a/1 b/2
,1234567,0,2026-01-05T08:00:00.25Z,
"/Long ""name"" <&>,",,1,,c/3
`},
		{"ndjson", PrintOptions{}, `
{"consumer":"/A","held":7,"usage":0.3333333333333333,"until":"2026-01-05T08:00:00Z","inputs":["a/1","b/2"]}
{"consumer":null,"held":1234567,"usage":0,"until":"2026-01-05T08:00:00.25Z","inputs":[]}
{"consumer":"/Long \"name\" <&>,","held":null,"usage":1,"until":null,"inputs":["c/3"]}
`},
		{"json", PrintOptions{RowsMax: 2}, `
[{"consumer":"/A","held":7,"usage":0.3333333333333333,"until":"2026-01-05T08:00:00Z","inputs":["a/1","b/2"]},
 {"consumer":null,"held":1234567,"usage":0,"until":"2026-01-05T08:00:00.25Z","inputs":[]}]
`},
		{"json", PrintOptions{Where: []Where{{"held", "8"}}}, "\n[]\n"},
		{"ndjson", PrintOptions{Where: []Where{{"held", "8"}}}, "\n"},
	} {
		var b strings.Builder
		if err := Print(&b, printSample(), c.format, c.options); err != nil {
			t.Errorf("%s: %v", c.format, err)
		}
		if want := c.want[1:]; b.String() != want {
			t.Errorf("%s %+v:\n%s\nexpected\n%s", c.format, c.options, b.String(), want)
		}
		if c.format == "json" && !json.Valid([]byte(b.String())) {
			t.Errorf("no JSON: %s", b.String())
		}
	}
	for rows, want := range []string{"no rows in t\n", "the one row in t does not match\n"} {
		some := &decision.Table{Name: "t", Rows: rows, Columns: []decision.Column{
			{Name: "held", Type: decision.Int, Int: make([]int64, rows)}}}
		var b strings.Builder
		if err := Print(&b, some, "table", PrintOptions{Where: []Where{{"held", "8"}}}); err != nil ||
			b.String() != want {
			t.Errorf("of %d rows: %q, %v, expected %q", rows, b.String(), err, want)
		}
	}
	if err := Print(&strings.Builder{}, printSample(), "xml", PrintOptions{}); err == nil ||
		err.Error() != `no format "xml"; there are table, json, ndjson, csv` {
		t.Error(err)
	}
	for _, format := range Formats {
		if err := Print(full{}, printSample(), format, PrintOptions{}); !errors.Is(err, errDisk) {
			t.Errorf("%s to a full disk: %v", format, err)
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errDisk }

// TestWhere keeps the rows that match.
func TestWhere(t *testing.T) {
	for where, want := range map[string]string{
		"consumer=/A": "0", "consumer=": "1", "consumer=/a": "", "held=7": "0", "held=": "2", "held=0": "",
		"usage=0.3333": "0", "usage=1": "2", "until=2026-01-05T08:00:00.25Z": "1",
		"until=2026-01-05T09:00:00+01:00": "0", "until=": "2", "inputs=b/2": "0", "inputs=": "1", "inputs=a": "",
		"consumer=/A&held=7": "0", "consumer=/A&held=": "",
		"held=x": `column held: "x" is no whole number`, "usage=x": `column usage: "x" is no number`,
		"until=noon": `column until: "noon" is no instant such as 2026-01-05T08:00:00Z`,
		"hold=1":     `table t has no column "hold"; it has consumer, held, usage, until, inputs`,
		"held":       `"held" is not of the form column=value`, "=1": `"=1" is not of the form column=value`,
	} {
		if got := matched(strings.Split(where, "&")); got != want {
			t.Errorf("%s: %q, expected %q", where, got, want)
		}
	}
}

// matched are the numbers of the rows that match, or the error.
func matched(where []string) string {
	var all []Where
	for _, s := range where {
		w, err := ParseWhere(s)
		if err != nil {
			return err.Error()
		}
		all = append(all, w)
	}
	table := printSample()
	keep, err := matcher(table, all)
	if err != nil {
		return err.Error()
	}
	rows := ""
	for row := range table.Rows {
		if keep(row) {
			rows += string(rune('0' + row))
		}
	}
	return rows
}
