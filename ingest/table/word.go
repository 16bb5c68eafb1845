package table

import (
	"encoding/binary"
	"math/bits"
)

// Eight bytes are looked at in one word, and marked by their highest bits. Of the
// marks of same and below the lowest is right (a borrow may only make false ones
// above a true one), which is enough to find the first match.
const (
	lows  = 0x0101010101010101
	highs = 0x8080808080808080
)

func word(p []byte) uint64 { return binary.LittleEndian.Uint64(p) }

// same marks the bytes of w that are the one repeated in pattern.
func same(w, pattern uint64) uint64 { w ^= pattern; return (w - lows) &^ w & highs }

// under marks the bytes of w that are less than c, c ≤ 0x80, without false marks.
func under(w, c uint64) uint64 { return ^(w&^highs + lows*(0x80-c) | w) & highs }

// below marks the bytes of w that are less than c, c ≤ 0x80.
func below(w, c uint64) uint64 { return (w - lows*c) &^ w & highs }

// indexSeparator is the index of the first comma, line feed or quote of p from i on, len(p) if there is none.
func indexSeparator(p []byte, i int) int {
	for ; i+8 <= len(p); i += 8 {
		w := word(p[i:])
		if m := same(w, lows*',') | same(w, lows*'\n') | same(w, lows*'"'); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	for ; i < len(p); i++ {
		if c := p[i]; c == ',' || c == '\n' || c == '"' {
			return i
		}
	}
	return i
}

// indexStringEnd is the index of the first quote, backslash or control character of p from i on, len(p) if there is
// none.
func indexStringEnd(p []byte, i int) int {
	for ; i+8 <= len(p); i += 8 {
		w := word(p[i:])
		if m := same(w, lows*'"') | same(w, lows*'\\') | below(w, ' '); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
	}
	for ; i < len(p); i++ {
		if c := p[i]; c == '"' || c == '\\' || c < ' ' {
			return i
		}
	}
	return i
}

// plainASCII tells whether all bytes are ASCII and no control characters.
func plainASCII(p []byte) bool {
	for len(p) >= 8 {
		w := word(p)
		if w&highs|below(w, ' ')|same(w, lows*0x7f) != 0 {
			return false
		}
		p = p[8:]
	}
	for _, c := range p {
		if c < ' ' || c >= 0x7f {
			return false
		}
	}
	return true
}
