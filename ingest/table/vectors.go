package table

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

func (v *vector) null(i int) bool { return v.valid != nil && !bit(v.valid, i) }

// empty tells whether no row has a value; then the vector's type means nothing.
func (v *vector) empty() bool {
	for i := range v.rows {
		if !v.null(i) {
			return false
		}
	}
	return true
}

func (v *vector) text(i int) []byte { return v.data[v.offsets[i]:v.offsets[i+1]] }

func bit(bitmap []byte, i int) bool { return bitmap[i>>3]>>(i&7)&1 != 0 }

// batch takes the next rows of a columnar input, one vector per column; it is a batchFunc.
func (b *builder) batch(rows int, columns []vector) error {
	b.stamp++
	before := b.faults.Count
	targets := make([]*column, len(columns))
	for i := range columns {
		c, err := b.head(0, []byte(columns[i].name))
		if err != nil {
			return err
		}
		if c != nil && c.seen == b.stamp {
			b.faults.Add(0, c.name, "", "stands in the input twice")
		}
		if targets[i] = c; c != nil {
			c.seen, c.given = b.stamp, true
		}
	}
	if b.faults.Count > before {
		return errStop
	}
	if err := b.requireColumns(); err != nil {
		return err
	}
	if err := b.room(rows); err != nil {
		return err
	}
	if err := b.options.spend(0); err != nil {
		return err
	}
	for i, c := range targets {
		if !b.accepts(c, &columns[i]) {
			return errStop
		}
	}
	for i, c := range targets {
		c.pad(b.rows)
		b.vector(c, &columns[i])
	}
	b.rows += rows
	return nil
}

// accepts tells whether a column may be filled from vectors of this type, and
// notes a fault when not. The first vector of an attribute settles its kind.
func (b *builder) accepts(c *column, v *vector) bool {
	var has string
	var attribute kind
	switch v.kind {
	case vectorInt, vectorFloat:
		has, attribute = "numbers", kindAttributeNumber
	case vectorBool:
		has, attribute = "booleans", kindAttributeBool
	default:
		has, attribute = "texts", kindAttributeText
	}
	if c.kind == kindAttribute && !v.empty() {
		c.kind = attribute
	}
	if want := vectorWanted[c.kind]; want != has && !v.empty() {
		b.faults.Add(0, c.name, "", "holds "+has+", where "+want+" are expected")
		return false
	}
	return true
}

// vectorWanted is what a vector must hold, by the kind of its column.
var vectorWanted = [...]string{
	kindText: "texts", kindState: "texts", kindCount: "numbers", kindFlag: "booleans",
	kindAttributeText: "texts", kindAttributeNumber: "numbers", kindAttributeBool: "booleans",
}

// vector takes a vector's values as rows from b.rows on.
func (b *builder) vector(c *column, v *vector) {
	if v.kind == vectorCoded && !c.unique && c.kind != kindState {
		b.codedVector(c, v)
		return
	}
	if v.allGood(c) { // the common case, whole
		if v.kind == vectorInt {
			c.ints = append(c.ints, v.ints...)
			return
		}
		c.settle()
		c.code = slices.Grow(c.code, v.rows)[:b.rows+v.rows]
		c.names.InternAll(v.data, v.offsets, c.code[b.rows:])
		c.last = nil
		return
	}
	for i := range v.rows {
		row := b.rows + i
		if v.null(i) {
			b.null(c, row)
			continue
		}
		switch v.kind {
		case vectorText:
			b.cell(c, row, v.text(i))
		case vectorCoded:
			b.cell(c, row, v.text(int(v.codes[i])))
		case vectorBool:
			c.bools, c.valid = append(c.bools, bit(v.bools, i)), append(c.valid, true)
		case vectorInt:
			if c.kind == kindCount {
				b.count(c, row, v.ints[i], nil)
			} else {
				b.number(c, row, float64(v.ints[i]))
			}
		case vectorFloat:
			if c.kind == kindCount {
				b.float(c, row, v.floats[i])
			} else {
				b.number(c, row, v.floats[i])
			}
		}
	}
}

