package cluster

import (
	"fmt"

	"github.com/stintd/stint/core/plan"
)

// gangFault is why a row may not have its min_units in a plan, "" where it may. A row that wants no units asks for no
// gang: its min_units is whatever the client had there. p is negative where the consumer is in no plan.
func (s *State) gangFault(t *DemandTable, i int, p int32) string {
	if t.MinUnits == nil || t.MinUnits[i] == 1 {
		return ""
	}
	least, units := t.MinUnits[i], t.Units[i]
	switch {
	case least < 1 || least > NumberMax:
		return "not a whole number from 1 to 2^53"
	case units > 0 && least > units:
		return fmt.Sprintf("more than the %d units of the row", units)
	case units > 0 && p >= 0 && s.Plans[p].Slots != nil && s.Plans[p].Slots.Placement == plan.Exclusive:
		return fmt.Sprintf("the hosts of plan %s are for one allocation or consumer each (placement: exclusive), "+
			"where there are no gangs", s.Plans[p].Name)
	}
	if units > 0 && p >= 0 && s.Plans[p].HasDevices() {
		return fmt.Sprintf("plan %s has devices, where there are no gangs", s.Plans[p].Name)
	}
	return ""
}

// checkGangs refuses a policy under which gangs would be in a plan with exclusive placement, which has none. node gives
// each consumer's row in the policy. O(sub-allocations, and gangs × plans).
func (s *State) checkGangs(p *plan.Policy, node []plan.Node) error {
	for sub := range s.Sub.Live() {
		n := plan.None
		if s.Sub.MinUnits[sub] > 1 {
			n = node[s.Sub.Consumer[sub]]
		}
		for i := range p.SlotPlans {
			in, name := s.Sub.Plan[sub], p.Groups[p.SlotPlans[i].Group].Name
			if n == plan.None || !p.SlotPlans[i].Member[n] || in >= 0 && s.Plans[in].Name != name {
				continue
			}
			if p.SlotPlans[i].Placement == plan.Exclusive {
				return fmt.Errorf("%s: the hosts of plan %s would be for one allocation or consumer each "+
					"(placement: exclusive), and %s asks for a gang (min_units %d) there",
					p.File, name, p.Path[n], s.Sub.MinUnits[sub])
			}
		}
	}
	return nil
}
