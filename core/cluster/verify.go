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
		pairs[i][s.Sub.Pair[sub]] += n
		if id := s.Holding.Set[q]; id != NoID {
			leaving[i][s.Sub.Pair[sub]] += n
			if s.Set.Number[id] == 0 {
				return fmt.Errorf("holding %d is in a set that is free", q)
			}
		}
		for d, u := range s.Size(sub)[:len(free[i])] {
			free[i][d][k] -= u * n
		}
	}
	for sub, n := range held {
		if s.Sub.Alloc[sub] != NoID && n != s.Sub.Held[sub] {
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
			if free[d][k] < 0 {
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
	for q, n := range pairs {
		if n != p.Pairs.Units[q] || leaving[q] != p.Pairs.Leaving[q] {
			return fmt.Errorf("pair %d: %d units, %d leaving; kept %d, %d", q, n, leaving[q], p.Pairs.Units[q], p.Pairs.Leaving[q])
		}
	}
	return nil
}