// allGood tells whether every row gives a value that the column takes, as far as a quick look can tell.
func (v *vector) allGood(c *column) bool {
	switch {
	case v.valid != nil || v.rows == 0:
		return false
	case v.kind == vectorInt && c.kind == kindCount:
		return slices.Min(v.ints) >= c.min && slices.Max(v.ints) <= cluster.NumberMax
	case v.kind != vectorText || c.kind != kindText || c.unique || !plainASCII(v.data[v.offsets[0]:v.offsets[v.rows]]):
		return false
	}
	for i, o := range v.offsets[1:] {
		if n := int(o - v.offsets[i]); n == 0 || n > c.bytesMax {
			return false
		}
	}
	return true
}

// codedVector takes a vector with a dictionary: each of its words is checked and interned once.
func (b *builder) codedVector(c *column, v *vector) {
	if c.coded == nil || c.generation != v.generation {
		c.coded, c.generation = filled(c.coded[:0], len(v.offsets)-1, cluster.Null), v.generation
	}
	for i := range v.rows {
		if v.null(i) {
			b.null(c, b.rows+i)
			continue
		}
		known := &c.coded[v.codes[i]]
		if *known == cluster.Null {
			// A word that is no value stays unknown, and is a fault each time.
			if text := v.text(int(v.codes[i])); len(text) == 0 {
				b.null(c, b.rows+i)
			} else if reason := b.badText(c, text); reason != "" {
				b.reject(c, b.rows+i, text, reason)
			} else {
				b.word(c, b.rows+i, text)
			}
			*known = c.code[b.rows+i]
			continue
		}
		c.code = append(c.code, *known)
	}
	c.last = nil
}

// number takes an attribute's number.
func (b *builder) number(c *column, row int, f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		b.reject(c, row, strconv.AppendFloat(nil, f, 'g', -1, 64), "not a finite number")
		return
	}
	c.numbers, c.valid = append(c.numbers, f), append(c.valid, true)
}

// attribute is the column as the table has it. Attributes in text are numbers when
// all their values are finite decimal numbers, booleans when all are true or false.
func (c *column) attribute() cluster.AttrColumn {
	a := cluster.AttrColumn{Name: c.name, Kind: plan.Text, Valid: c.valid, Text: cluster.TextColumn{Names: c.names}}
	if c.keep != nil {
		a.Keep = filled(c.keep, max(len(c.code), len(c.valid)), false)
	}
	switch c.kind {
	case kindAttributeNumber:
		a.Kind, a.Number = plan.Number, c.numbers
		return a
	case kindAttributeBool:
		a.Kind, a.Bool = plan.Boolean, c.bools
		return a
	}
	c.settle()
	a.Valid = make([]bool, len(c.code))
	for row, code := range c.code {
		a.Valid[row] = code != cluster.Null
	}
	words := c.names.Len()
	if numbers := c.wordNumbers(); c.kind == kindAttribute && words > 0 && len(numbers) == words {
		a.Kind, a.Number = plan.Number, decoded(c.code, numbers)
	} else if bools := c.wordBools(); c.kind == kindAttribute && words > 0 && len(bools) == words {
		a.Kind, a.Bool = plan.Boolean, decoded(c.code, bools)
	} else {
		a.Text.Code = c.code
	}
	return a
}

// decoded is the values of codes, zero where there is none.
func decoded[T any](codes []int32, values []T) []T {
	rows := make([]T, len(codes))
	for row, code := range codes {
		if code != cluster.Null {
			rows[row] = values[code]
		}
	}
	return rows
}

// wordNumbers is the numbers that the column's words are, up to the first that is none.
func (c *column) wordNumbers() []float64 {
	var numbers []float64
	for i := range c.names.Len() {
		word := c.names.String(int32(i))
		f, err := strconv.ParseFloat(word, 64)
		// ParseFloat also takes inf, nan, hexadecimals and underscores.
		if err != nil || strings.Trim(word, "0123456789.eE+-") != "" {
			break
		}
		numbers = append(numbers, f)
	}
	return numbers
}

// wordBools is the booleans that the column's words are, up to the first that is none.
func (c *column) wordBools() []bool {
	var bools []bool
	for i := range c.names.Len() {
		word := c.names.String(int32(i))
		if word != "true" && word != "false" {
			break
		}
		bools = append(bools, word == "true")
	}
	return bools
}
