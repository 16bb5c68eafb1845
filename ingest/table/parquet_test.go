package table

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// parquetRow has a column of each type in each encoding that is read.
type parquetRow struct {
	I8      int8     `parquet:"i8"`
	I16     *int16   `parquet:"i16,optional"`
	I32     int32    `parquet:"i32"`
	I32D    int32    `parquet:"i32d,optional,delta"` // 0 is written as null
	I64     int64    `parquet:"i64"`
	I64Dict *int64   `parquet:"i64dict,optional,dict"`
	I64D    int64    `parquet:"i64d,delta"`
	U8      uint8    `parquet:"u8"`
	U32     uint32   `parquet:"u32"`
	U32D    uint32   `parquet:"u32d,delta"`
	U64     *uint64  `parquet:"u64,optional"`
	F32     float32  `parquet:"f32"`
	F64     *float64 `parquet:"f64,optional"`
	F64Dict float64  `parquet:"f64dict,dict"`
	B       bool     `parquet:"b"`
	BOpt    *bool    `parquet:"bopt,optional"`
	S       string   `parquet:"s,plain"`
	SOpt    *string  `parquet:"sopt,optional,plain"`
	SDict   string   `parquet:"sdict,dict"`
	SDictO  *string  `parquet:"sdicto,optional,dict"`
	SLen    *string  `parquet:"slen,optional"` // the library's default: DELTA_LENGTH_BYTE_ARRAY
	Bytes   []byte   `parquet:"bytes"`
	None    *string  `parquet:"none,optional,dict"`
	NoneLen *string  `parquet:"nonelen,optional"`
}

func some[T any](i, every int, v T) *T {
	if i%every == 0 {
		return nil
	}
	return &v
}

func parquetRows(n int) (rows []parquetRow) {
	for i := range n {
		s := fmt.Sprint("wörd", i*i%977)
		rows = append(rows, parquetRow{
			I8: int8(i), I16: some(i, 3, int16(-i)), I32: int32(i * 65_537), I32D: int32(i%5) * (math.MinInt32 / 3),
			I64: int64(i) * math.MaxInt32 * 3, I64Dict: some(i, 2, int64(i%50)-25), I64D: int64(i%3) * math.MaxInt64,
			U8: uint8(i), U32: uint32(i) * 65_537 * 65_537, U32D: math.MaxUint32 - uint32(i*i),
			U64: some(i, 7, uint64(i)), F32: float32(i) / 4, F64: some(i, 11, float64(i)/3), F64Dict: float64(i%9) / 8,
			B: i%3 == 1, BOpt: some(i, 4, i%5 == 1), S: strings.Repeat("x", i%4), SOpt: some(i, 6, s), SDict: s,
			SDictO: some(i, 9, fmt.Sprint("d", i%100)), SLen: some(i, 8, strings.Repeat("é", i%40)), Bytes: []byte(s),
		})
	}
	return rows
}

func orNull[T any](v *T, text func(T) string) string {
	if v == nil {
		return "null"
	}
	return text(*v)
}

func nullIfZero(v int32) string {
	if v == 0 {
		return "null"
	}
	return signedText(v)
}

func signedText[T int8 | int16 | int32 | int64](v T) string { return strconv.FormatInt(int64(v), 10) }
func unsignedText[T uint8 | uint32 | uint64](v T) string    { return strconv.FormatUint(uint64(v), 10) }
func floatText(v float64) string                            { return strconv.FormatFloat(v, 'g', -1, 64) }

func (r *parquetRow) texts() []string {
	return []string{
		signedText(r.I8), orNull(r.I16, signedText), signedText(r.I32), nullIfZero(r.I32D),
		signedText(r.I64), orNull(r.I64Dict, signedText), signedText(r.I64D),
		unsignedText(r.U8), unsignedText(r.U32), unsignedText(r.U32D), orNull(r.U64, unsignedText),
		floatText(float64(r.F32)), orNull(r.F64, floatText), floatText(r.F64Dict),
		strconv.FormatBool(r.B), orNull(r.BOpt, strconv.FormatBool),
		strconv.Quote(r.S), orNull(r.SOpt, strconv.Quote), strconv.Quote(r.SDict), orNull(r.SDictO, strconv.Quote),
		orNull(r.SLen, strconv.Quote), strconv.Quote(string(r.Bytes)), "null", "null",
	}
}

func parquetFile[T any](t testing.TB, rows []T, options ...parquet.WriterOption) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[T](&b, options...)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gatherParquet(t testing.TB, src []byte) *gathered {
	t.Helper()
	g, was := new(gathered), bytes.Clone(src)
	if err := decodeParquet(src, testOptions(Limits{}), g.emit); err != nil {
		t.Fatal(err)
	}
	if g.broken != "" {
		t.Fatal(g.broken)
	}
	if !bytes.Equal(src, was) {
		t.Fatal("the input was written to")
	}
	return g
}

