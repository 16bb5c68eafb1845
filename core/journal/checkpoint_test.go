package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// history is what a test keeps in a journal: its records, one a line. A checkpoint has the lines up to a record.
type history struct {
	j     *Journal
	lines []string
	taken uint64 // the checkpoint that was restored
	why   []error
}

// reopen opens a journal by its newest good checkpoint.
func reopen(dir string, o Options) (*history, error) {
	j, err := Open(dir, o)
	if err != nil {
		return nil, err
	}
	h := &history{j: j}
	h.taken, h.why, err = j.Restore(func(seq uint64, r io.Reader, bytes int64) error {
		b, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		if int64(len(b)) != bytes {
			return fmt.Errorf("%d bytes, announced were %d", len(b), bytes)
		}
		lines := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
		if len(b) == 0 {
			lines = nil
		}
		if uint64(len(lines)) != seq {
			return fmt.Errorf("%d lines for %d records", len(lines), seq)
		}
		h.lines = lines
		return nil
	})
	if err == nil {
		err = j.Replay(func(r Record) error {
			if int(r.Seq) != len(h.lines)+1 {
				return fmt.Errorf("record %d comes after %d", r.Seq, len(h.lines))
			}
			h.lines = append(h.lines, string(r.Payload))
			return nil
		})
	}
	if err != nil {
		return h, errors.Join(err, j.lock.Close())
	}
	return h, nil
}

func (h *history) add(lines ...string) (err error) {
	for _, line := range lines {
		if _, err := h.j.Append(1, false, []byte(line), nil, ""); err != nil {
			return err
		}
		h.lines = append(h.lines, line)
	}
	return h.j.Sync()
}

func (h *history) checkpoint() error {
	lines := slices.Clone(h.lines)
	return h.j.Checkpoint(uint64(len(lines)), func(w io.Writer) error {
		for _, line := range lines {
			if _, err := io.WriteString(w, line+"\n"); err != nil {
				return err
			}
		}
		return nil
	})
}

