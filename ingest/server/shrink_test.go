package server

import (
	"encoding/json"
	"strings"
	"testing"
)

// held is a service whose source feed holds 8 units on h1, 4 on h2 and 2 on h3, all of /Risk/Day.
func held(t *testing.T, edit func(*ServiceOptions)) *service {
	t.Helper()
	s := start(t, edit)
	s.must(200, "PUT", "/v1/plan",
		strings.Replace(policyText, "select(ncpus > 0)", "select(ncpus > 0 && zone == 'a')", 1))
	s.must(200, "PUT", "/v1/hosts", "host,ncpus,zone\nh1,9,a\nh2,8,a\nh3,8,a\nspare,1,b\n")
	s.must(200, "PUT", "/v1/demand/feed", "consumer,allocation,units,ncpus,requirement\n"+
		"/Risk/Day,a,8,1,select(h1)\n/Risk/Day,b,4,1,select(h2)\n/Risk/Day,c,2,1,select(h3)\n")
	if c := s.decides(); c.Held != 14 {
		t.Fatalf("%+v", c)
	}
	return s
}

// decides runs a cycle.
func (s *service) decides() (c cycleDone) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(s.must(200, "POST", "/v1/cycles", "").body), &c); err != nil {
		s.t.Fatal(err)
	}
	return c
}

// states are the states of the hosts h1 to h3 after a cycle.
func (s *service) states() string {
	s.t.Helper()
	s.cycle()
	var list []struct{ Host, State string }
	if err := json.Unmarshal([]byte(s.must(200, "GET", "/v1/hosts", "", "Accept", "application/json").body),
		&list); err != nil {
		s.t.Fatal(err)
	}
	var states []string
	for _, h := range list {
		if h.Host != "spare" {
			states = append(states, h.State)
		}
	}
	return strings.Join(states, " ")
}

// TestShrinkGuard has calls of every kind release units: more than half of them only where that is confirmed.
func TestShrinkGuard(t *testing.T) {
	const demand = "consumer,allocation,units,ncpus,requirement\n"
	for _, c := range []struct {
		name, method, path, body string
		released                 int64  // or reclaimed, when it is confirmed; 0: it is taken without
		closed                   string // states after the refusal
	}{
		{"all hosts are unavail", "PATCH", "hosts", "host,state\nh1,unavail\nh2,unavail\nh3,unavail\n", 14,
			"closed closed closed"},
		{"hosts without capacity", "PATCH", "hosts", "host,ncpus\nh1,0\nh2,2\n", 10, "closed closed ok"},
		{"hosts of another zone", "PATCH", "hosts", "host,zone\nh1,b\n", 8, "closed ok ok"},
		{"a table with states", "PUT", "hosts", "host,ncpus,zone,state\nh1,8,a,unavail\nh2,8,a,ok\nh3,8,a,ok\n", 8,
			"closed ok ok"},
		{"a table without a host", "PUT", "hosts", "host,ncpus,zone\nh2,8,a\nh3,8,a\n", 8, "closed ok ok"},
		{"a table without an attribute", "PUT", "hosts", "host,ncpus\nh1,8\nh2,8\nh3,8\n", 14, "closed closed closed"},
		{"changes of demand", "PATCH", "demand/feed", demand + "/Risk/Day,a,0,1,\n", 8, "ok ok ok"},
		{"fewer units", "PATCH", "demand/feed", demand + "/Risk/Day,a,1,1,select(h1)\n/Risk/Day,c,1,1,select(h3)\n", 8,
			"ok ok ok"},
		{"units of another size", "PATCH", "demand/feed", demand + "/Risk/Day,a,8,2,select(h1)\n", 8, "ok ok ok"},
		{"a snapshot", "PUT", "demand/feed", demand + "/Risk/Day,b,4,1,select(h2)\n/Risk/Day,c,2,1,select(h3)\n", 8,
			"ok ok ok"},
		{"nothing runs", "PUT", "running/feed", "consumer,allocation,host,units\n/Risk/Day,b,h2,4\n", 10, "ok ok ok"},

		{"fewer hosts", "PATCH", "hosts", "host,state\nh2,unavail\nh3,unavail\n", 0, ""},
		{"the same hosts", "PATCH", "hosts", "host,ncpus,zone,state\nh1,8,a,ok\nh2,8,a,ok\nh3,8,a,ok\n", 0, ""},
		{"all hosts are drained", "PATCH", "hosts", "host,state\nh1,draining\nh2,draining\nh3,draining\n", 0, ""},
		{"units that nobody needs are left", "PATCH", "hosts", "host,ncpus\nh2,4\nh3,2\nh1,8\n", 0, ""},
		{"less demand", "PATCH", "demand/feed", demand + "/Risk/Day,a,1,1,select(h1)\n", 0, ""},
		{"releases", "POST", "releases", "consumer,allocation,host,units,done\n/Risk/Day,a,h1,8,true\n" +
			"/Risk/Day,b,h2,4,true\n", 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := held(t, nil)
			path := "/v1/" + c.path
			if c.released == 0 {
				s.must(200, c.method, path, c.body)
				return
			}
			for range 2 { // a feed repeats it
				a := s.do(c.method, path, c.body)
				if a.status != 409 || !strings.Contains(a.body, ":shrink") ||
					strings.Contains(a.body, "hosts_closed") != strings.Contains(c.closed, "closed") {
					t.Fatal(a)
				}
			}
			s.must(200, "PUT", "/v1/demand/other", demand+"/Research,x,1,1,select(h1)\n")
			done := s.decides()
			granted := int64(0)
			if strings.HasPrefix(c.closed, "ok") {
				granted = 1
			}
			if done.Released+done.Reclaimed != 0 || done.Granted != granted {
				t.Errorf("after the refusal: %+v", done)
			}
			if states := s.states(); states != c.closed {
				t.Errorf("the hosts are %s, expected %s", states, c.closed)
			}
			s.must(200, c.method, path+"?allow_shrink=true", c.body)
			if done := s.decides(); done.Released+done.Reclaimed != c.released {
				t.Errorf("%d units are released and %d reclaimed, expected %d", done.Released, done.Reclaimed,
					c.released)
			}
			if states := s.states(); strings.Contains(states, "closed") {
				t.Errorf("after the confirmation hosts are %s", states)
			}
		})
	}
}