func TestParquetRoundTrip(t *testing.T) {
	rows := parquetRows(3_000)
	for _, codec := range []compress.Codec{&parquet.Uncompressed, &parquet.Snappy, &parquet.Gzip, &parquet.Zstd} {
		for _, version := range []int{1, 2} {
			for _, c := range []struct{ rows, page, group int }{{0, 1 << 20, 1 << 20}, {1, 1 << 20, 1 << 20},
				{9, 16, 1 << 20}, {3_000, 1 << 20, 1 << 20}, {3_000, 4_000, 1_777}} {
				t.Run(fmt.Sprintf("%s v%d %d rows of %d", codec, version, c.rows, c.group), func(t *testing.T) {
					src := parquetFile(t, rows[:c.rows], parquet.Compression(codec), parquet.DataPageVersion(version),
						parquet.PageBufferSize(c.page), parquet.MaxRowsPerRowGroup(int64(c.group)))
					g := gatherParquet(t, src)
					if len(g.rows) != c.rows || len(g.names) != 24 || g.names[3] != "i32d" || c.rows > 0 && !g.coded {
						t.Fatalf("%d rows, columns %v, coded %t", len(g.rows), g.names, g.coded)
					}
					for i := range g.rows {
						if want := rows[i].texts(); !slices.Equal(g.rows[i], want) {
							t.Fatalf("row %d:\n%v, want\n%v", i+1, g.rows[i], want)
						}
					}
				})
			}
		}
	}
}

// TestParquetFallback leaves the dictionary in the midst of a column, as writers do when it grows too large.
func TestParquetFallback(t *testing.T) {
	type row struct {
		S string `parquet:"s,dict"`
		N int64  `parquet:"n,dict"`
	}
	var rows []row
	for i := range 20_000 {
		rows = append(rows, row{fmt.Sprint("word", i), int64(i)})
	}
	g := gatherParquet(t, parquetFile(t, rows, parquet.PageBufferSize(8_000), parquet.DictionaryMaxBytes(30_000)))
	for i := range rows {
		if got := strings.Join(g.rows[i], " "); got != fmt.Sprintf("%q %d", rows[i].S, rows[i].N) {
			t.Fatalf("row %d: %s", i+1, got)
		}
	}
	if !g.coded || len(g.rows) != len(rows) {
		t.Errorf("%d rows, coded %t", len(g.rows), g.coded)
	}
}

func TestParquetUnsigned(t *testing.T) {
	type row struct {
		N uint64 `parquet:"n"`
	}
	g := gatherParquet(t, parquetFile(t, []row{{1}, {math.MaxUint64}}))
	if got := fmt.Sprint(g.rows); got != "[[1] [1.8446744073709552e+19]]" {
		t.Error(got)
	}
}

func TestParquetEmitError(t *testing.T) {
	stop := errors.New("stop")
	err := decodeParquet(parquetFile(t, parquetRows(3)), testOptions(Limits{}), func(int, []vector) error {
		return stop
	})
	if err != stop {
		t.Errorf("%v", err)
	}
}

// demandRow is a row of a demand table.
type demandRow struct {
	Consumer   string `parquet:"consumer,dict"`
	Allocation string `parquet:"allocation"`
	Sub        string `parquet:"sub,dict"`
	Plan       string `parquet:"plan,dict"`
	Units      int64  `parquet:"units,dict"`
	CPUs       int64  `parquet:"ncpus"`
	Memory     int64  `parquet:"maxmem"`
	GPUs       *int64 `parquet:"gpus,optional"`
}

func parquetDemand(t testing.TB, n int) []byte {
	rows := make([]demandRow, n)
	for i := range rows {
		rows[i] = demandRow{fmt.Sprintf("/Risk/Desk%d/Book%d", i/1000, i/50%20), fmt.Sprint("job-", 5_000_000+i/2),
			fmt.Sprint("s", i%2),
			"grid", int64(1 + i*7%200), 1 << (i % 5), int64(1024 * (1 + i%16)), some(i, 9, int64(i%2))}
	}
	return parquetFile(t, rows, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(122_880))
}

func TestParquetAllocations(t *testing.T) {
	o := testOptions(Limits{})
	cost := func(rows int) float64 {
		src := parquetDemand(t, rows)
		return testing.AllocsPerRun(5, func() {
			if err := decodeParquet(src, o, look); err != nil {
				t.Fatal(err)
			}
		})
	}
	// A page header costs some; the pages of 100,000 rows are a few dozen.
	if few, many := cost(1_000), cost(100_000); many > few+1_000 {
		t.Errorf("%v allocations for 100,000 rows, %v for 1,000", many, few)
	}
}

