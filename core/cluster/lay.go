package cluster

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/decision"
)

// lay brings every plan's parcels up to the hosts: the figures of hosts that
// changed, or all of them when a plan's hosts or their order did.
func (s *State) lay(l *layout) {
	n, order := s.Host.Len(), l.order
	was := s.at
	s.at = l
	s.HostTables++
	s.Host.Plan = slices.Grow(s.Host.Plan[:0], n)[:n]
	s.Host.Parcel = slices.Grow(s.Host.Parcel[:0], n)[:n]
	for h := range n {
		s.Host.Plan[h], s.Host.Parcel[h] = NoID, NoID
	}
	for i := range s.Plans {
		p := &s.Plans[i]
		left := p.Parcels.abandoned(order[i])
		s.Host.sort(left)
		hosts, same := slices.Concat(order[i], left), p.Parcels.has(order[i])
		if p.Parcels.Cap == nil || !p.Parcels.are(hosts) || !p.Parcels.bare(len(left)) {
			s.relay(p, hosts, len(left))
		}
		if p.Parcels.Left != len(left) {
			p.Parcels.Left, p.Dirty = len(left), true
		}
		if !same || p.MD != nil && !l.sameGroups(was, p.MD) {
			p.Parcels.Moved = nil
			p.Reassign, p.Dirty = true, true
			s.stir(p)
		}
		s.locate(p)
	}
	for i := range s.Plans {
		p := &s.Plans[i]
		n := ParcelID(p.Parcels.Len())
		for k := ParcelID(0); k < n; k = p.Parcels.End(k) {
			h := p.Parcels.Host[k]
			state := s.Host.State[h]
			switch in := int(k) < p.Parcels.Len()-p.Parcels.Left; {
			case in:
			case s.Host.Plan[h] == NoID && state != Unavail:
				state = Closed // until what is on it has been reclaimed
			default:
				state = Unavail
			}
			s.refresh(p, k, state)
		}
	}
	for i := range s.Plans {
		s.layDevices(&s.Plans[i])
	}
	s.rekeep()
}

// locate tells the hosts of a plan where their first parcels are.
func (s *State) locate(p *Plan) {
	for k := ParcelID(0); int(k) < p.Parcels.Len()-p.Parcels.Left; k = p.Parcels.End(k) {
		h := p.Parcels.Host[k]
		s.Host.Plan[h], s.Host.Parcel[h] = p.Index, k
	}
}

// has tells whether the plan has these hosts in this order; hosts that left the plan do not count.
func (p *Parcels) has(hosts []HostID) bool {
	k, n := ParcelID(0), p.Len()-p.Left
	for _, h := range hosts {
		if int(k) == n || p.Host[k] != h {
			return false
		}
		k = p.End(k)
	}
	return int(k) == n
}

// are tells whether the parcels are of these hosts, in this order.
func (p *Parcels) are(hosts []HostID) bool {
	if !p.Owned {
		return slices.Equal(hosts, p.Host)
	}
	k := ParcelID(0)
	for _, h := range hosts {
		if int(k) == p.Len() || p.Host[k] != h {
			return false
		}
		k = p.End(k)
	}
	return int(k) == p.Len()
}

// bare tells whether nobody owns anything of the last so many hosts.
func (p *Parcels) bare(hosts int) bool {
	for k := p.Len() - hosts; k < p.Len(); k++ {
		if p.Owner[k] != NoID || !p.Whole(ParcelID(k)) {
			return false
		}
	}
	return true
}

// sort puts hosts in the order of the hosts table; hosts that the table has no more come last. O(hosts), if there are
// several.
func (h *Hosts) sort(hosts []HostID) {
	if len(hosts) < 2 {
		return
	}
	at := make([]int, h.Len())
	for i, id := range h.Order {
		at[id] = i - len(h.Order)
	}
	slices.SortStableFunc(hosts, func(a, b HostID) int { return cmp.Compare(at[a], at[b]) })
}

