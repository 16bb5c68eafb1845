package table

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/stintd/stint/core/cluster"
)

// endless gives one byte again and again, left times.
type endless struct {
	b    byte
	left int64
	read int64
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := int(min(int64(len(p)), e.left))
	for i := range p[:n] {
		p[i] = e.b
	}
	e.left, e.read = e.left-int64(n), e.read+int64(n)
	return n, nil
}

// hostileHeap is what an input of little sense may allocate in all before it is refused.
const hostileHeap = 96 << 20

// TestHugeField streams a field of 1 GiB: it is refused once it is longer than any row may be.
func TestHugeField(t *testing.T) {
	for _, c := range []struct{ name, before, after, want string }{
		{"h.csv", "host,a\nh,", "\n", "h.csv: over a limit: a row of more than 16777216 bytes (is a quote left open?)"},
		{"h.csv", "host,a\nh,\"", "\"\n",
			"h.csv: over a limit: a row of more than 16777216 bytes (is a quote left open?)"},
		{"h.csv", "", "\nh\n", "h.csv: over a limit: a row of more than 16777216 bytes (is a quote left open?)"},
		{"h.ndjson", `{"host":"`, `"}`,
			"h.ndjson: over a limit: a row of more than 16777216 bytes (is a quote left open?)"},
		{"h.ndjson", `{"`, `":1}`, "h.ndjson: over a limit: a row of more than 16777216 bytes (is a quote left open?)"},
		{"h.json", `[{"host":"`, `"}]`,
			"h.json: over a limit: a row of more than 16777216 bytes (is a quote left open?)"},
		{"h.json", `{"host":["`, `"]}`,
			"h.json: over a limit: a row of more than 16777216 bytes (is a quote left open?)"},
	} {
		field := &endless{b: 'x', left: 1 << 30}
		var err error
		heap := allocated(func() {
			_, err = ReadHosts(io.MultiReader(strings.NewReader(c.before), field, strings.NewReader(c.after)),
				Options{Name: c.name})
		})
		if fmt.Sprint(err) != c.want || heap > hostileHeap || field.read > 2*rowBytesMax {
			t.Errorf("%s %q: %v, %d bytes read, %d allocated", c.name, c.before, err, field.read, heap)
		}
	}
}

// wideInputs are tables of 10,000 columns.
func wideInputs(t *testing.T) map[string][]byte {
	const columns = 10_000
	var csv, row, lists strings.Builder
	csv.WriteString("host")
	row.WriteString(`{"host":"h"`)
	lists.WriteString(`{"host":["h"]`)
	fields := []arrow.Field{nullable("host", arrow.BinaryTypes.String)}
	f := ints()
	f.meta.Schema[0].NumChildren.V = columns
	for i := range columns - 1 {
		fmt.Fprintf(&csv, ",a%d", i)
		fmt.Fprintf(&row, `,"a%d":1`, i)
		fmt.Fprintf(&lists, `,"a%d":[1]`, i)
		fields = append(fields, nullable(fmt.Sprint("a", i), primitive.Int8))
		f.meta.Schema = append(f.meta.Schema,
			format.SchemaElement{Name: fmt.Sprint("a", i), Type: thrift.New(format.Int64),
				RepetitionType: thrift.New(format.Required)})
	}
	return map[string][]byte{
		"h.csv": []byte(csv.String()), "h.ndjson": []byte(row.String() + "}"), "h.json": []byte(lists.String() + "}"),
		"rows.json": []byte("[" + row.String() + "}]"), "h.arrow": arrowStream(t, fieldsOf(fields...), nil),
		"h.parquet": f.file(),
	}
}

func TestManyColumns(t *testing.T) {
	want := map[string]string{
		"h.arrow":   "h.arrow: arrow: schema: over a limit: 10000 columns, at most 1000 are allowed",
		"h.parquet": "h.parquet: parquet: schema: over a limit: 10000 columns, at most 1000 are allowed",
	}
	for name, src := range wideInputs(t) {
		if want[name] == "" {
			want[name] = name + ": over a limit: more than 1000 columns"
		}
		var err error
		heap := allocated(func() { _, err = ReadHosts(bytes.NewReader(src), Options{Name: name}) })
		if fmt.Sprint(err) != want[name] || heap > hostileHeap {
			t.Errorf("%s: %v, %d bytes allocated", name, err, heap)
		}
	}
}

