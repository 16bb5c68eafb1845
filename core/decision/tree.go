package decision

import (
	"bytes"
	"slices"
)

// treeColumns are the columns of consumers that follow from the paths.
var treeColumns = []string{"parent", "depth", "leaf"}

// Tree is the table consumers with where each consumer stands in its plan: `parent`, the path of the consumer above
// it, null for one that has none; `depth`, 1 for these; and `leaf`, 1 when no consumer is below it, else 0. Figures of
// leaves add up to those of the plan. The columns given are borrowed; those that the table has already are made anew.
// SPEC chapter 8, `consumers`.
func Tree(consumers *Table) Table {
	plan, consumer, cycle := consumers.Column("plan"), consumers.Column("consumer"), consumers.Column("cycle")
	parent := Coded{Code: make([]int32, consumers.Rows)}
	depth, leaf := make([]int64, consumers.Rows), make([]int64, consumers.Rows)
	type place struct { // of a consumer, in one cycle where the table is of several
		cycle    int64
		plan     int32
		consumer string
	}
	at := func(row int, path []byte) place {
		p := place{plan: plan.Code[row], consumer: string(path)}
		if cycle != nil {
			p.cycle = cycle.Int[row]
		}
		return p
	}
	var words Words
	code := map[string]int32{}
	above := make(map[place]bool, consumers.Rows)
	for row := range consumers.Rows {
		path := consumer.Bytes(row)
		depth[row], parent.Code[row] = int64(bytes.Count(path, []byte{'/'})), Null
		i := bytes.LastIndexByte(path, '/')
		if i <= 0 {
			continue
		}
		up, known := code[string(path[:i])]
		if !known {
			up = int32(len(words))
			words = append(words, string(path[:i]))
			code[words[up]] = up
		}
		parent.Code[row] = up
		above[at(row, path[:i])] = true
	}
	for row := range consumers.Rows {
		if !above[at(row, consumer.Bytes(row))] {
			leaf[row] = 1
		}
	}
	parent.Dict = words
	out := Table{Name: consumers.Name, Rows: consumers.Rows, Columns: nil}
	for _, c := range consumers.Columns {
		if slices.Contains(treeColumns, c.Name) {
			continue
		}
		if out.Columns = append(out.Columns, c); c.Name == "consumer" {
			out.Columns = append(out.Columns, Column{Name: "parent", Type: Text, Code: parent.Code, Dict: parent.Dict},
				Column{Name: "depth", Int: depth}, Column{Name: "leaf", Int: leaf})
		}
	}
	return out
}
