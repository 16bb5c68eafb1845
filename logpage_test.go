package stint_test

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/decision"
)

var updatePages = flag.Bool("update", false, "write what pages say of columns anew")

// columnBlock is what docs/log.md says of the columns of a table.
var columnBlock = regexp.MustCompile(`(?m)^\*\*(\w+)\*\*[^|\n]*\n(?:[^|*\n][^|\n]*\n|\n)*` +
	`\| column \| type \| \|\n\|---\|---\|---\|\n((?:\|.*\n)*)`)

// TestLogPage holds the lists of columns of docs/log.md against the schemas. With -update it writes them.
func TestLogPage(t *testing.T) {
	holdPage(t, "docs/log.md", columnBlock, 18, func(table string) (string, bool) {
		schema, ok := decision.SchemaOf(table)
		return columnRows(schema), ok
	})
}

// inputBlock is what docs/tables.md says of the columns of a table.
var inputBlock = regexp.MustCompile(`(?m)^## (\w+)\n(?:[^|\n][^\n]*\n|\n)*` +
	`\| column \| type \| default \| meaning \|\n\|---\|---\|---\|---\|\n((?:\|.*\n)*)`)

// TestTablesPage holds the lists of columns of docs/tables.md against the schemas, as TestLogPage does.
func TestTablesPage(t *testing.T) {
	sizes := []string{"a dimension"}
	tables := map[string]column.Schema{
		"hosts": new(cluster.HostTable).Schema(sizes), "demand": new(cluster.DemandTable).Schema(sizes),
		"running": new(cluster.HoldingTable).Schema(), "releases": new(cluster.HoldingTable).Releases(),
	}
	holdPage(t, "docs/tables.md", inputBlock, len(tables), func(table string) (string, bool) {
		schema, ok := tables[table]
		var b strings.Builder
		for _, l := range schema.Lines {
			name, fallback := "`"+l.Name+"`", l.Input.Default
			if l.Name == sizes[0] {
				name = "a dimension of the policy"
			}
			if !l.Nullable {
				fallback = "required"
			}
			b.WriteString("| " + name + " | " + l.Input.Type + " | " + fallback + " | " + l.Doc + " |\n")
		}
		return b.String(), ok
	})
}

// holdPage holds the blocks of a page against the rows of their tables: its first group is the table, its second
// the rows. With -update it writes them.
func holdPage(t *testing.T, page string, block *regexp.Regexp, least int, rows func(table string) (string, bool)) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	want := block.ReplaceAllStringFunc(string(text), func(is string) string {
		m := block.FindStringSubmatch(is)
		lines, ok := rows(m[1])
		if !ok {
			t.Errorf("%s tells of a table %s, which there is not", page, m[1])
			return is
		}
		found++
		return strings.TrimSuffix(is, m[2]) + lines
	})
	if found < least {
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
			t.Fatalf("%s:%d: it should say\n%s\n(go test -run 'Test.*Page$' . -update writes it)", page, i+1, line)
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
