package cluster

import "slices"

// Shifts counts how often what is held on a host changed: units, row, pool or reclaim. Who made something of that sees
// by the counts whether it still holds. They are no part of what is decided: a State that is loaded begins anew.
type Shifts struct {
	Host []uint64 // by HostID; none: 0

	flow  list[Flow]
	touch list[Touch]
}

// Flow is units that came to what a sub-allocation holds, or went. What is known of the sums
// before is brought up by what flowed since.
type Flow struct {
	Sub          SubID
	Plan         int32
	Shape        ShapeID
	Pool, Lender ConsumerID
	Units        int64 // below 0: they went
}

// Touch is a holding of a consumer that was made, changed or released on a parcel
// of a plan. What it is now the state tells.
type Touch struct {
	Holding  HoldingID
	Parcel   ParcelID
	Consumer ConsumerID
	Plan     int32
}

// list is the latest of what comes one after the other.
type list[T any] struct {
	rows []T
	gone int64 // rows that are not kept any more, all before those that are
}

// listMost is how many rows of a list are kept, at most; at least half of it are, many
// times those of a cycle in which little changes.
const listMost = 1 << 16

func (l *list[T]) add(row T) {
	if len(l.rows) == listMost {
		l.gone, l.rows = l.gone+listMost/2, append(l.rows[:0], l.rows[listMost/2:]...)
	}
	l.rows = append(l.rows, row)
}

// skip forgets all, and that one more came.
func (l *list[T]) skip() { l.gone, l.rows = l.gone+int64(len(l.rows))+1, l.rows[:0] }

func (l *list[T]) count() int64 { return l.gone + int64(len(l.rows)) }

func (l *list[T]) since(n int64) (since []T, ok bool) {
	if n < l.gone {
		return nil, false
	}
	return l.rows[n-l.gone:], true
}

func (l *list[T]) clone() list[T] { return list[T]{slices.Clone(l.rows), l.gone} }

// Flows is how many flows there were so far.
func (c *Shifts) Flows() int64 { return c.flow.count() }

// Since is the flows after the first so many. It is not ok when some of them are not kept any more.
func (c *Shifts) Since(flows int64) (since []Flow, ok bool) { return c.flow.since(flows) }

// Touches is how many touches there were so far.
func (c *Shifts) Touches() int64 { return c.touch.count() }

// Touched is the touches after the first so many. It is not ok when some of them are not kept any more.
func (c *Shifts) Touched(touches int64) (since []Touch, ok bool) { return c.touch.since(touches) }

// flow notes units that came to what a sub-allocation holds, or went. O(1).
func (s *State) flow(sub SubID, pool, lender ConsumerID, units int64) {
	s.Shifts.flow.add(Flow{sub, s.Sub.Plan[sub], s.Sub.Shape[sub], pool, lender, units})
}

// OnHost is the count of a host.
func (c *Shifts) OnHost(h HostID) uint64 {
	if int(h) < len(c.Host) {
		return c.Host[h]
	}
	return 0
}

// shift notes that a row changes. O(1).
func (s *State) shift(q HoldingID) {
	s.growShifts()
	s.shiftOf(q, s.Holding.Sub[q], s.Holding.Parcel[q])
}

// shiftOf is shift for a row of a sub-allocation on a parcel, after growShifts.
func (s *State) shiftOf(q HoldingID, sub SubID, k ParcelID) {
	s.Shifts.Host[s.Plans[s.Sub.Plan[sub]].Parcels.Host[k]]++
	s.Shifts.touch.add(Touch{q, k, s.Sub.Consumer[sub], s.Sub.Plan[sub]})
}

// growShifts makes room for counts of all hosts.
func (s *State) growShifts() {
	if n := s.Host.Len(); n > len(s.Shifts.Host) {
		s.Shifts.Host = slices.Grow(s.Shifts.Host, n-len(s.Shifts.Host))[:n]
	}
}
