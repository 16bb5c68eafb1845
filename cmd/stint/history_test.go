package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/scenario"
)

// historyClock names the file from which a service in a process of its own reads the time, in µs since 1970 UTC.
const historyClock = "STINT_TEST_HISTORY_CLOCK"

// TestHistories plays random histories of a service: the inputs of a scenario, over HTTP, with random calls of every
// kind among them, restarts and kills. The log of each goes through verify and replay, which must find nothing. Some
// services are processes that are killed with SIGKILL; the others run within the test, and crash by a journal that
// fails.
//
// STINT_TEST_HISTORIES says how many, STINT_TEST_SEED from which seed on; each history has a seed of its own, which a
// failure names, and STINT_TEST_HISTORIES=1 with that seed plays it alone. STINT_SCENARIOS names a folder of scenarios
// besides those of the project.
func TestHistories(t *testing.T) {
	histories := 40
	if v := os.Getenv("STINT_TEST_HISTORIES"); v != "" {
		histories, _ = strconv.Atoi(v)
	} else if testing.Short() {
		t.Skip("starts many services")
	}
	first := uint64(20261125) // the same in every run of make test; make soak begins elsewhere
	if os.Getenv("STINT_TEST_HISTORIES") != "" {
		first = uint64(time.Now().UnixNano())
	}
	if v := os.Getenv("STINT_TEST_SEED"); v != "" {
		var err error
		if first, err = strconv.ParseUint(v, 10, 64); err != nil {
			t.Fatalf("STINT_TEST_SEED=%q: %v", v, err)
		}
	}
	t.Log("STINT_TEST_SEED =", first)
	files, err := filepath.Glob("../../testdata/cases/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	if dir := os.Getenv("STINT_SCENARIOS"); dir != "" {
		more, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
		if err != nil || len(more) == 0 {
			t.Fatalf("no scenarios in %s: %v", dir, err)
		}
		files = append(files, more...)
	}
	counts, began := map[string]int{}, time.Now()
	for i := range histories {
		h := newHistory(t, first+uint64(i), files, counts)
		h.play(t)
		if t.Failed() {
			t.Fatalf("history %d of %d: %s\nSTINT_TEST_HISTORIES=1 STINT_TEST_SEED=%d plays it again", i+1, histories,
				h, first+uint64(i))
		}
	}
	t.Logf("%d histories in %v", histories, time.Since(began).Round(time.Millisecond))
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%8d %s", counts[what], what)
	}
	if refused := counts["refused"]; refused > counts["taken"] {
		t.Errorf("%d of %d calls were refused: what is random here is mostly not taken", refused,
			refused+counts["taken"])
	}
	for _, call := range historyCalls {
		if histories >= 300 && counts[call.name+" taken"] == 0 {
			t.Errorf("no call %q was taken", call.name)
		}
	}
}

// history is a service, and what is known of what it was told.
type history struct {
	rng    *rand.Rand
	base   *scenario.Scenario
	events []event // of the scenario
	counts map[string]int
	data   string
	apart  bool // in a process of its own
	ttl    bool // sources that are silent get nothing
	report bool // unknown consumers are no bad rows
	now    atomic.Int64
	child  *child
	inside *insideService
	calls  []string // what was told so far, for a failure

	plans []string                  // policy files that were in force
	rows  map[string][]demandRow    // by source: what it said last
	hosts map[string]map[string]any // by name, as last told
}

// event is an input of the scenario or, when it has no kind, a cycle.
type event struct {
	scenario.Input
	now int64
}

// String names the history.
func (h *history) String() string {
	return fmt.Sprintf("%s:%d: %s\n%s", h.base.File, h.base.Line, h.base.Name, strings.Join(h.calls, "\n"))
}

// eventsMax bounds the events of a scenario that a history takes.
const eventsMax = 60

// events is a recorder of scenarios.
type eventList struct{ list []event }

var errEnough = errors.New("enough events")

// Input notes an input.
func (l *eventList) Input(in scenario.Input) error {
	in.Content = slices.Clone(in.Content)
	l.list = append(l.list, event{in, 0})
	return nil
}

