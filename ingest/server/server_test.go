package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"github.com/stintd/stint/core/engine"
)

const policyText = `
stint: 1
dimensions: [ncpus]
resource_groups: [{name: All, select: "select(ncpus > 0)"}]
consumers: [{path: /Risk, admins: [risk-admins], users: [risk-users]}, {path: /Risk/Day}, {path: /Risk/Night}, {path: /Research, users: [res]}]
md_plans:
  - name: grid
    resource_groups: [{name: All}]
    consumers: [{path: /Risk}, {path: /Risk/Day}, {path: /Risk/Night}, {path: /Research}]
`

const hostsText = "host,ncpus\nh1,8\nh2,8\n"

// service is a running service on loopback.
type service struct {
	t      testing.TB
	dir    string
	base   string
	engine *engine.Engine
	cancel func()
	ended  chan error
	client *http.Client
	token  string
	check  *checker
	o      ServiceOptions
}

func start(t testing.TB, edit func(*ServiceOptions)) *service {
	t.Helper()
	s := &service{t: t, dir: t.TempDir(), client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
		check: theChecker()}
	s.o = ServiceOptions{Dir: s.dir, Engine: engine.Options{ManualOnly: true}}
	if edit != nil {
		edit(&s.o)
	}
	s.run()
	t.Cleanup(s.stop)
	return s
}

func (s *service) run() {
	s.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	s.base = "http://" + ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ready := make(chan struct{})
	o := s.o
	o.Listener, o.Ready = ln, func(e *engine.Engine) { s.engine = e; close(ready) }
	s.cancel, s.ended = cancel, make(chan error, 1)
	go func() { s.ended <- Run(ctx, o) }()
	select {
	case <-ready:
	case err := <-s.ended:
		s.t.Fatal(err)
	}
}

func (s *service) stop() {
	if s.cancel == nil {
		return
	}
	s.client.CloseIdleConnections()
	s.cancel()
	s.cancel = nil
	if err := <-s.ended; err != nil {
		s.t.Error(err)
	}
}

func (s *service) restart() {
	s.stop()
	s.run()
}

// answer is a response, read.
type answer struct {
	status int
	header http.Header
	body   string
}

