package column

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"math"
	"slices"
)

// Digest is the SHA-256, in hex, of the content of tables in the order given (D-16). It depends on names, types and
// values alone, not on how a dictionary numbers its texts nor on whether Null is nil or false throughout, so that it
// can be recomputed from files. rule gives the line of a column of a table, nil where there is none: a column counts by
// the name that the line had first (Line.Was) and as the line says (Line.Count). all is whether columns that are
// IfChanged count too. Texts of one dictionary must be distinct. Rows of tables that fail Check are a bug and panic.
//
// What is hashed, every number little-endian; a "count" has 8 bytes, a "text" is
// the count of its bytes and the bytes:
//
//	table:  text name, count of rows, count of columns, then the columns
//	column: text name, a byte of the Type, then
//	        Int, Time: packed values (0 where null), nulls
//	        Float:     8 bytes of IEEE 754 bits a row (0 where null), nulls
//	        Text:      count of distinct texts, those texts in the order of their
//	                   first row, then packed ordinals: 0 for null, else 1 + place
//	        List:      for each row the count of its texts, and those texts
//	packed: a byte w, the least of 1, 2, 4 and 8 for which all values fit in w bytes
//	        of two's complement; then w bytes a row
//	nulls:  count of null rows; when not 0, a bitmap of ⌈rows÷8⌉ bytes, least
//	        significant bit first
//
// It costs two passes over the columns and a hash of their packed bytes: about 60 ms
// for a million grants.
func Digest(tables []Table, rule func(table, column string) *Line, all Rule) string {
	d := digester{hash: sha256.New(), buf: make([]byte, 0, digestBufferBytes)}
	for i := range tables {
		t := &tables[i]
		if err := t.Check(); err != nil {
			panic("BUG: " + err.Error())
		}
		d.text([]byte(t.Name))
		d.count(t.Rows)
		var names []string
		var columns []*Column
		for j := range t.Columns {
			c, name := &t.Columns[j], t.Columns[j].Name
			if l := rule(t.Name, name); l != nil {
				c, name = l.counted(c, all)
			}
			if c != nil {
				names, columns = append(names, name), append(columns, c)
			}
		}
		d.count(len(columns))
		for j, c := range columns {
			d.column(names[j], c, t.Rows)
		}
	}
	d.flush()
	return hex.EncodeToString(d.hash.Sum(nil))
}

// Rule says which columns count in a digest.
type Rule bool

// The rules: of what was decided, and of what makes the log write a state table anew.
const (
	Decided Rule = false
	Content Rule = true
)

// counted is a column as it counts in a digest and the name by which it does, nil where it does not count.
func (l *Line) counted(c *Column, all Rule) (as *Column, name string) {
	switch {
	case l.Count == Uncounted, l.Count == IfSet && !c.set(), l.Count == IfChanged && (all == Decided || !c.set()):
		return nil, ""
	case l.Count == Unnamed:
		c = &Column{Name: c.Name, Type: Text, Code: Without(c.Rows())}
	}
	if l.Was != "" {
		return c, l.Was
	}
	return c, l.Name
}

// set tells whether any row has a value.
func (c *Column) set() bool {
	if c.Type == Text {
		return slices.ContainsFunc(c.Code, func(code int32) bool { return code != Null })
	}
	return c.Rows() > 0 && (c.Null == nil || slices.Contains(c.Null, false))
}

const (
	digestBufferBytes = 1 << 16
	digestBatchRows   = 1 << 12
)

// digester feeds a hash through a buffer, so that it sees large blocks.
type digester struct {
	hash    hash.Hash
	buf     []byte
	packed  []int64 // ordinals of a text column
	ordinal []int32 // by code: 1 + place of first appearance
	order   []int32 // codes by place of first appearance
}

func (d *digester) flush() {
	d.hash.Write(d.buf)
	d.buf = d.buf[:0]
}

// room makes place for n bytes, n at most the buffer's size.
func (d *digester) room(n int) {
	if len(d.buf)+n > cap(d.buf) {
		d.flush()
	}
}

func (d *digester) count(n int) {
	d.room(8)
	d.buf = binary.LittleEndian.AppendUint64(d.buf, uint64(n))
}

func (d *digester) byte(b byte) {
	d.room(1)
	d.buf = append(d.buf, b)
}

func (d *digester) text(s []byte) {
	d.count(len(s))
	d.room(len(s))
	if len(s) > cap(d.buf) {
		d.hash.Write(s)
		return
	}
	d.buf = append(d.buf, s...)
}

func (d *digester) column(name string, c *Column, rows int) {
	d.text([]byte(name))
	d.byte(byte(c.Type))
	switch c.Type {
	case Int, Time:
		d.pack(c.Int, c.Null)
		d.nulls(c.Null)
	case Float:
		for row, v := range c.Float {
			if c.Null != nil && c.Null[row] {
				v = 0
			}
			d.room(8)
			d.buf = binary.LittleEndian.AppendUint64(d.buf, math.Float64bits(v))
		}
		d.nulls(c.Null)
	case Text:
		d.rank(c, rows)
		d.count(len(d.order))
		for _, code := range d.order {
			d.text(c.Dict.Bytes(code))
		}
		d.pack(d.packed, nil)
	case List:
		for _, list := range c.Lists {
			d.count(len(list))
			for _, s := range list {
				d.text([]byte(s))
			}
		}
	}
}

// rank finds a text column's ordinals (packed) and its codes in order of first appearance (order).
func (d *digester) rank(c *Column, rows int) {
	words := 0
	if c.Dict != nil {
		words = c.Dict.Len()
	}
	if cap(d.ordinal) < words {
		d.ordinal = make([]int32, words)
	}
	if cap(d.packed) < rows {
		d.packed = make([]int64, rows)
	}
	d.ordinal, d.packed, d.order = d.ordinal[:words], d.packed[:rows], d.order[:0]
	for row, code := range c.Code {
		if code == Null {
			d.packed[row] = 0
			continue
		}
		if d.ordinal[code] == 0 {
			d.order = append(d.order, code)
			d.ordinal[code] = int32(len(d.order))
		}
		d.packed[row] = int64(d.ordinal[code])
	}
	for _, code := range d.order {
		d.ordinal[code] = 0
	}
}

// pack hashes values in the least width that holds them all.
func (d *digester) pack(values []int64, null []bool) {
	var span int64 // its highest set bit is that of the value that needs the most bits
	for row, v := range values {
		if null == nil || !null[row] {
			span |= v ^ v>>63
		}
	}
	width := 8
	switch {
	case span <= math.MaxInt8:
		width = 1
	case span <= math.MaxInt16:
		width = 2
	case span <= math.MaxInt32:
		width = 4
	}
	d.byte(byte(width))
	for from := 0; from < len(values); from += digestBatchRows {
		d.room(digestBatchRows*width + 8)
		n := len(d.buf)
		room := d.buf[n:cap(d.buf)]
		for i, v := range values[from:min(from+digestBatchRows, len(values))] {
			if null != nil && null[from+i] {
				v = 0
			}
			binary.LittleEndian.PutUint64(room[i*width:], uint64(v)) // the next value overwrites what is beyond width
			n += width
		}
		d.buf = d.buf[:n]
	}
}

func (d *digester) nulls(null []bool) {
	n := 0
	for _, is := range null {
		if is {
			n++
		}
	}
	d.count(n)
	if n == 0 {
		return
	}
	for row := 0; row < len(null); row += 8 {
		var bits byte
		for i, is := range null[row:min(row+8, len(null))] {
			if is {
				bits |= 1 << i
			}
		}
		d.byte(bits)
	}
}
