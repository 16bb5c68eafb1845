package ownership

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// newDeeds makes room for so many rows.
func (a *Assigner) newDeeds(rows int) *Deeds {
	out := &Deeds{
		Node: make([]plan.Node, rows), Host: make([]int32, rows), Rule: make([]int32, rows),
		Number: make([]int64, rows), Amount: make([][]int64, a.dims), Next: a.next,
	}
	for d := range out.Amount {
		out.Amount[d] = make([]int64, rows)
	}
	return out
}

// written writes all pieces, after a full pass: the cells of each domain in host order, each piece to where its
// consumer's rows have come to. O(pieces).
func (a *Assigner) written() *Deeds {
	rows := int64(0)
	row := make([]int64, a.g.Tree.Len())
	for n := range row {
		row[n] = rows
		for id := a.base[n]; id < a.base[n+1]; id++ {
			rows += a.claims[id].count
		}
	}
	out, first := a.newDeeds(int(rows)), slices.Clone(row)
	cells, cut := 0, 0
	for i := range a.domains {
		if cells += len(a.cellsOf[a.domains[i].node]); 2*cells <= a.hosts+int(rows) {
			cut = i + 1
		}
	}
	a.both(func() { a.writeDomains(out, first, row, 0, cut) }, func() {
		a.writeDomains(out, first, row, cut, len(a.domains))
	})
	return out
}

// writeDomains writes the pieces of some domains, from the first row of each consumer on. What others have is
// elsewhere.
func (a *Assigner) writeDomains(out *Deeds, first, row []int64, from, to int) {
	for i := from; i < to; i++ {
		for _, c := range a.cellsOf[a.domains[i].node] {
			for p := a.part[c].first; p != nothing; p = a.piece[p].next {
				n := a.part[a.piece[p].part].node
				a.write(out, int(first[n]), int(row[n]), p)
				row[n]++
			}
		}
	}
}

// write writes a piece to a row, before those that are of the same part and a later rule; none is before the first.
func (a *Assigner) write(out *Deeds, first, i int, p pieceID) {
	of := &a.part[a.piece[p].part]
	rule := a.claims[a.piece[p].claim].rule
	for ; i > first && out.Node[i-1] == of.node && out.Host[i-1] == of.host && out.Rule[i-1] > rule; i-- {
		out.copyRows(i, out, i-1, i)
	}
	out.Node[i], out.Host[i], out.Rule[i], out.Number[i] = of.node, of.host, rule, of.number
	for d, v := range a.givesOf(p) {
		out.Amount[d][i] = v
	}
}

// copyRows copies rows from … to-1 of other to row i and on.
func (t *Deeds) copyRows(i int, other *Deeds, from, to int) {
	copy(t.Node[i:], other.Node[from:to])
	copy(t.Host[i:], other.Host[from:to])
	copy(t.Rule[i:], other.Rule[from:to])
	copy(t.Number[i:], other.Number[from:to])
	for d := range t.Amount {
		copy(t.Amount[d][i:], other.Amount[d][from:to])
	}
}

// amended writes the last deeds with the parts that moved as they are now: O(those · log rows), and a copy.
func (a *Assigner) amended() *Deeds {
	was := a.deeds
	slices.Sort(a.moved)
	a.moved = slices.Compact(a.moved)
	out := a.newDeeds(len(a.piece) - len(a.freePiece))
	from, to := 0, 0 // rows read and written
	for _, m := range a.moved {
		n, h := plan.Node(m>>32), int32(uint32(m))
		at := was.find(n, h)
		out.copyRows(to, was, from, at)
		to += at - from
		for from = at; from < len(was.Node) && was.Node[from] == n && was.Host[from] == h; from++ {
		}
		if of := a.cell(n, h); of != nothing {
			for p := a.part[a.part[of].up].first; p != nothing; p = a.piece[p].next {
				if a.piece[p].part == of {
					a.write(out, 0, to, p)
					to++
				}
			}
		}
	}
	out.copyRows(to, was, from, len(was.Node))
	return out
}

// find is the first row of a consumer and host, or where it would be.
func (t *Deeds) find(n plan.Node, h int32) int {
	from, _ := slices.BinarySearch(t.Node, n)
	to, _ := slices.BinarySearch(t.Node, n+1)
	k, _ := slices.BinarySearchFunc(t.Host[from:to], h, cmp.Compare[int32])
	return from + k
}

// Moved gives the parts of which an Update may have changed something, in tree order, then host order, as node and
// host: all others are as they were. After a Pass it gives none: then everything may have moved.
func (a *Assigner) Moved() (node []plan.Node, host []int32) {
	for _, m := range a.moved {
		node, host = append(node, plan.Node(m>>32)), append(host, int32(uint32(m)))
	}
	return node, host
}