// do sends a request; headers are pairs. Request and response are held against the OpenAPI description.
func (s *service) do(method, path, body string, headers ...string) answer {
	s.t.Helper()
	r, err := http.NewRequest(method, s.base+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if s.token != "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := s.client.Do(r)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	s.check.response(s.t, r, body, resp, got)
	return answer{resp.StatusCode, resp.Header, string(got)}
}

// must is do with a status that is expected.
func (s *service) must(status int, method, path, body string, headers ...string) answer {
	s.t.Helper()
	a := s.do(method, path, body, headers...)
	if a.status != status {
		s.t.Fatalf("%s %s: status %d, expected %d: %s", method, path, a.status, status, a.body)
	}
	return a
}

// refused expects a problem of a status and kind, and gives its detail.
func (s *service) refused(status int, kind, method, path, body string, headers ...string) string {
	s.t.Helper()
	a := s.must(status, method, path, body, headers...)
	var p struct{ Type, Detail string }
	if err := json.Unmarshal([]byte(a.body), &p); err != nil || p.Type != typePrefix+kind ||
		a.header.Get("Content-Type") != "application/problem+json" {
		s.t.Errorf("%s %s: %v, expected a problem of kind %s: %s", method, path, err, kind, a.body)
	}
	if a.header.Get("Cache-Control") != "no-store" || a.header.Get("ETag") != "" {
		s.t.Errorf("%s %s: an error that may be kept: %v", method, path, a.header)
	}
	return p.Detail
}

// ready gives a service a policy and hosts.
func ready(t testing.TB, edit func(*ServiceOptions)) *service {
	s := start(t, edit)
	s.must(200, "PUT", "/v1/plan", policyText)
	s.must(200, "PUT", "/v1/hosts", hostsText, "Content-Type", "text/csv")
	return s
}

func (s *service) cycle() { s.t.Helper(); s.must(200, "POST", "/v1/cycles", "") }

// logged waits until the decision log has all cycles.
func (s *service) logged() {
	s.t.Helper()
	for until := time.Now().Add(10 * time.Second); !strings.Contains(s.must(200, "GET", "/readyz", "").body,
		`"log_behind_cycles":0`); {
		if time.Now().After(until) {
			s.t.Fatal("the decision log does not follow")
		}
		time.Sleep(time.Millisecond)
	}
}

// checker holds requests and responses against the OpenAPI description.
type checker struct{ router routers.Router }

var theChecker = sync.OnceValue(func() *checker {
	doc, err := openapi3.NewLoader().LoadFromData(OpenAPI())
	if err == nil {
		err = doc.Validate(context.Background())
	}
	if err != nil {
		panic(err)
	}
	doc.Servers = nil // each test has an address of its own
	router, err := legacy.NewRouter(doc)
	if err != nil {
		panic(err)
	}
	raw := func(body io.Reader, _ http.Header, _ *openapi3.SchemaRef, _ openapi3filter.EncodingFn) (any, error) {
		b, err := io.ReadAll(body)
		return string(b), err
	}
	for _, m := range []string{"text/csv", "text/plain", "application/x-ndjson", "application/yaml",
		"application/vnd.apache.arrow.stream", "application/vnd.apache.parquet", "application/octet-stream",
		"text/html", "text/css", "image/svg+xml", "text/javascript", "text/event-stream"} {
		openapi3filter.RegisterBodyDecoder(m, raw)
	}
	return &checker{router}
})

func (c *checker) response(t testing.TB, r *http.Request, sent string, resp *http.Response, got []byte) {
	t.Helper()
	described := r.Clone(context.Background())
	described.URL.Scheme, described.URL.Host, described.Host = "", "", ""
	described.Body = io.NopCloser(strings.NewReader(sent))
	route, params, err := c.router.FindRoute(described)
	if err != nil {
		if resp.StatusCode != 404 && resp.StatusCode != 405 && strings.Count(r.URL.Path, "/") < 4 {
			t.Errorf("%s %s, status %d: not in the description: %v", r.Method, r.URL, resp.StatusCode, err)
		}
		return
	}
	in := &openapi3filter.RequestValidationInput{Request: described, PathParams: params, Route: route,
		Options: &openapi3filter.Options{
			AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true,
			ExcludeRequestBody: described.Header.Get("Content-Type") == "",
		}}
	if resp.StatusCode < 300 {
		if err := openapi3filter.ValidateRequest(context.Background(), in); err != nil {
			t.Errorf("%s %s was taken, but is not as described: %v", r.Method, r.URL, err)
		}
	}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: resp.StatusCode,
		Header: resp.Header, Options: in.Options}
	out.SetBodyBytes(got)
	if err := openapi3filter.ValidateResponse(context.Background(), out); err != nil {
		t.Errorf("%s %s: the response is not as described: %v", r.Method, r.URL, err)
	}
}

