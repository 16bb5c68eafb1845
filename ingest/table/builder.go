package table

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/stintd/stint/core/cluster"
)

// builder takes the values of one input, from whatever decoder, checks them
// against the table's schema and keeps them as columns. Faults of rows are
// collected to the end; a fault of structure ends the decoding with errStop.
type builder struct {
	options *Options
	limits  Limits
	paid    int64 // bytes of memory that were asked for
	paidFor int   // rows that they are enough for
	apart   bool  // texts are taken and paid for by another builder
	faults  cluster.Faults
	columns []*column // of the schema, then attributes in order of appearance
	byName  map[string]*column
	fixed   int  // how many columns the schema has
	open    bool // further columns are attributes (hosts)
	rows    int  // rows taken
	stamp   int  // counts rows or batches, for column.seen
}

// errStop ends the decoding; why is in the builder's faults.
var errStop = errors.New("stopped at a fault")

// add puts a column into the schema.
func (b *builder) add(c column) *column {
	p := &c
	p.key = `"` + p.name + `":`
	if p.kind == kindText || p.kind == kindAttribute || p.kind == kindAttributeText {
		if p.names == nil {
			p.names = new(cluster.Names)
		}
		p.names.Reset()
	}
	p.code, p.ints, p.bools, p.states = p.code[:0], p.ints[:0], p.bools[:0], p.states[:0]
	b.columns = append(b.columns, p)
	b.byName[p.name] = p
	return p
}

// read decodes an input into the builder's columns. label names the input in messages when the options do not.
func (b *builder) read(r io.Reader, o Options, label string) error {
	o = o.resolve()
	if o.Name == "" {
		o.Name = label
	}
	b.limits, b.fixed, b.faults.Table = o.Limits, len(b.columns), o.Name
	b.options = &o
	s := source{check: func() error { return b.pay(b.rows) }}
	err := s.open(r, &o)
	defer s.close()
	if err == nil {
		err = b.decode(&s, &o)
	}
	var at *syntaxError
	switch {
	case err == nil || errors.Is(err, errStop):
	case s.raw.err != nil || errors.Is(err, ErrLimit) || errors.As(err, new(*refusal)):
		return fmt.Errorf("%s: %w", o.Name, err)
	case errors.As(err, &at):
		b.faults.Add(at.row, "", "", at.Error())
	default:
		b.faults.Add(0, "", "", err.Error())
	}
	for _, c := range b.columns {
		if c.given {
			c.pad(b.rows)
		}
	}
	return b.faults.Err()
}

func (b *builder) decode(s *source, o *Options) error {
	f, err := o.formatOf(s.window.rest())
	if err != nil {
		return err
	}
	switch f {
	case CSV:
		return b.decodeCSV(&s.window)
	case NDJSON:
		return b.decodeNDJSON(&s.window)
	case JSON:
		return b.decodeJSON(&s.window)
	case Parquet:
		src := takeBody()
		defer func() { keepBody(src) }()
		if err := o.spend(int64(cap(src))); err != nil {
			return err
		}
		src, err := readGrowing(s.stream(), src, math.MaxInt, o)
		if err != io.EOF {
			return err
		}
		return decodeParquet(src, o, b.batch)
	}
	return decodeArrow(s.stream(), o, b.batch)
}

// syntaxError is a fault that leaves the rest of a text unreadable.
type syntaxError struct {
	row    int   // from 1, 0: outside of rows
	offset int64 // in the decoded input, or, within a lexer, in its text
	reason string
}

// Error gives the reason and the offset.
func (e *syntaxError) Error() string {
	return e.reason + ", at byte offset " + strconv.FormatInt(e.offset, 10)
}

// head takes the name of a column that the input has. It gives nil for an
// unknown one, having noted the fault; of row 0 for the table as a whole.
func (b *builder) head(row int, name []byte) (*column, error) {
	if c := b.byName[string(name)]; c != nil {
		return c, nil
	}
	if !b.open {
		b.faults.Add(row, string(name[:min(len(name), faultBytesMax)]), "", "unknown column")
		return nil, nil
	}
	reason := badName(name, cluster.NameBytesMax)
	if len(name) == 0 {
		reason = "a column without a name"
	}
	for _, c := range b.columns {
		if b.byName[c.name] == c && strings.EqualFold(c.name, string(name)) {
			reason = "differs from the column " + c.name + " in its letters' case only: use that name"
		}
	}
	if reason != "" {
		b.faults.Add(row, "", string(name[:min(len(name), faultBytesMax)]), "column name: "+reason)
		return nil, nil
	}
	if len(b.columns) >= b.limits.ColumnsMax {
		return nil, b.tooManyColumns()
	}
	return b.add(column{name: string(name), kind: kindAttribute}), nil
}

