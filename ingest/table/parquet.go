package table

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"
)

// parquetReader decodes one Parquet file. The library decodes what is in Thrift;
// pages are unpacked and read here, because its page readers allocate what a run
// of five bytes claims (up to 8 GiB) and decode through unsafe code.
type parquetReader struct {
	src     []byte
	o       *Options
	emit    batchFunc
	meta    format.FileMetaData
	columns []parquetColumn
	vectors []vector
	codecs  codecs
	pages   int
	decoded int64 // bytes of pages, headers and unpacked, so far
	rows    int   // emitted so far
	stepMax int   // rows of the longest batch so far
}

// decodeParquet reads a Parquet file and hands its rows on in batches; a file
// without rows gives one empty batch, for its columns. src is the whole file and
// is not changed. Errors begin with "parquet:" and the place; an error of emit
// comes back as it is.
//
// Flat columns only: INT32, INT64 (signed or unsigned), FLOAT, DOUBLE, BOOLEAN,
// BYTE_ARRAY; required or optional; encoded PLAIN, by dictionary, RLE,
// DELTA_BINARY_PACKED or DELTA_LENGTH_BYTE_ARRAY; uncompressed, snappy, gzip or zstd.
func decodeParquet(src []byte, o *Options, emit batchFunc) error {
	p := &parquetReader{src: src, o: o, emit: emit}
	defer p.codecs.close()
	if err := p.footer(); err != nil {
		return fmt.Errorf("parquet: footer: %w", err)
	}
	if err := p.schema(); err != nil {
		return fmt.Errorf("parquet: schema: %w", err)
	}
	for i := range p.meta.RowGroups {
		if err := p.rowGroup(i); err != nil {
			return err
		}
	}
	if p.rows == 0 {
		return p.batch(0, 0)
	}
	return nil
}

// footer checks the frame of the file and decodes its metadata.
func (p *parquetReader) footer() error {
	n := len(p.src)
	if n < 12 || !bytes.Equal(p.src[:4], magicParquet) {
		return fmt.Errorf("no Parquet file: it must begin and end with %s", magicParquet)
	}
	switch string(p.src[n-4:]) {
	case "PAR1":
	case "PARE":
		return errors.New("the file is encrypted, which is not supported")
	default:
		return fmt.Errorf("the file must end with %s; is it cut short?", magicParquet)
	}
	size := int64(binary.LittleEndian.Uint32(p.src[n-8:]))
	if size > int64(n-12) {
		return fmt.Errorf("%d bytes, more than the file of %d bytes has room for", size, n)
	}
	if size > parquetFooterBytesMax {
		return fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrLimit, size, parquetFooterBytesMax)
	}
	if err := p.o.spend(thriftBytes * size); err != nil {
		return err
	}
	end := n - 8
	used, err := decodeThrift(p.src[end-int(size):end], &p.meta)
	if err == nil && used != int(size) {
		err = fmt.Errorf("%d bytes, of which %d are metadata (signed files are not supported)", size, used)
	}
	p.src = p.src[:end-int(size)]
	return err
}

// schema checks that the file is a flat table and makes its columns.
func (p *parquetReader) schema() error {
	elements := p.meta.Schema
	if len(elements) < 2 {
		return errors.New("there is no column")
	}
	columns := elements[1:]
	if len(columns) > p.o.Limits.ColumnsMax {
		return fmt.Errorf("%w: %d columns, at most %d are allowed", ErrLimit, len(columns), p.o.Limits.ColumnsMax)
	}
	p.columns, p.vectors = make([]parquetColumn, len(columns)), make([]vector, len(columns))
	for i := range columns {
		if !utf8.ValidString(columns[i].Name) {
			return fmt.Errorf("column %d: name %q is not valid UTF-8", i+1,
				columns[i].Name[:min(64, len(columns[i].Name))])
		}
		if err := p.columns[i].read(&columns[i]); err != nil {
			return fmt.Errorf("column %s: %w", columns[i].Name, err)
		}
	}
	if n := elements[0].NumChildren.V; int(n) != len(columns) {
		return fmt.Errorf("the root has %d columns, %d follow", n, len(columns))
	}
	rows := int64(0)
	for i := range p.meta.RowGroups {
		g := &p.meta.RowGroups[i]
		if g.NumRows < 0 || len(g.Columns) != len(columns) {
			return fmt.Errorf("row group %d has %d rows and %d columns, the schema has %d columns", i+1, g.NumRows,
				len(g.Columns), len(columns))
		}
		if g.NumRows > int64(p.o.Limits.RowsMax)-rows {
			return fmt.Errorf("%w: more than %d rows", ErrLimit, p.o.Limits.RowsMax)
		}
		rows += g.NumRows
	}
	if rows != p.meta.NumRows {
		return fmt.Errorf("the row groups have %d rows, the file should have %d", rows, p.meta.NumRows)
	}
	return nil
}

