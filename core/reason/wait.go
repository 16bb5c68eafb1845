package reason

import (
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/pool"
)

// waits are until when takers wait, and for whom: for the last deadline of the victims of their sets, and of what
// leaves the parcels that units of them joined; where nothing leaves these, of all that leaves.
type waits struct {
	of   []due // by SubID
	last due   // of all that leaves
}

// due is the last deadline of some victims; of equal ones that of the set made first, of these the first in the tree.
type due struct {
	us, number int64
	leaf       plan.Node
	joins      bool // some unit joined
}

// sum finds until when all takers wait. O(sets, victims, and what is held on parcels that units joined).
func (v *waits) sum(e *Env) {
	s, h := e.State, &e.State.Holding
	v.of, v.last = column.Zeros(v.of, len(s.Sub.Wanted)), due{}
	for id, number := range s.Set.Number {
		if number == 0 || s.Set.Plan[id] != e.Plan.Index {
			continue
		}
		for q := s.Set.First[id]; q != cluster.NoID; q = h.NextOfSet[q] {
			v.last.add(s, q)
			if taker := s.Set.Taker[id]; taker != cluster.NoID {
				v.of[taker].add(s, q)
			}
		}
	}
	joined := slices.Clone(e.Promises.Joined)
	for _, j := range slices.CompactFunc(joined, func(a, b pool.Join) bool { return a == b }) {
		v.of[j.Sub].joins = true
		for q := e.Plan.Parcels.First[j.Parcel]; q != cluster.NoID; q = h.NextOnParcel[q] {
			if h.Set[q] != cluster.NoID {
				v.of[j.Sub].add(s, q)
			}
		}
	}
}

// add takes in a holding that is under reclaim.
func (d *due) add(s *cluster.State, q cluster.HoldingID) {
	h := &s.Holding
	us, number, leaf := h.Due[q], s.Set.Number[h.Set[q]], s.Node(h.Sub[q])
	if us > d.us || us == d.us && (number < d.number || number == d.number && leaf < d.leaf) {
		d.us, d.number, d.leaf = us, number, leaf
	}
}

// reason is why promised units of a sub-allocation are short, and until when.
func (v *waits) reason(sub cluster.SubID) (r verdict, untilUS int64) {
	d := v.of[sub]
	if d.us == 0 && d.joins {
		d = v.last
	}
	r = because(decision.ReasonWaitingForReclaim, "")
	if d.us > 0 {
		r.blocker = d.leaf
	}
	return r, d.us
}
