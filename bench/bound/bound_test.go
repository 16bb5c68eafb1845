package bound

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestByHand holds a case whose bound can be told without steps: two hosts of 4 and 8, of which two sizes take one
// dimension each.
func TestByHand(t *testing.T) {
	p := &Problem{
		Dimensions: 2, Hosts: []int64{2}, Capacity: []int64{4, 8}, Used: []int64{6, 4},
		Size: []int64{1, 0 /* a quarter of a host */, 0, 4 /* a half */}, Demand: []int64{100, 1},
		Granted: []int64{6, 1},
	}
	r, err := Solve(p, 600)
	if err != nil {
		t.Fatal(err)
	}
	// The first dimension is full with 8 units, which are 2 hosts; of the second all that is wanted is placed: half
	// a host.
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"bound", r.Bound, 2.5}, {"granted", r.Granted, 2}, {"ratio", r.Ratio, 0.8},
		{"scarcity of the first", r.Scarcity[0], 2},
		{"of the second", r.Scarcity[1], 0}, {"wanted", r.Wanted, 0.5}, {"idle", r.Idle[0], 0.5}, {"unmet", r.Unmet, 0},
		{"elsewhere", r.Elsewhere, 0},
	} {
		if math.Abs(c.got-c.want) > 1e-3 {
			t.Errorf("%s: %g, want %g", c.what, c.got, c.want)
		}
	}
}

// TestDivisor: of hosts of 7 units of 3 fill 6, and of a host that is too small none.
func TestDivisor(t *testing.T) {
	p := &Problem{Dimensions: 1, Hosts: []int64{5, 3}, Capacity: []int64{7, 2}, Used: make([]int64, 2),
		Size: []int64{3}, Demand: []int64{50}, Granted: []int64{10}}
	r, err := Solve(p, 300)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(r.Ratio-1) > 1e-6 {
		t.Errorf("10 units are all that fit, %g of the bound", r.Ratio)
	}
}

