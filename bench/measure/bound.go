package measure

import (
	"encoding/binary"

	"github.com/stintd/stint/bench/bound"
	"github.com/stintd/stint/core/cluster"
)

// PlanBound is what a plan's hosts hold beside the most that any placement could hold of what is wanted.
type PlanBound struct {
	Plan       string   `json:"plan"`
	Dimensions []string `json:"dimensions"`
	*bound.Result
}

// A bound takes from stepsMin to stepsMax steps: fewer where a step is long, so that all take about a minute at most.
const (
	stepsMin = 150
	stepsMax = 600
	workMax  = 4 << 30 // steps × classes × sizes × dimensions
)

// Bounds gives the bound of each plan in a state, as its last cycle left it. Where the holdings of a host pass its
// capacity they count as capacity, and where they pass the demand as demand. Error: figures that no state has.
func Bounds(s *cluster.State) (all []PlanBound, err error) {
	for i := range s.Plans {
		p := &s.Plans[i]
		one := PlanBound{Plan: p.Name, Dimensions: s.Policy.Dimensions}
		if p.Slots != nil {
			one.Dimensions = []string{"slots"}
		}
		problem := Problem(s, p)
		steps := workMax / max(1, len(problem.Capacity)*len(problem.Demand))
		if one.Result, err = bound.Solve(problem, min(max(stepsMin, steps), stepsMax)); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// Problem is a plan's hosts and demand as its last cycle left them.
func Problem(s *cluster.State, p *cluster.Plan) *bound.Problem {
	problem := &bound.Problem{Dimensions: p.Dimensions()}
	want(problem, s, p)
	classes(problem, p)
	return problem
}

// want fills in the units wanted and held, by size.
func want(b *bound.Problem, s *cluster.State, p *cluster.Plan) {
	row := map[cluster.ShapeID]int{}
	for sub := range s.Sub.Wanted {
		units := max(s.Sub.Wanted[sub], s.Sub.Held[sub])
		if s.Sub.Plan[sub] != p.Index || units == 0 {
			continue
		}
		shape := s.Sub.Shape[sub]
		i, known := row[shape]
		if !known {
			i = len(b.Demand)
			row[shape] = i
			b.Demand, b.Granted = append(b.Demand, 0), append(b.Granted, 0)
			b.Size = append(b.Size, s.Shape.Size(shape)[:b.Dimensions]...)
		}
		b.Demand[i] += units
		b.Granted[i] += s.Sub.Held[sub]
	}
}

// classes fills in the hosts: hosts of equal capacity are a class.
func classes(b *bound.Problem, p *cluster.Plan) {
	of := map[string]int{}
	k, dims := &p.Parcels, b.Dimensions
	for at, end := cluster.ParcelID(0), cluster.ParcelID(0); int(at) < k.Len(); at = end {
		end = k.End(at)
		capacity, used := make([]int64, dims), make([]int64, dims)
		var key []byte
		for d := range dims {
			for i := at; i < end; i++ {
				capacity[d] += k.Cap[d][i]
				used[d] += k.Cap[d][i] - k.Free[d][i]
			}
			capacity[d] = max(capacity[d], used[d])
			key = binary.AppendVarint(key, capacity[d])
		}
		c, known := of[string(key)]
		if !known {
			c = len(b.Hosts)
			of[string(key)] = c
			b.Hosts = append(b.Hosts, 0)
			b.Capacity = append(b.Capacity, capacity...)
			b.Used = append(b.Used, make([]int64, dims)...)
		}
		b.Hosts[c]++
		for d, v := range used {
			b.Used[c*dims+d] += v
		}
	}
}
