package table

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/parquet-go/parquet-go/format"
)

// parquetColumn is a column of the schema and its place in the row group: the
// rest of its chunk, the rest of the page under way, its dictionary.
type parquetColumn struct {
	name     string
	kind     vectorKind // vectorInt, vectorFloat, vectorBool or vectorText
	physical format.Type
	width    int // bytes of a number
	unsigned bool
	optional bool

	codec   format.CompressionCodec
	src     []byte // pages still to come
	left    int    // rows still to come in them
	pages   int    // begun
	hasDict bool

	rows     int // left of the page
	encoding format.Encoding
	levels   hybrid // which rows have a value, if optional
	plain    []byte // PLAIN: values; DELTA_LENGTH_BYTE_ARRAY: the text
	bit      int    // PLAIN booleans: the next one
	codes    hybrid // dictionary, and RLE booleans
	delta    delta  // DELTA_BINARY_PACKED, and the lengths of DELTA_LENGTH_BYTE_ARRAY

	dictInts    []int64
	dictFloats  []float64
	dictOffsets []int32
	dictData    []byte
	generation  uint32

	unpacked []byte // the page, if it was compressed
	small    []int32
	ints     []int64
	floats   []float64
	valid    []byte
	offsets  []int32
	data     []byte
	coded    []int32
}

// parquetPlainDictionary is what old writers call the encoding of dictionaries and of their codes.
const parquetPlainDictionary format.Encoding = 2

// open places the column at the start of its chunk.
func (c *parquetColumn) open(file []byte, chunk *format.ColumnChunk, rows int) error {
	m := &chunk.MetaData
	c.pages, c.rows, c.left, c.hasDict, c.codec = 0, 0, rows, false, m.Codec
	if chunk.FilePath != "" {
		return errors.New("the data is in another file")
	}
	if m.Type != c.physical {
		return fmt.Errorf("type %s, where the schema says %s", m.Type, c.physical)
	}
	if m.NumValues != int64(rows) {
		return fmt.Errorf("%d values for %d rows", m.NumValues, rows)
	}
	at, n := m.DataPageOffset, m.TotalCompressedSize
	if d := m.DictionaryPageOffset; d > 0 && d < at {
		at = d
	}
	if rows > 0 && (at < 4 || n < 0 || at > int64(len(file)) || n > int64(len(file))-at) {
		return fmt.Errorf("pages of %d bytes at offset %d go beyond the data's %d bytes", n, at, len(file))
	}
	c.src = nil
	if rows > 0 {
		c.src = file[at : at+n]
	}
	return nil
}

// page begins the column's next page.
func (p *parquetReader) page(c *parquetColumn) error {
	if len(c.src) == 0 {
		return fmt.Errorf("the pages end %d rows early", c.left)
	}
	c.pages++
	if p.pages++; p.pages > parquetPagesMax {
		return fmt.Errorf("%w: more than %d pages", ErrLimit, parquetPagesMax)
	}
	var h format.PageHeader
	n, err := decodeThrift(c.src[:min(len(c.src), parquetHeaderBytesMax)], &h)
	if err != nil {
		return fmt.Errorf("header: %w", err)
	}
	c.src = c.src[n:]
	packed, unpacked := int(h.CompressedPageSize), int(h.UncompressedPageSize)
	if packed < 0 || unpacked < 0 || packed > len(c.src) {
		return fmt.Errorf("%d bytes (%d unpacked), where the column has %d left", packed, unpacked, len(c.src))
	}
	if p.decoded += int64(n + unpacked); p.decoded > p.o.Limits.DecodedBytesMax {
		return fmt.Errorf("%w: more than %d bytes after decompression", ErrLimit, p.o.Limits.DecodedBytesMax)
	}
	body := c.src[:packed]
	c.src = c.src[packed:]
	if h.CRC != 0 && uint32(h.CRC) != crc32.ChecksumIEEE(body) {
		return errors.New("the checksum is wrong")
	}
	switch {
	case h.Type == format.DictionaryPage && h.DictionaryPageHeader.Valid:
		return p.dictionary(c, &h.DictionaryPageHeader.V, body, unpacked)
	case h.Type == format.DataPage && h.DataPageHeader.Valid:
		return p.pageV1(c, &h.DataPageHeader.V, body, unpacked)
	case h.Type == format.DataPageV2 && h.DataPageHeaderV2.Valid:
		return p.pageV2(c, &h.DataPageHeaderV2.V, body, unpacked)
	case h.Type == format.IndexPage:
		return nil
	}
	return fmt.Errorf("type %s, or its header is missing", h.Type)
}

