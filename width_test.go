package stint_test

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// widest is how many columns a line of Go has at most, a tab counting four.
const widest = 120

// TestLineWidth holds every line of Go to the widest. What cannot be broken is left out: lines of raw strings, which
// hold plans, tables and help, and files that are generated.
func TestLineWidth(t *testing.T) {
	lines := 0
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
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if lines < 10_000 {
		t.Errorf("only %d lines were looked at", lines)
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
