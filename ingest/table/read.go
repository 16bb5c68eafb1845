// Package table turns the bytes of input tables (SPEC chapter 7) into the columns
// of core/cluster: CSV, NDJSON, JSON, Arrow IPC streams and Parquet, plain or
// packed with gzip or zstd, from sources that need not be trusted.
package table

import (
	"io"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// ReadHosts decodes a hosts table: columns host, state, one per dimension, and any
// other as an attribute. The error is *cluster.Faults with every bad value, or has
// ErrLimit or what r gave in its chain.
func ReadHosts(r io.Reader, o Options) (*cluster.HostTable, error) {
	b := newBuilder()
	b.open = true
	host := b.name("host", true, cluster.TextColumn{})
	host.unique = true
	state := b.add(column{name: "state", kind: kindState})
	sizes := b.sizes(o.Dimensions, nil)
	for _, c := range sizes {
		c.absent = cluster.NotGiven
	}
	if err := b.read(r, o, "hosts"); err != nil {
		return nil, err
	}
	t := &cluster.HostTable{
		Name: o.Name, Rows: b.rows, Host: host.texts(),
		State: given(state, state.states), Size: sizeValues(sizes),
	}
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
	b := newBuilder()
	c := b.name("runtime", false, cluster.TextColumn{})
	t = new(cluster.DemandTable)
	if err := readDemand(b, t, r, o); err != nil {
		return nil, runtime, err
	}
	return t, c.texts(), nil
}

// readDemand decodes demand with what columns there are besides.
func readDemand(b *builder, dst *cluster.DemandTable, r io.Reader, o Options) error {
	consumer := b.name("consumer", true, dst.Consumer)
	allocation := b.name("allocation", true, dst.Allocation)
	sub := b.name("sub", false, dst.Sub)
	units := b.counts("units", true, 0, 0, dst.Units)
	planName := b.name("plan", false, dst.Plan)
	requirement := b.name("requirement", false, dst.Requirement)
	requirement.bytesMax = requirementBytesMax
	perHost := b.counts("max_per_host", false, 1, plan.Unlimited, dst.MaxPerHost)
	least, together := &column{}, &column{} // a dimension of an older policy may have the name (D-157)
	if !slices.Contains(o.Dimensions, "min_units") {
		least = b.counts("min_units", false, 1, 1, dst.MinUnits)
	}
	if !slices.Contains(o.Dimensions, "together") {
		together = b.name("together", false, dst.Together)
	}
	sizes := b.sizes(o.Dimensions, dst.Size)
	err := b.read(r, o, "demand")
	if err != nil || b.rows == 0 {
		b.empty()
	}
	*dst = cluster.DemandTable{
		Name: o.Name, Rows: b.rows, Consumer: consumer.texts(), Allocation: allocation.texts(), Sub: sub.texts(),
		Plan: planName.texts(), Requirement: requirement.texts(), Units: units.ints,
		Size: sizeValues(sizes), MaxPerHost: given(perHost, perHost.ints),
		MinUnits: given(least, least.ints), Together: together.texts(),
	}
	return err
}

// ReadHoldings decodes a table of running units, or of released ones, which may
// have the columns done and device (SPEC chapter 7). Errors are those of ReadHosts.
func ReadHoldings(r io.Reader, o Options, releases bool) (*cluster.HoldingTable, error) {
	b := newBuilder()
	consumer := b.name("consumer", true, cluster.TextColumn{})
	allocation := b.name("allocation", true, cluster.TextColumn{})
	sub := b.name("sub", false, cluster.TextColumn{})
	host := b.name("host", true, cluster.TextColumn{})
	units := b.counts("units", true, 0, 0, nil)
	label, done, device := "running", new(column), new(column)
	if releases {
		label, done = "releases", b.add(column{name: "done", kind: kindFlag})
		device = b.name("device", false, cluster.TextColumn{})
	}
	if err := b.read(r, o, label); err != nil {
		return nil, err
	}
	t := &cluster.HoldingTable{
		Name: o.Name, Rows: b.rows, Consumer: consumer.texts(), Allocation: allocation.texts(), Sub: sub.texts(),
		Host: host.texts(), Units: units.ints, Done: given(done, done.bools),
	}
	if releases {
		t.Device = device.texts()
	}
	return t, nil
}

func newBuilder() *builder { return &builder{options: new(Options), byName: map[string]*column{}} }

// name puts a column of names into the schema, reusing the memory of what it held.
func (b *builder) name(name string, required bool, old cluster.TextColumn) *column {
	return b.add(column{name: name, kind: kindText, required: required, bytesMax: cluster.NameBytesMax,
		names: old.Names, code: old.Code})
}

// counts puts a column of numbers into the schema, reusing the memory of what it held.
func (b *builder) counts(name string, required bool, min, unset int64, old []int64) *column {
	return b.add(column{name: name, kind: kindCount, required: required, min: min, unset: unset, absent: unset,
		ints: old})
}

// sizes puts a column per dimension into the schema.
func (b *builder) sizes(dimensions []string, old [][]int64) []*column {
	columns := make([]*column, len(dimensions))
	for d, name := range dimensions {
		var was []int64
		if d < len(old) {
			was = old[d]
		}
		columns[d] = b.counts(name, false, 0, 0, was)
	}
	return columns
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

// sizeValues is the values of columns of numbers.
func sizeValues(columns []*column) [][]int64 {
	values := make([][]int64, len(columns))
	for i, c := range columns {
		values[i] = given(c, c.ints)
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
