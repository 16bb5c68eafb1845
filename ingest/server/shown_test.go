package server

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stintd/stint/ingest/console"
)

// lendingPolicy has a slot plan in which one lends to another, beside an MD plan.
const lendingPolicy = `
stint: 1
dimensions: [slots, ncpus]
resource_groups:
  - {name: pool, select: "select(slots > 0)"}
  - {name: big, select: "select(slots == 0)"}
consumers: [{path: /A}, {path: /B, reclaim_grace: 300s}, {path: /M}, {path: /M/X}, {path: /M/Y}]
slot_plans:
  - resource_group: pool
    consumers:
      - {path: /A, policy: ownership, owns: 6, lend: {limit: 6}}
      - {path: /B, policy: ownership, owns: 2, borrow: {}}
md_plans:
  - name: md
    resource_groups: [{name: big}]
    consumers:
      - {path: /M, own: [{group: big, hosts: 1}]}
      - {path: /M/X}
      - {path: /M/Y}
`

// lending is a service in which /B has borrowed of /A, which then wants its own back: five cycles, the last two of
// which are in no keyframe.
func lending(t testing.TB, edit func(*ServiceOptions)) *service {
	s := start(t, edit)
	s.must(200, "PUT", "/v1/plan?message=first", lendingPolicy)
	s.must(200, "PUT", "/v1/hosts", "host,slots,ncpus,rack\nh1,4,0,r1\nh2,4,0,r2\nb1,0,8,\nb2,0,8,\n", "Content-Type",
		"text/csv")
	s.must(200, "PUT", "/v1/demand/b", "consumer,allocation,units,ncpus\n/B,b,7,\n", "Content-Type", "text/csv")
	s.must(200, "PUT", "/v1/demand/m", "consumer,allocation,sub,units,ncpus\n/M/X,x,,3,2\n/M/Y,y,one,2,3\n",
		"Content-Type", "text/csv")
	s.cycle()
	s.must(200, "PUT", "/v1/demand/a", "consumer,allocation,units\n/A,a,4\n", "Content-Type", "text/csv")
	s.cycle()
	s.cycle()
	s.must(200, "POST", "/v1/releases", "consumer,allocation,host,units\n/B,b,h1,1\n", "Content-Type", "text/csv")
	s.cycle()
	s.must(200, "PUT", "/v1/demand/m", "consumer,allocation,sub,units,ncpus\n/M/X,x,,1,2\n/M/Y,y,one,4,3\n",
		"Content-Type", "text/csv")
	s.cycle()
	return s
}

// sorted are the lines of a CSV table in an order of their own.
func sorted(csv string) string {
	lines := strings.Split(strings.TrimSpace(csv), "\n")
	slices.Sort(lines[1:])
	return strings.Join(lines, "\n")
}

// cut keeps some columns of a CSV table without quotes.
func (s *service) cut(path string, names ...string) string {
	s.t.Helper()
	var lines []string
	var at []int
	for i, line := range strings.Split(strings.TrimSpace(s.must(200, "GET", path, "", "Accept", "text/csv").body),
		"\n") {
		fields := strings.Split(line, ",")
		if i == 0 {
			for _, n := range names {
				k := slices.Index(fields, n)
				if k < 0 {
					s.t.Fatalf("%s has no column %s: %s", path, n, line)
				}
				at = append(at, k)
			}
		}
		var some []string
		for _, k := range at {
			some = append(some, fields[k])
		}
		lines = append(lines, strings.Join(some, ","))
	}
	return sorted(strings.Join(lines, "\n"))
}

