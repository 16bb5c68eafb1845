package table

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// bitsAt gives the width ≤ 64 bits that begin at bit at of b; bits past the end are 0.
func bitsAt(b []byte, at, width int) uint64 {
	i, shift := at>>3, at&7
	var word uint64
	if i+8 <= len(b) {
		word = binary.LittleEndian.Uint64(b[i:])
	} else {
		var tail [8]byte
		copy(tail[:], b[min(i, len(b)):])
		word = binary.LittleEndian.Uint64(tail[:])
	}
	word >>= shift
	if shift+width > 64 && i+8 < len(b) {
		word |= uint64(b[i+8]) << (64 - shift)
	}
	if width < 64 {
		word &= 1<<width - 1
	}
	return word
}

// hybrid reads Parquet's mix of runs and bit-packed groups: levels, codes and
// booleans. It keeps no more than its place, so a run may be as long as it claims.
type hybrid struct {
	src    []byte
	width  int // bits, at most 32
	run    int // values left of the run or group under way
	value  int32
	packed []byte // nil: a run of value
	bit    int    // next bit of packed
}

var errShort = errors.New("the values end early")

func newHybrid(src []byte, width int) (hybrid, error) {
	if width > 32 {
		return hybrid{}, fmt.Errorf("values of %d bits", width)
	}
	return hybrid{src: src, width: width}, nil
}

// next reads len(dst) values.
func (h *hybrid) next(dst []int32) error {
	for len(dst) > 0 {
		if h.run == 0 {
			if err := h.head(); err != nil {
				return err
			}
			continue
		}
		n := min(h.run, len(dst))
		if h.packed == nil {
			for i := range dst[:n] {
				dst[i] = h.value
			}
		} else {
			h.unpack(dst[:n])
		}
		h.run -= n
		dst = dst[n:]
	}
	return nil
}

// unpack reads len(dst) values of the group under way.
func (h *hybrid) unpack(dst []int32) {
	bit, i, mask := h.bit, 0, uint64(1)<<h.width-1
	for ; i < len(dst) && bit>>3+8 <= len(h.packed); i++ { // most: bitsAt without its care for the end
		dst[i] = int32(binary.LittleEndian.Uint64(h.packed[bit>>3:]) >> (bit & 7) & mask)
		bit += h.width
	}
	for ; i < len(dst); i++ {
		dst[i] = int32(bitsAt(h.packed, bit, h.width))
		bit += h.width
	}
	h.bit = bit
}

// head reads the length of the next run or group.
func (h *hybrid) head() error {
	u, n := binary.Uvarint(h.src)
	if n <= 0 || u>>1 > 1<<31-1 {
		return errShort
	}
	h.src = h.src[n:]
	count := int(u >> 1)
	if u&1 != 0 {
		size := count * h.width
		if size > len(h.src) {
			return errShort
		}
		h.run, h.packed, h.bit, h.src = 8*count, h.src[:size:size], 0, h.src[size:]
		if h.packed == nil {
			h.packed = []byte{}
		}
		return nil
	}
	size := (h.width + 7) / 8
	if size > len(h.src) {
		return errShort
	}
	value := bitsAt(h.src, 0, 8*size)
	if value>>h.width != 0 {
		return fmt.Errorf("a run of the value %d, which has more than %d bits", value, h.width)
	}
	h.run, h.packed, h.value, h.src = count, nil, int32(value), h.src[size:]
	return nil
}

// delta reads DELTA_BINARY_PACKED integers, again without keeping more than its place.
type delta struct {
	src   []byte
	minis int // miniblocks of a block
	size  int // values of a miniblock
	left  int // values still to come
	last  int64
	first bool // last is the first value, not yet given
	least int64
	width []byte // of the block's miniblocks still to come
	run   int    // values left of the miniblock
	bits  int    // its width
	mini  []byte
	bit   int
}

func newDelta(src []byte) (d delta, err error) {
	var head [3]uint64 // values of a block, miniblocks of a block, values in all
	for i := range head {
		u, n := binary.Uvarint(src)
		if n <= 0 || u > 1<<31-1 {
			return d, errors.New("bad head of delta encoding")
		}
		head[i], src = u, src[n:]
	}
	last, n := binary.Varint(src)
	if n <= 0 || head[1] == 0 || head[0]%head[1] != 0 || head[0]/head[1] == 0 || head[0]/head[1]%8 != 0 {
		return d, errors.New("bad head of delta encoding")
	}
	return delta{src: src[n:], minis: int(head[1]), size: int(head[0] / head[1]), left: int(head[2]), last: last,
		first: true}, nil
}

// next reads len(dst) values; differences wrap around, as the format says.
func (d *delta) next(dst []int64) error {
	if len(dst) > d.left {
		return errShort
	}
	d.left -= len(dst)
	if d.first && len(dst) > 0 {
		dst[0], d.first, dst = d.last, false, dst[1:]
	}
	for len(dst) > 0 {
		if d.run == 0 {
			if err := d.head(); err != nil {
				return err
			}
		}
		n := min(d.run, len(dst))
		for i := range dst[:n] {
			d.last += d.least + int64(bitsAt(d.mini, d.bit, d.bits))
			d.bit += d.bits
			dst[i] = d.last
		}
		d.run -= n
		dst = dst[n:]
	}
	return nil
}

// head begins the next miniblock, and the next block when one is over.
func (d *delta) head() error {
	if len(d.width) == 0 {
		least, n := binary.Varint(d.src)
		if n <= 0 || len(d.src)-n < d.minis {
			return errShort
		}
		d.least, d.width, d.src = least, d.src[n:n+d.minis], d.src[n+d.minis:]
	}
	d.bits, d.width = int(d.width[0]), d.width[1:]
	size := d.size / 8 * d.bits
	if d.bits > 64 || size > len(d.src) {
		return errShort
	}
	d.run, d.mini, d.bit, d.src = d.size, d.src[:size], 0, d.src[size:]
	return nil
}
