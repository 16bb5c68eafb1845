package cluster

// noteHost comes with what a host was before it changes. O(1).
func (s *State) noteHost(was hostFigures) {
	if !s.noted.Test(uint(was.host)) {
		s.noted.Set(uint(was.host))
		s.last = append(s.last, was)
	}
}

// heedHosts stirs the plans whose hosts are not what they were in the last cycle, and has ownership passed over anew
// where they have another capacity: what one input takes back of another counts for nothing (docs/ownership.md,
// docs/shares.md), so that a host that fails and comes back between two cycles is none that changed. Hosts that joined
// or left a plan have stirred it already. O(hosts noted × dimensions).
func (s *State) heedHosts() {
	for i := range s.last {
		if p := s.Host.Plan[s.last[i].host]; p != NoID {
			s.heedHost(&s.Plans[p], &s.last[i])
		}
	}
	s.forgetLast()
}

// heedHost is heedHosts for a plan's host.
func (s *State) heedHost(p *Plan, was *hostFigures) {
	state := s.Host.State[was.host]
	same, resized := state == was.state, false
	for d, size := range was.size {
		is := s.Host.Size[d][was.host]
		same = same && is == size
		resized = resized || p.MD != nil && p.counts(d, is, state) != p.counts(d, size, was.state)
	}
	if !same {
		s.stir(p)
	}
	if p.MD != nil && state.Shut() != was.state.Shut() { // MD-3: who owns it may choose another
		p.Reassign, p.Dirty = true, true
		p.Parcels.moved(s.Host.Parcel[was.host])
	}
	if resized {
		p.Reassign, p.Dirty = true, true
		s.resplit(p, was.host)
	}
}

// resplit notes that a host has another capacity than when its parcels were made, if it is split.
func (s *State) resplit(p *Plan, h HostID) {
	if k := s.Host.Parcel[h]; p.Parcels.End(k) > k+1 {
		p.shifted = append(p.shifted, h)
	}
}

// resplitNoted is resplit for all hosts that were noted, which are forgotten: another policy has all looked at anew.
func (s *State) resplitNoted() {
	for i := range s.last {
		h := s.last[i].host
		if p := s.Host.Plan[h]; p != NoID {
			s.resplit(&s.Plans[p], h)
		}
	}
	s.forgetLast()
}

// forgetLast forgets what hosts were. O(those).
func (s *State) forgetLast() {
	for i := range s.last {
		s.noted.Clear(uint(s.last[i].host))
	}
	s.last = s.last[:0]
}

// counts is what an MD plan counts a host of a size and state for in a dimension.
func (p *Plan) counts(d int, size int64, state HostState) int64 {
	if state == Unavail {
		return 0
	}
	return overcommitted(size, p.MD.OvercommitMilli[d])
}
