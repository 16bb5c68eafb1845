package bucket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// logFolder is a folder with the files of a range of cycles: what is in them says whose they are.
func logFolder(t *testing.T, date string, first, last int64, text string) string {
	t.Helper()
	dir := t.TempDir()
	for _, table := range []string{"cycles", "sub_allocations"} {
		folder := filepath.Join(dir, table, "date="+date)
		must(t, os.MkdirAll(folder, 0o755))
		must(t, os.WriteFile(filepath.Join(folder, fmt.Sprintf("cycles-%012d-%012d.parquet", first, last)),
			[]byte(table+text), 0o644))
	}
	must(t, os.MkdirAll(filepath.Join(dir, "empty", "date="+date), 0o755))
	return dir
}

func openLog(t *testing.T, objects Objects) *Log {
	t.Helper()
	l, err := OpenLog(context.Background(), objects)
	must(t, err)
	return l
}

// texts are what the files of a table have, one after the other.
func (v *LogView) texts(t *testing.T, table string) (all []string) {
	t.Helper()
	days, err := v.ReadDir(v.log.Name() + "/" + table)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	must(t, err)
	for _, day := range days {
		files, err := v.ReadDir(v.log.Name() + "/" + table + "/" + day.Name())
		must(t, err)
		for _, f := range files {
			name := v.log.Name() + "/" + table + "/" + day.Name() + "/" + f.Name()
			info, err := v.Stat(name)
			must(t, err)
			r, err := v.Open(name)
			must(t, err)
			content, err := io.ReadAll(r)
			must(t, err)
			if info.Size() != int64(len(content)) || f.IsDir() || !day.IsDir() {
				t.Errorf("%s has %d bytes, and is said to have %d", name, len(content), info.Size())
			}
			all = append(all, string(content))
		}
	}
	return all
}

// TestLog has two processes write parts of a log: nobody writes what another has, days that are over become one, and
// whoever slept meanwhile changes nothing.
func TestLog(t *testing.T) {
	ctx, m := context.Background(), NewMemory()
	if _, err := OpenLog(ctx, m.Client(nil)); !errors.Is(err, ErrNoLog) {
		t.Error("where no cluster is:", err)
	}
	must(t, lead(t, m.Client(nil), "a").Close())
	a, b := openLog(t, m.Client(nil)), openLog(t, m.Client(nil))
	if a.View().Last() != 0 || len(a.View().texts(t, "cycles")) != 0 {
		t.Error("a log that nobody has written to has something")
	}
	first, second := "2026-01-05", "2026-01-06"
	must(t, a.Append(ctx, logFolder(t, first, 1, 3, " 1-3 of a"), 1, 3))
	if err := b.Append(ctx, logFolder(t, first, 1, 4, " 1-4 of b"), 1, 4); !errors.Is(err, ErrBehind) {
		t.Error("a part that another process has written:", err)
	}
	older := openLog(t, m.Client(nil))
	if b.View().Last() != 3 {
		t.Errorf("it goes on after cycle %d", b.View().Last())
	}
	if err := b.Append(ctx, logFolder(t, first, 5, 6, ""), 5, 6); !errors.Is(err, ErrBehind) {
		t.Error("a part that leaves a cycle out:", err)
	}
	must(t, b.Append(ctx, logFolder(t, first, 4, 6, " 4-6 of b"), 4, 6))
	slept := openLog(t, m.Client(nil))
	if _, _, over := b.Over(); over {
		t.Error("a day is over before another has begun")
	}
	must(t, b.Append(ctx, logFolder(t, second, 7, 7, " 7 of b"), 7, 7))
	want := "[cycles 1-3 of a cycles 4-6 of b cycles 7 of b]"
	if got := fmt.Sprint(b.View().texts(t, "cycles")); got != want {
		t.Error(got)
	}
	must(t, a.Look(ctx))
	if f, l, over := a.Over(); !over || f != 1 || l != 6 {
		t.Errorf("cycles %d to %d are a day that is over: %t", f, l, over)
	}
	before := a.View()
	must(t, a.Seal(ctx, logFolder(t, first, 1, 4, " 1-4"), logFolder(t, first, 5, 6, " 5-6")))
	if err := b.Seal(ctx, logFolder(t, first, 1, 6, " 1-6")); !errors.Is(err, ErrBehind) {
		t.Error("a day that another process has sealed:", err)
	}
	must(t, a.Drop(ctx))
	must(t, a.Drop(ctx))
	if keys := m.Keys(partPrefix); len(keys) != 1 || keys[0] != partKey(3) {
		t.Errorf("parts are left: %v", keys)
	}
	if _, err := before.Open(a.Name() + "/cycles/date=" + first +
		"/cycles-000000000001-000000000003.parquet"); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a file that was dropped:", err)
	}
	if err := slept.Append(ctx, logFolder(t, second, 7, 9, ""), 7, 9); !errors.Is(err, ErrBehind) ||
		slept.View().Last() != 7 {
		t.Errorf("who slept goes on after cycle %d: %v", slept.View().Last(), err)
	}
	// A number that was there and was dropped.
	must(t, older.Append(ctx, logFolder(t, first, 4, 6, " of who slept long"), 4, 6))
	want = "[sub_allocations 1-4 sub_allocations 5-6 sub_allocations 7 of b]"
	for who, l := range map[string]*Log{"a": a, "b": b, "new": openLog(t, m.Client(nil)), "slept": slept,
		"slept long": older} {
		must(t, l.Look(ctx))
		if got := fmt.Sprint(l.View().texts(t, "sub_allocations")); got != want {
			t.Errorf("%s reads %s", who, got)
		}
	}
	must(t, a.Drop(ctx))
	for _, key := range m.Keys(logName) {
		m.Change(key, func(b []byte) []byte {
			if text := string(b); strings.HasSuffix(text, " 1-3 of a") || strings.HasSuffix(text, "4-6 of b") ||
				strings.HasSuffix(text, "slept long") {
				t.Errorf("%s is left", key)
			}
			return b
		})
	}
}

