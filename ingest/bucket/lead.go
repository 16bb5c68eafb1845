package bucket

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/stintd/stint/core/journal"
)

// claim writes the next batch as the first of this process, and tells whether it leads then. Error: ErrDropped.
func (s *Store) claim(ctx context.Context) (won bool, err error) {
	s.mu.Lock()
	err = s.kept(ctx)
	h := s.head(s.next)
	s.mu.Unlock()
	if err != nil {
		return false, err
	}
	// It is tried once. A claim that takes effect later is read like any other batch.
	content := encodeBatch(h, nil)
	if err := s.create(ctx, batchKey(h.Batch), content, time.Now()); errors.Is(err, journal.ErrDeposed) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	s.passed(h, int64(len(content)))
	return true, s.confirm(ctx)
}

// head is the head of the next batch, of a term, by this process. The lock is held.
func (s *Store) head(term uint64) batchHead {
	return batchHead{
		Cluster: s.id, Batch: s.next, First: s.seq + 1, Term: term, Mark: s.marks[0].Mark,
		Writer: s.o.Name, Instance: s.instance, Address: s.o.Address,
	}
}

// kept tells whether the next batch may be claimed: not where it was there once, and has been dropped since. Then a
// mark that is newer says so, for it was written before. The lock is held.
func (s *Store) kept(ctx context.Context) error {
	if err := s.moreMarks(ctx); err != nil {
		return err
	}
	if s.next < s.floor() {
		return fmt.Errorf("%w: batch %d comes next here, and those before %d are gone", journal.ErrDropped, s.next,
			s.floor())
	}
	return nil
}

// confirm begins to lead, once a claim of this process stands: no mark that was written before it says that its number
// was used before. From here on whatever this process writes stands behind its claim, and another's claim, which nobody
// ever drops, stands where it must end.
func (s *Store) confirm(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.next - 1
	for {
		err := s.moreMarks(ctx)
		if err == nil {
			break
		}
		s.trouble(err)
		if pause(ctx, s.o.Lease/pollsPerLease); ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if at < s.floor() {
		_ = s.objects.Delete(ctx, batchKey(at)) // nobody reads it
		return fmt.Errorf("%w: batch %d was there before, and those before %d are gone", journal.ErrDropped, at,
			s.floor())
	}
	s.term, s.written = at, time.Now()
	s.renewing.Go(s.renew)
	return nil
}

// create writes an object where none is, and makes sure that it is this one that stands there: an answer may be lost
// though the write took effect. Errors: ErrDeposed when another stands there; others when it is not known until then.
func (s *Store) create(ctx context.Context, key string, content []byte, until time.Time) error {
	for {
		err := s.createOnce(ctx, key, content)
		if err == nil || errors.Is(err, journal.ErrDeposed) {
			return err
		}
		if time.Now().After(until) || ctx.Err() != nil {
			return fmt.Errorf("writing %s: %w", key, err)
		}
		pause(ctx, s.o.Lease/pollsPerLease)
	}
}

func (s *Store) createOnce(ctx context.Context, key string, content []byte) error {
	timed, cancel := s.bounded(ctx, int64(len(content)))
	err := s.objects.Create(timed, key, content)
	cancel()
	if err == nil {
		return nil
	}
	got, read := s.get(ctx, key, int64(len(content)))
	switch {
	case read != nil:
		return err
	case bytes.Equal(got, content):
		return nil
	}
	return fmt.Errorf("%w: %s is another's", journal.ErrDeposed, key)
}

// renew writes batches without records while there are none with records, until this process leads no more.
func (s *Store) renew() {
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.lost:
			return
		case <-time.After(s.o.Lease / pollsPerLease):
		}
		s.mu.Lock()
		if time.Since(s.written) >= s.o.Lease/renewalsPerLease {
			_ = s.write(nil, false) // it is noted
		}
		s.mu.Unlock()
	}
}

