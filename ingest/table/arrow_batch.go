package table

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
)

// arrowField is a column of the schema. A coded one is a dictionary's: kind and
// width are then those of its texts, index and signed those of its codes.
type arrowField struct {
	name       string
	kind       vectorKind // vectorInt, vectorFloat, vectorBool or vectorText
	null       bool       // type Null: no values at all
	width      int        // bytes of a number or of an offset
	signed     bool
	coded      bool
	dictionary int64
	index      int // bytes of a code
}

// arrowColumn is a column of a batch: its buffers, long enough for its rows.
type arrowColumn struct {
	rows   int
	valid  []byte // nil: all valid
	values []byte // numbers, bits, offsets or codes
	data   []byte // of texts
}

// arrowTypes are the names of the format's types, by number.
var arrowTypes = [...]string{"none", "null", "int", "floating point", "binary", "utf8", "bool", "decimal", "date",
	"time", "timestamp", "interval", "list", "struct", "union", "fixed-size binary", "fixed-size list", "map",
	"duration", "large binary", "large utf8", "large list", "run-end encoded", "binary view", "utf8 view",
	"list view", "large list view"}

const (
	arrowNull, arrowInt, arrowFloat, arrowText, arrowBool, arrowLargeText = 1, 2, 3, 5, 6, 20
	arrowDecimal                                                          = 7
)

// schema takes the first message.
func (a *arrowReader) schema(t flatTable) error {
	endian := t.i16(schemaEndian)
	get, n := t.tables(schemaFields)
	switch {
	case t.f.fault != nil:
		return a.fault("%w", t.f.fault)
	case endian != 0:
		return a.fault("big-endian data is not supported")
	case n == 0:
		return a.fault("there is no column")
	case n > a.o.Limits.ColumnsMax:
		return a.fault("%w: %d columns, at most %d are allowed", ErrLimit, n, a.o.Limits.ColumnsMax)
	}
	a.fields = make([]arrowField, n)
	for i := range a.fields {
		field := get(i)
		name := field.text(fieldName)
		err := a.fields[i].read(field)
		if t.f.fault != nil {
			return a.fault("field %d: %w", i+1, t.f.fault)
		}
		if !utf8.ValidString(name) {
			return a.fault("field %d: name %q is not valid UTF-8", i+1, name[:min(len(name), 64)])
		}
		if err != nil {
			return a.fault("column %s: %w", name, err)
		}
		a.fields[i].name = name
	}
	a.vectors = make([]vector, n)
	return nil
}

// read fills in a field's type.
func (f *arrowField) read(t flatTable) error {
	kind, of := t.u8(fieldKind), t.table(fieldType)
	if _, n := t.vector(fieldChildren, 4); n > 0 {
		return errors.New("nested types are not supported")
	}
	switch kind {
	case arrowNull:
		f.kind, f.null = vectorText, true
	case arrowInt:
		f.kind = vectorInt
		f.width, f.signed = intWidth(of)
		if f.width == 0 {
			return fmt.Errorf("integers of %d bits are not supported", of.i32(intBits))
		}
	case arrowFloat:
		f.kind, f.width = vectorFloat, 2<<uint16(of.i16(floatPrecision)) // half, single, double: 0, 1, 2
		if f.width != 4 && f.width != 8 {
			return errors.New("only single and double floats are supported")
		}
	case arrowDecimal:
		bits := of.i32(decimalBits)
		if of.i32(decimalScale) != 0 || bits != 0 && bits != 128 { // 0: not written, 128 is the default
			return errors.New("only decimals of 128 bits without digits after the point are supported: cast to int64")
		}
		f.kind, f.width, f.signed = vectorInt, 16, true
	case arrowBool:
		f.kind = vectorBool
	case arrowText:
		f.kind, f.width = vectorText, 4
	case arrowLargeText:
		f.kind, f.width = vectorText, 8
	default:
		if int(kind) < len(arrowTypes) {
			return fmt.Errorf("type %s is not supported", arrowTypes[kind])
		}
		return fmt.Errorf("type %d is not known", kind)
	}
	d := t.table(fieldDictionary)
	if d.at == 0 {
		return nil
	}
	if f.kind != vectorText || f.null {
		return fmt.Errorf("a dictionary of %s is not supported, only of text", arrowTypes[kind])
	}
	f.coded, f.dictionary, f.index, f.signed = true, d.i64(dictionaryID), 4, true
	if of := d.table(dictionaryIndex); of.at != 0 {
		f.index, f.signed = intWidth(of)
	}
	if f.index == 0 {
		return errors.New("the dictionary's index type is not supported")
	}
	return nil
}

