package cluster

// hostFigures is what a host was before a table that may change it.
type hostFigures struct {
	host  HostID
	state HostState
	size  []int64
}

// change applies a table of changes whose hosts are all there, that gives no
// attributes and moves no host into or out of a group: the usual news of a host that
// fails, drains or grows. It is false when the table is of another kind; then nothing
// has changed. O(rows × (dimensions + groups)).
func (s *State) change(t *HostTable) bool {
	if s.at == nil || len(t.Attr) > 0 {
		return false
	}
	for i := range s.Plans {
		if s.Plans[i].Parcels.Left > 0 {
			return false // a host that left may come back
		}
	}
	was := make([]hostFigures, t.Rows)
	for i := range t.Rows {
		h, ok := s.Host.Find(t.Host.Names.Bytes(t.Host.At(i)))
		if !ok || !s.Host.listed[h] {
			return false
		}
		was[i] = s.Host.figures(HostID(h))
	}
	for i, w := range was {
		if t.State != nil && t.State[i] != Keep {
			s.Host.State[w.host] = t.State[i]
		}
		for d, col := range t.Size {
			if col != nil && col[i] != NotGiven {
				s.Host.Size[d][w.host] = col[i]
			}
		}
	}
	if s.regrouped(was) {
		for _, w := range was {
			s.Host.State[w.host] = w.state
			for d := range s.Host.Size {
				s.Host.Size[d][w.host] = w.size[d]
			}
		}
		return false
	}
	s.HostTables++
	for _, w := range was {
		if p := s.Host.Plan[w.host]; p != NoID {
			s.noteHost(w)
			for d := range w.size { // requirements may go by what the plan does not count
				if w.size[d] != s.Host.Size[d][w.host] {
					s.Plans[p].Dirty = true
				}
			}
			s.refresh(&s.Plans[p], s.Host.Parcel[w.host], s.Host.State[w.host])
			if s.Plans[p].HasDevices() {
				s.layDevicesOf(&s.Plans[p], s.Host.Parcel[w.host])
			}
		}
	}
	return true
}

// figures is what may change of a host, as it is.
func (h *Hosts) figures(host HostID) hostFigures {
	f := hostFigures{host, h.State[host], make([]int64, len(h.Size))}
	for d, column := range h.Size {
		f.size[d] = column[host]
	}
	return f
}

// regrouped tells whether any of the hosts would now be in other groups.
func (s *State) regrouped(hosts []hostFigures) bool {
	for g, bound := range s.at.selects {
		for _, w := range hosts {
			if bound != nil && bound.Match(int(w.host)) != s.at.selected[g].Test(uint(w.host)) {
				return true
			}
		}
	}
	return false
}
