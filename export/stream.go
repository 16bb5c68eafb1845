package export

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/stintd/stint/core/decision"
)

// StreamFormats are the formats of Stream.
var StreamFormats = []string{"arrow", "parquet", "ndjson", "json", "csv"}

// Stream writes a table whole: an Arrow IPC stream, a Parquet file, or text as Print does. In Parquet the column
// `cycle` comes first; where the table has none it says cycle. Errors: an unknown format, a table too large for it, w's
// own.
func Stream(w io.Writer, t *decision.Table, format string, cycle int64) error {
	out := bufio.NewWriterSize(w, 1<<16)
	p, err := NewParts(out, format, cycle)
	if err != nil {
		return err
	}
	return errors.Join(p.Write(t), p.Close(), out.Flush())
}

// textBytesMax bounds the texts of one column: Arrow's offsets have 32 bits.
const textBytesMax = math.MaxInt32

func arrowColumn(c *decision.Column, rows int) (arrow.Array, error) {
	switch c.Type {
	case decision.Text:
		return arrowTexts(c)
	case decision.List:
		return arrowLists(c)
	}
	valid, nulls := validity(rows, func(row int) bool { return isNull(c, row) },
		c.Null != nil || c.Type == decision.Float)
	var typ arrow.DataType = arrow.PrimitiveTypes.Int64
	bytes := arrow.Int64Traits.CastToBytes(c.Int)
	switch c.Type {
	case decision.Time:
		typ = &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	case decision.Float:
		typ, bytes = arrow.PrimitiveTypes.Float64, arrow.Float64Traits.CastToBytes(c.Float)
	}
	data := array.NewData(typ, rows, []*memory.Buffer{valid, memory.NewBufferBytes(bytes)}, nil, nulls, 0)
	defer data.Release()
	return array.MakeFromData(data), nil
}

// validity is the bitmap of the rows that have a value, nil when all have.
func validity(rows int, null func(row int) bool, any bool) (*memory.Buffer, int) {
	if !any {
		return nil, 0
	}
	bits, nulls := make([]byte, (rows+7)/8), 0
	for row := range rows {
		if null(row) {
			nulls++
		} else {
			bits[row>>3] |= 1 << (row & 7)
		}
	}
	if nulls == 0 {
		return nil, 0
	}
	return memory.NewBufferBytes(bits), nulls
}

// arrowTexts is a text column, its dictionary in the order of first use.
func arrowTexts(c *decision.Column) (arrow.Array, error) {
	words := 0
	if c.Dict != nil {
		words = c.Dict.Len()
	}
	places := newPlaces(words, len(c.Code))
	codes := make([]int32, len(c.Code))
	offsets, data := []int32{0}, []byte(nil)
	for row, code := range c.Code {
		if code == decision.Null {
			continue
		}
		place := places.of(code)
		if *place == 0 {
			word := c.Dict.Bytes(code)
			if len(data)+len(word) > textBytesMax {
				return nil, fmt.Errorf("more than %d bytes of text", textBytesMax)
			}
			data = append(data, word...)
			offsets = append(offsets, int32(len(data)))
			*place = int32(len(offsets) - 1)
		}
		codes[row] = *place - 1
	}
	dictionary := array.NewData(arrow.BinaryTypes.String, len(offsets)-1,
		[]*memory.Buffer{nil, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(offsets)),
			memory.NewBufferBytes(data)}, nil, 0, 0)
	defer dictionary.Release()
	valid, nulls := validity(len(codes), func(row int) bool { return c.Code[row] == decision.Null }, true)
	typ := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}
	indices := array.NewDataWithDictionary(typ, len(codes),
		[]*memory.Buffer{valid, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(codes))}, nulls, 0, dictionary)
	defer indices.Release()
	return array.NewDictionaryData(indices), nil
}

// wordPlaces has, by code, 1 + the place of a word in a column's own dictionary; 0: it has none yet. Where a dictionary
// is much longer than the column, only the words that this has are kept.
type wordPlaces struct {
	all []int32
	few map[int32]*int32
}

func newPlaces(words, rows int) *wordPlaces {
	if words > 4*rows {
		return &wordPlaces{few: map[int32]*int32{}}
	}
	return &wordPlaces{all: make([]int32, words)}
}

func (p *wordPlaces) of(code int32) *int32 {
	if p.all != nil {
		return &p.all[code]
	}
	place := p.few[code]
	if place == nil {
		place = new(int32)
		p.few[code] = place
	}
	return place
}

func arrowLists(c *decision.Column) (arrow.Array, error) {
	b := array.NewListBuilder(memory.DefaultAllocator, arrow.BinaryTypes.String)
	defer b.Release()
	texts := b.ValueBuilder().(*array.StringBuilder)
	for _, list := range c.Lists {
		b.Append(true)
		for _, s := range list {
			texts.Append(s)
		}
	}
	return b.NewArray(), nil
}
