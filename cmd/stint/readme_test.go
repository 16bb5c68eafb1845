package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// block is a fenced block of a page: commands, or what they print.
type block struct {
	lang        string
	first, last int // its lines, without the fences
}

// readmeBlocks finds the fenced blocks of a text.
func readmeBlocks(lines []string) (list []block) {
	open := -1
	for i, line := range lines {
		switch {
		case !strings.HasPrefix(line, "```"):
		case open < 0:
			open = i
		default:
			list = append(list, block{strings.TrimPrefix(lines[open], "```"), open + 1, i})
			open = -1
		}
	}
	return list
}

// unsteady is what no two runs of a command print alike, each with what is compared in its stead.
var unsteady = []struct{ is, as string }{
	{`in [0-9.]+(µs|ms|s):`, "in TIME:"},
	{`, [0-9,]+ a second`, ", RATE a second"},
	{`"now":"[^"]*"`, `"now":"NOW"`},
	{`("decisions_digest":"[0-9a-f]{4})[0-9a-f]+"`, `$1…"`},
	{`\([0-9.]+(µs|ms|s)\)`, "(TIME)"},
}

func steady(line string) string {
	for _, u := range unsteady {
		line = regexp.MustCompile(u.is).ReplaceAllString(line, u.as)
	}
	return line
}

// shows tells whether a page's line shows one that a command printed: a … within it stands for any text.
func shows(line, printed string) bool {
	parts := strings.Split(steady(line), "…")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	return regexp.MustCompile("^" + strings.Join(parts, ".*") + "$").MatchString(steady(printed))
}

// label is what of a line stays when figures change.
func label(line string) string {
	return regexp.MustCompile(`[-0-9.,%█▏▎▍▌▋▊▉▊─\s]`).ReplaceAllString(steady(line), "")
}

// compared holds lines of a page against what was printed; a line … stands for any
// lines. It gives the lines as they should be.
func compared(shown, printed []string) (now []string, err error) {
	at, skip := 0, false
	for _, line := range shown {
		if line == "…" {
			now, skip = append(now, line), true
			continue
		}
		exact, alike := -1, -1
		for i := at; i < len(printed) && exact < 0; i++ {
			if shows(line, printed[i]) {
				exact = i
			} else if alike < 0 && label(line) == label(printed[i]) {
				alike = i
			}
			if !skip {
				break
			}
		}
		switch {
		case exact >= 0:
			now, at = append(now, line), exact+1
		case alike >= 0:
			now, at = append(now, printed[alike]), alike+1
			if err == nil {
				err = fmt.Errorf("the page has\n%s\nand it prints\n%s", line, printed[alike])
			}
		default:
			return nil, fmt.Errorf("the page has the line\n%s\nand nothing like it is printed; it prints\n%s", line,
				strings.Join(printed[min(at, len(printed)):], "\n"))
		}
		skip = false
	}
	if !skip && at < len(printed) {
		return nil, fmt.Errorf("the page leaves out, without a line …,\n%s", strings.Join(printed[at:], "\n"))
	}
	return now, err
}

// readmeRun runs a page's commands as somebody would who reads it, in a folder of its own.
type readmeRun struct {
	t    *testing.T
	dir  string
	port string
}

func newReadmeRun(t *testing.T) *readmeRun {
	r := &readmeRun{t: t, dir: t.TempDir()}
	self, err := os.Executable()
	if err == nil {
		err = os.Mkdir(filepath.Join(r.dir, "bin"), 0o777)
	}
	if err == nil {
		err = os.Symlink(self, filepath.Join(r.dir, "bin", "stint")) // under that name it is stint: TestMain
	}
	tree, _ := filepath.Abs("../..")
	if err == nil {
		err = os.Symlink(filepath.Join(tree, "testdata"), filepath.Join(r.dir, "testdata"))
	}
	l, listenErr := net.Listen("tcp", "127.0.0.1:0")
	if err != nil || listenErr != nil {
		t.Fatal(err, listenErr)
	}
	_, r.port, _ = net.SplitHostPort(l.Addr().String())
	l.Close()
	return r
}

