package page

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Section is what a command measured, for people: on a terminal and on the page.
type Section struct {
	Title   string
	About   string // what is measured; a line break is kept on a terminal alone
	Tables  []Table
	After   string // what is to be known of the figures
	Command string // prints the same again, save times
	Machine string
}

// Table has a row of names, and rows of figures. All columns but the first are aligned to the right.
type Table struct {
	Head []string
	Rows [][]string
}

// Add appends a row.
func (t *Table) Add(values ...string) { t.Rows = append(t.Rows, values) }

func (t *Table) writer() table.Writer {
	w := table.NewWriter()
	row := func(values []string) (r table.Row) {
		for _, v := range values {
			r = append(r, v)
		}
		return r
	}
	w.AppendHeader(row(t.Head))
	for _, r := range t.Rows {
		w.AppendRow(row(r))
	}
	var columns []table.ColumnConfig
	for i := range t.Head[1:] {
		columns = append(columns, table.ColumnConfig{Number: i + 2, Align: text.AlignRight,
			AlignHeader: text.AlignRight})
	}
	w.SetColumnConfigs(columns)
	style := table.StyleLight
	style.Options = table.Options{SeparateHeader: true}
	style.Format.Header = text.FormatDefault
	style.Box.PaddingLeft = ""
	style.Box.PaddingRight = "  "
	w.SetStyle(style)
	return w
}

// Print writes the section for a terminal of 80 columns.
func (s *Section) Print(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n%s\n\n", s.Title, text.WrapSoft(s.About, 80))
	for _, t := range s.Tables {
		fmt.Fprintf(&b, "%s\n\n", t.writer().Render())
	}
	if s.After != "" {
		fmt.Fprintf(&b, "%s\n", text.WrapSoft(s.After, 80))
	}
	_, err := w.Write(trimmed(&b))
	return err
}

// Markdown is the section for the page, without its headings above the third level.
func (s *Section) Markdown() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "### %s\n\n%s\n", s.Title, text.WrapSoft(s.About, 120))
	for _, t := range s.Tables {
		fmt.Fprintf(&b, "\n%s\n", t.writer().RenderMarkdown())
	}
	if s.After != "" {
		fmt.Fprintf(&b, "\n%s\n", text.WrapSoft(s.After, 120))
	}
	fmt.Fprintf(&b, "\n```sh\n%s\n```\n\n%s\n", s.Command, text.WrapSoft(s.Machine, 120))
	return trimmed(&b)
}

// trimmed is a text without blanks at the ends of lines, which tables and wrapping leave there.
func trimmed(b *bytes.Buffer) []byte {
	var out bytes.Buffer
	for line := range strings.Lines(b.String()) {
		out.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return out.Bytes()
}

// Command is a command line of this process that prints the same: begin, and its arguments without -page and its value.
func Command(begin string, args []string) string {
	for i := 0; i < len(args); i++ {
		switch name := strings.TrimLeft(args[i], "-"); {
		case args[i] != name && name == "page":
			i++
		case args[i] == name || !strings.HasPrefix(name, "page="):
			begin += " " + args[i]
		}
	}
	return begin
}
