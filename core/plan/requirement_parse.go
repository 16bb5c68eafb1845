package plan

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ParseRequirement parses `select(<expr>) order(<key> …)`; each part may be
// left out, not both. The error is a *RequirementError.
func ParseRequirement(text string) (*Requirement, error) {
	return parseWith(text, (*expression).parts)
}

// ParseExpression parses a numeric expression, such as (ncpus*2) or 12. The error is a *RequirementError.
func ParseExpression(text string) (*Requirement, error) {
	return parseWith(text, func(x *expression) { x.out.root = x.want(x.binary(0), aNumber, "a number is needed") })
}

func parseWith(text string, parse func(*expression)) (q *Requirement, err error) {
	if len(text) > textBytesMax {
		return nil,
			&RequirementError{"", 0, fmt.Sprintf("the text has %d bytes; %d are allowed", len(text), textBytesMax)}
	}
	if !utf8.ValidString(text) {
		return nil, &RequirementError{"", 0, "the text is not valid UTF-8"}
	}
	x := &expression{text: text, out: &Requirement{Text: text, root: -1}}
	defer func() {
		if p := recover(); p != nil {
			bad, ok := p.(*RequirementError)
			if !ok {
				panic(p)
			}
			q, err = nil, bad
		}
	}()
	x.next()
	parse(x)
	if x.token != "" {
		x.fail(x.at, "this is more than was expected")
	}
	return x.out, nil
}

// expression is a text while it is parsed, by recursive descent. A fault ends it by panic, caught in parseWith.
type expression struct {
	text   string
	out    *Requirement
	depth  int
	at     int    // offset of the token
	token  string // as written; "" at the end
	kind   op     // opNumber, opString, opWord; else a sign
	end    int    // offset behind the token
	number float64
}

func (x *expression) fail(at int, format string, args ...any) {
	panic(&RequirementError{x.text, at, fmt.Sprintf(format, args...)})
}

const sign = opOr + 1

func wordStart(c rune) bool { return c == '_' || unicode.IsLetter(c) }

func wordPart(c rune) bool { return wordStart(c) || unicode.IsDigit(c) || c == '.' }

// span is the length of the part of s whose characters are in a class.
func span(s string, class func(rune) bool) int {
	if n := strings.IndexFunc(s, func(c rune) bool { return !class(c) }); n >= 0 {
		return n
	}
	return len(s)
}

// next reads the next token.
func (x *expression) next() {
	x.at = x.end + span(x.text[x.end:], unicode.IsSpace)
	rest := x.text[x.at:]
	first, _ := utf8.DecodeRuneInString(rest)
	n := 0
	switch {
	case rest == "":
	case first >= '0' && first <= '9':
		x.kind, n = opNumber, span(rest, wordPart)
		v, err := strconv.ParseFloat(rest[:n], 64)
		if err != nil || strings.Trim(rest[:n], "0123456789.") != "" {
			x.fail(x.at, "this is no number")
		}
		x.number = v
	case wordStart(first):
		x.kind, n = opWord, span(rest, wordPart)
	case first == '\'':
		x.kind, n = opString, 1
		for n < len(rest) && rest[n] != '\'' {
			n++
		}
		if n++; n > len(rest) {
			x.fail(x.at, "the closing ' is missing")
		}
	default:
		x.kind, n = sign, x.signLength(rest, first)
	}
	x.token, x.end = rest[:n], x.at+n
}

func (x *expression) signLength(rest string, first rune) int {
	for _, s := range [...]string{"&&", "||", "==", "!=", "<=", ">="} {
		if strings.HasPrefix(rest, s) {
			return 2
		}
	}
	switch {
	case strings.ContainsRune("!<>+-*/(),", first):
		return 1
	case first == '=':
		x.fail(x.at, "write == to compare")
	case first == '&' || first == '|':
		x.fail(x.at, "write %c%c", first, first)
	case first == '"':
		x.fail(x.at, "texts stand in single quotes")
	}
	x.fail(x.at, "%q has no meaning here", first)
	return 0
}

// is tells whether the token is this sign.
func (x *expression) is(s string) bool { return x.kind == sign && x.token == s }

func (x *expression) expect(s string) {
	if !x.is(s) || x.token == "" {
		x.fail(x.at, "%s is missing", s)
	}
	x.next()
}

