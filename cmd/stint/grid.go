package main

import (
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// grid is a table without lines around its cells. Its first column is text, the others are figures and stand to
// the right, save those listed in words.
type grid struct {
	head  []string
	words []int
	rows  [][]string // nil: a line
}

func (g *grid) add(cells ...string) { g.rows = append(g.rows, cells) }

func (g *grid) line() { g.rows = append(g.rows, nil) }

// gap is how many columns there are between two cells.
const gap = 2

// width is how many columns of a terminal the table takes, the gap behind its last column included.
func (g *grid) width() (columns int) {
	for i := range g.head {
		columns += max(text.StringWidth(g.head[i]), g.widest(i)) + gap
	}
	return columns
}

// widest is the width of a column's widest cell, colours not counted.
func (g *grid) widest(column int) (width int) {
	for _, row := range g.rows {
		if row != nil {
			width = max(width, text.StringWidthWithoutEscSequences(row[column]))
		}
	}
	return width
}

// squeeze takes out the columns that have nothing in any row.
func (g *grid) squeeze() {
	for i := len(g.head) - 1; i > 0; i-- {
		if g.widest(i) > 0 {
			continue
		}
		g.head = slices.Delete(g.head, i, i+1)
		for r := range g.rows {
			if g.rows[r] != nil {
				g.rows[r] = slices.Delete(g.rows[r], i, i+1)
			}
		}
		g.words = slices.DeleteFunc(g.words, func(w int) bool { return w == i })
		for w := range g.words {
			if g.words[w] > i {
				g.words[w]--
			}
		}
	}
}

// split makes two tables of one, each with the first column: the columns before one, and the others.
func (g *grid) split(at int) (parts [2]*grid) {
	for i := range parts {
		of := func(row []string) []string {
			if row == nil {
				return nil
			}
			if i == 0 {
				return slices.Clone(row[:at])
			}
			return append([]string{row[0]}, row[at:]...)
		}
		part := &grid{head: of(g.head)}
		for _, row := range g.rows {
			part.rows = append(part.rows, of(row))
		}
		for _, w := range g.words {
			switch {
			case i == 0 && w < at:
				part.words = append(part.words, w)
			case i == 1 && w >= at:
				part.words = append(part.words, w-at+1)
			}
		}
		parts[i] = part
	}
	return parts
}

// render draws the table, with no blanks at the ends of lines.
func (g *grid) render() string {
	t := table.NewWriter()
	style := table.StyleDefault
	style.Box = table.StyleBoxLight
	style.Options = table.OptionsNoBordersAndSeparators
	style.Options.SeparateHeader = true
	style.Options.SeparateRows = false
	style.Format.Header = text.FormatDefault
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	t.SetStyle(style)
	t.AppendHeader(cells(g.head))
	var align []table.ColumnConfig
	for i := 1; i < len(g.head); i++ {
		if !slices.Contains(g.words, i) {
			align = append(align, table.ColumnConfig{Number: i + 1, Align: text.AlignRight,
				AlignHeader: text.AlignRight})
		}
	}
	t.SetColumnConfigs(align)
	for _, row := range g.rows {
		if row == nil {
			t.AppendSeparator()
		} else {
			t.AppendRow(cells(row))
		}
	}
	lines := strings.Split(t.Render(), "\n")
	widest := 0
	for i := range lines {
		if lines[i] = strings.TrimRight(lines[i], " "); !ruled(lines[i]) {
			widest = max(widest, text.StringWidthWithoutEscSequences(lines[i]))
		}
	}
	for i := range lines {
		if ruled(lines[i]) { // it is as wide as the cells, the gap behind the last one included
			lines[i] = strings.Repeat("─", widest)
		}
	}
	return strings.Join(lines, "\n")
}

// ruled tells whether a line is a separator.
func ruled(line string) bool { return line != "" && strings.Trim(line, "─") == "" }

func cells(texts []string) (row table.Row) {
	for _, text := range texts {
		row = append(row, text)
	}
	return row
}

// indented is the last name of a path, under its parent's.
func indented(path string) string {
	depth := strings.Count(path, "/")
	return strings.Repeat("  ", depth-1) + path[strings.LastIndexByte(path, '/')+1:]
}
