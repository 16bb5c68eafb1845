package journal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// replayed opens a journal and gives what is in it.
func replayed(t testing.TB, dir string, o Options) (*Journal, []string) {
	t.Helper()
	j, got, err := tryReplay(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j, got
}

func tryReplay(dir string, o Options) (*Journal, []string, error) {
	j, err := Open(dir, o)
	if err != nil {
		return nil, nil, err
	}
	var got []string
	err = j.Replay(func(r Record) error {
		if int(r.Seq) != len(got)+1 {
			return fmt.Errorf("record %d comes as number %d", r.Seq, len(got)+1)
		}
		got = append(got, fmt.Sprintf("%d:%s", r.Kind, r.Payload))
		return nil
	})
	if err != nil {
		return nil, got, errors.Join(err, j.lock.Close())
	}
	return j, got, nil
}

func add(t testing.TB, j *Journal, kind byte, parts ...string) {
	t.Helper()
	body := strings.Join(parts[1:], "")
	if _, err := j.Append(kind, false, []byte(parts[0]), []byte(body), ""); err != nil {
		t.Fatal(err)
	}
}

func lastSegment(t testing.TB, dir string) string {
	t.Helper()
	s, err := listSegments(dir)
	if err != nil || len(s) == 0 {
		t.Fatal("no segment", err)
	}
	return s[len(s)-1].path
}

func TestKeepsRecords(t *testing.T) {
	dir, o := t.TempDir(), Options{SegmentBytesMax: 200}
	var want []string
	for round := range 4 {
		j, got := replayed(t, dir, o)
		if !slices.Equal(got, want) {
			t.Fatalf("round %d: got %q, want %q", round, got, want)
		}
		for i := range 5 {
			add(t, j, byte(i), "payload ", fmt.Sprint(round, i), "")
			want = append(want, fmt.Sprintf("%d:payload %d %d", i, round, i))
		}
		if err := j.Sync(); err != nil || j.Last() != uint64(len(want)) {
			t.Fatal(err, j.Last())
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if s, _ := listSegments(dir); len(s) < 4 {
		t.Errorf("%d segments, expected several", len(s))
	}
}

func TestSecondProcessIsKeptOut(t *testing.T) {
	dir := t.TempDir()
	replayed(t, dir, Options{})
	if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "another process has it") {
		t.Error(err)
	}
}

func TestUndo(t *testing.T) {
	dir := t.TempDir()
	j, _ := replayed(t, dir, Options{})
	add(t, j, 1, "one")
	add(t, j, 2, strings.Repeat("a long one that is taken back ", 10))
	j.Undo()
	add(t, j, 3, "three")
	if err := j.Sync(); err != nil {
		t.Fatal(err)
	}
	_ = j.lock.Close() // as a crash would: nothing is cut off
	if _, got := replayed(t, dir, Options{}); !slices.Equal(got, []string{"1:one", "3:three"}) {
		t.Errorf("got %q", got)
	}
}

// TestUndoneBeforeRotation has a record taken back stay behind in a segment that is not the last any more.
func TestUndoneBeforeRotation(t *testing.T) {
	dir := t.TempDir()
	j, _ := replayed(t, dir, Options{SegmentBytesMax: 100})
	add(t, j, 1, strings.Repeat("x", 100))
	full := j.o.SegmentBytesMax
	j.o.SegmentBytesMax = 1 << 20
	add(t, j, 2, "taken back")
	j.Undo()
	j.o.SegmentBytesMax = full
	was := lastSegment(t, dir)
	bytesBefore, err := os.ReadFile(was)
	if err != nil {
		t.Fatal(err)
	}
	add(t, j, 3, "in the next segment")
	if err := j.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(was, bytesBefore, 0o644); err != nil { // the crash came before the old segment was cut
		t.Fatal(err)
	}
	_ = j.lock.Close()
	if _, got := replayed(t, dir, Options{}); len(got) != 2 || got[1] != "3:in the next segment" {
		t.Errorf("got %q", got)
	}
}

func TestRefusedAtTheEnd(t *testing.T) {
	dir := t.TempDir()
	j, _ := replayed(t, dir, Options{})
	for _, p := range []string{"one", "two", "three"} {
		add(t, j, 1, p)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	refuse := func(word string) (int, error) {
		j, err := Open(dir, Options{})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		err = j.Replay(func(r Record) error {
			if string(r.Payload) == word {
				return fmt.Errorf("%w: for the test", ErrRefused)
			}
			n++
			return nil
		})
		return n, errors.Join(err, j.lock.Close())
	}
	if _, err := refuse("two"); err == nil ||
		!strings.Contains(err.Error(), "record 2 was taken once and is refused now") {
		t.Errorf("in the middle: %v", err)
	}
	if n, err := refuse("three"); err != nil || n != 2 {
		t.Errorf("at the end: %d records, %v", n, err)
	}
	if _, got := replayed(t, dir, Options{}); !slices.Equal(got, []string{"1:one", "1:two"}) {
		t.Errorf("it is still there: %q", got)
	}
}

// TestTornTail cuts a journal off at every byte of its last record, and fills that with rubbish.
func TestTornTail(t *testing.T) {
	dir := t.TempDir()
	j, _ := replayed(t, dir, Options{})
	add(t, j, 1, "first")
	if err := j.Sync(); err != nil {
		t.Fatal(err)
	}
	from := j.end
	add(t, j, 2, "second, which is torn")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	path := lastSegment(t, dir)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := from; cut < int64(len(whole)); cut += 4 {
		for _, rubbish := range []bool{false, true} {
			torn := slices.Clone(whole[:cut])
			if rubbish {
				torn = append(torn, bytes.Repeat([]byte{0x53}, len(whole)-int(cut))...)
			}
			if err := os.WriteFile(path, torn, 0o644); err != nil {
				t.Fatal(err)
			}
			j, got, err := tryReplay(dir, Options{})
			if err != nil || !slices.Equal(got, []string{"1:first"}) {
				t.Fatalf("cut at %d, rubbish %v: %q, %v", cut, rubbish, got, err)
			}
			add(t, j, 3, "goes on")
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			if j, got, err = tryReplay(dir, Options{}); err != nil ||
				!slices.Equal(got, []string{"1:first", "3:goes on"}) {
				t.Fatalf("cut at %d, rubbish %v, after it: %q, %v", cut, rubbish, got, err)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestOutOfOrder has a power loss keep the second of two records that nobody was promised.
func TestOutOfOrder(t *testing.T) {
	dir := t.TempDir()
	j, _ := replayed(t, dir, Options{})
	add(t, j, 1, "first")
	if err := j.Sync(); err != nil {
		t.Fatal(err)
	}
	from := j.end
	add(t, j, 2, "lost")
	add(t, j, 3, "kept")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	overwrite(t, lastSegment(t, dir), from, make([]byte, 30))
	if _, got := replayed(t, dir, Options{}); !slices.Equal(got, []string{"1:first"}) {
		t.Errorf("got %q", got)
	}
}

func overwrite(t testing.TB, path string, at int64, b []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err == nil {
		_, err = f.WriteAt(b, at)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestDamage flips every byte of records that were durable: none of it may pass for an unfinished write.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	j, _ := replayed(t, dir, Options{SegmentBytesMax: 250})
	for i := range 6 {
		add(t, j, 1, fmt.Sprintf("record %d", i))
		if err := j.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	last := j.end - recordHeaderBytes - int64(len("record 5"))
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	segments, _ := listSegments(dir)
	if len(segments) != 2 {
		t.Fatalf("%d segments", len(segments))
	}
	for i, s := range segments {
		whole, err := os.ReadFile(s.path)
		if err != nil {
			t.Fatal(err)
		}
		end := len(whole)
		if i == len(segments)-1 {
			end = int(last) // nothing tells that the very last one was durable
		}
		for at := range end {
			overwrite(t, s.path, int64(at), []byte{whole[at] ^ 0x10})
			if j, got, err := tryReplay(dir, Options{}); err == nil {
				t.Errorf("%s, byte %d: taken, with %d records", filepath.Base(s.path), at, len(got))
				_ = j.Close()
			} else if !strings.Contains(err.Error(), s.path) {
				t.Errorf("byte %d: the error does not name the file: %v", at, err)
			}
			overwrite(t, s.path, int64(at), whole[at:at+1])
		}
	}
	if err := os.Remove(segments[0].path); err != nil {
		t.Fatal(err)
	}
	if _, _, err := tryReplay(dir, Options{}); err == nil ||
		!strings.Contains(err.Error(), "a segment is missing before it") {
		t.Error("without its first segment:", err)
	}
}

func TestVersion(t *testing.T) {
	dir := t.TempDir()
	j, _ := replayed(t, dir, Options{})
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	overwrite(t, lastSegment(t, dir), 8, []byte{9})
	if _, _, err := tryReplay(dir, Options{}); err == nil ||
		!strings.Contains(err.Error(), "format version 9; this stint reads version 1") {
		t.Error(err)
	}
}

// TestFullDisk has every write but of essential records fail.
func TestFullDisk(t *testing.T) {
	dir, full := t.TempDir(), false
	j, _ := replayed(t, dir, Options{Step: func(op, path string) error {
		if full && (op == "reserve" || op == "create") {
			return syscall.ENOSPC
		}
		return nil
	}})
	add(t, j, 1, "one")
	full = true
	if _, err := j.Append(2, false, make([]byte, 4<<20), nil, ""); !errors.Is(err, ErrFull) ||
		!errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
	for range 10 {
		if _, err := j.Append(3, true, []byte("essential"), nil, ""); err != nil {
			t.Fatal(err)
		}
		if err := j.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	full = false
	add(t, j, 4, "again")
	if j.Last() != 12 {
		t.Error(j.Last())
	}
}

func TestLimits(t *testing.T) {
	j, _ := replayed(t, t.TempDir(), Options{RecordBytesMax: 10, BytesMax: 300})
	if _, err := j.Append(1, false, make([]byte, 11), nil, ""); !errors.Is(err, ErrFull) {
		t.Error(err)
	}
	for range 5 {
		add(t, j, 1, "12345")
	}
	if _, err := j.Append(1, false, make([]byte, 5), nil, ""); !errors.Is(err, ErrFull) {
		t.Error(err)
	}
	if _, err := j.Append(1, true, make([]byte, 5), nil, ""); err != nil {
		t.Error(err)
	}
}

// TestFailedSteps makes each step of the disk fail in turn: either the journal goes on, or it
// says that it cannot, and what was synced is there when it is opened again.
func TestFailedSteps(t *testing.T) {
	for fail := 1; fail < 80; fail++ {
		dir, n := t.TempDir(), 0
		o := Options{SegmentBytesMax: 150, Mark: filepath.Join(t.TempDir(), "mark")}
		step := func(op, path string) error {
			if n++; n == fail {
				return fmt.Errorf("failed on purpose at %s", op)
			}
			return nil
		}
		o.Step = step
		var sure, maybe []string
		if j, _, err := tryReplay(dir, o); err == nil {
			for i := range 8 {
				p := fmt.Sprintf("record %d", i)
				if _, err := j.Append(1, false, []byte(p), nil, ""); err != nil {
					continue
				}
				maybe = append(maybe, "1:"+p)
				if j.Sync() == nil {
					sure = slices.Clone(maybe)
				}
			}
			_ = j.Close()
		}
		_, got := replayed(t, dir, Options{SegmentBytesMax: 150, Mark: o.Mark})
		if len(got) < len(sure) || !slices.Equal(got[:len(sure)], sure) || len(got) > len(maybe) ||
			!slices.Equal(got, maybe[:len(got)]) {
			t.Fatalf("step %d failed: got %q, sure %q, maybe %q", fail, got, sure, maybe)
		}
	}
}

func TestAppendDoesNotAllocate(t *testing.T) {
	j, _ := replayed(t, t.TempDir(), Options{})
	a, b := []byte("header"), make([]byte, 1000)
	if n := testing.AllocsPerRun(100, func() {
		if _, err := j.Append(1, true, a, b, ""); err != nil {
			t.Fatal(err)
		}
	}); n > 1 {
		t.Errorf("%v allocations an append", n)
	}
}

// FuzzReplay opens segments with arbitrary bytes behind the header. Whatever they are, it neither panics nor
// takes more memory than there are bytes, and what it takes it takes again.
func FuzzReplay(f *testing.F) {
	dir := f.TempDir()
	j, _, err := tryReplay(dir, Options{})
	if err != nil {
		f.Fatal(err)
	}
	for i := range 3 {
		add(f, j, byte(i), strings.Repeat("abc", i*20))
		_ = j.Sync()
	}
	_ = j.Close()
	seed, err := os.ReadFile(lastSegment(f, dir))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	for range 8 {
		bad := slices.Clone(seed)
		for range 3 {
			bad[rand.IntN(len(bad))] ^= byte(1 + rand.IntN(255))
		}
		f.Add(bad)
	}
	name := filepath.Base(lastSegment(f, dir))
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
		j, got, err := tryReplay(dir, Options{})
		if err != nil {
			return
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if _, again := replayed(t, dir, Options{}); !slices.Equal(got, again) {
			t.Fatalf("%q, then %q", got, again)
		}
	})
}