// write writes a batch of this process. The lock is held.
func (s *Store) write(records []record, resigns bool) error {
	if s.deposed != nil {
		return s.deposed
	}
	h := s.head(s.term)
	h.Records, h.Resigns = len(records), resigns
	content := encodeBatch(h, records)
	err := s.create(s.ctx, batchKey(h.Batch), content, s.written.Add(leasesTried*s.o.Lease))
	if err != nil {
		if !errors.Is(err, journal.ErrDeposed) {
			err = fmt.Errorf("%w, or may: the bucket could not be written: %w", journal.ErrDeposed, err)
		}
		s.deposed = err
		s.leader.Store(&journal.Leader{})
		close(s.lost)
		return err
	}
	s.written = time.Now()
	s.seq += uint64(len(records))
	s.note(h, int64(len(content)))
	return nil
}

// Lost is closed when this process leads no more.
func (s *Store) Lost() <-chan struct{} { return s.lost }

// Put keeps a body. It is tried for as long as a leader tries to write.
func (s *Store) Put(body []byte) (name string, err error) {
	n := int64(len(body))
	if s.bytes.Load()+n > s.o.BytesMax {
		return "", fmt.Errorf("%w: %s has %d bytes since the last checkpoints, at most %d are allowed",
			journal.ErrFull, s.objects.Name(), s.bytes.Load(), s.o.BytesMax)
	}
	b := &bodyName{mark: s.newest.Load(), digest: sha256.Sum256(body), bytes: uint64(n)}
	if err := s.put(b, body); err != nil {
		return "", err
	}
	return string(b.append(nil)), nil
}

func (s *Store) put(b *bodyName, body []byte) error {
	until := time.Now().Add(leasesTried * s.o.Lease)
	for {
		ctx, cancel := s.bounded(s.ctx, int64(len(body)))
		err := s.objects.Put(ctx, b.key(), body)
		cancel()
		if err == nil {
			return nil
		}
		if errors.Is(err, journal.ErrFull) || time.Now().After(until) || s.ctx.Err() != nil {
			return fmt.Errorf("writing a body: %w", err)
		}
		pause(s.ctx, s.o.Lease/pollsPerLease)
	}
}

// Append adds a record to those that Sync writes. Its body must have been put; where that is two checkpoints ago it is
// put again.
func (s *Store) Append(kind byte, _ bool, head, body []byte, name string) (seq uint64, err error) {
	r := record{kind: kind, head: bytes.Clone(head)}
	if len(body) > 0 {
		if len(name) != bodyNameBytes {
			panic("BUG: a body without a name")
		}
		r.body = readBodyName([]byte(name))
		if newest := s.newest.Load(); r.body.mark+1 < newest {
			r.body.mark = newest
			if err := s.put(r.body, body); err != nil {
				return 0, err
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.term == 0 {
		panic("BUG: a record of a process that does not lead")
	}
	if s.deposed != nil {
		return 0, s.deposed
	}
	s.pending = append(s.pending, r)
	return s.seq + uint64(len(s.pending)), nil
}

// Undo takes the last record back.
func (s *Store) Undo() {
	if len(s.pending) == 0 {
		panic("BUG: no record to take back")
	}
	s.pending = s.pending[:len(s.pending)-1]
}

// Sync writes the records appended so far as one batch.
func (s *Store) Sync() error {
	if len(s.pending) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.write(s.pending, false)
	if err == nil {
		for _, r := range s.pending {
			if r.body != nil {
				s.weigh(int64(r.body.bytes))
			}
		}
	}
	s.pending = s.pending[:0]
	return err
}

// Close ends the store. A process that leads says that it does no more, so that another need not wait.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.term != 0 && s.deposed == nil {
		s.written = time.Now() // it is tried for a while
		if err := s.write(nil, true); err == nil {
			s.deposed = errors.New("it is closed")
		}
	}
	s.mu.Unlock()
	s.cancel()
	s.renewing.Wait()
	return nil
}