// unpack gives a page's content; the column keeps the memory.
func (p *parquetReader) unpack(c *parquetColumn, body []byte, n int) ([]byte, error) {
	if c.codec == format.Uncompressed {
		if n != len(body) {
			return nil, fmt.Errorf("%d bytes, where %d are told", len(body), n)
		}
		return body, nil
	}
	usual := 16 * c.left
	if c.kind == vectorText {
		usual = textUsualMax * c.left
	}
	err := tooGrown(len(body), n, usual)
	if err != nil {
		return nil, err
	}
	if c.unpacked, err = p.o.buffer(c.unpacked, n); err != nil {
		return nil, err
	}
	c.unpacked, err = p.codecs.inflate(c.codec, c.unpacked, body, n)
	return c.unpacked, err
}

func (p *parquetReader) pageV1(c *parquetColumn, h *format.DataPageHeader, body []byte, n int) error {
	body, err := p.unpack(c, body, n)
	if err != nil {
		return err
	}
	var levels []byte
	if c.optional {
		if h.DefinitionLevelEncoding != format.RLE {
			return fmt.Errorf("definition levels encoded %s are not supported", h.DefinitionLevelEncoding)
		}
		if levels, body, err = counted4(body); err != nil {
			return fmt.Errorf("definition levels: %w", err)
		}
	}
	return c.begin(int(h.NumValues), h.Encoding, levels, body)
}

func (p *parquetReader) pageV2(c *parquetColumn, h *format.DataPageHeaderV2, body []byte, n int) error {
	size := int(h.DefinitionLevelsByteLength)
	if h.RepetitionLevelsByteLength != 0 || h.NumRows != h.NumValues {
		return errors.New("repeated values are not supported")
	}
	if size < 0 || size > len(body) || size > n {
		return fmt.Errorf("definition levels of %d bytes in a page of %d bytes", size, len(body))
	}
	levels, body := body[:size], body[size:]
	if !h.IsCompressed.Valid || h.IsCompressed.V {
		var err error
		if body, err = p.unpack(c, body, n-size); err != nil {
			return err
		}
	}
	return c.begin(int(h.NumValues), h.Encoding, levels, body)
}

// counted4 cuts off the part of b whose length stands before it.
func counted4(b []byte) (part, rest []byte, err error) {
	if len(b) < 4 {
		return nil, nil, errShort
	}
	n := uint64(binary.LittleEndian.Uint32(b))
	if n > uint64(len(b)-4) {
		return nil, nil, fmt.Errorf("%d bytes, where %d are left", n, len(b)-4)
	}
	return b[4 : 4+n], b[4+n:], nil
}

// begin places the column at the first value of a data page.
func (c *parquetColumn) begin(rows int, encoding format.Encoding, levels, values []byte) (err error) {
	if rows < 0 || rows > c.left {
		return fmt.Errorf("%d rows, where the row group has %d left", rows, c.left)
	}
	if encoding == parquetPlainDictionary {
		encoding = format.RLEDictionary
	}
	c.levels, _ = newHybrid(levels, 1)
	c.encoding, c.plain, c.bit = encoding, values, 0
	switch text := c.kind == vectorText; {
	case rows == 0:
	case encoding == format.Plain:
	case encoding == format.RLEDictionary && c.kind != vectorBool:
		if !c.hasDict {
			return errors.New("there is no dictionary")
		}
		if len(values) == 0 { // no row has a value
			values = []byte{0}
		}
		c.codes, err = newHybrid(values[1:], int(values[0]))
	case encoding == format.RLE && c.kind == vectorBool:
		if values, _, err = counted4(values); err == nil {
			c.codes, err = newHybrid(values, 1)
		}
	case encoding == format.DeltaBinaryPacked && c.kind == vectorInt:
		c.delta, err = newDelta(values)
	case encoding == format.DeltaLengthByteArray && text:
		err = c.beginLengths(values)
	default:
		return fmt.Errorf("encoding %s of %s is not supported", encoding, c.physical)
	}
	if err != nil {
		return err
	}
	c.rows, c.left = rows, c.left-rows
	return nil
}

