package column_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	buffers "bytes"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/pack"
)

// sample is a table with a column of each kind.
type sample struct {
	Host   column.Coded
	State  column.Coded
	Row    []hostID
	Units  []int64
	Share  []float64
	Open   []bool
	Until  []int64
	Null   []bool
	Source column.Coded
}

const sampleVersion = 3

var sampleWords = column.Words{"h1", "h2", "h3"}

func sampleDict(string) column.Dict { return sampleWords }

func (s *sample) schema() column.Schema {
	return column.Schema{Name: "sample", Lines: []column.Line{
		{Name: "host", Of: &s.Host},
		{Name: "state", Of: &s.State, Words: column.Words{"ok", "closed"}, Nullable: true, Since: 2},
		{Name: "row", Of: column.Ints(&s.Row)},
		{Name: "units", Of: column.Ints(&s.Units), Since: 3, Absent: 7},
		{Name: "share", Of: column.Floats(&s.Share), Null: &s.Null, Since: 2},
		{Name: "open", Of: column.Bools(&s.Open)},
		{Name: "until", Of: column.Ints(&s.Until), Type: column.Time, Null: &s.Null, Since: 2},
		{Name: "source", Of: &s.Source, Inner: true},
	}}
}

// draw fills a sample with random rows.
func draw(t *rapid.T) *sample {
	rows := rapid.IntRange(1, 40).Draw(t, "rows")
	s := &sample{}
	s.schema().Reset(sampleDict)
	s.schema().Extend(rows)
	for i := range rows {
		s.Host.Code[i] = rapid.Int32Range(0, 2).Draw(t, "host")
		s.State.Code[i] = rapid.Int32Range(-1, 1).Draw(t, "state")
		s.Row[i] = hostID(rapid.Int32().Draw(t, "row"))
		s.Units[i] = rapid.Int64().Draw(t, "units")
		s.Share[i] = rapid.Float64().Draw(t, "share")
		s.Open[i] = rapid.Bool().Draw(t, "open")
		s.Until[i] = rapid.Int64().Draw(t, "until")
		s.Null[i] = rapid.Bool().Draw(t, "null")
		s.Source.Code[i] = rapid.Int32Range(0, 2).Draw(t, "source")
	}
	return s
}

func save(s *sample, version int) []byte {
	c := pack.Save()
	s.schema().Save(c, version, sampleDict)
	var b buffers.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func load(b []byte, version int) (*sample, error) {
	s := &sample{}
	c := pack.Load(buffers.NewReader(b), int64(len(b)))
	s.schema().Save(c, version, sampleDict)
	return s, c.End()
}

// TestSchemaLoops: what is copied or saved and loaded is the same, a copy shares nothing, dropping drops.
func TestSchemaLoops(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t)
		var c sample
		c.schema().CopyFrom(s.schema(), nil)
		if !reflect.DeepEqual(&c, s) {
			t.Fatalf("a copy is %+v, of %+v", c, s)
		}
		loaded, err := load(save(s, sampleVersion), sampleVersion)
		if err != nil || !reflect.DeepEqual(loaded, s) {
			t.Fatalf("loaded %+v, saved %+v (%v)", loaded, s, err)
		}
		n := rapid.IntRange(0, len(s.Units)).Draw(t, "dropped")
		c.schema().Drop(n)
		if !slices.Equal(c.Units, s.Units[n:]) || !slices.Equal(c.Null, s.Null[n:]) ||
			!slices.Equal(c.Host.Code, s.Host.Code[n:]) || c.schema().Sound() != nil {
			t.Fatalf("%d rows dropped of %+v: %+v", n, s, c)
		}
		view := s.schema().Table()
		if view.Check() != nil || view.Column("source") != nil || view.Column("row") == nil {
			t.Fatalf("view %+v (%v)", view, view.Check())
		}
	})
}

