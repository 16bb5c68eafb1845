package journal

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Sizes of what stands around payloads.
const (
	segmentHeaderBytes = 40
	recordHeaderBytes  = 40
)

const (
	segmentMagic        = "stintjnl"
	recordMagic  uint32 = 0x524a7453 // "StJR"
	tmpSuffix           = ".tmp"
	segmentsMax         = 1 << 20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// segment is a file of a journal.
type segment struct {
	first uint64 // number of its first record
	path  string
	bytes int64 // once another follows it
}

var segmentName = regexp.MustCompile(`^records-(\d{20})\.journal$`)

// listSegments finds the segments of a journal in order. What a crash left of one that was being made is removed.
func listSegments(dir string) ([]segment, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []segment
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if strings.HasSuffix(e.Name(), tmpSuffix) && segmentName.MatchString(strings.TrimSuffix(e.Name(), tmpSuffix)) {
			if err := os.Remove(path); err != nil {
				return nil, err
			}
			continue
		}
		m := segmentName.FindStringSubmatch(e.Name())
		if m == nil {
			continue // LOCK, or not the journal's
		}
		first, err := strconv.ParseUint(m[1], 10, 64)
		if err != nil || first == 0 {
			return nil, fmt.Errorf("%s: no number of a record in its name", path)
		}
		if len(all) == segmentsMax {
			return nil, fmt.Errorf("journal %s: more than %d segments", dir, segmentsMax)
		}
		all = append(all, segment{first: first, path: path})
	}
	slices.SortFunc(all, func(a, b segment) int {
		if a.first < b.first {
			return -1
		}
		return 1
	})
	return all, nil
}

// createSegment makes a segment, durable with its name, and opens it.
func createSegment(
	dir string, first uint64, reserveBytes int64, step func(op, path string) error,
) (s segment, f *os.File, salt uint64, err error) {
	s = segment{first: first, path: filepath.Join(dir, fmt.Sprintf("records-%020d.journal", first))}
	var salted [8]byte
	if _, err := rand.Read(salted[:]); err != nil {
		return s, nil, 0, err
	}
	salt = binary.LittleEndian.Uint64(salted[:])
	if err = step("create", s.path); err != nil {
		return s, nil, 0, err
	}
	f, err = os.OpenFile(s.path+tmpSuffix, os.O_CREATE|os.O_TRUNC|os.O_RDWR, fileMode)
	if err != nil {
		return s, nil, 0, err
	}
	header := make([]byte, segmentHeaderBytes)
	copy(header, segmentMagic)
	binary.LittleEndian.PutUint32(header[8:], Version)
	binary.LittleEndian.PutUint64(header[16:], first)
	binary.LittleEndian.PutUint64(header[24:], salt)
	binary.LittleEndian.PutUint32(header[36:], crc32.Checksum(header[:36], castagnoli))
	if err = reserve(f, 0, segmentHeaderBytes+reserveBytes); err == nil {
		_, err = f.WriteAt(header, 0)
	}
	if err == nil {
		err = step("sync", s.path)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = step("rename", s.path)
	}
	if err == nil {
		err = os.Rename(s.path+tmpSuffix, s.path)
	}
	if err == nil {
		if err = syncDir(dir, step); err != nil { // its name may be lost: as if it were not made
			err = errors.Join(err, os.Remove(s.path))
		}
	}
	if err != nil {
		_ = os.Remove(s.path + tmpSuffix) // what is left does no harm
		return s, nil, 0, errors.Join(fmt.Errorf("making %s: %w", s.path, err), f.Close())
	}
	return s, f, salt, nil
}

func syncDir(dir string, step func(op, path string) error) error {
	if err := step("syncdir", dir); err != nil {
		return err
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// readSegmentHeader checks the header of a segment and gives its salt.
func readSegmentHeader(f *os.File, s segment) (salt uint64, err error) {
	header := make([]byte, segmentHeaderBytes)
	if n, err := f.ReadAt(header, 0); n < len(header) {
		return 0, fmt.Errorf("%s: damaged: no whole header (%w)", s.path, err)
	}
	if string(header[:8]) != segmentMagic {
		return 0, fmt.Errorf("%s: not a segment of a journal", s.path)
	}
	if v := binary.LittleEndian.Uint32(header[8:]); v != Version {
		return 0, fmt.Errorf("%s: format version %d; this stint reads version %d", s.path, v, Version)
	}
	if binary.LittleEndian.Uint32(header[36:]) != crc32.Checksum(header[:36], castagnoli) {
		return 0, fmt.Errorf("%s: damaged: the header fails its checksum", s.path)
	}
	if first := binary.LittleEndian.Uint64(header[16:]); first != s.first {
		return 0, fmt.Errorf("%s: begins with record %d by its header", s.path, first)
	}
	return binary.LittleEndian.Uint64(header[24:]), nil
}

// recordHeader is what a record's header says.
type recordHeader struct {
	kind         byte
	seq, durable uint64
	bytes        int64
	sum          uint32
	digest       uint64 // see digestOf
}

func writeHeader(h []byte, kind byte, seq, durable uint64, bytes int64, sum uint32, salt uint64) {
	clear(h)
	binary.LittleEndian.PutUint32(h[0:], recordMagic)
	h[4] = kind
	binary.LittleEndian.PutUint64(h[8:], seq)
	binary.LittleEndian.PutUint64(h[16:], durable)
	binary.LittleEndian.PutUint64(h[24:], uint64(bytes))
	binary.LittleEndian.PutUint32(h[32:], sum)
	binary.LittleEndian.PutUint32(h[36:], headerSum(h, salt))
}

// readHeader reads a record's header; ok is false when it is none, or damaged. The salt, which differs
// between segments, keeps payloads from passing for headers.
func readHeader(h []byte, salt uint64) (r recordHeader, ok bool) {
	if len(h) < recordHeaderBytes || binary.LittleEndian.Uint32(h) != recordMagic ||
		binary.LittleEndian.Uint32(h[36:]) != headerSum(h, salt) {
		return recordHeader{}, false
	}
	r = recordHeader{
		kind: h[4], seq: binary.LittleEndian.Uint64(h[8:]), durable: binary.LittleEndian.Uint64(h[16:]),
		bytes: int64(binary.LittleEndian.Uint64(h[24:])), sum: binary.LittleEndian.Uint32(h[32:]),
		digest: digestOf(h),
	}
	return r, r.bytes >= 0
}

// digestOf tells a record from others with its number: the checksums of its payload and of its header, which covers the
// segment's salt. It is not 0, save by chance.
func digestOf(h []byte) uint64 { return binary.LittleEndian.Uint64(h[32:]) }

func headerSum(h []byte, salt uint64) uint32 {
	var s [8]byte
	binary.LittleEndian.PutUint64(s[:], salt)
	return crc32.Update(crc32.Checksum(s[:], castagnoli), castagnoli, h[:36])
}

func checksum(head, body []byte) uint32 {
	return crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, body)
}
