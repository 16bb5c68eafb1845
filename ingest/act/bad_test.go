package act_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stintd/stint/ingest/act"
	"github.com/stintd/stint/ingest/client"
)

// badHook runs one job as a process. Its first two starts, and its first two stops, do something else: $1.
const badHook = `#!/bin/sh
input=$(cat)
of() { printf '%s' "$input" | sed 's/.*"'$1'":"\([^"]*\)".*/\1/'; }
alive() { [ -e run-$1 ] && kill -0 $(cat run-$1) 2>/dev/null; }
good() {
	case $input in
	*'"action":"list"'*)
		running=
		for f in run-*; do alive ${f#run-} && running="$running,$(cat unit-${f#run-})"; done
		echo '{"demand": [{"consumer": "/Borrower", "allocation": "'$1'", "units": 1, "ncpus": 1}],
			"running": ['"${running#,}"']}'
		return ;;
	*'"action":"start"'*)
		alive $(of id) || {
			printf '%s' "$input" | sed 's/.*"units":.\({[^}]*}\).*/\1/' >unit-$(of id)
			setsid sh -c 'echo begin >>begins; exec sleep 3600' </dev/null >/dev/null 2>&1 &
			echo $! >run-$(of id)
		} ;;
	*) alive $(of id) && kill $(cat run-$(of id)) ;;
	esac
	echo '{}'
}
case $input in
*'"action":"start"'*) tries=tries-start ;;
*'"action":"stop"'*) tries=tries-stop ;;
*) good $1; exit ;;
esac
echo x >>$tries
[ $(wc -l <$tries) -gt 2 ] && { good $1; exit; }
case $1 in
hang) exec sleep 60 ;;
garbage) echo all is well ;;
exit) echo no such partition >&2; exit 3 ;;
answer_lost) good $1 >/dev/null; exit 3 ;;
twice) good $1 >/dev/null; good $1 ;;
none) good $1 ;;
esac
`

// badCase is an actor whose hooks have a fault.
type badCase struct {
	name, says string
	dir        string
	log        *syncText
	actor      *actor
}

// syncText is a log that is read while it is written.
type syncText struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncText) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncText) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// TestBadPrograms has starts and stops hang, print garbage, fail before or after their work, and run twice, for
// services whose clocks are ten minutes ahead and behind. Each is an error with the unit's name and is tried again
// after a pause. No unit is lost, runs twice, or runs past its deadline.
func TestBadPrograms(t *testing.T) {
	_, c := serveAt(t, 10*time.Minute)
	_, c2 := serveAt(t, -10*time.Minute)
	cases := []*badCase{
		{name: "hang", says: "no answer within 2s; it was killed"},
		{name: "garbage", says: "the answer is no JSON object"},
		{name: "exit", says: "exit status 3: no such partition"},
		{name: "answer_lost", says: "exit status 3"},
		{name: "twice"},
		{name: "none"},
	}
	for i, b := range cases {
		b.begin(t, []*client.Client{c, c2}[i%2])
	}
	each := func(what string, of func(b *badCase) (string, bool)) {
		t.Helper()
		for _, b := range cases {
			wait(t, 60*time.Second, b.name+": "+what, func() (string, bool) { return of(b) })
		}
	}
	runs := func(begins int) func(b *badCase) (string, bool) {
		return func(b *badCase) (string, bool) {
			text, _ := os.ReadFile(filepath.Join(b.dir, "begins")) // it is not there before
			n := strings.Count(string(text), "\n")
			drift := b.actor.value(t, "stint_act_drift_units")
			return fmt.Sprintf("begun %d times, drift %v\n%s", n, drift, b.log), n >= begins && drift == 0
		}
	}
	each("starts", runs(1))
	hosts := func(state string) {
		t.Helper()
		table := "host,state\nh1,S\nh2,S\nh3,S\nh4,S\n"
		for _, c := range []*client.Client{c, c2} {
			if _, err := c.ChangeHosts(t.Context(), client.Bytes([]byte(strings.ReplaceAll(table, "S", state)),
				"text/csv"), client.Options{AllowShrink: true}); err != nil {
				t.Fatal(err)
			}
		}
	}
	hosts("draining")
	each("stops", func(b *badCase) (string, bool) {
		n := b.running(t)
		return fmt.Sprintf("%d processes\n%s", n, b.log), n == 0
	})
	hosts("ok")
	each("starts again", runs(2))
	time.Sleep(2 * time.Second) // in which another copy would begin
	for _, b := range cases {
		b.judge(t)
	}
}

// begin submits a job and runs an actor with faulty hooks.
func (b *badCase) begin(t *testing.T, c *client.Client) {
	t.Helper()
	b.dir, b.log = t.TempDir(), &syncText{}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(filepath.Join(b.dir, "bad.sh"), []byte(badHook), 0o700))
	program := func(timeout time.Duration) act.Command {
		return act.Command{Args: []string{"sh", "bad.sh", b.name}, Timeout: timeout}
	}
	hooks := &act.Commands{ListCommand: program(30 * time.Second), StartCommand: program(30 * time.Second),
		StopCommand: program(30 * time.Second), Dir: b.dir}
	if b.name == "hang" {
		hooks.StartCommand, hooks.StopCommand = program(2*time.Second), program(2*time.Second)
	}
	b.actor = runAs(t, c, hooks, act.Options{Source: b.name, Ledger: filepath.Join(b.dir, "ledger"),
		Every: 500 * time.Millisecond, Log: slog.New(slog.NewTextHandler(b.log, nil)),
		Metrics: prometheus.NewRegistry()})
	t.Cleanup(func() { // what runs ends with the test
		for _, pid := range b.pids(t) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
	})
}

// pids are those of all processes that were begun.
func (b *badCase) pids(t *testing.T) (pids []int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(b.dir, "run-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if pid, err2 := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && err2 == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// running is how many processes of the job there are.
func (b *badCase) running(t *testing.T) (n int) {
	t.Helper()
	for _, pid := range b.pids(t) {
		if syscall.Kill(pid, 0) == nil {
			n++
		}
	}
	return n
}

var unitNamed = regexp.MustCompile(
	`msg="(start|stop) failed; it is tried again".* units="u[0-9a-f]{16} on h[1-4]" error="?(.*)`)

// judge looks at what the hooks were asked, what ran, and what the log says.
func (b *badCase) judge(t *testing.T) {
	t.Helper()
	begins, err := os.ReadFile(filepath.Join(b.dir, "begins"))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(begins), "\n"); n != 2 || b.running(t) != 1 {
		t.Errorf("%s: begun %d times, %d copies run:\n%s", b.name, n, b.running(t), b.log)
	}
	if late := b.actor.value(t, "stint_act_late_stops_total"); late != 0 {
		t.Errorf("%s: %v units ran past their deadline:\n%s", b.name, late, b.log)
	}
	for _, action := range []string{"start", "stop"} {
		tries, err := os.ReadFile(filepath.Join(b.dir, "tries-"+action))
		if n := strings.Count(string(tries), "\n"); err != nil || n < 1 || n > 8 {
			t.Errorf("%s: %s was tried %d times: %v\n%s", b.name, action, n, err, b.log)
		}
		if b.says == "" {
			continue
		}
		named := false
		for _, m := range unitNamed.FindAllStringSubmatch(b.log.String(), -1) {
			named = named || m[1] == action && strings.Contains(m[2], b.says)
		}
		if !named {
			t.Errorf("%s: no error of %s with the unit's name and %q:\n%s", b.name, action, b.says, b.log)
		}
	}
}
