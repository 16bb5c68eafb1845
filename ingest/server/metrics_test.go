package server

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/stintd/stint/core/engine"
)

// watchedPolicy has plans of both kinds: in that of slots /A lends to /B what is taken back with grace, in the other
// one consumers stand on three levels.
const watchedPolicy = `
stint: 1
interval: 90s
dimensions: [slots, ncpus, maxmem]
resource_groups: [{name: Farm, hosts: [f1, f2]}, {name: Grid, select: "select(ncpus > 0)"}]
consumers:
  - {path: /A}
  - {path: /B, rank: 1, reclaim_grace: 10m}
  - {path: /Risk}
  - {path: /Risk/Day}
  - {path: /Risk/Day/Fast}
  - {path: /Risk/Day/Slow}
  - {path: /Risk/Night}
  - {path: /Research}
slot_plans:
  - resource_group: Farm
    consumers:
      - {path: /A, policy: ownership, owns: 12, lend: {limit: 12}, borrow: {}}
      - {path: /B, policy: ownership, owns: 4, lend: {limit: 4}, borrow: {}}
md_plans:
  - name: grid
    resource_groups: [{name: Grid}]
    consumers:
      - {path: /Risk, own: [{group: Grid, hosts: 1}]}
      - {path: /Risk/Day}
      - {path: /Risk/Day/Fast}
      - {path: /Risk/Day/Slow}
      - {path: /Risk/Night}
      - {path: /Research}
`

const watchedHosts = `host,slots,ncpus,maxmem,state
f1,8,0,0,ok
f2,8,0,0,ok
g1,0,16,64,ok
g2,0,16,64,closed
spare,0,0,8,ok
`

// watched is a service whose metrics tell of all that there is: loans, recalls, shortfalls, hosts of several states.
func watched(t *testing.T, level int) *service {
	s := start(t, func(o *ServiceOptions) {
		o.MetricsLevel, o.Server.Audit, o.Journal.BytesMax = level, true, 1<<30
	})
	s.must(200, "PUT", "/v1/plan", watchedPolicy)
	s.must(200, "PUT", "/v1/hosts", watchedHosts, "Content-Type", "text/csv")
	s.must(200, "PUT", "/v1/demand/b", "consumer,allocation,units,slots\n/B,b,16,1\n")
	s.must(200, "PUT", "/v1/demand/md",
		"consumer,allocation,units,ncpus,maxmem\n/Risk/Day/Fast,f,4,1,2\n/Research,r,20,1,1\n")
	s.cycle()
	s.must(200, "PUT", "/v1/demand/a", "consumer,allocation,units,slots\n/A,a,9,1\n")
	s.refused(404, "no-source", "DELETE", "/v1/demand/nobody", "")
	s.cycle()
	return s
}

// scraped are the families that a scrape gives, parsed strictly, and the scrape.
func scraped(t *testing.T, s *service) (map[string]*dto.MetricFamily, string) {
	t.Helper()
	text := s.must(200, "GET", "/metrics", "").body
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return families, text
}

// ofTLS adds the families that a service has only with a certificate.
func ofTLS(t *testing.T, families map[string]*dto.MetricFamily) {
	t.Helper()
	own := newIssuer(t, "Authority").issue("stint", nil)
	files, err := NewTLS(TLSFiles{Certificate: own.cert, Key: own.key})
	if err != nil {
		t.Fatal(err)
	}
	m := NewMetrics(1)
	m.attachTLS(files)
	gathered, err := m.gathers.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range gathered {
		if families[f.GetName()] == nil && strings.HasPrefix(f.GetName(), "stint_tls_") {
			families[f.GetName()] = f
		}
	}
}

// value is the sum of the series of a family whose labels are those given, as name=value.
func value(f *dto.MetricFamily, labels ...string) (sum float64, series int) {
	for _, m := range f.GetMetric() {
		var has []string
		for _, l := range m.GetLabel() {
			has = append(has, l.GetName()+"="+l.GetValue())
		}
		if slices.ContainsFunc(labels, func(l string) bool { return !slices.Contains(has, l) }) {
			continue
		}
		series++
		sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
	}
	return sum, series
}

