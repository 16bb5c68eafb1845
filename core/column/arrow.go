package column

import (
	"fmt"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// RecordBatch is the table as an Arrow record batch. Numbers, reals and instants are the table's own memory, which
// nobody may change as long as the batch is in use. Bitmaps of the rows that have a value, and texts, come from mem:
// a text column has a dictionary of the words that its rows use, in the order of first use, so that it tells of no
// others. The caller gives the batch back with Release. Errors: the texts of a column have more than 2 GiB.
func (t *Table) RecordBatch(mem memory.Allocator) (arrow.RecordBatch, error) {
	fields, arrays := make([]arrow.Field, len(t.Columns)), make([]arrow.Array, 0, len(t.Columns))
	defer func() {
		for _, a := range arrays {
			a.Release()
		}
	}()
	for i := range t.Columns {
		c := &t.Columns[i]
		a, err := c.array(mem, t.Rows)
		if err != nil {
			return nil, fmt.Errorf("table %s, column %s: %w", t.Name, c.Name, err)
		}
		arrays = append(arrays, a)
		fields[i] = arrow.Field{Name: c.Name, Type: a.DataType(), Nullable: c.Optional || c.Type == Text}
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), arrays, int64(t.Rows)), nil
}

// IsNull tells whether a row has no value; a real number that is none or infinite counts as none.
func (c *Column) IsNull(row int) bool {
	switch c.Type {
	case Text:
		return c.Code[row] == Null
	case List:
		return false
	case Float:
		if math.IsNaN(c.Float[row]) || math.IsInf(c.Float[row], 0) {
			return true
		}
	}
	return c.Null != nil && c.Null[row]
}

// array is the column as an Arrow array.
func (c *Column) array(mem memory.Allocator, rows int) (arrow.Array, error) {
	var typ arrow.DataType = arrow.PrimitiveTypes.Int64
	values := arrow.Int64Traits.CastToBytes(c.Int)
	switch c.Type {
	case Text:
		return c.textArray(mem)
	case List:
		return c.listArray(mem), nil
	case Time:
		typ = &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}
	case Float:
		typ, values = arrow.PrimitiveTypes.Float64, arrow.Float64Traits.CastToBytes(c.Float)
	}
	return c.withValidity(mem, typ, rows, memory.NewBufferBytes(values), nil), nil
}

// withValidity is an array of values, with a bitmap of the rows that have one where some have none.
func (c *Column) withValidity(mem memory.Allocator, typ arrow.DataType, rows int, values *memory.Buffer,
	dictionary arrow.ArrayData,
) arrow.Array {
	bits, nulls := memory.NewResizableBuffer(mem), 0
	bits.Resize((rows + 7) / 8)
	clear(bits.Bytes())
	for row := range rows {
		if c.IsNull(row) {
			nulls++
		} else {
			bits.Bytes()[row>>3] |= 1 << (row & 7)
		}
	}
	if nulls == 0 {
		bits.Release()
		bits = nil
	}
	buffers := []*memory.Buffer{bits, values}
	var data *array.Data
	if dictionary != nil {
		data = array.NewDataWithDictionary(typ, rows, buffers, nulls, 0, dictionary.(*array.Data))
	} else {
		data = array.NewData(typ, rows, buffers, nil, nulls, 0)
	}
	release(buffers...) // data has its own hold of them
	defer data.Release()
	return array.MakeFromData(data)
}

// textArray is a text column: codes of a dictionary of its own.
func (c *Column) textArray(mem memory.Allocator) (arrow.Array, error) {
	place := newPlaces(words(c.Dict), len(c.Code))
	codes := memory.NewResizableBuffer(mem)
	codes.Resize(4 * len(c.Code))
	texts := array.NewStringBuilder(mem)
	defer texts.Release()
	for row, code := range c.Code {
		own := int32(0)
		if code != Null {
			at := place.of(code)
			if *at == 0 {
				word := c.Dict.Bytes(code)
				if texts.DataLen()+len(word) > math.MaxInt32 {
					codes.Release()
					return nil, fmt.Errorf("more than %d bytes of text", math.MaxInt32)
				}
				texts.BinaryBuilder.Append(word)
				*at = int32(texts.Len())
			}
			own = *at - 1
		}
		arrow.Int32Traits.CastFromBytes(codes.Bytes())[row] = own
	}
	dictionary := texts.NewArray()
	defer dictionary.Release()
	typ := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}
	return c.withValidity(mem, typ, len(c.Code), codes, dictionary.Data()), nil
}

// listArray is a column of lists of texts.
func (c *Column) listArray(mem memory.Allocator) arrow.Array {
	b := array.NewListBuilder(mem, arrow.BinaryTypes.String)
	defer b.Release()
	texts := b.ValueBuilder().(*array.StringBuilder)
	for _, list := range c.Lists {
		b.Append(true)
		for _, s := range list {
			texts.Append(s)
		}
	}
	return b.NewArray()
}

// release gives buffers back that are there.
func release(buffers ...*memory.Buffer) {
	for _, b := range buffers {
		if b != nil {
			b.Release()
		}
	}
}

// places has, by code, 1 + the place of a word in a column's own dictionary; 0: it has none yet. Where a dictionary is
// much longer than the column, only the words that this has are kept.
type places struct {
	all []int32
	few map[int32]*int32
}

func newPlaces(words, rows int) *places {
	if words > 4*rows {
		return &places{few: map[int32]*int32{}}
	}
	return &places{all: make([]int32, words)}
}

func (p *places) of(code int32) *int32 {
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
