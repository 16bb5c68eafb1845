package export

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTail goes on with a log in another folder, and puts both together from parts, as several processes do: the whole
// is what one writer would have written.
func TestTail(t *testing.T) {
	whole, head, tail := t.TempDir(), t.TempDir(), t.TempDir()
	threeDays(t, whole)
	want := must(contents(must(OpenLog(whole))(t)))(t)
	daysOf(t, must(Open(head, Options{Lazy: true}))(t), 1, 5)
	w := must(Open(tail, Options{Lazy: true, After: must(OpenLog(head))(t)}))(t)
	if w.Last() != 5 || w.standing != 5 {
		t.Errorf("it goes on after cycle %d, with what stands since cycle %d", w.Last(), w.standing)
	}
	daysOf(t, w, 6, 12)
	joined := t.TempDir()
	var parts []int64
	for first := int64(1); first <= 12; {
		from, upTo := head, int64(5)
		if first > 5 {
			from, upTo = tail, min(first+2, 12)
		}
		part := filepath.Join(t.TempDir(), "part")
		last := must(must(OpenLog(from))(t).Extract(part, first, upTo))(t)
		add(t, joined, part)
		parts, first = append(parts, last), last+1
	}
	if !slices.Equal(parts, []int64{4, 5, 8, 11, 12}) {
		t.Errorf("parts end with the cycles %v: with a day, with the log, with what is asked for", parts)
	}
	r := must(OpenLog(joined))(t)
	same(t, "joined", r, want, true)
	if left := r.Leftovers(); len(left) > 0 {
		t.Errorf("leftovers: %v", left)
	}
	if got := r.States(); !slices.Equal(got, []int64{1, 5, 6, 9, 12}) && !slices.Equal(got, []int64{1, 5, 6, 9}) {
		t.Errorf("states after %v", got)
	}
	days := filepath.Join(t.TempDir(), "day")
	if last := must(r.Extract(days, 5, 12))(t); last != 8 {
		t.Errorf("the second day ends with cycle %d", last)
	}
	if _, err := r.Extract(days, 3, 12); err == nil ||
		!strings.Contains(err.Error(), "no file of cycles begins with cycle 3") {
		t.Error("within a file:", err)
	}
	if _, err := r.Extract(days, 5, 4); err == nil {
		t.Error("no cycles at all are extracted")
	}
}

// add copies the files of a folder into another one.
func add(t *testing.T, to, from string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		at := filepath.Join(to, strings.TrimPrefix(path, from))
		return errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.Link(path, at))
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTrim removes the first cycles of a tail while more are written: later ones keep all that they name.
func TestTrim(t *testing.T) {
	dir := t.TempDir()
	w := must(Open(dir, Options{Lazy: true}))(t)
	for n := int64(1); n <= 40; n++ {
		if err := busy(w, n); err != nil {
			t.Fatal(err)
		}
	}
	written := make(chan error, 1)
	go func() {
		var err error
		for n := int64(41); n <= 80 && err == nil; n++ {
			err = busy(w, n)
		}
		written <- err
	}()
	for _, upTo := range []int64{10, 10, 35, 1000} {
		if err := w.Trim(min(upTo, 38)); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	r := must(OpenLog(dir))(t)
	if got := r.Cycles(); len(got) != 42 || got[0] != 39 {
		t.Fatalf("cycles %v", got)
	}
	for _, n := range r.Cycles() {
		for _, in := range must(r.Inputs(n))(t) {
			if _, err := r.InputContent(in.Kind, in.Digest); err != nil {
				t.Errorf("cycle %d: %v", n, err)
			}
		}
	}
	kept := 0
	if err := eachBlob(dir, func(string, string, string) error { kept++; return nil }); err != nil || kept != 42+7 {
		t.Errorf("%d inputs are kept (%v)", kept, err)
	}
}

// between is a folder that is compacted while it is listed: the first listing of the days of cycles has neither the
// files that are replaced nor those that replace them.
type between struct {
	folder
	compact func()
}

func (b *between) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := b.folder.ReadDir(name)
	if b.compact != nil && strings.Contains(name, cyclesTable+"/date=") {
		b.compact()
		b.compact = nil
		entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
			_, err := os.Stat(filepath.Join(name, e.Name()))
			return err != nil
		})
	}
	return entries, err
}

// TestListedBetween lists a log while compaction replaces files: no cycle is missing, at the opening, at a refresh and
// where a file that was listed is gone.
func TestListedBetween(t *testing.T) {
	dir := t.TempDir()
	w := must(Open(dir, Options{Lazy: true}))(t)
	next := int64(1)
	files := &between{}
	compacted := func() {
		for range 20 {
			if err := busy(w, next); err != nil {
				t.Fatal(err)
			}
			next++
		}
		files.compact = func() {
			if _, err := w.Compact(CompactOptions{Today: true}); err != nil {
				t.Error(err)
			}
		}
	}
	compacted()
	r := must(OpenFiles(files, dir))(t)
	for what, look := range map[string]func() error{
		"refreshed": r.Refresh,
		"relisted": func() error {
			_, err := again(r, func() (int, error) {
				if files.compact != nil {
					return 0, fmt.Errorf("a file: %w", fs.ErrNotExist)
				}
				return 0, nil
			})
			return err
		},
	} {
		if err := holdBusy(r, int64(len(r.Cycles()))); err != nil || len(r.Cycles()) < 20 {
			t.Fatal(len(r.Cycles()), err)
		}
		compacted()
		if err := look(); err != nil || files.compact != nil {
			t.Errorf("%s: %v", what, err)
		}
		if err := holdBusy(r, int64(len(r.Cycles()))); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if err := r.Refresh(); err != nil {
			t.Fatal(err)
		}
	}
}