func TestRoundTrip(t *testing.T) {
	s := start(t, nil)
	s.refused(409, "no-plan", "PUT", "/v1/hosts", hostsText)
	s.refused(404, "no-plan", "GET", "/v1/plan", "")
	s.refused(409, "no-plan", "POST", "/v1/cycles", "")
	a := s.must(200, "PUT", "/v1/plan", policyText, "Content-Type", "application/yaml")
	if a.header.Get("ETag") != `"1"` || !strings.Contains(a.body, `"revision":1`) {
		t.Error(a)
	}
	if a := s.must(200, "GET", "/v1/plan", ""); a.body != policyText || a.header.Get("ETag") != `"1"` {
		t.Error(a)
	}
	s.refused(409, "no-cycle", "GET", "/v1/holdings", "")
	s.must(200, "PUT", "/v1/hosts", hostsText, "Content-Type", "text/csv")
	a = s.must(200, "PUT", "/v1/demand/feed", `[{"consumer":"/Risk/Day","allocation":"a","units":5,"ncpus":2}]`,
		"Content-Type", "application/json")
	if a.body != `{"snapshot":"3","rows":1,"cycle":1}`+"\n" {
		t.Error(a.body)
	}
	if a := s.must(200, "POST", "/v1/cycles", ""); !strings.Contains(a.body, `"units_granted":5`) {
		t.Error(a.body)
	}
	a = s.must(200, "GET", "/v1/changes?source=feed&since=0", "", "Accept", "text/csv")
	want := "cycle,change,plan,source,consumer,allocation,sub,host,units,origin,pool,lender,cause,reclaim,reason," +
		"deadline,for_consumer,for_allocation,for_sub,device\n" +
		"1,grant,grid,feed,/Risk/Day,a,,h1,4,public_pool,/,,,0,,,,,,\n" +
		"1,grant,grid,feed,/Risk/Day,a,,h2,1,public_pool,/,,,0,,,,,,\n"
	if a.body != want || a.header.Get("Stint-Cycle") != "1" {
		t.Errorf("%s\n%v", a.body, a.header)
	}
	s.must(200, "PATCH", "/v1/demand/feed", `{"consumer":"/Risk/Night","allocation":"n","units":1,"ncpus":1}`,
		"Content-Type", "application/x-ndjson")
	a = s.must(200, "POST", "/v1/releases", "consumer,allocation,host,units,done\n/Risk/Day,a,h2,2,true\n",
		"Content-Type", "text/csv")
	if !strings.Contains(a.body, `"released":1,"beyond":1`) {
		t.Error(a.body)
	}
	s.cycle()
	if a := s.must(200, "GET", "/v1/holdings?source=feed&format=csv", ""); strings.Count(a.body, "\n") != 3 {
		t.Error(a.body)
	}
	a = s.must(200, "PUT", "/v1/running/feed", "consumer,allocation,host,units\n/Risk/Day,a,h1,4\n")
	if !strings.Contains(a.body, `"released":1,"added":0`) {
		t.Error(a.body)
	}
	s.cycle()
	s.restart()
	for path, want := range map[string]string{
		"/v1/consumers":                             `"consumer":"/Risk/Night"`,
		"/v1/consumers/Risk":                        `"consumer":"/Risk/Night"`,
		"/v1/consumers/Risk/Day":                    `"held":4`,
		"/v1/cycles":                                `"cycle":3`,
		"/v1/cycles?limit=1":                        `[{"cycle":3`,
		"/v1/cycles/latest/shortfalls":              `[]`,
		"/v1/cycles/1/grants":                       `"units":4`,
		"/v1/cycles/1/grants?consumer=/Research":    `[]`,
		"/v1/cycles/2/consumers":                    `"held_ncpus"`,
		"/v1/cycles/latest/cycles":                  `"decisions_digest"`,
		"/healthz":                                  `"status":"ok"`,
		"/readyz":                                   `"cycle":3`,
		"/metrics":                                  "stint_held_units 5",
		"/openapi.json":                             "Acknowledgement",
		"/v1/changes?source=feed&since=3":           `[]`,
		"/v1/changes?source=feed&since=3&wait=10ms": `[]`,
	} {
		if a := s.must(200, "GET", path, ""); !strings.Contains(a.body, want) {
			t.Errorf("%s has no %s: %s", path, want, a.body)
		}
	}
	s.refused(404, "not-found", "GET", "/v1/consumers/Nobody", "")
	s.refused(404, "not-found", "GET", "/v1/cycles/9/grants", "")
	s.refused(404, "not-found", "GET", "/v1/cycles/1/nothing", "")
	s.refused(422, "future", "GET", "/v1/changes?since=99", "")
	s.refused(400, "bad-request", "GET", "/v1/changes", "")
	s.refused(400, "bad-request", "GET", "/v1/changes?sinze=1&since=0", "")
	s.refused(406, "not-acceptable", "GET", "/v1/holdings", "", "Accept", "image/png")
	s.refused(404, "not-found", "GET", "/v2/x", "")
	s.refused(405, "wrong-method", "DELETE", "/v1/plan", "")
}

