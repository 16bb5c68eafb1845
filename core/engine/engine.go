// Package engine is the one writer around the cycle (SPEC chapter 10). It takes input from many goroutines
// through a bounded queue, makes it durable in a journal before it is acknowledged, runs cycles at their interval or on
// request, and publishes what they decided as views that nobody changes: reading waits for no cycle, and no
// cycle for a reader (API-3).
//
// After a crash it goes on from the newest checkpoint, decides every cycle of the journal behind that again from the
// accepted input, and refuses to start when one comes out otherwise (API-5).
package engine

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/pack"
	"github.com/stintd/stint/core/standing"
)

// Journal keeps records durably; every Store of core/journal is one. An error of Append or Put that IsFull recognises
// leaves it as it was.
type Journal interface {
	// Put keeps the body of an input before its record, and names it. Any goroutine calls it.
	Put(body []byte) (name string, err error)
	Append(kind byte, essential bool, head, body []byte, name string) (seq uint64, err error)
	Undo()
	Sync() error
	Bytes() int64

	// Checkpoint keeps what write writes, which stands for all records up to seq, and drops those that recovery does
	// not need any more. It runs beside the other methods, one call at a time.
	Checkpoint(seq uint64, write func(io.Writer) error) error
}

// Exporter writes the decision log. Cycles come in order, each after its inputs; a cycle that failed is tried again.
type Exporter interface {
	Last() int64 // the last cycle in the log, 0: none
	Cycle(c *decision.Cycle, inputs []*Input) error
}

// Options are what an engine is made of. Journal and Decode are required; a zero limit means the default.
type Options struct {
	Journal  Journal
	IsFull   func(error) bool // tells a full disk from a broken one; nil: no error is
	Exporter Exporter         // nil: no log is written

	// Shared says that several processes have the journal and the log, one of which leads. The log may begin behind the
	// checkpoint, and what it is told after its last cycle is the same whoever tells it: so checkpoints are taken at
	// the end of a cycle. Cycles that were decided by other rules are not decided again (ErrOtherRules).
	Shared bool

	Decode  func(in *Input, dimensions []string) error
	Clock   func() int64 // µs since 1970 UTC; nil: the machine's
	Elapsed func() int64 // µs, of time that no clock is set by; nil: the machine's
	Log     *slog.Logger
	OnCycle func(*decision.Cycle) // called with every cycle that is published; nil: nobody is
	OnTrace func(*Trace)          // called behind OnCycle where this process leads; it must not wait. nil: nobody is

	// GroupWait is how long the first of several inputs waits for others, to be made durable together with them: where
	// the journal is far away (0: not at all, those that have come are taken together).
	GroupWait time.Duration

	IntervalUS        int64 // between cycles; 0: the policy's
	ManualOnly        bool  // cycles run on request alone
	ShrinkGuardMilli  int64 // thousandths of what is held that one input may release (API-6); 0: 500
	SourceTTLUS       int64 // after which a silent source gets no new grants (API-6); 0: never
	QueueMax          int   // inputs waiting (256)
	CycleRequestsMax  int   // requests for a cycle waiting (1,024)
	SourcesMax        int   // (10,000)
	KeysPerSourceMax  int   // idempotency keys remembered of a caller for a kind of input and a source (100,000)
	KeysMax           int   // in all (1,000,000)
	RecentCyclesMax   int   // cycles whose events are kept for changes (1,024)
	RecentRowsMax     int   // rows of them; the last cycle's are always kept (4,000,000)
	BacklogBytesMax   int64 // inputs waiting for the log (512 MiB)
	BacklogCyclesMax  int   // cycles waiting for the log (256)
	BacklogRetryDelay time.Duration
	CheckpointUS      int64 // from the end of a checkpoint to the next one (10 min)
	CheckpointAtEnd   bool  // the engine ends with one
	// of records since the last checkpoint, after which the next one does not wait so long (1 GiB)
	CheckpointBytes int64
	// CheckpointWork is how long a start may take to do again what has been done since the last checkpoint: decoding
	// inputs, taking them into the state, deciding cycles. When that much has come together the next checkpoint does
	// not wait (5 s).
	CheckpointWork time.Duration

	SourcesPerCallerMax int // that belong to one caller who may not do all (a tenth of SourcesMax, at least 1)

	// Work of the engine, a cycle above all, that takes longer is slow: the engine is not ready (1 min). Longer than
	// StuckAfter it is stuck, and the engine not healthy (5 min).
	SlowAfter, StuckAfter time.Duration

	// AcceptReplay has recovery go on with what it decides where the journal recorded something else. OnDifference,
	// when set, is told of every difference that is accepted, so that both results are kept; its error ends the
	// recovery.
	AcceptReplay bool
	OnDifference func(Difference) error

	ForgetAlways bool // names that nothing has any more are forgotten before each cycle: for tests

	// Step, when set, is called at points where a crash would be awkward: for tests.
	Step func(point string)
}