// parts parses select(…) and order(…).
func (x *expression) parts() {
	if x.token == "" {
		x.fail(x.at, "select(…) or order(…) is missing")
	}
	for x.token != "" {
		at, word := x.at, x.token
		switch {
		case x.kind == opWord && word == "select" && !x.out.selects:
			x.next()
			x.expect("(")
			x.out.root = x.want(x.binary(0), aCondition, "a condition is needed")
			x.out.selects = true
		case x.kind == opWord && word == "order" && !x.out.ordering:
			x.next()
			x.expect("(")
			x.orderKeys()
			x.out.ordering = true
		case x.kind == opWord && (word == "select" || word == "order"):
			x.fail(at, "%s stands here a second time", word)
		default:
			x.fail(at, "select(…) or order(…) is expected here")
		}
		x.expect(")")
	}
}

// orderKeys parses the keys of order: words, - before one for the largest first; commas between them may be left out.
func (x *expression) orderKeys() {
	for {
		k := key{at: x.at, descending: x.is("-")}
		if k.descending || x.is("+") {
			x.next()
		}
		if x.kind != opWord || x.token == "" {
			x.fail(x.at, "a name to order by is missing")
		}
		k.word = x.token
		x.out.keys = append(x.out.keys, k)
		x.next()
		switch {
		case x.is(","):
			x.next()
		case x.is(")") || x.token == "":
			return
		}
	}
}

// binaries are the operators with two operands, by how tightly they bind.
var binaries = [...]map[string]op{
	{"||": opOr},
	{"&&": opAnd},
	{"==": opEqual, "!=": opUnequal, "<": opLess, "<=": opLessEqual, ">": opGreater, ">=": opGreaterEqual},
	{"+": opAdd, "-": opSubtract},
	{"*": opMultiply, "/": opDivide},
}

const comparing = 2 // the level of comparisons, which cannot be chained

// binary parses operators of a level and of those that bind tighter.
func (x *expression) binary(level int) int32 {
	if level == len(binaries) {
		return x.unary()
	}
	a := x.binary(level + 1)
	for first := true; x.kind == sign; first = false {
		o, ok := binaries[level][x.token]
		if !ok {
			break
		}
		at := x.at
		if level == comparing && !first {
			x.fail(at, "comparisons cannot be chained; join them by &&")
		}
		x.next()
		a = x.join(o, a, x.binary(level+1), at)
	}
	return a
}

// join makes a node of two operands and checks that they can be what it needs.
func (x *expression) join(o op, a, b int32, at int) int32 {
	switch {
	case o == opAnd || o == opOr:
		x.want(a, aCondition, "a condition is needed")
		x.want(b, aCondition, "a condition is needed")
	case o >= opEqual && o <= opGreaterEqual:
		ya, yb := x.out.nodes[a].op.yields(), x.out.nodes[b].op.yields()
		if ya == aCondition || yb == aCondition {
			x.fail(at, "a condition cannot be compared")
		}
		if ya != anything && yb != anything && ya != yb {
			x.fail(at, "a number and a text cannot be compared")
		}
	default:
		x.want(a, aNumber, "a number is needed")
		x.want(b, aNumber, "a number is needed")
	}
	return x.add(node{op: o, a: a, b: b, at: at})
}

// want checks that a node can give what is needed of it.
func (x *expression) want(n int32, want yields, reason string) int32 {
	got := x.out.nodes[n].op.yields()
	if got != anything && got != want && (want != aCondition || got != aText) {
		x.fail(x.out.nodes[n].at, "%s", reason)
	}
	return n
}

func (x *expression) add(n node) int32 {
	x.out.nodes = append(x.out.nodes, n)
	return int32(len(x.out.nodes) - 1)
}

// unary parses !, - and what they can stand before.
func (x *expression) unary() int32 {
	if x.depth++; x.depth > requirementDepthMax {
		x.fail(x.at, "nested more than %d deep", requirementDepthMax)
	}
	defer func() { x.depth-- }()
	at := x.at
	switch {
	case x.is("!"):
		x.next()
		return x.add(node{op: opNot, a: x.want(x.unary(), aCondition, "a condition is needed"), at: at})
	case x.is("-"):
		x.next()
		return x.add(node{op: opNegate, a: x.want(x.unary(), aNumber, "a number is needed"), at: at})
	case x.is("("):
		x.next()
		n := x.binary(0)
		x.expect(")")
		return n
	case x.token == "" || x.kind == sign:
		x.fail(at, "a value is missing")
	}
	n := node{op: x.kind, at: at, word: strings.Trim(x.token, "'")}
	if x.kind == opNumber {
		n.number = x.number
	}
	x.next()
	return x.add(n)
}
