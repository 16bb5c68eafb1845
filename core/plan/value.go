package plan

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Limits of single values (SPEC chapter 7 has the same for tables).
const (
	nameBytesMax       = 256
	textBytesMax       = 4 << 10
	numberMax    int64 = 1 << 53
	milli              = 1000
)

// step is one step of a key path.
type step struct {
	up    *step
	key   string // "" for an entry of a list
	index int
}

// String is the path from the root, such as consumers[3].rank.
func (s *step) String() string {
	if s == nil {
		return ""
	}
	if s.key == "" {
		return fmt.Sprintf("%s[%d]", s.up, s.index)
	}
	if s.up == nil {
		return shorten(s.key)
	}
	return s.up.String() + "." + shorten(s.key)
}

// value is a node of the file with the key path that leads to it.
type value struct {
	node ast.Node
	at   *step
}

// field is a key of a mapping and its value.
type field struct {
	key string
	value
	keyAt *token.Position
}

// fields are the fields of a mapping in the order of the file, each key once.
type fields []field

// get finds a field; ok is false when the mapping does not have it.
func (f fields) get(key string) (v value, ok bool) {
	for i := range f {
		if f[i].key == key {
			return f[i].value, true
		}
	}
	return value{}, false
}

// reader walks the file and gathers what is wrong with it. Its methods that read
// a value report a fault themselves and then give ok = false.
type reader struct {
	collector
	entryAt  []value // by Node: its path in the list of consumers
	accepted bool    // the file was in force once: see ParseAccepted
}

// fault reports what is wrong with a value.
func (r *reader) fault(v value, format string, args ...any) { r.add(r.faultOf(v, format, args...)) }

// faultOf is what is wrong with a value, not reported yet.
func (r *reader) faultOf(v value, format string, args ...any) Fault {
	f := Fault{Path: v.at.String(), Reason: fmt.Sprintf(format, args...)}
	if v.node != nil {
		at := position(v.node)
		f.Line, f.Column = at.Line, at.Column
		if text, ok := scalar(v.node); ok {
			f.Value = text
		}
	}
	return f
}

// position is where a node begins.
func position(n ast.Node) *token.Position {
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		return m.Values[0].Key.GetToken().Position // the mapping's own token is its first colon
	}
	return n.GetToken().Position
}

// line is where a value stands.
func (v value) line() int32 {
	if v.node == nil {
		return 0
	}
	return int32(position(v.node).Line)
}

// scalar gives the text of a single value as it was written, quotes taken off.
func scalar(n ast.Node) (text string, ok bool) {
	switch n := n.(type) {
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.MappingNode, *ast.MappingValueNode, *ast.SequenceNode:
		return "", false
	case *ast.NullNode:
		return "", false
	}
	return n.GetToken().Value, true
}

// kindName says what a node is, for messages.
func kindName(n ast.Node) string {
	switch n.(type) {
	case *ast.StringNode, *ast.LiteralNode:
		return "text"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number"
	case *ast.BoolNode:
		return "true or false"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case nil, *ast.NullNode:
		return "empty"
	}
	return n.Type().String()
}

// fields reads a mapping. With known keys given, any other is a fault; without, every key is taken.
func (r *reader) fields(v value, known ...string) (f fields, ok bool) {
	m, ok := v.node.(ast.MapNode)
	if !ok || m == nil {
		r.fault(v, "must be a mapping, is %s", kindName(v.node))
		return nil, false
	}
	for it := m.MapRange(); it.Next(); {
		t := it.Key().GetToken()
		one := field{t.Value, value{it.Value(), &step{up: v.at, key: t.Value}}, t.Position}
		reason := ""
		if at := slices.IndexFunc(f, func(o field) bool { return o.key == one.key }); at >= 0 {
			reason = fmt.Sprintf("the key stands here a second time, first on line %d", f[at].keyAt.Line)
		} else if known != nil && !slices.Contains(known, one.key) {
			reason = "unknown key; " + Meant(one.key, known) + "known here: " + strings.Join(known, ", ")
		} else if len(f) == keysMax {
			r.fault(v, "the mapping has more than %d keys", keysMax)
			return f, true
		}
		if reason != "" {
			r.add(Fault{Line: t.Position.Line, Column: t.Position.Column, Path: one.at.String(), Reason: reason})
			continue
		}
		f = append(f, one)
	}
	return f, true
}

// list reads a list of at most limit entries; ok is false when it is none or longer.
func (r *reader) list(v value, limit int) (out []value, ok bool) {
	s, ok := v.node.(*ast.SequenceNode)
	if !ok {
		r.fault(v, "must be a list, is %s", kindName(v.node))
		return nil, false
	}
	if len(s.Values) > limit {
		r.fault(v, "has %d entries; %d are allowed", len(s.Values), limit)
		return nil, false
	}
	steps := make([]step, len(s.Values))
	out = make([]value, len(s.Values))
	for i, n := range s.Values {
		steps[i] = step{up: v.at, index: i}
		out[i] = value{n, &steps[i]}
	}
	return out, true
}

// text reads a text of at most limit bytes.
func (r *reader) text(v value, limit int) (s string, ok bool) {
	switch v.node.(type) {
	case *ast.StringNode, *ast.LiteralNode:
		if s, _ = scalar(v.node); len(s) > limit {
			r.fault(v, "has %d bytes; %d are allowed", len(s), limit)
			return "", false
		}
		return s, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		r.fault(v, "must be text, is %s; put it in quotes", kindName(v.node))
	default:
		r.fault(v, "must be text, is %s", kindName(v.node))
	}
	return "", false
}

