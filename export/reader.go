package export

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/stintd/stint/core/decision"
)

// What is taken of an input.
const (
	inputWindowBytes = 8 << 20
	inputBytesMax    = 4 << 30
	headsMax         = 1 << 15 // rows of cycles and metadata of files kept between calls
)

// Reader reads a decision log as it was when it was opened: cycles published since are not seen, what a cycle under way
// has written neither. Compaction may go on meanwhile. It is for one goroutine.
//
// Which file of a table holds a cycle follows from the file of cycles that holds it: the one of the same first and last
// cycle. Files of any other range are leftovers.
type Reader struct {
	from   Files
	dir    string
	cycles []int64
	ranges []span // the files of cycles
	shape  map[string]decision.Table
	files  map[string]map[[2]int64]string // by table, then first and last cycle: the path
	states map[int64]string               // by cycle: the path of its saved state
	packs  []span                         // of inputs
	packOf map[string]int64               // by input: a cycle that names it, as far as Inputs was asked
	open   unpacked                       // the pack that was read last
	parts  map[string]*part               // by table: what was read last of a file of several cycles
	within map[string][]int64             // by path of a file of several cycles: these; nil: all of its range
	heads  map[int64]head
	metas  map[string]map[string]string // by path: the metadata of files read
}

// head is what a cycle's row of cycles says of its other tables.
type head struct {
	state    [sets]int64       // the cycles that hold the state tables
	standing int64             // from which on the rows of what stands count; 0: the cycle does not have them
	revision int64             // of the policy
	files    map[string]string // seals of the files of the cycle's range
}

// OpenLog opens a log for reading. It lists the folders and reads no file, save those of
// compacted cycles of the table cycles. Errors name the path: no log there, a folder that cannot be read.
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
func openLog(dir string) (*Reader, error) { return OpenFiles(folder{}, dir) }

// OpenFiles opens a log of files that may lie elsewhere than in a folder. One that was never written to is empty.
func OpenFiles(from Files, log string) (*Reader, error) {
	r := &Reader{
		from: from, dir: log, shape: map[string]decision.Table{}, packOf: map[string]int64{}, parts: map[string]*part{},
		within: map[string][]int64{}, heads: map[int64]head{}, metas: map[string]map[string]string{},
	}
	for _, t := range shapes() {
		r.shape[t.Name] = t
	}
	return r, r.Refresh()
}

// Refresh lists the log anew, so that cycles published since are seen. Of files that it knows it reads nothing again.
func (r *Reader) Refresh() (err error) {
	for range agains {
		if err = r.refresh(); !errors.Is(err, fs.ErrNotExist) {
			break // else compaction has replaced what was listed
		}
	}
	return err
}

func (r *Reader) refresh() error {
	if err := r.list(); err != nil {
		return err
	}
	within := make(map[string][]int64, len(r.within))
	r.cycles = r.cycles[:0:0]
	for _, s := range r.ranges {
		if s.first == s.last {
			r.cycles = append(r.cycles, s.first)
			continue
		}
		some, known := r.within[s.path]
		if !known {
			var err error
			if some, err = r.cyclesIn(s); err != nil {
				return err
			}
		}
		within[s.path] = some
		if some != nil {
			r.cycles = append(r.cycles, some...)
			continue
		}
		for n := s.first; n <= s.last; n++ {
			r.cycles = append(r.cycles, n)
		}
	}
	r.within = within
	clear(r.heads)
	return nil
}

// cyclesIn are the cycles of a file of several; nil when they are all of its range.
func (r *Reader) cyclesIn(s span) ([]int64, error) {
	f, err := r.read(s.path, "")
	if err != nil {
		return nil, err
	}
	if f.NumRows() == s.last-s.first+1 {
		return nil, nil
	}
	t, err := r.load(cyclesTable, s, "", s.first, s.last)
	if err != nil {
		return nil, err
	}
	return t.Columns[0].Int, nil
}

// settled lists the files of cycles until two listings are the same: while compaction puts a longer file in the place
// of others, a listing may have neither.
func (r *Reader) settled() (spans []span, err error) {
	for i := range agains {
		was := spans
		if spans, err = list(r.from, r.dir, cyclesTable); err != nil || i > 0 && slices.Equal(was, spans) {
			break
		}
	}
	return spans, err
}

