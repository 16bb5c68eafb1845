package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stintd/stint/ingest/server"
)

// TestServerInPlaceOfLog asks a service and its log the same: tables, explanations and a what-if come out alike.
func TestServerInPlaceOfLog(t *testing.T) {
	dir := t.TempDir()
	command(t, 0, "gen", "grid", "--hosts", "50", "--consumers", "20", "--units", "800", "--seed", "7", "--out", dir)
	r := startServe(t, filepath.Join(dir, "service"), func(c *serveConfig) {
		c.Tokens = []serveToken{{Name: "root", SHA256: server.HashToken("secret"), Role: server.RoleAdmin}}
	})
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	command(t, 0, "push", "--server", r.base, "--token-file", token, "--plan", dir+"/plan.yaml", "--hosts",
		dir+"/hosts.parquet", "--demand", dir+"/demand.parquet")
	text, err := os.ReadFile(dir + "/plan.yaml")
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, "other.yaml")
	if err := os.WriteFile(other, []byte(strings.Replace(string(text), "ratio: 2", "ratio: 9", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	fromServer := []string{"--server", r.base, "--token-file", token}
	var asked []string // what-ifs of the service, before the cycle that the log decides again
	for _, output := range []string{"table", "json"} {
		asked = append(asked, command(t, 0, append([]string{"whatif", "--plan", other, "--output", output},
			fromServer...)...))
	}
	command(t, 0, "push", "--server", r.base, "--token-file", token, "--cycle")
	t.Setenv(serverVariable, r.base)
	command(t, 0, "push", "--token-file", token, "--hosts", dir+"/hosts.parquet", "--cycle")
	t.Setenv(serverVariable, "")
	fromLog := []string{"--log", filepath.Join(dir, "service", "log")}
	t.Setenv(tokenVariable, "secret")
	r.logged(t)

	same := func(where []string, args ...string) {
		t.Helper()
		got, want := command(t, 0, append(args, where...)...), command(t, 0, append(args, fromLog...)...)
		if got != want {
			t.Errorf("stint %s: of the service\n%s\nof the log\n%s", strings.Join(args, " "), got, want)
		}
	}
	for _, table := range []string{"consumers", "amounts", "shares", "shortfalls", "grants", "releases", "reclaims",
		"cycles", "holdings"} {
		for _, cycle := range []string{"1", "2", "last"} {
			if table == "cycles" && cycle != "1" {
				continue // of the last cycle the log alone has inputs, and which cycles hold the state tables
			}
			same(fromServer[:2], "query", table, "--cycle", cycle) // the token is in the environment
			same(fromServer, "query", table, "--cycle", cycle, "--output", "csv")
		}
	}
	same(fromServer, "query", "shortfalls", "--where", "reason=fragmented", "--output", "json")
	t.Setenv(serverVariable, r.base)
	same(nil, "query", "shortfalls", "--output", "csv")
	t.Setenv(serverVariable, "http://127.0.0.1:1") // where nobody listens: flags win, --log too
	same(fromServer, "query", "shortfalls", "--output", "csv")
	t.Setenv(serverVariable, "")
	consumers := strings.Fields(command(t, 0, append([]string{"query", "consumers", "--where", "leaf=1", "--output",
		"csv"}, fromLog...)...))[1:]
	for _, line := range consumers[:5] {
		path := strings.Split(line, ",")[1]
		for _, cycle := range []string{"1", "last"} {
			for _, output := range []string{"table", "json"} {
				same(fromServer, "explain", path, "--cycle", cycle, "--output", output)
			}
		}
	}
	instant := regexp.MustCompile(`20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?`)
	for i, output := range []string{"table", "json"} {
		want := command(t, 0, append([]string{"whatif", "--plan", other, "--cycle", "1", "--output", output},
			fromLog...)...)
		if a, b := instant.ReplaceAllString(asked[i], "T"), instant.ReplaceAllString(want, "T"); a != b {
			t.Errorf("what-if: of the service\n%s\nof the log\n%s", a, b)
		}
	}
	for message, args := range map[string][]string{
		"give --log or --server, not both": append(fromLog, append([]string{"explain", "/A"}, fromServer...)...),
		"give --log LOG, or --server URL":  {"query", "grants"},
		"--token-file is for --server": append([]string{"query", "grants", "--token-file", token},
			fromLog...),
		"a service tells one cycle at a time": append([]string{"query", "grants", "--cycle", "all"}, fromServer...),
		"a service decides its next cycle": append([]string{"whatif", "--plan", other, "--cycle", "1"},
			fromServer...),
		"no consumer /Nobody (404 not-found)":     append([]string{"explain", "/Nobody"}, fromServer...),
		"there was no cycle 99 yet":               append([]string{"query", "grants", "--cycle", "99"}, fromServer...),
		`--cycle "x": must be a number from 1`:    append([]string{"explain", "/A", "--cycle", "x"}, fromServer...),
		"no table \"nothing\"; there are amounts": append([]string{"query", "nothing"}, fromServer...),
	} {
		if args[0] == "--log" {
			args = append([]string{"explain", "/A"}, append(fromLog, fromServer...)...)
		}
		if got := command(t, 2, args...); !strings.Contains(got, message) {
			t.Errorf("stint %s: %s", strings.Join(args, " "), got)
		}
	}
}
