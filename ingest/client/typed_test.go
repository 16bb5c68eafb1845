package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stintd/stint/core/engine"
	"github.com/stintd/stint/ingest/client"
	"github.com/stintd/stint/ingest/server"
)

const policy = `
stint: 1
dimensions: [ncpus]
resource_groups: [{name: All, select: "select(ncpus > 0)"}]
consumers: [{path: /Risk}, {path: /Risk/Day}, {path: /Research}]
md_plans:
  - name: grid
    resource_groups: [{name: All}]
    consumers: [{path: /Risk}, {path: /Risk/Day}, {path: /Research}]
`

// served is a client of a service on loopback, whose cycles run when they are asked for.
func served(t *testing.T) (context.Context, *client.Client) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended, dir := make(chan error, 1), t.TempDir()
	go func() {
		ended <- server.Run(ctx, server.ServiceOptions{Dir: dir, Engine: engine.Options{ManualOnly: true},
			Listener: ln})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	c := &client.Client{Base: "http://" + ln.Addr().String()}
	if _, err := c.PutPlan(ctx, client.Bytes([]byte(policy), "application/yaml"), client.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.PutHosts(ctx, client.Bytes([]byte("host,ncpus,model\nh1,8,A100\nh2,8,\n"), "text/csv"),
		client.Options{}); err != nil {
		t.Fatal(err)
	}
	return ctx, c
}

func TestTyped(t *testing.T) {
	ctx, c := served(t)
	rows := []client.Demand{
		{Consumer: "/Risk/Day", Allocation: "var", Units: 20, Size: map[string]int64{"ncpus": 1}},
		{Consumer: "/Research", Allocation: "train", Sub: "a", Units: 3, Size: map[string]int64{"ncpus": 2},
			Plan: "grid", Requirement: "select(model == 'A100')", MaxPerHost: 1},
	}
	if r, err := c.PutDemandRows(ctx, "feed", rows, client.Options{}); err != nil || r.Rows != 2 {
		t.Fatal(r, err)
	}
	if _, err := c.Cycle(ctx); err != nil {
		t.Fatal(err)
	}
	held, _, err := c.Holdings(ctx, "feed")
	units := map[string]int64{}
	for _, h := range held {
		units[h.Consumer+h.Sub+"@"+h.Host] += h.Units
	}
	if err != nil || units["/Researcha@h1"] != 1 || units["/Researcha@h2"] != 0 ||
		units["/Risk/Day@h1"]+units["/Risk/Day@h2"] != 14 {
		t.Error(units, err)
	}
	var pages []string
	if err := c.Pages(ctx, "/v1/holdings", url.Values{"source": {"feed"}}, 2, "application/x-ndjson",
		func(text []byte) error {
			pages = append(pages, string(text))
			return nil
		}); err != nil || len(pages) != (len(held)+1)/2 || strings.Count(strings.Join(pages, ""), "\n") != len(held) {
		t.Errorf("%q of %d rows: %v", pages, len(held), err)
	}
	if r, err := c.ChangeDemandRows(ctx, "feed",
		[]client.Demand{{Consumer: "/Risk/Day", Allocation: "late", Units: 1,
			Size: map[string]int64{"ncpus": 9}}}, client.Options{}); err != nil || r.Rows != 1 {
		t.Error(r, err)
	}
	if _, err := c.Cycle(ctx); err != nil {
		t.Fatal(err)
	}
	e, err := c.Explain(ctx, "/Risk/Day", "late", 0)
	if err != nil || len(e.Plans) != 1 || e.Plans[0].Short != 1 || e.Plans[0].Shortfalls[0].Reason != "too_big" {
		t.Errorf("%+v %v", e, err)
	}
	if e, err := c.Explain(ctx, "/Research", "", 1); err != nil || e.Cycle != 1 || e.Plans[0].Short != 2 {
		t.Errorf("%+v %v", e, err)
	}
	if _, err := c.Explain(ctx, "/Nobody", "", 0); !client.Is(err, "not-found") {
		t.Error(err)
	}
	other := strings.Replace(policy, "    consumers: [{path: /Risk}",
		"    consumers: [{path: /Risk, share: {limit: {ncpus: 4}}}", 1)
	w, err := c.Whatif(ctx, client.Bytes([]byte(other), "application/yaml"), 5, client.Options{})
	if err != nil || w.Cycle != 3 || w.After.Reclaimed == 0 || len(w.Reclaims) == 0 ||
		w.Reclaims[0].Consumer != "/Risk/Day" || w.Settled == nil {
		t.Errorf("%+v %v", w, err)
	}
	rows[0].Size["units"] = 1
	if _, err := c.PutDemandRows(ctx, "feed", rows, client.Options{}); err == nil ||
		!strings.Contains(err.Error(), `"units" is no dimension`) {
		t.Error(err)
	}
}

func TestSimulate(t *testing.T) {
	ctx, c := served(t)
	if _, err := c.PutDemandRows(ctx, "feed",
		[]client.Demand{{Consumer: "/Risk/Day", Allocation: "a", Units: 16, Size: map[string]int64{"ncpus": 1}}},
		client.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Cycle(ctx); err != nil {
		t.Fatal(err)
	}
	asked := client.Asked{
		Demand: []client.AskedDemand{{
			Demand: client.Demand{Consumer: "/Research", Allocation: "new", Units: 12,
				Size: map[string]int64{"ncpus": 1}},
			Runtime: 90 * time.Minute,
		}},
		Hosts:    []map[string]any{{"host": "h3", "ncpus": 2, "model": "A100"}},
		Runtimes: []map[string]string{{"consumer": "/Risk", "p50": "30m"}},
	}
	a, err := c.Simulate(ctx, asked, client.Simulation{Horizon: 3 * time.Hour, Plays: 3, Within: 5 * time.Second})
	if err != nil || len(a.Rows) != 1 || a.Rows[0].Now < 2 || a.Rows[0].All.P50 == nil || a.Drawn {
		t.Errorf("%+v %v", a, err)
	}
	a, err = c.Simulate(ctx, asked, client.Simulation{Horizon: -1})
	if err != nil || a.Cycles != 1 || a.Rows[0].All.P50 != nil {
		t.Errorf("%+v %v", a, err)
	}
	if _, err := c.Simulate(ctx, client.Asked{}, client.Simulation{}); err != nil {
		t.Error(err)
	}
}

// TestEvents follows cycles until it has enough, and until its time is up.
func TestEvents(t *testing.T) {
	ctx, c := served(t)
	if _, err := c.PutDemandRows(ctx, "feed",
		[]client.Demand{{Consumer: "/Research", Allocation: "a", Units: 2, Size: map[string]int64{"ncpus": 1}}},
		client.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Cycle(ctx); err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	var got []int64
	err := c.Events(ctx, -1, func(e client.Event) error {
		got = append(got, e.Cycle)
		if e.Cycle == 1 && (e.UnitsGranted != 2 || e.UnitsHeld != 2 || e.Now.IsZero() || len(e.Digest) != 64 ||
			e.Version == "") {
			t.Errorf("%+v", e)
		}
		if e.Cycle == 3 {
			return enough
		}
		_, err := c.Cycle(ctx)
		return err
	})
	if !errors.Is(err, enough) || len(got) != 3 || got[0] != 1 || got[2] != 3 {
		t.Error(got, err)
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	got = nil
	err = c.Events(short, 1, func(e client.Event) error { got = append(got, e.Cycle); return nil })
	if !errors.Is(err, context.DeadlineExceeded) || len(got) != 2 || got[0] != 2 {
		t.Error(got, err)
	}
}

// TestEventsAnew has streams that end: the next one begins behind the cycle seen last, and an error of the token is
// told.
func TestEventsAnew(t *testing.T) {
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RawQuery)
		if len(asked) == 3 {
			_, _ = io.WriteString(w, "event: unauthorized\ndata: {}\n\n")
			return
		}
		fmt.Fprintf(w, "retry: 2000\n\n: still here\n\nid: %d\nevent: cycle\ndata: {\"cycle\":%d}\n\n", len(asked)+3,
			len(asked)+3)
	}))
	defer s.Close()
	var got []int64
	err := (&client.Client{Base: s.URL}).Events(t.Context(), -1, func(e client.Event) error {
		got = append(got, e.Cycle)
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "not known any more") || !slices.Equal(got, []int64{4, 5}) ||
		!slices.Equal(asked, []string{"", "since=4", "since=5"}) {
		t.Error(got, asked, err)
	}
}
