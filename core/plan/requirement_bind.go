package plan

import (
	"bytes"
	"cmp"
	"math"
)

// Bound is a requirement whose names have been found in a host table. It holds
// no values: hosts may change under it as long as columns keep their numbers and kinds.
type Bound struct {
	hosts Hosts
	nodes []boundNode
	root  int32
	keys  []boundKey
}

// boundNode is a node with its name found.
type boundNode struct {
	op     op
	form   form
	a, b   int32
	col    int
	number float64
	word   string
	bytes  []byte // of word
}

// form says how a word is meant, and what a comparison compares.
type form uint8

const (
	asWord    form = iota // a word, quoted or bare, as a condition: the host has that word
	asLiteral             // a word as the text itself
	asColumn              // a bare word as a column's value
)

type boundKey struct {
	col        int
	kind       Kind
	descending bool
}

// nameWord is the word for a host's name in a requirement.
const nameWord = "name"

// Bind finds the names of a requirement in a host table. A name that is no
// dimension, host column, nor the name, type or model of any host is an error,
// and so is a column of a kind that its place cannot use; the error is a *RequirementError.
func (q *Requirement) Bind(hosts Hosts) (*Bound, error) {
	b := &Bound{hosts: hosts, nodes: make([]boundNode, len(q.nodes)), root: q.root}
	for i := range q.nodes {
		n := &q.nodes[i]
		b.nodes[i] = boundNode{op: n.op, a: n.a, b: n.b, number: n.number, word: n.word, bytes: []byte(n.word)}
	}
	if q.root >= 0 {
		want := aNumber
		if q.selects {
			want = aCondition
		}
		if err := b.bind(q, q.root, want); err != nil {
			return nil, err
		}
	}
	for _, k := range q.keys {
		col, kind, ok := b.column(k.word)
		if !ok {
			return nil, q.unknown(k.at, k.word)
		}
		b.keys = append(b.keys, boundKey{col, kind, k.descending})
	}
	return b, nil
}

func (b *Bound) column(word string) (col int, kind Kind, ok bool) {
	if word == nameWord {
		word = "host"
	}
	return b.hosts.Column(word)
}

func (q *Requirement) wrong(at int, reason string) error {
	return &RequirementError{q.Text, at, reason}
}

func (q *Requirement) unknown(at int, word string) error {
	return q.wrong(at, word+" is no dimension, no column of the hosts, nor the name, type or model of a host")
}

// bind finds the names below a node that has to give what is wanted.
func (b *Bound) bind(q *Requirement, i int32, want yields) error {
	n := &b.nodes[i]
	below := aCondition
	switch {
	case n.op == opString:
		return nil // a condition; as a text it is bound by its comparison
	case n.op == opWord:
		return b.bindWord(q, i, want)
	case n.op == opNumber:
		return nil
	case n.op >= opEqual && n.op <= opGreaterEqual:
		return b.bindComparison(q, i)
	case n.op >= opNegate && n.op <= opDivide:
		below = aNumber
	}
	if err := b.bind(q, n.a, below); err != nil || n.op == opNot || n.op == opNegate {
		return err
	}
	return b.bind(q, n.b, below)
}

// bindWord binds a bare word where a number or a condition is wanted.
func (b *Bound) bindWord(q *Requirement, i int32, want yields) error {
	n, at := &b.nodes[i], q.nodes[i].at
	col, kind, ok := b.column(n.word)
	known := b.hosts.HasWord(n.word)
	n.col, n.form = col, asColumn
	switch {
	case !ok && (!known || want == aNumber):
		return q.unknown(at, n.word)
	case want == aNumber && kind != Number:
		return q.wrong(at, n.word+" is "+kind.String()+"; a number is needed")
	case want == aNumber || ok && kind == Boolean:
		return nil
	case known:
		n.form = asWord
		return nil
	}
	return q.wrong(at, n.word+" is "+kind.String()+"; a condition is needed, such as "+n.word+" == …")
}

// bindComparison binds both sides and settles what is compared: numbers or texts.
func (b *Bound) bindComparison(q *Requirement, i int32) error {
	n := &b.nodes[i]
	var kinds [2]Kind
	for s, side := range [...]int32{n.a, n.b} {
		kind, err := b.bindSide(q, side)
		if err != nil {
			return err
		}
		kinds[s] = kind
	}
	if kinds[0] != kinds[1] {
		return q.wrong(q.nodes[i].at, "a number and a text cannot be compared")
	}
	n.form = asColumn
	if kinds[0] == Text {
		n.form = asLiteral
	}
	return nil
}

// bindSide binds one side of a comparison and gives its kind.
func (b *Bound) bindSide(q *Requirement, i int32) (Kind, error) {
	n, at := &b.nodes[i], q.nodes[i].at
	switch n.op {
	case opString:
		n.form = asLiteral
		return Text, nil
	case opWord:
		col, kind, ok := b.column(n.word)
		switch {
		case ok && kind == Boolean:
			return 0, q.wrong(at, n.word+" is true or false; write "+n.word+" or !"+n.word)
		case ok:
			n.form, n.col = asColumn, col
			return kind, nil
		case b.hosts.HasWord(n.word):
			n.form = asLiteral
			return Text, nil
		}
		return 0, q.unknown(at, n.word)
	}
	return Number, b.bind(q, i, aNumber)
}

