package plan

import (
	"strings"
	"testing"
)

// TestClauses splits requirements at && and writes each condition so that it reads back as the same one.
func TestClauses(t *testing.T) {
	for text, want := range map[string]string{
		"order(-ncpus)": "",
		"select(A100)":  "A100",
		"select(gpus>0&&model=='A100')order(-gpus)":   "gpus > 0 | model == 'A100'",
		"select((a && b) && (c || d))":                "a | b | c || d",
		"select(!(a && b) && !c)":                     "!(a && b) | !c",
		"select(a && b || c)":                         "a && b || c",
		"select(1 - (2 - x) < 3 && (x + 1) * 2 >= 4)": "1 - (2 - x) < 3 | (x + 1) * 2 >= 4",
		"select(x - 2 - 1 == -(x / 2))":               "x - 2 - 1 == -(x / 2)",
	} {
		q, err := ParseRequirement(text)
		if err != nil {
			t.Fatal(err)
		}
		var parts []string
		for _, c := range q.Clauses() {
			parts = append(parts, c.Text)
			again, err := ParseRequirement("select(" + c.Text + ")")
			if err != nil || again.written(again.root, 0) != c.Text {
				t.Errorf("%s: the clause %s does not read back: %v", text, c.Text, err)
			}
		}
		if got := strings.Join(parts, " | "); got != want {
			t.Errorf("%s: %s, expected %s", text, got, want)
		}
	}
}
