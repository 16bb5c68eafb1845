package cycle_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// worker is a host of ten CPUs in a pool in which A goes before B, and what was decided there.
type worker struct {
	t      *testing.T
	s      *cluster.State
	runner cycle.Runner
	out    decision.Cycle
}

// lostPolicy is a policy by which what B gets comes back two minutes after A wants it. b is B's path, renamed what
// stands behind it, more are settings of the plan.
func lostPolicy(t *testing.T, b, renamed, more string) *plan.Policy {
	t.Helper()
	p, err := plan.Parse("plan.yaml", fmt.Appendf(nil, `stint: 1
dimensions: [cpu]
resource_groups: [{name: all, select: "select(cpu > 0)"}]
consumers: [{path: /A}, {path: /A/x}, {path: %s, reclaim_grace: 2m%s}]
md_plans: [{name: p, %sresource_groups: [{name: all}], consumers: [{path: /A, share: {priority: 1}}, {path: /A/x}, {path: %s}]}]
`, b, renamed, more, b))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func newWorker(t *testing.T, more string) *worker {
	t.Helper()
	s, err := cluster.New(lostPolicy(t, "/B", "", more))
	if err == nil {
		err = s.SetHosts(&cluster.HostTable{Rows: 1, Host: lostNames("h"), Size: [][]int64{{10}}}, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &worker{t: t, s: s}
}

func lostNames(words ...string) cluster.TextColumn {
	c := cluster.TextColumn{Names: new(cluster.Names)}
	for _, w := range words {
		c.Code = append(c.Code, c.Names.InternString(w))
	}
	return c
}

// wants has consumers want units of one CPU each, told as "/A/x 4".
func (w *worker) wants(rows ...string) {
	w.t.Helper()
	d := &cluster.DemandTable{Size: make([][]int64, 1)}
	var consumers []string
	for _, row := range rows {
		var path string
		var units int64
		if _, err := fmt.Sscan(row, &path, &units); err != nil {
			w.t.Fatal(err)
		}
		consumers = append(consumers, path)
		d.Rows++
		d.Units, d.Size[0] = append(d.Units, units), append(d.Size[0], 1)
	}
	d.Consumer, d.Allocation = lostNames(consumers...), lostNames(consumers...)
	d.Sub, d.Plan, d.Requirement = lostNames(), lostNames(), lostNames()
	if err := w.s.SetDemand("s", d); err != nil {
		w.t.Fatal(err)
	}
}

// gives has a client give units of /B back, and say that they are done or not.
func (w *worker) gives(units int64, done bool) {
	w.t.Helper()
	h := &cluster.HoldingTable{Rows: 1, Consumer: lostNames("/B"), Allocation: lostNames("/B"), Sub: lostNames(),
		Host: lostNames("h"), Units: []int64{units}, Done: []bool{done}}
	if _, _, err := w.s.Release(h); err != nil {
		w.t.Fatal(err)
	}
}

// at runs a cycle so many seconds after the first, and looks what was lost in it and what consumers have lost by then.
func (w *worker) at(seconds int64, lost float64, consumers string) {
	w.t.Helper()
	w.runner.Run(w.s, 1_700_000_000e6+seconds*1e6, &w.out)
	sum := 0.0
	for _, v := range w.out.Releases.UnitSecondsLost {
		sum += v
	}
	if got := decision.Seconds(w.out.Summary.UnitMSLost); got != lost || sum != lost {
		w.t.Errorf("after %d s: %g unit-seconds lost, by releases %g, want %g", seconds, got, sum, lost)
	}
	var rows []string
	for i, v := range w.out.Consumers.UnitSecondsLost {
		rows = append(rows, fmt.Sprintf("%s %g", w.out.Consumers.Consumer.At(i), v))
	}
	if got := strings.Join(rows, ", "); got != consumers {
		w.t.Errorf("after %d s: %s, want %s", seconds, got, consumers)
	}
}

// reclaimed is a worker on which B has ten units since 0 s, all of them under reclaim for A since 60 s.
func reclaimed(t *testing.T, more string) *worker {
	w := newWorker(t, more)
	w.wants("/B 10")
	w.at(0, 0, "/A 0, /A/x 0, /B 0")
	w.wants("/B 10", "/A/x 10")
	w.at(60, 0, "/A 0, /A/x 0, /B 0")
	if w.out.Summary.UnitsReclaimed != 10 {
		t.Fatalf("%d units under reclaim, want 10", w.out.Summary.UnitsReclaimed)
	}
	return w
}

// TestLost: what comes back by a reclaim had run since its grant; each figure is worked out beside it.
func TestLost(t *testing.T) {
	t.Run("at the deadline", func(t *testing.T) {
		w := reclaimed(t, "")
		w.at(120, 0, "/A 0, /A/x 0, /B 0")
		w.at(180, 1800, "/A 0, /A/x 0, /B 1800") // 10 units × 180 s
		w.at(240, 0, "/A 0, /A/x 0, /B 1800")    // a cycle loses nothing, what was lost stays so
	})
	t.Run("units of two ages", func(t *testing.T) {
		w := newWorker(t, "")
		w.wants("/B 4")
		w.at(0, 0, "/A 0, /A/x 0, /B 0")
		w.wants("/B 10")
		w.at(60, 0, "/A 0, /A/x 0, /B 0")
		w.wants("/B 10", "/A/x 10")
		w.at(90, 0, "/A 0, /A/x 0, /B 0")
		w.at(210, 4*210+6*150, "/A 0, /A/x 0, /B 1740")
	})
	t.Run("a client gives some back before", func(t *testing.T) {
		w := reclaimed(t, "")
		w.gives(3, false)
		w.at(100, 300, "/A 0, /A/x 0, /B 300")          // 3 × 100 s
		w.at(180, 7*180, "/A 0, /A/x 0, /B 1560")       // the other 7
		w.wants("/A/x 10")                              // B wants nothing any more
		w.at(200, 0, "/A 0, /A/x 0, /B 1560")           //
		w.wants("/A/x 2", "/B 8")                       // A gives up 8, which are not wanted any more: no loss
		w.at(300, 0, "/A 0, /A/x 0, /B 1560")           //
		w.at(320, 0, "/A 0, /A/x 0, /B 1560")           //
		w.wants("/A/x 10", "/B 8")                      // and wants them back
		w.at(400, 0, "/A 0, /A/x 0, /B 1560")           //
		w.at(520, 8*(520-300), "/A 0, /A/x 0, /B 3320") // they ran since 300 s
	})
	t.Run("what is done, or not wanted, is not lost", func(t *testing.T) {
		w := reclaimed(t, "")
		w.gives(2, true)
		w.wants("/B 4", "/A/x 10") // of the 8 that are left 4 go at once
		w.at(100, 0, "/A 0, /A/x 0, /B 0")
		w.at(180, 4*180, "/A 0, /A/x 0, /B 720")
	})
	t.Run("clients confirm", func(t *testing.T) {
		w := reclaimed(t, "release: confirmed, ")
		w.at(200, 0, "/A 0, /A/x 0, /B 0") // overdue, and still running
		w.gives(10, false)
		w.at(1260, 10*1260, "/A 0, /A/x 0, /B 12600")
	})
	t.Run("a host that is lost", func(t *testing.T) {
		w := reclaimed(t, "")
		if err := w.s.SetHosts(&cluster.HostTable{Host: lostNames(), Size: [][]int64{{}}}, true); err != nil {
			t.Fatal(err)
		}
		w.at(180, 10*180, "/A 0, /A/x 0, /B 1800") // due comes before lost in settle
	})
}

// TestLostKept: what was lost is known after the state was saved and loaded, cloned, and under another policy.
func TestLostKept(t *testing.T) {
	w := reclaimed(t, "")
	w.gives(3, false) // is known with the next cycle, also where the state was saved before it
	saved, err := w.s.Copy()
	if err != nil {
		t.Fatal(err)
	}
	w.s, w.runner = saved, cycle.Runner{}
	w.at(100, 300, "/A 0, /A/x 0, /B 300")
	if w.s, err = w.s.Copy(); err != nil {
		t.Fatal(err)
	}
	w.s, w.runner = w.s.Clone(), cycle.Runner{}
	w.at(180, 7*180, "/A 0, /A/x 0, /B 1560")
	w.wants()
	w.at(200, 0, "/A 0, /A/x 0, /B 1560")
	for _, c := range []struct{ b, renamed, consumers string }{
		{"/A/b", ", renamed_from: /B", "/A 1560, /A/x 0, /A/b 1560"}, // it is the same consumer elsewhere
		{"/C", "", "/A 0, /A/x 0, /C 0"},
		{"/A/b", "", "/A 1560, /A/x 0, /A/b 1560"}, // it is there again
	} {
		if err := w.s.SetPolicy(lostPolicy(t, c.b, c.renamed, ""), false); err != nil {
			t.Fatal(err)
		}
		w.at(w.s.NowUS/1e6-1_700_000_000+60, 0, c.consumers)
	}
}
