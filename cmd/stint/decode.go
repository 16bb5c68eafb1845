package main

import (
	"bytes"
	"fmt"

	"github.com/stintd/stint/core/cluster"
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
	var g decoded
	switch r := bytes.NewReader(content); kind {
	case kindHosts, kindHostChanges:
		t, err := table.ReadHosts(r, o)
		if err != nil {
			return nil, nil, err
		}
		g.hosts(t, dimensions)
	case kindDemand:
		t, err := table.ReadDemand(r, o)
		if err != nil {
			return nil, nil, err
		}
		g.demand(t, dimensions)
	case kindRunning, kindReleases:
		t, err := table.ReadHoldings(r, o, kind == kindReleases)
		if err != nil {
			return nil, nil, err
		}
		g.holdings(t)
	default:
		return nil, nil, fmt.Errorf("an input of kind %q is not known", kind)
	}
	return g.names, g.rows, nil
}

// decoded is the rows of a table, nil where a row has no value.
type decoded struct {
	names []string
	rows  [][]any
}

// column adds a column.
func (c *decoded) column(name string, rows int, at func(row int) any) {
	c.names = append(c.names, name)
	for len(c.rows) < rows {
		c.rows = append(c.rows, nil)
	}
	for row := range rows {
		c.rows[row] = append(c.rows[row], at(row))
	}
}

func (c *decoded) text(name string, rows int, t *cluster.TextColumn) {
	c.column(name, rows, func(row int) any {
		if code := t.At(row); code != cluster.Null {
			return t.Names.String(code)
		}
		return nil
	})
}

// whole adds a column of whole numbers, unless it was not given; without stands for none.
func (c *decoded) whole(name string, values []int64, without int64) {
	if values == nil {
		return
	}
	c.column(name, len(values), func(row int) any {
		if values[row] == without {
			return nil
		}
		return values[row]
	})
}

func (c *decoded) hosts(t *cluster.HostTable, dimensions []string) {
	c.text("host", t.Rows, &t.Host)
	if t.State != nil {
		c.column("state", t.Rows, func(row int) any {
			if t.State[row] == cluster.Keep {
				return nil
			}
			return cluster.HostStates[t.State[row]]
		})
	}
	for d, name := range dimensions {
		c.whole(name, t.Size[d], cluster.NotGiven)
	}
	for i := range t.Attr {
		a := &t.Attr[i]
		c.column(a.Name, t.Rows, func(row int) any {
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
}

func (c *decoded) demand(t *cluster.DemandTable, dimensions []string) {
	c.text("consumer", t.Rows, &t.Consumer)
	c.text("allocation", t.Rows, &t.Allocation)
	c.text("sub", t.Rows, &t.Sub)
	c.text("plan", t.Rows, &t.Plan)
	c.text("requirement", t.Rows, &t.Requirement)
	c.whole("units", t.Units, -1)
	for d, name := range dimensions {
		c.whole(name, t.Size[d], -1)
	}
	c.whole("max_per_host", t.MaxPerHost, plan.Unlimited)
	c.whole("min_units", t.MinUnits, 1)
	c.text("together", t.Rows, &t.Together)
}

func (c *decoded) holdings(t *cluster.HoldingTable) {
	c.text("consumer", t.Rows, &t.Consumer)
	c.text("allocation", t.Rows, &t.Allocation)
	c.text("sub", t.Rows, &t.Sub)
	c.text("host", t.Rows, &t.Host)
	c.whole("units", t.Units, -1)
	if t.Done != nil {
		c.column("done", t.Rows, func(row int) any { return t.Done[row] })
	}
	if t.Device.Code != nil {
		c.text("device", t.Rows, &t.Device)
	}
}
