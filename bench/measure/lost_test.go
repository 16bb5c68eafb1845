package measure

import (
	"testing"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

const lostPolicy = `stint: 1
dimensions: [cpu]
resource_groups: [{name: all, select: "select(cpu > 0)"}]
consumers: [{path: /A}, {path: /B}]
md_plans: [{name: p, resource_groups: [{name: all}], consumers: [{path: /A}, {path: /B}]}]
`

// TestLost: of ten units that run two minutes five are reclaimed, and come back a minute later.
func TestLost(t *testing.T) {
	p, err := plan.Parse("plan.yaml", []byte(lostPolicy))
	if err != nil {
		t.Fatal(err)
	}
	names := func(words ...string) cluster.TextColumn {
		c := cluster.TextColumn{Names: new(cluster.Names)}
		for _, w := range words {
			c.Code = append(c.Code, c.Names.InternString(w))
		}
		return c
	}
	s, err := cluster.New(p)
	if err == nil {
		err = s.SetHosts(&cluster.HostTable{Rows: 1, Host: names("h"), Size: [][]int64{{10}}}, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	none := func() cluster.TextColumn { return cluster.TextColumn{Names: new(cluster.Names)} }
	ask := func(consumers ...string) {
		t.Helper()
		d := &cluster.DemandTable{Consumer: names(consumers...), Allocation: names(consumers...), Sub: none(),
			Plan: none(), Requirement: none(), Size: make([][]int64, 1)}
		for range consumers {
			d.Rows++
			d.Units, d.Size[0] = append(d.Units, 10), append(d.Size[0], 1)
		}
		if err := s.SetDemand(source, d); err != nil {
			t.Fatal(err)
		}
	}
	var runner cycle.Runner
	var out decision.Cycle
	l := lost{batches: map[held][]batch{}}
	run := func() {
		runner.Run(s, s.NowUS+p.IntervalUS, &out)
		l.after(&out)
	}
	ask("/A")
	run()
	run()
	ask("/A", "/B")
	run()
	if out.Summary.UnitsReclaimed != 5 {
		t.Fatalf("%d units reclaimed, want 5", out.Summary.UnitsReclaimed)
	}
	run()
	if want := 5 * 3 * p.IntervalUS; l.unitUS != want {
		t.Errorf("%d unit-µs lost, want %d", l.unitUS, want)
	}
	for range 3 { // at rest nothing is lost
		run()
	}
	if want := 5 * 3 * p.IntervalUS; l.unitUS != want {
		t.Errorf("at rest %d unit-µs lost, want %d", l.unitUS, want)
	}
	ask("/B") // what is not wanted any more is no loss
	run()
	if want := 5 * 3 * p.IntervalUS; l.unitUS != want {
		t.Errorf("after demand went %d unit-µs lost, want %d", l.unitUS, want)
	}
}
