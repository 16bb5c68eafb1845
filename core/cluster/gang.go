package cluster

import "fmt"

// decidesGangs tells whether the engine of a plan's kind decides gangs (REQ-3).
func (p *Plan) decidesGangs() bool {
	switch {
	case p.Slots != nil:
		return false
	default:
		return true
	}
}

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
	case units > 0 && p >= 0 && !s.Plans[p].decidesGangs():
		return fmt.Sprintf("plan %s gives units one by one, leave this empty", s.Plans[p].Name)
	}
	return ""
}
