package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/export"
	"github.com/stintd/stint/ingest/bucket"
)

// memoryLog is a log in memory as a server takes it.
type memoryLog struct{ *bucket.Log }

func (l memoryLog) View() LogView { return l.Log.View() }

// tailOf begins a tail behind a log in memory, as a process does that joins.
func tailOf(t *testing.T, m *bucket.Memory) *tail {
	t.Helper()
	l, err := bucket.OpenLog(t.Context(), m.Client(nil))
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{o: Options{Log: slog.New(slog.DiscardHandler)}}
	s.history.dir = "there is one"
	tl, err := s.openTail(memoryLog{l}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

// decide writes cycles to a tail, each eight hours after the one before it, each with an input of its own.
func (t *tail) decide(test *testing.T, first, last int64) {
	test.Helper()
	for n := first; n <= last; n++ {
		in, err := t.w.Input("plan", "", "yaml", fmt.Append(nil, "policy ", n))
		if err != nil {
			test.Fatal(err)
		}
		c := &decision.Cycle{Standing: &decision.Standing{Whole: n == 1}}
		c.Summary = decision.Summary{Cycle: n, NowUS: 1_767_571_200_000_000 + (n-1)*8*3600e6, Revision: n,
			UnitsHeld: 7 * n}
		if err := t.w.Cycle(c, []export.Input{in}); err != nil {
			test.Fatal(err)
		}
	}
}

// holds tells what is wrong with a log that should have the cycles up to one.
func holds(r *export.Reader, last int64) error {
	if got := r.Cycles(); int64(len(got)) != last || got[0] != 1 || got[last-1] != last {
		return fmt.Errorf("cycles %v", got)
	}
	for _, n := range r.Cycles() {
		t, err := r.Table("cycles", n)
		if err != nil {
			return err
		}
		if held := t.Column("units_held").Int[0]; held != 7*n {
			return fmt.Errorf("cycle %d: %d units held", n, held)
		}
		if text, _, err := r.Policy(n); err != nil || string(text) != fmt.Sprint("policy ", n) {
			return fmt.Errorf("cycle %d: policy %q, %w", n, text, err)
		}
		for _, name := range []string{"consumers", "sub_allocations", "grants"} {
			if _, err := r.Table(name, n); err != nil {
				return err
			}
		}
	}
	if left := r.Leftovers(); len(left) > 0 {
		return fmt.Errorf("leftovers %v", left)
	}
	return nil
}

// TestTail has three processes go on with a log one after the other, over three days: each reads all of it, whether a
// cycle lies in the bucket or in its tail, and so does who reads the bucket alone.
func TestTail(t *testing.T) {
	ctx, m := t.Context(), bucket.NewMemory()
	j, err := bucket.Open(ctx, m.Client(nil), bucket.Options{Cluster: "test", Name: "a", Lease: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	a := tailOf(t, m)
	late := tailOf(t, m) // knows of no part that others write
	a.decide(t, 1, 5)
	late.decide(t, 1, 7)
	check := func(what string, tl *tail, last int64) {
		t.Helper()
		err := tl.s.history.reading(last, func(r *export.Reader) error {
			return errors.Join(r.Refresh(), holds(r, last))
		})
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	check("nothing in the bucket", a, 5)
	moves := func(tl *tail) {
		t.Helper()
		if err := tl.move(ctx); err != nil {
			t.Fatal(err)
		}
	}
	moves(a)
	moves(a)
	check("all in the bucket", a, 5)
	if err := errors.Join(a.tidy(ctx), a.tidy(ctx)); err != nil {
		t.Fatal(err)
	}
	check("all in the bucket, the tail trimmed", a, 5)
	b := tailOf(t, m)
	b.decide(t, 6, 6)
	check("half in the bucket", b, 6)
	moves(b)
	moves(late) // another has written five of its seven cycles, and then one more
	check("it came late", late, 7)
	b.leads.Store(true)
	b.decide(t, 7, 8)
	moves(b)
	keys := len(m.Keys("log/"))
	for range 3 {
		b.sealed = b.sealed.Add(-time.Hour)
		if err := b.tidy(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if now := len(m.Keys("log/")); now >= keys {
		t.Errorf("%d objects, %d before the days were sealed", now, keys)
	}
	check("two days are sealed", b, 8)
	check("days were sealed by another", late, 7)
	if days := m.Keys("log/days/"); len(days) != 2 {
		t.Errorf("days %v", days)
	}
	l, err := bucket.OpenLog(ctx, m.Client(nil))
	if err != nil {
		t.Fatal(err)
	}
	r, err := export.OpenFiles(l, l.Name())
	if err == nil {
		err = holds(r, 8)
	}
	if err != nil {
		t.Error("the bucket alone: ", err)
	}
}

// TestTailRefused has a bucket not take a part: nothing is checkpointed, and the next attempt goes on.
func TestTailRefused(t *testing.T) {
	ctx, m := t.Context(), bucket.NewMemory()
	j, err := bucket.Open(ctx, m.Client(nil), bucket.Options{Cluster: "test", Name: "a", Lease: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	refuses := true
	l, err := bucket.OpenLog(ctx, m.Client(func(_ context.Context, op, key string, done bool) error {
		if refuses && !done && op == "create" && strings.HasPrefix(key, "log/") {
			return bucket.ErrDenied
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{o: Options{Log: slog.New(slog.DiscardHandler)}}
	tl, err := s.openTail(memoryLog{l}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tl.decide(t, 1, 2)
	err = loggedJournal{j, tl}.Checkpoint(1, nil)
	if !errors.Is(err, bucket.ErrDenied) || !strings.Contains(err.Error(), "the decision log in the bucket") {
		t.Error("a checkpoint without its log:", err)
	}
	refuses = false
	if err := tl.move(ctx); err != nil || l.View().Last() != 2 {
		t.Error(l.View().Last(), err)
	}
	if got := m.Keys("log/parts/"); !slices.Equal(got, []string{"log/parts/00000000000000000001"}) {
		t.Errorf("parts %v", got)
	}
}
