package table

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// name puts a column of names into the schema.
func (b *builder) name(name string, required bool) *column {
	return b.add(column{name: name, kind: kindText, required: required, bytesMax: cluster.NameBytesMax})
}

// counts puts a column of numbers into the schema.
func (b *builder) counts(name string, required bool, min, unset int64) *column {
	return b.add(column{name: name, kind: kindCount, required: required, min: min, unset: unset, absent: unset})
}

// words makes a vector of texts, coded one of them with the codes given.
func words(name string, codes []int32, texts ...string) vector {
	v := vector{name: name, kind: vectorText, rows: len(texts), offsets: []int32{0}, codes: codes}
	for _, s := range texts {
		v.data = append(v.data, s...)
		v.offsets = append(v.offsets, int32(len(v.data)))
	}
	if codes != nil {
		v.kind, v.rows = vectorCoded, len(codes)
	}
	return v
}

func wholes(name string, n ...int64) vector {
	return vector{name: name, kind: vectorInt, rows: len(n), ints: n}
}

func doubles(name string, n ...float64) vector {
	return vector{name: name, kind: vectorFloat, rows: len(n), floats: n}
}

// hostBuilder is a builder with the columns host (unique), state, ncpus and at_least_1.
func hostBuilder() *builder {
	b := newBuilder()
	b.limits, b.open, b.faults.Table = DefaultLimits, true, "t"
	b.name("host", true).unique = true
	b.add(column{name: "state", kind: kindState})
	b.counts("ncpus", false, 0, 0)
	b.counts("at_least_1", false, 1, plan.Unlimited)
	b.name("zone", false)
	b.fixed = len(b.columns)
	return b
}

// TestBatches takes two batches, with nulls, dictionaries that change, and columns that come late.
func TestBatches(t *testing.T) {
	b := hostBuilder()
	nothing := words("model", nil, "", "")
	nothing.valid = []byte{0}
	load := doubles("load", 1.5, 7)
	load.valid = []byte{0b01}
	zone := words("zone", []int32{1, 1}, "a", "b")
	late := words("zone", []int32{0, 1}, "c", "b")
	late.generation = 1
	on := vector{name: "on", kind: vectorBool, rows: 2, bools: []byte{0b10}}
	for _, batch := range [][]vector{
		{words("host", nil, "h1", "h2"), words("state", []int32{1, 0}, "ok", "closed"), doubles("ncpus", 4, 0), nothing,
			load, zone},
		{words("host", []int32{1, 0}, "h4", "h3"), wholes("at_least_1", 1, 1<<53), wholes("model", 5, -6), late, on},
	} {
		if err := b.batch(2, batch); err != nil {
			t.Fatal(err, b.faults.Err())
		}
	}
	s := ""
	for _, c := range b.columns {
		c.pad(b.rows)
		if b.byName[c.name] == c && c.kind >= kindAttribute {
			a := c.attribute()
			s += dump(a.Name, int(a.Kind), a.Valid, a.Number, a.Bool)
		} else {
			s += dump(c.name, c.texts(), c.ints, c.states)
		}
	}
	want := dump("host", "\"h1\" \"h2\" \"h3\" \"h4\" ", "[]", "[]") +
		dump("state", "", "[]", "[1 0 4 4]") +
		dump("ncpus", "", "[4 0 0 0]", "[]") +
		dump("at_least_1", "", "[-1 -1 1 9007199254740992]", "[]") +
		dump("zone", "\"b\" \"b\" \"c\" \"b\" ", "[]", "[]") +
		dump("model", "0", "[false false true true]", "[0 0 5 -6]", "[]") +
		dump("load", "0", "[true false false false]", "[1.5 0 0 0]", "[]") +
		dump("on", "2", "[false false true true]", "[]", "[false false false true]")
	if s != want {
		t.Errorf("\n%s\nexpected\n%s", s, want)
	}
}

