package cluster

// Run is units of one sub-allocation for Hold, on those from From to To of some parcels.
type Run struct {
	Holding
	From, To int32
}

// twoMin is from how many holdings on they are made in two halves at once.
const twoMin = 1 << 10

// Hold gives a sub-allocation a unit of its size on each of the parcels, which are
// sorted and may repeat: units on one parcel become one holding. row says the rest.
// The ids are appended to dst. The caller has made sure that the units fit.
// O(parcels × dimensions).
func (s *State) Hold(dst []HoldingID, row Holding, parcels []ParcelID) []HoldingID {
	one := [1]Run{{row, 0, int32(len(parcels))}}
	return s.HoldAll(dst, one[:], parcels)
}

// HoldAll is Hold for several runs of one plan.
func (s *State) HoldAll(dst []HoldingID, runs []Run, parcels []ParcelID) []HoldingID {
	if len(runs) == 0 {
		return dst
	}
	p, n := &s.Plans[s.Sub.Plan[runs[0].Sub]], 0
	for i := range runs {
		eachRow(&runs[i], parcels, func(ParcelID, int64) { n++ })
	}
	h := &s.Holding
	s.ReserveHoldings(n)
	if n > logMost {
		s.Changes.skip() // they are more than are kept
	}
	ids := h.free[len(h.free)-n:] // the last first
	h.free = h.free[:len(h.free)-n]
	s.both(n >= twoMin, func() { s.holdOnParcels(p, runs, parcels, ids) }, func() {
		s.holdOfSubs(p, runs, parcels, ids)
	})
	for i := n - 1; i >= 0; i-- {
		dst = append(dst, ids[i])
	}
	return dst
}

// eachRow calls f for the parcels of a run with the units on them.
func eachRow(r *Run, parcels []ParcelID, f func(k ParcelID, units int64)) {
	for i := r.From; i < r.To; {
		j := i + 1
		for j < r.To && parcels[j] == parcels[i] {
			j++
		}
		f(parcels[i], int64(j-i))
		i = j
	}
}

// holdOfSubs fills rows and links each at the head of its sub-allocation's list.
func (s *State) holdOfSubs(p *Plan, runs []Run, parcels []ParcelID, ids []HoldingID) {
	logged := len(ids) <= logMost
	for i := range runs {
		r := &runs[i]
		s.count(r.Sub, r.Pool, r.Lender, int64(r.To-r.From))
		eachRow(r, parcels, func(k ParcelID, units int64) {
			n := len(ids) - 1
			row := r.Holding
			row.Parcel, row.Units = k, units
			s.fill(ids[n], &row)
			if ids = ids[:n]; logged {
				s.record(ChangeGranted, r.Sub, k, r.Pool, r.Lender, units, 0)
			}
		})
	}
}

// holdOnParcels links rows each at the head of its parcel's list, and takes its units off the parcel.
func (s *State) holdOnParcels(p *Plan, runs []Run, parcels []ParcelID, ids []HoldingID) {
	for i := range runs {
		r := &runs[i]
		size := s.Size(r.Sub)
		eachRow(r, parcels, func(k ParcelID, units int64) {
			n := len(ids) - 1
			q := ids[n]
			ids = ids[:n]
			s.link(p, q, k)
			p.Parcels.take(k, size, units)
			p.takeDevices(k, r.Devices, size, units)
		})
	}
}

// both calls two functions, at once where that is worth it and somebody said how: neither may write what the other
// reads.
func (s *State) both(worth bool, f, g func()) {
	if worth && s.Both != nil {
		s.Both(f, g)
		return
	}
	f()
	g()
}
