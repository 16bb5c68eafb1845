package measure

import (
	"math"
	"slices"
)

// Quantiles are a figure over some measurements.
type Quantiles struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"` // of fewer than a hundred values the largest
	Max float64 `json:"max"`
	N   int     `json:"n"`
}

// quantiles gives the nearest-rank quantiles; of an even number of values the median is the mean of the middle two.
func quantiles(values []float64) Quantiles {
	if len(values) == 0 {
		return Quantiles{}
	}
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return Quantiles{P50: (v[(n-1)/2] + v[n/2]) / 2, P99: v[int(math.Ceil(0.99*float64(n)))-1], Max: v[n-1], N: n}
}
