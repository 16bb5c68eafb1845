package export

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/stintd/stint/core/decision"
)

const (
	gap     = 2  // spaces between two columns
	wrapMin = 24 // no column of text is wrapped to less
)

// layout says how a table is shown to people on lines of a width.
type layout struct {
	blocks  [][]int          // the columns of each table that is shown, one below the other
	same    []int            // columns that have one value in all rows, told once above the table
	wrapped map[int]int      // by column: the width to which its text is wrapped
	cells   map[int][]string // by column: the text of each row
}

// fit lays out rows of a table. Columns without a value are left out. Where the rest is wider than width (0: any), what
// all rows have in common is told once, then the widest text is wrapped. Where that is not enough, the columns are
// shown in several blocks, each of which begins with the columns that name a row. Time: cells.
func fit(t *decision.Table, rows []int, all bool, width int) *layout {
	l := &layout{wrapped: map[int]int{}, cells: map[int][]string{}}
	wide, columns := make([]int, len(t.Columns)), []int(nil)
	for i := range t.Columns {
		c := &t.Columns[i]
		texts, some := make([]string, len(rows)), false
		wide[i] = utf8.RuneCountInString(c.Name)
		for n, row := range rows {
			texts[n] = cell(c, row)
			some = some || value(c, row) != ""
			wide[i] = max(wide[i], text.StringWidthWithoutEscSequences(texts[n]))
		}
		if all || some || len(rows) == 0 {
			columns, l.cells[i] = append(columns, i), texts
		}
	}
	if width > 0 && l.width(columns, wide) > width {
		columns = l.tellOnce(columns)
		if l.wrap(t, columns, wide, width); l.width(columns, wide) > width {
			clear(l.wrapped)
			l.split(t, columns, wide, width)
			return l
		}
	}
	l.blocks = [][]int{columns}
	return l
}

// split puts the columns into blocks that are no wider than a line, save where one column alone is.
func (l *layout) split(t *decision.Table, columns, wide []int, width int) {
	var key []int
	for _, i := range columns {
		if c := &t.Columns[i]; c.Type != decision.Text && c.Name != "cycle" || l.width(append(key, i), wide) > width/2 {
			break
		}
		key = append(key, i)
	}
	block := slices.Clone(key)
	for _, i := range columns[len(key):] {
		if len(block) > len(key) && l.width(append(block, i), wide) > width {
			l.blocks = append(l.blocks, block)
			block = slices.Clone(key)
		}
		block = append(block, i)
	}
	l.blocks = append(l.blocks, block)
	for _, block := range l.blocks {
		l.wrap(t, block, wide, width)
	}
}

// width is how wide columns are together.
func (l *layout) width(columns, wide []int) (sum int) {
	for _, i := range columns {
		w, ok := l.wrapped[i]
		if !ok {
			w = wide[i]
		}
		sum += w + gap
	}
	return sum - gap
}

// tellOnce takes out the columns that have one value in all of several rows, and gives the others.
func (l *layout) tellOnce(columns []int) (rest []int) {
	for _, i := range columns {
		texts := l.cells[i]
		same := len(texts) > 1
		for _, s := range texts {
			same = same && s == texts[0]
		}
		if same {
			l.same = append(l.same, i)
		} else {
			rest = append(rest, i)
		}
	}
	return rest
}

// wrap makes the widest column of text narrower by as much as columns are too wide, but leaves it wrapMin.
func (l *layout) wrap(t *decision.Table, columns, wide []int, width int) {
	over, widest := l.width(columns, wide)-width, -1
	for _, i := range columns {
		k := t.Columns[i].Type
		if (k == decision.Text || k == decision.List) && (widest < 0 || wide[i] > wide[widest]) {
			widest = i
		}
	}
	if over > 0 && widest >= 0 && wide[widest] > wrapMin {
		l.wrapped[widest] = max(wrapMin, wide[widest]-over)
	}
}

// once is what all rows have in common, in lines of at most width; "" if nothing.
func (l *layout) once(t *decision.Table, width int) string {
	var lines []string
	line := "in all rows:"
	for n, i := range l.same {
		item := " " + t.Columns[i].Name + " " + l.cells[i][0]
		if n < len(l.same)-1 {
			item += ","
		}
		if utf8.RuneCountInString(line+item) > width && line != "" {
			lines = append(lines, line)
			line = " "
		}
		line += item
	}
	if len(l.same) == 0 {
		return ""
	}
	return strings.Join(append(lines, line), "\n") + "\n"
}

// record shows one row as a line for each column.
func (l *layout) record(t *decision.Table, width int) string {
	longest, columns := 0, slices.Sorted(maps.Keys(l.cells))
	for _, i := range columns {
		longest = max(longest, utf8.RuneCountInString(t.Columns[i].Name))
	}
	var b strings.Builder
	for _, i := range columns {
		before := text.Pad(t.Columns[i].Name, longest+gap, ' ')
		for part := range strings.SplitSeq(text.WrapSoft(l.cells[i][0], max(wrapMin, width-longest-gap)), "\n") {
			b.WriteString(before + strings.TrimRight(part, " ") + "\n")
			before = strings.Repeat(" ", longest+gap)
		}
	}
	return b.String()
}

// table renders columns of the rows.
func (l *layout) table(t *decision.Table, columns []int, rows int) string {
	p := table.NewWriter()
	p.SetStyle(table.StyleDefault)
	p.Style().Options = table.OptionsNoBordersAndSeparators
	p.Style().Format.Header = text.FormatDefault
	p.Style().Box.PaddingLeft = ""
	p.Style().Box.PaddingRight = strings.Repeat(" ", gap)
	header := make(table.Row, len(columns))
	configs := make([]table.ColumnConfig, len(columns))
	for at, i := range columns {
		header[at] = t.Columns[i].Name
		configs[at].Number, configs[at].WidthMax = at+1, l.wrapped[i]
		configs[at].WidthMaxEnforcer = text.WrapSoft
		if k := t.Columns[i].Type; k == decision.Int || k == decision.Float {
			configs[at].Align, configs[at].AlignHeader = text.AlignRight, text.AlignRight
		}
	}
	p.SetColumnConfigs(configs)
	p.AppendHeader(header)
	p.SuppressTrailingSpaces()
	for row := range rows {
		cells := make(table.Row, len(columns))
		for at, i := range columns {
			cells[at] = l.cells[i][row]
		}
		p.AppendRow(cells)
	}
	return p.Render()
}
