// Package bound says how much of a demand any placement can hold at most. It knows hosts by class and units by size,
// decides nothing and knows nothing of policies: pools, limits, requirements and max_per_host can only lower what
// can be placed, so leaving them out keeps the bound a bound.
//
// A unit counts what its size takes of the mean host: w = the largest over dimensions of size ÷ mean capacity. Let a
// unit of dimension d on a host of class c cost a price λ[c][d] ≥ 0. Take any placement, of x[s][c] units of size s
// on class c. As its units fit, Σ x[s][c] size[s][d] ≤ hosts[c] capacity[c][d], and as no more is placed than is
// wanted, Σ over c of x[s][c] ≤ demand[s]. Hence
//
//	Σ w[s] x[s][c]  =  Σ x[s][c] λ[c]·size[s]  +  Σ x[s][c] (w[s] − λ[c]·size[s])
//	                ≤  Σ hosts[c] λ[c]·capacity[c]  +  Σ demand[s] max(0, w[s] − min over c of λ[c]·size[s])  =  U(λ),
//
// for whatever prices (weak duality). Where a unit does not fit an empty host x is 0, so the minimum is over the
// classes that it fits, and a size that fits none adds nothing. What a host has beyond the largest multiple of the
// sizes' greatest common divisor no units can fill, so capacity is rounded down to that first. Both lower U and keep
// it a bound.
//
// U is convex in λ; subgradient steps lower it, first with the same prices for all classes, then with prices for
// each. The lowest U of all steps is kept. Sums are of floats: what they may be off by, relative 1e-9 by far at
// most, is added.
package bound

import (
	"errors"
	"fmt"
	"slices"
)

// Problem is a cluster and what is wanted of it. Two-dimensional columns have the figures of a row side by side.
type Problem struct {
	Dimensions int
	Hosts      []int64 // by class: how many there are
	Capacity   []int64 // by class and dimension, of one host
	Used       []int64 // by class and dimension, of all its hosts together
	Demand     []int64 // by size: units wanted
	Granted    []int64 // by size: of them, units placed
	Size       []int64 // by size and dimension
}

// Result is what could be placed at most, and where it differs from what is placed. All figures but Ratio, prices
// and counts are in mean hosts. Granted + Unmet + the sum of Idle + Elsewhere = Bound.
type Result struct {
	Granted float64 `json:"granted"`
	Bound   float64 `json:"bound"`
	Ratio   float64 `json:"granted_over_bound"` // 1 where nothing can be placed

	// The terms of U: what the capacity of each dimension costs at the prices, and what is wanted beyond its price.
	Scarcity []float64 `json:"scarcity"` // by dimension
	Wanted   float64   `json:"wanted"`

	// Where the rest is: capacity that has a price and is free (with what rounding to the common divisor takes off
	// counted as used), units that are worth their price and are not placed, and units that stand where they cost
	// more than they count.
	Idle      []float64 `json:"idle"` // by dimension
	Unmet     float64   `json:"unmet"`
	Elsewhere float64   `json:"elsewhere"`

	Price   []float64 `json:"-"` // by class and dimension, in mean hosts
	Classes int       `json:"classes"`
	Sizes   int       `json:"sizes"`
	Steps   int       `json:"steps"`
}

// slack is what is added for the rounding of floats.
const slack = 1e-9

// check tells what of a problem cannot be.
func (p *Problem) check() error {
	classes, sizes := len(p.Hosts), len(p.Demand)
	switch {
	case p.Dimensions < 1:
		return errors.New("bound: no dimension")
	case len(p.Capacity) != classes*p.Dimensions || len(p.Used) != classes*p.Dimensions:
		return fmt.Errorf("bound: capacity and use of %d classes in %d dimensions have %d and %d figures", classes,
			p.Dimensions, len(p.Capacity), len(p.Used))
	case len(p.Size) != sizes*p.Dimensions || len(p.Granted) != sizes:
		return fmt.Errorf("bound: %d sizes in %d dimensions have %d figures, and %d of them grants", sizes,
			p.Dimensions, len(p.Size), len(p.Granted))
	}
	for _, column := range [][]int64{p.Hosts, p.Capacity, p.Used, p.Demand, p.Granted, p.Size} {
		for _, v := range column {
			if v < 0 {
				return fmt.Errorf("bound: %d is below 0", v)
			}
		}
	}
	if slices.Contains(p.Hosts, 0) {
		return errors.New("bound: a class without hosts")
	}
	return nil
}

// Solve gives the lowest bound that so many steps find; more steps never give a higher one. O(steps × classes ×
// sizes × dimensions).
func Solve(p *Problem, steps int) (*Result, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if steps < 1 {
		return nil, fmt.Errorf("bound: %d steps must be at least 1", steps)
	}
	s := scale(p)
	low := s.descend(steps)
	return s.result(p, low, steps), nil
}

// Weights are what a unit of each size counts, in mean hosts.
func (p *Problem) Weights() ([]float64, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	return scale(p).weight, nil
}

// result divides the bound at its prices into terms.
func (s *scaled) result(p *Problem, low *best, steps int) *Result {
	r := &Result{
		Granted: s.granted, Bound: low.value * (1 + slack), Ratio: 1, Price: low.price, Classes: len(p.Hosts),
		Sizes: len(p.Demand), Steps: steps,
		Scarcity: make([]float64, s.dims), Idle: make([]float64, s.dims),
	}
	for i, price := range low.price {
		d := i % s.dims
		r.Scarcity[d] += price * s.whole[i]
		r.Idle[d] += price * max(0, s.whole[i]-s.used[i])
	}
	for i := range s.weight {
		gain := max(0, s.weight[i]-s.cheapest(low.price, i))
		r.Wanted += gain * s.demand[i]
		r.Unmet += gain * max(0, s.demand[i]-s.placed[i])
	}
	r.Elsewhere = r.Bound - r.Granted - r.Unmet
	for _, idle := range r.Idle {
		r.Elsewhere -= idle
	}
	if r.Bound > 0 {
		r.Ratio = r.Granted / r.Bound
	}
	return r
}
