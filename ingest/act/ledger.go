package act

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/stintd/stint/core/journal"
)

// state is how far a unit has come.
type state string

const (
	granted  state = "granted"  // start may have been called
	started  state = "started"  // start succeeded, or the unit was seen running
	ended    state = "ended"    // it runs no more; the service is to be told
	released state = "released" // the service was told; it counts from cycle Released on
)

// entry is a unit in the ledger.
type entry struct {
	Unit
	State    state      `json:"state"`
	Reclaim  int64      `json:"reclaim,omitempty"`
	Deadline *time.Time `json:"deadline,omitempty"` // of the reclaim, by the service's clock
	Key      string     `json:"key,omitempty"`      // idempotency key under which it is released
	Done     bool       `json:"done,omitempty"`     // the work is finished
	Released int64      `json:"released,omitempty"` // the first cycle without the unit

	// In memory only.
	seen    bool      // a list of this process reported it
	tried   bool      // start was called, perhaps by an earlier process
	stopped bool      // stop was called
	late    bool      // it was counted as late
	missing int       // successive lists without it
	since   time.Time // lists that began later count; local clock
	decided time.Time // when the cycle of the grant ran, by the service's clock
	due     time.Time // when it has to be stopped, by the service's clock; zero: not now
	overrun bool      // the service holds fewer units: it must stop now
	faulty  bool      // it runs twice, or elsewhere: it must stop now
	acked   time.Time // when stop succeeded last, by the service's clock
	again   time.Time // when stop may be called again; local clock
	by      *backoff.ExponentialBackOff
	taken   int64 // the cycle that reclaimed it
}

// record is one record of the ledger, and as a checkpoint all of it.
type record struct {
	Units   []*entry      `json:"units,omitempty"`
	Gone    []string      `json:"gone,omitempty"`
	Cycle   int64         `json:"cycle,omitempty"`
	Version string        `json:"version,omitempty"`
	Skew    time.Duration `json:"skew,omitempty"` // the service's clock minus this machine's
}

// ledger keeps what the actor has begun on disk: a record is durable before its effect is tried. A folder that another
// actor has, or that is damaged, is refused.
type ledger struct {
	j       *journal.Journal
	units   map[string]*entry
	cycle   int64
	version string
	skew    time.Duration
	before  int64 // bytes of records at the last compaction
}

const (
	ledgerSegment = 4 << 20
	ledgerCompact = 4 << 20 // bytes of records after which a checkpoint is made
	ledgerRecord  = 64 << 20
)

// openLedger reads a ledger, making its folder if need be. cut describes an unfinished last write that was removed; ""
// stands for none.
func openLedger(dir string) (l *ledger, cut string, err error) {
	l = &ledger{units: map[string]*entry{}}
	l.j, err = journal.Open(dir, journal.Options{SegmentBytesMax: ledgerSegment, RecordBytesMax: ledgerRecord})
	if err != nil {
		return nil, "", fmt.Errorf("ledger %s: %w", dir, err)
	}
	_, _, err = l.j.Restore(func(_ uint64, r io.Reader, _ int64) error {
		var whole record
		if err := json.NewDecoder(r).Decode(&whole); err != nil {
			return err
		}
		_, err := io.Copy(io.Discard, r)
		l.units = map[string]*entry{}
		l.apply(&whole)
		return err
	})
	if err == nil {
		err = l.j.Replay(func(r journal.Record) error {
			var one record
			if err := json.Unmarshal(r.Payload, &one); err != nil {
				return fmt.Errorf("record %d: %w", r.Seq, err)
			}
			l.apply(&one)
			return nil
		})
	}
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("ledger %s: %w; restore the folder, or move it away: the actor then "+
			"begins from what the cluster lists and the service holds", dir, err), l.j.Close())
	}
	if c := l.j.Cut(); c != nil {
		cut = fmt.Sprintf("%s: byte %d: %s", c.Path, c.At, c.Why)
	}
	for _, e := range l.units {
		e.tried = true
	}
	return l, cut, l.compact()
}

func (l *ledger) apply(r *record) {
	for _, e := range r.Units {
		l.units[e.ID] = e
	}
	for _, id := range r.Gone {
		delete(l.units, id)
	}
	if r.Cycle != 0 {
		l.cycle, l.version = r.Cycle, r.Version
	}
	if r.Skew != 0 {
		l.skew = r.Skew
	}
}

// write makes a record durable. An error leaves the ledger unusable; the actor must end.
func (l *ledger) write(r *record) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if _, err := l.j.Append('a', true, text, nil, ""); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	if err := l.j.Sync(); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	l.apply(r)
	if l.j.Bytes()-l.before < ledgerCompact {
		return nil
	}
	return l.compact()
}

// compact writes all of the ledger as a checkpoint and removes the records that it stands for.
func (l *ledger) compact() error {
	whole := &record{Cycle: l.cycle, Version: l.version, Skew: l.skew}
	for _, e := range l.units {
		whole.Units = append(whole.Units, e)
	}
	err := l.j.Checkpoint(l.j.Last(), func(w io.Writer) error { return json.NewEncoder(w).Encode(whole) })
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	l.before = l.j.Bytes()
	return nil
}

func (l *ledger) close() error { return l.j.Close() }
