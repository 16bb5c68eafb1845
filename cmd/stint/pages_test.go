package main

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stintd/stint/ingest/console/browser"
)

// block is a fenced block of a page: commands, what they print, or a file.
type block struct {
	lang        string
	first, last int    // its lines, without the fences
	section     int    // the line of the heading above it
	indent      string // in a list
	notes       []note // HTML comments before it
}

// note is an HTML comment of a page's source: its kind, and the text after the colon. CONTRIBUTING.md has the kinds.
type note struct{ kind, text string }

// noteKinds are the kinds of notes for one block, for the blocks up to the next heading, and for all of a page.
var noteKinds = []string{"setup", "run", "output", "console", "needs", "not run", "not run in this section",
	"not run on this page"}

// note gives the text of a block's last note of a kind.
func (b *block) note(kind string) (text string, ok bool) {
	for _, n := range b.notes {
		if n.kind == kind {
			text, ok = n.text, true
		}
	}
	return text, ok
}

// pageBlocks finds the fenced blocks of a text with their notes.
func pageBlocks(lines []string) (list []block) {
	var page, section, before []note
	heading := 0
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSpace(lines[i])
		switch {
		case strings.HasPrefix(line, "```"):
			b := block{lang: strings.TrimPrefix(line, "```"), first: i + 1, section: heading,
				indent: lines[i][:strings.Index(lines[i], "`")], notes: slices.Concat(page, section, before)}
			for i++; i < len(lines) && strings.TrimSpace(lines[i]) != "```"; i++ {
			}
			b.last = min(i, len(lines))
			list, before = append(list, b), nil
		case strings.HasPrefix(line, "<!-- "):
			comment := line
			for ; !strings.HasSuffix(comment, "-->") && i+1 < len(lines); i++ {
				comment += "\n" + lines[i+1]
			}
			n := noteOf(comment)
			switch n.kind {
			case "not run in this section":
				section = []note{n}
			case "not run on this page":
				page = []note{n}
			default:
				before = append(before, n)
			}
		case strings.HasPrefix(line, "#"):
			section, before, heading = nil, nil, i
		case line != "":
			before = nil
		}
	}
	return list
}

// noteOf reads a comment; the kind of one that is for people only is "".
func noteOf(comment string) (n note) {
	text := strings.TrimSuffix(strings.TrimPrefix(comment, "<!-- "), "-->")
	kind, text, ok := strings.Cut(text, ":")
	if !ok || !slices.Contains(noteKinds, kind) {
		return note{}
	}
	return note{kind, strings.TrimSpace(text)}
}

