package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Limits of a scenario file.
const (
	fileBytesMax = 16 << 20
	depthMax     = 256 // nested brackets, and columns of indentation ÷ 4
)

// file is a scenario file while it is read: its name and lines, for messages and to cut out policies.
type file struct {
	name  string
	lines []string
}

// parse gives the documents of a file. Anchors, aliases, tags and merge keys have no node type that the
// readers below accept, so that no alias is ever expanded.
func (f *file) parse(text []byte) ([]*ast.DocumentNode, error) {
	if len(text) > fileBytesMax {
		return nil, fmt.Errorf("%s: more than %d bytes", f.name, fileBytesMax)
	}
	f.lines = strings.Split(string(text), "\n")
	if i := slices.IndexFunc(f.lines, func(line string) bool { return !utf8.ValidString(line) }); i >= 0 {
		return nil, fmt.Errorf("%s:%d: not valid UTF-8", f.name, i+1)
	}
	if err := f.shallow(); err != nil {
		return nil, err
	}
	parsed, err := parser.ParseBytes(text, 0)
	var syntax yaml.Error
	if errors.As(err, &syntax) {
		at := syntax.GetToken().Position
		return nil, fmt.Errorf("%s:%d:%d: %s", f.name, at.Line, at.Column, syntax.GetMessage())
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", f.name, err)
	}
	return parsed.Docs, nil
}

// shallow refuses nesting so deep that the parser, which recurses, would use up the stack.
func (f *file) shallow() error {
	depth := 0
	for i, line := range f.lines {
		if indent := len(line) - len(strings.TrimLeft(line, " \t-?")); indent > 4*depthMax {
			return fmt.Errorf("%s:%d: indented by more than %d", f.name, i+1, 4*depthMax)
		}
		for _, c := range []byte(line) {
			switch c {
			case '[', '{':
				depth++
			case ']', '}':
				depth = max(0, depth-1)
			}
			if depth > depthMax {
				return fmt.Errorf("%s:%d: more than %d brackets within each other", f.name, i+1, depthMax)
			}
		}
	}
	return nil
}

// start is the token that a node begins with: of a mapping its first key, not the colon.
func start(n ast.Node) (line, column int) {
	at := n.GetToken().Position
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		at = m.Values[0].Key.GetToken().Position
	}
	return at.Line, at.Column
}

// fail is an error at a node.
func (f *file) fail(n ast.Node, format string, args ...any) error {
	line, column := start(n)
	return fmt.Errorf("%s:%d:%d: %s", f.name, line, column, fmt.Sprintf(format, args...))
}

// pair is an entry of a mapping, in the file's order.
type pair struct {
	key   string
	at    ast.Node // of the key
	value ast.Node
}

// pairs reads a mapping; what says what it is, for messages.
func (f *file) pairs(n ast.Node, what string) ([]pair, error) {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		return nil, f.fail(n, "%s must be a mapping (key: value)", what)
	}
	pairs := make([]pair, len(m.Values))
	for i, v := range m.Values {
		key, ok := v.Key.(*ast.StringNode)
		if !ok {
			return nil, f.fail(v.Key, "%s: a key must be plain text", what)
		}
		pairs[i] = pair{key.Value, key, v.Value}
	}
	return pairs, nil
}

// object reads a mapping that may have the given keys only.
func (f *file) object(n ast.Node, what string, keys ...string) (map[string]ast.Node, error) {
	pairs, err := f.pairs(n, what)
	if err != nil {
		return nil, err
	}
	values := make(map[string]ast.Node, len(pairs))
	for _, p := range pairs {
		values[p.key] = p.value
	}
	for _, p := range pairs {
		if !slices.Contains(keys, p.key) {
			return nil, f.fail(p.at, "%s has no key %q; it has %s", what, p.key, strings.Join(keys, ", "))
		}
	}
	return values, nil
}

func (f *file) list(n ast.Node, what string) ([]ast.Node, error) {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		return nil, f.fail(n, "%s must be a list", what)
	}
	return s.Values, nil
}

// text reads a scalar as it is written.
func (f *file) text(n ast.Node, what string) (string, error) {
	switch s := n.(type) {
	case *ast.StringNode:
		return s.Value, nil
	case *ast.LiteralNode:
		return s.Value.Value, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, nil
	}
	return "", f.fail(n, "%s must be a text or a finite number, is %s", what, kindOf(n))
}

// kindOf names what a node is, for messages that it is something else.
func kindOf(n ast.Node) string { return strings.ToLower(n.Type().String()) }

// count reads a whole number from 1 to most.
func (f *file) count(n ast.Node, what string, most int) (int, error) {
	v, err := strconv.Atoi(n.GetToken().Value)
	if _, ok := n.(*ast.IntegerNode); !ok || !decimal(n) || err != nil || v < 1 || v > most {
		return 0, f.fail(n, "%s, value %q: must be a whole number from 1 to %d", what, n.GetToken().Value, most)
	}
	return v, nil
}

// decimal tells whether an integer is written in plain decimal digits: 010 is 8 to some and 10 to others.
func decimal(n ast.Node) bool {
	digits := strings.TrimPrefix(n.GetToken().Value, "-")
	return digits == "0" || strings.Trim(digits, "0123456789") == "" && digits[0] != '0'
}

// source cuts the text of a mapping out of the file and pads it with blanks, so that whoever parses it
// anew finds everything on the lines and columns where it stands. The end of a block is the first
// line that is indented less than its first key.
func (f *file) source(n ast.Node, what string) ([]byte, error) {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		return nil, f.fail(n, "%s must be a mapping (key: value)", what)
	}
	line, column := start(m)
	var b strings.Builder
	b.WriteString(strings.Repeat("\n", line-1))
	if !m.IsFlowStyle {
		for _, text := range f.lines[line-1:] {
			inner := strings.TrimLeft(text, " ")
			blank := strings.TrimSpace(text) == "" || inner[0] == '#'
			if !blank && len(text)-len(inner) < column-1 {
				break
			}
			b.WriteString(text + "\n")
		}
		return []byte(b.String()), nil
	}
	b.WriteString(strings.Repeat(" ", column-1))
	end := m.End.Position
	for i := line; i <= end.Line; i++ {
		runes := []rune(f.lines[i-1])
		from, to := 0, len(runes)
		if i == line {
			from = column - 1
		}
		if i == end.Line {
			to = end.Column
		}
		b.WriteString(string(runes[from:to]) + "\n")
	}
	return []byte(b.String()), nil
}
