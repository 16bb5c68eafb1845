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
		if _, err := replaced([]byte(c.page), c.name, []byte(c.text)); err == nil || !strings.Contains(err.Error(),
			c.want) {
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
	for _, name := range []string{"curves", "kueue baseline", "kueue large-scale", "philly 1 in 4", "philly gangs",
		"philly gangs 1 in 4", "slurm", "swf", "fgd", "peers", "bound"} {
		if _, err := replaced(text, name, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestResultsCommands: each section tells a command line, and what it runs is there.
func TestResultsCommands(t *testing.T) {
	text, err := os.ReadFile("../../docs/results.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := strings.Split(string(text), "<!-- end of ")
	for _, section := range sections[:len(sections)-1] {
		_, line, told := strings.Cut(section, "```sh\n")
		if !told {
			t.Errorf("no command line in: …%s", section[max(0, len(section)-200):])
			continue
		}
		words := strings.Fields(strings.SplitN(line, "\n", 2)[0])
		dir := "../.."
		if words[0] == "cd" { // DIR && go run .
			dir, words = filepath.Join(dir, words[1]), words[3:]
		}
		switch strings.Join(words[:2], " ") {
		case "stint bench":
			dir = filepath.Join(dir, "cmd/stint")
		case "go run":
			dir = filepath.Join(dir, words[2])
		default:
			t.Errorf("%s: neither stint bench nor go run", line)
		}
		if _, err := os.Stat(filepath.Join(dir, "main.go")); err != nil {
			t.Errorf("%s: %v", words, err)
		}
	}
}

func TestCommand(t *testing.T) {
	for _, args := range [][]string{{"-page", "x.md", "-n", "3", "page"}, {"-n", "3", "--page=x.md", "page"},
		{"-n", "3", "page", "-page"}} {
		if got := Command("go run .", args); got != "go run . -n 3 page" {
			t.Errorf("%v: %s", args, got)
		}
	}
}

// TestPrint holds a section's lines within 80 columns on a terminal, and 120 on the page.
func TestPrint(t *testing.T) {
	s := Section{Title: "Title", About: strings.Repeat("word ", 60), After: strings.Repeat("more ", 60),
		Command: "go run .", Machine: "here"}
	s.Tables = []Table{{Head: []string{"a", "b"}}}
	s.Tables[0].Add("one", "1,000")
	var out strings.Builder
	if err := s.Print(&out); err != nil {
		t.Fatal(err)
	}
	for text, most := range map[string]int{out.String(): 80, string(s.Markdown()): 120} {
		if !strings.Contains(text, "one") || !strings.Contains(text, "1,000") || !strings.Contains(text, "Title") {
			t.Errorf("something is missing in\n%s", text)
		}
		for line := range strings.Lines(text) {
			if line = strings.TrimSuffix(line, "\n"); len([]rune(line)) > most || strings.HasSuffix(line, " ") {
				t.Errorf("%q: more than %d columns, or a blank at its end", line, most)
			}
		}
	}
}
