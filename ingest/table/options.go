package table

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path"
	"strings"
)

// Format is how a table is written down.
type Format uint8

// The formats of SPEC chapter 7. Auto is told from the ending of the name, else from the content.
const (
	Auto Format = iota
	CSV
	NDJSON
	JSON  // an array of row objects, or an object of columns
	Arrow // IPC stream
	Parquet
)

var formatNames = [...]string{"auto", "csv", "ndjson", "json", "arrow", "parquet"}

// String is the format's name, as ParseFormat takes it.
func (f Format) String() string { return formatNames[f] }

// ParseFormat gives the format of a name: auto, csv, ndjson, json, arrow or parquet.
func ParseFormat(name string) (Format, error) {
	for f, n := range formatNames {
		if n == name {
			return Format(f), nil
		}
	}
	return Auto, fmt.Errorf("unknown format %q: expected one of %s", name, strings.Join(formatNames[:], ", "))
}

// Compression is how the bytes of a table are packed.
type Compression uint8

// The compressions of SPEC chapter 7. AutoCompression is told from the ending of
// the name, else from the content.
const (
	AutoCompression Compression = iota
	Plain
	Gzip
	Zstd
)

var compressionNames = [...]string{"auto", "plain", "gzip", "zstd"}

// String is the compression's name.
func (c Compression) String() string { return compressionNames[c] }

// Limits bound what one input may cost. A zero field means the default.
type Limits struct {
	BytesMax        int64 // bytes as they arrive
	DecodedBytesMax int64 // bytes after decompression
	RowsMax         int
	ColumnsMax      int // columns of the input, attributes included
	FieldBytesMax   int // bytes of one attribute's value; names have limits of their own
}

// DefaultLimits are the limits of an input for which none are set.
var DefaultLimits = Limits{
	BytesMax:        1 << 30,
	DecodedBytesMax: 4 << 30,
	RowsMax:         20_000_000,
	ColumnsMax:      1_000,
	FieldBytesMax:   1 << 20,
}

func (l Limits) withDefaults() Limits {
	return Limits{
		BytesMax:        cmp.Or(l.BytesMax, DefaultLimits.BytesMax),
		DecodedBytesMax: cmp.Or(l.DecodedBytesMax, DefaultLimits.DecodedBytesMax),
		RowsMax:         cmp.Or(l.RowsMax, DefaultLimits.RowsMax),
		ColumnsMax:      cmp.Or(l.ColumnsMax, DefaultLimits.ColumnsMax),
		FieldBytesMax:   cmp.Or(l.FieldBytesMax, DefaultLimits.FieldBytesMax),
	}
}

// Limits that are not for the user to set.
const (
	rowBytesMax       = 16 << 20 // one row of text: it must be in memory whole
	attributeCellsMax = 8 << 20  // rows × attributes: short rows must not make long columns for nothing
)

// ErrLimit is in the chain of every error that a limit caused, so that a
// service can answer "too large" rather than "malformed".
var ErrLimit = errors.New("over a limit")

// Options say what an input is and what it may cost.
type Options struct {
	Name        string // for messages; its ending also tells format and compression
	Format      Format
	Compression Compression
	Dimensions  []string // the policy's, in its order: a column each in hosts and demand
	Limits      Limits

	// Spend, when set, is asked before so many bytes of memory are taken for what is decoded; they are negative when
	// memory is given back, and 0 every so often, so that decoding may be ended. Its error ends the decoding and is in
	// the chain of what that returns. It may be called by two goroutines at once.
	Spend func(bytes int64) error
}

// refusal is an error of Spend: it is none of the input.
type refusal struct{ err error }

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

// spend asks for memory, or with 0 whether to go on.
func (o *Options) spend(bytes int64) error {
	if o == nil || o.Spend == nil {
		return nil
	}
	if err := o.Spend(bytes); err != nil {
		return &refusal{err}
	}
	return nil
}

// buffer asks for memory for n bytes beyond what buf has room for. Where there is somebody to ask, it is then taken at
// once: memory that grows is there twice while it is copied.
func (o *Options) buffer(buf []byte, n int) ([]byte, error) {
	err := o.spendGrowth(cap(buf), n, 1)
	if err == nil && o.Spend != nil && cap(buf) < n {
		buf = make([]byte, n) // is cleared in steps, while others run; a slice that grows is not
	}
	return buf, err
}