func TestNothing(t *testing.T) {
	for name, p := range map[string]*Problem{
		"no host":   {Dimensions: 1, Size: []int64{3}, Demand: []int64{4}, Granted: []int64{0}},
		"no demand": {Dimensions: 1, Hosts: []int64{1}, Capacity: []int64{4}, Used: []int64{0}},
		"too big": {Dimensions: 1, Hosts: []int64{1}, Capacity: []int64{4}, Used: []int64{0}, Size: []int64{5},
			Demand: []int64{4}, Granted: []int64{0}},
		"none has": {Dimensions: 2, Hosts: []int64{1}, Capacity: []int64{4, 0}, Used: []int64{0, 0},
			Size: []int64{1, 1}, Demand: []int64{4}, Granted: []int64{0}},
	} {
		r, err := Solve(p, 50)
		if err != nil || r.Bound != 0 || r.Ratio != 1 || r.Granted != 0 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

func TestRefused(t *testing.T) {
	good := func() *Problem {
		return &Problem{Dimensions: 1, Hosts: []int64{1}, Capacity: []int64{4}, Used: []int64{0}, Size: []int64{1},
			Demand: []int64{4}, Granted: []int64{0}}
	}
	for want, change := range map[string]func(*Problem){
		"no dimension":    func(p *Problem) { p.Dimensions = 0 },
		"have 2 and 1":    func(p *Problem) { p.Capacity = []int64{1, 2} },
		"have 3 figures":  func(p *Problem) { p.Size = []int64{1, 2, 3} },
		"-1 is below 0":   func(p *Problem) { p.Demand[0] = -1 },
		"class without h": func(p *Problem) { p.Hosts[0] = 0 },
	} {
		p := good()
		change(p)
		if _, err := Solve(p, 5); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
	if _, err := Solve(good(), 0); err == nil {
		t.Error("no steps: no error")
	}
}

// drawn is a random small case: up to three classes of a host each, three sizes, two dimensions.
func drawn(t *rapid.T) *Problem {
	p := &Problem{Dimensions: rapid.IntRange(1, 2).Draw(t, "dimensions")}
	figures := func(name string, rows int, most int64) []int64 {
		return rapid.SliceOfN(rapid.Int64Range(0, most), rows*p.Dimensions, rows*p.Dimensions).Draw(t, name)
	}
	classes, sizes := rapid.IntRange(1, 3).Draw(t, "classes"), rapid.IntRange(1, 3).Draw(t, "sizes")
	for range classes {
		p.Hosts = append(p.Hosts, 1)
	}
	p.Capacity, p.Used = figures("capacity", classes, 9), make([]int64, classes*p.Dimensions)
	p.Size = figures("size", sizes, 5)
	for i := range sizes { // no size is 0 in all dimensions
		p.Size[i*p.Dimensions] = max(1, p.Size[i*p.Dimensions])
	}
	p.Demand = rapid.SliceOfN(rapid.Int64Range(0, 4), sizes, sizes).Draw(t, "demand")
	p.Granted = make([]int64, sizes)
	return p
}

// exhausted is the most that any placement holds, by trying all: unit after unit on each host or on none. It leaves
// the best placement in the problem's grants.
func exhausted(p *Problem) float64 {
	s := scale(p)
	free, given := append([]int64(nil), p.Capacity...), make([]int64, len(p.Demand))
	var most float64
	var try func(i, from int, left int64, sum float64)
	try = func(i, from int, left int64, sum float64) {
		if sum > most {
			most = sum
			copy(p.Granted, given)
		}
		if i == len(p.Demand) {
			return
		}
		size := p.Size[i*p.Dimensions : (i+1)*p.Dimensions]
		for c := from; left > 0 && c < len(p.Hosts); c++ { // units of a size are alike: hosts in order
			room := free[c*p.Dimensions : (c+1)*p.Dimensions]
			if !within(size, room) {
				continue
			}
			for d, v := range size {
				room[d] -= v
			}
			given[i]++
			try(i, c, left-1, sum+s.weight[i])
			given[i]--
			for d, v := range size {
				room[d] += v
			}
		}
		if i+1 < len(p.Demand) {
			try(i+1, 0, p.Demand[i+1], sum)
		}
	}
	try(0, 0, p.Demand[0], 0)
	return most
}

// TestWeakDuality holds the bound of small cases, after any number of steps and at any prices, against all
// placements there are; the bound never rises with more steps, and its terms add up.
func TestWeakDuality(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawn(t)
		most := exhausted(p)
		s := scale(p)
		price := rapid.SliceOfN(rapid.Float64Range(0, 2), len(p.Capacity), len(p.Capacity)).Draw(t, "price")
		if value := s.at(price, make([]float64, len(price)), 0); value*(1+slack) < most {
			t.Fatalf("at %v the bound is %g, and %g can be placed", price, value, most)
		}
		last := math.Inf(1)
		for _, steps := range []int{1, 2, 5, 20, 149, 150, 151, 200, 400} {
			r, err := Solve(p, steps)
			if err != nil {
				t.Fatal(err)
			}
			if r.Bound < most {
				t.Fatalf("%d steps: the bound is %g, and %g can be placed", steps, r.Bound, most)
			}
			if r.Bound > last {
				t.Fatalf("%d steps: the bound is %g, and was %g after fewer", steps, r.Bound, last)
			}
			last = r.Bound
			terms, rest := r.Wanted, r.Granted+r.Unmet+r.Elsewhere
			for d := range p.Dimensions {
				terms, rest = terms+r.Scarcity[d], rest+r.Idle[d]
			}
			if math.Abs(terms-r.Bound) > 1e-6*(1+r.Bound) || math.Abs(rest-r.Bound) > 1e-6*(1+r.Bound) {
				t.Fatalf("the bound is %g, its terms add up to %g, where it goes to %g", r.Bound, terms, rest)
			}
		}
	})
}

// TestTight: of many hosts and small units the bound is within a hundredth of what a placement can hold. Half of
// them have twice the memory, where what wants memory must stand: prices differ by class.
func TestTight(t *testing.T) {
	p := &Problem{
		Dimensions: 2, Hosts: []int64{100, 100}, Capacity: []int64{64, 64, 64, 512}, Used: make([]int64, 4),
		Size: []int64{1, 1, 1, 8}, Demand: []int64{6400, 6400}, Granted: []int64{6400, 6400},
	}
	r, err := Solve(p, 600)
	if err != nil {
		t.Fatal(err)
	}
	if r.Ratio < 0.99 || r.Ratio > 1 {
		t.Errorf("%g of the bound, want nearly 1: %+v", r.Ratio, r)
	}
}
