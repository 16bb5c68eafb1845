package foreign

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// featureRow is a row of a table: what it is about, and the first cell, which is stint's.
var featureRow = regexp.MustCompile(`(?m)^\| ([^|]+) \| ([^|]+) \|`)

// TestFeatures compares docs/comparison.md with the list of features: each has a row, and every row about it says of
// stint what the list says. A setting is reported as lacking a feature only while stint lacks it, as lack panics
// otherwise when the package is loaded.
func TestFeatures(t *testing.T) {
	page, err := os.ReadFile("../../docs/comparison.md")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]int{}
	for _, m := range featureRow.FindAllStringSubmatch(string(page), -1) {
		for f, of := range features {
			if m[1] != of.row {
				continue
			}
			told[of.row]++
			mark := "●"
			if features[f].lack != "" {
				mark = "○"
			}
			if !strings.HasPrefix(m[2], mark) {
				t.Errorf("docs/comparison.md: %s: stint has %q, features.go says %s", m[1], m[2], mark)
			}
		}
	}
	for _, of := range features {
		if told[of.row] == 0 {
			t.Errorf("docs/comparison.md has no row %q", of.row)
		}
	}
}
