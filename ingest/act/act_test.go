package act_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stintd/stint/core/engine"
	"github.com/stintd/stint/ingest/act"
	"github.com/stintd/stint/ingest/act/conform"
	"github.com/stintd/stint/ingest/client"
	"github.com/stintd/stint/ingest/server"
)

const policy = `
stint: 1
interval: 100ms
dimensions: [ncpus]
resource_groups: [{name: All, select: "select(ncpus > 0)"}]
consumers: [{path: /Owner, rank: 1}, {path: /Borrower, rank: 2, reclaim_grace: 15s}]
md_plans:
  - name: grid
    release: confirmed
    overdue_after: 1h
    resource_groups: [{name: All}]
    consumers: [{path: /Owner, own: [{group: All, hosts: 2}]}, {path: /Borrower}]
`

// service is a real service on loopback that can be stopped and started on its folder.
type service struct {
	t      *testing.T
	dir    string
	addr   string
	ahead  time.Duration // of its clock
	cancel context.CancelFunc
	ended  chan error
}

func (s *service) start() {
	s.t.Helper()
	var ln net.Listener
	var err error
	for range 100 { // the address may be free only in a moment
		if ln, err = net.Listen("tcp", s.addr); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.addr = ln.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel, s.ended = cancel, make(chan error, 1)
	go func() {
		s.ended <- server.Run(ctx, server.ServiceOptions{Dir: s.dir, Listener: ln, Engine: engine.Options{
			Clock: func() int64 { return time.Now().Add(s.ahead).UnixMicro() }}})
	}()
}

func (s *service) stop() {
	s.cancel()
	if err := <-s.ended; err != nil {
		s.t.Error(err)
	}
}

func serve(t *testing.T) (*service, *client.Client) { return serveAt(t, 0) }

// serveAt is a service whose clock is ahead of this machine's.
func serveAt(t *testing.T, ahead time.Duration) (*service, *client.Client) {
	t.Helper()
	s := &service{t: t, dir: t.TempDir(), addr: "127.0.0.1:0", ahead: ahead}
	s.start()
	t.Cleanup(s.stop)
	c := &client.Client{Base: "http://" + s.addr}
	ctx := t.Context()
	if _, err := c.PutPlan(ctx, client.Bytes([]byte(policy), "application/yaml"), client.Options{}); err != nil {
		t.Fatal(err)
	}
	hosts := "host,ncpus\nh1,4\nh2,4\nh3,4\nh4,4\n"
	if _, err := c.PutHosts(ctx, client.Bytes([]byte(hosts), "text/csv"), client.Options{}); err != nil {
		t.Fatal(err)
	}
	return s, c
}

// actor runs an actor that can be killed.
type actor struct {
	cancel  context.CancelFunc
	ended   chan error
	done    chan struct{}
	metrics *prometheus.Registry
}

func run(t *testing.T, c *client.Client, h act.Hooks, ledger string) *actor {
	return runAs(t, c, h, act.Options{Source: "feed", Ledger: ledger, Every: 200 * time.Millisecond,
		Metrics: prometheus.NewRegistry(), Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
}

func runAs(t *testing.T, c *client.Client, h act.Hooks, o act.Options) *actor {
	ctx, cancel := context.WithCancel(context.Background())
	a := &actor{cancel: cancel, ended: make(chan error, 1), done: make(chan struct{}),
		metrics: o.Metrics.(*prometheus.Registry)}
	go func() {
		defer close(a.done)
		a.ended <- act.Run(ctx, c, h, o)
	}()
	t.Cleanup(func() { cancel(); <-a.done })
	return a
}

func (a *actor) kill(t *testing.T) {
	t.Helper()
	a.cancel()
	if err := <-a.ended; err != nil {
		t.Error(err)
	}
}

// value is a figure of the actor, summed over its labels.
func (a *actor) value(t *testing.T, name string) (sum float64) {
	t.Helper()
	families, err := a.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.Metric {
			if f.GetName() == name {
				sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// unsure is a cluster whose hooks fail now and then: before their effect, or after it, as when an answer is lost.
type unsure struct {
	*conform.Cluster
	rand *rand.Rand
	part int // of so many calls one fails
}

func (u *unsure) fails() bool { return u.part > 0 && u.rand.IntN(u.part) == 0 }

func (u *unsure) Start(ctx context.Context, units []act.Unit) (act.Failed, error) {
	if u.part > 0 && u.rand.IntN(2*u.part) == 0 {
		return nil, errors.New("planted: nothing was started")
	}
	failed, err := u.Cluster.Start(ctx, units)
	if u.part > 0 && u.rand.IntN(2*u.part) == 0 {
		err = errors.New("planted: the answer was lost")
	}
	return failed, err
}

func (u *unsure) List(ctx context.Context) (*act.Listing, error) {
	if u.fails() {
		return nil, errors.New("planted: no list")
	}
	return u.Cluster.List(ctx)
}

func (u *unsure) Stop(ctx context.Context, units []act.Stopping) (act.Failed, error) {
	if u.fails() {
		return nil, errors.New("planted: nothing was stopped")
	}
	return u.Cluster.Stop(ctx, units)
}

// TestKilled has work come and go for owner and borrower while actor, service and cluster are killed at random and
// hooks fail. No unit may run twice and no host hold more than it has room for; in the end all work has run.
func TestKilled(t *testing.T) {
	s, c := serve(t)
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
	cluster := &conform.Cluster{Size: map[string]any{"ncpus": 1}, Room: 4, Slow: 300 * time.Millisecond}
	hooks := &unsure{Cluster: cluster, rand: rand.New(rand.NewPCG(2, 3)), part: 8}
	ledger := filepath.Join(t.TempDir(), "ledger")
	a := run(t, c, hooks, ledger)
	submit := func(consumer string) {
		w := conform.Work{Consumer: consumer, Units: 1 + random.Int64N(4), Seconds: .2 + 2*random.Float64()}
		if _, err := cluster.Submit(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	for step := range 40 {
		submit("/Borrower")
		if step%3 == 0 {
			submit("/Owner")
		}
		time.Sleep(150 * time.Millisecond)
		switch random.IntN(8) {
		case 0:
			a.kill(t)
			a = run(t, c, hooks, ledger)
		case 1:
			s.stop()
			s.start()
		case 2:
			cluster.SetDown(true)
			time.Sleep(300 * time.Millisecond)
			cluster.SetDown(false)
		}
	}
	hooks.part = 0
	wait(t, 60*time.Second, "work is left", func() (string, bool) {
		l, err := cluster.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rows, _, err := c.Holdings(t.Context(), "feed")
		drift := a.value(t, "stint_act_drift_units")
		return fmt.Sprintf("%d rows wanted, %d units run, %d rows held, drift %v, %v", len(l.Demand), len(l.Running),
			len(rows), drift, err), len(l.Demand)+len(l.Running)+len(rows) == 0 && drift == 0 && err == nil
	})
	if problems := cluster.Problems(); len(problems) > 0 {
		t.Errorf("%d problems: %s", len(problems), strings.Join(problems[:min(5, len(problems))], "; "))
	}
	a.kill(t)
}

// wait waits until something is so.
func wait(t *testing.T, within time.Duration, what string, so func() (string, bool)) {
	t.Helper()
	for end := time.Now().Add(within); ; time.Sleep(50 * time.Millisecond) {
		state, ok := so()
		if ok {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s: %s", what, state)
		}
	}
}

// TestReclaim has an owner take hosts back from a borrower: the borrower's units stop before their deadlines.
func TestReclaim(t *testing.T) {
	_, c := serve(t)
	cluster := &conform.Cluster{Size: map[string]any{"ncpus": 1}, Room: 4, Slow: 300 * time.Millisecond}
	a := run(t, c, cluster, filepath.Join(t.TempDir(), "ledger"))
	defer func() { a.kill(t) }()
	submit := func(consumer string, units int64) {
		w := conform.Work{Consumer: consumer, Units: units, Seconds: 3600}
		if _, err := cluster.Submit(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	runs := func() map[string]int {
		l, err := cluster.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		n := map[string]int{}
		for _, u := range l.Running {
			n[u.Consumer]++
		}
		return n
	}
	submit("/Borrower", 16)
	wait(t, 20*time.Second, "the borrower", func() (string, bool) {
		n := runs()
		return fmt.Sprint(n), n["/Borrower"] == 16
	})
	submit("/Owner", 6)
	wait(t, 20*time.Second, "the owner", func() (string, bool) {
		n := runs()
		return fmt.Sprint(n), n["/Owner"] == 6 && n["/Borrower"] == 10
	})
	if late := a.value(t, "stint_act_late_stops_total"); late != 0 || len(cluster.Problems()) > 0 {
		t.Errorf("%v late stops, %v", late, cluster.Problems())
	}
}

// TestLostData has a service come back without its data: what runs goes on, and is held again.
func TestLostData(t *testing.T) {
	s, c := serve(t)
	cluster := &conform.Cluster{Size: map[string]any{"ncpus": 1}, Room: 4}
	a := run(t, c, cluster, filepath.Join(t.TempDir(), "ledger"))
	defer func() { a.kill(t) }()
	if _, err := cluster.Submit(t.Context(), conform.Work{Consumer: "/Owner", Units: 5, Seconds: 3600}); err != nil {
		t.Fatal(err)
	}
	names := func() string {
		l, err := cluster.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ids := map[string]bool{}
		for _, u := range l.Running {
			ids[u.ID] = true
		}
		return fmt.Sprint(len(ids), ids)
	}
	wait(t, 20*time.Second, "start", func() (string, bool) { return names(), strings.HasPrefix(names(), "5 ") })
	before := names()
	s.stop()
	if err := os.RemoveAll(s.dir); err != nil {
		t.Fatal(err)
	}
	s.start()
	ctx := t.Context()
	if _, err := c.PutPlan(ctx, client.Bytes([]byte(policy), "application/yaml"), client.Options{}); err != nil {
		t.Fatal(err)
	}
	hosts := "host,ncpus\nh1,4\nh2,4\nh3,4\nh4,4\n"
	if _, err := c.PutHosts(ctx, client.Bytes([]byte(hosts), "text/csv"), client.Options{}); err != nil {
		t.Fatal(err)
	}
	wait(t, 30*time.Second, "held again", func() (string, bool) {
		rows, _, err := c.Holdings(ctx, "feed")
		n := int64(0)
		for _, r := range rows {
			n += r.Units
		}
		return fmt.Sprint(n, err), n == 5
	})
	time.Sleep(time.Second)
	if after := names(); after != before {
		t.Errorf("other units run: %s, before %s", after, before)
	}
}

// TestRefusedRow has one bad row of demand that keeps no other from the service.
func TestRefusedRow(t *testing.T) {
	_, c := serve(t)
	cluster := &conform.Cluster{Size: map[string]any{"ncpus": 1}, Room: 4}
	a := run(t, c, cluster, filepath.Join(t.TempDir(), "ledger"))
	defer func() { a.kill(t) }()
	for _, consumer := range []string{"/Nobody", "/Owner"} {
		if _, err := cluster.Submit(t.Context(), conform.Work{Consumer: consumer, Units: 2, Seconds: 60}); err != nil {
			t.Fatal(err)
		}
	}
	wait(t, 20*time.Second, "the good row", func() (string, bool) {
		l, err := cluster.List(t.Context())
		return fmt.Sprint(l, err), err == nil && len(l.Running) == 2
	})
	if n := a.value(t, "stint_act_refused_rows_total"); n < 1 {
		t.Errorf("%v refused rows", n)
	}
}
