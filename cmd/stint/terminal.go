package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"
)

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// widthOf is how many columns a writer shows: of a terminal its own, else what COLUMNS says, else 100.
func widthOf(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	return 100
}

// heightOf is how many lines a writer shows at once: of a terminal its own, else what LINES says, else any (0).
func heightOf(w io.Writer) int {
	if f, ok := w.(*os.File); ok {
		if _, height, err := term.GetSize(int(f.Fd())); err == nil && height > 0 {
			return height
		}
	}
	if n, err := strconv.Atoi(os.Getenv("LINES")); err == nil && n > 0 {
		return n
	}
	return 0
}

// lineOf is how many columns a table may have on a writer: of a terminal its own, at least 80, else what COLUMNS says,
// else any (0).
func lineOf(w io.Writer) int {
	f, ok := w.(*os.File)
	if os.Getenv("COLUMNS") == "" && (!ok || !isTerminal(f)) {
		return 0
	}
	return max(80, widthOf(w))
}

// paint colours words, or leaves them alone.
type paint bool

// painter gives colours on a terminal that does not refuse them (NO_COLOR).
func painter(w io.Writer) paint {
	f, ok := w.(*os.File)
	return paint(ok && isTerminal(f) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb")
}

func (p paint) with(c text.Color, s string) string {
	if !p {
		return s
	}
	return c.EscapeSeq() + s + text.EscapeReset
}

func (p paint) good(s string) string  { return p.with(text.FgGreen, s) }
func (p paint) bad(s string) string   { return p.with(text.FgRed, s) }
func (p paint) faint(s string) string { return p.with(text.Faint, s) }
func (p paint) bold(s string) string  { return p.with(text.Bold, s) }
func (p paint) mark(s string) string  { return p.with(text.FgCyan, s) }

// grouped writes a number with commas between thousands.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	first := 0
	if n < 0 {
		first = 1
	}
	for i := len(s) - 3; i > first; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// bar is a line that shows how far long work is.
func bar(what string, done, all int) string {
	const width = 30
	full := width * done / max(1, all)
	return fmt.Sprintf("%s [%s%s] %s of %s cycles", what, strings.Repeat("=", full), strings.Repeat(" ", width-full),
		grouped(int64(done)), grouped(int64(all)))
}