// run runs commands in one shell and gives the lines that they print. What they leave running ends with it.
func (r *readmeRun) run(script string) []string {
	for _, swap := range [][2]string{
		{"make run     # ", r.recipe("run") + "\n: # "}, {"make test    # ", ": # "}, {"make build && ", ""},
		{"bin/stint serve --data", "bin/stint serve --listen 127.0.0.1:" + r.port + " --data"},
		{"localhost:7468", "127.0.0.1:" + r.port},
		{"stint serve --data data", "stint serve --listen 127.0.0.1:" + r.port + " --data data"},
		{"http://127.0.0.1:7468", "http://127.0.0.1:" + r.port},
		{"stint push --", "stint push --server http://127.0.0.1:" + r.port + " --"},
	} {
		script = strings.ReplaceAll(script, swap[0], swap[1])
	}
	c := exec.Command("sh", "-c", script)
	c.Dir = r.dir
	c.Env = append(os.Environ(), "PATH="+filepath.Join(r.dir, "bin")+":"+os.Getenv("PATH"), "COLUMNS=80", "LINES=24")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	c.WaitDelay = time.Second
	timer := time.AfterFunc(2*time.Minute, func() { syscall.Kill(-c.Process.Pid, syscall.SIGKILL) })
	defer timer.Stop()
	c.Start()
	state, err := c.Process.Wait()
	if strings.Contains(script, "POST") { // the last call of the service
		syscall.Kill(-c.Process.Pid, syscall.SIGTERM)
	} else if strings.Contains(script, "stint serve") {
		r.t.Cleanup(func() { syscall.Kill(-c.Process.Pid, syscall.SIGKILL) })
	}
	c.Wait()
	if err != nil || !state.Success() {
		r.t.Fatalf("%s\n%v %v\n%s%s", script, state, err, stdout.String(), stderr.String())
	}
	return strings.Split(strings.TrimRight(stdout.String(), "\n"), "\n")
}

// recipe is what a target of the Makefile runs, its variables filled in.
func (r *readmeRun) recipe(target string) string {
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		r.t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(text), "\n"+target+":")
	if !ok {
		r.t.Fatalf("the Makefile has no target %s", target)
	}
	recipe, _, _ := strings.Cut(after, "\n\n")
	_, recipe, _ = strings.Cut(recipe, "\n")
	return strings.NewReplacer("\t", "", "$(DEMO)", "out/demo").Replace(recipe)
}

// TestReadme holds README true, TestTutorial the tutorial and TestHowto the recipes. `make readme` sets
// STINT_README=write: then they get what their commands print.
func TestReadme(t *testing.T) { holdPage(t, "../../README.md", 7) }

func TestTutorial(t *testing.T) { holdPage(t, "../../docs/tutorial.md", 8) }

func TestHowto(t *testing.T) { holdPage(t, "../../docs/howto.md", 4) }

// holdPage runs all commands of a page in order and holds what it shows of their output, of so many at least, against
// it.
func holdPage(t *testing.T, name string, least int) {
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	trace := filepath.Join("..", "..", "..", "shared", "data", "openb")
	if dir := os.Getenv("STINT_OPENB"); dir != "" {
		trace = dir
	}
	r := newReadmeRun(t)
	var printed []string
	shown := 0
	for _, b := range readmeBlocks(lines) {
		body := strings.Join(lines[b.first:b.last], "\n")
		switch {
		case b.lang == "sh" && strings.Contains(body, "openb"):
			if _, err := os.Stat(trace); err != nil {
				t.Logf("the openb trace is not in %s; STINT_OPENB may name another folder", trace)
				printed = nil
				continue
			}
			abs, _ := filepath.Abs(trace)
			body = strings.ReplaceAll(body, " openb_", " "+abs+"/openb_")
			fallthrough
		case b.lang == "sh":
			printed = r.run(body)
		case b.lang == "" && printed != nil:
			now, err := compared(lines[b.first:b.last], printed)
			if now == nil || err != nil && os.Getenv("STINT_README") != "write" {
				t.Errorf("%s:%d: %v", filepath.Base(name), b.first, err)
				continue
			}
			copy(lines[b.first:], now)
			shown++
		}
	}
	if shown < least && !t.Failed() {
		t.Errorf("%s shows the output of %d commands", filepath.Base(name), shown)
	}
	if os.Getenv("STINT_README") == "write" && !t.Failed() {
		if err := os.WriteFile(name, []byte(strings.Join(lines, "\n")), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// TestStatic holds the build to making a file that needs no library of the machine: cgo is off.
func TestStatic(t *testing.T) {
	r := &readmeRun{t: t}
	if recipe := r.recipe("build"); !strings.HasPrefix(recipe, "CGO_ENABLED=0 ") {
		t.Errorf("make build: %s", recipe)
	}
}
