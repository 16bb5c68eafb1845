package export

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stintd/stint/core/decision"
)

// What becomes one file. Two files of a table are read into memory when they become one, and a reader takes a file
// whole.
const (
	compactBytesMax  = 32 << 20 // of a table's files
	compactRowsMax   = 1 << 20  // of a table
	compactCyclesMax = headsMax
)

// Of the day that goes on, single cycles become one file, and so do smallRanges neighbours of fewer cycles than
// smallCyclesMax.
const (
	smallRanges    = 16
	smallCyclesMax = 16_000
)

// CompactOptions say what compaction does.
type CompactOptions struct {
	KeepDays int  // whole days that are kept beside that of the last cycle; 0: all
	Today    bool // whether the day of the last cycle is compacted too, as far as it is written
	// how long files that were replaced stay, for readers that are no Reader and have listed them
	Grace time.Duration
	// when it is closed, compaction ends soon, with what it has done; nil: it goes on to its end
	Stop     <-chan struct{}
	Progress func(done, total int) // days; nil: nobody is told
}

// Compacted is what compaction did.
type Compacted struct {
	Days    int `json:"days"`    // whose cycles came into longer files
	Cycles  int `json:"cycles"`  // in them
	Before  int `json:"files"`   // files that were replaced
	After   int `json:"into"`    // by so many
	Dropped int `json:"dropped"` // cycles that are gone
	Removed int `json:"removed"` // files of theirs, and leftovers of a crash
}

// errStopped ends a compaction that is to stop.
var errStopped = errors.New("stopped")

// compaction is one under way.
type compaction struct {
	w     *Writer
	o     CompactOptions
	disk  disk
	out   Compacted
	last  int64  // the last cycle when it began: later ones are not its own
	today string // the folder of that cycle's day
	old   []string
}

// Compact puts the files of whole UTC days before that of the last cycle together, as few a day as memory allows,
// packs the inputs that they name, and drops days that are older than what is to be kept. It may be called while
// another goroutine gives the writer cycles, which are not touched; one compaction at a time. It may be stopped at any
// point, by a crash too: a reader finds every cycle that is kept whole, in its own files or in the longer ones, and
// the next call goes on. Readers may go on reading; one that looks for a cycle that was dropped gets an error.
//
// The longer files of a range of cycles come first, their file of cycles last: with that the others are replaced. What
// they replace is removed after. Days are dropped by naming the first cycle that is kept, with the inputs in force
// before it; their files are removed after that.
func (w *Writer) Compact(o CompactOptions) (Compacted, error) {
	c, err := w.newCompaction(o)
	if err != nil {
		return Compacted{}, err
	}
	defer w.compacted()
	if c.last == 0 {
		return c.out, nil
	}
	if err = c.run(); errors.Is(err, errStopped) {
		err = nil
	}
	return c.out, err
}

// newCompaction notes where the log ends; from then on the writer notes the inputs that its cycles name.
func (w *Writer) newCompaction(o CompactOptions) (*compaction, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken != nil {
		return nil, fmt.Errorf("log %s: %w", w.dir, w.broken)
	}
	if w.since != nil {
		return nil, fmt.Errorf("log %s: it is being compacted already", w.dir)
	}
	w.since, w.loose = map[string]bool{}, 0
	today := filepath.Base(datePath("", "", w.nowUS))
	return &compaction{w: w, o: o, disk: disk{step: w.disk.step, lazy: w.disk.lazy}, last: w.last, today: today}, nil
}

func (w *Writer) compacted() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.since = nil
}

func (c *compaction) stopped() bool {
	select {
	case <-c.o.Stop:
		return true
	default:
		return false
	}
}

func (c *compaction) run() error {
	r, err := openLog(c.w.dir)
	if err != nil {
		return err
	}
	if err := errors.Join(c.tidy(r, &c.out.Removed), c.dropUnfinished()); err != nil {
		return err
	}
	if err := c.drop(r); err != nil {
		return err
	}
	if r, err = openLog(c.w.dir); err != nil {
		return err
	}
	days := r.days()
	for i, d := range days {
		if d.date == c.today && !c.o.Today {
			continue // the last day goes on
		}
		if err := c.day(r, d); err != nil {
			return err
		}
		if c.o.Progress != nil {
			c.o.Progress(i+1, len(days)-1)
		}
	}
	if err := c.pack(); err != nil {
		return err
	}
	if err := c.wait(); err != nil {
		return err
	}
	if err := c.dropReplaced(true); err != nil {
		return err
	}
	return c.sweep()
}

