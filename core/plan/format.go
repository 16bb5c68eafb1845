package plan

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Format gives a policy file its canonical form: keys in the order of the documentation, two spaces for each level,
// entries in one line where they fit, no quotes where none are needed, comments behind lines one below the other. It
// keeps every comment at its key or entry, and single blank lines. The file means the same, and formatted again it
// stays as it is. Errors: the text is no YAML that a policy file may be (type Faults); faults of the policy are not
// looked at.
func Format(name string, text []byte) ([]byte, error) {
	r := &reader{collector: collector{file: name}}
	text = unixLines(text)
	if at := bytes.IndexByte(text, '\r'); at >= 0 { // readers of YAML do not agree on where such a line ends
		r.add(Fault{Line: 1 + bytes.Count(text[:at], []byte("\n")), Column: at - bytes.LastIndexByte(text[:at], '\n'),
			Reason: "a carriage return without a line feed; end lines with LF or CRLF"})
		return nil, r.faults()
	}
	root, ok := r.document(text)
	if !ok {
		return nil, r.faults()
	}
	tokens, fault := tokenize(string(text))
	if fault != nil {
		r.add(*fault)
		return nil, r.faults()
	}
	f := &former{lines: strings.Split(string(text), "\n")}
	body := f.form(root.node, nil)
	if body.kind != formMapping {
		return nil, fmt.Errorf("%s: the file is no mapping of keys", name)
	}
	f.comment(tokens)
	body.arrange(fileObject, "")
	body.lift()
	p := &formPrinter{}
	for _, c := range f.top {
		p.line(c, "")
	}
	if len(body.entries) == 0 {
		p.line("{}", "")
	}
	p.mapping(body, 0, "")
	for _, c := range f.foot {
		p.line(c, "")
	}
	formatted := p.text()
	if !sameYAML(text, formatted) {
		return nil, fmt.Errorf("%s: this YAML cannot be formatted without changing what it says; "+
			"a key may be there twice, which stint check tells", name)
	}
	return formatted, nil
}

// sameYAML tells whether two texts say the same and have the same comments.
func sameYAML(a, b []byte) bool {
	var was, is any
	if yaml.Unmarshal(a, &was) != nil || yaml.Unmarshal(b, &is) != nil || !reflect.DeepEqual(was, is) {
		return false
	}
	comments := func(text []byte) (list []string) {
		tokens, fault := tokenize(string(text))
		if fault != nil {
			return nil
		}
		for _, t := range tokens {
			if t.Type == token.CommentType {
				list = append(list, strings.TrimSpace(t.Value))
			}
		}
		slices.Sort(list)
		return list
	}
	return slices.Equal(comments(a), comments(b))
}

// kinds of a form.
const (
	formScalar = iota
	formMapping
	formList
)

// formValue is a value of the file while it is formatted.
type formValue struct {
	kind    int
	text    string // of a scalar, as it is written
	entries []*formEntry
}

// formEntry is a key with its value, or an entry of a list.
type formEntry struct {
	key   string // "" in a list
	value *formValue
	up    *formEntry // nil: of the file

	line, column int      // where it begins
	blank        bool     // a blank line stands before it
	head         []string // comments above it, in order; "": a blank line
	tail         string   // the comment behind its first line
	foot         []string // comments behind it, at its level
}

// former makes forms of the syntax tree.
type former struct {
	lines []string
	all   []*formEntry // in the order of the file
	top   []string     // comments that begin the file
	foot  []string     // comments behind the last entry
}

// form makes the form of a node.
func (f *former) form(n ast.Node, up *formEntry) *formValue {
	switch n := n.(type) {
	case *ast.MappingNode:
		v := &formValue{kind: formMapping}
		for _, e := range n.Values {
			f.pair(v, e, up)
		}
		return v
	case *ast.MappingValueNode:
		v := &formValue{kind: formMapping}
		f.pair(v, n, up)
		return v
	case *ast.SequenceNode:
		v := &formValue{kind: formList}
		for i, value := range n.Values {
			at := firstToken(value)
			if i < len(n.Entries) && n.Entries[i] != nil && n.Entries[i].Start != nil && !n.IsFlowStyle {
				at = n.Entries[i].Start
			}
			e := &formEntry{up: up}
			f.begin(e, at)
			v.entries = append(v.entries, e)
			e.value = f.form(value, e)
		}
		return v
	}
	return &formValue{text: scalarText(n)}
}

