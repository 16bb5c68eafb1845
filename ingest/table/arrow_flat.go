package table

import (
	"encoding/binary"
	"fmt"
)

// flat reads a flatbuffer that nobody has checked. Every offset is checked
// before it is followed; the first that is wrong is kept in fault, and from then
// on every value reads as zero, so that callers check once, at the end, before
// they use what they read. Nothing recurses: the depth is that of the calls.
type flat struct {
	buf   []byte
	fault error
}

// span gives n bytes at an offset, nil when they are not all there.
func (f *flat) span(what string, at, n int) []byte {
	if f.fault != nil {
		return nil
	}
	if at < 0 || n < 0 || at > len(f.buf)-n {
		f.fault = fmt.Errorf("metadata: %s of %d bytes at offset %d goes beyond the metadata's %d bytes", what, n, at,
			len(f.buf))
		return nil
	}
	return f.buf[at : at+n]
}

func (f *flat) u16(what string, at int) int {
	if b := f.span(what, at, 2); b != nil {
		return int(binary.LittleEndian.Uint16(b))
	}
	return 0
}

func (f *flat) u32(what string, at int) int {
	if b := f.span(what, at, 4); b != nil {
		return int(binary.LittleEndian.Uint32(b))
	}
	return 0
}

// flatTable is a table of a flatbuffer: fields found through a vtable. A table
// that is not there has at 0, and all its fields have their defaults.
type flatTable struct {
	f      *flat
	at     int
	size   int // of the table itself
	vtable []byte
}

// root is the buffer's own table.
func (f *flat) root() flatTable { return f.table(f.u32("root offset", 0)) }

func (f *flat) table(at int) flatTable {
	back := int(int32(uint32(f.u32("table", at)))) // signed: the vtable may stand on either side
	vtable := at - back
	vtableSize := f.u16("vtable", vtable)
	size := f.u16("vtable", vtable+2)
	if f.fault == nil && vtableSize < 4 {
		f.fault = fmt.Errorf("metadata: vtable of %d bytes at offset %d", vtableSize, vtable)
	}
	t := flatTable{f: f, at: at, size: size, vtable: f.span("vtable", vtable, vtableSize)}
	f.span("table", at, size)
	if f.fault != nil {
		return flatTable{f: f}
	}
	return t
}

// field gives the bytes of a scalar or offset, nil when it has its default.
func (t flatTable) field(slot, n int) []byte {
	v := 4 + 2*slot
	if t.at == 0 || t.f.fault != nil || v+2 > len(t.vtable) {
		return nil
	}
	at := int(binary.LittleEndian.Uint16(t.vtable[v:]))
	if at == 0 {
		return nil
	}
	if at+n > t.size {
		t.f.fault = fmt.Errorf("metadata: field %d goes beyond its table of %d bytes", slot, t.size)
		return nil
	}
	return t.f.span("field", t.at+at, n)
}

// i64, i32, i16 and u8 read a scalar whose default is 0.
func (t flatTable) i64(slot int) int64 {
	if b := t.field(slot, 8); b != nil {
		return int64(binary.LittleEndian.Uint64(b))
	}
	return 0
}

func (t flatTable) i32(slot int) int32 {
	if b := t.field(slot, 4); b != nil {
		return int32(binary.LittleEndian.Uint32(b))
	}
	return 0
}

func (t flatTable) i16(slot int) int16 {
	if b := t.field(slot, 2); b != nil {
		return int16(binary.LittleEndian.Uint16(b))
	}
	return 0
}

func (t flatTable) u8(slot int) uint8 {
	if b := t.field(slot, 1); b != nil {
		return b[0]
	}
	return 0
}

// target is where an offset field points to, 0 when it is absent.
func (t flatTable) target(slot int) int {
	b := t.field(slot, 4)
	if b == nil {
		return 0
	}
	at := t.at + int(binary.LittleEndian.Uint16(t.vtable[4+2*slot:]))
	return at + int(binary.LittleEndian.Uint32(b))
}

// table is a nested table; absent is told by its at being 0.
func (t flatTable) table(slot int) flatTable {
	at := t.target(slot)
	if at == 0 {
		return flatTable{f: t.f}
	}
	return t.f.table(at)
}

// vector is the bytes of a vector of n elements of the given size.
func (t flatTable) vector(slot, elementSize int) (b []byte, n int) {
	at := t.target(slot)
	if at == 0 {
		return nil, 0
	}
	n = t.f.u32("vector", at)
	b = t.f.span("vector", at+4, n*elementSize) // n < 2³², elements are at most 16 bytes: no overflow
	return b, len(b) / elementSize
}

// tables gives where the n tables of a vector stand, one call each.
func (t flatTable) tables(slot int) (get func(i int) flatTable, n int) {
	b, n := t.vector(slot, 4)
	first := t.target(slot) + 4
	return func(i int) flatTable {
		return t.f.table(first + 4*i + int(binary.LittleEndian.Uint32(b[4*i:])))
	}, n
}

// text is a copy of a string field.
func (t flatTable) text(slot int) string {
	b, _ := t.vector(slot, 1)
	return string(b)
}