// Cycle notes a cycle.
func (l *eventList) Cycle(out *decision.Cycle, _ func(bool), _ bool) error {
	l.list = append(l.list, event{now: out.Summary.NowUS})
	if len(l.list) >= eventsMax {
		return errEnough
	}
	return nil
}

func newHistoryOf(seed uint64, counts map[string]int) *history {
	return &history{rng: rand.New(rand.NewPCG(seed, 4)), counts: counts, rows: map[string][]demandRow{},
		hosts: map[string]map[string]any{}}
}

// newHistory draws a history's scenario and how its service runs.
func newHistory(t *testing.T, seed uint64, files []string, counts map[string]int) *history {
	h := newHistoryOf(seed, counts)
	for h.base == nil {
		list, err := scenario.Load(files[h.rng.IntN(len(files))])
		if err != nil {
			t.Fatal(err)
		}
		s, l := list[h.rng.IntN(len(list))], eventList{}
		if _, err := s.Record(&l); err == nil || errors.Is(err, errEnough) {
			h.base, h.events = s, l.list
		}
	}
	h.apart, h.ttl, h.report = h.rng.IntN(12) == 0, h.rng.IntN(5) == 0, h.rng.IntN(4) == 0
	h.data = filepath.Join(crashDir(t), "service")
	return h
}

// play plays the history and checks its log.
func (h *history) play(t *testing.T) {
	h.start(t)
	defer h.end()
	for i, e := range h.events {
		if e.Kind == "" {
			h.now.Store(max(h.now.Load(), e.now))
		} else {
			h.tell(e.Input)
		}
		for i > 1 && h.rng.IntN(3) == 0 {
			h.call(historyCalls[h.rng.IntN(len(historyCalls))])
		}
		if e.Kind == "" {
			h.cycle()
		}
		if h.rng.IntN(15) == 0 || h.gone() {
			h.restart(t)
		}
		if t.Failed() {
			return
		}
	}
	for range 1 + h.rng.IntN(4) { // some time without input
		h.cycle()
	}
	if h.gone() {
		h.restart(t)
	}
	h.stop(t)
	r := checkLog(t, "the log of a history", filepath.Join(h.data, "log"))
	h.counts["cycles"] += int(r.Cycles)
}

// insideService is a service within the test, whose journal may be made to fail.
type insideService struct {
	base   string
	cancel func()
	ended  chan error
	log    *syncBuffer
	fail   atomic.Int64 // steps of the journal until it fails; 0: it does not
	dead   atomic.Bool
}

var errCrash = errors.New("the disk is gone")

func (h *history) start(t *testing.T) {
	t.Helper()
	if h.apart {
		if err := h.tick(); err != nil {
			t.Fatal(err)
		}
		t.Setenv(historyClock, h.data+".clock")
		t.Setenv(historyConfig, h.config())
		if h.child = startChild(t, h.data, ""); h.child == nil {
			t.Fatal("the service does not start")
		}
		return
	}
	conf, err := loadServeConfig("")
	if err != nil {
		t.Fatal(err)
	}
	h.configure(conf, h.config())
	s := &insideService{ended: make(chan error, 1), log: &syncBuffer{}}
	hooks := serveHooks{clock: h.now.Load, segmentBytes: 20_000, journal: func(string, string) error {
		if s.dead.Load() || s.fail.Load() > 0 && s.fail.Add(-1) == 0 {
			s.dead.Store(true)
			return errCrash
		}
		return nil
	}}
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	go func() { s.ended <- serve(ctx, conf, s.log, hooks) }()
	for !strings.Contains(s.log.String(), "msg=ready") {
		select {
		case err := <-s.ended:
			t.Fatalf("the service does not start: %v\n%s", err, s.log)
		case <-time.After(200 * time.Microsecond):
		}
	}
	_, rest, _ := strings.Cut(s.log.String(), "address=")
	s.base, _, _ = strings.Cut(rest, " ")
	h.inside = s
}

// historyConfig is the variable that tells a service in a process of its own how it runs.
const historyConfig = "STINT_TEST_HISTORY_CONFIG"

