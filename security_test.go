package stint_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFindings holds the list of attacks in SECURITY.md: each of the tests that it names is there.
func TestFindings(t *testing.T) {
	text, err := os.ReadFile("SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(text), "| fault | tests |\n|---|---|\n")
	if !found {
		t.Fatal("SECURITY.md has no list of faults")
	}
	faults := 0
	for line := range strings.Lines(list) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 4 {
			break
		}
		faults++
		for part := range strings.SplitSeq(cells[2], ",") {
			words := strings.Fields(part)
			if len(words) < 2 {
				t.Errorf("%s: a folder and its tests are expected, not %q", cells[1], part)
				continue
			}
			tests := testsOf(t, words[0])
			for _, name := range words[1:] {
				if !tests[name] {
					t.Errorf("%s: %s has no %s", cells[1], words[0], name)
				}
			}
		}
	}
	if faults < 20 {
		t.Errorf("%d faults", faults)
	}
}

// testsOf are the tests of a folder.
func testsOf(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(filepath.FromSlash(dir), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") {
				tests[fn.Name.Name] = true
			}
		}
	}
	return tests
}