// TestSchemaVersions: what an earlier version did not have is absent when it is loaded.
func TestSchemaVersions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, version := draw(t), rapid.IntRange(1, sampleVersion-1).Draw(t, "version")
		got, err := load(save(s, version), version)
		if err != nil {
			t.Fatal(err)
		}
		rows := len(s.Units)
		want := sample{Host: s.Host, State: s.State, Row: s.Row, Units: slices.Repeat([]int64{7}, rows), Share: s.Share,
			Open: s.Open, Until: s.Until, Null: s.Null, Source: s.Source}
		if version < 2 {
			want.State = column.Coded{Code: column.Without(rows)}
			want.Share, want.Until, want.Null = make([]float64, rows), make([]int64, rows),
				slices.Repeat([]bool{true}, rows)
		}
		if !reflect.DeepEqual(got, &want) {
			t.Fatalf("version %d: %+v, want %+v", version, got, want)
		}
	})
}

// TestSchemaRefuses: a code beyond its dictionary, a table that is cut short, columns of several lengths.
func TestSchemaRefuses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t)
		whole := save(s, sampleVersion)
		if _, err := load(whole[:rapid.IntRange(0, len(whole)-1).Draw(t, "bytes")], sampleVersion); err == nil {
			t.Fatal("a part of a table was loaded")
		}
		row := rapid.IntRange(0, len(s.Units)-1).Draw(t, "bad row")
		bad := rapid.SampledFrom([]string{"host", "state", "source"}).Draw(t, "column")
		code := rapid.SampledFrom([]int32{-2, 3, 99}).Draw(t, "code")
		s.schema().Line(bad).Of.(*column.Coded).Code[row] = code
		_, err := load(save(s, sampleVersion), sampleVersion)
		want := fmt.Sprintf("table sample, column %s, row %d: code %d of a dictionary", bad, row, code)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("error %v, want %s", err, want)
		}
		s.schema().Line(bad).Of.(*column.Coded).Code[row] = 0
		s.Units = s.Units[:len(s.Units)-1]
		_, err = load(save(s, sampleVersion), sampleVersion)
		if err == nil || !strings.Contains(err.Error(), "table sample, column units: ") {
			t.Fatal("columns of two lengths:", err)
		}
	})
}

// TestUpgradeRefuses changes a column of a file in turn: the error names it. A file of an earlier version is read.
func TestUpgradeRefuses(t *testing.T) {
	schema := new(sample).schema()
	for version := 1; version <= sampleVersion; version++ {
		file := schema.At(version)
		if columns, from, err := schema.Upgrade(file, version, false); err != nil || len(columns) != 7 ||
			len(from) != len(columns) {
			t.Fatalf("version %d: %v, %v (%v)", version, columns, from, err)
		}
		for i := range file {
			for what, change := range map[string]func(c *column.Column){
				"another type":  func(c *column.Column) { c.Type = (c.Type + 1) % 5 },
				"another name":  func(c *column.Column) { c.Name += "s" },
				"may be absent": func(c *column.Column) { c.Optional = !c.Optional },
			} {
				bad := slices.Clone(file)
				change(&bad[i])
				_, _, err := schema.Upgrade(bad, version, true)
				if err == nil || !strings.Contains(err.Error(), "table sample, column "+bad[i].Name) {
					t.Errorf("version %d, column %s, %s: error %v", version, file[i].Name, what, err)
				}
			}
			_, _, err := schema.Upgrade(file[:i], version, true)
			if err == nil || !strings.Contains(err.Error(), "column "+file[i].Name+": missing") {
				t.Errorf("version %d without column %s: error %v", version, file[i].Name, err)
			}
		}
		more := append(slices.Clone(file), column.Column{Name: "gpus", Optional: true})
		if _, _, err := schema.Upgrade(more, version, true); err != nil {
			t.Error("a dimension:", err)
		}
		if _, _, err := schema.Upgrade(more, version, false); err == nil {
			t.Error("a column of a newer version was read")
		}
	}
}
