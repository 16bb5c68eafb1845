package journal

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCut damages the last record of a journal, which was durable, in every byte: what is taken off is told of, with
// its place. Room that was set aside and never written is no news.
func TestCut(t *testing.T) {
	dir := t.TempDir()
	j, _ := replayed(t, dir, Options{})
	add(t, j, 1, "first")
	from := j.end
	add(t, j, 2, "last, and acknowledged")
	if err := j.Sync(); err != nil {
		t.Fatal(err)
	}
	to := j.end
	path := lastSegment(t, dir)
	whole, err := os.ReadFile(path) // as a kill leaves it: with the room that was set aside
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	again := func(b []byte) *Cut {
		t.Helper()
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		j, _, err := tryReplay(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		return j.Cut()
	}
	if c := again(whole); c != nil {
		t.Errorf("nothing was cut off: %+v", c)
	}
	for at := from; at < to; at++ {
		b := append([]byte(nil), whole...)
		b[at] ^= 0x10
		if c := again(b); c == nil || c.Path != path || c.At != from || c.Bytes != to-from || c.Record != 2 ||
			c.Why == "" || c.Refused {
			t.Fatalf("byte %d: %+v", at, c)
		}
	}
	if c := again(whole[:from+50]); c == nil || c.Bytes != 50 {
		t.Errorf("a record that breaks off: %+v", c)
	}
	if c := again(append(whole[:from:from], make([]byte, 3<<16)...)); c != nil {
		t.Errorf("a record that was never written: %+v", c)
	}
}

// TestCutRefused tells a record that was taken back from one that is damaged.
func TestCutRefused(t *testing.T) {
	dir := t.TempDir()
	j, _ := replayed(t, dir, Options{})
	add(t, j, 1, "one")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j, err := Open(dir, Options{})
	if err == nil {
		err = j.Replay(func(Record) error { return fmt.Errorf("%w: no such host", ErrRefused) })
	}
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if c := j.Cut(); c == nil || !c.Refused || !strings.Contains(c.Why, "no such host") {
		t.Errorf("%+v", c)
	}
}

// TestModes lets nobody else look into a journal, whatever the umask.
func TestModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "journal")
	j, _ := replayed(t, dir, Options{SegmentBytesMax: 100})
	for i := range 6 {
		add(t, j, 1, "a record that fills a segment, so that there are several")
		if err := j.Sync(); err != nil {
			t.Fatal(err)
		}
		if i == 3 {
			must(t, j.Checkpoint(4, func(w io.Writer) error { _, err := io.WriteString(w, "so far"); return err }))
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	files := 0
	err := filepath.WalkDir(filepath.Dir(dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: mode %o", path, info.Mode().Perm())
		}
		if files++; !d.IsDir() && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %o", path, info.Mode().Perm())
		}
		return err
	})
	if err != nil || files < 5 {
		t.Error(files, "files and folders:", err)
	}
}