// TestPackedHostile: what unpacks to more than it should, or asks for more memory than it may.
func TestPackedHostile(t *testing.T) {
	// Heads of zstd frames without a size, by their window: 2^(10+n>>3) and n&7 eighths of it more. A block of nothing
	// follows.
	window := func(n byte) []byte { return []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, n, 0x01, 0x00, 0x00} }
	zeros := make([]byte, 64<<20)
	arrowBomb := arrowFrames(arrowSample(t, ipc.WithZstd()))
	put(content(&arrowBomb[2], arrowBomb[2].table(), unitsValues)[:8], int64(1)<<40)
	flipped := gzipped(t, []byte("host\nh\n"))
	flipped[len(flipped)-8] ^= 1
	for _, c := range []struct {
		name, want string
		src        []byte
	}{
		{"gzip.csv", "gzip.csv: over a limit: more than 33554432 bytes after decompression",
			gzipped(t, append([]byte("host\n"), bytes.Repeat([]byte("a-host-with-a-name-of-31-bytes!\n"), 2<<20)...))},
		{"field.csv", "field.csv: over a limit: a row of more than 16777216 bytes (is a quote left open?)",
			gzipped(t, append([]byte("host\n"), zeros...))},
		{"zstd.csv", "zstd.csv: over a limit: a row of more than 16777216 bytes (is a quote left open?)",
			zstandard(t, append([]byte("host\n"), zeros...))},
		{"lines.csv", "lines.csv: over a limit: more than 33554432 bytes after decompression",
			zstandard(t, bytes.Repeat([]byte("\n"), 64<<20))},
		{"spaces.json", "spaces.json: over a limit: a row of more than 16777216 bytes (is a quote left open?)",
			zstandard(t, bytes.Repeat([]byte(" "), 64<<20))},
		{"twice.csv", "twice.csv: the content is compressed where it should be plain (packed twice, or told to " +
			"be plain)", gzipped(t, gzipped(t, zeros))},
		{"other.csv", "other.csv: the content is compressed where it should be plain (packed twice, or told to " +
			"be plain)", zstandard(t, gzipped(t, zeros))},
		{"sum.csv", "sum.csv: gzip: gzip: invalid checksum", flipped},
		{"w9.csv", "w9.csv: zstd: window size exceeded", window(13<<3 | 1)},
		{"w512.csv", "w512.csv: zstd: window size exceeded", window(19 << 3)},
		{"w2T.csv", "w2T.csv: zstd: window size exceeded", window(31 << 3)},
		{"w8.csv", "w8.csv: the input is empty", window(13 << 3)}, // 8 MiB are allowed
		{"dict.csv", "dict.csv: zstd: unknown dictionary",
			[]byte{0x28, 0xb5, 0x2f, 0xfd, 0x21, 7, 0, 0x01, 0x00, 0x00}},
		{"length.arrow", "length.arrow: arrow: record batch 1: column units: values: over a limit: more than " +
			"33554432 bytes after decompression", join(arrowBomb...)},
		{"less.parquet", "less.parquet: parquet: row group 1, column x, page 1: unpacks to 8 bytes, where " +
			"33000000 are told", packed(format.Zstd, 33_000_000, zstandard(t, zeros[:8]))},
		{"told.parquet", "told.parquet: parquet: row group 1, column x, page 1: over a limit: more than 33554432 " +
			"bytes after decompression", packed(format.Zstd, 1<<30, zstandard(t, zeros))},
		{"more.parquet", "more.parquet: parquet: row group 1, column x, page 1: unpacks to more than the 8 bytes told",
			packed(format.Gzip, 8, gzipped(t, zeros))},
		{"zstd.parquet", "zstd.parquet: parquet: row group 1, column x, page 1: window size exceeded",
			packed(format.Zstd, 8, window(19<<3))},
		{"cut.parquet", "cut.parquet: parquet: row group 1, column x, page 1: unpacks to 0 bytes, where 8 are told",
			packed(format.Zstd, 8, zstandard(t, zeros[:8], zstd.WithEncoderCRC(true))[:9])},
		{"values.parquet", "values.parquet: parquet: row group 1, column x, page 1: the values end early",
			packed(format.Gzip, 3, gzipped(t, zeros[:3]))},
	} {
		var err error
		heap := allocated(func() {
			_, err = ReadHosts(bytes.NewReader(c.src), Options{Name: c.name, Limits: Limits{DecodedBytesMax: 32 << 20}})
		})
		if fmt.Sprint(err) != c.want || heap > hostileHeap {
			t.Errorf("%s of %d bytes: %v\nexpected %s; %d bytes allocated", c.name, len(c.src), err, c.want, heap)
		}
	}
}

// TestColumnsOfNothing: the first row names as many attributes as it may, and the others are as short as they can be.
func TestColumnsOfNothing(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"host":"h"`)
	for i := range 995 {
		fmt.Fprintf(&b, `,"%d":1`, i)
	}
	b.WriteString("}\n")
	for i := 0; b.Len() < 1<<20; i++ {
		fmt.Fprintf(&b, `{"host":"%d"}`+"\n", i)
	}
	for _, first := range []string{"", b.String()[:strings.IndexByte(b.String(), '\n')+1]} {
		var err error
		var got *cluster.HostTable
		// Once more at the end: then the columns are filled in before their last row.
		heap := allocated(func() {
			got, err = ReadHosts(strings.NewReader(b.String()+strings.Replace(first, `"h"`, `"last"`, 1)),
				Options{Format: NDJSON})
		})
		if want := "hosts: over a limit: more than 8388608 values of attributes"; fmt.Sprint(err) != want ||
			got != nil || heap > fuzzHeap {
			t.Errorf("%v\nexpected %s; %d bytes allocated", err, want, heap)
		}
	}
	few := b.String()[:200_000]
	if heap := allocated(func() {
		_, _ = ReadHosts(strings.NewReader(few),
			Options{Format: NDJSON})
	}); heap > fuzzHeap {
		t.Errorf("%d bytes allocated", heap)
	}
}
