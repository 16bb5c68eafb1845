// Package act puts the decisions of a stint service in force in a cluster: it follows the changes of one source, starts
// what is granted, stops what is reclaimed before the deadline, and gives back what ended. The cluster is reached
// through three hooks (Hooks).
//
// The actor is level-triggered: after each answer of the service and after each list of the cluster it compares what
// the service holds, what its ledger has, and what runs, and acts on the differences. So a lost answer, a crash or a
// repeated call changes nothing but the time at which the difference is gone. Invariants:
//   - A unit is in the ledger, on disk, before its start is tried. A start whose result is not known is tried again
//     only after a list, begun later, that lacks the unit.
//   - A unit counts as ended only when a list that began after the last call for it lacks it.
//   - An ended unit is given back under an idempotency key that is on disk before the call.
//   - Deadlines are compared with the service's time.
package act

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/stintd/stint/ingest/client"
)

// Options configure an actor.
type Options struct {
	Source   string        // of the demand; one actor acts for a source
	Ledger   string        // folder of the ledger; one actor at a time may have it
	Every    time.Duration // between two lists (2 s)
	Notice   time.Duration // how long before its deadline a unit is stopped; 0: as soon as it is reclaimed
	Force    time.Duration // how long before its deadline a stop is told to kill (5 s)
	Parallel int           // hooks at a time, of start and of stop each (4)

	Hosts       bool // push the hosts that list reports
	AllowShrink bool // push demand and hosts although the shrink guard refuses them
	KeepOrphans bool // report running units that the service does not hold, do not stop them

	Log     *slog.Logger
	Metrics prometheus.Registerer // nil: none
}

func (o Options) withDefaults() Options {
	if o.Every == 0 {
		o.Every = 2 * time.Second
	}
	if o.Force == 0 {
		o.Force = 5 * time.Second
	}
	if o.Parallel == 0 {
		o.Parallel = 4
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

const (
	tick         = 100 * time.Millisecond // between two looks at what has become due
	changesWait  = 30 * time.Second       // of the long poll
	retryLeast   = 500 * time.Millisecond
	retryMost    = 30 * time.Second
	stopRetryMax = 5 * time.Second
	showEvery    = 500 * time.Millisecond
	callTime     = time.Minute // of a call of the service that is no long poll
)

// actor is owned by the goroutine of Run; others send functions to queue.
type actor struct {
	o      Options
	c      *client.Client
	hooks  Hooks
	log    *slog.Logger
	m      *metrics
	led    *ledger
	clock  clock
	ctx    context.Context
	queue  chan func()
	wait   sync.WaitGroup
	failed error // ends the actor

	// What the service holds, after which cycle.
	held    map[place]*holding
	decided map[int64]time.Time // when the last cycles ran
	begun   bool                // held is known
	since   int64               // the cycle after which changes are read next
	dirty   bool                // ledger, holdings or list changed since they were compared

	// What the cluster reports.
	list     *Listing
	running  map[string][]Unit
	orphans  map[string]*entry // running units that the ledger lacks; missing counts the lists
	began    time.Time         // the last list; local clock
	listing  bool
	listAt   time.Time // when the next list is due
	listFail *backoff.ExponentialBackOff

	work map[workKey]*attempt
	slot map[string]chan struct{}

	demand demandState
	shown  time.Time // when the figures were brought up to date

	runs      time.Time // since then
	effects   effects
	lates     int64 // units that ran past their deadlines
	reporting bool
	reported  time.Time

	giving bool      // a release is under way
	giveAt time.Time // not before
	giveBy *backoff.ExponentialBackOff
}

// workKey names what hooks are called for one at a time: starts and stops of an allocation.
type workKey struct{ consumer, allocation string }

// attempt is the work on an allocation.
type attempt struct {
	action string             // under way, start or stop; "": none
	cancel context.CancelFunc // of that
	next   time.Time          // start is not called before
	by     *backoff.ExponentialBackOff
}

// Run acts until ctx is done, which gives nil. What runs goes on then. Errors: a ledger that is damaged, or that
// another process has; a disk that fails.
func Run(ctx context.Context, c *client.Client, hooks Hooks, o Options) error {
	o = o.withDefaults()
	led, cut, err := openLedger(o.Ledger)
	if err != nil {
		return err
	}
	if cut != "" {
		o.Log.Warn("the ledger ended in an unfinished record, which had no effect and is removed", "at", cut)
	}
	own := *c // its own clock
	ctx, cancel := context.WithCancel(ctx)
	a := &actor{
		o: o, c: &own, hooks: hooks, log: o.Log, m: newMetrics(o.Metrics), led: led, ctx: ctx,
		queue: make(chan func()), held: map[place]*holding{}, decided: map[int64]time.Time{},
		running: map[string][]Unit{}, orphans: map[string]*entry{}, work: map[workKey]*attempt{},
		slot: map[string]chan struct{}{
			"start": make(chan struct{}, o.Parallel), "stop": make(chan struct{}, o.Parallel),
		},
		listFail: newBackOff(retryMost), giveBy: newBackOff(retryMost),
		demand: demandState{wanted: map[subKey]int64{}, accepted: map[subKey]map[string]any{},
			by: newBackOff(retryMost)},
		runs: time.Now(),
	}
	a.clock.skew = led.skew
	a.c.Clock, a.c.TriesMax = a.clock.hear, 1
	err = a.loop()
	cancel()
	a.wait.Wait()
	return errors.Join(err, led.close())
}

func newBackOff(most time.Duration) *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = retryLeast, most
	b.Reset()
	return b
}

// loop is the actor's goroutine.
func (a *actor) loop() error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for a.failed == nil {
		a.step()
		select {
		case <-a.ctx.Done():
			return nil
		case f := <-a.queue:
			f()
		case <-ticker.C:
		}
		for more := true; more; {
			select {
			case f := <-a.queue:
				f()
			default:
				more = false
			}
		}
	}
	return a.failed
}

