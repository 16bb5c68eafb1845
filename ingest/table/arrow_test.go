package table

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// gathered is what a decoder emitted, each value in text, null as "null".
type gathered struct {
	names  []string
	rows   [][]string
	calls  int
	coded  bool
	dict   map[string]string // by number of the column and generation: its texts
	broken string            // a vector that breaks the contract
}

func (g *gathered) emit(rows int, columns []vector) error {
	g.calls++
	g.names = nil
	first := len(g.rows)
	for range rows {
		g.rows = append(g.rows, make([]string, len(columns)))
	}
	for c := range columns {
		v := &columns[c]
		g.names = append(g.names, v.name)
		if v.rows != rows {
			g.broken = fmt.Sprintf("%s: %d rows in a batch of %d", v.name, v.rows, rows)
		}
		if v.kind == vectorCoded {
			g.generation(c, v)
		}
		for i := range rows {
			g.rows[first+i][c] = valueText(v, i)
		}
	}
	return nil
}

// generation notes a breach of the promise that texts stay as long as the generation does.
func (g *gathered) generation(c int, v *vector) {
	g.coded = true
	if g.dict == nil {
		g.dict = map[string]string{}
	}
	key, texts := fmt.Sprint(c, " ", v.generation), fmt.Sprint(v.offsets, v.data)
	if old, ok := g.dict[key]; ok && old != texts {
		g.broken = v.name + ": texts changed within a generation"
	}
	g.dict[key] = texts
}

func valueText(v *vector, i int) string {
	if v.null(i) {
		return "null"
	}
	switch v.kind {
	case vectorInt:
		return strconv.FormatInt(v.ints[i], 10)
	case vectorFloat:
		return strconv.FormatFloat(v.floats[i], 'g', -1, 64)
	case vectorBool:
		return strconv.FormatBool(bit(v.bools, i))
	case vectorCoded:
		i = int(v.codes[i])
	}
	return strconv.Quote(string(v.text(i)))
}

func testOptions(l Limits) *Options {
	o := Options{Limits: l}.resolve()
	return &o
}

func gatherArrow(t testing.TB, src []byte) *gathered {
	t.Helper()
	g := new(gathered)
	// Half reads show that nothing relies on whole ones.
	if err := decodeArrow(iotest.HalfReader(bytes.NewReader(src)), testOptions(Limits{}), g.emit); err != nil {
		t.Fatal(err)
	}
	if g.broken != "" {
		t.Fatal(g.broken)
	}
	return g
}

