package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stintd/stint/core/journal"
)

const testLease = 40 * time.Millisecond

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// book is what a test's process knows: the lines of the records, in order.
type book struct {
	*Store
	lines []string
}

func (b *book) load(seq uint64, r io.Reader, _ int64) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if uint64(len(lines)) != seq {
		return fmt.Errorf("%d lines for %d records", len(lines), seq)
	}
	b.lines = lines
	return nil
}

func (b *book) visit(r journal.Record) error {
	if int(r.Seq) != len(b.lines)+1 {
		return fmt.Errorf("record %d comes after %d", r.Seq, len(b.lines))
	}
	b.lines = append(b.lines, string(r.Payload))
	return nil
}

func (b *book) add(lines ...string) error {
	for _, line := range lines {
		name, err := b.Put([]byte(line))
		if err == nil {
			_, err = b.Append(1, false, []byte("line "), []byte(line), name)
		}
		if err != nil {
			return err
		}
	}
	if err := b.Sync(); err != nil {
		return err
	}
	for _, line := range lines {
		b.lines = append(b.lines, "line "+line)
	}
	return nil
}

func (b *book) checkpoint() error {
	lines := slices.Clone(b.lines)
	return b.Checkpoint(uint64(len(lines)), func(w io.Writer) error {
		_, err := io.WriteString(w, strings.Join(lines, "\n")+"\n")
		return err
	})
}

// join opens a store and reads what is there.
func join(objects Objects, name string) (*book, []error, error) {
	s, err := Open(context.Background(), objects, Options{Cluster: "test", Name: name, Lease: testLease})
	if err != nil {
		return nil, nil, err
	}
	b := &book{Store: s}
	_, passed, err := s.Restore(b.load)
	if err == nil {
		err = s.Replay(b.visit)
	}
	return b, passed, err
}

func lead(t testing.TB, objects Objects, name string) *book {
	t.Helper()
	b, passed, err := join(objects, name)
	must(t, errors.Join(append(passed, err)...))
	must(t, b.Follow(context.Background(), b.visit))
	return b
}

// die ends a store as a kill does.
func (b *book) die() {
	b.cancel()
	b.renewing.Wait()
}

func TestRecordsStay(t *testing.T) {
	m := NewMemory()
	var want []string
	for round := range 6 {
		b := lead(t, m.Client(nil), "one")
		if !slices.Equal(b.lines, want) {
			t.Fatalf("round %d: %q, want %q", round, b.lines, want)
		}
		must(t, b.add(fmt.Sprint("a", round), fmt.Sprint("b", round)))
		_, err := b.Append(1, false, []byte("taken back"), nil, "")
		must(t, err)
		b.Undo()
		if round > 1 {
			must(t, b.checkpoint())
		}
		must(t, b.add(fmt.Sprint("c", round)))
		want = b.lines
		if round%2 == 0 {
			must(t, b.Close())
		} else {
			b.die()
		}
	}
	if n := len(m.Keys(savedPrefix)); n != 2 {
		t.Errorf("%d checkpoints are kept", n)
	}
	for _, key := range m.Keys(bodiesPrefix) {
		if key < fmt.Sprintf("%s%020d", bodiesPrefix, 1) {
			t.Errorf("%s is kept", key)
		}
	}
}

// TestPausedLeader has a leader sleep until everything that it might write has been dropped: it can write nothing.
func TestPausedLeader(t *testing.T) {
	m := NewMemory()
	var asleep sync.RWMutex
	a := lead(t, m.Client(func(context.Context, string, string, bool) error {
		asleep.RLock()
		defer asleep.RUnlock()
		return nil
	}), "a")
	must(t, a.add("one"))
	asleep.Lock()
	b := lead(t, m.Client(nil), "b")
	if got := b.Leader(); !got.Self || got.Name != "b" {
		t.Error("the leader is", got)
	}
	for i := range 5 {
		must(t, b.add(fmt.Sprint("more ", i)))
		must(t, b.checkpoint())
	}
	asleep.Unlock()
	if err := a.add("late"); !errors.Is(err, journal.ErrDeposed) {
		t.Error("a paused leader writes:", err)
	}
	<-a.Lost()
	must(t, a.Close())
	must(t, b.Close())
	c, _, err := join(m.Client(nil), "c")
	must(t, err)
	if !slices.Equal(c.lines, b.lines) {
		t.Errorf("%q, want %q", c.lines, b.lines)
	}
	c.die()
}

