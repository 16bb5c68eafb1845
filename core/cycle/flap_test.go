package cycle_test

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// flap has every other host of a state's fail and come back, and some of them shrink and grow again, of even numbers by
// tables with an attribute: what one input takes back of another counts for nothing (docs/ownership.md), so that who
// was told decides what the others do. Where hosts left a plan with work on them none does: any table of hosts drops
// those on which nothing is left, in the keyframe too.
func flap(t *rapid.T, s *cluster.State, number int) {
	for i := range s.Plans {
		if s.Plans[i].Parcels.Left > 0 {
			return
		}
	}
	h := &s.Host
	names := h.Names
	was := cluster.HostTable{Host: cluster.TextColumn{Names: &names}, Size: make([][]int64, len(h.Size))}
	for _, id := range h.Order {
		if id%2 == 1 {
			was.Rows++
			was.Host.Code, was.State = append(was.Host.Code, int32(id)), append(was.State, h.State[id])
			for d, column := range h.Size {
				was.Size[d] = append(was.Size[d], column[id])
			}
		}
	}
	if was.Rows == 0 {
		return
	}
	for _, a := range h.Attr {
		if column := (cluster.AttrColumn{Name: a.Name, Kind: a.Kind}); a.Kind == plan.Boolean && number%2 == 0 {
			for _, id := range was.Host.Code {
				column.Valid, column.Bool = append(column.Valid, a.Valid[id]), append(column.Bool, a.Bool[id])
			}
			was.Attr = append(was.Attr, column)
		}
	}
	other := was
	other.State, other.Size = slices.Clone(was.State), make([][]int64, len(was.Size))
	for i, state := range other.State {
		other.State[i] = cluster.Unavail
		if state == cluster.Unavail || i%3 == 2 {
			other.State[i] = cluster.OK
		}
	}
	for d, column := range was.Size {
		other.Size[d] = slices.Clone(column)
		for i := range column {
			if i%3 > 0 {
				other.Size[d][i] /= 2
			}
		}
	}
	for _, table := range []*cluster.HostTable{&other, &was} {
		if err := s.SetHosts(table, false); err != nil {
			t.Fatalf("input refused: %v", err)
		}
	}
}