// arrowStream writes records with the library.
func arrowStream(t testing.TB, schema *arrow.Schema, records []arrow.RecordBatch, options ...ipc.Option) []byte {
	t.Helper()
	var b bytes.Buffer
	w := ipc.NewWriter(&b, append(options, ipc.WithSchema(schema))...)
	for _, r := range records {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// arrowRecord makes a record from JSON rows.
func arrowRecord(t testing.TB, schema *arrow.Schema, rows string) arrow.RecordBatch {
	t.Helper()
	r, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(rows))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func fieldsOf(fields ...arrow.Field) *arrow.Schema { return arrow.NewSchema(fields, nil) }

func nullable(name string, t arrow.DataType) arrow.Field {
	return arrow.Field{Name: name, Type: t, Nullable: true}
}

func dictionaryOf(index arrow.DataType) arrow.DataType {
	return &arrow.DictionaryType{IndexType: index, ValueType: arrow.BinaryTypes.String}
}

var primitive = arrow.PrimitiveTypes

func TestArrowTypes(t *testing.T) {
	for _, c := range []struct {
		of   arrow.DataType
		json []string // values
		want []string // as gathered; nil: as in json
	}{
		{primitive.Int8, []string{"-128", "null", "127"}, nil},
		{primitive.Int16, []string{"-32768", "32767", "null"}, nil},
		{primitive.Int32, []string{"-2147483648", "2147483647"}, nil},
		{primitive.Int64, []string{"-9223372036854775808", "null", "9223372036854775807"}, nil},
		{primitive.Uint8, []string{"0", "255"}, nil},
		{primitive.Uint16, []string{"0", "null", "65535"}, nil},
		{primitive.Uint32, []string{"0", "4294967295"}, nil},
		{primitive.Uint64, []string{"0", "9223372036854775807"}, nil},
		{primitive.Uint64, []string{"1", "18446744073709551615"}, []string{"1", "1.8446744073709552e+19"}},
		{primitive.Float32, []string{"0.5", "null", "-3"}, nil},
		{primitive.Float64, []string{"0.1", "1e+300", "null"}, nil},
		{arrow.FixedWidthTypes.Boolean, []string{"true", "false", "null", "true", "true", "true", "true", "true",
			"false"}, nil},
		{arrow.BinaryTypes.String, []string{`"a"`, `""`, "null", `"grün"`, `"日本"`}, nil},
		{arrow.BinaryTypes.LargeString, []string{`"a"`, "null", `"bb"`, `""`}, nil},
		{arrow.Null, []string{"null", "null"}, nil},
		{dictionaryOf(primitive.Int8), []string{`"a"`, "null", `"b"`, `"a"`}, nil},
		{dictionaryOf(primitive.Int16), []string{`"a"`, `"b"`}, nil},
		{dictionaryOf(primitive.Int32), []string{`"a"`, `"b"`}, nil},
		{dictionaryOf(primitive.Int64), []string{"null", `"b"`}, nil},
		{dictionaryOf(primitive.Uint8), []string{`"a"`, `"b"`}, nil},
		{dictionaryOf(primitive.Uint32), []string{`"a"`, `""`}, nil},
		{dictionaryOf(primitive.Int32), []string{"null", "null"}, nil},
		{primitive.Int64, nil, nil},
		{arrow.BinaryTypes.String, nil, nil},
		{dictionaryOf(primitive.Int32), nil, nil},
	} {
		schema := fieldsOf(nullable("x", c.of))
		rows := make([]string, len(c.json))
		for i, v := range c.json {
			rows[i] = `{"x":` + v + `}`
		}
		record := arrowRecord(t, schema, "["+strings.Join(rows, ",")+"]")
		if c.want == nil {
			c.want = c.json
		}
		for name, options := range map[string][]ipc.Option{"plain": nil, "zstd": {ipc.WithZstd()}} {
			t.Run(fmt.Sprint(c.of, len(c.json), name), func(t *testing.T) {
				g := gatherArrow(t, arrowStream(t, schema, []arrow.RecordBatch{record}, options...))
				got := slices.Concat(g.rows...)
				if !slices.Equal(got, c.want) || !slices.Equal(g.names, []string{"x"}) {
					t.Errorf("%v %v, want %v", g.names, got, c.want)
				}
			})
		}
	}
}

// TestArrowBatches takes several records, longer than a window, and slices whose
// buffers do not begin at a byte or at offset 0.
func TestArrowBatches(t *testing.T) {
	schema := fieldsOf(nullable("n", primitive.Int64), nullable("s", arrow.BinaryTypes.String),
		nullable("b", arrow.FixedWidthTypes.Boolean), nullable("d", dictionaryOf(primitive.Int32)))
	rows := 2*batchRows(4) + 77
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	var want []string
	dict := b.Field(3).(*array.BinaryDictionaryBuilder)
	for i := range rows {
		n, s := strconv.Itoa(i), fmt.Sprintf("%q", fmt.Sprint("s", i))
		f, d := strconv.FormatBool(i%3 == 0), fmt.Sprintf("%q", fmt.Sprint("d", i%100))
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(2).(*array.BooleanBuilder).Append(i%3 == 0)
		if i%7 == 0 {
			b.Field(1).AppendNull()
			dict.AppendNull()
			s, d = "null", "null"
		} else {
			b.Field(1).(*array.StringBuilder).Append(fmt.Sprint("s", i))
			if err := dict.AppendString(fmt.Sprint("d", i%100)); err != nil {
				t.Fatal(err)
			}
		}
		want = append(want, strings.Join([]string{n, s, f, d}, " "))
	}
	record := b.NewRecordBatch()
	cuts := []int{0, 5, 5, 1003, 40_001, rows}
	var parts []arrow.RecordBatch
	for i := range len(cuts) - 1 {
		parts = append(parts, record.NewSlice(int64(cuts[i]), int64(cuts[i+1])))
	}
	for _, records := range [][]arrow.RecordBatch{{record}, parts} {
		g := gatherArrow(t, arrowStream(t, schema, records))
		if len(g.rows) != rows || !g.coded || g.calls < 3 {
			t.Fatalf("%d rows in %d batches, coded %t", len(g.rows), g.calls, g.coded)
		}
		for i, row := range g.rows {
			if got := strings.Join(row, " "); got != want[i] {
				t.Fatalf("row %d: %s, want %s", i+1, got, want[i])
			}
		}
	}
}

// TestArrowDictionaries changes a dictionary from batch to batch: by more texts, and by another.
func TestArrowDictionaries(t *testing.T) {
	schema := fieldsOf(nullable("d", dictionaryOf(primitive.Int32)), nullable("n", primitive.Int8))
	large := fieldsOf(nullable("d", &arrow.DictionaryType{IndexType: primitive.Int32,
		ValueType: arrow.BinaryTypes.LargeString}), nullable("n", primitive.Int8))
	partOf := func(schema *arrow.Schema, texts, codes string) arrow.RecordBatch {
		value, _, err := array.FromJSON(memory.DefaultAllocator, schema.Field(0).Type.(*arrow.DictionaryType).ValueType,
			strings.NewReader(texts))
		if err != nil {
			t.Fatal(err)
		}
		code, _, err := array.FromJSON(memory.DefaultAllocator, primitive.Int32, strings.NewReader(codes))
		if err != nil {
			t.Fatal(err)
		}
		d := array.NewDictionaryArray(schema.Field(0).Type, code, value)
		n, _, err := array.FromJSON(memory.DefaultAllocator, primitive.Int8, strings.NewReader(codes))
		if err != nil {
			t.Fatal(err)
		}
		return array.NewRecordBatch(schema, []arrow.Array{d, n}, -1)
	}
	part := func(texts, codes string) arrow.RecordBatch { return partOf(schema, texts, codes) }
	for name, c := range map[string]struct {
		records []arrow.RecordBatch
		deltas  bool
		want    string
	}{
		"more texts": {[]arrow.RecordBatch{part(`["a","b"]`, `[0,1]`), part(`["a","b","c"]`, `[2,0]`),
			part(`["a","b","c"]`, `[1,null]`)}, true,
			`"a" 0, "b" 1, "c" 2, "a" 0, "b" 1, null null`},
		"another": {[]arrow.RecordBatch{part(`["a","b"]`, `[0,1]`), part(`["x"]`, `[0,0]`), part(`["y","z"]`, `[1,0]`)},
			false,
			`"a" 0, "b" 1, "x" 0, "x" 0, "z" 1, "y" 0`},
		"large text": {[]arrow.RecordBatch{partOf(large, `["a","bc"]`, `[1,0]`)}, false, `"bc" 1, "a" 0`},
	} {
		t.Run(name, func(t *testing.T) {
			src := arrowStream(t, c.records[0].Schema(), c.records, ipc.WithDictionaryDeltas(c.deltas))
			deltas := 0
			for _, f := range arrowFrames(src) {
				if f.message().u8(messageKind) == messageDictionary {
					deltas += int(f.table().u8(isDelta))
				}
			}
			if deltas > 0 != c.deltas {
				t.Fatalf("the stream has %d deltas", deltas)
			}
			var got []string
			for _, row := range gatherArrow(t, src).rows {
				got = append(got, strings.Join(row, " "))
			}
			if strings.Join(got, ", ") != c.want {
				t.Errorf("%s, want %s", strings.Join(got, ", "), c.want)
			}
		})
	}
}

func TestArrowEmitError(t *testing.T) {
	src, stop := arrowSample(t), errors.New("stop")
	err := decodeArrow(bytes.NewReader(src), testOptions(Limits{}), func(int, []vector) error { return stop })
	if err != stop {
		t.Errorf("%v", err)
	}
	broken := errors.New("broken connection")
	err = decodeArrow(io.MultiReader(bytes.NewReader(src[:100]), iotest.ErrReader(broken)), testOptions(Limits{}),
		new(gathered).emit)
	if !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

// arrowDemand is a demand table of any size.
func arrowDemand(t testing.TB, rows int) []byte {
	schema := fieldsOf(nullable("consumer", dictionaryOf(primitive.Int32)),
		nullable("allocation", arrow.BinaryTypes.String),
		nullable("sub", dictionaryOf(primitive.Int8)), nullable("plan", dictionaryOf(primitive.Int8)),
		nullable("units", primitive.Int64),
		nullable("ncpus", primitive.Int64), nullable("maxmem", primitive.Int64), nullable("gpus", primitive.Int32))
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	word := func(field int, s string) {
		if err := b.Field(field).(*array.BinaryDictionaryBuilder).AppendString(s); err != nil {
			t.Fatal(err)
		}
	}
	for i := range rows {
		word(0, fmt.Sprintf("/Risk/Desk%d/Book%d", i/1000, i/50%20))
		b.Field(1).(*array.StringBuilder).Append(fmt.Sprint("job-", 5_000_000+i/2))
		word(2, fmt.Sprint("s", i%2))
		word(3, "grid")
		for f, n := range []int64{int64(1 + i*7%200), 1 << (i % 5), int64(1024 * (1 + i%16))} {
			b.Field(4 + f).(*array.Int64Builder).Append(n)
		}
		b.Field(7).(*array.Int32Builder).Append(int32(i % 9 / 8))
	}
	return arrowStream(t, schema, []arrow.RecordBatch{b.NewRecordBatch()})
}

// look is a consumer that does as little as one can: it has the values in hand.
func look(int, []vector) error { return nil }

func TestArrowAllocations(t *testing.T) {
	o := testOptions(Limits{})
	cost := func(rows int) float64 {
		src := arrowDemand(t, rows)
		return testing.AllocsPerRun(5, func() {
			if err := decodeArrow(bytes.NewReader(src), o, look); err != nil {
				t.Fatal(err)
			}
		})
	}
	if few, many := cost(1_000), cost(200_000); many > few+100 {
		t.Errorf("%v allocations for 200,000 rows, %v for 1,000", many, few)
	}
}

func BenchmarkArrow(b *testing.B) {
	src := arrowDemand(b, 500_000)
	o := testOptions(Limits{})
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		if err := decodeArrow(bytes.NewReader(src), o, look); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(500_000*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// allocated runs f and gives how many bytes it allocated in all.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
