package oracle_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// TestSwitched plays the scenarios whose figures docs/spec/md.md changes against the reference itself.
func TestSwitched(t *testing.T) {
	files, err := filepath.Glob("../../testdata/rounds/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	played := 0
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range strings.Split(string(text), "\n---\n") {
			var s example
			if err := yaml.Unmarshal([]byte(doc), &s); err != nil || !playable(doc) {
				t.Logf("the reference cannot play %q: %v", s.Name, err)
				continue
			}
			played++
			s.Mended = true
			t.Run(s.Name, func(t *testing.T) { s.play(t) })
		}
	}
	if played < 10 {
		t.Errorf("%d scenarios played, want at least 10", played)
	}
}
