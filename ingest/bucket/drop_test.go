package bucket

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stintd/stint/core/journal"
)

// TestLateClaim has a follower find that it may claim, and sleep until the number that it claims has been there and was
// dropped.
func TestLateClaim(t *testing.T) {
	m := NewMemory()
	a := lead(t, m.Client(nil), "a")
	must(t, a.add("one"))
	must(t, a.Close()) // it resigns: the next number is free
	var once sync.Once
	var b *book
	f, _, err := join(m.Client(func(_ context.Context, op, key string, done bool) error {
		if op != "create" || done || !strings.HasPrefix(key, recordsPrefix) {
			return nil
		}
		once.Do(func() {
			b = lead(t, m.Client(nil), "b")
			must(t, b.add("first"))
			must(t, b.Close())
			b = lead(t, m.Client(nil), "b again")
			for i := range 4 {
				must(t, b.add(fmt.Sprint("more ", i)))
				must(t, b.checkpoint())
			}
			m.Change(key, func([]byte) []byte { return nil }) // a claim stays; what if it were none
		})
		return nil
	}), "f")
	must(t, err)
	if err := f.Follow(context.Background(), f.visit); !errors.Is(err, journal.ErrDropped) {
		t.Error("a claim of a number that was there before:", err)
	}
	must(t, f.Close())
	must(t, b.add("on"))
	must(t, b.Close())
}

// TestOldBody has a record name a body that was put many checkpoints ago.
func TestOldBody(t *testing.T) {
	m := NewMemory()
	a := lead(t, m.Client(nil), "a")
	name, err := a.Put([]byte("old"))
	must(t, err)
	for i := range 7 {
		must(t, a.add(fmt.Sprint("more ", i)))
		must(t, a.checkpoint())
	}
	_, err = a.Append(1, false, []byte("line "), []byte("old"), name)
	must(t, err)
	must(t, a.Sync())
	must(t, a.Close())
	b, _, err := join(m.Client(nil), "b")
	must(t, err)
	if got := b.lines[len(b.lines)-1]; got != "line old" {
		t.Error(got)
	}
	b.die()
}

// TestOlderCheckpoint damages the newest checkpoint: all that the older one needs is still there.
func TestOlderCheckpoint(t *testing.T) {
	m := NewMemory()
	a := lead(t, m.Client(nil), "a")
	for i := range 9 {
		must(t, a.add(fmt.Sprint("more ", i), "and more"))
		must(t, a.checkpoint())
		must(t, a.add(fmt.Sprint("behind ", i)))
	}
	must(t, a.Close())
	m.Change(a.marks[0].Checkpoint, func(b []byte) []byte {
		b[len(b)-1] ^= 1
		return b
	})
	b, passed, err := join(m.Client(nil), "b")
	must(t, err)
	if len(passed) != 1 || !slices.Equal(b.lines, a.lines) {
		t.Errorf("%q, want %q; passed over %v", b.lines, a.lines, passed)
	}
	b.die()
}

// lagging gives listings without their last keys.
type lagging struct{ Objects }

// List hides what came last.
func (l lagging) List(ctx context.Context, prefix string, visit func(key string) error) error {
	var keys []string
	err := l.Objects.List(ctx, prefix, func(key string) error {
		keys = append(keys, key)
		return nil
	})
	if err != nil {
		return err
	}
	for _, key := range keys[:max(0, len(keys)-2)] {
		if err := visit(key); err != nil {
			return err
		}
	}
	return nil
}

// TestLaggingList has listings lack what came last: a start finds the newest mark all the same, at any number of them.
func TestLaggingList(t *testing.T) {
	m := NewMemory()
	a := lead(t, lagging{m.Client(nil)}, "a")
	for i := range 6 {
		must(t, a.add(fmt.Sprint("more ", i)))
		must(t, a.checkpoint())
		b, passed, err := join(lagging{m.Client(nil)}, "b")
		must(t, errors.Join(append(passed, err)...))
		if b.marks != a.marks || !slices.Equal(b.lines, a.lines) {
			t.Errorf("marks %v, want %v", b.marks, a.marks)
		}
		b.die()
	}
	must(t, a.Close())
}
