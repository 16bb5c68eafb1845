package pack

import (
	"encoding/binary"
	"math"
	"slices"
)

// column is a column to be saved.
type column interface {
	prepare()          // makes memory for a copy
	hold(spare column) // makes it a copy, in the memory of a column that was prepared, if that is large enough
	encode(dst []byte) []byte
}

// values is a column of some type.
type values[T any] struct {
	v      []T
	memory []T
	append func(dst []byte, v []T) []byte
}

func (o *values[T]) prepare() {
	o.memory = make([]T, len(o.v)+len(o.v)/16)
	for i := 0; i < len(o.memory); i += 256 { // memory is there once it is written to
		o.memory[i] = *new(T)
	}
}

func (o *values[T]) hold(spare column) {
	if len(o.v) == 0 {
		return
	}
	var memory []T
	if s, ok := spare.(*values[T]); ok {
		memory = s.memory
	}
	if len(memory) < len(o.v) {
		memory = make([]T, len(o.v))
	}
	o.v = memory[:copy(memory, o.v)]
}

func (o *values[T]) encode(dst []byte) []byte { return o.append(dst, o.v) }

// add appends a column to what is saved.
func add[T any](c *Coder, v []T, encode func(dst []byte, v []T) []byte) {
	c.parts = append(c.parts, part{column: &values[T]{v: v, append: encode}, shared: c.shared})
}

// Column is a column of numbers; nil stays nil.
func Column[T Integer](c *Coder, v *[]T) {
	c.Note(v)
	if !c.loading {
		add(c, *v, appendColumn[T])
		return
	}
	*v = loadColumn[T](c)
}

// Appended is Column for one to whose end values are added, while those that it has never change: it is not copied.
func Appended[T Integer](c *Coder, v *[]T) {
	was := c.shared
	c.shared = true
	Column(c, v)
	c.shared = was
}

// Columns is columns of numbers, one for each dimension.
func Columns[T Integer](c *Coder, v *[][]T) { Rows(c, v, func(one *[]T) { Column(c, one) }) }

// Bools is a column of truths; nil stays nil.
func Bools(c *Coder, v *[]bool) {
	c.Note(v)
	if !c.loading {
		add(c, *v, func(dst []byte, v []bool) []byte {
			dst = appendLength(dst, lengthOf(v))
			for _, b := range v {
				dst = append(dst, bit(b))
			}
			return dst
		})
		return
	}
	n := c.length(0, 1)
	*v = make([]bool, max(0, n))
	c.chunks(n, 1, func(at int, b []byte) {
		for i, x := range b {
			(*v)[at+i] = c.truth(x)
		}
	})
	if n < 0 || c.err != nil {
		*v = nil
	}
}

// Floats is a column of numbers with a fraction; nil stays nil.
func Floats(c *Coder, v *[]float64) {
	c.Note(v)
	if !c.loading {
		add(c, *v, func(dst []byte, v []float64) []byte {
			dst = appendLength(dst, lengthOf(v))
			for _, f := range v {
				dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(f))
			}
			return dst
		})
		return
	}
	n := c.length(0, 8)
	*v = make([]float64, max(0, n))
	c.chunks(n, 8, func(at int, b []byte) {
		for i := range len(b) / 8 {
			(*v)[at+i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
		}
	})
	if n < 0 || c.err != nil {
		*v = nil
	}
}

func appendLength(dst []byte, n int) []byte {
	return binary.LittleEndian.AppendUint64(dst, uint64(n+1))
}

// appendColumn appends a column in the narrowest form that has all its values.
func appendColumn[T Integer](dst []byte, v []T) []byte {
	if dst = appendLength(dst, lengthOf(v)); len(v) == 0 {
		return dst
	}
	low, high := int64(v[0]), int64(v[0])
	for _, x := range v {
		low, high = min(low, int64(x)), max(high, int64(x))
	}
	width := 8
	switch {
	case low >= math.MinInt8 && high <= math.MaxInt8:
		width = 1
	case low >= math.MinInt16 && high <= math.MaxInt16:
		width = 2
	case low >= math.MinInt32 && high <= math.MaxInt32:
		width = 4
	}
	dst = append(slices.Grow(dst, 1+width*len(v)), byte(width))
	b := dst[len(dst) : len(dst)+width*len(v)]
	switch width {
	case 1:
		for i, x := range v {
			b[i] = byte(x)
		}
	case 2:
		for i, x := range v {
			binary.LittleEndian.PutUint16(b[2*i:], uint16(x))
		}
	case 4:
		for i, x := range v {
			binary.LittleEndian.PutUint32(b[4*i:], uint32(x))
		}
	default:
		for i, x := range v {
			binary.LittleEndian.PutUint64(b[8*i:], uint64(x))
		}
	}
	return dst[:len(dst)+len(b)]
}

// loadColumn is a column as appendColumn left it, nil after an error.
func loadColumn[T Integer](c *Coder) []T {
	n := c.length(0, 1)
	if n <= 0 {
		if n == 0 {
			return []T{}
		}
		return nil
	}
	b := c.read(1)
	if b == nil {
		return nil
	}
	width := int(b[0])
	if width != 1 && width != 2 && width != 4 && width != 8 || int64(n) > c.left/int64(width) {
		c.Fail("a column of %d values of %d bytes, and %d bytes are left", n, width, c.left)
		return nil
	}
	v := make([]T, n)
	c.chunks(n, width, func(at int, b []byte) {
		for i := range len(b) / width {
			var x int64
			switch width {
			case 1:
				x = int64(int8(b[i]))
			case 2:
				x = int64(int16(binary.LittleEndian.Uint16(b[2*i:])))
			case 4:
				x = int64(int32(binary.LittleEndian.Uint32(b[4*i:])))
			default:
				x = int64(binary.LittleEndian.Uint64(b[8*i:]))
			}
			if v[at+i] = T(x); int64(v[at+i]) != x {
				c.Fail("the number %d does not fit", x)
			}
		}
	})
	if c.err != nil {
		return nil
	}
	return v
}

const chunkBytes = 64 << 10

// chunks reads n values of some bytes each, many at a time.
func (c *Coder) chunks(n, width int, f func(at int, b []byte)) {
	for at := 0; at < n && c.err == nil; {
		some := min(n-at, chunkBytes/width)
		if b := c.read(some * width); b != nil {
			f(at, b)
		}
		at += some
	}
}
