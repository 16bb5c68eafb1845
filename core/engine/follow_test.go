package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/journal"
	"github.com/stintd/stint/ingest/bucket"
)

// follow has an engine follow until its process leads.
func follow(ctx context.Context, e *Engine, j journal.Shared) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	records, ended := make(chan Fed), make(chan struct{})
	go func() {
		e.Follow(ctx, records)
		close(ended)
	}()
	err := j.Follow(ctx, func(r journal.Record) error {
		done := make(chan error, 1)
		records <- Fed{r.Seq, r.Kind, r.Payload, done}
		return <-done
	})
	if err == nil {
		close(records)
		<-ended
	}
	return err
}

// inBucket has a rig keep its journal in a bucket.
func inBucket(m *bucket.Memory, name string) func(*rig) {
	return func(r *rig) {
		r.open = func() (journal.Store, error) {
			return bucket.Open(context.Background(), m.Client(nil),
				bucket.Options{Cluster: "test", Name: name, Lease: 50 * time.Millisecond})
		}
	}
}

// TestFolderAndBucket gives the same inputs to a journal in a folder and to one in a bucket: the digests are the same,
// over restarts and checkpoints.
func TestFolderAndBucket(t *testing.T) {
	play := func(edit func(*rig)) []string {
		r := ready(t, func(r *rig) {
			r.o.CheckpointBytes = 1
			if edit != nil {
				edit(r)
			}
		})
		r.cycle()
		r.must(InputDemand, "one", "consumer,allocation,units,ncpus\n/A,a,9,1\n/A,c,2,2\n")
		r.cycle()
		r.restart()
		r.must(InputReleases, "", "consumer,allocation,host,units\n/B,b,h1,1\n", func(in *Input) { in.Key = "k" })
		r.cycle()
		r.restart()
		if receipt := r.must(InputReleases, "", "consumer,allocation,host,units\n/B,b,h1,1\n",
			func(in *Input) { in.Key = "k" }); !receipt.Repeated {
			t.Error("an input with the same key counts twice")
		}
		if _, err := r.give(InputDemand, "one", "consumer,allocation,units,ncpus\n/None,a,9,1\n"); err == nil {
			t.Error("demand of an unknown consumer is taken")
		}
		r.must(InputHosts, "", "host,ncpus\nh1,8\nh3,4\n", func(in *Input) { in.AllowShrink = true })
		for range 4 {
			r.cycle()
		}
		r.stop()
		return r.log.digests
	}
	folder, inBucket := play(nil), play(inBucket(bucket.NewMemory(), "one"))
	if len(folder) != 7 || !slices.Equal(folder, inBucket) {
		t.Errorf("folder %q, bucket %q", folder, inBucket)
	}
}

// follower is an engine that follows in a goroutine.
type follower struct {
	*Engine
	store *bucket.Store
	ended chan error // with what Follow of the store gives
	seen  []string   // bodies
}

// isNew tells whether a body was not there when the follower was looked at last.
func (f *follower) isNew(key string) bool { return !slices.Contains(f.seen, key) }

