package foreign

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Bounds of a file that is read whole.
const (
	fileBytesMax   = 64 << 20
	xmlDepthMax    = 64
	xmlElementsMax = 1_000_000
)

// element is an element of an XML file with the line that it begins on. Names are without their namespace.
type element struct {
	name     string
	attrs    map[string]string
	text     string // of the element itself, trimmed
	line     int
	children []*element
}

// readWhole reads a text file in UTF-8; others are refused by their first bytes or the line that is none.
func readWhole(name string, r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, fileBytesMax+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case len(text) > fileBytesMax:
		return nil, fmt.Errorf("%s: is larger than %d MiB", name, fileBytesMax>>20)
	case bytes.HasPrefix(text, []byte{0xff, 0xfe}) || bytes.HasPrefix(text, []byte{0xfe, 0xff}):
		return nil, fmt.Errorf("%s:1: is in UTF-16; convert it to UTF-8 first (iconv -f UTF-16 -t UTF-8)", name)
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if !utf8.Valid(text) {
		line := 1
		for len(text) > 0 {
			r, n := utf8.DecodeRune(text)
			if r == utf8.RuneError && n == 1 {
				break
			}
			if r == '\n' {
				line++
			}
			text = text[n:]
		}
		return nil, fmt.Errorf("%s:%d: is not valid UTF-8", name, line)
	}
	return text, nil
}

// readXML reads a file's only root element. It expands nothing, and refuses a document type declaration, where
// entities come from, and encodings other than UTF-8.
func readXML(name string, r io.Reader) (*element, error) {
	text, err := readWhole(name, r)
	if err != nil {
		return nil, err
	}
	d := xml.NewDecoder(bytes.NewReader(text))
	d.CharsetReader = func(charset string, _ io.Reader) (io.Reader, error) {
		return nil, fmt.Errorf("is in %s; convert it to UTF-8 first, in its first line too", charset)
	}
	x := xmlReader{name: name, d: d}
	for {
		line, _ := d.InputPos()
		t, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, x.located(err)
		}
		if err := x.take(t, line); err != nil {
			return nil, err
		}
	}
	if x.root == nil {
		return nil, fmt.Errorf("%s: no XML element in it", name)
	}
	return x.root, nil
}

// xmlReader builds the tree of elements.
type xmlReader struct {
	name  string
	d     *xml.Decoder
	root  *element
	open  []*element
	count int
}

// located puts file and line before an error of the decoder.
func (x *xmlReader) located(err error) error {
	if syntax := (*xml.SyntaxError)(nil); errors.As(err, &syntax) {
		return fmt.Errorf("%s:%d: %s", x.name, syntax.Line, syntax.Msg)
	}
	line, _ := x.d.InputPos()
	text := err.Error()
	if i := strings.Index(text, "is in "); i >= 0 { // the decoder's own words stand before those of CharsetReader
		text = text[i:]
	}
	return fmt.Errorf("%s:%d: %s", x.name, line, strings.TrimPrefix(text, "xml: "))
}

func (x *xmlReader) take(t xml.Token, line int) error {
	switch t := t.(type) {
	case xml.Directive:
		return fmt.Errorf("%s:%d: a document type declaration (<!%s …) is not read; take it out", x.name, line,
			firstWord(string(t)))
	case xml.StartElement:
		return x.begin(t, line)
	case xml.EndElement:
		x.open = x.open[:len(x.open)-1]
	case xml.CharData:
		if text := strings.TrimSpace(string(t)); len(x.open) > 0 {
			e := x.open[len(x.open)-1]
			e.text = strings.TrimSpace(e.text + " " + text)
		}
	}
	return nil
}

func (x *xmlReader) begin(t xml.StartElement, line int) error {
	switch x.count++; {
	case x.count > xmlElementsMax:
		return fmt.Errorf("%s:%d: has more than %d elements", x.name, line, xmlElementsMax)
	case len(x.open) >= xmlDepthMax:
		return fmt.Errorf("%s:%d: is nested more than %d elements deep", x.name, line, xmlDepthMax)
	case x.root != nil && len(x.open) == 0:
		return fmt.Errorf("%s:%d: <%s> is a second root element", x.name, line, t.Name.Local)
	}
	e := &element{name: t.Name.Local, line: line}
	for _, a := range t.Attr {
		if a.Name.Space == "xmlns" || a.Name.Local == "xmlns" {
			continue
		}
		if e.attrs == nil {
			e.attrs = map[string]string{}
		}
		e.attrs[a.Name.Local] = strings.TrimSpace(a.Value)
	}
	if len(x.open) == 0 {
		x.root = e
	} else {
		up := x.open[len(x.open)-1]
		up.children = append(up.children, e)
	}
	x.open = append(x.open, e)
	return nil
}

// firstWord is a text up to its first blank.
func firstWord(s string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(s), " ")
	return word
}
