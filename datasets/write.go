package datasets

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/parquet-go/parquet-go"
	"github.com/stintd/stint/core/cluster"
	schema "github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/plan"
)

// Formats are the formats that Write knows, by file ending.
var Formats = []string{"parquet", "csv", "json", "ndjson"}

// column is a column on its way to a file. One of its value slices is set.
type column struct {
	name    string
	text    *cluster.TextColumn
	ints    []int64
	numbers []float64
	bools   []bool
	null    func(row int) bool // nil: every row has a value
}

// at is a row's value as CSV and JSON write it, but for JSON's quotes around text; ok is false for null.
func (c *column) at(row int) (value string, ok bool) {
	switch {
	case c.null != nil && c.null(row):
		return "", false
	case c.text != nil:
		return string(c.text.Names.Bytes(c.text.Code[row])), true
	case c.numbers != nil:
		return strconv.FormatFloat(c.numbers[row], 'g', -1, 64), true
	case c.bools != nil:
		return strconv.FormatBool(c.bools[row]), true
	}
	return strconv.FormatInt(c.ints[row], 10), true
}

// Write makes `plan.yaml`, with the schema by which editors help with it, `hosts.<format>` and `demand.<format>` in
// dir, which is made when missing. A table that is nil gets no file. It overwrites nothing: a file that is already
// there is an error, and then none is written; the schema may be there already.
func (d *Dataset) Write(dir, format string) error {
	if !slices.Contains(Formats, format) {
		return fmt.Errorf("format %q: must be one of %v", format, Formats)
	}
	names := []string{"plan.yaml", "hosts." + format, "demand." + format}
	for _, n := range names {
		if _, err := os.Lstat(filepath.Join(dir, n)); err == nil {
			return fmt.Errorf("%s: is already there", filepath.Join(dir, n))
		}
	}
	schemaFile := filepath.Join(dir, plan.SchemaFile)
	if was, err := os.ReadFile(schemaFile); err == nil && !bytes.Equal(was, plan.Schema()) {
		return fmt.Errorf("%s: is already there, and is another one", schemaFile)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	if err := os.WriteFile(schemaFile, plan.Schema(), 0o666); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, names[0]), append([]byte(plan.SchemaLine), d.Plan...),
		0o666); err != nil {
		return err
	}
	if d.Hosts != nil {
		if err := writeFile(filepath.Join(dir, names[1]), format, d.Hosts.Rows, d.hostColumns()); err != nil {
			return err
		}
	}
	if d.Demand == nil {
		return nil
	}
	return writeFile(filepath.Join(dir, names[2]), format, d.Demand.Rows, columnsOf(d.Demand.Schema(d.Dimensions)))
}

func (d *Dataset) hostColumns() []column {
	columns := columnsOf(d.Hosts.Schema(d.Dimensions))
	for i := range d.Hosts.Attr {
		a := &d.Hosts.Attr[i]
		c := column{name: a.Name}
		switch a.Kind {
		case plan.Number:
			c.numbers = a.Number
		case plan.Boolean:
			c.bools = a.Bool
		default:
			c.text = &a.Text
		}
		if slices.Contains(a.Valid, false) {
			c.null = func(row int) bool { return !a.Valid[row] }
		}
		columns = append(columns, c)
	}
	return columns
}

// columnsOf are the columns that a table has.
func columnsOf(s schema.Schema) (columns []column) {
	for _, l := range s.Given() {
		c := column{name: l.Name}
		if text, ok := l.Of.(*cluster.TextColumn); ok {
			c.text = text
			if slices.Contains(text.Code, cluster.Null) {
				c.null = func(row int) bool { return text.Code[row] == cluster.Null }
			}
		} else if ints := schema.Slice[int64](l.Of); ints != nil {
			c.ints = *ints
			if l.Absent != 0 && slices.Contains(c.ints, l.Absent) {
				c.null = func(row int) bool { return c.ints[row] == l.Absent }
			}
		} else {
			c.text = &cluster.TextColumn{Names: &cluster.Names{}}
			for row := range l.Of.Len() {
				c.text.Code = append(c.text.Code, c.text.Names.InternString(fmt.Sprint(l.Value(row))))
			}
		}
		columns = append(columns, c)
	}
	return columns
}

