package table

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// jsonDecoder takes rows or values from a window of JSON.
type jsonDecoder struct {
	b     *builder
	w     *window
	x     lexer
	row   int    // for messages, from 1; 0: outside of rows
	cells []cell // of the current row
	// the columns of the last row's keys, nil where the key is not written as the column's; most rows are alike
	order []*column
}

// object takes the row object at the lexer's place into cells. The columns
// are looked up, but nothing reaches them: the row may have to be begun again.
func (d *jsonDecoder) object() error {
	x := &d.x
	if n := d.alike(x.p[x.i:]); n > 0 {
		x.i += n
		return nil
	}
	d.cells = d.cells[:0]
	if err := x.expect('{', "a row object is expected"); err != nil {
		return err
	}
	if c, err := x.space(); err != nil {
		return err
	} else if c == '}' {
		x.i++
		return nil
	}
	for {
		if len(d.cells) == d.b.limits.ColumnsMax {
			return d.b.tooManyColumns()
		}
		d.cells = append(d.cells, cell{})
		v := &d.cells[len(d.cells)-1]
		err := d.key(v)
		if err != nil {
			return err
		}
		if v.kind, v.raw, err = x.value(); err != nil {
			return err
		}
		c, err := x.space()
		if err != nil {
			return err
		}
		switch c {
		case ',':
			x.i++
		case '}':
			x.i++
			return nil
		default:
			return x.fail("a comma or the end of the row is expected")
		}
	}
}

// key takes the key of the last cell of the row so far.
func (d *jsonDecoder) key(v *cell) (err error) {
	if v.key, err = d.x.key(); err != nil {
		return err
	}
	v.column = d.b.byName[string(v.key)]
	place := len(d.cells) - 1
	for len(d.order) <= place {
		d.order = append(d.order, nil)
	}
	if d.order[place] = v.column; bytes.ContainsAny(v.key, `"\\`) {
		d.order[place] = nil // as JSON it reads otherwise
	}
	return nil
}

// alike is object for the common row: it lies in p whole, and its keys are those of the last row or the first of them.
// n is its length, 0 for any other row.
func (d *jsonDecoder) alike(p []byte) (n int) {
	i := 0
	for i < len(p) && (p[i] == ' ' || p[i] == '\n' || p[i] == '\r') {
		i++
	}
	if i == len(p) || p[i] != '{' {
		return 0
	}
	if d.cells = d.cells[:0]; cap(d.cells) < len(d.order) {
		d.cells = slices.Grow(d.cells, len(d.order))
	}
	for _, c := range d.order {
		if i++; i < len(p) && p[i] == ' ' {
			i++
		}
		if c == nil || len(p)-i < len(c.key)+2 || string(p[i:i+len(c.key)]) != c.key {
			return 0
		}
		if i += len(c.key); p[i] == ' ' {
			i++
		}
		d.cells = d.cells[:len(d.cells)+1]
		v := &d.cells[len(d.cells)-1]
		v.column = c
		if i = d.value(p, i, v); i == 0 || i == len(p) {
			return 0
		}
		if p[i] == '}' {
			return i + 1
		}
		if p[i] != ',' {
			return 0
		}
	}
	return 0
}

// value takes the value at p[i] into a cell, common ones without the lexer, and gives the index behind it, 0 if there
// is none.
func (d *jsonDecoder) value(p []byte, i int, v *cell) (next int) {
	switch c := p[i]; {
	case c == '"':
		if end := indexStringEnd(p, i+1); end < len(p) && p[end] == '"' {
			v.kind, v.raw = valueString, p[i+1:end]
			return end + 1
		}
	case c-'1' < 9:
		end := i + 1
		for end < len(p) && p[end]-'0' <= 9 {
			end++
		}
		if end < len(p) && (p[end] == ',' || p[end] == '}') {
			v.kind, v.raw = valueNumber, p[i:end]
			return end
		}
	}
	x, err := lexer{p: p, i: i, text: d.x.text}, error(nil)
	if v.kind, v.raw, err = x.value(); err != nil {
		return 0
	}
	d.x.text = x.text
	return x.i
}

// decodeNDJSON takes a row object per line. Empty lines are passed over; no
// line at all is an error, as a table that is cut off must not pass for an empty one.
func (b *builder) decodeNDJSON(w *window) error {
	d := jsonDecoder{b: b, w: w}
	for {
		w.advance(blank(w.rest()))
		p := w.rest()
		n := bytes.IndexByte(p, '\n') + 1
		if n == 0 {
			if !w.last {
				if _, err := w.more(); err != nil {
					return err
				}
				continue
			}
			if n = len(p); n == 0 {
				break
			}
		}
		d.x = lexer{p: p[:n], last: true, text: d.x.text[:0]}
		if len(bytes.TrimSpace(p[:n])) > 0 {
			if err := d.line(); err != nil {
				d.row = b.rows + 1
				return d.located(err)
			}
			if err := b.cells(d.cells); err != nil {
				return err
			}
		}
		w.advance(n)
	}
	if b.rows == 0 {
		return errEmpty
	}
	return nil
}

