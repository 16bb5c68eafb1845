package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

const reportText = `{"running":3,"held_not_running":1,"running_not_held":0,"lag_p50":0.25,"lag_p99":1.5,"effects":7,` +
	`"late":0,"began":"2026-01-05T08:00:00Z","listed":"2026-01-05T09:00:00Z"}`

// actorRows are the rows that GET /v1/actors gives, by source.
func (s *service) actorRows() map[string]map[string]any {
	s.t.Helper()
	var rows []map[string]any
	if err := json.Unmarshal([]byte(s.must(200, "GET", "/v1/actors", "").body), &rows); err != nil {
		s.t.Fatal(err)
	}
	of := map[string]map[string]any{}
	for _, row := range rows {
		of[row["source"].(string)] = row
	}
	return of
}

// TestActors has an actor report, and the service be started anew: what is granted stays true, and what the actor said
// is not shown until it reports again.
func TestActors(t *testing.T) {
	s := ready(t, nil)
	s.must(200, "PUT", "/v1/demand/feed", "consumer,allocation,units,ncpus\n/Risk/Day,a,4,1\n")
	s.must(200, "PUT", "/v1/actors/early", reportText, "Content-Type", "application/json")
	s.cycle()
	rows := s.actorRows()
	if r := rows["feed"]; r["granted"] != 4.0 || r["running"] != nil || r["seen"] != nil || r["lag_p99"] != nil {
		t.Error("before a report: ", r)
	}
	if r := rows["early"]; r["granted"] != 0.0 || r["running"] != 3.0 {
		t.Error("a source without demand: ", r)
	}
	s.must(200, "PUT", "/v1/actors/feed", reportText, "Content-Type", "application/json")
	if r := s.actorRows()["feed"]; r["granted"] != 4.0 || r["running"] != 3.0 || r["drift"] != 1.0 ||
		r["lag_p99"] != 1.5 || r["effects"] != 7.0 || r["listed"] != "2026-01-05T09:00:00Z" || r["seen"] == nil {
		t.Error("after a report: ", r)
	}
	s.must(200, "PUT", "/v1/actors/feed", strings.NewReplacer("0.25", "null", "1.5", "null").Replace(reportText),
		"Content-Type", "application/json")
	if r := s.actorRows()["feed"]; r["lag_p50"] != nil || r["running"] != 3.0 {
		t.Error("without an effect: ", r)
	}
	s.restart()
	s.cycle()
	if rows := s.actorRows(); rows["feed"]["granted"] != 4.0 || rows["feed"]["seen"] != nil || rows["early"] != nil {
		t.Error("after a restart: ", rows)
	}
}

// TestActorRefused has reports that no actor makes.
func TestActorRefused(t *testing.T) {
	s := ready(t, nil)
	for was, is := range map[string]string{
		`"running":3`:            `"running":-1`,
		`"lag_p50":0.25`:         `"lag_p50":-1`,
		`"late":0`:               `"late":0,"more":1`,
		`"2026-01-05T08:00:00Z"`: `"yesterday"`,
		`}`:                      `} {}`,
		`{"running`:              `garbage{"running`,
	} {
		s.refused(400, "bad-request", "PUT", "/v1/actors/feed", strings.Replace(reportText, was, is, 1))
	}
	s.refused(413, "too-large", "PUT", "/v1/actors/feed", strings.Repeat(" ", actorBytesMax)+reportText)
	s.refused(400, "bad-request", "PUT", "/v1/actors/..", reportText)
}

// TestActorOwner has a token report on a source that another began.
func TestActorOwner(t *testing.T) {
	token := func(name string) Token {
		return Token{Name: name, SHA256: HashToken(name), Role: RoleSubmitter, Groups: []string{"risk-users"}}
	}
	s := start(t, func(o *ServiceOptions) {
		o.Server.Tokens = []Token{{Name: "root", SHA256: HashToken("root"), Role: RoleAdmin}, token("feed"),
			token("other")}
	})
	s.token = "root"
	s.must(200, "PUT", "/v1/plan", policyText)
	s.must(200, "PUT", "/v1/hosts", hostsText)
	s.token = "feed"
	s.must(200, "PUT", "/v1/demand/feed", "consumer,allocation,units,ncpus\n/Risk/Day,a,4,1\n")
	s.token = "root"
	s.cycle()
	s.token = "other"
	s.refused(403, "forbidden", "PUT", "/v1/actors/feed", reportText)
	s.token = "feed"
	s.must(200, "PUT", "/v1/actors/feed", reportText)
}

// TestActorsBounded has more sources report than are kept.
func TestActorsBounded(t *testing.T) {
	var a actors
	for i := range actorsMax + 5 {
		r := &actorReport{}
		r.seen = r.seen.AddDate(0, 0, i)
		a.put(fmt.Sprint(i), r)
	}
	if kept := a.all(); len(kept) != actorsMax || kept["4"] != nil || kept["5"] == nil {
		t.Error(len(kept), kept["4"], kept["5"])
	}
}