// unsteady is what no two runs of a command print alike, each with what is compared in its stead.
var unsteady = []struct{ is, as string }{
	{`in [0-9.]+(µs|ms|s):`, "in TIME:"},
	{`, [0-9,]+ a second`, ", RATE a second"},
	{`"now":"[^"]*"`, `"now":"NOW"`},
	{`("decisions_digest":"[0-9a-f]{4})[0-9a-f]+"`, `$1…"`},
	{`[(, ][0-9.]+(µs|ms|s)\)`, "(TIME)"},
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

// pageRun runs a page's commands as a reader would, in a folder of its own. Services that they start end with the test.
type pageRun struct {
	*testing.T
	dir, port string
	missing   string // the first thing that the page needs and the machine lacks, "" for none
	left      int    // the heading of a section of which a tool is missing; 0: none
	last      error  // errLeft or errNotRun of the block before
}

func newPageRun(t *testing.T) *pageRun {
	r := &pageRun{T: t, dir: t.TempDir()}
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

// pageTools are programs that pages use beside stint and those of every system. make test-pages installs what is
// missing.
var pageTools = regexp.MustCompile(`\b(curl|openssl|jq)\b`)

// openbNeed is the note of a block that reads the public GPU trace.
const openbNeed = "the openb trace"

// lacks is what a block needs and the machine lacks, with the make target that provides it; "" when nothing is missing.
func (r *pageRun) lacks(b *block, body string) string {
	setup, _ := b.note("setup")
	run, _ := b.note("run")
	commands := setup + "\n" + run
	if b.lang == "sh" {
		commands += "\n" + body
	}
	need, _ := b.note("needs")
	for _, tool := range pageTools.FindAllString(commands+"\n"+need, -1) {
		if _, err := exec.LookPath(tool); err != nil {
			return tool + " is not installed: make test-pages installs it"
		}
	}
	switch {
	case need == "" || pageTools.MatchString(need):
	case need != openbNeed:
		r.Fatalf("a note needs %q, which is neither %q nor a program", need, openbNeed)
	default:
		if _, err := os.Stat(openbFolder()); err != nil {
			return "the openb trace is not in " + openbFolder() + ": make test-shared SHARED=DIR names another folder"
		}
	}
	return ""
}

// openbFolder is where the public GPU trace lies, if anywhere.
func openbFolder() string {
	if dir := os.Getenv("STINT_OPENB"); dir != "" {
		return dir
	}
	dir, err := filepath.Abs("../../../shared/data/openb")
	if err != nil {
		panic(err)
	}
	return dir
}

// local puts the page's own port, and the folder of the trace, in the place of those that the page names.
func (r *pageRun) local(script string) string {
	return strings.NewReplacer(
		"make run     # ", r.recipe("run")+"\n: # ", "make test    # ", ": # ", "make build && ", "",
		"serve --data", "serve --listen 127.0.0.1:"+r.port+" --data", "localhost:7468", "localhost:"+r.port,
		"0.0.0.0:7468", "127.0.0.1:"+r.port, "/var/lib/stint", r.dir+"/service", "127.0.0.1:7468", "127.0.0.1:"+r.port,
		" openb_", " "+openbFolder()+"/openb_").Replace(script)
}

// run runs commands in one shell, which must succeed, and gives the lines that they print.
func (r *pageRun) run(script, stdin string) []string {
	r.Helper()
	stdout, err := os.Create(filepath.Join(r.TempDir(), "stdout"))
	if err != nil {
		r.Fatal(err)
	}
	defer stdout.Close()
	stderr, err := os.Create(stdout.Name() + ".err")
	if err != nil {
		r.Fatal(err)
	}
	defer stderr.Close()
	c := exec.Command("sh", "-e", "-c", r.local(script))
	c.Dir, c.Stdin, c.Stdout, c.Stderr = r.dir, strings.NewReader(r.local(stdin)), stdout, stderr
	c.Env = append(os.Environ(), "PATH="+filepath.Join(r.dir, "bin")+":"+os.Getenv("PATH"), "COLUMNS=80", "LINES=24",
		"STINT_SERVER=http://127.0.0.1:"+r.port)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		r.Fatal(err)
	}
	group := -c.Process.Pid
	r.Cleanup(func() { _ = syscall.Kill(group, syscall.SIGKILL) })
	late := time.AfterFunc(2*time.Minute, func() { _ = syscall.Kill(group, syscall.SIGKILL) })
	err = c.Wait()
	late.Stop()
	printed, readErr := os.ReadFile(stdout.Name())
	told, toldErr := os.ReadFile(stderr.Name())
	if err != nil || readErr != nil || toldErr != nil {
		r.Fatalf("%s\n%v\n%s%s", script, err, printed, told)
	}
	text := strings.TrimRight(strings.ReplaceAll(string(printed), ":"+r.port, ":7468"), "\n")
	if text == "" {
		return []string{}
	}
	return strings.Split(text, "\n")
}

// recipe is what a target of the Makefile runs, its variables filled in.
func (r *pageRun) recipe(target string) string {
	text, err := os.ReadFile("../../Makefile")
	if err != nil {
		r.Fatal(err)
	}
	_, after, ok := strings.Cut(string(text), "\n"+target+":")
	if !ok {
		r.Fatalf("the Makefile has no target %s", target)
	}
	recipe, _, _ := strings.Cut(after, "\n\n")
	_, recipe, _ = strings.Cut(recipe, "\n")
	return strings.NewReplacer("\t", "", "$(DEMO)", "out/demo").Replace(recipe)
}

// errNotRun is of a block that a note leaves out, errLeft of one for which something is missing.
var (
	errNotRun = errors.New("a note says why it does not run")
	errLeft   = errors.New("something is missing on this machine")
)

// block runs a block. It gives the block's lines as they should be, and what a sh block printed, which the block after
// it may show.
func (r *pageRun) block(b *block, body, before []string) (now, printed []string, err error) {
	if reason, ok := b.note("not run"); ok || b.leftOut() {
		if ok && reason == "" {
			return nil, nil, errors.New("the note gives no reason")
		}
		return body, nil, errNotRun
	}
	text := make([]string, len(body))
	for i := range body {
		text[i] = strings.TrimPrefix(body[i], b.indent)
	}
	if missing := r.lacks(b, strings.Join(text, "\n")); missing != "" {
		if r.missing = missing; !strings.Contains(missing, openbNeed) {
			r.left = b.section
		}
		return body, nil, errLeft
	}
	if r.left == b.section && r.left > 0 {
		return body, nil, errLeft
	}
	if b.lang == "" && len(b.notes) == 0 && before == nil && (r.last == errLeft || r.last == errNotRun) {
		return body, nil, r.last // what the block before prints
	}
	if setup, ok := b.note("setup"); ok {
		r.run(setup, "")
	}
	run, runs := b.note("run")
	output, shows := b.note("output")
	switch {
	case b.lang == "sh":
		printed, now = r.run(strings.Join(text, "\n"), ""), body
	case runs:
		r.run(run, strings.Join(text, "\n")+"\n")
		now = body
	case shows:
		now, err = compared(text, r.run(output, ""))
	case b.lang == "" && before != nil:
		now, err = compared(text, before)
	case b.lang == "" && len(text) > 0 && strings.HasPrefix(text[0], "$ "):
		now, err = r.session(text)
	default:
		err = errors.New("nothing runs the block; a note before it says how, or why not (CONTRIBUTING.md)")
	}
	if address, ok := b.note("console"); ok && err == nil {
		r.console(address)
	}
	return now, printed, err
}

// leftOut reports whether a note leaves out a section or page, with a reason.
func (b *block) leftOut() bool {
	section, _ := b.note("not run in this section")
	page, _ := b.note("not run on this page")
	return section != "" || page != ""
}

// session runs the commands of a block, lines that begin with "$ ", and compares what each prints with the lines after
// it.
func (r *pageRun) session(lines []string) (now []string, err error) {
	for len(lines) > 0 {
		end := 1
		for end < len(lines) && !strings.HasPrefix(lines[end], "$ ") {
			end++
		}
		part, differs := compared(lines[1:end], r.run(strings.TrimPrefix(lines[0], "$ "), ""))
		if err = cmp.Or(err, differs); part == nil && differs != nil {
			return nil, err
		}
		now = append(append(now, lines[0]), part...)
		lines = lines[end:]
	}
	return now, err
}

// console opens the console over the TLS set-up of the page: with Go's client, which trusts the page's authority alone,
// and where there is one in a Chromium. The note gives the address and the authority's file.
func (r *pageRun) console(text string) {
	r.Helper()
	address, authority, _ := strings.Cut(r.local(text), " ")
	pem, err := os.ReadFile(filepath.Join(r.dir, authority))
	if err != nil {
		r.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(pem)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}}
	resp, err := client.Get(address)
	if err != nil {
		r.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || !bytes.Contains(page, []byte("<title>stint")) {
		r.Errorf("%s: %s %v\n%.200s", address, resp.Status, err, page)
	}
	chromium, err := browser.Find()
	if err != nil {
		r.Logf("the console was opened with Go's client only: %v", err)
		return
	}
	dom, err := exec.Command(chromium, "--headless=new", "--no-sandbox", "--ignore-certificate-errors",
		"--user-data-dir="+filepath.Join(r.TempDir(), "profile"), "--virtual-time-budget=5000", "--dump-dom",
		address).Output()
	if err != nil || !bytes.Contains(dom, []byte(" – stint</title>")) { // the page's program names the view
		r.Errorf("Chromium at %s: %v\n%.400s", address, err, dom)
	}
}

// TestPages runs the blocks of README and of the pages under docs in order, each page in a folder of its own, and
// compares what they show with what is printed. make readme sets STINT_README=write: then pages get what their commands
// print.
func TestPages(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) < 20 {
		t.Fatal(pages, err)
	}
	for _, name := range append(pages, "../../README.md") {
		t.Run(filepath.Base(name), func(t *testing.T) { holdPage(t, name) })
	}
}

