package plan

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Kind is the type of a host column's values.
type Kind uint8

// The kinds an attribute can have. Dimensions are numbers.
const (
	Number Kind = iota
	Text
	Boolean
)

// String names the kind for messages.
func (k Kind) String() string { return [...]string{"a number", "text", "true or false"}[k] }

// Hosts is what a requirement may ask of a host table. core/cluster implements it
// over its columns; tests implement it over literals.
type Hosts interface {
	// Column finds a dimension or attribute (also `host` and `state`, as text).
	Column(name string) (col int, kind Kind, ok bool)
	// NumberAt gives a number; ok is false where the host has no value.
	NumberAt(col, host int) (v float64, ok bool)
	// TextAt gives a text; ok is false where the host has no value. The bytes are only borrowed.
	TextAt(col, host int) (v []byte, ok bool)
	// BoolAt gives a boolean; ok is false where the host has no value.
	BoolAt(col, host int) (v, ok bool)
	// HasWord tells whether any host's name, `type` or `model` is the word.
	HasWord(word string) bool
	// WordAt tells whether this host's name, `type` or `model` is the word.
	WordAt(word string, host int) bool
}

// Limits of a requirement.
const (
	requirementDepthMax = 64 // parentheses and signs within each other
	caretBytes          = 60 // of the text shown on either side of a caret
)

// Requirement is a parsed requirement or expression (REQ-1). It is never
// changed, and may be bound to any number of host tables.
type Requirement struct {
	Text string

	nodes    []node // children before parents
	root     int32  // of select or the expression; -1: none
	keys     []key
	selects  bool
	ordering bool
}

// Selects tells whether the requirement chooses hosts: it has a select part.
func (q *Requirement) Selects() bool { return q.selects }

// Ordered tells whether the requirement orders hosts: it has an order part.
func (q *Requirement) Ordered() bool { return q.ordering }

// op is what a node of an expression does.
type op uint8

const (
	opNumber op = iota // a literal
	opString           // a quoted literal
	opWord             // a bare word
	opNegate
	opAdd
	opSubtract
	opMultiply
	opDivide
	opEqual
	opUnequal
	opLess
	opLessEqual
	opGreater
	opGreaterEqual
	opNot
	opAnd
	opOr
)

// yields is what a node gives, as far as it is known before it is bound.
type yields uint8

const (
	anything yields = iota // a bare word: a number, a text or a condition
	aNumber
	aText // also a condition: the host has that word
	aCondition
)

func (o op) yields() yields {
	switch {
	case o == opWord:
		return anything
	case o == opString:
		return aText
	case o == opNumber || o >= opNegate && o <= opDivide:
		return aNumber
	}
	return aCondition
}

// node is one node of an expression.
type node struct {
	op     op
	a, b   int32 // operands
	number float64
	word   string
	at     int // byte offset in the text
}

// key is a key of order.
type key struct {
	word       string
	descending bool
	at         int
}

// RequirementError is what is wrong with a requirement, and where in its text.
type RequirementError struct {
	Text   string
	Offset int // in bytes
	Reason string
}

// Error is the reason and, on two further lines, the text with a caret under the spot.
func (e *RequirementError) Error() string {
	if e.Text == "" {
		return e.Reason
	}
	before, after := e.Text[:e.Offset], e.Text[e.Offset:]
	if n := len(before) - caretBytes; n > 0 {
		for !utf8.RuneStart(before[n]) {
			n++
		}
		before = "…" + before[n:]
	}
	if n := caretBytes; len(after) > n {
		for !utf8.RuneStart(after[n]) {
			n--
		}
		after = after[:n] + "…"
	}
	blank := func(c rune) rune {
		if c < ' ' {
			return ' '
		}
		return c
	}
	return fmt.Sprintf("%s\n    %s\n    %s^", e.Reason, strings.Map(blank, before+after),
		strings.Repeat(" ", utf8.RuneCountInString(before)))
}

// At is a requirement that besides has hosts have one value in a column: a text, or a number. q may be nil: no
// requirement.
func (q *Requirement) At(column string, kind Kind, text string, number float64) *Requirement {
	value, shown := node{op: opString, word: text}, "'"+text+"'"
	if kind == Number {
		value, shown = node{op: opNumber, number: number}, text
	}
	return q.and(column+" == "+shown, node{op: opWord, word: column}, value, opEqual)
}

// Nowhere is a requirement that selects no host, for a reason that is shown. q may be nil: no requirement.
func (q *Requirement) Nowhere(shown string) *Requirement {
	return q.and(shown, node{op: opNumber}, node{op: opNumber}, opUnequal)
}

// and is a requirement that besides asks for a comparison.
func (q *Requirement) and(shown string, a, b node, by op) *Requirement {
	if q == nil {
		q = &Requirement{root: -1}
	}
	r := *q
	n := int32(len(q.nodes))
	r.nodes, r.selects, r.root = append(slices.Clone(q.nodes), a, b, node{op: by, a: n, b: n + 1}), true, n+2
	if q.root >= 0 {
		r.nodes = append(r.nodes, node{op: opAnd, a: q.root, b: n + 2})
		r.root++
	}
	if r.Text = shown; q.Text != "" {
		r.Text = q.Text + " with " + shown
	}
	return &r
}