// TestExplain explains from memory, from the decision log, and after a restart, as JSON and as text: the same.
func TestExplain(t *testing.T) {
	s := ready(t, nil)
	s.must(200, "PUT", "/v1/demand/feed", "consumer,allocation,units,ncpus\n/Risk/Day,a,14,1\n/Risk/Night,n,1,1\n")
	s.cycle()
	s.must(200, "PUT", "/v1/demand/other", "consumer,allocation,units,ncpus\n/Research,r,9,1\n")
	s.cycle()
	s.logged()
	inMemory := map[string]string{}
	for path, want := range map[string]string{
		"/v1/explain/Research":                     `"reason":"waiting_for_reclaim"`,
		"/v1/explain/Risk":                         `"leaving":[{"consumer":"/Risk/Day"`,
		"/v1/explain/Risk/Day?allocation=a":        `"allocation":"a"`,
		"/v1/explain/Risk%2FNight":                 `"consumer":"/Risk/Night"`,
		"/v1/explain/Risk/Day?format=text":         "/Risk/Day after cycle 2 at ",
		"/v1/explain/Risk/Day?cycle=1":             `"cycle":1`,
		"/v1/explain/Research?allocation=r":        `for /Research:r, due `,
		"/v1/explain/Research?cycle=2&format=text": "being taken back for it",
	} {
		a := s.must(200, "GET", path, "")
		if !strings.Contains(a.body, want) {
			t.Errorf("%s has no %s: %s", path, want, a.body)
		}
		inMemory[path] = a.body
	}
	if a := s.must(200, "GET", "/v1/explain/Risk/Day", "", "Accept",
		"text/plain"); a.body != inMemory["/v1/explain/Risk/Day?format=text"] || a.header.Get("Stint-Cycle") != "2" {
		t.Errorf("%v %s", a.header, a.body)
	}
	s.refused(404, "not-found", "GET", "/v1/explain/Risk/Dey", "")
	s.refused(404, "not-found", "GET", "/v1/explain/Risk/Day?allocation=b", "")
	s.refused(404, "not-found", "GET", "/v1/explain/Risk?cycle=9", "")
	s.refused(400, "bad-request", "GET", "/v1/explain/Risk?cycle=x", "")
	s.refused(400, "bad-request", "GET", "/v1/explain/Risk?allocatoin=x", "")
	s.refused(400, "bad-request", "GET", "/v1/explain/Risk?format=csv", "")
	s.refused(406, "not-acceptable", "GET", "/v1/explain/Risk", "", "Accept", "text/csv")
	s.restart()
	for path, was := range inMemory {
		if a := s.must(200, "GET", path, ""); a.body != was {
			t.Errorf("%s after a restart: %s\nbefore: %s", path, a.body, was)
		}
	}
	// What the last cycle's memory tells, the log tells too, and in the next cycle a policy that is not in force yet
	// explains nothing.
	s.must(200, "PUT", "/v1/plan", strings.ReplaceAll(policyText, "{path: /Research}]",
		"{path: /Research, share: {ratio: 3}}]"))
	if a := s.must(200, "GET", "/v1/explain/Research", ""); a.body != inMemory["/v1/explain/Research"] {
		t.Error(a.body)
	}
	s.cycle()
	s.logged()
	for path, was := range inMemory {
		sign := "?"
		if strings.Contains(path, "?") {
			sign = "&"
		}
		if !strings.Contains(path, "cycle=") {
			path += sign + "cycle=2"
		}
		if a := s.must(200, "GET", path, ""); a.body != was {
			t.Errorf("%s from the log: %s\nfrom memory: %s", path, a.body, was)
		}
	}
}

func TestFormatsOut(t *testing.T) {
	s := ready(t, nil)
	var rows strings.Builder
	rows.WriteString("consumer,allocation,units,ncpus\n")
	for i := range 3000 { // more than are answered whole
		fmt.Fprintf(&rows, "/Risk/Day,a%d,1,1\n", i)
	}
	s.must(200, "PUT", "/v1/demand/feed", rows.String())
	s.cycle()
	for media, magic := range map[string]string{
		"application/vnd.apache.arrow.stream": "\xff\xff\xff\xff", "application/vnd.apache.parquet": "PAR1",
		"application/x-ndjson":                   `{"plan"`,
		"text/csv;q=0.5, application/json;q=0.4": "plan,", "*/*": "[{", "image/png, text/*": "plan,",
	} {
		for _, path := range []string{"/v1/cycles/latest/shortfalls", "/v1/cycles/latest/consumers"} {
			a := s.must(200, "GET", path, "", "Accept", media)
			if !strings.HasPrefix(a.body, magic) {
				t.Errorf("%s %s: %.20q", media, path, a.body)
			}
		}
	}
}

