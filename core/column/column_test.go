package column_test

import (
	"bytes"
	"math"
	"slices"
	"testing"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"pgregory.net/rapid"

	"github.com/stintd/stint/core/column"
)

type hostID int32 // a named type of rows, as the state has them

// aligned fails where memory does not begin at a multiple of Align bytes, or is not padded to one.
func aligned[T column.Number](t *rapid.T, name string, values []T, capacity int) {
	var one T
	if at := uintptr(unsafe.Pointer(unsafe.SliceData(values))); at%column.Align != 0 {
		t.Fatalf("%s begins at %d bytes from a multiple of %d", name, at%column.Align, column.Align)
	}
	if size := capacity * int(unsafe.Sizeof(one)); size%column.Align != 0 {
		t.Fatalf("%s has a capacity of %d bytes", name, size)
	}
}

// TestVector holds a column against a plain slice of values and nulls over random changes.
func TestVector(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var v column.Vector[hostID]
		var want []*hostID
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				x := hostID(rapid.Int32().Draw(t, "value"))
				v.Add(x)
				want = append(want, &x)
			},
			"add null": func(*rapid.T) {
				v.AddNull()
				want = append(want, nil)
			},
			"append": func(t *rapid.T) {
				list := rapid.SliceOfN(rapid.Int32(), 0, 40).Draw(t, "values")
				for _, x := range list {
					id := hostID(x)
					v.Append(id)
					want = append(want, &id)
				}
			},
			"drop": func(t *rapid.T) {
				n := rapid.IntRange(0, len(want)).Draw(t, "rows")
				v.Drop(n)
				want = want[n:]
			},
			"shorten": func(t *rapid.T) {
				n := rapid.IntRange(0, len(want)).Draw(t, "rows")
				v.Resize(n)
				want = want[:n]
			},
			"": func(t *rapid.T) {
				if v.Len() != len(want) {
					t.Fatalf("%d rows, want %d", v.Len(), len(want))
				}
				got := v.Array().(*array.Int32)
				defer got.Release()
				nulls := 0
				for i, x := range want {
					switch {
					case x == nil:
						nulls++
						if !v.IsNull(i) || v.At(i) != 0 || !got.IsNull(i) {
							t.Fatalf("row %d has a value", i)
						}
					case v.IsNull(i) || v.At(i) != *x || got.IsNull(i) || got.Value(i) != int32(*x):
						t.Fatalf("row %d is %d (null: %v), in Arrow %d, want %d", i, v.At(i), v.IsNull(i), got.Value(i),
							*x)
					}
				}
				if got.NullN() != nulls {
					t.Fatalf("Arrow counts %d nulls, want %d", got.NullN(), nulls)
				}
			},
		})
	})
}

// TestAligned looks at the memory of columns of several widths as they grow.
func TestAligned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 3000).Draw(t, "rows")
		wide, narrow := column.Make[int64](n), column.Make[uint8](n)
		aligned(t, "int64", wide, cap(wide))
		aligned(t, "uint8", narrow, cap(narrow))
		if i := slices.IndexFunc(wide[:cap(wide)], func(v int64) bool { return v != 0 }); i >= 0 {
			t.Fatalf("row %d of new memory is not 0", i)
		}
		var v column.Vector[int32]
		for range n {
			v.Add(1)
		}
		aligned(t, "a column that grew", v.Values(), column.Align/4)
	})
}

// TestNoCopy holds that an array's buffer is the column's memory, and that the padding is zeros though rows were there
// before.
func TestNoCopy(t *testing.T) {
	var v column.Vector[int64]
	v.Append(1, 2, 3, 4, 5, 6, 7)
	v.Resize(3)
	got := v.ArrayOf(&arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"})
	defer got.Release()
	buffer := got.Data().Buffers()[1].Bytes()
	if unsafe.SliceData(buffer) != (*byte)(unsafe.Pointer(unsafe.SliceData(v.Values()))) {
		t.Fatal("the array has memory of its own")
	}
	if len(buffer) != 24 || got.Len() != 3 {
		t.Fatalf("%d bytes, %d rows", len(buffer), got.Len())
	}
	if padding := unsafe.Slice(unsafe.SliceData(buffer), column.Align)[24:]; !bytes.Equal(padding,
		make([]byte, column.Align-24)) {
		t.Fatalf("the padding is %v", padding)
	}
	if got.(*array.Timestamp).Value(2) != 3 {
		t.Fatal("other values")
	}
}

// TestRecord writes columns of all kinds as an Arrow stream and reads them back.
func TestRecord(t *testing.T) {
	var units column.Vector[int64]
	var share column.Vector[float64]
	var code column.Vector[int32]
	var origin column.Vector[uint8]
	var names column.Dictionary
	for _, name := range []string{"/Risk", "", "/Küche"} {
		if _, ok := names.Add([]byte(name)); !ok {
			t.Fatal("a small dictionary is too large")
		}
	}
	for i := range 130 { // beyond two words of a bitmap
		units.Add(int64(i) << 40)
		origin.Add(uint8(i))
		if share.Add(float64(i) / 3); i%7 == 0 {
			code.AddNull()
		} else {
			code.Add(int32(i % 3))
		}
	}
	arrays := []arrow.Array{units.Array(), share.Array(), names.Array(&code), origin.Array()}
	record := column.Record(column.Field{Name: "units", Array: arrays[0]},
		column.Field{Name: "share", Array: arrays[1]},
		column.Field{Name: "consumer", Array: arrays[2]}, column.Field{Name: "origin", Array: arrays[3]})
	var stream bytes.Buffer
	w := ipc.NewWriter(&stream, ipc.WithSchema(record.Schema()))
	if err := w.Write(record); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := ipc.NewReader(&stream)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Next() {
		t.Fatal(r.Err())
	}
	if back := r.RecordBatch(); !array.RecordEqual(record, back) {
		t.Fatalf("read back\n%v\nwant\n%v", back, record)
	}
	text := arrays[2].(*array.Dictionary)
	if s := text.Dictionary().(*array.String).Value(text.GetValueIndex(2)); s != "/Küche" || text.NullN() != 19 {
		t.Fatalf("row 2 is %q, %d nulls", s, text.NullN())
	}
}

// TestTypes holds each Go type to the Arrow type of its width.
func TestTypes(t *testing.T) {
	for _, v := range []struct {
		array interface{ Array() arrow.Array }
		want  arrow.Type
	}{
		{&column.Vector[int8]{}, arrow.INT8}, {&column.Vector[int16]{}, arrow.INT16},
		{&column.Vector[hostID]{}, arrow.INT32},
		{&column.Vector[int64]{}, arrow.INT64}, {&column.Vector[uint8]{}, arrow.UINT8},
		{&column.Vector[uint16]{}, arrow.UINT16},
		{&column.Vector[uint32]{}, arrow.UINT32}, {&column.Vector[uint64]{}, arrow.UINT64},
		{&column.Vector[float32]{}, arrow.FLOAT32},
		{&column.Vector[float64]{}, arrow.FLOAT64},
	} {
		if got := v.array.Array(); got.DataType().ID() != v.want || got.Len() != 0 {
			t.Errorf("an empty column is %v with %d rows, want %v", got.DataType(), got.Len(), v.want)
		}
	}
}

// TestRecordLengths holds that columns of several lengths are a bug.
func TestRecordLengths(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Fatal("a record of columns of several lengths")
		}
	}()
	var a, b column.Vector[int64]
	a.Append(1, 2)
	b.Append(math.MaxInt64)
	column.Record(column.Field{Name: "a", Array: a.Array()}, column.Field{Name: "b", Array: b.Array()})
}
