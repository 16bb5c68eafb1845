package server

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stintd/stint/core/journal"
)

// leaderless is a journal of a cluster in which no process leads yet.
type leaderless struct{ journal.Shared }

func (leaderless) Leader() journal.Leader { return journal.Leader{} }
func (leaderless) Trouble() string        { return "" }

// TestNoLeader holds that a process of a cluster is not ready before one leads.
func TestNoLeader(t *testing.T) {
	var of *Server
	s := ready(t, func(o *ServiceOptions) { o.Started = func(s *Server) { of = s } })
	s.must(200, "GET", "/readyz", "")
	var j journal.Shared = leaderless{}
	of.shared.Store(&j)
	defer of.shared.Store(nil)
	s.refused(503, "no-leader", "GET", "/readyz", "")
}

// TestVaries holds that a cache keeps answers of the API apart by who asked: a token may be limited to a branch.
func TestVaries(t *testing.T) {
	s := ready(t, nil)
	s.cycle()
	for _, path := range []string{"/v1/hosts", "/v1/plan", "/v1/consumers", "/v1/sources", "/v1/explain/B",
		"/v1/cycles", "/v1/nothing?x"} {
		a := s.do("GET", path, "")
		want := !strings.Contains(path, "nothing")
		if got := strings.Contains(a.header.Get("Vary"), "Authorization"); got != want {
			t.Errorf("GET %s: Vary is %q", path, a.header.Get("Vary"))
		}
	}
	if v := s.do("GET", "/healthz", "").header.Get("Vary"); strings.Contains(v, "Authorization") {
		t.Errorf("GET /healthz, which anybody may ask: Vary is %q", v)
	}
}

// TestHostLeavesGroup holds that a host which leaves its group has one row, while its units go and afterwards.
func TestHostLeavesGroup(t *testing.T) {
	s := start(t, nil)
	s.must(200, "PUT", "/v1/plan", `
stint: 1
dimensions: [ncpus]
resource_groups: [{name: all, select: "select(good)"}]
consumers: [{path: /B, reclaim_grace: 1h}]
md_plans:
  - name: p
    resource_groups: [{name: all}]
    public_pool: {grace: 1h}
    consumers: [{path: /B}]
`)
	s.must(200, "PUT", "/v1/hosts", "host,ncpus,good\nh1,4,true\nh2,4,true\n", "Content-Type", "text/csv")
	s.must(200, "PUT", "/v1/demand/feed", "consumer,allocation,units,ncpus\n/B,b,8,1\n", "Content-Type", "text/csv")
	s.cycle()
	s.must(200, "PATCH", "/v1/hosts", "host,good\nh1,false\n", "Content-Type", "text/csv")
	for range 2 {
		s.cycle()
		var rows []struct {
			Host string `json:"host"`
		}
		s.logged()
		if err := json.Unmarshal([]byte(s.must(200, "GET", "/v1/hosts", "", "Accept", "application/json").body),
			&rows); err != nil {
			t.Fatal(err)
		}
		if len(rows) != 2 || rows[0].Host == rows[1].Host {
			t.Errorf("two hosts have the rows %v", rows)
		}
	}
}

// TestPlanVersions holds that a client which has the newest policy does not get it again, and that a stale revision is
// a failed precondition.
func TestPlanVersions(t *testing.T) {
	s := ready(t, nil)
	tag := s.must(200, "GET", "/v1/plan", "").header.Get("ETag")
	for _, known := range []string{tag, "W/" + tag, `"7", ` + tag, "*"} {
		if a := s.do("GET", "/v1/plan", "", "If-None-Match", known); a.status != 304 || a.body != "" {
			t.Errorf("If-None-Match %s: %d with %d bytes", known, a.status, len(a.body))
		}
	}
	s.must(200, "GET", "/v1/plan", "", "If-None-Match", `"7"`)
	s.refused(412, "revision", "PUT", "/v1/plan", policyText, "If-Match", `"7"`)
}

// TestColumnCase holds that a column of hosts whose name has the letters of a dimension is no attribute: the capacity
// would be 0.
func TestColumnCase(t *testing.T) {
	s := ready(t, nil)
	detail := s.refused(422, "bad-rows", "PUT", "/v1/hosts", "host,NCPUS\nh1,8\n", "Content-Type", "text/csv")
	if !strings.Contains(detail, "differs from the column ncpus") {
		t.Error(detail)
	}
}
