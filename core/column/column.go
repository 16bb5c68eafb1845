// Package column holds tables: a Schema declares the columns of one, once, and saving, copying, digests, Arrow, text
// and documentation are loops over it. A Vector is a column of numbers as Apache Arrow lays them out: values side by
// side in memory that begins at a multiple of 64 bytes and is padded to one, beside them a bitmap of the rows that have
// one.
//
// One goroutine at a time may change a column.
package column

import (
	"unsafe"

	"github.com/bits-and-blooms/bitset"
)

// Number is the types of values: Arrow's integers and floats, and named types of them, such as row ids.
type Number interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// Align is the multiple of bytes at which buffers begin and to which they are padded. It is what Arrow recommends, and
// a cache line.
const Align = 64

// Make is n zeros in memory that begins at a multiple of Align bytes; its capacity is padded to one, with zeros.
func Make[T Number](n int) []T {
	var one T
	size := int(unsafe.Sizeof(one))
	room := (n*size + Align - 1) &^ (Align - 1)
	if room == 0 {
		return nil
	}
	memory := make([]byte, room+Align-1) // numbers have no pointers, so that the collector need not look into it
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(memory))) & (Align - 1)
	return unsafe.Slice((*T)(unsafe.Pointer(&memory[skip])), room/size)[: n : room/size]
}

// Zeros is n zeros, in the memory of s where that is large enough.
func Zeros[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	s = s[:n]
	clear(s)
	return s
}

// Vector is a column of numbers. The zero value is empty and ready.
type Vector[T Number] struct {
	value []T
	valid *bitset.BitSet // rows that have a value, over memory of Make; nil: all have one
}

// Len is the number of rows.
func (v *Vector[T]) Len() int { return len(v.value) }

// At is the value of a row; of a row without a value it is 0.
func (v *Vector[T]) At(row int) T { return v.value[row] }

// Values are the values of all rows, in the column's own memory: they may be changed in place, but not appended to.
func (v *Vector[T]) Values() []T { return v.value[:len(v.value):len(v.value)] }

// Append adds rows with these values.
func (v *Vector[T]) Append(values ...T) {
	v.Reserve(len(values))
	from := len(v.value)
	v.value = append(v.value, values...)
	v.mark(from)
}

// Add adds a row with a value.
func (v *Vector[T]) Add(value T) {
	if len(v.value) == cap(v.value) {
		v.Reserve(1)
	}
	if v.value = append(v.value, value); v.valid != nil {
		v.mark(len(v.value) - 1)
	}
}

// AddNull adds a row without a value.
func (v *Vector[T]) AddNull() {
	if v.valid == nil {
		v.valid = &bitset.BitSet{}
		v.mark(0)
	}
	v.Add(0)
	v.valid.Clear(uint(len(v.value) - 1))
}

// mark notes that the rows from one on have values.
func (v *Vector[T]) mark(from int) {
	if v.valid == nil {
		return
	}
	if words := (len(v.value) + 63) / 64; words > len(v.valid.Words()) {
		moved := Make[uint64](max(words, 2*len(v.valid.Words())))
		copy(moved, v.valid.Words())
		v.valid = bitset.From(moved)
	}
	for row := from; row < len(v.value); row++ {
		v.valid.Set(uint(row))
	}
}

// IsNull tells whether a row has no value.
func (v *Vector[T]) IsNull(row int) bool { return v.valid != nil && !v.valid.Test(uint(row)) }

// Reserve makes room for so many rows more, so that adding them moves no memory. What there is at least doubles when
// it moves.
func (v *Vector[T]) Reserve(rows int) {
	if need := len(v.value) + rows; need > cap(v.value) {
		moved := Make[T](max(need, 2*cap(v.value)))[:len(v.value)]
		copy(moved, v.value)
		v.value = moved
	}
}

// Resize makes the column so many rows long. Rows that are new are 0.
func (v *Vector[T]) Resize(rows int) {
	from := len(v.value)
	if rows > from {
		v.Reserve(rows - from)
	}
	v.value = v.value[:rows]
	clear(v.value[min(from, rows):])
	if v.mark(min(from, rows)); rows == 0 {
		v.valid = nil
	}
}

// Reset removes all rows and keeps the memory of the values.
func (v *Vector[T]) Reset() { v.Resize(0) }

// Drop removes the first rows; those behind them move up. O(rows that stay).
func (v *Vector[T]) Drop(rows int) {
	n := copy(v.value, v.value[rows:])
	for row := 0; row < n && v.valid != nil; row++ {
		v.valid.SetTo(uint(row), v.valid.Test(uint(row+rows)))
	}
	v.value = v.value[:n]
}

// Clone is a copy of the column that shares nothing with it.
func (v *Vector[T]) Clone() Vector[T] {
	c := Vector[T]{value: Make[T](len(v.value))}
	copy(c.value, v.value)
	if v.valid != nil {
		words := Make[uint64](len(v.valid.Words()))
		copy(words, v.valid.Words())
		c.valid = bitset.From(words)
	}
	return c
}
