package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
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

// foldersAt has the data folders of versions that were released, one of each, as NAME.tar.gz.
const foldersAt = "../../testdata/folders"

// folderVariable has the tests write the folder and the decision log of the present version under the variable's value
// before they open all: STINT_TEST_FOLDER=0.2.0 go test -run 'TestFolders|TestEarlierLogs' ./cmd/stint
const folderVariable = "STINT_TEST_FOLDER"

// folderFacts is the file of a folder that says what is in it.
const folderFacts = "facts.json"

// folderState is what a service answered when it was ended.
type folderState struct {
	Cycle     int64
	Holdings  string // as CSV
	Consumers string // without the columns of cycles
	Plan      string
}

// TestFolders opens the data folder of every version that was released: what was held is held, the log is whole,
// earlier cycles can be read, and the service goes on.
func TestFolders(t *testing.T) {
	if name := os.Getenv(folderVariable); name != "" {
		writeFolder(t, filepath.Join(foldersAt, name+".tar.gz"))
	}
	files, err := filepath.Glob(filepath.Join(foldersAt, "*.tar.gz"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".tar.gz"), func(t *testing.T) { openFolder(t, file) })
	}
}

// openFolder starts a service on a copy of a kept folder.
func openFolder(t *testing.T, file string) {
	data := filepath.Join(t.TempDir(), "service")
	unpackFolder(t, file, data)
	var want folderState
	text, err := os.ReadFile(filepath.Join(data, folderFacts))
	if err == nil {
		err = json.Unmarshal(text, &want)
	}
	if err != nil {
		t.Fatal(err)
	}
	command(t, 0, "serve", "--data", data, "--check")
	r := startServe(t, data, nil)
	want.Holdings = withColumn(want.Holdings, "device")
	got := folderStateOf(t, r.base)
	if got != want {
		t.Errorf("a folder is read as\n%+v\nand was\n%+v", got, want)
	}
	earlier := fmt.Sprintf("/v1/holdings?source=feed&format=csv&cycle=%d", want.Cycle-1)
	if text := fetch(t, "GET", r.base+earlier, ""); !strings.Contains(text, ",") {
		t.Error(text)
	}
	// It goes on: input and a cycle come behind what was there.
	fetch(t, "PATCH", r.base+"/v1/demand/feed", "consumer,allocation,units,ncpus,maxmem\n/Risk/Intraday,var,1,2,4\n")
	fetch(t, "POST", r.base+"/v1/cycles", "")
	if after := folderStateOf(t, r.base); after.Cycle != want.Cycle+1 || after.Holdings == want.Holdings {
		t.Errorf("it does not go on: %+v", after)
	}
	r.stop()
	command(t, 0, "verify", "--log", filepath.Join(data, "log"))
	command(t, 0, "replay", "--log", filepath.Join(data, "log"))
	r = startServe(t, data, nil)
	if again := folderStateOf(t, r.base); again.Cycle != want.Cycle+1 {
		t.Errorf("after another start: %+v", again)
	}
}

// withColumn is a CSV table with a column that came later, behind the others and empty, unless it has that.
func withColumn(csv, name string) string {
	head, rows, _ := strings.Cut(csv, "\n")
	if strings.HasSuffix(head, ","+name) {
		return csv
	}
	return head + "," + name + "\n" + strings.ReplaceAll(rows, "\n", ",\n")
}

// folderStateOf asks a service.
func folderStateOf(t *testing.T, base string) (f folderState) {
	t.Helper()
	var ready struct{ Cycle int64 }
	if err := json.Unmarshal([]byte(fetch(t, "GET", base+"/readyz", "")), &ready); err != nil {
		t.Fatal(err)
	}
	f.Cycle = ready.Cycle
	f.Holdings = fetch(t, "GET", base+"/v1/holdings?source=feed&format=csv", "")
	f.Plan = fetch(t, "GET", base+"/v1/plan", "")
	var consumers []map[string]any
	if err := json.Unmarshal([]byte(fetch(t, "GET", base+"/v1/consumers?format=json", "")), &consumers); err != nil {
		t.Fatal(err)
	}
	for _, c := range consumers { // what later versions add is not held against
		f.Consumers += fmt.Sprintln(c["consumer"], c["wanted"], c["held"], c["short"])
	}
	return f
}

// fetch makes a call that must be answered with 200.
func fetch(t *testing.T, method, url, body string) string {
	t.Helper()
	kind := "text/csv"
	if strings.HasSuffix(url, "/v1/plan") {
		kind = "application/yaml"
	}
	text, _, status, err := ask(method, url, body, "Content-Type", kind)
	if err != nil || status != 200 {
		t.Fatal(method, url, status, err, text)
	}
	return text
}

// writeFolder makes the folder of the present version: a service with a plan, demand, releases, checkpoints and a log,
// which was ended as an upgrade wants it.
func writeFolder(t *testing.T, file string) {
	data := filepath.Join(t.TempDir(), "service")
	r := startServe(t, data, func(c *serveConfig) { c.Checkpoint.Bytes = 1 << 10 })
	for _, call := range []struct{ method, path, file, body string }{
		{"PUT", "/v1/plan", "plan.yaml", ""}, {"PUT", "/v1/hosts", "hosts.csv", ""},
		{"PUT", "/v1/demand/feed", "demand.csv", ""},
		{"POST", "/v1/cycles", "", ""}, {"PATCH", "/v1/hosts", "", "host,state\nh3,draining\n"},
		{"POST", "/v1/cycles", "", ""}, {"PUT", "/v1/demand/feed", "later.csv", ""},
		{"POST", "/v1/cycles", "", ""},
		{"POST", "/v1/releases", "", "consumer,allocation,host,units,done\n/Train,model,g2,1,true\n"},
		{"POST", "/v1/cycles", "", ""},
	} {
		if call.file != "" {
			text, err := os.ReadFile(filepath.Join(filepath.Join(foldersAt, "input"), call.file))
			if err != nil {
				t.Fatal(err)
			}
			call.body = string(text)
		}
		fetch(t, call.method, r.base+call.path, call.body)
	}
	r.logged(t)
	text, err := json.MarshalIndent(folderStateOf(t, r.base), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	r.stop()
	if err := os.WriteFile(filepath.Join(data, folderFacts), text, 0o600); err != nil {
		t.Fatal(err)
	}
	packFolder(t, data, file)
}

func packFolder(t *testing.T, dir, file string) {
	t.Helper()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	w := tar.NewWriter(z)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		head := &tar.Header{Name: filepath.ToSlash(name), Mode: 0o600, Size: int64(len(text)), ModTime: time.Unix(0, 0)}
		if err := errors.Join(err, w.WriteHeader(head)); err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	})
	err = errors.Join(err, w.Close(), z.Close(), os.MkdirAll(filepath.Dir(file), 0o755),
		os.WriteFile(file, packed.Bytes(), 0o644))
	if err != nil {
		t.Fatal(err)
	}
}

func unpackFolder(t *testing.T, file, dir string) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		head, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil || !filepath.IsLocal(head.Name) {
			t.Fatal(head, err)
		}
		text, err := io.ReadAll(r)
		name := filepath.Join(dir, filepath.FromSlash(head.Name))
		if err := errors.Join(err, os.MkdirAll(filepath.Dir(name), 0o700),
			os.WriteFile(name, text, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}
