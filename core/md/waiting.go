package md

import (
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// waiting says until when and for whom a sub-allocation waits: the last deadline of the victims of
// its sets, and of what leaves the hosts that units of it joined; where nothing does, of all that leaves.
func (m *Planner) waiting(sub cluster.SubID) reason {
	ids := slices.Clone(m.promise.ofSub[sub])
	joined := m.fairness.joinedAt[sub]
	for _, k := range joined {
		ids = append(ids, m.leaving(m.p.Parcels.Host[k])...)
	}
	r := m.lastDue(ids)
	if r.until == 0 && len(joined) > 0 {
		m.leaving(cluster.NoID)
		r = m.lastDue(m.reason.all)
	}
	return r
}

// lastDue is the last deadline of the victims of some sets; of equal ones that of the set made first, the first in
// the tree, is named.
func (m *Planner) lastDue(ids []cluster.SetID) reason {
	r := reason{code: decision.ReasonWaitingForReclaim, dimension: decision.Null, blocker: plan.None}
	h, number := &m.s.Holding, int64(0)
	for _, id := range ids {
		for q, n := m.s.Set.First[id], m.s.Set.Number[id]; q != cluster.NoID; q = h.NextOfSet[q] {
			leaf, due := m.s.Node(h.Sub[q]), h.Due[q]
			if due > r.until || due == r.until && (n < number || n == number && leaf < r.blocker) {
				r.until, r.blocker, number = due, leaf, n
			}
		}
	}
	return r
}

// leaving lists the sets with victims on a host.
func (m *Planner) leaving(host cluster.HostID) []cluster.SetID {
	r := &m.reason
	if r.leaving == nil {
		r.leaving = map[cluster.HostID][]cluster.SetID{}
		for id, number := range m.s.Set.Number {
			if number > 0 && m.s.Set.Plan[id] == m.p.Index && m.s.Set.First[id] != cluster.NoID {
				target := m.s.Set.Target[id]
				r.leaving[target], r.all = append(r.leaving[target], cluster.SetID(id)), append(r.all, cluster.SetID(id))
			}
		}
	}
	return r.leaving[host]
}
