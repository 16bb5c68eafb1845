package export

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/stintd/stint/core/decision"
)

// What is taken of an input.
const (
	inputWindowBytes = 8 << 20
	inputBytesMax    = 4 << 30
	headsMax         = 1024 // rows of cycles kept between calls
)

// Reader reads a decision log as it was when it was opened: cycles published
// since are not seen, what a cycle under way has written neither. It is for one goroutine.
type Reader struct {
	dir    string
	cycles []int64
	shape  map[string]decision.Table
	spans  map[string][]span
	heads  map[int64]head
}

// head is what a cycle's row of cycles says of its other tables.
type head struct {
	state [sets]int64       // the cycles that hold the state tables
	files map[string]string // seals of the cycle's files; nil when a compacted file does not tell
}

// OpenLog opens a log for reading. It lists the folders and reads no file, save of
// compacted cycles. Errors name the path: no log there, a folder that cannot be read.
func OpenLog(dir string) (*Reader, error) {
	info, err := os.Stat(filepath.Join(dir, cyclesTable))
	if err != nil {
		return nil, fmt.Errorf("log %s: no decision log: %w", dir, err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("log %s: no decision log: %s is no folder", dir, cyclesTable)
	}
	return openLog(dir)
}

// openLog is OpenLog, save that a log that was never written to is an empty one.
func openLog(dir string) (*Reader, error) {
	r := &Reader{dir: dir, shape: map[string]decision.Table{}, spans: map[string][]span{}, heads: map[int64]head{}}
	tables := shapes()
	slices.Reverse(tables) // cycles first: what it lists, the others have
	for _, t := range tables {
		spans, err := list(dir, t.Name)
		if err != nil {
			return nil, fmt.Errorf("log %s: %w", dir, err)
		}
		r.shape[t.Name], r.spans[t.Name] = t, spans
	}
	for _, s := range r.spans[cyclesTable] {
		if s.first == s.last {
			r.cycles = append(r.cycles, s.first)
			continue
		}
		t, err := r.load(cyclesTable, []span{s}, s.first, s.last)
		if err != nil {
			return nil, err
		}
		r.cycles = append(r.cycles, t.Columns[0].Int...)
	}
	return r, nil
}

// Cycles are the published cycles in rising order. The slice is the reader's own.
func (r *Reader) Cycles() []int64 { return r.cycles }

// Tables are the names of the log's tables, sorted.
func (r *Reader) Tables() []string {
	names := make([]string, 0, len(r.shape))
	for name := range r.shape {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Decided are the names of the tables whose content a cycle's decisions digest covers (D-16), in its order.
func (r *Reader) Decided() (names []string) {
	var c decision.Cycle
	for _, t := range c.Tables() {
		names = append(names, t.Name)
	}
	return names
}

// Holder is the cycle whose files hold a table as it is in a cycle: for state tables the one
// that cycles names, for keyframes the nearest that is not later, else the cycle itself.
func (r *Reader) Holder(name string, cycle int64) (int64, error) {
	if err := r.known(name, cycle); err != nil {
		return 0, err
	}
	if s, ok := setOf[name]; ok {
		h, err := r.head(cycle)
		return h.state[s], err
	}
	if !isKeyframe(name) {
		return cycle, nil
	}
	spans := r.spans[name]
	i := sort.Search(len(spans), func(i int) bool { return spans[i].first > cycle }) - 1
	for ; i >= 0; i-- { // a file of a cycle that was not published counts for nothing
		holder := min(cycle, spans[i].last)
		if _, ok := slices.BinarySearch(r.cycles, spans[i].first); ok || spans[i].first < spans[i].last {
			return holder, nil
		}
	}
	return 0, fmt.Errorf("log %s: no keyframe of %s up to cycle %d", r.dir, name, cycle)
}

func (r *Reader) known(name string, cycle int64) error {
	if _, ok := r.shape[name]; !ok {
		return fmt.Errorf("log %s: no table %q; there are %s", r.dir, name, strings.Join(r.Tables(), ", "))
	}
	if _, ok := slices.BinarySearch(r.cycles, cycle); !ok {
		if len(r.cycles) == 0 {
			return fmt.Errorf("log %s: no cycle %d: the log is empty", r.dir, cycle)
		}
		return fmt.Errorf("log %s: no cycle %d: there are %d to %d", r.dir, cycle, r.cycles[0], r.cycles[len(r.cycles)-1])
	}
	return nil
}

// Table is a table as it is in a cycle, without the column cycle. State tables and keyframes
// come from the cycle that Holder names. It reads one file, and one of cycles.
func (r *Reader) Table(name string, cycle int64) (*decision.Table, error) {
	holder, err := r.Holder(name, cycle)
	if err != nil {
		return nil, err
	}
	t, err := r.rows(name, holder, holder)
	if err != nil {
		return nil, err
	}
	t.Columns = t.Columns[1:]
	return t, nil
}

// Rows are a table's rows of the cycles first … last, with the column cycle. State tables and
// keyframes begin with the one that holds in first, and then come where they were written.
// More than 2²⁷ rows are an error.
func (r *Reader) Rows(name string, first, last int64) (*decision.Table, error) {
	for _, cycle := range []int64{first, last} {
		if err := r.known(name, cycle); err != nil {
			return nil, err
		}
	}
	if _, state := setOf[name]; state || isKeyframe(name) {
		holder, err := r.Holder(name, first)
		if err != nil && state {
			return nil, err
		}
		if err == nil {
			first = holder
		}
	}
	return r.rows(name, first, last)
}

// Digest recomputes a cycle's decisions digest (D-16) from the log.
func (r *Reader) Digest(cycle int64) (string, error) {
	var c decision.Cycle
	tables := c.Tables()
	for i := range tables {
		t, err := r.Table(tables[i].Name, cycle)
		if err != nil {
			return "", err
		}
		tables[i] = *t
	}
	return decision.Digest(tables), nil
}

// rows reads the files of a table that hold cycles first … last, in order, and checks that
// none is missing.
func (r *Reader) rows(name string, first, last int64) (*decision.Table, error) {
	spans := r.spans[name]
	from := sort.Search(len(spans), func(i int) bool { return spans[i].last >= first })
	end := sort.Search(len(spans), func(i int) bool { return spans[i].first > last })
	spans = spans[from:max(from, end)]
	if name != cyclesTable {
		var err error
		if spans, err = r.published(name, spans, first, last); err != nil {
			return nil, err
		}
	}
	return r.load(name, spans, first, last)
}

// published are the spans of a table that its cycles name. A file that a cycle names and
// that is missing is an error, one that none names is passed over.
func (r *Reader) published(name string, spans []span, first, last int64) ([]span, error) {
	var named []span
	i, _ := slices.BinarySearch(r.cycles, first)
	for ; i < len(r.cycles) && r.cycles[i] <= last; i++ {
		cycle := r.cycles[i]
		for len(spans) > 0 && spans[0].last < cycle {
			spans = spans[1:]
		}
		here := len(spans) > 0 && spans[0].first <= cycle
		h, err := r.head(cycle)
		if err != nil {
			return nil, err
		}
		_, want := h.files[name]
		if want && !here {
			return nil, fmt.Errorf("log %s: %s of cycle %d is missing", r.dir, name, cycle)
		}
		if (want || h.files == nil) && here && (len(named) == 0 || named[len(named)-1] != spans[0]) {
			named = append(named, spans[0])
		}
	}
	_, state := setOf[name]
	if state && (len(named) == 0 || named[0].first > first) || isKeyframe(name) && len(named) == 0 {
		return nil, fmt.Errorf("log %s: %s of cycle %d is missing", r.dir, name, first)
	}
	return named, nil
}

// load reads files into one table; without files it has the table's columns and no rows.
func (r *Reader) load(name string, spans []span, first, last int64) (*decision.Table, error) {
	var b builder
	for _, s := range spans {
		want := ""
		if s.first == s.last && name != cyclesTable {
			h, err := r.head(s.first)
			if err != nil {
				return nil, err
			}
			want = h.files[name]
		}
		f, err := read(s.path, want)
		if err != nil {
			return nil, err
		}
		if err := b.add(f, s, first, last); err != nil {
			return nil, fmt.Errorf("%s: %w", s.path, err)
		}
	}
	if len(spans) == 0 {
		b.table.Columns = append([]decision.Column{{Name: "cycle"}}, r.shape[name].Columns...)
	}
	b.table.Name = name
	return &b.table, nil
}

// head reads a cycle's row of cycles.
func (r *Reader) head(cycle int64) (head, error) {
	if h, ok := r.heads[cycle]; ok {
		return h, nil
	}
	spans := r.spans[cyclesTable]
	i := sort.Search(len(spans), func(i int) bool { return spans[i].last >= cycle })
	if i == len(spans) || spans[i].first > cycle {
		return head{}, fmt.Errorf("log %s: no cycle %d", r.dir, cycle)
	}
	f, err := read(spans[i].path, "")
	if err != nil {
		return head{}, err
	}
	var b builder
	if err := b.add(f, spans[i], cycle, cycle); err != nil {
		return head{}, fmt.Errorf("%s: %w", spans[i].path, err)
	}
	if b.table.Rows != 1 {
		return head{}, fmt.Errorf("%s: %d rows of cycle %d", spans[i].path, b.table.Rows, cycle)
	}
	h := head{}
	for s, name := range setTable {
		c := b.table.Column(name + "_cycle")
		if c == nil || c.Type != decision.Int || c.Int[0] < 0 || c.Int[0] > cycle {
			return head{}, fmt.Errorf("%s: cycle %d does not tell the cycle of %s", spans[i].path, cycle, name)
		}
		h.state[s] = c.Int[0]
	}
	if spans[i].first == spans[i].last {
		h.files = map[string]string{}
		for _, kv := range f.Metadata().KeyValueMetadata {
			if table, ok := strings.CutPrefix(kv.Key, metaFile); ok {
				h.files[table] = kv.Value
			}
		}
	}
	if len(r.heads) >= headsMax {
		clear(r.heads)
	}
	r.heads[cycle] = h
	return h, nil
}

// content is the content digest of the set of state tables in a cycle's file, "" when a
// compacted file does not tell.
func (r *Reader) content(name string, cycle int64) (string, error) {
	for _, s := range r.spans[name] {
		if s.first <= cycle && cycle <= s.last {
			f, err := read(s.path, "")
			if err != nil {
				return "", err
			}
			v, _ := f.Lookup(metaContent)
			return v, nil
		}
	}
	return "", fmt.Errorf("log %s: %s of cycle %d is missing", r.dir, name, cycle)
}

// Inputs are the inputs of a cycle, in the order applied.
func (r *Reader) Inputs(cycle int64) ([]Input, error) {
	t, err := r.Table(inputsTable, cycle)
	if err != nil {
		return nil, err
	}
	inputs := make([]Input, t.Rows)
	columns := make([]*decision.Column, 6)
	for i, name := range []string{"kind", "source", "format", "digest", "bytes", "rows"} {
		if columns[i] = t.Column(name); columns[i] == nil {
			return nil, fmt.Errorf("log %s: inputs of cycle %d: no column %s", r.dir, cycle, name)
		}
	}
	for row := range inputs {
		inputs[row] = Input{
			Kind: textAt(columns[0], row), Source: textAt(columns[1], row), Format: textAt(columns[2], row),
			Digest: textAt(columns[3], row), Bytes: columns[4].Int[row], Rows: columns[5].Int[row],
		}
	}
	return inputs, nil
}

func textAt(c *decision.Column, row int) string {
	if c.Code[row] == decision.Null {
		return ""
	}
	return string(c.Dict.Bytes(c.Code[row]))
}

// InputContent gives the bytes of an input as they were given, checked against the digest.
// Inputs beyond 4 GiB are an error.
func (r *Reader) InputContent(kind, digest string) ([]byte, error) {
	if sum, err := hex.DecodeString(digest); !kindName.MatchString(kind) || err != nil || len(sum) != sha256.Size {
		return nil, fmt.Errorf("log %s: %q is no input", r.dir, kind+"/"+digest)
	}
	path := inputPath(r.dir, kind, digest)
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	content, err := unpack(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != digest {
		return nil, fmt.Errorf("%s: damaged: its content has another digest", path)
	}
	return content, nil
}

func unpack(from io.Reader) ([]byte, error) {
	z, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(inputWindowBytes))
	if err != nil {
		return nil, err
	}
	defer z.Close()
	content, err := io.ReadAll(io.LimitReader(z, inputBytesMax+1))
	if err == nil && len(content) > inputBytesMax {
		err = fmt.Errorf("more than %d bytes", inputBytesMax)
	}
	return content, err
}
