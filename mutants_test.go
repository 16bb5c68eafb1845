package stint_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/goccy/go-yaml"
)

// mutants are wrong engines: a table of patches of one package, each of which breaks a rule. CONTRIBUTING says how one
// is added.
type mutants struct {
	Package string `yaml:"package"`
	Test    string `yaml:"test"` // notices those that name no other: a package, a blank, and what `go test -run` takes
	Mutants []*mutant
}

// mutant is a wrong engine.
type mutant struct {
	Wrong string `yaml:"wrong"` // what it does
	Rule  string `yaml:"rule"`  // that says otherwise
	Test  string `yaml:"test"`
	Patch string `yaml:"patch"`

	number int                       // among all mutants, from 1
	binary func(t *testing.T) string // the test with the mutant in it
}

// mutantCases is how many random cases of a kind have to notice a mutant, where these are its test; they are the same
// every time.
var mutantCases = []string{"STINT_SOAK=2000", "STINT_SEED=1"}

// TestMutantsApply holds every patch to the code of today: each of its texts stands there once, and what comes of it
// compiles. The rule that it breaks and the test that notices exist.
func TestMutantsApply(t *testing.T) {
	rules, err := os.ReadFile("docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	decisions, err := os.ReadFile("docs/decisions.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, table := range loadMutants(t) {
		t.Logf("%s: %d", name, len(table.Mutants))
		clean, err := load(table.Package)
		if err != nil {
			t.Fatalf("%s: %v", table.Package, err)
		}
		seen := map[string]bool{}
		for _, m := range table.Mutants {
			if seen[m.Wrong] || m.Wrong == "" {
				t.Errorf("%s: %q: twice, or no name", name, m.Wrong)
			}
			seen[m.Wrong] = true
			if !strings.Contains(string(rules), "| "+m.Rule+" |") &&
				!strings.Contains(string(decisions), "**"+m.Rule+" ") {
				t.Errorf("%s: %q: docs has no rule %q, and no decision", name, m.Wrong, m.Rule)
			}
			if err := m.hasTest(); err != nil {
				t.Errorf("%s: %q: %v", name, m.Wrong, err)
			}
			files, err := m.apply(table.Package)
			if err == nil {
				err = clean.check(files)
			}
			if err != nil {
				t.Errorf("%s: %q: %v", name, m.Wrong, err)
			}
		}
	}
}

// source is a package as it is, whose files can be checked with some of them otherwise.
type source struct {
	dir   string
	fset  *token.FileSet
	files map[string]*ast.File
	known types.Importer
}

// load reads a package, and has what it imports built.
func load(dir string) (*source, error) {
	p := &source{dir: dir, fset: token.NewFileSet(), files: map[string]*ast.File{}}
	out, err := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}", "./"+dir).Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	built := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		built[name] = file
	}
	p.known = importer.ForCompiler(p.fset, "gc", func(name string) (io.ReadCloser, error) {
		return os.Open(built[name])
	})
	files, err := filepath.Glob(path.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		if built, err := build.Default.MatchFile(dir, path.Base(file)); err != nil || !built ||
			strings.HasSuffix(file, "_test.go") {
			continue
		}
		if p.files[file], err = parser.ParseFile(p.fset, file, nil, parser.SkipObjectResolution); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// check tells whether the package compiles with other files in place of some.
func (p *source) check(other map[string]string) error {
	var all []*ast.File
	for file, tree := range p.files {
		if text, ok := other[file]; ok {
			var err error
			if tree, err = parser.ParseFile(p.fset, file, text, parser.SkipObjectResolution); err != nil {
				return err
			}
		}
		all = append(all, tree)
	}
	c := types.Config{Importer: p.known}
	_, err := c.Check(p.dir, p.fset, all, nil)
	return err
}

// TestMutants runs for each mutant the test that has to notice, built with the patches laid over the code: it must
// fail. A test that fails without a patch notices nothing, so each is run without one, too. A part is run with -run
// 'TestMutants/slot/recall'.
func TestMutants(t *testing.T) {
	if os.Getenv("STINT_MUTANTS") == "" {
		t.Skip("STINT_MUTANTS is not set: `make mutants` builds and tests every wrong engine")
	}
	var ran atomic.Int32
	t.Cleanup(func() {
		if ran.Load() == 0 {
			t.Error("no mutant has such a name")
		}
	})
	tables := loadMutants(t)
	binaries := testBinaries(t, tables)
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		table := tables[name]
		t.Run(name, func(t *testing.T) {
			tests := map[string]bool{}
			for _, m := range table.Mutants {
				tests[m.Test] = true
				t.Run(m.Wrong, func(t *testing.T) {
					ran.Add(1)
					t.Parallel()
					if failed, why := runTest(t, m.Test, m.binary(t), m.number); !failed {
						t.Errorf("%s: not noticed by %s", m.Rule, m.Test)
					} else {
						t.Logf("%s: %s", m.Rule, why)
					}
				})
			}
			for test := range tests {
				t.Run("none, "+test, func(t *testing.T) {
					ran.Add(1)
					t.Parallel()
					if failed, why := runTest(t, test, binaries[testDir(test)](t), 0); failed {
						t.Errorf("%s fails without a patch: %s", test, why)
					}
				})
			}
		})
	}
}

