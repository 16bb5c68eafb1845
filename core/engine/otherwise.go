package engine

import (
	"context"
	"fmt"

	"github.com/stintd/stint/core/decision"
)

// Difference is a record of the journal that recovery finds to come out otherwise than it did. Of a cycle both digests
// are named. Of an input, which can only be refused after a cycle that came out otherwise, it is said what it was and
// why.
type Difference struct {
	Record   uint64 `json:"record"`
	Cycle    int64  `json:"cycle"` // of an input the one that would have gone by it
	NowUS    int64  `json:"now"`
	Recorded string `json:"recorded,omitempty"` // digest
	Decided  string `json:"decided,omitempty"`  // digest
	Input    string `json:"input,omitempty"`    // its kind and source; it is left out
	Why      string `json:"why"`
	Known    bool   `json:"known"` // the record is at fault, the decisions are the same
}

// errDiffers begins how a start is refused.
const errDiffers = "cycle %d decides otherwise than before (digest %s, recorded %s): the journal is of another " +
	"version of stint, or damaged; start the version that wrote it, or have this one go on with what it decides, by " +
	"--accept-replay"

// otherwise deals with a cycle that was decided again and has another digest than its record. Without
// Options.AcceptReplay it is an error, save where the fault is known to be the record's.
func (e *Engine) otherwise(seq uint64, r *cycleRecord) error {
	s := &e.out.Summary
	d := Difference{Record: seq, Cycle: r.Cycle, NowUS: r.NowUS, Recorded: r.Digest, Decided: s.Digest,
		Known: e.misnamed(r)}
	switch {
	case d.Known:
		d.Why = "an older stint recorded the digest of the cycle before, because nothing but ownership had changed; " +
			"the decisions are the same"
	case e.following.Load():
		d.Why = "this process, which follows, decided otherwise than the leader"
		if err := e.tell(d); err != nil {
			return err
		}
		return fmt.Errorf("cycle %d has the digest %s here and %s by the leader", r.Cycle, s.Digest, r.Digest)
	case e.o.Shared:
		d.Why = "this process decided otherwise than the one that led"
		if err := e.tell(d); err != nil {
			return err
		}
		return fmt.Errorf("cycle %d has the digest %s here and %s by the process that led: this stint is damaged, or "+
			"of a version that decides otherwise", r.Cycle, s.Digest, r.Digest)
	case !e.o.AcceptReplay:
		return fmt.Errorf(errDiffers, r.Cycle, s.Digest, r.Digest)
	default:
		d.Why = "decided otherwise, and accepted by --accept-replay"
	}
	return e.keep(d)
}

// keep keeps a difference, and goes on.
func (e *Engine) keep(d Difference) error {
	if err := e.tell(d); err != nil {
		return err
	}
	args := []any{"cycle", d.Cycle, "record", d.Record, "recorded", d.Recorded, "decided", d.Decided, "why", d.Why}
	if d.Input != "" {
		args = append(args, "input", d.Input)
	}
	if d.Known {
		e.o.Log.Warn("a record of the journal has a wrong digest", args...)
		return nil
	}
	e.differed = true
	e.o.Log.Error("a record of the journal comes out otherwise", args...)
	return nil
}

// tell has both results kept.
func (e *Engine) tell(d Difference) error {
	if e.o.OnDifference == nil {
		return nil
	}
	if err := e.o.OnDifference(d); err != nil {
		return fmt.Errorf("cycle %d decides otherwise than before, and that cannot be kept: %w", d.Cycle, err)
	}
	return nil
}

// misnamed tells whether a record has the digest of the cycle before it by a fault that stint once had: it took a cycle
// in which ownership alone changed for one in which nothing did.
func (e *Engine) misnamed(r *cycleRecord) bool {
	last, c := e.frozen, &e.out
	return last != nil && r.Revision == c.Summary.Revision && r.Digest == e.recorded &&
		ownersAlone(last) && ownersAlone(c) &&
		decision.Digest(last.StateTables()) == decision.Digest(c.StateTables())
}

func ownersAlone(c *decision.Cycle) bool { return c.EventRows() == len(c.Ownership.Amount) }

// leaveOut passes over an input that the state refuses because an earlier cycle came out otherwise.
func (e *Engine) leaveOut(seq uint64, in *Input, why error) error {
	what := in.Kind
	if in.Source != "" {
		what += " of source " + in.Source
	}
	e.lastSeq = seq
	return e.keep(Difference{Record: seq, Cycle: e.state.Cycle + 1, NowUS: in.AtUS, Input: what, Why: why.Error()})
}

// resume goes on after a replay that was accepted though it came out otherwise. What clients were told before is void,
// so those who follow changes must read holdings: two cycles run at once, and changes up to the first of them are not
// kept. Then a checkpoint stands for all that, so that the next start does not meet the difference again.
func (e *Engine) resume(ctx context.Context) error {
	for range 2 {
		if err := e.cycle(ctx); err != nil {
			return err
		}
	}
	e.sinceUS = monotonicUS() - e.o.CheckpointUS
	e.checkpoint()
	return nil
}
