package table

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

func thriftOf(v any) []byte {
	b, err := thrift.Marshal(new(thrift.CompactProtocol), v)
	if err != nil {
		panic(err)
	}
	return b
}

// parquetParts is a file of one column of one row group, taken apart.
type parquetParts struct {
	meta   format.FileMetaData
	column *format.SchemaElement
	group  *format.RowGroup
	chunk  *format.ColumnMetaData
	pages  []parquetPage
}

type parquetPage struct {
	header format.PageHeader
	body   []byte
}

func (f *parquetParts) page(i int) *format.DataPageHeader { return &f.pages[i].header.DataPageHeader.V }

// pageOf makes a data page; values is its body after the levels.
func pageOf(rows int, encoding format.Encoding, body ...byte) parquetPage {
	h := format.PageHeader{Type: format.DataPage, CompressedPageSize: int32(len(body)),
		UncompressedPageSize: int32(len(body))}
	h.DataPageHeader = thrift.New(format.DataPageHeader{NumValues: int32(rows), Encoding: encoding,
		DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE})
	return parquetPage{h, body}
}

func dictionaryPage(values int, body ...byte) parquetPage {
	h := format.PageHeader{Type: format.DictionaryPage, CompressedPageSize: int32(len(body)),
		UncompressedPageSize: int32(len(body))}
	h.DictionaryPageHeader = thrift.New(format.DictionaryPageHeader{NumValues: int32(values)})
	return parquetPage{h, body}
}

// parquetOf is a sound file of one required column x.
func parquetOf(of format.Type, rows int, pages ...parquetPage) *parquetParts {
	f := &parquetParts{pages: pages}
	schema := []format.SchemaElement{
		{Name: "root", NumChildren: thrift.New(int32(1))},
		{Name: "x", Type: thrift.New(of), RepetitionType: thrift.New(format.Required)},
	}
	chunk := format.ColumnChunk{MetaData: format.ColumnMetaData{
		Type: of, NumValues: int64(rows), DataPageOffset: 4, TotalCompressedSize: -1}}
	group := format.RowGroup{NumRows: int64(rows), Columns: []format.ColumnChunk{chunk}}
	f.meta = format.FileMetaData{Version: 1, NumRows: int64(rows), Schema: schema, RowGroups: []format.RowGroup{group}}
	f.column, f.group = &f.meta.Schema[1], &f.meta.RowGroups[0]
	f.chunk = &f.group.Columns[0].MetaData
	return f
}

func (f *parquetParts) file() []byte {
	src := []byte("PAR1")
	for _, p := range f.pages {
		src = append(append(src, thriftOf(&p.header)...), p.body...)
	}
	if f.chunk.TotalCompressedSize == -1 {
		f.chunk.TotalCompressedSize = int64(len(src) - 4)
	}
	footer := thriftOf(&f.meta)
	src = append(src, footer...)
	return append(binary.LittleEndian.AppendUint32(src, uint32(len(footer))), "PAR1"...)
}

func refusesParquet(t *testing.T, src []byte, l Limits, want string) {
	t.Helper()
	var err error
	if n := allocated(func() { err = decodeParquet(src, testOptions(l), look) }); n > 64<<20 {
		t.Errorf("%d bytes allocated", n)
	}
	if err == nil || !strings.HasPrefix(err.Error(), "parquet: ") || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	if strings.Contains(want, "over a limit") != errors.Is(err, ErrLimit) {
		t.Errorf("%v: is it a limit?", err)
	}
}

// ints is two pages of an INT64 column: three rows and one.
func ints() *parquetParts {
	return parquetOf(format.Int64, 4, pageOf(3, format.Plain, make([]byte, 24)...),
		pageOf(1, format.Plain, make([]byte, 8)...))
}

func texts(page parquetPage) *parquetParts { return parquetOf(format.ByteArray, 2, page) }

// coded is a dictionary of two texts and a page of two codes.
func coded(body ...byte) *parquetParts {
	return parquetOf(format.ByteArray, 2, dictionaryPage(2, 1, 0, 0, 0, 'a', 1, 0, 0, 0, 'b'),
		pageOf(2, format.RLEDictionary, body...))
}

// parquetRefusal is a file, what is made wrong in it, and the error.
type parquetRefusal struct {
	name string
	of   *parquetParts
	edit func(f *parquetParts)
	want string
}

