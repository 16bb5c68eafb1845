package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/scenario"
)

func TestMain(m *testing.M) {
	if data := os.Getenv(crashData); data != "" {
		crashChild(data)
	}
	if os.Getenv(mainArgs) != "" {
		hookServe = holdHooks
		mainChild()
	}
	testscript.Main(m, map[string]func(){"stint": main})
}

// TestScript plays the scripts of testdata/script, each in a folder of its own.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"refused": refused},
	})
}

// refused CASES [ARGS…] is a script's command: stint must refuse each case of a file with exit code 2, say why
// on stderr and make no `out`. A case is
//
//	== title
//	what is given
//	----
//	lines that stderr consists of, or what they begin with; warnings are left out
//
// With ARGS, what is given becomes the file that the title names up to its first colon, and FILE among the ARGS
// stands for that name; a byte may be written \xff. Without, it is the arguments themselves.
func refused(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: refused cases [args...]")
	}
	cases := strings.Split("\n"+ts.ReadFile(args[0]), "\n== ")[1:]
	if len(cases) == 0 {
		ts.Fatalf("%s: no case in it", args[0])
	}
	for _, c := range cases {
		title, c, _ := strings.Cut(c, "\n")
		given, want, ok := strings.Cut("\n"+c, "\n----\n")
		if !ok {
			ts.Fatalf("%s: no ---- in it", title)
		}
		given = strings.TrimPrefix(given, "\n")
		line := strings.Fields(given)
		if len(args) > 1 {
			name, _, _ := strings.Cut(title, ":")
			ts.Check(os.WriteFile(ts.MkAbs(name), unescape(given), 0o666))
			line = slices.Clone(args[1:])
			for i := range line {
				line[i] = strings.ReplaceAll(line[i], "FILE", name)
			}
		}
		var exit *exec.ExitError
		if err := ts.Exec("stint", line...); !errors.As(err, &exit) || exit.ExitCode() != exitUsage {
			ts.Fatalf("%s: %v, expected exit code %d", title, err, exitUsage)
		}
		got := regexp.MustCompile(`(?m)^stint: warning: .*\n`).ReplaceAllString(ts.ReadFile("stderr"), "")
		if !begins(strings.Split(got, "\n"), strings.Split(strings.TrimRight(want, "\n")+"\n", "\n")) {
			ts.Fatalf("%s: got\n%s\nexpected\n%s", title, got, want)
		}
		if _, err := os.Lstat(ts.MkAbs("out")); err == nil {
			ts.Fatalf("%s: out was made", title)
		}
	}
}

// begins tells whether there are as many lines as wanted, and each begins with what is wanted.
func begins(lines, want []string) bool {
	return slices.EqualFunc(lines, want, strings.HasPrefix)
}

// unescape ends a text with a newline, unless it is empty, and replaces \xff by that byte.
func unescape(text string) []byte {
	if text != "" {
		text += "\n"
	}
	return regexp.MustCompile(`\\x[0-9a-f]{2}`).ReplaceAllFunc([]byte(text), func(hex []byte) []byte {
		n, err := strconv.ParseUint(string(hex[2:]), 16, 8)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		return []byte{byte(n)}
	})
}

// TestDocs checks the policy files and scenarios that the documentation shows.
func TestDocs(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```|cat > plan.yaml <<'END'\n(.*?)END\n")
	for name, want := range map[string]int{"README.md": 1, "docs/policy.md": 1, "docs/scenarios.md": 1,
		"docs/howto.md": 1} {
		text, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		found := blocks.FindAllSubmatch(text, -1)
		if len(found) != want {
			t.Errorf("%s: %d examples, expected %d", name, len(found), want)
		}
		for _, m := range found {
			if yaml := append(m[1], m[2]...); bytes.HasPrefix(yaml, []byte("stint: 1\n")) {
				if _, err := plan.Parse(name, yaml); err != nil {
					t.Error(err)
				}
			} else if scenarios, err := scenario.Parse(name, yaml); err != nil {
				t.Error(err)
			} else if r, err := scenarios[0].Play(); err != nil || !r.OK() {
				t.Errorf("%s: %v %+v", name, err, r)
			}
		}
	}
}

// TestDocsLinks holds that what the pages link to is there: files, and headings of pages.
func TestDocsLinks(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal(pages, err)
	}
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, page := range append(pages, "../../README.md", "../../CONTRIBUTING.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllSubmatch(text, -1) {
			to, heading, _ := strings.Cut(string(m[1]), "#")
			if strings.Contains(to, "://") {
				continue
			}
			at := page
			if to != "" {
				at = filepath.Join(filepath.Dir(page), to)
			}
			other, err := os.ReadFile(at)
			if dir, statErr := os.Stat(at); statErr == nil && dir.IsDir() {
				continue
			}
			if err != nil {
				t.Errorf("%s: %s is not there", page, m[1])
			} else if heading != "" && !slices.Contains(anchors(other), heading) {
				t.Errorf("%s: %s has no heading %s", page, at, heading)
			}
		}
	}
}

// anchors are the names under which the headings of a page are linked to.
func anchors(page []byte) (all []string) {
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllSubmatch(page, -1) {
		name := regexp.MustCompile("[^a-z0-9 _-]").ReplaceAllString(strings.ToLower(string(m[1])), "")
		all = append(all, strings.ReplaceAll(name, " ", "-"))
	}
	return all
}

// TestWeek plays a week of a site that divides its slots by day and by night.
func TestWeek(t *testing.T) {
	if testing.Short() {
		t.Skip("some 2,000 cycles of 200 consumers")
	}
	scenarios, err := loadScenarios([]string{"../../testdata/week/week.yaml"}, "")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := playScenarios(&out, scenarios, false); err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
}

// TestGrouped checks the commas of a number.
func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567",
		1 << 53: "9,007,199,254,740,992"} {
		if got := grouped(n); got != want {
			t.Errorf("%d: %s, expected %s", n, got, want)
		}
	}
}

// TestBar checks that a bar has its width, ends in eighths, and marks the second fraction.
func TestBar(t *testing.T) {
	s := &summary{}
	for _, c := range []struct {
		fraction, mark float64
		want           string
	}{
		{0, -1, "          "},
		{0.5, -1, "█████     "},
		{0.55, -1, "█████▌    "},
		{2, -1, "██████████"},
		{-1, -1, "          "},
		{0.5, 0.8, "█████   ▏ "},
		{0.5, 0.3, "█████     "},
		{0.1, 1, "█        ▏"},
	} {
		if got := s.bar(c.fraction, c.mark, 10); got != c.want {
			t.Errorf("%v, %v: %q, expected %q", c.fraction, c.mark, got, c.want)
		}
	}
}

// TestChoose checks that of many consumers the upper levels are shown, then the shortest of units.
func TestChoose(t *testing.T) {
	rows := []consumerRow{{path: "/A", depth: 1}}
	for i := range 60 {
		rows = append(rows, consumerRow{path: "/A/x", depth: 2, wanted: 1, short: int64(i % 2)})
	}
	rows = append(rows, consumerRow{path: "/B", depth: 1})
	shown := choose(rows, consumersShown)
	short := 0
	for _, r := range shown {
		short += int(r.short)
	}
	if len(shown) != consumersShown || shown[0].path != "/A" || shown[len(shown)-1].path != "/B" || short != 30 {
		t.Errorf("%d rows, first %s, last %s, %d short", len(shown), shown[0].path, shown[len(shown)-1].path, short)
	}
}
