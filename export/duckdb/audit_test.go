package duckdb

import (
	"database/sql"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestAuditView reads the table of calls of a service by the view that the log brings along: of two processes, one
// after the other, and beside a file that a merge has replaced.
func TestAuditView(t *testing.T) {
	dir := t.TempDir()
	stint, data := build(t, dir), filepath.Join(dir, "data")
	log := filepath.Join(data, "log")
	serve := func() {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		at := l.Addr().String()
		_ = l.Close()
		c := exec.Command(stint, "serve", "--data", data, "--listen", at)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		ready := false
		for range 2000 {
			if resp, err := http.Get("http://" + at + "/readyz"); err == nil {
				ready = resp.StatusCode == 200
				_ = resp.Body.Close()
			}
			if ready {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		for range 3 {
			resp, err := http.Get("http://" + at + "/v1/cycles")
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		_ = c.Process.Signal(syscall.SIGTERM)
		if err := c.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	serve()
	serve()
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	view, err := os.ReadFile(filepath.Join(log, "audit.sql"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"SET file_search_path = '" + log + "'", string(view)} {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	const question = "SELECT call, branch, count(DISTINCT batch), sum(calls)::BIGINT FROM audit GROUP BY ALL"
	want := "[[GET /v1/cycles / 2 6]]"
	if got := fmt.Sprint(ask(t, db, question)); got != want {
		t.Errorf("%s, expected %s", got, want)
	}
	// A longer file stands beside those that it replaces until they are removed.
	days, err := filepath.Glob(filepath.Join(log, "audit", "date=*"))
	if err != nil || len(days) == 0 {
		t.Fatal(days, err)
	}
	longer := filepath.Join(days[0], "batches-000000000001-000000000002.parquet")
	_, err = db.Exec("COPY (SELECT * FROM audit) TO '" + longer + "' (FORMAT parquet)")
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(ask(t, db, question)); got != want {
		t.Errorf("beside a longer file: %s, expected %s", got, want)
	}
}
