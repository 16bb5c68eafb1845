package foreign

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Bounds of YAML files. The parser's time grows with the square of a mapping's keys.
const (
	yamlDocumentBytesMax = 16 << 20
	yamlDepthMax         = 64
	yamlIndentMax        = 4 * yamlDepthMax
	yamlKeysMax          = 2000 // lines of one indentation in a row
	yamlEmptyMax         = 2000
	yamlDocumentsMax     = 100_000
)

// node is a value of a YAML file with the line that it begins on.
type node struct {
	line   int
	text   string // of a single value
	keys   []string
	fields map[string]*node // of a mapping
	items  []*node          // of a list
}

// at follows keys; nil where one is not there.
func (n *node) at(keys ...string) *node {
	for _, k := range keys {
		if n == nil {
			return nil
		}
		n = n.fields[k]
	}
	return n
}

// value is the text at the end of keys, "" where there is none.
func (n *node) value(keys ...string) string {
	if at := n.at(keys...); at != nil {
		return at.text
	}
	return ""
}

// readYAML reads the documents of a file. Anchors, aliases and tags are refused, so that nothing is expanded.
func readYAML(f File) ([]*node, error) {
	text, err := readWhole(f.Name, f.R)
	if err != nil {
		return nil, err
	}
	var docs []*node
	first := 1 // line
	var doc []string
	flush := func(next int) error {
		n, err := yamlDocument(f.Name, strings.Join(doc, "\n"), first-1)
		if n != nil {
			docs = append(docs, n)
		}
		doc, first = doc[:0], next
		if err == nil && len(docs) > yamlDocumentsMax {
			err = fmt.Errorf("%s:%d: there are more than %d documents", f.Name, next, yamlDocumentsMax)
		}
		return err
	}
	lines := strings.Split(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n")
	for i, line := range lines {
		if line == "---" || strings.HasPrefix(line, "--- ") || line == "..." {
			if err := flush(i + 2); err != nil {
				return nil, err
			}
			continue
		}
		doc = append(doc, line)
	}
	return docs, flush(len(lines))
}

// yamlDocument reads a document that stands so many lines down in its file; nil where it is empty.
func yamlDocument(file, text string, down int) (n *node, err error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	if err := shallow(file, text, down); err != nil {
		return nil, err
	}
	defer func() { // a text on which the library panics is a fault of the text at this boundary
		if p := recover(); p != nil {
			n, err = nil, fmt.Errorf("%s:%d: the YAML cannot be parsed: %v", file, down+1, p)
		}
	}()
	parsed, err := parser.ParseBytes([]byte(text), 0)
	var syntax yaml.Error
	switch {
	case errors.As(err, &syntax) && syntax.GetToken() != nil:
		return nil, fmt.Errorf("%s:%d: %s", file, down+syntax.GetToken().Position.Line, syntax.GetMessage())
	case err != nil:
		return nil, fmt.Errorf("%s:%d: %w", file, down+1, err)
	}
	for _, d := range parsed.Docs {
		if d.Body == nil || d.Body.Type() == ast.CommentType {
			continue
		}
		if n != nil {
			return nil, fmt.Errorf("%s:%d: a second document without --- before it", file, down+1)
		}
		y := yamlReader{file: file, down: down}
		n = y.node(d.Body, 0)
		if y.err != nil {
			return nil, y.err
		}
	}
	return n, nil
}

// yamlGuard looks at a document's lines before the parser does.
type yamlGuard struct {
	rows     map[int]int // lines in a row, by indentation
	brackets int         // that are open
	empties  int         // values left out
	waits    int         // the indentation of a key whose value may follow on the next line; -1: none
}

// flowEmpty is a value left out within brackets.
var flowEmpty = regexp.MustCompile(`:\s*[,}\]]`)

// shallow refuses what the parser should not see: it recurses, and its time grows with the square of a mapping's keys
// and of the values that are left out.
func shallow(file, text string, down int) error {
	if len(text) > yamlDocumentBytesMax {
		return fmt.Errorf("%s:%d: a document is larger than %d MiB", file, down+1, yamlDocumentBytesMax>>20)
	}
	g := yamlGuard{rows: map[int]int{}, waits: -1}
	line := down
	for s := range strings.Lines(text) {
		line++
		if why := g.line(strings.TrimRight(s, " \t\n")); why != "" {
			return fmt.Errorf("%s:%d: %s", file, line, why)
		}
	}
	return nil
}

// line takes a line without what is blank at its end, and tells what is wrong with it.
func (g *yamlGuard) line(s string) (why string) {
	for _, c := range []byte(s) {
		switch c {
		case '[', '{':
			g.brackets++
		case ']', '}':
			g.brackets = max(0, g.brackets-1)
		}
		if g.brackets > yamlDepthMax {
			return fmt.Sprintf("has more than %d brackets within each other", yamlDepthMax)
		}
	}
	indent := len(s) - len(strings.TrimLeft(s, " \t-?"))
	if indent > yamlIndentMax {
		return fmt.Sprintf("is indented by more than %d", yamlIndentMax)
	}
	bare := strings.TrimLeft(s, " \t")
	if bare == "" || bare[0] == '#' {
		return ""
	}
	dash := bare[0] == '-'
	if g.waits >= 0 && indent <= g.waits && !(dash && indent > len(s)-len(bare) && len(s)-len(bare) >= g.waits) {
		g.empties++
	}
	if g.waits = -1; strings.HasSuffix(s, ":") {
		g.waits = indent
	}
	g.empties += len(flowEmpty.FindAllStringIndex(s, yamlEmptyMax+1))
	for k := range g.rows {
		if k > indent || k == indent && dash {
			delete(g.rows, k)
		}
	}
	switch g.rows[indent]++; {
	case g.rows[indent] > yamlKeysMax:
		return fmt.Sprintf("a mapping or text has more than %d lines", yamlKeysMax)
	case g.empties > yamlEmptyMax:
		return fmt.Sprintf("more than %d values are left out", yamlEmptyMax)
	}
	return ""
}

// yamlReader makes nodes of the library's.
type yamlReader struct {
	file string
	down int
	err  error
}

func (y *yamlReader) node(from ast.Node, depth int) *node {
	n := &node{}
	if from == nil {
		return n
	}
	n.line = y.down + from.GetToken().Position.Line
	if depth > yamlDepthMax {
		y.fail(n, "is nested more than %d levels deep", yamlDepthMax)
		return n
	}
	switch v := from.(type) {
	case *ast.MappingNode:
		n.fields = map[string]*node{}
		for _, pair := range v.Values {
			key, ok := pair.Key.(ast.ScalarNode)
			if !ok {
				y.fail(n, "a key must be plain text")
				return n
			}
			name := key.GetToken().Value
			at := y.node(pair.Value, depth+1)
			if line := y.down + key.GetToken().Position.Line; at.line == 0 || at.fields != nil || at.items != nil {
				at.line = line // of the key that it belongs to
			}
			n.keys = append(n.keys, name)
			n.fields[name] = at
		}
		if len(v.Values) > 0 {
			n.line = y.down + v.Values[0].Key.GetToken().Position.Line
		}
	case *ast.SequenceNode:
		n.items = []*node{}
		for _, item := range v.Values {
			n.items = append(n.items, y.node(item, depth+1))
		}
	case *ast.LiteralNode:
		n.text = v.Value.Value
	case *ast.NullNode:
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		n.text = v.GetToken().Value
	default:
		y.fail(n, "%s is not read: anchors, aliases and tags must be written out",
			strings.ToLower(from.Type().String()))
	}
	return n
}

func (y *yamlReader) fail(n *node, format string, args ...any) {
	if y.err == nil {
		y.err = fmt.Errorf("%s:%d: %s", y.file, n.line, fmt.Sprintf(format, args...))
	}
}
