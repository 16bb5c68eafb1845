package table

import (
	"errors"
	"fmt"
	"math"

	"github.com/parquet-go/parquet-go/format"
)

// fill makes a vector of the next n rows, which are all in the page under way
// (n is 0 if there is none). The vector's slices are the column's scratch, good
// until the next call. first counts the rows before these, for errors.
func (c *parquetColumn) fill(v *vector, n int, o *Options, first int) error {
	v.name, v.kind, v.rows, v.valid = c.name, c.kind, n, nil
	c.rows -= n
	present := n
	if c.optional && n > 0 {
		var err error
		if present, err = c.presence(n); err != nil {
			return fmt.Errorf("definition levels: %w", err)
		}
		if present < n {
			v.valid = c.valid
		}
	}
	var err error
	switch {
	case c.kind == vectorInt:
		err = c.fillInts(v, present)
	case c.kind == vectorFloat:
		err = c.fillFloats(v, present)
	case c.kind == vectorBool:
		err = c.fillBools(v, present)
	case c.encoding == format.RLEDictionary && n > 0:
		v.kind, v.offsets, v.data, v.generation = vectorCoded, c.dictOffsets, c.dictData, c.generation
		c.coded = sized(c.coded, n)
		v.codes = c.coded
		if err = c.codes.next(v.codes[:present]); err == nil {
			err = inDictionary(v.codes[:present], len(c.dictOffsets)-1)
		}
		spread(v.codes, v.valid, present)
	default:
		if err = c.fillTexts(v, n, present, o); errors.Is(err, ErrLimit) { // the text behind those that were taken
			err = fmt.Errorf("row %d: %w", first+nth(v.valid, len(c.offsets)-1)+1, err)
		}
	}
	if err != nil {
		return err
	}
	if c.kind == vectorInt && c.unsigned && c.width == 8 && n > 0 {
		v.unsigned()
	}
	if v.kind == vectorText {
		if row, reason := badTexts(v.offsets, v.data, v.valid, o.Limits.FieldBytesMax); reason != nil {
			return fmt.Errorf("row %d: %w", first+row+1, reason)
		}
	}
	return nil
}

// presence reads n definition levels into valid and counts the rows that have a value.
func (c *parquetColumn) presence(n int) (present int, err error) {
	c.small = sized(c.small, n)
	if err = c.levels.next(c.small); err != nil {
		return 0, err
	}
	c.valid = sized(c.valid, (n+7)/8)
	clear(c.valid)
	for i, level := range c.small {
		c.valid[i>>3] |= byte(level) << (i & 7)
		present += int(level)
	}
	return present, nil
}

// spread moves the values of the first present entries to the rows that have one;
// the others get the zero value.
func spread[T any](s []T, valid []byte, present int) {
	if present == len(s) {
		return
	}
	var zero T
	for i := len(s) - 1; i >= 0; i-- {
		if valid[i>>3]>>(i&7)&1 != 0 {
			present--
			s[i] = s[present]
		} else {
			s[i] = zero
		}
	}
}

// nth is the row of the value of an index.
func nth(valid []byte, index int) (row int) {
	if valid == nil {
		return index
	}
	for ; index > 0 || valid[row>>3]>>(row&7)&1 == 0; row++ {
		index -= int(valid[row>>3] >> (row & 7) & 1)
	}
	return row
}

// inDictionary checks codes against a dictionary of n values.
func inDictionary(codes []int32, n int) error {
	for _, code := range codes {
		if uint32(code) >= uint32(n) {
			return fmt.Errorf("index %d into a dictionary of %d values", uint32(code), n)
		}
	}
	return nil
}

// dictCodes reads n codes into small.
func (c *parquetColumn) dictCodes(n, values int) error {
	c.small = sized(c.small, n)
	if err := c.codes.next(c.small); err != nil {
		return err
	}
	return inDictionary(c.small, values)
}

// take cuts n bytes off the page's plain values.
func (c *parquetColumn) take(n int) ([]byte, error) {
	if n > len(c.plain) {
		return nil, errShort
	}
	b := c.plain[:n]
	c.plain = c.plain[n:]
	return b, nil
}

