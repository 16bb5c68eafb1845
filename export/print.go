package export

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stintd/stint/core/decision"
)

// Formats are the formats of Print.
var Formats = []string{"table", "json", "ndjson", "csv"}

// tableRowsMax is how many rows the format `table` shows when not told otherwise.
const tableRowsMax = 10_000

// PrintOptions say what of a table is printed.
type PrintOptions struct {
	Where   []Where // rows must match all
	RowsMax int     // 0: 10,000 in the format table, all in the others
	Width   int     // of a line, in the format table; 0: any
	All     bool    // columns without a value too, as wide as they are
}

// Print writes a table. The format `table` is for people: columns aligned, numbers to the right, shares with four
// decimals, `-` where there is no value, and a last line that tells how many rows were left out, if any. Columns
// without any value are left out, and the rest is made to fit Width: what all rows have in common is told once, text is
// wrapped, a single row is shown as a line for each column, several rows in blocks of columns. Of no rows a sentence
// tells. The others are for programs and exact: json is an array of objects, ndjson an object a line, csv has a header
// and leaves out what has no value (null in JSON). Instants are RFC 3339 in UTC. Errors: an unknown format, a Where
// that does not suit the table, w's own.
func Print(w io.Writer, t *decision.Table, format string, o PrintOptions) error {
	keep, err := matcher(t, o.Where)
	if err != nil {
		return err
	}
	if err := t.Check(); err != nil {
		panic("BUG: " + err.Error())
	}
	var rows []int
	left := 0
	if o.RowsMax == 0 && format == "table" {
		o.RowsMax = tableRowsMax
	}
	for row := range t.Rows {
		switch {
		case !keep(row):
		case o.RowsMax > 0 && len(rows) == o.RowsMax:
			left++
		default:
			rows = append(rows, row)
		}
	}
	out := bufio.NewWriterSize(w, 1<<16)
	switch format {
	case "table":
		printTable(out, t, rows, left, o)
	case "json", "ndjson":
		err = printJSON(out, t, rows, format == "ndjson")
	case "csv":
		err = printCSV(out, t, rows)
	default:
		return fmt.Errorf("no format %q; there are %s", format, strings.Join(Formats, ", "))
	}
	if err != nil {
		return err
	}
	return out.Flush()
}

func printTable(w *bufio.Writer, t *decision.Table, rows []int, left int, o PrintOptions) {
	if len(rows) == 0 {
		fmt.Fprintln(w, noRows(t))
		return
	}
	if o.All {
		o.Width = 0
	}
	l := fit(t, rows, o.All, o.Width)
	if len(rows) == 1 && len(l.blocks) > 1 {
		w.WriteString(l.record(t, o.Width)) // the writer keeps its error for Flush
		return
	}
	w.WriteString(l.once(t, o.Width))
	for n, columns := range l.blocks {
		if n > 0 {
			w.WriteByte('\n')
		}
		w.WriteString(l.table(t, columns, len(rows)) + "\n")
	}
	if left > 0 {
		fmt.Fprintf(w, "… and %d more rows\n", left)
	}
}

// noRows says that a table has none, or none of those that are asked for.
func noRows(t *decision.Table) string {
	switch {
	case t.Rows == 0:
		return "no rows in " + t.Name
	case t.Rows == 1:
		return "the one row in " + t.Name + " does not match"
	}
	return fmt.Sprintf("none of the %d rows in %s matches", t.Rows, t.Name)
}

// cell is a value for people.
func cell(c *decision.Column, row int) string {
	if c.IsNull(row) {
		return "-"
	}
	if c.Type == decision.Float && c.Name == "unit_seconds_lost" {
		return strconv.FormatFloat(c.Float[row], 'f', -1, 64) // seconds, down to milliseconds
	}
	if c.Type == decision.Float {
		return strconv.FormatFloat(c.Float[row], 'f', 4, 64)
	}
	return value(c, row)
}

