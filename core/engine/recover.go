package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/standing"
)

// ErrRefused is in the chain of what Replay gives when an input is refused that an unfinished write may have left.
var ErrRefused = errors.New("refused")

// ErrOtherRules is in the chain of what Replay and Follow give for a cycle that was decided by another version of the
// rules, where several processes share a journal. Nothing of it was decided. A process of this version goes on when a
// checkpoint stands for it.
var ErrOtherRules = errors.New("decided by other rules")

// Replay brings back one record of the journal, behind what Restore brought back: accepted input is applied, a cycle is
// decided again and must come out as recorded. Cycles that the log lacks are written to the log. The goroutine that
// will call Run calls Replay before. Errors: an input that is refused (ErrRefused in the chain), a cycle that is
// decided otherwise, save with Options.AcceptReplay.
func (e *Engine) Replay(seq uint64, kind byte, payload []byte) error {
	e.sinceBytes += int64(len(payload))
	start := time.Now()
	defer func() { e.sinceWork += time.Since(start) }()
	e.watch.begin(fmt.Sprintf("recovery of record %d", seq), 0)
	defer e.watch.end()
	switch kind {
	case recordInput:
		return e.replayInput(seq, payload)
	case recordCycle:
		return e.replayCycle(seq, payload)
	}
	return fmt.Errorf("a record of kind %d, which this stint does not know", kind)
}

func (e *Engine) replayInput(seq uint64, payload []byte) error {
	in, err := decodeInput(payload)
	if err != nil {
		return err
	}
	if in.Kind != InputPlan && e.state == nil {
		return fmt.Errorf("an input of kind %s before any policy", in.Kind)
	}
	if !in.bare() {
		var dimensions []string
		if e.state != nil {
			dimensions = e.state.Policy.Dimensions
		}
		if err := e.o.Decode(in, dimensions); err != nil {
			return fmt.Errorf("an input that was accepted cannot be decoded: %w", err)
		}
	}
	if e.state != nil {
		e.state.Accepted = true // until Recovered
	}
	r, err := e.apply(in)
	if err != nil && e.differed {
		return e.leaveOut(seq, in, err)
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrRefused, in.Kind, err)
	}
	r.Seq, r.Snapshot = seq, fmt.Sprintf("%d", seq)
	e.lastSeq = seq
	e.note(in, r)
	in.Table = nil
	e.pending = append(e.pending, in)
	return nil
}

func (e *Engine) replayCycle(seq uint64, payload []byte) error {
	last, err := e.again(seq, payload)
	if err == nil {
		e.replayed(last)
	}
	return err
}

// again decides a cycle by its record, and gives the now of the cycle before. Error: it comes out otherwise.
func (e *Engine) again(seq uint64, payload []byte) (lastUS int64, err error) {
	var r cycleRecord
	if err := json.Unmarshal(payload, &r); err != nil {
		return 0, fmt.Errorf("record of a cycle: %w", err)
	}
	if e.o.Shared && r.Rules != "" && r.Rules != decision.RulesVersion {
		return 0, fmt.Errorf("%w: cycle %d was decided by rules version %s, and this process decides by version %s",
			ErrOtherRules, r.Cycle, r.Rules, decision.RulesVersion)
	}
	e.cycleSeq, e.whole = seq, r.Whole
	switch {
	case e.state == nil:
		return 0, fmt.Errorf("cycle %d before any policy", r.Cycle)
	case r.Cycle != e.state.Cycle+1 || r.Input != e.lastSeq || r.NowUS < e.state.NowUS:
		return 0, fmt.Errorf("cycle %d after record %d at %d, expected cycle %d after record %d, not before %d",
			r.Cycle, r.Input, r.NowUS, e.state.Cycle+1, e.lastSeq, e.state.NowUS)
	}
	last := e.state.NowUS
	e.decide(r.NowUS)
	if s := &e.out.Summary; s.Digest != r.Digest || s.Revision != r.Revision {
		if err := e.otherwise(seq, &r); err != nil {
			return 0, err
		}
	}
	e.recorded = r.Digest
	return last, nil
}

// replayed keeps what readers may ask of a cycle, and gives the cycle to the log if that lacks it.
func (e *Engine) replayed(lastUS int64) {
	s := &e.out.Summary
	logged := e.lane == nil || s.Cycle <= e.lane.had()
	if !logged && s.KeyframeDue(lastUS) {
		e.runner.Keyframe(&e.out)
	}
	e.frozen, e.inForce = e.out.Freeze(e.frozen, standing.Frozen()), e.policy
	e.remember(e.frozen)
	if e.lane != nil && s.Cycle == e.lane.had() {
		e.pending = nil
		e.knows()
	}
	if !logged {
		e.lane.hold(bytesOf(e.pending))
		e.lane.push(e.logged(lastUS, standing.Keep(e.state, e.told, standing.Frozen())), e.pending)
	}
	e.pending = nil
}

// Recovered ends the replay: what holds now can be read. It gives an error when the log has cycles that the journal has
// not.
func (e *Engine) Recovered() error {
	if e.lane != nil {
		var last int64
		if e.state != nil {
			last = e.state.Cycle
		}
		if logged := e.lane.had(); logged > last {
			return fmt.Errorf("%w: it has cycle %d, the journal ends with cycle %d: they are not of one service",
				errAhead, logged, last)
		}
		e.lane.hold(bytesOf(e.pending))
	}
	e.time = reckoned{latestUS: e.now(), atUS: e.o.Elapsed()} // how long the service was down is not known
	if e.differed {
		e.resync = e.state.Cycle + 1
		e.o.Log.Error("the service goes on with what this start decided, not with what was recorded; "+
			"clients must read their holdings anew", "after_cycle", e.state.Cycle)
	}
	if e.state != nil {
		e.state.Accepted = false
	}
	var held *Holdings
	var stands *Standing
	if e.frozen != nil {
		dict := standing.Frozen()
		held, stands = e.holdings(dict), e.standing(nil, dict)
	}
	e.publishWith(held, stands)
	if e.state != nil {
		e.o.Log.Info("recovered", "cycle", e.state.Cycle, "now", time.UnixMicro(e.state.NowUS).UTC(), "revision",
			e.state.Revision, "inputs", e.lastSeq)
	}
	return nil
}

// Abandon ends an engine that will not run, because its recovery failed.
func (e *Engine) Abandon() {
	if e.lane != nil {
		e.lane.stop()
	}
}
