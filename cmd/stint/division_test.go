package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// dividedPolicy has two divisions of a plan each. /A takes part in both.
const dividedPolicy = `
stint: 1
dimensions: [ncpus]
resource_groups:
  - {name: East, select: "select(zone == 'e')"}
  - {name: West, select: "select(zone == 'w')"}
  - {name: More, select: "select(zone == 'm')"}
consumers: [{path: /A}, {path: /B}, {path: /C}]
md_plans:
  - {name: grid, resource_groups: [{name: East}], consumers: [{path: /A}, {path: /B}]}
  - {name: farm, resource_groups: [{name: West}], consumers: [{path: /A}, {path: /C}]}
  - {name: more, resource_groups: [{name: More}], consumers: [{path: /C}]}
divisions:
  - {name: east, plans: [grid, more]}
  - {name: west, plans: [farm]}
`

const dividedHosts = "host,ncpus,zone\ne1,10,e\ne2,10,e\nw1,20,w\nm1,5,m\nx1,5,x\n"

// dividedDemand has rows of both divisions.
const dividedDemand = "consumer,allocation,units,ncpus,plan\n" +
	"/B,b,3,1,\n/C,c,4,1,farm\n/C,m,2,1,more\n/A,a,12,1,grid\n/A,a,7,1,farm\n"

// dividedSite asks a service that is divided, wherever it is.
type dividedSite struct {
	t    *testing.T
	base string
}

// asks makes a call that must be answered with a status and a text; 503 is asked again.
func (s dividedSite) asks(status int, want, method, path, body string, headers ...string) string {
	s.t.Helper()
	for end := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		text, _, got, err := ask(method, s.base+path, body, headers...)
		if err == nil && got == status && strings.Contains(text, want) {
			return text
		}
		if err == nil && got != 503 || time.Now().After(end) {
			s.t.Fatalf("%s %s: %d %s %v\nexpected %d and %q", method, path, got, text, err, status, want)
		}
	}
}

func (s dividedSite) put(path, body string) {
	s.t.Helper()
	kind := "text/csv"
	if path == "/v1/plan" {
		kind = "application/yaml"
	}
	s.asks(200, `"divisions":{"east":`, "PUT", path, body, "Content-Type", kind)
}

// cycle has all divisions run a cycle, and gives the digests.
func (s dividedSite) cycle() map[string]string {
	s.t.Helper()
	var done struct {
		Divisions map[string]struct {
			Digest string `json:"decisions_digest"`
		}
	}
	if err := json.Unmarshal([]byte(s.asks(200, "", "POST", "/v1/cycles", "")), &done); err != nil {
		s.t.Fatal(err)
	}
	digests := map[string]string{}
	for name, d := range done.Divisions {
		digests[name] = d.Digest
	}
	return digests
}

// digests are those of all cycles.
func (s dividedSite) digests() (list string) {
	s.t.Helper()
	for line := range strings.Lines(s.asks(200, "", "GET", "/v1/cycles?format=csv", "")) {
		f := strings.Split(line, ",")
		list += strings.Join([]string{f[0], f[1], f[len(f)-1]}, " ")
	}
	return list
}

// held are the units held by plan and consumer, as all divisions tell it.
func (s dividedSite) held() string {
	s.t.Helper()
	text := s.asks(200, "division,cycle,plan,consumer", "GET", "/v1/holdings?by=consumer&format=csv", "")
	var sums []string
	for line := range strings.Lines(text) {
		f := strings.Split(line, ",")
		if f[0] != "division" {
			sums = append(sums, strings.Join([]string{f[0], f[2], f[3], f[7]}, " "))
		}
	}
	return strings.Join(sums, ", ")
}

const dividedHeld = "east grid /A 12, east grid /B 3, east more /C 2, west farm /A 7, west farm /C 4"

// begin gives a service its policy, hosts and demand, and has two cycles run.
func (s dividedSite) begin() (digests []map[string]string) {
	s.t.Helper()
	s.put("/v1/plan", dividedPolicy)
	s.put("/v1/hosts", dividedHosts)
	s.put("/v1/demand/feed", dividedDemand)
	digests = append(digests, s.cycle())
	s.asks(200, `"released":3,"beyond":2`, "POST", "/v1/releases",
		"consumer,allocation,host,units\n/A,a,w1,2\n/A,a,e2,1\n/B,gone,e1,2\n", "Content-Type", "text/csv")
	return append(digests, s.cycle())
}

// dividedFolder starts a service that is divided, in a folder.
func dividedFolder(t *testing.T) (s dividedSite, file, data string) {
	t.Helper()
	dir := t.TempDir()
	file, data = filepath.Join(dir, "stint.yaml"), filepath.Join(dir, "data")
	at := freeAddress(t)
	text := fmt.Sprintf("data: %s\nlisten: %s\nmanual: true\ndivisions: {names: [east, west]}\n", data, at)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return dividedSite{t, "http://" + at}, file, data
}

