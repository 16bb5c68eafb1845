package table

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
)

// Bounds on an Arrow stream that are not for the user to set.
const (
	arrowMetadataBytesMax = 4 << 20 // of one message
	arrowMessagesMax      = 1 << 20
)

// Slots of the flatbuffer tables of the Arrow format (Message.fbs, Schema.fbs).
const (
	messageVersion, messageKind, messageTable, messageBody = 0, 1, 2, 3

	schemaEndian, schemaFields                                            = 0, 1
	fieldName, fieldKind, fieldType, fieldDictionary, fieldChildren       = 0, 2, 3, 4, 5
	dictionaryID, dictionaryIndex                                         = 0, 1
	intBits, intSigned, floatPrecision                                    = 0, 1, 0
	decimalScale, decimalBits                                             = 1, 2
	batchLength, batchNodes, batchBuffers, batchCompression               = 0, 1, 2, 3
	compressionCodec, dictionaryBatchID, dictionaryData, isDelta          = 0, 0, 1, 2
	arrowVersion4, arrowVersion5                                          = 3, 4
	messageSchema, messageDictionary, messageRecords                      = 1, 2, 3
	arrowZstd                                                       uint8 = 1
)

// arrowReader decodes one IPC stream. The bytes come from anywhere: nothing is
// believed before it is checked, and memory grows with what has arrived, never
// with what a length claims.
type arrowReader struct {
	r    io.Reader
	o    *Options
	emit batchFunc

	where    string // the message under way, for errors
	fields   []arrowField
	texts    map[int64]arrowTexts // dictionaries by id
	rows     int                  // emitted so far
	stepMax  int                  // rows of the longest window so far
	decoded  int64                // bytes of metadata and bodies, unpacked, so far
	rebuilt  int                  // texts of dictionaries that grew, counted again each time they did
	zstd     *zstd.Decoder        // nil until a body is compressed
	metadata []byte
	body     []byte
	unpacked [][]byte // by buffer, of the batch under way
	columns  []arrowColumn
	vectors  []vector
	none     []byte  // a bitmap of nulls only
	wide     []int64 // scratch: dictionary indices before they are checked
}

// arrowTexts is a dictionary. What it holds is never changed in place, only
// appended to or replaced, so that vectors may share it.
type arrowTexts struct {
	offsets    []int32
	data       []byte
	generation uint32
}

// decodeArrow reads an Arrow IPC stream and hands its rows on in batches; a
// stream without rows gives one empty batch, for its columns. Errors begin with
// "arrow:" and the place; an error of emit comes back as it is.
//
// Flat columns only: integers, Float32 and Float64, Bool, Utf8, LargeUtf8, Null,
// and dictionaries of text; little endian; bodies plain or ZSTD.
func decodeArrow(r io.Reader, o *Options, emit batchFunc) error {
	a := &arrowReader{r: r, o: o, emit: emit, texts: map[int64]arrowTexts{}}
	a.body = takeBody()
	defer a.close()
	if err := o.spend(int64(cap(a.body))); err != nil {
		return err
	}
	var records, dictionaries int
	for messages := 1; ; messages++ {
		a.where = fmt.Sprintf("message %d", messages)
		if messages > arrowMessagesMax {
			return a.fault("%w: more than %d messages", ErrLimit, arrowMessagesMax)
		}
		kind, t, err := a.message()
		if err == io.EOF {
			break
		}
		if err != nil {
			return a.fault("%w", err)
		}
		if (kind == messageSchema) != (messages == 1) {
			return a.fault("the schema must come first, and once")
		}
		switch kind {
		case messageSchema:
			a.where = "schema"
			err = a.schema(t)
		case messageDictionary:
			dictionaries++
			a.where = fmt.Sprintf("dictionary batch %d", dictionaries)
			err = a.dictionary(t)
		case messageRecords:
			records++
			a.where = fmt.Sprintf("record batch %d", records)
			err = a.records(t)
		default:
			err = a.fault("kind %d is neither schema, dictionary batch nor record batch", kind)
		}
		if err != nil {
			return err
		}
	}
	if a.fields == nil {
		return errors.New("arrow: the stream holds no schema")
	}
	if a.rows == 0 {
		return a.window(0, 0)
	}
	return nil
}

