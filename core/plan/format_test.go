package plan

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/token"
)

// policyFiles are the texts of all policy files of the project.
func policyFiles(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for _, pattern := range []string{"testdata/*.yaml", "../../cmd/stint/init/*/plan.yaml",
		"../../testdata/*/plan.yaml", "../../export/testdata/*/plan.yaml"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: no files: %v", pattern, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files[name] = text
		}
	}
	cases, err := filepath.Glob("../../testdata/cases/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range cases { // policies within scenarios, as YAML and as JSON
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, doc := range strings.Split(string(text), "\n---\n") {
			var s struct {
				Plan yaml.MapSlice `yaml:"plan"`
			}
			if err := yaml.Unmarshal([]byte(doc), &s); err != nil || s.Plan == nil {
				continue
			}
			for _, o := range [][]yaml.EncodeOption{nil, {yaml.JSON()}, {yaml.Flow(true)}} {
				plan, err := yaml.MarshalWithOptions(s.Plan, o...)
				if err != nil {
					t.Fatal(err)
				}
				files[fmt.Sprint(name, "#", i, len(o), string(plan[0]))] = plan
			}
		}
	}
	return files
}

// commentsOf are the comments of a text, sorted.
func commentsOf(t *testing.T, text []byte) (list []string) {
	t.Helper()
	tokens, fault := tokenize(string(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))))
	if fault != nil {
		t.Fatal(fault)
	}
	for _, c := range tokens {
		if c.Type == token.CommentType {
			list = append(list, strings.TrimSpace(c.Value))
		}
	}
	slices.Sort(list)
	return list
}

// TestFormatKeeps formats all policy files: they mean the same, keep their comments, and stay as they are when they are
// formatted again.
func TestFormatKeeps(t *testing.T) {
	files := policyFiles(t)
	if len(files) < 300 {
		t.Fatalf("%d files alone", len(files))
	}
	for name, text := range files {
		once, err := Format(name, text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		twice, err := Format(name, once)
		if err != nil || !bytes.Equal(once, twice) {
			t.Errorf("%s: formatted again it is another: %v\n%s\n--\n%s", name, err, once, twice)
		}
		var was, is any
		if err := yaml.Unmarshal(text, &was); err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(once, &is); err != nil || !reflect.DeepEqual(was, is) {
			t.Errorf("%s: it says something else: %v\n%s", name, err, once)
		}
		if a, b := commentsOf(t, text), commentsOf(t, once); !slices.Equal(a, b) {
			t.Errorf("%s: comments\n%q\nbecame\n%q\n%s", name, a, b, once)
		}
		a, errA := Parse("p", text)
		b, errB := Parse("p", once)
		if (errA == nil) != (errB == nil) {
			t.Errorf("%s: %v, formatted %v", name, errA, errB)
		}
		if errA == nil && errB == nil {
			if !alike(reflect.ValueOf(a).Elem(), reflect.ValueOf(b).Elem()) || !slices.Equal(a.System, b.System) {
				t.Errorf("%s: the compiled policy is another\n%s", name, once)
			}
		}
		for i, line := range strings.Split(string(once), "\n") {
			if line != strings.TrimRight(line, " \t\r") {
				t.Errorf("%s: line %d ends with blanks", name, i+1)
			}
		}
	}
}

// TestFormat holds what the canonical form is.
func TestFormat(t *testing.T) {
	for _, c := range []struct{ what, text, want string }{
		{"keys in order, in one line where they fit, without needless quotes", `
consumers:
    -   {rank: 1, path: "/B", admins: ['x', "y z", 'true']}
    -   path: /C
dimensions:
- slots
stint: 1
slot_plans:
- consumers: [{path: /B, share: {ratio: 2}, policy: ownership}]
  resource_group: 'G'
`, `stint: 1
dimensions: [slots]
consumers:
  - {path: /B, rank: 1, admins: [x, "y z", "true"]}
  - {path: /C}
slot_plans:
  - resource_group: G
    consumers:
      - {path: /B, policy: ownership, share: {ratio: 2}}
`},
		{"comments stay with what they are about", `# yaml-language-server: $schema=policy.schema.json
# of the file

# of the consumers
consumers: # behind
  # of A
  - path: /A    # a
    # of its rank
    rank: 1

  # of B

  - {path: /B}
  # - {path: /Gone}


stint: 1      # one
cluster: grid # two
# the end
`, `# yaml-language-server: $schema=policy.schema.json
# of the file

stint: 1       # one
cluster: grid  # two

# of the consumers
consumers:  # behind
  # of A
  - path: /A  # a
    # of its rank
    rank: 1

  # of B

  - {path: /B}
  # - {path: /Gone}
# the end
`},
		{"keys that nobody knows come last", "wrong: [1]\nstint: 1\n", "stint: 1\nwrong: [1]\n"},
		{"comments between a dash and its first key", "a:\n- # c\n  # d\n\n  b: 1 # e\n-\n  # f\n  c: 1\n",
			"a:\n  # c\n  # d\n  - {b: 1}  # e\n  # f\n  - {c: 1}\n"},
		{"a text over two lines", "cluster: \"a\n  b\"\n", "cluster: \"a b\"\n"},
		{"an empty mapping", "{} # nothing\n", "{}\n# nothing\n"},
	} {
		got, err := Format("p", []byte(c.text))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n%s\nexpected\n%s", c.what, err, got, c.want)
		}
		if crlf, err := Format("p", []byte(strings.ReplaceAll(c.text, "\n", "\r\n"))); err != nil ||
			string(crlf) != c.want {
			t.Errorf("%s, with CR LF: %v\n%s", c.what, err, crlf)
		}
	}
	for text, want := range map[string]string{
		"": "p: the file is empty", "- 1\n": "the file is no mapping of keys", "a: &x 1\n": "anchors", "a: [1\n": "p:1",
		"stint: 1\n---\nstint: 1\n": "one document",
	} {
		if got, err := Format("p", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, expected %q\n%s", text, err, want, got)
		}
	}
}