// testBinaries numbers all mutants and gives each the binary of its test. The result is the binary with many mutants by
// the folder of the tests. A binary is built when the first test asks for it.
func testBinaries(t *testing.T, tables map[string]mutants) map[string]func(t *testing.T) string {
	tmp, number := t.TempDir(), 0
	many, binaries := map[string]*switches{}, map[string]func(t *testing.T) string{}
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		for i := range tables[name].Mutants {
			m := tables[name].Mutants[i]
			dir := testDir(m.Test)
			if many[dir] == nil {
				s := &switches{map[string]*switchedFile{}, map[string]string{}}
				many[dir] = s
				binaries[dir] = built(tmp, dir, func() map[string]string { return s.files() })
			}
			files, err := m.apply(tables[name].Package)
			if err != nil {
				t.Fatal(err)
			}
			number++
			together, err := many[dir].add(number, files)
			if err != nil {
				t.Fatal(err)
			}
			if m.number, m.binary = number, binaries[dir]; !together {
				t.Logf("%s: %s: a binary of its own", name, m.Wrong)
				m.binary = built(tmp, dir, func() map[string]string { return files })
			}
		}
	}
	return binaries
}

// testDir is the folder of a test.
func testDir(test string) string {
	dir, _, _ := strings.Cut(test, " ")
	return dir
}

// built gives a function that builds the tests of a folder once, with some files of the module otherwise, and then
// gives the binary. What cannot be built ends the test that asks.
func built(tmp, dir string, files func() map[string]string) func(t *testing.T) string {
	once := sync.OnceValues(func() (string, error) { return buildTests(tmp, dir, files()) })
	return func(t *testing.T) string {
		t.Helper()
		binary, err := once()
		if err != nil {
			t.Fatal(err)
		}
		return binary
	}
}

// buildTests builds the tests of a folder.
func buildTests(tmp, dir string, files map[string]string) (string, error) {
	tmp, err := os.MkdirTemp(tmp, "tests")
	if err != nil {
		return "", err
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		other := filepath.Join(tmp, fmt.Sprintf("%d.go", len(overlay.Replace)))
		overlay.Replace[file] = other
		if err := os.WriteFile(other, []byte(files[file]), 0o644); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(overlay)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(tmp, "overlay.json"), list, 0o644); err != nil {
		return "", err
	}
	binary := filepath.Join(tmp, "test")
	build := exec.Command("go", "test", "-c", "-ldflags=-s -w", "-overlay", filepath.Join(tmp, "overlay.json"),
		"-o", binary, "./"+dir)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot be built: %w\n%s", err, out)
	}
	return binary, nil
}

// loadMutants reads all tables, by the name of their file. Mutants that name no test have their table's.
func loadMutants(t *testing.T) map[string]mutants {
	t.Helper()
	files, err := filepath.Glob("testdata/mutants/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("mutants: %v, %v", files, err)
	}
	tables := map[string]mutants{}
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
			m.Test = cmp.Or(m.Test, table.Test)
		}
		tables[strings.TrimSuffix(filepath.Base(file), ".yaml")] = table
	}
	return tables
}

