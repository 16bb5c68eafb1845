package column_test

import (
	"slices"
	"testing"
	"unsafe"

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
				for i, x := range want {
					switch {
					case x == nil:
						if !v.IsNull(i) || v.At(i) != 0 {
							t.Fatalf("row %d has a value", i)
						}
					case v.IsNull(i) || v.At(i) != *x:
						t.Fatalf("row %d is %d (null: %v), want %d", i, v.At(i), v.IsNull(i), *x)
					}
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
