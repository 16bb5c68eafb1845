package plan

// Kind is the type of a host column's values.
type Kind uint8

// The kinds an attribute can have. Dimensions are numbers.
const (
	Number Kind = iota
	Text
	Boolean
)

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

// Requirement is a parsed requirement or expression (REQ-1).
type Requirement struct {
	Text string
}
