package stint_test

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/decision"
)

var updatePages = flag.Bool("update", false, "write what pages say of columns anew")

// columnBlock is what docs/log.md says of the columns of a table.
var columnBlock = regexp.MustCompile(`(?m)^\*\*(\w+)\*\*:[^|\n]*\n(?:[^|*\n][^|\n]*\n|\n)*` +
	`\| column \| type \| \|\n\|---\|---\|---\|\n((?:\|.*\n)*)`)

// TestLogPage holds the lists of columns of docs/log.md against the schemas. With -update it writes them.
func TestLogPage(t *testing.T) {
	const page = "docs/log.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	want := columnBlock.ReplaceAllStringFunc(string(text), func(block string) string {
		m := columnBlock.FindStringSubmatch(block)
		schema, ok := decision.SchemaOf(m[1])
		if !ok {
			t.Errorf("%s tells of a table %s, which there is not", page, m[1])
			return block
		}
		found++
		return strings.TrimSuffix(block, m[2]) + columnRows(schema)
	})
	if found < 10 {
		t.Errorf("%s has lists of the columns of %d tables", page, found)
	}
	if want == string(text) {
		return
	}
	if *updatePages {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	is := strings.Split(string(text), "\n")
	for i, line := range strings.Split(want, "\n") {
		if i >= len(is) || is[i] != line {
			t.Fatalf("%s:%d: it should say\n%s\n(go test -run TestLogPage . -update writes it)", page, i+1, line)
		}
	}
}

// columnRows are the rows of a schema's columns, of those beside each other that say the same one.
func columnRows(s column.Schema) string {
	var b strings.Builder
	type row struct{ name, kind string }
	var rows []row
	doc := ""
	flush := func() {
		if len(rows) == 0 {
			return
		}
		names, kinds, same := []string{}, []string{}, true
		for _, r := range rows {
			names, kinds, same = append(names, r.name), append(kinds, r.kind), same && r.kind == rows[0].kind
		}
		if same {
			kinds = kinds[:1]
		}
		if len(names) > 6 {
			names = []string{names[0] + " … " + names[len(names)-1]}
		}
		b.WriteString("| " + strings.Join(names, ", ") + " | " + strings.Join(kinds, ", ") + " | ")
		if doc != "" {
			b.WriteString(doc + " ")
		}
		b.WriteString("|\n")
		rows = rows[:0]
	}
	for _, l := range s.Lines {
		if l.Inner {
			continue
		}
		kind := l.Kind()
		if l.Doc != doc || doc == "" && len(rows) > 0 && rows[0].kind != kind {
			flush()
		}
		doc = l.Doc
		rows = append(rows, row{l.Name, kind})
	}
	flush()
	return b.String()
}