// TestShrinkGuardClosed has hosts that the guard closed be opened again: by a full table, by changes that name them,
// also after a restart, and not where somebody closed them.
func TestShrinkGuardClosed(t *testing.T) {
	const lost, closed = "host,ncpus\nh1,0\nh2,0\n", "closed closed ok"
	for _, c := range []struct{ name, first, method, body, want string }{
		{"a full table", "", "PUT", "host,ncpus,zone\nh1,8,a\nh2,8,a\nh3,8,a\n", "ok ok ok"},
		{"its old capacity", "", "PATCH", "host,ncpus\nh1,8\nh2,8\n", "ok ok ok"},
		{"one of them", "", "PATCH", "host,ncpus\nh2,8\n", "closed ok ok"},
		{"a state", "", "PATCH", "host,state\nh1,ok\n", "ok closed ok"},
		{"closed by somebody", "", "PATCH", "host,state\nh1,closed\n", closed},
		{"closed before", "host,state\nh1,closed\n", "PATCH", "host,ncpus\nh1,8\nh2,8\n", "closed ok ok"},
		{"others", "", "PATCH", "host,ncpus\nh3,9\n", closed},
	} {
		for _, restarts := range []bool{false, true} {
			t.Run(c.name, func(t *testing.T) {
				s := held(t, func(o *ServiceOptions) { o.Engine.CheckpointAtEnd = restarts })
				if c.first != "" {
					s.must(200, "PATCH", "/v1/hosts", c.first)
				}
				s.refused(409, "shrink", "PATCH", "/v1/hosts", lost)
				if restarts {
					s.cycle() // for a checkpoint
					s.restart()
				}
				if states := s.states(); states != closed {
					t.Errorf("after the refusal the hosts are %s", states)
				}
				s.must(200, c.method, "/v1/hosts", c.body)
				if states := s.states(); states != c.want {
					t.Errorf("the hosts are %s, expected %s", states, c.want)
				}
				if c.name == "closed by somebody" { // which later changes leave
					s.must(200, "PATCH", "/v1/hosts", "host,ncpus\nh1,9\n")
					if states := s.states(); states != closed {
						t.Errorf("the hosts are %s, expected %s", states, closed)
					}
				}
			})
		}
	}
}
