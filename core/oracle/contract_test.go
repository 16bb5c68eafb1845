package oracle_test

import (
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// contractFiles are scenarios whose figures follow docs/spec/md.md.
var contractFiles = []string{"testdata/contract.yaml", "../../testdata/cases/md.yaml"}

// TestContract plays the scenarios of docs/spec/md.md against the reference itself.
func TestContract(t *testing.T) {
	for _, path := range contractFiles {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range strings.Split(string(text), "\n---\n") {
			var s example
			if err := yaml.Unmarshal([]byte(doc), &s); err != nil || !playable(doc) {
				t.Logf("skipped %q: %v", s.Name, err)
				continue
			}
			t.Run(s.Name, func(t *testing.T) { s.play(t) })
		}
	}
}
