// Package journal keeps records on disk in the order in which they were appended. What Sync has
// confirmed survives a kill, a crash and a loss of power; what was being written then is either
// there whole or not at all. The service's engine keeps its accepted input and its cycles in one
// (SPEC API-1, API-5).
//
// A journal is a folder of segments, each a file named after its first record. A segment begins with
// a header (magic, format version, number of the first record, a salt), then come the records: a
// header of recordHeaderBytes and the payload, both with a CRC-32C. A record's header also says up to
// which number records were durable when it was written. That tells what an unfinished write left
// behind, which nobody was promised, from damage to what was acknowledged: the first is cut off when
// the journal is opened, the second is an error.
package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
)

// Version is the format of the files. A journal of another version is refused.
const Version = 1

// Options bound a journal. A zero field means the default.
type Options struct {
	SegmentBytesMax int64 // a segment is closed when it is longer (256 MiB)
	RecordBytesMax  int64 // payload of one record (1 GiB)
	BytesMax        int64 // all segments together; past it only essential records are taken (64 GiB)
	ReserveBytes    int64 // kept free behind the last record for essential ones (1 MiB)

	// Mark is the file with the number and digest of the last acknowledged record, outside the journal's folder; "" for
	// none. Replay makes a missing file, and refuses a journal that ends before that record, unless it ends with the
	// record that AcceptLoss names.
	Mark       string
	AcceptLoss *uint64

	// Step, when set, is called before each change of the disk with what is done (write, sync, create, rename, syncdir,
	// reserve, truncate, mark_create, mark; of a checkpoint checkpoint_write, checkpoint_sync, checkpoint_rename,
	// checkpoint_renamed; compact) and to which file; an error makes it fail. For tests.
	Step func(op, path string) error
}

func (o Options) withDefaults() Options {
	set := func(v *int64, to int64) {
		if *v == 0 {
			*v = to
		}
	}
	set(&o.SegmentBytesMax, 256<<20)
	set(&o.RecordBytesMax, 1<<30)
	set(&o.BytesMax, 64<<30)
	set(&o.ReserveBytes, 1<<20)
	return o
}

// ErrFull is in the chain of errors of Append that a full disk or BytesMax caused. Nothing was
// appended then, and essential records are still taken.
var ErrFull = errors.New("no room in the journal")

// ErrRefused, returned by a visitor of Replay, says that a record is not to be: it is cut off when
// it is the last one, and an error anywhere else.
var ErrRefused = errors.New("refused")

// Record is one record of a journal.
type Record struct {
	Seq     uint64 // from 1, without gaps
	Kind    byte
	Payload []byte // borrowed: good until the visitor returns
}

// Journal is an open journal in a folder: the Store of a service that is one process. It is for one goroutine, save
// Checkpoint and Put.
type Journal struct {
	dir  string
	o    Options
	lock *os.File
	mu   sync.Mutex // of segment, once replayed
	// In order; the last one is written to.
	segment []segment
	path    string   // of the last segment
	file    *os.File // likewise
	salt    uint64
	after   uint64   // the record whose checkpoint was restored; 0: none
	bad     []uint64 // checkpoints that could not be

	end       int64 // where the next record goes in file
	allocated int64 // up to where the disk has set blocks aside
	seq       uint64
	durable   uint64       // last record that is on the disk for certain
	closed    atomic.Int64 // bytes of the segments before the last
	undo      int64        // end before the last record; -1: it cannot be taken back
	replayed  bool
	cut       *Cut
	mark      mark
	loss      *Loss
	digest    uint64 // of the last record; 0: not known
	digestWas uint64 // of the one before it
	broken    error
	header    [recordHeaderBytes]byte
}

const lockName = "LOCK"

// What is in a journal is its service's alone: policies, names of consumers, and whatever clients sent.
const (
	dirMode  os.FileMode = 0o700
	fileMode os.FileMode = 0o600
)

// Open opens a journal, making its folder if need be. Replay comes next. Errors name the file: another
// process has it, a file that is no segment, another version, damage.
func Open(dir string, o Options) (*Journal, error) {
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, fileMode)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("journal %s: another process has it (%w)", dir, err), lock.Close())
	}
	j := &Journal{dir: dir, o: o.withDefaults(), lock: lock, undo: -1}
	if err = dropUnfinished(dir); err == nil {
		j.segment, err = listSegments(dir)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return j, nil
}

// Last is the number of the last record, 0 when there is none. It is known after Replay.
func (j *Journal) Last() uint64 { return j.seq }

// Cut is what Replay took off the end of the journal.
type Cut struct {
	Path    string
	At      int64  // the byte at which it began
	Bytes   int64  // up to the last that was not 0
	Record  uint64 // the record that would have stood there
	Why     string
	Refused bool // a whole record, which the visitor refused: it had been taken back before the journal ended
}

// Cut tells what Replay took off the end of the journal; nil: nothing. It is what a write left that was under way when
// the journal ended, of which nobody was promised anything, or a last record that the disk has damaged since: the
// journal alone cannot tell which, so whoever opens it must be told.
func (j *Journal) Cut() *Cut { return j.cut }

// Bytes is how many bytes the records take on disk.
func (j *Journal) Bytes() int64 { return j.closed.Load() + j.end }

// Put does nothing: the records of a folder have their bodies.
func (j *Journal) Put([]byte) (name string, err error) { return "", nil }

