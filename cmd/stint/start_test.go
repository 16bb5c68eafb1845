package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stintd/stint/core/journal"
	"github.com/stintd/stint/ingest/server"
)

// Variables by which the test starts itself as `stint`.
const (
	mainArgs = "STINT_TEST_MAIN"    // 1: the arguments are those of stint
	holdAt   = "STINT_TEST_HOLD_AT" // point:count at which a service stands still for good; "" for never
	clockOff = "STINT_TEST_CLOCK"   // by how much its clock is ahead; "" for not at all
)

// mainChild is stint itself.
func mainChild() { os.Exit(execute(os.Args[1:], os.Stdout, os.Stderr)) }

// holdHooks stand still at a point.
func holdHooks() serveHooks {
	point, count, _ := strings.Cut(os.Getenv(holdAt), ":")
	var left int
	_, _ = fmt.Sscan(count, &left)
	hits := make(chan int, 1)
	hits <- 0
	at := func(p string) {
		if p != point {
			return
		}
		n := <-hits + 1
		hits <- n
		if n == left {
			select {}
		}
	}
	hooks := serveHooks{engine: at, journal: func(op, _ string) error { at(op); return nil }}
	if off, err := time.ParseDuration(os.Getenv(clockOff)); err == nil {
		hooks.clock = func() int64 { return time.Now().Add(off).UnixMicro() }
	}
	return hooks
}

// startStint starts stint in a process of its own.
func startStint(t *testing.T, hold string, args ...string) *child {
	t.Helper()
	return startProgram(t, self(t), hold, args...)
}

// self is the program that runs.
func self(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return self
}

// startProgram starts a stint that may be another.
func startProgram(t *testing.T, program, hold string, args ...string) *child {
	t.Helper()
	c := &child{cmd: exec.Command(program, args...), log: &syncBuffer{}, dead: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), mainArgs+"=1", holdAt+"="+hold)
	c.cmd.Stderr = c.log
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = c.cmd.Wait(); close(c.dead) }()
	t.Cleanup(func() { kill(c) })
	return c
}

// until waits until the log of a service has a text; false when it ended before.
func (c *child) until(t *testing.T, text string) bool {
	t.Helper()
	return c.untilFor(t, text, 30*time.Second)
}

// untilFor is until that waits so long.
func (c *child) untilFor(t *testing.T, text string, most time.Duration) bool {
	t.Helper()
	end := time.Now().Add(most)
	for ; !strings.Contains(c.log.String(), text); time.Sleep(2 * time.Millisecond) {
		select {
		case <-c.dead:
			return strings.Contains(c.log.String(), text)
		default:
		}
		if time.Now().After(end) {
			t.Fatalf("no %q in %s", text, c.log)
		}
	}
	if _, rest, ok := strings.Cut(c.log.String(), "address="); ok {
		c.base, _, _ = strings.Cut(rest, " ")
	}
	return true
}

// ends waits for the end of a process and gives its exit code.
func (c *child) ends(t *testing.T, within time.Duration) int {
	t.Helper()
	select {
	case <-c.dead:
	case <-time.After(within):
		t.Fatalf("it does not end within %s: %s", within, c.log)
	}
	return c.cmd.ProcessState.ExitCode()
}

// folder is a data folder with a policy, hosts, and cycles.
func folder(t *testing.T, policy string, cycles int) string {
	t.Helper()
	data := filepath.Join(t.TempDir(), "service")
	c := startStint(t, "", "serve", "--config", quietConfig(t, data, ""))
	if !c.until(t, "msg=ready") {
		t.Fatal(c.log)
	}
	m := &model{site: &crashSite{dimension: "ncpus", policy: policy}}
	m.begin(t, c)
	for range cycles {
		if status, text, _, _ := send(c.base, "POST", "/v1/cycles", "", ""); status != 200 {
			t.Fatal(string(text))
		}
	}
	for logged := false; !logged; { // no more is missing in the log
		_, text, _, ok := send(c.base, "GET", "/readyz", "", "")
		if logged = strings.Contains(string(text), `"log_behind_cycles":0`); !ok {
			t.Fatal(c.log)
		}
	}
	kill(c) // no checkpoint is made then
	return data
}

// quietConfig is a configuration whose cycles run on request.
func quietConfig(t *testing.T, data, more string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "c.yaml")
	text := fmt.Sprintf("data: %s\nlisten: 127.0.0.1:0\nmanual: true\n%s", data, more)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// someTokens are tokens of a configuration.
var someTokens = fmt.Sprintf("tokens: [{name: t, role: admin, sha256: %s}]\n", server.HashToken("one"))