func (h *history) config() string {
	var words []string
	if h.ttl {
		words = append(words, "ttl")
	}
	if h.report {
		words = append(words, "report")
	}
	return strings.Join(words, " ")
}

// configure makes the configuration of a history's service.
func (h *history) configure(conf *serveConfig, words string) {
	conf.Data, conf.Listen, conf.Manual = h.data, "127.0.0.1:0", true
	conf.Checkpoint.Bytes = 1 // one after the other
	historyConfigure(conf, words)
}

func historyConfigure(conf *serveConfig, words string) {
	if strings.Contains(words, "ttl") {
		conf.SourceTTL = duration(3 * time.Minute)
	}
	if strings.Contains(words, "report") {
		conf.Unknown = "report"
	}
}

// historyNow reads the time of a history from its file.
func historyNow(file string) func() int64 {
	return func() int64 {
		text, err := os.ReadFile(file)
		if err != nil {
			panic(err)
		}
		now, err := strconv.ParseInt(string(text), 10, 64)
		if err != nil {
			panic(err)
		}
		return now
	}
}

// tick tells a service in a process of its own what time it is.
func (h *history) tick() error {
	next := h.data + ".next"
	if err := os.WriteFile(next, []byte(strconv.FormatInt(h.now.Load(), 10)), 0o644); err != nil {
		return err
	}
	return os.Rename(next, h.data+".clock")
}

// gone tells whether the service has ended by itself.
func (h *history) gone() bool { return h.inside != nil && h.inside.dead.Load() }

// restart ends the service, somehow, and starts it again.
func (h *history) restart(t *testing.T) {
	how := "stop"
	switch {
	case h.gone():
		how = "crash"
		h.end()
	case h.rng.IntN(3) == 0:
		h.stop(t)
	case h.apart:
		how = "kill"
		kill(h.child)
	default: // from now on any step of the journal may be its last
		h.inside.fail.Store(1 + h.rng.Int64N(30))
		return
	}
	h.counts["restart after "+how]++
	h.calls = append(h.calls, how+", start")
	h.start(t)
}

// stop ends the service as an operator would.
func (h *history) stop(t *testing.T) {
	t.Helper()
	if h.apart {
		_ = h.child.cmd.Process.Signal(syscall.SIGTERM)
		<-h.child.dead
		if code := h.child.cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("SIGTERM ends the service with %d: %s", code, h.child.log)
		}
		return
	}
	h.inside.cancel()
	if err := <-h.inside.ended; err != nil && !h.gone() {
		t.Errorf("the service ends with %v\n%s", err, h.inside.log)
	}
	h.inside = nil
	http.DefaultClient.CloseIdleConnections()
}

// end ends a service that may have ended.
func (h *history) end() {
	if h.child != nil {
		kill(h.child)
	}
	if h.inside != nil {
		h.inside.cancel()
		<-h.inside.ended
		h.inside = nil
	}
	http.DefaultClient.CloseIdleConnections()
}

// send makes a call; ok tells whether it was taken.
func (h *history) send(method, path, media, body string) (text []byte, ok bool) {
	base := ""
	if h.apart {
		base = h.child.base
		if err := h.tick(); err != nil {
			panic(err)
		}
	} else if h.inside != nil {
		base = h.inside.base
	}
	r, err := http.NewRequest(method, base+path, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	if media != "" {
		r.Header.Set("Content-Type", media)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, false
	}
	defer resp.Body.Close()
	if text, err = io.ReadAll(resp.Body); err != nil {
		return nil, false
	}
	if method != "GET" {
		h.calls = append(h.calls, fmt.Sprintf("%d %s %s %s", resp.StatusCode, method, path, strings.TrimSpace(body)))
		h.counts[map[bool]string{true: "taken", false: "refused"}[resp.StatusCode == 200]]++
	}
	return text, resp.StatusCode == 200
}

// cycle has a cycle run, mostly some time after the last.
func (h *history) cycle() {
	if h.rng.IntN(4) > 0 {
		h.now.Add([]int64{1, 20, 60, 60, 60, 90, 600, 7 * 3600}[h.rng.IntN(8)] * 1_000_000)
	}
	h.send("POST", "/v1/cycles", "", "")
}
