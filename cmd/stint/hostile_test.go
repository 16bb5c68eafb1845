package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// hostileFiles are the importers with a generator of their files each: well-formed files of the other system whose
// names and values are as odd as the system allows, and in one of eight files odder than that.
var hostileFiles = []struct {
	kind string
	make func(g *hostile) []string // writes files and returns the arguments of import behind the kind
}{
	{"yarn", hostileCapacity}, {"yarn", hostileFair}, {"kueue", hostileKueue}, {"yunikorn", hostileYuniKorn},
	{"volcano", hostileVolcano}, {"kai", hostileKAI}, {"slurm", hostileSlurm}, {"swf", hostileSWF},
	{"ego", hostileMD}, {"ego", hostileReporting}, {"openb", hostileOpenB},
}

// hostileFailures is after how many failures the test ends.
const hostileFailures = 5

// Of hostileMany files or more, one in hostileRuns goes through the commands that an import prints; the others are
// checked and run by the import itself, which takes a hundredth of the time.
const (
	hostileMany = 1000
	hostileRuns = 100
)

// TestHostileFiles imports generated files of every importer with their hostile names and values. An import either
// refuses its files and says of which file it speaks, or what it writes passes the commands that it prints: check, then
// run or simulate; every eighth log is verified. STINT_SOAK sets how many files, STINT_SEED the first seed; each file
// has a seed of its own, which a failure prints.
func TestHostileFiles(t *testing.T) {
	files, first := 110, uint64(time.Now().UnixNano())
	if text := os.Getenv("STINT_SOAK"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("STINT_SOAK %q: %v", text, err)
		}
		files = n
	}
	if text := os.Getenv("STINT_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("STINT_SEED %q: %v", text, err)
		}
		first = n
	}
	t.Logf("%d files, the first of STINT_SEED=%d", files, first)
	dir, failures, commands := t.TempDir(), 0, 0
	tried, passed := make([]int, len(hostileFiles)), make([]int, len(hostileFiles))
	for i := range files {
		seed := first + uint64(i)
		at := int(seed % uint64(len(hostileFiles)))
		g := newHostile(seed, filepath.Join(dir, strconv.Itoa(i)))
		if err := os.Mkdir(g.dir, 0o777); err != nil {
			t.Fatal(err)
		}
		tried[at]++
		runs := files < hostileMany || i/len(hostileFiles)%hostileRuns == 0
		if runs {
			commands++
		}
		if g.try(t, hostileFiles[at].kind, hostileFiles[at].make(g), runs) {
			passed[at]++
		}
		if g.failed {
			t.Errorf("file %d: STINT_SEED=%d STINT_SOAK=1 repeats it", i, seed)
			if failures++; failures == hostileFailures {
				t.FailNow()
			}
		}
		if err := os.RemoveAll(g.dir); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("of these %d went through the commands that the import prints", commands)
	for i, of := range hostileFiles {
		t.Logf("%s (%d): %d of %d files were imported, checked and run, the others refused", of.kind, i, passed[i],
			tried[i])
		if tried[i] >= 20 && passed[i]*2 < tried[i] {
			t.Errorf("%s (%d): only %d of %d files got past the importer: the generator tests too little", of.kind, i,
				passed[i], tried[i])
		}
	}
}

// hostile generates the files of one case.
type hostile struct {
	*rand.Rand
	dir    string
	wild   bool // names and values that systems refuse are among them
	failed bool
	files  map[string]string
	names  map[string]bool // that were given, so that most files do not fail for a name that is there twice
}

func newHostile(seed uint64, dir string) *hostile {
	g := &hostile{Rand: rand.New(rand.NewPCG(seed, 56)), dir: dir, files: map[string]string{},
		names: map[string]bool{}}
	g.wild = g.IntN(8) == 0
	return g
}

// file writes a file of the case and returns its path.
func (g *hostile) file(name, text string) string {
	path := filepath.Join(g.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		panic(err)
	}
	g.files[name] = text
	return path
}

