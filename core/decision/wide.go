package decision

// Wide is the table consumers with the figures of amounts as columns, named figure_dimension
// (`owned_ncpus`, `held_ncpus`, …): for each dimension in order of first appearance, the figures
// in amounts' order. They are null where a consumer has no amount. It has the columns of Tree too. The columns
// of consumers are borrowed. SPEC chapter 8, `amounts`.
func Wide(consumers, amounts *Table) Table {
	wide := Tree(consumers)
	row := make(map[consumerKey]int, consumers.Rows)
	keyOf := consumerKeys(consumers)
	for r := range consumers.Rows {
		row[keyOf(r)] = r
	}
	keyOf = consumerKeys(amounts)
	dimension := amounts.Column("dimension")
	var figures []*Column
	for i := range amounts.Columns {
		if c := &amounts.Columns[i]; c.Type == Int && c.Name != "cycle" {
			figures = append(figures, c)
		}
	}
	first := map[string]int{} // by dimension: its first column
	for a := range amounts.Rows {
		r, ok := row[keyOf(a)]
		if !ok {
			continue
		}
		d := dimension.Text(a)
		at, ok := first[d]
		if !ok {
			at = len(wide.Columns)
			first[d] = at
			for _, f := range figures {
				wide.Columns = append(wide.Columns, nulls(f.Name+"_"+d, wide.Rows))
			}
		}
		for i, f := range figures {
			if f.Null == nil || !f.Null[a] {
				c := &wide.Columns[at+i]
				c.Int[r], c.Null[r] = f.Int[a], false
			}
		}
	}
	return wide
}

// nulls is an optional column without a value.
func nulls(name string, rows int) Column {
	c := Column{Name: name, Type: Int, Int: make([]int64, rows), Null: make([]bool, rows), Optional: true}
	for i := range c.Null {
		c.Null[i] = true
	}
	return c
}

// consumerKey tells the rows of consumers and amounts that belong together: of
// one cycle, where the tables are of several.
type consumerKey struct {
	cycle          int64
	plan, consumer string
}

func consumerKeys(t *Table) func(row int) consumerKey {
	plan, consumer, cycle := t.Column("plan"), t.Column("consumer"), t.Column("cycle")
	return func(row int) consumerKey {
		k := consumerKey{plan: plan.Text(row), consumer: consumer.Text(row)}
		if cycle != nil {
			k.cycle = cycle.Int[row]
		}
		return k
	}
}