func refuseEach(t *testing.T, cases []parquetRefusal) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.edit != nil {
				c.edit(c.of)
			}
			refusesParquet(t, c.of.file(), Limits{}, c.want)
		})
	}
}

func TestParquetRefuses(t *testing.T) {
	refuseEach(t, []parquetRefusal{
		{"no columns", ints(), func(f *parquetParts) { f.meta.Schema = f.meta.Schema[:1] },
			"parquet: schema: there is no column"},
		{"children", ints(), func(f *parquetParts) { f.meta.Schema[0].NumChildren.V = 2 },
			"the root has 2 columns, 1 follow"},
		{"group", ints(), func(f *parquetParts) { f.column.NumChildren = thrift.New(int32(1)) },
			"schema: column x: nested types"},
		{"repeated", ints(), func(f *parquetParts) { f.column.RepetitionType.V = format.Repeated },
			"repeated values are not supported"},
		{"int96", ints(), func(f *parquetParts) { f.column.Type.V = format.Int96 }, "type INT96 is not supported"},
		{"fixed", ints(), func(f *parquetParts) { f.column.Type.V = format.FixedLenByteArray },
			"FIXED_LEN_BYTE_ARRAY is not supported"},
		{"date", ints(), func(f *parquetParts) { f.column.LogicalType.Value = &format.DateType{} },
			"type DATE is not supported"},
		{"converted", ints(), func(f *parquetParts) { f.column.ConvertedType = thrift.New(deprecated.Date) },
			"converted type 6 is not supported"},
		{"decimal", ints(), func(f *parquetParts) {
			f.column.ConvertedType, f.column.Scale = thrift.New(deprecated.Decimal), thrift.New(int32(2))
		}, "a DECIMAL with 2 digits after the point in INT64 is not supported: cast it to BIGINT"},
		{"name", ints(), func(f *parquetParts) { f.column.Name = "\xff" }, `column 1: name "\xff" is not valid UTF-8`},
		{"group columns", ints(), func(f *parquetParts) { f.group.Columns = nil },
			"row group 1 has 4 rows and 0 columns"},
		{"group rows", ints(), func(f *parquetParts) { f.group.NumRows = -1 }, "row group 1 has -1 rows"},
		{"rows in all", ints(), func(f *parquetParts) { f.meta.NumRows = 5 },
			"the row groups have 4 rows, the file should have 5"},
		{"rows huge", ints(), func(f *parquetParts) { f.group.NumRows = math.MaxInt64 },
			"over a limit: more than 20000000 rows"},
		{"values", ints(), func(f *parquetParts) { f.chunk.NumValues = 3 },
			"row group 1, column x: 3 values for 4 rows"},
		{"type", ints(), func(f *parquetParts) { f.chunk.Type = format.Int32 },
			"type INT32, where the schema says INT64"},
		{"other file", ints(), func(f *parquetParts) { f.group.Columns[0].FilePath = "y" },
			"the data is in another file"},
		{"chunk offset", ints(), func(f *parquetParts) { f.chunk.DataPageOffset = 1 << 40 }, "go beyond the data's"},
		{"chunk offset negative", ints(), func(f *parquetParts) { f.chunk.DataPageOffset = -1 },
			"at offset -1 go beyond"},
		{"chunk size", ints(), func(f *parquetParts) { f.chunk.TotalCompressedSize = math.MaxInt64 },
			"go beyond the data's"},
		{"chunk short", ints(), func(f *parquetParts) { f.chunk.TotalCompressedSize = 10 },
			"column x, page 1: header: the values end early"},
		{"codec", ints(), func(f *parquetParts) { f.chunk.Codec = format.Brotli },
			"compression BROTLI is not supported"},
		{"pages end", ints(), func(f *parquetParts) { f.pages = f.pages[:1] }, "the pages end 1 rows early"},
		{"page rows", ints(), func(f *parquetParts) { f.page(1).NumValues = 2 },
			"page 2: 2 rows, where the row group has 1 left"},
		{"page rows negative", ints(), func(f *parquetParts) { f.page(0).NumValues = -2 }, "page 1: -2 rows"},
		{"page size", ints(), func(f *parquetParts) { f.pages[0].header.CompressedPageSize = 1 << 30 },
			"page 1: 1073741824 bytes"},
		{"page size negative", ints(), func(f *parquetParts) { f.pages[0].header.CompressedPageSize = -1 },
			"page 1: -1 bytes"},
		{"unpacked size", ints(), func(f *parquetParts) { f.pages[0].header.UncompressedPageSize = 1 << 30 },
			"24 bytes, where 1073741824 are told"},
		{"page header", ints(), func(f *parquetParts) { f.pages[0].header.DataPageHeader.Valid = false },
			"its header is missing"},
		{"checksum", ints(), func(f *parquetParts) { f.pages[0].header.CRC = 1 }, "page 1: the checksum is wrong"},
	})
}