// list finds the files that there are now: of cycles first, since what these name is there.
func (r *Reader) list() error {
	if err := r.from.Refresh(); err != nil {
		return fmt.Errorf("log %s: %w", r.dir, err)
	}
	spans, err := r.settled()
	if err == nil {
		r.ranges, err = inForce(spans)
	}
	if err != nil {
		return fmt.Errorf("log %s: %w", r.dir, err)
	}
	b, err := readBefore(r.from, r.dir)
	if err != nil {
		return err
	}
	r.ranges = slices.DeleteFunc(r.ranges, func(s span) bool { return s.last < b.Cycle }) // dropped
	if r.states, err = listStates(r.from, r.dir); err != nil {
		return fmt.Errorf("log %s: %w", r.dir, err)
	}
	if err := r.listPacks(); err != nil {
		return err
	}
	r.files = map[string]map[[2]int64]string{}
	for name := range r.shape {
		spans, err := list(r.from, r.dir, name)
		if err != nil {
			return fmt.Errorf("log %s: %w", r.dir, err)
		}
		r.files[name] = make(map[[2]int64]string, len(spans))
		for _, s := range spans {
			if name != cyclesTable {
				if was, twice := r.files[name][[2]int64{s.first, s.last}]; twice {
					return fmt.Errorf("log %s: %s: cycle %d is in %s too", r.dir, s.path, s.first, was)
				}
			}
			r.files[name][[2]int64{s.first, s.last}] = s.path
		}
	}
	return nil
}

// agains is how often again tries anew: compaction may go on to the next day while a reader looks for the last one's
// files.
const agains = 10

// again does something that reads files, and once more whenever one of them is gone: then compaction has put another
// one in its place.
func again[T any](r *Reader, do func() (T, error)) (T, error) {
	v, err := do()
	for range agains {
		if !errors.Is(err, fs.ErrNotExist) && !errors.As(err, new(*missingError)) || r.relist() != nil {
			break
		}
		if w, second := do(); second == nil {
			return w, nil
		}
	}
	return v, err
}

// relist lists the log anew, save for the cycles published since it was opened.
func (r *Reader) relist() error {
	last := int64(math.MaxInt64)
	if n := len(r.cycles); n > 0 {
		last = r.cycles[n-1]
	}
	err := r.Refresh()
	r.cycles = r.cycles[:sort.Search(len(r.cycles), func(i int) bool { return r.cycles[i] > last })]
	return err
}

// missingError is a file that a cycle names and that is not there.
type missingError struct {
	dir, table string
	cycle      int64
}

func (e *missingError) Error() string {
	return fmt.Sprintf("log %s: %s of cycle %d is missing", e.dir, e.table, e.cycle)
}

// rangeOf is the file of cycles that holds a cycle.
func (r *Reader) rangeOf(cycle int64) (span, bool) {
	i := sort.Search(len(r.ranges), func(i int) bool { return r.ranges[i].last >= cycle })
	if i == len(r.ranges) || r.ranges[i].first > cycle {
		return span{}, false
	}
	return r.ranges[i], true
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
// that cycles names, for what stands the first of those whose rows count (0: there is none), for keyframes the nearest
// that is not later, else the cycle itself.
func (r *Reader) Holder(name string, cycle int64) (int64, error) {
	if err := r.known(name, cycle); err != nil {
		return 0, err
	}
	if s, ok := setOf[name]; ok {
		h, err := again(r, func() (head, error) { return r.head(cycle) })
		return h.state[s], err
	}
	if decision.IsStanding(name) {
		h, err := again(r, func() (head, error) { return r.head(cycle) })
		return h.standing, err
	}
	if !isKeyframe(name) {
		return cycle, nil
	}
	return again(r, func() (int64, error) { return r.frame(name, cycle) })
}

// frame is the nearest cycle up to one that has a keyframe.
func (r *Reader) frame(name string, cycle int64) (int64, error) {
	i := sort.Search(len(r.ranges), func(i int) bool { return r.ranges[i].first > cycle }) - 1
	for ; i >= 0; i-- {
		in, err := r.framesOf(name, r.ranges[i])
		if err != nil {
			return 0, err
		}
		if k := sort.Search(len(in), func(k int) bool { return in[k] > cycle }); k > 0 {
			return in[k-1], nil
		}
	}
	return 0, fmt.Errorf("log %s: no keyframe of %s up to cycle %d", r.dir, name, cycle)
}

// framesOf are the cycles of a range that have a keyframe; a longer file names them.
func (r *Reader) framesOf(name string, s span) (in []int64, err error) {
	path, ok := r.files[name][[2]int64{s.first, s.last}]
	switch {
	case !ok:
		return nil, nil
	case s.first == s.last:
		return []int64{s.first}, nil
	case r.metas[path] == nil:
		if _, err := r.read(path, ""); err != nil {
			return nil, err
		}
	}
	for word := range strings.FieldsSeq(r.metas[path][metaFrames]) {
		c, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: its keyframes: %w", path, err)
		}
		in = append(in, c)
	}
	return in, nil
}

