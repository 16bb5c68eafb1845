package server

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stintd/stint/core/simulation"
)

func (s *service) simulate(query, body string) (a simulation.Answer) {
	s.t.Helper()
	text := s.must(200, "POST", "/v1/simulate"+query, body, "Content-Type", "application/json").body
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		s.t.Fatal(err)
	}
	return a
}

// TestSimulate asks for what is not there, and holds that nothing of it is there afterwards.
func TestSimulate(t *testing.T) {
	s := ready(t, nil)
	s.must(200, "PUT", "/v1/demand/feed", "consumer,allocation,units,ncpus\n/Risk/Day,a,14,1\n")
	s.cycle()
	before := s.must(200, "GET", "/v1/holdings", "").body
	asked := `{"demand":[{"consumer":"/Research","allocation":"new","units":6,"ncpus":1,"runtime":"1h"}],"runtimes":[{"consumer":"/Risk","p50":"30m"}]}`
	a := s.simulate("", asked)
	if len(a.Rows) != 1 || a.Rows[0].Now != 2 || a.Rows[0].Most != 6 || a.Rows[0].All.P50 == nil || a.Unknown != 0 ||
		a.Cycle != 2 {
		t.Errorf("%+v", a)
	}
	if len(a.Stops) != 1 || a.Stops[0].Consumer != "/Risk/Day" || a.Stops[0].Units != 4 ||
		a.Stops[0].Reason != "fair_share" {
		t.Errorf("%+v", a.Stops)
	}
	a = s.simulate("?horizon=0s",
		`{"demand":[{"consumer":"/Research","allocation":"new","units":6,"ncpus":1}],"hosts":[{"host":"h3","ncpus":8}]}`)
	if a.Rows[0].Now != 6 || a.Unknown != 14 || len(a.Stops) != 0 || a.Cycles != 1 {
		t.Errorf("%+v", a)
	}
	s.cycle()
	if after := s.must(200, "GET", "/v1/holdings", "").body; after != before {
		t.Errorf("it was done: %s", after)
	}
	if text := s.must(200, "GET", "/v1/sources", "").body; strings.Contains(text, "simulated") {
		t.Error(text)
	}
	for _, c := range []struct {
		status           int
		kind, query, say string
		body             string
	}{
		{422, "bad-rows", "", `runtime, value "soon"`,
			`{"demand":[{"consumer":"/Research","allocation":"new","units":6,"ncpus":1,"runtime":"soon"}]}`},
		{422, "bad-rows", "", `belongs to source "feed" already`,
			`{"demand":[{"consumer":"/Risk/Day","allocation":"a","units":6,"ncpus":1}]}`},
		{422, "bad-rows", "", "consumer", `{"demand":[{"consumer":"/Nobody","allocation":"a","units":6,"ncpus":1}]}`},
		{400, "bad-request", "", "demand: is missing", `{"hosts":[]}`},
		{400, "bad-request", "", `unknown field "hots"`, `{"demand":[],"hots":[]}`},
		{400, "bad-request", "", "cannot be read", `{`},
		{400, "bad-request", "", "behind the object", `{"demand":[]} {}`},
		{400, "bad-request", "", "begins with a slash", `{"demand":[],"runtimes":[{"p50":"1m"}]}`},
		{400, "bad-request", "", "must be above 0", `{"demand":[],"runtimes":[{"consumer":"/Risk","fifty":"1m"}]}`},
		{400, "bad-request", "?horizon=soon", "must be a duration from 0s to 720h0m0s", `{"demand":[]}`},
		{400, "bad-request", "?every=1ms", "must be a duration from 1s", `{"demand":[]}`},
		{400, "bad-request", "?within=1m", "must be a duration", `{"demand":[]}`},
		{400, "bad-request", "?plays=1000", "must be at most 200", `{"demand":[]}`},
		{413, "too-large", "", "rows", `{"demand":[` +
			strings.Repeat(`{"consumer":"/Research","allocation":"x","units":1},`, simulatedRowsMax) +
			`{"consumer":"/Research"}]}`},
	} {
		if got := s.refused(c.status, c.kind, "POST", "/v1/simulate"+c.query, c.body, "Content-Type",
			"application/json"); !strings.Contains(got, c.say) {
			t.Errorf("%.80s: %q has no %q", c.body, got, c.say)
		}
	}
	s.refused(415, "wrong-type", "POST", "/v1/simulate", "a,b\n", "Content-Type", "text/csv")
	s.refused(415, "wrong-type", "POST", "/v1/simulate", "{}", "Content-Type", "application/json", "Content-Encoding",
		"gzip")
}

// TestSimulateBranch holds that a token asks for its own branch alone, and is not told whose work of others would stop.
func TestSimulateBranch(t *testing.T) {
	s := start(t, func(o *ServiceOptions) {
		o.Server.Tokens = []Token{
			{Name: "root", SHA256: HashToken("root"), Role: RoleAdmin},
			{Name: "res", SHA256: HashToken("res"), Role: RoleReader, Branch: "/Research"},
		}
	})
	s.token = "root"
	s.must(200, "PUT", "/v1/plan", policyText)
	s.must(200, "PUT", "/v1/hosts", hostsText, "Content-Type", "text/csv")
	s.must(200, "PUT", "/v1/demand/feed", "consumer,allocation,units,ncpus\n/Risk/Day,secret,16,1\n")
	s.cycle()
	const mine = `{"demand":[{"consumer":"/Research","allocation":"new","units":2,"ncpus":1}]}`
	if a := s.simulate("", mine); len(a.Stops) != 1 || a.Stops[0].Allocation == nil ||
		*a.Stops[0].Allocation != "secret" {
		t.Errorf("%+v", a)
	}
	s.token = "res"
	if a := s.simulate("", mine); len(a.Stops) != 1 || a.Stops[0].Allocation != nil || a.Stops[0].Sub != nil ||
		a.Stops[0].Consumer != "/Risk/Day" {
		t.Errorf("%+v", a)
	}
	got := s.refused(403, "forbidden", "POST", "/v1/simulate",
		`{"demand":[{"consumer":"/Risk/Day","allocation":"new","units":2,"ncpus":1}]}`, "Content-Type",
		"application/json")
	if !strings.Contains(got, "reads /Research only") {
		t.Error(got)
	}
}
