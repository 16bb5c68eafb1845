package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// idleClient is set in processes that are clients of TestIdleConnections: how many connections each opens.
const idleClient = "STINT_TEST_IDLE_CLIENT"

// TestMain runs the tests, or is a client of one of them.
func TestMain(m *testing.M) {
	count, err := strconv.Atoi(os.Getenv(idleClient))
	if err != nil {
		os.Exit(m.Run())
	}
	if err := idle(count, os.Args[1]); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// idle opens connections to an address, asks once on each and lets them be; when it reads a line it asks on each again.
func idle(count int, addr string) error {
	conns := make([]net.Conn, count)
	ask := func() error {
		var all sync.WaitGroup
		errs := make(chan error, 8)
		for w := range 8 {
			all.Go(func() {
				for i := w; i < count; i += 8 {
					if err := askOn(&conns[i], addr); err != nil {
						errs <- fmt.Errorf("connection %d: %w", i, err)
						return
					}
				}
			})
		}
		all.Wait()
		close(errs)
		return <-errs // nil: none
	}
	for in := bufio.NewReader(os.Stdin); ; {
		if err := ask(); err != nil {
			return err
		}
		fmt.Println("asked")
		if _, err := in.ReadString('\n'); err != nil {
			return nil // the test is over
		}
	}
}

// askOn asks on a connection, which it opens when there is none.
func askOn(c *net.Conn, addr string) (err error) {
	if *c == nil {
		if *c, err = net.DialTimeout("tcp", addr, 20*time.Second); err != nil {
			return err
		}
	}
	_ = (*c).SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(*c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		return err
	}
	r, err := http.ReadResponse(bufio.NewReaderSize(*c, 1024), nil)
	if err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil || r.StatusCode != 200 {
		return fmt.Errorf("status %d, %v", r.StatusCode, err)
	}
	return nil
}

// TestIdleConnections has 10,000 connections open that asked once and then say nothing. Their other ends are in
// processes of their own: a process may have too few descriptors for both, and the memory measured is the server's
// alone.
func TestIdleConnections(t *testing.T) {
	const clients, each, spare = 2, 5_000, filesSpare + 100
	const count = clients * each
	var limit syscall.Rlimit // what is allowed at most: a program in Go begins by asking for that
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < count+spare {
		t.Fatalf("%d connections need %d file descriptors, and a process may have %d here (%v): raise the hard limit "+
			"(ulimit -Hn)", count, count+spare, limit.Cur, err)
	}
	s := ready(t, nil)
	before := inUse()
	begin := time.Now()
	var ask []func()
	for range clients {
		ask = append(ask, startIdle(t, each, strings.TrimPrefix(s.base, "http://")))
	}
	askAll := func() {
		var all sync.WaitGroup
		for _, a := range ask {
			all.Go(a)
		}
		all.Wait()
	}
	askAll()
	if open := s.connections(); open < count {
		t.Fatalf("the server has %d connections", open)
	}
	bytes := (inUse() - before) / count
	t.Logf("%d connections opened and asked on in %.1f s; each takes %.1f KiB, stack included, all of them %d MiB",
		count, time.Since(begin).Seconds(), float64(bytes)/1024, bytes*count>>20)
	if bytes > 24<<10 {
		t.Errorf("a connection takes %d bytes", bytes)
	}
	begin = time.Now()
	s.must(200, "PUT", "/v1/demand/feed", "consumer,allocation,units,ncpus\n/Risk/Day,a,4,1\n")
	s.cycle()
	if took := time.Since(begin); took > 5*time.Second {
		t.Error("a push and a cycle took", took)
	}
	askAll()
	if open := s.connections(); open < count {
		t.Errorf("the server has %d connections left", open)
	}
}

// connections is how many connections the server says it has.
func (s *service) connections() (n int) {
	s.t.Helper()
	_, rest, _ := strings.Cut(s.must(200, "GET", "/metrics", "").body, "\nstint_connections ")
	_, _ = fmt.Sscan(rest, &n)
	return n
}

// inUse is the memory of heap and stacks.
func inUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// startIdle starts a client. The function it gives waits until the client has asked on all its connections, once more
// in each call.
func startIdle(t *testing.T, count int, addr string) (ask func()) {
	t.Helper()
	c := exec.Command(os.Args[0], addr)
	c.Env = append(os.Environ(), fmt.Sprintf("%s=%d", idleClient, count))
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = c.Wait()
	})
	lines, first := bufio.NewReader(out), true
	return func() {
		if !first {
			_, _ = io.WriteString(in, "again\n")
		}
		first = false
		if line, err := lines.ReadString('\n'); line != "asked\n" {
			t.Errorf("a client: %q, %v", line, err)
		}
	}
}
