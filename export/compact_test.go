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

	"github.com/stintd/stint/core/decision"
)

// threeDays writes a log of four cycles on each of three days, with keyframes, states after two of the four, and a
// policy and hosts in the first.
func threeDays(t *testing.T, dir string) {
	t.Helper()
	daysOf(t, must(Open(dir, Options{Lazy: true}))(t), 1, 12)
}

// daysOf writes some of its cycles.
func daysOf(t *testing.T, w *Writer, first, last int64) {
	t.Helper()
	for n := first; n <= last; n++ {
		c := fill(n, 5+n/3)
		c.Summary.NowUS = day + 60e6 + (n-1)/4*86400e6 + (n-1)%4*60e6
		if (n-1)%4 == 0 {
			keyframe(c, n)
		}
		if (n-1)%4 < 2 {
			c.State = savedState(fmt.Sprint("state ", n))
		}
		if n%2 == 0 {
			c.Grants = decision.Grants{}
			c.Grants.Plan, c.Grants.Consumer, c.Grants.Allocation, c.Grants.Sub = coded(), coded(), coded(), coded()
			c.Grants.Source, c.Grants.Host = coded(), coded()
			c.Grants.Origin, c.Grants.Pool, c.Grants.Lender = coded(), coded(), coded()
			c.Grants.Device = coded()
		}
		var inputs []Input
		for _, in := range []struct{ kind, source, text string }{{"plan", "", "p"}, {"hosts", "", "h"},
			{"demand", "s", fmt.Sprint("d", n)}} {
			if n == 1 || in.kind == "demand" && n%3 == 0 {
				inputs = append(inputs, must(w.Input(in.kind, in.source, "yaml", []byte(in.text)))(t))
			}
		}
		if err := w.Cycle(c, inputs); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// contents are all tables of all cycles of a log as texts.
func contents(r *Reader) (map[string]string, error) {
	all := map[string]string{}
	for _, cycle := range r.Cycles() {
		for _, name := range r.Tables() {
			table, err := r.Table(name, cycle)
			if err != nil {
				if isKeyframe(name) && strings.Contains(err.Error(), "no keyframe") {
					continue
				}
				return nil, err
			}
			all[fmt.Sprint(name, " ", cycle)] = rowsOf(table)
		}
	}
	for _, cycle := range r.Cycles() {
		inputs, err := r.Inputs(cycle)
		if err != nil {
			return nil, err
		}
		for _, in := range inputs {
			content, err := r.InputContent(in.Kind, in.Digest)
			if err != nil {
				return nil, err
			}
			all[fmt.Sprint("input ", cycle, " ", in.Kind)] = string(content)
		}
	}
	for _, cycle := range r.Cycles() {
		if cycle%4 == 1 && cycle < 13 { // the first state of a day
			state, err := r.State(cycle)
			if err != nil {
				return nil, err
			}
			all[fmt.Sprint("state ", cycle)] = string(state)
		}
	}
	for _, name := range []string{"grants", "consumers", "holdings", "cycles"} {
		rows, err := r.Rows(name, r.Cycles()[0], r.Cycles()[len(r.Cycles())-1])
		if err != nil {
			return nil, err
		}
		all["rows "+name] = rowsOf(rows)
	}
	return all, nil
}

// same holds a log's contents against what they were, of the cycles that it has.
func same(t *testing.T, what string, r *Reader, want map[string]string, whole bool) {
	t.Helper()
	got, err := contents(r)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	for key, text := range got {
		if text != want[key] && (whole || !strings.HasPrefix(key, "rows ")) {
			t.Errorf("%s: %s is\n%s\nand was\n%s", what, key, text, want[key])
		}
	}
	if whole && len(got) != len(want) {
		t.Errorf("%s: %d tables of cycles, %d were there", what, len(got), len(want))
	}
}

// copied is a copy of a log, of the same files.
func copied(t *testing.T, base string) string {
	t.Helper()
	dir := t.TempDir()
	err := filepath.WalkDir(base, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == lockName {
			return err
		}
		to := filepath.Join(dir, strings.TrimPrefix(path, base))
		return errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.Link(path, to))
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestCompact makes longer files of two days of three, and then drops one.
func TestCompact(t *testing.T) {
	dir := t.TempDir()
	threeDays(t, dir)
	old := must(OpenLog(dir))(t)
	want := must(contents(old))(t)
	w := must(Open(dir, Options{Append: true, Lazy: true}))(t)
	c := must(w.Compact(CompactOptions{}))(t)
	if c.Days != 2 || c.Cycles != 8 || c.Before != 68 || c.After != 36 || c.Dropped != 0 || c.Removed != 5 {
		t.Errorf("%+v", c)
	}
	same(t, "compacted", must(OpenLog(dir))(t), want, true)
	if states := must(OpenLog(dir))(t).States(); !slices.Equal(states, []int64{1, 5, 9, 10}) {
		t.Errorf("states %v", states)
	}
	same(t, "compacted, opened before", old, want, true)
	if c := must(w.Compact(CompactOptions{}))(t); c != (Compacted{}) {
		t.Errorf("a second time: %+v", c)
	}
	next := fill(13, 99)
	next.Summary.NowUS = day + 3*86400e6
	if err := errors.Join(w.Cycle(next, nil), w.Close()); err != nil {
		t.Fatal(err)
	}
	w = must(Open(dir, Options{Append: true, Lazy: true}))(t)
	if w.Last() != 13 {
		t.Errorf("the last cycle is %d", w.Last())
	}
	c = must(w.Compact(CompactOptions{KeepDays: 1}))(t)
	r := must(OpenLog(dir))(t)
	if c.Dropped != 4 || r.Cycles()[0] != 5 || len(r.Cycles()) != 9 {
		t.Errorf("%+v, cycles %v", c, r.Cycles())
	}
	same(t, "a day dropped", r, want13(t, old, want, r), false)
	if _, err := old.Table("grants", 1); err == nil {
		t.Error("a cycle that was dropped can be read")
	}
	var kinds []string
	for _, in := range must(r.Before())(t) {
		kinds = append(kinds, in.Kind+" "+string(must(r.InputContent(in.Kind, in.Digest))(t)))
	}
	if !slices.Equal(kinds, []string{"plan p", "hosts h", "demand d3"}) {
		t.Errorf("inputs in force: %v", kinds)
	}
	if files := must(filepath.Glob(filepath.Join(dir, statesFolder, "*", "*")))(t); !slices.Equal(r.States(),
		[]int64{5, 9, 10}) || len(files) != 3 {
		t.Errorf("states %v, files %v", r.States(), files)
	}
	var left []string
	for _, path := range must(filepath.Glob(filepath.Join(dir, blobsFolder, "*", "*.zst")))(t) {
		left = append(left, filepath.Base(filepath.Dir(path))+" "+string(must(unpackFile(folder{}, path))(t)))
	}
	if packs := must(filepath.Glob(filepath.Join(dir, packsFolder, "*", "*")))(t); !slices.Equal(left,
		[]string{"demand d12", "demand d9", "demand d3", "hosts h", "plan p"}) || len(packs) != 1 {
		t.Errorf("inputs kept: %v, packs %v", left, packs)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// want13 is what was wanted, with the cycle that came after.
func want13(t *testing.T, old *Reader, want map[string]string, r *Reader) map[string]string {
	t.Helper()
	all := map[string]string{}
	for k, v := range want {
		all[k] = v
	}
	for _, name := range r.Tables() {
		all[name+" 13"] = rowsOf(must(r.Table(name, 13))(t))
	}
	return all
}

// TestCompactStopped stops compaction at every step, for good: readers see every cycle whole, those that opened the log
// before too, and the next writer goes on.
func TestCompactStopped(t *testing.T) {
	base := t.TempDir()
	threeDays(t, base)
	want := must(contents(must(OpenLog(base))(t)))(t)
	for _, keep := range []int{0, 1} {
		steps := 0
		w := must(Open(copied(t, base), Options{Append: true, Lazy: true}))(t)
		w.disk.step = func(string, string) error { steps++; return nil }
		must(w.Compact(CompactOptions{KeepDays: keep}))(t)
		stride := 7 // some of the steps, all in a soak
		if os.Getenv("STINT_SOAK") != "" {
			stride = 1
		}
		for fail := 1; fail <= steps; fail += stride {
			stopAt(t, copied(t, base), keep, fail, want)
		}
	}
}

func stopAt(t *testing.T, dir string, keep, fail int, want map[string]string) {
	t.Helper()
	before := must(OpenLog(dir))(t)
	w := must(Open(dir, Options{Append: true, Lazy: true}))(t)
	n, failed := 0, ""
	w.disk.step = func(op, path string) error {
		if n++; n >= fail {
			failed += op + strings.TrimPrefix(path, dir) + "; "
			return errDisk
		}
		return nil
	}
	if _, err := w.Compact(CompactOptions{KeepDays: keep}); !errors.Is(err, errDisk) {
		t.Fatalf("failed at %s: %v", failed, err)
	}
	what := fmt.Sprintf("keep %d, stopped at %s", keep, failed)
	r := must(OpenLog(dir))(t)
	if cycles := r.Cycles(); cycles[len(cycles)-1] != 12 || keep == 0 && len(cycles) != 12 ||
		int(cycles[0])+len(cycles) != 13 {
		t.Errorf("%s: cycles %v", what, cycles)
	}
	same(t, what, r, want, keep == 0)
	if keep == 0 {
		same(t, what+", opened before", before, want, true)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w = must(Open(dir, Options{Append: true, Lazy: true}))(t)
	must(w.Compact(CompactOptions{KeepDays: keep}))(t)
	r = must(OpenLog(dir))(t)
	if first := r.Cycles()[0]; first != map[int]int64{0: 1, 1: 5}[keep] {
		t.Errorf("%s: gone on, the first cycle is %d", what, first)
	}
	same(t, what+", gone on", r, want, keep == 0)
	if left := r.Leftovers(); len(left) > 0 {
		t.Errorf("%s: left %v", what, left)
	}
	if tmp := unfinished(t, dir); len(tmp) > 0 {
		t.Errorf("%s: left %v", what, tmp)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// unfinished are the files of a log that were begun and not finished.
func unfinished(t *testing.T, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, tmpSuffix) {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// TestCompactRead reads a log while it is compacted, again and again.
func TestCompactRead(t *testing.T) {
	base := t.TempDir()
	threeDays(t, base)
	want := must(contents(must(OpenLog(base))(t)))(t)
	for range 5 {
		dir := copied(t, base)
		w := must(Open(dir, Options{Append: true, Lazy: true}))(t)
		done := make(chan error)
		go func() {
			_, err := w.Compact(CompactOptions{})
			done <- err
		}()
		for going := true; going; {
			select {
			case err := <-done:
				if err != nil {
					t.Fatal(err)
				}
				going = false
			default:
			}
			same(t, "while it is compacted", must(OpenLog(dir))(t), want, true)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
