package cluster

import (
	"strings"
	"testing"

	"github.com/stintd/stint/core/plan"
)

// exclusivePolicy is a slot plan with a placement.
func exclusivePolicy(t *testing.T, placement string) *plan.Policy {
	t.Helper()
	p, err := plan.Parse("policy.yaml", []byte(strings.ReplaceAll(`
stint: 1
dimensions: [slots]
resource_groups: [{name: g, select: "select(slots > 0)"}]
consumers: [{path: /A}]
slot_plans:
  - resource_group: g
    placement: PLACEMENT
    consumers: [{path: /A, policy: ownership, owns: 1}]
`, "PLACEMENT", placement)))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestExclusiveGangs refuses gangs where hosts are for one allocation alone, and a policy that would have them there.
func TestExclusiveGangs(t *testing.T) {
	gang := func() *DemandTable {
		table := gangs(demandTable("/A a - -"), 2)
		table.Size = [][]int64{{1}}
		return table
	}
	s, err := New(exclusivePolicy(t, "exclusive"))
	if err != nil {
		t.Fatal(err)
	}
	const refused = `demand: row 1, column min_units, value "2": the hosts of plan g are for one allocation or consumer each (placement: exclusive), where there are no gangs`
	if err := s.SetDemand("s", gang()); err == nil || err.Error() != refused {
		t.Errorf("got %v, want %s", err, refused)
	}
	if s, err = New(exclusivePolicy(t, "stacked")); err != nil {
		t.Fatal(err)
	}
	if err := s.SetDemand("s", gang()); err != nil {
		t.Fatal(err)
	}
	const kept = `policy.yaml: the hosts of plan g would be for one allocation or consumer each (placement: exclusive), and /A asks for a gang (min_units 2) there`
	if err := s.CheckPolicy(exclusivePolicy(t, "exclusive"), true); err == nil || err.Error() != kept {
		t.Errorf("got %v, want %s", err, kept)
	}
	if err := s.CheckPolicy(exclusivePolicy(t, "balanced"), false); err != nil {
		t.Error(err)
	}
	single := gang()
	single.MinUnits[0] = 1
	if err := s.SetDemand("s", single); err != nil {
		t.Fatal(err)
	}
	if err := s.CheckPolicy(exclusivePolicy(t, "exclusive"), true); err != nil {
		t.Errorf("where nobody asks for a gang any more: %v", err)
	}
}
