package ownership

import (
	"math/bits"

	"github.com/stintd/stint/core/plan"
)

// Memory is made of at least so many pieces, and of at most so many of each host before it is known that there are
// more.
const (
	expectMin = 128
	expectMax = 8
)

// expected is about how many pieces there will be, as the rules have it, or what was had: a store that is made as large
// at once is not copied while it grows. Only memory depends on it. O(consumers × groups, and rules).
func (a *Assigner) expected() (pieces int) {
	t, groups := a.g.Tree, len(a.group)
	of := make([]int64, t.Len()*groups) // by Node, then group: hosts
	for g, set := range a.group {
		for _, w := range set {
			of[g] += int64(bits.OnesCount64(w))
		}
	}
	a.awaited = zeroed(a.awaited, t.Len())
	most := int64(expectMax * a.hosts)
	for id := range a.claims {
		c := &a.claims[id]
		n, up := int(c.node), int(t.Parent[c.node])
		for g := range groups {
			if rule := a.ruleOf(c).Group; rule < 0 || rule == g {
				some := min(a.expect(c, g, of[up*groups+g]), most)
				of[n*groups+g] += some
				a.awaited[n] += int(some)
				most -= some
			}
		}
	}
	for n := range a.awaited {
		a.awaited[n] = max(a.awaited[n], int(a.hadFrom[n+1]-a.hadFrom[n]))
		pieces += a.awaited[n]
	}
	return pieces
}

// expect is of how many hosts of a group a claim will have something, when the parent has so many.
func (a *Assigner) expect(c *claim, group int, of int64) int64 {
	switch r := a.ruleOf(c); c.form {
	case list:
		return min(of, int64(len(c.listed)))
	case hosts:
		return min(of, r.Hosts)
	case percent:
		return of * min(r.Percent, hundred) / hundred
	case amount:
		for d, v := range r.Amount {
			if v != plan.Unlimited {
				of = min(of, v/max(1, a.typical(group, d))+1)
			}
		}
	}
	return of
}

// typical is what one of a group's hosts has in a dimension.
func (a *Assigner) typical(group, d int) int64 {
	for i, w := range a.group[group] {
		if w != 0 {
			return a.g.Cap[d][i<<6+bits.TrailingZeros64(w)]
		}
	}
	return 0
}