// Append adds a record and gives its number: a head, and the body of an input behind it, whose name is not needed here.
// It is on the disk for certain only after Sync. Essential records may use the reserve and pass BytesMax, so that they
// are taken though the disk is full; they are to be small. An error with ErrFull leaves the journal as it was; after
// any other the journal must be opened anew.
func (j *Journal) Append(kind byte, essential bool, head, body []byte, _ string) (seq uint64, err error) {
	if err := j.usable(); err != nil {
		return 0, err
	}
	payload := int64(len(head)) + int64(len(body))
	if payload > j.o.RecordBytesMax {
		return 0, fmt.Errorf("%w: a record of %d bytes; at most %d are taken", ErrFull, payload, j.o.RecordBytesMax)
	}
	if err := j.makeRoom(recordHeaderBytes+payload, essential); err != nil {
		return 0, err
	}
	at := j.end
	writeHeader(j.header[:], kind, j.seq+1, j.durable, payload, checksum(head, body), j.salt)
	if err := j.write(j.header[:], at); err != nil {
		return 0, j.unwritten(err)
	}
	at += recordHeaderBytes
	for _, p := range [...][]byte{head, body} {
		if err := j.write(p, at); err != nil {
			return 0, j.unwritten(err)
		}
		at += int64(len(p))
	}
	j.undo, j.end = j.end, at
	j.digestWas, j.digest = j.digest, digestOf(j.header[:])
	j.seq++
	return j.seq, nil
}

// Undo takes the last record back, which must not have been followed by Sync. What stands in its place
// is overwritten by the next record; until then a crash may bring it back (see ErrRefused).
func (j *Journal) Undo() {
	if j.undo < 0 || j.seq <= j.durable {
		panic("BUG: no record to take back")
	}
	j.end, j.undo, j.digest = j.undo, -1, j.digestWas
	j.seq--
}

// Sync makes all records appended so far durable. After an error nothing is known of them: the journal
// must be opened anew.
func (j *Journal) Sync() error {
	if err := j.usable(); err != nil {
		return err
	}
	if j.durable == j.seq {
		return nil
	}
	name := j.path
	err := j.step("sync", name)
	if err == nil {
		err = j.file.Sync()
	}
	if err != nil {
		j.broken = fmt.Errorf("flushing %s: %w", name, err)
		return j.usable()
	}
	j.durable, j.undo = j.seq, -1
	if err := j.mark.set(acknowledged{j.seq, j.digest}, j.step); err != nil {
		j.broken = err
		return j.usable()
	}
	return nil
}

// Close flushes the journal and lets another process have it.
func (j *Journal) Close() error {
	var err error
	if j.file != nil {
		if j.broken == nil {
			err = j.Sync()
		}
		if j.broken == nil { // give back what was set aside, and what Undo left
			err = errors.Join(err, j.file.Truncate(j.end))
		}
		err = errors.Join(err, j.file.Close())
	}
	err = errors.Join(err, j.mark.close())
	j.broken = errors.New("it is closed")
	return errors.Join(err, j.lock.Close())
}

func (j *Journal) usable() error {
	switch {
	case j.broken != nil:
		return fmt.Errorf("journal %s: %w", j.dir, j.broken)
	case !j.replayed:
		panic("BUG: a journal is used before Replay")
	}
	return nil
}

func (j *Journal) step(op, path string) error {
	if j.o.Step == nil {
		return nil
	}
	return j.o.Step(op, path)
}

func (j *Journal) write(p []byte, at int64) error {
	if len(p) == 0 {
		return nil
	}
	if err := j.step("write", j.path); err != nil {
		return err
	}
	_, err := j.file.WriteAt(p, at)
	return err
}

// unwritten is the error of a write that failed. What it left is overwritten by the next record. Only a full disk
// may be lived with.
func (j *Journal) unwritten(err error) error {
	err = fmt.Errorf("journal %s: writing record %d: %w", j.dir, j.seq+1, err)
	if isFull(err) {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	j.broken = err
	return err
}

// makeRoom begins another segment if this one is full, and sets blocks aside for so many bytes and the reserve.
// For essential records it does what it can and never fails.
func (j *Journal) makeRoom(n int64, essential bool) error {
	if !essential && j.Bytes()+n > j.o.BytesMax {
		return fmt.Errorf("%w: journal %s has %d bytes, at most %d are allowed", ErrFull, j.dir, j.Bytes(),
			j.o.BytesMax)
	}
	if j.end >= j.o.SegmentBytesMax {
		if err := j.rotate(); err != nil && (!essential || j.broken != nil) {
			return err
		}
	}
	if need := j.end + n + j.o.ReserveBytes; need > j.allocated {
		need += j.o.ReserveBytes // so that small records do not ask each time
		err := j.step("reserve", j.path)
		if err == nil {
			err = reserve(j.file, j.allocated, need-j.allocated)
		}
		if err == nil {
			j.allocated = need
		} else if !essential {
			return fmt.Errorf("%w: setting %d bytes aside in %s: %w", ErrFull, need-j.allocated, j.dir, err)
		}
	}
	return nil
}

// rotate goes on in another segment. The old one is durable first.
func (j *Journal) rotate() error {
	if err := j.Sync(); err != nil {
		return err
	}
	s, f, salt, err := createSegment(j.dir, j.seq+1, j.o.ReserveBytes, j.step)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFull, err)
	}
	err = errors.Join(j.file.Truncate(j.end), j.file.Close())
	j.mu.Lock()
	j.segment[len(j.segment)-1].bytes = j.end
	j.segment = append(j.segment, s)
	j.mu.Unlock()
	j.closed.Add(j.end)
	j.path = s.path
	j.file, j.salt, j.end, j.allocated, j.undo = f, salt, segmentHeaderBytes, segmentHeaderBytes+j.o.ReserveBytes, -1
	if err != nil {
		j.broken = fmt.Errorf("closing a segment: %w", err)
	}
	return err
}
