package plan

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// table is a table of hosts as literals: nil is a missing value.
type table struct {
	columns []string
	rows    [][]any
}

var inventory = table{
	[]string{"host", "ncpus", "maxmem", "gpus", "mg", "type", "model", "os", "weight"},
	[][]any{
		{"h1", 4.0, 512.0, 0.0, true, "LINUX86", "X5", "el9", 1.5},
		{"h2", 8.0, 256.0, 2.0, false, "LINUX86", "X6", "el8", nil},
		{"h3", 2.0, nil, 0.0, nil, "SOLARIS", "T4", nil, -2.5},
		{"h4.example.org", 16.0, 1024.0, 4.0, false, nil, nil, "el9", 1e300},
	},
}

func (t table) Column(name string) (int, Kind, bool) {
	col := slices.Index(t.columns, name)
	if col < 0 {
		return 0, 0, false
	}
	switch t.rows[0][col].(type) {
	case float64:
		return col, Number, true
	case bool:
		return col, Boolean, true
	}
	return col, Text, true
}

func (t table) NumberAt(col, host int) (float64, bool) {
	v, ok := t.rows[host][col].(float64)
	return v, ok
}

func (t table) TextAt(col, host int) ([]byte, bool) {
	v, ok := t.rows[host][col].(string)
	return []byte(v), ok
}

func (t table) BoolAt(col, host int) (v, ok bool) {
	v, ok = t.rows[host][col].(bool)
	return v, ok
}

func (t table) HasWord(word string) bool {
	for host := range t.rows {
		if t.WordAt(word, host) {
			return true
		}
	}
	return false
}

func (t table) WordAt(word string, host int) bool {
	return slices.ContainsFunc([]int{0, 5, 6}, func(col int) bool { return t.rows[host][col] == any(word) })
}

func bound(t *testing.T, text string, parse func(string) (*Requirement, error)) *Bound {
	t.Helper()
	q, err := parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	b, err := q.Bind(inventory)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return b
}

func TestMatch(t *testing.T) {
	for text, want := range map[string]string{
		"ncpus > 4":                          "24",
		"ncpus >= 4 && ncpus <= 8":           "12",
		"LINUX86 && maxmem > 300":            "1",
		"!mg && gpus == 0":                   "3",
		"mg":                                 "1",
		"!mg":                                "234",
		"h3 || X6":                           "23",
		"'h4.example.org'":                   "4",
		"h4.example.org":                     "4",
		"maxmem < 9999":                      "124", // a comparison with a missing value is false
		"maxmem != 512":                      "24",
		"!(maxmem == 512)":                   "234",
		"maxmem + 1 > 0":                     "124",
		"maxmem / 0 > 0 || 1 / gpus < 0.4":   "4", // division by zero is missing
		"type == LINUX86":                    "12",
		"LINUX86 == type":                    "12",
		"type != 'LINUX86'":                  "3",
		"os == 'el9' || os < 'el9'":          "124",
		"name == h1":                         "1",
		"host >= 'h2'":                       "234",
		"ncpus * 2 + 1 == 9":                 "1",
		"1 + ncpus * 2 == 9":                 "1",
		"(1 + ncpus) * 2 == 10":              "1",
		"ncpus - 1 - 1 == 2":                 "1",
		"16 / ncpus / 2 == 1":                "2",
		"-ncpus < -7 && - -1 == 1":           "24",
		"weight < 0":                         "3",
		"h1 || h2 && gpus == 7":              "1",
		"(h1 || h2) && gpus == 2":            "2",
		"ncpus == 4.0 && ncpus == 04 && h1 ": "1",
	} {
		b := bound(t, "select("+text+")", ParseRequirement)
		got := ""
		for host := range inventory.rows {
			if b.Match(host) {
				got += string(rune('1' + host))
			}
		}
		if got != want {
			t.Errorf("%s: got hosts %s, want %s", text, got, want)
		}
	}
}

func TestNumber(t *testing.T) {
	const missing = -1
	for text, want := range map[string][4]int64{
		"12":                  {12, 12, 12, 12},
		"(ncpus*2)":           {8, 16, 4, 32},
		"ncpus / 3":           {1, 2, 0, 5},
		"maxmem":              {512, 256, missing, 1024},
		"ncpus - 3":           {1, 5, 0, 13}, // never below 0
		"weight":              {1, missing, 0, 1 << 53},
		"weight * weight":     {2, missing, 6, 1 << 53}, // infinite is kept within 2^53
		"ncpus / gpus":        {missing, 4, missing, 4},
		"weight*weight*0":     {0, missing, 0, missing}, // ∞ × 0
		"0.1 + 0.2 + ncpus*0": {0, 0, 0, 0},
	} {
		b := bound(t, text, ParseExpression)
		for host := range inventory.rows {
			got, ok := b.Number(host)
			if !ok {
				got = missing
			}
			if got != want[host] {
				t.Errorf("%s: host %d has %d, want %d", text, host+1, got, want[host])
			}
		}
	}
}