func (o Options) withDefaults() Options {
	o.Clock = cmpFunc(o.Clock, func() int64 { return time.Now().UnixMicro() })
	o.Elapsed = cmpFunc(o.Elapsed, monotonicUS)
	o.SlowAfter, o.StuckAfter = cmp.Or(o.SlowAfter, time.Minute), cmp.Or(o.StuckAfter, 5*time.Minute)
	o.IsFull = cmpFunc(o.IsFull, func(error) bool { return false })
	o.OnCycle = cmpFunc(o.OnCycle, func(*decision.Cycle) {})
	o.Step = cmpFunc(o.Step, func(string) {})
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.ShrinkGuardMilli = cmp.Or(o.ShrinkGuardMilli, 500)
	o.QueueMax = cmp.Or(o.QueueMax, 256)
	o.CycleRequestsMax = cmp.Or(o.CycleRequestsMax, 1024)
	o.SourcesMax = cmp.Or(o.SourcesMax, 10_000)
	o.SourcesPerCallerMax = cmp.Or(o.SourcesPerCallerMax, max(1, o.SourcesMax/10))
	o.KeysPerSourceMax = cmp.Or(o.KeysPerSourceMax, 100_000)
	o.KeysMax = cmp.Or(o.KeysMax, 1_000_000)
	o.RecentCyclesMax = cmp.Or(o.RecentCyclesMax, 1024)
	o.RecentRowsMax = cmp.Or(o.RecentRowsMax, 4_000_000)
	o.BacklogBytesMax = cmp.Or(o.BacklogBytesMax, 512<<20)
	o.BacklogCyclesMax = cmp.Or(o.BacklogCyclesMax, 256)
	o.BacklogRetryDelay = cmp.Or(o.BacklogRetryDelay, time.Second)
	o.CheckpointUS = cmp.Or(o.CheckpointUS, 600*1_000_000)
	o.CheckpointBytes = cmp.Or(o.CheckpointBytes, 1<<30)
	o.CheckpointWork = cmp.Or(o.CheckpointWork, 5*time.Second)
	return o
}

// cmpFunc is cmp.Or for functions.
func cmpFunc[F func() int64 | func(error) bool | func(*decision.Cycle) | func(string)](f, or F) F {
	if f == nil {
		return or
	}
	return f
}

// Engine is a running cluster. Its exported methods may be called from any goroutine, but Recover and Run.
type Engine struct {
	o        Options
	queue    chan *request
	requests chan chan error // for a cycle
	gate     sync.RWMutex    // of the queues; read-locked to put something in
	closed   bool            // nothing is taken from them any more
	stopping chan struct{}   // closed then: those who wait for a cycle wait in vain
	view     atomic.Pointer[View]
	lane     *lane // nil without an exporter
	waiting  waiters

	// Counters for metrics.
	accepted, acceptedRows, acceptedBytes atomic.Int64
	journalBytes                          atomic.Int64
	saved                                 atomic.Pointer[Checkpoint] // the last one; nil: none since the start
	healthy                               atomic.Pointer[string]     // why it is not; nil: it is
	behindUS                              atomic.Int64               // the clock, of what is taken for the time
	watch                                 watch
	following                             atomic.Bool
	// why this process follows no more; nil: it does, or leads
	differs  atomic.Pointer[string]
	compared atomic.Int64 // cycles of a leader that came out the same

	// What follows belongs to the goroutine of Run.
	state   *cluster.State
	runner  cycle.Runner
	out     decision.Cycle
	pending []*Input // accepted since the last cycle
	keys    keys
	sources map[string]*source
	guarded map[string]bool // hosts that the engine closed behind a table that the shrink guard refused

	soughtUS int64 // when no source was found last that may be forgotten

	policy  *PolicyView
	inForce *PolicyView       // in the last cycle
	frozen  *decision.Cycle   // the last cycle
	told    *standing.Columns // what stood when the log was told last; nil: it was not
	whole   bool              // the log is told all that stands after the cycle under way
	recent  []*decision.Cycle
	rows    int // of recent

	recentNames int // how many names only recent needed when names were forgotten last, at least

	lastSeq uint64
	batch   []*request
	// digested: the digest of the last cycle was computed by this process. One that a checkpoint brings is not built
	// upon: an older stint may have recorded a wrong one.
	digested bool
	time     reckoned
	recorded string // digest of the last cycle as its record has it
	differed bool   // recovery came out otherwise than recorded, which was accepted
	resync   int64  // changes up to this cycle are void; 0: none are

	cycleSeq   uint64        // the last cycle's record
	heardUS    int64         // when the latest input of a leader was accepted, by its clock
	saving     chan struct{} // closed when no step of a checkpoint is under way
	prepared   chan struct{} // tells that one has ended
	spare      *pack.Coder   // has memory for the next copy; nil: none is made yet
	savedCycle int64         // of the last copy
	sinceBytes int64         // of records since that
	sinceWork  time.Duration // that a start would have to do again
	sinceUS    int64         // when the last checkpoint ended, by monotonicUS
}

