package engine

import (
	"cmp"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"
)

// The stages of work that does not end.
const (
	workFine  = iota
	workSlow  // longer than Options.SlowAfter: the engine is not ready, and says so
	workStuck // longer than Options.StuckAfter: it is not healthy, and whoever supervises the process may restart it
)

// stacksBytesMax bounds what the log gets of the stacks of all goroutines.
const stacksBytesMax = 1 << 20

// watch notices work of the engine that does not end: a cycle, an input, a question, a checkpoint. The engine does one
// thing at a time, and cannot tell of it while it does it.
type watch struct {
	slow, stuck time.Duration
	log         *slog.Logger

	mu    sync.Mutex
	what  string
	cycle int64 // that is decided, 0: the work is no cycle
	since time.Time
	told  int // the stage that the log knows of
	timer *time.Timer
}

// begin notes that work begins. cycle is its number, where it is one.
func (w *watch) begin(what string, cycle int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.what, w.cycle, w.since, w.told = what, cycle, time.Now(), workFine
	if w.timer == nil {
		w.timer = time.AfterFunc(w.slow, w.look)
		return
	}
	w.timer.Reset(w.slow)
}

// end notes that the work is done.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.since.IsZero() {
		return // work within it was the last
	}
	if w.told > workFine {
		w.log.Warn("the engine goes on", "after", w.name(), "took", time.Since(w.since))
	}
	w.since = time.Time{}
	w.timer.Stop()
}

// name is what is done, with w.mu held.
func (w *watch) name() string {
	if w.cycle > 0 {
		return fmt.Sprintf("%s %d", w.what, w.cycle)
	}
	return w.what
}

// look tells the log once when the work under way is slow, and once when it is stuck.
func (w *watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.since.IsZero() {
		return
	}
	took := time.Since(w.since)
	switch {
	case took < w.slow:
		w.timer.Reset(w.slow - took)
	case took < w.stuck:
		w.told = workSlow
		w.log.Warn("the engine is slow; the service is not ready until it goes on", "doing", w.name(), "running", took)
		w.timer.Reset(w.stuck - took)
	default:
		w.told = workStuck
		stacks := make([]byte, stacksBytesMax)
		stacks = stacks[:runtime.Stack(stacks, true)]
		w.log.Error("the engine is stuck; nothing that it is deciding is recorded or published, "+
			"and a restart loses nothing that was acknowledged",
			"doing", w.name(), "running", took, "stacks", string(stacks))
	}
}

// running is what is done now and for how long, "" and 0 for nothing, and which stage that is.
func (w *watch) running() (what string, took time.Duration, stage int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.since.IsZero() {
		return "", 0, workFine
	}
	took = time.Since(w.since)
	switch {
	case took >= w.stuck:
		stage = workStuck
	case took >= w.slow:
		stage = workSlow
	}
	return w.name(), took, stage
}

// Unhealthy tells why the engine cannot do its work, "" when it can. Work that is stuck counts.
func (e *Engine) Unhealthy() string {
	if why := e.healthy.Load(); why != nil {
		return *why
	}
	if what, took, stage := e.watch.running(); stage == workStuck {
		return fmt.Sprintf("%s has been running for %s, longer than %s: the engine is stuck", what,
			took.Round(time.Second), e.watch.stuck)
	}
	return ""
}

// Unready tells why no input is taken or no cycle run just now, "" when they are.
func (e *Engine) Unready() string {
	if why := e.differs.Load(); why != nil {
		return "decides otherwise than the leader: " + *why
	}
	what, took, stage := e.watch.running()
	if stage == workSlow {
		what = fmt.Sprintf("%s has been running for %s, longer than %s", what, took.Round(time.Second), e.watch.slow)
		return cmp.Or(e.Unhealthy(), what)
	}
	return e.Unhealthy()
}