// wait lets replaced files be for a while.
func (c *compaction) wait() error {
	if len(c.old) == 0 || c.o.Grace == 0 {
		return nil
	}
	t := time.NewTimer(c.o.Grace)
	defer t.Stop()
	select {
	case <-c.o.Stop:
		return errStopped
	case <-t.C:
		return nil
	}
}

// logDay is the files of cycles of a UTC day.
type logDay struct {
	date   string
	ranges []span
}

// days are the days of a log, in order.
func (r *Reader) days() (days []logDay) {
	for _, s := range r.ranges {
		date := filepath.Base(filepath.Dir(s.path))
		if n := len(days); n == 0 || days[n-1].date != date {
			days = append(days, logDay{date: date})
		}
		d := &days[len(days)-1]
		d.ranges = append(d.ranges, s)
	}
	return days
}

// remove takes a file away, counted as removed.
func (c *compaction) remove(path string) error {
	if err := c.disk.remove(path); err != nil {
		return err
	}
	c.out.Removed++
	return nil
}

// replaced notes a file that others stand for now.
func (c *compaction) replaced(paths ...string) { c.old = append(c.old, paths...) }

// dropReplaced removes the files that were replaced, unless they are to stay for a while.
func (c *compaction) dropReplaced(waited bool) error {
	if c.o.Grace > 0 && !waited {
		return nil
	}
	folders := map[string]bool{}
	for _, path := range c.old {
		if err := c.disk.remove(path); err != nil {
			return err
		}
		c.out.Before++
		folders[filepath.Dir(path)] = true
	}
	c.old = nil
	return c.flush(folders)
}

func (c *compaction) flush(folders map[string]bool) error {
	for folder := range folders {
		if err := c.disk.syncDir(folder); err != nil {
			return err
		}
	}
	return nil
}

// tidy removes files of cycles up to the last one that no reader looks at, and counts them.
func (c *compaction) tidy(r *Reader, n *int) error {
	folders := map[string]bool{}
	for _, path := range r.leftovers(c.last) {
		if err := c.disk.remove(path); err != nil {
			return err
		}
		*n++
		folders[filepath.Dir(path)] = true
	}
	return c.flush(folders)
}