// FuzzFormat formats texts that are YAML: the result says the same, keeps the comments, and is formatted already.
func FuzzFormat(f *testing.F) {
	for _, text := range []string{"stint: 1 # x\n", "a:\n  - b # c\n  # d\n- e\n",
		"a: {b: [c, 'd'], e: \"f\\n\"}\n# g\n", "a:\n- - b\n  - c: d\n", "a: |\n  b\n  c\nd: >-\n  e\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { checkFormat(t, text) })
}

// checkFormat formats a text: the result says the same, keeps the comments, and is formatted already. It returns nil
// for a text that Format refuses.
func checkFormat(t *testing.T, text string) []byte {
	t.Helper()
	once, err := Format("p", []byte(text))
	if err != nil {
		return nil
	}
	var was, is any
	if yaml.Unmarshal(unixLines([]byte(text)), &was) != nil {
		return nil
	}
	if err := yaml.Unmarshal(once, &is); err != nil || !reflect.DeepEqual(was, is) {
		t.Errorf("it says something else: %v\n%#v\n%#v\n%q\n%q", err, was, is, text, once)
	}
	twice, err := Format("p", once)
	if err != nil || !bytes.Equal(once, twice) {
		t.Errorf("formatted again it is another: %v\n%q\n%q\n%q", err, text, once, twice)
	}
	if a, b := commentsOf(t, []byte(text)), commentsOf(t, once); !slices.Equal(a, b) {
		t.Errorf("comments %q became %q: %q\n%q", a, b, text, once)
	}
	return once
}

// TestFormatUnprintable puts each character that is no part of a line of text wherever a policy may have it.
func TestFormatUnprintable(t *testing.T) {
	unusual := []rune{'\u00a0', '\u200b', '\u2028', '\u2029', '\ufeff', '\ufffd', '\ufffe', '\uffff', '\U0001f600'}
	for c := rune(0); c < 0xa0; c++ {
		if unicode.IsControl(c) && c != '\n' { // every formatted text has line feeds
			unusual = append(unusual, c)
		}
	}
	for _, c := range unusual {
		raw, escaped := string(c), fmt.Sprintf(`\u%04x`, c)
		if c > 0xffff {
			escaped = fmt.Sprintf(`\U%08x`, c)
		}
		for _, at := range []string{"?", "?a", "a?", "a?b", "a ? b", "a:?b"} {
			for _, text := range []string{"a: \"?\"\n", "\"?\": b\n", "a: [b, {\"?\": \"?\"}]\n"} {
				text = strings.ReplaceAll(text, "?", strings.ReplaceAll(at, "?", escaped))
				once := checkFormat(t, text)
				if once == nil {
					t.Errorf("%q is refused", text)
				}
				if bytes.ContainsRune(once, c) != unicode.IsGraphic(c) {
					t.Errorf("%q becomes %q", text, once)
				}
			}
			for _, text := range []string{"?", "? a: b\n", "?a: b\n", "a: ?\n", "a: \"?\"\n", "a: '?'\n", "a: |\n  ?\n",
				"a: >\n  b\n  ?\n\n  c\n", "a: b # ?\n", "# ?\na: b\n#?\n", "? a\n", "?: b\n",
				"a:\n?\n  - b\n", "a: b\n?"} {
				checkFormat(t, strings.ReplaceAll(text, "?", strings.ReplaceAll(at, "?", raw)))
			}
		}
	}
}
