package verify

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"math"
	"slices"

	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/decision"
)

// digestOf is the SHA-256 of what tables say, from docs/decisions.md, D-16, and the description at decision.Digest,
// without its code: every value by itself, nothing packed ahead. Which columns count the schemas say.
func digestOf(tables []*decision.Table) string { return hashOf(tables, false) }

// contentOf is by which state tables are told from those written last: digestOf, and columns besides that are measured
// and of which the table tells something.
func contentOf(tables []*decision.Table) string { return hashOf(tables, true) }

func hashOf(tables []*decision.Table, content bool) string {
	d := hasher{sha256.New()}
	for _, t := range tables {
		d.text(t.Name)
		d.count(t.Rows)
		var names []string
		var columns []*decision.Column
		for i := range t.Columns {
			if c, name := counted(t, &t.Columns[i], content); c != nil {
				names, columns = append(names, name), append(columns, c)
			}
		}
		d.count(len(columns))
		for i, c := range columns {
			d.text(names[i])
			d.column(c)
		}
	}
	return hex.EncodeToString(d.Sum(nil))
}

// counted is a column as it counts, by the name that it had first; nil where it does not.
func counted(t *decision.Table, c *decision.Column, content bool) (as *decision.Column, name string) {
	schema, _ := decision.SchemaOf(t.Name)
	l := schema.Line(c.Name)
	if l == nil {
		return c, c.Name
	}
	tells := t.Rows > 0 && (c.Null == nil || slices.Contains(c.Null, false))
	if c.Type == decision.Text {
		tells = slices.ContainsFunc(c.Code, func(code int32) bool { return code != decision.Null })
	}
	switch l.Count {
	case column.Unnamed:
		c = &decision.Column{Type: decision.Text, Code: slices.Repeat([]int32{decision.Null}, t.Rows)}
	case column.Uncounted:
		return nil, ""
	case column.IfSet:
		if !tells {
			return nil, ""
		}
	case column.IfChanged:
		if !tells || !content {
			return nil, ""
		}
	}
	return c, cmp.Or(l.Was, l.Name)
}

type hasher struct{ hash.Hash }

func (d hasher) count(n int) { d.Write(binary.LittleEndian.AppendUint64(nil, uint64(n))) }

func (d hasher) text(s string) {
	d.count(len(s))
	d.Write([]byte(s))
}

func (d hasher) column(c *decision.Column) {
	d.Write([]byte{byte(c.Type)})
	switch c.Type {
	case decision.Int, decision.Time:
		values := make([]int64, len(c.Int))
		for row, v := range c.Int {
			if c.Null == nil || !c.Null[row] {
				values[row] = v
			}
		}
		d.packed(values)
		d.nulls(c.Null)
	case decision.Float:
		buf := make([]byte, 0, 8*len(c.Float))
		for row, v := range c.Float {
			if c.Null != nil && c.Null[row] {
				v = 0
			}
			buf = binary.LittleEndian.AppendUint64(buf, math.Float64bits(v))
		}
		d.Write(buf)
		d.nulls(c.Null)
	case decision.Text:
		d.words(c)
	case decision.List:
		for _, list := range c.Lists {
			d.count(len(list))
			for _, s := range list {
				d.text(s)
			}
		}
	}
}

// words hashes the distinct texts in the order of their first row, then each row's place among them, from 1.
func (d hasher) words(c *decision.Column) {
	place := map[int32]int64{}
	var order []int32
	values := make([]int64, len(c.Code))
	for row, code := range c.Code {
		if code < 0 {
			continue
		}
		if place[code] == 0 {
			order = append(order, code)
			place[code] = int64(len(order))
		}
		values[row] = place[code]
	}
	d.count(len(order))
	for _, code := range order {
		d.text(string(c.Dict.Bytes(code)))
	}
	d.packed(values)
}

// packed hashes numbers in the least of 1, 2, 4 and 8 bytes that holds them all.
func (d hasher) packed(values []int64) {
	width := 1
	for _, v := range values {
		for _, w := range [...]struct {
			bytes int
			most  int64
		}{{2, math.MaxInt8}, {4, math.MaxInt16}, {8, math.MaxInt32}} {
			if v > w.most || v < -w.most-1 {
				width = max(width, w.bytes)
			}
		}
	}
	buf := make([]byte, 0, 1+width*len(values)+8)
	buf = append(buf, byte(width))
	for _, v := range values {
		buf = binary.LittleEndian.AppendUint64(buf, uint64(v))[:len(buf)+width]
	}
	d.Write(buf)
}

func (d hasher) nulls(null []bool) {
	n := 0
	bits := make([]byte, (len(null)+7)/8)
	for row, is := range null {
		if is {
			n++
			bits[row/8] |= 1 << (row % 8)
		}
	}
	if d.count(n); n > 0 {
		d.Write(bits)
	}
}