func TestParquetRefusesValues(t *testing.T) {
	refuseEach(t, []parquetRefusal{
		{"values short", ints(), func(f *parquetParts) { f.pages[1] = pageOf(1, format.Plain, 1, 2, 3) },
			"page 2: the values end early"},
		{"encoding", ints(), func(f *parquetParts) { f.page(0).Encoding = format.ByteStreamSplit },
			"encoding BYTE_STREAM_SPLIT of INT64 is not supported"},
		{"no dictionary", ints(), func(f *parquetParts) { f.page(0).Encoding = format.RLEDictionary },
			"page 1: there is no dictionary"},
		{"delta head", ints(), func(f *parquetParts) { f.page(0).Encoding = format.DeltaBinaryPacked },
			"bad head of delta encoding"},
		{"delta short", parquetOf(format.Int64, 4, pageOf(4, format.DeltaBinaryPacked, 128, 1, 4, 3, 0)), nil,
			"the values end early"},
		{"delta cut", parquetOf(format.Int64, 4, pageOf(4, format.DeltaBinaryPacked, 128, 1, 4, 4, 0, 0, 255, 0, 0, 0)),
			nil, "the values end early"},
		{"levels", ints(),
			func(f *parquetParts) { f.column.RepetitionType.V = format.Optional; f.pages[0].body[0] = 200 },
			"definition levels: 200 bytes, where 20 are left"},
		{"levels short", ints(), func(f *parquetParts) { f.column.RepetitionType.V = format.Optional },
			"definition levels: the values end early"},
		{"level 2", parquetOf(format.Int64, 1, pageOf(1, format.Plain, 2, 0, 0, 0, 2, 2, 0, 0)), func(f *parquetParts) {
			f.column.RepetitionType.V = format.Optional
		},
			"definition levels: a run of the value 2, which has more than 1 bits"},
		{"levels encoding", ints(), func(f *parquetParts) {
			f.column.RepetitionType.V = format.Optional
			f.page(0).DefinitionLevelEncoding = format.BitPacked
		}, "definition levels encoded BIT_PACKED"},
		{"text length", texts(pageOf(2, format.Plain, 255, 255, 255, 255)), nil,
			"text of 4294967295 bytes, where 0 are left"},
		{"text short", texts(pageOf(2, format.Plain, 1, 0, 0, 0, 'a', 1, 0)), nil, "the values end early"},
		{"text", texts(pageOf(2, format.Plain, 1, 0, 0, 0, 'a', 1, 0, 0, 0, 0xff)), nil,
			`row 2: text "\xff" is not valid UTF-8`},
		{"prefixes", texts(pageOf(2, format.DeltaByteArray, 1)), nil,
			"encoding DELTA_BYTE_ARRAY of BYTE_ARRAY is not supported"},
		{"lengths many", texts(pageOf(2, format.DeltaLengthByteArray, 128, 1, 1, 100, 0)), nil, "100 lengths of text"},
		{"lengths too many", texts(pageOf(2, format.DeltaLengthByteArray, 128, 1, 1, 3, 0)), nil,
			"3 lengths of text, where the row group has 2 rows left"},
		{"length negative", texts(pageOf(2, format.DeltaLengthByteArray, 128, 1, 1, 2, 1, 0, 0, 'a')), nil,
			"text of -1 bytes"},
		{"length beyond", texts(pageOf(2, format.DeltaLengthByteArray, 128, 1, 1, 2, 4, 0, 0, 'a')), nil,
			"text of 2 bytes, where 1 are left"},
		{"code", coded(2, 4, 2), nil, "index 2 into a dictionary of 2 values"},
		{"code width", coded(33, 4, 2), nil, "values of 33 bits"},
		{"codes short", coded(1, 2, 1), nil, "page 2: the values end early"},
		{"codes cut", coded(32, 3, 1), nil, "page 2: the values end early"},
		{"run too long", coded(1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1), nil, "page 2: the values end early"},
		{"two dictionaries", coded(1, 4, 1), func(f *parquetParts) { f.pages = append(f.pages[:1], f.pages...) },
			"a second dictionary"},
		{"dictionary size", coded(1, 4, 1),
			func(f *parquetParts) { f.pages[0].header.DictionaryPageHeader.V.NumValues = 1 << 30 },
			"dictionary of 1073741824 values in 10 bytes"},
		{"dictionary short", coded(1, 4, 1), func(f *parquetParts) { f.pages[0].body[5] = 9 },
			"dictionary: text of 9 bytes, where 1 are left"},
		{"dictionary text", coded(1, 4, 1), func(f *parquetParts) { f.pages[0].body[9] = 0x80 },
			`dictionary: text 2: text "\x80" is not valid`},
		{"dictionary encoding", coded(1, 4, 1),
			func(f *parquetParts) { f.pages[0].header.DictionaryPageHeader.V.Encoding = format.RLE },
			"dictionary encoded RLE"},
	})
}

