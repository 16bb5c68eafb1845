package cluster

import "fmt"

// Verify recomputes from hosts, demand and holdings all that the state keeps for
// speed, and returns the first difference. It is for tests; O(everything).
func (s *State) Verify() error {
	held := make([]int64, len(s.Sub.Held))
	free := make([][][]int64, len(s.Plans))
	pairs, leaving := make([][]int64, len(s.Plans)), make([][]int64, len(s.Plans))
	for i := range s.Plans {
		p := &s.Plans[i]
		pairs[i], leaving[i] = make([]int64, len(p.Pairs.Units)), make([]int64, len(p.Pairs.Units))
		for d := range p.Parcels.Cap {
			free[i] = append(free[i], append([]int64(nil), p.Parcels.Cap[d]...))
		}
	}
	rows := 0
	for q, sub := range s.Holding.Sub {
		if sub == NoID {
			continue
		}
		rows++
		n, i, k := s.Holding.Units[q], s.Sub.Plan[sub], s.Holding.Parcel[q]
		if n <= 0 {
			return fmt.Errorf("holding %d has %d units", q, n)
		}
		held[sub] += n
		pair := s.PairOf(sub, s.Holding.Pool[q])
		if int(pair) >= len(pairs[i]) {
			return fmt.Errorf("holding %d is of a pair that is not counted", q)
		}
		pairs[i][pair] += n
		if id := s.Holding.Set[q]; id != NoID {
			leaving[i][pair] += n
			if s.Set.Number[id] == 0 {
				return fmt.Errorf("holding %d is in a set that is free", q)
			}
		}
		for d, u := range s.Size(sub)[:len(free[i])] {
			free[i][d][k] -= u * n
		}
	}
	for sub := range s.Sub.Live() {
		if n := held[sub]; n != s.Sub.Held[sub] {
			return fmt.Errorf("sub-allocation %d: held %d, kept %d", sub, n, s.Sub.Held[sub])
		}
	}
	for i := range s.Plans {
		if err := s.verifyPlan(&s.Plans[i], free[i], pairs[i], leaving[i], &rows); err != nil {
			return fmt.Errorf("plan %s: %w", s.Plans[i].Name, err)
		}
	}
	if rows != 0 {
		return fmt.Errorf("%d holdings hang on no parcel", rows)
	}
	return nil
}

// verifyPlan compares one plan's parcels and pairs, and takes the holdings on its parcels off rows.
func (s *State) verifyPlan(p *Plan, free [][]int64, pairs, leaving []int64, rows *int) error {
	for k := range p.Parcels.Host {
		for d := range free {
			if free[d][k] != p.Parcels.Free[d][k] {
				return fmt.Errorf("parcel %d, dimension %d: free %d, kept %d", k, d, free[d][k], p.Parcels.Free[d][k])
			}
			if p.Parcels.Whole(ParcelID(k)) && free[d][k] < 0 {
				return fmt.Errorf("parcel %d, dimension %d: %d over capacity", k, d, -free[d][k])
			}
		}
		for q := p.Parcels.First[k]; q != NoID; q = s.Holding.NextOnParcel[q] {
			if s.Holding.Parcel[q] != ParcelID(k) {
				return fmt.Errorf("holding %d of parcel %d stands on the list of parcel %d", q, s.Holding.Parcel[q], k)
			}
			*rows--
		}
	}
	if err := s.verifySplit(p); err != nil {
		return err
	}
	if err := s.verifyDevices(p); err != nil {
		return err
	}
	for q, n := range pairs {
		if n != p.Pairs.Units[q] || leaving[q] != p.Pairs.Leaving[q] {
			return fmt.Errorf("pair %d: %d units, %d leaving; kept %d, %d", q, n, leaving[q], p.Pairs.Units[q],
				p.Pairs.Leaving[q])
		}
	}
	return nil
}

// verifySplit compares the parcels of hosts with each other, with the deeds and with what units on them count as.
func (s *State) verifySplit(p *Plan) error {
	var at parts
	rows, start := p.byHost(s, nil)
	for k, end := ParcelID(0), ParcelID(0); int(k) < p.Parcels.Len(); k = end {
		end = p.Parcels.End(k)
		h := p.Parcels.Host[k]
		left := int(k) >= p.Parcels.Len()-p.Parcels.Left
		if !left && (s.Host.Parcel[h] != k || s.Host.Plan[h] != p.Index) {
			return fmt.Errorf("host %d: its first parcel is %d, kept %d", h, k, s.Host.Parcel[h])
		}
		whole := make([]int64, len(p.Parcels.Cap))
		for d, column := range p.Parcels.Cap {
			for _, v := range column[k:end] {
				whole[d] += v
			}
			if p.Parcels.freeOn(k, d) < 0 {
				return fmt.Errorf("host %d, dimension %d: %d over capacity", h, d, -p.Parcels.freeOn(k, d))
			}
			if c := s.capacity(p, d, h); c != whole[d] && s.Host.State[h] != Unavail && !left {
				return fmt.Errorf("host %d, dimension %d: its parcels have %d of %d", h, d, whole[d], c)
			}
			if err := p.verifyOwed(d, k, end); err != nil {
				return err
			}
		}
		for _, column := range p.Parcels.Cap {
			for _, v := range column[k:end] {
				if v < 0 {
					return fmt.Errorf("host %d has a parcel with less than nothing", h)
				}
			}
		}
		if p.MD != nil && !p.Reassign && len(s.last) == 0 {
			at.fill(rows, start[k], start[k+1])
			at.rest(&s.Policy.Tree, whole)
			var want Parcels
			want.Cap, want.Free = make([][]int64, len(whole)), make([][]int64, len(whole))
			want.split(s, h, whole, &at)
			if !want.alike(0, &p.Parcels, k, end) {
				return fmt.Errorf("host %d: parcels of %v, should be of %v", h, p.Parcels.Owner[k:end], want.Owner)
			}
		}
		if err := s.verifyLabels(p, k, end); err != nil {
			return err
		}
	}
	return nil
}

// verifyOwed compares what is missing on a host for its parcels k … end-1.
func (p *Plan) verifyOwed(d int, k, end ParcelID) error {
	missing := int64(0)
	for i := k; i < end; i++ {
		missing += max(0, -p.Parcels.Free[d][i])
	}
	for ; k < end; k++ {
		want, got := min(missing, max(0, p.Parcels.Free[d][k])), int64(0)
		if p.Parcels.Owed != nil {
			got = p.Parcels.Owed[d][k]
		}
		if missing -= want; got != want {
			return fmt.Errorf("parcel %d, dimension %d: %d is missing on its host, kept %d", k, d, want, got)
		}
	}
	return nil
}

// verifyLabels compares what units of an MD plan count as with what their leaves and parcels say.
func (s *State) verifyLabels(p *Plan, k, end ParcelID) error {
	h := &s.Holding
	for ; k < end && p.MD != nil; k++ {
		for q := p.Parcels.First[k]; q != NoID; q = h.NextOnParcel[q] {
			origin, pool, lender := s.CountsAs(s.leafOf(h.Sub[q]), p.Parcels.Owner[k])
			if h.Origin[q] != origin || h.Pool[q] != pool || h.Lender[q] != lender {
				return fmt.Errorf("holding %d on parcel %d counts as %d %d %d, should as %d %d %d", q, k,
					h.Origin[q], h.Pool[q], h.Lender[q], origin, pool, lender)
			}
		}
	}
	return nil
}
