package decision

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"math"
	"slices"
)

// Digest is the SHA-256, in hex, of the content of tables in the order given (D-16). It depends on names, types and
// values alone, not on how a dictionary numbers its texts nor on whether Null is nil or false throughout, so that it
// can be recomputed from files. The names of tables and columns are those of the first schema (D-56): a column that was
// renamed since counts by its old name, one that follows from others, or from others and times, not at all, one of
// devices where it has a value, and who gave a policy as not known. Texts of one dictionary must be distinct. Rows of
// tables that fail Check are a bug and panic.
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
func Digest(tables []Table) string { return digest(tables, digestName) }

// Content is the digest by which the log knows whether state tables differ from those that it wrote last: as Digest,
// but work lost counts too, where the table tells of any (D-120), and so does what was used of budgets (D-162) and of
// pools lately (D-166).
func Content(tables []Table) string {
	return digest(tables, func(table string, c *Column) string {
		if c.Name == lostColumn && (c.Null == nil && len(c.Float) > 0 || slices.Contains(c.Null, false)) {
			return lostColumn
		}
		if table == "consumers" && c.Name == "budget_used" && len(c.Float) > 0 &&
			(c.Null == nil || slices.Contains(c.Null, false)) {
			return c.Name
		}
		if table == "shares" && c.Name == "decayed_usage" && len(c.Float) > 0 &&
			(c.Null == nil || slices.Contains(c.Null, false)) {
			return c.Name
		}
		return digestName(table, c)
	})
}

// digest is the digest of tables whose columns count by the names that name gives, "" for those that do not count.
func digest(tables []Table, name func(table string, c *Column) string) string {
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
			if as := name(t.Name, &t.Columns[j]); as != "" {
				names, columns = append(names, as), append(columns, &t.Columns[j])
			}
		}
		d.count(len(columns))
		for j, c := range columns {
			if t.Name == "plans" && (names[j] == "author" || names[j] == "message") { // neither counts in the digest
				c = &Column{Type: Text, Code: without(t.Rows)}
			}
			d.column(names[j], c, t.Rows)
		}
	}
	d.flush()
	return hex.EncodeToString(d.hash.Sum(nil))
}

// DigestAfter is the digest of a cycle's tables. last is the frozen cycle before it, with a digest that is right, or
// nil. Where neither of the two had events and the state tables were not made anew, all tables are equal, so the digest
// is that of last and nothing is hashed.
func (c *Cycle) DigestAfter(last *Cycle) string {
	if last != nil && !c.Summary.Restated && c.EventRows() == 0 && last.EventRows() == 0 {
		return last.Summary.Digest
	}
	return Digest(c.Tables())
}

// digestName is the name by which a column counts in the digest, "" when it does not count.
func digestName(table string, c *Column) string {
	switch {
	case table == "consumers" && c.Name == slotLimit, table == "amounts" && c.Name == shareLimit:
		return "limit"
	case c.Name == deviceColumn && !c.anyText(): // so the digests of plans without devices are what they were
		return ""
	case table == "consumers" && (slices.Contains(treeColumns, c.Name) || slices.Contains(budgetColumns, c.Name)),
		c.Name == lostColumn, table == "shares" && slices.Contains(historyColumns, c.Name):
		return ""
	}
	return c.Name
}

// without is a text column's codes where no row has a value.
func without(rows int) []int32 {
	codes := make([]int32, rows)
	for i := range codes {
		codes[i] = Null
	}
	return codes
}

// Check tells whether every column has an entry for every row, and codes within
// its dictionary. The error names the table, the column and the row.
func (t *Table) Check() error {
	for i := range t.Columns {
		c := &t.Columns[i]
		n := len(c.Int)
		switch c.Type {
		case Float:
			n = len(c.Float)
		case Text:
			n = len(c.Code)
		case List:
			n = len(c.Lists)
		}
		if n != t.Rows {
			return fmt.Errorf("table %s, column %s: %d values for %d rows", t.Name, c.Name, n, t.Rows)
		}
		if c.Null != nil && len(c.Null) != t.Rows {
			return fmt.Errorf("table %s, column %s: %d nulls for %d rows", t.Name, c.Name, len(c.Null), t.Rows)
		}
		if c.Type != Text {
			continue
		}
		words := int32(0)
		if c.Dict != nil {
			words = int32(c.Dict.Len())
		}
		for row, code := range c.Code {
			if code < Null || code >= words {
				return fmt.Errorf("table %s, column %s, row %d: code %d of a dictionary of %d",
					t.Name, c.Name, row, code, words)
			}
		}
	}
	return nil
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