func (b *builder) tooManyColumns() error {
	return fmt.Errorf("%w: more than %d columns", ErrLimit, b.limits.ColumnsMax)
}

// requireColumns notes the required columns that the input does not have at all.
func (b *builder) requireColumns() error {
	missing := false
	for _, c := range b.columns {
		if c.required && !c.given {
			b.faults.Add(0, c.name, "", "required column is missing")
			missing = true
		}
	}
	if missing {
		return errStop
	}
	return nil
}

// room checks the limits before n more rows are taken.
func (b *builder) room(n int) error {
	if n > b.limits.RowsMax-b.rows {
		return fmt.Errorf("%w: more than %d rows", ErrLimit, b.limits.RowsMax)
	}
	if attributes := len(b.columns) - b.fixed; attributes > 0 && b.rows+n > attributeCellsMax/attributes {
		return fmt.Errorf("%w: more than %d values of attributes", ErrLimit, attributeCellsMax)
	}
	if b.rows+n > b.paidFor {
		b.paidFor = b.rows + n + min(b.rows/4, payRows)
		return b.pay(b.paidFor)
	}
	return nil
}

// payRows is for how many rows ahead memory is asked for at most.
const payRows = 1 << 16

// pay asks for the memory of so many rows, as far as it was not asked for yet: that of the values, which columns of the
// table reserve by half as much again when they grow, and that of the distinct texts.
func (b *builder) pay(rows int) error {
	need := int64(0)
	for _, c := range b.columns {
		if c.given {
			need += int64(rows) * cellBytes[c.kind] * 3 / 2
		}
		if c.names != nil && !b.apart {
			need += int64(c.names.Size())
		}
	}
	more := max(0, need-b.paid)
	b.paid += more
	return b.options.spend(more)
}

// cellBytes is the memory of a value by the kind of its column; attributes are converted in the end.
var cellBytes = [...]int64{
	kindText: 4, kindCount: 8, kindFlag: 2, kindState: 1,
	kindAttribute: 16, kindAttributeText: 8, kindAttributeNumber: 10, kindAttributeBool: 3,
}

// take turns to a new row and gives its index; from then on columns with the new stamp stand in it.
func (b *builder) take() (row int, err error) {
	if err = b.room(1); err != nil {
		return 0, err
	}
	b.stamp++
	b.rows++
	return b.rows - 1, nil
}

// cells gives a row of named values, as the JSON formats have it, to the columns.
func (b *builder) cells(cells []cell) error {
	row, err := b.take()
	if err != nil {
		return err
	}
	for i := range cells {
		x := &cells[i]
		c := x.column
		if c == nil {
			if c, err = b.head(row+1, x.key); err != nil {
				return err
			} else if c == nil {
				continue
			}
		}
		if c.seen == b.stamp {
			b.faults.Add(row+1, c.name, "", "stands in the row twice")
			continue
		}
		c.seen, c.given = b.stamp, true
		b.value(c, row, x.kind, x.raw)
	}
	for _, c := range b.columns[:b.fixed] {
		if c.required && c.seen != b.stamp {
			b.reject(c, row, nil, "is missing")
		}
	}
	return nil
}

// value takes a JSON value.
func (b *builder) value(c *column, row int, k valueKind, v []byte) {
	expected := ""
	switch {
	case c.kind == kindCount && k == valueNumber:
		b.digits(c, row, v)
		return
	case c.kind == kindText && k == valueString:
		b.text(c, row, v)
		return
	case k == valueNull:
		b.null(c, row)
		return
	case c.kind == kindCount:
		expected = notCount[c.min]
	case c.kind == kindFlag && k != valueBool:
		expected = "neither true nor false"
	case c.kind == kindText, c.kind == kindState && k != valueString:
		expected = "not a text"
	}
	if expected != "" {
		b.reject(c, row, v, expected)
		return
	}
	b.cell(c, row, v)
}