// TestPausedFollower has a follower sleep until what it would read next has been dropped: it neither leads nor stays.
func TestPausedFollower(t *testing.T) {
	m := NewMemory()
	a := lead(t, m.Client(nil), "a")
	must(t, a.add("one"))
	f, _, err := join(m.Client(nil), "f")
	must(t, err)
	for i := range 5 {
		must(t, a.add(fmt.Sprint("more ", i)))
		must(t, a.checkpoint())
	}
	if err := f.Follow(context.Background(), f.visit); !errors.Is(err, journal.ErrDropped) {
		t.Error(err)
	}
	must(t, a.add("on"))
	must(t, f.Close())
	must(t, a.Close())
}

// TestLostAnswers has every answer to a write be lost once, before or after the write took effect.
func TestLostAnswers(t *testing.T) {
	for _, done := range []bool{false, true} {
		m, lost := NewMemory(), map[string]bool{}
		var mu sync.Mutex
		b := lead(t, m.Client(func(_ context.Context, op, key string, after bool) error {
			mu.Lock()
			defer mu.Unlock()
			if after != done || op != "create" && op != "put" || lost[key] || strings.HasPrefix(key, probePrefix) ||
				key == clusterKey {
				return nil
			}
			lost[key] = true
			return errors.New("connection reset")
		}), "one")
		must(t, b.add("one"))
		must(t, b.add("two", "three"))
		must(t, b.Close())
		c, _, err := join(m.Client(nil), "two")
		must(t, err)
		if !slices.Equal(c.lines, b.lines) || len(c.lines) != 3 {
			t.Errorf("after %t: %q, want %q", done, c.lines, b.lines)
		}
		c.die()
	}
}

// TestRefused has what is wrong with a bucket be said when it is opened.
func TestRefused(t *testing.T) {
	full := NewMemory()
	must(t, lead(t, full.Client(nil), "one").Close())
	changed := func(key string, change func([]byte) []byte) *Memory {
		m := NewMemory()
		for _, k := range full.Keys("") {
			m.Change(k, func([]byte) []byte { return full.of[k] })
		}
		m.Change(key, change)
		return m
	}
	deny := func(ops ...string) func(context.Context, string, string, bool) error {
		return func(_ context.Context, op, _ string, _ bool) error {
			if slices.Contains(ops, op) {
				return fmt.Errorf("%w: AccessDenied", ErrDenied)
			}
			return nil
		}
	}
	for _, c := range []struct {
		want    string
		objects Objects
	}{
		{"it cannot be written: the store refuses these credentials", full.Client(deny("create", "put", "get"))},
		{"it cannot be written: the store refuses these credentials", full.Client(deny("create", "put"))},
		{"it cannot be read", full.Client(deny("get"))},
		{"nothing can be deleted in it", full.Client(deny("delete"))},
		{`it belongs to the cluster "other"`,
			changed(clusterKey,
				func(b []byte) []byte { return bytes.Replace(b, []byte(`"test"`), []byte(`"other"`), 1) }).Client(nil)},
		{"it has format 2, of a newer stint",
			changed(clusterKey,
				func(b []byte) []byte {
					return bytes.Replace(b, []byte(`"format":1`), []byte(`"format":2`),
						1)
				}).Client(nil)},
		{"damaged, or not of stint", changed(clusterKey, func([]byte) []byte { return []byte("{}") }).Client(nil)},
		{"and no cluster.json", changed(clusterKey, func([]byte) []byte { return nil }).Client(nil)},
		{"If-None-Match", overwrites{full.Client(nil)}},
		{"and no cluster.json", changed(batchKey(1), func([]byte) []byte { return nil }).Client(nil)},
	} {
		b, _, err := join(c.objects, "x")
		if err == nil {
			b.die()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, expected %q", err, c.want)
		}
	}
}