// line takes a row object and sees that nothing follows it.
func (d *jsonDecoder) line() error {
	if err := d.object(); err != nil {
		return err
	}
	for ; d.x.i < len(d.x.p); d.x.i++ {
		switch d.x.p[d.x.i] {
		case ' ', '\t', '\r', '\n':
		default:
			return d.x.fail("text behind the row object of a line")
		}
	}
	return nil
}

// located puts the row and the place in the input into a syntax error.
func (d *jsonDecoder) located(err error) error {
	var at *syntaxError
	if errors.As(err, &at) {
		at.row, at.offset = d.row, at.offset+d.w.offset()
	}
	return err
}

// fault is a syntax error at the next byte of the window.
func (d *jsonDecoder) fault(reason string) error {
	return d.located(&syntaxError{reason: reason})
}

// part is a piece of JSON that is taken from the window whole.
type part uint8

const (
	partByte   part = iota // the next byte that is no white space; it is not taken
	partKey                // a key and its colon
	partObject             // a row
	partValue              // a plain value, white space before it
	partEnd                // white space up to the end of the input
)

// take takes a part, getting more of the input where the window ends within it.
func (d *jsonDecoder) take(what part) (c byte, v cell, err error) {
	for {
		d.x = lexer{p: d.w.rest(), last: d.w.last, text: d.x.text[:0]}
		switch what {
		case partByte:
			c, err = d.x.space()
		case partKey:
			v.raw, err = d.x.key()
		case partObject:
			err = d.object()
		case partValue:
			if _, err = d.x.space(); err == nil {
				v.kind, v.raw, err = d.x.value()
			}
		case partEnd:
			d.x.last = false
			if _, err = d.x.space(); err == nil {
				err = d.x.fail("text behind the end of the table")
			} else if d.w.last {
				err = nil
			}
		}
		if err == nil {
			d.w.advance(d.x.i)
			return c, v, nil
		}
		if err != errMore {
			return 0, v, d.located(err)
		}
		if _, err = d.w.more(); err != nil {
			return 0, v, err
		}
	}
}

// decodeJSON takes an array of row objects or an object of columns.
func (b *builder) decodeJSON(w *window) error {
	d := jsonDecoder{b: b, w: w}
	c, _, err := d.take(partByte)
	switch {
	case err != nil:
		return err
	case c == '[':
		err = d.sequence(']', func(row int) error {
			d.row = row
			if _, _, err := d.take(partObject); err != nil {
				return err
			}
			return b.cells(d.cells)
		})
	case c == '{':
		err = d.columns()
	default:
		err = d.fault("an array of row objects or an object of columns is expected")
	}
	if err != nil {
		return err
	}
	d.row = 0
	_, _, err = d.take(partEnd)
	return err
}

// sequence takes an array or object from its bracket, which comes next, to end.
// element takes each of its elements, which it is told the number of, from 1.
func (d *jsonDecoder) sequence(end byte, element func(n int) error) error {
	for n := 1; ; n++ {
		d.w.advance(1) // the bracket or a comma
		if n == 1 {
			if c, _, err := d.take(partByte); err != nil {
				return err
			} else if c == end {
				break
			}
		}
		if err := element(n); err != nil {
			return err
		}
		if c, _, err := d.take(partByte); err != nil {
			return err
		} else if c == end {
			break
		} else if c != ',' {
			return d.fault("a comma or the closing bracket is expected")
		}
	}
	d.w.advance(1)
	return nil
}

// columns takes an object of columns: arrays of one value per row.
func (d *jsonDecoder) columns() error {
	rows := 0
	err := d.sequence('}', func(n int) error {
		_, key, err := d.take(partKey)
		if err != nil {
			return err
		}
		c, err := d.b.head(0, key.raw)
		if c == nil {
			return cmp.Or(err, errStop)
		}
		if c.given {
			d.b.faults.Add(0, c.name, "", "stands in the table twice")
			return errStop
		}
		c.given = true
		has, err := d.column(c)
		d.row = 0
		if err == nil && n > 1 && has != rows {
			d.b.faults.Add(0, c.name, "", fmt.Sprintf("%d values, where the columns before it have %d", has, rows))
			return errStop
		}
		rows = has
		return err
	})
	if err == nil {
		err = d.b.requireColumns()
	}
	d.b.rows = rows
	return err
}

// column takes the array of a column's values and gives their number.
func (d *jsonDecoder) column(c *column) (rows int, err error) {
	if first, _, err := d.take(partByte); err != nil {
		return 0, err
	} else if first != '[' {
		return 0, d.fault("a column is an array of values")
	}
	err = d.sequence(']', func(row int) error {
		d.row, rows = row, row
		if err := d.b.room(row); err != nil {
			return err
		}
		_, v, err := d.take(partValue)
		if err == nil {
			d.b.value(c, row-1, v.kind, v.raw)
		}
		return err
	})
	return rows, err
}
