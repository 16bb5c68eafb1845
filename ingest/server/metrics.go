package server

import (
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"github.com/stintd/stint/core/decision"
)

// Metrics are the figures that /metrics shows (docs/metrics.md). Here is what is counted as it happens; gauges.go has
// what is read off the server, figures.go what the last cycle decided.
type Metrics struct {
	registry  prometheus.Registerer
	gathers   prometheus.Gatherer
	level     int // of the consumers that labels name
	requests  *prometheus.CounterVec
	latency   *prometheus.HistogramVec
	refusals  *prometheus.CounterVec
	rows      *prometheus.CounterVec
	bytes     *prometheus.CounterVec
	inputs    *prometheus.CounterVec
	receive   prometheus.Histogram
	decode    prometheus.Histogram
	stages    *prometheus.HistogramVec
	cycles    prometheus.Histogram
	granted   prometheus.Counter
	released  *prometheus.CounterVec
	reclaimed *prometheus.CounterVec
	taken     *prometheus.CounterVec // of consumers
	lost      *prometheus.CounterVec
	recalls   *prometheus.HistogramVec // of takers
}

var secondBuckets = []float64{
	.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30,
}

// NewMetrics makes figures that are all 0. level is how deep in the tree the consumers stand that labels name, 1 for
// those of the first level; leaves above it are named too, so that no unit counts twice.
func NewMetrics(level int) *Metrics {
	all := prometheus.NewRegistry()
	all.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return newMetrics(level, all, all)
}

// dividedMetrics make figures of a service that is divided and of each of its divisions, which a label tells apart; ""
// is what is of no division.
func dividedMetrics(level int) func(division string) *Metrics {
	all := prometheus.NewRegistry()
	all.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return func(division string) *Metrics {
		return newMetrics(level, prometheus.WrapRegistererWith(prometheus.Labels{"division": division}, all), all)
	}
}

func newMetrics(level int, registry prometheus.Registerer, gathers prometheus.Gatherer) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	times := func(name, help string) prometheus.HistogramOpts {
		return prometheus.HistogramOpts{Name: name, Help: help, Buckets: secondBuckets}
	}
	m := &Metrics{
		registry: registry, gathers: gathers,
		level:    max(1, level),
		requests: counter("stint_http_requests_total", "Requests answered.", "route", "code"),
		latency: prometheus.NewHistogramVec(times("stint_http_request_duration_seconds",
			"Time until a handler is done, waiting included."), []string{"route"}),
		refusals: counter("stint_refusals_total", "Requests refused, by kind of error.", "kind"),
		rows:     counter("stint_input_rows_total", "Rows taken.", "kind"),
		bytes:    counter("stint_input_bytes_total", "Bytes taken, as they came.", "kind"),
		inputs:   counter("stint_inputs_total", "Inputs taken.", "kind"),
		receive:  prometheus.NewHistogram(times("stint_receive_duration_seconds", "Time until a body has come.")),
		decode:   prometheus.NewHistogram(times("stint_decode_duration_seconds", "Time to decode a table.")),
		cycles: prometheus.NewHistogram(times("stint_cycle_duration_seconds",
			"Time of a cycle, without its record.")),
		stages: prometheus.NewHistogramVec(times("stint_cycle_stage_duration_seconds", "Time of a cycle's stage."),
			[]string{"stage"}),
		granted: prometheus.NewCounter(prometheus.CounterOpts{Name: "stint_granted_units_total",
			Help: "Units granted."}),
		released:  counter("stint_released_units_total", "Units that came back, by cause.", "cause"),
		reclaimed: counter("stint_reclaimed_units_total", "Units put under reclaim, by reason.", "reason"),
		taken: counter("stint_consumer_reclaimed_units_total", "Units put under reclaim, by holder.", "plan",
			"consumer"),
		lost: counter("stint_consumer_lost_unit_seconds_total",
			"How long units had run that reclaims stopped before their end, by holder.",
			"plan", "consumer"),
	}
	m.recalls = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "stint_recall_latency_seconds",
		Help:    "For how long takers had been short when a reclaim for them was issued, by taker.",
		Buckets: []float64{1, 10, 30, 60, 120, 300, 600, 1800, 3600, 4 * 3600}}, []string{"plan", "consumer"})
	for _, cause := range decision.Causes {
		m.released.WithLabelValues(cause)
	}
	for _, reason := range decision.ReclaimReasons {
		m.reclaimed.WithLabelValues(reason)
	}
	for _, stage := range decision.Stages {
		m.stages.WithLabelValues(stage)
	}
	m.registry.MustRegister(m.requests, m.latency, m.refusals, m.rows, m.bytes, m.inputs, m.receive, m.decode, m.stages,
		m.cycles, m.granted, m.released, m.reclaimed, m.taken, m.lost, m.recalls)
	return m
}

