package verify

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"math"
	"slices"

	"github.com/stintd/stint/core/decision"
)

// digestOf is the SHA-256 of what tables say, from docs/decisions.md, D-16, and the description at decision.Digest,
// without its code: every value by itself, nothing packed ahead.
func digestOf(tables []*decision.Table) string {
	return hashOf(tables, func(table string, c *decision.Column) string {
		if c.Name == "device" && !slices.ContainsFunc(c.Code, func(code int32) bool { return code != decision.Null }) {
			return "" // no plan has devices
		}
		return nameIn(table, c.Name)
	})
}

// hashOf is that of the columns to which as gives a name.
func hashOf(tables []*decision.Table, as func(table string, c *decision.Column) string) string {
	d := hasher{sha256.New()}
	for _, t := range tables {
		d.text(t.Name)
		d.count(t.Rows)
		var names []string
		var columns []*decision.Column
		for i := range t.Columns {
			c := &t.Columns[i]
			if t.Name == "plans" && (c.Name == "author" || c.Name == "message") { // count as not known
				c = &decision.Column{Type: decision.Text, Code: slices.Repeat([]int32{decision.Null}, t.Rows)}
			}
			if name := as(t.Name, &t.Columns[i]); name != "" {
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

// contentOf is by which state tables are told from those written last: digestOf, and the work lost besides where the
// table tells of any (D-120), and what was used of budgets (D-162) and of pools lately (D-166).
func contentOf(tables []*decision.Table) string {
	return hashOf(tables, func(table string, c *decision.Column) string {
		if c.Name == "unit_seconds_lost" && len(c.Float) > 0 && (c.Null == nil || slices.Contains(c.Null, false)) {
			return c.Name
		}
		if table == "consumers" && c.Name == "budget_used" && len(c.Float) > 0 &&
			(c.Null == nil || slices.Contains(c.Null, false)) {
			return c.Name
		}
		if table == "shares" && c.Name == "decayed_usage" && len(c.Float) > 0 &&
			(c.Null == nil || slices.Contains(c.Null, false)) {
			return c.Name
		}
		return nameIn(table, c.Name)
	})
}

// nameIn is a column's name in the first schema of the log, by which it counts; "" for columns that follow from others
// (D-56).
func nameIn(table, column string) string {
	switch table + "." + column {
	case "consumers.slot_limit", "amounts.share_limit":
		return "limit"
	case "consumers.parent", "consumers.depth", "consumers.leaf", "consumers.unit_seconds_lost",
		"releases.unit_seconds_lost",
		"consumers.budget", "consumers.budget_dimension", "consumers.budget_used",
		"shares.decayed_usage", "shares.effective_ratio":
		return ""
	}
	return column
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
