package main

import (
	"bytes"
	"fmt"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/ingest/table"
)

// decodeTable reads an input for verify in a format that it does not read itself: Arrow streams.
func decodeTable(kind, format string, dimensions []string, content []byte) (names []string, rows [][]any, err error) {
	f, err := table.ParseFormat(format)
	if err != nil {
		return nil, nil, err
	}
	o := table.Options{Name: kind, Format: f, Compression: table.Plain, Dimensions: dimensions}
	switch r := bytes.NewReader(content); kind {
	case kindHosts, kindHostChanges:
		t, err := table.ReadHosts(r, o)
		if err != nil {
			return nil, nil, err
		}
		g := decodeHosts(t, dimensions)
		return g.names, g.rows, nil
	case kindDemand:
		t, err := table.ReadDemand(r, o)
		if err != nil {
			return nil, nil, err
		}
		g := decode(t.Rows, t.Schema(dimensions))
		return g.names, g.rows, nil
	case kindRunning, kindReleases:
		t, err := table.ReadHoldings(r, o, kind == kindReleases)
		if err != nil {
			return nil, nil, err
		}
		g := decode(t.Rows, t.Releases())
		return g.names, g.rows, nil
	}
	return nil, nil, fmt.Errorf("an input of kind %q is not known", kind)
}

// decoded is the rows of a table, nil where a row has no value.
type decoded struct {
	names []string
	rows  [][]any
}

// decode has the columns that a table has.
func decode(rows int, s column.Schema) *decoded {
	g := &decoded{rows: make([][]any, rows)}
	for _, l := range s.Given() {
		g.column(l.Name, l.Value)
	}
	return g
}

// column adds a column.
func (c *decoded) column(name string, at func(row int) any) {
	c.names = append(c.names, name)
	for row := range c.rows {
		c.rows[row] = append(c.rows[row], at(row))
	}
}

// decodeHosts has the columns of a table of hosts, attributes among them.
func decodeHosts(t *cluster.HostTable, dimensions []string) *decoded {
	g := decode(t.Rows, t.Schema(dimensions))
	for i := range t.Attr {
		a := &t.Attr[i]
		g.column(a.Name, func(row int) any {
			switch {
			case !a.Valid[row]:
				return nil
			case a.Kind == plan.Number:
				return a.Number[row]
			case a.Kind == plan.Boolean:
				return a.Bool[row]
			}
			return a.Text.Names.String(a.Text.Code[row])
		})
	}
	return g
}
