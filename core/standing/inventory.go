package standing

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// Inventory is the table of what requirements may ask of hosts: plan, host and state, a column of whole numbers for
// each dimension, and the attributes: numbers as floats, texts as texts, true and false as the whole numbers 1 and 0.
// Capacity is the host's own, without overcommit. O(hosts × columns).
func (k *Columns) Inventory() *decision.Table {
	rows := len(k.order)
	names, states, plans := make([]int32, rows), make([]int32, rows), make([]int32, rows)
	for row, h := range k.order {
		names[row], states[row], plans[row] = int32(h), int32(k.state[h]), max(k.planOf[h], cluster.NoID)
	}
	columns := []decision.Column{
		coded("plan", plans, k.planNames()), coded("host", names, k.hosts), coded("state", states, decision.States),
	}
	for d, name := range k.policy.Dimensions {
		c := decision.Column{Name: name, Type: decision.Int, Int: make([]int64, rows)}
		for row, h := range k.order {
			c.Int[row] = k.size[d][h]
		}
		columns = append(columns, c)
	}
	for i := range k.attr {
		columns = append(columns, attribute(&k.attr[i], k.order, k.words[i]))
	}
	return &decision.Table{Name: "inventory", Rows: rows, Columns: columns}
}

// attribute is an attribute of hosts as a column of its kind.
func attribute(a *cluster.AttrColumn, hosts []cluster.HostID, words decision.Dict) decision.Column {
	rows := len(hosts)
	if a.Kind == plan.Text {
		codes := make([]int32, rows)
		for row, h := range hosts {
			codes[row] = decision.Null
			if a.Valid[h] {
				codes[row] = a.Text.Code[h]
			}
		}
		return coded(a.Name, codes, words)
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
