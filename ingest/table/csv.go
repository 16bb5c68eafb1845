package table

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"slices"
)

// errMore says that a text ends within a row or value, and that there is more of it to come.
var errMore = errors.New("more of the input is needed")

// csvDecoder splits CSV into rows of fields (RFC 4180; lines may also end in LF
// alone, and empty lines are passed over). Field i of the current row is
// row[ends[i-1]+1:ends[i]], the first begins at 0.
type csvDecoder struct {
	w         *window
	row       []byte // borrowed from the window, or from unquoted
	ends      []int32
	fieldsMax int // fields of a row past these are counted only
	count     int
	unquoted  []byte    // rows of the window that had quotes or an odd end, without them; a byte behind each field
	texts     *csvTexts // nil as long as the header is read
}

// decodeCSV takes a header and rows. A row of the wrong length is a fault of that
// row; a quote in the wrong place ends the decoding.
func (b *builder) decodeCSV(w *window) (err error) {
	if bytes.HasPrefix(w.rest(), byteOrderMark) {
		w.advance(len(byteOrderMark))
	}
	d := csvDecoder{w: w, fieldsMax: b.limits.ColumnsMax, unquoted: make([]byte, 0, 1<<10)}
	if ok, err := d.next(0); err != nil {
		return err
	} else if !ok {
		return errEmpty
	}
	if d.count > d.fieldsMax {
		return b.tooManyColumns()
	}
	columns, err := b.header(&d)
	if err != nil {
		return err
	}
	d.fieldsMax, d.texts = len(columns), newCSVTexts(columns, b.options, b.limits, w.last)
	b.apart = true
	defer func() {
		if spent := d.texts.finish(&b.faults); err == nil {
			err = spent
		}
	}()
	for {
		ok, err := d.next(b.rows + 1)
		if !ok {
			return err
		}
		row, err := b.take()
		if err != nil {
			return err
		}
		empty := d.row[0] == ',' && len(bytes.Trim(d.row, ",\r\n")) == 0
		if empty {
			b.faults.Add(row+1, "", "", "the row has commas only: remove it")
			err = d.texts.add(row, nil, nil)
		} else if d.count != len(columns) {
			b.faults.Add(row+1, "", "", fmt.Sprintf("%d fields, where the header has %d%s", d.count, len(columns),
				commaHint(d.count, len(columns))))
			err = d.texts.add(row, nil, nil)
		} else {
			err = d.texts.add(row, d.row, d.ends)
		}
		if err != nil {
			return err
		}
		if empty || d.count != len(columns) {
			continue
		}
		for i, c := range columns {
			if c.kind == kindCount {
				b.digits(c, row, d.field(i))
			}
		}
	}
}

// commaHint says what an unexpected number of fields most often comes of.
func commaHint(fields, columns int) string {
	if fields == columns+1 {
		return " (a comma at the end of the line, or in a number?)"
	}
	return ""
}

// header finds the columns that a CSV header names.
func (b *builder) header(d *csvDecoder) ([]*column, error) {
	columns := make([]*column, 0, d.count)
	if name := d.field(0); d.count == 1 && bytes.IndexByte(name, ';') >= 0 {
		b.faults.Add(0, "", "", "the header has semicolons and no comma: separate values by commas")
		return nil, errStop
	}
	for i := range d.count {
		c, err := b.head(0, d.field(i))
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
		if n := blank(p); n > 0 {
			d.w.advance(n)
			continue
		}
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
			if err = d.more(); err != nil {
				return false, err
			}
		default:
			var at *syntaxError
			if errors.As(err, &at) {
				at.row, at.offset = row, at.offset+d.w.offset()
			}
			return false, err
		}
	}
}

// blank is how many bytes of empty lines p begins with.
func blank(p []byte) (n int) {
	for n < len(p) && (p[n] == '\n' || p[n] == '\r' && n+1 < len(p) && p[n+1] == '\n') {
		n++
	}
	return n
}

// more gets more of the input, in other memory where there are rows in this one whose texts are still to be taken.
func (d *csvDecoder) more() error {
	if d.texts != nil && d.w.from > 0 {
		r := d.texts.rows
		r.window = d.w.move(r.window)
		d.unquoted, r.unquoted = r.unquoted, d.unquoted
		if err := d.texts.send(); err != nil {
			return err
		}
	}
	d.unquoted = d.unquoted[:0]
	_, err := d.w.more()
	return err
}