func startFollower(t *testing.T, m *bucket.Memory, o Options) *follower {
	t.Helper()
	s, err := bucket.Open(t.Context(), m.Client(nil),
		bucket.Options{Cluster: "test", Name: "follower", Lease: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return startOn(t, s, o)
}

// startOn starts a follower on a store.
func startOn(t *testing.T, s *bucket.Store, o Options) *follower {
	t.Helper()
	return startLogged(t, s, o, nil)
}

// startLogged is startOn with a log.
func startLogged(t *testing.T, s *bucket.Store, o Options, log Exporter) *follower {
	t.Helper()
	o.Journal, o.Exporter = s, log
	f := &follower{Engine: New(o), store: s, ended: make(chan error, 1)}
	_, _, err := s.Restore(f.Restore)
	if err == nil {
		err = s.Replay(func(r journal.Record) error { return f.Replay(r.Seq, r.Kind, r.Payload) })
	}
	if err == nil {
		err = f.Recovered()
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() { f.ended <- follow(t.Context(), f.Engine, s) }()
	return f
}

// reaches waits until a follower has published a cycle.
func (f *follower) reaches(t *testing.T, cycle int64) {
	t.Helper()
	for until := time.Now().Add(10 * time.Second); f.View().Cycle() < cycle; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("cycle %d is not reached: %d, %s", cycle, f.View().Cycle(), f.Unready())
		}
	}
}

// TestFollower has an engine follow another one, decide the same, answer what reads alone, and take over.
func TestFollower(t *testing.T) {
	m := bucket.NewMemory()
	r := ready(t, inBucket(m, "leader"))
	r.cycle()
	f := startFollower(t, m, r.o)
	for range 3 {
		r.must(InputDemand, "one", "consumer,allocation,units,ncpus\n/A,a,3,1\n")
		r.cycle()
		r.must(InputDemand, "one", "consumer,allocation,units,ncpus\n/A,a,6,1\n")
		r.cycle()
	}
	f.reaches(t, 7)
	if got, want := f.View().Last.Summary.Digest, r.View().Last.Summary.Digest; got != want ||
		f.Stats().Compared != 6 || f.Unready() != "" {
		t.Errorf("digest %s, the leader's %s; %d compared; %s", got, want, f.Stats().Compared, f.Unready())
	}
	if got, want := unitsOf(f.View().Holdings, "one"), r.held("one"); got != want {
		t.Errorf("%d units held at the follower, %d at the leader", got, want)
	}
	var refused *Error
	if _, err := f.Submit(&Input{Kind: InputDemandDelete, Source: "one"}); !errors.As(err, &refused) ||
		refused.Kind != NotLeader {
		t.Error("an input at a follower:", err)
	}
	if err := f.Cycle(); !errors.As(err, &refused) || refused.Kind != NotLeader {
		t.Error("a cycle at a follower:", err)
	}
	asked := int64(0)
	if err := f.Ask(func(s *cluster.State) error { asked = s.Cycle; return nil }); err != nil || asked != 7 {
		t.Error(asked, err)
	}
	r.stop() // it resigns
	if err := <-f.ended; err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	if err := f.Cycle(); err != nil || f.View().Cycle() != 8 {
		t.Error(f.View().Cycle(), err)
	}
	cancel()
	if err := errors.Join(<-ended, f.store.Close()); err != nil {
		t.Error(err)
	}
}

// TestWrongFollower plants a wrong decision in a follower: it is named in the same cycle, never published, and the
// follower does not lead.
func TestWrongFollower(t *testing.T) {
	m := bucket.NewMemory()
	r := ready(t, inBucket(m, "leader"))
	r.cycle()
	o := r.o
	o.Decode = func(in *Input, dimensions []string) error {
		err := decode(in, dimensions)
		if d, ok := in.Table.(*cluster.DemandTable); ok && err == nil && in.Source == "wrong" {
			d.Units[0]++
		}
		return err
	}
	var kept []Difference
	o.OnDifference = func(d Difference) error {
		kept = append(kept, d)
		return nil
	}
	f := startFollower(t, m, o)
	r.must(InputDemand, "wrong", "consumer,allocation,units,ncpus\n/B,w,2,1\n")
	r.cycle()
	r.cycle()
	err := <-f.ended
	if !errors.Is(err, ErrDiffers) || !strings.Contains(err.Error(), "cycle 2") {
		t.Error("the follower ends with", err)
	}
	if f.View().Cycle() != 1 {
		t.Error("cycle", f.View().Cycle(), "is published, which the leader decided otherwise")
	}
	if !strings.Contains(f.Unready(), "decides otherwise than the leader") || f.Unhealthy() != "" ||
		f.Stats().Differs == "" {
		t.Errorf("unready %q, unhealthy %q", f.Unready(), f.Unhealthy())
	}
	if len(kept) != 1 || kept[0].Cycle != 2 || kept[0].Recorded == kept[0].Decided {
		t.Errorf("kept are %+v", kept)
	}
	if err := f.Ask(func(*cluster.State) error { return nil }); err == nil {
		t.Error("questions are answered by a state that is wrong")
	}
}

// TestDamagedRecords flips a bit of what a follower reads next, a batch and then a body: it is named, nothing of it is
// published, and the follower goes on when it is whole again.
func TestDamagedRecords(t *testing.T) {
	m := bucket.NewMemory()
	r := ready(t, inBucket(m, "leader"))
	r.cycle()
	var cut atomic.Bool
	o := r.o
	s, err := bucket.Open(t.Context(), m.Client(func(_ context.Context, op, key string, _ bool) error {
		if cut.Load() && op == "get" {
			return errors.New("no route to host")
		}
		return nil
	}), bucket.Options{Cluster: "test", Name: "follower", Lease: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	f := startOn(t, s, o)
	for round, prefix := range []string{"records/", "bodies/"} {
		cut.Store(true)
		r.must(InputDemand, "one", "consumer,allocation,units,ncpus\n/A,a,"+fmt.Sprint(7+round)+",1\n")
		var key string
		for _, k := range m.Keys(prefix) {
			if prefix == "records/" || f.isNew(k) {
				key = k
			}
		}
		flip := func(b []byte) []byte {
			b[len(b)/2] ^= 4
			return b
		}
		m.Change(key, flip)
		r.cycle()
		cut.Store(false)
		for until := time.Now().Add(10 * time.Second); !strings.Contains(s.Trouble(),
			key); time.Sleep(time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("%s is not named: %q", key, s.Trouble())
			}
		}
		if got := f.View().Cycle(); got != int64(1+round) {
			t.Errorf("cycle %d is published, behind a damaged %s", got, key)
		}
		m.Change(key, flip)
		f.reaches(t, int64(2+round))
		if s.Trouble() != "" || f.Unready() != "" {
			t.Errorf("%q, %q", s.Trouble(), f.Unready())
		}
		f.seen = m.Keys("bodies/")
	}
	r.stop()
	if err := <-f.ended; err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
