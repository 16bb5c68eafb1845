package table

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// counted passes bytes on until there are more than bytesMax, and remembers
// what went wrong below it, so that a broken connection is told from a broken file.
type counted struct {
	r        io.Reader
	n        int64
	bytesMax int64
	what     string // "bytes", "bytes after decompression"
	packing  string // put before errors, unless empty
	err      error
	check    func() error // asked before each read, if set
	packed   *counted     // what these bytes are unpacked from, where that bounds them
}

// A compressed input that is kept whole, a page of Parquet or a buffer of Arrow may become so many times as large,
// beyond what is small in any case. Tables of demand become 10 to 100 times as large; a file of blank lines becomes
// 30,000 times as large, and fills a machine's memory.
const (
	growthMax     = 1_000
	growthFreeMax = 64 << 20 // bytes that any input may have after decompression
)

// textUsualMax is how many bytes a text of a column has on average at most, where the column may become any times as
// large: a column of the same name over and over becomes 10,000 times as large.
const textUsualMax = 256

// tooGrown refuses packed bytes that are told to unpack to too many times as many, beyond what so many rows usually
// need.
func tooGrown(packed, unpacked, usual int) error {
	if unpacked > max(growthFreeMax, growthMax*packed, usual) {
		return fmt.Errorf("%w: %d bytes unpack to %d, more than %d times as many; send the table without compression",
			ErrLimit, packed, unpacked, growthMax)
	}
	return nil
}

// Read reads at most one byte past the limit, which is an error in the chain of ErrLimit.
func (c *counted) Read(p []byte) (int, error) {
	if c.check != nil {
		if err := c.check(); err != nil {
			return 0, err
		}
	}
	if room := c.bytesMax + 1 - c.n; int64(len(p)) > room {
		p = p[:room]
	}
	n, err := c.r.Read(p)
	if err != nil && err != io.EOF && c.packing != "" {
		err = fmt.Errorf("%s: %w", c.packing, err)
	}
	c.n += int64(n)
	if c.packed != nil && c.n > max(growthFreeMax, growthMax*c.packed.n) {
		n, err = 0, fmt.Errorf("%w: the first %d bytes unpack to more than %d times as many; "+
			"send the table without compression", ErrLimit, c.packed.n, growthMax)
	} else if c.n > c.bytesMax {
		n, err = 0, fmt.Errorf("%w: more than %d %s", ErrLimit, c.bytesMax, c.what)
	}
	if err != nil && err != io.EOF {
		c.err = err
	}
	return n, err
}

// source is an input on its way to a decoder: counted, unpacked, counted again.
type source struct {
	raw     counted
	head    *bufio.Reader
	decoded counted
	window  window
	check   func() error // asked before more is unpacked; nil: whether to go on
	close   func()
}

var headPool = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 4<<10) }}

// open settles the compression and fills the window with the first bytes.
// The caller calls close, also after an error.
func (s *source) open(r io.Reader, o *Options) error {
	if s.check == nil {
		s.check = func() error { return o.spend(0) }
	}
	s.raw = counted{r: r, bytesMax: o.Limits.BytesMax, what: "bytes"}
	s.head = headPool.Get().(*bufio.Reader)
	s.head.Reset(&s.raw)
	s.window.open(&s.decoded, o)
	unpacked := func() {}
	s.close = func() {
		unpacked()
		s.window.close()
		s.head.Reset(nil)
		headPool.Put(s.head)
	}
	head, err := s.head.Peek(4)
	if err != nil && err != io.EOF {
		return err
	}
	if len(head) == 0 {
		return errEmpty
	}
	c, err := o.compressionOf(head)
	if err != nil {
		return err
	}
	var plain io.Reader = s.head
	switch c {
	case Gzip:
		plain, unpacked, err = openGzip(s.head)
	case Zstd:
		plain, unpacked, err = openZstd(s.head)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c, err)
	}
	packing := ""
	if c != Plain {
		packing = c.String()
	}
	s.decoded = counted{r: plain, bytesMax: o.Limits.DecodedBytesMax, what: "bytes after decompression",
		packing: packing, check: s.check}
	if _, err = s.window.more(); err != nil {
		return err
	}
	if len(s.window.rest()) == 0 {
		return errEmpty
	}
	return nil
}

var errEmpty = errors.New("the input is empty")

// stream is all of the decoded input from its first byte on.
func (s *source) stream() io.Reader {
	return io.MultiReader(bytes.NewReader(s.window.rest()), &s.decoded)
}

// members unpacks the members of a gzip file one after the other. (The library
// can do that too, but takes a member that ends within its header for the end of the file.)
type members struct {
	z *gzip.Reader
	r *bufio.Reader
}

var gzipPool = sync.Pool{New: func() any { return new(gzip.Reader) }}

