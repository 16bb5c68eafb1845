package bucket

import (
	"context"
	"strings"
	"testing"
	"time"
)

// TestObserve has a process know who leads a journal that it does not read, from one leader to the next, past
// checkpoints by which batches go.
func TestObserve(t *testing.T) {
	m := NewMemory()
	first := lead(t, m.Client(nil), "one")
	must(t, first.add("a", "b"))
	observer, err := Open(context.Background(), m.Client(nil), Options{Cluster: "test", Name: "far", Lease: testLease})
	must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- observer.Observe(ctx) }()
	until := func(name string) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); observer.Leader().Name != name; time.Sleep(testLease / 8) {
			if time.Now().After(end) {
				t.Fatalf("%q is known to lead, expected %q; trouble: %s", observer.Leader().Name, name,
					observer.Trouble())
			}
		}
	}
	until("one")
	for range 3 {
		must(t, first.add("c"))
		must(t, first.checkpoint())
	}
	must(t, first.Close())
	second := lead(t, m.Client(nil), "two")
	until("two")
	if l := observer.Leader(); l.Self || l.Term == 0 {
		t.Errorf("the leader is %+v", l)
	}
	stop()
	if err := <-ended; err != context.Canceled {
		t.Error(err)
	}
	second.die()
	must(t, observer.Close())
}

// TestDivisionPrefix holds that a prefix has either one journal or those of divisions.
func TestDivisionPrefix(t *testing.T) {
	open := func(objects, whole Objects) error {
		s, err := Open(context.Background(), objects,
			Options{Cluster: "test", Name: "one", Lease: testLease, Whole: whole})
		if err == nil {
			return s.Close()
		}
		return err
	}
	whole, parts := NewMemory(), NewMemory()
	must(t, open(parts.Client(nil), whole.Client(nil)))
	must(t, open(whole.Client(nil), nil))
	if err := open(parts.Client(nil), whole.Client(nil)); err == nil ||
		!strings.Contains(err.Error(), "which cannot be divided") {
		t.Errorf("beside a journal of all plans: %v", err)
	}
	divided := NewMemory()
	must(t, divided.Client(nil).Create(context.Background(), DivisionPrefix("east")+"/"+clusterKey, []byte("{}")))
	if err := open(divided.Client(nil), nil); err == nil || !strings.Contains(err.Error(), "its plans are divided") {
		t.Errorf("where divisions are: %v", err)
	}
}