// TestRefusedStarts refuses starts for each reason there is: each process ends by itself, with 2 and one error that
// says why.
func TestRefusedStarts(t *testing.T) {
	dir := t.TempDir()
	file, fresh := filepath.Join(dir, "file"), filepath.Join(dir, "new")
	inUse := folder(t, crashSites[2].policy, 1)
	owner := startStint(t, "", "serve", "--config", quietConfig(t, inUse, ""))
	if !owner.until(t, "msg=ready") {
		t.Fatal(owner.log)
	}
	damaged := folder(t, crashSites[2].policy, 2)
	segments, err := filepath.Glob(damaged + "/journal/records-*")
	if err != nil || len(segments) != 1 {
		t.Fatal(segments, err)
	}
	b, err := os.ReadFile(segments[0])
	if err == nil {
		b[100] ^= 1
		err = os.WriteFile(segments[0], b, 0o600)
	}
	ahead, gone := folder(t, crashSites[2].policy, 2), folder(t, crashSites[2].policy, 2)
	newer := folder(t, crashSites[2].policy, 1)
	err = errors.Join(err, os.WriteFile(newer+"/folder.json", []byte(`{"format":99,"stint":"v9.0.0"}`), 0o600))
	if err := errors.Join(err, os.WriteFile(file, nil, 0o600), os.RemoveAll(ahead+"/journal"),
		os.Remove(ahead+"/acknowledged"), os.RemoveAll(gone+"/journal")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		why    string
		rounds int
		args   []string
	}{
		{"not a directory", 12, []string{"--data", file, "--listen", "127.0.0.1:0"}},
		{"another process has it", 12, []string{"--data", inUse, "--listen", "127.0.0.1:0"}},
		{"damaged: ", 12, []string{"--data", damaged, "--listen", "127.0.0.1:0"}},
		{"the decision log is ahead of the journal", 12, []string{"--data", ahead, "--listen", "127.0.0.1:0"}},
		{"ends with record 0, and record 4 was acknowledged", 3, []string{"--data", gone, "--listen", "127.0.0.1:0"}},
		{"address already in use", 3, []string{"--data", fresh, "--listen", strings.TrimPrefix(owner.base, "http://")}},
		{server.ErrOpen.Error(), 3, []string{"--data", fresh, "--listen", ":0"}},
		{server.ErrOpen.Error(), 3, []string{"--data", fresh, "--listen", "0.0.0.0:0"}},
		{server.ErrPlain.Error(), 3, []string{"--config", quietConfig(t, fresh, someTokens), "--listen", "0.0.0.0:0"}},
		{"tls.key: must be given", 3, []string{"--config", quietConfig(t, fresh, "tls: {certificate: c}\n")}},
		{server.ErrNewer.Error(), 3, []string{"--data", newer, "--listen", "127.0.0.1:0"}},
		{"limits.connections", 3, []string{"--config", quietConfig(t, fresh, "limits: {connections: 0}\n")}},
	} {
		for range c.rounds {
			p := startStint(t, "", append([]string{"serve"}, c.args...)...)
			code := p.ends(t, 30*time.Second)
			var errs []string
			for line := range strings.Lines(p.log.String()) {
				if rest, ok := strings.CutPrefix(line, "stint: "); ok {
					errs = append(errs, rest)
				}
			}
			if code != 2 || len(errs) != 1 || !strings.Contains(errs[0], c.why) {
				t.Fatalf("%v: exit %d, %q, all of it: %s", c.args, code, errs, p.log)
			}
		}
	}
	if _, err := os.Stat(fresh); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a start that was refused made a folder:", err)
	}
}