func TestConditions(t *testing.T) {
	s := ready(t, nil)
	s.refused(412, "revision", "PUT", "/v1/plan", policyText, "If-Match", `"7"`)
	s.must(200, "PUT", "/v1/plan", policyText, "If-Match", `"1"`)
	s.refused(400, "bad-request", "PUT", "/v1/plan", policyText, "If-Match", `"x"`)
	s.refused(422, "bad-plan", "PUT", "/v1/plan", "stint: 1\nnonsense: 2\n")
	other := strings.NewReplacer("/Research", "/New").Replace(policyText)
	if a := s.must(200, "POST", "/v1/plan/check", other); !strings.Contains(a.body, `"ok":true`) ||
		!strings.Contains(a.body,
			`"same":false,"changes":[{"kind":"added","where":"consumer /New","is":"users res","about":"/New"},`) {
		t.Error(a.body)
	}
	suspect := strings.Replace(policyText, "{path: /Research}]", "{path: /Research, share: {ratio: 0}}]", 1)
	if a := s.must(200, "PUT", "/v1/plan", suspect); !strings.Contains(a.body,
		`"warnings":["plan:5: plan grid: /Research has share ratio 0 and owns nothing`) {
		t.Error("what is suspect is not told:", a.body)
	}
	vital := strings.Replace(policyText, "{path: /Research, users: [res]}",
		"{path: /Research, users: [res], system: true}", 1)
	s.must(200, "PUT", "/v1/plan", vital)
	for path, want := range map[string][]string{"": {`"ok":false`, `"forceable":true`},
		"?force=true": {`"ok":true`, `"forceable":false`}} {
		for _, part := range want {
			if a := s.must(200, "POST", "/v1/plan/check"+path, policyText); !strings.Contains(a.body, part) {
				t.Error("system taken off:", path, part, a.body)
			}
		}
	}
	if a := s.must(200, "POST", "/v1/plan/check", other); !strings.Contains(a.body, `"ok":false`) ||
		!strings.Contains(a.body, `"forceable":false`) {
		t.Error("what force does not help:", a.body)
	}
	if d := s.refused(422, "bad-plan", "PUT", "/v1/plan?force=true", other); !strings.Contains(d,
		"consumer /Research belongs to a system branch") {
		t.Error(d)
	}
	s.refused(422, "bad-plan", "POST", "/v1/whatif", policyText)
	s.must(200, "PUT", "/v1/plan?force=true", policyText)
	rows := "consumer,allocation,units,ncpus\n/Risk/Day,a,4,1\n"
	first := s.must(200, "PUT", "/v1/demand/feed", rows, "Idempotency-Key", "k")
	again := s.must(200, "PUT", "/v1/demand/feed", rows, "Idempotency-Key", "k")
	if strings.TrimSuffix(first.body, "}\n")+`,"repeated":true}`+"\n" != again.body {
		t.Error(first.body, again.body)
	}
	s.refused(422, "key-reused", "PUT", "/v1/demand/feed", rows+"\n", "Idempotency-Key", "k")
	s.cycle()
	empty := "consumer,allocation,units,ncpus\n"
	s.refused(409, "shrink", "PUT", "/v1/demand/feed", empty)
	s.refused(409, "shrink", "PUT", "/v1/hosts", "host,ncpus\nh9,1\n")
	s.refused(400, "bad-request", "PUT", "/v1/demand/feed?allow_shrink=yes", empty)
	s.must(200, "PUT", "/v1/demand/feed?allow_shrink=true", empty)
	s.refused(422, "bad-rows", "PUT", "/v1/demand/feed",
		"consumer,allocation,units,ncpus\n/Nobody,a,4,1\n/Risk/Day,a,-1,1\n")
	s.refused(400, "bad-request", "PUT", "/v1/demand/a%2Fb", rows)
	s.refused(415, "wrong-type", "PUT", "/v1/demand/feed", rows, "Content-Type", "image/png")
	s.refused(415, "wrong-type", "PUT", "/v1/demand/feed", rows, "Content-Encoding", "br")
	s.refused(422, "bad-rows", "PUT", "/v1/demand/feed", rows, "Content-Type", "application/vnd.apache.parquet")
	for _, call := range []string{"PUT /v1/plan", "POST /v1/plan/check", "POST /v1/whatif"} {
		method, path, _ := strings.Cut(call, " ")
		s.refused(415, "wrong-type", method, path, policyText, "Content-Type", "text/csv")
		s.refused(415, "wrong-type", method, path, policyText, "Content-Encoding", "br")
		s.refused(422, "bad-plan", method, path, policyText, "Content-Encoding", "gzip")
		s.must(200, method, path, policyText, "Content-Type", "application/yaml; charset=utf-8")
	}
	long := strings.Repeat("k", 257)
	s.refused(400, "bad-request", "PUT", "/v1/plan", policyText, "Idempotency-Key", long)
	s.refused(400, "bad-request", "PUT", "/v1/demand/feed", rows, "Idempotency-Key", long)
}

