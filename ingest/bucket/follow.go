package bucket

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stintd/stint/core/journal"
)

// What happens how often in a lease.
const (
	pollsPerLease    = 8
	renewalsPerLease = 2
	leasesSilent     = 2 // without a batch, after which a follower claims to lead
	leasesTried      = 3 // for which a leader tries to write before it gives up
)

// silence is for how long a follower has seen that no batch comes: it asked again and again, and was told each time
// that there is none.
type silence struct{ since, asked time.Time }

// observe notes that there is no batch. A follower that could not ask for a while, because it was stopped or the bucket
// out of reach, begins anew.
func (q *silence) observe(now time.Time, lease time.Duration) time.Duration {
	if q.since.IsZero() || now.Sub(q.asked) > lease/2 {
		q.since = now
	}
	q.asked = now
	return now.Sub(q.since)
}

// Follow reads batches as they come and has their records visited, until this process leads. While the bucket cannot be
// read, or what it has is damaged, it tries again, and Trouble says so.
func (s *Store) Follow(ctx context.Context, visit func(journal.Record) error) error {
	var quiet silence
	wait := leasesSilent*s.o.Lease + rand.N(s.o.Lease/4+1) // so that not all claim at once
	for ctx.Err() == nil {
		var refused error
		err := s.read(ctx, func(r journal.Record) error {
			refused = visit(r)
			return refused
		})
		if refused != nil {
			return err
		}
		switch {
		case err == nil:
			s.trouble(nil)
			quiet = silence{}
			if l := s.leader.Load(); l.Self && l.Term == s.next-1 { // a claim whose answer was lost
				if err := s.confirm(ctx); err != nil {
					return err
				}
				return nil
			}
			continue
		case errors.Is(err, ErrMissing):
			s.trouble(nil)
			if silent := quiet.observe(time.Now(), s.o.Lease); silent < wait && !s.resigned() {
				break
			}
			won, err := s.claim(ctx)
			if won || errors.Is(err, journal.ErrDropped) {
				return err
			}
			if err != nil {
				s.trouble(err)
				quiet = silence{}
			}
			continue
		default:
			quiet = silence{}
			s.trouble(err)
		}
		pause(ctx, s.o.Lease/pollsPerLease)
	}
	return ctx.Err()
}

// Wait reads batches as they come, of records nothing, until there is a newer mark. While the bucket cannot be read it
// tries again, and Trouble says so.
func (s *Store) Wait(ctx context.Context) error {
	known := s.newest.Load()
	for ctx.Err() == nil {
		s.mu.Lock()
		err := s.moreMarks(ctx)
		s.mu.Unlock()
		if err == nil && s.newest.Load() > known {
			return nil
		}
		if err == nil {
			err = s.skip(ctx)
		}
		if errors.Is(err, ErrMissing) {
			err = nil
		}
		s.trouble(err)
		pause(ctx, s.o.Lease/pollsPerLease)
	}
	return ctx.Err()
}

// Observe reads the heads of batches as they come, from the newest mark on, and knows by them who leads.
func (s *Store) Observe(ctx context.Context) error {
	if err := s.findMarks(ctx); err != nil {
		return err
	}
	for begin := true; ctx.Err() == nil; begin = false {
		s.mu.Lock()
		err := s.moreMarks(ctx)
		if m := s.marks[0]; begin || m.Batch > s.next { // those before may be gone
			s.next = max(1, m.Batch)
		}
		s.mu.Unlock()
		if err == nil {
			err = s.skip(ctx)
		}
		if errors.Is(err, ErrMissing) {
			err = nil
		}
		s.trouble(err)
		pause(ctx, s.o.Lease/renewalsPerLease)
	}
	return ctx.Err()
}

// skip reads the heads of the batches that there are.
func (s *Store) skip(ctx context.Context) error {
	for {
		content, err := s.get(ctx, batchKey(s.next), 0)
		if err != nil {
			return err
		}
		h, _, err := decodeBatch(content)
		if err != nil {
			return fmt.Errorf("%s: %w", batchKey(s.next), err)
		}
		s.passed(h, 0)
	}
}

func (s *Store) resigned() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.resigns
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