// holdPage runs the blocks of a page.
func holdPage(t *testing.T, name string) {
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	r := newPageRun(t)
	var before []string // printed by the block before; nil: that ran no commands
	ran, left := 0, 0
	for _, b := range pageBlocks(lines) {
		body := lines[b.first:b.last]
		now, printed, err := r.block(&b, body, before)
		before, r.last = printed, err
		switch {
		case err == errLeft:
			left++
			continue
		case err == errNotRun:
			continue
		case err != nil && (now == nil || os.Getenv("STINT_README") != "write"):
			t.Errorf("%s:%d: %v", filepath.Base(name), b.first, err)
		}
		ran++
		for i := range now {
			body[i] = b.indent + strings.TrimPrefix(now[i], b.indent)
		}
	}
	if os.Getenv("STINT_README") == "write" && !t.Failed() {
		if err := os.WriteFile(name, []byte(strings.Join(lines, "\n")), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if left > 0 && !t.Failed() {
		t.Skipf("%d of %d blocks did not run: %s", left, ran+left, r.missing)
	}
}

// TestStatic holds the build to making a file that needs no library of the machine: cgo is off.
func TestStatic(t *testing.T) {
	r := &pageRun{T: t}
	if recipe := r.recipe("build"); !strings.HasPrefix(recipe, "CGO_ENABLED=0 ") {
		t.Errorf("make build: %s", recipe)
	}
}