// TestShownFromLog asks for what is shown of each cycle while it is the last one, and again of the log when others have
// come: holdings, what is under reclaim, loans and the use of hosts are the same.
func TestShownFromLog(t *testing.T) {
	s := lending(t, nil)
	calls := map[string][]string{
		"/v1/holdings?by=consumer": {"plan", "consumer", "origin", "pool", "lender", "units", "leaving", "deadline"},
		"/v1/holdings?by=host":     {"plan", "host", "consumer", "origin", "lender", "units", "leaving"},
		"/v1/loans?":               {"plan", "lender", "borrower", "units", "under_recall", "deadline"},
	}
	was := map[string]string{}
	for range 6 {
		n := s.engine.View().Cycle()
		for path, names := range calls {
			was[fmt.Sprintf("%s&cycle=%d", path, n)] = s.cut(path, names...)
		}
		s.cycle()
	}
	s.logged()
	for path, want := range was {
		names := calls[path[:strings.Index(path, "&")]]
		if got := s.cut(path, names...); got != want {
			t.Errorf("%s\nfrom the log:\n%s\nas it was:\n%s", path, got, want)
		}
	}
	if loans := was["/v1/loans?&cycle=5"]; !strings.Contains(loans, "pool,/A,/B,") {
		t.Errorf("nobody borrows: %s", loans)
	}
	// The log tells the use of hosts as of its last keyframe, which is the first cycle here.
	if got := s.must(200, "GET", "/v1/hosts?cycle=1&host=h1&format=csv", "").body; !strings.Contains(got,
		"pool,h1,ok,4,,4,,pool\n") {
		t.Error(got)
	}
	if got := s.must(200, "GET", "/v1/hosts?format=csv", "").body; !strings.Contains(got, "\npool,h1,ok,4,,") ||
		!strings.Contains(got, ",r1\n") ||
		!strings.Contains(got, "attribute_rack\n") {
		t.Error(got)
	}
	if got := s.must(200, "GET", "/v1/hosts?by=plan&format=csv", "").body; !strings.Contains(got,
		"\nmd,ok,2,0,16,0,14\n") {
		t.Error(got)
	}
	now := s.must(200, "GET", "/v1/hosts?by=group&format=csv", "").body
	logged := s.must(200, "GET", "/v1/hosts?by=group&cycle=1&format=csv", "").body
	if !strings.Contains(now, "\nmd,big,ok,2,0,16,0,14\n") || !strings.Contains(logged, "\nmd,big,ok,2,") {
		t.Error(now, logged)
	}
}