// New makes an engine. Recover comes next, then Run.
func New(o Options) *Engine {
	o = o.withDefaults()
	e := &Engine{
		o: o, queue: make(chan *request, o.QueueMax), requests: make(chan chan error, o.CycleRequestsMax),
		stopping: make(chan struct{}), sources: map[string]*source{}, guarded: map[string]bool{},
		saving: make(chan struct{}), prepared: make(chan struct{}, 1), sinceUS: monotonicUS(),
	}
	close(e.saving)
	e.watch.slow, e.watch.stuck, e.watch.log = o.SlowAfter, o.StuckAfter, o.Log
	e.keys.init(o.KeysPerSourceMax, o.KeysMax)
	e.runner.Clock = monotonicUS
	if o.Exporter != nil {
		e.lane = newLane(o)
	}
	e.view.Store(&View{next: make(chan struct{})})
	return e
}

var processStart = time.Now()

func monotonicUS() int64 { return time.Since(processStart).Microseconds() }

// View is what is known now. It never waits.
func (e *Engine) View() *View { return e.view.Load() }

// QueueDepth is how many inputs wait.
func (e *Engine) QueueDepth() int { return len(e.queue) }

// Stats are counters since the start, and what is kept.
type Stats struct {
	Inputs, Rows, Bytes int64 // taken
	Queue               int
	Journal             int64 // bytes
	LogBehind           int64 // cycles that are not in the decision log yet
	LogLost             bool  // the log will get the missing cycles at the next start only
	Checkpoint          Checkpoint
	Busy                time.Duration // how long the engine has been at what it does now; 0: it waits
	ClockBehind         time.Duration // the clock, of what is taken for the time
	Compared            int64         // cycles of a leader that this process decided to the same digest
	Differs             string        // why it follows no more; "": it does, or leads
}

// Stats gives the engine's counters.
func (e *Engine) Stats() Stats {
	s := Stats{Inputs: e.accepted.Load(), Rows: e.acceptedRows.Load(), Bytes: e.acceptedBytes.Load(),
		Queue: len(e.queue), Journal: e.journalBytes.Load()}
	if e.lane != nil {
		s.LogBehind, s.LogLost = e.lane.behind()
	}
	_, s.Busy, _ = e.watch.running()
	s.Compared = e.compared.Load()
	if why := e.differs.Load(); why != nil {
		s.Differs = *why
	}
	s.ClockBehind = time.Duration(e.behindUS.Load()) * time.Microsecond
	if c := e.saved.Load(); c != nil {
		s.Checkpoint = *c
	}
	return s
}

func (e *Engine) setHealth(why string) {
	if why == "" {
		e.healthy.Store(nil)
		return
	}
	e.healthy.Store(&why)
}

// Run takes input and runs cycles until ctx is done or the journal fails. Then nothing more is acknowledged, waiting
// requests are answered with ErrStopping, and what was decided is flushed.
func (e *Engine) Run(ctx context.Context) error {
	err := e.loop(ctx)
	e.close()
	if e.lane != nil {
		e.lane.stop()
	}
	<-e.saving
	if err == nil {
		e.last()
	}
	if errors.Is(err, errDropped) {
		return nil
	}
	return err
}

// Stopped is closed when the engine takes nothing any more.
func (e *Engine) Stopped() <-chan struct{} { return e.stopping }

// Retire gives back what an engine that has ended needs no more: what it published stays readable.
func (e *Engine) Retire() {
	e.state, e.runner, e.spare = nil, cycle.Runner{}, nil
}

// close takes nothing any more, and refuses what waits.
func (e *Engine) close() {
	e.gate.Lock()
	e.closed = true
	e.gate.Unlock()
	close(e.stopping)
	for {
		select {
		case r := <-e.queue:
			r.answer(Receipt{}, errStopping())
		case done := <-e.requests:
			done <- errStopping()
		default:
			return
		}
	}
}