func (r *Reader) known(name string, cycle int64) error {
	if _, ok := r.shape[name]; !ok {
		return fmt.Errorf("log %s: no table %q; there are %s", r.dir, name, strings.Join(r.Tables(), ", "))
	}
	if _, ok := slices.BinarySearch(r.cycles, cycle); !ok {
		if len(r.cycles) == 0 {
			return fmt.Errorf("log %s: no cycle %d: the log is empty", r.dir, cycle)
		}
		return fmt.Errorf("log %s: no cycle %d: there are %d to %d", r.dir, cycle, r.cycles[0],
			r.cycles[len(r.cycles)-1])
	}
	return nil
}

// Table is a table as it is in a cycle, without the column cycle. State tables and keyframes
// come from the cycle that Holder names: it reads one file, and one of cycles. What stands comes from the files since
// that cycle.
func (r *Reader) Table(name string, cycle int64) (*decision.Table, error) {
	holder, err := r.Holder(name, cycle)
	if err != nil {
		return nil, err
	}
	t, err := again(r, func() (*decision.Table, error) {
		if decision.IsStanding(name) {
			return r.standing(name, cycle)
		}
		return r.rows(name, holder, holder)
	})
	if err != nil {
		return nil, err
	}
	t.Columns = t.Columns[1:]
	return t, nil
}

