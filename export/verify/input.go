package verify

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"
)

// grid is a table of input as it was given: a cell is nil, a string, an int64, a float64 or a bool. In CSV every
// cell is a string.
type grid struct {
	names   []string
	at      map[string]int
	rows    [][]any
	typed   bool // cells have the types that they were given; false: CSV
	objects bool // rows are objects: a nil cell is a key that was left out
}

// Decode reads a table of input in a format that this package does not read itself: rows of cells (nil, string, int64,
// float64, bool) with the names of the columns.
type Decode func(kind, format string, dimensions []string, content []byte) (names []string, rows [][]any, err error)

// readGrid reads a table. Arrow streams go through decode: arrow's own reader cannot be let at bytes that may be
// damaged.
func readGrid(kind, format string, dimensions []string, content []byte, decode Decode) (g *grid, err error) {
	defer func() {
		if p := recover(); p != nil {
			g, err = nil, fmt.Errorf("damaged: %v", p)
		}
	}()
	g = &grid{typed: true}
	switch format {
	case "csv":
		err = g.csv(content)
	case "json":
		err = g.json(content)
	case "ndjson":
		err = g.ndjson(content)
	case "parquet":
		err = g.parquet(content)
	default:
		if decode == nil {
			return nil, fmt.Errorf("the format %q is not read here", format)
		}
		g.names, g.rows, err = decode(kind, format, dimensions, content)
	}
	if err != nil {
		return nil, err
	}
	g.at = map[string]int{}
	for i, name := range g.names {
		g.at[name] = i
	}
	return g, nil
}

func (g *grid) csv(content []byte) error {
	g.typed = false
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(content, []byte("\ufeff"))))
	header, err := r.Read()
	if err != nil {
		return err
	}
	g.names = header
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		row := make([]any, len(record))
		for i, s := range record {
			if s != "" {
				row[i] = s
			}
		}
		g.rows = append(g.rows, row)
	}
}

// object appends a row of JSON, with the columns that it brings.
func (g *grid) object(o map[string]any) {
	g.objects = true
	for name := range o {
		g.column(name)
	}
	row := make([]any, len(g.names))
	for name, v := range o {
		row[g.at[name]] = scalar(v)
	}
	g.rows = append(g.rows, row)
}

// column adds a column unless it is there.
func (g *grid) column(name string) {
	if g.at == nil {
		g.at = map[string]int{}
	}
	if _, ok := g.at[name]; !ok {
		g.at[name] = len(g.names)
		g.names = append(g.names, name)
	}
}

// scalar is a value of JSON as a cell; absent stands for one that is given as null.
func scalar(v any) any {
	n, ok := v.(json.Number)
	if !ok {
		if v == nil {
			return null{}
		}
		return v
	}
	if i, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
		return i
	}
	f, err := n.Float64()
	if err != nil {
		return n.String()
	}
	return f
}

// null is an explicit null, which in changes of hosts is a value (D-27), unlike a key that is left out.
type null struct{}

func (g *grid) json(content []byte) error {
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return err
	}
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			o, ok := one.(map[string]any)
			if !ok {
				return fmt.Errorf("a row is no object")
			}
			g.object(o)
		}
		return nil
	case map[string]any:
		return g.columns(v)
	}
	return fmt.Errorf("neither a list of rows nor an object of columns")
}

// columns reads an object of columns.
func (g *grid) columns(o map[string]any) error {
	for name, v := range o {
		list, ok := v.([]any)
		if !ok {
			return fmt.Errorf("column %s is no list", name)
		}
		g.column(name)
		for len(g.rows) < len(list) {
			g.rows = append(g.rows, nil)
		}
		for i, cell := range list {
			for len(g.rows[i]) <= g.at[name] {
				g.rows[i] = append(g.rows[i], nil)
			}
			g.rows[i][g.at[name]] = scalar(cell)
		}
	}
	return nil
}

func (g *grid) ndjson(content []byte) error {
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	for {
		var o map[string]any
		if err := d.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		g.object(o)
	}
}

func (g *grid) parquet(content []byte) error {
	f, err := parquet.OpenFile(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return err
	}
	for _, path := range f.Schema().Columns() {
		g.column(strings.Join(path, "."))
	}
	for _, group := range f.RowGroups() {
		first := len(g.rows)
		for range group.NumRows() {
			g.rows = append(g.rows, make([]any, len(g.names)))
		}
		for i, chunk := range group.ColumnChunks() {
			if err := g.chunk(chunk, i, first); err != nil {
				return err
			}
		}
	}
	return nil
}

// chunk reads a column of a row group into the rows from first on.
func (g *grid) chunk(chunk parquet.ColumnChunk, column, first int) error {
	pages := chunk.Pages()
	defer pages.Close()
	row, values := first, make([]parquet.Value, 1024)
	for {
		page, err := pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		from := page.Values()
		for {
			n, err := from.ReadValues(values)
			for _, v := range values[:n] {
				g.rows[row][column] = cellOf(v)
				row++
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
		}
		parquet.Release(page)
	}
}

func cellOf(v parquet.Value) any {
	switch {
	case v.IsNull():
		return nil
	case v.Kind() == parquet.Boolean:
		return v.Boolean()
	case v.Kind() == parquet.Int32:
		return int64(v.Int32())
	case v.Kind() == parquet.Int64:
		return v.Int64()
	case v.Kind() == parquet.Float:
		return float64(v.Float())
	case v.Kind() == parquet.Double:
		return v.Double()
	}
	return string(v.ByteArray())
}

// cell is a cell by column name, nil when the row or table has none.
func (g *grid) cell(row int, name string) any {
	i, ok := g.at[name]
	if !ok || i >= len(g.rows[row]) {
		return nil
	}
	return g.rows[row][i]
}

// key is the sub-allocation of a plan that a row names.
func (g *grid) key(row int, plan string) key {
	return key{plan, g.text(row, "consumer"), g.text(row, "allocation"), g.text(row, "sub"), ""}
}

// text is a cell as text, "" when there is none.
func (g *grid) text(row int, name string) string { return textOf(g.cell(row, name)) }

func textOf(cell any) string {
	switch v := cell.(type) {
	case nil, null:
		return ""
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return fmt.Sprint(cell)
}

// whole is a cell as a whole number; given is false when there is none.
func (g *grid) whole(row int, name string) (n int64, given bool) {
	switch v := g.cell(row, name).(type) {
	case int64:
		return v, true
	case float64:
		return int64(v), true
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		return n, err == nil
	case null:
		return 0, true
	}
	return 0, false
}

// yes is a cell as true or false.
func (g *grid) yes(row int, name string) bool {
	switch v := g.cell(row, name).(type) {
	case bool:
		return v
	case string:
		return v == "true"
	}
	return false
}
