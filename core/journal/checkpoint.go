package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A checkpoint is a file beside the segments, named after the last record that it stands for. It begins with a header
// (magic, format version, number of that record), then come blocks of checkpointBlockBytes, the last one shorter, each
// behind its length and a CRC-32C of all that went before it and of itself; a block of no bytes ends the file.
const (
	checkpointMagic       = "stintckp"
	checkpointHeaderBytes = 32
	checkpointBlockBytes  = 1 << 20
	checkpointFrameBytes  = 8
	checkpointsKept       = 2
	// checkpointSyncBytes is after how many bytes they are flushed: a disk that has much to write keeps a record
	// waiting.
	checkpointSyncBytes = 16 << 20
)

var checkpointName = regexp.MustCompile(`^checkpoint-(\d{20})\.state$`)

func checkpointPath(dir string, seq uint64) string {
	return filepath.Join(dir, fmt.Sprintf("checkpoint-%020d.state", seq))
}

// listCheckpoints finds the checkpoints of a journal, the newest first.
func listCheckpoints(dir string) (seqs []uint64, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if m := checkpointName.FindStringSubmatch(e.Name()); m != nil {
			seq, err := strconv.ParseUint(m[1], 10, 64)
			if err != nil {
				return nil, fmt.Errorf("%s: no number of a record in its name", filepath.Join(dir, e.Name()))
			}
			seqs = append(seqs, seq)
		}
	}
	slices.Sort(seqs)
	slices.Reverse(seqs)
	return seqs, nil
}

