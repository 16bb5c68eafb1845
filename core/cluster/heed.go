package cluster

// lastHosts is what hosts were in the last cycle, of those that may be something else now: each once.
type lastHosts struct {
	host  []HostID
	state []HostState
	size  []int64  // by row, then dimension
	noted []uint64 // bitset by HostID: it stands in host
}

// has tells whether a host was noted.
func (l *lastHosts) has(h HostID) bool {
	w := int(h >> 6)
	return w < len(l.noted) && l.noted[w]>>(uint(h)&63)&1 == 1
}

// note sets the bit of a host.
func (l *lastHosts) note(h HostID) {
	for int(h>>6) >= len(l.noted) {
		l.noted = append(l.noted, 0)
	}
	l.noted[h>>6] |= 1 << (uint(h) & 63)
}

// empty forgets them. O(rows).
func (l *lastHosts) empty() {
	for _, h := range l.host {
		l.noted[h>>6] &^= 1 << (uint(h) & 63)
	}
	l.host, l.state, l.size = l.host[:0], l.state[:0], l.size[:0]
}

// noteHost comes with a host's state and sizes before they change. O(dimensions).
func (s *State) noteHost(h HostID, state HostState, size func(d int) int64) {
	l := &s.last
	if l.has(h) {
		return
	}
	l.note(h)
	l.host, l.state = append(l.host, h), append(l.state, state)
	for d := range s.Host.Size {
		l.size = append(l.size, size(d))
	}
}

// heedHosts stirs the plans whose hosts are not what they were in the last cycle, and has ownership passed over anew where they have
// another capacity: what one input takes back of another counts for nothing (docs/ownership.md, docs/shares.md), so that a host that fails and
// comes back between two cycles is none that changed. Hosts that joined or left a plan have stirred it already. O(hosts noted × dimensions).
func (s *State) heedHosts() {
	l, dims := &s.last, len(s.Host.Size)
	for i, h := range l.host {
		if p := s.Host.Plan[h]; p != NoID {
			s.heedHost(&s.Plans[p], h, l.state[i], l.size[i*dims:][:dims])
		}
	}
	l.empty()
}

// heedHost is heedHosts for a plan's host that was of a state and sizes.
func (s *State) heedHost(p *Plan, h HostID, state HostState, size []int64) {
	now := s.Host.State[h]
	same, resized := state == now, false
	for d, was := range size {
		is := s.Host.Size[d][h]
		same = same && is == was
		resized = resized || p.MD != nil && p.counts(d, is, now) != p.counts(d, was, state)
	}
	if !same {
		s.stir(p)
	}
	if resized || mutant == 13 {
		p.Reassign, p.Dirty = true, true
		s.resplit(p, h)
	}
}

// resplit notes that a host has another capacity than when its parcels were made, if it is split.
func (s *State) resplit(p *Plan, h HostID) {
	if k := s.Host.Parcel[h]; p.Parcels.End(k) > k+1 {
		p.shifted = append(p.shifted, h)
	}
}

// forgetLast forgets what hosts were, as another policy has all looked at anew.
func (s *State) forgetLast() {
	for _, h := range s.last.host {
		if p := s.Host.Plan[h]; p != NoID {
			s.resplit(&s.Plans[p], h)
		}
	}
	s.last.empty()
}

// counts is what an MD plan counts a host of a size and state for in a dimension.
func (p *Plan) counts(d int, size int64, state HostState) int64 {
	if state == Unavail {
		return 0
	}
	return overcommitted(size, p.MD.OvercommitMilli[d])
}