func TestBatchFaults(t *testing.T) {
	null := words("host", nil, "h1")
	null.valid = []byte{0}
	for _, c := range []struct {
		columns []vector
		want    string
	}{
		{[]vector{wholes("ncpus", 1)}, "t, column host: required column is missing"},
		{[]vector{words("host", nil, "h1"), words("host", nil, "h1")}, "t, column host: stands in the input twice"},
		{[]vector{wholes("host", 1)}, "t, column host: holds numbers, where texts are expected"},
		{[]vector{words("host", nil, "h1"), words("ncpus", nil, "4")},
			"t, column ncpus: holds texts, where numbers are expected"},
		{[]vector{words("host", nil, "h1"), {name: "ncpus", kind: vectorBool, rows: 1, bools: []byte{1}}},
			"t, column ncpus: holds booleans, where numbers are expected"},
		{[]vector{words("host", nil, "h1"), wholes("", 1)}, "t: column name: a column without a name"},
		{[]vector{null}, "t: row 1, column host: is missing"},
		{[]vector{words("host", nil, "")}, "t: row 1, column host: is missing"},
		{[]vector{words("host", nil, "h1", "h1")}, `t: row 2, column host, value "h1": stands in the table twice`},
		{[]vector{words("host", []int32{0, 0}, "h1")}, `t: row 2, column host, value "h1": stands in the table twice`},
		{[]vector{words("host", nil, "h1", "h2"), words("zone", []int32{0, 0}, "a\n")},
			`t: row 1, column zone, value "a\n": has a control character` + "\n" +
				`t: row 2, column zone, value "a\n": has a control character`},
		{[]vector{words("host", nil, "h1"), words("state", nil, "on")},
			`t: row 1, column state, value "on": no state of a host: ok, closed, draining or unavail is expected`},
		{[]vector{words("host", nil, "h1"), wholes("ncpus", -1)}, `t: row 1, column ncpus, value "-1": ` + notCount[0]},
		{[]vector{words("host", nil, "h1"), wholes("ncpus", 1<<53+1)},
			`t: row 1, column ncpus, value "9007199254740993": ` + notCount[0]},
		{[]vector{words("host", nil, "h1"), wholes("at_least_1", 0)},
			`t: row 1, column at_least_1, value "0": ` + notCount[1]},
		{[]vector{words("host", nil, "h1"), doubles("ncpus", 0.5)},
			`t: row 1, column ncpus, value "0.5": ` + notCount[0]},
		{[]vector{words("host", nil, "h1"), doubles("ncpus", math.NaN())},
			`t: row 1, column ncpus, value "NaN": ` + notCount[0]},
		{[]vector{words("host", nil, "h1"), doubles("ncpus", math.Inf(1))},
			`t: row 1, column ncpus, value "+Inf": ` + notCount[0]},
		{[]vector{words("host", nil, "h1"), doubles("ncpus", 1e300)},
			`t: row 1, column ncpus, value "1e+300": ` + notCount[0]},
		{[]vector{words("host", nil, "h1"), doubles("load", math.Inf(-1))},
			`t: row 1, column load, value "-Inf": not a finite number`},
	} {
		b := hostBuilder()
		err := b.batch(c.columns[0].rows, c.columns)
		if err != nil && !errors.Is(err, errStop) {
			t.Errorf("%v", err)
		}
		if got := fmt.Sprint(b.faults.Err()); got != c.want {
			t.Errorf("%s\nexpected %s", got, c.want)
		}
	}
}

// TestBatchTypes: a column of another type in a later batch is refused, unless it is empty.
func TestBatchTypes(t *testing.T) {
	b := hostBuilder()
	if err := b.batch(1, []vector{words("host", nil, "h1"), wholes("a", 1)}); err != nil {
		t.Fatal(err)
	}
	none := words("a", nil, "")
	none.valid = []byte{0}
	if err := b.batch(1, []vector{words("host", nil, "h2"), none}); err != nil {
		t.Fatal(err)
	}
	err := b.batch(1, []vector{words("host", nil, "h3"), words("a", nil, "x")})
	if !errors.Is(err, errStop) || !strings.Contains(b.faults.Error(), "holds texts, where numbers are expected") {
		t.Errorf("%v, %v", err, b.faults.Err())
	}
}
