package bound

import (
	"math"
	"slices"
)

// scaled is a problem in mean hosts: amounts are divided by the mean host's capacity in their dimension.
type scaled struct {
	dims    int
	hosts   []float64 // by class
	whole   []float64 // by class and dimension: capacity of all its hosts, rounded to what units can fill
	used    []float64 // by class and dimension
	demand  []float64 // by size
	placed  []float64 // by size
	weight  []float64 // by size
	size    []float64 // by size and dimension
	fits    []bool    // by size and class
	granted float64

	ties []int // scratch: classes that are about the cheapest
}

// scale gives a problem in mean hosts. A dimension that no host has is left out of amounts: what needs it fits nowhere.
func scale(p *Problem) *scaled {
	dims, classes, sizes := p.Dimensions, len(p.Hosts), len(p.Demand)
	s := &scaled{
		dims: dims, hosts: make([]float64, classes), whole: make([]float64, classes*dims),
		used: make([]float64, classes*dims), demand: make([]float64, sizes), placed: make([]float64, sizes),
		weight: make([]float64, sizes), size: make([]float64, sizes*dims),
		fits: make([]bool, sizes*classes),
	}
	mean, common := make([]float64, dims), make([]int64, dims)
	var hosts float64
	for c, n := range p.Hosts {
		s.hosts[c] = float64(n)
		hosts += float64(n)
		for d := range dims {
			mean[d] += float64(n) * float64(p.Capacity[c*dims+d])
		}
	}
	for i, v := range p.Size {
		common[i%dims] = divisor(common[i%dims], v)
	}
	for d := range mean {
		if mean[d] /= max(1, hosts); mean[d] == 0 {
			mean[d] = 1
		}
	}
	for i, capacity := range p.Capacity {
		d := i % dims
		s.used[i] = float64(p.Used[i]) / mean[d]
		if common[d] > 0 { // else no unit uses it
			s.whole[i] = s.hosts[i/dims] * float64(capacity-capacity%common[d]) / mean[d]
		}
	}
	for i := range sizes {
		size := p.Size[i*dims : (i+1)*dims]
		s.demand[i], s.placed[i] = float64(p.Demand[i]), float64(p.Granted[i])
		for d, v := range size {
			s.size[i*dims+d] = float64(v) / mean[d]
			s.weight[i] = max(s.weight[i], s.size[i*dims+d])
		}
		for c := range classes {
			s.fits[i*classes+c] = within(size, p.Capacity[c*dims:(c+1)*dims])
		}
		s.granted += s.weight[i] * s.placed[i]
	}
	return s
}

// divisor is the greatest common divisor.
func divisor(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func within(size, capacity []int64) bool {
	for d, v := range size {
		if v > capacity[d] {
			return false
		}
	}
	return true
}

// best is the lowest bound so far and its prices.
type best struct {
	value float64
	price []float64
}

// keep takes over a value that is lower.
func (b *best) keep(value float64, price []float64) bool {
	if value >= b.value {
		return false
	}
	b.value = value
	copy(b.price, price)
	return true
}

// cost is what a unit of size i costs on class c.
func (s *scaled) cost(price []float64, i, c int) (sum float64) {
	for d, v := range s.size[i*s.dims : (i+1)*s.dims] {
		sum += v * price[c*s.dims+d]
	}
	return sum
}

// cheapest is what a unit of size i costs where it costs least, infinite where it fits nowhere.
func (s *scaled) cheapest(price []float64, i int) float64 {
	least := math.Inf(1)
	for c := range s.hosts {
		if s.fits[i*len(s.hosts)+c] {
			least = min(least, s.cost(price, i, c))
		}
	}
	return least
}

// at gives U at some prices, and a direction in which it falls no faster than by the direction's own product with
// the way: the capacity of each class less what those want of it for whom it is about the cheapest, up to a part of
// tie dearer. Those who have several share themselves out by the number of hosts.
func (s *scaled) at(price, slope []float64, tie float64) (value float64) {
	copy(slope, s.whole)
	for i, v := range s.whole {
		value += v * price[i]
	}
	for i, w := range s.weight {
		least := s.cheapest(price, i)
		if least >= w {
			continue
		}
		value += s.demand[i] * (w - least)
		s.ties = s.ties[:0]
		var hosts float64
		for c := range s.hosts {
			if s.fits[i*len(s.hosts)+c] && s.cost(price, i, c) <= least*(1+tie) {
				s.ties = append(s.ties, c)
				hosts += s.hosts[c]
			}
		}
		for _, c := range s.ties {
			units := s.demand[i] * s.hosts[c] / hosts
			for d, v := range s.size[i*s.dims : (i+1)*s.dims] {
				slope[c*s.dims+d] -= units * v
			}
		}
	}
	return value
}

// patience is after how many steps without a lower bound the steps become half as long.
const patience = 12

// together is how many steps are taken with one price a dimension for all classes.
const together = 150

// descend takes so many steps: the first with one price a dimension, the others with prices by class. It begins with
// prices of 0, at which all that is wanted and fits somewhere is the bound.
func (s *scaled) descend(steps int) *best {
	low := &best{value: math.Inf(1), price: make([]float64, len(s.whole))}
	s.walk(low, min(steps, together), true)
	s.walk(low, max(0, steps-together), false)
	return low
}

// walk takes steps from the best prices so far. A step goes against the slope, of a class by its number of hosts, as
// far as would take the value down to what is granted if the slope held so long (Polyak), times a part that becomes
// smaller.
func (s *scaled) walk(low *best, steps int, alike bool) {
	price, slope := slices.Clone(low.price), make([]float64, len(low.price))
	part, waited := 1.0, 0
	for range steps {
		value := s.at(price, slope, part*1e-2)
		if low.keep(value, price) {
			waited = 0
		} else if waited++; waited == patience {
			part, waited = part/2, 0
			copy(price, low.price)
			value = s.at(price, slope, part*1e-2)
		}
		if alike {
			s.merge(slope)
		}
		var square float64
		for i, g := range slope {
			if g < 0 || price[i] > 0 { // a price of 0 does not fall
				square += g * g / s.hosts[i/s.dims]
			}
		}
		if square == 0 || value <= s.granted {
			return
		}
		length := part * (value - s.granted) / square
		for i, g := range slope {
			price[i] = max(0, price[i]-length*g/s.hosts[i/s.dims])
		}
	}
}

// merge gives every class its hosts' part of the slope of all classes together.
func (s *scaled) merge(slope []float64) {
	var hosts float64
	for _, n := range s.hosts {
		hosts += n
	}
	for d := range s.dims {
		var sum float64
		for c := range s.hosts {
			sum += slope[c*s.dims+d]
		}
		for c, n := range s.hosts {
			slope[c*s.dims+d] = sum * n / hosts
		}
	}
}
