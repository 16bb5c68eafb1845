package table

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stintd/stint/core/cluster"
)

// FuzzNames sends a name in each format of text: what it may be is the same in all, it arrives as it was sent, and it
// is read back as it is written.
func FuzzNames(f *testing.F) {
	for _, name := range []string{
		"a", " a ", "a/b", "..", "\x00", "\t", "a\nb", "a\r\nb", "\"", ",", ";", "null", "true", "1e2", "-", "=1+1",
		"\u0085", "\u202e", "\ufeffa", "ü", "u\u0308", "\xff", "\xc2", "\ud7ff", "😀", strings.Repeat("x", 256),
		strings.Repeat("x", 257), strings.Repeat("ü", 128), strings.Repeat("ü", 129),
	} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if name == "" || len(name) > 1<<10 {
			return
		}
		may := len(name) <= cluster.NameBytesMax && utf8.ValidString(name) &&
			!strings.ContainsFunc(name, unicode.IsControl)
		for _, format := range []Format{CSV, JSON, NDJSON} {
			if format != CSV && !utf8.ValidString(name) {
				continue // encoding/json would send other bytes
			}
			got, err := ReadDemand(bytes.NewReader(namedDemand(t, name, format)), Options{Format: format,
				Dimensions: []string{"ncpus"}})
			if (err == nil) != may {
				t.Fatalf("%q in format %v: may be a name %v, error %v", name, format, may, err)
			}
			if err != nil {
				continue
			}
			var written bytes.Buffer
			if err := Write(&written, got.Schema([]string{"ncpus"}), []int32{0}); err != nil {
				t.Fatal(err)
			}
			back, err := ReadDemand(&written, Options{Format: CSV, Dimensions: []string{"ncpus"}})
			if err != nil {
				t.Fatalf("%q in format %v is not read back: %v", name, format, err)
			}
			for _, one := range []*cluster.DemandTable{got, back} {
				if is := string(one.Allocation.Names.Bytes(one.Allocation.At(0))); is != name || one.Rows != 1 {
					t.Fatalf("%q in format %v is %q of %d rows", name, format, is, one.Rows)
				}
			}
		}
	})
}

// namedDemand is a row of demand of an allocation of a name.
func namedDemand(t *testing.T, name string, format Format) []byte {
	t.Helper()
	if format == CSV {
		return []byte("consumer,allocation,units,ncpus\n/A,\"" + strings.ReplaceAll(name, `"`, `""`) + "\",1,1\n")
	}
	row, err := json.Marshal(map[string]any{"consumer": "/A", "allocation": name, "units": 1, "ncpus": 1})
	if err != nil {
		t.Fatal(err)
	}
	if format == JSON {
		return slices.Concat([]byte("["), row, []byte("]"))
	}
	return row
}