// overwrites is a store that does not know conditions.
type overwrites struct{ Objects }

// Create overwrites.
func (o overwrites) Create(ctx context.Context, key string, content []byte) error {
	return o.Put(ctx, key, content)
}

// TestDamage flips a bit of each object in turn: the start or the next read names it, and what is read is true.
func TestDamage(t *testing.T) {
	m := NewMemory()
	a := lead(t, m.Client(nil), "a")
	for i := range 4 {
		must(t, a.add(fmt.Sprint("line ", i)))
		if i == 1 || i == 2 {
			must(t, a.checkpoint())
		}
	}
	must(t, a.Close())
	for _, key := range m.Keys("") {
		if key == clusterKey {
			continue
		}
		bit := 0
		m.Change(key, func(b []byte) []byte {
			bit = rand.IntN(len(b) * 8)
			b[bit/8] ^= 1 << (bit % 8)
			return b
		})
		b, passed, err := join(m.Client(nil), "b")
		said := fmt.Sprint(err, passed)
		if b == nil || !slices.Equal(b.lines, a.lines) && err == nil {
			t.Errorf("%s, bit %d: %v", key, bit, said)
		}
		if b != nil {
			b.die()
		}
		n, _ := strconv.ParseUint(key[strings.LastIndexByte(key, '/')+1:], 10, 64)
		needed := !strings.HasPrefix(key, recordsPrefix) || n >= a.marks[0].Batch
		if strings.HasPrefix(key, bodiesPrefix) || strings.HasPrefix(key, savedPrefix) && key != a.marks[0].Checkpoint {
			// of bodies some are of no record that is read any more; the older checkpoint is for want of the newer
			needed = false
		}
		if needed && !strings.Contains(said, key) {
			t.Errorf("%s, bit %d: it is not named: %s", key, bit, said)
		}
		m.Change(key, func(b []byte) []byte {
			b[bit/8] ^= 1 << (bit % 8)
			return b
		})
	}
}

// TestSilence has a follower count only what it has seen without a break.
func TestSilence(t *testing.T) {
	var q silence
	at := time.Now()
	for i, c := range []struct{ after, want time.Duration }{
		{0, 0}, {10, 10}, {40, 50}, {60, 0}, {50, 50}, {1000, 0},
	} {
		at = at.Add(c.after)
		if got := q.observe(at, 100); got != c.want {
			t.Errorf("step %d: silent for %d, expected %d", i, got, c.want)
		}
	}
}

