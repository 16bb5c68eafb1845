package plan

import "strconv"

// Clauses are the conditions that the select part joins by &&, in order, each as a requirement of its own: one where
// it joins none, none where there is no select part.
func (q *Requirement) Clauses() (list []*Requirement) {
	if !q.selects {
		return nil
	}
	var split func(i int32)
	split = func(i int32) {
		if n := &q.nodes[i]; n.op == opAnd {
			split(n.a)
			split(n.b)
			return
		}
		list = append(list, &Requirement{Text: q.written(i, 0), nodes: q.nodes, root: i, selects: true})
	}
	split(q.root)
	return list
}

// signs are the operators as they are written, and how tightly they bind: as the levels of binaries, then what stands
// before one operand.
var signs = [...]struct {
	text  string
	level int
}{
	opNegate: {"-", len(binaries)}, opNot: {"!", len(binaries)},
	opOr: {"||", 0}, opAnd: {"&&", 1},
	opEqual: {"==", comparing}, opUnequal: {"!=", comparing}, opLess: {"<", comparing}, opLessEqual: {"<=", comparing},
	opGreater: {">", comparing}, opGreaterEqual: {">=", comparing},
	opAdd: {"+", 3}, opSubtract: {"-", 3}, opMultiply: {"*", 4}, opDivide: {"/", 4},
}

// written is a node as text, in parentheses where it binds less tightly than what it stands in.
func (q *Requirement) written(i int32, level int) string {
	n := &q.nodes[i]
	switch n.op {
	case opNumber:
		return strconv.FormatFloat(n.number, 'f', -1, 64)
	case opString:
		return "'" + n.word + "'"
	case opWord:
		return n.word
	}
	s := signs[n.op]
	text := s.text
	if n.op == opNegate || n.op == opNot {
		text += q.written(n.a, s.level)
	} else {
		text = q.written(n.a, s.level) + " " + text + " " + q.written(n.b, s.level+1)
	}
	if s.level < level {
		text = "(" + text + ")"
	}
	return text
}
