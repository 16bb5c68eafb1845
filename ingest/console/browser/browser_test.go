package browser

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-rod/rod"
	"github.com/go-rod/rod/lib/input"
	"github.com/go-rod/rod/lib/proto"
)

// patience is how long a test waits for what a person would wait for.
const patience = 30 * time.Second

var (
	chromium *Browser
	missing  error  // why there is none
	stint    string // the command
)

// TestMain builds the command and starts a Chromium, which all tests share.
func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "console")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		path, err := Find()
		if err == nil {
			chromium, err = Start(path)
		}
		if missing = err; missing != nil {
			return m.Run()
		}
		defer chromium.Stop()
		stint = filepath.Join(dir, "stint")
		if out, err := exec.Command("go", "build", "-o", stint, "../../../cmd/stint").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%s%v\n", out, err)
			return 1
		}
		return m.Run()
	}())
}

// need skips a test where there is no Chromium, and says so; where one must be there, the test fails.
func need(t *testing.T) {
	t.Helper()
	if missing == nil {
		return
	}
	if os.Getenv("STINT_CONSOLE") == "must" {
		t.Fatal(missing)
	}
	t.Skipf("THE CONSOLE IS NOT TESTED: %v", missing)
}

// run runs the command to its end.
func run(t testing.TB, args ...string) string {
	t.Helper()
	out, err := exec.Command(stint, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("stint %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// service is a stint serve, as a process of its own.
type service struct {
	t    testing.TB
	args []string
	addr string
	cmd  *exec.Cmd
	log  *bytes.Buffer
}

// serve starts one; it ends with the test. Its address stays the same.
func serve(t testing.TB, args ...string) *service {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &service{t: t, addr: ln.Addr().String(), args: args}
	_ = ln.Close()
	s.start()
	t.Cleanup(s.stop)
	return s
}

func (s *service) start() {
	s.t.Helper()
	s.log = &bytes.Buffer{}
	s.cmd = exec.Command(stint, append([]string{"serve", "--listen", s.addr}, s.args...)...)
	s.cmd.Stderr = s.log
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		resp, err := http.Get("http://" + s.addr + "/readyz")
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == 200 {
				return
			}
		}
		if time.Now().After(end) {
			s.t.Fatalf("the service is not ready: %v\n%s", err, s.log)
		}
	}
}

func (s *service) stop() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait()
	s.cmd = nil
}

// do makes a call and gives its answer, which must be a good one.
func (s *service) do(method, path string, body []byte, header ...string) string {
	s.t.Helper()
	r, _ := http.NewRequest(method, "http://"+s.addr+path, bytes.NewReader(body))
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != 200 {
		s.t.Fatalf("%s %s: %s %s", method, path, resp.Status, text)
	}
	return string(text)
}

// tab is a page of the console, in a browser of its own that knows nothing of others.
type tab struct {
	t    testing.TB
	page *rod.Page
	mu   sync.Mutex
	wait time.Duration
	bad  []string // what the page did wrong: exceptions, and what its policy refused
	wild bool     // it is meant to: see trespass
}

// open opens a view of a service.
func open(t testing.TB, s *service, place string) *tab {
	t.Helper()
	b, err := chromium.Incognito()
	if err != nil {
		t.Fatal(err)
	}
	p, err := b.Page(proto.TargetCreateTarget{URL: "about:blank"})
	if err != nil {
		t.Fatal(err)
	}
	b2 := &tab{t: t, page: p, wait: patience}
	_ = proto.LogEnable{}.Call(p)
	_ = proto.RuntimeEnable{}.Call(p)
	go p.EachEvent(func(e *proto.RuntimeExceptionThrown) {
		what := e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			what += " " + x.Description
		}
		b2.did(what)
	}, func(e *proto.LogEntryAdded) {
		if strings.Contains(e.Entry.Text, "Content Security Policy") ||
			e.Entry.Source == proto.LogLogEntrySourceSecurity {
			b2.did(e.Entry.Text)
		}
	}, func(e *proto.PageJavascriptDialogOpening) {
		if e.Type != proto.PageDialogTypeConfirm && e.Type != proto.PageDialogTypeBeforeunload {
			b2.did("a dialog opened: " + e.Message)
		}
		_ = proto.PageHandleJavaScriptDialog{Accept: true}.Call(p)
	})()
	t.Cleanup(func() {
		b2.mu.Lock()
		for _, what := range b2.bad {
			t.Errorf("the page: %s", what)
		}
		b2.mu.Unlock()
		_ = p.Close()
		_ = proto.TargetDisposeBrowserContext{BrowserContextID: b.BrowserContextID}.Call(chromium)
	})
	b2.as(Look{Width: 1280, Height: 900})
	b2.ok(p.Navigate("http://" + s.addr + "/" + place))
	b2.ok(p.Timeout(patience).WaitLoad())
	return b2
}

func (b *tab) did(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.wild {
		b.bad = append(b.bad, what)
	}
}

// trespass tells that the page will try what its policy refuses. What it is told of comes some time after.
func (b *tab) trespass() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wild = true
}

func (b *tab) ok(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *tab) as(look Look) {
	b.t.Helper()
	b.ok(As(b.page, look))
}

// patient waits longer from now on.
func (b *tab) patient(wait time.Duration) *tab {
	b.wait = wait
	return b
}

// js evaluates a function in the page.
func (b *tab) js(f string, args ...any) string {
	b.t.Helper()
	v, err := b.page.Timeout(patience).Eval(f, args...)
	if err != nil {
		b.t.Fatal(err)
	}
	return v.Value.Str()
}

