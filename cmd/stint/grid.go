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

// width is how many columns of a terminal the table takes.
func (g *grid) width() (columns int) {
	for i := range g.head {
		columns += max(text.StringWidth(g.head[i]), g.widest(i)) + 2
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
			align = append(align, table.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight})
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
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

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
