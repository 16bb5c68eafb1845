package cluster

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// newestFirst lists a sub-allocation's holdings in the order in which CYC-5 takes
// them: those under reclaim first, then borrowed, shared, owned ones, then the latest
// cycle, then the last host (docs/decisions.md, D-10).
func (s *State) newestFirst(dst []HoldingID, sub SubID) []HoldingID {
	s.aged[0], dst = s.newest(s.aged[0], sub), dst[:0]
	for i := range s.aged[0] {
		dst = append(dst, s.aged[0][i].q)
	}
	return dst
}

// newest lists them in some memory, with what their order goes by.
func (s *State) newest(list []aged, sub SubID) []aged {
	list = list[:0]
	for q := s.Sub.First[sub]; q != NoID; q = s.Holding.NextOfSub[q] {
		list = append(list, s.age(q))
	}
	s.sortAged(list)
	return list
}

// sortNewest sorts some holdings of a sub-allocation as newestFirst does all.
func (s *State) sortNewest(rows []HoldingID) {
	if len(rows) < 2 {
		return
	}
	list := s.aged[0][:0]
	for _, q := range rows {
		list = append(list, s.age(q))
	}
	s.sortAged(list)
	for i := range list {
		rows[i] = list[i].q
	}
	s.aged[0] = list
}

// age is a holding with what the order of newestFirst goes by.
func (s *State) age(q HoldingID) aged {
	h := &s.Holding
	k := h.Parcel[q]
	one := aged{h.Granted[q], k, s.Plans[s.Sub.Plan[h.Sub[q]]].Parcels.Host[k], int32(s.claim(q)), q}
	if h.Set[q] != NoID {
		one.class -= claims
	}
	return one
}

// sortAged sorts holdings of a sub-allocation newest first.
func (s *State) sortAged(list []aged) {
	slices.SortFunc(list, func(a, b aged) int {
		switch {
		case a.class != b.class:
			return cmp.Compare(a.class, b.class)
		case a.granted != b.granted:
			return cmp.Compare(b.granted, a.granted)
		case a.host != b.host:
			return cmp.Compare(b.k, a.k)
		}
		return s.newerOnHost(a.q, b.q)
	})
}

// aged is a holding of a sub-allocation with what the order of newestFirst goes by, looked up once.
type aged struct {
	granted int64
	k       ParcelID
	host    HostID
	class   int32 // claim, less claims of what is under reclaim
	q       HoldingID
}

// claims is more than any claim, so that what is under reclaim comes first.
const claims = 4

// Newer sorts holdings of a plan newest first (docs/decisions.md, D-10): the latest grant, then the
// sub-allocation and the host that came last; what is equal by that in the order of lender, pool (laterConsumer) and
// reclaim, the last first; then what counts under the hybrid policy before what is owned; then the last devices.
func (s *State) Newer(a, b HoldingID) int {
	if c := s.newer(a, b); c != 0 {
		return c
	}
	if h := &s.Holding; h.Parcel[a] != h.Parcel[b] && !s.on(a, h.Parcel[b]) {
		return cmp.Compare(h.Parcel[b], h.Parcel[a])
	}
	return s.newerOnHost(a, b)
}

// newer is Newer but for hosts: the latest grant, then the sub-allocation that came last.
func (s *State) newer(a, b HoldingID) int {
	h := &s.Holding
	return cmp.Or(cmp.Compare(h.Granted[b], h.Granted[a]), cmp.Compare(s.Sub.Seq[h.Sub[b]], s.Sub.Seq[h.Sub[a]]))
}

// newerOnHost is Newer for what newer finds equal, on one host.
func (s *State) newerOnHost(a, b HoldingID) int {
	h := &s.Holding
	return cmp.Or(s.laterConsumer(h.Lender[a], h.Lender[b]), s.laterConsumer(h.Pool[a], h.Pool[b]),
		cmp.Compare(s.reclaimOf(b), s.reclaimOf(a)), s.chosenLater(a, b),
		cmp.Compare(h.Origin[b], h.Origin[a]), // of the hybrid policy before owned
		cmp.Compare(h.On(b), h.On(a)))
}

// chosenLater orders victims of one set, the last chosen first.
func (s *State) chosenLater(a, b HoldingID) int {
	h := &s.Holding
	if a == b || h.Set[a] == NoID || h.Set[a] != h.Set[b] {
		return 0
	}
	for q := h.NextOfSet[a]; q != NoID; q = h.NextOfSet[q] {
		if q == b {
			return -1
		}
	}
	return 1
}

// nodeOf is the row of a consumer in the policy in force, None for NoID.
func (s *State) nodeOf(c ConsumerID) plan.Node {
	if c == NoID {
		return plan.None
	}
	return s.NodeOf[c]
}

// laterConsumer orders consumers, the last of the policy in force first, then none, then those that the policy has not
// any more, by path.
func (s *State) laterConsumer(a, b ConsumerID) int {
	row := func(c ConsumerID) plan.Node {
		if c != NoID && s.NodeOf[c] == plan.None {
			return plan.None - 1
		}
		return s.nodeOf(c)
	}
	order := cmp.Compare(row(b), row(a))
	if order == 0 && a != b && row(a) < plan.None {
		return cmp.Compare(s.Consumer.String(int32(b)), s.Consumer.String(int32(a)))
	}
	return order
}

// reclaimOf is the number of the reclaim that a holding is under, 0 for none.
func (s *State) reclaimOf(q HoldingID) int64 {
	if id := s.Holding.Set[q]; id != NoID {
		return s.Set.Number[id]
	}
	return 0
}

// claim is how good a claim a holding has, the weakest first (CYC-5): borrowed, shared, owned.
func (s *State) claim(q HoldingID) int {
	switch {
	case s.Holding.Lender[q] != NoID:
		return 0
	case s.Holding.Origin[q] != decision.OriginOwned:
		return 1
	}
	return 2
}

// leavingFirst orders holdings under reclaim before others.
func (s *State) leavingFirst(a, b HoldingID) int {
	switch la, lb := s.Holding.Set[a] != NoID, s.Holding.Set[b] != NoID; {
	case la && !lb:
		return -1
	case lb && !la:
		return 1
	}
	return 0
}