// found is the first element that is seen, is chosen by sel and has words that match.
const found = `(sel, re) => { const r = new RegExp(re, "sm"); for (const e of document.querySelectorAll(sel)) {
	const words = (e.innerText ?? e.textContent ?? "") + "\n" + (e.getAttribute("aria-label") ?? "");
	if (r.test(words.trim()) && (e.getClientRects().length > 0)) return e; } return null; }`

// see waits for an element with words that match.
func (b *tab) see(sel, re string) *rod.Element {
	b.t.Helper()
	for end := time.Now().Add(b.wait); ; time.Sleep(25 * time.Millisecond) {
		e, err := b.page.Sleeper(rod.NotFoundSleeper).ElementByJS(rod.Eval(found, sel, re).ByObject())
		if err == nil {
			return e
		}
		if time.Now().After(end) {
			_ = os.WriteFile(filepath.Join(os.TempDir(), "console-fail.png"), b.picture(), 0o600)
			b.t.Fatalf("no %s with %q is seen: the page says\n%s", sel, re, b.text("body"))
		}
	}
}

// until waits until a function is true in the page.
func (b *tab) until(what, f string) {
	b.t.Helper()
	for end := time.Now().Add(b.wait); ; time.Sleep(25 * time.Millisecond) {
		v, err := b.page.Timeout(b.wait).Eval(f)
		b.ok(err)
		if v.Value.Bool() {
			return
		}
		if time.Now().After(end) {
			b.t.Fatalf("it is not so that %s", what)
		}
	}
}

// gone waits until there is none.
func (b *tab) gone(sel, re string) {
	b.t.Helper()
	for end := time.Now().Add(patience); b.js("(sel, re) => ("+found+")(sel, re) ? 'yes' : ''", sel,
		re) != ""; time.Sleep(25 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("%s with %q is still seen", sel, re)
		}
	}
}

// click clicks on what is seen.
func (b *tab) click(sel, re string) {
	b.t.Helper()
	for end := time.Now().Add(b.wait); ; time.Sleep(25 * time.Millisecond) {
		err := b.see(sel, re).Timeout(patience).Click(proto.InputMouseButtonLeft, 1)
		if err != nil && strings.Contains(err.Error(), "detached") && time.Now().Before(end) {
			continue // the page drew the element anew between see and Click, so that nothing was clicked
		}
		b.ok(err)
		return
	}
}

// choose takes an option of a select by its words.
func (b *tab) choose(sel, option string) {
	b.t.Helper()
	if b.js(`(sel, option) => { const e = document.querySelector(sel); for (const o of e.options) if (o.text === option) { e.value = o.value; e.dispatchEvent(new Event("change", {bubbles: true})); return "yes"; } return "" }`, sel, option) == "" {
		b.t.Fatalf("%s has no option %q", sel, option)
	}
}

// write replaces what is in a field, as if it were typed.
func (b *tab) write(sel, text string) {
	b.t.Helper()
	e := b.see(sel, "")
	b.ok(e.Focus())
	b.ok(e.SelectAllText())
	if text == "" {
		b.press(input.Backspace)
		return
	}
	b.ok(b.page.InsertText(text))
}

// press presses keys, one after another.
func (b *tab) press(keys ...input.Key) {
	b.t.Helper()
	for _, k := range keys {
		b.ok(b.page.Keyboard.Type(k))
	}
}

// text is the words of the first element.
func (b *tab) text(sel string) string {
	b.t.Helper()
	return b.js(`(sel) => { const e = document.querySelector(sel); return e ? e.innerText : "" }`, sel)
}

// matches holds the words of the first element against an expression, as soon as they do.
func (b *tab) matches(sel, re string) []string {
	b.t.Helper()
	e := regexp.MustCompile(re)
	for end := time.Now().Add(patience); ; time.Sleep(25 * time.Millisecond) {
		text := b.text(sel)
		if m := e.FindStringSubmatch(text); m != nil {
			return m
		}
		if time.Now().After(end) {
			b.t.Fatalf("%s does not match %q:\n%s\nnotices: %s", sel, re, text,
				b.js(`() => [...document.querySelectorAll(".notice, .fault")].map((e) => e.innerText).join("\n")`))
		}
	}
}

func (b *tab) picture() []byte {
	png, err := b.page.Screenshot(false, nil)
	if err != nil {
		return nil
	}
	return png
}

// axeSHA256 is that of axe.min.js of axe-core 4.14.1 (Mozilla Public License 2.0, beside it), which is for tests alone.
const axeSHA256 = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"

var axe = sync.OnceValues(func() (string, error) {
	packed, err := os.Open("testdata/axe-4.14.1.min.js.gz")
	if err != nil {
		return "", err
	}
	defer packed.Close()
	z, err := gzip.NewReader(packed)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return "", err
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != axeSHA256 {
		return "", fmt.Errorf("axe is another one: %x", sum)
	}
	return string(text), nil
})

// accessible holds the page as it is against the rules of levels A and AA.
func (b *tab) accessible(what string) {
	b.t.Helper()
	text, err := axe()
	b.ok(err)
	Settle(b.page, 3*time.Second)
	if b.js(`() => typeof window.axe`) == "undefined" {
		_, err = proto.RuntimeEvaluate{Expression: text + "\n;0"}.Call(b.page)
		b.ok(err)
	}
	faults := b.js(`async () => {
		const r = await axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"], resultTypes: ["violations"]});
		return r.violations.map((v) => v.id + ": " + v.help + "\n" + v.nodes.slice(0, 4).map((n) => "    " + n.html.slice(0, 200) + "\n    " + n.failureSummary.replaceAll("\n", " ").slice(0, 300)).join("\n")).join("\n");
	}`)
	if faults != "" {
		b.t.Errorf("%s:\n%s", what, faults)
	}
}
