package table

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// window turns n rows of the loaded batch, beginning at row from (a multiple of
// 8), into vectors and emits them. Numbers are copied, since the stream's bytes
// need not be aligned; bitmaps and text are shared with the body.
func (a *arrowReader) window(from, n int) error {
	for i := range a.fields {
		f, v := &a.fields[i], &a.vectors[i]
		var c arrowColumn // of no rows, if there was no batch
		if i < len(a.columns) && n > 0 {
			c = a.columns[i]
		}
		v.name, v.rows, v.valid = f.name, n, nil
		if c.valid != nil {
			v.valid = c.valid[from/8 : (from+n+7)/8]
		}
		if err := a.fill(f, v, &c, from, n); err != nil {
			return a.fault("column %s%w", f.name, err)
		}
	}
	if err := a.emit(n, a.vectors); err != nil {
		return err
	}
	a.rows += n
	return nil
}

// fill sets a vector's values. Errors go on after the column's name.
func (a *arrowReader) fill(f *arrowField, v *vector, c *arrowColumn, from, n int) error {
	v.kind = f.kind
	switch {
	case f.null:
		a.none, v.offsets = sized(a.none, (n+7)/8), sized(v.offsets, n+1) // stay 0
		v.valid = a.none
	case f.coded:
		return a.codes(f, v, c, from, n)
	case n == 0:
		v.ints, v.floats, v.bools, v.offsets = v.ints[:0], v.floats[:0], nil, append(v.offsets[:0], 0)
	case f.kind == vectorInt:
		v.ints = sized(v.ints, n)
		widen(v.ints, c.values[from*f.width:], f.width, f.signed)
		if !f.signed && f.width == 8 {
			v.unsigned()
		}
	case f.kind == vectorFloat:
		v.floats = sized(v.floats, n)
		floats(v.floats, c.values[from*f.width:], f.width)
	case f.kind == vectorBool:
		v.bools = c.values[from/8 : (from+n+7)/8]
	default:
		v.data = c.data
		v.offsets = sized(v.offsets, n+1)
		if i := narrow(v.offsets, c.values[from*f.width:], f.width, len(c.data)); i >= 0 {
			return fmt.Errorf(", row %d: an offset goes beyond the data's %d bytes", a.rows+max(i, 1), len(c.data))
		}
		if i := falls(v.offsets); i >= 0 {
			return fmt.Errorf(", row %d: offsets go down (%d to %d)", a.rows+i, v.offsets[i-1], v.offsets[i])
		}
		if i, reason := badTexts(v.offsets, v.data, v.valid, a.o.Limits.FieldBytesMax); reason != nil {
			return fmt.Errorf(", row %d: %w", a.rows+i+1, reason)
		}
	}
	return nil
}

// codes sets a vector of dictionary codes; those of null rows, which may be anything, become 0.
func (a *arrowReader) codes(f *arrowField, v *vector, c *arrowColumn, from, n int) error {
	texts := a.texts[f.dictionary]
	v.kind, v.offsets, v.data, v.generation = vectorCoded, texts.offsets, texts.data, texts.generation
	if v.offsets == nil {
		v.offsets = []int32{0}
	}
	known := uint64(len(v.offsets) - 1)
	v.codes, a.wide = sized(v.codes, n), sized(a.wide, n)
	if n == 0 {
		return nil
	}
	widen(a.wide, c.values[from*f.index:], f.index, f.signed)
	for i, code := range a.wide {
		if uint64(code) >= known {
			if v.valid == nil || v.valid[i>>3]>>(i&7)&1 != 0 {
				return fmt.Errorf(", row %d: index %d into dictionary %d, which has %d texts", a.rows+i+1, code,
					f.dictionary, known)
			}
			code = 0
		}
		v.codes[i] = int32(code)
	}
	return nil
}

// sized gives a slice of n elements, s if it is long enough.
func sized[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }

// unsigned makes floats of unsigned 64-bit numbers that are no int64. They
// are too large for a count, and the nearest float is what an attribute holds anyway.
func (v *vector) unsigned() {
	if slices.Min(v.ints) >= 0 {
		return
	}
	v.kind, v.floats = vectorFloat, sized(v.floats, len(v.ints))
	for i, n := range v.ints {
		v.floats[i] = float64(uint64(n))
	}
}

// widen reads len(dst) little-endian integers of 1, 2, 4, 8 or 16 bytes. Of 16 bytes, a number that does not fit 8 is
// the largest or the smallest that does, which no column takes.
func widen(dst []int64, src []byte, width int, signed bool) {
	src = src[:len(dst)*width]
	switch {
	case width == 1 && signed:
		for i := range dst {
			dst[i] = int64(int8(src[i]))
		}
	case width == 1:
		for i := range dst {
			dst[i] = int64(src[i])
		}
	case width == 2 && signed:
		for i := range dst {
			dst[i] = int64(int16(binary.LittleEndian.Uint16(src[2*i:])))
		}
	case width == 2:
		for i := range dst {
			dst[i] = int64(binary.LittleEndian.Uint16(src[2*i:]))
		}
	case width == 4 && signed:
		for i := range dst {
			dst[i] = int64(int32(binary.LittleEndian.Uint32(src[4*i:])))
		}
	case width == 4:
		for i := range dst {
			dst[i] = int64(binary.LittleEndian.Uint32(src[4*i:]))
		}
	case width == 16:
		for i := range dst {
			low, high := int64(binary.LittleEndian.Uint64(src[16*i:])), int64(binary.LittleEndian.Uint64(src[16*i+8:]))
			switch {
			case high == low>>63:
				dst[i] = low
			case high < 0:
				dst[i] = math.MinInt64
			default:
				dst[i] = math.MaxInt64
			}
		}
	default:
		for i := range dst {
			dst[i] = int64(binary.LittleEndian.Uint64(src[8*i:]))
		}
	}
}

// floats reads len(dst) little-endian floats of 4 or 8 bytes.
func floats(dst []float64, src []byte, width int) {
	src = src[:len(dst)*width]
	if width == 4 {
		for i := range dst {
			dst[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:])))
		}
		return
	}
	for i := range dst {
		dst[i] = math.Float64frombits(binary.LittleEndian.Uint64(src[8*i:]))
	}
}

// narrow reads len(dst) offsets of 4 or 8 bytes, each from 0 to bytes; else it
// gives the first that is not, −1 when all are fine.
func narrow(dst []int32, src []byte, width, bytes int) int {
	src = src[:len(dst)*width]
	for i := range dst {
		var o uint64
		if width == 4 {
			o = uint64(binary.LittleEndian.Uint32(src[4*i:]))
		} else {
			o = binary.LittleEndian.Uint64(src[8*i:])
		}
		if o > uint64(bytes) {
			return i
		}
		dst[i] = int32(o)
	}
	return -1
}

// falls gives the first offset that is less than the one before it, −1 when there is none.
func falls(offsets []int32) int {
	for i := 1; i < len(offsets); i++ {
		if offsets[i] < offsets[i-1] {
			return i
		}
	}
	return -1
}
