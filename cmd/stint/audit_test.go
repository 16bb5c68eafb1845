package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stintd/stint/ingest/server"
)

// TestAuditTable finds in the log who put the policy and who read whose branch, and has verify find what was changed.
func TestAuditTable(t *testing.T) {
	dir, example := t.TempDir(), "../../testdata/service"
	data, token := filepath.Join(dir, "data"), filepath.Join(dir, "token")
	log := filepath.Join(data, "log")
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := startServe(t, data, func(c *serveConfig) {
		c.Tokens = []serveToken{{Name: "ops", Role: "admin", SHA256: server.HashToken("secret")}}
	})
	as := []string{"--server", r.base, "--token-file", token}
	push := append([]string{"push", "--plan", example + "/plan.yaml", "--hosts", example + "/hosts.csv", "--demand",
		example + "/demand.csv", "--cycle"}, as...)
	command(t, 0, push...)
	command(t, 0, append([]string{"explain", "/Risk"}, as...)...)
	if text := command(t, 2, append([]string{"query", "audit"}, as...)...); !strings.Contains(text,
		"in the log alone: --log") {
		t.Error(text)
	}
	r.stop()
	text := command(t, 0, "query", "--log", log, "audit", "--cycle", "all", "--output", "csv", "--where",
		"call=PUT /v1/plan")
	if !strings.Contains(text, ",ops,token,127.0.0.1,PUT /v1/plan,") {
		t.Error(text)
	}
	if text := command(t, 0, "query", "--log", log, "audit", "--where", "branch=/Risk"); !strings.Contains(text,
		"ops") {
		t.Error(text)
	}
	if text := command(t, 0, "query", "--log", log, "audit", "--cycle", "7"); strings.Contains(text, "ops") {
		t.Error(text)
	}
	command(t, 2, "query", "--log", log, "audit", "--cycle", "some")
	if text := command(t, 0, "verify", "--log", log); !strings.Contains(text, "audit ") {
		t.Error(text)
	}
	command(t, 0, "compact", "--log", log, "--today")
	command(t, 0, "verify", "--log", log)

	files, err := filepath.Glob(log + "/audit/*/*.parquet")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	was, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	put := func(name string, text []byte) {
		t.Helper()
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	changed := append([]byte(nil), was...)
	changed[len(changed)/3] ^= 1
	put(files[0], changed)
	if text := command(t, 1, "verify", "--log", log); !strings.Contains(text, "damaged") {
		t.Error(text)
	}
	put(files[0], was)
	later := filepath.Join(filepath.Dir(files[0]), "batches-000000000009-000000000009.parquet")
	put(later, was)
	if text := command(t, 1, "verify", "--log", log); !strings.Contains(text, "missing") {
		t.Error(text)
	}
	early := filepath.Join(log, "audit", "date=2001-01-01")
	if err := errors.Join(os.Remove(later), os.Mkdir(early, 0o700),
		os.Rename(files[0], filepath.Join(early, filepath.Base(files[0])))); err != nil {
		t.Fatal(err)
	}
	if text := command(t, 1, "verify", "--log", log); !strings.Contains(text, "in the folder of 2001-01-01") {
		t.Error(text)
	}
	if text := command(t, 2, "query", "--log", "../../testdata/nowhere", "audit"); !strings.Contains(text,
		"no decision log") {
		t.Error(text)
	}
}