// name reads a name (SPEC chapter 7): UTF-8, not empty, at most 256 bytes, no control characters.
func (r *reader) name(v value) (s string, ok bool) {
	if s, ok = r.text(v, nameBytesMax); !ok {
		return "", false
	}
	switch {
	case s == "":
		r.fault(v, "a name must not be empty")
	case !utf8.ValidString(s):
		r.fault(v, "a name must be valid UTF-8")
	case strings.ContainsFunc(s, unicode.IsControl):
		r.fault(v, "a name must not contain control characters")
	default:
		return s, true
	}
	return "", false
}

// names reads a list of at most limit names, none twice.
func (r *reader) names(v value, limit int) (out []string, ok bool) {
	list, ok := r.list(v, limit)
	if !ok {
		return nil, false
	}
	first := make(map[string]int32, len(list))
	for _, one := range list {
		s, good := r.name(one)
		if !good {
			continue
		}
		if at, twice := first[s]; twice {
			r.fault(one, "stands here a second time, first on line %d", at)
			continue
		}
		first[s] = one.line()
		out = append(out, s)
	}
	return out, len(out) == len(list)
}

// boolean reads true or false.
func (r *reader) boolean(v value) (b, ok bool) {
	n, ok := v.node.(*ast.BoolNode)
	if !ok {
		r.fault(v, "must be true or false, is %s", kindName(v.node))
		return false, false
	}
	return n.Value, true
}

// integer reads a whole number within bounds, written in decimal digits.
func (r *reader) integer(v value, low, high int64) (n int64, ok bool) {
	switch node := v.node.(type) {
	case *ast.IntegerNode:
		digits := node.GetToken().Value
		n, err := strconv.ParseInt(digits, 10, 64)
		if err == nil && strconv.FormatInt(n, 10) == digits && n >= low && n <= high {
			return n, true
		}
		if errors.Is(err, strconv.ErrRange) || err == nil && strconv.FormatInt(n, 10) == digits {
			r.fault(v, "must be a whole number from %d to %d", low, high)
		} else {
			r.fault(v, "must be a whole number from %d to %d, in plain decimal digits", low, high)
		}
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		r.fault(v, "must be a whole number from %d to %d", low, high)
	default:
		if s, ok := v.node.(*ast.StringNode); ok && s.Token.Type == token.StringType && s.Value != "" &&
			strings.Trim(s.Value, "0123456789") == "" {
			// beyond 2^64, which the parser takes for text
			r.fault(v, "must be a whole number from %d to %d", low, high)
		} else {
			r.fault(v, "must be a whole number, is %s", kindName(v.node))
		}
	}
	return 0, false
}

// whole reads a whole number from 0 to 2^53.
func (r *reader) whole(v value) (n int64, ok bool) { return r.integer(v, 0, numberMax) }

// thousandths reads a number with at most three decimals, exactly, in thousandths.
func (r *reader) thousandths(v value, low, high int64) (n int64, ok bool) {
	switch v.node.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		if n, ok = parseThousandths(v.node.GetToken().Value); ok && n >= low && n <= high {
			return n, true
		}
	case *ast.InfinityNode, *ast.NanNode:
	default:
		r.fault(v, "must be a number, is %s", kindName(v.node))
		return 0, false
	}
	r.fault(v, "must be a number from %s to %s with at most three decimals", decimal(low), decimal(high))
	return 0, false
}

// parseThousandths reads digits with at most three decimals. Zeros beyond them change nothing and are allowed.
func parseThousandths(s string) (n int64, ok bool) {
	whole, part, _ := strings.Cut(s, ".")
	part = strings.TrimRight(part, "0")
	if len(part) > 3 || whole == "" && part == "" {
		return 0, false
	}
	digits := whole + part + strings.Repeat("0", 3-len(part))
	if strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil
}

// decimal writes thousandths as a number.
func decimal(n int64) string {
	s := fmt.Sprintf("%d.%03d", n/milli, n%milli)
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}

// percent reads a percentage from 0 to 100, 12.5 or "12.5%", in thousandths.
func (r *reader) percent(v value) (n int64, ok bool) {
	if s, isText := v.node.(*ast.StringNode); isText {
		if digits, sign := strings.CutSuffix(s.Value, "%"); sign {
			if n, ok = parseThousandths(digits); ok && n <= 100*milli {
				return n, true
			}
		}
		r.fault(v, "must be a percentage from 0 to 100 with at most three decimals")
		return 0, false
	}
	return r.thousandths(v, 0, 100*milli)
}

// duration reads a duration such as 90s or 5m in µs.
func (r *reader) duration(v value) (us int64, ok bool) {
	switch n := v.node.(type) {
	case *ast.IntegerNode:
		if n.GetToken().Value == "0" {
			return 0, true
		}
		r.fault(v, "must be a duration with a unit, such as 90s or 5m")
		return 0, false
	case *ast.StringNode:
		d, err := time.ParseDuration(n.Value)
		switch {
		case err != nil:
			r.fault(v, "must be a duration, such as 90s or 5m")
		case d < 0:
			r.fault(v, "a duration must not be negative")
		case d%time.Microsecond != 0 || d.Microseconds() > numberMax:
			r.fault(v, "must be a duration in whole microseconds, at most 2^53")
		default:
			return d.Microseconds(), true
		}
		return 0, false
	}
	r.fault(v, "must be a duration, such as 90s or 5m, is %s", kindName(v.node))
	return 0, false
}

// word reads one of a few words and gives its index.
func (r *reader) word(v value, words ...string) (i int, ok bool) {
	s, ok := r.text(v, nameBytesMax)
	if !ok {
		return 0, false
	}
	if i = slices.Index(words, s); i < 0 {
		r.fault(v, "must be one of %s", strings.Join(words, ", "))
		return 0, false
	}
	return i, true
}

// saturated adds two amounts that are not negative.
func saturated(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
