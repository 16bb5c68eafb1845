package table

import (
	"bytes"
	"math/big"
	"regexp"
	"strconv"
	"unicode/utf8"

	"github.com/stintd/stint/core/cluster"
	columns "github.com/stintd/stint/core/column"
)

// kind is what a column of the schema may hold, and in which slice of column it is kept.
type kind uint8

const (
	kindText      kind = iota // code: a name, of bytesMax bytes at most
	kindCount                 // ints: a whole number from min to cluster.NumberMax
	kindFlag                  // bools, valid
	kindState                 // states
	kindAttribute             // code: an attribute in text; its kind is told at the end
	kindAttributeText
	kindAttributeNumber // numbers, valid
	kindAttributeBool   // bools, valid
)

// column is a column of the table that is being read. Rows that gave no value
// are filled in late, when a later row gives one or the table ends.
type column struct {
	name     string
	of       *columns.Line // nil: an attribute
	key      string        // the name as a JSON key, with its colon
	kind     kind
	required bool
	unique   bool  // kindText: no two rows have the same
	given    bool  // the input has this column
	seen     int   // stamp of the last row or batch in which it stood
	bytesMax int   // kindText
	min      int64 // kindCount
	unset    int64 // kindCount: what a row without a value reads as
	absent   int64 // kindCount: and one that does not have the column, where another row has

	names   *cluster.Names
	code    []int32 // below Null: not interned yet, see staged
	ints    []int64
	numbers []float64
	bools   []bool
	valid   []bool
	states  []cluster.HostState
	keep    []bool // attributes: rows that do not have the column; those past its end do

	// Texts wait here until there are enough to be interned together, those of rows from stagedRow on. The code
	// of a row that has text i of them is stagedCode-i until then. last is the text of the last row that had one.
	staged    []byte
	stagedAt  []int32 // offsets in staged, one more than texts
	stagedRow int
	last      []byte

	coded      []int32 // code of each word of a batch's dictionary, Null where not looked up yet
	generation uint32  // of that dictionary
}

// filled appends v until s has n entries.
func filled[T any](s []T, n int, v T) []T {
	for len(s) < n {
		s = append(s, v)
	}
	return s
}

// pad gives the rows before row n that say nothing of the column the value of that.
func (c *column) pad(n int) {
	switch c.kind {
	case kindText:
		c.code = filled(c.code, n, cluster.Null)
	case kindAttribute, kindAttributeText:
		c.keepFrom(len(c.code), n)
		c.code = filled(c.code, n, cluster.Null)
	case kindCount:
		c.ints = filled(c.ints, n, c.absent)
	case kindState:
		c.states = filled(c.states, n, cluster.Keep)
	case kindAttributeNumber:
		c.keepFrom(len(c.numbers), n)
		c.numbers, c.valid = filled(c.numbers, n, 0), filled(c.valid, n, false)
	case kindAttributeBool:
		c.keepFrom(len(c.bools), n)
		fallthrough
	case kindFlag:
		c.bools, c.valid = filled(c.bools, n, false), filled(c.valid, n, false)
	}
}

// keepFrom marks rows from row to before row n as saying nothing of the attribute.
func (c *column) keepFrom(row, n int) {
	if row < n {
		c.keep = filled(filled(c.keep, row, false), n, true)
	}
}

// none gives a row that has the column, without a value, the value of that.
func (c *column) none(row int) {
	c.pad(row)
	switch c.kind {
	case kindText, kindAttribute, kindAttributeText:
		c.code = append(c.code, cluster.Null)
	case kindCount:
		c.ints = append(c.ints, c.unset)
	case kindState:
		c.states = append(c.states, cluster.OK)
	case kindAttributeNumber:
		c.numbers, c.valid = append(c.numbers, 0), append(c.valid, false)
	case kindFlag, kindAttributeBool:
		c.bools, c.valid = append(c.bools, false), append(c.valid, false)
	}
}

// reject notes a bad value. The row keeps the value of no value; the table is refused in the end.
func (b *builder) reject(c *column, row int, value []byte, reason string) {
	b.faults.Add(row+1, c.name, string(value[:min(len(value), faultBytesMax)]), reason)
	c.none(row)
}

// faultBytesMax is a little more than what a fault shows of a value.
const faultBytesMax = 80

// null takes a row that gives no value: fine, unless the column must have one.
func (b *builder) null(c *column, row int) {
	if c.required {
		b.reject(c, row, nil, "is missing")
		return
	}
	c.none(row)
}

// cell takes a value in text, as CSV gives all and JSON some: row counts from 0,
// v is borrowed, an empty one is no value. Rows of a column come in order.
func (b *builder) cell(c *column, row int, v []byte) {
	switch {
	case c.kind == kindCount:
		b.digits(c, row, v)
	case len(v) == 0:
		b.null(c, row)
	case c.kind == kindFlag:
		b.flag(c, row, v)
	case c.kind == kindState:
		b.state(c, row, v)
	default:
		b.text(c, row, v)
	}
}

// Bounds on what waits to be interned, by column.
const (
	stagedMax           = 64
	stagedTextMax       = 256
	stagedCode    int32 = cluster.Null - 1
)

// text takes a name or an attribute's text. Many rows say what the row before said.
func (b *builder) text(c *column, row int, v []byte) {
	if len(v) == 0 {
		b.null(c, row)
		return
	}
	if n := len(c.code); n > 0 && n == row && c.code[n-1] != cluster.Null && !c.unique && string(c.last) == string(v) {
		c.code = append(c.code, c.code[n-1])
		return
	}
	if reason := b.badText(c, v); reason != "" {
		b.reject(c, row, v, reason)
		return
	}
	if c.unique || len(v) > stagedTextMax {
		b.word(c, row, v)
		return
	}
	if len(c.code) != row {
		c.pad(row)
	}
	if len(c.stagedAt) > stagedMax {
		c.settle()
	}
	if len(c.stagedAt) == 0 {
		c.stagedAt, c.stagedRow = append(c.stagedAt, 0), row
	}
	c.code = append(c.code, stagedCode-int32(len(c.stagedAt)-1))
	from := len(c.staged)
	c.staged = append(c.staged, v...)
	c.stagedAt = append(c.stagedAt, int32(len(c.staged)))
	c.last = c.staged[from:]
}