// value is a value as text, exact; "" where there is none.
func value(c *decision.Column, row int) string {
	if c.IsNull(row) {
		return ""
	}
	switch c.Type {
	case decision.Float:
		return strconv.FormatFloat(c.Float[row], 'g', -1, 64)
	case decision.Text:
		return textAt(c, row)
	case decision.Time:
		return time.UnixMicro(c.Int[row]).UTC().Format(time.RFC3339Nano)
	case decision.List:
		return strings.Join(c.Lists[row], " ")
	default:
		return strconv.FormatInt(c.Int[row], 10)
	}
}

func printCSV(w *bufio.Writer, t *decision.Table, rows []int) error {
	return printCSVRows(w, t, rows, true)
}

func printCSVRows(w *bufio.Writer, t *decision.Table, rows []int, header bool) error {
	out := csv.NewWriter(w)
	record := make([]string, len(t.Columns))
	for i := range t.Columns {
		record[i] = t.Columns[i].Name
	}
	if header {
		if err := out.Write(record); err != nil {
			return err
		}
	}
	for _, row := range rows {
		for i := range t.Columns {
			record[i] = value(&t.Columns[i], row)
		}
		if err := out.Write(record); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func printJSON(w *bufio.Writer, t *decision.Table, rows []int, lines bool) error {
	before, after := "", "\n"
	if !lines {
		before, after = "[", "]\n"
	} else if len(rows) == 0 {
		after = ""
	}
	w.WriteString(before) // the writer keeps its error for Flush
	printJSONRows(w, t, rows, nil, lines, true)
	_, err := w.WriteString(after)
	return err
}

// printJSONRows writes rows, and before each but the first of all what stands between two.
func printJSONRows(w *bufio.Writer, t *decision.Table, rows []int, booleans []string, lines, first bool) {
	names := make([][]byte, len(t.Columns))
	words := make([]map[int32][]byte, len(t.Columns)) // by code, quoted
	boolean := make([]bool, len(t.Columns))
	for i := range t.Columns {
		names[i] = append(appendQuoted(nil, t.Columns[i].Name), ':')
		words[i] = map[int32][]byte{}
		boolean[i] = slices.Contains(booleans, t.Columns[i].Name)
	}
	between := ",\n "
	if lines {
		between = "\n"
	}
	var line []byte
	for n, row := range rows {
		line = line[:0]
		if n > 0 || !first {
			line = append(line, between...)
		}
		for i := range t.Columns {
			line = append(append(line, "{,"[min(i, 1)]), names[i]...)
			if c := &t.Columns[i]; boolean[i] && !c.IsNull(row) {
				is := value(c, row)
				line = strconv.AppendBool(line, is == "1" || is == "true")
			} else {
				line = appendJSON(line, c, row, words[i])
			}
		}
		if _, err := w.Write(append(line, '}')); err != nil {
			return // Flush tells
		}
	}
}

func appendJSON(to []byte, c *decision.Column, row int, words map[int32][]byte) []byte {
	if c.IsNull(row) {
		return append(to, "null"...)
	}
	switch c.Type {
	case decision.Int, decision.Float:
		return append(to, value(c, row)...)
	case decision.Text:
		word, ok := words[c.Code[row]]
		if !ok {
			word = appendQuoted(nil, textAt(c, row))
			words[c.Code[row]] = word
		}
		return append(to, word...)
	case decision.List:
		to = append(to, '[')
		for i, s := range c.Lists[row] {
			if i > 0 {
				to = append(to, ',')
			}
			to = appendQuoted(to, s)
		}
		return append(to, ']')
	default:
		return appendQuoted(to, value(c, row))
	}
}

// appendQuoted appends a JSON string; `<`, `>` and `&` stay as they are.
func appendQuoted(to []byte, s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic("BUG: " + err.Error()) // a string always encodes
	}
	return append(to, bytes.TrimRight(b.Bytes(), "\n")...)
}
