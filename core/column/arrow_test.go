package column_test

import (
	buffers "bytes"
	"testing"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"pgregory.net/rapid"

	"github.com/stintd/stint/core/column"
)

// TestRecordBatch makes tables record batches: numbers, reals and instants are the table's own memory, all else that is
// taken comes back, and an Arrow stream of the batch reads as the table.
func TestRecordBatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		defer func() {
			if n := mem.CurrentAlloc(); n != 0 {
				t.Fatalf("%d bytes are not given back", n)
			}
		}()
		from := draw(t)
		of := from.schema().Table()
		if unsafe.SliceData(of.Column("units").Int) != unsafe.SliceData(from.Units) {
			t.Fatal("the view of a table has a copy of a column")
		}
		batch, err := of.RecordBatch(mem)
		if err != nil {
			t.Fatal(err)
		}
		defer batch.Release()
		for i := range of.Columns {
			c, a := &of.Columns[i], batch.Column(i)
			var own unsafe.Pointer
			switch c.Type {
			case column.Int, column.Time:
				own = unsafe.Pointer(unsafe.SliceData(c.Int))
			case column.Float:
				own = unsafe.Pointer(unsafe.SliceData(c.Float))
			}
			if is := a.Data().Buffers()[1].Bytes(); own != nil && unsafe.Pointer(unsafe.SliceData(is)) != own {
				t.Fatalf("column %s was copied", c.Name)
			}
		}
		var stream buffers.Buffer
		w := ipc.NewWriter(&stream, ipc.WithSchema(batch.Schema()))
		if err := w.Write(batch); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := ipc.NewReader(&stream)
		if err != nil || !r.Next() {
			t.Fatal(err, r.Err())
		}
		defer r.Release()
		for i := range of.Columns {
			c, a := &of.Columns[i], r.RecordBatch().Column(i)
			for row := range of.Rows {
				if a.IsNull(row) != c.IsNull(row) {
					t.Fatalf("column %s, row %d: null %v, want %v", c.Name, row, a.IsNull(row), c.IsNull(row))
				}
				if !a.IsNull(row) && !sameCell(c, a, row) {
					t.Fatalf("column %s, row %d: %s", c.Name, row, a.ValueStr(row))
				}
			}
		}
	})
}

func sameCell(c *column.Column, a arrow.Array, row int) bool {
	switch a := a.(type) {
	case *array.Dictionary:
		return a.Dictionary().(*array.String).Value(a.GetValueIndex(row)) == c.Text(row)
	case *array.Float64:
		return a.Value(row) == c.Float[row]
	case *array.Timestamp:
		return int64(a.Value(row)) == c.Int[row]
	case *array.Int64:
		return a.Value(row) == c.Int[row]
	}
	return false
}
