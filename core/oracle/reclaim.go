package oracle

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// limit is the most that a consumer may hold of a dimension from the pool; a ratio of 0 counts as 0 (MD-18).
func (g *round) limit(n plan.Node, d int) int64 {
	if g.ratio[n] == 0 {
		return 0
	}
	return g.w.Limit[d][n]
}

// beyond tells in which dimensions a consumer would hold more than its limit with a unit of a size more.
func (g *round) beyond(n plan.Node, size []int64, has func(n plan.Node) []int64) []bool {
	v := plus(slices.Clone(size), has(n), 1)
	over := make([]bool, len(size))
	for d := range over {
		most := g.limit(n, d)
		over[d] = most != plan.Unlimited && v[d] > most
	}
	return over
}

// bears tells whether what asked for a unit back, its parcel's reserves or else a limit, bears it again; a gang that
// goes whole is not taken up again for that.
func (g *round) bears(u *unit) bool {
	if !g.formed(u.sub) {
		return false
	}
	if u.set.reason == "reserve" {
		return !touches(u.sub.size, g.intruded(g.parcel(u.host, u.owner), u.sub.size, func(x plan.Node) bool {
			return !g.under(x, u.leaf())
		}))
	}
	return !slices.ContainsFunc(g.Cluster.way(u.leaf()), func(n plan.Node) bool {
		return g.limitedBy(u, n) && touches(u.sub.size, g.beyond(n, u.sub.size, g.claimed))
	})
}

// limits puts under reclaim what consumers hold over their limits: children
// before parents, the units granted last (D-23).
func (g *round) limits() {
	nothing := make([]int64, len(g.p.Dimensions))
	for n := plan.Node(g.p.Len() - 1); n > plan.Root; n-- {
		order := map[plan.Node]map[plan.Node]int{}
		for g.member[n] {
			over := g.beyond(n, nothing, g.claimed)
			list := g.units(func(u *unit) bool { return g.limitedBy(u, n) && stays(u) && touches(u.sub.size, over) })
			if len(list) == 0 {
				break
			}
			u := slices.MinFunc(list, func(a, b *unit) int {
				return g.overLimit(n, order, a, b)
			})
			if u.pool != plan.Root {
				g.notes["over a limit in a private pool"]++
			}
			if !g.rule(u, "over_limit") {
				return
			}
		}
	}
}

// overLimit orders units that a limit takes (MD-18.4): in the pool nearest the root, by the mirrored walk below the
// limited consumer, with stakes as they were before any of them went.
func (g *round) overLimit(n plan.Node, order map[plan.Node]map[plan.Node]int, a, b *unit) int {
	at := func(u *unit) int {
		if order[u.pool] == nil {
			order[u.pool] = map[plan.Node]int{}
			for i, leaf := range g.pool(u.pool).mirrored(n) {
				order[u.pool][leaf] = i
			}
		}
		return order[u.pool][u.leaf()]
	}
	return cmp.Or(g.coreLast(a, b), cmp.Compare(g.p.Depth[a.pool], g.p.Depth[b.pool]), cmp.Compare(at(a), at(b)),
		g.newest(a, b))
}
