package bucket

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintd/stint/core/journal"
)

// Options say whose a store is. Name is required; a zero field means the default.
type Options struct {
	Cluster  string        // its name, which must be that of the bucket's prefix
	Name     string        // of this process, for people
	Address  string        // where it takes requests when it leads; "": it does not say
	Lease    time.Duration // (2 s)
	BytesMax int64         // of records and bodies that are kept; past it no body is taken (64 GiB)
	Log      *slog.Logger

	// Whole is the prefix in which that of a division lies (DivisionPrefix): it must have no journal of its own. nil:
	// the journal is no division's.
	Whole Objects
}

// Store is a journal in a bucket. Append, Undo and Sync are for one goroutine, and for a process that leads.
type Store struct {
	o        Options
	objects  Objects
	id       string // of the cluster
	instance string
	ctx      context.Context // of all requests but those of Follow
	cancel   context.CancelFunc
	renewing sync.WaitGroup

	// Of the goroutine that appends.
	pending []record

	newest atomic.Uint64 // mark
	bytes  atomic.Int64
	leader atomic.Pointer[journal.Leader]
	lost   chan struct{} // closed when it leads no more
	why    atomic.Pointer[string]

	mu      sync.Mutex // of what follows
	next    uint64     // batch that comes next
	expect  uint64     // record with which it begins; 0: not known yet
	seq     uint64     // last record that is durable
	term    uint64     // of this process; 0: it does not lead
	deposed error      // why it leads no more
	written time.Time  // when a batch was written last
	resigns bool       // who led has said that it leads no more
	marks   [2]mark    // the newest, and the one before it
	claims  map[uint64]bool
	opened  uint64  // batches from here on were read, so that all claims among them are known
	places  []place // of batches with records since the older mark, thinned out
	weights []int64 // bytes of records and bodies, by mark
}

// place is where a record is.
type place struct{ batch, first uint64 }

// DivisionPrefix is where the journal of a division lies, below the prefix of all.
func DivisionPrefix(name string) string { return divisionsPrefix + name }

// Keys below the prefix.
const (
	divisionsPrefix = "divisions/"

	clusterKey    = "cluster.json"
	recordsPrefix = "records/"
	marksPrefix   = "marks/"
	savedPrefix   = "checkpoints/"
	bodiesPrefix  = "bodies/"
	probePrefix   = "probes/"
)

func batchKey(n uint64) string { return fmt.Sprintf("records/%020d", n) }
func markKey(n uint64) string  { return fmt.Sprintf("marks/%020d", n) }

// identity is what a prefix says of itself.
type identity struct {
	Format  int    `json:"format"`
	Cluster string `json:"cluster"`
	ID      string `json:"id"`
}