// spawn runs a function beside the actor. What it returns runs in the actor's goroutine.
func (a *actor) spawn(f func() func()) {
	a.wait.Add(1)
	go func() {
		defer a.wait.Done()
		if then := f(); then != nil {
			a.do(then)
		}
	}()
}

// do runs a function in the actor's goroutine and waits for it. It reports whether it ran.
func (a *actor) do(f func()) bool {
	done := make(chan struct{})
	select {
	case a.queue <- func() { f(); close(done) }:
	case <-a.ctx.Done():
		return false
	}
	select {
	case <-done:
		return true
	case <-a.ctx.Done():
		return false
	}
}

// record writes to the ledger. An error ends the actor: without a ledger it must not act.
func (a *actor) record(r *record) bool {
	if len(r.Units) == 0 && len(r.Gone) == 0 && r.Cycle == 0 && r.Skew == 0 {
		return true
	}
	if a.failed == nil {
		a.failed = a.led.write(r)
	}
	a.dirty = true
	return a.failed == nil
}

// step does what is due.
func (a *actor) step() {
	a.lists()
	if a.list == nil {
		return // nothing is done before the cluster was seen
	}
	if a.begun && a.dirty {
		a.dirty, a.demand.changed = false, true
		a.match()
	}
	a.stops()
	if a.begun {
		a.starts()
		a.releases()
		a.pushes()
		a.reports()
	}
	if time.Since(a.shown) >= showEvery {
		a.shown = time.Now()
		a.m.observe(a)
	}
}

// match brings the ledger up to what the service holds.
func (a *actor) match() {
	var orphans []Unit
	for _, e := range a.orphans {
		orphans = append(orphans, e.Unit)
	}
	m := match(a.led.units, a.held, a.since, orphans, newID)
	r := &record{Units: append(append(m.create, m.adopt...), m.changed...)}
	now := a.clock.now()
	for _, e := range append(m.create, m.adopt...) {
		var known bool
		if e.decided, known = a.decided[e.Cycle]; !known {
			e.decided = now
		}
	}
	for _, e := range m.adopt {
		a.log.Info("a running unit that the ledger lacked is adopted", unitAttrs(&e.Unit)...)
		delete(a.orphans, e.ID)
	}
	for _, e := range m.gone {
		r.Gone = append(r.Gone, e.ID)
	}
	a.record(r)
}

// newID is a name that no unit had before, so that a call for an old unit never meets a new one.
func newID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return "u" + hex.EncodeToString(b[:])
}

func unitAttrs(u *Unit) []any {
	attrs := []any{"unit", u.ID, "consumer", u.Consumer, "allocation", u.Allocation, "host", u.Host}
	if u.Sub != "" {
		attrs = append(attrs, "sub", u.Sub)
	}
	return attrs
}

// clock is the service's time, as of its last answer and what has passed since by this machine's steady clock.
type clock struct {
	mu   sync.Mutex
	when time.Time // local, with its steady part; zero: the service was not heard
	said time.Time
	skew time.Duration
}

func (c *clock) hear(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.when, c.said = time.Now(), now
	c.skew = now.Sub(c.when.Round(0))
}

// now is the service's time. Before its first answer it is this machine's, corrected by the difference that the ledger
// has.
func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.when.IsZero() {
		return time.Now().Round(0).Add(c.skew)
	}
	return c.said.Add(time.Since(c.when))
}

// at is the service's time at a moment of the local clock.
func (c *clock) at(local time.Time) time.Time { return c.now().Add(-time.Since(local)) }

func (c *clock) difference() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.skew
}

// call bounds a call of the service that is no long poll.
func (a *actor) call() (context.Context, context.CancelFunc) {
	return context.WithTimeout(a.ctx, callTime)
}

// later is when a failed action is tried again.
func later(b *backoff.ExponentialBackOff) time.Time { return time.Now().Add(b.NextBackOff()) }

// describe names the first units of an error.
func describe(units []Unit) string {
	text := ""
	for i, u := range units {
		if i == 3 {
			return fmt.Sprintf("%s and %d more", text, len(units)-i)
		}
		if i > 0 {
			text += ", "
		}
		text += u.ID + " on " + u.Host
	}
	return text
}
