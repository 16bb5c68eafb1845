package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/journal"
	"github.com/stintd/stint/ingest/bucket"
)

// standLog is a log that several engines go on with: it keeps what each cycle was told of what stands.
type standLog struct {
	mu   sync.Mutex
	last int64
	of   map[int64]string
}

// Last is the last cycle.
func (l *standLog) Last() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// Cycle takes a cycle.
func (l *standLog) Cycle(c *decision.Cycle, _ []*Input) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.Summary.Cycle != l.last+1 {
		return fmt.Errorf("cycle %d after %d", c.Summary.Cycle, l.last)
	}
	l.last = c.Summary.Cycle
	tables := c.Standing.Tables()
	rows := 0
	for i := range tables {
		rows += tables[i].Rows
	}
	l.of[l.last] = fmt.Sprintf("whole %t, %d rows, %s", c.Standing.Whole, rows, decision.Digest(tables))
	return nil
}

// testLease is long enough for a busy machine.
const testLease = 500 * time.Millisecond

// reaches waits until a log has a cycle.
func (l *standLog) reaches(t *testing.T, cycle int64) {
	t.Helper()
	for until := time.Now().Add(10 * time.Second); l.Last() < cycle; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("the log does not get cycle %d", cycle)
		}
	}
}

// same compares what two logs were told.
func (l *standLog) same(t *testing.T, other *standLog, first, last int64) {
	t.Helper()
	for n := first; n <= last; n++ {
		if l.of[n] != other.of[n] || l.of[n] == "" {
			t.Errorf("cycle %d: %q, and %q by who led", n, l.of[n], other.of[n])
		}
	}
}

// lastSaved is a cycle up to which a log may end for who restores the last checkpoint: it, or a later one.
func lastSaved(e *Engine, cycle int64) int64 {
	time.Sleep(200 * time.Millisecond) // one may be under way
	return max(cycle, e.Stats().Checkpoint.Cycle)
}

// TestSharedLog has engines go on with one log, which join late, by a checkpoint, or lead: what it is told of a cycle
// is the same by each.
func TestSharedLog(t *testing.T) {
	m := bucket.NewMemory()
	led := &standLog{of: map[int64]string{}}
	var keep atomic.Bool // nothing is dropped that a slow follower has not read yet
	open := func(name string) (*bucket.Store, error) {
		return bucket.Open(context.Background(), m.Client(func(_ context.Context, op, key string, _ bool) error {
			if op == "delete" && keep.Load() && !strings.HasPrefix(key, "probes/") {
				return errors.New("it is to be kept")
			}
			return nil
		}), bucket.Options{Cluster: "test", Name: name, Lease: testLease})
	}
	r := ready(t, func(r *rig) {
		r.open = func() (journal.Store, error) { return open("leader") }
		r.o.Shared, r.o.Exporter, r.o.CheckpointBytes = true, led, 1
	})
	join := func(after int64) (*follower, *standLog) {
		s, err := open("follower")
		if err != nil {
			t.Fatal(err)
		}
		log := &standLog{last: after, of: map[int64]string{}}
		return startLogged(t, s, r.o, log), log
	}
	units := 0
	wants := func(give func(kind, source, text string, edit ...func(*Input)) Receipt) {
		units++
		give(InputDemand, "one", fmt.Sprintf("consumer,allocation,units,ncpus\n/A,a,%d,1\n/A,b%d,1,2\n", 3+units%4,
			units), func(in *Input) { in.AllowShrink = true })
	}
	for r.View().Cycle() < 8 || r.Stats().Checkpoint.Cycle < 4 {
		wants(r.must)
		r.cycle()
		wants(r.must) // waits when a checkpoint may be taken
		time.Sleep(5 * time.Millisecond)
	}
	keep.Store(true)
	now := r.View().Cycle()
	led.reaches(t, now)
	f, log := join(now)
	saved := lastSaved(r.Engine, now-2)
	g, behind := join(saved)
	for range 4 {
		r.cycle()
		wants(r.must)
	}
	r.cycle()
	f.reaches(t, now+5)
	g.reaches(t, now+5)
	for _, l := range []*standLog{led, log, behind} {
		l.reaches(t, now+5)
	}
	log.same(t, led, now+1, now+5)
	behind.same(t, led, saved+1, now+5)
	r.stop()
	leads, other := f, behind
	var err error
	select {
	case err = <-f.ended:
	case err = <-g.ended:
		leads, other, log = g, log, behind
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- leads.Run(ctx) }()
	for range 3 {
		if err := leads.Cycle(); err != nil {
			t.Fatal(err)
		}
	}
	saved = lastSaved(leads.Engine, now+6)
	late, third := join(saved)
	late.reaches(t, now+8)
	for _, l := range []*standLog{log, other, third} {
		l.reaches(t, now+8)
	}
	other.same(t, log, now+6, now+8)
	third.same(t, log, saved+1, now+8)
	if !strings.HasPrefix(log.of[now+6], "whole true") || !strings.HasPrefix(log.of[now+7], "whole false") {
		t.Errorf("who leads tells of its first cycles %q and %q", log.of[now+6], log.of[now+7])
	}
	cancel()
	if err := errors.Join(<-ended, leads.store.Close()); err != nil {
		t.Error(err)
	}
}

// TestOtherRules gives an engine a cycle that was decided by other rules: where several share the journal nothing of it
// is decided.
func TestOtherRules(t *testing.T) {
	m := bucket.NewMemory()
	r := ready(t, inBucket(m, "leader"))
	r.cycle()
	o := r.o
	o.Shared = true
	f := startFollower(t, m, o)
	record := encodeCycle(&cycleRecord{Cycle: 2, NowUS: r.now.Load(), Input: 4, Revision: 1,
		Digest: strings.Repeat("0", 64), Rules: "99"})
	f.reaches(t, 1)
	if err := f.Engine.follow(Fed{Seq: 9, Kind: recordCycle, Payload: record}); !errors.Is(err, ErrOtherRules) ||
		!strings.Contains(err.Error(),
			"cycle 2 was decided by rules version 99, and this process decides by version "+decision.RulesVersion) {
		t.Error(err)
	}
	if f.Unready() != "" || f.View().Cycle() != 1 {
		t.Errorf("%q at cycle %d", f.Unready(), f.View().Cycle())
	}
	r.cycle()
	f.reaches(t, 2)
}