// Open opens the journal of a cluster, making it where the prefix is empty. Restore and Replay come next, then Follow.
// Errors name the bucket and what is wrong: credentials, no right to write, a store that does not honour conditional
// writes, another cluster's prefix, a newer format.
func Open(ctx context.Context, objects Objects, o Options) (*Store, error) {
	if o.Lease == 0 {
		o.Lease = 2 * time.Second
	}
	if o.BytesMax == 0 {
		o.BytesMax = 64 << 30
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Store{
		o: o, objects: objects, instance: random(), lost: make(chan struct{}),
		claims: map[uint64]bool{}, next: 1, opened: 1, weights: []int64{0},
	}
	s.leader.Store(&journal.Leader{})
	if err := s.check(ctx); err != nil {
		return nil, fmt.Errorf("cluster %s in %s: %w", o.Cluster, objects.Name(), err)
	}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	return s, nil
}

func random() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// check finds out whether the store does what a cluster needs, and whose the prefix is.
func (s *Store) check(ctx context.Context) error {
	if err := s.probe(ctx); err != nil {
		return err
	}
	if s.o.Whole != nil {
		if _, err := s.o.Whole.Get(ctx, clusterKey); !errors.Is(err, ErrMissing) {
			if err == nil {
				err = errors.New("has a journal of all plans together (" + clusterKey +
					"), which cannot be divided: give another prefix")
			}
			return fmt.Errorf("%s: %w", s.o.Whole.Name(), err)
		}
	}
	content, err := s.objects.Get(ctx, clusterKey)
	if errors.Is(err, ErrMissing) {
		if err := s.empty(ctx); err != nil {
			return err
		}
		content, err = json.Marshal(identity{Format, s.o.Cluster, random()})
		if err == nil {
			err = s.objects.Create(ctx, clusterKey, append(content, '\n'))
		}
		if err == nil || errors.Is(err, ErrExists) {
			content, err = s.objects.Get(ctx, clusterKey) // another process may have been first
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", clusterKey, err)
	}
	var is identity
	if err := json.Unmarshal(content, &is); err != nil || is.ID == "" {
		return fmt.Errorf("%s is damaged, or not of stint", clusterKey)
	}
	switch {
	case is.Format > Format:
		return fmt.Errorf("it has format %d, of a newer stint; this one reads format %d", is.Format, Format)
	case is.Cluster != s.o.Cluster:
		return fmt.Errorf("it belongs to the cluster %q: give that name, or another prefix", is.Cluster)
	}
	s.id = is.ID
	return nil
}

// empty refuses a prefix that has records and does not say whose: nothing may begin anew there.
func (s *Store) empty(ctx context.Context) error {
	err := s.objects.List(ctx, divisionsPrefix, func(key string) error {
		return fmt.Errorf("it has %s: its plans are divided, and the configuration must have its divisions", key)
	})
	if err != nil {
		return err
	}
	for _, prefix := range []string{recordsPrefix, marksPrefix} {
		err := s.objects.List(ctx, prefix, func(key string) error {
			return fmt.Errorf("it has %s and no %s: bring that back from a backup, or give another prefix", key,
				clusterKey)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// probe writes an object twice on the condition that none is there: the second time must fail, and change nothing.
func (s *Store) probe(ctx context.Context) error {
	key := probePrefix + s.instance
	first, second := []byte("first"), []byte("second")
	err := s.objects.Create(ctx, key, first)
	if err != nil && !errors.Is(err, ErrExists) { // the answer to the first attempt may be lost
		return fmt.Errorf("it cannot be written: %w", err)
	}
	err = s.objects.Create(ctx, key, second)
	got, read := s.objects.Get(ctx, key)
	switch {
	case read != nil:
		return fmt.Errorf("it cannot be read: %w", read)
	case err == nil || !bytes.Equal(got, first):
		return errors.New("the store overwrites an object that is to be written only where none is " +
			"(If-None-Match: *); a cluster needs a store that refuses that with 412")
	case !errors.Is(err, ErrExists):
		return fmt.Errorf("a conditional write (If-None-Match: *) to it fails: %w", err)
	}
	if err := s.objects.Delete(ctx, key); err != nil {
		return fmt.Errorf("nothing can be deleted in it: %w", err)
	}
	return nil
}

// Restore offers the checkpoints that the two newest marks name.
func (s *Store) Restore(load func(seq uint64, r io.Reader, bytes int64) error) (seq uint64, passed []error, err error) {
	if err := s.findMarks(s.ctx); err != nil {
		return 0, nil, err
	}
	for _, m := range s.marks {
		if m.Mark == 0 {
			continue
		}
		if err := s.load(m, load); err != nil {
			passed = append(passed, err)
			continue
		}
		s.next, s.opened, s.seq = m.Batch, m.Batch, m.Record
		return m.Record, passed, nil
	}
	if len(passed) > 0 {
		return 0, nil, errors.Join(passed...)
	}
	return 0, nil, nil
}

func (s *Store) load(m mark, load func(seq uint64, r io.Reader, bytes int64) error) error {
	r, bytes, err := s.objects.Open(s.ctx, m.Checkpoint)
	if err != nil {
		return fmt.Errorf("%s: %w", m.Checkpoint, err)
	}
	if bytes != m.Bytes {
		err = fmt.Errorf("%s: damaged: it has %d bytes of %d", m.Checkpoint, bytes, m.Bytes)
	} else {
		err = journal.ReadCheckpoint(r, m.Checkpoint, bytes, m.Record, load)
	}
	return errors.Join(err, r.Close())
}

// findMarks finds the two newest marks. A listing says which there are at least; from there on it asks for the next
// number.
func (s *Store) findMarks(ctx context.Context) error {
	known := uint64(0)
	err := s.objects.List(ctx, marksPrefix, func(key string) error {
		var n uint64
		if _, err := fmt.Sscanf(strings.TrimPrefix(key, marksPrefix), "%d", &n); err == nil && n > known {
			known = n
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.marks = [2]mark{}
	for n := max(known, 2) - 1; ; n++ { // the one before the newest, too
		m, err := s.readMark(ctx, n)
		if errors.Is(err, ErrMissing) && n > known {
			break
		}
		if err != nil {
			return err
		}
		s.marks[0], s.marks[1] = m, s.marks[0]
	}
	s.newest.Store(s.marks[0].Mark)
	return nil
}

// moreMarks reads the marks that others have written since. The lock is held.
func (s *Store) moreMarks(ctx context.Context) error {
	for {
		m, err := s.readMark(ctx, s.marks[0].Mark+1)
		if errors.Is(err, ErrMissing) {
			return nil
		}
		if err != nil {
			return err
		}
		s.addMark(m)
	}
}

// addMark notes a newer mark.
func (s *Store) addMark(m mark) {
	s.marks[0], s.marks[1] = m, s.marks[0]
	s.newest.Store(m.Mark)
	s.weights = append(s.weights, 0)
	if n := len(s.weights) - 2; n > 0 {
		s.weights = append(s.weights[:0], s.weights[n:]...)
	}
	s.weigh(0)
	kept := sort.Search(len(s.places), func(i int) bool { return s.places[i].batch > s.floor() })
	s.places = s.places[max(0, kept-1):]
}

// weigh counts bytes that are kept. The lock is held.
func (s *Store) weigh(n int64) {
	s.weights[len(s.weights)-1] += n
	sum := int64(0)
	for _, w := range s.weights {
		sum += w
	}
	s.bytes.Store(sum)
}

func (s *Store) readMark(ctx context.Context, n uint64) (m mark, err error) {
	content, err := s.get(ctx, markKey(n), 0)
	if err == nil {
		err = unseal(content, &m)
	}
	if err == nil && (m.Mark != n || m.Cluster != s.id) {
		err = errors.New("damaged: it is of another place")
	}
	if err != nil {
		return m, fmt.Errorf("%s: %w", markKey(n), err)
	}
	return m, nil
}

// floor is the batch before which recovery needs nothing: what is older may be gone. The lock is held.
func (s *Store) floor() uint64 { return s.marks[1].Batch }

// Replay visits what the bucket has behind the checkpoint. It asks for several batches at a time: most are without
// records.
func (s *Store) Replay(visit func(journal.Record) error) error {
	ahead := reader{s: s, of: map[uint64]chan fetched{}}
	for {
		content, err := ahead.batch(s.next)
		if err == nil {
			err = s.take(s.ctx, content, visit)
		}
		if errors.Is(err, ErrMissing) {
			if s.next == 1 {
				return s.empty(s.ctx)
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// reader asks for the batches that come next before they are wanted.
type reader struct {
	s  *Store
	of map[uint64]chan fetched
}

type fetched struct {
	content []byte
	err     error
}

// readsAhead is how many batches are asked for at a time.
const readsAhead = 16

// batch gives a batch. What was not there when it was asked for ahead is asked for again.
func (r *reader) batch(n uint64) ([]byte, error) {
	for i := n; i < n+readsAhead; i++ {
		if r.of[i] == nil {
			answer := make(chan fetched, 1)
			r.of[i] = answer
			go func() {
				content, err := r.s.get(r.s.ctx, batchKey(i), 0)
				answer <- fetched{content, err}
			}()
		}
	}
	got := <-r.of[n]
	delete(r.of, n)
	if errors.Is(got.err, ErrMissing) {
		clear(r.of)
		got.content, got.err = r.s.get(r.s.ctx, batchKey(n), 0)
	}
	if got.err != nil {
		return nil, fmt.Errorf("%s: %w", batchKey(n), got.err)
	}
	return got.content, nil
}

// read reads the next batch and visits its records. Error: ErrMissing when there is none.
func (s *Store) read(ctx context.Context, visit func(journal.Record) error) error {
	content, err := s.get(ctx, batchKey(s.next), 0)
	if err != nil {
		return fmt.Errorf("%s: %w", batchKey(s.next), err)
	}
	return s.take(ctx, content, visit)
}

// take visits the records of the next batch.
func (s *Store) take(ctx context.Context, content []byte, visit func(journal.Record) error) error {
	key := batchKey(s.next)
	h, records, err := decodeBatch(content)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	if h.Cluster != s.id || h.Batch != s.next || h.First > s.seq+1 || s.expect != 0 && h.First != s.expect {
		return fmt.Errorf("%s: damaged: it is of another place: batch %d, record %d, expected record %d",
			key, h.Batch, h.First, s.seq+1)
	}
	weight := int64(len(content))
	for i, r := range records {
		seq := h.First + uint64(i)
		if r.body != nil {
			weight += int64(r.body.bytes)
		}
		if seq <= s.seq {
			continue // the checkpoint stands for it
		}
		payload := r.head
		if r.body != nil {
			if payload, err = s.whole(ctx, r); err != nil {
				return fmt.Errorf("%s: record %d: %w", key, seq, err)
			}
		}
		if err := visit(journal.Record{Seq: seq, Kind: r.kind, Payload: payload}); err != nil {
			return fmt.Errorf("%s: record %d: %w", key, seq, err)
		}
		s.mu.Lock()
		s.seq = seq
		s.mu.Unlock()
	}
	s.passed(h, weight)
	if h.Mark > s.newest.Load() {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.moreMarks(ctx)
	}
	return nil
}

// bytesPerSecond is what a store must give at least: what takes longer is asked for again.
const bytesPerSecond = 1 << 20

// bounded is a context of a request for so many bytes.
func (s *Store) bounded(ctx context.Context, bytes int64) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, 2*s.o.Lease+time.Duration(bytes)*time.Second/bytesPerSecond)
}

// get reads an object of about so many bytes.
func (s *Store) get(ctx context.Context, key string, bytes int64) ([]byte, error) {
	ctx, cancel := s.bounded(ctx, bytes)
	defer cancel()
	return s.objects.Get(ctx, key)
}

// whole is a record's payload, its body behind its head.
func (s *Store) whole(ctx context.Context, r record) ([]byte, error) {
	body, err := s.get(ctx, r.body.key(), int64(r.body.bytes))
	if errors.Is(err, ErrMissing) {
		return nil, fmt.Errorf("%s: damaged: there is no such object", r.body.key())
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.body.key(), err)
	}
	if uint64(len(body)) != r.body.bytes || sha256.Sum256(body) != r.body.digest {
		return nil, fmt.Errorf("%s: damaged: it fails its digest", r.body.key())
	}
	return append(r.head, body...), nil
}

// passed notes a batch that was read, or written by this process.
func (s *Store) passed(h batchHead, weight int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(h, weight)
}

// note is passed with the lock held.
func (s *Store) note(h batchHead, weight int64) {
	s.next, s.expect = h.Batch+1, h.First+uint64(h.Records)
	s.resigns = h.Resigns
	s.weigh(weight)
	if h.claims() {
		s.claims[h.Batch] = true
	}
	if h.Records > 0 {
		s.places = append(s.places, place{h.Batch, h.First})
		if len(s.places) > placesMax { // every other one is enough: recovery passes over records that it does not need
			for i := range len(s.places) / 2 {
				s.places[i] = s.places[2*i]
			}
			s.places = s.places[:len(s.places)/2]
		}
	}
	l := &journal.Leader{Name: h.Writer, Address: h.Address, Term: h.Term, Self: h.Instance == s.instance}
	if h.Resigns {
		l = &journal.Leader{Term: h.Term}
	}
	if was := s.leader.Load(); was.Term != l.Term || was.Name != l.Name {
		s.o.Log.Info("leader", "name", l.Name, "term", l.Term, "self", l.Self)
	}
	s.leader.Store(l)
}

const placesMax = 4096

// Last is the number of the last record.
func (s *Store) Last() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seq
}

// Cut is nil: an object is there whole or not at all.
func (s *Store) Cut() *journal.Cut { return nil }

// Bytes is how much the records and bodies since the older of the last two checkpoints take.
func (s *Store) Bytes() int64 { return s.bytes.Load() }

// Leader is who leads, as far as is known.
func (s *Store) Leader() journal.Leader { return *s.leader.Load() }

// Trouble is why the bucket cannot be read just now; "": it can.
func (s *Store) Trouble() string {
	if why := s.why.Load(); why != nil {
		return *why
	}
	return ""
}

func (s *Store) trouble(err error) {
	if err == nil {
		if s.why.Swap(nil) != nil {
			s.o.Log.Info("the bucket can be read again")
		}
		return
	}
	text := err.Error()
	if was := s.why.Swap(&text); was == nil || *was != text {
		s.o.Log.Error("the bucket cannot be read", "error", text)
	}
}