// On is the requirement bound to other hosts that have the same columns under the same handles. What it was bound by is
// shared.
func (b *Bound) On(hosts Hosts) *Bound {
	c := *b
	c.hosts = hosts
	return &c
}

// Match tells whether a host is selected; without a select part every host is. It allocates nothing.
func (b *Bound) Match(host int) bool { return b.root < 0 || b.condition(b.root, host) }

func (b *Bound) condition(i int32, host int) bool {
	n := &b.nodes[i]
	switch n.op {
	case opNot:
		return !b.condition(n.a, host)
	case opAnd:
		return b.condition(n.a, host) && b.condition(n.b, host)
	case opOr:
		return b.condition(n.a, host) || b.condition(n.b, host)
	case opWord, opString:
		if n.form == asColumn {
			if v, ok := b.hosts.BoolAt(n.col, host); ok && v {
				return true
			}
		}
		return b.hosts.WordAt(n.word, host)
	}
	order, ok := b.compare(n, host)
	if !ok {
		return false
	}
	switch n.op {
	case opEqual:
		return order == 0
	case opUnequal:
		return order != 0
	case opLess:
		return order < 0
	case opLessEqual:
		return order <= 0
	case opGreater:
		return order > 0
	}
	return order >= 0
}

// compare compares the sides of a comparison; ok is false when one of them is missing.
func (b *Bound) compare(n *boundNode, host int) (order int, ok bool) {
	if n.form == asLiteral {
		x, okX := b.text(n.a, host)
		y, okY := b.text(n.b, host)
		return bytes.Compare(x, y), okX && okY
	}
	x, okX := b.number(n.a, host)
	y, okY := b.number(n.b, host)
	return cmp.Compare(x, y), okX && okY
}

func (b *Bound) text(i int32, host int) ([]byte, bool) {
	if n := &b.nodes[i]; n.form == asColumn {
		return b.hosts.TextAt(n.col, host)
	}
	return b.nodes[i].bytes, true
}

// number evaluates a numeric node; ok is false when something in it is missing.
// Each operation is rounded by itself (float64(…)), so that no machine fuses two.
func (b *Bound) number(i int32, host int) (v float64, ok bool) {
	n := &b.nodes[i]
	switch n.op {
	case opNumber:
		return n.number, true
	case opWord:
		v, ok = b.hosts.NumberAt(n.col, host)
		return v, ok && !math.IsNaN(v)
	case opNegate:
		v, ok = b.number(n.a, host)
		return -v, ok
	}
	x, okX := b.number(n.a, host)
	y, okY := b.number(n.b, host)
	if !okX || !okY {
		return 0, false
	}
	switch n.op {
	case opAdd:
		v = float64(x + y)
	case opSubtract:
		v = float64(x - y)
	case opMultiply:
		v = float64(x * y)
	default:
		if y == 0 {
			return 0, false
		}
		v = float64(x / y)
	}
	return v, !math.IsNaN(v)
}

// Number gives the value of a numeric expression for a host, rounded down and
// kept within 0 … 2^53; ok is false when something in it is missing or divided by 0.
func (b *Bound) Number(host int) (v int64, ok bool) {
	f, ok := b.number(b.root, host)
	if !ok {
		return 0, false
	}
	return int64(math.Floor(min(max(f, 0), float64(numberMax)))), true
}

// Compare orders two hosts by the order part: negative when a comes before b, 0
// when it does not tell. A host without a value comes after those with one. It allocates nothing.
func (b *Bound) Compare(host, other int) int {
	for _, k := range b.keys {
		var order int
		var ok, okOther bool
		switch k.kind {
		case Number:
			var x, y float64
			x, ok = b.hosts.NumberAt(k.col, host)
			y, okOther = b.hosts.NumberAt(k.col, other)
			order = cmp.Compare(x, y)
		case Text:
			var x, y []byte
			x, ok = b.hosts.TextAt(k.col, host)
			y, okOther = b.hosts.TextAt(k.col, other)
			order = bytes.Compare(x, y)
		default:
			var x, y bool
			x, ok = b.hosts.BoolAt(k.col, host)
			y, okOther = b.hosts.BoolAt(k.col, other)
			order = rankOf(x) - rankOf(y)
		}
		switch {
		case ok && !okOther:
			return -1
		case !ok && okOther:
			return 1
		case !ok || order == 0:
		case k.descending:
			return -order
		default:
			return order
		}
	}
	return 0
}

func rankOf(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Less tells whether the order part puts a host before another.
func (b *Bound) Less(host, other int) bool { return b.Compare(host, other) < 0 }
