package simulation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/ingest/table"
)

const policy = `
stint: 1
interval: 1m
dimensions: [ncpus]
resource_groups: [{name: All, select: "select(ncpus > 0)"}]
consumers: [{path: /Owner}, {path: /Other, reclaim_grace: 5m}, {path: /Third}]
md_plans:
  - name: grid
    resource_groups: [{name: All}]
    share_reclaim: false
    consumers:
      - {path: /Owner, own: [{group: All, hosts: 1}]}
      - {path: /Other}
      - {path: /Third}
`

const startUS = 1_767_600_000_000_000 // 2026-01-05T08:00:00Z

func demand(t *testing.T, text string) *cluster.DemandTable {
	t.Helper()
	d, err := table.ReadDemand(strings.NewReader(text),
		table.Options{Name: "demand", Format: table.CSV, Dimensions: []string{"ncpus"}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func hosts(t *testing.T, text string) *cluster.HostTable {
	t.Helper()
	h, err := table.ReadHosts(strings.NewReader(text),
		table.Options{Name: "hosts", Format: table.CSV, Dimensions: []string{"ncpus"}})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// site is a cluster of hosts of 4 on which demand of others runs after a cycle.
func site(t *testing.T, policy, hostsText, others string) *cluster.State {
	t.Helper()
	p, err := plan.Parse("plan.yaml", []byte(policy))
	if err != nil {
		t.Fatal(err)
	}
	s, err := cluster.New(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.SetHosts(hosts(t, hostsText), true); err != nil {
		t.Fatal(err)
	}
	if err := s.SetDemand("feed", demand(t, others)); err != nil {
		t.Fatal(err)
	}
	var r cycle.Runner
	var out decision.Cycle
	r.Run(s, startUS, &out)
	return s
}

func at(minutes int) string {
	return time.UnixMicro(startUS).UTC().Add(time.Duration(minutes) * time.Minute).Format(time.RFC3339)
}

func is(t *testing.T, what string, got *string, want string) {
	t.Helper()
	if of(got) != want {
		t.Errorf("%s: %q, expected %q", what, of(got), want)
	}
}

func run(t *testing.T, s *cluster.State, a *Asked, o Options) *Answer {
	t.Helper()
	if o.CyclesMax == 0 {
		o.CyclesMax = 10_000
	}
	got, err := Run(context.Background(), s, startUS+minuteUS, a, o)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

const hour = int64(3600e6)

// TestRecall: an owner's host is lent, and comes back after the borrower's grace of 5 minutes.
func TestRecall(t *testing.T) {
	s := site(t, policy, "host,ncpus\nh1,4\nh2,4\nh3,4\n", "consumer,allocation,units,ncpus\n/Other,a,11,1\n")
	got := run(t, s, &Asked{Demand: demand(t, "consumer,allocation,units,ncpus\n/Owner,mine,4,1\n")},
		Options{HorizonUS: hour})
	if len(got.Rows) != 1 || got.Cycle != 2 || got.Now != at(1) || got.Drawn || !got.Whole || got.Unknown != 11 ||
		got.Others != 0 {
		t.Fatalf("%+v", got)
	}
	r := got.Rows[0]
	if r.Now != 1 || r.Hosts != 1 || r.Most != 4 || len(r.Short) != 1 || r.Short[0].Reason != "waiting_for_reclaim" ||
		r.Short[0].Units != 3 {
		t.Errorf("%+v", r)
	}
	is(t, "first", r.First.P50, at(1))
	is(t, "all", r.All.P50, at(6))
	if len(got.Stops) != 1 {
		t.Fatalf("%+v", got.Stops)
	}
	stop := got.Stops[0]
	if stop.Consumer != "/Other" || *stop.Allocation != "a" || stop.Reason != "recall" || stop.Earliest != at(6) ||
		stop.Units != 3 {
		t.Errorf("%+v", stop)
	}
	units := int64(0)
	for _, f := range r.From {
		units += f.Units
	}
	if units != 4 {
		t.Errorf("%+v", r.From)
	}
}

// TestEnds: units of others end when their run time is over, and what is asked for takes their place; its own end, too.
func TestEnds(t *testing.T) {
	const others = "consumer,allocation,units,ncpus\n/Other,a,8,1\n/Third,b,4,1\n"
	three := "host,ncpus\nh1,4\nh2,4\nh3,4\n"
	free := strings.Replace(policy, ", own: [{group: All, hosts: 1}]", "", 1)
	asked := func(text string) *Asked {
		a := &Asked{Demand: demand(t, text), Runtimes: Runtimes{}}
		if err := a.Runtimes.Add("/Third", map[string]string{"p50": "30m"}); err != nil {
			t.Fatal(err)
		}
		return a
	}
	got := run(t, site(t, free, three, others), asked("consumer,allocation,units,ncpus\n/Owner,mine,3,1\n"),
		Options{HorizonUS: 4 * hour})
	r := got.Rows[0]
	if r.Now != 0 || r.Most != 3 || got.Unknown != 8 || len(got.Stops) != 0 || len(r.From) != 1 ||
		r.From[0].Units != 3 || r.From[0].Origin != "public_pool" {
		t.Errorf("%+v", got)
	}
	is(t, "all", r.All.P50, at(30))
	is(t, "all, all the same", r.All.P90, at(30))
	if got.Cycles > 10 {
		t.Error("cycles that decide nothing:", got.Cycles)
	}

	// 9 units that run for 10 minutes, 4 at a time.
	a := asked("consumer,allocation,units,ncpus\n/Owner,mine,9,1\n")
	a.RuntimeUS = []int64{600e6}
	r = run(t, site(t, free, three, others), a, Options{HorizonUS: 4 * hour}).Rows[0]
	is(t, "first", r.First.P50, at(30))
	is(t, "all", r.All.P50, at(50))

	// A host more: at once.
	a = asked("consumer,allocation,units,ncpus\n/Owner,mine,3,1\n")
	a.Hosts = hosts(t, "host,ncpus\nh9,4\n")
	r = run(t, site(t, free, three, others), a, Options{}).Rows[0]
	is(t, "all", r.All.P50, at(1))
	if r.Now != 3 || r.Hosts != 1 {
		t.Errorf("%+v", r)
	}

	// Not as far as was looked.
	r = run(t, site(t, free, three, others), asked("consumer,allocation,units,ncpus\n/Owner,mine,3,1\n"),
		Options{HorizonUS: 20 * 60e6}).Rows[0]
	is(t, "all", r.All.P50, "")
	if len(r.Short) != 1 || r.Short[0].Units != 3 {
		t.Errorf("%+v", r)
	}
}

// TestGang: a gang has its first unit when so many fit as must start together, by ends or by a recall of all of them;
// and of a gang that is stopped for others all stops.
func TestGang(t *testing.T) {
	const three = "host,ncpus\nh1,4\nh2,4\nh3,4\n"
	free := strings.Replace(policy, ", own: [{group: All, hosts: 1}]", "", 1)
	for _, c := range []struct {
		least            int // of 6 units
		first, all, from string
	}{
		{1, at(1), at(60), "at once"},        // one is free, 3 end after 30 minutes, the others after 60
		{4, at(30), at(60), "4 are free"},    // then
		{5, at(60), at(60), "all that ends"}, // then
	} {
		s := site(t, free, three, "consumer,allocation,units,ncpus\n/Other,a,8,1\n/Third,b,3,1\n")
		a := &Asked{Demand: demand(t, fmt.Sprintf("consumer,allocation,units,min_units,ncpus\n/Owner,mine,6,%d,1\n",
			c.least)),
			Runtimes: Runtimes{}}
		for path, time := range map[string]string{"/Third": "30m", "/Other": "60m"} {
			if err := a.Runtimes.Add(path, map[string]string{"p50": time}); err != nil {
				t.Fatal(err)
			}
		}
		r := run(t, s, a, Options{HorizonUS: 2 * hour}).Rows[0]
		is(t, c.from+": first", r.First.P50, c.first)
		is(t, c.from+": all", r.All.P50, c.all)
		if c.least > 1 && (r.Now != 0 || len(r.Short) != 1 || r.Short[0].Reason != "gang" || r.Short[0].Units != 6) {
			t.Errorf("%s: %+v", c.from, r)
		}
	}

	s := site(t, policy, three, "consumer,allocation,units,ncpus\n/Other,a,11,1\n")
	got := run(t, s, &Asked{Demand: demand(t, "consumer,allocation,units,min_units,ncpus\n/Owner,mine,4,4,1\n")},
		Options{HorizonUS: hour})
	is(t, "recalled: first", got.Rows[0].First.P50, at(6))
	is(t, "recalled: all", got.Rows[0].All.P50, at(6))
	if len(got.Stops) != 1 || got.Stops[0].Units != 3 || got.Stops[0].Earliest != at(6) {
		t.Errorf("recalled: %+v", got.Stops)
	}

	s = site(t, policy, three, "consumer,allocation,units,min_units,ncpus\n/Other,a,11,11,1\n")
	got = run(t, s, &Asked{Demand: demand(t, "consumer,allocation,units,ncpus\n/Owner,mine,4,1\n")},
		Options{HorizonUS: hour})
	stops := map[string]int64{}
	for _, stop := range got.Stops {
		stops[stop.Reason] += stop.Units
	}
	if len(stops) != 2 || stops["recall"] != 3 || stops["gang"] != 8 {
		t.Errorf("a gang that stops: %+v", got.Stops)
	}
}

// TestDrawn: with a spread of run times the times are percentiles, in order, and the same each time.
func TestDrawn(t *testing.T) {
	free := strings.Replace(policy, ", own: [{group: All, hosts: 1}]", "", 1)
	play := func() *Answer {
		a := &Asked{Demand: demand(t, "consumer,allocation,units,ncpus\n/Owner,mine,2,1\n"), Runtimes: Runtimes{}}
		if err := a.Runtimes.Add("/", map[string]string{"p50": "10m", "p100": "2h"}); err != nil {
			t.Fatal(err)
		}
		s := site(t, free, "host,ncpus\nh1,4\nh2,4\n", "consumer,allocation,units,ncpus\n/Other,a,8,1\n")
		return run(t, s, a, Options{HorizonUS: 4 * hour, Plays: 40})
	}
	got, again := play(), play()
	r := got.Rows[0]
	if !got.Drawn || got.Plays != 40 || got.Unknown != 0 {
		t.Fatalf("%+v", got)
	}
	if !(of(r.All.P10) < of(r.All.P50) && of(r.All.P50) < of(r.All.P90) && of(r.First.P50) < of(r.All.P50)) ||
		of(r.All.P90) > at(121) {
		t.Errorf("%s %s %s, first %s", of(r.All.P10), of(r.All.P50), of(r.All.P90), of(r.First.P50))
	}
	if of(r.All.P10) != of(again.Rows[0].All.P10) || of(r.All.P90) != of(again.Rows[0].All.P90) {
		t.Error("another answer the second time")
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	s := site(t, free, "host,ncpus\nh1,4\n", "consumer,allocation,units,ncpus\n/Other,a,4,1\n")
	a := &Asked{Demand: demand(t, "consumer,allocation,units,ncpus\n/Owner,mine,2,1\n"),
		Runtimes: Runtimes{"/": {{partsWhole / 2, 600e6}, {partsWhole, 900e6}}}}
	o := Options{HorizonUS: hour, Plays: 5, CyclesMax: 100}
	if none, err := Run(ended, s.Clone(), startUS+minuteUS, a, o); !errors.Is(err, ErrStopped) || none != nil {
		t.Errorf("a simulation without time: %+v %v", none, err)
	}
	cut, err := Run(overAfterOne{context.Background()}, s, startUS+minuteUS, a, o)
	if err != nil || cut.Whole || cut.Drawn || cut.Plays != 0 || cut.Cycles != 1 || cut.Rows[0].All.P50 != nil {
		t.Errorf("%+v %v", cut, err)
	}
}

// overAfterOne is done when it is asked between two cycles, and not within one.
type overAfterOne struct{ context.Context }

// Err is that of a context that is done.
func (overAfterOne) Err() error { return context.Canceled }

// TestNext: what runs at the next cycle still runs in it, however long ago the last one was; else somebody would have
// told.
func TestNext(t *testing.T) {
	free := strings.Replace(policy, ", own: [{group: All, hosts: 1}]", "", 1)
	s := site(t, free, "host,ncpus\nh1,4\nh2,4\n", "consumer,allocation,units,ncpus\n/Other,a,8,1\n")
	a := &Asked{Demand: demand(t, "consumer,allocation,units,ncpus\n/Owner,mine,2,1\n"), Runtimes: Runtimes{}}
	if err := a.Runtimes.Add("/Other", map[string]string{"p50": "10m", "p100": "2h"}); err != nil {
		t.Fatal(err)
	}
	got, err := Run(context.Background(), s, startUS+hour, a, Options{HorizonUS: hour, Plays: 10, CyclesMax: 1000})
	if err != nil || got.Rows[0].Now != 0 || !(of(got.Rows[0].First.P10) > at(60)) {
		t.Errorf("%+v %v", got, err)
	}
}

// TestMemory: in a plan with a half-life somebody has its turn when the others have used enough, though nothing happens
// until then: in the cycle at which cycles of every minute would give it the unit, or within a sixteenth of the
// half-life.
func TestMemory(t *testing.T) {
	turns := strings.NewReplacer(", own: [{group: All, hosts: 1}]", "", "share_reclaim: false",
		"share: {half_life: 6h, weight: 10}").Replace(policy)
	others := "consumer,allocation,units,ncpus\n/Other,a,1,1\n/Third,b,1,1\n"
	mine := "consumer,allocation,units,ncpus\n/Owner,mine,1,1\n"
	got := run(t, site(t, turns, "host,ncpus\nh1,2\n", others), &Asked{Demand: demand(t, mine)},
		Options{HorizonUS: 24 * hour})
	if got.Cycles > 200 {
		t.Error("cycles that decide nothing:", got.Cycles)
	}
	s := site(t, turns, "host,ncpus\nh1,2\n", others)
	if err := s.SetDemand("mine", demand(t, mine)); err != nil {
		t.Fatal(err)
	}
	var r cycle.Runner
	var out decision.Cycle
	nowUS := int64(startUS)
	for nowUS < startUS+24*hour {
		nowUS += minuteUS
		if r.Run(s, nowUS, &out); len(out.Grants.Units) > 0 {
			break
		}
	}
	first, err := time.Parse(time.RFC3339, of(got.Rows[0].First.P50))
	if late := first.UnixMicro() - nowUS; err != nil || late < 0 || late > 6*hour/16+2*minuteUS {
		t.Errorf("%v is %d µs after the cycle that gives it: %v", first, late, err)
	}
}

// TestWindow: what a window of the evening brings is found though nothing happens until then.
func TestWindow(t *testing.T) {
	night := strings.Replace(policy, "    consumers:\n      - {path: /Owner, own: [{group: All, hosts: 1}]}",
		`    windows:
      - {name: day, hours: "06:00-20:00", consumers: [{path: /Owner, share: {limit: {ncpus: 1}}}]}
      - {name: night, hours: "20:00-06:00"}
    consumers:
      - {path: /Owner}`, 1)
	s := site(t, night, "host,ncpus\nh1,4\n", "consumer,allocation,units,ncpus\n/Other,a,1,1\n")
	got := run(t, s, &Asked{Demand: demand(t, "consumer,allocation,units,ncpus\n/Owner,mine,3,1\n")},
		Options{HorizonUS: 24 * hour})
	r := got.Rows[0]
	if r.Now != 1 || r.Short[0].Reason != "share_limit" {
		t.Errorf("%+v", r)
	}
	is(t, "all", r.All.P50, at(12*60))
	if got.Cycles > 8 {
		t.Error("cycles that decide nothing:", got.Cycles)
	}
}

func TestRefused(t *testing.T) {
	s := site(t, policy, "host,ncpus\nh1,4\n", "consumer,allocation,units,ncpus\n/Other,a,4,1\n")
	_, err := Run(context.Background(), s, startUS,
		&Asked{Demand: demand(t, "consumer,allocation,units,ncpus\n/Other,a,1,1\n")}, Options{})
	if err == nil || !strings.Contains(err.Error(), `belongs to source "feed" already`) {
		t.Error(err)
	}
	for _, c := range []struct {
		path, percentile, time, want string
	}{
		{"Risk", "p50", "1m", "begins with a slash"},
		{"/Risk", "p0", "1m", "must be above 0"},
		{"/Risk", "p101", "1m", "must be above 0"},
		{"/Risk", "half", "1m", "must be above 0"},
		{"/Risk", "pNaN", "1m", "must be above 0"},
		{"/Risk", "p50", "0s", "must be a duration"},
		{"/Risk", "p50", "-1m", "must be a duration"},
		{"/Risk", "p50", "soon", "must be a duration"},
		{"/Risk", "p50", "200000h", "must be a duration"},
	} {
		if err := (Runtimes{}).Add(c.path, map[string]string{c.percentile: c.time}); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s %s: %v, expected %q", c.path, c.percentile, c.time, err, c.want)
		}
	}
	r := Runtimes{}
	if err := r.Add("/A", map[string]string{"p50": "10m", "p90": "5m"}); err == nil {
		t.Error("a higher percentile is shorter")
	}
	if err := r.Add("/A", map[string]string{"p50": "10m"}); err != nil {
		t.Error(err)
	}
	if err := r.Add("/A", map[string]string{"p50": "10m"}); err == nil {
		t.Error("given twice")
	}
	if err := r.Add("/B", nil); err == nil {
		t.Error("without percentiles")
	}
}

// TestLonger holds what is left to a unit of an age against the distribution's definition, by hand.
func TestLonger(t *testing.T) {
	list := []quantile{{500_000, 100}, {900_000, 200}, {partsWhole, 1000}}
	for _, c := range []struct{ age, part, want int64 }{
		{0, 500_000, 100}, {0, 250_000, 50}, {0, 900_000, 200}, {0, 999_999, 999},
		// of those that outlast 100, half are between 100 and 162
		{100, 0, 100}, {100, 800_000, 200}, {100, 500_000, 162},
		{150, 0, 150}, {1000, 500_000, 1000}, {5000, 1, 5000},
	} {
		if got := longer(list, c.age, c.part); got != c.want {
			t.Errorf("age %d, part %d: %d, expected %d", c.age, c.part, got, c.want)
		}
	}
	if got := longer([]quantile{{partsWhole, 60}}, 70, 1); got != 70 {
		t.Error("what has outlasted all that is known:", got)
	}
}
