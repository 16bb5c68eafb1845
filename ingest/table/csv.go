package table

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
)

// errMore says that a text ends within a row or value, and that there is more of it to come.
var errMore = errors.New("more of the input is needed")

// csvDecoder splits CSV into rows of fields (RFC 4180; lines may also end in LF
// alone, and empty lines are passed over).
type csvDecoder struct {
	w         *window
	fields    [][]byte // of the current row, borrowed from the window and from unquoted
	fieldsMax int      // fields of a row past these are counted only
	count     int
	unquoted  []byte // fields that had doubled quotes
}

// decodeCSV takes a header and rows. A row of the wrong length is a fault of that
// row; a quote in the wrong place ends the decoding.
func (b *builder) decodeCSV(w *window) error {
	if bytes.HasPrefix(w.rest(), byteOrderMark) {
		w.advance(len(byteOrderMark))
	}
	d := csvDecoder{w: w, fieldsMax: b.limits.ColumnsMax}
	if ok, err := d.next(0); err != nil {
		return err
	} else if !ok {
		return errEmpty
	}
	if d.count > d.fieldsMax {
		return b.tooManyColumns()
	}
	columns, err := b.header(d.fields)
	if err != nil {
		return err
	}
	for {
		ok, err := d.next(b.rows + 1)
		if !ok {
			return err
		}
		row, err := b.take()
		if err != nil {
			return err
		}
		if d.count != len(columns) {
			b.faults.Add(row+1, "", "", fmt.Sprintf("%d fields, where the header has %d", d.count, len(columns)))
			continue
		}
		for i, c := range columns {
			switch v := d.fields[i]; c.kind { // the common kinds, without a detour
			case kindCount:
				b.digits(c, row, v)
			case kindText:
				b.text(c, row, v)
			default:
				b.cell(c, row, v)
			}
		}
	}
}

// header finds the columns that a CSV header names.
func (b *builder) header(names [][]byte) ([]*column, error) {
	columns := make([]*column, 0, len(names))
	for _, name := range names {
		c, err := b.head(0, name)
		if err != nil {
			return nil, err
		}
		if c == nil {
			continue
		}
		if c.given {
			b.faults.Add(0, c.name, "", "stands in the header twice")
		}
		c.given = true
		columns = append(columns, c)
	}
	if err := b.requireColumns(); err != nil {
		return nil, err
	}
	if b.faults.Count > 0 {
		return nil, errStop
	}
	return columns, nil
}

// next splits the next row that is no empty line; ok is false at the end of the
// input. row is its number for messages.
func (d *csvDecoder) next(row int) (ok bool, err error) {
	for {
		p := d.w.rest()
		if n := d.plain(p); n > 0 {
			d.w.advance(n)
			return true, nil
		}
		n, err := d.split(p, d.w.last)
		switch {
		case err == nil && len(p) > 0:
			d.w.advance(n)
			if d.count > 0 {
				return true, nil
			}
		case err == nil && d.w.last:
			return false, nil
		case err == nil || err == errMore:
			if _, err = d.w.more(); err != nil {
				return false, err
			}
		default:
			if at, is := err.(*syntaxError); is {
				at.row, at.offset = row, at.offset+d.w.offset()
			}
			return false, err
		}
	}
}

// plain is split for the common row, which lies in p whole and has no quotes; 0 is any other.
// It looks at eight bytes at a time, which may hold several separators.
func (d *csvDecoder) plain(p []byte) (n int) {
	from, fields := 0, d.fields[:0]
	for i := 0; i+8 <= len(p); i += 8 {
		w := word(p[i:])
		for m := exactly(w, lows*',') | exactly(w, lows*'\n') | exactly(w, lows*'"'); m != 0; m &= m - 1 {
			end := i + bits.TrailingZeros64(m)>>3
			c := p[end]
			if c == '"' || len(fields) == d.fieldsMax {
				return 0
			}
			if c == '\n' {
				field := p[from:end]
				if len(field) == 0 || field[len(field)-1] == '\r' {
					field = bytes.TrimSuffix(field, carriageReturn)
					if len(field) == 0 && len(fields) == 0 {
						return 0
					}
				}
				d.fields = append(fields, field)
				d.count = len(d.fields)
				return end + 1
			}
			fields = append(fields, p[from:end])
			from = end + 1
		}
	}
	return 0
}

// split finds the fields of the row that p begins with, and the length of the row
// with its line end. count 0 is an empty line. last says that the input ends with p.
func (d *csvDecoder) split(p []byte, last bool) (n int, err error) {
	d.fields, d.unquoted, d.count = d.fields[:0], d.unquoted[:0], 0
	for i := 0; ; i++ {
		var field []byte
		quoted := i < len(p) && p[i] == '"'
		if quoted {
			if field, i, err = d.quoted(p, i+1, last); err != nil {
				return 0, err
			}
		} else {
			from := i
			i = indexSeparator(p, i)
			field = p[from:i]
		}
		if i == len(p) && !last {
			return 0, errMore
		}
		more := i < len(p) && p[i] == ','
		if !more && !quoted {
			if i < len(p) && p[i] == '"' {
				return 0, &syntaxError{offset: int64(i), reason: "a quote within a field that does not begin with one"}
			}
			field = bytes.TrimSuffix(field, carriageReturn)
		}
		if !more && !quoted && len(field) == 0 && d.count == 0 {
			return min(i+1, len(p)), nil
		}
		if d.count++; d.count <= d.fieldsMax {
			d.fields = append(d.fields, field)
		}
		if !more {
			return min(i+1, len(p)), nil
		}
	}
}

var carriageReturn = []byte{'\r'}

// quoted takes a quoted field from behind its first quote on, and gives the index
// of what follows it: a comma, a line feed or the end.
func (d *csvDecoder) quoted(p []byte, i int, last bool) (field []byte, next int, err error) {
	from, kept := i, len(d.unquoted)
	for {
		n := bytes.IndexByte(p[i:], '"')
		if n < 0 || i+n+1 == len(p) && !last {
			if !last {
				return nil, 0, errMore
			}
			return nil, 0, &syntaxError{offset: int64(from - 1), reason: "a quote is opened and never closed"}
		}
		i += n + 1
		if i == len(p) || p[i] != '"' {
			break
		}
		d.unquoted = append(d.unquoted, p[from:i]...)
		i++
		from = i
	}
	field = p[from : i-1]
	if len(d.unquoted) > kept {
		d.unquoted = append(d.unquoted, field...)
		field = d.unquoted[kept:]
	}
	if i < len(p) && p[i] == '\r' && (i+1 == len(p) || p[i+1] == '\n') {
		i++
	}
	if i < len(p) && p[i] != ',' && p[i] != '\n' {
		return nil, 0, &syntaxError{offset: int64(i), reason: "text behind the closing quote of a field"}
	}
	return field, i, nil
}