func (e *Engine) loop(ctx context.Context) error {
	if e.differed {
		if err := e.resume(ctx); err != nil {
			if !errors.Is(err, errDropped) {
				e.setHealth(err.Error())
			}
			return err
		}
	}
	timer := time.NewTimer(e.interval())
	defer timer.Stop()
	for {
		if ctx.Err() != nil { // before input that may always be there
			return nil
		}
		var due <-chan time.Time
		if e.state != nil && !e.o.ManualOnly {
			due = timer.C
		}
		var err error
		select {
		case <-ctx.Done():
			return nil
		case r := <-e.queue:
			had := e.state
			if err = e.take(r); err == nil && had == nil && e.state != nil {
				timer.Reset(e.interval()) // the first policy
			}
		case done := <-e.requests:
			err = e.requested(ctx, done)
			timer.Reset(e.interval())
		case <-e.prepared:
			e.checkpoint()
		case <-due:
			timer.Reset(e.interval()) // from the beginning of the cycle on
			err = e.cycle(ctx)
		}
		if errors.Is(err, errDropped) {
			return err
		}
		if err != nil {
			e.setHealth(err.Error())
			return err
		}
	}
}

func (e *Engine) interval() time.Duration {
	switch {
	case e.o.IntervalUS > 0:
		return time.Duration(e.o.IntervalUS) * time.Microsecond
	case e.state != nil:
		return time.Duration(e.state.Policy.IntervalUS) * time.Microsecond
	}
	return time.Hour
}

// Interval is the time between two cycles that nobody asks for; 0: there is none, since cycles run on request alone, or
// no policy has come yet.
func (e *Engine) Interval() time.Duration {
	v := e.View()
	switch {
	case e.o.ManualOnly || v.Policy == nil:
		return 0
	case e.o.IntervalUS > 0:
		return time.Duration(e.o.IntervalUS) * time.Microsecond
	}
	return time.Duration(v.Policy.Policy.IntervalUS) * time.Microsecond
}

// Cycle has a cycle run now and waits for it. Input accepted before the call is part of it. Requests that wait at the
// same time share one.
func (e *Engine) Cycle() error {
	if e.following.Load() {
		return errFollowing()
	}
	if e.View().Policy == nil {
		return errNoPlan()
	}
	done := make(chan error, 1)
	if err := offer(e, e.requests, done, "requests for a cycle"); err != nil {
		return err
	}
	return <-done
}

// offer puts something into a queue, unless that is full or nobody will empty it any more.
func offer[T any](e *Engine, queue chan T, v T, what string) error {
	e.gate.RLock()
	defer e.gate.RUnlock()
	if e.closed {
		return errStopping()
	}
	select {
	case queue <- v:
		return nil
	default:
		return errBusy("%d %s are waiting", cap(queue), what)
	}
}

// requested runs a cycle for all who wait for one.
func (e *Engine) requested(ctx context.Context, first chan error) error {
	waiting := []chan error{first}
	for len(e.requests) > 0 {
		waiting = append(waiting, <-e.requests)
	}
	err := e.drain() // what was given before the request
	if err == nil {
		err = e.cycle(ctx)
	}
	for _, done := range waiting {
		if err != nil {
			done <- errStopping()
		} else {
			done <- nil
		}
	}
	return err
}

// drain takes the input that waits now.
func (e *Engine) drain() error {
	for n := len(e.queue); n > 0; n -= len(e.batch) {
		if err := e.take(<-e.queue); err != nil {
			return err
		}
	}
	return nil
}

// request is an input on its way to the writer. Of a question about the state, ask is set and the input nil.
type request struct {
	in      *Input
	ask     func(*cluster.State) error
	receipt Receipt
	err     error
	done    sync.WaitGroup
}

func (r *request) answer(receipt Receipt, err error) {
	r.receipt, r.err = receipt, err
	r.done.Done()
}

// Submit gives the engine an input and waits until it is durable, or refused; see Error. The engine keeps in.Body until
// it is in the log, but not in.Table.
func (e *Engine) Submit(in *Input) (r Receipt, err error) {
	if e.following.Load() {
		return r, errFollowing()
	}
	if len(in.Body) > 0 {
		if in.kept, err = e.o.Journal.Put(in.Body); err != nil {
			return r, e.unkept(err)
		}
	}
	if in.Kind == InputPlan {
		return e.submitPlan(in)
	}
	r, err = e.send(&request{in: in})
	e.followHosts(in, err)
	return r, err
}

// unkept is the refusal of an input whose body cannot be kept.
func (e *Engine) unkept(err error) error {
	if e.o.IsFull(err) {
		return refuse(Full, "%v", err)
	}
	return refuse(Unkept, "the body cannot be made durable: %v", err)
}

// Ask lets a function look at the state between two cycles. It must change nothing and keep nothing.
func (e *Engine) Ask(f func(*cluster.State) error) error {
	_, err := e.send(&request{ask: f})
	return err
}

func (e *Engine) send(r *request) (Receipt, error) {
	r.done.Add(1)
	if err := offer(e, e.queue, r, "inputs"); err != nil {
		return Receipt{}, err
	}
	r.done.Wait()
	return r.receipt, r.err
}
