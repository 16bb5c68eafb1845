package table

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/endian"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// arrowSample is a small stream: schema, dictionary, record batch. The columns
// are units (int64, one null), name (text), kind (dictionary), on (boolean).
func arrowSample(t testing.TB, options ...ipc.Option) []byte {
	schema := fieldsOf(nullable("units", primitive.Int64), nullable("name", arrow.BinaryTypes.String),
		nullable("kind", dictionaryOf(primitive.Int8)), nullable("on", arrow.FixedWidthTypes.Boolean))
	return arrowStream(t, schema, []arrow.RecordBatch{arrowRecord(t, schema,
		`[{"units":1,"name":"grün","kind":"x","on":true},{"units":null,"name":"bc","kind":"y","on":null},{"units":3,"name":"d","kind":"x","on":false}]`)}, options...)
}

// arrowFrame is a message of a stream, taken apart.
type arrowFrame struct{ metadata, body []byte }

// table is the message's own table: Schema, DictionaryBatch or RecordBatch. What
// its fields give are the frame's own bytes, so that a test can change them.
func (f *arrowFrame) table() flatTable { return f.message().table(messageTable) }

func (f *arrowFrame) message() flatTable { return (&flat{buf: f.metadata}).root() }

// data is the record batch of a dictionary batch.
func (f *arrowFrame) data() flatTable { return f.table().table(dictionaryData) }

func arrowFrames(src []byte) (frames []arrowFrame) {
	src = bytes.Clone(src)
	for {
		n := binary.LittleEndian.Uint32(src[4:])
		if n == 0 {
			return frames
		}
		f := arrowFrame{metadata: src[8 : 8+n]}
		body := f.message().i64(messageBody)
		f.body = src[8+n : 8+int64(n)+body]
		frames = append(frames, f)
		src = src[8+int64(n)+body:]
	}
}

func join(frames ...arrowFrame) (src []byte) {
	for _, f := range frames {
		src = append(src, 0xff, 0xff, 0xff, 0xff)
		src = binary.LittleEndian.AppendUint32(src, uint32(len(f.metadata)))
		src = append(append(src, f.metadata...), f.body...)
	}
	return append(src, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0)
}

func put[T int | int64 | uint32](b []byte, v T) {
	for i := range b {
		b[i] = byte(int64(v) >> (8 * min(i, 7)))
	}
}

// node and buffer are the places of a number in a record batch's lists.
func node(t flatTable, column, part int) []byte {
	b, _ := t.vector(batchNodes, 16)
	return b[16*column+8*part:][:8]
}

func buffer(t flatTable, i, part int) []byte {
	b, _ := t.vector(batchBuffers, 16)
	return b[16*i+8*part:][:8]
}

// content is a buffer of a frame's body.
func content(f *arrowFrame, t flatTable, i int) []byte {
	return f.body[binary.LittleEndian.Uint64(buffer(t, i, 0)):]
}

// Buffers of the sample's record batch.
const (
	unitsValid, unitsValues, nameOffsets, nameData, kindCodes, onBits = 0, 1, 3, 4, 6, 8
)