// Cycle counts what a cycle did; it is for the engine's OnCycle. O(releases + reclaims).
func (m *Metrics) Cycle(c *decision.Cycle) {
	s := &c.Summary
	m.cycles.Observe(float64(s.FinishedUS-s.StartedUS) / 1e6)
	for i, stage := range decision.Stages {
		m.stages.WithLabelValues(stage).Observe(float64(s.StageUS[i]) / 1e6)
	}
	m.granted.Add(float64(s.UnitsGranted))
	for i, units := range c.Releases.Units {
		m.released.WithLabelValues(c.Releases.Cause.At(i)).Add(float64(units))
	}
	r := &c.Reclaims
	for i, units := range r.Units {
		if r.Action.Code[i] == decision.ActionIssued {
			m.reclaimed.WithLabelValues(r.Reason.At(i)).Add(float64(units))
			m.taken.WithLabelValues(r.Plan.At(i), cutPath(r.Consumer.At(i), m.level)).Add(float64(units))
		}
		if !r.TakerWaitNull[i] {
			m.recalls.WithLabelValues(r.Plan.At(i), cutPath(r.ForConsumer.At(i), m.level)).Observe(r.TakerWait[i])
		}
	}
	for i, lost := range c.Releases.UnitSecondsLost {
		if lost > 0 {
			m.lost.WithLabelValues(c.Releases.Plan.At(i), cutPath(c.Releases.Consumer.At(i), m.level)).Add(lost)
		}
	}
}

// cutPath is the consumer of a level that a path is at or below, the path itself where it is above that level.
func cutPath(path string, level int) string {
	at := 0
	for ; level > 0; level-- {
		if at >= len(path) {
			return path
		}
		i := strings.IndexByte(path[at+1:], '/')
		if i < 0 {
			return path
		}
		at += 1 + i
	}
	return path[:at]
}

func (m *Metrics) request(route string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	m.latency.WithLabelValues(route).Observe(took.Seconds())
}

func (m *Metrics) refused(kind string) { m.refusals.WithLabelValues(kind).Inc() }

func (m *Metrics) received(took time.Duration) { m.receive.Observe(took.Seconds()) }

func (m *Metrics) decoded(took time.Duration) { m.decode.Observe(took.Seconds()) }

func (m *Metrics) took(kind string, rows, bytes int64) {
	m.inputs.WithLabelValues(kind).Inc()
	m.rows.WithLabelValues(kind).Add(float64(rows))
	m.bytes.WithLabelValues(kind).Add(float64(bytes))
}

// buildInfo is 1, with what the build says of itself.
func buildInfo(version string) prometheus.Collector {
	revision, goVersion := "", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		goVersion = info.GoVersion
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "stint_build_info", Help: "1, with the build's version, commit and version of the rules.",
		ConstLabels: prometheus.Labels{
			"version": version, "revision": revision, "goversion": goVersion, "rules": decision.RulesVersion,
		},
	})
	info.Set(1)
	return info
}

// getMetrics gives the figures as Prometheus reads them.
func (s *Server) getMetrics(q *request) error {
	fasthttpadaptor.NewFastHTTPHandler(promhttp.HandlerFor(s.o.Metrics.gathers, promhttp.HandlerOpts{}))(q.RequestCtx)
	return nil
}
