package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/stintd/stint/core/engine"
	"github.com/stintd/stint/core/journal"
	"github.com/stintd/stint/export"
)

// ServiceOptions are what a whole service is made of: a server, an engine, a journal and a decision log.
type ServiceOptions struct {
	Dir      string             // has the folders journal and log
	NoLog    bool               // no decision log is written
	Tend     export.TendOptions // how the log is kept small; Done is the service's own
	Engine   engine.Options
	Journal  journal.Options
	Server   Options
	Plan     []byte // the first policy file, given when there is none yet; nil: none
	PlanName string // for messages
	Listener net.Listener
	Cluster  *Cluster // the journal is in a bucket, of several processes; nil: it is in Dir

	Divisions []ServiceDivision // of the plans, each with a journal of its own; none: plans are decided together

	MetricsLevel int // of the consumers that metrics name (NewMetrics)

	// Started, when set, is called with the server before it serves anything.
	Started func(*Server)
	// Ready, when set, is called once input is taken.
	Ready func(*engine.Engine)
}

// SpareProcessors lets three more threads run Go code than there are processors, unless GOMAXPROCS is set: cycles,
// decoding and the decision log keep one busy each, for long. A reader would wait until the runtime interrupts one of
// them, every 10 ms; the system, among threads, shares more finely. It is for processes that do nothing but serve.
func SpareProcessors() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.NumCPU() + 3)
	}
}

// markName names the file with the last acknowledged record of a folder's journal. It is beside the folder journal, not
// in it, so that a copy of that folder while the service runs is not behind the copy of the mark.
const markName = "acknowledged"

// shutdownMax is how long requests under way may take when the service ends.
const shutdownMax = 10 * time.Second

// Run is a service from start to end: it listens, recovers what was acknowledged, and serves until ctx is done. Then it
// finishes the cycle under way, flushes, and returns nil. Errors: another process has the folder, damage, a journal
// that fails.
func Run(ctx context.Context, o ServiceOptions) error {
	if len(o.Divisions) > 0 {
		return runDivided(ctx, o)
	}
	switch {
	case o.NoLog:
		o.Server.Audit = false // there is nothing to which it could be written
	case o.Cluster != nil:
		o.Server.LogDir = filepath.Join(o.Dir, tailFolder)
	default:
		o.Server.LogDir = filepath.Join(o.Dir, "log")
	}
	if o.Server.Metrics == nil {
		o.Server.Metrics = NewMetrics(o.MetricsLevel)
	}
	o.Server.Dir = o.Dir
	if o.Cluster == nil {
		o.Server.JournalBytesMax = o.Journal.BytesMax
	}
	o.Engine.OnCycle = o.Server.Metrics.Cycle
	s, err := New(o.Server)
	if err != nil {
		return errors.Join(err, o.Listener.Close())
	}
	if o.Started != nil {
		o.Started(s)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() {
		err := s.Serve(o.Listener)
		cancel() // a service that nobody reaches ends
		served <- err
	}()
	if o.Cluster != nil {
		err = s.memberUntil(ctx, &o)
	} else {
		err = s.engineUntil(ctx, &o)
	}
	timed, stop := context.WithTimeout(context.Background(), shutdownMax)
	defer stop()
	shut := s.Shutdown(timed)
	if errors.Is(shut, context.DeadlineExceeded) {
		shut = nil // clients that do not end their requests
	}
	return errors.Join(err, shut, <-served)
}

// engineUntil recovers the engine, serves it, and runs it until ctx is done.
func (s *Server) engineUntil(ctx context.Context, o *ServiceOptions) (err error) {
	s.NotReady("recovering")
	if err := CheckFolder(o.Dir); err != nil {
		return err
	}
	if s.o.Division == "" {
		if err := CheckDivisions(o.Dir, nil); err != nil {
			return err
		}
	}
	jo := o.Journal
	jo.Mark = filepath.Join(o.Dir, markName)
	j, err := journal.Open(filepath.Join(o.Dir, "journal"), jo)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	if err := markFolder(o.Dir, s.o.Version); err != nil { // as on a disk that is full
		s.o.Log.Warn("the folder does not say which format it has", "error", err)
	}
	eo := o.Engine
	eo.Journal, eo.Decode, eo.Log, eo.CheckpointAtEnd = j, Decode, s.o.Log, true
	eo.OnDifference = differences(filepath.Join(o.Dir, differencesName)).keep
	eo.IsFull = func(err error) bool { return errors.Is(err, journal.ErrFull) }
	var w *export.Writer
	if !o.NoLog {
		if w, err = export.Open(s.o.LogDir, export.Options{Append: true}); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, w.Close()) }()
		eo.Exporter = decisionLog{w}
	}
	e := engine.New(eo)
	s.starts.Store(e)
	start := time.Now()
	checkpoint, err := s.recover(ctx, e, j)
	if err != nil {
		e.Abandon()
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	if l := j.Loss(); l != nil {
		s.o.Log.Error("the journal ends before its last acknowledged record, and the service goes on without the rest "+
			"(--accept-loss)", "last_record", l.Last, "acknowledged", l.Acknowledged)
	}
	ready := []any{"took", time.Since(start), "records", j.Last(), "checkpoint", checkpoint, "journal_bytes", j.Bytes()}
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	if err := s.firstPlan(e, o); err != nil {
		s.o.Log.Error("the first policy is refused", "error", err)
	}
	s.SetEngine(e)
	s.o.Log.Info("ready", ready...) // whoever reads it is not told that the service recovers
	if w != nil {                   // not before: to compact takes a processor that recovery needs
		defer s.tend(w, o.Tend)()
		defer s.keepAudit(s.o.LogDir, o.Tend.KeepDays)()
	}
	if o.Ready != nil {
		o.Ready(e)
	}
	return <-ended
}

