package export

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stintd/stint/core/decision"
)

// compactBytesMax bounds the files of one table that become one: what is read from them is in memory at once.
const compactBytesMax = 32 << 20

// CompactOptions say what compaction does.
type CompactOptions struct {
	KeepDays int                   // whole days that are kept beside that of the last cycle; 0: all
	Progress func(done, total int) // days; nil: nobody is told
}

// Compacted is what compaction did.
type Compacted struct {
	Days    int `json:"days"`    // whose cycles came into longer files
	Cycles  int `json:"cycles"`  // in them
	Before  int `json:"files"`   // files that were replaced
	After   int `json:"into"`    // by so many
	Dropped int `json:"dropped"` // cycles that are gone
	Removed int `json:"removed"` // files of theirs, inputs and leftovers of a crash among them
}

// Compact puts the files of whole UTC days before that of the last cycle together, as few a day as memory allows, and drops
// days that are older than what is to be kept. It may be stopped at any point, by a crash too: a reader finds every cycle that
// is kept whole, in its own files or in the longer ones, and the next call goes on. Readers may go on reading; one that looks for a cycle
// that was dropped gets an error.
//
// The longer files of a range of cycles come first, their file of cycles last: with that the others are replaced. What they
// replace is removed after. Days are dropped by naming the first cycle that is kept, with the inputs in force before it; their
// files are removed after that.
func (w *Writer) Compact(o CompactOptions) (c Compacted, err error) {
	if w.broken != nil {
		return c, fmt.Errorf("log %s: %w", w.dir, w.broken)
	}
	r, err := openLog(w.dir)
	if err != nil || len(r.cycles) == 0 {
		return c, err
	}
	if err := w.tidy(r, &c); err != nil {
		return c, err
	}
	if err := w.drop(r, o.KeepDays, &c); err != nil {
		return c, err
	}
	if r, err = openLog(w.dir); err != nil {
		return c, err
	}
	days := r.days()
	for i, d := range days[:max(0, len(days)-1)] { // the last day goes on
		if err := w.compactDay(r, d, &c); err != nil {
			return c, err
		}
		if o.Progress != nil {
			o.Progress(i+1, len(days)-1)
		}
	}
	return c, w.sweep(&c)
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

// tidy removes files that no reader looks at.
func (w *Writer) tidy(r *Reader, c *Compacted) error {
	folders := map[string]bool{}
	for _, path := range r.Leftovers() {
		if err := w.disk.remove(path); err != nil {
			return err
		}
		c.Removed++
		folders[filepath.Dir(path)] = true
	}
	for folder := range folders {
		if err := w.disk.syncDir(folder); err != nil {
			return err
		}
	}
	return nil
}

// compactDay makes longer files of those of a day, a run of cycles at a time.
func (w *Writer) compactDay(r *Reader, d logDay, c *Compacted) error {
	if len(d.ranges) < 2 {
		return nil
	}
	before := c.After
	for from := 0; from < len(d.ranges); {
		to := r.run(d.ranges, from)
		if to-from > 1 {
			if err := w.merge(r, d.date, d.ranges[from:to], c); err != nil {
				return err
			}
		}
		from = to
	}
	if c.After > before {
		c.Days++
	}
	return nil
}

// run is how far the ranges from one on go that become one: until a table's files are too large.
func (r *Reader) run(ranges []span, from int) (to int) {
	size := map[string]int64{}
	for to = from; to < len(ranges); to++ {
		for name := range r.shape {
			info, err := os.Stat(r.files[name][[2]int64{ranges[to].first, ranges[to].last}])
			if err != nil {
				continue // the cycle has none
			}
			if size[name] += info.Size(); size[name] > compactBytesMax && to > from {
				return to
			}
		}
	}
	return to
}

// merge publishes the longer files of some ranges and removes those that they replace.
func (w *Writer) merge(r *Reader, date string, ranges []span, c *Compacted) error {
	first, last := ranges[0].first, ranges[len(ranges)-1].last
	metas := []meta{{metaSchema, SchemaVersion}, {metaRules, decision.RulesVersion}}
	var named []meta
	var folders []string
	write := func(name string, more ...meta) error {
		t, err := r.rows(name, first, last)
		if err != nil {
			return err
		}
		folder := filepath.Join(w.dir, name, date)
		folders = append(folders, folder)
		seal, err := w.longer(filepath.Join(folder, rangeName(first, last)), t, append(slices.Clone(metas), more...))
		named = append(named, meta{metaFile + name, seal})
		c.After++
		return err
	}
	var old []string // of the tables, then of cycles
	for _, name := range r.Tables() {
		n := len(old)
		for _, s := range ranges {
			if path, ok := r.files[name][[2]int64{s.first, s.last}]; ok && name != cyclesTable {
				old = append(old, path)
			}
		}
		if len(old) == n {
			continue
		}
		var more []meta
		if isKeyframe(name) {
			in, err := r.framesIn(name, ranges)
			if err != nil {
				return err
			}
			more = []meta{{metaFrames, in}}
		}
		if err := write(name, more...); err != nil {
			return err
		}
	}
	for _, folder := range folders {
		if err := w.disk.syncDir(folder); err != nil {
			return err
		}
	}
	states, others, err := r.mergeStates(ranges)
	if err != nil {
		return err
	}
	if err := write(cyclesTable, append(named, states...)...); err != nil {
		return err
	}
	if err := w.disk.syncDir(filepath.Join(w.dir, cyclesTable, date)); err != nil {
		return err
	}
	for _, s := range ranges {
		old = append(old, s.path)
	}
	for _, path := range append(old, others...) {
		if err := w.disk.remove(path); err != nil {
			return err
		}
	}
	c.Cycles, c.Before = c.Cycles+int(last-first)+1, c.Before+len(old)
	for _, folder := range folders {
		if err := w.disk.syncDir(folder); err != nil {
			return err
		}
	}
	return nil
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
func (w *Writer) longer(path string, t *decision.Table, metas []meta) (digest string, err error) {
	rows := t.Columns[0].Int
	if rows == nil {
		rows = []int64{}
	}
	t.Columns = t.Columns[1:]
	err = w.disk.write(path, func(to *os.File) (err error) {
		digest, err = seal(to, func(to io.Writer) error { return encodeRows(to, t, rows, metas) })
		return err
	})
	if err == nil {
		err = w.disk.rename(path)
	}
	return digest, err
}

// drop removes days that are older than what is to be kept, unless a later cycle's tables are held by one of theirs.
func (w *Writer) drop(r *Reader, keep int, c *Compacted) error {
	days := r.days()
	if keep <= 0 || len(days) < 2 {
		return nil
	}
	last, err := time.Parse(time.DateOnly, strings.TrimPrefix(days[len(days)-1].date, "date="))
	if err != nil {
		return fmt.Errorf("log %s: %s is no day: %w", w.dir, days[len(days)-1].date, err)
	}
	oldest := "date=" + last.AddDate(0, 0, -keep).Format(time.DateOnly)
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
	if err := w.keepInputs(r, days[n].ranges[0].first); err != nil {
		return err
	}
	for _, d := range days[:n] {
		for _, s := range d.ranges {
			c.Dropped += int(s.last - s.first + 1)
		}
	}
	return w.sweep(c)
}

// sweep removes what dropped days left.
func (w *Writer) sweep(c *Compacted) error {
	r, err := openLog(w.dir)
	if err != nil {
		return err
	}
	if err := w.tidy(r, c); err != nil {
		return err
	}
	if b, err := readBefore(w.dir); err != nil || b.Cycle == 0 {
		return err
	}
	return errors.Join(w.emptyDays(), w.dropInputs(r, c))
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
	return min(frame, slices.Min(h.state[:])), nil
}

// emptyDays removes the folders of days in which nothing is any more.
func (w *Writer) emptyDays() error {
	folders := []string{statesFolder}
	for _, t := range shapes() {
		folders = append(folders, t.Name)
	}
	for _, name := range folders {
		dates, err := filepath.Glob(filepath.Join(w.dir, name, "date=*"))
		if err != nil {
			return err
		}
		for _, path := range dates {
			if entries, err := os.ReadDir(path); err == nil && len(entries) == 0 {
				if err := w.disk.remove(path); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
