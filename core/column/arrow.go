package column

import (
	"fmt"
	"math"
	"math/bits"
	"reflect"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Field is a named column of a record.
type Field struct {
	Name  string
	Array arrow.Array
}

// Record is columns of one length as an Arrow record batch; columns of several lengths are a bug. The caller gives it
// back with Release. The memory is that of the columns.
func Record(fields ...Field) arrow.RecordBatch {
	schema, arrays, rows := make([]arrow.Field, len(fields)), make([]arrow.Array, len(fields)), 0
	for i, f := range fields {
		if rows = fields[0].Array.Len(); f.Array.Len() != rows {
			panic(fmt.Sprintf("BUG: column %s has %d rows, %s has %d", f.Name, f.Array.Len(), fields[0].Name, rows))
		}
		schema[i] = arrow.Field{Name: f.Name, Type: f.Array.DataType(), Nullable: f.Array.NullN() > 0}
		arrays[i] = f.Array
	}
	return array.NewRecordBatch(arrow.NewSchema(schema, nil), arrays, int64(rows))
}

// Array is the column as an Arrow array of the type of its values.
func (v *Vector[T]) Array() arrow.Array { return v.ArrayOf(typeOf[T]()) }

// ArrayOf is Array with another Arrow type of the same width, such as a timestamp.
func (v *Vector[T]) ArrayOf(as arrow.DataType) arrow.Array {
	data := v.data(as)
	defer data.Release()
	return array.MakeFromData(data)
}

// data is the buffers of the column. A bitset's words are the bytes of Arrow's bitmap where the machine has the low
// byte first, as all have for which stint is built.
func (v *Vector[T]) data(as arrow.DataType) *array.Data {
	n, nulls := len(v.value), 0
	clear(v.value[n:cap(v.value)]) // the padding, where rows that are gone may have been
	var valid *memory.Buffer
	if v.valid != nil {
		words := v.valid.Words()[:(n+63)/64]
		if rest := n % 64; rest > 0 {
			words[len(words)-1] &= 1<<rest - 1
		}
		for _, set := range words {
			nulls -= bits.OnesCount64(set)
		}
		nulls += n
		valid = memory.NewBufferBytes(bytes(words)[:(n+7)/8])
	}
	return array.NewData(as, n, []*memory.Buffer{valid, memory.NewBufferBytes(bytes(v.value))}, nil, nulls, 0)
}

// typeOf is the Arrow type of a Go type.
func typeOf[T Number]() arrow.DataType {
	switch reflect.TypeFor[T]().Kind() {
	case reflect.Int8:
		return arrow.PrimitiveTypes.Int8
	case reflect.Int16:
		return arrow.PrimitiveTypes.Int16
	case reflect.Int32:
		return arrow.PrimitiveTypes.Int32
	case reflect.Int64:
		return arrow.PrimitiveTypes.Int64
	case reflect.Uint8:
		return arrow.PrimitiveTypes.Uint8
	case reflect.Uint16:
		return arrow.PrimitiveTypes.Uint16
	case reflect.Uint32:
		return arrow.PrimitiveTypes.Uint32
	case reflect.Uint64:
		return arrow.PrimitiveTypes.Uint64
	case reflect.Float32:
		return arrow.PrimitiveTypes.Float32
	}
	return arrow.PrimitiveTypes.Float64
}

// Dictionary is the distinct texts of a column, by code, as Arrow lays out strings: all bytes in one buffer, and where
// each text begins. The zero value is empty and ready.
type Dictionary struct {
	offset Vector[int32]
	text   Vector[byte]
}

// Len is the number of texts.
func (d *Dictionary) Len() int { return max(0, d.offset.Len()-1) }

// Add adds a text and gives its code. It must not be there yet. It is false, and nothing is added, where the bytes of
// all texts would be more than Arrow's offsets can say.
func (d *Dictionary) Add(text []byte) (code int32, ok bool) {
	if d.text.Len()+len(text) > math.MaxInt32 {
		return 0, false
	}
	if d.offset.Len() == 0 {
		d.offset.Add(0)
	}
	d.text.Append(text...)
	d.offset.Add(int32(d.text.Len()))
	return int32(d.Len() - 1), true
}

// Text is the text of a code, in the dictionary's own memory.
func (d *Dictionary) Text(code int32) []byte {
	return d.text.Values()[d.offset.At(int(code)):d.offset.At(int(code)+1)]
}

// Array is codes of a dictionary as an Arrow array of texts; rows without a value have none.
func (d *Dictionary) Array(code *Vector[int32]) arrow.Array {
	if d.offset.Len() == 0 {
		d.offset.Add(0)
	}
	texts := array.NewData(arrow.BinaryTypes.String, d.Len(), []*memory.Buffer{
		nil, memory.NewBufferBytes(bytes(d.offset.value)), memory.NewBufferBytes(bytes(d.text.value)),
	}, nil, 0, 0)
	defer texts.Release()
	as := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}
	codes := code.data(as)
	defer codes.Release()
	data := array.NewDataWithDictionary(as, codes.Len(), codes.Buffers(), codes.NullN(), 0, texts)
	defer data.Release()
	return array.MakeFromData(data)
}
