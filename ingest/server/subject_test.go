package server

import (
	"crypto/x509"
	"encoding/asn1"
	"reflect"
	"strings"
	"testing"
)

// attr is an attribute of a name in a test: its type, its kind of string and its value.
type attr struct {
	oid   string
	tag   int
	value string
}

const (
	oidCN, oidO, oidUID     = "2.5.4.3", "2.5.4.10", "0.9.2342.19200300.100.1.1"
	oidDC, oidEmail         = "0.9.2342.19200300.100.1.25", "1.2.840.113549.1.9.1"
	oidTitle, oidGN, oidSN  = "2.5.4.12", "2.5.4.42", "2.5.4.4"
	oidUnknown, oidUniqueID = "1.2.3.4.5", "2.5.4.45"
)

// derOf is the DER of a name whose relative names are given from the first to the last.
func derOf(t testing.TB, names ...[]attr) []byte {
	t.Helper()
	marshal := func(tag int, constructed bool, content []byte) []byte {
		der, err := asn1.Marshal(asn1.RawValue{Tag: tag, IsCompound: constructed, Bytes: content})
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	var all []byte
	for _, set := range names {
		var list []byte
		for _, p := range set {
			var oid asn1.ObjectIdentifier
			for _, arc := range strings.Split(p.oid, ".") {
				n := 0
				for _, c := range arc {
					n = 10*n + int(c-'0')
				}
				oid = append(oid, n)
			}
			of, err := asn1.Marshal(oid)
			if err != nil {
				t.Fatal(err)
			}
			of = append(of, marshal(p.tag, false, []byte(p.value))...)
			list = append(list, marshal(asn1.TagSequence, true, of)...)
		}
		all = append(all, marshal(asn1.TagSet, true, list)...)
	}
	return marshal(asn1.TagSequence, true, all)
}

func utf8Part(oid, value string) attr { return attr{oid, asn1.TagUTF8String, value} }

// one is a relative name of one attribute.
func one(oid, value string) []attr { return []attr{utf8Part(oid, value)} }

// TestClientSubjects has certificates of one authority ask with subjects that resemble a token's.
func TestClientSubjects(t *testing.T) {
	ca := newIssuer(t, "Clients")
	own := ca.issue("stint", nil)
	subjects := []string{
		"CN=feed,O=Bank", "UID=feed,CN=feed,O=Bank", "CN=feed,O=Bank,DC=site,DC=bank",
		"emailAddress=f@b,CN=feed,O=Bank",
		"CN=feed,title=agent,O=Bank", "CN=feed,O=Bank,O=Group", "CN=feed+O=Desk", `CN=f\C3\BCr\, alle,O=Bank`,
	}
	var tokens []Token
	for _, s := range subjects {
		tokens = append(tokens, Token{Name: "as " + s, Role: RoleReader, Subject: s})
	}
	s, _ := secured(t, TLSFiles{Certificate: own.cert, Key: own.key, Clients: ca.file}, tokens...)
	bank, feed := one(oidO, "Bank"), one(oidCN, "feed")
	for _, c := range []struct {
		of   [][]attr
		want string // the subject of the token, or a part of the refusal
	}{
		{[][]attr{bank, feed}, subjects[0]},
		{[][]attr{bank, feed, one(oidUID, "feed")}, subjects[1]},
		{[][]attr{one(oidDC, "bank"), one(oidDC, "site"), bank, feed}, subjects[2]},
		{[][]attr{bank, feed, {{oidEmail, asn1.TagIA5String, "f@b"}}}, subjects[3]},
		{[][]attr{bank, one(oidTitle, "agent"), feed}, subjects[4]},
		{[][]attr{one(oidO, "Group"), bank, feed}, subjects[5]},
		{[][]attr{{utf8Part(oidO, "Desk"), utf8Part(oidCN, "feed")}}, subjects[6]},
		{[][]attr{bank, {{oidCN, asn1.TagT61String, "f\xfcr, alle"}}}, subjects[7]},

		{[][]attr{feed, bank}, "client certificate of O=Bank,CN=feed is taken, but no token"},
		{[][]attr{bank, one(oidCN, "attacker"), feed}, "it has 2 common names (CN)"},
		{[][]attr{bank, feed, one(oidCN, "attacker")}, "it has 2 common names (CN)"},
		{[][]attr{{utf8Part(oidCN, "feed"), utf8Part(oidCN, "feed")}, bank}, "it has 2 common names (CN)"},
		{[][]attr{{utf8Part(oidO, "Bank"), utf8Part(oidCN, "feed")}}, "CN=feed+O=Bank"},
		{[][]attr{one(oidO, "Desk"), feed}, "CN=feed,O=Desk"},
		{[][]attr{bank, feed, one(oidUID, "mallory")}, "UID=mallory,CN=feed,O=Bank"},
		{[][]attr{one(oidDC, "evil"), bank, feed}, "CN=feed,O=Bank,DC=evil"},
		{[][]attr{one(oidO, "Evil"), bank, feed}, "CN=feed,O=Bank,O=Evil"},
		{[][]attr{bank, one(oidCN, "FEED")}, "CN=FEED,O=Bank"},
		{[][]attr{bank, one(oidCN, "feed ")}, `CN=feed\\ ,O=Bank`},
		{[][]attr{one(oidCN, "feed,O=Bank")}, `CN=feed\\,O=Bank`},
		{[][]attr{bank, one(oidGN, "x"), one(oidSN, "y"), feed}, "CN=feed,SN=y,GN=x,O=Bank"},
	} {
		der := derOf(t, c.of...)
		pair := ca.issue("feed", func(t *x509.Certificate) { t.RawSubject = der }).pair
		a := s.as(ca.trusting(pair), "GET", "/v1/cycles", "")
		name := strings.TrimPrefix(a.header.Get("Stint-Name"), "as ")
		if strings.Contains(name, "%") { // of names that are no ASCII
			t.Error(name)
		}
		switch {
		case name != "" && a.status == 200:
			if name != c.want {
				t.Errorf("%v is known as %q, expected %q", c.of, name, c.want)
			}
		case a.status != 401 || !strings.Contains(a.body, c.want):
			t.Errorf("%v: %v, expected %q", c.of, a, c.want)
		}
	}
}

// TestNames holds names as OpenSSL prints them with -nameopt RFC2253, and that they are read back.
func TestNames(t *testing.T) {
	for want, of := range map[string][][]attr{
		"": {},
		"emailAddress=a@b,CN=feed,O=Bank,C=GB": {{{"2.5.4.6", asn1.TagPrintableString, "GB"}}, one(oidO, "Bank"),
			one(oidCN, "feed"), {{oidEmail, asn1.TagIA5String, "a@b"}}},
		"CN=x+UID=1,O=Bank":               {one(oidO, "Bank"), {utf8Part(oidUID, "1"), utf8Part(oidCN, "x")}},
		`CN=\#a\,b\+c\"d\\e\<f\>g\;h=i\ `: {one(oidCN, `#a,b+c"d\e<f>g;h=i `)},
		`CN=\  \00\0A\7F`:                 {one(oidCN, "  \x00\n\x7f")},
		`CN=\C3\9C\F0\9F\98\80`:           {one(oidCN, "Ü😀")},
		`CN=\C3\BC`:                       {{{oidCN, asn1.TagT61String, "\xfc"}}},
		`CN=\E2\82\AC`:                    {{{oidCN, asn1.TagBMPString, "\x20\xac"}}},
		`CN=A`:                            {{{oidCN, tagUniversalString, "\x00\x00\x00A"}}},
		"x500UniqueIdentifier=#030200FF":  {{{oidUniqueID, asn1.TagBitString, "\x00\xff"}}},
		"CN=":                             {one(oidCN, "")},
		"1.2.3.4.5=x":                     {one(oidUnknown, "x")}, // OpenSSL: 1.2.3.4.5=#0C0178
	} {
		n, err := nameOf(derOf(t, of...))
		if err != nil || n.String() != want {
			t.Errorf("%q: %v, expected %q", n.String(), err, want)
			continue
		}
		if want == "" {
			continue
		}
		if back, err := parseName(want); err != nil || !reflect.DeepEqual(back, n) {
			t.Errorf("%q is read as %q: %v", want, back, err)
		}
	}
	for text, want := range map[string]string{
		" CN=feed, O=Bank ": "CN=feed,O=Bank", "cn=feed,emailaddress=a": "CN=feed,emailAddress=a",
		"2.5.4.3=feed": "CN=feed", "1.2.3.4.5=#0c0178": "1.2.3.4.5=x", "CN=für": `CN=f\C3\BCr`, "CN=#0C0178": "CN=x",
		"SERIALNUMBER=1+CN=x": "serialNumber=1+CN=x", "CN=x , O=y": "CN=x,O=y",
	} {
		if n, err := parseName(text); err != nil || n.String() != want {
			t.Errorf("%q is read as %q: %v", text, n, err)
		}
	}
	for text, want := range map[string]string{
		"feed": "has no =", "CN=feed,": "has no =", "CN = feed, O = Bank": "-nameopt RFC2253",
		"CN= feed": "-nameopt RFC2253",
		"shoe=9":   "no type of attribute that is known", "=x": "no type", `CN=a\`: `ends with \`, `CN="a"`: `a bare "`,
		"CN=#xx": "no DER", "CN=#0C": "no DER", `CN=\FF`: "no UTF-8", "CN=#0c01780c0178": "no DER",
	} {
		if n, err := parseName(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is read as %q: %v, expected %q", text, n, err, want)
		}
	}
	for _, der := range []string{
		"", "\x30", "\x30\x02\x31\x00x", "\x31\x00", "\x30\x03\x31\x01\x00", "\x30\x02\x31\x00",
	} {
		if n, err := nameOf([]byte(der)); err == nil {
			t.Errorf("%x is the name %q", der, n)
		}
	}
}

// TestSubjects refuses subjects of tokens that no certificate can have.
func TestSubjects(t *testing.T) {
	for why, list := range map[string][]Token{
		"neither sha256": {{Name: "a", Role: RoleAdmin}},
		"the same subject": {{Name: "a", Role: RoleAdmin, Subject: "CN=a"},
			{Name: "b", Role: RoleAdmin, Subject: " CN=a"}},
		"must be the subj":   {{Name: "a", Role: RoleAdmin, Subject: "a"}},
		"has no =":           {{Name: "a", Role: RoleAdmin, Subject: " "}},
		"has 2 common names": {{Name: "a", Role: RoleAdmin, Subject: "CN=a,CN=b,O=Bank"}},
	} {
		if err := CheckTokens(list); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", why, err)
		}
	}
}

// FuzzName reads any bytes as the name of a certificate: what it prints is read back as the same name.
func FuzzName(f *testing.F) {
	f.Add(derOf(f, one(oidO, "Bank"), one(oidCN, "feed")))
	f.Add(derOf(f, []attr{utf8Part(oidO, " #"), {oidCN, asn1.TagT61String, "\xfc,"}},
		[]attr{{oidCN, asn1.TagBMPString, "\x20\xac"}}))
	f.Add(derOf(f, []attr{{oidUniqueID, asn1.TagBitString, "\x00\xff"}}, one(oidUnknown, "\\0")))
	f.Fuzz(func(t *testing.T, der []byte) {
		n, err := nameOf(der)
		if err != nil || len(n) == 0 {
			return
		}
		if back, err := parseName(n.String()); err != nil || !reflect.DeepEqual(back, n) {
			t.Fatalf("%q is read back as %q: %v", n, back, err)
		}
	})
}
