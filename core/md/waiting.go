package md

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// waiting says until when and for whom a sub-allocation waits: the last deadline of the victims of
// its sets, and of what leaves the parcels that units of it joined; where nothing does, of all that leaves.
func (m *Planner) waiting(sub cluster.SubID) reason {
	d, h, joined := dues{Planner: m}, &m.s.Holding, m.fairness.joinedAt[sub]
	for _, id := range m.promise.ofSub[sub] {
		d.set(id)
	}
	for _, k := range joined {
		for q := m.p.Parcels.First[k]; q != cluster.NoID; q = h.NextOnParcel[q] {
			if h.Set[q] != cluster.NoID {
				d.victim(q)
			}
		}
	}
	if d.until == 0 && len(joined) > 0 {
		return m.allDue()
	}
	return d.reason()
}

// allDue is the last deadline of all that leaves.
func (m *Planner) allDue() reason {
	if m.reason.last == nil {
		d := dues{Planner: m}
		for id, number := range m.s.Set.Number {
			if number > 0 && m.s.Set.Plan[id] == m.p.Index {
				d.set(cluster.SetID(id))
			}
		}
		r := d.reason()
		m.reason.last = &r
	}
	return *m.reason.last
}

// dues finds the last deadline of some victims; of equal ones that of the set made first, the first in
// the tree, is named.
type dues struct {
	*Planner
	until, number int64
	leaf          plan.Node
}

func (d *dues) set(id cluster.SetID) {
	for q := d.s.Set.First[id]; q != cluster.NoID; q = d.s.Holding.NextOfSet[q] {
		d.victim(q)
	}
}

func (d *dues) victim(q cluster.HoldingID) {
	h := &d.s.Holding
	leaf, due, number := d.s.Node(h.Sub[q]), h.Due[q], d.s.Set.Number[h.Set[q]]
	if due > d.until || due == d.until && (number < d.number || number == d.number && leaf < d.leaf) {
		d.until, d.leaf, d.number = due, leaf, number
	}
}

func (d *dues) reason() reason {
	r := reason{code: decision.ReasonWaitingForReclaim, dimension: decision.Null, blocker: plan.None, until: d.until}
	if d.until > 0 {
		r.blocker = d.leaf
	}
	return r
}