// fail is Errorf for the case.
func (g *hostile) fail(t *testing.T, format string, args ...any) {
	t.Helper()
	g.failed = true
	t.Errorf(format, args...)
}

// try imports the files and with runs also runs the commands that the import prints; it returns false where the files
// were refused.
func (g *hostile) try(t *testing.T, kind string, args []string, runs bool) bool {
	t.Helper()
	formats := []string{"csv", "ndjson", "json", "parquet"}
	out := filepath.Join(g.dir, "out")
	line := slices.Concat([]string{"import", kind}, args, []string{"--out", out, "--format",
		formats[g.IntN(len(formats))]})
	if kind != "openb" { // which prints its next command as text only
		line = append(line, "--output", "json")
	}
	told, problems, code := g.command(t, line)
	if code != exitFine {
		g.refused(t, line, problems)
		return false
	}
	var report struct{ Next []string }
	if _, next, ok := strings.Cut(told, "\nnext: "); ok && kind == "openb" {
		report.Next = []string{strings.TrimSpace(next)}
	} else if err := json.Unmarshal([]byte(told), &report); err != nil {
		g.fail(t, "%s: %v\n%s", strings.Join(line, " "), err, told)
		return true
	}
	if !runs {
		return true
	}
	for _, next := range report.Next {
		_, problems, code = g.command(t, strings.Fields(next)[1:])
		if code != exitFine {
			g.fail(t, "%s: exit code %d\n%s\n%s", next, code, problems, g.told())
		}
	}
	log := filepath.Join(out, "log")
	if _, err := os.Stat(log); err == nil && g.IntN(8) == 0 {
		_, problems, code = g.command(t, []string{"verify", "--log", log})
		if code != exitFine {
			g.fail(t, "verify: exit code %d\n%s\n%s", code, problems, g.told())
		}
	}
	return true
}

// refused holds that each line of a refusal begins with a file of the case, and none blames the importer or names the
// policy that nobody has.
func (g *hostile) refused(t *testing.T, line []string, problems string) {
	t.Helper()
	first, _, _ := strings.Cut(problems, "\n")
	if os.Getenv("STINT_SOAK") == "1" {
		t.Logf("refused: %s", problems)
	}
	names := slices.ContainsFunc(slices.Collect(maps.Keys(g.files)), func(name string) bool {
		return strings.Contains(first, name) ||
			strings.HasPrefix(first, "stint: "+strings.TrimSuffix(name, ".csv"))
	})
	switch {
	case strings.Contains(problems, "please report"), strings.Contains(problems, "BUG"):
		g.fail(t, "%s: the importer is to blame:\n%s\n%s", strings.Join(line, " "), problems, g.told())
	case strings.Contains(problems, "plan.yaml:"):
		g.fail(t, "%s: an error names a policy that nobody has:\n%s\n%s", strings.Join(line, " "), problems, g.told())
	case !names && !strings.Contains(first, "the files "):
		g.fail(t, "%s: the first error names no file:\n%s\n%s", strings.Join(line, " "), problems, g.told())
	}
}

// command runs a command line in this process; a panic is a failure of the test with the files.
func (g *hostile) command(t *testing.T, line []string) (out, problems string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	defer func() {
		if p := recover(); p != nil {
			g.fail(t, "stint %s: panic: %v\n%s", strings.Join(line, " "), p, g.told())
			code = exitFine
		}
	}()
	code = execute(line, &stdout, &stderr)
	return stdout.String(), stderr.String(), code
}

// told is the files of the case, for a failure.
func (g *hostile) told() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(g.files)) {
		fmt.Fprintf(&b, "-- %s --\n%s\n", name, g.files[name])
	}
	plan, err := os.ReadFile(filepath.Join(g.dir, "out", "plan.yaml"))
	if err == nil {
		fmt.Fprintf(&b, "-- out/plan.yaml --\n%s\n", plan)
	}
	return b.String()
}