func TestRoles(t *testing.T) {
	token := func(name, role string, groups ...string) Token {
		return Token{Name: name, SHA256: HashToken("secret of " + name), Role: role, Groups: groups}
	}
	s := start(t, func(o *ServiceOptions) {
		o.Server.Tokens = []Token{token("root", RoleAdmin), token("ada", RoleConsumerAdmin, "risk-admins"),
			token("feed", RoleSubmitter, "risk-users"), token("eve", RoleReader, "risk-users")}
	})
	as := func(name string) { s.token = "secret of " + name }
	rows := "consumer,allocation,units,ncpus\n/Risk/Day,a,4,1\n"
	s.refused(401, "unauthorized", "PUT", "/v1/plan", policyText)
	s.refused(401, "unauthorized", "GET", "/metrics", "")
	s.must(200, "GET", "/healthz", "")
	as("nobody")
	s.refused(401, "unauthorized", "GET", "/v1/plan", "")
	as("ada")
	s.refused(403, "forbidden", "PUT", "/v1/plan", policyText)
	as("root")
	s.must(200, "PUT", "/v1/plan", policyText)
	s.must(200, "PUT", "/v1/hosts", hostsText)
	for _, name := range []string{"ada", "feed", "eve"} {
		as(name)
		s.refused(403, "forbidden", "PUT", "/v1/hosts", hostsText)
		s.refused(403, "forbidden", "POST", "/v1/cycles", "")
		s.must(200, "GET", "/v1/plan", "")
	}
	as("eve")
	s.refused(403, "forbidden", "PUT", "/v1/demand/feed", rows)
	as("feed")
	s.must(200, "PUT", "/v1/demand/feed", rows)
	s.refused(403, "forbidden", "PUT", "/v1/demand/feed", rows+"/Research,b,1,1\n")
	s.refused(403, "forbidden", "PUT", "/v1/plan", policyText)
	as("ada")
	s.must(200, "PUT", "/v1/plan", strings.Replace(policyText, "{path: /Risk/Night}]", "{path: /Risk/Night, rank: 3}]",
		1))
	s.must(200, "PUT", "/v1/plan", strings.Replace(policyText,
		"{path: /Risk/Day}, {path: /Risk/Night}, {path: /Research}]",
		"{path: /Risk/Day, share: {ratio: 2}}, {path: /Risk/Night}, {path: /Research}]", 1))
	if d := s.refused(403, "forbidden", "PUT", "/v1/plan",
		strings.Replace(policyText, "[{path: /Risk}, ", "[{path: /Risk, share: {ratio: 9}}, ", 1)); !strings.Contains(d,
		"md_plans[0].consumers") {
		t.Error(d)
	}
	s.must(200, "PUT", "/v1/demand/night", "consumer,allocation,units,ncpus\n/Risk/Night,a,4,1\n")
	as("root")
	s.must(200, "PUT", "/v1/demand/mixed", "consumer,allocation,units,ncpus\n/Research,r,4,1\n")
	as("feed")
	s.refused(403, "forbidden", "PUT", "/v1/demand/mixed?allow_shrink=true", rows)
	s.refused(403, "forbidden", "PUT", "/v1/demand/night", "consumer,allocation,units,ncpus\n")
	s.refused(403, "forbidden", "DELETE", "/v1/demand/night", "")
	s.refused(404, "no-source", "DELETE", "/v1/demand/nobody", "")
	s.refused(400, "bad-request", "DELETE", "/v1/demand/feed?force=true", "")
	as("eve")
	s.refused(403, "forbidden", "DELETE", "/v1/demand/feed", "")
	as("root")
	s.cycle()
	as("feed")
	s.refused(409, "shrink", "DELETE", "/v1/demand/feed", "")
	if a := s.must(200, "DELETE", "/v1/demand/feed?allow_shrink=true", ""); !strings.Contains(a.body, `"released":4`) {
		t.Error(a.body)
	}
	as("root")
	s.cycle()
	if a := s.must(200, "GET", "/v1/holdings?source=feed", ""); strings.Contains(a.body, "units") {
		t.Error(a.body)
	}
}

