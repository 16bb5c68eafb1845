package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/stintd/stint/core/decision"
)

// Price is what the capacity of a dimension costs, in any unit, at prices that bound what any placement could hold.
type Price struct {
	Dimension string
	Cost      float64
}

// priced are the reasons for which the prices tell which dimension is scarce.
var priced = []string{decision.Reasons[decision.ReasonFragmented], decision.Reasons[decision.ReasonPoolExhausted]}

// priceLeast is the part of all prices below which a dimension is not named.
const priceLeast = 0.005

// Name adds to each shortfall of a plan for which there is no room which dimensions are scarce, by their prices (D-91).
func (e *Explanation) Name(plan string, prices []Price) {
	text := scarce(prices)
	for i := range e.Plans {
		if e.Plans[i].Plan != plan {
			continue
		}
		for k := range e.Plans[i].Shortfalls {
			if s := &e.Plans[i].Shortfalls[k]; slices.Contains(priced, s.Reason) {
				s.Because = append(s.Because, because(text, "D-91"))
			}
		}
	}
}

// scarce tells which dimensions have a price, the dearest first.
func scarce(prices []Price) string {
	var all float64
	for _, p := range prices {
		all += p.Cost
	}
	if all <= 0 {
		return "no dimension is scarce in the plan as a whole: what is free lies on other hosts, " +
			"or in smaller parts than a unit"
	}
	prices = slices.Clone(prices)
	slices.SortStableFunc(prices, func(a, b Price) int { return cmp.Compare(b.Cost, a.Cost) })
	var parts []string
	for _, p := range prices {
		if part := p.Cost / all; part >= priceLeast {
			parts = append(parts, fmt.Sprintf("%s %.0f %%", p.Dimension, 100*part))
		}
	}
	return "scarce in the plan as a whole, by the prices of its bound: " + strings.Join(parts, ", ")
}