func TestArrowRefuses(t *testing.T) {
	type frames = []arrowFrame
	for _, c := range []struct {
		name string
		edit func(f frames) frames
		want string
	}{
		{"metadata length", func(f frames) frames { f[2].metadata = make([]byte, arrowMetadataBytesMax+8); return f },
			"arrow: message 3: metadata of 4194312 bytes"},
		{"metadata of nothing", func(f frames) frames { f[2].metadata = make([]byte, 2); return f },
			"root offset of 4 bytes at offset 0"},
		{"version", func(f frames) frames { put(f[0].message().field(messageVersion, 2), 2); return f },
			"metadata version 3 is not supported"},
		{"kind", func(f frames) frames { f[1].message().field(messageKind, 1)[0] = 4; return f },
			"kind 4 is neither schema"},
		{"no schema", func(f frames) frames { return f[1:] }, "the schema must come first"},
		{"only the end", func(f frames) frames { return nil }, "arrow: the stream holds no schema"},
		{"two schemas", func(f frames) frames { f[1] = f[0]; return f },
			"message 2: the schema must come first, and once"},
		{"root offset", func(f frames) frames { put(f[0].metadata[:4], 1<<30); return f },
			"table of 4 bytes at offset 1073741824"},
		{"vtable", func(f frames) frames { put(f[0].metadata[f[0].message().at:][:4], -1<<20); return f },
			"vtable of 2 bytes at offset"},
		{"vtable size", func(f frames) frames { f[0].message().vtable[0] = 2; return f }, "vtable of 2 bytes"},
		{"table size", func(f frames) frames { f[0].message().vtable[3] = 0xff; return f }, "metadata: table of"},
		{"field offset", func(f frames) frames { f[0].message().vtable[4] = 0xf0; return f },
			"field 0 goes beyond its table"},
		{"fields vector", func(f frames) frames { f[0].table().vtable[4+2*schemaFields] = 0; return f },
			"schema: there is no column"},
		{"body length", func(f frames) frames { put(f[2].message().field(messageBody, 8), 1<<20); return f },
			"body: the stream ends after"},
		{"body length huge", func(f frames) frames { put(f[2].message().field(messageBody, 8), 1<<60); return f },
			"over a limit: 1152921504606846976 bytes"},
		{"body length negative", func(f frames) frames { put(f[2].message().field(messageBody, 8), -8); return f },
			"body of -8 bytes"},
		{"rows", func(f frames) frames { put(f[2].table().field(batchLength, 8), 1<<50); return f },
			"over a limit: 1125899906842624 rows"},
		{"rows negative", func(f frames) frames { put(f[2].table().field(batchLength, 8), -1); return f }, "-1 rows"},
		{"node length", func(f frames) frames { put(node(f[2].table(), 1, 0), 4); return f },
			"column name: 4 rows, 0 of them null, in a batch of 3"},
		{"null count", func(f frames) frames { put(node(f[2].table(), 0, 1), 4); return f },
			"column units: 3 rows, 4 of them null"},
		{"null count negative", func(f frames) frames { put(node(f[2].table(), 0, 1), -1); return f },
			"-1 of them null"},
		{"null count wrong", func(f frames) frames { put(node(f[2].table(), 0, 1), 2); return f },
			"column units: validity bitmap has 1 nulls, the batch's head says 2"},
		{"validity missing", func(f frames) frames { put(buffer(f[2].table(), unitsValid, 1), 0); return f },
			"validity bitmap of 0 bytes for 3 rows"},
		{"buffer offset", func(f frames) frames { put(buffer(f[2].table(), unitsValues, 0), 1<<40); return f },
			"record batch 1: column units: values: 24 bytes at offset 1099511627776 go beyond"},
		{"buffer offset negative", func(f frames) frames { put(buffer(f[2].table(), nameData, 0), -8); return f },
			"at offset -8 go beyond"},
		{"buffer length", func(f frames) frames { put(buffer(f[2].table(), nameData, 1), 1<<62); return f },
			"column name: data: 4611686018427387904 bytes"},
		{"buffer length overflows",
			func(f frames) frames { put(buffer(f[2].table(), nameData, 1), int64(1<<63-1)); return f },
			"go beyond the body"},
		{"buffers shared", func(f frames) frames {
			put(buffer(f[2].table(), nameData, 0), 0)
			put(buffer(f[2].table(), nameData, 1), int64(len(f[2].body)))
			return f
		}, "column name: data: it shares its"},
		{"buffer short", func(f frames) frames { put(buffer(f[2].table(), unitsValues, 1), 16); return f },
			"column units: values: 16 bytes, where the rows need 24"},
		{"offsets short", func(f frames) frames { put(buffer(f[2].table(), nameOffsets, 1), 12); return f },
			"offsets: 12 bytes, where the rows need 16"},
		{"bits short", func(f frames) frames { put(buffer(f[2].table(), onBits, 1), 0); return f },
			"column on: bits: 0 bytes, where the rows need 1"},
		{"offset beyond",
			func(f frames) frames { put(content(&f[2], f[2].table(), nameOffsets)[12:16], 1000); return f },
			"column name, row 3: an offset goes beyond the data's"},
		{"offset negative", func(f frames) frames { put(content(&f[2], f[2].table(), nameOffsets)[:4], -1); return f },
			"column name, row 1: an offset goes beyond"},
		{"offsets go down", func(f frames) frames { put(content(&f[2], f[2].table(), nameOffsets)[4:8], 8); return f },
			"column name, row 2: offsets go down (8 to 7)"},
		{"text", func(f frames) frames { content(&f[2], f[2].table(), nameData)[5] = 0xff; return f },
			`column name, row 2: text "\xffc" is not valid UTF-8`},
		{"text cut", func(f frames) frames { put(content(&f[2], f[2].table(), nameOffsets)[4:8], 3); return f },
			`column name, row 1: text "gr\xc3" is not valid UTF-8`},
		{"code", func(f frames) frames { content(&f[2], f[2].table(), kindCodes)[2] = 2; return f },
			"column kind, row 3: index 2 into dictionary 0, which has 2 texts"},
		{"code negative", func(f frames) frames { content(&f[2], f[2].table(), kindCodes)[0] = 0x80; return f },
			"row 1: index -128 into dictionary"},
		{"no dictionary", func(f frames) frames { return frames{f[0], f[2]} },
			"index 0 into dictionary 0, which has 0 texts"},
		{"dictionary text", func(f frames) frames { content(&f[1], f[1].data(), 2)[0] = 0xff; return f },
			"dictionary batch 1: dictionary 0, text 1: text"},
		{"dictionary offset", func(f frames) frames { put(content(&f[1], f[1].data(), 1)[4:8], 9); return f },
			"dictionary 0: offsets go down or beyond"},
		{"dictionary nodes", func(f frames) frames { f[1].data().vtable[4+2*batchNodes] = 0; return f },
			"dictionary batch 1: 0 columns"},
	} {
		t.Run(c.name, func(t *testing.T) {
			refusesArrow(t, join(c.edit(arrowFrames(arrowSample(t)))...), Limits{}, c.want)
		})
	}
}

