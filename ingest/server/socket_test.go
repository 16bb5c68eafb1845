package server

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// limited is a service with narrow limits.
func limited(t testing.TB) *service {
	return ready(t, func(o *ServiceOptions) {
		o.Server.Limits = Limits{
			BodyBytesMax: 1 << 20, DecodedBytesMax: 4 << 20, RowsMax: 1000, HeaderTimeMax: 300 * time.Millisecond,
			BodyTimeMax: 300 * time.Millisecond, InflightBytesMax: 8 << 20,
		}
	})
}

// raw is a connection on which a test says what it likes.
type raw struct {
	net.Conn
	t testing.TB
	r *bufio.Reader
}

func dial(s *service) *raw {
	s.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(s.base, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return &raw{c, s.t, bufio.NewReader(c)}
}

func (c *raw) say(text string) { _, _ = io.WriteString(c, text) } // the server may have closed already

// answer reads a response; 0: the connection is closed.
func (c *raw) answer() (status int, body string) {
	c.t.Helper()
	r, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return 0, err.Error()
	}
	b, err := io.ReadAll(r.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

// closed checks that nothing more comes.
func (c *raw) closed() {
	c.t.Helper()
	if status, body := c.answer(); status != 0 {
		c.t.Errorf("a second response: %d %s", status, body)
	}
}

func (c *raw) expect(status int, kind string) {
	c.t.Helper()
	got, body := c.answer()
	if got != status || kind != "" && !strings.Contains(body, typePrefix+kind+`"`) {
		c.t.Errorf("got %d %s, expected %d %s", got, body, status, kind)
	}
}

const putDemand = "PUT /v1/demand/feed HTTP/1.1\r\nHost: localhost\r\n"

func TestOversized(t *testing.T) {
	s := limited(t)
	c := dial(s)
	c.say(putDemand + "Content-Length: 2000000\r\n\r\n" + strings.Repeat("x", 100_000))
	c.expect(413, "too-large")
	c.closed()
	c = dial(s)
	c.say(putDemand + "Transfer-Encoding: chunked\r\n\r\n")
	for range 20 {
		c.say("10000\r\n" + strings.Repeat("x", 1<<16) + "\r\n")
	}
	c.expect(413, "too-large")
	c.closed()
	c = dial(s)
	c.say("GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 20_000) + "\r\n\r\n")
	c.expect(431, "header-too-large")
	c.closed()
	rows := "consumer,allocation,units,ncpus\n" + strings.Repeat("/Risk/Day,a,1,1\n", 1001)
	s.refused(413, "too-large", "PUT", "/v1/demand/feed", rows)
}

// TestExpect has clients ask before they send a body: those that are refused for what they say of it need not send it.
func TestExpect(t *testing.T) {
	s := start(t, func(o *ServiceOptions) {
		o.Server.Tokens = []Token{{Name: "root", SHA256: HashToken("secret"), Role: RoleAdmin}}
		o.Server.Limits.BodyBytesMax = 1 << 20
	})
	s.token = "secret"
	s.must(200, "PUT", "/v1/plan", policyText)
	for _, c := range []struct {
		head   string
		status int
		kind   string
	}{
		{putDemand + "Authorization: Bearer secret\r\nContent-Length: 2000000\r\n", 413, "too-large"},
		{putDemand + "Authorization: Bearer no\r\nContent-Length: 20\r\n", 401, "unauthorized"},
		{"PUT /v1/nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20\r\n", 404, "not-found"},
	} {
		conn := dial(s)
		conn.say(c.head + "Expect: 100-continue\r\n\r\n")
		conn.expect(c.status, c.kind)
		conn.closed()
	}
	rows := "consumer,allocation,units,ncpus\n/Risk/Day,a,1,1\n"
	conn := dial(s)
	conn.say(putDemand + fmt.Sprintf("Authorization: Bearer secret\r\nContent-Length: %d\r\nExpect: "+
		"100-continue\r\n\r\n", len(rows)))
	conn.expect(100, "")
	conn.say(rows)
	conn.expect(200, "")
}

func TestSlow(t *testing.T) {
	s := limited(t)
	for name, text := range map[string]string{
		"header":     "GET /healthz HTTP/1.1\r\nHo",
		"first body": putDemand + "Content-Length: 100\r\n\r\nconsumer,",
		"later body": putDemand + "Content-Length: 100000\r\n\r\n" + strings.Repeat("x", 9000),
		"chunks":     putDemand + "Transfer-Encoding: chunked\r\n\r\n5\r\nabc",
	} {
		begin := time.Now()
		c := dial(s)
		c.say(text)
		got, body := c.answer()
		if took := time.Since(begin); got != 408 && got != 0 || took > 5*time.Second {
			t.Errorf("%s: got %d %s after %v", name, got, body, took)
		}
		c.closed()
	}
}

func TestTruncated(t *testing.T) {
	s := limited(t)
	for _, n := range []int{5, 9000} {
		c := dial(s)
		c.say(putDemand + "Content-Length: 10000\r\n\r\n" + strings.Repeat("x", n))
		_ = c.Conn.(*net.TCPConn).CloseWrite()
		if got, body := c.answer(); got != 400 && got != 0 {
			t.Errorf("%d bytes of 10000: %d %s", n, got, body)
		}
	}
	c := dial(s)
	c.say(putDemand + "Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n")
	_ = c.Conn.(*net.TCPConn).CloseWrite()
	if got, body := c.answer(); got != 400 && got != 0 {
		t.Errorf("half of the chunks: %d %s", got, body)
	}
	c = dial(s)
	c.say(putDemand + "Transfer-Encoding: chunked\r\n\r\nzz\r\nabcde\r\n")
	c.expect(400, "bad-request")
	if v := s.engine.Stats(); v.Rows != 2 {
		t.Error("something of it was taken:", v)
	}
}

func TestBombs(t *testing.T) {
	s := limited(t)
	zeros := make([]byte, 1<<20)
	var zipped, packed bytes.Buffer
	g := gzip.NewWriter(&zipped)
	z, err := zstd.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	for range 512 {
		_, _ = g.Write(zeros)
		_, _ = z.Write(zeros)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s.refused(413, "too-large", "PUT", "/v1/demand/feed", zipped.String(), "Content-Encoding", "gzip")
	s.refused(413, "too-large", "PUT", "/v1/demand/feed", packed.String(), "Content-Encoding", "zstd")
	s.refused(413, "too-large", "PUT", "/v1/hosts", packed.String())
	s.refused(413, "too-large", "PUT", "/v1/plan", zipped.String())
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 256<<20 {
		t.Errorf("%d MiB were allocated", grown>>20)
	}
	wide := "\x28\xb5\x2f\xfd\x00\x98\x00\x00\x00" // a frame that asks for a window of 512 MiB
	if a := s.do("PUT", "/v1/demand/feed", wide); a.status != 422 && a.status != 413 {
		t.Error(a)
	}
}

// TestPipelined has requests follow bodies that nobody reads: what is in a body is never taken for a request.
func TestPipelined(t *testing.T) {
	s := start(t, func(o *ServiceOptions) {
		o.Server.Tokens = []Token{{Name: "root", SHA256: HashToken("secret"), Role: RoleAdmin}}
	})
	smuggled := "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
	for name, c := range map[string]struct {
		head string
		body string
		then bool // whether the next request is answered
	}{
		"wrong token, small": {"PUT /v1/plan HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer no\r\n", smuggled,
			true},
		"wrong token, large": {"PUT /v1/plan HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer no\r\n",
			strings.Repeat(smuggled, 10_000), false},
		"no such call":    {"POST /v1/nothing HTTP/1.1\r\nHost: localhost\r\n", strings.Repeat(smuggled, 10), true},
		"a body of a GET": {"GET /readyz HTTP/1.1\r\nHost: localhost\r\n", smuggled, true},
		"a cycle's body": {"POST /v1/cycles HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\n",
			smuggled, true},
	} {
		conn := dial(s)
		go conn.say(c.head + fmt.Sprintf("Content-Length: %d\r\n\r\n", len(c.body)) + c.body +
			"GET /v1/last HTTP/1.1\r\nHost: localhost\r\n\r\n")
		first, _ := conn.answer()
		second, body := conn.answer()
		if first == 0 || second != map[bool]int{true: 404, false: 0}[c.then] ||
			second != 0 && !strings.Contains(body, "/v1/last") {
			t.Errorf("%s: %d, then %d %s", name, first, second, body)
		}
	}
	conn := dial(s)
	go conn.say("PUT /v1/plan HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" +
		fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(smuggled), smuggled) + smuggled)
	if first, body := conn.answer(); first != 401 {
		t.Error("chunks:", first, body)
	}
	conn.closed()
}

// TestInflight has more bodies come at once than there is memory for.
func TestInflight(t *testing.T) {
	s := ready(t, func(o *ServiceOptions) {
		o.Server.Limits = Limits{InflightBytesMax: 1 << 20, BodyTimeMax: 5 * time.Second}
	})
	busy := 0
	var open []*raw
	for range 30 {
		c := dial(s)
		c.say(putDemand + "Content-Length: 60000\r\n\r\n" + strings.Repeat("x", 10_000))
		open = append(open, c)
	}
	for _, c := range open {
		_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		if status, body := c.answer(); status == 429 {
			busy++
		} else if status != 0 {
			t.Error(status, body)
		}
	}
	if busy < 10 {
		t.Errorf("%d of 30 were told that the service is busy", busy)
	}
}

// TestConnectionLimits has more connections come than may be open, in all and of one address; when one goes another may
// come.
func TestConnectionLimits(t *testing.T) {
	for name, l := range map[string]Limits{"in all": {ConnsMax: 3}, "of an address": {ConnsPerIPMax: 3}} {
		s := ready(t, func(o *ServiceOptions) { o.Server.Limits = l })
		s.client.CloseIdleConnections()
		time.Sleep(20 * time.Millisecond)
		ask := func() (c *raw, status int, body string) {
			c = dial(s)
			c.say("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
			status, body = c.answer()
			return c, status, body
		}
		var open []*raw
		for i := range 6 {
			c, status, body := ask()
			if open = append(open, c); status != 200 && (i < 3 || status != 429 ||
				!strings.Contains(body, typePrefix+"busy")) || status == 200 && i >= 3 {
				t.Errorf("%s: connection %d got %d %s", name, i, status, body)
			}
		}
		_ = open[0].Close()
		time.Sleep(20 * time.Millisecond)
		if c, status, body := ask(); status != 200 {
			t.Errorf("%s: after one went: %d %s", name, status, body)
		} else {
			_ = c.Close()
		}
		for _, c := range open {
			_ = c.Close()
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// exhausted is a listener whose process has no file descriptors left, three times.
type exhausted struct {
	net.Listener
	times int
}

func (l *exhausted) Accept() (net.Conn, error) {
	if l.times++; l.times <= 3 {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return l.Listener.Accept()
}

// TestNoDescriptors checks that a service goes on that could not accept for a while.
func TestNoDescriptors(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(&exhausted{Listener: ln}) }()
	resp, err := http.Get("http://" + ln.Addr().String() + "/healthz")
	if err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	_ = resp.Body.Close()
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestFullTmpfs(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=24m"); err != nil {
		t.Skip("no tmpfs can be mounted, which takes root (sudo make test): ", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	s := ready(t, func(o *ServiceOptions) { o.Dir = dir + "/data" })
	row := func(i int) string {
		return fmt.Sprintf("consumer,allocation,units,ncpus\n/Risk/Day,a,%d,1\n", i) + strings.Repeat("\n", 3<<20)
	}
	acknowledged, refusals := 0, 0
	for i := 1; i <= 12; i++ {
		switch a := s.do("PUT", "/v1/demand/feed", row(i)); a.status {
		case 200:
			acknowledged = i
		case 507:
			refusals++
			if !strings.Contains(a.body, typePrefix+"disk-full") || a.header.Get("Retry-After") == "" {
				t.Error(a)
			}
		default:
			t.Fatal(a)
		}
	}
	if acknowledged < 2 || refusals < 3 {
		t.Fatal(acknowledged, refusals)
	}
	for range 20 {
		s.cycle()
	}
	check := func() {
		t.Helper()
		if a := s.must(200, "GET", "/v1/consumers/Risk/Day", ""); !strings.Contains(a.body,
			fmt.Sprintf(`"demand":%d,`, acknowledged)) {
			t.Errorf("%d units were acknowledged: %s", acknowledged, a.body)
		}
		if a := s.must(200, "GET", "/v1/cycles?limit=1", ""); !strings.Contains(a.body, `"cycle":20`) {
			t.Error(a.body)
		}
	}
	check()
	s.restart()
	check()
}
