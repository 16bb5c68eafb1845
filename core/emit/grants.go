package emit

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// Grants adds what a plan was given in a cycle and holds still, in the order of D-14, and gives the units. Given is the
// holdings that were booked, with those of other plans or cycles, or twice, as rows of holdings are used again;
// several of one sub-allocation on one parcel are one row. O(given × log).
func Grants(t *decision.Grants, s *cluster.State, p *cluster.Plan, cycle int64, given []cluster.HoldingID) (units int64) {
	h, rows := &s.Holding, inOrder(s, p, cycle, given)
	one := func(a, b placed) bool { return h.Sub[a.q] == h.Sub[b.q] && a.parcel == b.parcel }
	count := 0
	for i := range rows {
		if i == 0 || !one(rows[i-1], rows[i]) {
			count++
		}
	}
	at := t.Extend(count) - 1
	for i := range rows {
		q, sub := rows[i].q, h.Sub[rows[i].q]
		if units += h.Units[q]; i > 0 && one(rows[i-1], rows[i]) {
			t.Units[at] += h.Units[q]
			continue
		}
		at++
		t.Plan.Code[at], t.Consumer.Code[at] = p.Index, int32(s.Sub.Consumer[sub])
		t.Allocation.Code[at], t.Sub.Code[at] = s.Alloc.Name[s.Sub.Alloc[sub]], s.Sub.Name[sub]
		t.Source.Code[at], t.Host.Code[at] = int32(s.Sub.Source[sub]), int32(p.Parcels.Host[h.Parcel[q]])
		t.Origin.Code[at], t.Pool.Code[at], t.Lender.Code[at] = h.Origin[q], int32(h.Pool[q]), int32(h.Lender[q])
		t.Units[at] = h.Units[q]
	}
	return units
}

// placed is a holding, and what the order of D-14 goes by first.
type placed struct {
	node         plan.Node
	arrival, seq int64
	parcel       cluster.ParcelID
	q            cluster.HoldingID
}

// inOrder is the holdings of a plan that were given in a cycle and are not under reclaim, in the order of D-14.
func inOrder(s *cluster.State, p *cluster.Plan, cycle int64, given []cluster.HoldingID) []placed {
	h, rows := &s.Holding, make([]placed, 0, len(given))
	for _, q := range given {
		sub := h.Sub[q]
		if sub != cluster.NoID && s.Sub.Plan[sub] == p.Index && h.Granted[q] == cycle && h.Set[q] == cluster.NoID {
			rows = append(rows, placed{s.Node(sub), s.Alloc.Arrival[s.Sub.Alloc[sub]], s.Sub.Seq[sub], h.Parcel[q], q})
		}
	}
	order := func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.arrival, b.arrival), cmp.Compare(a.seq, b.seq),
			cmp.Compare(a.parcel, b.parcel), cmp.Compare(a.q, b.q))
	}
	if !slices.IsSortedFunc(rows, order) { // several bookings
		slices.SortFunc(rows, order)
	}
	return slices.CompactFunc(rows, func(a, b placed) bool { return a.q == b.q })
}
