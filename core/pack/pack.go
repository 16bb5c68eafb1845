// Package pack turns values and columns into bytes and back. One function names the fields of a struct, in one order,
// for both ways: what is written and what is read cannot come apart, and a field more is a line more.
//
// The bytes are little-endian. A column is its length, the least of 1, 2, 4 and 8 bytes in which all its values fit,
// and the values. There are no checksums: who keeps the bytes adds them. Reading bounds what it allocates by the bytes
// that there are, and ends with an error whatever they are.
package pack

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// Coder goes over fields, to save or to load them. Saving takes three steps: the fields are named, Hold takes a copy of
// what may change afterwards, and WriteTo writes it, at leisure. It is for one goroutine at a time.
type Coder struct {
	loading bool
	parts   []part
	spare   []part // memory for Hold, by part
	shared  bool
	from    io.Reader
	bytes   int64 // there are in all
	left    int64
	buf     []byte
	err     error
	form    int64
	seen    map[uintptr]bool
}

// part is a piece of what is saved: bytes, or how to make them.
type part struct {
	bytes  []byte
	column column
	later  func(c *Coder)
	shared bool // nothing changes the column
	open   bool // more may be appended to bytes
}

// Save is a Coder that saves.
func Save() *Coder { return &Coder{} }

// SaveInto is Save with the memory that Prepare of another Coder made.
func SaveInto(prepared *Coder) *Coder { return &Coder{spare: prepared.parts} }

// Load is a Coder that loads from so many bytes.
func Load(from io.Reader, bytes int64) *Coder {
	return &Coder{loading: true, from: from, bytes: bytes, left: bytes}
}

// Loading tells whether fields are loaded.
func (c *Coder) Loading() bool { return c.loading }

// Err is the first error of loading, nil when there was none.
func (c *Coder) Err() error { return c.err }

// Fail ends loading with an error, unless there was one before.
func (c *Coder) Fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("byte %d: "+format, append([]any{c.bytes - c.left}, args...)...)
	}
}

// End checks that all bytes were loaded, and gives the first error.
func (c *Coder) End() error {
	if c.left > 0 {
		c.Fail("%d bytes too many", c.left)
	}
	return c.err
}

// Shared tells that nobody will change the columns named from now on, or false that somebody may: such columns are
// written without a copy.
func (c *Coder) Shared(is bool) { c.shared = is }

// Watch has the Coder note the fields that it meets, for Met.
func (c *Coder) Watch() { c.seen = map[uintptr]bool{} }

// Met tells whether the field at an address was named since Watch.
func (c *Coder) Met(at uintptr) bool { return c.seen[at] }

// Note counts a field as met that is written in another form.
func (c *Coder) Note(field any) {
	if c.seen != nil {
		c.seen[reflect.ValueOf(field).Pointer()] = true
	}
}

// Noted counts the fields that f names as met, though the form that is written or loaded lacks them.
func Noted(c *Coder, f func(c *Coder)) {
	if c.seen != nil {
		f(&Coder{seen: c.seen})
	}
}

// Prepare makes memory for the columns that were named, of which it reads nothing but the length when they were: for a
// Coder that will soon go over the same fields. Memory that is new costs more than the copy.
func (c *Coder) Prepare() {
	for i := range c.parts {
		if p := &c.parts[i]; p.column != nil && !p.shared {
			p.column.prepare()
		}
	}
}

// Hold takes a copy of all columns that may change, on several processors. O(bytes).
func (c *Coder) Hold() {
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), runtime.NumCPU(), 4) {
		all.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(c.parts) {
					return
				}
				if p := &c.parts[i]; p.column != nil && !p.shared {
					var spare column
					if i < len(c.spare) {
						spare = c.spare[i].column
					}
					p.column.hold(spare)
				}
			}
		})
	}
	all.Wait()
	c.spare = nil
}

// WriteTo writes what was saved.
func (c *Coder) WriteTo(w io.Writer) (n int64, err error) {
	var buf []byte
	for _, p := range c.parts {
		if p.later != nil {
			one := &Coder{shared: true, form: c.form}
			p.later(one)
			k, err := one.WriteTo(w)
			if n += k; err != nil {
				return n, err
			}
			continue
		}
		b := p.bytes
		if p.column != nil {
			buf = p.column.encode(buf[:0])
			b = buf
		}
		k, err := w.Write(b)
		if n += int64(k); err != nil {
			return n, err
		}
	}
	return n, nil
}

// small is where a scalar's bytes are appended.
func (c *Coder) small() *[]byte {
	if n := len(c.parts); n == 0 || !c.parts[n-1].open {
		c.parts = append(c.parts, part{open: true})
	}
	return &c.parts[len(c.parts)-1].bytes
}

// read gives the next n bytes, nil after an error. They are borrowed until the next call.
func (c *Coder) read(n int) []byte {
	if c.err == nil && int64(n) > c.left {
		c.Fail("%d bytes are missing", int64(n)-c.left)
	}
	if c.err != nil {
		return nil
	}
	if cap(c.buf) < n {
		c.buf = make([]byte, max(n, 64<<10))
	}
	b := c.buf[:n]
	if _, err := io.ReadFull(c.from, b); err != nil {
		c.Fail("%w", err)
		return nil
	}
	c.left -= int64(n)
	return b
}

