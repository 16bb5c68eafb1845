package page

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const two = "# Results\n\n<!-- one -->\nold\n<!-- end of one -->\nbetween\n<!-- two -->\nkept\n<!-- end of two -->\n"

func TestPut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(path, []byte(two), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // again changes nothing
		if err := Put(path, "one", []byte("\nnew\nlines\n\n")); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.Replace(two, "old", "new\nlines", 1); string(got) != want {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
	}
}

func TestPutRefused(t *testing.T) {
	for _, c := range []struct{ page, name, text, want string }{
		{two, "three", "", `no line "<!-- three -->"`},
		{"<!-- one -->\n", "one", "", "no line"},
		{two + two, "one", "", "one of them twice"},
		{two, "one", "<!-- two -->\n", "within each other"},
	} {
		if _, err := replaced([]byte(c.page), c.name, []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q in %q: %v, want %q", c.name, c.page, err, c.want)
		}
	}
	if err := Put(filepath.Join(t.TempDir(), "none.md"), "one", nil); !os.IsNotExist(err) {
		t.Errorf("no page: %v", err)
	}
}

// TestResults: docs/results.md has the sections that the commands write.
func TestResults(t *testing.T) {
	text, err := os.ReadFile("../../docs/results.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"curves", "kueue baseline", "kueue large-scale", "philly 1 in 4", "slurm", "swf", "fgd", "peers", "bound"} {
		if _, err := replaced(text, name, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
