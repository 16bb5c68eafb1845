package table

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
)

// Bounds on the metadata of a Parquet file that are not for the user to set.
const (
	parquetFooterBytesMax = 8 << 20
	parquetHeaderBytesMax = 1 << 20 // of one page
	parquetStructsMax     = 1 << 17 // in lists of a footer: columns × row groups, in the main
	parquetElementsMax    = 1 << 21 // other elements of lists
	parquetThriftDepthMax = 16
	parquetPagesMax       = 1 << 18
	thriftBytes           = 16 // memory that a byte of metadata becomes
)

// decodeThrift decodes the Thrift struct at the start of b and gives its length.
// The library allocates what a list's length claims and descends as deep as
// structs are nested, so the bytes are walked first.
func decodeThrift(b []byte, v any) (n int, err error) {
	// A slip of the library on hostile bytes must not take the process down.
	// Nothing runs under this but its reader and its decoder.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("malformed: %v", r)
		}
	}()
	var p thrift.CompactProtocol
	w := thriftWalk{r: p.NewReaderFromBytes(b), bytes: b}
	if err = w.walk(thrift.STRUCT, 0); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errShort
	}
	if err != nil {
		return 0, err
	}
	r := p.NewReaderFromBytes(b)
	if err = thrift.NewDecoder(r).Decode(v); err != nil {
		return 0, err
	}
	return r.BytesRead(), nil
}

// thriftWalk walks over a Thrift value without keeping any of it.
type thriftWalk struct {
	r        thrift.BytesReader
	bytes    []byte
	structs  int // in lists
	elements int // other elements
}

func (w *thriftWalk) walk(t thrift.Type, depth int) error {
	if depth > parquetThriftDepthMax {
		return fmt.Errorf("nested deeper than %d", parquetThriftDepthMax)
	}
	var err error
	switch t {
	case thrift.TRUE, thrift.FALSE, thrift.I8:
		_, err = w.r.ReadInt8()
	case thrift.I16, thrift.I32, thrift.I64:
		_, err = w.r.ReadInt64()
	case thrift.DOUBLE:
		_, err = w.r.ReadFloat64()
	case thrift.BINARY:
		_, err = w.r.ReadBytes() // a slice of the input, no copy
	case thrift.LIST, thrift.SET:
		var l thrift.List
		if l, err = w.r.ReadList(); err == nil {
			err = w.items(l, depth)
		}
	case thrift.STRUCT:
		err = w.fields(depth)
	default:
		err = fmt.Errorf("type %d is none that Parquet has", t)
	}
	return err
}

func (w *thriftWalk) items(l thrift.List, depth int) error {
	count, most := &w.elements, parquetElementsMax
	if l.Type == thrift.STRUCT {
		count, most = &w.structs, parquetStructsMax
	}
	n := int(l.Size)
	if n > len(w.bytes)-w.r.BytesRead() {
		return fmt.Errorf("a list of %d elements in %d bytes", n, len(w.bytes)-w.r.BytesRead())
	}
	if *count += n; *count > most {
		return fmt.Errorf("%w: more than %d elements in lists", ErrLimit, most)
	}
	for range n {
		if err := w.walk(l.Type, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (w *thriftWalk) fields(depth int) error {
	for {
		f, err := w.r.ReadField()
		if err != nil {
			return err
		}
		switch f.Type {
		case thrift.STOP:
			return nil
		case thrift.TRUE, thrift.FALSE: // a field's boolean is in its type
			continue
		}
		if err = w.walk(f.Type, depth+1); err != nil {
			return err
		}
	}
}
