package datasets

import (
	"bufio"
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
)

// Formats are the formats that Write knows, by file ending.
var Formats = []string{"parquet", "csv", "json", "ndjson"}

// column is a column on its way to a file: text or whole numbers.
type column struct {
	name string
	text *cluster.TextColumn
	ints []int64
}

func (c *column) at(row int) string {
	if c.text != nil {
		return string(c.text.Names.Bytes(c.text.Code[row]))
	}
	return strconv.FormatInt(c.ints[row], 10)
}

// Write makes `plan.yaml`, `hosts.<format>` and `demand.<format>` in dir, which is made when missing.
// It overwrites nothing: a file that is already there is an error, and then none is written.
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
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, names[0]), d.Plan, 0o666); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(dir, names[1]), format, d.Hosts.Rows, d.hostColumns()); err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, names[2]), format, d.Demand.Rows, d.demandColumns())
}

func (d *Dataset) hostColumns() []column {
	columns := []column{{name: "host", text: &d.Hosts.Host}}
	for i, n := range d.Dimensions {
		columns = append(columns, column{name: n, ints: d.Hosts.Size[i]})
	}
	for i := range d.Hosts.Attr {
		columns = append(columns, column{name: d.Hosts.Attr[i].Name, text: &d.Hosts.Attr[i].Text})
	}
	return columns
}

func (d *Dataset) demandColumns() []column {
	t := d.Demand
	columns := []column{
		{name: "consumer", text: &t.Consumer}, {name: "allocation", text: &t.Allocation},
		{name: "sub", text: &t.Sub}, {name: "units", ints: t.Units},
	}
	for i, n := range d.Dimensions {
		columns = append(columns, column{name: n, ints: t.Size[i]})
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
			record[i] = columns[i].at(row)
		}
		if err := c.Write(record); err != nil {
			return err
		}
	}
	c.Flush()
	return c.Error()
}

// writeJSON writes an object a line, keys in the order of the columns; within brackets when array is set.
func writeJSON(w *bufio.Writer, rows int, columns []column, array bool) error {
	for row := range rows {
		switch {
		case array && row == 0:
			w.WriteString("[")
		case array:
			w.WriteString(",\n")
		}
		for i := range columns {
			w.WriteByte("{,"[min(i, 1)])
			fmt.Fprintf(w, "%q:", columns[i].name)
			if columns[i].text == nil {
				w.WriteString(columns[i].at(row))
				continue
			}
			text, err := json.Marshal(columns[i].at(row))
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

// writeParquet writes required columns, text dictionary-encoded, zstd, a row group per 122,880 rows.
func writeParquet(w io.Writer, rows int, columns []column) error {
	group := parquet.Group{}
	for _, c := range columns {
		if c.text != nil {
			group[c.name] = parquet.Encoded(parquet.String(), &parquet.RLEDictionary)
		} else {
			group[c.name] = parquet.Int(64)
		}
	}
	schema := parquet.NewSchema("table", group)
	index := make([]int, len(columns)) // a group orders its fields itself
	for i, c := range columns {
		leaf, ok := schema.Lookup(c.name)
		if !ok {
			panic("BUG: column " + c.name + " is not in its own schema")
		}
		index[i] = leaf.ColumnIndex
	}
	pw := parquet.NewWriter(w, schema, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(122_880))
	batch := make([]parquet.Row, 0, 1024)
	for row := range rows {
		if len(batch) < cap(batch) {
			batch = append(batch, make(parquet.Row, len(columns)))
		}
		values := batch[row%cap(batch)]
		for i, c := range columns {
			v := parquet.Value{}
			if c.text != nil {
				v = parquet.ByteArrayValue(c.text.Names.Bytes(c.text.Code[row]))
			} else {
				v = parquet.Int64Value(c.ints[row])
			}
			values[index[i]] = v.Level(0, 0, index[i])
		}
		if n := row%cap(batch) + 1; n == cap(batch) || row == rows-1 {
			if _, err := pw.WriteRows(batch[:n]); err != nil {
				return err
			}
		}
	}
	return pw.Close()
}