func TestOrder(t *testing.T) {
	for text, want := range map[string]string{
		"order(ncpus)":                    "3124",
		"order(-ncpus)":                   "4213",
		"order(-maxmem, name)":            "4123", // missing last
		"order(maxmem)":                   "2143",
		"order(gpus -ncpus)":              "1324",
		"order(os, +weight)":              "2143",
		"order(mg)":                       "2413",
		"order(-mg,-name)":                "1423",
		"select(ncpus > 0) order(-name)":  "4321",
		"order(type)   select(ncpus > 0)": "1234", // the rest as they stand
		"select(ncpus > 0)":               "1234",
	} {
		b := bound(t, text, ParseRequirement)
		hosts := []int{0, 1, 2, 3}
		slices.SortStableFunc(hosts, b.Compare)
		got := ""
		for _, h := range hosts {
			got += string(rune('1' + h))
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
		if last := len(hosts) - 1; b.Less(hosts[last], hosts[0]) {
			t.Errorf("%s: the last host is less than the first", text)
		}
	}
}

func TestParts(t *testing.T) {
	for text, want := range map[string][2]bool{
		"select(a)": {true, false}, "order(a)": {false, true}, " select( a )\norder( a b )": {true, true},
	} {
		q, err := ParseRequirement(text)
		if err != nil || q.Selects() != want[0] || q.Ordered() != want[1] || q.Text != text {
			t.Errorf("%q: got %+v, %v", text, q, err)
		}
	}
	if b := bound(t, "order(ncpus)", ParseRequirement); !b.Match(0) {
		t.Error("without select a host does not match")
	}
}

func TestRequirementErrors(t *testing.T) {
	long := "select(" + strings.Repeat("ncpus > 1 && ", 20) + "ncpus >> 1" + strings.Repeat(" && ncpus > 1", 20) + ")"
	for _, c := range []struct {
		text string
		at   int
		want string
	}{
		{"", 0, "select(…) or order(…) is missing"},
		{"   ", 3, "select(…) or order(…) is missing"},
		{"ncpus > 1", 0, "select(…) or order(…) is expected here"},
		{"select", 6, "( is missing"},
		{"select()", 7, "a value is missing"},
		{"select(a", 8, ") is missing"},
		{"select(a))", 9, "select(…) or order(…) is expected here"},
		{"select(a b)", 9, ") is missing"},
		{"select(a) select(b)", 10, "select stands here a second time"},
		{"order(a) order(b)", 9, "order stands here a second time"},
		{"order()", 6, "a name to order by is missing"},
		{"order(-)", 7, "a name to order by is missing"},
		{"order(a,)", 8, "a name to order by is missing"},
		{"order(a", 7, ") is missing"},
		{"order(3)", 6, "a name to order by is missing"},
		{"select(a &&)", 11, "a value is missing"},
		{"select(&& a)", 7, "a value is missing"},
		{"select(a & b)", 9, "write &&"},
		{"select(a | b)", 9, "write ||"},
		{"select(a = b)", 9, "write == to compare"},
		{`select(a == "b")`, 12, "texts stand in single quotes"},
		{"select(a == 'b)", 12, "the closing ' is missing"},
		{"select(a ; b)", 9, `';' has no meaning here`},
		{"select(a == 4G)", 12, "this is no number"},
		{"select(a == 1.2.3)", 12, "this is no number"},
		{"select(a + 1)", 9, "a condition is needed"},
		{"select(4)", 7, "a condition is needed"},
		{"select(!4)", 8, "a condition is needed"},
		{"select(!gpus == 0)", 13, "a condition cannot be compared"},
		{"select(1 < a < 3)", 13, "comparisons cannot be chained; join them by &&"},
		{"select('a' == 3)", 11, "a number and a text cannot be compared"},
		{"select('a' + 3 > 1)", 7, "a number is needed"},
		{"select(-(a && b) > 1)", 11, "a number is needed"},
		{"select((a > 1) + 1 > 2)", 10, "a number is needed"},
		{long, 274, "a value is missing"},
		{"select(" + strings.Repeat("(", 65), 71, "nested more than 64 deep"},
		{"select(" + strings.Repeat("!", 65), 71, "nested more than 64 deep"},
	} {
		_, err := ParseRequirement(c.text)
		var bad *RequirementError
		if !errors.As(err, &bad) || bad.Offset != c.at || bad.Reason != c.want {
			t.Errorf("%s: got %+v, want %s at %d", c.text, bad, c.want, c.at)
		}
	}
	for text, want := range map[string]string{
		"":                        "a value is missing",
		"ncpus 2":                 "this is more than was expected\n    ncpus 2\n          ^",
		"ncpus > 2":               "a number is needed\n    ncpus > 2\n          ^",
		"é\t*2 (":                 "this is more than was expected\n    é *2 (\n         ^",
		strings.Repeat("1+", 3e3): "the text has 6000 bytes; 4096 are allowed",
		"\xff":                    "the text is not valid UTF-8",
		strings.Repeat("a+", 50) + "+" + strings.Repeat("+b", 50): "a value is missing\n    …" +
			strings.Repeat("a+", 30) + strings.Repeat("+", 2) + strings.Repeat("b+", 29) + "…\n    " +
			strings.Repeat(" ", 61) + "^",
	} {
		if _, err := ParseExpression(text); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

func TestBindErrors(t *testing.T) {
	const unknown = " is no dimension, no column of the hosts, nor the name, type or model of a host"
	for text, want := range map[string]string{
		"select(nocpus > 1)":    "nocpus" + unknown + "\n    select(nocpus > 1)\n           ^",
		"select(mg && windows)": "windows" + unknown + "\n    select(mg && windows)\n                 ^",
		"select(os == el9)":     "el9" + unknown + "\n    select(os == el9)\n                 ^",
		"select(ncpus)": "ncpus is a number; a condition is needed, such as ncpus == …\n    " +
			"select(ncpus)\n           ^",
		"select(os)":              "os is text; a condition is needed, such as os == …\n    select(os)\n           ^",
		"select(os + 1 > 2)":      "os is text; a number is needed\n    select(os + 1 > 2)\n           ^",
		"select(LINUX86 * 2 > 2)": "LINUX86" + unknown + "\n    select(LINUX86 * 2 > 2)\n           ^",
		"select(mg == 1)":         "mg is true or false; write mg or !mg\n    select(mg == 1)\n           ^",
		"select(os == 1)":         "a number and a text cannot be compared\n    select(os == 1)\n              ^",
		"select(ncpus == 'x')": "a number and a text cannot be compared\n    select(ncpus == 'x')\n         " +
			"        ^",
		"select(ncpus > 1) order(x)": "x" + unknown + "\n    select(ncpus > 1) order(x)\n                            ^",
	} {
		q, err := ParseRequirement(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := q.Bind(inventory); err == nil || err.Error() != want {
			t.Errorf("%s: got\n%v\nwant\n%s", text, err, want)
		}
	}
}

func TestMatchAllocatesNothing(t *testing.T) {
	q, err := ParseRequirement("select((LINUX86 || !mg) && type != 'x' && ncpus * 2 + maxmem / 3 > 1) " +
		"order(-maxmem, type)")
	if err != nil {
		t.Fatal(err)
	}
	b, err := q.Bind(numbers{})
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = b.Match(3), b.Compare(1, 2) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// numbers are hosts of which all columns exist, by name: type is text, mg a boolean, the rest numbers.
type numbers struct{}

var borrowed = []byte("text")

func (numbers) Column(name string) (int, Kind, bool) {
	switch name {
	case "type":
		return 1, Text, true
	case "mg":
		return 2, Boolean, true
	case "LINUX86":
		return 0, Number, false
	}
	return 0, Number, true
}
func (numbers) NumberAt(_, host int) (float64, bool) { return float64(host), true }
func (numbers) TextAt(_, _ int) ([]byte, bool)       { return borrowed, true }
func (numbers) BoolAt(_, host int) (bool, bool)      { return host%2 == 0, true }
func (numbers) HasWord(string) bool                  { return true }
func (numbers) WordAt(word string, host int) bool    { return len(word) == host }

// FuzzRequirement holds the parser to its promises: no panic, errors that point
// into the text, and requirements that can be bound or refused, and evaluated.
func FuzzRequirement(f *testing.F) {
	for _, text := range []string{
		"select(LINUX86 && maxmem > 500)", "order(-maxmem, name)", "select(!mg && gpus == 0) order(ncpus)", "(ncpus*2)",
		"12", "select('a' == type || -1 <= weight/0)", "select((((", "select(a = b)", "order(,)", "é", "",
		"select(h1) select(h2)",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for i, parse := range []func(string) (*Requirement, error){ParseRequirement, ParseExpression} {
			q, err := parse(text)
			var bad *RequirementError
			if err != nil {
				if !errors.As(err, &bad) || bad.Offset > len(bad.Text) || err.Error() == "" {
					t.Fatalf("%T %v", err, err)
				}
				continue
			}
			b, err := q.Bind(inventory)
			if err != nil {
				if !errors.As(err, &bad) || err.Error() == "" {
					t.Fatalf("%T %v", err, err)
				}
				continue
			}
			for host := range inventory.rows {
				if i == 1 {
					if n, _ := b.Number(host); n < 0 || n > numberMax {
						t.Fatalf("%d", n)
					}
					continue
				}
				b.Match(host)
				if order := b.Compare(host, 0) + b.Compare(0, host); order != 0 {
					t.Fatalf("hosts %d and 0 do not compare as 0 and %d", host, host)
				}
			}
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	q, err := ParseRequirement("select(LINUX86 && maxmem > 500 && (gpus == 0 || ncpus * 2 >= 16))")
	if err != nil {
		b.Fatal(err)
	}
	r, err := q.Bind(numbers{})
	if err != nil {
		b.Fatal(err)
	}
	for i := 0; b.Loop(); i++ {
		r.Match(i & 7)
	}
}
