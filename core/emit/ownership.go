package emit

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/owner"
)

// Ownership adds the parts of hosts that a plan's pass changed.
func Ownership(t *decision.Ownership, p *cluster.Plan, rows *owner.Decisions) {
	first := t.Extend(rows.Consumer.Len())
	for i, c := range rows.Consumer.Values() {
		at, action, amount := first+i, decision.ActionAssigned, rows.Amount.At(i)
		if amount < 0 {
			action, amount = decision.ActionTrimmed, -amount
		}
		t.Plan.Code[at], t.Consumer.Code[at], t.Host.Code[at] = p.Index, int32(c), int32(rows.Host.At(i))
		t.Action.Code[at], t.Dimension.Code[at], t.Amount[at] = action, rows.Dimension.At(i), amount
	}
}