// Rows are a table's rows of the cycles first … last, with the column cycle. State tables and
// keyframes begin with the one that holds in first, and then come where they were written, as do rows of what stands.
// More than 2²⁷ rows are an error.
func (r *Reader) Rows(name string, first, last int64) (*decision.Table, error) {
	for _, cycle := range []int64{first, last} {
		if err := r.known(name, cycle); err != nil {
			return nil, err
		}
	}
	if _, state := setOf[name]; state || isKeyframe(name) || decision.IsStanding(name) {
		holder, err := r.Holder(name, first)
		if err != nil && state {
			return nil, err
		}
		if err == nil && holder > 0 {
			first = holder
		}
	}
	return again(r, func() (*decision.Table, error) { return r.rows(name, first, last) })
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

// rows reads the files of a table that hold cycles first … last, in order. A file that their cycles name and that is
// missing is an error.
func (r *Reader) rows(name string, first, last int64) (*decision.Table, error) {
	if _, ok := r.rangeOf(first); !ok {
		return nil, fmt.Errorf("log %s: no cycle %d: it was dropped", r.dir, first)
	}
	b := builder{name: name}
	i := sort.Search(len(r.ranges), func(i int) bool { return r.ranges[i].last >= first })
	for ; i < len(r.ranges) && r.ranges[i].first <= last; i++ {
		s, want := r.ranges[i], ""
		if name != cyclesTable {
			h, err := r.head(max(first, s.first))
			if err != nil {
				return nil, err
			}
			var named, there bool
			want, named = h.files[name]
			s.path, there = r.files[name][[2]int64{s.first, s.last}]
			if named && !there {
				return nil, &missingError{r.dir, name, max(first, s.first)}
			}
			if !named {
				continue
			}
		}
		if first == last && s.first < s.last {
			return r.cycleOf(name, s, want, first)
		}
		if err := r.add(&b, name, s, want, first, last); err != nil {
			return nil, err
		}
	}
	_, state := setOf[name]
	if b.table.Columns == nil {
		if state || isKeyframe(name) {
			return nil, &missingError{r.dir, name, first}
		}
		b.table.Columns = append([]decision.Column{{Name: "cycle"}}, r.shape[name].Columns...)
	}
	b.table.Name = name
	if b.upgraded && name == setTable[consumersSet] {
		b.table = decision.Tree(&b.table)
	}
	return &b.table, nil
}

// add reads a file into a table that is being built.
func (r *Reader) add(b *builder, name string, s span, seal string, first, last int64) error {
	f, err := r.read(s.path, seal)
	if err != nil {
		return err
	}
	if err := b.add(f, s, first, last); err != nil {
		return fmt.Errorf("%s: %w", s.path, err)
	}
	return nil
}

// load reads the rows of a file.
func (r *Reader) load(name string, s span, seal string, first, last int64) (*decision.Table, error) {
	b := builder{name: name}
	err := r.add(&b, name, s, seal, first, last)
	b.table.Name = name
	return &b.table, err
}

// read opens a file and keeps its metadata.
func (r *Reader) read(path, seal string) (*parquet.File, error) {
	f, err := read(r.from, path, seal)
	if err != nil {
		return nil, err
	}
	if len(r.metas) >= headsMax {
		clear(r.metas)
	}
	meta := map[string]string{}
	for _, kv := range f.Metadata().KeyValueMetadata {
		meta[kv.Key] = kv.Value
	}
	r.metas[path] = meta
	return f, nil
}

// head reads a cycle's row of cycles.
func (r *Reader) head(cycle int64) (head, error) {
	if h, ok := r.heads[cycle]; ok {
		return h, nil
	}
	s, ok := r.rangeOf(cycle)
	if !ok {
		return head{}, fmt.Errorf("log %s: no cycle %d", r.dir, cycle)
	}
	t, err := r.load(cyclesTable, s, "", s.first, s.last)
	if err != nil {
		return head{}, err
	}
	if len(r.heads)+t.Rows > headsMax {
		clear(r.heads)
	}
	files := map[string]string{}
	for key, seal := range r.metas[s.path] {
		if table, ok := strings.CutPrefix(key, metaFile); ok {
			files[table] = seal
		}
	}
	found := 0
	for _, n := range t.Columns[0].Int {
		if n == cycle {
			found++
		}
	}
	if found != 1 {
		return head{}, fmt.Errorf("%s: %d rows of cycle %d", s.path, found, cycle)
	}
	for row, n := range t.Columns[0].Int {
		h := head{files: files}
		if c := t.Column("revision"); c != nil && c.Type == decision.Int {
			h.revision = c.Int[row]
		}
		for set, name := range setTable {
			c := t.Column(name + "_cycle")
			if c == nil || c.Type != decision.Int || c.Int[row] < 0 || c.Int[row] > n {
				return head{}, fmt.Errorf("%s: cycle %d does not tell the cycle of %s", s.path, n, name)
			}
			h.state[set] = c.Int[row]
		}
		c := t.Column("standing_cycle")
		if c == nil || c.Type != decision.Int || c.Int[row] < 0 || c.Int[row] > n {
			return head{}, fmt.Errorf("%s: cycle %d does not tell since when rows of what stands count", s.path, n)
		}
		h.standing = c.Int[row]
		r.heads[n] = h
	}
	return r.heads[cycle], nil
}

// content is the content digest of the set of state tables that a cycle holds.
func (r *Reader) content(set set, cycle int64) (string, error) {
	var members []decision.Table
	var c decision.Cycle
	for _, t := range c.Tables() {
		if s, ok := setOf[t.Name]; ok && s == set {
			rows, err := r.rows(t.Name, cycle, cycle)
			if err != nil {
				return "", err
			}
			rows.Columns = rows.Columns[1:]
			members = append(members, *rows)
		}
	}
	return decision.Content(members), nil
}

// Inputs are the inputs of a cycle, in the order applied.
func (r *Reader) Inputs(cycle int64) ([]Input, error) {
	t, err := r.Table(inputsTable, cycle)
	if err != nil {
		return nil, err
	}
	inputs := make([]Input, t.Rows)
	columns := make([]*decision.Column, 7)
	for i, name := range []string{"kind", "source", "format", "digest", "bytes", "rows", "author"} {
		if columns[i] = t.Column(name); columns[i] == nil {
			return nil, fmt.Errorf("log %s: inputs of cycle %d: no column %s", r.dir, cycle, name)
		}
	}
	for row := range inputs {
		inputs[row] = Input{
			Kind: textAt(columns[0], row), Source: textAt(columns[1], row), Format: textAt(columns[2], row),
			Digest: textAt(columns[3], row), Bytes: columns[4].Int[row], Rows: columns[5].Int[row],
			Author: textAt(columns[6], row),
		}
		if len(r.packOf) >= headsMax {
			clear(r.packOf)
		}
		r.packOf[blobKey(inputs[row].Kind, inputs[row].Digest)] = cycle
	}
	return inputs, nil
}

func textAt(c *decision.Column, row int) string {
	if c.Code[row] == decision.Null {
		return ""
	}
	return string(c.Dict.Bytes(c.Code[row]))
}
