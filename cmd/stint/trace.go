package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/engine"
)

// Limits of sending traces.
const (
	traceFlushMax  = 2 * time.Second // for what is left when the service ends
	traceSendMax   = 10 * time.Second
	traceAnswerMax = 64 << 10 // bytes of its answer that are read
)

// traceURL is the address that traces go to: an endpoint with the path of OTLP where it has none.
func traceURL(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("must be an address such as http://127.0.0.1:4318")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces"
	}
	return u.String(), nil
}

// tracer makes spans of the cycles that the engine tells of.
type tracer struct {
	provider *sdktrace.TracerProvider
	spans    trace.Tracer
}

// newTracer makes one that sends to an endpoint by OTLP over HTTP. Spans that cannot be sent are dropped, with a
// warning in the log.
func newTracer(endpoint, version, instance string, log *slog.Logger) (*tracer, error) {
	address, err := traceURL(endpoint)
	if err != nil {
		return nil, fmt.Errorf("traces.endpoint: %q: %w", endpoint, err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.Warn("traces could not be sent; they are dropped", "error", err)
	}))
	exporter, err := otlptrace.New(context.Background(), traceClient{address, &http.Client{Timeout: traceSendMax}})
	if err != nil {
		return nil, err
	}
	p := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithSampler(sdktrace.AlwaysSample()),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "stint"), attribute.String("service.version", version),
			attribute.String("service.instance.id", instance))))
	return &tracer{p, p.Tracer("github.com/stintd/stint")}, nil
}

// traceClient sends spans by OTLP over HTTP. OpenTelemetry's own, otlptracehttp, would add a third to the binary, since
// it brings gRPC along (D-136).
type traceClient struct {
	address string
	http    *http.Client
}

// Start does nothing: the first spans open a connection.
func (traceClient) Start(context.Context) error { return nil }

// Stop closes idle connections.
func (c traceClient) Stop(context.Context) error {
	c.http.CloseIdleConnections()
	return nil
}

// UploadTraces sends spans in one request. Errors: it cannot be sent, an answer that is no success.
func (c traceClient) UploadTraces(ctx context.Context, spans []*otlp.ResourceSpans) (err error) {
	body, err := proto.Marshal(&otlp.TracesData{ResourceSpans: spans}) // the same bytes as an ExportTraceServiceRequest
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(resp.Body, traceAnswerMax)); err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s answers %s", c.address, resp.Status)
	}
	return nil
}

// cycle makes the spans of a cycle. It waits for nothing: they are sent beside the engine.
func (t *tracer) cycle(c *engine.Trace) {
	s := c.Summary
	ctx, whole := t.spans.Start(context.Background(), "cycle", trace.WithTimestamp(c.Began), trace.WithAttributes(
		attribute.Int64("stint.cycle", s.Cycle), attribute.Int64("stint.revision", s.Revision),
		attribute.String("stint.decisions_digest", s.Digest), attribute.Int("stint.inputs", c.InputCount),
		attribute.Int64("stint.units_granted", s.UnitsGranted),
		attribute.Int64("stint.units_released", s.UnitsReleased),
		attribute.Int64("stint.units_reclaimed", s.UnitsReclaimed), attribute.Int64("stint.units_held", s.UnitsHeld),
		attribute.Int64("stint.units_short", s.UnitsShort)))
	for i := range c.Inputs {
		in := &c.Inputs[i]
		whole.AddEvent("input", trace.WithTimestamp(time.UnixMicro(in.AtUS)), trace.WithAttributes(
			attribute.String("stint.input.kind", in.Kind), attribute.String("stint.input.source", in.Source),
			attribute.Int64("stint.input.rows", in.Rows), attribute.Int64("stint.input.bytes", in.Bytes),
			attribute.Float64("stint.input.decode_ms", milliseconds(in.Decoding))))
	}
	started := time.UnixMicro(s.StartedUS)
	inside, decide := t.spans.Start(ctx, "decide", trace.WithTimestamp(started))
	at := started
	for i, stage := range decision.Stages {
		end := at.Add(time.Duration(s.StageUS[i]) * time.Microsecond)
		t.span(inside, stage, at, end)
		at = end
	}
	decide.End(trace.WithTimestamp(c.Decided))
	t.span(ctx, "record", c.Decided, c.Recorded)
	t.span(ctx, "publish", c.Recorded, c.Published)
	whole.End(trace.WithTimestamp(c.Published))
}

func (t *tracer) span(ctx context.Context, name string, from, to time.Time) {
	_, s := t.spans.Start(ctx, name, trace.WithTimestamp(from))
	s.End(trace.WithTimestamp(to))
}

// stop sends the spans that are left, for traceFlushMax at most.
func (t *tracer) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), traceFlushMax)
	defer cancel()
	_ = t.provider.Shutdown(ctx) // what could not be sent was told to the log
}

// milliseconds is a duration as people and programs read it in attributes whose names end in _ms.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