// TestRounds has three processes write lines while they are killed, put to sleep and cut off, and while answers are
// lost. Nothing acknowledged may be lost, nothing may be there twice, and all must have the same. STINT_TEST_ROUNDS
// says how often.
func TestRounds(t *testing.T) {
	rounds := 30
	if n, err := strconv.Atoi(os.Getenv("STINT_TEST_ROUNDS")); err == nil {
		rounds = n
	}
	m := NewMemory()
	w := &world{t: t, m: m, acked: map[string]bool{}}
	for i := range w.node {
		w.node[i] = &node{w: w, name: fmt.Sprint("n", i)}
		w.node[i].start()
	}
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	for range rounds {
		n := w.node[random.IntN(len(w.node))]
		switch random.IntN(4) {
		case 0:
			n.kill()
			time.Sleep(testLease)
			n.start()
		case 1:
			n.gate.Lock() // asleep, requests under way too
			time.Sleep(testLease * time.Duration(1+random.IntN(6)))
			n.gate.Unlock()
		case 2:
			n.cut.Store(true)
			time.Sleep(testLease * time.Duration(1+random.IntN(6)))
			n.cut.Store(false)
		case 3:
			w.flaky.Store(true)
			time.Sleep(testLease * 4)
			w.flaky.Store(false)
		}
		time.Sleep(testLease * time.Duration(random.IntN(4)))
	}
	before := w.count()
	for until := time.Now().Add(20 * time.Second); w.count() == before && time.Now().Before(until); {
		time.Sleep(testLease)
	}
	if w.count() == before {
		t.Error("no line is taken any more")
	}
	for _, n := range w.node {
		n.kill()
	}
	end, passed, err := join(m.Client(nil), "end")
	must(t, errors.Join(append(passed, err)...))
	defer end.die()
	have := map[string]int{}
	for _, line := range end.lines {
		have[line]++
	}
	for line := range w.acked {
		if have[line] != 1 {
			t.Errorf("%q was acknowledged and is there %d times", line, have[line])
		}
	}
	for line, n := range have {
		if n != 1 {
			t.Errorf("%q is there %d times", line, n)
		}
	}
	for _, n := range w.node {
		if len(n.seen) > len(end.lines) || !slices.Equal(n.seen, end.lines[:len(n.seen)]) {
			t.Errorf("%s has seen otherwise than what is there", n.name)
		}
	}
	t.Logf("%d lines acknowledged, %d there, %d terms, %d objects", len(w.acked), len(end.lines), len(w.terms),
		len(m.Keys("")))
}

// world are three processes and what they were told.
type world struct {
	t     *testing.T
	m     *Memory
	node  [3]*node
	flaky atomic.Bool
	mu    sync.Mutex
	acked map[string]bool
	terms map[uint64]bool
}

func (w *world) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.acked)
}

type node struct {
	w      *world
	name   string
	gate   sync.RWMutex
	cut    atomic.Bool
	cancel context.CancelFunc
	done   chan struct{}
	seen   []string
	life   int
}

func (n *node) start() {
	ctx, cancel := context.WithCancel(context.Background())
	n.cancel, n.done = cancel, make(chan struct{})
	n.life++
	go n.run(ctx, fmt.Sprintf("%s.%d", n.name, n.life))
}

func (n *node) kill() {
	n.cancel()
	<-n.done
}

// run joins, follows, leads, and begins anew when it leads no more, until it is killed.
func (n *node) run(ctx context.Context, life string) {
	defer close(n.done)
	count := 0
	for ctx.Err() == nil {
		b, _, err := join(n.w.m.Client(n.fault(ctx)), life)
		if err == nil {
			err = b.Follow(ctx, b.visit)
		}
		for err == nil && ctx.Err() == nil {
			n.w.mu.Lock()
			if n.w.terms == nil {
				n.w.terms = map[uint64]bool{}
			}
			n.w.terms[b.Leader().Term] = true
			n.w.mu.Unlock()
			line := fmt.Sprintf("%s-%d", life, count)
			count++
			if err = b.add(line); err == nil {
				n.w.mu.Lock()
				n.w.acked["line "+line] = true
				n.w.mu.Unlock()
			}
			if err == nil && count%20 == 0 {
				_ = b.checkpoint() // it may be cut off
			}
			time.Sleep(testLease / 20)
		}
		if b != nil {
			b.die()
			n.seen = b.lines
		} else {
			time.Sleep(testLease / 4)
		}
	}
}

// fault fails requests of a process that is cut off or killed, and any third one while the network is bad.
func (n *node) fault(life context.Context) func(ctx context.Context, op, key string, done bool) error {
	return func(ctx context.Context, _, _ string, _ bool) error {
		n.gate.RLock() // it waits while the process sleeps
		cut := n.cut.Load()
		n.gate.RUnlock()
		switch {
		case life.Err() != nil:
			return errors.New("killed")
		case ctx.Err() != nil:
			return ctx.Err()
		case cut:
			return errors.New("no route to host")
		case n.w.flaky.Load() && rand.IntN(3) == 0:
			return errors.New("connection reset")
		}
		return nil
	}
}
