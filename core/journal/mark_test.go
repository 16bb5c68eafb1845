package journal

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// marked is a journal of records that were all acknowledged, as a kill leaves it, and the offset of its last record.
func marked(t *testing.T, records int) (dir string, o Options, last int64) {
	t.Helper()
	root := t.TempDir()
	dir, o = filepath.Join(root, "journal"), Options{Mark: filepath.Join(root, "mark")}
	j, _ := replayed(t, dir, o)
	for i := range records {
		last = j.end
		add(t, j, 1, fmt.Sprintf("record %d", i+1))
		must(t, j.Sync())
	}
	must(t, j.lock.Close())
	return dir, o, last
}

// content reads all files of a folder.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	all := map[string]string{}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		must(t, err)
		all[e.Name()] = string(b)
	}
	return all
}

// TestMarkRefuses damages and cuts off the last record, which was acknowledged: the start is refused with both numbers
// and changes nothing, unless the loss is accepted by its number.
func TestMarkRefuses(t *testing.T) {
	dir, o, from := marked(t, 3)
	path := lastSegment(t, dir)
	whole, err := os.ReadFile(path)
	must(t, err)
	mark, err := os.ReadFile(o.Mark)
	must(t, err)
	one, two := uint64(1), uint64(2)
	check := func(what string, b []byte) {
		t.Helper()
		must(t, os.WriteFile(path, b, 0o600))
		must(t, os.WriteFile(o.Mark, mark, 0o600))
		was := content(t, dir)
		for _, accept := range []*uint64{nil, &one} {
			o.AcceptLoss = accept
			_, _, err := tryReplay(dir, o)
			if err == nil || strings.Contains(err.Error(), "\n") ||
				!strings.Contains(err.Error(), "ends with record 2") ||
				!strings.Contains(err.Error(), "record 3 was acknowledged") ||
				!strings.Contains(err.Error(), "--accept-loss 2") {
				t.Fatalf("%s: %v", what, err)
			}
			if !maps.Equal(was, content(t, dir)) {
				t.Fatalf("%s: a start that was refused changed the journal", what)
			}
		}
		o.AcceptLoss = &two
		j, got, err := tryReplay(dir, o)
		if err != nil || !slices.Equal(got, []string{"1:record 1", "1:record 2"}) || j.Loss() == nil ||
			*j.Loss() != (Loss{Last: 2, Acknowledged: 3}) {
			t.Fatalf("%s, accepted: %q, %v", what, got, err)
		}
		must(t, j.Close())
		o.AcceptLoss = nil
		j, _, err = tryReplay(dir, o)
		if err != nil || j.Loss() != nil {
			t.Fatalf("%s, at the start after that: %v", what, err)
		}
		must(t, j.Close())
	}
	for at := from; at < from+recordHeaderBytes+8; at += 5 {
		b := slices.Clone(whole)
		b[at] ^= 0x10
		check(fmt.Sprintf("byte %d flipped", at), b)
		check(fmt.Sprintf("cut off at byte %d", at), whole[:at])
	}
}

// TestMarkWithoutRecords takes segments away.
func TestMarkWithoutRecords(t *testing.T) {
	dir, o, _ := marked(t, 2)
	must(t, os.RemoveAll(dir))
	_, _, err := tryReplay(dir, o)
	if err == nil || !strings.Contains(err.Error(), "ends with record 0, and record 2 was acknowledged") {
		t.Error(err)
	}
	zero := uint64(0)
	o.AcceptLoss = &zero
	j, got := replayed(t, dir, o)
	if len(got) > 0 || j.Loss() == nil {
		t.Error(got, j.Loss())
	}
}

// TestMarkOtherJournal puts another journal, which is as long, in the place of the one that was acknowledged.
func TestMarkOtherJournal(t *testing.T) {
	dir, o, _ := marked(t, 2)
	other, _, _ := marked(t, 2)
	must(t, os.RemoveAll(dir))
	must(t, os.Rename(other, dir))
	if _, _, err := tryReplay(dir, o); err == nil || !strings.Contains(err.Error(), "its record 2 has the digest") {
		t.Error(err)
	}
	two := uint64(2)
	o.AcceptLoss = &two
	replayed(t, dir, o)
}