// spendGrowth asks for what n elements of so many bytes need beyond the room that there is.
func (o *Options) spendGrowth(room, n, bytes int) error {
	if n <= room {
		return nil
	}
	return o.spend(int64(n-room) * int64(bytes))
}

// resolve fills in what the ending of the name tells, and the limits' defaults.
func (o Options) resolve() Options {
	o.Limits = o.Limits.withDefaults()
	name := strings.ToLower(o.Name)
	ending := path.Ext(name)
	if c := compressionEndings[ending]; c != AutoCompression {
		o.Compression = cmp.Or(o.Compression, c)
		ending = path.Ext(strings.TrimSuffix(name, ending))
	}
	o.Format = cmp.Or(o.Format, formatEndings[ending])
	return o
}

var (
	formatEndings = map[string]Format{
		".csv": CSV, ".ndjson": NDJSON, ".jsonl": NDJSON, ".json": JSON,
		".arrow": Arrow, ".arrows": Arrow, ".parquet": Parquet,
	}
	compressionEndings = map[string]Compression{".gz": Gzip, ".zst": Zstd}
)

// Magic bytes at the start of an input.
var (
	magicGzip      = []byte{0x1f, 0x8b}
	magicZstd      = []byte{0x28, 0xb5, 0x2f, 0xfd}
	magicParquet   = []byte("PAR1")
	magicArrow     = []byte{0xff, 0xff, 0xff, 0xff} // continuation marker of the first message
	magicArrowFile = []byte("ARROW1")
	byteOrderMark  = []byte{0xef, 0xbb, 0xbf}
)

// compressionOf settles the compression of an input that begins with head.
func (o *Options) compressionOf(head []byte) (Compression, error) {
	found := Plain
	switch {
	case bytes.HasPrefix(head, magicGzip):
		found = Gzip
	case bytes.HasPrefix(head, magicZstd), skippable(head):
		found = Zstd
	}
	if o.Compression == AutoCompression || o.Compression == found || o.Compression == Plain {
		return cmp.Or(o.Compression, found), nil
	}
	return 0, fmt.Errorf("told to be %s, but the content is not (it begins with % x)", o.Compression, head)
}

// skippable tells whether head begins a skippable frame of zstd, which may stand before the first real one.
func skippable(head []byte) bool {
	return len(head) >= 4 && head[0]>>4 == 5 && bytes.Equal(head[1:4], []byte{0x2a, 0x4d, 0x18})
}

// formatOf settles the format of a decompressed input that begins with head,
// or says how the content contradicts what was told.
func (o *Options) formatOf(head []byte) (Format, error) {
	if bytes.HasPrefix(head, magicArrowFile) {
		return 0, errors.New("the content is an Arrow file; an Arrow IPC stream is expected")
	}
	if bytes.HasPrefix(head, magicGzip) || bytes.HasPrefix(head, magicZstd) {
		return 0, errors.New("the content is compressed where it should be plain (packed twice, or told to be plain)")
	}
	found := sniff(head)
	told := o.Format
	switch {
	case told == Auto, told == found:
		return found, nil
	case told == JSON || told == NDJSON:
		if found != Parquet && found != Arrow && (told == JSON || head[0] != '[') {
			return told, nil // what is wrong with it, its decoder says better
		}
	case found == CSV: // that is: nothing known
		return 0, fmt.Errorf("told to be %s, but the content is not (it begins with % x)", told,
			head[:min(4, len(head))])
	}
	return 0, fmt.Errorf("told to be %s, but the content looks like %s", told, found)
}

// sniff tells the format from the first bytes; CSV, which has no mark of its own, is what is left.
func sniff(head []byte) Format {
	if bytes.HasPrefix(head, magicParquet) {
		return Parquet
	}
	if bytes.HasPrefix(head, magicArrow) {
		return Arrow
	}
	head = bytes.TrimLeft(head, " \t\r\n")
	if len(head) == 0 {
		return CSV
	}
	switch head[0] {
	case '[':
		return JSON
	case '{':
		x := lexer{p: head, i: 1}
		if _, err := x.key(); err == nil && x.i < len(head) && head[x.i] == '[' {
			return JSON
		}
		return NDJSON
	}
	return CSV
}
