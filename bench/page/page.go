// Package page keeps the sections of docs/results.md: each is written by the command that measured it, between two
// comments that name it, and what others wrote stays.
package page

import (
	"bytes"
	"errors"
	"fmt"
	"os"
)

// Put writes a section of a page: text stands between the comments of name, which the page must have. Error: it has
// not, once each and in order; the file cannot be read or written.
func Put(path, name string, text []byte) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	page, err := replaced(old, name, text)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, page, 0o666)
}

// replaced is a page with the text of one section exchanged.
func replaced(page []byte, name string, text []byte) ([]byte, error) {
	begin, end := fmt.Appendf(nil, "<!-- %s -->\n", name), fmt.Appendf(nil, "<!-- end of %s -->\n", name)
	head, rest, ok := bytes.Cut(page, begin)
	if !ok {
		return nil, fmt.Errorf("no line %q in it", bytes.TrimSpace(begin))
	}
	_, tail, ok := bytes.Cut(rest, end)
	if !ok {
		return nil, fmt.Errorf("no line %q behind the section's begin", bytes.TrimSpace(end))
	}
	if bytes.Contains(tail, begin) || bytes.Contains(text, []byte("<!-- ")) {
		return nil, errors.New("sections within each other, or one of them twice")
	}
	return bytes.Join([][]byte{head, begin, bytes.TrimSpace(text), []byte("\n"), end, tail}, nil), nil
}
