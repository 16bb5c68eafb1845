package engine

import (
	"context"
	"errors"
	"time"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/standing"
)

// retryDelay is how long the record of a cycle waits when there is no room for it.
const retryDelay = time.Second

// errDropped ends a service whose last cycle could not be recorded: it is dropped whole, nothing of it was readable.
var errDropped = errors.New("the cycle is dropped")

// cycle runs a cycle, makes its record durable, and only then publishes what it decided (API-5).
func (e *Engine) cycle(ctx context.Context) error {
	e.watch.begin("cycle", e.state.Cycle+1)
	defer e.watch.end()
	trace := &Trace{Began: time.Now()}
	now := e.clock()
	if err := e.silence(now); err != nil {
		if !e.o.IsFull(err) {
			return err
		}
		e.o.Log.Warn("no room to silence sources", "error", err)
	}
	last := e.state.NowUS
	e.decide(now)
	trace.Decided = time.Now()
	e.o.Step("decided")
	s := &e.out.Summary
	record := encodeCycle(&cycleRecord{
		Cycle: s.Cycle, NowUS: s.NowUS, Input: e.lastSeq, Revision: s.Revision, Digest: s.Digest,
		Rules: decision.RulesVersion, Whole: e.whole,
	})
	for {
		seq, err := e.o.Journal.Append(recordCycle, true, record, nil, "")
		e.cycleSeq = seq
		if err == nil {
			err = e.o.Journal.Sync()
		}
		if err == nil {
			break
		}
		if !e.o.IsFull(err) {
			return err
		}
		e.setHealth("no room for the record of a cycle: " + err.Error())
		e.o.Log.Error("no room for the record of a cycle; waiting for some", "cycle", s.Cycle, "error", err)
		e.watch.end() // it waits for a disk
		select {
		case <-ctx.Done():
			err = errDropped
		case <-time.After(retryDelay):
		}
		e.watch.begin("cycle", s.Cycle)
		if errors.Is(err, errDropped) {
			return err
		}
	}
	e.setHealth("")
	trace.Recorded = time.Now()
	e.o.Step("recorded")
	e.journalBytes.Store(e.o.Journal.Bytes())
	trace.take(e.o.OnTrace, e.pending)
	e.finish(last)
	e.whole = false
	e.o.OnCycle(e.frozen)
	trace.tell(e.o.OnTrace, &e.frozen.Summary)
	e.sinceBytes += int64(len(record))
	e.sinceWork += time.Duration(s.FinishedUS-s.StartedUS) * time.Microsecond
	e.checkpoint()
	e.o.Log.Info("cycle", "cycle", s.Cycle, "revision", s.Revision, "units_granted", s.UnitsGranted,
		"units_released", s.UnitsReleased, "units_reclaimed", s.UnitsReclaimed, "units_held", s.UnitsHeld,
		"units_short", s.UnitsShort, "units_overdue", s.UnitsOverdue,
		"took", time.Duration(s.FinishedUS-s.StartedUS)*time.Microsecond)
	return nil
}

// decide runs one cycle on the state.
func (e *Engine) decide(nowUS int64) {
	start := time.Now()
	e.forgetNames()
	e.o.Step("deciding")
	e.runner.Run(e.state, nowUS, &e.out)
	s := &e.out.Summary
	took := time.Since(start)
	s.StartedUS = start.UnixMicro()
	s.FinishedUS = s.StartedUS + took.Microseconds() // the clock may jump
	s.Inputs, s.ConsumersCycle, s.SharesCycle, s.ShortfallsCycle = nil, 0, 0, 0
	last := e.frozen
	if !e.digested {
		last = nil
	}
	s.Digest, e.digested = e.out.DigestAfter(last), true
}

// finish publishes the last cycle and hands it to the log. lastUS is the now of the cycle before.
func (e *Engine) finish(lastUS int64) {
	s := &e.out.Summary
	old := e.view.Load()
	held, stands := old.Holdings, old.Standing
	if s.UnitsGranted > 0 || s.UnitsReleased > 0 || s.UnitsReclaimed > 0 || s.Restated || s.Relabelled || held == nil {
		held = nil // is made below, after the events can be read
	}
	if held == nil || len(e.pending) > 0 {
		stands = nil
	}
	if s.KeyframeDue(lastUS) {
		e.runner.Keyframe(&e.out)
	}
	dict := standing.Frozen()
	e.frozen, e.inForce = e.out.Freeze(e.frozen, dict), e.policy
	e.remember(e.frozen)
	if held != nil {
		held = &Holdings{Table: held.Table, Cycle: s.Cycle}
	}
	if stands != nil {
		stands = stands.after(s.Cycle)
	}
	e.publishWith(held, stands)
	e.o.Step("published")
	if held == nil {
		held = e.holdings(dict)
	}
	if stands == nil {
		stands = e.standing(old.Standing, dict)
		e.publishWith(held, stands)
	}
	if e.lane != nil {
		e.lane.push(e.logged(lastUS, stands.columns), e.pending)
	}
	e.pending = nil
}

// logged is the last cycle as the log gets it: with what is new of what stands, all of it and a copy of the state where
// that is due. The copy is taken now, before the next input changes the state.
func (e *Engine) logged(lastUS int64, stands *standing.Columns) *decision.Cycle {
	c := *e.frozen // readers of the frozen one need neither, and it stays long
	switch {
	case e.frozen.Summary.StateDue(lastUS):
		c.Standing, c.State = stands.Whole(), e.state.Frame()
	case e.whole:
		c.Standing = stands.Whole()
	default:
		c.Standing = stands.Since(e.told)
	}
	e.told = stands
	return &c
}

// remember keeps the events of a cycle for those who read changes, and forgets the oldest beyond the limits.
func (e *Engine) remember(c *decision.Cycle) {
	events := c.Events()
	e.rows += events.EventRows()
	recent := append(e.recent[:len(e.recent):len(e.recent)], events) // views share the slice: never in place
	for len(recent) > 1 && (len(recent) > e.o.RecentCyclesMax || e.rows > e.o.RecentRowsMax ||
		recent[0].Summary.Cycle <= e.resync) {
		e.rows -= recent[0].EventRows()
		recent = recent[1:]
	}
	e.recent = recent
}