// intWidth is an integer type's bytes, 0 when it is none of 1, 2, 4 and 8.
func intWidth(t flatTable) (bytes int, signed bool) {
	switch n := t.i32(intBits); n {
	case 8, 16, 32, 64:
		bytes = int(n / 8)
	}
	return bytes, t.u8(intSigned) != 0
}

// records takes a record batch and emits it in windows.
func (a *arrowReader) records(t flatTable) error {
	if err := a.load(t, a.fields); err != nil {
		return err
	}
	rows := a.columns[0].rows
	if rows > a.o.Limits.RowsMax-a.rows {
		return a.fault("%w: more than %d rows", ErrLimit, a.o.Limits.RowsMax)
	}
	step := min(rows, batchRows(len(a.fields)))
	if err := a.o.spendGrowth(a.stepMax, step, vectorBytes*len(a.fields)); err != nil {
		return a.fault("%w", err)
	}
	a.stepMax = max(a.stepMax, step)
	for from := 0; from < rows; from += step {
		if err := a.window(from, min(step, rows-from)); err != nil {
			return err
		}
	}
	return nil
}

// batchRows is how many rows of so many columns are handed on at a time: few enough that
// their scratch stays in cache and small, and a multiple of 8, since bitmaps are cut there.
func batchRows(columns int) int {
	return min(1<<15, max(64, (1<<22)/columns&^7))
}

// vectorBytes is what a row of a vector takes of scratch, at most.
const vectorBytes = 24

// load checks the buffers of a batch of the given fields, each for itself and
// against the number of rows, and leaves them in columns.
func (a *arrowReader) load(t flatTable, fields []arrowField) error {
	rows := t.i64(batchLength)
	nodes, n := t.vector(batchNodes, 16)
	buffers, m := t.vector(batchBuffers, 16)
	compression := t.table(batchCompression)
	codec := compression.u8(compressionCodec)
	switch {
	case t.f.fault != nil:
		return a.fault("%w", t.f.fault)
	case rows < 0:
		return a.fault("%d rows", rows)
	case rows > int64(a.o.Limits.RowsMax):
		return a.fault("%w: %d rows, at most %d are allowed", ErrLimit, rows, a.o.Limits.RowsMax)
	case n != len(fields):
		return a.fault("%d columns, where the schema has %d", n, len(fields))
	case compression.at != 0 && codec != arrowZstd:
		return a.fault("bodies compressed with LZ4 are not supported, ZSTD ones are")
	}
	l := arrowBuffers{a: a, list: buffers, left: m, packed: compression.at != 0}
	a.columns = a.columns[:0]
	for i := range fields {
		length := int64(binary.LittleEndian.Uint64(nodes[16*i:]))
		nulls := int64(binary.LittleEndian.Uint64(nodes[16*i+8:]))
		if length != rows || nulls < 0 || nulls > rows {
			return a.fault("column %s: %d rows, %d of them null, in a batch of %d", fields[i].name, length, nulls, rows)
		}
		c, err := l.column(&fields[i], int(rows), int(nulls))
		if err != nil {
			return a.fault("column %s: %w", fields[i].name, err)
		}
		a.columns = append(a.columns, c)
	}
	if l.left != 0 {
		return a.fault("%d buffers too many", l.left)
	}
	return nil
}

// arrowBuffers hands out the buffers of a body in order.
type arrowBuffers struct {
	a      *arrowReader
	list   []byte // the rest of the batch's list: offset and length of each
	left   int
	next   int // number of the next buffer
	sum    int64
	packed bool // each is compressed by itself
}

