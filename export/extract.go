package export

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// Extract writes cycles as files of one range into an empty folder, as a compacted log has them: tables, the inputs
// that they name, a saved state. They are those from first on, with which files of cycles must begin, up to one, of the
// same UTC day and no more than become one file. It gives the last of them.
func (r *Reader) Extract(dir string, first, upTo int64) (last int64, err error) {
	return again(r, func() (int64, error) {
		if err := os.RemoveAll(dir); err != nil { // what an attempt before this one has left
			return 0, err
		}
		return r.extract(dir, first, upTo)
	})
}

func (r *Reader) extract(dir string, first, upTo int64) (last int64, err error) {
	c := &compaction{w: &Writer{dir: dir}, disk: disk{lazy: true}, last: upTo}
	ranges, err := c.taken(r, first)
	if err != nil {
		return 0, err
	}
	whole := span{ranges[0].first, ranges[len(ranges)-1].last, ranges[0].path}
	date := dateOf(whole.path)
	for _, name := range r.Tables() {
		if err := os.MkdirAll(filepath.Join(dir, name, date), 0o755); err != nil {
			return 0, err
		}
	}
	var names []int64 // cycles whose saved states the new file of cycles names
	if len(ranges) == 1 {
		names, err = r.copied(dir, ranges[0])
	} else {
		m := merging{c: c, r: r, date: date, s: whole}
		if _, err = m.files(ranges); err == nil {
			names, err = r.firstState(ranges)
		}
	}
	if err != nil {
		return 0, err
	}
	for _, cycle := range names {
		if err := r.copyTo(filepath.Join(dir, statesFolder, date), r.states[cycle]); err != nil {
			return 0, err
		}
	}
	list, err := r.named(whole.first, whole.last)
	if err == nil && len(list) > 0 {
		err = c.writePack(r, whole, list)
	}
	return whole.last, err
}

// taken are the ranges from a cycle on that become one.
func (c *compaction) taken(r *Reader, first int64) ([]span, error) {
	for _, d := range r.days() {
		for from, s := range d.ranges {
			if s.first != first {
				continue
			}
			to, err := c.reach(r, d, from)
			if err == nil && to == from {
				err = fmt.Errorf("log %s: the cycles from %d on go beyond cycle %d", r.dir, first, c.last)
			}
			return d.ranges[from:to], err
		}
	}
	return nil, fmt.Errorf("log %s: no file of cycles begins with cycle %d", r.dir, first)
}

// dateOf is the folder of the day of a file.
func dateOf(path string) string { return filepath.Base(filepath.Dir(path)) }

// copied copies the files of a range as they are. It gives the cycles whose saved states are named.
func (r *Reader) copied(dir string, s span) (states []int64, err error) {
	files, err := r.Manifest(s.first)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if f.Named == "" && f.Table != cyclesTable {
			continue
		}
		if err := r.copyTo(filepath.Join(dir, f.Table, dateOf(f.Path)), f.Path); err != nil {
			return nil, err
		}
	}
	for cycle := s.first; cycle <= s.last; cycle++ {
		if r.metas[s.path][stateKey(cycle)] != "" {
			states = append(states, cycle)
		}
	}
	return states, nil
}

// firstState is the cycle whose saved state stays when ranges become one, if there is any: see mergeStates.
func (r *Reader) firstState(ranges []span) ([]int64, error) {
	kept, _, err := r.mergeStates(ranges)
	if err != nil || len(kept) == 0 {
		return nil, err
	}
	cycle, err := strconv.ParseInt(kept[0].key[len(metaState):], 10, 64)
	return []int64{cycle}, err
}

// copyTo copies a file into a folder.
func (r *Reader) copyTo(folder, path string) error {
	from, err := r.from.Open(path)
	if err != nil {
		return err
	}
	defer from.Close()
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	to, err := os.Create(filepath.Join(folder, filepath.Base(path)))
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// Trim removes the cycles up to one, with the inputs that no later one names: of a tail, whose cycles are loose, once
// another log has them. It is one compaction, which may go on beside the goroutine that writes.
func (w *Writer) Trim(upTo int64) error {
	c, err := w.newCompaction(CompactOptions{})
	if err != nil {
		return err
	}
	defer w.compacted()
	folders := []string{cyclesTable} // first: what it names is there as long as it is
	for _, t := range shapes() {
		folders = append(folders, t.Name)
	}
	for _, name := range folders {
		spans, err := list(folder{}, w.dir, name)
		if err != nil {
			return err
		}
		for _, s := range spans {
			if s.last <= min(upTo, c.last) {
				err = errors.Join(err, c.disk.remove(s.path))
			}
		}
		if err != nil {
			return err
		}
	}
	states, err := listStates(folder{}, w.dir)
	if err != nil {
		return err
	}
	for cycle, path := range states {
		if cycle <= min(upTo, c.last) {
			err = errors.Join(err, c.disk.remove(path))
		}
	}
	return errors.Join(err, c.dropBlobs())
}
