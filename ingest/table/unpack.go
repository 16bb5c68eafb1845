package table

import (
	"fmt"
	"io"
)

// Unpack reads an input whole and decompresses it, within the limits, without decoding it. The format is what the
// ending of the name or the content tells. It is for who keeps inputs as they were given.
func Unpack(r io.Reader, o Options) ([]byte, Format, error) {
	o = o.resolve()
	var s source
	err := s.open(r, &o)
	defer s.close()
	var format Format
	if err == nil {
		format, err = o.formatOf(s.window.rest())
	}
	var content []byte
	if err == nil {
		content, err = io.ReadAll(s.stream())
	}
	if err != nil {
		return nil, Auto, fmt.Errorf("%s: %w", o.Name, err)
	}
	return content, format, nil
}