// TestLogFaults has requests fail, before or after they take effect, and objects be damaged: a part is there whole or
// not at all, and what is damaged is named.
func TestLogFaults(t *testing.T) {
	ctx, m := context.Background(), NewMemory()
	must(t, lead(t, m.Client(nil), "a").Close())
	failing := 0
	l := openLog(t, m.Client(func(_ context.Context, op, key string, done bool) error {
		if strings.HasPrefix(key, logName) && (op == "create" || op == "put") && failing > 0 &&
			done == (failing%2 == 0) {
			failing--
			return errors.New("no route to host")
		}
		return nil
	}))
	for n := int64(1); n <= 4; n++ {
		failing = int(n)
		must(t, l.Append(ctx, logFolder(t, "2026-01-05", n, n, fmt.Sprint(" ", n)), n, n))
	}
	failing = 100
	if err := l.Append(ctx, logFolder(t, "2026-01-05", 5, 5, " 5"), 5, 5); err == nil || errors.Is(err, ErrBehind) {
		t.Error("a part whose files cannot be written:", err)
	}
	if got := fmt.Sprint(openLog(t, m.Client(nil)).View().texts(t,
		"cycles")); got != "[cycles 1 cycles 2 cycles 3 cycles 4]" {
		t.Error(got)
	}
	flip := func(b []byte) []byte {
		b[len(b)/2] ^= 4
		return b
	}
	keys := m.Keys(partPrefix)
	for _, f := range l.View().of {
		if strings.HasPrefix(f.File, "cycles/") {
			keys = append(keys, f.Key)
		}
	}
	if len(keys) != 8 {
		t.Errorf("keys are %v", keys)
	}
	for _, key := range keys {
		m.Change(key, flip)
		l, err := OpenLog(ctx, m.Client(nil))
		for _, f := range []string{"1", "2", "3", "4"} {
			if err == nil {
				_, err = l.Open(l.Name() + "/cycles/date=2026-01-05/cycles-00000000000" + f + "-00000000000" + f +
					".parquet")
			}
		}
		if err == nil || !strings.Contains(err.Error(), key+": damaged") {
			t.Errorf("%s is damaged: %v", key, err)
		}
		m.Change(key, flip)
	}
	m.Change(partKey(2), func([]byte) []byte { return nil })
	if got := openLog(t, m.Client(nil)).View().Last(); got != 1 {
		t.Errorf("behind a part that is gone the log goes on to cycle %d", got)
	}
}

// TestWait has a process wait for a checkpoint: it knows who leads meanwhile, and does not lead though nobody does.
func TestWait(t *testing.T) {
	m := NewMemory()
	a := lead(t, m.Client(nil), "a")
	must(t, a.add("one"))
	f, _, err := join(m.Client(nil), "f")
	must(t, err)
	waited := make(chan error, 1)
	go func() { waited <- f.Wait(context.Background()) }()
	must(t, a.add("two"))
	a.die()
	time.Sleep(6 * testLease)
	select {
	case err := <-waited:
		t.Fatal("it waits no more, without a checkpoint:", err)
	default:
	}
	if l := f.Leader(); l.Name != "a" || l.Self {
		t.Errorf("%+v leads", l)
	}
	b := lead(t, m.Client(nil), "b")
	must(t, b.checkpoint())
	must(t, <-waited)
	must(t, f.Close())
	must(t, b.Close())
}

// TestLargeFile has a log have a file that is never in memory whole: it comes back as it was, and damage is told.
func TestLargeFile(t *testing.T) {
	ctx, m := context.Background(), NewMemory()
	must(t, lead(t, m.Client(nil), "a").Close())
	l := openLog(t, m.Client(nil))
	text := strings.Repeat("0123456789abcdef", largeBytes/16) + " end"
	must(t, l.Append(ctx, logFolder(t, "2026-01-05", 1, 1, text), 1, 1))
	if got := l.View().texts(t, "cycles"); len(got) != 1 || got[0] != "cycles"+text {
		t.Error("a large file comes back otherwise")
	}
	f := l.View().of["cycles/date=2026-01-05/cycles-000000000001-000000000001.parquet"]
	m.Change(f.Key, func(b []byte) []byte {
		b[largeBytes/2] ^= 4
		return b
	})
	r, err := l.Open(l.Name() + "/" + f.File)
	must(t, err)
	if _, err := io.ReadAll(r); err == nil || !strings.Contains(err.Error(), f.Key+": damaged") {
		t.Error("a large file is damaged:", err)
	}
	must(t, r.Close())
	m.Change(f.Key, func([]byte) []byte { return nil })
	if _, err := l.Open(l.Name() + "/" + f.File); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a large file that is gone:", err)
	}
}