// TestMarkTorn has a crash come while records are written that nobody was promised, and between the two files.
func TestMarkTorn(t *testing.T) {
	dir, o, _ := marked(t, 2)
	j, _ := replayed(t, dir, o)
	from := j.end
	add(t, j, 1, "torn")
	must(t, j.lock.Close())
	overwrite(t, lastSegment(t, dir), from+recordHeaderBytes, []byte("TORN"))
	j, got := replayed(t, dir, o)
	if len(got) != 2 || j.Cut() == nil {
		t.Errorf("a record that was torn: %q, %v", got, j.Cut())
	}
	add(t, j, 1, "on the disk")
	broken := errors.New("the power goes")
	j.o.Step = func(op, _ string) error {
		if op == "mark" {
			return broken
		}
		return nil
	}
	if err := j.Sync(); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	must(t, j.lock.Close())
	j, got = replayed(t, dir, o)
	if len(got) != 3 || j.mark.last.seq != 3 {
		t.Errorf("a crash before the mark was written: %q, mark %d", got, j.mark.last.seq)
	}
	add(t, j, 1, "kept")
	add(t, j, 1, "taken back")
	j.Undo()
	must(t, j.Sync())
	must(t, j.Close())
	if _, got := replayed(t, dir, o); len(got) != 4 {
		t.Errorf("after a record that was taken back: %q", got)
	}
}

// TestMarkFile takes the file away, as from a folder of an earlier version, and damages it.
func TestMarkFile(t *testing.T) {
	dir, o, from := marked(t, 2)
	whole, err := os.ReadFile(o.Mark)
	must(t, err)
	for entry := range markEntries {
		overwrite(t, o.Mark, int64(entry*markEntryBytes), []byte("????????"))
		if entry == 0 {
			j, _ := replayed(t, dir, o)
			must(t, j.Close())
			must(t, os.WriteFile(o.Mark, whole, 0o600))
			overwrite(t, o.Mark, 0, []byte("????????"))
		}
	}
	if _, _, err := tryReplay(dir, o); err == nil || !strings.Contains(err.Error(), o.Mark+": damaged: ") ||
		!strings.Contains(err.Error(), "--accept-loss 2") {
		t.Error("both entries are damaged:", err)
	}
	must(t, os.WriteFile(o.Mark, nil, 0o600))
	if _, _, err := tryReplay(dir, o); err == nil {
		t.Error("an empty file is taken")
	}
	must(t, os.Remove(o.Mark))
	must(t, os.Truncate(lastSegment(t, dir), from)) // nothing tells
	j, got := replayed(t, dir, o)
	must(t, j.Close())
	var m mark
	must(t, m.read(o.Mark))
	if len(got) != 1 || !m.good || m.last.seq != 1 {
		t.Errorf("without the file: %q, and then %+v", got, m.last)
	}
}

// TestMarkFull has the disk be full: records are acknowledged, and the mark follows when it can.
func TestMarkFull(t *testing.T) {
	full := false
	root := t.TempDir()
	o := Options{Mark: filepath.Join(root, "mark"), Step: func(op, _ string) error {
		if full && strings.HasPrefix(op, "mark") {
			return fmt.Errorf("no: %w", syscall.ENOSPC)
		}
		return nil
	}}
	read := func() uint64 {
		var m mark
		must(t, m.read(o.Mark))
		return m.last.seq
	}
	j, _ := replayed(t, filepath.Join(root, "journal"), o)
	for i, is := range []bool{false, true, true, false} {
		full = is
		add(t, j, 1, "a record")
		must(t, j.Sync())
		if want := []uint64{1, 1, 1, 4}[i]; read() != want {
			t.Errorf("after record %d the mark has %d, expected %d", i+1, read(), want)
		}
	}
	must(t, j.Close())
	must(t, os.Remove(o.Mark))
	full = true
	j, _ = replayed(t, filepath.Join(root, "journal"), o)
	for i, is := range []bool{true, false} {
		full = is
		add(t, j, 1, "a record")
		must(t, j.Sync())
		if want := []uint64{0, 6}[i]; read() != want {
			t.Errorf("a file that could not be made has %d, expected %d", read(), want)
		}
	}
}
