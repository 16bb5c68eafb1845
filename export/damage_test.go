package export

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/stintd/stint/core/decision"
)

// encoded is a sealed file's bytes.
func encoded(t *testing.T, fill func(io.Writer) error) []byte {
	t.Helper()
	f := must(os.Create(filepath.Join(t.TempDir(), "x.parquet")))(t)
	if _, err := seal(f, fill); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return must(os.ReadFile(f.Name()))(t)
}

// TestSeal finds every changed byte and every truncation of a file.
func TestSeal(t *testing.T) {
	c := fill(1, 5)
	g := c.Grants.Schema().Table()
	data := encoded(t, func(w io.Writer) error { return encode(w, &g, 1, nil) })
	check := func(damaged []byte, what string, at int) {
		if err := unseal(bytes.Clone(damaged), ""); err == nil {
			t.Errorf("%s at %d is not found", what, at)
		}
	}
	for at := range data {
		data[at] ^= 1 << (at % 8)
		check(data, "a flipped bit", at)
		data[at] ^= 1 << (at % 8)
		check(data[:at], "the end", at)
	}
	if err := unseal(bytes.Clone(data), strings.Repeat("1", 64)); err == nil ||
		!strings.Contains(err.Error(), "not the file that its cycle was published with") {
		t.Error(err)
	}
	if err := unseal(data, ""); err != nil {
		t.Error(err)
	}
}

// TestDamagedLog reads logs with a bad or missing file: an error that names it, never a
// panic, never rows.
func TestDamagedLog(t *testing.T) {
	g := fill(1, 5).Grants.Schema().Table()
	old := g
	old.Columns = g.Columns[:3]
	valid := func(t *testing.T, cycle int64, table *decision.Table) []byte {
		return encoded(t, func(w io.Writer) error {
			return encode(w, table, cycle, []meta{{metaSchema, SchemaVersion}})
		})
	}
	for name, spoil := range map[string]struct {
		table string
		bytes func(*testing.T) []byte // nil: the file is removed
		want  string
	}{
		"empty": {"grants", func(*testing.T) []byte { return []byte{} }, "damaged: it has no seal"},
		"other bytes": {"grants", func(*testing.T) []byte { return bytes.Repeat([]byte("PAR1"), 99) },
			"damaged: it has no seal"},
		"another file": {"grants", func(t *testing.T) []byte { return valid(t, 1, &g) },
			"not the file that its cycle was published with"},
		"missing":       {"grants", nil, "grants of cycle 1 is missing"},
		"missing state": {"consumers", nil, "consumers of cycle 1 is missing"},
		"bad head":      {"cycles", func(*testing.T) []byte { return nil }, "damaged: it has no seal"},
		"head of another": {"cycles", func(t *testing.T) []byte { return valid(t, 2, fill(1, 5).View("cycles")) },
			"column cycle: a row of cycle 2"},
		"head of grants": {"cycles", func(t *testing.T) []byte { return valid(t, 1, &g) },
			"table cycles, column plan: it is text"},
		"two heads": {"cycles", func(t *testing.T) []byte {
			head := *fill(1, 5).View("cycles")
			return valid(t, 1, head.Pick([]int{0, 0}))
		}, "2 rows of cycle 1"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, Options{}, fill(1, 5))
			path := must(filepath.Glob(filepath.Join(dir, spoil.table, "*", "*.parquet")))(t)[0]
			err := os.Remove(path)
			if spoil.bytes != nil {
				err = os.WriteFile(path, spoil.bytes(t), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			r := must(OpenLog(dir))(t)
			table := spoil.table
			if table == cyclesTable {
				table = "grants"
			}
			_, err = r.Table(table, 1)
			if err == nil || !strings.Contains(err.Error(), spoil.want) || !strings.Contains(err.Error(), dir) {
				t.Errorf("error %v, expected %s", err, spoil.want)
			}
		})
	}
	t.Run("input", func(t *testing.T) {
		dir := t.TempDir()
		c := fill(1, 5)
		write(t, dir, Options{}, c)
		kind, digest, _ := strings.Cut(c.Summary.Inputs[0], "/")
		path := blobPath(dir, kind, digest)
		data := must(os.ReadFile(path))(t)
		r := must(OpenLog(dir))(t)
		for at := range data {
			data[at] ^= 0x10
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			data[at] ^= 0x10
			if content, err := r.InputContent(kind, digest); err == nil && string(content) != `[{"units":1}]` {
				t.Errorf("byte %d: content %q", at, content)
			} else if err != nil && !strings.Contains(err.Error(), path) {
				t.Errorf("byte %d: %v", at, err)
			}
		}
	})
}

// TestForeignFiles reads sealed files whose columns are not the log's.
func TestForeignFiles(t *testing.T) {
	one := func(row any) func(io.Writer) error {
		return func(w io.Writer) error {
			p := parquet.NewGenericWriter[any](w, parquet.SchemaOf(row), parquet.KeyValueMetadata(metaSeal, unsealed),
				parquet.KeyValueMetadata(metaSchema, SchemaVersion))
			if _, err := p.Write([]any{row}); err != nil {
				return err
			}
			return p.Close()
		}
	}
	for want, row := range map[string]any{
		"its first column is not cycle": &struct{ A int64 }{1},
		"column a has the type": &struct {
			Cycle int64 `parquet:"cycle"`
			A     int32 `parquet:"a"`
		}{},
		"is nested": &struct {
			Cycle int64   `parquet:"cycle"`
			A     []int64 `parquet:"a"`
		}{},
	} {
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, encoded(t, one(row)), 0o600); err != nil {
			t.Fatal(err)
		}
		f := must(read(folder{}, path, ""))(t)
		var b builder
		if err := b.add(f, span{0, 9, path}, 0, 9); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %s", err, want)
		}
	}
	data := encoded(t, func(w io.Writer) error {
		g := fill(1, 1).Grants.Schema().Table()
		return encode(w, &g, 1, []meta{{metaSchema, "99"}})
	})
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := read(folder{}, path, ""); err == nil || !strings.Contains(err.Error(), `its schema is version "99"`) {
		t.Error(err)
	}
}
