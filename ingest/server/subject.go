package server

import (
	"bytes"
	"crypto/x509"
	"encoding/asn1"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Subjects are compared as `openssl x509 -noout -subject -nameopt RFC2253` prints them: the relative names of the
// certificate from the last to the first, in the certificate's own order. Go's pkix.Name sorts relative names into
// fields and keeps one common name, so that different subjects print alike.

// attributeNames are the short names that OpenSSL has for types of attributes. Another type is printed as its number.
var attributeNames = []struct{ name, oid string }{
	{"CN", "2.5.4.3"}, {"SN", "2.5.4.4"}, {"serialNumber", "2.5.4.5"}, {"C", "2.5.4.6"}, {"L", "2.5.4.7"},
	{"ST", "2.5.4.8"}, {"street", "2.5.4.9"}, {"O", "2.5.4.10"}, {"OU", "2.5.4.11"}, {"title", "2.5.4.12"},
	{"description", "2.5.4.13"}, {"businessCategory", "2.5.4.15"}, {"postalAddress", "2.5.4.16"},
	{"postalCode", "2.5.4.17"}, {"postOfficeBox", "2.5.4.18"}, {"telephoneNumber", "2.5.4.20"},
	{"name", "2.5.4.41"}, {"GN", "2.5.4.42"}, {"initials", "2.5.4.43"}, {"generationQualifier", "2.5.4.44"},
	{"x500UniqueIdentifier", "2.5.4.45"}, {"dnQualifier", "2.5.4.46"}, {"pseudonym", "2.5.4.65"},
	{"role", "2.5.4.72"}, {"organizationIdentifier", "2.5.4.97"},
	{"UID", "0.9.2342.19200300.100.1.1"}, {"mail", "0.9.2342.19200300.100.1.3"},
	{"DC", "0.9.2342.19200300.100.1.25"}, {"emailAddress", "1.2.840.113549.1.9.1"},
	{"unstructuredName", "1.2.840.113549.1.9.2"}, {"unstructuredAddress", "1.2.840.113549.1.9.8"},
	{"jurisdictionL", "1.3.6.1.4.1.311.60.2.1.1"}, {"jurisdictionST", "1.3.6.1.4.1.311.60.2.1.2"},
	{"jurisdictionC", "1.3.6.1.4.1.311.60.2.1.3"},
}

const commonName = "CN"

// attribute is a type and a value of a name.
type attribute struct {
	kind  string // short name of OpenSSL, or the number of the type
	value string // UTF-8; of a value that is no text "#" and its DER in hex
	text  bool
	joins bool // it belongs to the same relative name as the attribute before it
}

// distinguishedName is a certificate's name as its attributes in the order of RFC 2253: from the last to the first.
type distinguishedName []attribute

// String prints a name as OpenSSL does with -nameopt RFC2253, save that the value of a type without a short name is
// text where it can be.
func (n distinguishedName) String() string {
	var b strings.Builder
	for i, a := range n {
		switch {
		case i > 0 && a.joins:
			b.WriteByte('+')
		case i > 0:
			b.WriteByte(',')
		}
		b.WriteString(a.kind + "=" + a.escaped())
	}
	return b.String()
}

// escaped is the value with what is not plain ASCII, and what separates attributes, escaped.
func (a *attribute) escaped() string {
	if !a.text {
		return a.value
	}
	var b strings.Builder
	for i := range len(a.value) {
		c := a.value[i]
		first, last := i == 0, i == len(a.value)-1
		switch {
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, `\%02X`, c)
			continue
		case strings.IndexByte(`,+"\<>;`, c) >= 0, first && (c == ' ' || c == '#'), last && c == ' ':
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}

// fault tells why a name is not taken as a subject, nil when it is.
func (n distinguishedName) fault() error {
	common := 0
	for _, a := range n {
		if a.kind == commonName {
			common++
		}
	}
	switch {
	case len(n) == 0:
		return errors.New("it has no subject, by which it would be known here")
	case common > 1:
		return fmt.Errorf("it has %d common names (CN), of which different programs take different ones: give it one",
			common)
	}
	return nil
}

// nameOf reads the DER of a name.
func nameOf(der []byte) (distinguishedName, error) {
	var sequence []asn1.RawValue
	if rest, err := asn1.Unmarshal(der, &sequence); err != nil || len(rest) > 0 {
		return nil, errors.New("the name cannot be read")
	}
	var n distinguishedName
	for _, set := range slices.Backward(sequence) {
		var list []struct {
			Type  asn1.ObjectIdentifier
			Value asn1.RawValue
		}
		rest, err := asn1.UnmarshalWithParams(set.FullBytes, &list, "set")
		if err != nil || len(rest) > 0 || len(list) == 0 {
			return nil, errors.New("the name cannot be read")
		}
		for i, one := range slices.Backward(list) {
			a := attribute{kind: shortName(one.Type.String()), joins: i < len(list)-1}
			a.value, a.text = textOf(&one.Value)
			if !a.text {
				a.value = "#" + strings.ToUpper(hex.EncodeToString(one.Value.FullBytes))
			}
			n = append(n, a)
		}
	}
	return n, nil
}

// shortName is what OpenSSL calls a type.
func shortName(oid string) string {
	for _, of := range attributeNames {
		if of.oid == oid {
			return of.name
		}
	}
	return oid
}

// Types of text that package asn1 has no names for.
const (
	tagVisibleString   = 26
	tagUniversalString = 28
)

// textOf decodes a value; false: it is no text, or not of its own encoding.
func textOf(v *asn1.RawValue) (string, bool) {
	if v.Class != asn1.ClassUniversal || v.IsCompound {
		return "", false
	}
	b := v.Bytes
	switch v.Tag {
	case asn1.TagUTF8String:
		return string(b), utf8.Valid(b)
	case asn1.TagPrintableString, asn1.TagIA5String, asn1.TagNumericString, tagVisibleString, asn1.TagT61String:
		runes := make([]rune, len(b)) // ISO 8859-1, as OpenSSL has it
		for i, c := range b {
			runes[i] = rune(c)
		}
		return string(runes), true
	case asn1.TagBMPString:
		var units []uint16
		for i := 0; i+1 < len(b); i += 2 {
			units = append(units, uint16(b[i])<<8|uint16(b[i+1]))
		}
		text := string(utf16.Decode(units))
		return text, len(b)%2 == 0 && !strings.ContainsRune(text, utf8.RuneError)
	case tagUniversalString:
		var text strings.Builder
		for i := 0; i+3 < len(b); i += 4 {
			r := rune(b[i])<<24 | rune(b[i+1])<<16 | rune(b[i+2])<<8 | rune(b[i+3])
			if !utf8.ValidRune(r) {
				return "", false
			}
			text.WriteRune(r)
		}
		return text.String(), len(b)%4 == 0
	}
	return "", false
}

// parseName reads a name as String writes it. It also takes white space behind separators, UTF-8 that is not escaped,
// names of types in other cases, and numbers of types.
func parseName(text string) (n distinguishedName, err error) {
	rest, joins := strings.TrimLeft(text, " "), false
	for {
		kind, after, ok := strings.Cut(rest, "=")
		if !ok {
			return nil, fmt.Errorf("%q has no =: write TYPE=value for each part", rest)
		}
		a := attribute{joins: joins}
		if a.kind, err = parseKind(kind); err != nil {
			return nil, err
		}
		if strings.HasPrefix(after, " ") || strings.HasSuffix(kind, " ") {
			return nil, errors.New("has spaces around =, as the default form of openssl has, in another order: " +
				"print it with -nameopt RFC2253")
		}
		var end string
		if rest, end, err = a.parseValue(after); err != nil {
			return nil, err
		}
		n = append(n, a)
		if end == "" {
			return n, nil
		}
		joins = end == "+"
		rest = strings.TrimLeft(rest, " ")
	}
}

// parseKind reads the type of an attribute.
func parseKind(text string) (string, error) {
	if text = strings.TrimRight(text, " "); text != "" && strings.Trim(text, "0123456789.") == "" {
		return shortName(text), nil
	}
	for _, of := range attributeNames {
		if strings.EqualFold(of.name, text) {
			return of.name, nil
		}
	}
	return "", fmt.Errorf("%q is no type of attribute that is known: write its number (-nameopt RFC2253,oid)", text)
}

// parseValue reads a value up to the separator that ends it, "" at the end of the text.
func (a *attribute) parseValue(text string) (rest, end string, err error) {
	var value []byte
	a.text = true
	solid := 0 // length without spaces at the end that are not escaped
	i := 0
	for ; i < len(text) && text[i] != ',' && text[i] != '+'; i++ {
		c := text[i]
		switch {
		case c == '\\':
			n := 2
			if i+2 < len(text) {
				if b, bad := hex.DecodeString(text[i+1 : i+3]); bad == nil {
					c, n = b[0], 3
				}
			}
			if n == 2 {
				if i+1 == len(text) {
					return "", "", errors.New(`ends with \: write \\`)
				}
				c = text[i+1]
			}
			i += n - 1
			solid = len(value) + 1
		case strings.IndexByte(`"<>;`, c) >= 0:
			return "", "", fmt.Errorf(`has a bare %c: write \%c`, c, c)
		case c != ' ':
			solid = len(value) + 1
		}
		value = append(value, c)
	}
	a.value = string(value[:solid])
	switch {
	case strings.HasPrefix(text, "#"):
		if err := a.parseHex(); err != nil {
			return "", "", err
		}
	case !utf8.ValidString(a.value):
		return "", "", fmt.Errorf("the value of %s is no UTF-8: write it as openssl prints it", a.kind)
	}
	if i < len(text) {
		return text[i+1:], text[i : i+1], nil
	}
	return "", "", nil
}

// parseHex reads a value that is written as its DER.
func (a *attribute) parseHex() error {
	der, err := hex.DecodeString(a.value[1:])
	var v asn1.RawValue
	if err == nil {
		var rest []byte
		if rest, err = asn1.Unmarshal(der, &v); len(rest) > 0 {
			err = errors.New("more than one value")
		}
	}
	if err != nil {
		return fmt.Errorf(`%s=%s is no DER in hexadecimal digits: write \# for a value that begins with #`, a.kind, a.value)
	}
	if a.value, a.text = textOf(&v); !a.text {
		a.value = "#" + strings.ToUpper(hex.EncodeToString(v.FullBytes))
	}
	return nil
}

// subjectOf is the subject of a certificate for messages.
func subjectOf(c *x509.Certificate) string { return printed(c.RawSubject, "an empty subject") }

// issuerOf is the issuer of a certificate for messages.
func issuerOf(c *x509.Certificate) string { return printed(c.RawIssuer, "an empty issuer") }

func printed(der []byte, empty string) string {
	n, err := nameOf(der)
	switch {
	case err != nil:
		return "a name that cannot be read"
	case len(n) == 0:
		return empty
	}
	return n.String()
}

// selfSigned reports whether a certificate names itself as its issuer.
func selfSigned(c *x509.Certificate) bool { return bytes.Equal(c.RawIssuer, c.RawSubject) }
