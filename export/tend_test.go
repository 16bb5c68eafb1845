package export

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stintd/stint/core/decision"
)

// busy gives a writer a cycle of today, with two inputs: one of its own, one that comes again and again.
func busy(w *Writer, n int64) error {
	c := fill(n, n)
	c.Summary.NowUS = day + 120e6 + n*1e6
	if n == 1 {
		keyframe(c, n)
	}
	if n%60 == 1 {
		c.State = savedState(fmt.Sprint("state ", n))
	}
	var inputs []Input
	for i, text := range []string{fmt.Sprint("own ", n), fmt.Sprint("again ", n%7)} {
		in, err := w.Input("demand", fmt.Sprint("s", i), "json", []byte(text))
		if err != nil {
			return err
		}
		inputs = append(inputs, in)
	}
	return w.Cycle(c, inputs)
}

// holdBusy holds a log of such cycles against what was written.
func holdBusy(r *Reader, cycles int64) error {
	if n := int64(len(r.Cycles())); n < cycles || r.Cycles()[n-1] != n {
		return fmt.Errorf("%d cycles of %d", n, cycles)
	}
	for _, n := range r.Cycles() {
		want := fill(n, n)
		for _, t := range logged(want.Tables(), nil) {
			got, err := r.Table(t.Name, n)
			if err != nil {
				return err
			}
			if g, w := rowsOf(got), rowsOf(&t); g != w {
				return fmt.Errorf("cycle %d:\n%swas written as\n%s", n, g, w)
			}
		}
		inputs, err := r.Inputs(n)
		if err != nil {
			return err
		}
		for i, text := range []string{fmt.Sprint("own ", n), fmt.Sprint("again ", n%7)} {
			content, err := r.InputContent("demand", inputs[i].Digest)
			if err != nil || string(content) != text {
				return fmt.Errorf("cycle %d: the input %q is %q (%w)", n, text, content, err)
			}
		}
	}
	return nil
}

