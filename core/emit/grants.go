package emit

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
)

// Given is the holdings of a plan that a cycle granted and that are not under reclaim, each once, in the order of D-14,
// holdings of one parcel beside each other. The argument may name holdings of other plans or cycles, or a holding
// twice, since numbers of released holdings are used again. O(given + sub-allocations × log).
func Given(s *cluster.State, p *cluster.Plan, cycle int64, given []cluster.HoldingID) []cluster.HoldingID {
	h := &s.Holding
	rows := make([]cluster.HoldingID, 0, len(given))
	for _, q := range given {
		sub := h.Sub[q]
		if sub != cluster.NoID && s.Sub.Plan[sub] == p.Index && h.Granted[q] == cycle && h.Set[q] == cluster.NoID {
			rows = append(rows, q)
		}
	}
	subs, count := subsOf(s, rows)
	if !slices.IsSortedFunc(subs, func(a, b cluster.SubID) int { return inOrder(s, a, b) }) {
		slices.SortFunc(subs, func(a, b cluster.SubID) int { return inOrder(s, a, b) })
		subs = slices.Compact(subs)
	}
	first, at := make(map[cluster.SubID]int, len(subs)), 0
	for _, sub := range subs {
		first[sub] = at
		at += count[sub]
	}
	out := make([]cluster.HoldingID, len(rows))
	for i := 0; i < len(rows); {
		sub, n := h.Sub[rows[i]], i
		for n < len(rows) && h.Sub[rows[n]] == sub {
			n++
		}
		copy(out[first[sub]:], rows[i:n])
		first[sub] += n - i
		i = n
	}
	at = 0
	for _, sub := range subs {
		byParcel(s, out[at:at+count[sub]])
		at += count[sub]
	}
	return slices.Compact(out)
}

// subsOf is the sub-allocations of some holdings, one for each run of holdings of the same, and the number of holdings
// of each sub-allocation.
func subsOf(s *cluster.State, rows []cluster.HoldingID) (subs []cluster.SubID, count map[cluster.SubID]int) {
	count = map[cluster.SubID]int{}
	last, n := cluster.SubID(cluster.NoID), 0
	for _, q := range rows {
		if sub := s.Holding.Sub[q]; sub != last {
			if n > 0 {
				count[last] += n
			}
			subs, last, n = append(subs, sub), sub, 0
		}
		n++
	}
	if n > 0 {
		count[last] += n
	}
	return subs, count
}

// inOrder orders sub-allocations as D-14 does.
func inOrder(s *cluster.State, a, b cluster.SubID) int {
	return cmp.Or(cmp.Compare(s.Node(a), s.Node(b)),
		cmp.Compare(s.Alloc.Arrival[s.Sub.Alloc[a]], s.Alloc.Arrival[s.Sub.Alloc[b]]),
		cmp.Compare(s.Sub.Seq[a], s.Sub.Seq[b]))
}

// byParcel sorts holdings by parcel, then by devices, then by number.
func byParcel(s *cluster.State, rows []cluster.HoldingID) {
	order := func(a, b cluster.HoldingID) int {
		return cmp.Or(cmp.Compare(s.Holding.Parcel[a], s.Holding.Parcel[b]),
			cmp.Compare(s.Holding.On(a), s.Holding.On(b)), cmp.Compare(a, b))
	}
	if !slices.IsSortedFunc(rows, order) {
		slices.SortFunc(rows, order)
	}
}

// Grants adds the holdings that Given lists, and gives their units. Several holdings of one sub-allocation on one
// parcel are one row, on the same devices there. Devices is the dictionary of the table's texts of devices. O(given).
func Grants(
	t *decision.Grants, s *cluster.State, p *cluster.Plan, given []cluster.HoldingID, devices *cluster.Names,
) (units int64) {
	h := &s.Holding
	one := func(a, b cluster.HoldingID) bool {
		return h.Sub[a] == h.Sub[b] && h.Parcel[a] == h.Parcel[b] && h.On(a) == h.On(b)
	}
	count := 0
	for i, q := range given {
		if i == 0 || !one(given[i-1], q) {
			count++
		}
	}
	at := t.Extend(count) - 1
	var consumer, allocation, name, source int32
	last := cluster.SubID(cluster.NoID)
	for i, q := range given {
		if units += h.Units[q]; i > 0 && one(given[i-1], q) {
			t.Units[at] += h.Units[q]
			continue
		}
		if sub := h.Sub[q]; sub != last {
			consumer, allocation = int32(s.Sub.Consumer[sub]), s.Alloc.Name[s.Sub.Alloc[sub]]
			name, source, last = s.Sub.Name[sub], int32(s.Sub.Source[sub]), sub
		}
		at++
		t.Plan.Code[at], t.Consumer.Code[at] = p.Index, consumer
		t.Allocation.Code[at], t.Sub.Code[at] = allocation, name
		t.Source.Code[at], t.Host.Code[at] = source, int32(p.Parcels.Host[h.Parcel[q]])
		t.Origin.Code[at], t.Pool.Code[at], t.Lender.Code[at] = h.Origin[q], int32(h.Pool[q]), int32(h.Lender[q])
		t.Device.Code[at] = h.On(q).Code(devices)
		t.Units[at] = h.Units[q]
	}
	return units
}