// openGzip unpacks gzip; anything after a member that is no other member is an error.
func openGzip(r *bufio.Reader) (io.Reader, func(), error) {
	m := &members{gzipPool.Get().(*gzip.Reader), r}
	return m, func() { gzipPool.Put(m.z) }, m.next()
}

func (m *members) next() error {
	err := m.z.Reset(m.r)
	m.z.Multistream(false)
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// Read reads from the current member, and goes on to the next at its end.
func (m *members) Read(p []byte) (int, error) {
	n, err := m.z.Read(p)
	if err == io.EOF {
		if _, err = m.r.Peek(1); err == nil {
			err = m.next()
		}
	}
	return n, err
}

// zstdWindowMax bounds what a few bytes of a frame's header can make the decoder allocate.
const zstdWindowMax = 8 << 20

var zstdPool = sync.Pool{New: func() any {
	z, err := zstd.NewReader(nil, zstd.WithDecoderMaxWindow(zstdWindowMax),
		zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		panic("BUG: zstd: " + err.Error())
	}
	return z
}}

// openZstd unpacks zstd frames one block at a time. The reader must not be a
// bytes.Buffer: the library would unpack a small one at once, whatever comes out.
func openZstd(r *bufio.Reader) (io.Reader, func(), error) {
	z := zstdPool.Get().(*zstd.Decoder)
	done := func() {
		if z.Reset(nil) == nil {
			zstdPool.Put(z)
		}
	}
	return z, done, z.Reset(r)
}

// bodyPool has buffers for what the columnar formats must have in memory whole: fresh
// memory would cost more than all the rest. The collector empties it in time.
var bodyPool sync.Pool

const bodyKeptMax = 256 << 20 // capacity

func takeBody() []byte {
	if body, ok := bodyPool.Get().(*[]byte); ok {
		return *body
	}
	return nil
}

func keepBody(body []byte) {
	if cap(body) <= bodyKeptMax {
		body = body[:0]
		bodyPool.Put(&body)
	}
}

// window is the part of a decoded input that is in memory. Text decoders take
// whole rows or values from its start; when one is incomplete they ask for more
// and begin it again, so that they never keep half a row.
type window struct {
	r        io.Reader
	o        *Options
	buf      []byte
	from, to int   // buf[from:to] is unread
	base     int64 // offset of buf[0] in the decoded input
	last     bool  // the input ends at buf[to]
	err      error // why reading ended at buf[to]; told once all before it is read
}

const windowBytes = 256 << 10

// windowCopies is how many times as large as a window all is that grows with it: windows ahead, and rows without their
// quotes.
const windowCopies = 5

var windowPool = sync.Pool{New: func() any { return new([windowBytes]byte) }}

func (w *window) open(r io.Reader, o *Options) {
	*w = window{r: r, o: o, buf: windowPool.Get().(*[windowBytes]byte)[:]}
}

func (w *window) close() {
	if len(w.buf) == windowBytes {
		windowPool.Put((*[windowBytes]byte)(w.buf))
	}
	w.buf = nil
}

// rest is what is in memory and unread, good until the next call of more.
func (w *window) rest() []byte { return w.buf[w.from:w.to] }

// advance marks n bytes as read.
func (w *window) advance(n int) { w.from += n }

// offset is the place of rest in the decoded input.
func (w *window) offset() int64 { return w.base + int64(w.from) }

// move goes on in buf, or in new memory if that has another size, and gives the memory so far, which it leaves as it
// is.
func (w *window) move(buf []byte) (was []byte) {
	if len(buf) != len(w.buf) {
		buf = make([]byte, len(w.buf))
	}
	was = w.buf
	w.buf, w.base, w.from, w.to = buf, w.offset(), 0, copy(buf, w.rest())
	return was
}

// more makes rest longer; ok is false when the input has ended. It fills the
// whole buffer and doubles one that is full of unread bytes, so that beginning a
// row again costs a constant factor in all.
func (w *window) more() (ok bool, err error) {
	if w.last {
		return false, nil
	}
	if w.from == 0 && w.to == len(w.buf) {
		if len(w.buf) >= rowBytesMax {
			return false, fmt.Errorf("%w: a row of more than %d bytes (is a quote left open?)", ErrLimit, rowBytesMax)
		}
		if err := w.o.spend(windowCopies * int64(len(w.buf))); err != nil {
			return false, err
		}
		full := w.buf
		w.buf = make([]byte, 2*len(full))
		copy(w.buf, full)
		if len(full) == windowBytes {
			windowPool.Put((*[windowBytes]byte)(full))
		}
	} else {
		copy(w.buf, w.buf[w.from:w.to])
		w.base += int64(w.from)
		w.from, w.to = 0, w.to-w.from
	}
	had := w.to
	for w.to < len(w.buf) && w.err == nil {
		var n int
		n, w.err = w.r.Read(w.buf[w.to:])
		w.to += n
	}
	w.last = w.err == io.EOF
	if w.to == had && !w.last {
		return false, w.err
	}
	return w.to > had, nil
}