// close gives back what comes from pools.
func (a *arrowReader) close() {
	if a.zstd != nil {
		closeZstd(a.zstd)
	}
	keepBody(a.body)
}

// fault makes an error that names the message under way.
func (a *arrowReader) fault(format string, args ...any) error {
	return fmt.Errorf("arrow: "+a.where+": "+format, args...)
}

// message reads the next message with its body; io.EOF tells the end of the stream.
func (a *arrowReader) message() (kind uint8, t flatTable, err error) {
	var head [8]byte
	if n, err := io.ReadFull(a.r, head[:]); err == io.EOF {
		return 0, t, io.EOF
	} else if err == io.ErrUnexpectedEOF {
		return 0, t, fmt.Errorf("the stream ends within a message's length (%d of 8 bytes)", n)
	} else if err != nil {
		return 0, t, err
	}
	if binary.LittleEndian.Uint32(head[:]) != 0xffffffff {
		return 0, t, fmt.Errorf("no Arrow IPC stream: the continuation marker ff ff ff ff is expected, not % x",
			head[:4])
	}
	length := int(int32(binary.LittleEndian.Uint32(head[4:])))
	if length == 0 {
		return 0, t, a.end()
	}
	if length < 0 || length > arrowMetadataBytesMax {
		return 0, t, fmt.Errorf("metadata of %d bytes, at most %d are allowed", length, arrowMetadataBytesMax)
	}
	if a.metadata, err = a.read(a.metadata, int64(length)); err != nil {
		return 0, t, fmt.Errorf("metadata: %w", err)
	}
	f := &flat{buf: a.metadata}
	m := f.root()
	version, kind, body := m.i16(messageVersion), m.u8(messageKind), m.i64(messageBody)
	t = m.table(messageTable)
	if f.fault != nil {
		return 0, t, f.fault
	}
	if version != arrowVersion4 && version != arrowVersion5 {
		return 0, t, fmt.Errorf("metadata version %d is not supported, V4 and V5 are", version+1)
	}
	if body < 0 {
		return 0, t, fmt.Errorf("body of %d bytes", body)
	}
	if a.body, err = a.read(a.body, body); err != nil {
		return 0, t, fmt.Errorf("body: %w", err)
	}
	return kind, t, nil
}

// end checks that nothing follows the end-of-stream marker.
func (a *arrowReader) end() error {
	var b [1]byte
	_, err := io.ReadFull(a.r, b[:])
	if err == nil {
		return errors.New("bytes follow the end of the stream")
	}
	return err
}

// spend counts decoded bytes against the limit.
func (a *arrowReader) spend(n int64) error {
	if a.decoded += n; a.decoded > a.o.Limits.DecodedBytesMax {
		return fmt.Errorf("%w: more than %d bytes after decompression", ErrLimit, a.o.Limits.DecodedBytesMax)
	}
	return nil
}

// read reads n bytes into buf.
func (a *arrowReader) read(buf []byte, n int64) ([]byte, error) {
	if n > a.o.Limits.DecodedBytesMax {
		return buf, fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrLimit, n, a.o.Limits.DecodedBytesMax)
	}
	if err := a.spend(n); err != nil {
		return buf, err
	}
	buf, err := a.o.buffer(buf, int(n))
	if err != nil {
		return buf, err
	}
	buf, err = readGrowing(a.r, buf[:0], int(n), nil)
	if err == io.EOF {
		err = fmt.Errorf("the stream ends after %d of %d bytes", len(buf), n)
	}
	return buf, err
}