// TestMetricsByTheRules holds every family against Prometheus' rules: names, units, help, types.
func TestMetricsByTheRules(t *testing.T) {
	s := watched(t, 2)
	families, text := scraped(t, s)
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	page := fileOf(t, "docs/metrics.md")
	for name := range families {
		if strings.HasPrefix(name, "stint_") && !strings.Contains(page, "`"+name) {
			t.Errorf("docs/metrics.md does not have %s", name)
		}
	}
}

// TestMetricsAddUp sums figures over labels: whatever the level, no unit counts twice, and nothing is missing.
func TestMetricsAddUp(t *testing.T) {
	for level := range 4 {
		t.Run(fmt.Sprint(level), func(t *testing.T) {
			s := watched(t, level)
			families, _ := scraped(t, s)
			sum := func(name string, labels ...string) float64 {
				v, n := value(families[name], labels...)
				if n == 0 {
					t.Errorf("no series %s of %v", name, labels)
				}
				return v
			}
			equal := func(what string, got, want float64) {
				if got != want {
					t.Errorf("%s: %v, expected %v", what, got, want)
				}
			}
			equal("wanted", sum("stint_consumer_wanted_units"), 16+4+20+9)
			equal("wanted in all", sum("stint_wanted_units"), 16+4+20+9)
			equal("held", sum("stint_consumer_held_units"), sum("stint_held_units"))
			equal("short", sum("stint_consumer_short_units"), sum("stint_short_units"))
			equal("short and held", sum("stint_short_units")+sum("stint_held_units"), sum("stint_wanted_units"))
			equal("owned slots", sum("stint_consumer_owned_amount", "dimension=slots", "plan=Farm"), 16)
			equal("held slots", sum("stint_consumer_held_amount", "dimension=slots"),
				sum("stint_used_amount", "dimension=slots"))
			equal("held ncpus", sum("stint_consumer_held_amount", "dimension=ncpus"),
				sum("stint_used_amount", "dimension=ncpus"))
			equal("lent", sum("stint_consumer_lent_units"), sum("stint_consumer_borrowed_units"))
			equal("lent by /A", sum("stint_consumer_lent_units", "consumer=/A"), 12)
			equal("recalled", sum("stint_consumer_recalled_units"), 9)
			equal("under reclaim", sum("stint_reclaiming_units"), 9)
			equal("put under reclaim", sum("stint_reclaimed_units_total", "reason=recall"), 9)
			equal("put under reclaim of /B", sum("stint_consumer_reclaimed_units_total", "consumer=/B"), 9)
			equal("short of /A", sum("stint_short_units", "reason=waiting_for_reclaim"), 9)
			equal("hosts", sum("stint_hosts"), 5)
			equal("closed hosts", sum("stint_hosts", "state=closed", "plan=grid"), 1)
			equal("hosts of no plan", sum("stint_hosts", "plan="), 1)
			equal("capacity", sum("stint_capacity_amount", "dimension=maxmem"), 64+64+8)
			equal("capacity to be had", sum("stint_capacity_amount", "dimension=ncpus", "state=ok"), 16)
			equal("silent sources", sum("stint_source_silent"), 0)
			equal("sources", sum("stint_sources"), 3)
			equal("cycles", sum("stint_cycle_number"), 2)
		})
	}
}

// TestMetricsLevel names the consumers of one level and leaves above it.
func TestMetricsLevel(t *testing.T) {
	for level, want := range map[int]string{
		1: "/A /B /Research /Risk", 2: "/A /B /Research /Risk/Day /Risk/Night",
		3: "/A /B /Research /Risk/Day/Fast /Risk/Day/Slow /Risk/Night",
		9: "/A /B /Research /Risk/Day/Fast /Risk/Day/Slow /Risk/Night",
	} {
		families, _ := scraped(t, watched(t, level))
		var got []string
		for _, m := range families["stint_consumer_held_units"].GetMetric() {
			got = append(got, m.GetLabel()[0].GetValue())
		}
		slices.Sort(got)
		if s := strings.Join(got, " "); s != want {
			t.Errorf("level %d: %s, expected %s", level, s, want)
		}
	}
	for path, want := range map[string]string{"/": "/ / /", "/A": "/A /A /A", "/A/b": "/A /A/b /A/b",
		"/A/b/c/d": "/A /A/b /A/b/c"} {
		if got := fmt.Sprint(cutPath(path, 1), " ", cutPath(path, 2), " ", cutPath(path, 3)); got != want {
			t.Errorf("%s: %s, expected %s", path, got, want)
		}
	}
}

