package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sort"
	"strings"
	"time"

	"github.com/stintd/stint/core/journal"
)

// marksBodies is for how many marks bodies stay: records that are kept may name those of the last four.
const marksBodies = 4

// Checkpoint uploads a checkpoint and marks it. When a batch of this process stands behind the mark, it still led when
// it wrote that, and what recovery does not need is dropped: checkpoints but the two newest, batches before the older
// of these, save claims, and bodies that no other batch names.
func (s *Store) Checkpoint(seq uint64, write func(io.Writer) error) error {
	m := mark{Cluster: s.id, Record: seq, Checkpoint: fmt.Sprintf("%s%020d-%s", savedPrefix, seq, s.instance)}
	r, w := io.Pipe()
	go func() { _ = w.CloseWithError(journal.WriteCheckpoint(w, seq, write)) }()
	var err error
	m.Bytes, err = s.objects.Upload(s.ctx, m.Checkpoint, r)
	_ = r.CloseWithError(errors.New("the upload has ended")) // never fails
	if err != nil {
		return fmt.Errorf("checkpoint %s: %w", m.Checkpoint, err)
	}
	if err := s.mark(m); err != nil {
		return fmt.Errorf("checkpoint %s: %w", m.Checkpoint, err)
	}
	if err := s.drop(s.ctx); err != nil {
		s.o.Log.Warn("what no start needs any more could not be dropped; it is tried again after the next checkpoint",
			"error", err)
	}
	return nil
}

// mark writes the mark of a checkpoint, and a batch behind it.
func (s *Store) mark(m mark) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := sort.Search(len(s.places), func(i int) bool { return s.places[i].first > m.Record })
	if i == 0 {
		return fmt.Errorf("no batch is known to have record %d", m.Record)
	}
	m.Batch = s.places[i-1].batch
	for {
		if s.deposed != nil {
			return s.deposed
		}
		if m.Mark = s.marks[0].Mark + 1; m.Record <= s.marks[0].Record {
			return fmt.Errorf("there is one of record %d already", s.marks[0].Record)
		}
		err := s.create(s.ctx, markKey(m.Mark), seal(m), time.Now().Add(leasesTried*s.o.Lease))
		if err == nil {
			break
		}
		if !errors.Is(err, journal.ErrDeposed) {
			return err
		}
		if err := s.moreMarks(s.ctx); err != nil { // one who led before has written it since
			return err
		}
	}
	s.addMark(m)
	return s.write(nil, false)
}

// drop removes what recovery does not need.
func (s *Store) drop(ctx context.Context) error {
	s.mu.Lock()
	floor, opened, marks := s.floor(), s.opened, s.marks
	s.mu.Unlock()
	if marks[1].Mark == 0 {
		return nil
	}
	err := s.objects.List(ctx, recordsPrefix, func(key string) error {
		var n uint64
		if _, err := fmt.Sscanf(strings.TrimPrefix(key, recordsPrefix), "%d", &n); err != nil || n >= floor {
			return nil
		}
		claims, err := s.isClaim(ctx, n, opened)
		if err != nil || claims {
			return err
		}
		return s.objects.Delete(ctx, key)
	})
	saved := s.objects.List(ctx, savedPrefix, func(key string) error {
		var seq uint64
		_, err := fmt.Sscanf(strings.TrimPrefix(key, savedPrefix), "%d", &seq)
		if err != nil || key == marks[0].Checkpoint || key == marks[1].Checkpoint || seq > marks[1].Record {
			return nil
		}
		return s.objects.Delete(ctx, key)
	})
	bodies := s.objects.List(ctx, bodiesPrefix, func(key string) error {
		var n uint64
		_, err := fmt.Sscanf(strings.TrimPrefix(key, bodiesPrefix), "%d", &n)
		if err != nil || n+marksBodies > marks[0].Mark {
			return nil
		}
		return s.objects.Delete(ctx, key)
	})
	return errors.Join(err, saved, bodies)
}

// isClaim tells whether a batch is a claim, which stays: a process that led before and was stopped must find it where
// it goes on.
func (s *Store) isClaim(ctx context.Context, n, opened uint64) (bool, error) {
	s.mu.Lock()
	known := s.claims[n]
	s.mu.Unlock()
	if known || n >= opened {
		return known, nil
	}
	content, err := s.get(ctx, batchKey(n), 0)
	if errors.Is(err, ErrMissing) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	h, _, err := decodeBatch(content)
	if err != nil {
		return false, err
	}
	if h.claims() {
		s.mu.Lock()
		s.claims[n] = true
		s.mu.Unlock()
	}
	return h.claims(), nil
}