// settle interns the texts that wait.
func (c *column) settle() {
	if len(c.stagedAt) == 0 {
		return
	}
	var ids [stagedMax]int32
	c.names.InternAll(c.staged, c.stagedAt, ids[:len(c.stagedAt)-1])
	for i := c.stagedRow; i < len(c.code); i++ {
		if code := c.code[i]; code <= stagedCode {
			c.code[i] = ids[stagedCode-code]
		}
	}
	c.staged, c.stagedAt = c.staged[:0], c.stagedAt[:0]
}

// word takes a text that is known to be good, and interns it at once.
func (b *builder) word(c *column, row int, v []byte) {
	known := c.names.Len()
	code := c.names.Intern(v)
	if c.unique && int(code) < known {
		b.reject(c, row, v, "stands in the table twice")
		return
	}
	c.pad(row)
	c.code, c.last = append(c.code, code), c.names.Bytes(code)
}

// badText says why v is no value of the column, "" when it is one.
func (b *builder) badText(c *column, v []byte) string {
	if c.kind != kindText {
		switch {
		case len(v) > b.limits.FieldBytesMax:
			return "longer than " + strconv.Itoa(b.limits.FieldBytesMax) + " bytes"
		case !utf8.Valid(v):
			return "not valid UTF-8"
		}
		return ""
	}
	return badName(v, c.bytesMax)
}

// badName says why v is not UTF-8 of at most bytesMax bytes without control characters.
func badName(v []byte, bytesMax int) string {
	if len(v) > bytesMax {
		return "longer than " + strconv.Itoa(bytesMax) + " bytes"
	}
	if plainASCII(v) {
		return ""
	}
	if !utf8.Valid(v) {
		return "not valid UTF-8"
	}
	for i, c := range v {
		// In UTF-8, U+0080 … U+009F are C2 80 … C2 9F.
		if c < ' ' || c == 0x7f || c == 0xc2 && v[i+1] < 0xa0 {
			return "has a control character"
		}
	}
	return ""
}

// digits takes a count written in decimal digits.
func (b *builder) digits(c *column, row int, v []byte) {
	if len(v) == 0 {
		b.null(c, row)
		return
	}
	var n int64
	for _, d := range v {
		d -= '0'
		if d > 9 || n > cluster.NumberMax {
			n = -1
			break
		}
		n = n*10 + int64(d)
	}
	if n < c.min || n > cluster.NumberMax || len(c.ints) != row {
		if whole, ok := wholeNumber(v); ok {
			n = whole
		}
		if bytes.IndexByte(v, ',') >= 0 {
			b.reject(c, row, v, notCount[c.min]+": write it without a comma")
			return
		}
		b.count(c, row, n, v)
		return
	}
	c.ints = append(c.ints, n)
}

// wholeNumber reads a whole number from 0 to 2^53 that is written with a point or an exponent, such as 2.0 or 1e2, as
// programs write it that have no other numbers than floats.
func wholeNumber(v []byte) (int64, bool) {
	const longest = 40 // characters; what is longer nobody wrote as a count
	if len(v) > longest || !floatForm.Match(v) {
		return 0, false
	}
	r, ok := new(big.Rat).SetString(string(v))
	if !ok || !r.IsInt() || !r.Num().IsInt64() || r.Num().Int64() > cluster.NumberMax {
		return 0, false
	}
	return r.Num().Int64(), true
}

// floatForm is a number with a point or an exponent. Exponents have two digits at most, so that no number grows long.
var floatForm = regexp.MustCompile(`^[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,2})?$`)

// count takes a count; v is how it was written, nil to write it out if need be.
func (b *builder) count(c *column, row int, n int64, v []byte) {
	if n < c.min || n > cluster.NumberMax {
		if v == nil {
			v = strconv.AppendInt(nil, n, 10)
		}
		b.reject(c, row, v, notCount[c.min])
		return
	}
	if len(c.ints) != row {
		c.pad(row)
	}
	c.ints = append(c.ints, n)
}

// notCount is the fault of a number, by the least that is allowed.
var notCount = [...]string{
	"not a whole number from 0 to 9007199254740992",
	"not a whole number from 1 to 9007199254740992",
}

// float takes a count from a column of floats.
func (b *builder) float(c *column, row int, f float64) {
	if f >= 0 && f <= float64(cluster.NumberMax) && f == float64(int64(f)) {
		b.count(c, row, int64(f), nil)
		return
	}
	b.reject(c, row, strconv.AppendFloat(nil, f, 'g', -1, 64), notCount[c.min])
}

var wordTrue, wordFalse = []byte("true"), []byte("false")

func (b *builder) flag(c *column, row int, v []byte) {
	on := bytes.Equal(v, wordTrue)
	if !on && !bytes.Equal(v, wordFalse) {
		b.reject(c, row, v, "neither true nor false")
		return
	}
	c.pad(row)
	c.bools, c.valid = append(c.bools, on), append(c.valid, true)
}

func (b *builder) state(c *column, row int, v []byte) {
	for s, name := range cluster.HostStates {
		if string(v) == name {
			c.pad(row)
			c.states = append(c.states, cluster.HostState(s))
			return
		}
	}
	b.reject(c, row, v, "no state of a host: ok, closed, draining or unavail is expected")
}
