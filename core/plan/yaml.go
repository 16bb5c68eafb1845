package plan

import (
	"bytes"
	"errors"
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/scanner"
	"github.com/goccy/go-yaml/token"
)

// Limits of a policy file as text. The parser's time grows with the square of
// the keys of a block mapping and of the values left empty, and its memory with
// the length of the key paths, so these are held down before it sees a token.
const (
	fileBytesMax = 16 << 20
	signsMax     = 4 << 20 // a token takes some 500 bytes until the file is read
	depthMax     = 24      // a correct file has 10 levels
	keysMax      = 256     // of one mapping
	emptyMax     = 1000
	pathBytesMax = 1 << 29 // sum over tokens of the keys above them
)

// document parses the text of a policy file into its one document. ok is false
// when there is none to read; the fault is then in the collector.
func (r *reader) document(text []byte) (root value, ok bool) {
	if len(text) > fileBytesMax {
		r.add(Fault{Reason: fmt.Sprintf("the file has %d bytes; %d are allowed", len(text), fileBytesMax)})
		return value{}, false
	}
	text = unixLines(text)
	if signs := countSigns(text); signs > signsMax {
		r.add(Fault{Reason: fmt.Sprintf("the file has %d signs and lines; %d are allowed", signs, signsMax)})
		return value{}, false
	}
	if at, reason := badCharacter(text); reason != "" {
		line := 1 + bytes.Count(text[:at], []byte("\n"))
		column := 1 + utf8.RuneCount(text[bytes.LastIndexByte(text[:at], '\n')+1:at])
		r.add(Fault{Line: line, Column: column, Reason: reason})
		return value{}, false
	}
	file, fault := parse(string(text))
	if fault != nil {
		r.add(*fault)
		return value{}, false
	}
	for _, d := range file.Docs { // the guard lets one pass; a comment alone may count as another
		if d.Body != nil {
			return value{node: d.Body}, true
		}
	}
	r.add(Fault{Reason: "the file is empty"})
	return value{}, false
}

// unixLines is a text without a byte order mark, whose lines end with LF: the YAML library keeps a CR LF within quotes.
func unixLines(text []byte) []byte {
	return bytes.ReplaceAll(bytes.TrimPrefix(text, []byte("\ufeff")), []byte("\r\n"), []byte("\n"))
}

// badCharacter finds the first byte that cannot be in a policy file.
func badCharacter(text []byte) (at int, reason string) {
	for at < len(text) {
		c, size := utf8.DecodeRune(text[at:])
		switch {
		case c == utf8.RuneError && size <= 1:
			return at, "the text is not valid UTF-8"
		case unicode.IsControl(c) && c != '\n' && c != '\r' && c != '\t':
			return at, fmt.Sprintf("control character %U", c)
		}
		at += size
	}
	return 0, ""
}

// countSigns counts what separates values: the text has at most twice as many tokens.
func countSigns(text []byte) (n int) {
	for _, c := range []byte("\n,:-[]{}'\"#?") {
		n += bytes.Count(text, []byte{c})
	}
	return n
}