// TestMetricsOfTheService reads what is not decided: times, bytes, build, who leads.
func TestMetricsOfTheService(t *testing.T) {
	before := time.Now()
	s := watched(t, 1)
	s.logged()
	families, _ := scraped(t, s)
	one := func(name string, labels ...string) float64 {
		v, n := value(families[name], labels...)
		if n != 1 {
			t.Errorf("%d series %s of %v", n, name, labels)
		}
		return v
	}
	now := float64(time.Now().UnixMicro()) / 1e6
	for _, name := range []string{"stint_cycle_finished_timestamp_seconds", "stint_cycle_timestamp_seconds"} {
		if v := one(name); v < float64(before.UnixMicro())/1e6 || v > now {
			t.Errorf("%s: %v, at %v", name, v, now)
		}
	}
	if v := one("stint_source_heard_timestamp_seconds", "source=a"); v < float64(before.UnixMicro())/1e6 || v > now {
		t.Errorf("source a was heard at %v, it is %v", v, now)
	}
	for name, want := range map[string]float64{
		"stint_build_info": 1, "stint_leads": 1, "stint_leader_known": 1, "stint_differs": 0, "stint_ready": 1,
		"stint_log_lost":               0,
		"stint_cycle_interval_seconds": 0, "stint_journal_limit_bytes": 1 << 30, "stint_policy_revision": 1,
		"stint_overdue_units": 0,
	} {
		if got := one(name); got != want {
			t.Errorf("%s: %v, expected %v", name, got, want)
		}
	}
	if available, size := one("stint_disk_available_bytes"), one("stint_disk_size_bytes"); available <= 0 ||
		available > size {
		t.Errorf("%v of %v bytes are available", available, size)
	}
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) { // it is counted beside
		if families, _ = scraped(t, s); one("stint_log_bytes") > 0 {
			break
		}
		if time.Now().After(until) {
			t.Fatal("the decision log has no bytes")
		}
	}
	if one("stint_journal_bytes") <= 0 {
		t.Error("the journal has no bytes")
	}
}

// TestMetricsAfterAStart has what was decided before a restart, and the interval of a service whose cycles run by it.
func TestMetricsAfterAStart(t *testing.T) {
	s := watched(t, 1)
	s.o.Engine.ManualOnly = false
	s.restart()
	families, _ := scraped(t, s)
	for name, want := range map[string]float64{
		"stint_cycle_number": 2, "stint_wanted_units": 49, "stint_cycle_interval_seconds": 90,
		"stint_reclaiming_units": 9,
	} {
		if got, _ := value(families[name]); got != want {
			t.Errorf("%s: %v, expected %v", name, got, want)
		}
	}
}

// TestMetricsOfASilentSource tells which one is.
func TestMetricsOfASilentSource(t *testing.T) {
	var ahead atomic.Int64
	s := ready(t, func(o *ServiceOptions) {
		o.Engine.SourceTTLUS, o.Engine.Clock = 60e6, func() int64 { return time.Now().UnixMicro() + ahead.Load() }
	})
	s.must(200, "PUT", "/v1/demand/quiet", "consumer,allocation,units,ncpus\n/Research,r,1,1\n")
	ahead.Store(61e6)
	s.must(200, "PUT", "/v1/demand/loud", "consumer,allocation,units,ncpus\n/Research,q,1,1\n")
	s.cycle()
	families, _ := scraped(t, s)
	for source, want := range map[string]float64{"quiet": 1, "loud": 0} {
		if got, n := value(families["stint_source_silent"], "source="+source); got != want || n != 1 {
			t.Errorf("source %s: silent %v, expected %v", source, got, want)
		}
	}
}

// TestShownSources shows those that were heard longest ago.
func TestShownSources(t *testing.T) {
	list := []engine.SourceView{{Name: "a", HeardUS: 3}, {Name: "b", HeardUS: 1}, {Name: "c", HeardUS: 2},
		{Name: "d", HeardUS: 2}}
	for most, want := range []string{"", "b", "bc", "bcd", "bcda", "bcda"} {
		got := ""
		for _, source := range shownSources(list, most) {
			got += source.Name
		}
		if got != want {
			t.Errorf("of four sources %d are %s, expected %s", most, got, want)
		}
	}
	if list[0].Name != "a" {
		t.Error("readers share the list; it was sorted in place")
	}
}
