package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
)

// Replay visits all records behind the checkpoint that was restored, if one was, in order, and makes the journal ready
// for Append. It comes once, after Open. A write that a crash cut short is removed. Errors: a segment or record that is
// missing, damage to records that were durable, ErrRefused of a record that is not the last, what visit gives. Then the
// journal is as it was, but for what was cut off.
func (j *Journal) Replay(visit func(Record) error) error {
	if j.replayed || j.broken != nil {
		panic("BUG: a journal is replayed twice")
	}
	if err := j.reaches(j.after); err != nil {
		return err
	}
	if err := j.mark.read(j.o.Mark); err != nil {
		return err
	}
	var buf []byte
	for i := range j.segment {
		s, last := &j.segment[i], i == len(j.segment)-1
		if i == 0 {
			j.seq = s.first - 1
		}
		if s.first != j.seq+1 {
			return fmt.Errorf("%s: a segment is missing before it: record %d comes next", s.path, j.seq+1)
		}
		if !last && j.segment[i+1].first <= j.after+1 { // nothing in it is needed
			info, err := os.Stat(s.path)
			if err != nil {
				return err
			}
			s.bytes, j.seq, j.digest = info.Size(), j.segment[i+1].first-1, 0
			j.closed.Add(s.bytes)
			continue
		}
		f, err := os.OpenFile(s.path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		r := reading{j: j, f: f, s: *s, last: last, visit: visit, buf: buf}
		if !last {
			r.next = j.segment[i+1].first
		}
		err = r.run()
		buf = r.buf
		if err == nil && last {
			j.file, j.path, j.salt, j.end = f, s.path, r.salt, r.at
			break
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		s.bytes = r.at
		j.closed.Add(r.at)
	}
	if err := j.reachesMark(""); err != nil {
		return j.leave(err)
	}
	if j.seq < j.after {
		return j.leave(fmt.Errorf("damaged: %s: it ends with record %d, and there is a checkpoint of record %d",
			j.path, j.seq, j.after))
	}
	return j.ready()
}

// leave closes the segment that would be written to, as the journal cannot be used.
func (j *Journal) leave(err error) error {
	if j.file != nil {
		err = errors.Join(err, j.file.Close())
		j.file = nil
	}
	return err
}

// ready makes the first segment, if there is none, and ends the replay.
func (j *Journal) ready() error {
	if j.file == nil {
		s, f, salt, err := createSegment(j.dir, 1, j.o.ReserveBytes, j.step)
		if err != nil {
			return err
		}
		j.segment, j.file, j.path, j.salt = []segment{s}, f, s.path, salt
		j.end, j.allocated = segmentHeaderBytes, segmentHeaderBytes+j.o.ReserveBytes
	}
	if last := j.mark.last; !j.mark.good || j.loss != nil || last.seq != j.seq {
		if err := j.file.Sync(); err != nil { // a kill may have come before the flush
			return j.leave(err)
		}
	}
	if err := j.mark.begin(acknowledged{j.seq, j.digest}, j.loss != nil, j.step); err != nil {
		return j.leave(err)
	}
	j.durable, j.replayed = j.seq, true
	j.allocated = max(j.allocated, j.end)
	return nil
}

// reading is a segment being replayed.
type reading struct {
	j     *Journal
	f     *os.File
	s     segment
	last  bool   // of the journal
	next  uint64 // the first record of the segment behind it, if it is not the last
	visit func(Record) error
	salt  uint64
	at    int64 // of the next record
	size  int64
	buf   []byte
}

func (r *reading) run() (err error) {
	if r.salt, err = readSegmentHeader(r.f, r.s); err != nil {
		return err
	}
	info, err := r.f.Stat()
	if err != nil {
		return err
	}
	r.at, r.size = segmentHeaderBytes, info.Size()
	for r.at < r.size {
		if !r.last && r.j.seq+1 == r.next {
			break // what stands behind it was taken back before the next segment was made
		}
		h, why := r.record()
		if why != "" {
			return r.tail(why)
		}
		if h.seq <= r.j.after {
			r.pass(h)
			continue
		}
		err := r.visit(Record{Seq: h.seq, Kind: h.kind, Payload: r.buf[:h.bytes]})
		if errors.Is(err, ErrRefused) {
			if next, ok := r.peek(r.at + recordHeaderBytes + h.bytes); r.last && !(ok && next.seq == h.seq+1) {
				return r.cut(err.Error(), true)
			}
			return fmt.Errorf("%s: record %d was taken once and is refused now: %w", r.s.path, h.seq, err)
		}
		if err != nil {
			return fmt.Errorf("%s: record %d: %w", r.s.path, h.seq, err)
		}
		r.pass(h)
	}
	return nil
}

// pass goes on behind a record that is good.
func (r *reading) pass(h recordHeader) {
	r.at += recordHeaderBytes + h.bytes
	r.j.seq, r.j.digest = h.seq, h.digest
	if h.seq == r.j.mark.last.seq {
		r.j.mark.seen = h.digest
	}
}

// peek reads the header of the next record at an offset; ok is false when there is none.
func (r *reading) peek(at int64) (h recordHeader, ok bool) {
	var header [recordHeaderBytes]byte
	if n, _ := r.f.ReadAt(header[:], at); n < len(header) {
		return h, false
	}
	return readHeader(header[:], r.salt)
}

// record reads the next record into the buffer, or tells why there is none.
func (r *reading) record() (h recordHeader, why string) {
	h, ok := r.peek(r.at)
	switch {
	case !ok:
		return h, "no whole header of a record"
	case h.seq != r.j.seq+1:
		return h, fmt.Sprintf("the header of record %d where that of record %d belongs", h.seq, r.j.seq+1)
	case h.bytes > r.j.o.RecordBytesMax || h.bytes > r.size-r.at-recordHeaderBytes:
		return h, fmt.Sprintf("a payload of %d bytes that is not there", h.bytes)
	}
	if int64(cap(r.buf)) < h.bytes {
		r.buf = make([]byte, h.bytes)
	}
	if _, err := io.ReadFull(io.NewSectionReader(r.f, r.at+recordHeaderBytes, h.bytes), r.buf[:h.bytes]); err != nil {
		return h, "reading it: " + err.Error()
	}
	if crc32.Checksum(r.buf[:h.bytes], castagnoli) != h.sum {
		return h, "its payload fails its checksum"
	}
	return h, ""
}

// tail deals with bytes that are no record. In the last segment they may be what an unfinished write
// left: they are, unless a record behind them says that this one was durable.
func (r *reading) tail(why string) error {
	where := fmt.Sprintf("%s: byte %d, record %d: %s", r.s.path, r.at, r.j.seq+1, why)
	if !r.last {
		return fmt.Errorf("damaged: %s", where)
	}
	later, err := r.durableLater()
	if err != nil {
		return err
	}
	if later > 0 {
		return fmt.Errorf("damaged: %s; it was on the disk when record %d was written", where, later)
	}
	if r.j.seq < r.j.after {
		return fmt.Errorf("damaged: %s; there is a checkpoint of record %d", where, r.j.after)
	}
	return r.cut(why, false)
}

// durableLater looks behind a bad record for one that says that it was durable; 0: none.
func (r *reading) durableLater() (seq uint64, err error) {
	window := make([]byte, 1<<20)
	for from := r.at; from < r.size; from += int64(len(window) - recordHeaderBytes) {
		n, err := r.f.ReadAt(window, from)
		if err != nil && err != io.EOF {
			return 0, err
		}
		for i := 0; i+recordHeaderBytes <= n; i++ {
			if window[i] != byte(recordMagic&0xff) || binary.LittleEndian.Uint32(window[i:]) != recordMagic {
				continue
			}
			if h, ok := readHeader(window[i:n], r.salt); ok && h.durable > r.j.seq {
				return h.seq, nil
			}
		}
	}
	return 0, nil
}

// written is how many bytes stand behind the next record's place, up to the last that is not 0.
func (r *reading) written() (n int64, err error) {
	window := make([]byte, 1<<16)
	for from := r.at; from < r.size; from += int64(len(window)) {
		got, err := r.f.ReadAt(window, from)
		if err != nil && err != io.EOF {
			return 0, err
		}
		if some := bytes.TrimRight(window[:got], "\x00"); len(some) > 0 {
			n = from - r.at + int64(len(some))
		}
	}
	return n, nil
}

// cut makes the segment end at the next record, and notes what it takes off, unless that is room that was never
// written. A record that was acknowledged is not cut off.
func (r *reading) cut(why string, refused bool) error {
	written, err := r.written()
	if err != nil {
		return err
	}
	place := ""
	if written > 0 {
		place = fmt.Sprintf("%s: byte %d: %s", r.s.path, r.at, why)
	}
	if err := r.j.reachesMark(place); err != nil {
		return err
	}
	if written > 0 {
		r.j.cut = &Cut{Path: r.s.path, At: r.at, Bytes: written, Record: r.j.seq + 1, Why: why, Refused: refused}
	}
	err = r.j.step("truncate", r.s.path)
	if err == nil {
		err = r.f.Truncate(r.at)
	}
	if err == nil {
		err = r.f.Sync()
	}
	if err != nil {
		return fmt.Errorf("cutting %s off at byte %d: %w", r.s.path, r.at, err)
	}
	return nil
}