// beginLengths finds the text, which begins where the lengths end, by reading them once before.
func (c *parquetColumn) beginLengths(values []byte) (err error) {
	if len(values) == 0 { // no row has a value
		c.delta = delta{}
		return nil
	}
	if c.delta, err = newDelta(values); err != nil {
		return err
	}
	ahead := c.delta
	if ahead.left > c.left {
		return fmt.Errorf("%d lengths of text, where the row group has %d rows left", ahead.left, c.left)
	}
	for ahead.left > 0 {
		c.ints = sized(c.ints, min(ahead.left, 1<<12))
		if err = ahead.next(c.ints); err != nil {
			return fmt.Errorf("lengths of text: %w", err)
		}
	}
	c.plain = ahead.src
	return nil
}

// dictionary reads the column's dictionary page.
func (p *parquetReader) dictionary(c *parquetColumn, h *format.DictionaryPageHeader, body []byte, n int) error {
	if c.hasDict || c.rows != 0 {
		return errors.New("a second dictionary")
	}
	if h.Encoding != format.Plain && h.Encoding != parquetPlainDictionary {
		return fmt.Errorf("dictionary encoded %s", h.Encoding)
	}
	body, err := p.unpack(c, body, n)
	if err != nil {
		return err
	}
	values := int(h.NumValues)
	least := max(c.width, 4) // a text has its length before it
	if values < 0 || values > len(body)/least || c.kind == vectorBool {
		return fmt.Errorf("dictionary of %d values in %d bytes", values, len(body))
	}
	if err := p.o.spend(int64(len(body)) + 8*int64(values)); err != nil {
		return err
	}
	c.hasDict = true
	c.generation++
	switch c.kind {
	case vectorInt:
		c.dictInts = sized(c.dictInts, values)
		widen(c.dictInts, body, c.width, !c.unsigned)
	case vectorFloat:
		c.dictFloats = sized(c.dictFloats, values)
		floats(c.dictFloats, body, c.width)
	default: // new memory: batches share it for as long as the generation stays
		c.dictOffsets, c.dictData, _, err = plainTexts(make([]int32, 0, values+1), make([]byte, 0, len(body)-4*values),
			body, values, p.o.Limits.FieldBytesMax)
		if err == nil {
			var text int
			if text, err = badTexts(c.dictOffsets, c.dictData, nil, p.o.Limits.FieldBytesMax); err != nil {
				err = fmt.Errorf("text %d: %w", text+1, err)
			}
		}
		if err != nil {
			return fmt.Errorf("dictionary: %w", err)
		}
	}
	return nil
}

// plainBytes is how many bytes the first n texts of src have; those that are missing have none.
func plainBytes(src []byte, n int) (sum int) {
	for range n {
		if len(src) < 4 {
			break
		}
		size := uint64(binary.LittleEndian.Uint32(src))
		if src = src[4:]; size > uint64(len(src)) {
			break
		}
		sum, src = sum+int(size), src[size:]
	}
	return sum
}

// plainTexts reads n texts, each with its length before it, into offsets and data.
func plainTexts(offsets []int32, data, src []byte, n, bytesMax int) (o []int32, d, rest []byte, err error) {
	offsets = append(offsets, int32(len(data)))
	for range n {
		if len(src) < 4 {
			return offsets, data, src, errShort
		}
		size := uint64(binary.LittleEndian.Uint32(src))
		if src = src[4:]; size > uint64(len(src)) || uint64(len(data))+size > math.MaxInt32 {
			return offsets, data, src, fmt.Errorf("text of %d bytes, where %d are left", size, len(src))
		}
		if size > uint64(bytesMax) {
			return offsets, data, src, fmt.Errorf("%w: text of %d bytes, at most %d are allowed", ErrLimit, size,
				bytesMax)
		}
		data, src = append(data, src[:size]...), src[size:]
		offsets = append(offsets, int32(len(data)))
	}
	return offsets, data, src, nil
}