// recover brings an engine to where the journal ends: by the newest checkpoint that is good, then record by record. It
// gives the record of the checkpoint, 0 for none.
func (s *Server) recover(ctx context.Context, e *engine.Engine, j journal.Store) (checkpoint uint64, err error) {
	checkpoint, passed, err := j.Restore(e.Restore)
	if err != nil {
		return 0, err
	}
	for _, why := range passed {
		s.o.Log.Error("a checkpoint is of no use; the start takes longer", "error", why)
	}
	err = j.Replay(func(r journal.Record) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		err := e.Replay(r.Seq, r.Kind, r.Payload)
		if errors.Is(err, engine.ErrRefused) {
			return fmt.Errorf("%w: %w", journal.ErrRefused, err)
		}
		return err
	})
	if c := j.Cut(); c != nil {
		args := []any{"record", c.Record, "file", c.Path, "at_byte", c.At, "cut_bytes", c.Bytes, "why", c.Why}
		if c.Refused {
			s.o.Log.Info("the end of the journal was cut off: an input that was not acknowledged", args...)
		} else {
			s.o.Log.Warn("the end of the journal was cut off: a write that broke off, of which nobody was told, "+
				"or a last record that the disk has damaged", args...)
		}
	}
	if err == nil {
		err = e.Recovered()
	}
	return checkpoint, err
}

// firstPlan gives the policy file of the configuration to an engine that has none.
func (s *Server) firstPlan(e *engine.Engine, o *ServiceOptions) error {
	if o.Plan == nil || e.View().Policy != nil {
		return nil
	}
	p, text, err := s.parsesPlan(o.PlanName, o.Plan)
	if err != nil {
		return err
	}
	_, err = e.Submit(&engine.Input{Kind: engine.InputPlan, Format: "yaml", Body: text, Policy: p,
		Author: "configuration"})
	return err
}

// RunLog shows a decision log alone, that of o.LogDir, until ctx is done. started, when set, is called with the server
// before it serves anything.
func RunLog(ctx context.Context, o Options, ln net.Listener, started func(*Server)) error {
	o.LogAlone, o.Audit = true, false // nothing is written to the log
	s, err := New(o)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	if started != nil {
		started(s)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	timed, stop := context.WithTimeout(context.Background(), shutdownMax)
	defer stop()
	err = s.Shutdown(timed)
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil // clients that do not end their requests
	}
	return errors.Join(err, <-served)
}
