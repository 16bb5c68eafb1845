package explain

import "github.com/stintd/stint/core/plan"

// rowsMax is how many rows a grid has at most.
const rowsMax = 20

// column is a figure of consumers in a grid; of gives nil where one has none.
type column struct {
	name string
	of   func(n plan.Node) any
}

// figure is a column of the table consumers.
func (p *part) figure(name, column_ string) column {
	return column{name, func(n plan.Node) any {
		if p.row[n] < 0 || p.table.null(column_, p.row[n]) {
			return nil
		}
		return p.table.num(column_, p.row[n])
	}}
}

// grid adds a table of consumers. Of many those are shown that want or hold something, and the consumer itself.
func (p *part) grid(title string, nodes []plan.Node, columns []column) {
	g := Grid{Title: title, Columns: []string{}, Rows: []Row{}}
	for _, c := range columns {
		g.Columns = append(g.Columns, c.name)
	}
	for i, n := range nodes {
		idle := p.of(n, "demand") == 0 && p.of(n, "held") == 0 && n != p.node
		if left := rowsMax - len(g.Rows); left <= 0 && n != p.node || idle && len(nodes)-i > left {
			g.More++
			continue
		}
		r := Row{Name: p.tree().Path[n], Values: make([]any, len(columns))}
		for i, c := range columns {
			r.Values[i] = c.of(n)
		}
		g.Rows = append(g.Rows, r)
	}
	p.Tables = append(p.Tables, g)
}

// around adds the tables of a consumer's place in the tree: its path to the root, its siblings, and its children. The
// last two have the column part, the figure by which siblings divide a pool.
func (p *part) around(columns []column, part column) {
	if way := p.way(p.node); len(way) > 1 {
		p.grid("up the tree", way, columns)
	}
	divided := append([]column{part}, columns...)
	if up := p.tree().Parent[p.node]; len(p.siblings(up)) > 1 {
		p.grid("among the children of "+p.tree().Path[up], p.siblings(up), divided)
	}
	if below := p.siblings(p.node); len(below) > 0 {
		p.grid("below it", below, divided)
	}
}
