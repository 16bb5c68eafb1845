package plan

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// formatWidth is up to which column entries are written in one line.
const formatWidth = 120

// plainText are texts that need no quotes anywhere, but for the words that mean something else.
var plainText = regexp.MustCompile(`^[A-Za-z/_][A-Za-z0-9/_.-]*$`)

// stillPlain are texts that stay without quotes where they had none, such as times and durations.
var stillPlain = regexp.MustCompile(`^[A-Za-z0-9/_.][A-Za-z0-9/_.:%+ -]*[A-Za-z0-9/_.%+-]$|^[A-Za-z0-9/_]$`)

// wordsOfYAML are plain texts that YAML, of whatever version, takes for something else than a text.
var wordsOfYAML = []string{"true", "false", "null", "yes", "no", "on", "off", "y", "n"}

// scalarText is a scalar as it is written: without quotes where it needs none, else as it stands, or in double quotes.
func scalarText(n ast.Node) string {
	t := n.GetToken()
	switch n := n.(type) {
	case *ast.NullNode:
		return "null"
	case *ast.LiteralNode:
		return quotedText(n.Value.Value, true)
	case *ast.StringNode:
		return quotedText(n.Value, t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType)
	}
	return t.Value
}

// quotedText is a text in double quotes, or without where it needs none: one that had none keeps them off wherever it
// may stand so.
func quotedText(text string, quoted bool) string {
	if plainText.MatchString(text) && !slices.Contains(wordsOfYAML, strings.ToLower(text)) {
		return text
	}
	if quoted || !stillPlain.MatchString(text) || strings.Contains(text, ": ") {
		return strconv.QuoteToGraphic(text) // YAML reads all escapes that Go writes
	}
	return text
}

// lists of which each entry has a line of its own, wherever they stand.
var blockLists = []string{"consumers", "windows", "slot_plans", "md_plans", "divisions"}

// arrange puts the keys of mappings into the order of the documentation; those that no table knows come last, as they
// stood. key is that under which the form stands.
func (v *formValue) arrange(o *object, key string) {
	if v.kind == formMapping && o != nil {
		place := func(e *formEntry) int {
			if at := slices.Index(o.names, e.key); at >= 0 {
				return at
			}
			return len(o.names)
		}
		slices.SortStableFunc(v.entries, func(a, b *formEntry) int { return place(a) - place(b) })
	}
	for _, e := range v.entries {
		if v.kind == formList {
			e.value.arrange(o, key)
			continue
		}
		e.value.arrange(objectOf(o, e.key), e.key)
	}
}

// lift gives entries of lists the comments of their first keys, which are written in the same line: the comment above
// such a key, and the one behind it, which takes the place of the one behind the dash.
func (v *formValue) lift() {
	for _, e := range v.entries {
		if v.kind == formList && e.value.kind == formMapping && len(e.value.entries) > 0 {
			first := e.value.entries[0]
			if first.tail != "" {
				if e.tail != "" {
					e.head = append(e.head, e.tail)
				}
				e.tail, first.tail = first.tail, ""
			}
			for _, c := range first.head {
				if c != "" {
					e.head = append(e.head, c)
				}
			}
			first.head = nil
		}
		e.value.lift()
	}
}

// objectOf is the table of keys of what stands under a key; nil: it has none, or their order says something.
func objectOf(o *object, key string) *object {
	switch {
	case o == fileObject && key == "resource_groups":
		return groupObject
	case o == fileObject && key == "consumers":
		return consumerObject
	case o == fileObject && key == "slot_plans":
		return slotObject
	case o == fileObject && key == "md_plans":
		return mdObject
	case o == fileObject && key == "divisions":
		return divisionObject
	case key == "consumers" && (o == slotObject || o == slotWindowKeys):
		return slotConsumerObject
	case key == "consumers" && (o == mdObject || o == mdWindowKeys):
		return mdConsumerObject
	case o == slotObject && key == "windows":
		return slotWindowKeys
	case o == mdObject && key == "windows":
		return mdWindowKeys
	}
	return nil
}

// The keys of a window, in plans of either kind.
var (
	slotWindowKeys = &object{names: windowObject.names}
	mdWindowKeys   = &object{names: windowObject.names}
)

// formPrinter writes forms.
type formPrinter struct{ lines []formLine }

// formLine is a line with the comment behind it.
type formLine struct{ text, tail string }

func (p *formPrinter) line(text, tail string) {
	if text == "" && tail == "" && (len(p.lines) == 0 || p.lines[len(p.lines)-1].text == "") {
		return // one blank line is enough
	}
	p.lines = append(p.lines, formLine{text, tail})
}

