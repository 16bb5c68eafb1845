package verify

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// expr is an expression of the requirement language (REQ-1) as a tree, evaluated as it stands: the log's inputs
// were checked when they were taken.
type expr struct {
	op   string // "number", "text", "word", or an operator; "neg" and "!" have one operand
	a, b *expr
	num  float64
	word string
}

// parseSelect gives the condition of select(…) in a requirement, nil when it has none.
func parseSelect(text string) (*expr, error) {
	p := &exprParser{rest: text}
	p.next()
	var cond *expr
	for p.token != "" {
		part := p.token
		p.next()
		if err := p.expect("("); err != nil {
			return nil, err
		}
		if part == "select" {
			e, err := p.level(0)
			if err != nil {
				return nil, err
			}
			cond = e
		} else { // the keys of order
			for p.token != ")" && p.token != "" {
				p.next()
			}
		}
		if err := p.expect(")"); err != nil {
			return nil, err
		}
	}
	return cond, nil
}

// parseNumber parses a numeric expression.
func parseNumber(text string) (*expr, error) {
	p := &exprParser{rest: text}
	p.next()
	e, err := p.level(0)
	if err == nil && p.token != "" {
		err = fmt.Errorf("%q: unexpected %q", text, p.token)
	}
	return e, err
}

type exprParser struct {
	rest  string
	token string
	depth int
}

var exprLevels = [...]string{"||", "&&", "== != < <= > >=", "+ -", "* /"}

func (p *exprParser) next() {
	p.rest = strings.TrimLeftFunc(p.rest, unicode.IsSpace)
	inWord := func(c rune) bool { return c == '_' || c == '.' || unicode.IsLetter(c) || unicode.IsDigit(c) }
	n := 0
	switch {
	case p.rest == "":
	case p.rest[0] == '\'':
		if n = strings.IndexByte(p.rest[1:], '\'') + 2; n < 2 {
			n = len(p.rest)
		}
	case strings.HasPrefix(p.rest, "&&"), strings.HasPrefix(p.rest, "||"), strings.HasPrefix(p.rest, "=="),
		strings.HasPrefix(p.rest, "!="), strings.HasPrefix(p.rest, "<="), strings.HasPrefix(p.rest, ">="):
		n = 2
	default:
		if n = strings.IndexFunc(p.rest, func(c rune) bool { return !inWord(c) }); n < 0 {
			n = len(p.rest)
		}
		n = max(n, 1)
	}
	p.token, p.rest = p.rest[:n], p.rest[n:]
}

func (p *exprParser) expect(token string) error {
	if p.token != token {
		return fmt.Errorf("%q where %q is expected", p.token, token)
	}
	p.next()
	return nil
}

// level parses operators of a level and of those that bind tighter.
func (p *exprParser) level(n int) (*expr, error) {
	if n == len(exprLevels) {
		return p.single()
	}
	a, err := p.level(n + 1)
	for err == nil && p.token != "" && strings.Contains(" "+exprLevels[n]+" ", " "+p.token+" ") {
		e := &expr{op: p.token, a: a}
		p.next()
		e.b, err = p.level(n + 1)
		a = e
	}
	return a, err
}

func (p *exprParser) single() (*expr, error) {
	if p.depth++; p.depth > 1000 {
		return nil, fmt.Errorf("nested too deep")
	}
	defer func() { p.depth-- }()
	token := p.token
	p.next()
	switch {
	case token == "":
		return nil, fmt.Errorf("a value is missing")
	case token == "!" || token == "-":
		a, err := p.single()
		op := map[string]string{"!": "!", "-": "neg"}[token]
		return &expr{op: op, a: a}, err
	case token == "(":
		e, err := p.level(0)
		if err != nil {
			return nil, err
		}
		return e, p.expect(")")
	case token[0] == '\'':
		return &expr{op: "text", word: strings.Trim(token, "'")}, nil
	case token[0] >= '0' && token[0] <= '9':
		v, err := strconv.ParseFloat(token, 64)
		return &expr{op: "number", num: v}, err
	}
	return &expr{op: "word", word: token}, nil
}

// truth tells whether a host meets a condition. What it does not have makes a comparison false.
func (e *expr) truth(h *host, m *model) bool {
	switch e.op {
	case "&&":
		return e.a.truth(h, m) && e.b.truth(h, m)
	case "||":
		return e.a.truth(h, m) || e.b.truth(h, m)
	case "!":
		return !e.a.truth(h, m)
	case "word":
		if is, ok := h.attr[e.word].(bool); ok && is {
			return true
		}
		return h.isWord(e.word)
	case "text":
		return h.isWord(e.word)
	}
	order, ok := e.compare(h, m)
	if !ok {
		return false
	}
	switch e.op {
	case "==":
		return order == 0
	case "!=":
		return order != 0
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order >= 0
}

// compare compares two sides as texts when either is one, else as numbers.
func (e *expr) compare(h *host, m *model) (order int, ok bool) {
	if e.a.isText(m) || e.b.isText(m) {
		x, okX := e.a.text(h, m)
		y, okY := e.b.text(h, m)
		return strings.Compare(x, y), okX && okY
	}
	x, okX := e.a.number(h, m)
	y, okY := e.b.number(h, m)
	switch {
	case x < y:
		order = -1
	case x > y:
		order = 1
	}
	return order, okX && okY
}

// isText tells whether an operand of a comparison is a text: quoted, a column of texts, or a word that is no column.
func (e *expr) isText(m *model) bool {
	if e.op != "word" {
		return e.op == "text"
	}
	return !m.isNumber(e.word)
}

func (e *expr) text(h *host, m *model) (string, bool) {
	switch {
	case e.op == "text":
		return e.word, true
	case e.op != "word":
		return "", false
	case e.word == "name" || e.word == "host":
		return h.name, true
	case e.word == "state":
		return h.state, true
	case m.attrs[e.word]:
		s, ok := h.attr[e.word].(string)
		return s, ok
	}
	return e.word, true // a type, model or name
}

func (e *expr) number(h *host, m *model) (v float64, ok bool) {
	switch e.op {
	case "number":
		return e.num, true
	case "word":
		if d, ok := m.policy.dimension(e.word); ok {
			return float64(h.size[d]), true
		}
		v, ok = h.attr[e.word].(float64)
		return v, ok
	case "neg":
		v, ok = e.a.number(h, m)
		return -v, ok
	case "text":
		return 0, false
	}
	x, okX := e.a.number(h, m)
	y, okY := e.b.number(h, m)
	if !okX || !okY {
		return 0, false
	}
	switch e.op {
	case "+":
		v = x + y
	case "-":
		v = x - y
	case "*":
		v = x * y
	case "/":
		if y == 0 {
			return 0, false
		}
		v = x / y
	default:
		return 0, false
	}
	return v, !math.IsNaN(v)
}
