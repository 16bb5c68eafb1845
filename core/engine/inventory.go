package engine

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// Inventory is the table of what requirements may ask of hosts: plan, host and state, a column of whole numbers for each
// dimension, and the attributes: numbers as floats, texts as texts, true and false as the whole numbers 1 and 0. Capacity
// is the host's own, without overcommit. O(hosts × columns).
func Inventory(s *cluster.State) *decision.Table {
	return inventory(s, func(d decision.Dict) decision.Dict { return d })
}

// Requests is the table of what is asked for, a row for each sub-allocation. O(sub-allocations).
func Requests(s *cluster.State) *decision.Table {
	return requests(s, func(d decision.Dict) decision.Dict { return d })
}

func inventory(s *cluster.State, dict func(decision.Dict) decision.Dict) *decision.Table {
	hosts := s.Host.Order
	rows := len(hosts)
	names, states, plans := make([]int32, rows), make([]int32, rows), make([]int32, rows)
	for row, h := range hosts {
		names[row], states[row], plans[row] = int32(h), int32(s.Host.State[h]), max(s.Host.Plan[h], cluster.NoID)
	}
	columns := []decision.Column{
		coded("plan", plans, planNames(s)), coded("host", names, dict(&s.Host.Names)), coded("state", states, decision.States),
	}
	for d, name := range s.Policy.Dimensions {
		c := decision.Column{Name: name, Type: decision.Int, Int: make([]int64, rows)}
		for row, h := range hosts {
			c.Int[row] = s.Host.Size[d][h]
		}
		columns = append(columns, c)
	}
	for i := range s.Host.Attr {
		columns = append(columns, attribute(&s.Host.Attr[i], hosts, dict))
	}
	return &decision.Table{Name: "inventory", Rows: rows, Columns: columns}
}

// attribute is an attribute of hosts as a column of its kind.
func attribute(a *cluster.AttrColumn, hosts []cluster.HostID, dict func(decision.Dict) decision.Dict) decision.Column {
	rows := len(hosts)
	if a.Kind == plan.Text {
		codes := make([]int32, rows)
		for row, h := range hosts {
			codes[row] = decision.Null
			if a.Valid[h] {
				codes[row] = a.Text.Code[h]
			}
		}
		return coded(a.Name, codes, dict(a.Text.Names))
	}
	c := decision.Column{Name: a.Name, Type: decision.Float, Optional: true, Null: make([]bool, rows)}
	if a.Kind == plan.Boolean {
		c.Type, c.Int = decision.Int, make([]int64, rows)
	} else {
		c.Float = make([]float64, rows)
	}
	for row, h := range hosts {
		switch c.Null[row] = !a.Valid[h]; {
		case c.Null[row]:
		case a.Kind == plan.Number:
			c.Float[row] = a.Number[h]
		case a.Bool[h]:
			c.Int[row] = 1
		}
	}
	return c
}