// parse runs the YAML library. Should it panic on some text, that is a fault of
// the text at this boundary, not of the process.
func parse(text string) (file *ast.File, fault *Fault) {
	defer func() {
		if p := recover(); p != nil {
			file, fault = nil, &Fault{Reason: fmt.Sprintf("the YAML cannot be parsed: %v", p)}
		}
	}()
	tokens, fault := tokenize(text)
	if fault != nil {
		return nil, fault
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err == nil {
		return file, nil
	}
	var bad yaml.Error // its Error method prints the source over and over
	if errors.As(err, &bad) && bad.GetToken() != nil {
		return nil, tokenFault(bad.GetToken(), "bad YAML: "+bad.GetMessage())
	}
	return nil, &Fault{Reason: "bad YAML: " + err.Error()}
}

func tokenFault(t *token.Token, reason string) *Fault {
	return &Fault{Line: t.Position.Line, Column: t.Position.Column, Value: shorten(t.Value), Reason: reason}
}

// tokenize splits the text and refuses what a policy file has no use for or the parser should not see.
func tokenize(text string) (token.Tokens, *Fault) {
	var (
		s     scanner.Scanner
		out   token.Tokens
		guard guard
	)
	s.Init(text)
	for {
		some, err := s.Scan()
		for _, t := range some {
			if fault := guard.check(t); fault != nil {
				return nil, fault
			}
		}
		out.Add(some...)
		if err != nil { // io.EOF: a bad token has been seen by the guard
			return out, nil
		}
	}
}

// level is an open mapping or list.
type level struct {
	column   int // of its keys or dashes; 0 within brackets
	list     bool
	paired   bool // a colon has come since the last comma
	keys     int
	keyBytes int // of the key last seen
}

// guard watches the tokens pass by and keeps their nesting.
type guard struct {
	open      []level
	flow      int // how many of the open levels are within brackets
	last      *token.Token
	ended     bool // the document, by ...
	empty     int
	path      int // sum of keyBytes
	pathTotal int
}

// refused are the kinds of token that a policy file has no use for.
var refused = map[token.Type]string{
	token.AnchorType:     "anchors (&) are not allowed in a policy file",
	token.AliasType:      "aliases (*) are not allowed in a policy file",
	token.MergeKeyType:   "merge keys (<<) are not allowed in a policy file",
	token.TagType:        "tags (!) are not allowed in a policy file; quote a text that begins with !",
	token.MappingKeyType: "complex keys (?) are not allowed in a policy file",
	token.DirectiveType:  "directives (%) are not allowed in a policy file",
}

// check takes the next token; a fault ends the reading.
func (g *guard) check(t *token.Token) *Fault {
	if t.Type == token.InvalidType {
		return tokenFault(t, "bad YAML: "+t.Error)
	}
	if reason := refused[t.Type]; reason != "" {
		return tokenFault(t, reason)
	}
	if t.Type == token.CommentType {
		return nil
	}
	if g.ended || t.Type == token.DocumentHeaderType && g.last != nil {
		return tokenFault(t, "a policy file is one document; here a second one begins")
	}
	g.ended = t.Type == token.DocumentEndType
	g.countEmpty(t)
	g.nest(t)
	g.pathTotal += g.path
	g.last = t
	switch {
	case len(g.open) > depthMax:
		return tokenFault(t, fmt.Sprintf("nested more than %d levels deep", depthMax))
	case len(g.open) > 0 && g.open[len(g.open)-1].keys > keysMax:
		return tokenFault(t, fmt.Sprintf("the mapping has more than %d keys", keysMax))
	case g.empty > emptyMax:
		return tokenFault(t, fmt.Sprintf("more than %d keys and entries have no value", emptyMax))
	case g.pathTotal > pathBytesMax:
		return tokenFault(t, "the keys above the values are too long")
	}
	return nil
}

// nest follows the token into and out of mappings and lists.
func (g *guard) nest(t *token.Token) {
	switch t.Type {
	case token.MappingStartType, token.SequenceStartType:
		g.open = append(g.open, level{list: t.Type == token.SequenceStartType})
		g.flow++
	case token.MappingEndType, token.SequenceEndType:
		if g.flow > 0 {
			g.pop()
			g.flow--
		}
	case token.SequenceEntryType:
		if g.flow == 0 {
			g.enter(t.Position.Column, true)
		}
	case token.MappingValueType:
		if g.last == nil {
			return
		}
		if g.flow == 0 {
			g.enter(g.last.Position.Column, false)
		}
		top := &g.open[len(g.open)-1]
		top.keys, top.paired = top.keys+1, true
		g.path += len(g.last.Value) - top.keyBytes
		top.keyBytes = len(g.last.Value)
	}
}

// enter goes to the block mapping or list at a column, opening it when it is new.
func (g *guard) enter(column int, list bool) {
	for n := len(g.open); n > 0; n = len(g.open) {
		top := g.open[n-1]
		if top.column < column || top.column == column && (list || !top.list) {
			if top.column == column && top.list == list {
				return
			}
			break
		}
		g.pop()
	}
	g.open = append(g.open, level{column: column, list: list})
}

func (g *guard) pop() {
	n := len(g.open) - 1
	g.path -= g.open[n].keyBytes
	g.open = g.open[:n]
}

// countEmpty counts keys and entries that have no value: for each, the parser invents a null and moves all that
// follows.
func (g *guard) countEmpty(t *token.Token) {
	if g.last == nil || len(g.open) == 0 {
		return
	}
	top := &g.open[len(g.open)-1]
	if g.flow > 0 {
		ends := t.Type == token.CollectEntryType || t.Type == token.MappingEndType || t.Type == token.SequenceEndType
		noValue := g.last.Type == token.MappingValueType
		noColon := !top.list && !top.paired && g.last.Type != token.MappingStartType
		if ends && (noValue || noColon) {
			g.empty++
		}
		if ends {
			top.paired = false
		}
		return
	}
	if g.last.Type != token.MappingValueType && g.last.Type != token.SequenceEntryType ||
		t.Position.Line == g.last.Position.Line {
		return
	}
	under := t.Position.Column > top.column ||
		t.Position.Column == top.column && t.Type == token.SequenceEntryType && !top.list
	if !under {
		g.empty++
	}
}
