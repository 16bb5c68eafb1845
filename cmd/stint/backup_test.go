package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// copyFolder copies files as docs/operations.md says: the log's table cycles first, since the tables of a cycle that it
// names are all there, then the rest of the log, then the journal, which so is never behind it. When a file goes
// meanwhile, it begins anew.
func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	for try := 1; ; try++ {
		err := errors.Join(os.RemoveAll(to), copyOnce(from, to))
		switch {
		case err == nil:
			return
		case !errors.Is(err, fs.ErrNotExist) || try == 50:
			t.Fatal(err)
		}
	}
}

func copyOnce(from, to string) error {
	cycles := filepath.Join("log", "cycles")
	for _, part := range []string{cycles, "log", "journal", "folder.json"} {
		if _, err := os.Stat(filepath.Join(from, part)); part == cycles && err != nil {
			continue // no cycle is in the log yet
		}
		err := filepath.WalkDir(filepath.Join(from, part), func(path string, d fs.DirEntry, err error) error {
			name, _ := filepath.Rel(from, path)
			at := filepath.Join(to, name)
			if name == cycles && part != cycles {
				return fs.SkipDir
			}
			if err != nil || d.IsDir() {
				return errors.Join(err, os.MkdirAll(at, 0o700))
			}
			text, err := os.ReadFile(path)
			return errors.Join(err, os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, text, 0o600))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// TestBackup copies the folder of a service that takes input and runs cycles, and starts another on each copy: it has
// every cycle that had been answered when the copy began, and its log is whole.
func TestBackup(t *testing.T) {
	data := filepath.Join(t.TempDir(), "service")
	r := startServe(t, data, nil)
	for _, name := range []string{"plan.yaml", "hosts.csv"} {
		text, err := os.ReadFile(filepath.Join("../../testdata/service", name))
		if err != nil {
			t.Fatal(err)
		}
		fetch(t, "PUT", r.base+"/v1/"+strings.TrimSuffix(strings.TrimSuffix(name, ".yaml"), ".csv"), string(text))
	}
	done, ended, cycles := make(chan struct{}), make(chan error, 1), make(chan int64, 1)
	go func() {
		for n := int64(1); ; n++ {
			select {
			case <-done:
				ended <- nil
				return
			case <-time.After(20 * time.Millisecond):
			}
			body := fmt.Sprintf("consumer,allocation,units,ncpus,maxmem\n/Risk/Intraday,var,%d,1,1\n", 1+n%9)
			for _, call := range [][3]string{{"PUT", "/v1/demand/feed?allow_shrink=true", body},
				{"POST", "/v1/cycles", ""}} {
				text, _, status, err := ask(call[0], r.base+call[1], call[2], "Content-Type", "text/csv")
				if err != nil || status != 200 {
					ended <- fmt.Errorf("%v: %d %s, %v", call, status, text, err)
					return
				}
			}
			select {
			case <-cycles:
			default:
			}
			cycles <- n
		}
	}()
	for i := range 3 {
		var at int64
		select {
		case at = <-cycles:
		case err := <-ended:
			t.Fatal(err)
		}
		copied := filepath.Join(t.TempDir(), fmt.Sprint(i))
		copyFolder(t, data, copied)
		other := startServe(t, copied, nil)
		if f := folderStateOf(t, other.base); f.Cycle < at {
			t.Errorf("copy %d has cycle %d, and %d had been answered", i, f.Cycle, at)
		}
		fetch(t, "POST", other.base+"/v1/cycles", "")
		other.logged(t)
		other.stop()
		command(t, 0, "verify", "--log", filepath.Join(copied, "log"))
	}
	close(done)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
