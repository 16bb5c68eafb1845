package server

import (
	"fmt"
	"strings"
	"testing"
)

// TestForeign has a web page of another origin, or one whose name leads to the service, make calls, reading ones too.
func TestForeign(t *testing.T) {
	s := ready(t, nil)
	port := strings.TrimPrefix(s.base, "http://127.0.0.1:")
	calls := []string{"GET /v1/plan", "GET /healthz", "POST /v1/cycles", "GET /v1/changes?since=0"}
	for _, c := range []struct {
		head string
		good bool
	}{
		{"Host: localhost", true}, {"Host: LOCALHOST:80", true}, {"Host: 127.0.0.1:" + port, true},
		{"Host: [::1]:7468", true}, {"Host: localhost.", true},
		{"Host: evil.example", false}, {"Host: localhost.evil.example", false}, {"Host: 10.0.0.1", false},
		{"Host: 127.0.0.1.evil.example", false},
		{"Host: x", false}, {"Host: stint.example", false},
		{"Host: localhost:1\r\nOrigin: http://localhost:1", true},
		{"Host: localhost:1\r\nOrigin: https://localhost:1", true},
		{"Host: localhost:1\r\nOrigin: http://localhost:2", false},
		{"Host: localhost\r\nOrigin: https://evil.example", false},
		{"Host: localhost\r\nOrigin: null", false}, {"Host: localhost\r\nOrigin: localhost", false},
		{"Host: localhost\r\nSec-Fetch-Site: cross-site", false},
		{"Host: localhost\r\nSec-Fetch-Site: same-site", false},
		{"Host: localhost\r\nSec-Fetch-Site: same-origin", true}, {"Host: localhost\r\nSec-Fetch-Site: none", true},
	} {
		for _, call := range calls {
			conn := dial(s)
			conn.say(call + " HTTP/1.1\r\nConnection: close\r\nContent-Length: 0\r\n" + c.head + "\r\n\r\n")
			status, body := conn.answer()
			if foreign := status == 403 && strings.Contains(body, typePrefix+"foreign"); foreign == c.good ||
				!foreign && status != 200 {
				t.Errorf("%s with %q: %d %s", call, c.head, status, body)
			}
		}
	}
}

// TestHostsAllowed names further hosts; with tokens and without names all are taken.
func TestHostsAllowed(t *testing.T) {
	token := []Token{{Name: "root", SHA256: HashToken("secret"), Role: RoleAdmin}}
	for _, c := range []struct {
		tokens    []Token
		hosts     []string
		good, bad string
	}{
		{nil, []string{"Stint.example", "other.example:99"}, "stint.example stint.example:1 other.example:99 localhost",
			"other.example evil.example"},
		{token, nil, "evil.example x", ""},
		{token, []string{"stint.example"}, "stint.example 127.0.0.1", "evil.example"},
	} {
		s := start(t, func(o *ServiceOptions) { o.Server.Tokens, o.Server.HostsAllowed = c.tokens, c.hosts })
		for want, hosts := range map[int]string{200: c.good, 403: c.bad} {
			for _, host := range strings.Fields(hosts) {
				conn := dial(s)
				conn.say("GET /healthz HTTP/1.1\r\nHost: " + host + "\r\n\r\n")
				if status, body := conn.answer(); status != want {
					t.Errorf("hosts %v, Host %s: %d %s", c.hosts, host, status, body)
				}
			}
		}
	}
}

// TestFormTypes has a table come as what a form of a web page sends: it is none.
func TestFormTypes(t *testing.T) {
	s := ready(t, nil)
	rows := "consumer,allocation,units,ncpus\n/Risk/Day,a,1,1\n"
	for _, media := range []string{"application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x",
		"text/plain; charset=utf-8"} {
		s.refused(415, "wrong-type", "PUT", "/v1/demand/feed", rows, "Content-Type", media)
	}
	conn := dial(s) // as curl -T does
	conn.say(putDemand + fmt.Sprintf("Content-Length: %d\r\nExpect: 100-continue\r\n\r\n", len(rows)))
	conn.expect(100, "")
	conn.say(rows)
	conn.expect(200, "")
}

// TestFraming sends requests whose end two readers might see in different places. Each is refused, and nothing that
// follows is taken for a request.
func TestFraming(t *testing.T) {
	s := limited(t)
	rows := "consumer,allocation,units,ncpus\n"
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(rows), rows)
	second := "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
	for name, c := range map[string]struct {
		text   string
		status int
	}{
		"length and chunks": {putDemand + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked,
			400},
		"chunks and length": {putDemand + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n" + chunked,
			400},
		"small letters": {putDemand + "content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n" + chunked,
			400},
		"identity": {putDemand + "Transfer-Encoding: identity\r\nContent-Length: 32\r\n\r\n" + rows,
			400},
		"asked for before": {putDemand +
			"Expect: 100-continue\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked, 400},
		"folded line":             {"GET /v1/plan HTTP/1.1\r\nHost: localhost\r\nX-A: b\r\n c\r\n\r\n", 400},
		"version 9.9":             {"GET /healthz HTTP/9.9\r\nHost: localhost\r\n\r\n", 505},
		"HTTP/2":                  {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
		"expects something else":  {putDemand + "Expect: 200-ok\r\nContent-Length: 3\r\n\r\nabc", 417},
		"large, no byte of it":    {putDemand + "Content-Length: 2000000\r\n\r\n", 413},
		"very large":              {putDemand + "Content-Length: 9223372036854775807\r\n\r\n", 413},
		"large, asked for before": {putDemand + "Expect: 100-continue\r\nContent-Length: 2000000\r\n\r\n", 413},
	} {
		conn := dial(s)
		conn.say(c.text)
		status, body := conn.answer()
		if status != c.status {
			t.Errorf("%s: %d %s", name, status, body)
		}
		conn.say(second)
		if status, body := conn.answer(); status != 0 {
			t.Errorf("%s: the connection goes on: %d %s", name, status, body)
		}
	}
	conn := dial(s)
	conn.say("GET http://evil.example/v1/plan HTTP/1.1\r\nHost: localhost\r\n\r\n")
	conn.expect(400, "bad-request")
	s.refused(400, "bad-request", "GET", "/v1/changes?since=0&since=5", "")
	for _, name := range []string{".", "..", "%2e%2e"} {
		conn := dial(s)
		conn.say("PUT /v1/demand/" + name + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n")
		conn.expect(400, "bad-request")
	}
}