// readyOf waits until a process has so many divisions ready.
func (c *child) readyOf(t *testing.T, divisions int) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); strings.Count(c.log.String(),
		"msg=ready") < divisions; time.Sleep(5 * time.Millisecond) {
		select {
		case <-c.dead:
			t.Fatal("it has ended: ", c.log)
		default:
		}
		if time.Now().After(end) {
			t.Fatal("it is not ready: ", c.log)
		}
	}
}

// TestDivided has one process decide two divisions in a folder, be killed and go on; each division has a log of its
// own.
func TestDivided(t *testing.T) {
	s, file, data := dividedFolder(t)
	c := startStint(t, "", "serve", "--config", file)
	c.readyOf(t, 2)
	s.begin()
	if got := s.held(); got != dividedHeld {
		t.Errorf("held are %s", got)
	}
	before := s.digests()
	kill(c)
	c = startStint(t, "", "serve", "--config", file)
	c.readyOf(t, 2)
	if after := s.digests(); after != before {
		t.Errorf("cycles are\n%s\nand were\n%s", after, before)
	}
	if got := s.held(); got != dividedHeld {
		t.Errorf("held are %s after a kill", got)
	}
	s.cycle()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := c.ends(t, 30*time.Second); code != 0 {
		t.Errorf("it ends with %d: %s", code, c.log)
	}
	for division, plans := range map[string]string{"east": "grid more", "west": "farm"} {
		log := filepath.Join(data, "divisions", division, "log")
		command(t, 0, "verify", "--log", log)
		command(t, 0, "replay", "--log", log)
		text := command(t, 0, "query", "--log", log, "consumers", "--output", "csv")
		for _, plan := range []string{"grid", "more", "farm"} {
			if strings.Contains(text, "\n"+plan+",") != strings.Contains(plans, plan) {
				t.Errorf("the log of %s has of plan %s:\n%s", division, plan, text)
			}
		}
	}
	for _, refused := range []struct{ config, want string }{
		{"", "has a division east, which the configuration does not name"},
		{"divisions: {names: [east]}\n", "has a division west, which the configuration does not name"},
	} {
		text := fmt.Sprintf("data: %s\nlisten: 127.0.0.1:0\n%s", data, refused.config)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		c := startStint(t, "", "serve", "--config", file)
		if code := c.ends(t, 30*time.Second); code != 2 || !strings.Contains(c.log.String(), refused.want) {
			t.Errorf("it ends with %d, expected %q: %s", code, refused.want, c.log)
		}
	}
}

