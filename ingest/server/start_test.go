package server

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/engine"
)

func listening(t *testing.T) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// TestRefusedStart refuses a service many times, so soon that it may not serve yet: each ends with why.
func TestRefusedStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		ended := make(chan error, 1)
		go func() { ended <- Run(context.Background(), ServiceOptions{Dir: file, Listener: listening(t)}) }()
		select {
		case err := <-ended:
			if err == nil {
				t.Fatal("a service has a file for a folder")
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("start %d is refused, and does not end", i)
		}
	}
}

// TestEndsAtOnce ends a service before it has begun, and while it does.
func TestEndsAtOnce(t *testing.T) {
	for i := range 60 {
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() {
			ended <- Run(ctx, ServiceOptions{Dir: t.TempDir(), Listener: listening(t),
				Engine: engine.Options{ManualOnly: true}})
		}()
		time.Sleep(time.Duration(i%20) * 200 * time.Microsecond)
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("service %d does not end", i)
		}
	}
}

// TestShutdownBeforeServe serves nothing after it was shut down, whichever comes first.
func TestShutdownBeforeServe(t *testing.T) {
	for i := range 200 {
		s, err := New(Options{})
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		ln := listening(t)
		go func() { served <- s.Serve(ln) }()
		if i%2 == 0 {
			time.Sleep(time.Duration(i) * time.Microsecond)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		cancel()
		select {
		case err := <-served:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("server %d goes on after its shutdown", i)
		}
	}
}

// TestSetTokens gives a server other tokens while it runs. None that is wrong takes the place of those that are there.
func TestSetTokens(t *testing.T) {
	one, two := Token{Name: "one", Role: RoleAdmin, SHA256: HashToken("1")}, Token{Name: "two", Role: RoleReader,
		SHA256: HashToken("2")}
	var server *Server
	s := start(t, func(o *ServiceOptions) {
		o.Server.Tokens, o.Started = []Token{one}, func(s *Server) { server = s }
	})
	as := func(token string, status int) {
		t.Helper()
		s.token = token
		s.must(status, "GET", "/v1/cycles", "")
	}
	as("1", 200)
	as("2", 401)
	if err := server.SetTokens([]Token{two}); err != nil {
		t.Fatal(err)
	}
	as("1", 401)
	as("2", 200)
	for _, bad := range [][]Token{nil, {}, {{Name: "x", Role: "king", SHA256: HashToken("x")}}, {one, one}} {
		if err := server.SetTokens(bad); err == nil {
			t.Errorf("tokens that are not valid were taken: %v", bad)
		}
		as("1", 401)
		as("2", 200)
	}
}

// TestStuckEngine has a question to the state not end: the service says that it is not ready, then that it is not
// healthy, and how long.
func TestStuckEngine(t *testing.T) {
	s := ready(t, func(o *ServiceOptions) {
		o.Engine.SlowAfter, o.Engine.StuckAfter = 20*time.Millisecond, 400*time.Millisecond
	})
	held := make(chan struct{})
	done := make(chan struct{})
	go func() {
		_ = s.engine.Ask(func(*cluster.State) error { <-held; return nil })
		close(done)
	}()
	until := func(path, want string) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
			if a := s.do("GET", path, ""); strings.Contains(a.body, want) {
				if path != "/metrics" && a.status != 503 {
					t.Error(path, a.status)
				}
				return
			} else if time.Now().After(end) {
				t.Fatal(path, a.body)
			}
		}
	}
	until("/readyz", "a question about the state has been running for")
	until("/metrics", "stint_ready 0")
	s.must(200, "GET", "/v1/cycles", "") // reading waits for nothing
	until("/healthz", "the engine is stuck")
	close(held)
	<-done
	until("/metrics", "stint_ready 1")
	s.must(200, "GET", "/healthz", "")
	s.must(200, "GET", "/readyz", "")
	if a := s.must(200, "GET", "/metrics", ""); !strings.Contains(a.body, "stint_clock_behind_seconds 0") {
		t.Error(a.body)
	}
}
