package table

import (
	"errors"
	"fmt"
	"io"
	"math"
)

// Unpack reads an input whole and decompresses it, within the limits, without decoding it. The format is what the
// ending of the name or the content tells. It is for who keeps inputs as they were given.
func Unpack(r io.Reader, o Options) ([]byte, Format, error) {
	o = o.resolve()
	var format Format
	content, err := unpack(r, &o, func(head []byte) (err error) {
		format, err = o.formatOf(head)
		if err == nil && format == CSV && len(head) > 0 && head[0] == 0 { // such as /dev/zero, which never ends
			err = errors.New("the content begins with a byte of 0 and is no text; " +
				"a table is CSV, NDJSON, JSON, Arrow or Parquet")
		}
		return err
	})
	if err != nil {
		return nil, Auto, err
	}
	return content, format, nil
}

// UnpackText is Unpack for what is no table, such as a policy file.
func UnpackText(r io.Reader, o Options) ([]byte, error) {
	o = o.resolve()
	return unpack(r, &o, func([]byte) error { return nil })
}

func unpack(r io.Reader, o *Options, check func(head []byte) error) ([]byte, error) {
	var s source
	err := s.open(r, o)
	defer s.close()
	if err == nil {
		err = check(s.window.rest())
	}
	var content []byte
	if err == nil {
		s.decoded.packed = &s.raw
		if content, err = readGrowing(s.stream(), nil, math.MaxInt, o); err == io.EOF {
			err = nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Name, err)
	}
	return content, nil
}