// packed is a page of an INT64 column that claims to unpack to so many bytes.
func packed(codec format.CompressionCodec, unpacked int32, body []byte) []byte {
	f := parquetOf(format.Int64, 1, pageOf(1, format.Plain, body...))
	f.chunk.Codec, f.pages[0].header.UncompressedPageSize = codec, unpacked
	return f.file()
}

func TestParquetRefusesFiles(t *testing.T) {
	sound := ints().file()
	footer := func(b ...byte) []byte {
		src := append([]byte("PAR1"), b...)
		return append(binary.LittleEndian.AppendUint32(src, uint32(len(b))), "PAR1"...)
	}
	z, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	bomb := z.EncodeAll(make([]byte, 1<<20), nil)
	window := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x98, 1, 0, 0, 0} // asks for a window of 512 MiB
	type nested struct {
		L []struct{ N int64 }
	}
	type stamped struct {
		T time.Time `parquet:"t,timestamp"`
	}
	for _, c := range []struct {
		name   string
		src    []byte
		limits Limits
		want   string
	}{
		{"nothing", nil, Limits{}, "footer: no Parquet file"},
		{"only the mark", []byte("PAR1PAR1"), Limits{}, "no Parquet file"},
		{"first mark", append([]byte("XAR1"), sound[4:]...), Limits{}, "no Parquet file"},
		{"last mark", append(bytes.Clone(sound), 0), Limits{}, "the file must end with PAR1; is it cut short?"},
		{"encrypted", append(bytes.Clone(sound[:len(sound)-1]), 'E'), Limits{}, "the file is encrypted"},
		{"footer length", []byte("PAR1\xff\xff\xff\xffPAR1"), Limits{}, "footer: 4294967295 bytes, more than the file"},
		{"footer empty", footer(), Limits{}, "footer: the values end early"},
		{"footer longer",
			append(binary.LittleEndian.AppendUint32(bytes.Clone(sound[:len(sound)-8]),
				binary.LittleEndian.Uint32(sound[len(sound)-8:])+1), "PAR1"...), Limits{}, "footer: "},
		{"list of 2³¹ structs", footer(0x15, 2, 0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 7, 0), Limits{},
			"a list of 2147483647 elements in 1 bytes"},
		{"structs in structs", footer(bytes.Repeat([]byte{0x1c}, 1<<20)...), Limits{}, "nested deeper than 16"},
		{"lists in lists", footer(bytes.Repeat([]byte{0x19}, 1<<20)...), Limits{}, "nested deeper than 16"},
		{"structs without end",
			footer(append([]byte{0x15, 2, 0x19, 0xfc, 0x80, 0x80, 0x20}, make([]byte, 1<<20)...)...), Limits{},
			"over a limit: more than 131072 elements"},
		{"footer of 9 MiB", footer(make([]byte, 9<<20)...), Limits{}, "over a limit: 9437184 bytes"},
		{"rows", sound, Limits{RowsMax: 3}, "over a limit: more than 3 rows"},
		{"columns", parquetFile(t, parquetRows(1)), Limits{ColumnsMax: 23}, "over a limit: 24 columns, at most 23"},
		{"decoded bytes", sound, Limits{DecodedBytesMax: 60}, "column x, page 2: over a limit: more than 60 bytes"},
		{"text", texts(pageOf(2, format.Plain, 2, 0, 0, 0, 'a', 'b', 0, 0, 0, 0)).file(), Limits{FieldBytesMax: 1},
			"row 1: over a limit: text of 2 bytes"},
		{"nested", parquetFile(t, []nested{{}}), Limits{}, "nested types are not supported"},
		{"timestamp", parquetFile(t, []stamped{{}}), Limits{},
			"type TIMESTAMP(isAdjustedToUTC=true,unit=MILLIS) is not supported"},
		{"zstd of more", packed(format.Zstd, 8, bomb), Limits{}, "unpacks to more than the 8 bytes told"},
		{"zstd of less", packed(format.Zstd, 1<<25, bomb), Limits{},
			"unpacks to 1048576 bytes, where 33554432 are told"},
		{"zstd window", packed(format.Zstd, 1<<25, window), Limits{}, "window"},
		{"snappy of less", packed(format.Snappy, 1<<25, snappy.Encode(nil, make([]byte, 8))), Limits{},
			"unpack to 8 bytes, where 33554432 are told"},
		{"snappy that lies", packed(format.Snappy, 1<<25, []byte{0x80, 0x80, 0x80, 0x10, 0}), Limits{},
			"5 bytes of snappy unpack to 33554432"},
		{"gzip", packed(format.Gzip, 8, []byte("no gzip")), Limits{}, "page 1: "},
	} {
		t.Run(c.name, func(t *testing.T) { refusesParquet(t, c.src, c.limits, c.want) })
	}
}

