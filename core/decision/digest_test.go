package decision

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stintd/stint/core/column"
)

func digestSample() Table {
	return Table{Name: "t", Rows: 3, Columns: []Column{
		{Name: "a", Type: Int, Int: []int64{1, -300, 7}, Null: []bool{false, false, true}, Optional: true},
		{Name: "b", Type: Float, Float: []float64{0.5, 0, 1}},
		{Name: "c", Type: Text, Code: []int32{2, Null, 0}, Dict: Words{"x", "unused", "yy"}},
		{Name: "d", Type: Time, Int: []int64{1, 2, 3}},
		{Name: "e", Type: List, Lists: [][]string{nil, {"p", ""}, {"q"}}},
	}}
}

// TestDigestFormat hashes a small table by hand, as the doc comment says.
func TestDigestFormat(t *testing.T) {
	var b bytes.Buffer
	count := func(n uint64) { b.Write(binary.LittleEndian.AppendUint64(nil, n)) }
	text := func(s string) { count(uint64(len(s))); b.WriteString(s) }
	text("t")
	count(3)
	count(5)
	text("a")
	b.Write([]byte{0, 2, 1, 0, 0xd4, 0xfe, 0, 0}) // Int, two bytes wide: 1, -300, 0
	count(1)
	b.WriteByte(0b100)
	text("b")
	b.WriteByte(1)
	for _, v := range []float64{0.5, 0, 1} {
		count(math.Float64bits(v))
	}
	count(0)
	text("c")
	b.WriteByte(2)
	count(2)
	text("yy")
	text("x")
	b.Write([]byte{1, 1, 0, 2})
	text("d")
	b.Write([]byte{3, 1, 1, 2, 3})
	count(0)
	text("e")
	b.WriteByte(4)
	count(0)
	count(2)
	text("p")
	text("")
	count(1)
	text("q")
	sum := sha256.Sum256(b.Bytes())
	table := digestSample()
	if got, want := Digest([]Table{table}), hex.EncodeToString(sum[:]); got != want {
		t.Errorf("digest %s, by hand %s", got, want)
	}
}

// TestDigestSame shows what a digest does not depend on.
func TestDigestSame(t *testing.T) {
	base := digestSample()
	want := Digest([]Table{base})
	for name, change := range map[string]func(*Table){
		"other codes for the same texts": func(t *Table) {
			t.Columns[2].Code, t.Columns[2].Dict = []int32{0, Null, 1}, Words{"yy", "x"}
		},
		"value where null":           func(t *Table) { t.Columns[0].Int[2] = math.MaxInt64 },
		"no null, but a null slice":  func(t *Table) { t.Columns[3].Null = make([]bool, 3) },
		"optional without any nulls": func(t *Table) { t.Columns[3].Optional = true },
	} {
		same := digestSample()
		change(&same)
		if got := Digest([]Table{same}); got != want {
			t.Errorf("%s: the digest changed", name)
		}
	}
}

// TestDigestDiffers shows that each part of a table counts.
func TestDigestDiffers(t *testing.T) {
	seen := map[string]string{}
	for name, change := range map[string]func(*Table){
		"nothing":            func(*Table) {},
		"table name":         func(t *Table) { t.Name = "u" },
		"column name":        func(t *Table) { t.Columns[0].Name = "z" },
		"type":               func(t *Table) { t.Columns[3].Type = Int },
		"order of columns":   func(t *Table) { slices.Reverse(t.Columns) },
		"int":                func(t *Table) { t.Columns[0].Int[0] = 2 },
		"wide int":           func(t *Table) { t.Columns[0].Int[0] = math.MinInt64 },
		"null":               func(t *Table) { t.Columns[0].Null[1] = true },
		"float":              func(t *Table) { t.Columns[1].Float[1] = math.Copysign(0, -1) },
		"text":               func(t *Table) { t.Columns[2].Code[2] = 1 },
		"null text":          func(t *Table) { t.Columns[2].Code[2] = Null },
		"texts of one row":   func(t *Table) { t.Columns[4].Lists[2] = []string{"q", "q"} },
		"texts of two rows":  func(t *Table) { t.Columns[4].Lists = [][]string{{"p"}, {""}, {"q"}} },
		"long text":          func(t *Table) { t.Columns[2].Dict = Words{strings.Repeat("x", 1<<17), "", "yy"} },
		"rows":               func(t *Table) { *t = Table{Name: "t", Rows: 0, Columns: nil} },
		"text beyond buffer": func(t *Table) { t.Columns[2].Dict = Words{strings.Repeat("x", 1<<17) + "x", "", "yy"} },
	} {
		table := digestSample()
		change(&table)
		d := Digest([]Table{table})
		if other, ok := seen[d]; ok {
			t.Errorf("%s and %s have the same digest", name, other)
		}
		seen[d] = name
	}
}