func refusesArrow(t *testing.T, src []byte, l Limits, want string) {
	t.Helper()
	var err error
	if n := allocated(func() { err = decodeArrow(bytes.NewReader(src), testOptions(l), look) }); n > 64<<20 {
		t.Errorf("%d bytes allocated", n)
	}
	if err == nil || !strings.HasPrefix(err.Error(), "arrow: ") || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	if strings.Contains(want, "over a limit") != errors.Is(err, ErrLimit) {
		t.Errorf("%v: is it a limit?", err)
	}
}

func TestArrowRefusesStreams(t *testing.T) {
	sample := arrowSample(t)
	big := arrow.NewSchema([]arrow.Field{nullable("x", primitive.Int8)}, nil).WithEndianness(endian.BigEndian)
	of := func(of arrow.DataType) []byte { return arrowStream(t, fieldsOf(nullable("x", of)), nil) }
	packed := arrowFrames(arrowSample(t, ipc.WithZstd()))
	put(content(&packed[2], packed[2].table(), unitsValues)[:8], 25)
	bomb := arrowFrames(arrowSample(t, ipc.WithZstd()))
	put(content(&bomb[2], bomb[2].table(), unitsValues)[:8], 1<<25)
	for _, c := range []struct {
		name   string
		src    []byte
		limits Limits
		want   string
	}{
		{"nothing", nil, Limits{}, "the stream holds no schema"},
		{"half a length", sample[:6], Limits{}, "message 1: the stream ends within a message's length (6 of 8 bytes)"},
		{"no marker", []byte("units,name\n"), Limits{}, "continuation marker ff ff ff ff is expected, not 75 6e 69 74"},
		{"a file", []byte("ARROW1\x00\x00"), Limits{}, "no Arrow IPC stream"},
		{"length negative", []byte("\xff\xff\xff\xff\xff\xff\xff\xff"), Limits{}, "metadata of -1 bytes"},
		{"length 1 GiB", []byte("\xff\xff\xff\xff\x00\x00\x00\x40"), Limits{}, "metadata of 1073741824 bytes"},
		{"more behind the end", append(bytes.Clone(sample), 0), Limits{},
			"message 4: bytes follow the end of the stream"},
		{"rows", sample, Limits{RowsMax: 2}, "record batch 1: over a limit: 3 rows, at most 2"},
		{"rows of two batches", join(append(arrowFrames(sample), arrowFrames(sample)[2])...), Limits{RowsMax: 5},
			"record batch 2: over a limit: more than 5 rows"},
		{"columns", sample, Limits{ColumnsMax: 3}, "schema: over a limit: 4 columns, at most 3"},
		{"text", sample, Limits{FieldBytesMax: 4}, "column name, row 1: over a limit: text of 5 bytes"},
		{"decoded bytes", sample, Limits{DecodedBytesMax: 500},
			"over a limit: more than 500 bytes after decompression"},
		{"lz4", arrowSample(t, ipc.WithLZ4()), Limits{}, "bodies compressed with LZ4 are not supported"},
		{"zstd length", join(packed...), Limits{}, "column units: values: unpacks to 24 bytes, where 25 are told"},
		{"zstd length large", join(bomb...), Limits{}, "column units: values: unpacks to 24 bytes"},
		{"big endian", arrowStream(t, big, nil, ipc.WithEnsureNativeEndian(false)), Limits{},
			"schema: big-endian data is not supported"},
		{"list", of(arrow.ListOf(primitive.Int8)), Limits{}, "schema: column x: nested types are not supported"},
		{"struct", of(arrow.StructOf(nullable("y", primitive.Int8))), Limits{}, "column x: nested types"},
		{"timestamp", of(arrow.FixedWidthTypes.Timestamp_us), Limits{}, "column x: type timestamp is not supported"},
		{"decimal", of(&arrow.Decimal128Type{Precision: 9, Scale: 2}), Limits{},
			"only decimals of 128 bits without digits after the point"},
		{"binary", of(arrow.BinaryTypes.Binary), Limits{}, "type binary is not supported"},
		{"view", of(arrow.BinaryTypes.StringView), Limits{}, "type utf8 view is not supported"},
		{"half", of(arrow.FixedWidthTypes.Float16), Limits{}, "only single and double floats"},
		{"numbers' dictionary", of(&arrow.DictionaryType{IndexType: primitive.Int8, ValueType: primitive.Int64}),
			Limits{}, "a dictionary of int is not supported"},
	} {
		t.Run(c.name, func(t *testing.T) { refusesArrow(t, c.src, c.limits, c.want) })
	}
}

