package main

import (
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/ingest/client"
)

// receiver takes traces by OTLP over HTTP, as a collector does.
type receiver struct {
	*httptest.Server
	status int

	mu    sync.Mutex
	spans []*otlp.Span
	attrs map[string]string // of the resource
	asked int
}

func newReceiver(t *testing.T, status int) *receiver {
	r := &receiver{status: status, attrs: map[string]string{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		data := new(otlp.TracesData)
		switch {
		case q.Method != "POST" || q.URL.Path != "/v1/traces" ||
			q.Header.Get("Content-Type") != "application/x-protobuf":
			t.Errorf("%s %s, %s", q.Method, q.URL, q.Header.Get("Content-Type"))
		case err != nil:
			t.Error(err)
		default:
			if err := proto.Unmarshal(body, data); err != nil {
				t.Error(err)
			}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.asked++
		for _, resource := range data.ResourceSpans {
			for _, a := range resource.Resource.Attributes {
				r.attrs[a.Key] = a.Value.GetStringValue()
			}
			for _, scope := range resource.ScopeSpans {
				r.spans = append(r.spans, scope.Spans...)
			}
		}
		w.WriteHeader(r.status)
	}))
	t.Cleanup(r.Close)
	return r
}

// children are the names of the spans below one, in the order of their beginnings.
func (r *receiver) children(t *testing.T, of *otlp.Span) (names []string) {
	var list []*otlp.Span
	for _, s := range r.spans {
		if string(s.ParentSpanId) == string(of.SpanId) {
			list = append(list, s)
			if string(s.TraceId) != string(of.TraceId) {
				t.Errorf("%s is of trace %s, its parent of %s", s.Name, hex.EncodeToString(s.TraceId),
					hex.EncodeToString(of.TraceId))
			}
			if s.EndTimeUnixNano < s.StartTimeUnixNano || s.StartTimeUnixNano < of.StartTimeUnixNano-1e6 ||
				s.EndTimeUnixNano > of.EndTimeUnixNano+1e6 {
				t.Errorf("%s from %d to %d is not within %s from %d to %d", s.Name, s.StartTimeUnixNano,
					s.EndTimeUnixNano, of.Name, of.StartTimeUnixNano, of.EndTimeUnixNano)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b *otlp.Span) int {
		return int(a.StartTimeUnixNano) - int(b.StartTimeUnixNano)
	})
	for _, s := range list {
		names = append(names, s.Name)
	}
	return names
}

func (r *receiver) named(name string) (list []*otlp.Span) {
	for _, s := range r.spans {
		if s.Name == name {
			list = append(list, s)
		}
	}
	return list
}

// attributesOf are the attributes of a span or event as texts.
func attributesOf(list []*common.KeyValue) map[string]string {
	all := map[string]string{}
	for _, a := range list {
		switch v := a.Value.GetValue().(type) {
		case *common.AnyValue_IntValue:
			all[a.Key] = strconv.FormatInt(v.IntValue, 10)
		case *common.AnyValue_DoubleValue:
			all[a.Key] = strconv.FormatFloat(v.DoubleValue, 'g', -1, 64)
		default:
			all[a.Key] = a.Value.GetStringValue()
		}
	}
	return all
}

// tracedCycles has a service take a policy, hosts and demand, and run two cycles, the second without input.
func tracedCycles(t *testing.T, base string) {
	t.Helper()
	const plan = `{stint: 1, dimensions: [ncpus], resource_groups: [{name: G, hosts: [h1, h2]}], consumers: [{path: /A}],
  md_plans: [{name: p, resource_groups: [{name: G}], consumers: [{path: /A}]}]}
`
	c, ctx := &client.Client{Base: base}, context.Background()
	body := func(text string) client.Body { return client.Bytes([]byte(text), "") }
	_, err := c.PutPlan(ctx, body(plan), client.Options{})
	if err == nil {
		_, err = c.PutHosts(ctx, body("host,ncpus\nh1,8\nh2,8\n"), client.Options{})
	}
	if err == nil {
		_, err = c.PutDemand(ctx, "feed", body("consumer,allocation,units,ncpus\n/A,x,20,1\n/A,y,2,1\n"),
			client.Options{})
	}
	for range 2 {
		if err == nil {
			_, err = c.Cycle(ctx)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestTraces sends cycles to a receiver: a span of each, with its stages, and the inputs that it took.
func TestTraces(t *testing.T) {
	to := newReceiver(t, http.StatusOK)
	r := startServe(t, t.TempDir(), func(c *serveConfig) { c.Traces.Endpoint = to.URL })
	before := time.Now()
	tracedCycles(t, r.base)
	after := time.Now()
	r.stop() // which sends what is left
	to.mu.Lock()
	defer to.mu.Unlock()
	if to.attrs["service.name"] != "stint" || to.attrs["service.instance.id"] == "" {
		t.Error("resource:", to.attrs)
	}
	cycles := to.named("cycle")
	if len(cycles) != 2 {
		t.Fatalf("%d cycles of 2 are traced", len(cycles))
	}
	for i, span := range cycles {
		if span.StartTimeUnixNano < uint64(before.UnixNano()) || span.EndTimeUnixNano > uint64(after.UnixNano()) {
			t.Errorf("cycle %d lasts from %d to %d", i+1, span.StartTimeUnixNano, span.EndTimeUnixNano)
		}
		if got := strings.Join(to.children(t, span), " "); got != "decide record publish" {
			t.Errorf("cycle %d has the spans %s", i+1, got)
		}
	}
	for i, span := range to.named("decide") {
		if got, want := to.children(t, span), decision.Stages[:]; !slices.Equal(got, want) {
			t.Errorf("cycle %d has the stages %v, expected %v", i+1, got, want)
		}
	}
	first, second := attributesOf(cycles[0].Attributes), attributesOf(cycles[1].Attributes)
	for key, want := range map[string]string{
		"stint.cycle": "1", "stint.revision": "1", "stint.inputs": "3", "stint.units_granted": "16",
		"stint.units_held":  "16",
		"stint.units_short": "6", "stint.units_released": "0", "stint.units_reclaimed": "0",
	} {
		if first[key] != want {
			t.Errorf("cycle 1: %s is %q, expected %s", key, first[key], want)
		}
	}
	if second["stint.cycle"] != "2" || second["stint.inputs"] != "0" || second["stint.units_granted"] != "0" ||
		len(cycles[1].Events) > 0 {
		t.Error("cycle 2:", second, cycles[1].Events)
	}
	if len(first["stint.decisions_digest"]) < 16 {
		t.Error("no digest:", first)
	}
	var took []string
	for _, e := range cycles[0].Events {
		a := attributesOf(e.Attributes)
		took = append(took, e.Name+" "+a["stint.input.kind"]+" "+a["stint.input.source"]+" "+a["stint.input.rows"])
		if a["stint.input.bytes"] == "0" || e.TimeUnixNano < uint64(before.UnixNano())-1000 ||
			e.TimeUnixNano > cycles[0].EndTimeUnixNano {
			t.Error(e)
		}
	}
	if got, want := strings.Join(took, ", "), "input plan  0, input hosts  2, input demand feed 2"; got != want {
		t.Errorf("it took %s, expected %s", got, want)
	}
}

// TestTracesOff sends nothing unless it is asked to, whatever the environment says of other programs.
func TestTracesOff(t *testing.T) {
	to := newReceiver(t, http.StatusOK)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", to.URL)
	r := startServe(t, t.TempDir(), nil)
	tracedCycles(t, r.base)
	r.stop()
	if to.mu.Lock(); to.asked != 0 {
		t.Errorf("%d requests", to.asked)
	}
	to.mu.Unlock()
}

// TestTracesRefused has a receiver that takes nothing: the service runs and ends as ever, and its log says so.
func TestTracesRefused(t *testing.T) {
	to := newReceiver(t, http.StatusServiceUnavailable)
	r := startServe(t, t.TempDir(), func(c *serveConfig) { c.Traces.Endpoint = to.URL + "/" })
	tracedCycles(t, r.base)
	r.stop()
	if text := r.log.String(); !strings.Contains(text, "traces could not be sent") ||
		!strings.Contains(text, "503 Service Unavailable") || !strings.Contains(text, "msg=ended") {
		t.Error(text)
	}
}

// TestTraceURL takes an address with the path of OTLP or another, and nothing else.
func TestTraceURL(t *testing.T) {
	for endpoint, want := range map[string]string{
		"http://c:4318": "http://c:4318/v1/traces", "https://c/": "https://c/v1/traces",
		"http://c/otlp/v1/traces": "http://c/otlp/v1/traces",
		"c:4318":                  "", "ftp://c": "", "http://": "", "http://c:x": "",
	} {
		got, err := traceURL(endpoint)
		if got != want || err == nil != (want != "") {
			t.Errorf("%s: %s, %v, expected %s", endpoint, got, err, want)
		}
	}
}
