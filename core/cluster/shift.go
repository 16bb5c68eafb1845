package cluster

import "slices"

// Shifts counts how often what is held on a host, or by a consumer, changed: units, row, pool or reclaim. Who made something of that sees
// by the counts whether it still holds. They are no part of what is decided: a State that is loaded begins anew.
type Shifts struct {
	Host     []uint64 // by HostID; none: 0
	Consumer []uint64 // by ConsumerID
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
