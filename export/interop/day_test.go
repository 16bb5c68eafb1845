package interop

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"github.com/stintd/stint/export"
)

// TestDay reads every file of a day of the public GPU trace in one-minute cycles with arrow-go, and of a log that is
// compacted: as many rows of each table as stint's own reader finds. It is for a soak (STINT_SOAK).
func TestDay(t *testing.T) {
	if os.Getenv("STINT_SOAK") == "" {
		t.Skip("STINT_SOAK is not set: make soak sets it")
	}
	dir := t.TempDir()
	stint := filepath.Join(dir, "stint")
	run := func(name string, args ...string) {
		t.Helper()
		c := exec.Command(name, args...)
		c.Dir = filepath.Join("..", "..")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
	}
	run("go", "build", "-o", stint, "./cmd/stint")
	days := filepath.Join(dir, "days")
	run(stint, "simulate", "--scenario", filepath.Join("testdata", "week", "week.yaml"), "--out", days)
	run(stint, "compact", "--log", days)
	count(t, days)
	from, given := os.LookupEnv("STINT_OPENB")
	if !given {
		from = filepath.Join("..", "shared", "data", "openb")
	}
	nodes := filepath.Join(from, "openb_node_list_all_node.csv")
	if _, err := os.Stat(filepath.Join("..", "..", nodes)); errors.Is(err, fs.ErrNotExist) && !given {
		t.Skipf("the openb trace is not in %s: make test-shared SHARED=DIR names another folder", from)
	}
	out := filepath.Join(dir, "openb")
	run(stint, "import", "openb", "--nodes", nodes, "--pods", filepath.Join(from, "openb_pod_list_default.csv"),
		"--scenario", "--speed", "150", "--out", out)
	run(stint, "simulate", "--scenario", filepath.Join(out, "scenario.yaml"), "--out", filepath.Join(out, "log"))
	count(t, filepath.Join(out, "log"))
}

// count reads all files of a log and counts the rows of each table.
func count(t *testing.T, log string) {
	t.Helper()
	r, err := export.OpenLog(log)
	if err != nil {
		t.Fatal(err)
	}
	cycles, files, all := r.Cycles(), 0, int64(0)
	for _, name := range r.Tables() {
		rows := int64(0)
		paths, err := filepath.Glob(filepath.Join(log, name, "date=*", "*.parquet"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			rows += rowsOfFile(t, path)
		}
		files, all = files+len(paths), all+rows
		want, err := r.Rows(name, cycles[0], cycles[len(cycles)-1])
		if err != nil {
			t.Fatal(err)
		}
		if rows != int64(want.Rows) {
			t.Errorf("%s: arrow-go reads %d rows, stint %d", name, rows, want.Rows)
		}
	}
	t.Logf("%d cycles, %d files, %d rows", len(cycles), files, all)
}

// rowsOfFile decodes every column of a file.
func rowsOfFile(t *testing.T, path string) int64 {
	t.Helper()
	f, err := file.OpenParquetFile(path, false)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	defer f.Close()
	reader, err := pqarrow.NewFileReader(f, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	table, err := reader.ReadTable(context.Background())
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	defer table.Release()
	return table.NumRows()
}