// abandoned is the hosts outside of the new order on which something is held. They
// stay as parcels behind it: closed while the host lives and is in no other plan, so
// that its work is reclaimed with grace (REQ-2), else as lost ones.
func (p *Parcels) abandoned(order []HostID) (hosts []HostID) {
	if p.Len() == 0 || p.are(order) {
		return nil
	}
	stays := make(map[HostID]bool, len(order))
	for _, h := range order {
		stays[h] = true
	}
	for k, h := range p.Host {
		if !stays[h] && p.First[k] != NoID && (len(hosts) == 0 || hosts[len(hosts)-1] != h) {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// empty is parcels without rows, with the columns of others and memory for so many rows.
func (p *Parcels) empty(dims, rows int) Parcels {
	columns := func() (c [][]int64) {
		for range dims {
			c = append(c, make([]int64, 0, rows))
		}
		return c
	}
	n := Parcels{
		Host: make([]HostID, 0, rows), Owner: make([]ConsumerID, 0, rows), First: make([]HoldingID, 0, rows),
		Cap: columns(), Free: columns(), Left: p.Left,
	}
	if p.Kept != nil {
		n.Kept = columns() // filled by rekeep
	}
	return n
}

// add appends a parcel that has nothing yet.
func (p *Parcels) add(h HostID, owner ConsumerID) ParcelID {
	k := ParcelID(p.Len())
	p.Host, p.Owner, p.First = append(p.Host, h), append(p.Owner, owner), append(p.First, NoID)
	if len(p.Open)*64 < p.Len() {
		p.Open = append(p.Open, 0)
	}
	for d := range p.Cap {
		p.Cap[d], p.Free[d] = append(p.Cap[d], 0), append(p.Free[d], 0)
	}
	for d := range p.Kept {
		p.Kept[d] = append(p.Kept[d], 0)
	}
	p.Owned = p.Owned || owner != NoID
	return k
}

// open sets whether a parcel may get grants.
func (p *Parcels) open(k ParcelID, ok bool) {
	p.Open[k>>6] &^= 1 << (uint(k) & 63)
	if ok {
		p.Open[k>>6] |= 1 << (uint(k) & 63)
	}
}

// relay lays out a plan's parcels anew for hosts, the last so many of which left the plan, and
// moves the holdings along. On hosts that left nothing is owned.
func (s *State) relay(p *Plan, hosts []HostID, left int) {
	old := p.Parcels
	p.Parcels = old.empty(p.dimensions(s.Policy), len(hosts))
	was := make(map[HostID]ParcelID, old.Len())
	for k := ParcelID(old.Len()) - 1; k >= 0; k-- {
		was[old.Host[k]] = k
	}
	for i, h := range hosts {
		j, ok := was[h]
		switch {
		case !ok:
			p.Parcels.add(h, NoID)
		case i < len(hosts)-left:
			for end := old.End(j); j < end; j++ {
				s.carry(p, &old, j, p.Parcels.add(h, old.Owner[j]))
			}
		default:
			k := p.Parcels.add(h, NoID)
			for end := old.End(j); j < end; j++ {
				s.carry(p, &old, j, k)
			}
		}
	}
	p.renumbered()
	s.Changes.add(ChangeRelaid, p.Index, NoID)
}

// carry adds an old parcel's figures and holdings to a new parcel; under another owner the units count as something
// else.
func (s *State) carry(p *Plan, old *Parcels, j, k ParcelID) {
	for d := range old.Cap {
		p.Parcels.Cap[d][k] += old.Cap[d][j]
		p.Parcels.Free[d][k] += old.Free[d][j]
	}
	p.Parcels.open(k, old.IsOpen(j))
	last := HoldingID(NoID)
	for q := old.First[j]; q != NoID; q = s.Holding.NextOnParcel[q] {
		s.Holding.Parcel[q], last = k, q
	}
	if last == NoID {
		return
	}
	if first := p.Parcels.First[k]; first != NoID {
		s.Holding.NextOnParcel[last], s.Holding.PrevOnParcel[first] = first, last
	}
	p.Parcels.First[k] = old.First[j]
	if p.Parcels.Owner[k] != old.Owner[j] {
		for q := old.First[j]; ; q = s.Holding.NextOnParcel[q] {
			s.name(p, q)
			if q == last {
				break
			}
		}
	}
}

// renumbered notes that parcels have other numbers than before.
func (p *Plan) renumbered() {
	p.Rebuilt, p.Dirty, p.Changed = true, true, slices.Grow(p.Changed[:0], p.Parcels.Len())
	for k := range p.Parcels.Host { // those named before had other numbers
		p.Changed = append(p.Changed, ParcelID(k))
	}
}

// refresh brings a host up to its capacity and a state; k is its first parcel, which takes what it
// gained or lost until its parcels are made anew.
func (s *State) refresh(p *Plan, k ParcelID, state HostState) {
	h, end := p.Parcels.Host[k], p.Parcels.End(k)
	changed, resized, held := p.Parcels.IsOpen(k) != (state == OK), false, false
	for i := k; i < end; i++ {
		p.Parcels.open(i, state == OK)
		held = held || p.Parcels.First[i] != NoID
	}
	for d := range p.Parcels.Cap {
		var delta int64
		if state != Unavail {
			delta = s.capacity(p, d, h)
		}
		for i := k; i < end; i++ {
			delta -= p.Parcels.Cap[d][i]
		}
		if delta != 0 {
			p.Parcels.Cap[d][k] += delta
			p.Parcels.Free[d][k] += delta
			changed, resized = true, true
		}
	}
	// nothing is owned on hosts that left: what they are is no input any more
	if resized && int(k) < p.Parcels.Len()-p.Parcels.Left {
		p.Parcels.moved(k)
	}
	if resized && end-k > 1 && !s.noted.Test(uint(h)) { // of those that were noted only what they come to counts
		p.shifted = append(p.shifted, h)
	}
	if changed {
		for i := k; i < end; i++ {
			p.Changed = append(p.Changed, i)
			s.Changes.add(ChangeResized, p.Index, i)
		}
		p.Dirty, p.Resized = true, true
	}
	if state != OK && held {
		p.Dirty = true // it may drain now, or not any more
	}
}

// capacity is what a plan counts a host for in a dimension: its amount with overcommit or what its devices have,
// or its slots by the group's expression, rounded down and never below 0 (SPEC chapter 3).
func (s *State) capacity(p *Plan, d int, h HostID) int64 {
	if p.MD != nil {
		return p.amount(d, s.Host.Size[d][h])
	}
	if b := s.at.slots[p.Index]; b != nil {
		v, _ := b.Number(int(h))
		return min(max(v, 0), NumberMax)
	}
	if d, ok := s.Policy.Dimension("slots"); ok {
		return s.Host.Size[d][h]
	}
	return 0
}

// amount is what an MD plan counts of an amount of a host in a dimension.
func (p *Plan) amount(d int, amount int64) int64 {
	if p.HasDevices() && d == p.MD.Device {
		return min(amount/p.MD.DevicePer, decision.DevicesMax) * p.MD.DevicePer
	}
	return overcommitted(amount, p.MD.OvercommitMilli[d])
}