// field gives a field of the current row, borrowed.
func (d *csvDecoder) field(i int) []byte { return csvField(d.row, d.ends, i) }

// csvField gives field i of a row.
func csvField(row []byte, ends []int32, i int) []byte {
	from := int32(0)
	if i > 0 {
		from = ends[i-1] + 1
	}
	return row[from:ends[i]]
}

// plain is split for the common row, which lies in p whole, has no quotes and at least one byte; 0 is any other.
// It looks at eight bytes at a time, which may hold several separators.
func (d *csvDecoder) plain(p []byte) (n int) {
	if cap(d.ends) < d.fieldsMax {
		d.ends = slices.Grow(d.ends[:0], d.fieldsMax)
	}
	ends := d.ends[:d.fieldsMax]
	for i := 0; i+8 <= len(p); i += 8 {
		for m := under(word(p[i:]), '-'); m != 0; m &= m - 1 { // quotes, commas, line ends, and a few others
			at := i + bits.TrailingZeros64(m)>>3
			switch p[at] {
			case ',':
				if n == len(ends)-1 {
					return 0
				}
				ends[n] = int32(at)
				n++
			case '"':
				return 0
			case '\n':
				end := at
				if at > 0 && p[at-1] == '\r' {
					end--
				}
				if end == 0 {
					return 0
				}
				ends[n] = int32(end)
				d.row, d.ends, d.count = p[:end], ends, n+1
				return at + 1
			}
		}
	}
	return 0
}

// split finds the fields of the row that p begins with, and the length of the row
// with its line end. count 0 is an empty line. last says that the input ends with p.
func (d *csvDecoder) split(p []byte, last bool) (n int, err error) {
	d.ends, d.count = d.ends[:0], 0
	first := len(d.unquoted)
	for i := 0; ; i++ {
		kept := len(d.unquoted)
		quoted := i < len(p) && p[i] == '"'
		if quoted {
			if i, err = d.quoted(p, i+1, last); err != nil {
				return 0, err
			}
		} else {
			from := i
			i = indexSeparator(p, i)
			d.unquoted = append(d.unquoted, p[from:i]...)
		}
		if i == len(p) && !last {
			return 0, errMore
		}
		more := i < len(p) && p[i] == ','
		if !more && !quoted {
			if i < len(p) && p[i] == '"' {
				return 0, &syntaxError{offset: int64(i), reason: "a quote within a field that does not begin with one"}
			}
			if len(d.unquoted) > kept {
				d.unquoted = bytes.TrimSuffix(d.unquoted, carriageReturn)
			}
			if len(d.unquoted) == first && d.count == 0 {
				return min(i+1, len(p)), nil
			}
		}
		if d.count++; d.count <= d.fieldsMax {
			d.ends = append(d.ends, int32(len(d.unquoted)-first))
			d.unquoted = append(d.unquoted, ',')
		}
		if !more {
			d.row = d.unquoted[first:]
			return min(i+1, len(p)), nil
		}
	}
}

var carriageReturn = []byte{'\r'}

// quoted appends a quoted field to unquoted, from behind its first quote on, and gives
// the index of what follows it: a comma, a line feed or the end.
func (d *csvDecoder) quoted(p []byte, i int, last bool) (next int, err error) {
	open := i
	for from := i; ; from = i {
		n := bytes.IndexByte(p[i:], '"')
		if n < 0 || i+n+1 == len(p) && !last {
			if !last {
				return 0, errMore
			}
			return 0, &syntaxError{offset: int64(open - 1), reason: "a quote is opened and never closed"}
		}
		d.unquoted = append(d.unquoted, p[from:i+n]...)
		if i += n + 1; i == len(p) || p[i] != '"' {
			break
		}
		d.unquoted = append(d.unquoted, '"')
		i++
	}
	if i < len(p) && p[i] == '\r' && (i+1 == len(p) || p[i+1] == '\n') {
		i++
	}
	if i < len(p) && p[i] != ',' && p[i] != '\n' {
		return 0, &syntaxError{offset: int64(i), reason: "text behind the closing quote of a field"}
	}
	return i, nil
}
