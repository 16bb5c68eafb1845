package act

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the figures of an actor.
type metrics struct {
	lag, hooks             *prometheus.HistogramVec
	errors                 *prometheus.CounterVec
	units, drift           *prometheus.GaugeVec
	late, faults, releases prometheus.Counter
	refused                prometheus.Counter
	heard, listed          prometheus.Gauge
	skew                   prometheus.Gauge
}

// Kinds of drift.
const (
	driftNotRunning = "held_not_running"
	driftNotHeld    = "running_not_held"
)

func newMetrics(to prometheus.Registerer) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	m := &metrics{
		lag: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "stint_act_lag_seconds",
			Help:    "From the decision of a cycle, or from when a stop is due, to the hook's success.",
			Buckets: []float64{.1, .25, .5, 1, 2, 5, 10, 30, 60, 300}}, []string{"effect"}),
		hooks: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "stint_act_hook_seconds",
			Help: "Duration of calls of a hook.", Buckets: prometheus.ExponentialBuckets(.01, 4, 8)}, []string{"hook"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "stint_act_hook_errors_total",
			Help: "Calls of a hook that failed."}, []string{"hook"}),
		units: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "stint_act_units",
			Help: "Units in the ledger."}, []string{"state"}),
		drift: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "stint_act_drift_units",
			Help: "Units that the service holds and that do not run, and units that run and are not held."},
			[]string{"kind"}),
		late:     counter("stint_act_late_stops_total", "Units that ran past their deadline."),
		faults:   counter("stint_act_faulty_units_total", "Units that ran twice or on another host."),
		releases: counter("stint_act_released_units_total", "Units given back."),
		refused:  counter("stint_act_refused_rows_total", "Rows of demand that the service refused."),
		heard:    gauge("stint_act_heard_timestamp_seconds", "When the service answered last with changes or none."),
		listed:   gauge("stint_act_listed_timestamp_seconds", "When the cluster was listed last."),
		skew:     gauge("stint_act_clock_difference_seconds", "The service's clock minus the actor's."),
	}
	for _, hook := range []string{"list", "start", "stop"} {
		m.errors.WithLabelValues(hook)
	}
	if to != nil {
		to.MustRegister(m.lag, m.hooks, m.errors, m.units, m.drift, m.late, m.faults, m.releases, m.refused, m.heard,
			m.listed, m.skew)
	}
	return m
}

func (m *metrics) hook(name string, began time.Time, err error) {
	m.hooks.WithLabelValues(name).Observe(time.Since(began).Seconds())
	if err != nil {
		m.errors.WithLabelValues(name).Inc()
	}
}

// Drift is the difference between what a service holds and what runs.
type Drift struct{ NotRunning, NotHeld int }

// drift compares the last list with the holdings.
func (a *actor) drift() (d Drift) {
	for _, e := range a.led.units {
		rows := len(a.running[e.ID])
		switch {
		case e.overrun || e.faulty:
			d.NotHeld += rows
		case (e.State == granted || e.State == started) && rows == 0:
			d.NotRunning++
		default:
			d.NotHeld += max(0, rows-1)
		}
	}
	for id := range a.orphans {
		d.NotHeld += len(a.running[id])
	}
	return d
}

func (m *metrics) observe(a *actor) {
	n := map[state]int{granted: 0, started: 0, ended: 0, released: 0}
	for _, e := range a.led.units {
		n[e.State]++
	}
	for s, count := range n {
		m.units.WithLabelValues(string(s)).Set(float64(count))
	}
	d := a.drift()
	m.drift.WithLabelValues(driftNotRunning).Set(float64(d.NotRunning))
	m.drift.WithLabelValues(driftNotHeld).Set(float64(d.NotHeld))
	m.skew.Set(a.clock.difference().Seconds())
}
