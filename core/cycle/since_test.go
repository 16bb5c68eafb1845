package cycle_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/ingest/table"
)

// sincePolicies are a slot plan and an MD plan over four slots, and over four units of a dimension.
var sincePolicies = map[string]string{
	"slots": `
stint: 1
dimensions: [slots]
resource_groups: [{name: Grid, select: "select(slots > 0)"}]
consumers: [{path: /A}]
slot_plans:
  - {resource_group: Grid, consumers: [{path: /A, policy: share_ratio, share: {ratio: 1}}]}
`,
	"md": `
stint: 1
dimensions: [slots]
resource_groups: [{name: Grid, select: "select(slots > 0)"}]
consumers: [{path: /A}]
md_plans:
  - {name: Grid, resource_groups: [{name: Grid}], consumers: [{path: /A, share: {ratio: 1}}]}
`,
}

// newSince is a state under a policy with one host of four slots, and wants has a consumer want units of one each.
func newSince(t *testing.T, text string) *cluster.State {
	t.Helper()
	p, err := plan.Parse("policy", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s, err := cluster.New(p)
	if err != nil {
		t.Fatal(err)
	}
	hosts, err := table.ReadHosts(strings.NewReader("host,slots\nh1,4\n"),
		table.Options{Format: table.CSV, Dimensions: p.Dimensions})
	if err == nil {
		err = s.SetHosts(hosts, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func wants(t *testing.T, s *cluster.State, consumer string, units int64) {
	t.Helper()
	demand, err := table.ReadDemand(strings.NewReader(fmt.Sprintf(
		"consumer,allocation,units,slots\n%s,a,%d,1\n", consumer, units)),
		table.Options{Format: table.CSV, Dimensions: s.Policy.Dimensions})
	if err == nil {
		err = s.SetDemand(consumer, demand)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestShortSince follows since when a sub-allocation is short: from the first cycle of those in a row that leave it
// so, also where the state was saved and loaded in between.
func TestShortSince(t *testing.T) {
	for kind, text := range sincePolicies {
		t.Run(kind, func(t *testing.T) {
			s := newSince(t, text)
			var runner cycle.Runner
			var out decision.Cycle
			for n, step := range []struct{ wanted, short, since int64 }{
				{4, 0, 0}, {6, 2, 2}, {6, 2, 2}, {9, 5, 2}, {4, 0, 0}, {5, 1, 6}, {3, 0, 0}, {7, 3, 8},
			} {
				wants(t, s, "/A", step.wanted)
				runner.Run(s, int64(n+1)*60e6, &out)
				short, since := int64(0), int64(0)
				for row, units := range out.Shortfalls.UnitsShort {
					if short += units; out.Shortfalls.SinceNull[row] {
						t.Fatalf("cycle %d: nobody knows since when", n+1)
					}
					since = out.Shortfalls.Since[row] / 60e6
				}
				if short != step.short || since != step.since {
					t.Errorf("cycle %d: short of %d since cycle %d, want %d since %d", n+1, short, since, step.short,
						step.since)
				}
				var err error
				s, err = s.Copy()
				if err != nil {
					t.Fatal(err)
				}
				runner = cycle.Runner{}
			}
		})
	}
}

// TestTakerWait has an owner take back two slots that it lent, one a cycle: for the second one it has waited a cycle.
func TestTakerWait(t *testing.T) {
	s := newSince(t, `
stint: 1
dimensions: [slots]
resource_groups: [{name: Grid, select: "select(slots > 0)"}]
consumers: [{path: /A}, {path: /B}]
slot_plans:
  - resource_group: Grid
    reclaim_budget: 1
    consumers:
      - {path: /A, policy: ownership, owns: 4, lend: {limit: 4}}
      - {path: /B, policy: ownership, owns: 0, borrow: {}}
`)
	var runner cycle.Runner
	var out decision.Cycle
	wants(t, s, "/B", 4)
	runner.Run(s, 60e6, &out)
	wants(t, s, "/A", 2)
	for n, want := range []float64{0, 60} {
		runner.Run(s, int64(n+2)*60e6, &out)
		r := &out.Reclaims
		if len(r.Units) != 1 || r.TakerWaitNull[0] || r.TakerWait[0] != want {
			t.Fatalf("cycle %d: %v units are taken back, their taker waited %v s (null: %v), want 1 and %v", n+2,
				r.Units, r.TakerWait, r.TakerWaitNull, want)
		}
	}
}
