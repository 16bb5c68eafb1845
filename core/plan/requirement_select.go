package plan

import "slices"

// Codes are the values of a host column by small numbers: hosts with one number have one value, or none.
type Codes struct {
	Of     []int32 // by host
	Values int     // numbers in use are below it; 0: the column has too many values to be numbered
}

// Coded is what a host table offers beside Hosts, so that a requirement is evaluated once for hosts that are alike.
type Coded interface {
	// Codes numbers the values of a column.
	Codes(col int) Codes
	// WordColumns are the columns in which a word may stand that a host matches; ok is false where it is a host's name.
	WordColumns(word string) (cols []int, ok bool)
}

// Selector evaluates the select part of a requirement for many hosts: once for each combination of values in the
// columns that it reads, where these are few, else host by host.
type Selector struct {
	b     *Bound
	codes []Codes // of the columns that are read
	seen  []int8  // by combination: 0 not evaluated yet, 1 selected, -1 not; nil: host by host
}

// combinationsMax is how many combinations are told apart, at most; never more than there are hosts.
const combinationsMax = 1 << 16

// Selector readies the evaluation of the select part for hosts of which there are so many.
func (b *Bound) Selector(coded Coded, hosts int) *Selector {
	s := &Selector{b: b}
	if b.root < 0 {
		return s
	}
	cols, ok := b.columns(coded)
	combinations := 1
	for i := 0; ok && i < len(cols); i++ {
		c := coded.Codes(cols[i])
		s.codes = append(s.codes, c)
		combinations *= c.Values
		ok = combinations > 0 && combinations <= min(hosts, combinationsMax)
	}
	if ok {
		s.seen = make([]int8, combinations)
	}
	return s
}

// Match tells whether a host is selected.
func (s *Selector) Match(host int) bool {
	if s.seen == nil {
		return s.b.Match(host)
	}
	at := 0
	for i := range s.codes {
		at = at*s.codes[i].Values + int(s.codes[i].Of[host])
	}
	if s.seen[at] == 0 {
		if s.seen[at] = -1; s.b.Match(host) {
			s.seen[at] = 1
		}
	}
	return s.seen[at] > 0
}

// Steps is what it costs to evaluate the requirement on so many hosts: nodes of the expression, each as often as it is
// evaluated at most, one step for each host, and what sorting them takes.
func (s *Selector) Steps(hosts int) int64 {
	evaluated, n := int64(hosts), int64(hosts)
	if s.seen != nil {
		evaluated = int64(len(s.seen))
	}
	return n + int64(len(s.b.nodes))*evaluated + int64(len(s.b.keys))*n*sortSteps
}

// sortSteps is what sorting by a key costs, by host.
const sortSteps = 16

// columns lists the columns that the select part reads, each once; ok is false when a word in it is a host's name.
func (b *Bound) columns(coded Coded) (cols []int, ok bool) {
	literal := make([]bool, len(b.nodes)) // texts that are compared are no words to look for
	for i := range b.nodes {
		if n := &b.nodes[i]; n.op >= opEqual && n.op <= opGreaterEqual && n.form == asLiteral {
			literal[n.a], literal[n.b] = true, true
		}
	}
	for i := range b.nodes {
		n := &b.nodes[i]
		if n.op != opWord && n.op != opString {
			continue
		}
		if n.op == opWord && n.form == asColumn && !slices.Contains(cols, n.col) {
			cols = append(cols, n.col)
		}
		if literal[i] || n.form == asLiteral {
			continue
		}
		in, ok := coded.WordColumns(n.word)
		if !ok {
			return nil, false
		}
		for _, col := range in {
			if !slices.Contains(cols, col) {
				cols = append(cols, col)
			}
		}
	}
	return cols, true
}

// Shared tells whether hosts that are alike are evaluated together.
func (s *Selector) Shared() bool { return s.seen != nil }
