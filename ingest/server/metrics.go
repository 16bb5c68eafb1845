package server

import (
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/engine"
	"github.com/stintd/stint/core/journal"
)

// Metrics are the figures that /metrics shows. Labels are of closed sets: routes, kinds, stages, and the consumers of the first level.
type Metrics struct {
	registry  *prometheus.Registry
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
	decided   *prometheus.CounterVec
	reclaimed *prometheus.CounterVec
	units     *prometheus.GaugeVec
	cycle     prometheus.Gauge
	now       prometheus.Gauge

	consumers map[[3]string]bool // series of units that were set
}

var seconds = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

// NewMetrics makes figures that are all 0.
func NewMetrics() *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &Metrics{
		registry:  prometheus.NewRegistry(),
		requests:  counter("stint_http_requests_total", "Requests answered.", "route", "code"),
		latency:   prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "stint_http_seconds", Help: "Time until a handler is done, waiting included.", Buckets: seconds}, []string{"route"}),
		refusals:  counter("stint_refusals_total", "Requests refused, by kind of error.", "kind"),
		rows:      counter("stint_input_rows_total", "Rows taken.", "kind"),
		bytes:     counter("stint_input_bytes_total", "Bytes taken, as they came.", "kind"),
		inputs:    counter("stint_inputs_total", "Inputs taken.", "kind"),
		receive:   prometheus.NewHistogram(prometheus.HistogramOpts{Name: "stint_receive_seconds", Help: "Time until a body has come.", Buckets: seconds}),
		decode:    prometheus.NewHistogram(prometheus.HistogramOpts{Name: "stint_decode_seconds", Help: "Time to decode a table.", Buckets: seconds}),
		stages:    prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "stint_cycle_stage_seconds", Help: "Time of a cycle's stage.", Buckets: seconds}, []string{"stage"}),
		cycles:    prometheus.NewHistogram(prometheus.HistogramOpts{Name: "stint_cycle_seconds", Help: "Time of a cycle, without its record.", Buckets: seconds}),
		decided:   counter("stint_units_total", "Units granted, released and put under reclaim.", "what"),
		reclaimed: counter("stint_consumer_units_reclaimed_total", "Units put under reclaim, by holder.", "plan", "consumer"),
		units:     prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "stint_consumer_units", Help: "Units of a consumer and those below it: wanted, held, short."}, []string{"plan", "consumer", "what"}),
		cycle:     prometheus.NewGauge(prometheus.GaugeOpts{Name: "stint_cycle", Help: "Number of the last cycle."}),
		now:       prometheus.NewGauge(prometheus.GaugeOpts{Name: "stint_cycle_now_seconds", Help: "The last cycle's now, since 1970."}),
		consumers: map[[3]string]bool{},
	}
	m.registry.MustRegister(m.requests, m.latency, m.refusals, m.rows, m.bytes, m.inputs, m.receive, m.decode, m.stages, m.cycles, m.decided,
		m.reclaimed, m.units, m.cycle, m.now, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// attach adds the figures that are read off a server.
func (m *Metrics) attach(s *Server) {
	gauge := func(name, help string, value func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
	}
	stats := func(of func(engine.Stats) float64) func() float64 {
		return func() float64 {
			if e := s.engine.Load(); e != nil {
				return of(e.Stats())
			}
			return 0
		}
	}
	last := func(of func(*decision.Summary) int64) func() float64 {
		return func() float64 {
			if e := s.engine.Load(); e != nil && e.View().Last != nil {
				return float64(of(&e.View().Last.Summary))
			}
			return 0
		}
	}
	gauge("stint_connections", "Connections open.", func() float64 { return float64(s.http.GetOpenConnectionsCount()) })
	gauge("stint_queue_inputs", "Inputs waiting for the engine.", stats(func(s engine.Stats) float64 { return float64(s.Queue) }))
	gauge("stint_queue_decodes", "Bodies waiting to be decoded.", func() float64 { return float64(s.decodes.waits()) })
	gauge("stint_queue_body_bytes", "Memory of bodies being received and decoded.", func() float64 { return float64(s.bodies.inUse()) })
	gauge("stint_decoded_bytes", "Memory of tables and policy files being decoded.", func() float64 { return float64(s.decoded.inUse() + s.checks.inUse()) })
	gauge("stint_answer_bytes", "Memory of answers under way.", func() float64 { return float64(s.answers.inUse()) })
	gauge("stint_queue_waiters", "Long polls waiting.", func() float64 { return float64(s.waiters.inUse()) })
	gauge("stint_engine_busy_seconds", "How long the engine has been at what it does now, a cycle above all; 0 when it waits.", stats(func(s engine.Stats) float64 { return s.Busy.Seconds() }))
	gauge("stint_clock_behind_seconds", "How far the clock is behind the time of the last cycle or input.", stats(func(s engine.Stats) float64 { return s.ClockBehind.Seconds() }))
	gauge("stint_log_behind_cycles", "Cycles that are not in the decision log yet.", stats(func(s engine.Stats) float64 { return float64(s.LogBehind) }))
	gauge("stint_journal_bytes", "Bytes of the journal.", stats(func(s engine.Stats) float64 { return float64(s.Journal) }))
	gauge("stint_checkpoint_cycle", "Cycle of the last checkpoint since the start.", stats(func(s engine.Stats) float64 { return float64(s.Checkpoint.Cycle) }))
	gauge("stint_checkpoint_bytes", "Bytes of the last checkpoint.", stats(func(s engine.Stats) float64 { return float64(s.Checkpoint.Bytes) }))
	gauge("stint_checkpoint_held_seconds", "How long the last checkpoint kept input and cycles waiting.", stats(func(s engine.Stats) float64 { return s.Checkpoint.Held.Seconds() }))
	gauge("stint_checkpoint_seconds", "How long the last checkpoint took in all.", stats(func(s engine.Stats) float64 { return s.Checkpoint.Took.Seconds() }))
	gauge("stint_checkpoint_failed", "Whether the last checkpoint failed.", stats(func(s engine.Stats) float64 {
		if s.Checkpoint.Why != "" {
			return 1
		}
		return 0
	}))
	gauge("stint_units_wanted", "Units wanted.", last(func(s *decision.Summary) int64 { return s.UnitsWanted }))
	gauge("stint_units_held", "Units held.", last(func(s *decision.Summary) int64 { return s.UnitsHeld }))
	gauge("stint_units_short", "Units short.", last(func(s *decision.Summary) int64 { return s.UnitsShort }))
	gauge("stint_units_leaving", "Units under reclaim.", last(func(s *decision.Summary) int64 { return s.UnitsLeaving }))
	gauge("stint_units_overdue", "Units under reclaim past their deadline, not released yet.", last(func(s *decision.Summary) int64 { return s.UnitsOverdue }))
	flag := func(name, help string, value func(e *engine.Engine, j journal.Shared) bool) {
		gauge(name, help, func() float64 {
			if e, j := s.engine.Load(), s.member(); e != nil && j != nil && value(e, j) {
				return 1
			}
			return 0
		})
	}
	flag("stint_leads", "Whether this process of a cluster leads.", func(e *engine.Engine, _ journal.Shared) bool { return s.rejoins.Load() == nil && !e.Following() })
	flag("stint_leader_known", "Whether a process of the cluster is known to lead.", func(_ *engine.Engine, j journal.Shared) bool { return j.Leader().Name != "" })
	flag("stint_bucket_trouble", "Whether the bucket of the cluster cannot be read.", func(_ *engine.Engine, j journal.Shared) bool { return j.Trouble() != "" })
	gauge("stint_term", "The term of the cluster's leader.", func() float64 {
		if j := s.member(); j != nil {
			return float64(j.Leader().Term)
		}
		return 0
	})
	gauge("stint_digests_compared", "Cycles of a leader that this process decided to the same digest.", stats(func(s engine.Stats) float64 { return float64(s.Compared) }))
	gauge("stint_differs", "Whether this process decided otherwise than the leader.", stats(func(s engine.Stats) float64 {
		if s.Differs != "" {
			return 1
		}
		return 0
	}))
	gauge("stint_ready", "Whether input is taken and cycles run.", func() float64 {
		if e := s.engine.Load(); e == nil || e.Unready() != "" || s.apart() != "" {
			return 0
		}
		return 1
	})
}

// Cycle takes the figures of a cycle; it is for the engine's OnCycle. O(consumers + reclaims).
func (m *Metrics) Cycle(c *decision.Cycle) {
	s := &c.Summary
	m.cycle.Set(float64(s.Cycle))
	m.now.Set(float64(s.NowUS) / 1e6)
	m.cycles.Observe(float64(s.FinishedUS-s.StartedUS) / 1e6)
	for i, stage := range decision.Stages {
		m.stages.WithLabelValues(stage).Observe(float64(s.StageUS[i]) / 1e6)
	}
	m.decided.WithLabelValues("granted").Add(float64(s.UnitsGranted))
	m.decided.WithLabelValues("released").Add(float64(s.UnitsReleased))
	m.decided.WithLabelValues("reclaimed").Add(float64(s.UnitsReclaimed))
	r := &c.Reclaims
	for i, units := range r.Units {
		if r.Action.Code[i] == decision.ActionIssued {
			m.reclaimed.WithLabelValues(r.Plan.At(i), topLevel(r.Consumer.At(i))).Add(float64(units))
		}
	}
	if !s.Restated {
		return
	}
	t := &c.Consumers
	set := map[[3]string]bool{}
	for i := range t.Held {
		path := t.Consumer.At(i)
		if path == "/" || topLevel(path) != path {
			continue
		}
		for what, v := range map[string]int64{"wanted": t.Demand[i], "held": t.Held[i], "short": t.Short[i]} {
			key := [3]string{t.Plan.At(i), path, what}
			m.units.WithLabelValues(key[:]...).Set(float64(v))
			set[key] = true
		}
	}
	for key := range m.consumers {
		if !set[key] {
			m.units.DeleteLabelValues(key[:]...)
		}
	}
	m.consumers = set
}

// topLevel is the consumer of the first level that a path is below.
func topLevel(path string) string {
	if i := strings.IndexByte(strings.TrimPrefix(path, "/"), '/'); i >= 0 {
		return path[:i+1]
	}
	return path
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

// getMetrics gives the figures as Prometheus reads them.
func (s *Server) getMetrics(q *request) error {
	fasthttpadaptor.NewFastHTTPHandler(promhttp.HandlerFor(s.o.Metrics.registry, promhttp.HandlerOpts{}))(q.RequestCtx)
	return nil
}