// TestShownAmounts tells amounts of what is held: units times their size.
func TestShownAmounts(t *testing.T) {
	s := lending(t, nil)
	got := s.cut("/v1/holdings?by=consumer", "consumer", "units", "amount_slots", "amount_ncpus")
	for _, want := range []string{"/M/X,1,0,2", "/M/Y,2,0,6", "/B,4,4,0"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
}

// TestCurve tells a consumer's figures over cycles: what it holds of each kind adds up to what the table consumers
// says.
func TestCurve(t *testing.T) {
	s := lending(t, nil)
	s.logged()
	got := s.must(200, "GET", "/v1/consumers/M?last=10&format=csv", "").body
	for i, want := range []string{"5,5,0,", "5,5,0,", "5,5,0,", "5,5,0,", "5,5,0,"} {
		if line := strings.Split(got, "\n")[i+1]; !strings.Contains(line, ",md,units,"+want) {
			t.Errorf("no %s in %s of\n%s", want, line, got)
		}
	}
	sum := func(line string) (held, of int64) {
		f := strings.Split(line, ",")
		n := func(i int) int64 { v, _ := strconv.ParseInt(f[i], 10, 64); return v }
		return n(5), n(8) + n(9) + n(10) + n(11)
	}
	for _, path := range []string{"M", "B", "%2F"} {
		for _, line := range strings.Split(strings.TrimSpace(s.must(200, "GET",
			"/v1/consumers/"+path+"?last=10&format=csv", "").body), "\n")[1:] {
			if held, of := sum(line); held != of {
				t.Errorf("/%s holds %d, and of all kinds %d: %s", path, held, of, line)
			}
		}
	}
	if b := s.must(200, "GET", "/v1/consumers/A?last=1&format=csv", "").body; strings.Count(b, "\n") != 2 {
		t.Error(b)
	}
	s.refused(404, "not-found", "GET", "/v1/consumers/Nobody?last=3", "")
	s.refused(404, "not-found", "GET", "/v1/consumers/A?last=3&until=99", "")
}

// TestVersions keeps what a published cycle decided for ever, where the URL names its version, and nothing of another
// log.
func TestVersions(t *testing.T) {
	s := lending(t, nil)
	s.logged()
	a := s.must(200, "GET", "/v1/cycles/2/consumers", "")
	tag := a.header.Get("ETag")
	if !strings.HasPrefix(tag, `W/"`) || a.header.Get("Cache-Control") != "private, no-cache" {
		t.Fatal(a.header)
	}
	version := strings.Trim(tag, `W/"`)
	for _, path := range []string{"/v1/cycles/2/consumers?", "/v1/loans?cycle=2&", "/v1/hosts?cycle=2&",
		"/v1/holdings?cycle=2&by=host&"} {
		a = s.must(200, "GET", path+"version="+version, "")
		if got := a.header.Get("Cache-Control"); got != "private, max-age=31536000, immutable" {
			t.Errorf("%s: %s", path, got)
		}
		if got := a.header.Get("Vary"); !strings.Contains(got, "Authorization") {
			t.Errorf("%s: %s", path, got)
		}
		if got := s.do("GET", path, "", "If-None-Match", tag); got.status != 304 || got.body != "" {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
		s.refused(404, "not-found", "GET", path+"version=0123456789abcdef-1", "")
	}
	s.refused(404, "not-found", "GET", "/v1/cycles/2/nothing?version="+version, "") // it is not kept for ever
	if a := s.must(200, "GET",
		"/v1/cycles/latest/consumers?version="+strings.Trim(s.must(200, "GET", "/v1/cycles/latest/consumers",
			"").header.Get("ETag"), `W/"`), ""); strings.Contains(a.header.Get("Cache-Control"), "immutable") {
		t.Error("what `latest` names changes")
	}
}

// TestSourcesAndRevisions tells who pushed what, and lets an earlier policy be put in force again.
func TestSourcesAndRevisions(t *testing.T) {
	s := lending(t, nil)
	got := s.must(200, "GET", "/v1/sources?format=csv", "").body
	for _, want := range []string{"source,owner,heard,rows,silent,wanted,held\n", "\na,,", ",1,false,4,", "\nm,,",
		",2,false,5,5\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if got := s.cut("/v1/demand/m", "plan", "consumer", "allocation", "sub", "ncpus", "wanted",
		"held"); !strings.Contains(got, "md,/M/Y,y,one,3,4,4") {
		t.Error(got)
	}
	s.refused(404, "no-source", "GET", "/v1/demand/nobody", "")
	second := strings.Replace(lendingPolicy, "owns: 6", "owns: 5", 1)
	s.must(200, "PUT", "/v1/plan?message=less", second, "If-Match", `"1"`)
	if got := s.must(200, "GET", "/v1/plan/revisions", "").body; !strings.Contains(got, `{"revision":2,"cycle":6,`) ||
		!strings.Contains(got, `"message":"first"`) {
		t.Error(got)
	}
	s.cycle()
	s.logged()
	for n, want := range map[string]string{"1": lendingPolicy, "2": second} {
		if got := s.must(200, "GET", "/v1/plan/revisions/"+n, ""); got.body != want ||
			got.header.Get("ETag") != `"`+n+`"` {
			t.Errorf("revision %s: %v %s", n, got.header, got.body)
		}
	}
	s.refused(404, "not-found", "GET", "/v1/plan/revisions/9", "")
	s.refused(400, "bad-request", "GET", "/v1/plan/revisions/x", "")
	s.must(200, "PUT", "/v1/plan?message=back", s.must(200, "GET", "/v1/plan/revisions/1", "").body, "If-Match", `"2"`)
	if got := s.must(200, "GET", "/v1/plan", ""); got.body != lendingPolicy || got.header.Get("ETag") != `"3"` {
		t.Error(got)
	}
}

// TestCyclesBefore gives cycles page by page, out of memory and out of the log.
func TestCyclesBefore(t *testing.T) {
	s := lending(t, func(o *ServiceOptions) { o.Engine.RecentCyclesMax = 2 })
	s.logged()
	for path, want := range map[string]string{
		"/v1/cycles?limit=10": "1,2,3,4,5", "/v1/cycles?limit=2": "4,5", "/v1/cycles?limit=2&before=4": "2,3",
		"/v1/cycles?limit=9&before=3": "1,2", "/v1/cycles?before=1": "", "/v1/cycles?limit=3": "3,4,5",
	} {
		var got []string
		for _, line := range strings.Split(strings.TrimSpace(s.must(200, "GET", path, "", "Accept", "text/csv").body),
			"\n")[1:] {
			got = append(got, line[:strings.Index(line, ",")])
		}
		if strings.Join(got, ",") != want {
			t.Errorf("%s: cycles %s, expected %s", path, got, want)
		}
	}
}

// listen reads server-sent events until there were so many, and gives their ids.
func (s *service) listen(n int, headers ...string) (ids []string, kinds []string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	r, _ := http.NewRequestWithContext(ctx, "GET", s.base+"/v1/events", nil)
	if s.token != "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("Content-Type") != "text/event-stream" {
		s.t.Fatal(resp.Header)
	}
	lines := bufio.NewScanner(resp.Body)
	for len(kinds) < n && lines.Scan() {
		if id, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
			ids = append(ids, id)
		}
		if kind, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			kinds = append(kinds, kind)
		}
	}
	return ids, kinds
}