// dropUnfinished removes files of several cycles that a compaction before this one has begun and not finished.
func (c *compaction) dropUnfinished() error {
	onDisk, folders := folder{}, []string{packsFolder}
	for _, t := range shapes() {
		folders = append(folders, t.Name)
	}
	for _, folder := range folders {
		err := eachFile(onDisk, c.w.dir, folder, func(path, name string) error {
			m := rangeTmp.FindStringSubmatch(name)
			if m == nil || m[1] == m[2] && folder != packsFolder { // a cycle that is being written
				return nil
			}
			return c.remove(path)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

var rangeTmp = regexp.MustCompile(`^cycles-(\d{12})-(\d{12})\.(?:parquet|tar\.zst)\.tmp$`)

// day makes longer files of those of a day.
func (c *compaction) day(r *Reader, d logDay) error {
	before := c.out.After
	for from := 0; from < len(d.ranges); {
		to, err := c.reach(r, d, from)
		if err != nil {
			return err
		}
		if to-from > 1 {
			if c.stopped() {
				return errStopped
			}
			if err := c.merge(r, d.date, d.ranges[from:to]); err != nil {
				return err
			}
		}
		from = max(to, from+1)
	}
	if c.out.After > before {
		c.out.Days++
	}
	return nil
}

// reach is how far the ranges from one on go that become one: until a file would be too large, or of the day that goes
// on until another size of ranges begins.
func (c *compaction) reach(r *Reader, d logDay, from int) (to int, err error) {
	size, rows := map[string]int64{}, int64(0)
	first := d.ranges[from]
	for to = from; to < len(d.ranges); to++ {
		s := d.ranges[to]
		if s.last > c.last || s.last-first.first >= compactCyclesMax ||
			d.date == c.today && ((s.first == s.last) != (first.first == first.last) ||
				s.last-s.first >= smallCyclesMax) {
			break
		}
		n, err := r.most(s)
		if err != nil {
			return 0, err
		}
		if rows += n; rows > compactRowsMax && to > from || r.grown(size, s) > compactBytesMax && to > from {
			break
		}
	}
	if n := to - from; d.date == c.today && first.first != first.last && n < smallRanges {
		return from + 1, nil
	}
	return to, nil
}

// grown adds the lengths of a range's files, and gives the largest sum.
func (r *Reader) grown(size map[string]int64, s span) (most int64) {
	for name := range r.shape {
		path, ok := r.files[name][[2]int64{s.first, s.last}]
		if !ok {
			continue
		}
		if info, err := r.from.Stat(path); err == nil {
			size[name] += info.Size()
			most = max(most, size[name])
		}
	}
	return most
}

// most is the most rows that a table's file of a range has. Logs of the first schema do not tell; there the files are
// asked.
func (r *Reader) most(s span) (n int64, err error) {
	if r.metas[s.path] == nil {
		if _, err := r.read(s.path, ""); err != nil {
			return 0, err
		}
	}
	if text, ok := r.metas[s.path][metaRows]; ok {
		if n, err = strconv.ParseInt(text, 10, 64); err != nil {
			return 0, fmt.Errorf("%s: %s: %w", s.path, metaRows, err)
		}
		return n, nil
	}
	for name := range r.shape {
		if path, ok := r.files[name][[2]int64{s.first, s.last}]; ok {
			f, err := r.read(path, "")
			if err != nil {
				return 0, err
			}
			n = max(n, f.NumRows())
		}
	}
	return n, nil
}

// merge publishes the longer files of some ranges, which replace the files of these.
func (c *compaction) merge(r *Reader, date string, ranges []span) error {
	m := merging{c: c, r: r, date: date, s: span{first: ranges[0].first, last: ranges[len(ranges)-1].last}}
	others, err := m.files(ranges)
	if err != nil {
		return err
	}
	for _, s := range ranges {
		m.old = append(m.old, s.path)
	}
	c.replaced(append(m.old, others...)...)
	c.out.Cycles += int(m.s.last - m.s.first + 1)
	return c.dropReplaced(false)
}

// files writes the longer files of some ranges, that of cycles last. It gives the files of saved states that they do
// not need.
func (m *merging) files(ranges []span) (states []string, err error) {
	c, r := m.c, m.r
	for _, name := range r.Tables() {
		if c.stopped() {
			return nil, errStopped // what was written is a leftover until then
		}
		n := len(m.old)
		for _, s := range ranges {
			if path, ok := r.files[name][[2]int64{s.first, s.last}]; ok && name != cyclesTable {
				m.old = append(m.old, path)
			}
		}
		if len(m.old) == n {
			continue
		}
		var more []meta
		if isKeyframe(name) {
			in, err := r.framesIn(name, ranges)
			if err != nil {
				return nil, err
			}
			more = []meta{{metaFrames, in}}
		}
		if err := m.write(name, more...); err != nil {
			return nil, err
		}
	}
	for _, folder := range m.folders {
		if err := c.disk.syncDir(folder); err != nil {
			return nil, err
		}
	}
	kept, others, err := r.mergeStates(ranges)
	if err != nil {
		return nil, err
	}
	m.named = append(m.named, meta{metaRows, strconv.FormatInt(m.rows, 10)})
	if err := m.write(cyclesTable, append(m.named, kept...)...); err != nil {
		return nil, err
	}
	return others, c.disk.syncDir(filepath.Join(c.w.dir, cyclesTable, m.date))
}

// merging is the files of some ranges on their way to become longer ones.
type merging struct {
	c       *compaction
	r       *Reader
	date    string
	s       span
	named   []meta   // the seals of the longer files
	rows    int64    // the most that one of them has
	old     []string // files that are replaced, of tables, then of cycles
	folders []string
}

// write publishes the longer file of a table.
func (m *merging) write(name string, more ...meta) error {
	t, err := m.r.rows(name, m.s.first, m.s.last)
	if err != nil {
		return err
	}
	m.rows = max(m.rows, int64(t.Rows))
	folder := filepath.Join(m.c.w.dir, name, m.date)
	m.folders = append(m.folders, folder)
	metas := append([]meta{{metaSchema, SchemaVersion}, {metaRules, decision.RulesVersion}}, more...)
	seal, err := m.c.longer(filepath.Join(folder, rangeName(m.s.first, m.s.last)), t, metas)
	m.named = append(m.named, meta{metaFile + name, seal})
	m.c.out.After++
	return err
}

// framesIn lists the cycles of some ranges that have a keyframe: one in which nothing is held has no row to tell.
func (r *Reader) framesIn(name string, ranges []span) (string, error) {
	var in []string
	for _, s := range ranges {
		cycles, err := r.framesOf(name, s)
		if err != nil {
			return "", err
		}
		for _, c := range cycles {
			in = append(in, strconv.FormatInt(c, 10))
		}
	}
	return strings.Join(in, " "), nil
}

// longer writes a file of several cycles.
func (c *compaction) longer(path string, t *decision.Table, metas []meta) (digest string, err error) {
	rows := t.Columns[0].Int
	if rows == nil {
		rows = []int64{}
	}
	t.Columns = t.Columns[1:]
	err = c.disk.write(path, func(to *os.File) (err error) {
		digest, err = seal(to, func(to io.Writer) error { return encodeRows(to, t, rows, metas) })
		return err
	})
	if err == nil {
		err = c.disk.rename(path)
	}
	if err != nil {
		err = errors.Join(err, c.disk.remove(path+tmpSuffix))
	}
	return digest, err
}

// drop removes days that are older than what is to be kept, unless a later cycle's tables are held by one of theirs.
func (c *compaction) drop(r *Reader) error {
	days := r.days()
	if c.o.KeepDays <= 0 || len(days) < 2 {
		return nil
	}
	last, err := time.Parse(time.DateOnly, strings.TrimPrefix(days[len(days)-1].date, "date="))
	if err != nil {
		return fmt.Errorf("log %s: %s is no day: %w", c.w.dir, days[len(days)-1].date, err)
	}
	oldest := "date=" + last.AddDate(0, 0, -c.o.KeepDays).Format(time.DateOnly)
	n := 0
	for n < len(days)-1 && days[n].date < oldest {
		n++
	}
	for ; n > 0; n-- { // what is kept must not need what goes
		needs, err := r.needs(days[n].ranges[0].first)
		if err != nil {
			return err
		}
		if needs >= days[n].ranges[0].first {
			break
		}
	}
	if n == 0 {
		return nil
	}
	if err := c.keepInputs(r, days[n].ranges[0].first); err != nil {
		return err
	}
	for _, d := range days[:n] {
		for _, s := range d.ranges {
			c.out.Dropped += int(s.last - s.first + 1)
		}
	}
	return c.sweep()
}

// sweep removes what counts for nothing: of days that were dropped, what a compaction that was stopped has replaced,
// and inputs that are packed or that nothing names.
func (c *compaction) sweep() error {
	r, err := openLog(c.w.dir)
	if err != nil {
		return err
	}
	if err := c.tidy(r, &c.out.Removed); err != nil {
		return err
	}
	b, err := readBefore(folder{}, c.w.dir)
	if err != nil {
		return err
	}
	if err := errors.Join(c.dropPacks(b.Cycle), c.dropBlobs()); err != nil || len(r.ranges) == 0 {
		return err
	}
	return c.emptyDays(filepath.Base(filepath.Dir(r.ranges[0].path)))
}

// needs is the first cycle that holds a table as it is in a cycle.
func (r *Reader) needs(cycle int64) (int64, error) {
	h, err := r.head(cycle)
	if err != nil {
		return 0, err
	}
	frame, err := r.frame("holdings", cycle)
	if err != nil {
		return 0, err
	}
	first := min(frame, slices.Min(h.state[:]))
	if h.standing > 0 {
		first = min(first, h.standing)
	}
	return first, nil
}

// emptyDays removes the folders of days before the first one in which nothing is any more.
func (c *compaction) emptyDays(first string) error {
	folders := []string{packsFolder, statesFolder, oldStatesFolder}
	for _, t := range shapes() {
		folders = append(folders, t.Name)
	}
	for _, name := range folders {
		dates, err := filepath.Glob(filepath.Join(c.w.dir, name, "date=*"))
		if err != nil {
			return err
		}
		for _, path := range dates {
			if filepath.Base(path) >= first {
				continue
			}
			if entries, err := os.ReadDir(path); err == nil && len(entries) == 0 {
				if err := c.disk.remove(path); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