func TestLongPoll(t *testing.T) {
	s := ready(t, nil)
	s.must(200, "PUT", "/v1/demand/feed", "consumer,allocation,units,ncpus\n/Risk/Day,a,4,1\n")
	got := make(chan answer, 1)
	begin := time.Now()
	go func() { got <- s.do("GET", "/v1/changes?source=feed&since=0&wait=20s", "", "Accept", "text/csv") }()
	for s.must(200, "GET", "/metrics", ""); !strings.Contains(s.must(200, "GET", "/metrics", "").body,
		"stint_queue_waiters 1"); {
		time.Sleep(time.Millisecond)
	}
	s.cycle()
	if a := <-got; a.status != 200 || !strings.Contains(a.body, "grant") || time.Since(begin) > 15*time.Second {
		t.Error(a)
	}
	go func() { got <- s.do("GET", "/v1/changes?source=feed&since=1&wait=30s", "") }()
	for !strings.Contains(s.must(200, "GET", "/metrics", "").body, "stint_queue_waiters 1") {
		time.Sleep(time.Millisecond)
	}
	begin = time.Now()
	s.stop()
	if a := <-got; a.status != 200 || a.body != "[]\n" || time.Since(begin) > 8*time.Second {
		t.Error("a long poll at the end of the service:", a, time.Since(begin))
	}
}

func TestLoopbackOnly(t *testing.T) {
	ln, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Skip(err)
	}
	err = Run(context.Background(), ServiceOptions{Dir: t.TempDir(), Listener: ln})
	if err == nil || !strings.Contains(err.Error(), ErrOpen.Error()) {
		t.Error(err)
	}
}

func TestMetricsPerConsumer(t *testing.T) {
	s := ready(t, nil)
	s.must(200, "PUT", "/v1/demand/feed", "consumer,allocation,units,ncpus\n/Risk/Day,a,40,1\n")
	s.cycle()
	a := s.must(200, "GET", "/metrics", "")
	for _, line := range []string{
		`stint_consumer_held_units{consumer="/Risk",plan="grid"} 16`,
		`stint_consumer_short_units{consumer="/Risk",plan="grid"} 24`,
		`stint_input_rows_total{kind="demand"} 1`, `stint_cycle_stage_duration_seconds_count{stage="grant"} 1`,
		"stint_overdue_units 0",
	} {
		if !strings.Contains(a.body, line+"\n") {
			t.Error("no", line)
		}
	}
	if bytes.Contains([]byte(a.body), []byte("/Risk/Day")) {
		t.Error("a series of a consumer below the first level")
	}
}

// TestNoAllocationPerRow pushes a snapshot that is there already: what is allocated does not follow its rows.
func TestNoAllocationPerRow(t *testing.T) {
	s := ready(t, nil)
	body := func(rows int) string {
		var b strings.Builder
		b.WriteString("consumer,allocation,units,ncpus\n")
		for i := range rows {
			fmt.Fprintf(&b, "/Risk/Day,job-%06d,1,%d\n", i, 1+i%4)
		}
		return b.String()
	}
	large := body(50_000)
	push := func() uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s.must(200, "PUT", "/v1/demand/feed", large, "Content-Type", "text/csv")
		runtime.ReadMemStats(&after)
		return after.Mallocs - before.Mallocs
	}
	push()
	push()
	least := push()
	for range 4 { // the collector may empty pools in between
		least = min(least, push())
	}
	t.Log(least, "allocations for 50,000 rows, the client's own included")
	if least > 5_000 {
		t.Errorf("%d allocations for 50,000 rows", least)
	}
}