var indents = regexp.MustCompile(`(?m)^\t+`)

// apply gives the files of a package that a mutant has otherwise, by path, without the indents of their lines. A patch
// is the name of a file, then its lines as a diff has them: "- " those that go, "+ " those that come, "  " others;
// together they must stand there once. A name of a file again begins another place.
func (m *mutant) apply(dir string) (map[string]string, error) {
	files := map[string]string{}
	var file string
	var before, after strings.Builder
	settle := func() error {
		if file == "" {
			return nil
		}
		if _, ok := files[file]; !ok {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			files[file] = indents.ReplaceAllString(string(text), "")
		}
		if n := strings.Count(files[file], "\n"+before.String()); n != 1 || before.Len() == 0 {
			return fmt.Errorf("%s has this %d times, not once:\n%s", file, n, before.String())
		}
		files[file] = strings.Replace(files[file], "\n"+before.String(), "\n"+after.String(), 1)
		before.Reset()
		after.Reset()
		return nil
	}
	for line := range strings.Lines(m.Patch) {
		switch {
		case strings.HasPrefix(line, "- "):
			before.WriteString(line[2:])
		case strings.HasPrefix(line, "+ "):
			after.WriteString(line[2:])
		case strings.HasPrefix(line, "  "):
			before.WriteString(line[2:])
			after.WriteString(line[2:])
		case strings.HasSuffix(line, ".go\n"):
			if err := settle(); err != nil {
				return nil, err
			}
			file = path.Join(dir, strings.TrimSpace(line))
		default:
			return nil, fmt.Errorf("a patch cannot have the line %q", line)
		}
	}
	if err := settle(); err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, errors.New("an empty patch")
	}
	return files, nil
}

// hasTest tells what is wrong with the name of the test that notices.
func (m *mutant) hasTest() error {
	dir, run, _ := strings.Cut(m.Test, " ")
	name, _, _ := strings.Cut(run, "/")
	tests, err := testFiles(dir)
	if err == nil && !strings.Contains(tests, "\nfunc "+name+"(t *testing.T) {") {
		err = fmt.Errorf("there is no test %q", m.Test)
	}
	return err
}

// testFiles is the text of a package's tests.
func testFiles(dir string) (string, error) {
	files, err := filepath.Glob(path.Join(dir, "*_test.go"))
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		all.Write(text)
	}
	return all.String(), err
}

// runTest runs a test of a binary as one of its mutants, or with 0 as none, and tells whether it failed, and why. A
// test that does not begin, or end, says nothing, and ends the test that asks.
func runTest(t *testing.T, test, binary string, number int) (failed bool, why string) {
	t.Helper()
	dir, run, _ := strings.Cut(test, " ")
	args := []string{"-test.v", "-test.timeout=20m", "-test.run=^" + strings.ReplaceAll(run, "/", "$/^") + "$"}
	if tests, err := testFiles(dir); err != nil {
		t.Fatal(err)
	} else if strings.Contains(tests, `"pgregory.net/rapid"`) {
		args = append(args, "-rapid.shrinktime=0s")
	}
	cmd := exec.Command(binary, args...)
	cmd.Dir, cmd.Env = dir, slices.Concat(os.Environ(), mutantCases, []string{fmt.Sprintf("%s=%d", mutantVar, number)})
	out, err := cmd.CombinedOutput()
	if !strings.Contains(string(out), "=== RUN   "+run) {
		t.Fatalf("%s does not begin: %v\n%s", test, err, out)
	}
	if strings.Contains(string(out), "panic: test timed out") {
		t.Fatalf("%s does not end, which says nothing on a busy machine", test)
	}
	return err != nil, noticed(string(out))
}

// noticed is the line of a test's output that says why it failed.
func noticed(out string) string {
	for _, sign := range []string{"[rapid] failed", "[rapid] panic", "panic: ", "_test.go:"} {
		for line := range strings.Lines(out) {
			if strings.Contains(line, sign) {
				return fmt.Sprintf("%.160q", strings.TrimSpace(line))
			}
		}
	}
	return "it failed"
}
