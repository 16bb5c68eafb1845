package plan

import "testing"

// TestNearest holds which word is suggested for a misspelt one, and that words that are merely short are not.
func TestNearest(t *testing.T) {
	list := []string{"dimensions", "consumers", "own", "plan", "check"}
	for word, want := range map[string]string{
		"dimensons": "dimensions", "dimnesions": "dimensions", "consumer": "consumers", "pln": "plan", "chekc": "check",
		"on": "", "hosts": "", "": "", "dimensionssss": "", "xyz": "",
	} {
		if got := Nearest(word, list); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}
