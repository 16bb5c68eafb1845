package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestRules holds docs/rules.md complete: every rule that the code cites has a line there, those of this project in
// docs/decisions.md, and numbers have no gap but where the rules have none.
func TestRules(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	known := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^\| ([A-Z]+-[0-9]+) \| [^|]{20,} \|$`).FindAllStringSubmatch(read("../../docs/rules.md"), -1) {
		known[m[1]]++
	}
	for _, m := range regexp.MustCompile(`(?m)^\*\*(D-[0-9]+) `).FindAllStringSubmatch(read("../../docs/decisions.md"),
		-1) {
		known[m[1]]++
	}
	for rule, n := range known {
		if n > 1 {
			t.Errorf("%s stands there %d times", rule, n)
		}
	}
	cited := regexp.MustCompile(`\b(CYC|SLOT|MD|REQ|BUD|PLAN|API|HA|UI|INV|D)-[0-9]+\b`)
	found := 0
	for _, dir := range []string{"../../core", "../../cmd", "../../export", "../../ingest"} {
		err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			for _, rule := range cited.FindAllString(read(name), -1) {
				if found++; known[rule] == 0 {
					t.Errorf("%s cites %s, of which docs/rules.md and docs/decisions.md say nothing", name, rule)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 100 {
		t.Errorf("%d citations found", found)
	}
}