func (c *parquetColumn) fillInts(v *vector, present int) (err error) {
	c.ints = sized(c.ints, v.rows)
	v.ints = c.ints
	dst := v.ints[:present]
	switch {
	case present == 0:
	case c.encoding == format.RLEDictionary:
		if err = c.dictCodes(present, len(c.dictInts)); err != nil {
			return err
		}
		for i, code := range c.small {
			dst[i] = c.dictInts[code]
		}
	case c.encoding == format.DeltaBinaryPacked:
		if err = c.delta.next(dst); err != nil {
			return err
		}
		if c.width == 4 { // differences of 32 bits wrap there
			for i, n := range dst {
				if dst[i] = int64(int32(n)); c.unsigned {
					dst[i] = int64(uint32(n))
				}
			}
		}
	default:
		b, err := c.take(present * c.width)
		if err != nil {
			return err
		}
		widen(dst, b, c.width, !c.unsigned)
	}
	spread(v.ints, v.valid, present)
	return nil
}

func (c *parquetColumn) fillFloats(v *vector, present int) error {
	c.floats = sized(c.floats, v.rows)
	v.floats = c.floats
	dst := v.floats[:present]
	switch {
	case present == 0:
	case c.encoding == format.RLEDictionary:
		if err := c.dictCodes(present, len(c.dictFloats)); err != nil {
			return err
		}
		for i, code := range c.small {
			dst[i] = c.dictFloats[code]
		}
	default:
		b, err := c.take(present * c.width)
		if err != nil {
			return err
		}
		floats(dst, b, c.width)
	}
	spread(v.floats, v.valid, present)
	return nil
}

// fillBools reads the values one by one and puts them into a bitmap again.
func (c *parquetColumn) fillBools(v *vector, present int) error {
	c.coded = sized(c.coded, v.rows)
	values := c.coded[:present]
	switch {
	case present == 0:
	case c.encoding == format.RLE:
		if err := c.codes.next(values); err != nil {
			return err
		}
	default:
		if c.bit+present > 8*len(c.plain) {
			return errShort
		}
		for i := range values {
			values[i] = int32(c.plain[c.bit>>3] >> (c.bit & 7) & 1)
			c.bit++
		}
	}
	spread(c.coded, v.valid, present)
	c.data = sized(c.data, (v.rows+7)/8)
	clear(c.data)
	for i, bit := range c.coded {
		c.data[i>>3] |= byte(bit) << (i & 7)
	}
	v.bools = c.data
	return nil
}

// fillTexts makes texts one after the other in data; rows without one have an empty one.
func (c *parquetColumn) fillTexts(v *vector, n, present int, o *Options) (err error) {
	c.offsets = sized(c.offsets, n+1)[:0]
	if c.encoding == format.DeltaLengthByteArray && n > 0 {
		v.data, err = c.lengthTexts(present)
	} else {
		bytes := min(plainBytes(c.plain, present), present*min(o.Limits.FieldBytesMax, len(c.plain)))
		if err = o.spendGrowth(cap(c.data), bytes, 1); err != nil {
			return err
		}
		c.data = sized(c.data, bytes)
		c.offsets, c.data, c.plain, err = plainTexts(c.offsets, c.data[:0], c.plain, present, o.Limits.FieldBytesMax)
		v.data = c.data
	}
	if err != nil {
		return err
	}
	v.offsets = c.offsets[:n+1]
	if present == n {
		return nil
	}
	// From the last row back: the end of row i is that of the texts up to it.
	for i := n; i > 0; i-- {
		v.offsets[i] = v.offsets[present]
		if v.valid[(i-1)>>3]>>((i-1)&7)&1 != 0 {
			present--
		}
	}
	return nil
}

// lengthTexts reads texts whose lengths stand apart from them; data is the page's own.
func (c *parquetColumn) lengthTexts(present int) (data []byte, err error) {
	c.ints = sized(c.ints, present)
	if err = c.delta.next(c.ints); err != nil {
		return nil, fmt.Errorf("lengths of text: %w", err)
	}
	end := int64(0)
	c.offsets = append(c.offsets, 0)
	for _, size := range c.ints {
		size = int64(int32(size))
		left := min(int64(len(c.plain)), math.MaxInt32) - end
		if size < 0 || size > left {
			return nil, fmt.Errorf("text of %d bytes, where %d are left", size, left)
		}
		end += size
		c.offsets = append(c.offsets, int32(end))
	}
	return c.take(int(end))
}