// TestEvents tells of cycles as they are published, goes on behind the one seen last, and ends when the token is not
// known any more.
func TestEvents(t *testing.T) {
	admin := Token{Name: "root", SHA256: HashToken("secret"), Role: RoleAdmin}
	reader := Token{Name: "r", SHA256: HashToken("reader"), Role: RoleReader}
	var srv *Server
	s := start(t, func(o *ServiceOptions) {
		o.Server.Tokens = []Token{admin, reader}
		o.Started = func(s *Server) { srv = s }
	})
	s.token = "secret"
	s.must(200, "PUT", "/v1/plan", policyText)
	s.must(200, "PUT", "/v1/hosts", hostsText, "Content-Type", "text/csv")
	s.cycle()
	s.cycle()
	if ids, _ := s.listen(1); !slices.Equal(ids, []string{"2"}) {
		t.Errorf("the last cycle comes first: %v", ids)
	}
	if ids, _ := s.listen(2, "Last-Event-ID", "0"); !slices.Equal(ids, []string{"1", "2"}) {
		t.Errorf("behind cycle 0: %v", ids)
	}
	if ids, _ := s.listen(1, "Last-Event-ID", "77"); !slices.Equal(ids, []string{"2"}) {
		t.Errorf("behind a cycle that was not yet: %v", ids)
	}
	done := make(chan []string)
	go func() {
		ids, _ := s.listen(2, "Last-Event-ID", "1")
		done <- ids
	}()
	time.Sleep(50 * time.Millisecond)
	s.cycle()
	if ids := <-done; !slices.Equal(ids, []string{"2", "3"}) {
		t.Errorf("while it waits: %v", ids)
	}
	s.token = "reader"
	go func() {
		_, kinds := s.listen(2)
		done <- kinds
	}()
	time.Sleep(50 * time.Millisecond)
	if err := srv.SetTokens([]Token{admin}); err != nil {
		t.Fatal(err)
	}
	if kinds := <-done; !slices.Equal(kinds, []string{"cycle", "unauthorized"}) {
		t.Errorf("after the token was taken away: %v", kinds)
	}
	s.refused(401, "unauthorized", "GET", "/v1/events", "")
	s.token = "secret"
	s.refused(403, "foreign", "GET", "/v1/events", "", "Origin", "http://elsewhere.example")
	s.refused(400, "bad-request", "GET", "/v1/events", "", "Last-Event-ID", "x")
}

// logAlone shows the log of a service that has ended.
func logAlone(t testing.TB, of *service, dir string) *service {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- RunLog(ctx, Options{LogDir: dir}, ln, nil) }()
	s := &service{t: t, base: "http://" + ln.Addr().String(), client: of.client, check: of.check, cancel: cancel,
		ended: ended}
	t.Cleanup(s.stop)
	return s
}