// TestDividedCalls holds what is refused, of what nothing is taken then, and what is told of one division.
func TestDividedCalls(t *testing.T) {
	s, file, _ := dividedFolder(t)
	c := startStint(t, "", "serve", "--config", file)
	c.readyOf(t, 2)
	yaml, csv := []string{"Content-Type", "application/yaml"}, []string{"Content-Type", "text/csv"}
	without := strings.Split(dividedPolicy, "divisions:")[0]
	s.asks(409, "there is no policy yet", "PUT", "/v1/demand/feed", dividedDemand, csv...)
	s.asks(422, "divisions: missing; this service has east, west", "PUT", "/v1/plan", without, yaml...)
	s.asks(422, "plan more is in no division", "PUT", "/v1/plan",
		strings.Replace(dividedPolicy, "grid, more]", "grid]", 1), yaml...)
	s.asks(422, "the file has north, west, this service east, west", "PUT", "/v1/plan",
		strings.Replace(dividedPolicy, "east", "north", 1), yaml...)
	s.asks(422, "a service writes this key", "PUT", "/v1/plan", dividedPolicy+"division: east\n", yaml...)
	s.begin()
	s.asks(404, "there are east, west", "GET", "/v1/holdings?division=north", "")
	s.asks(200, "md_plans:", "GET", "/v1/plan", "")
	if got := s.asks(200, "md_plans:", "GET", "/v1/plan?division=west", ""); got != dividedPolicy {
		t.Errorf("the policy file is %q", got)
	}
	s.asks(200, `"ok":true`, "POST", "/v1/plan/check", dividedPolicy, yaml...)
	s.asks(412, "", "PUT", "/v1/plan", dividedPolicy, append(yaml, "If-Match", `"east:1 west:7"`)...)
	s.asks(200, `"revision":2`, "PUT", "/v1/plan", dividedPolicy+"# again\n",
		append(yaml, "If-Match", `"east:1 west:1"`)...)

	s.asks(412, "division west: made from revision 1; the newest is 2", "PUT", "/v1/plan?division=west", dividedPolicy,
		append(yaml, "If-Match", `"1"`)...)
	s.asks(200, `"revision":3`, "PUT", "/v1/plan?division=west", dividedPolicy, append(yaml, "If-Match", `"2"`)...)
	s.asks(200, `"plan":true`, "GET", "/readyz?division=east", "")
	s.asks(412, "division east: made from revision 2; the newest is 3", "PUT", "/v1/plan", dividedPolicy,
		append(yaml, "If-Match", `"east:2 west:3"`)...)

	// A plan goes to another division once nothing is held in it.
	moved := strings.NewReplacer("[grid, more]", "[grid]", "[farm]", "[farm, more]").Replace(dividedPolicy)
	s.asks(422, "plan more is gone, and /C still holds 2 units in it", "PUT", "/v1/plan", moved, yaml...)
	s.asks(200, `"ok":false`, "POST", "/v1/plan/check?force=true", moved, yaml...)
	s.asks(200, `"rows":1`, "PUT", "/v1/demand/feed?division=east&allow_shrink=true",
		"consumer,allocation,units,ncpus,plan\n/A,a,12,1,grid\n", csv...)
	s.cycle()
	s.put("/v1/plan", moved)
	swapped := strings.NewReplacer("[grid, more]", "[farm]", "[farm]", "[grid, more]").Replace(moved)
	swapped = strings.Replace(swapped, "[farm, more]", "[grid, more]", 1)
	s.asks(422, "put them in force one after the other", "PUT", "/v1/plan",
		strings.Replace(swapped, "[grid]", "[farm]", 1), yaml...)

	// Whole or not at all: a fault in the rows of one division keeps the others from theirs, and is told by the row.
	held := s.held()
	bad := "consumer,allocation,units,ncpus,plan,requirement\n/A,a,1,1,grid,\n/C,c,1,1,more,oops\n"
	s.asks(422, `"rows":[{"row":2,"column":"requirement"`, "PUT", "/v1/demand/feed?allow_shrink=true", bad, csv...)
	s.asks(422, "/A takes part in several plans, name one of grid, farm", "PUT", "/v1/demand/feed",
		"consumer,allocation,units,ncpus\n/A,a,1,1\n", csv...)
	s.asks(422, "give what runs to each division by itself", "PUT", "/v1/running/feed",
		"consumer,allocation,host,units\n/A,a,e1,1\n", csv...)
	s.asks(422, "host e1 is in two plans", "PUT", "/v1/plan", strings.Replace(moved, "zone == 'w'", "zone != 'm'", 1),
		yaml...)
	s.cycle()
	if got := s.held(); got != held {
		t.Errorf("held are %s, and were %s", got, held)
	}
	for _, path := range []string{
		"/v1/changes?source=feed&since=0", "/v1/events", "/v1/holdings?cycle=1", "/v1/cycles/1/grants", "/v1/explain/A",
		"/v1/plan/revisions",
	} {
		s.asks(400, "which-division", "GET", path, "")
		path += map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")] + "division=west"
		if !strings.Contains(path, "events") {
			s.asks(200, "", "GET", path, "")
		}
	}
	s.asks(200, "/B", "GET", "/v1/explain/B?format=text", "")
	metrics := s.asks(200, `stint_leads{division="west"} 1`, "GET", "/metrics", "")
	if !strings.Contains(metrics, `stint_ready{division="east"} 1`) ||
		strings.Contains(metrics, `stint_ready{division=""}`) {
		t.Error("the metrics do not tell of each division whether it is ready, or tell it of none")
	}
	s.asks(200, `"west":{"status":"ok"`, "GET", "/readyz", "")
	// Lists of all divisions have pages too, which may be of two.
	whole, paged := s.asks(200, "", "GET", "/v1/holdings?format=ndjson", ""), ""
	for cursor := ""; ; {
		text, h, status, err := ask("GET", s.base+"/v1/holdings?format=ndjson&limit=3"+cursor, "")
		if err != nil || status != 200 || strings.Count(text, "\n") > 3 {
			t.Fatal(text, status, err)
		}
		paged += text
		if h.Get("Stint-Next") == "" {
			break
		}
		cursor = "&cursor=" + h.Get("Stint-Next")
	}
	if paged != whole {
		t.Errorf("the pages of what is held are\n%s\nand at once it is\n%s", paged, whole)
	}
	for _, want := range []string{`{"rows":1,"divisions":{"west":`, `{"rows":1,"repeated":true,"divisions":{"west":`} {
		s.asks(200, want, "PATCH", "/v1/demand/feed", "consumer,allocation,units,ncpus,plan\n/A,z,1,1,farm\n",
			append(csv, "Idempotency-Key", "k")...)
	}
}