// TestCheck finds each kind of ill-formed table.
func TestCheck(t *testing.T) {
	ok := digestSample()
	if err := ok.Check(); err != nil {
		t.Error(err)
	}
	for i, want := range []string{
		"table t, column a: 3 values for 4 rows", "table t, column a: 2 nulls for 3 rows",
		"table t, column c, row 1: code 3 of a dictionary of 3",
		"table t, column c, row 0: code 2 of a dictionary of 0",
	} {
		bad := digestSample()
		switch i {
		case 0:
			bad.Rows = 4
		case 1:
			bad.Columns[0].Null = make([]bool, 2)
		case 2:
			bad.Columns[2].Code[1] = 3
		case 3:
			bad.Columns[2].Dict = nil
		}
		if err := bad.Check(); fmt.Sprint(err) != want {
			t.Errorf("%v, expected %s", err, want)
		}
	}
}

// TestDigestAfter puts a row into each table of a cycle in turn, and into each of the cycle before: the digest is
// always that of the tables. It goes over all that a cycle has, so a table that comes later is held to it too.
func TestDigestAfter(t *testing.T) {
	dict := Words{"a"}
	dicts := &Dicts{Plan: dict, Source: dict, Consumer: dict, Label: dict, Host: dict, Dimension: dict, Detail: dict,
		Device: dict}
	fresh := func(table string, restated bool) *Cycle {
		c := new(Cycle)
		c.ResetEvents(dicts)
		c.ResetStates(dicts)
		if table != "" {
			fill(reflect.ValueOf(c).Elem().FieldByName(table))
		}
		if table == "Plans" {
			c.Plans.Author.Dict, c.Plans.Message.Dict, c.Plans.Digest.Dict = dict, dict, dict
		}
		c.Summary.Restated = restated
		return c
	}
	type tabled interface{ Schema() column.Schema }
	states := map[string]bool{}
	for _, s := range new(Cycle).StateTables() {
		states[s.Name] = true
	}
	seen := 0
	for field := range reflect.TypeFor[Cycle]().Fields() {
		v, ok := reflect.New(field.Type).Interface().(tabled)
		if !ok || slices.Contains(unsaved, "Cycle."+field.Name) || field.Name == "Summary" {
			continue
		}
		seen++
		for _, names := range [][2]string{{field.Name, ""}, {"", field.Name}, {field.Name, field.Name}} {
			last, c := fresh(names[0], true), fresh(names[1], states[v.Schema().Name])
			last.Summary.Digest = Digest(last.Tables())
			if got, want := c.DigestAfter(last), Digest(c.Tables()); got != want {
				t.Errorf("a row in table %s of cycle and cycle before %q: digest %s, and of the tables %s", field.Name,
					names, got, want)
			}
		}
	}
	if tables := len(new(Cycle).Tables()); seen != tables {
		t.Errorf("%d tables of a cycle were looked at, its digest is of %d", seen, tables)
	}
	quiet := fresh("", true)
	quiet.Summary.Digest = "of the cycle before"
	if got := fresh("", false).DigestAfter(quiet); got != quiet.Summary.Digest {
		t.Error("a cycle in which nothing happened is hashed again:", got)
	}
}

// TestContent: work lost counts in what tells whether tables are written, where the table tells of any, and in no
// digest of decisions.
func TestContent(t *testing.T) {
	table := func(lost []float64, null []bool) []Table {
		return []Table{{Name: "consumers", Rows: 2, Columns: []Column{{Name: "held", Int: []int64{1, 2}},
			{Name: "unit_seconds_lost", Type: Float, Float: lost, Null: null, Optional: true}}}}
	}
	none, some := table([]float64{0, 0}, nil), table([]float64{0, 1.5}, nil)
	before := []Table{{Name: "consumers", Rows: 2, Columns: []Column{{Name: "held", Int: []int64{1, 2}}}}}
	if Digest(none) != Digest(some) || Digest(none) != Digest(before) {
		t.Error("work lost counts in the digest of decisions")
	}
	if Content(none) == Content(some) || Content(none) == Content(before) {
		t.Error("work lost does not count where it is told")
	}
	if Content(table([]float64{0, 0}, []bool{true, true})) != Content(before) || Content(before) != Digest(before) {
		t.Error("work that is not told counts")
	}
	if Content(table([]float64{0, 0}, []bool{true, false})) == Content(before) {
		t.Error("work lost that is told of one consumer does not count")
	}
}