func parquetSamples(t testing.TB) [][]byte {
	type row struct {
		Host  string `parquet:"host,dict"`
		Slots int64  `parquet:"slots"`
		Rack  *int32 `parquet:"rack,optional"`
		On    bool   `parquet:"on"`
		Note  string `parquet:"note"`
	}
	rows := []row{{"a", 1, some(1, 2, int32(5)), true, "x"}, {"b", 2, nil, false, "yz"}}
	return [][]byte{
		parquetFile(t, rows, parquet.DataPageStatistics(false)),
		parquetFile(t, rows, parquet.Compression(&parquet.Zstd), parquet.DataPageVersion(1)),
		parquetFile(t, rows, parquet.Compression(&parquet.Snappy)),
		coded(1, 3, 2).file(),
		parquetOf(format.Int32, 4, pageOf(4, format.DeltaBinaryPacked, 128, 1, 1, 4, 0, 2, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9,
			10, 11, 12,
			13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39,
			40, 41, 42, 43, 44, 45, 46, 47, 48)).file(),
	}
}

// TestParquetCut ends a file at every byte: always an error.
func TestParquetCut(t *testing.T) {
	for _, src := range parquetSamples(t) {
		if err := decodeParquet(src, testOptions(Limits{}), look); err != nil {
			t.Fatal(err)
		}
		for n := range src {
			if err := decodeParquet(src[:n], testOptions(Limits{}), look); err == nil {
				t.Errorf("cut after %d of %d bytes: no error", n, len(src))
			}
		}
	}
}

// TestParquetFlipped changes every byte: whatever comes out, no panic and no large allocation.
func TestParquetFlipped(t *testing.T) {
	o := testOptions(Limits{})
	for _, src := range parquetSamples(t) {
		flips(src, func(changed []byte) {
			if n := allocated(func() { _ = decodeParquet(changed, o, new(gathered).emit) }); n > 64<<20 {
				t.Errorf("%d bytes allocated for % x", n, changed)
			}
		})
	}
}

func FuzzParquet(f *testing.F) {
	for _, src := range parquetSamples(f) {
		f.Add(src)
	}
	f.Add(parquetDemand(f, 20))
	o := testOptions(Limits{DecodedBytesMax: 64 << 20, RowsMax: 100_000})
	f.Fuzz(func(t *testing.T, src []byte) {
		bounded(t, src, Parquet)
		g, was := new(gathered), bytes.Clone(src)
		if err := decodeParquet(src, o, g.emit); err != nil && !strings.HasPrefix(err.Error(), "parquet: ") {
			t.Error(err)
		}
		if g.broken != "" || !bytes.Equal(src, was) {
			t.Errorf("%s; or the input was written to", g.broken)
		}
	})
}
