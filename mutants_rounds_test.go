//go:build rounds

package stint_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/goccy/go-yaml"
)

// TestMutantsOfRounds holds the patches of wrong engines by docs/spec/md.md to the code of the tag: each of their texts
// stands there once.
func TestMutantsOfRounds(t *testing.T) {
	files, err := filepath.Glob("testdata/rounds/mutants/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("mutants: %v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var table mutants
		if err := yaml.UnmarshalWithOptions(text, &table, yaml.Strict()); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, m := range table.Mutants {
			if _, err := m.apply(table.Package); err != nil {
				t.Errorf("%s: %q: %v", file, m.Wrong, err)
			}
		}
	}
}