// TestWhatif asks what another policy would do: the answer is what then happens, and asking changes nothing.
func TestWhatif(t *testing.T) {
	s := start(t, nil)
	s.refused(409, "no-plan", "POST", "/v1/whatif", policyText)
	s.must(200, "PUT", "/v1/plan", policyText)
	s.must(200, "PUT", "/v1/hosts", hostsText)
	s.must(200, "PUT", "/v1/demand/feed", "consumer,allocation,units,ncpus\n/Risk/Day,a,16,1\n/Research,r,9,1\n")
	s.cycle()
	other := strings.ReplaceAll(policyText, "{path: /Research}]",
		"{path: /Research}, {path: /Risk/Day, share: {ratio: 3}}]")
	s.refused(422, "bad-plan", "POST", "/v1/whatif", other)
	other = strings.Replace(policyText, "consumers: [{path: /Risk}, {path: /Risk/Day}",
		"consumers: [{path: /Risk, share: {ratio: 3}}, {path: /Risk/Day}", 1)
	a := s.must(200, "POST", "/v1/whatif", other, "Content-Type", "application/yaml")
	for _, want := range []string{
		`{"cycle":2,`, `"settled":[{"cycles":0,`,
		`"consumer":"/Risk/Day","leaf":true,"demand":{"before":16,"after":16},"held":{"before":8,"after":8}`,
		`"settled":{"before":8,"after":12}`, `"reclaimed":{"before":0,"after":4},"settled":{"before":8,"after":4}`,
		`"reclaims":[{"plan":"grid","consumer":"/Research","for":"/Risk/Day","reason":"fair_share","units":4,`,
	} {
		if !strings.Contains(a.body, want) {
			t.Errorf("no %s: %s", want, a.body)
		}
	}
	if a := s.must(200, "POST", "/v1/whatif?settle=0", other, "Accept", "text/plain"); !strings.Contains(a.body,
		"lose  /Research -4 (grid)") || strings.Contains(a.body, "in the end") {
		t.Error(a.body)
	}
	if a := s.must(200, "POST", "/v1/whatif", policyText); !strings.Contains(a.body, `"changes":[],"same":4`) {
		t.Error(a.body)
	}
	gone := strings.NewReplacer(", {path: /Research, users: [res]}", "", ", {path: /Research}", "").Replace(policyText)
	s.refused(422, "bad-plan", "POST", "/v1/whatif", gone)
	if a := s.must(200, "POST", "/v1/whatif?force=true", gone); !strings.Contains(a.body,
		`"for":null,"reason":"plan_change","units":8`) {
		t.Error(a.body)
	}
	s.refused(400, "bad-request", "POST", "/v1/whatif?settle=9999", other)
	s.refused(400, "bad-request", "POST", "/v1/whatif?stettle=1", other)
	s.refused(406, "not-acceptable", "POST", "/v1/whatif", other, "Accept", "text/csv")
	// Nothing came of all that; with the policy put, what was told happens.
	s.cycle()
	if a := s.must(200, "GET", "/v1/cycles/latest/reclaims", ""); a.body != "[]\n" {
		t.Error(a.body)
	}
	s.must(200, "PUT", "/v1/plan", other)
	s.cycle()
	s.cycle()
	if a := s.must(200, "GET", "/v1/consumers/Risk/Day", ""); !strings.Contains(a.body, `"held":12`) {
		t.Error(a.body)
	}
}

// TestWhatifBeside asks for many what-ifs at once while cycles run: one is answered at a time, the others wait,
// and the cycles are those that they would have been, as the recovery finds that decides them again.
func TestWhatifBeside(t *testing.T) {
	s := ready(t, nil)
	other := strings.Replace(policyText, "consumers: [{path: /Risk}, {path: /Risk/Day}",
		"consumers: [{path: /Risk, share: {ratio: 3}}, {path: /Risk/Day}", 1)
	var rows strings.Builder
	rows.WriteString("consumer,allocation,units,ncpus\n")
	for i := range 2000 {
		fmt.Fprintf(&rows, "/Risk/Day,a%d,1,1\n/Research,r%d,1,1\n", i, i)
	}
	var hosts strings.Builder
	hosts.WriteString("host,ncpus\n")
	for i := range 500 {
		fmt.Fprintf(&hosts, "h%d,8\n", i)
	}
	s.must(200, "PUT", "/v1/hosts", hosts.String())
	var busy, answered atomic.Int64
	var asking sync.WaitGroup
	for range 8 {
		asking.Go(func() {
			for range 4 {
				switch a := s.do("POST", "/v1/whatif?settle=20", other); {
				case a.status == 200:
					answered.Add(1)
				case a.status == 429 && a.header.Get("Retry-After") == "5":
					busy.Add(1)
				default:
					t.Errorf("status %d: %s", a.status, a.body)
				}
			}
		})
	}
	for range 10 {
		s.must(200, "PUT", "/v1/demand/feed", rows.String())
		s.cycle()
		s.must(200, "PUT", "/v1/plan", policyText)
	}
	asking.Wait()
	if answered.Load() == 0 { // of one caller as many wait as may
		t.Errorf("%d answered, %d busy", answered.Load(), busy.Load())
	}
	s.restart()
	s.cycle()
}
