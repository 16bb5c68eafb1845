package scenario

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/ingest/table"
)

// rows are inline rows as JSON, which go through the same decoder as any input, with the line of each.
type rows struct {
	json  bytes.Buffer
	lines []int
	ends  map[subKey]int64 // µs that a unit runs, of the rows that say so
}

// subKey names a sub-allocation of a source; plan is "" where the demand row names none.
type subKey struct{ plan, consumer, allocation, sub string }

// inline reads a list of rows. In demand rows `runtime` is taken out, for the player.
func (f *file) inline(n ast.Node, what string) (*rows, error) {
	list, err := f.list(n, what)
	if err != nil {
		return nil, err
	}
	r := &rows{ends: map[subKey]int64{}}
	r.json.WriteByte('[')
	for i, node := range list {
		pairs, err := f.pairs(node, what+" row")
		if err != nil {
			return nil, err
		}
		line, _ := start(node)
		r.lines = append(r.lines, line)
		if i > 0 {
			r.json.WriteString(",\n")
		}
		if err := f.row(r, pairs, what); err != nil {
			return nil, err
		}
	}
	r.json.WriteByte(']')
	return r, nil
}

func (f *file) row(r *rows, pairs []pair, what string) error {
	var key subKey
	runtime := int64(-1)
	separator := byte('{')
	for _, p := range pairs {
		if what == "demand" && p.key == "runtime" {
			d, err := time.ParseDuration(p.value.GetToken().Value)
			if err != nil || d <= 0 || d%time.Microsecond != 0 {
				return f.fail(p.value, "runtime, value %q: must be a duration above 0 such as 90s",
					p.value.GetToken().Value)
			}
			runtime = d.Microseconds()
			continue
		}
		value, err := f.scalar(p, what)
		if err != nil {
			return err
		}
		name, err := json.Marshal(p.key)
		if err != nil {
			return err
		}
		r.json.WriteByte(separator)
		separator = ','
		r.json.Write(name)
		r.json.WriteByte(':')
		r.json.Write(value)
		text := p.value.GetToken().Value
		switch p.key {
		case "plan":
			key.plan = text
		case "consumer":
			key.consumer = text
		case "allocation":
			key.allocation = text
		case "sub":
			key.sub = text
		}
	}
	if separator == '{' {
		r.json.WriteByte('{')
	}
	r.json.WriteByte('}')
	if runtime >= 0 {
		r.ends[key] = runtime
	}
	return nil
}

// scalar gives a value as JSON. Names that look like numbers keep their digits as text where the column is one.
func (f *file) scalar(p pair, what string) ([]byte, error) {
	raw := p.value.GetToken().Value
	switch v := p.value.(type) {
	case *ast.StringNode:
		return json.Marshal(v.Value)
	case *ast.LiteralNode:
		return json.Marshal(v.Value.Value)
	case *ast.NullNode:
		return []byte("null"), nil
	case *ast.BoolNode:
		return strconv.AppendBool(nil, v.Value), nil
	case *ast.IntegerNode:
		if textColumns[p.key] {
			return json.Marshal(raw)
		}
		if !decimal(v) {
			return nil, f.fail(v, "%s: %s, value %q: must be in plain decimal digits", what, p.key, raw)
		}
		return []byte(raw), nil
	case *ast.FloatNode:
		if textColumns[p.key] {
			return json.Marshal(raw)
		}
		return []byte(strings.TrimPrefix(raw, "+")), nil
	}
	return nil, f.fail(p.value, "%s: %s must be a finite number, a text, true or false, is %s", what, p.key,
		kindOf(p.value))
}

// textColumns are the columns of chapter 7 whose values are texts, whatever they look like.
var textColumns = map[string]bool{
	"host": true, "consumer": true, "allocation": true, "sub": true, "plan": true, "requirement": true,
}

// input is where a table comes from: rows in the scenario, or a file beside it.
type input struct {
	node ast.Node
	path string
	what string
}

// find picks the input of a kind from a mapping's values: `hosts`, say, or `hosts_file`.
func (f *file) find(values map[string]ast.Node, what string) (in input, ok bool, err error) {
	n, inline := values[what]
	p, named := values[what+"_file"]
	switch {
	case inline && named:
		return in, false, f.fail(p, "%s and %s_file exclude each other", what, what)
	case named:
		path, err := f.text(p, what+"_file")
		return input{p, f.beside(path), what}, true, err
	}
	return input{n, "", what}, inline, nil
}

// beside is a path relative to the scenario's file.
func (f *file) beside(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(f.name), path)
}

// feed is a decoded table, of a source where that matters, and where it was written.
type feed[T any] struct {
	source  string
	table   T
	content []byte // what it was decoded from, and how
	format  string
	what    string
	lines   []int            // by row; nil when read from a file of its own
	ends    map[subKey]int64 // demand: µs that a unit of a sub-allocation runs
}

// decode runs a decoder of ingest/table over an input. Row faults of inline rows are told by line.
func decode[T any](
	f *file, in input, dimensions []string, read func(io.Reader, table.Options) (T, error),
) (*feed[T], error) {
	fd := &feed[T]{source: sourceDefault, what: in.what}
	o := table.Options{Name: in.path, Dimensions: dimensions}
	if in.path != "" {
		r, err := os.Open(in.path)
		if err != nil {
			return nil, f.fail(in.node, "%v", err)
		}
		defer r.Close()
		fd.content, o.Format, err = table.Unpack(r, o)
		if err != nil {
			return nil, err
		}
		o.Compression, fd.format = table.Plain, o.Format.String()
		fd.table, err = read(bytes.NewReader(fd.content), o)
		return fd, err
	}
	r, err := f.inline(in.node, in.what)
	if err != nil {
		return nil, err
	}
	fd.lines, fd.ends = r.lines, r.ends
	o.Name, o.Format, o.Compression = f.name, table.JSON, table.Plain
	fd.content, fd.format = r.json.Bytes(), o.Format.String()
	fd.table, err = read(bytes.NewReader(fd.content), o)
	return fd, fd.located(f.name, err)
}

// located replaces the row numbers of a table's faults by the lines on which the rows stand.
func (fd *feed[T]) located(file string, err error) error {
	var faults *cluster.Faults
	if fd.lines == nil || !errors.As(err, &faults) {
		return err
	}
	var b strings.Builder
	for i, r := range faults.Rows {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(file)
		if r.Row > 0 && r.Row <= len(fd.lines) {
			fmt.Fprintf(&b, ":%d", fd.lines[r.Row-1])
		}
		b.WriteString(": " + fd.what)
		if r.Column != "" {
			b.WriteString(", column " + r.Column)
		}
		if r.Value != "" {
			fmt.Fprintf(&b, ", value %q", r.Value)
		}
		b.WriteString(": " + r.Reason)
	}
	if faults.Count > len(faults.Rows) {
		fmt.Fprintf(&b, "\n%s: %d faults in all, the first %d are shown", file, faults.Count, len(faults.Rows))
	}
	return errors.New(b.String())
}
