package journal

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"
)

// The mark is a small file outside the journal's folder. It has the number and the digest of the last record that was
// acknowledged, so that a start notices when the journal's own files end before it.
//
// Sync writes the mark after the records are durable and before it returns, so a kill of the process loses nothing of
// it. A goroutine flushes it to the disk within markEvery: an acknowledgement waits for one flush, not for two. After a
// loss of power the mark may lag behind by that time; it is never ahead.
//
// The file has two entries, a sector each, which are written in turn: a write that breaks off damages one of them. All
// its bytes exist from the beginning, so that a full disk does not stop a write.
const (
	markEntries    = 2
	markEntryBytes = 4096 // apart from each other
	markForm       = "last acknowledged record %020d digest %016x"
	markEvery      = 100 * time.Millisecond
)

// acknowledged is an entry of the mark. A digest of 0 is not known.
type acknowledged struct {
	seq, digest uint64
}

// text is an entry as it stands in the file.
func (a acknowledged) text() []byte {
	b := fmt.Appendf(nil, markForm, a.seq, a.digest)
	return fmt.Appendf(b, " sum %08x\n", crc32.Checksum(b, castagnoli))
}

// Loss tells which records Options.AcceptLoss gave up.
type Loss struct {
	Last         uint64 // the record with which the journal ends
	Acknowledged uint64 // the last one that was acknowledged; 0: the mark is damaged
}

// mark is the file of the last acknowledged record.
type mark struct {
	path  string
	found bool // there was a file
	// The newest entry that is whole, and where the next one goes. good is false when neither is.
	last acknowledged
	next int
	good bool

	seen   uint64 // digest of the record with last's number, once replayed; 0: not read
	file   *os.File
	dirty  chan struct{}
	ended  chan struct{} // closed when all is flushed
	failed atomic.Pointer[error]
}

// read reads the file; "" and a file that is not there are none.
func (m *mark) read(path string) error {
	m.path = path
	if path == "" {
		return nil
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	m.found = true
	for i := range markEntries {
		var a acknowledged
		from := b[min(len(b), i*markEntryBytes):]
		n, _ := fmt.Sscanf(string(from[:min(len(from), len(a.text()))]), markForm, &a.seq, &a.digest)
		if n == 2 && bytes.HasPrefix(from, a.text()) && (!m.good || a.seq > m.last.seq) {
			m.last, m.next, m.good = a, (i+1)%markEntries, true
		}
	}
	return nil
}

// begin has the mark say that the journal ends with a record, as a start found it, and makes the file when need be.
// On a full disk the file that is there is used, or the next Sync tries again, save after a loss that was accepted.
func (m *mark) begin(a acknowledged, lossy bool, step func(op, path string) error) error {
	if m.path == "" {
		return nil
	}
	if a.seq == m.last.seq && a.digest == 0 {
		a.digest = m.last.digest
	}
	err := m.create(a, step)
	if err != nil && (lossy || !isFull(err)) {
		return err
	}
	if err != nil && m.good {
		f, err := os.OpenFile(m.path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		m.use(f)
	}
	return nil
}

// create makes the file with both entries alike, durable with its name.
func (m *mark) create(a acknowledged, step func(op, path string) error) error {
	content := make([]byte, markEntries*markEntryBytes)
	for i := range markEntries {
		copy(content[i*markEntryBytes:], a.text())
	}
	err := step("mark_create", m.path)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(m.path+tmpSuffix, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, fileMode)
	if err != nil {
		return err
	}
	if _, err = f.Write(content); err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(m.path+tmpSuffix, m.path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(m.path), step)
	}
	if err != nil {
		_ = os.Remove(m.path + tmpSuffix) // what is left does no harm
		return errors.Join(fmt.Errorf("making %s: %w", m.path, err), f.Close())
	}
	m.last, m.next, m.good = a, 0, true
	m.use(f)
	return nil
}

// use writes to an open file from now on.
func (m *mark) use(f *os.File) {
	m.file, m.dirty, m.ended = f, make(chan struct{}, 1), make(chan struct{})
	go m.flushes(f, m.dirty, m.ended)
}

// flushes makes what was written durable, soon after. It ends when dirty is closed.
func (m *mark) flushes(f *os.File, dirty <-chan struct{}, ended chan<- struct{}) {
	defer close(ended)
	for range dirty {
		if err := f.Sync(); err != nil {
			err = fmt.Errorf("flushing %s: %w", m.path, err)
			m.failed.Store(&err)
		}
		time.Sleep(markEvery)
	}
}

// set says that a record is acknowledged from now on; it must be durable. On a full disk the mark stays behind, and the
// next call tries again.
func (m *mark) set(a acknowledged, step func(op, path string) error) error {
	if m.path == "" {
		return nil
	}
	if err := m.failed.Load(); err != nil {
		return *err
	}
	if m.file == nil {
		err := m.create(a, step)
		if isFull(err) {
			return nil
		}
		return err
	}
	err := step("mark", m.path)
	if err == nil {
		_, err = m.file.WriteAt(a.text(), int64(m.next)*markEntryBytes)
	}
	if isFull(err) { // where a file system writes to other blocks
		return nil
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", m.path, err)
	}
	m.last, m.next = a, (m.next+1)%markEntries
	select {
	case m.dirty <- struct{}{}:
	default:
	}
	return nil
}

// close flushes the file and closes it.
func (m *mark) close() error {
	if m.file == nil {
		return nil
	}
	close(m.dirty)
	<-m.ended
	err := errors.Join(m.file.Sync(), m.file.Close())
	m.file = nil
	return err
}

func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// reachesMark tells why the journal may not end with its last record: a later one was acknowledged, or that record is
// another than the acknowledged one. why is what stands in place of the next record, "" when nothing does. A loss that
// Options.AcceptLoss names is noted and no error.
func (j *Journal) reachesMark(why string) error {
	m := &j.mark
	var problem string
	switch {
	case !m.found:
		return nil
	case !m.good:
		problem = fmt.Sprintf("%s: damaged: no entry passes its checksum, and the journal ends with record %d", m.path,
			j.seq)
	case j.seq < m.last.seq:
		if why != "" {
			why = " (" + why + ")"
		}
		problem = fmt.Sprintf("journal %s: it ends with record %d%s, and record %d was acknowledged (%s)", j.dir, j.seq,
			why, m.last.seq, m.path)
	case m.seen != 0 && m.last.digest != 0 && m.seen != m.last.digest:
		problem = fmt.Sprintf("journal %s: its record %d has the digest %016x, and the acknowledged one had %016x (%s)",
			j.dir, m.last.seq, m.seen, m.last.digest, m.path)
	default:
		return nil
	}
	if j.o.AcceptLoss != nil && *j.o.AcceptLoss == j.seq {
		j.loss = &Loss{Last: j.seq, Acknowledged: m.last.seq}
		return nil
	}
	return fmt.Errorf("%s: restore its files or a backup, or start with what is there: stint serve --accept-loss %d",
		problem, j.seq)
}

// Loss tells which acknowledged records Replay gave up, because Options.AcceptLoss says so; nil: none.
func (j *Journal) Loss() *Loss { return j.loss }