func numbered(from, to int) (lines []string) {
	for i := from; i <= to; i++ {
		lines = append(lines, fmt.Sprintf("this is line %d", i))
	}
	return lines
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// files counts a journal's checkpoints and tells its first record.
func files(t testing.TB, dir string) (checkpoints []uint64, first uint64) {
	t.Helper()
	checkpoints, err := listCheckpoints(dir)
	must(t, err)
	s, err := listSegments(dir)
	must(t, err)
	return checkpoints, s[0].first
}

func TestCheckpoints(t *testing.T) {
	dir, o := t.TempDir(), Options{SegmentBytesMax: 300}
	var want []string
	for round := range 6 {
		h, err := reopen(dir, o)
		must(t, err)
		if !slices.Equal(h.lines, want) || len(h.why) > 0 {
			t.Fatalf("round %d: %q, want %q; %v", round, h.lines, want, h.why)
		}
		if round > 0 && h.taken == 0 {
			t.Errorf("round %d: no checkpoint was taken", round)
		}
		before := h.j.Bytes()
		must(t, h.add(numbered(round*20+1, round*20+10)...))
		must(t, h.checkpoint())
		if round > 1 && h.j.Bytes() > 3000 {
			t.Errorf("round %d: the journal has %d bytes, %d before", round, h.j.Bytes(), before)
		}
		must(t, h.add(numbered(round*20+11, round*20+20)...))
		want = h.lines
		must(t, h.j.Close())
	}
	checkpoints, first := files(t, dir)
	if !slices.Equal(checkpoints, []uint64{110, 90}) || first < 80 || first > 91 {
		t.Errorf("checkpoints %v, first record %d", checkpoints, first)
	}
}

// TestDamagedCheckpoint changes each byte of the newest checkpoint, and cuts it off: the one before it is taken. Then
// that is damaged too, or what it needs is gone.
func TestDamagedCheckpoint(t *testing.T) {
	dir, o := t.TempDir(), Options{SegmentBytesMax: 200}
	h, err := reopen(dir, o)
	must(t, err)
	for i := range 3 {
		must(t, h.add(numbered(10*i+1, 10*i+10)...))
		must(t, h.checkpoint())
	}
	must(t, h.add("the end"))
	want := h.lines
	must(t, h.j.Close())
	path := checkpointPath(dir, 30)
	whole, err := os.ReadFile(path)
	must(t, err)
	try := func(b []byte) (*history, error) {
		must(t, os.WriteFile(path, b, 0o644))
		h, err := reopen(dir, o)
		if err == nil {
			must(t, h.j.Close())
		}
		return h, err
	}
	for i := range whole {
		bad := slices.Clone(whole)
		bad[i] ^= 0x41
		for _, b := range [][]byte{bad, whole[:i]} {
			h, err := try(b)
			if err != nil || h.taken != 20 || !slices.Equal(h.lines, want) {
				t.Fatalf("byte %d: checkpoint %d, %q, %v", i, h.taken, h.lines, err)
			}
			if len(h.why) != 1 || !strings.Contains(h.why[0].Error(), path) {
				t.Fatalf("byte %d: %v", i, h.why)
			}
		}
	}
	if h, err := try(append(slices.Clone(whole), 0)); err != nil || h.taken != 20 {
		t.Errorf("a byte more: %v", err)
	}
	bad := slices.Clone(whole)
	bad[60]++
	first, err := listSegments(dir)
	must(t, err)
	must(t, os.Rename(first[0].path, first[0].path+".away"))
	_, err = try(bad)
	if err == nil || !strings.Contains(err.Error(), path+": damaged: the block at byte 32") ||
		!strings.Contains(err.Error(), "a segment is missing before it: record 21 comes next") {
		t.Error(err)
	}
	if h, err := try(whole); err != nil || h.taken != 30 || !slices.Equal(h.lines, want) {
		t.Error("the newest is good and does not need them:", err)
	}
	must(t, os.Rename(first[0].path+".away", first[0].path))
	must(t, os.WriteFile(checkpointPath(dir, 20), []byte("rubbish"), 0o644))
	if _, err = try(bad); err == nil || !strings.Contains(err.Error(), path) ||
		!strings.Contains(err.Error(), checkpointPath(dir, 20)) {
		t.Error(err)
	}
}

// TestBadCheckpointGoes has a damaged one make place for the next, rather than be kept as the one to fall back to.
func TestBadCheckpointGoes(t *testing.T) {
	dir, o := t.TempDir(), Options{SegmentBytesMax: 200}
	h, err := reopen(dir, o)
	must(t, err)
	for i := range 2 {
		must(t, h.add(numbered(10*i+1, 10*i+10)...))
		must(t, h.checkpoint())
	}
	must(t, h.j.Close())
	must(t, os.Truncate(checkpointPath(dir, 20), 50))
	h, err = reopen(dir, o)
	must(t, err)
	must(t, h.add(numbered(21, 30)...))
	must(t, h.checkpoint())
	if got, _ := files(t, dir); !slices.Equal(got, []uint64{30, 10}) {
		t.Errorf("checkpoints %v", got)
	}
	must(t, h.j.Close())
}

// TestLostTail has a journal end before what its checkpoint stands for: that was durable.
func TestLostTail(t *testing.T) {
	for _, cut := range []int64{0, 30} {
		dir := t.TempDir()
		h, err := reopen(dir, Options{})
		must(t, err)
		must(t, h.add("one", "two"))
		end := h.j.end
		must(t, h.add("three"))
		must(t, h.checkpoint())
		must(t, h.j.Close())
		must(t, os.Truncate(lastSegment(t, dir), end+cut))
		if _, err := reopen(dir, Options{}); err == nil ||
			!strings.Contains(err.Error(), "there is a checkpoint of record 3") {
			t.Errorf("cut %d: %v", cut, err)
		}
	}
}

// TestFailedCheckpointSteps makes each step of the disk fail in turn, and gives the process up there: what was synced
// is there when the journal is opened again, and so it is when it goes on.
func TestFailedCheckpointSteps(t *testing.T) {
	failed := map[string]int{}
	for fail := 1; fail < 120; fail++ {
		dir, n, dead := t.TempDir(), 0, false
		o := Options{SegmentBytesMax: 150}
		o.Step = func(op, path string) error {
			if n++; n == fail {
				dead = true
				failed[op]++
			}
			if dead {
				return fmt.Errorf("failed on purpose at %s", op)
			}
			return nil
		}
		var sure, all []string
		if h, err := reopen(dir, o); err == nil {
			for i := range 6 {
				all = append(all, numbered(5*i+1, 5*i+5)...)
				if h.add(numbered(5*i+1, 5*i+5)...) == nil {
					sure = slices.Clone(h.lines)
				}
				_ = h.checkpoint()
			}
			if h.j.file != nil {
				_ = h.j.file.Close()
			}
			_ = h.j.lock.Close()
		}
		for range 2 {
			h, err := reopen(dir, Options{SegmentBytesMax: 150})
			if err != nil {
				t.Fatalf("step %d failed: %v", fail, err)
			}
			if len(h.lines) < len(sure) || len(h.lines) > len(all) || !slices.Equal(h.lines, all[:len(h.lines)]) {
				t.Fatalf("step %d failed: got %q, sure %q", fail, h.lines, sure)
			}
			must(t, h.checkpoint())
			must(t, h.j.Close())
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "*"+tmpSuffix)); len(left) > 0 {
			t.Fatalf("step %d failed: %q is left", fail, left)
		}
	}
	for _, op := range []string{"checkpoint_write", "checkpoint_sync", "checkpoint_rename", "checkpoint_renamed",
		"compact", "syncdir"} {
		if failed[op] == 0 {
			t.Errorf("%s never failed: %v", op, failed)
		}
	}
}

// TestLargeCheckpoint has blocks of every kind: none, one that is just full, several.
func TestLargeCheckpoint(t *testing.T) {
	for _, size := range []int{0, 1, checkpointBlockBytes - 1, checkpointBlockBytes, checkpointBlockBytes + 1,
		3*checkpointBlockBytes - 7} {
		dir := t.TempDir()
		h, err := reopen(dir, Options{})
		must(t, err)
		must(t, h.add("one"))
		content := strings.Repeat("x", size)
		must(t, h.j.Checkpoint(1, func(w io.Writer) error { _, err := io.WriteString(w, content); return err }))
		must(t, h.j.Close())
		j, err := Open(dir, Options{})
		must(t, err)
		seq, _, err := j.Restore(func(_ uint64, r io.Reader, bytes int64) error {
			b, err := io.ReadAll(r)
			if string(b) != content || bytes != int64(size) {
				return fmt.Errorf("%d bytes, announced %d, %w", len(b), bytes, err)
			}
			return err
		})
		if err != nil || seq != 1 {
			t.Errorf("%d bytes: %v", size, err)
		}
		must(t, j.lock.Close())
	}
}
