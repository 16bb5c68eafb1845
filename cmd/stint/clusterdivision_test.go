package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// divisionState is what a process says of a division that it decides.
func (s *site) divisionState(i int, division string) (m memberState) {
	var is struct{ Divisions map[string]memberState }
	if text, _, status, err := ask("GET", s.at[i]+"/readyz", ""); err == nil && status == 200 {
		_ = json.Unmarshal([]byte(text), &is)
	}
	return is.Divisions[division]
}

// untilLeads waits until a process leads a division.
func (s *site) untilLeads(i int, division string) {
	s.t.Helper()
	for end := time.Now().Add(60 * time.Second); !s.divisionState(i,
		division).Leads; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("p%d does not lead %s: %s", i, division, s.logs())
		}
	}
}

// untilHeld waits until all divisions tell that so much is held. A process that follows may have no cycle of one yet.
func (s dividedSite) untilHeld(want string) {
	s.t.Helper()
	got := ""
	for end := time.Now().Add(60 * time.Second); got != want; time.Sleep(20 * time.Millisecond) {
		_, _, status, err := ask("GET", s.base+"/v1/holdings", "")
		if behind := err == nil && status == 409; !behind {
			got = s.held()
		}
		if time.Now().After(end) {
			s.t.Fatalf("held are %s, expected %s", got, want)
		}
	}
}

// TestClusterDivided has two divisions in a bucket, of which three processes decide one, the other, and both. The
// process that leads one of them is killed: the other goes on without a pause, and a push of rows of both is
// acknowledged when both have theirs. What is decided is what one process decides in a folder.
func TestClusterDivided(t *testing.T) {
	const names = "divisions: {names: [east, west]"
	s := layOut(t, [3]string{names + ", here: [east]}\n", names + ", here: [west]}\n", names + "}\n"})
	s.start(0)
	s.start(1)
	s.untilLeads(0, "east")
	s.untilLeads(1, "west")
	s.start(2)
	s.child[2].readyOf(t, 2)
	all := [3]dividedSite{{t, s.at[0]}, {t, s.at[1]}, {t, s.at[2]}}
	digests := all[0].begin()
	all[2].untilHeld(dividedHeld)
	all[0].asks(400, "other processes decide west", "GET", "/v1/holdings", "")
	all[0].asks(200, "farm,feed,", "GET", "/v1/holdings?division=west&format=csv", "")

	folder, file, _ := dividedFolder(t)
	alone := startStint(t, "", "serve", "--config", file)
	alone.readyOf(t, 2)
	for i, want := range folder.begin() {
		if !maps.Equal(digests[i], want) {
			t.Errorf("cycles %d have the digests %v in a bucket, %v in a folder", i+1, digests[i], want)
		}
	}

	s.killed(all)
	s.start(0)
	all[0].asks(200, "", "POST", "/v1/cycles", "")
	all[2].untilHeld("east grid /A 5, east grid /B 3, west farm /A 1")
	last := map[string]int64{"east": s.divisionState(2, "east").Cycle, "west": s.divisionState(1, "west").Cycle}
	for i, c := range s.child {
		if strings.Contains(c.log.String(), "decides otherwise") {
			t.Errorf("p%d decides otherwise than the leader", i)
		}
		if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if code := c.ends(t, 30*time.Second); code != 0 {
			t.Errorf("p%d ends with %d: %s", i, code, c.log)
		}
	}
	s.dividedLogs(last)
	text, err := os.ReadFile(s.file[2])
	if err == nil {
		err = os.WriteFile(s.file[2], []byte(strings.Split(string(text), names)[0]), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.refused(2, "", "its plans are divided, and the configuration must have its divisions")
}

// killed kills the process that leads east while a source pushes rows of both divisions.
func (s *site) killed(all [3]dividedSite) {
	s.t.Helper()
	term := s.divisionState(1, "west").Term
	kill(s.child[0])
	went, begun := 0, time.Now()
	const rows = "consumer,allocation,units,ncpus,plan\n/A,a,5,1,grid\n/B,b,3,1,\n/A,a,1,1,farm\n"
	push := func(base string) (text string, status int) {
		text, _, status, _ = ask("PUT", base+"/v1/demand/feed?allow_shrink=true", rows, "Content-Type", "text/csv",
			"Idempotency-Key", "both")
		return text, status
	}
	for status := 0; status != 200; {
		var text string
		if text, status = push(all[1].base); status != 200 && status != 503 {
			s.t.Fatalf("a push of rows of both: %d %s", status, text)
		}
		if _, _, other, err := ask("POST", all[1].base+"/v1/cycles?division=west", ""); err != nil || other != 200 {
			s.t.Fatalf("west, which has its leader: %d %v", other, err)
		}
		if status != 200 {
			went++
		}
	}
	took := time.Since(begun)
	s.t.Logf("east was without a leader for %s with a lease of %s; west decided %d cycles meanwhile", took,
		clusterLease, went)
	if went == 0 {
		s.t.Error("west decided no cycle while east had no leader")
	}
	if text, status := push(all[2].base); status != 200 || !strings.Contains(text, `"repeated":true`) {
		s.t.Errorf("the same push with the same key: %d %s", status, text)
	}
	if now := s.divisionState(1, "west"); !now.Leads || now.Term != term {
		s.t.Errorf("west was led in term %d, and is in term %d", term, now.Term)
	}
	s.untilLeads(2, "east")
}

// dividedLogs reads the log of each division off the bucket.
func (s *site) dividedLogs(last map[string]int64) {
	s.t.Helper()
	s.t.Setenv("AWS_ENDPOINT_URL", s.store)
	s.t.Setenv("AWS_REGION", "us-east-1")
	for _, division := range slices.Sorted(maps.Keys(last)) {
		log := "s3://alloc/prod/divisions/" + division
		text := command(s.t, 0, "query", "--log", log, "cycles", "--cycle", "all", "--output", "ndjson")
		if got := int64(strings.Count(text, "\n")); got != last[division] {
			s.t.Errorf("the log of %s has %d cycles, its journal %d", division, got, last[division])
		}
		for _, what := range []string{"verify", "replay"} {
			text := strings.TrimSpace(command(s.t, 0, what, "--log", log))
			s.t.Log(what, " ", division, ": ", fmt.Sprint(text[strings.LastIndex(text, "\n")+1:]))
		}
	}
}
