package table

import (
	"unicode/utf16"
	"unicode/utf8"
)

// valueKind is the kind of a JSON value that may stand in a table.
type valueKind uint8

const (
	valueNull valueKind = iota
	valueBool
	valueNumber
	valueString
)

// cell is a value of a row object. key is set when the column is not known yet.
type cell struct {
	column *column
	key    []byte
	kind   valueKind
	raw    []byte // a string's content, unescaped; else the value as written
}

// lexer takes JSON from a text, from p[i] on. Where the text ends too early its
// methods give errMore, or a syntax error if last says that no more will come.
type lexer struct {
	p    []byte
	i    int
	last bool
	text []byte // strings that had escapes; what was cut from it stays good as it grows
}

func (x *lexer) fail(reason string) error {
	return &syntaxError{offset: int64(x.i), reason: reason}
}

// end is the error of a text that ends too early.
func (x *lexer) end() error {
	if !x.last {
		return errMore
	}
	x.i = len(x.p)
	return x.fail("ends within a value")
}

// space goes to the next byte that is no white space and gives it.
func (x *lexer) space() (byte, error) {
	if x.i < len(x.p) && x.p[x.i] > ' ' {
		return x.p[x.i], nil
	}
	return x.spaces()
}

// spaces is space where there is some; apart, so that space is inlined.
//
//go:noinline
func (x *lexer) spaces() (byte, error) {
	for ; x.i < len(x.p); x.i++ {
		switch c := x.p[x.i]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c, nil
		}
	}
	return 0, x.end()
}

// expect takes a byte, white space before it.
func (x *lexer) expect(c byte, reason string) error {
	if got, err := x.space(); err != nil {
		return err
	} else if got != c {
		return x.fail(reason)
	}
	x.i++
	return nil
}

// key takes a key, the colon, and the white space up to the value.
func (x *lexer) key() ([]byte, error) {
	c, err := x.space()
	if err != nil {
		return nil, err
	}
	if c != '"' {
		return nil, x.fail("a key in quotes is expected")
	}
	name, err := x.str()
	if err != nil {
		return nil, err
	}
	if err = x.expect(':', "a colon is expected"); err != nil {
		return nil, err
	}
	_, err = x.space()
	return name, err
}

// value takes a value, which stands at p[i].
func (x *lexer) value() (valueKind, []byte, error) {
	switch x.p[x.i] {
	case '"':
		v, err := x.str()
		return valueString, v, err
	case 't':
		v, err := x.literal("true")
		return valueBool, v, err
	case 'f':
		v, err := x.literal("false")
		return valueBool, v, err
	case 'n':
		v, err := x.literal("null")
		return valueNull, v, err
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		v, err := x.number()
		return valueNumber, v, err
	case '{', '[':
		return 0, nil, x.fail("an object or array where a plain value is expected")
	}
	return 0, nil, x.fail("no value")
}

func (x *lexer) literal(word string) ([]byte, error) {
	rest := x.p[x.i:]
	if len(rest) < len(word) {
		if word[:len(rest)] == string(rest) {
			return nil, x.end()
		}
		return nil, x.fail("no value")
	}
	if string(rest[:len(word)]) != word {
		return nil, x.fail("no value")
	}
	x.i += len(word)
	return rest[:len(word)], nil
}

// number takes a number by JSON's grammar; what it is worth is for others to say.
func (x *lexer) number() ([]byte, error) {
	from := x.i
	if x.p[x.i] == '-' {
		x.i++
	}
	whole := x.i
	if x.digits() > 0 && x.i < len(x.p) && (x.p[x.i] == ',' || x.p[x.i] == '}') && x.p[whole] != '0' {
		return x.p[from:x.i], nil // the common case
	}
	x.i = whole
	if x.digits() == 0 || x.p[whole] == '0' && x.i > whole+1 {
		return nil, x.badNumber(from)
	}
	if x.at('.') {
		x.i++
		if x.digits() == 0 {
			return nil, x.badNumber(from)
		}
	}
	if x.at('e') || x.at('E') {
		x.i++
		if x.at('+') || x.at('-') {
			x.i++
		}
		if x.digits() == 0 {
			return nil, x.badNumber(from)
		}
	}
	if x.i == len(x.p) && !x.last {
		return nil, errMore
	}
	return x.p[from:x.i], nil
}

func (x *lexer) at(c byte) bool { return x.i < len(x.p) && x.p[x.i] == c }

// digits takes digits and gives their number.
func (x *lexer) digits() int {
	from := x.i
	for x.i < len(x.p) && x.p[x.i]-'0' <= 9 {
		x.i++
	}
	return x.i - from
}

func (x *lexer) badNumber(from int) error {
	if x.i == len(x.p) && !x.last {
		return errMore
	}
	x.i = from
	return x.fail("a malformed number")
}

// str takes a string, whose opening quote is p[i], and gives its content unescaped.
func (x *lexer) str() ([]byte, error) {
	x.i++
	from, kept := x.i, len(x.text)
	for {
		x.i = indexStringEnd(x.p, x.i)
		if x.i == len(x.p) {
			return nil, x.end()
		}
		switch x.p[x.i] {
		case '"':
			v := x.p[from:x.i]
			if len(x.text) > kept {
				x.text = append(x.text, v...)
				v = x.text[kept:]
			}
			x.i++
			return v, nil
		case '\\':
			x.text = append(x.text, x.p[from:x.i]...)
			if err := x.escape(); err != nil {
				x.text = x.text[:kept]
				return nil, err
			}
			from = x.i
		default:
			return nil, x.fail("a control character in a string")
		}
	}
}

// escape takes an escape sequence, of which p[i] is the backslash.
func (x *lexer) escape() error {
	if x.i+1 >= len(x.p) {
		return x.end()
	}
	c := x.p[x.i+1]
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		return x.unicode()
	default:
		return x.fail("an unknown escape in a string")
	}
	x.text = append(x.text, c)
	x.i += 2
	return nil
}

// unicode takes \uXXXX, or two of them that are a surrogate pair.
func (x *lexer) unicode() error {
	r, err := x.hex(x.i)
	if err != nil {
		return err
	}
	n := 6
	if utf16.IsSurrogate(r) {
		if x.i+n < len(x.p) && x.p[x.i+n] != '\\' || x.i+n+1 < len(x.p) && x.p[x.i+n+1] != 'u' {
			return x.fail("half of a surrogate pair in a string")
		}
		low, err := x.hex(x.i + n)
		if err != nil {
			return err
		}
		if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
			return x.fail("half of a surrogate pair in a string")
		}
		n = 12
	}
	x.text = utf8.AppendRune(x.text, r)
	x.i += n
	return nil
}

// hex is the number of the \uXXXX at p[i].
func (x *lexer) hex(i int) (r rune, err error) {
	if i+6 > len(x.p) {
		return 0, x.end()
	}
	for _, c := range x.p[i+2 : i+6] {
		switch {
		case c-'0' <= 9:
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, x.fail("a malformed \\u escape in a string")
		}
		r = r<<4 | rune(c)
	}
	return r, nil
}
