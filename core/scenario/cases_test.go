package scenario

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

var inPlaceOf = regexp.MustCompile(`(?m)^# in place of: (.*)$`)

// caseFiles are the files of the project's cases and of those whose figures docs/spec/md.md changes, with the names of
// the scenarios that these replace.
func caseFiles(t *testing.T) (files []string, replaced map[string]bool) {
	t.Helper()
	replaced = map[string]bool{}
	for _, pattern := range []string{"../../testdata/cases/*.yaml", "../../testdata/rounds/*.yaml"} {
		list, err := filepath.Glob(pattern)
		if err != nil || len(list) == 0 {
			t.Fatalf("no cases: %v", err)
		}
		files = append(files, list...)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range inPlaceOf.FindAllStringSubmatch(string(text), -1) {
			replaced[found[1]] = true
		}
	}
	return files, replaced
}
