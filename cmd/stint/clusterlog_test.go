package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// follower waits for a process that follows.
func (s *site) follower() int {
	s.t.Helper()
	return (s.leader() + 1) % 3
}

// ends ends a process by SIGTERM.
func (s *site) ends(i int) {
	s.t.Helper()
	if err := s.child[i].cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	if code := s.child[i].ends(s.t, 30*time.Second); code != 0 {
		s.t.Errorf("p%d ends with %d: %s", i, code, s.child[i].log)
	}
}

// asks waits until a process answers a request with a status and a text.
func (s *site) asks(i int, path string, status int, text string) string {
	s.t.Helper()
	for end := time.Now().Add(60 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		got, _, is, err := ask("GET", s.at[i]+path, "")
		if err == nil && is == status && strings.Contains(got, text) {
			return got
		}
		if time.Now().After(end) {
			s.t.Fatalf("p%d: %s: %d %s (%v), expected %d %q\n%s", i, path, is, got, err, status, text, s.logs())
		}
	}
}

// wants has a source want so many units, and a cycle run.
func (s *site) wants(units int) int64 {
	s.t.Helper()
	s.write("PUT", "/v1/demand/s0?allow_shrink=true",
		fmt.Sprintf("consumer,allocation,units,ncpus\n/A,a,%d,1\n", units), "Content-Type", "text/csv")
	var c struct{ Cycle int64 }
	if err := json.Unmarshal([]byte(s.write("POST", "/v1/cycles", "")), &c); err != nil {
		s.t.Fatal(err)
	}
	return c.Cycle
}

// logged holds the decision log in the bucket against what clients were told: no cycle is missing, none comes twice,
// and it is as the promises say.
func (s *site) logged(h *clusterHistory, last int64) {
	s.t.Helper()
	s.t.Setenv("AWS_ENDPOINT_URL", s.store)
	s.t.Setenv("AWS_REGION", "us-east-1")
	const log = "s3://alloc/prod"
	faults := len(h.faults)
	text := command(s.t, 0, "query", "--log", log, "cycles", "--cycle", "all", "--output", "ndjson")
	next := int64(1)
	for line := range strings.Lines(text) {
		var c struct {
			Cycle  int64
			Digest string `json:"decisions_digest"`
		}
		if err := json.Unmarshal([]byte(line), &c); err != nil || c.Cycle != next {
			s.t.Errorf("the log has cycle %d where %d comes next: %v", c.Cycle, next, err)
		}
		next = c.Cycle + 1
		h.digest("the log", c.Cycle, c.Digest)
	}
	for _, f := range h.faults[faults:] {
		s.t.Error(f)
	}
	if next != last+1 {
		s.t.Errorf("the log ends before cycle %d, the journal with cycle %d", next, last)
	}
	for _, what := range []string{"verify", "replay"} {
		text := strings.TrimSpace(command(s.t, 0, what, "--log", log))
		s.t.Log(what, ": ", text[strings.LastIndex(text, "\n")+1:])
	}
}

// refused starts a process with more in its configuration, which is refused.
func (s *site) refused(i int, more, want string) {
	s.t.Helper()
	text, err := os.ReadFile(s.file[i])
	if err == nil {
		err = os.WriteFile(s.file[i], append([]byte(more), text...), 0o644)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.spawn(i)
	if code := s.child[i].ends(s.t, 30*time.Second); code != 2 || !strings.Contains(s.child[i].log.String(), want) {
		s.t.Errorf("exit %d, expected 2 and %q:\n%s", code, want, s.child[i].log)
	}
}

// TestLateJoiner has a process join that has nothing, when the records of the first cycles are gone: it shows all
// cycles, goes on with the log when it leads, and the log alone can be shown.
func TestLateJoiner(t *testing.T) {
	s := newSite(t)
	s.wants(5)
	t.Setenv("AWS_ENDPOINT_URL", s.store)
	t.Setenv("AWS_REGION", "us-east-1")
	for n := 6; ; n++ { // until two checkpoints have been taken since, so that records were dropped
		last := s.wants(n)
		if strings.Count(s.child[s.leader()].log.String(), "msg=checkpoint") > 2 {
			break
		}
		if last > 200 {
			t.Fatal("there is no checkpoint: ", s.logs())
		}
		time.Sleep(clusterLease / 4)
	}
	late := s.follower()
	s.ends(late)
	if err := os.RemoveAll(s.data[late]); err != nil {
		t.Fatal(err)
	}
	s.start(late)
	s.settle()
	for _, path := range []string{
		"/v1/cycles/1/consumers", "/v1/cycles/2/sub_allocations", "/v1/cycles/1/holdings", "/v1/cycles/2/attributes",
		"/v1/explain/A?cycle=1",
	} {
		want := s.asks((late+1)%3, path, 200, "")
		if got := s.asks(late, path, 200, ""); got != want {
			t.Errorf("%s is\n%s\nat who joined late, and\n%s", path, got, want)
		}
	}
	for i := range s.child {
		if i != late {
			s.ends(i)
		}
	}
	for s.leader() != late {
		time.Sleep(20 * time.Millisecond)
	}
	s.wants(3)
	last := s.wants(4)
	s.ends(late)
	s.logged(&clusterHistory{digests: map[int64]string{}}, last)
	s.refused(0, "decision_log: false\n",
		"decision_log: false: the cluster has a decision log, s3://alloc/prod/log, up to cycle")
	at := freeAddress(t)
	shown := startStint(t, "", "serve", "--log", "s3://alloc/prod", "--listen", at)
	shown.until(t, "showing a log")
	s.at[0] = "http://" + at
	s.asks(0, "/v1/cycles/1/consumers", 200, "/A")
	s.asks(0, fmt.Sprintf("/v1/cycles/%d/sub_allocations", last), 200, "/A")
	s.asks(0, "/", 200, "<html")
}
