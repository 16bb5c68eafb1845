package cluster

import "slices"

// Shifts counts how often what is held on a host, or by a consumer, changed: units, row, pool or reclaim. Who made something of that sees
// by the counts whether it still holds. They are no part of what is decided: a State that is loaded begins anew.
type Shifts struct {
	Host     []uint64 // by HostID; none: 0
	Consumer []uint64 // by ConsumerID

	flow []Flow
	gone int64 // flows that are not kept any more, all before those that are
}

// Flow is units that came to what a sub-allocation holds, or went. What is known of the sums before is brought up by what flowed since.
type Flow struct {
	Sub          SubID
	Plan         int32
	Shape        ShapeID
	Pool, Lender ConsumerID
	Units        int64 // below 0: they went
}

// flowsMax is how many flows are kept, at most; at least half of it are, many times those of a cycle in which little changes.
const flowsMax = 1 << 16

// Flows is how many flows there were so far.
func (c *Shifts) Flows() int64 { return c.gone + int64(len(c.flow)) }

// Since is the flows after the first so many. It is not ok when some of them are not kept any more.
func (c *Shifts) Since(flows int64) (since []Flow, ok bool) {
	if flows < c.gone {
		return nil, false
	}
	return c.flow[flows-c.gone:], true
}

// flow notes units that came to what a sub-allocation holds, or went. O(1).
func (s *State) flow(sub SubID, pool, lender ConsumerID, units int64) {
	c := &s.Shifts
	if len(c.flow) == flowsMax {
		c.gone, c.flow = c.gone+flowsMax/2, append(c.flow[:0], c.flow[flowsMax/2:]...)
	}
	c.flow = append(c.flow, Flow{sub, s.Sub.Plan[sub], s.Sub.Shape[sub], pool, lender, units})
}

// OnHost is the count of a host.
func (c *Shifts) OnHost(h HostID) uint64 { return at(c.Host, int(h)) }

// Of is the count of a consumer.
func (c *Shifts) Of(id ConsumerID) uint64 { return at(c.Consumer, int(id)) }

func at(count []uint64, i int) uint64 {
	if i < len(count) {
		return count[i]
	}
	return 0
}

// shift notes that a row changes. O(1).
func (s *State) shift(q HoldingID) {
	s.growShifts()
	sub := s.Holding.Sub[q]
	s.Shifts.Host[s.Plans[s.Sub.Plan[sub]].Parcels.Host[s.Holding.Parcel[q]]]++
	s.Shifts.Consumer[s.Sub.Consumer[sub]]++
}

// growShifts makes room for counts of all hosts and consumers.
func (s *State) growShifts() {
	if n := s.Host.Len(); n > len(s.Shifts.Host) {
		s.Shifts.Host = slices.Grow(s.Shifts.Host, n-len(s.Shifts.Host))[:n]
	}
	if n := s.Consumer.Len(); n > len(s.Shifts.Consumer) {
		s.Shifts.Consumer = slices.Grow(s.Shifts.Consumer, n-len(s.Shifts.Consumer))[:n]
	}
}
