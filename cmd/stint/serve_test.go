package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stintd/stint/ingest/client"
)

// running is `stint serve` within the test.
type running struct {
	base   string
	cancel func()
	ended  chan error
	log    *syncBuffer
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write appends.
func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

// String is what was written so far.
func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func startServe(t *testing.T, data string, edit func(*serveConfig)) *running {
	t.Helper()
	conf, err := loadServeConfig("")
	if err != nil {
		t.Fatal(err)
	}
	conf.Data, conf.Listen, conf.Manual = data, "127.0.0.1:0", true
	if edit != nil {
		edit(conf)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{cancel: cancel, ended: make(chan error, 1), log: &syncBuffer{}}
	go func() { r.ended <- serve(ctx, conf, r.log, serveHooks{}) }()
	deadline := time.Now().Add(20 * time.Second)
	for !strings.Contains(r.log.String(), "msg=ready") {
		select {
		case err := <-r.ended:
			t.Fatal(err, r.log)
		case <-time.After(time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatal("not ready: ", r.log)
		}
	}
	_, rest, _ := strings.Cut(r.log.String(), "address=")
	r.base, _, _ = strings.Cut(rest, " ")
	t.Cleanup(r.stop)
	return r
}

// logged waits until the decision log has all cycles.
func (r *running) logged(t *testing.T) {
	t.Helper()
	for range 10_000 {
		resp, err := http.Get(r.base + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err := errors.Join(err, resp.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(body), `"log_behind_cycles":0`) {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("the log does not follow")
}

func (r *running) stop() {
	r.cancel()
	<-r.ended
	r.ended <- nil
}

// command runs a command line.
func command(t *testing.T, code int, args ...string) (stdout string) {
	t.Helper()
	var out, errs bytes.Buffer
	if got := execute(args, &out, &errs); got != code {
		t.Fatalf("stint %s: exit %d, expected %d\n%s%s", strings.Join(args, " "), got, code, out.String(),
			errs.String())
	}
	return out.String() + errs.String()
}

// TestServeAndPush pushes a generated cluster to a service, stops it, and goes on with its log in batch.
func TestServeAndPush(t *testing.T) {
	dir := t.TempDir()
	command(t, 0, "gen", "grid", "--hosts", "50", "--consumers", "20", "--units", "500", "--seed", "7", "--out", dir)
	data := filepath.Join(dir, "service")
	r := startServe(t, data, nil)
	push := func(code int, args ...string) string {
		t.Helper()
		return command(t, code, append([]string{"push", "--server", r.base}, args...)...)
	}
	got := push(0, "--plan", dir+"/plan.yaml", "--hosts", dir+"/hosts.parquet", "--demand", dir+"/demand.parquet",
		"--cycle")
	for _, want := range []string{"plan: revision 1, cycle 1 goes by it\n", "hosts: 50 rows, snapshot 2", "demand: ",
		"cycle 1\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if got := push(2, "--plan", dir+"/plan.yaml", "--revision", "9"); !strings.Contains(got,
		"made from revision 9; the newest is 1 (412 revision)") {
		t.Error(got)
	}
	if got := push(2); !strings.Contains(got, "nothing to push") {
		t.Error(got)
	}
	empty := filepath.Join(dir, "empty.csv")
	if err := os.WriteFile(empty, []byte("consumer,allocation,units\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := push(2, "--demand", empty); !strings.Contains(got, "409 shrink") {
		t.Error(got)
	}
	r.logged(t)
	grants := strings.Split(command(t, 0, "query", "--log", data+"/log", "grants", "--output", "csv"), "\n")
	f := strings.Split(grants[1], ",") // plan,source,consumer,allocation,sub,host,units,…
	releases := filepath.Join(dir, "releases.csv")
	if err := os.WriteFile(releases, []byte("consumer,allocation,sub,host,units,done\n"+strings.Join(f[2:7],
		",")+",true\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := push(0, "--demand-changes", empty, "--releases", releases, "--cycle"); !strings.Contains(got,
		f[6]+" units released") {
		t.Error(got)
	}
	r.stop()
	if !strings.Contains(r.log.String(), "msg=ended") {
		t.Error("the service did not end as it should:", r.log)
	}
	checkLog(t, "the log of a service", data+"/log")
	got = command(t, 0, "run", "--append", "--out", data+"/log", "--at", "2100-01-01T00:00:00Z", "--output", "csv")
	if lines := strings.Split(got, "\n"); !strings.HasPrefix(lines[len(lines)-2], "3,") {
		t.Error("the log of a service does not go on in batch:", got)
	}
}

// TestServeLog gives a service inputs that only a service takes: its log is
// verified and replayed, and goes on in batch.
func TestServeLog(t *testing.T) {
	data := t.TempDir()
	r := startServe(t, data, func(c *serveConfig) { c.Unknown = "report" })
	c, ctx, all := &client.Client{Base: r.base}, context.Background(), client.Options{AllowShrink: true}
	body := func(rows ...string) client.Body { return client.Bytes([]byte(strings.Join(rows, "\n")+"\n"), "") }
	const plan = `{stint: 1, dimensions: [ncpus], resource_groups: [{name: G, hosts: [h1, h2]}], consumers: [{path: /A}, {path: /B}],
  md_plans: [{name: p, resource_groups: [{name: G}], consumers: [{path: /A}, {path: /B}]}]}
`
	demand, released := "consumer,allocation,units,ncpus", "consumer,allocation,host,units,done"
	for i, give := range []func() (client.Receipt, error){
		func() (client.Receipt, error) { return c.PutPlan(ctx, body(plan), client.Options{}) },
		func() (client.Receipt, error) { return c.PutHosts(ctx, body("host,ncpus", "h1,8", "h2,8"), all) },
		func() (client.Receipt, error) {
			return c.PutDemand(ctx, "a", body(demand, "/A,x,5,1", "/A,y,2,1"), all)
		},
		func() (client.Receipt, error) {
			return c.PutDemand(ctx, "b", body(demand, "/B,x,5,1", "/C,x,2,1"), all)
		},
		func() (client.Receipt, error) {
			return c.Release(ctx, body(released, "/A,x,h1,1,true", "/A,z,h1,1,true"))
		},
		func() (client.Receipt, error) {
			return c.PutPlan(ctx, body(strings.ReplaceAll(plan, "{path: /B}", "{path: /B}, {path: /C}")),
				client.Options{})
		},
		func() (client.Receipt, error) {
			return c.PutRunning(ctx, "a", body("consumer,allocation,host,units", "/A,y,h2,1"), all)
		},
		func() (client.Receipt, error) { return c.DeleteDemand(ctx, "a", all) },
		func() (client.Receipt, error) { return c.PutDemand(ctx, "new", body(demand, "/A,y,2,1"), all) },
		func() (client.Receipt, error) { return c.DeleteDemand(ctx, "b", all) },
	} {
		if _, err := give(); err != nil {
			t.Fatal(i, err)
		}
		if i >= 3 {
			command(t, 0, "push", "--server", r.base, "--cycle")
		}
	}
	r.logged(t)
	r.stop()
	checkLog(t, "the log of a service", data+"/log")
	got := command(t, 0, "run", "--append", "--out", data+"/log", "--at", "2100-01-01T00:00:00Z", "--output", "csv")
	if !strings.Contains(got, "\n8,") {
		t.Error("the log of a service does not go on in batch:", got)
	}
	checkLog(t, "the log of a service that went on", data+"/log")
}

func TestServeConfig(t *testing.T) {
	dir := t.TempDir()
	load := func(text string) (*serveConfig, error) {
		name := filepath.Join(dir, "c.yaml")
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return loadServeConfig(name)
	}
	c, err := load("data: here\nshrink_guard: 12.5%\nlimits: {body: 1MiB}\nsource_ttl: 90s\n" +
		"tokens: [{name: a, role: admin, sha256: " + strings.Repeat("0a", 32) + ", groups: [g]}]\n")
	if err != nil || c.Data != filepath.Join(dir, "here") || c.ShrinkGuard != 125 || c.Limits.Body != 1<<20 ||
		c.Limits.Rows != 5_000_000 || time.Duration(c.SourceTTL) != 90*time.Second || c.Tokens[0].Groups[0] != "g" {
		t.Errorf("%+v, %v", c, err)
	}
	for text, want := range map[string]string{
		"dta: x":                         "dta",
		"limits: {body: 12XiB}":          "must be a number of bytes",
		"limits: {rows: -1}":             "limits.rows",
		"shrink_guard: 120%":             "must be a part",
		"interval: 5":                    "must be a time",
		"unknown: ignore":                "must be refuse or report",
		"log: {level: loud}":             "log.level",
		"checkpoint: {interval: 100ms}":  "checkpoint.interval",
		"checkpoint: {bytes: 10}":        "checkpoint.bytes",
		"log: {format: xml}\nx: 1":       "x",
		"limits: {connections: -1}":      "limits.connections",
		"limits: {rows: 20000001}":       "limits.rows",
		"limits: {body: 2GiB}":           "limits.body",
		"memory_max: 1MiB":               "memory_max",
		"hosts_allowed: [a, 'http://b']": "hosts_allowed",
		"log: {compact: 100ms}":          "log.compact",
		"metrics: {level: 0}":            "metrics.level",
		"traces: {endpoint: otel:4318}":  "traces.endpoint",
		"log: {compact: never}":          "must be a time",
		"log: {keep: 400}":               "must be a number of days",
		"log: {keep: 0d}":                "must be a number of days",
	} {
		if _, err := load(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if c, err := load("log: {keep: 30d}"); err != nil || c.Log.Keep != 30 || time.Duration(c.Log.Compact) != time.Hour {
		t.Errorf("%+v, %v", c, err)
	}
	c, err = load("memory_max: 1GiB\nhosts_allowed: [stint.example]\nlimits: {decode_time: 7s}\n")
	if err != nil {
		t.Fatal(err)
	}
	o, err := c.options(slog.New(slog.DiscardHandler))
	if l := o.Server.Limits; err != nil || l.MemoryMax != 1<<30 || l.DecodeTimeMax != 7*time.Second ||
		o.Server.HostsAllowed[0] != "stint.example" ||
		o.Engine.RecentRowsMax != 1<<30/16/recentRowBytes || o.Engine.BacklogBytesMax != 1<<27 {
		t.Errorf("%+v, %v", o, err)
	}
	if c, err := load(""); err != nil || c.Data != "stint-data" || c.memory() < memoryLeast {
		t.Error(c, err)
	}
}