// column takes the buffers of one column.
func (l *arrowBuffers) column(f *arrowField, rows, nulls int) (c arrowColumn, err error) {
	c.rows = rows
	if f.null {
		return c, nil
	}
	if c.valid, err = l.take("validity bitmap", 0, rows); err != nil {
		return c, err
	}
	if len(c.valid) > 0 || nulls > 0 {
		if len(c.valid) < (rows+7)/8 {
			return c, fmt.Errorf("validity bitmap of %d bytes for %d rows", len(c.valid), rows)
		}
		if set := ones(c.valid, rows); set != rows-nulls {
			return c, fmt.Errorf("validity bitmap has %d nulls, the batch's head says %d", rows-set, nulls)
		}
	}
	if nulls == 0 {
		c.valid = nil
	}
	switch {
	case f.coded:
		c.values, err = l.take("index buffer", rows*f.index, 2*rows*f.index)
	case f.kind == vectorBool:
		c.values, err = l.take("bits", (rows+7)/8, rows)
	case f.kind == vectorText:
		need := (rows + 1) * f.width
		if rows == 0 { // the format lets writers leave out the only offset
			need = 0
		}
		if c.values, err = l.take("offsets", need, 2*need); err == nil {
			c.data, err = l.take("data", 0, textUsualMax*rows)
		}
		if len(c.data) > math.MaxInt32 {
			return c, fmt.Errorf("%w: text of %d bytes in one batch", ErrLimit, len(c.data))
		}
	default:
		c.values, err = l.take("values", rows*f.width, 2*rows*f.width)
	}
	return c, err
}

// take gives the next buffer, which must have least bytes or more, and usually has no more than so many.
func (l *arrowBuffers) take(what string, least, usual int) ([]byte, error) {
	if l.left == 0 {
		return nil, fmt.Errorf("%s: the batch has no more buffers", what)
	}
	at := int64(binary.LittleEndian.Uint64(l.list))
	n := int64(binary.LittleEndian.Uint64(l.list[8:]))
	l.list, l.left, l.next = l.list[16:], l.left-1, l.next+1
	body := l.a.body
	if at < 0 || n < 0 || n > int64(len(body)) || at > int64(len(body))-n {
		return nil, fmt.Errorf("%s: %d bytes at offset %d go beyond the body's %d bytes", what, n, at, len(body))
	}
	if l.sum += n; l.sum > int64(len(body)) { // else a body would count once for each column
		return nil, fmt.Errorf("%s: it shares its %d bytes with other buffers, which is not supported", what, n)
	}
	b := body[at : at+n]
	if l.packed && n > 0 {
		var err error
		if b, err = l.a.unpack(l.next-1, b, usual); err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
	}
	if len(b) < least {
		return nil, fmt.Errorf("%s: %d bytes, where the rows need %d", what, len(b), least)
	}
	return b, nil
}

// unpack gives the content of a compressed buffer, which usually has no more than so many bytes: its length, −1 for
// plain bytes, stands before it.
func (a *arrowReader) unpack(buffer int, b []byte, usual int) ([]byte, error) {
	if len(b) < 8 {
		return nil, fmt.Errorf("compressed buffer of %d bytes", len(b))
	}
	n := int64(binary.LittleEndian.Uint64(b))
	b = b[8:]
	if n == -1 {
		return b, nil
	}
	if n < 0 {
		return nil, fmt.Errorf("decompressed length %d", n)
	}
	if err := a.spend(n); err != nil {
		return nil, err
	}
	if a.zstd == nil {
		a.zstd = zstdPool.Get().(*zstd.Decoder)
	}
	for len(a.unpacked) <= buffer {
		a.unpacked = append(a.unpacked, nil)
	}
	err := tooGrown(len(b), int(n), usual)
	if err != nil {
		return nil, err
	}
	if a.unpacked[buffer], err = a.o.buffer(a.unpacked[buffer], int(n)); err != nil {
		return nil, err
	}
	a.unpacked[buffer], err = inflateZstd(a.zstd, a.unpacked[buffer], b, int(n))
	return a.unpacked[buffer], err
}

// ones counts the bits set among the first n.
func ones(b []byte, n int) (set int) {
	for ; n >= 64; n, b = n-64, b[8:] {
		set += bits.OnesCount64(binary.LittleEndian.Uint64(b))
	}
	for i := range n {
		set += int(b[i>>3] >> (i & 7) & 1)
	}
	return set
}