func BenchmarkParquet(b *testing.B) {
	src := parquetDemand(b, 500_000)
	o := testOptions(Limits{})
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		if err := decodeParquet(src, o, look); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(500_000*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// TestParquetPages reads what the library does not write but others do.
func TestParquetPages(t *testing.T) {
	optional := func(f *parquetParts) *parquetParts {
		f.column.RepetitionType.V = format.Optional
		return f
	}
	with := func(f *parquetParts, edit func(f *parquetParts)) *parquetParts {
		edit(f)
		return f
	}
	one := make([]byte, 8)
	one[0] = 1
	for _, c := range []struct {
		name string
		of   *parquetParts
		want string
	}{
		{"booleans in runs", parquetOf(format.Boolean, 11, pageOf(11, format.RLE, 5, 0, 0, 0, 6, 1, 3, 0b01010101, 0)),
			"[true true true true false true false true false true false]"},
		{"booleans over pages", parquetOf(format.Boolean, 3, pageOf(2, format.Plain, 2), pageOf(1, format.Plain, 1)),
			"[false true true]"},
		{"old dictionary", with(coded(1, 3, 2), func(f *parquetParts) {
			f.page(1).Encoding = parquetPlainDictionary
			f.pages[0].header.DictionaryPageHeader.V.Encoding = parquetPlainDictionary
		}), `["a" "b"]`},
		{"dictionary of one", parquetOf(format.ByteArray, 2, dictionaryPage(1, 1, 0, 0, 0, 'a'),
			pageOf(2, format.RLEDictionary, 0, 4)), `["a" "a"]`},
		{"dictionary of doubles", parquetOf(format.Double, 1, dictionaryPage(1, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f),
			pageOf(1, format.RLEDictionary, 1, 2, 0)), "[1.5]"},
		{"codes of nobody",
			optional(parquetOf(format.ByteArray, 2, dictionaryPage(0),
				pageOf(2, format.RLEDictionary, 2, 0, 0, 0, 4, 0))), "[null null]"},
		{"texts of nobody",
			optional(parquetOf(format.ByteArray, 2, pageOf(2, format.DeltaLengthByteArray, 2, 0, 0, 0, 4, 0))),
			"[null null]"},
		{"one length", texts(pageOf(2, format.DeltaLengthByteArray, 128, 1, 1, 2, 4, 1, 0, 'a', 'b', 'c')),
			`["ab" "c"]`},
		{"empty page", parquetOf(format.Int64, 1, pageOf(0, format.Plain), pageOf(1, format.Plain, one...)), "[1]"},
		{"index page", parquetOf(format.Int64, 1, parquetPage{header: format.PageHeader{Type: format.IndexPage}},
			pageOf(1, format.Plain, one...)), "[1]"},
		{"old unsigned", with(parquetOf(format.Int32, 1, pageOf(1, format.Plain, 255, 255, 255, 255)),
			func(f *parquetParts) { f.column.ConvertedType = thrift.New(deprecated.Uint32) }), "[4294967295]"},
		{"checksum", with(parquetOf(format.Int64, 1, pageOf(1, format.Plain, one...)),
			func(f *parquetParts) { f.pages[0].header.CRC = int32(crc32.ChecksumIEEE(one)) }), "[1]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := gatherParquet(t, c.of.file())
			if got := fmt.Sprint(slices.Concat(g.rows...)); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// TestBits compares the two ways of reading packed values, at every width and offset.
func TestBits(t *testing.T) {
	packed := make([]byte, 41)
	for i := range packed {
		packed[i] = byte(i*151 + 7)
	}
	slow := func(at, width int) (v uint64) {
		for i := range width {
			if j := at + i; j/8 < len(packed) {
				v |= uint64(packed[j/8]>>(j%8)&1) << i
			}
		}
		return v
	}
	for width := range 65 {
		for at := range 8 * len(packed) {
			if got, want := bitsAt(packed, at, width), slow(at, width); got != want {
				t.Fatalf("%d bits at %d: %x, want %x", width, at, got, want)
			}
		}
	}
	for width := 1; width <= 32; width++ {
		n := 8 * len(packed) / width
		h := hybrid{width: width, packed: packed}
		got := make([]int32, n)
		h.unpack(got)
		for i, v := range got {
			if want := int32(slow(i*width, width)); v != want {
				t.Fatalf("value %d of %d bits: %x, want %x", i, width, v, want)
			}
		}
	}
}

// TestColumnarDemand reads a table through the whole of the package.
func TestColumnarDemand(t *testing.T) {
	const rows = 50_000
	for format, src := range map[Format][]byte{Arrow: arrowDemand(t, rows), Parquet: parquetDemand(t, rows)} {
		t.Run(format.String(), func(t *testing.T) {
			d, err := ReadDemand(bytes.NewReader(src), Options{Dimensions: demandDimensions})
			if err != nil {
				t.Fatal(err)
			}
			if d.Rows != rows {
				t.Fatalf("%d rows", d.Rows)
			}
			for i := range rows {
				got := fmt.Sprintln(d.Consumer.Names.String(d.Consumer.Code[i]),
					d.Allocation.Names.String(d.Allocation.Code[i]), d.Units[i], d.Size[1][i])
				if want := fmt.Sprintln(fmt.Sprintf("/Risk/Desk%d/Book%d", i/1000, i/50%20),
					fmt.Sprint("job-", 5_000_000+i/2), 1+i*7%200, 1024*(1+i%16)); got != want {
					t.Fatalf("row %d: %s, want %s", i+1, got, want)
				}
			}
		})
	}
}
