// Package table turns the bytes of input tables (SPEC chapter 7) into the columns
// of core/cluster: CSV, NDJSON, JSON, Arrow IPC streams and Parquet, plain or
// packed with gzip or zstd, from sources that need not be trusted.
package table

import (
	"io"

	"github.com/stintd/stint/core/cluster"
	columns "github.com/stintd/stint/core/column"
)

// ReadHosts decodes a hosts table: columns host, state, one per dimension, and any
// other as an attribute. The error is *cluster.Faults with every bad value, or has
// ErrLimit or what r gave in its chain.
func ReadHosts(r io.Reader, o Options) (*cluster.HostTable, error) {
	b := newBuilder()
	b.open = true
	t := &cluster.HostTable{Name: o.Name}
	schema := t.Schema(o.Dimensions)
	b.declare(schema)
	if err := b.read(r, o, "hosts"); err != nil {
		return nil, err
	}
	t.Rows = b.rows
	b.keep(schema)
	for _, c := range b.columns[b.fixed:] {
		t.Attr = append(t.Attr, c.attribute())
	}
	return t, nil
}

// ReadDemand decodes a demand table (SPEC chapter 7). Errors are those of ReadHosts.
func ReadDemand(r io.Reader, o Options) (*cluster.DemandTable, error) {
	t := new(cluster.DemandTable)
	if err := ReadDemandInto(t, r, o); err != nil {
		return nil, err
	}
	return t, nil
}

// ReadDemandInto is ReadDemand into a table whose columns and dictionaries are
// reused: once they are large enough, it allocates nothing per row. What dst held
// is gone; after an error it has no rows.
func ReadDemandInto(dst *cluster.DemandTable, r io.Reader, o Options) error {
	return readDemand(newBuilder(), dst, r, o)
}

// ReadAsked decodes demand that is not there: as ReadDemand, and a column more, of how long units run. Its texts are
// as they were given.
func ReadAsked(r io.Reader, o Options) (t *cluster.DemandTable, runtime cluster.TextColumn, err error) {
	b, asked := newBuilder(), Asked(&runtime)
	b.declare(asked)
	t = new(cluster.DemandTable)
	if err := readDemand(b, t, r, o); err != nil {
		return nil, runtime, err
	}
	b.keep(asked)
	return t, runtime, nil
}

// Asked declares the columns of demand that is not there, besides those of demand.
func Asked(runtime *cluster.TextColumn) columns.Schema {
	return columns.Schema{Name: "asked", Lines: []columns.Line{{
		Name: "runtime", Of: runtime, Nullable: true, Doc: "how long a unit runs, such as 90s",
		Input: &columns.Input{Type: "text", Most: cluster.NameBytesMax},
	}}}
}

// readDemand decodes demand with what columns there are besides.
func readDemand(b *builder, dst *cluster.DemandTable, r io.Reader, o Options) error {
	schema := dst.Schema(o.Dimensions)
	b.declare(schema)
	err := b.read(r, o, "demand")
	if err != nil || b.rows == 0 {
		b.empty()
	}
	dst.Name, dst.Rows = o.Name, b.rows
	b.keep(schema)
	return err
}

// ReadHoldings decodes a table of running units, or of released ones, which may
// have the columns done and device (SPEC chapter 7). Errors are those of ReadHosts.
func ReadHoldings(r io.Reader, o Options, releases bool) (*cluster.HoldingTable, error) {
	t := &cluster.HoldingTable{Name: o.Name}
	schema := t.Schema()
	if releases {
		schema = t.Releases()
	}
	b := newBuilder()
	b.declare(schema)
	if err := b.read(r, o, schema.Name); err != nil {
		return nil, err
	}
	t.Rows = b.rows
	b.keep(schema)
	return t, nil
}

func newBuilder() *builder { return &builder{options: new(Options), byName: map[string]*column{}} }

// declare puts the columns of a table into those that the input may have, reusing the memory of what they held. A line
// that has the name of an earlier one is left out (D-157).
func (b *builder) declare(s columns.Schema) {
	for i := range s.Lines {
		l := &s.Lines[i]
		if b.byName[l.Name] != nil {
			continue
		}
		c := column{name: l.Name, of: l, required: !l.Nullable, unique: l.Input.Unique, bytesMax: l.Input.Most,
			min: l.Input.Least, unset: l.Input.Unset, absent: l.Absent}
		if of, text := l.Of.(*cluster.TextColumn); text {
			c.kind, c.names, c.code = kindText, of.Names, of.Code
		} else if of := columns.Slice[int64](l.Of); of != nil {
			c.kind, c.ints = kindCount, *of
		} else if columns.Slice[bool](l.Of) != nil {
			c.kind = kindFlag
		} else {
			c.kind = kindState
		}
		b.add(c)
	}
}

// keep gives the columns of a table their values, nil where the input did not have the column.
func (b *builder) keep(s columns.Schema) {
	for i := range s.Lines {
		l := &s.Lines[i]
		c := b.byName[l.Name]
		if c.of != l {
			c = new(column)
		}
		if of, text := l.Of.(*cluster.TextColumn); text {
			*of = c.texts()
		} else if of := columns.Slice[int64](l.Of); of != nil {
			*of = given(c, c.ints)
		} else if of := columns.Slice[bool](l.Of); of != nil {
			*of = given(c, c.bools)
		} else {
			*columns.Slice[cluster.HostState](l.Of) = given(c, c.states)
		}
	}
}

// texts is the column as the tables have it.
func (c *column) texts() cluster.TextColumn {
	c.settle()
	return cluster.TextColumn{Names: c.names, Code: given(c, c.code)}
}

// given is the values of a column, nil when the input did not have it.
func given[T any](c *column, values []T) []T {
	if !c.given {
		return nil
	}
	return values
}

// empty takes all rows away and keeps the memory.
func (b *builder) empty() {
	b.rows = 0
	for _, c := range b.columns {
		c.code, c.ints, c.given = c.code[:0], c.ints[:0], true
	}
}
