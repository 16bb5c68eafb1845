package main

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// storeAt names a program that is a versitygw (make test-cluster builds it). Without it the tests with a real store are
// left out, and `make test` says so.
const storeAt = "STINT_S3"

// startStore starts an S3 server in a process of its own, with a bucket `alloc`, and gives its address.
func startStore(t *testing.T) string {
	t.Helper()
	program := os.Getenv(storeAt)
	if program == "" {
		t.Skip("no S3 server: make test-cluster builds one")
	}
	dir := t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "root", "alloc"), 0o755),
		os.Mkdir(filepath.Join(dir, "meta"), 0o755)); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	l.Close()
	c := &child{cmd: exec.Command(program, "--port", at, "--quiet", "posix", "--sidecar", filepath.Join(dir, "meta"),
		filepath.Join(dir, "root")), log: &syncBuffer{}, dead: make(chan struct{})}
	c.cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY=stint", "ROOT_SECRET_KEY=stintsecret")
	c.cmd.Stdout, c.cmd.Stderr = c.log, c.log
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = c.cmd.Wait(); close(c.dead) }()
	t.Cleanup(func() { kill(c) })
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", at)
		if err == nil {
			conn.Close()
			return "http://" + at
		}
		if time.Now().After(end) {
			t.Fatal("the S3 server does not start: ", c.log)
		}
	}
}

// What a proxy does with requests.
const (
	passes  = ""
	refuses = "refuses" // all of them
	cuts    = "cuts"    // any third connection, half of these after the request took effect
	stale   = "stale"   // listings are those of before
	full    = "full"    // writes are refused for want of room
	slow    = "slow"    // 50 ms more
)

// proxy stands between a process and the store.
type proxy struct {
	*httptest.Server
	to   *url.URL
	mode atomic.Pointer[string]
	mu   sync.Mutex
	list map[string][]byte // what listings gave first
	late atomic.Int64      // ns more for each request
}

func startProxy(t *testing.T, to string) *proxy {
	t.Helper()
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{to: u, list: map[string][]byte{}}
	p.is(passes)
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Server.Close)
	return p
}

func (p *proxy) is(mode string) { p.mode.Store(&mode) }

// ServeHTTP passes a request on, or does not.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	time.Sleep(time.Duration(p.late.Load()))
	mode, lists := *p.mode.Load(), r.URL.Query().Get("list-type") != ""
	cut := mode == cuts && rand.IntN(3) == 0
	switch {
	case mode == refuses, cut && rand.IntN(2) == 0:
		panic(http.ErrAbortHandler)
	case mode == full && r.Method != http.MethodGet && r.Method != http.MethodDelete:
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusInsufficientStorage)
		_, _ = io.WriteString(w, "<Error><Code>XMinioStorageFull</Code><Message>no room</Message></Error>")
		return
	case mode == slow:
		time.Sleep(50 * time.Millisecond)
	}
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.RequestURI = p.to.Scheme, p.to.Host, "" // the header Host, which is signed, stays
	resp, err := http.DefaultTransport.RoundTrip(out)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer resp.Body.Close()
	if cut {
		panic(http.ErrAbortHandler)
	}
	body := io.Reader(resp.Body)
	if lists {
		content, err := io.ReadAll(resp.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		p.mu.Lock()
		if old := p.list[r.URL.RawQuery]; mode == stale && old != nil {
			content = old
		} else if resp.StatusCode == http.StatusOK {
			p.list[r.URL.RawQuery] = content
		}
		p.mu.Unlock()
		body = bytes.NewReader(content)
		resp.Header.Del("Content-Length")
	}
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(w, body)
}

// ask makes a request. An answer of a status below 500 counts as one.
func ask(method, address, body string, headers ...string) (text string, h http.Header, status int, err error) {
	return askFor(10*time.Second, method, address, body, headers...)
}

// askFor is ask that waits so long.
func askFor(most time.Duration, method, address, body string, headers ...string) (text string, h http.Header,
	status int, err error) {
	req, err := http.NewRequest(method, address, strings.NewReader(body))
	if err != nil {
		return "", nil, 0, err
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	c := http.Client{Timeout: most}
	resp, err := c.Do(req)
	if err != nil {
		return "", nil, 0, err
	}
	b, err := io.ReadAll(resp.Body)
	return string(b), resp.Header, resp.StatusCode, errors.Join(err, resp.Body.Close())
}