// TestLogAlone shows a log as its service did, and nothing can be changed.
func TestLogAlone(t *testing.T) {
	s := lending(t, nil)
	s.logged()
	was := map[string]string{}
	for _, path := range []string{
		"/v1/cycles?limit=9", "/v1/consumers", "/v1/consumers/M/X", "/v1/cycles/latest/shortfalls",
		"/v1/cycles/3/grants", "/v1/plan", "/v1/plan/revisions/1",
		"/v1/consumers/B?last=9",
	} {
		was[path] = s.must(200, "GET", path, "", "Accept-Encoding", "identity").body
	}
	loans := s.cut("/v1/loans", "plan", "lender", "borrower", "units", "under_recall")
	s.stop()
	l := logAlone(t, s, s.dir+"/log")
	for path, want := range was {
		a := l.must(200, "GET", path, "", "Accept-Encoding", "identity")
		if a.body != want {
			t.Errorf("%s\nof the log: %s\nof the service: %s", path, a.body, want)
		}
		if a.header.Get("Stint-Role") != RoleReader {
			t.Errorf("%s: the role is %s", path, a.header.Get("Stint-Role"))
		}
	}
	if got := l.cut("/v1/loans", "plan", "lender", "borrower", "units", "under_recall"); got != loans {
		t.Errorf("loans of the log:\n%s\nof the service:\n%s", got, loans)
	}
	for path, want := range map[string]string{
		"/readyz": `"log_alone":true`, "/v1/explain/B": `"consumer":"/B"`, "/v1/explain/B?cycle=2": `"cycle":2`,
		"/v1/hosts": `"host":"h1"`, "/healthz": "ok",
		"/v1/holdings?host=h1": `"host":"h1"`, "/v1/plan/revisions": `"in_force":true`,
	} {
		if got := l.must(200, "GET", path, "").body; !strings.Contains(got, want) {
			t.Errorf("%s has no %s: %s", path, want, got)
		}
	}
	if ids, _ := l.listen(1); !slices.Equal(ids, []string{"5"}) {
		t.Error(ids)
	}
	for _, call := range []string{"PUT /v1/plan", "PUT /v1/hosts", "PUT /v1/demand/x", "POST /v1/cycles",
		"POST /v1/whatif", "GET /v1/changes?since=0", "GET /v1/sources"} {
		method, path, _ := strings.Cut(call, " ")
		l.refused(409, "log-alone", method, path, "")
	}
	if got := l.must(200, "POST", "/v1/plan/check",
		strings.Replace(lendingPolicy, "/M/Y", "/M/Z", -1)).body; !strings.Contains(got,
		`{"kind":"added","where":"consumer /M/Z",`) {
		t.Error(got)
	}
	l.refused(422, "bad-plan", "POST", "/v1/plan/check", "stint: 1\ncluster: [\n")
}

// TestLogAloneEmpty shows a log that nothing was written to yet.
func TestLogAloneEmpty(t *testing.T) {
	l := logAlone(t, start(t, nil), t.TempDir())
	l.refused(409, "no-cycle", "GET", "/v1/consumers", "")
	l.refused(404, "no-plan", "GET", "/v1/plan", "")
	if got := l.must(200, "GET", "/v1/cycles", "").body; got != "[]\n" {
		t.Error(got)
	}
	if got := l.must(200, "GET", "/v1/plan/revisions", "").body; got != "[]\n" {
		t.Error(got)
	}
}

// TestPage gives the console's files to anybody, with a policy that lets nothing in from elsewhere, and to a browser
// that followed a link; a page of another origin gets nothing.
func TestPage(t *testing.T) {
	s := start(t, func(o *ServiceOptions) {
		o.Server.Tokens = []Token{{Name: "root", SHA256: HashToken("secret"), Role: RoleAdmin}}
	})
	for _, path := range console.Paths() {
		a := s.must(200, "GET", path, "")
		h := a.header.Get("Content-Security-Policy")
		if !strings.Contains(h, "default-src 'self'") || strings.Contains(h, "unsafe") ||
			a.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, a.header)
		}
		if got := s.do("GET", path, "", "If-None-Match", a.header.Get("ETag")); got.status != 304 {
			t.Errorf("%s: %d", path, got.status)
		}
		if got := s.must(200, "GET", path, "", "Accept-Encoding",
			"identity").body; got != string(console.Find(path).Body) {
			t.Errorf("%s is another without packing", path)
		}
	}
	s.must(200, "GET", "/", "", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate")
	s.refused(403, "foreign", "GET", "/console/app.js", "", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors")
	s.refused(403, "foreign", "GET", "/v1/plan", "", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate")
	s.refused(404, "not-found", "GET", "/console/nothing.js", "")
	s.refused(401, "unauthorized", "GET", "/v1/consumers", "")
}