// length is a count on its way: -1 for nil. Each of what is counted takes at least so many bytes.
func (c *Coder) length(n int, least int64) int {
	if !c.loading {
		b := c.small()
		*b = binary.LittleEndian.AppendUint64(*b, uint64(n+1))
		return n
	}
	b := c.read(8)
	if b == nil {
		return -1
	}
	v := binary.LittleEndian.Uint64(b)
	if v > math.MaxInt64 || int64(v) > c.left/least+1 {
		c.Fail("a length of %d, and %d bytes are left", v-1, c.left)
		return -1
	}
	return int(v) - 1
}

func lengthOf[T any](v []T) int {
	if v == nil {
		return -1
	}
	return len(v)
}

// Integer is any type of whole number that columns have.
type Integer interface {
	~int | ~int8 | ~uint8 | ~int32 | ~int64 | ~uint64
}

// Int is a number.
func Int[T Integer](c *Coder, v *T) {
	c.Note(v)
	if !c.loading {
		b := c.small()
		*b = binary.LittleEndian.AppendUint64(*b, uint64(int64(*v)))
		return
	}
	if b := c.read(8); b != nil {
		x := int64(binary.LittleEndian.Uint64(b))
		if *v = T(x); int64(*v) != x {
			c.Fail("the number %d does not fit", x)
		}
	}
}

// Bool is a truth.
func Bool(c *Coder, v *bool) {
	c.Note(v)
	if !c.loading {
		b := c.small()
		*b = append(*b, bit(*v))
		return
	}
	if b := c.read(1); b != nil {
		*v = c.truth(b[0])
	}
}

func bit(v bool) byte {
	if v {
		return 1
	}
	return 0
}

func (c *Coder) truth(b byte) bool {
	if b > 1 {
		c.Fail("%d where a truth belongs", b)
	}
	return b == 1
}

// Text is a string.
func Text(c *Coder, v *string) {
	c.Note(v)
	n := c.length(len(*v), 1)
	if !c.loading {
		b := c.small()
		*b = append(*b, *v...)
	} else if n > 0 {
		*v = string(c.read(n))
	}
}

// Mark is a word at which loading must come by: it tells which part of the bytes is wrong.
func (c *Coder) Mark(word string) {
	got := word
	if Text(c, &got); got != word {
		c.Fail("%q where %q begins", got, word)
	}
}

// Form says in which form the fields that follow are, from 1 on: saving writes the newest, loading takes those up to
// it. Of a form that came later an error tells. It gives the form; Since asks for it.
func (c *Coder) Form(what string, newest int64) int64 {
	c.form = newest
	if Int(c, &c.form); c.form < 1 || c.form > newest {
		c.Fail("form %d of a %s; this stint reads forms 1 to %d", c.form, what, newest)
	}
	return c.form
}

// Since tells whether a field that a form brought is there: the form named last is that one, or a later one. Saving, it
// always is.
func (c *Coder) Since(form int64) bool { return c.form >= form }

// Version is the form named last.
func (c *Coder) Version() int { return int(c.form) }

// Texts is a list of strings.
func Texts(c *Coder, v *[]string) { Rows(c, v, func(s *string) { Text(c, s) }) }

// Raw is bytes that nobody changes any more, though more may be appended to them.
func Raw(c *Coder, v *[]byte) {
	c.Note(v)
	n := c.length(lengthOf(*v), 1)
	if !c.loading {
		c.parts = append(c.parts, part{bytes: *v})
	} else if n >= 0 {
		*v = slices.Clone(c.read(n))
		if *v == nil {
			*v = []byte{}
		}
	}
}

// Rows is a list of structs, of which each names the fields of one. It is for short lists.
func Rows[T any](c *Coder, v *[]T, each func(*T)) {
	c.Note(v)
	n := c.length(lengthOf(*v), 1)
	if !c.loading {
		for i := range *v {
			each(&(*v)[i])
		}
		return
	}
	*v = nil
	if n >= 0 {
		*v = make([]T, 0, min(n, 1024))
	}
	for i := 0; i < n && c.err == nil; i++ {
		*v = append(*v, *new(T))
		each(&(*v)[i])
	}
}

// Later names fields that nobody changes any more, at the time when they are written, so that Hold has nothing to do
// with them. f must use the Coder that it gets.
func (c *Coder) Later(f func(c *Coder)) {
	if c.loading {
		f(c)
		return
	}
	c.parts = append(c.parts, part{later: f})
}

// laterRows is how many rows of Pointers are made bytes at once.
const laterRows = 4096

// Pointers is Rows for structs that nobody changes once they are in the list, of which there may be many: of the list
// alone a copy is taken.
func Pointers[T any](c *Coder, v *[]*T, each func(*Coder, *T)) {
	c.Note(v)
	n := c.length(len(*v), 1)
	if c.loading {
		*v = make([]*T, 0, max(0, min(n, laterRows)))
		for i := 0; i < n && c.err == nil; i++ {
			one := new(T)
			each(c, one)
			*v = append(*v, one)
		}
		return
	}
	for some := range slices.Chunk(slices.Clone(*v), laterRows) {
		c.Later(func(c *Coder) {
			for _, one := range some {
				each(c, one)
			}
		})
	}
}