// text is what was written, comments behind lines that follow each other one below the other.
func (p *formPrinter) text() []byte {
	var b strings.Builder
	for i := 0; i < len(p.lines); {
		end, width := i, 0
		for end < len(p.lines) && p.lines[end].tail != "" {
			width = max(width, utf8.RuneCountInString(p.lines[end].text))
			end++
		}
		for ; i < end; i++ {
			l := p.lines[i]
			b.WriteString(l.text + strings.Repeat(" ", width-utf8.RuneCountInString(l.text)+2) + l.tail + "\n")
		}
		if i < len(p.lines) {
			b.WriteString(p.lines[i].text + "\n")
			i++
		}
	}
	return []byte(strings.TrimRight(b.String(), "\n") + "\n")
}

// before writes what stands above an entry.
func (p *formPrinter) before(e *formEntry, first bool, indent string) {
	if e.blank && !first {
		p.line("", "")
	}
	for _, c := range e.head {
		if c == "" {
			p.line("", "")
		} else {
			p.line(indent+c, "")
		}
	}
}

// after writes the comments behind an entry.
func (p *formPrinter) after(e *formEntry, indent string) {
	for _, c := range e.foot {
		if c == "" {
			p.line("", "")
		} else {
			p.line(indent+c, "")
		}
	}
}

// mapping writes the entries of a mapping, each at a level. lead is what stands before the first key in its line.
func (p *formPrinter) mapping(v *formValue, level int, lead string) {
	indent := strings.Repeat("  ", level)
	for i, e := range v.entries {
		if lead == "" || i > 0 {
			p.before(e, i == 0, indent)
		}
		start := indent
		if i == 0 && lead != "" {
			start = lead
		}
		p.entry(start+e.key+":", e, level)
		p.after(e, indent)
	}
}

// entry writes a key and its value.
func (p *formPrinter) entry(start string, e *formEntry, level int) {
	lines := level == 0 && e.key == "resource_groups" && len(e.value.entries) > 0 // each group has one
	switch {
	case !lines && e.value.inline(e.key, utf8.RuneCountInString(start)+1):
		p.line(start+" "+e.value.flow(), e.tail)
	case e.value.kind == formMapping:
		p.line(start, e.tail)
		p.mapping(e.value, level+1, "")
	default:
		p.line(start, e.tail)
		p.list(e.value, e.key, level+1)
	}
}

// list writes the entries of a list, each at a level.
func (p *formPrinter) list(v *formValue, key string, level int) {
	indent := strings.Repeat("  ", level)
	for i, e := range v.entries {
		p.before(e, i == 0, indent)
		switch {
		case !(key == "slot_plans" || key == "md_plans") && e.value.inline("", len(indent)+2):
			p.line(indent+"- "+e.value.flow(), e.tail)
		case e.value.kind == formMapping:
			e.value.entries[0].tail = e.tail
			p.mapping(e.value, level+1, indent+"- ")
		default:
			p.line(indent+"-", e.tail)
			p.list(e.value, "", level+1)
		}
		p.after(e, indent)
	}
}

// inline tells whether a value is written in one line, behind so many columns.
func (v *formValue) inline(key string, column int) bool {
	if v.kind == formScalar || len(v.entries) == 0 {
		return true
	}
	if v.kind == formList && slices.Contains(blockLists, key) || v.commented() || v.nested() {
		return false
	}
	return column+utf8.RuneCountInString(v.flow()) <= formatWidth
}

// commented tells whether there are comments within a value.
func (v *formValue) commented() bool {
	return slices.ContainsFunc(v.entries, func(e *formEntry) bool {
		return len(e.head)+len(e.foot) > 0 || e.tail != "" || e.value.commented()
	})
}

// nested tells whether a list whose entries have lines of their own stands within a value.
func (v *formValue) nested() bool {
	return slices.ContainsFunc(v.entries, func(e *formEntry) bool {
		lines := e.value.kind == formList && len(e.value.entries) > 0 && slices.Contains(blockLists, e.key)
		return lines || e.value.nested()
	})
}

// flow is a value in one line.
func (v *formValue) flow() string {
	var parts []string
	for _, e := range v.entries {
		text := e.value.flow()
		if v.kind == formMapping {
			text = e.key + ": " + text
		}
		parts = append(parts, text)
	}
	switch v.kind {
	case formMapping:
		return "{" + strings.Join(parts, ", ") + "}"
	case formList:
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return v.text
}