// read fills in a column's type.
func (c *parquetColumn) read(e *format.SchemaElement) error {
	c.name, c.physical = e.Name, e.Type.V
	if !e.Type.Valid || e.NumChildren.V != 0 {
		return errors.New("nested types are not supported")
	}
	switch e.RepetitionType.V {
	case format.Required:
	case format.Optional:
		c.optional = true
	default:
		return errors.New("repeated values are not supported")
	}
	switch c.physical {
	case format.Boolean:
		c.kind = vectorBool
	case format.Int32, format.Int64:
		c.kind = vectorInt
		c.width = 4 << (c.physical - format.Int32)
	case format.Float, format.Double:
		c.kind = vectorFloat
		c.width = 4 << (c.physical - format.Float)
	case format.ByteArray:
		c.kind = vectorText
	default:
		return fmt.Errorf("type %s is not supported", c.physical)
	}
	return c.logical(e)
}

// logical takes the annotation of a type: what is not a number, a boolean or text to a user is refused.
func (c *parquetColumn) logical(e *format.SchemaElement) error {
	switch l := e.LogicalType.Value.(type) {
	case nil:
	case *format.StringType, *format.EnumType, *format.JsonType, *format.NullType:
		return nil
	case *format.IntType:
		c.unsigned = !l.IsSigned
		return nil
	case *format.DecimalType:
		return c.decimal(l.Scale)
	default:
		return fmt.Errorf("type %s is not supported", l)
	}
	if !e.ConvertedType.Valid {
		return nil
	}
	switch t := e.ConvertedType.V; t {
	case deprecated.UTF8, deprecated.Enum, deprecated.Json, deprecated.Int8, deprecated.Int16, deprecated.Int32,
		deprecated.Int64:
	case deprecated.Uint8, deprecated.Uint16, deprecated.Uint32, deprecated.Uint64:
		c.unsigned = true
	case deprecated.Decimal:
		return c.decimal(e.Scale.V)
	default:
		return fmt.Errorf("converted type %d is not supported", t)
	}
	return nil
}

// decimal takes a DECIMAL without digits after the point, stored as an integer: it is one.
func (c *parquetColumn) decimal(scale int32) error {
	if c.kind != vectorInt || scale != 0 {
		return fmt.Errorf("a DECIMAL with %d digits after the point in %s is not supported: cast it to BIGINT", scale,
			c.physical)
	}
	return nil
}

// rowGroup emits the rows of a row group: as many at a time as all columns have in their pages.
func (p *parquetReader) rowGroup(group int) error {
	g := &p.meta.RowGroups[group]
	for i := range p.columns {
		if err := p.columns[i].open(p.src, &g.Columns[i], int(g.NumRows)); err != nil {
			return p.fault(group, i, err)
		}
	}
	step := min(int(g.NumRows), batchRows(len(p.columns)))
	if err := p.o.spendGrowth(p.stepMax, step, vectorBytes*len(p.columns)); err != nil {
		return fmt.Errorf("parquet: row group %d: %w", group+1, err)
	}
	p.stepMax = max(p.stepMax, step)
	for left := int(g.NumRows); left > 0; {
		n := min(left, batchRows(len(p.columns)))
		for i := range p.columns {
			c := &p.columns[i]
			for c.rows == 0 {
				if err := p.page(c); err != nil {
					return p.fault(group, i, err)
				}
			}
			n = min(n, c.rows)
		}
		if err := p.batch(group, n); err != nil {
			return err
		}
		left -= n
	}
	return nil
}

// batch emits the next n rows.
func (p *parquetReader) batch(group, n int) error {
	for i := range p.columns {
		if err := p.columns[i].fill(&p.vectors[i], n, p.o, p.rows); err != nil {
			return p.fault(group, i, err)
		}
	}
	if err := p.emit(n, p.vectors); err != nil {
		return err
	}
	p.rows += n
	return nil
}

func (p *parquetReader) fault(group, column int, err error) error {
	c := &p.columns[column]
	if c.pages > 0 {
		return fmt.Errorf("parquet: row group %d, column %s, page %d: %w", group+1, c.name, c.pages, err)
	}
	return fmt.Errorf("parquet: row group %d, column %s: %w", group+1, c.name, err)
}