// readGrowing appends n bytes of r to buf, which grows with what arrives. io.EOF
// means that there were fewer. Where the memory is not paid for yet, o is asked for it.
func readGrowing(r io.Reader, buf []byte, n int, o *Options) ([]byte, error) {
	for end := len(buf) + n; len(buf) < end; {
		step := min(end-len(buf), max(len(buf), cap(buf)-len(buf), 64<<10))
		if had := cap(buf); o != nil && had-len(buf) < step {
			if err := o.spend(int64(len(buf) + step)); err != nil { // beside what there is, until that is copied
				return buf, err
			}
			buf = append(make([]byte, 0, len(buf)+step), buf...)
			if err := o.spend(-int64(had)); err != nil {
				return buf, err
			}
		}
		buf = slices.Grow(buf, step)
		got, err := io.ReadFull(r, buf[len(buf):len(buf)+step])
		buf = buf[:len(buf)+got]
		if err == io.ErrUnexpectedEOF {
			err = io.EOF
		}
		if err != nil {
			return buf, err
		}
	}
	return buf, nil
}

// dictionary takes a dictionary batch: a new dictionary, another in place of one, or more texts for one.
func (a *arrowReader) dictionary(t flatTable) error {
	id, delta, batch := t.i64(dictionaryBatchID), t.u8(isDelta) != 0, t.table(dictionaryData)
	if t.f.fault != nil {
		return a.fault("%w", t.f.fault)
	}
	at := slices.IndexFunc(a.fields, func(f arrowField) bool { return f.coded && f.dictionary == id })
	if at < 0 {
		return a.fault("no column has dictionary %d", id)
	}
	field := a.fields[at]
	field.coded = false // its texts as such
	if err := a.load(batch, []arrowField{field}); err != nil {
		return err
	}
	c := &a.columns[0]
	if c.valid != nil {
		return a.fault("dictionary %d has null among its texts, which is not supported", id)
	}
	old := a.texts[id]
	if !delta {
		old = arrowTexts{generation: old.generation}
	}
	grown := arrowTexts{offsets: old.offsets, data: old.data, generation: old.generation + 1}
	if len(grown.offsets) == 0 {
		grown.offsets = append(grown.offsets, 0)
	}
	known := len(grown.offsets) - 1
	if err := a.o.spend(2 * (int64(len(c.data)) + 8*int64(c.rows+1))); err != nil {
		return a.fault("%w", err)
	}
	offsets := make([]int32, c.rows+1)
	if c.rows > 0 && (narrow(offsets, c.values, field.width, len(c.data)) >= 0 || falls(offsets) >= 0) {
		return a.fault("dictionary %d: offsets go down or beyond the data's %d bytes", id, len(c.data))
	}
	if row, reason := badTexts(offsets, c.data, nil, a.o.Limits.FieldBytesMax); reason != nil {
		return a.fault("dictionary %d, text %d: %w", id, known+row+1, reason)
	}
	if a.rebuilt += known; a.rebuilt > 4*a.o.Limits.RowsMax || len(grown.data)+len(c.data) > 1<<31-1 {
		return a.fault("%w: dictionary %d grows too long or too often", ErrLimit, id)
	}
	shift := int32(len(grown.data)) - offsets[0]
	for _, o := range offsets[1:] {
		grown.offsets = append(grown.offsets, o+shift)
	}
	grown.data = append(grown.data, c.data[offsets[0]:offsets[c.rows]]...)
	a.texts[id] = grown
	return nil
}

// badTexts checks that the texts of all valid rows are UTF-8 of at most bytesMax
// bytes; offsets are known to be in order and within data. Texts that are all
// fine, null rows included, are checked as one.
func badTexts(offsets []int32, data, valid []byte, bytesMax int) (row int, reason error) {
	n := len(offsets) - 1
	all := data[offsets[0]:offsets[n]]
	fine := utf8.Valid(all)
	for i, o := range offsets[:n] {
		fine = fine && int(offsets[i+1]-o) <= bytesMax && (offsets[i+1] == o || utf8.RuneStart(data[o]))
	}
	if fine {
		return 0, nil
	}
	for i := range n {
		if valid != nil && valid[i>>3]>>(i&7)&1 == 0 {
			continue
		}
		switch v := data[offsets[i]:offsets[i+1]]; {
		case len(v) > bytesMax:
			return i, fmt.Errorf("%w: text of %d bytes, at most %d are allowed", ErrLimit, len(v), bytesMax)
		case !utf8.Valid(v):
			return i, fmt.Errorf("text %q is not valid UTF-8", v[:min(len(v), 64)])
		}
	}
	return 0, nil
}