func writeFile(path, format string, rows int, columns []column) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
	}()
	w := bufio.NewWriterSize(f, 1<<20)
	switch format {
	case "csv":
		err = writeCSV(w, rows, columns)
	case "parquet":
		err = writeParquet(w, rows, columns)
	default:
		err = writeJSON(w, rows, columns, format == "json")
	}
	if err != nil {
		return err
	}
	return w.Flush()
}

func writeCSV(w io.Writer, rows int, columns []column) error {
	c := csv.NewWriter(w)
	record := make([]string, len(columns))
	for i := range columns {
		record[i] = columns[i].name
	}
	if err := c.Write(record); err != nil {
		return err
	}
	for row := range rows {
		for i := range columns {
			record[i], _ = columns[i].at(row)
		}
		if err := c.Write(record); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

// writeJSON writes an object a line, keys in the order of the columns, null left out; within brackets when array
// is set.
func writeJSON(w *bufio.Writer, rows int, columns []column, array bool) error {
	for row := range rows {
		switch {
		case array && row == 0:
			w.WriteString("[")
		case array:
			w.WriteString(",\n")
		}
		for i := range columns { // the first is never null
			value, ok := columns[i].at(row)
			if !ok {
				continue
			}
			w.WriteByte("{,"[min(i, 1)])
			fmt.Fprintf(w, "%q:", columns[i].name)
			if columns[i].text == nil {
				w.WriteString(value)
				continue
			}
			text, err := json.Marshal(value)
			if err != nil {
				return err
			}
			w.Write(text)
		}
		w.WriteByte('}')
		if !array {
			w.WriteByte('\n')
		}
	}
	if array {
		if rows == 0 {
			w.WriteByte('[')
		}
		w.WriteString("]\n")
	}
	return w.Flush() // bufio keeps the first error of all these writes
}

// writeParquet writes text dictionary-encoded, zstd, a row group per 122,880 rows.
func writeParquet(w io.Writer, rows int, columns []column) error {
	group := parquet.Group{}
	for _, c := range columns {
		node := parquet.Int(64)
		switch {
		case c.text != nil:
			node = parquet.Encoded(parquet.String(), &parquet.RLEDictionary)
		case c.numbers != nil:
			node = parquet.Leaf(parquet.DoubleType)
		case c.bools != nil:
			node = parquet.Leaf(parquet.BooleanType)
		}
		if c.null != nil {
			node = parquet.Optional(node)
		}
		group[c.name] = node
	}
	table := parquet.NewSchema("table", group)
	index := make([]int, len(columns)) // a group orders its fields itself
	for i, c := range columns {
		leaf, ok := table.Lookup(c.name)
		if !ok {
			panic("BUG: column " + c.name + " is not in its own schema")
		}
		index[i] = leaf.ColumnIndex
	}
	pw := parquet.NewWriter(w, table, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(122_880))
	batch := make([]parquet.Row, 0, 1024)
	for row := range rows {
		if len(batch) < cap(batch) {
			batch = append(batch, make(parquet.Row, len(columns)))
		}
		values := batch[row%cap(batch)]
		for i := range columns {
			values[index[i]] = columns[i].parquet(row, index[i])
		}
		if n := row%cap(batch) + 1; n == cap(batch) || row == rows-1 {
			if _, err := pw.WriteRows(batch[:n]); err != nil {
				return err
			}
		}
	}
	return pw.Close()
}

// parquet is a row's value in the column of a schema.
func (c *column) parquet(row, index int) parquet.Value {
	defined := 0
	if c.null != nil {
		if c.null(row) {
			return parquet.NullValue().Level(0, 0, index)
		}
		defined = 1
	}
	var v parquet.Value
	switch {
	case c.text != nil:
		v = parquet.ByteArrayValue(c.text.Names.Bytes(c.text.Code[row]))
	case c.numbers != nil:
		v = parquet.DoubleValue(c.numbers[row])
	case c.bools != nil:
		v = parquet.BooleanValue(c.bools[row])
	default:
		v = parquet.Int64Value(c.ints[row])
	}
	return v.Level(0, defined, index)
}
