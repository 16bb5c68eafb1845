package cluster

import (
	"fmt"
	"math"

	"github.com/stintd/stint/core/plan"
)

// What a cycle costs goes by units, so there is a limit on how many units of one size the hosts of a plan may
// have room for when they are empty: so many, and so many more for each host (docs/decisions.md, D-52). A size
// of which there would be more is too small.
const (
	unitsOfPlan = 1 << 22
	unitsOfHost = 1 << 12
)

// A cycle promises so many units to takers in a plan, and so many more for each host; the others follow in
// the next cycles (docs/decisions.md, D-52).
const (
	promisesOfPlan = 1 << 18
	promisesOfHost = 1 << 6
)

// PromisesMost is how many units a cycle may promise to takers in a plan.
func (p *Plan) PromisesMost() int64 {
	return promisesOfPlan + promisesOfHost*int64(len(p.sizing.hosts))
}

// BudgetDetail says which budget ended what a cycle takes back in a plan.
func (p *Plan) BudgetDetail() string {
	if p.Terms.ReclaimBudget == plan.Unlimited {
		return fmt.Sprintf("a cycle promises at most %d units in the plan", p.PromisesMost())
	}
	return fmt.Sprintf("the plan reclaims at most %d units a cycle", p.Terms.ReclaimBudget)
}

// sizing is what tells which sizes are too small for a plan's hosts. It is made of the hosts, whatever their states.
type sizing struct {
	tables   int64 // State.HostTables that it was made at
	revision int64
	limit    int64 // State.UnitsOfHost then
	hosts    []HostID
	total    []int64 // by dimension that the plan counts, saturated
	small    []bool  // by ShapeID: too small; sizes that came later are not looked at yet
	any      bool    // whether there are such
}

// unitsMost is how many units of a size some hosts may have room for.
func (s *State) unitsMost(hosts int) int64 {
	if s.UnitsOfHost > 0 {
		return s.UnitsOfHost * int64(hosts)
	}
	return unitsOfPlan + unitsOfHost*int64(hosts)
}

// measureHosts brings a plan's sizing up to the hosts. O(1), and O(hosts × dimensions) when they changed.
func (s *State) measureHosts(p *Plan) *sizing {
	z := &p.sizing
	if z.total != nil && z.tables == s.HostTables && z.revision == s.Revision && z.limit == s.UnitsOfHost {
		return z
	}
	*z = sizing{tables: s.HostTables, revision: s.Revision, limit: s.UnitsOfHost,
		hosts: z.hosts[:0], total: make([]int64, p.Dimensions()), small: z.small[:0]}
	for h, of := range s.Host.Plan {
		if of != p.Index || !s.Host.listed[h] {
			continue
		}
		z.hosts = append(z.hosts, HostID(h))
		for d := range z.total {
			if z.total[d] += s.capacity(p, d, HostID(h)); z.total[d] < 0 {
				z.total[d] = math.MaxInt64
			}
		}
	}
	return z
}

// sizeUp finds which of the sizes that came since the last time, or since hosts changed, are too small for a plan.
// O(those × dimensions), and O(hosts × dimensions) for each that may be.
func (s *State) sizeUp(p *Plan) {
	z := s.measureHosts(p)
	for shape := len(z.small); shape < s.Shape.Len(); shape++ {
		_, small := s.tooMany(p, s.Shape.Size(ShapeID(shape)))
		z.small, z.any = append(z.small, small), z.any || small
	}
}

// tooMany tells whether the hosts of a plan have room for more units of a size, were they empty,
// than there may be; and for how many at least.
func (s *State) tooMany(p *Plan, size []int64) (units int64, many bool) {
	z := s.measureHosts(p)
	most := s.unitsMost(len(z.hosts))
	for d, all := range z.total {
		if size[d] > 0 && all/size[d] <= most {
			return 0, false
		}
	}
	for _, h := range z.hosts {
		room := int64(math.MaxInt64)
		for d := range z.total {
			if size[d] > 0 {
				room = min(room, s.capacity(p, d, h)/size[d])
			}
		}
		if room > most-units {
			return most + 1, true
		}
		units += room
	}
	return units, false
}

// TooSmall tells whether a sub-allocation of a plan has units of which its hosts would hold too many: nothing more is
// granted to it, and nothing taken back for it. It is good from settle on.
func (p *Plan) TooSmall(s *State, sub SubID) bool {
	return p.sizing.any && int(s.Sub.Shape[sub]) < len(p.sizing.small) && p.sizing.small[s.Sub.Shape[sub]]
}
