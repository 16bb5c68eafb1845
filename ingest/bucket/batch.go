package bucket

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
)

// Format is the form of all objects. A bucket of another form is refused.
const Format = 1

// A batch is magic, form, length of the head, head in JSON, records, and a CRC-32C of all that.
const (
	batchMagic      = "stintbat"
	batchFrameBytes = 16
	batchSumBytes   = 4
	batchBytesMax   = 64 << 20
)

// A record is kind, whether it has a body, two bytes of 0, length of its head, head, and the body's name.
const (
	recordFrameBytes = 8
	bodyNameBytes    = 8 + sha256.Size + 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// batchHead says whose a batch is and where it belongs.
type batchHead struct {
	Cluster  string `json:"cluster"` // its id
	Batch    uint64 `json:"batch"`
	First    uint64 `json:"first"` // number of its first record, or of the next one where it has none
	Records  int    `json:"records"`
	Term     uint64 `json:"term"` // the batch with which its writer began to lead: its own in a claim
	Writer   string `json:"writer"`
	Instance string `json:"instance"` // of the writer's store, so that no two write the same
	Address  string `json:"address,omitempty"`
	Mark     uint64 `json:"mark"` // the newest that the writer knew
	Resigns  bool   `json:"resigns,omitempty"`
}

func (h *batchHead) claims() bool { return h.Term == h.Batch }

// record is a record of a batch, its body elsewhere.
type record struct {
	kind byte
	head []byte
	body *bodyName // nil: none
}

// bodyName names a body: the mark that was the newest when it was put, its digest and length.
type bodyName struct {
	mark   uint64
	digest [sha256.Size]byte
	bytes  uint64
}

func (n *bodyName) key() string {
	return fmt.Sprintf("bodies/%020d/%s", n.mark, hex.EncodeToString(n.digest[:]))
}

func (n *bodyName) append(to []byte) []byte {
	to = binary.LittleEndian.AppendUint64(to, n.mark)
	to = append(to, n.digest[:]...)
	return binary.LittleEndian.AppendUint64(to, n.bytes)
}

func readBodyName(b []byte) *bodyName {
	n := &bodyName{mark: binary.LittleEndian.Uint64(b), bytes: binary.LittleEndian.Uint64(b[8+sha256.Size:])}
	copy(n.digest[:], b[8:])
	return n
}

// encodeBatch makes the bytes of a batch.
func encodeBatch(h batchHead, records []record) []byte {
	h.Records = len(records)
	head, err := json.Marshal(h)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	b := append(make([]byte, 0, batchFrameBytes+len(head)), batchMagic...)
	b = binary.LittleEndian.AppendUint32(b, Format)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(head)))
	b = append(b, head...)
	for _, r := range records {
		has := byte(0)
		if r.body != nil {
			has = 1
		}
		b = append(b, r.kind, has, 0, 0)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(r.head)))
		b = append(b, r.head...)
		if r.body != nil {
			b = r.body.append(b)
		}
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decodeBatch reads a batch. The records' heads are parts of b.
func decodeBatch(b []byte) (h batchHead, records []record, err error) {
	switch {
	case len(b) < batchFrameBytes+batchSumBytes || string(b[:8]) != batchMagic:
		return h, nil, errors.New("damaged: not a batch")
	case binary.LittleEndian.Uint32(b[len(b)-batchSumBytes:]) != crc32.Checksum(b[:len(b)-batchSumBytes], castagnoli):
		return h, nil, errors.New("damaged: it fails its checksum")
	case binary.LittleEndian.Uint32(b[8:]) != Format:
		return h, nil, fmt.Errorf("it has format %d; this stint reads format %d", binary.LittleEndian.Uint32(b[8:]),
			Format)
	}
	n := int64(binary.LittleEndian.Uint32(b[12:]))
	b = b[batchFrameBytes : len(b)-batchSumBytes]
	if n > int64(len(b)) {
		return h, nil, errors.New("damaged: its head is not whole")
	}
	if err := json.Unmarshal(b[:n], &h); err != nil {
		return h, nil, fmt.Errorf("damaged: head: %w", err)
	}
	for b = b[n:]; len(b) > 0; {
		if len(b) < recordFrameBytes {
			return h, nil, errors.New("damaged: a record is not whole")
		}
		kind, has, n := b[0], b[1] != 0, int64(binary.LittleEndian.Uint32(b[4:]))
		b = b[recordFrameBytes:]
		most := int64(len(b))
		if has {
			most -= bodyNameBytes
		}
		if n > most {
			return h, nil, errors.New("damaged: a record is not whole")
		}
		r := record{kind: kind, head: b[:n:n]}
		b = b[n:]
		if has {
			r.body = readBodyName(b)
			b = b[bodyNameBytes:]
		}
		records = append(records, r)
	}
	if len(records) != h.Records {
		return h, nil, fmt.Errorf("damaged: %d records of %d", len(records), h.Records)
	}
	return h, records, nil
}

// mark tells of a checkpoint. Marks are numbered from 1 on without gaps, and stay: the newest is found by asking for
// the next number.
type mark struct {
	Cluster    string `json:"cluster"`
	Mark       uint64 `json:"mark"`
	Checkpoint string `json:"checkpoint"` // its key
	Bytes      int64  `json:"bytes"`
	Record     uint64 `json:"record"` // the last that it stands for
	Batch      uint64 `json:"batch"`  // with which recovery goes on behind it
}

// seal makes an object of a value: a line of JSON and a line with its checksum.
func seal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return fmt.Appendf(b, "\n%08x\n", crc32.Checksum(b, castagnoli))
}

// unseal reads what seal made.
func unseal(b []byte, v any) error {
	line, sum, _ := bytes.Cut(b, []byte("\n"))
	if string(sum) != fmt.Sprintf("%08x\n", crc32.Checksum(line, castagnoli)) {
		return errors.New("damaged: it fails its checksum")
	}
	return json.Unmarshal(line, v)
}
