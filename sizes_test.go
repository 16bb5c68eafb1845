package stint_test

import (
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// How much a reader is to take in at once (CONTRIBUTING.md): columns of a line, a tab counting four; lines of a
// function, and of a file. Tests have tables, and are held to the first alone.
const (
	widest  = 120
	longest = 70
	largest = 600
)

// TestSizes holds every line of Go to the widest, and functions and files to the longest and the largest. Left out are
// raw strings, which hold plans, tables and help and cannot be broken, and generated files.
func TestSizes(t *testing.T) {
	lines, size := 0, map[string]int{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "out" || d.Name() == "node_modules"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(file, ".go"):
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil || strings.HasPrefix(string(text), "// Code generated") {
			return err
		}
		raw := rawLines(text)
		for i, line := range strings.Split(string(text), "\n") {
			width := utf8.RuneCountInString(line) + 3*strings.Count(line, "\t")
			if width > widest && !raw[i+1] {
				t.Errorf("%s:%d has %d columns, a line of Go has at most %d", file, i+1, width, widest)
			}
			lines++
		}
		if !strings.HasSuffix(file, "_test.go") {
			short(t, file, text)
			size[path.Dir(filepath.ToSlash(file))] += strings.Count(string(text), "\n")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for dir, n := range size {
		if most, ok := budgets[dir]; !ok || n > most {
			t.Errorf("%s has %d lines, its budget is %d: make it smaller, or raise it in budgets_test.go by what a "+
				"new rule of the contract costs, and name the rule", dir, n, most)
		}
	}
	if lines < 10_000 {
		t.Errorf("only %d lines were looked at", lines)
	}
}

// short holds a file and its functions to the largest and the longest.
func short(t *testing.T, file string, text []byte) {
	t.Helper()
	if n := strings.Count(string(text), "\n"); n > largest {
		t.Errorf("%s has %d lines, a file has at most %d", file, n, largest)
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range tree.Decls {
		if f, ok := d.(*ast.FuncDecl); ok {
			if n := set.Position(f.End()).Line - set.Position(f.Pos()).Line + 1; n > longest {
				t.Errorf("%s: %s has %d lines, a function has at most %d", file, f.Name.Name, n, longest)
			}
		}
	}
}

// rawLines are the lines of a file, from 1, on which a raw string lies.
func rawLines(text []byte) map[int]bool {
	file := token.NewFileSet().AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	raw := map[int]bool{}
	for {
		at, kind, of := s.Scan()
		if kind == token.EOF {
			return raw
		}
		if kind == token.STRING && of[0] == '`' {
			from := file.Line(at)
			for line := range strings.Count(of, "\n") + 1 {
				raw[from+line] = true
			}
		}
	}
}