// countFiles counts the files of a log.
func countFiles(t *testing.T, dir string) (n int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			n++
		}
		if errors.Is(err, fs.ErrNotExist) { // compaction goes on
			err = nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestCompactBeside compacts a log again and again while it is written and read: nobody misses a cycle or an input,
// and the number of files stays.
func TestCompactBeside(t *testing.T) {
	const cycles = 120
	dir := t.TempDir()
	w := must(Open(dir, Options{Lazy: true}))(t)
	if err := busy(w, 1); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() {
		for n := int64(2); n <= cycles; n++ {
			if err := busy(w, n); err != nil {
				written <- err
				return
			}
		}
		written <- nil
	}()
	read := make(chan error, 1)
	stop := make(chan struct{})
	go func() {
		r, err := OpenLog(dir)
		for err == nil {
			select {
			case <-stop:
				read <- nil
				return
			default:
			}
			known := int64(len(r.Cycles()))
			if err = holdBusy(r, known); err == nil {
				err = r.Refresh()
			}
		}
		read <- err
	}()
	most := 0
	for going := true; going; {
		select {
		case err := <-written:
			if err != nil {
				t.Fatal(err)
			}
			going = false
		default:
		}
		if _, err := w.Compact(CompactOptions{Today: true}); err != nil {
			t.Fatal(err)
		}
		most = max(most, countFiles(t, dir))
	}
	close(stop)
	if err := <-read; err != nil {
		t.Fatal("reading beside it: ", err)
	}
	for range 2 { // inputs that came meanwhile are packed by the next
		must(w.Compact(CompactOptions{Today: true}))(t)
	}
	if err := holdBusy(must(OpenLog(dir))(t), cycles); err != nil {
		t.Error(err)
	}
	blobs := 0
	// of a cycle that stands alone
	if err := eachBlob(dir, func(string, string, string) error { blobs++; return nil }); err != nil || blobs > 2 {
		t.Errorf("%d inputs are not packed (%v)", blobs, err)
	}
	if n, bound := countFiles(t, dir), (smallRanges+2)*len(shapes())+cycles/60+2; n > bound {
		t.Errorf("%d files, at most %d expected; %d while it was written", n, bound, most)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCompactBesideStopped stops a compaction of today at every step, once cycles have come since, and goes on
// writing: what was written is there at any time, also for readers that opened the log before, and after the next
// compaction nothing is left over.
func TestCompactBesideStopped(t *testing.T) {
	base := t.TempDir()
	w := must(Open(base, Options{Lazy: true}))(t)
	for n := int64(1); n <= 6; n++ {
		if err := busy(w, n); err != nil {
			t.Fatal(err)
		}
		if n == 4 {
			must(w.Compact(CompactOptions{Today: true}))(t)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, grace := range []time.Duration{0, time.Nanosecond} {
		stride := 3 // some of the steps, all in a soak
		if os.Getenv("STINT_SOAK") != "" {
			stride = 1
		}
		for fail := 1; ; fail += stride {
			dir := copied(t, base)
			w := must(Open(dir, Options{Append: true, Lazy: true}))(t)
			before := must(OpenLog(dir))(t)
			c := must(w.newCompaction(CompactOptions{Today: true, Grace: grace}))(t)
			if err := busy(w, 7); err != nil { // after the compaction has begun
				t.Fatal(err)
			}
			n, where := 0, ""
			c.disk.step = func(op, path string) error {
				if n++; n >= fail {
					where = op + " " + strings.TrimPrefix(path, dir)
					return errDisk
				}
				return nil
			}
			err := c.run()
			w.compacted()
			what := fmt.Sprintf("grace %v, step %d, %s", grace, fail, where)
			if err != nil && !errors.Is(err, errDisk) {
				t.Fatalf("%s: %v", what, err)
			}
			for about, r := range map[string]*Reader{"opened before": before, "opened after": must(OpenLog(dir))(t)} {
				if err := holdBusy(r, int64(len(r.Cycles()))); err != nil {
					t.Fatalf("%s: %s: %v", what, about, err)
				}
			}
			if err := busy(w, 8); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			must(w.Compact(CompactOptions{Today: true}))(t)
			if r := must(OpenLog(dir))(t); len(r.Leftovers()) > 0 || holdBusy(r, 8) != nil {
				t.Fatalf("%s: gone on: left %v; %v", what, r.Leftovers(), holdBusy(r, 8))
			}
			if tmp := unfinished(t, dir); len(tmp) > 0 {
				t.Fatalf("%s: left %v", what, tmp)
			}
			if w.Close() != nil || err == nil {
				break
			}
		}
	}
}

// TestCompactGrace keeps files that were replaced for those who have listed them, until the time is over.
func TestCompactGrace(t *testing.T) {
	dir := t.TempDir()
	w := must(Open(dir, Options{Lazy: true}))(t)
	for n := int64(1); n <= 3; n++ {
		if err := busy(w, n); err != nil {
			t.Fatal(err)
		}
	}
	stop := make(chan struct{})
	close(stop)
	old := must(filepath.Glob(filepath.Join(dir, "*", "date=*", "*.parquet")))(t)
	c := must(w.newCompaction(CompactOptions{Today: true, Grace: time.Hour}))(t)
	c.o.Stop = nil
	r := must(OpenLog(dir))(t)
	if err := errors.Join(c.day(r, r.days()[0]), c.pack()); err != nil {
		t.Fatal(err)
	}
	if c.o.Stop = stop; !errors.Is(c.wait(), errStopped) {
		t.Error("it does not end when it shall stop")
	}
	w.compacted()
	for _, path := range old {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	if err := holdBusy(must(OpenLog(dir))(t), 3); err != nil {
		t.Error(err)
	}
	must(w.Compact(CompactOptions{Today: true}))(t)
	for _, path := range old {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there (%v)", path, err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestTend compacts at once, and again when a thousand cycles have come.
func TestTend(t *testing.T) {
	dir := t.TempDir()
	w := must(Open(dir, Options{Lazy: true}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	done, ended := make(chan Compacted, 10), make(chan struct{})
	go func() {
		defer close(ended)
		w.Tend(ctx, TendOptions{Every: time.Hour, Done: func(c Compacted, _ time.Duration, err error) {
			if err != nil {
				t.Error(err)
			}
			done <- c
		}})
	}()
	if first := <-done; first != (Compacted{}) {
		t.Errorf("of an empty log: %+v", first)
	}
	w.loose = looseMax - 3
	for n := int64(1); n <= 3; n++ {
		if err := busy(w, n); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case c := <-done:
		if c.Cycles != 3 {
			t.Errorf("%+v", c)
		}
	case <-time.After(time.Minute):
		t.Error("a thousand cycles are not compacted")
	}
	cancel()
	<-ended
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCompactToday puts sixteen neighbouring ranges of the day that goes on together, and all of them once it is over.
func TestCompactToday(t *testing.T) {
	dir := t.TempDir()
	w := must(Open(dir, Options{Lazy: true}))(t)
	ranges := func() (out [][2]int64) {
		for _, s := range must(OpenLog(dir))(t).ranges {
			out = append(out, [2]int64{s.first, s.last})
		}
		return out
	}
	for n := int64(1); n <= 2*smallRanges+2; n++ {
		if err := busy(w, n); err != nil {
			t.Fatal(err)
		}
		if n%2 == 0 {
			must(w.Compact(CompactOptions{Today: true}))(t)
		}
	}
	if got := fmt.Sprint(ranges()); got != "[[1 32] [33 34]]" {
		t.Errorf("ranges %s", got)
	}
	next := fill(35, 35)
	next.Summary.NowUS = day + 2*86400e6
	next.Grants = decision.Grants{}
	if err := w.Cycle(next, nil); err != nil {
		t.Fatal(err)
	}
	must(w.Compact(CompactOptions{Today: true}))(t)
	if got := fmt.Sprint(ranges()); got != "[[1 34] [35 35]]" {
		t.Errorf("ranges of the day that is over %s", got)
	}
	if packs := must(allPacks(folder{}, dir))(t); len(packs) != 1 || packs[0].first != 1 || packs[0].last != 34 {
		t.Errorf("packs %v", packs)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCompactStop ends a compaction between two tables of a range; the next one goes on.
func TestCompactStop(t *testing.T) {
	dir := t.TempDir()
	w := must(Open(dir, Options{Lazy: true}))(t)
	for n := int64(1); n <= 3; n++ {
		if err := busy(w, n); err != nil {
			t.Fatal(err)
		}
	}
	stop := make(chan struct{})
	c := must(w.newCompaction(CompactOptions{Today: true, Stop: stop}))(t)
	renames := 0
	c.disk.step = func(op, _ string) error {
		if op == "rename" {
			if renames++; renames == 1 {
				close(stop)
			}
		}
		return nil
	}
	if err := c.run(); !errors.Is(err, errStopped) || renames != 1 {
		t.Errorf("%d files were written, then: %v", renames, err)
	}
	w.compacted()
	must(w.Compact(CompactOptions{Today: true}))(t)
	r := must(OpenLog(dir))(t)
	if err := holdBusy(r, 3); err != nil || len(r.ranges) != 1 || len(r.Leftovers()) > 0 {
		t.Errorf("%v; ranges %v, left %v", err, r.ranges, r.Leftovers())
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}
