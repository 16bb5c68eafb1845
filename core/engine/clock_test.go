package engine

import (
	"bytes"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const (
	secondUS = 1_000_000
	hourUS   = 3600 * secondUS
)

// clocks are a clock that is set, and time that goes on.
type clocks struct{ off, passed atomic.Int64 }

func (c *clocks) set(o *Options) {
	const noonUS = 1_000_000_000_000
	o.Clock = func() int64 { return noonUS + c.passed.Load() + c.off.Load() }
	o.Elapsed = c.passed.Load
}

const graceText = `
stint: 1
dimensions: [slots]
resource_groups: [{name: All, select: "select(slots > 0)"}]
consumers: [{path: /A}, {path: /B, reclaim_grace: 60s}]
slot_plans:
  - resource_group: All
    consumers:
      - {path: /A, policy: ownership, owns: 10, lend: {limit: 10}}
      - {path: /B, policy: ownership, owns: 0, borrow: {}}
`

// TestClockSetBack has a grace of a minute begin while the clock is an hour ahead, and puts the clock right: the grace
// ends as time passes, not an hour later. Time goes on without a step back until the clock has caught up.
func TestClockSetBack(t *testing.T) {
	var c clocks
	var log bytes.Buffer
	r := newRig(t, func(r *rig) {
		c.set(&r.o)
		r.o.Log = slog.New(slog.NewTextHandler(&log, nil))
	})
	r.must(InputPlan, "", graceText)
	r.must(InputHosts, "", "host,slots\nh1,10\n")
	r.must(InputDemand, "one", "consumer,allocation,units\n/B,b,10\n")
	r.cycle()
	c.off.Store(hourUS)
	c.passed.Add(secondUS)
	r.must(InputDemand, "two", "consumer,allocation,units\n/A,a,10\n")
	if got := r.cycle().Summary.UnitsReclaimed; got != 10 {
		t.Fatal("reclaimed:", got)
	}
	c.off.Store(0)
	var took int64
	last := r.View().Last.Summary.NowUS
	for took = 0; r.held("two") == 0 && took < 200; took += 5 {
		c.passed.Add(5 * secondUS)
		s := r.cycle().Summary
		if on := s.NowUS - last; on < 4*secondUS || on > 5*secondUS {
			t.Fatalf("now goes on by %d µs in 5 s", on)
		}
		last = s.NowUS
	}
	if took < 60 || took > 80 {
		t.Errorf("a grace of 60 s took %d s", took)
	}
	if behind := r.Stats().ClockBehind; behind < 59*time.Minute || behind > time.Hour {
		t.Error("behind:", behind)
	}
	want := r.View().Last.Summary
	r.restart() // now is in the records
	if got := r.View().Last.Summary; got.NowUS != want.NowUS || got.Digest != want.Digest {
		t.Errorf("after a restart %+v, before %+v", got, want)
	}
	for range 11 {
		c.passed.Add(hourUS)
		s := r.cycle().Summary
		if s.NowUS <= last {
			t.Fatal("now stands still")
		}
		last = s.NowUS
	}
	if clock := r.o.Clock(); last != clock || r.Stats().ClockBehind != 0 {
		t.Errorf("now is %d, the clock %d", last, clock)
	}
	r.stop()
	for _, want := range []string{"the clock has gone ahead", "ahead=1h0m0s", "the clock is behind the last cycle",
		"the clock has caught up"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %q in the log:\n%s", want, log.String())
		}
	}
}

// TestClockOfInputs has inputs come while the clock is behind: their times do not go back, and no cycle is before them.
func TestClockOfInputs(t *testing.T) {
	var c clocks
	r := newRig(t, func(r *rig) { c.set(&r.o) })
	r.must(InputPlan, "", policyText)
	r.cycle()
	c.off.Store(-20 * secondUS)
	var last int64
	for range 300 {
		c.passed.Add(secondUS)
		in := &Input{Kind: InputHosts, Format: "csv", Body: []byte("host,ncpus\nh1,8\n")}
		if err := decode(in, []string{"ncpus"}); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Submit(in); err != nil {
			t.Fatal(err)
		}
		if in.AtUS <= last || in.AtUS > last+2*secondUS && last > 0 {
			t.Fatalf("an input at %d after one at %d", in.AtUS, last)
		}
		last = in.AtUS
	}
	if last != r.o.Clock() {
		t.Error("the clock has not caught up")
	}
	if now := r.cycle().Summary.NowUS; now < last {
		t.Errorf("a cycle at %d after an input at %d", now, last)
	}
}