// TestStuck has a service stand still at a point: it says so and does not pass for healthy, and SIGTERM ends it in time
// with 0. What was acknowledged is there at the next start, and nothing of the cycle is.
func TestStuck(t *testing.T) {
	for _, point := range []string{"deciding:1", "decided:1", "sync:7", "deciding:2"} {
		t.Run(point, func(t *testing.T) {
			data := folder(t, crashSites[2].policy, 1)
			recovering := point == "deciding:1" // of the cycle that is in the journal
			config := quietConfig(t, data, "stop_time_max: 1s\nwatchdog: {slow: 1s, stuck: 2s}\n")
			c := startStint(t, point, "serve", "--config", config)
			if point == "sync:7" || point == "decided:1" { // those of the recovery come too
				c.until(t, "msg=ready")
			}
			if !recovering {
				if !c.until(t, "msg=ready") {
					t.Fatal(c.log)
				}
				rows := "consumer,allocation,units,ncpus\n/A,a,3,1\n"
				if status, text, _, _ := send(c.base, "PUT", "/v1/demand/feed", rows, ""); status != 200 {
					t.Fatal(string(text))
				}
				go func() {
					for range 10 { // until it stands still
						send(c.base, "POST", "/v1/cycles", "", "")
					}
				}()
			}
			if !c.until(t, "the engine is stuck") || !strings.Contains(c.log.String(), "goroutine ") {
				t.Fatal(c.log)
			}
			if status, text, _, _ := send(c.base, "GET", "/healthz", "", ""); status != 503 ||
				!strings.Contains(string(text), "stuck") {
				t.Error(status, string(text))
			}
			if status, _, _, _ := send(c.base, "GET", "/readyz", "", ""); status != 503 {
				t.Error(status)
			}
			begin := time.Now()
			_ = c.cmd.Process.Signal(syscall.SIGTERM)
			if code := c.ends(t, 20*time.Second); code != 0 {
				t.Errorf("exit %d: %s", code, c.log)
			}
			if took := time.Since(begin); took < 900*time.Millisecond ||
				!strings.Contains(c.log.String(), "dropped whole") {
				t.Errorf("after %s: %s", took, c.log)
			}
			c = startStint(t, "", "serve", "--config", quietConfig(t, data, ""))
			if !c.until(t, "msg=ready") {
				t.Fatal(c.log)
			}
			if point == "deciding:2" {
				_, text, _, _ := send(c.base, "GET", "/readyz", "", "")
				if !strings.Contains(string(text), `"cycle":1,`) {
					t.Error("the cycle that was dropped is there:", string(text))
				}
			}
			if !recovering {
				send(c.base, "POST", "/v1/cycles", "", "")
				_, text, _, _ := send(c.base, "GET", "/v1/holdings?source=feed", "", "")
				if !strings.Contains(string(text), `"allocation":"a"`) {
					t.Error("what was acknowledged is gone:", string(text))
				}
			}
		})
	}
}

// TestHangup has tokens read again on SIGHUP, which ends no service: neither one that recovers, nor one whose
// configuration is not good any more.
func TestHangup(t *testing.T) {
	token := func(secret string) string {
		return fmt.Sprintf("tokens: [{name: t, role: admin, sha256: %s}]\n", server.HashToken(secret))
	}
	data := folder(t, crashSites[2].policy, 1)
	config := quietConfig(t, data, token("one"))
	held := startStint(t, "deciding:1", "serve", "--config", config)
	held.until(t, "msg=listening")
	_ = held.cmd.Process.Signal(syscall.SIGHUP)
	held.until(t, "SIGHUP: the configuration was read again")
	kill(held)

	c := startStint(t, "", "serve", "--config", config)
	if !c.until(t, "msg=ready") {
		t.Fatal(c.log)
	}
	as := func(secret string) int {
		r, _ := http.NewRequest("GET", c.base+"/v1/cycles", nil)
		r.Header.Set("Authorization", "Bearer "+secret)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	again := func(more, want string) {
		t.Helper()
		text := fmt.Sprintf("data: %s\nlisten: 127.0.0.1:0\nmanual: true\n%s", data, more)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		n := strings.Count(c.log.String(), want)
		_ = c.cmd.Process.Signal(syscall.SIGHUP)
		end := time.Now().Add(20 * time.Second)
		for ; strings.Count(c.log.String(), want) == n; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("no %q in %s", want, c.log)
			}
		}
	}
	if as("one") != 200 || as("two") != 401 {
		t.Error("before", as("one"), as("two"))
	}
	again(token("two"), "SIGHUP: the configuration was read again")
	if as("one") != 401 || as("two") != 200 {
		t.Error("after", as("one"), as("two"))
	}
	for _, bad := range []string{"tokens: 5\n", "", "limits: {connections: 0}\n" + token("one")} {
		again(bad, "SIGHUP: all stays as it was")
		if as("one") != 401 || as("two") != 200 {
			t.Error("after a configuration that is not good", as("one"), as("two"))
		}
	}
	again("interval: 5s\nlimits: {rows: 7}\nlog: {level: debug, keep: 9d}\n"+token("two"),
		`keys="interval log.keep limits.rows"`)
	as("two")
	for end := time.Now().Add(20 * time.Second); !strings.Contains(c.log.String(),
		"level=DEBUG"); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the level of the log is not taken: ", c.log)
		}
	}
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	if code := c.ends(t, 30*time.Second); code != 0 {
		t.Error(code, c.log)
	}
}