// pair adds a key and its value to a mapping.
func (f *former) pair(v *formValue, n *ast.MappingValueNode, up *formEntry) {
	e := &formEntry{key: scalarText(n.Key), up: up}
	f.begin(e, n.Key.GetToken())
	v.entries = append(v.entries, e)
	e.value = f.form(n.Value, e)
}

// begin notes where an entry begins.
func (f *former) begin(e *formEntry, at *token.Token) {
	e.line, e.column = at.Position.Line, at.Position.Column
	e.blank = len(f.all) > 0 && f.blankBefore(e.line)
	f.all = append(f.all, e)
}

// blankBefore tells whether the line before one is blank.
func (f *former) blankBefore(line int) bool {
	return line >= 2 && line-2 < len(f.lines) && strings.TrimSpace(f.lines[line-2]) == ""
}

// firstToken is the token with which a node begins.
func firstToken(n ast.Node) *token.Token {
	switch n := n.(type) {
	case *ast.MappingNode:
		if n.IsFlowStyle || len(n.Values) == 0 {
			return n.Start
		}
		return n.Values[0].Key.GetToken()
	case *ast.MappingValueNode:
		return n.Key.GetToken()
	case *ast.SequenceNode:
		return n.Start
	}
	return n.GetToken()
}

// comment gives each comment to an entry: one behind something to the first entry that begins in its line, or the last
// before it; one that stands alone to the entry below it, or to the one above where it stands further in than what
// follows.
func (f *former) comment(tokens token.Tokens) {
	busy := map[int]bool{} // lines with more than a comment
	for _, t := range tokens {
		if t.Type != token.CommentType {
			busy[t.Position.Line] = true
		}
	}
	for _, t := range tokens {
		if t.Type != token.CommentType {
			continue
		}
		text, line := "#"+strings.TrimRight(t.Value, " \t\r"), t.Position.Line
		next := slices.IndexFunc(f.all, func(e *formEntry) bool { return e.line >= line })
		if next < 0 {
			next = len(f.all)
		}
		var before *formEntry
		if next > 0 {
			before = f.all[next-1]
		}
		if busy[line] {
			at := before
			if next < len(f.all) && f.all[next].line == line {
				at = f.all[next]
			}
			if at != nil && at.tail == "" {
				at.tail = text
				continue
			}
		}
		f.alone(text, t.Position, before, next)
	}
}

// begins tells whether a comment above the first entry is about the file: a blank line comes behind it before the entry
// does, or it is for editors.
func (f *former) begins(text string, line int) bool {
	if text == strings.TrimSpace(SchemaLine) {
		return true
	}
	for at := line + 1; at < f.all[0].line; at++ {
		if f.blankBefore(at + 1) {
			return true
		}
	}
	return false
}

// alone places a comment that stands in a line of its own.
func (f *former) alone(text string, at *token.Position, before *formEntry, next int) {
	level := 0 // of what follows
	if next < len(f.all) {
		level = f.all[next].column
	}
	for e := before; e != nil && next < len(f.all) || e != nil && at.Column > 1 && next == len(f.all); e = e.up {
		if e.column <= at.Column && e.column > level {
			if f.blankBefore(at.Line) {
				e.foot = append(e.foot, "")
			}
			e.foot = append(e.foot, text)
			return
		}
		if e.column <= level {
			break
		}
	}
	to := &f.foot
	switch {
	case next == 0 && len(f.all) > 0 && f.begins(text, at.Line):
		to = &f.top
	case next < len(f.all):
		to = &f.all[next].head
		if len(*to) == 0 {
			f.all[next].blank = false // told by the blank line before the comment
		}
	}
	if f.blankBefore(at.Line) {
		*to = append(*to, "")
	}
	*to = append(*to, text)
	if f.blankBefore(at.Line + 2) {
		*to = append(*to, "") // two in a row are written as one
	}
}