func TestArrowDictionaryNull(t *testing.T) {
	of := dictionaryOf(primitive.Int8).(*arrow.DictionaryType)
	texts, _, err := array.FromJSON(memory.DefaultAllocator, arrow.BinaryTypes.String, strings.NewReader(`["a",null]`))
	if err != nil {
		t.Fatal(err)
	}
	codes, _, err := array.FromJSON(memory.DefaultAllocator, primitive.Int8, strings.NewReader(`[0,1]`))
	if err != nil {
		t.Fatal(err)
	}
	schema := fieldsOf(nullable("x", of))
	record := array.NewRecordBatch(schema, []arrow.Array{array.NewDictionaryArray(of, codes, texts)}, 2)
	refusesArrow(t, arrowStream(t, schema, []arrow.RecordBatch{record}), Limits{},
		"dictionary 0 has null among its texts")
}

// TestArrowCut ends a stream at every byte: fine between messages, else an error.
func TestArrowCut(t *testing.T) {
	for _, src := range [][]byte{arrowSample(t), arrowSample(t, ipc.WithZstd())} {
		fine := map[int]bool{len(src): true}
		at := 0
		for _, f := range arrowFrames(src) {
			at += 8 + len(f.metadata) + len(f.body)
			fine[at] = true
		}
		for n := range len(src) + 1 {
			err := decodeArrow(bytes.NewReader(src[:n]), testOptions(Limits{}), look)
			if (err == nil) != fine[n] {
				t.Errorf("cut after %d of %d bytes: %v", n, len(src), err)
			}
			if errors.Is(err, io.EOF) {
				t.Errorf("cut after %d bytes: %v hides that it is an error", n, err)
			}
		}
	}
}

// flips gives src with each of its bytes changed in a few ways.
func flips(src []byte, try func(changed []byte)) {
	for i, was := range src {
		for _, b := range []byte{^was, was ^ 1, 0, 0x7f} {
			src[i] = b
			try(src)
		}
		src[i] = was
	}
}

// TestArrowFlipped changes every byte: whatever comes out, no panic and no large allocation.
func TestArrowFlipped(t *testing.T) {
	o := testOptions(Limits{})
	for _, src := range [][]byte{arrowSample(t), arrowSample(t, ipc.WithZstd())} {
		flips(src, func(changed []byte) {
			if n := allocated(func() { _ = decodeArrow(bytes.NewReader(changed), o, new(gathered).emit) }); n > 64<<20 {
				t.Errorf("%d bytes allocated for % x", n, changed)
			}
		})
	}
}

func FuzzArrow(f *testing.F) {
	f.Add(arrowSample(f))
	f.Add(arrowSample(f, ipc.WithZstd()))
	f.Add(arrowDemand(f, 20))
	f.Add(arrowStream(f, fieldsOf(nullable("a", arrow.BinaryTypes.LargeString), nullable("b", arrow.Null),
		nullable("c", primitive.Uint64)), nil))
	o := testOptions(Limits{DecodedBytesMax: 64 << 20, RowsMax: 100_000})
	f.Fuzz(func(t *testing.T, src []byte) {
		bounded(t, src, Arrow)
		g := new(gathered)
		if err := decodeArrow(bytes.NewReader(src), o, g.emit); err != nil &&
			!strings.HasPrefix(err.Error(), "arrow: ") {
			t.Error(err)
		}
		if g.broken != "" {
			t.Error(g.broken)
		}
	})
}