// TestAcceptReplay has a journal say otherwise than what is decided: the start is refused, and names the way out; with
// it the service starts, keeps both results, and starts from then on without.
func TestAcceptReplay(t *testing.T) {
	data := folder(t, crashSites[2].policy, 3)
	spoil(t, data, 3)
	args := []string{"serve", "--config", quietConfig(t, data, "decision_log: false\n")}
	c := startStint(t, "", args...)
	const otherwise = "cycle 3 decides otherwise than before"
	if code := c.ends(t, 30*time.Second); code != 2 || !strings.Contains(c.log.String(), otherwise) ||
		!strings.Contains(c.log.String(), "--accept-replay") {
		t.Fatal(code, c.log)
	}
	c = startStint(t, "", append(args, "--accept-replay")...)
	if !c.until(t, "msg=checkpoint") {
		t.Fatal(c.log)
	}
	if n := strings.Count(c.log.String(), "level=ERROR"); n != 2 {
		t.Errorf("%d errors in the log: %s", n, c.log)
	}
	if status, _, _, _ := send(c.base, "GET", "/v1/changes?source=feed&since=3", "", ""); status != 410 {
		t.Error("clients go on as if nothing had happened:", status)
	}
	if status, _, _, _ := send(c.base, "GET", "/v1/changes?source=feed&since=4", "", ""); status != 200 {
		t.Error(status)
	}
	text, err := os.ReadFile(data + "/replay.ndjson")
	var kept struct {
		Cycle             int64
		Recorded, Decided string
		At                time.Time
	}
	if err := errors.Join(err, json.Unmarshal(text, &kept)); err != nil || kept.Cycle != 3 ||
		kept.Recorded != strings.Repeat("0", 64) || len(kept.Decided) != 64 || kept.At.IsZero() {
		t.Errorf("%s, %v", text, err)
	}
	kill(c)
	c = startStint(t, "", args...)
	if !c.until(t, "msg=ready") {
		t.Fatal(c.log)
	}
}

// spoil gives the record of a cycle a digest of zeros.
func spoil(t *testing.T, data string, cycle int) {
	t.Helper()
	from, err := journal.Open(data+"/journal", journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	to, err := journal.Open(data+"/new", journal.Options{})
	if err == nil {
		err = to.Replay(func(journal.Record) error { return nil })
	}
	if err == nil {
		err = from.Replay(func(r journal.Record) error {
			payload := bytes.Clone(r.Payload)
			at := bytes.Index(payload, []byte(`"digest":"`))
			if bytes.Contains(payload, fmt.Appendf(nil, `{"cycle":%d,`, cycle)) {
				copy(payload[at+len(`"digest":"`):], strings.Repeat("0", 64))
			}
			_, err := to.Append(r.Kind, true, payload, nil, "")
			return err
		})
	}
	err = errors.Join(err, from.Close(), to.Close(), os.RemoveAll(data+"/journal"), os.Remove(data+"/acknowledged"))
	if err := errors.Join(err, os.Rename(data+"/new", data+"/journal")); err != nil {
		t.Fatal(err)
	}
}

// TestModes lets nobody but the service look into its folder.
func TestModes(t *testing.T) {
	was := syscall.Umask(0)
	data := folder(t, crashSites[2].policy, 2)
	syscall.Umask(was)
	c := startStint(t, "", "serve", "--config", quietConfig(t, data, ""))
	if !c.until(t, "msg=ready") {
		t.Fatal(c.log)
	}
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	if code := c.ends(t, 30*time.Second); code != 0 {
		t.Fatal(code, c.log)
	}
	files := 0
	err := filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm() != map[bool]fs.FileMode{true: 0o700, false: 0o600}[d.IsDir()] {
			t.Errorf("%s: %s", path, info.Mode())
		}
		files++
		return err
	})
	if err != nil || files < 10 {
		t.Error(files, err)
	}
}

// TestFailsWhileItRuns has the disk fail under a service: it ends with 1, not with the 2 of a start that is refused.
func TestFailsWhileItRuns(t *testing.T) {
	conf, err := loadServeConfig("")
	if err != nil {
		t.Fatal(err)
	}
	conf.Data, conf.Listen, conf.Manual = filepath.Join(t.TempDir(), "service"), "127.0.0.1:0", true
	c := &child{log: &syncBuffer{}, dead: make(chan struct{})}
	var failing atomic.Bool
	ended := make(chan error, 1)
	go func() {
		ended <- serve(t.Context(), conf, c.log, serveHooks{journal: func(op, _ string) error {
			if op == "sync" && failing.Load() {
				return io.ErrUnexpectedEOF
			}
			return nil
		}})
	}()
	c.until(t, "msg=ready")
	failing.Store(true)
	policy := fmt.Sprintf(crashSites[2].policy, 2)
	if status, text, _, ok := send(c.base, "PUT", "/v1/plan", policy, ""); ok && status != 503 {
		t.Error(status, string(text))
	}
	select {
	case err := <-ended:
		if !errors.Is(err, errFound) || !strings.Contains(c.log.String(), "msg=failed") ||
			!strings.Contains(c.log.String(), io.ErrUnexpectedEOF.Error()) {
			t.Error(err, c.log)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it goes on")
	}
}