// dropUnfinished removes checkpoints that were being written when the process ended.
func dropUnfinished(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if name, tmp := strings.CutSuffix(e.Name(), tmpSuffix); tmp && checkpointName.MatchString(name) {
			err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// Checkpoint keeps what write writes, which must stand for all records up to seq, and those must be durable. When it is
// on the disk with its name, what recovery does not need any more is removed: checkpoints but the two newest, and the
// segments before the older of these, so that one damaged checkpoint is no loss. It may run beside the other methods
// but Close, one call at a time. After an error the journal is as good as before. O(bytes).
func (j *Journal) Checkpoint(seq uint64, write func(io.Writer) error) error {
	path := checkpointPath(j.dir, seq)
	if err := j.writeCheckpoint(path, seq, write); err != nil {
		_ = os.Remove(path + tmpSuffix) // what is left does no harm
		return fmt.Errorf("checkpoint %s: %w", path, err)
	}
	return j.compact()
}

func (j *Journal) writeCheckpoint(path string, seq uint64, write func(io.Writer) error) error {
	f, err := os.OpenFile(path+tmpSuffix, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, fileMode)
	if err != nil {
		return err
	}
	w := newBlockWriter(f)
	w.step, w.sync = func() error { return j.step("checkpoint_write", path) }, f.Sync
	if err = w.whole(seq, write); err == nil {
		err = j.step("checkpoint_sync", path)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err = j.step("checkpoint_rename", path); err != nil {
		return err
	}
	if err = os.Rename(path+tmpSuffix, path); err != nil {
		return err
	}
	if err = j.step("checkpoint_renamed", path); err != nil {
		return err
	}
	return syncDir(j.dir, j.step)
}

// WriteCheckpoint writes a checkpoint as it stands in a file, with what write writes: for stores that keep it
// elsewhere. O(bytes).
func WriteCheckpoint(to io.Writer, seq uint64, write func(io.Writer) error) error {
	return newBlockWriter(to).whole(seq, write)
}

// blockWriter writes the blocks of a checkpoint.
type blockWriter struct {
	to     io.Writer
	step   func() error
	sync   func() error
	buf    []byte // a frame and the block being filled
	sum    uint32
	synced int64
	bytes  int64
}

func newBlockWriter(to io.Writer) *blockWriter {
	nothing := func() error { return nil }
	return &blockWriter{to: to, step: nothing, sync: nothing,
		buf: make([]byte, checkpointFrameBytes, checkpointFrameBytes+checkpointBlockBytes)}
}

// whole writes header, blocks and end.
func (w *blockWriter) whole(seq uint64, write func(io.Writer) error) error {
	err := w.header(seq)
	if err == nil {
		err = write(w)
	}
	if err == nil {
		err = w.end()
	}
	return err
}

func (w *blockWriter) header(seq uint64) error {
	h := checkpointHeader(seq)
	w.sum = crc32.Checksum(h, castagnoli)
	_, err := w.to.Write(h)
	return err
}

func checkpointHeader(seq uint64) []byte {
	h := make([]byte, checkpointHeaderBytes)
	copy(h, checkpointMagic)
	binary.LittleEndian.PutUint32(h[8:], Version)
	binary.LittleEndian.PutUint64(h[16:], seq)
	binary.LittleEndian.PutUint32(h[28:], crc32.Checksum(h[:28], castagnoli))
	return h
}

// Write takes bytes of the checkpoint.
func (w *blockWriter) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		some := min(len(p), cap(w.buf)-len(w.buf))
		w.buf = append(w.buf, p[:some]...)
		n, p = n+some, p[some:]
		if len(w.buf) == cap(w.buf) {
			if err := w.block(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// block writes the block that is filled.
func (w *blockWriter) block() error {
	if err := w.step(); err != nil {
		return err
	}
	binary.LittleEndian.PutUint32(w.buf, uint32(len(w.buf)-checkpointFrameBytes))
	w.sum = crc32.Update(w.sum, castagnoli, w.buf[:4])
	w.sum = crc32.Update(w.sum, castagnoli, w.buf[checkpointFrameBytes:])
	binary.LittleEndian.PutUint32(w.buf[4:], w.sum)
	_, err := w.to.Write(w.buf)
	w.bytes += int64(len(w.buf))
	w.buf = w.buf[:checkpointFrameBytes]
	if err == nil && w.bytes-w.synced >= checkpointSyncBytes {
		w.synced = w.bytes
		err = w.sync()
	}
	return err
}

func (w *blockWriter) end() error {
	if len(w.buf) > checkpointFrameBytes {
		if err := w.block(); err != nil {
			return err
		}
	}
	return w.block()
}

// blockReader reads what was written into a checkpoint, checked.
type blockReader struct {
	from io.Reader
	path string // or another name, for messages
	buf  []byte
	at   int64 // of the next block
	left int64 // bytes of content that come, beside what is in rest
	rest []byte
	sum  uint32
	err  error
}

// openCheckpoint begins to read a checkpoint and tells how many bytes were written into it. Errors name it and the
// place.
func openCheckpoint(from io.Reader, name string, size int64, seq uint64) (r *blockReader, bytes int64, err error) {
	r = &blockReader{from: from, path: name, at: checkpointHeaderBytes,
		buf: make([]byte, checkpointFrameBytes+checkpointBlockBytes)}
	if err := r.header(seq); err != nil {
		return nil, 0, err
	}
	content := size - checkpointHeaderBytes - checkpointFrameBytes
	const framed = checkpointFrameBytes + checkpointBlockBytes
	blocks := (content + framed - 1) / framed
	if r.left = content - blocks*checkpointFrameBytes; content < 0 || r.left < 0 {
		return nil, 0, fmt.Errorf("%s: damaged: it ends at byte %d", name, size)
	}
	return r, r.left, nil
}

// ReadCheckpoint has a checkpoint loaded that stands in so many bytes of a reader, as it stands in a file. Errors are
// what load gives, and damage, which names the checkpoint and the byte. O(bytes).
func ReadCheckpoint(
	from io.Reader, name string, size int64, seq uint64, load func(seq uint64, r io.Reader, bytes int64) error,
) error {
	r, bytes, err := openCheckpoint(from, name, size, seq)
	if err != nil {
		return err
	}
	err = load(seq, r, bytes)
	if r.err != nil && r.err != io.EOF {
		return r.err // damage is the cause of whatever it led to
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return r.check()
}

func (r *blockReader) header(seq uint64) error {
	h := make([]byte, checkpointHeaderBytes)
	if _, err := io.ReadFull(r.from, h); err != nil {
		return fmt.Errorf("%s: damaged: no whole header (%w)", r.path, err)
	}
	switch {
	case string(h[:8]) != checkpointMagic:
		return fmt.Errorf("%s: not a checkpoint", r.path)
	case binary.LittleEndian.Uint32(h[8:]) != Version:
		return fmt.Errorf("%s: format version %d; this stint reads version %d", r.path,
			binary.LittleEndian.Uint32(h[8:]), Version)
	case !bytes.Equal(h, checkpointHeader(seq)):
		return fmt.Errorf("%s: damaged: the header fails its checksum, or is of another file", r.path)
	}
	r.sum = crc32.Checksum(h, castagnoli)
	return nil
}

// Read gives bytes whose block has passed its checksum.
func (r *blockReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 && r.err == nil {
		r.err = r.block()
	}
	if r.err != nil {
		return 0, r.err
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// block reads the next block; io.EOF behind the last one.
func (r *blockReader) block() error {
	n := int(min(r.left, checkpointBlockBytes))
	b := r.buf[:checkpointFrameBytes+n]
	if _, err := io.ReadFull(r.from, b); err != nil {
		return fmt.Errorf("%s: damaged: no whole block at byte %d (%w)", r.path, r.at, err)
	}
	r.sum = crc32.Update(r.sum, castagnoli, b[:4])
	r.sum = crc32.Update(r.sum, castagnoli, b[checkpointFrameBytes:])
	if binary.LittleEndian.Uint32(b) != uint32(n) || binary.LittleEndian.Uint32(b[4:]) != r.sum {
		return fmt.Errorf("%s: damaged: the block at byte %d fails its checksum", r.path, r.at)
	}
	if r.at, r.left, r.rest = r.at+int64(len(b)), r.left-int64(n), b[checkpointFrameBytes:]; n == 0 {
		return io.EOF
	}
	return nil
}

// check reads the rest, so that all of the file was looked at.
func (r *blockReader) check() error {
	_, err := io.Copy(io.Discard, r)
	return err
}

// Restore offers the checkpoints to load, the newest first, until it takes one; Replay then begins behind that. It
// comes after Open and before Replay, or not at all. passed are the reasons why newer ones were not taken: damage, or
// what load gave, which must leave nothing behind then. err is set when those cannot be done without, because the
// segments that they stood for are gone.
func (j *Journal) Restore(
	load func(seq uint64, r io.Reader, bytes int64) error,
) (seq uint64, passed []error, err error) {
	if j.replayed || j.broken != nil {
		panic("BUG: a journal is restored after Replay")
	}
	seqs, err := listCheckpoints(j.dir)
	if err != nil {
		return 0, nil, err
	}
	for _, seq := range seqs {
		err := j.reaches(seq)
		if err == nil {
			err = j.offer(seq, load)
		}
		if err == nil {
			j.after = seq
			return seq, passed, nil
		}
		j.bad = append(j.bad, seq)
		passed = append(passed, err)
	}
	if err := j.reaches(0); err != nil {
		return 0, nil, errors.Join(append(passed, err)...)
	}
	return 0, passed, nil
}

// reaches tells why recovery cannot begin behind a record: the segment with the next one is gone.
func (j *Journal) reaches(seq uint64) error {
	switch {
	case len(j.segment) == 0 && seq == 0:
		return nil
	case len(j.segment) == 0:
		return fmt.Errorf("journal %s: it has a checkpoint of record %d, and no segments", j.dir, seq)
	case j.segment[0].first > seq+1:
		return fmt.Errorf("%s: a segment is missing before it: record %d comes next", j.segment[0].path, seq+1)
	}
	return nil
}

// offer has a checkpoint loaded.
func (j *Journal) offer(seq uint64, load func(seq uint64, r io.Reader, bytes int64) error) error {
	path := checkpointPath(j.dir, seq)
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil {
		err = ReadCheckpoint(f, path, info.Size(), seq, load)
	}
	return errors.Join(err, f.Close())
}

// compact removes what recovery does not need: see Checkpoint. Older files go first, so that what is left after a crash
// has no gaps.
func (j *Journal) compact() error {
	seqs, err := listCheckpoints(j.dir)
	if err != nil {
		return err
	}
	var remove []string
	kept := seqs[:0]
	for _, seq := range seqs {
		if slices.Contains(j.bad, seq) || len(kept) == checkpointsKept {
			remove = append(remove, checkpointPath(j.dir, seq))
		} else {
			kept = append(kept, seq)
		}
	}
	if len(kept) == checkpointsKept {
		remove = append(remove, j.forget(kept[checkpointsKept-1])...)
	}
	for _, path := range remove {
		if err := j.step("compact", path); err != nil {
			return err
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("compacting the journal: %w", err)
		}
	}
	if len(remove) == 0 {
		return nil
	}
	return syncDir(j.dir, j.step)
}

// forget takes segments out of the list that have no record behind seq. The last one stays.
func (j *Journal) forget(seq uint64) (paths []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.segment) > 1 && j.segment[1].first <= seq+1 {
		paths = append(paths, j.segment[0].path)
		j.closed.Add(-j.segment[0].bytes)
		j.segment = j.segment[1:]
	}
	return paths
}
