package engine

import (
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stintd/stint/core/cluster"
)

// lines is a log that may be read while it is written.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

// Write appends.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), s)
}

// TestWatch has a cycle, a question and an input take too long, one after the other. The engine says so in time, names
// what it is, the log has the stacks once, nothing of the cycle can be read, and all is well when it goes on.
func TestWatch(t *testing.T) {
	held := make(chan struct{})
	var log lines
	var at atomic.Value // the point at which the engine is held
	at.Store("")
	r := ready(t, func(r *rig) {
		r.o.SlowAfter, r.o.StuckAfter = 30*time.Millisecond, 90*time.Millisecond
		r.o.Log = slog.New(slog.NewTextHandler(&log, nil))
		r.o.Step = func(point string) {
			if at.CompareAndSwap(point, "") {
				<-held
			}
		}
	})
	r.cycle()
	for _, work := range []struct {
		name string
		do   func()
	}{
		{"cycle 2", func() {
			at.Store("deciding")
			if err := r.Cycle(); err != nil {
				t.Error(err)
			}
		}},
		{"a question about the state", func() { _ = r.Ask(func(*cluster.State) error { <-held; return nil }) }},
		{"an input of kind demand", func() {
			at.Store("accepted")
			r.must(InputDemand, "one", "consumer,allocation,units,ncpus\n/A,a,6,1\n")
		}},
	} {
		if r.Unready() != "" || r.Unhealthy() != "" {
			t.Error("before", work.name, r.Unready(), r.Unhealthy())
		}
		done := make(chan struct{})
		go func() { work.do(); close(done) }()
		wait := func(what string, why func() string) {
			t.Helper()
			for end := time.Now().Add(20 * time.Second); !strings.Contains(why(),
				work.name+" has been running for"); time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("%s: %s: %q", work.name, what, why())
				}
			}
		}
		wait("not said to be not ready", r.Unready)
		wait("not said to be unhealthy", r.Unhealthy)
		for log.count("doing="+strings.ReplaceAll(`"X"`, "X", work.name)) < 2 {
			time.Sleep(time.Millisecond)
		}
		if r.View().Cycle() > 2 || work.name == "cycle 2" && r.View().Cycle() != 1 {
			t.Error("a cycle that does not end can be read:", r.View().Cycle())
		}
		if busy := r.Stats().Busy; busy < 90*time.Millisecond {
			t.Error("busy for", busy)
		}
		held <- struct{}{}
		<-done
		for end := time.Now().Add(20 * time.Second); r.Unready() != "" &&
			time.Now().Before(end); time.Sleep(time.Millisecond) {
		}
	}
	if r.Unready() != "" || r.Unhealthy() != "" || r.View().Cycle() != 2 {
		t.Error("after all:", r.Unready(), r.Unhealthy(), r.View().Cycle())
	}
	for want, n := range map[string]int{"the engine is slow": 3, "the engine is stuck": 3, "goroutine ": 0,
		"the engine goes on": 3} {
		if got := log.count(want); got < max(n, 1) || n > 0 && got != n {
			t.Errorf("%q stands %d times in the log", want, got)
		}
	}
}
