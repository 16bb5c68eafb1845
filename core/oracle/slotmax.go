package oracle

import (
	"slices"

	"github.com/stintd/stint/core/plan"
)

// Within a share.max owned comes first (SLOT-4).

// dueBelow is what owners below a consumer, but one leaf, want of their own and neither hold nor are promised.
func (g *slots) dueBelow(n, but plan.Node) int64 {
	return total(g.leaves(), func(leaf plan.Node) int64 {
		if leaf == but || !g.under(n, leaf) {
			return 0
		}
		own := min(g.wanted[leaf], g.owns[leaf]) - g.held(leaf, owned, true) - g.rooms(func(s *set) bool {
			return s.account == leaf
		})
		return max(0, min(own, g.wanted[leaf]-g.claimed(leaf)))
	})
}

// makeWay reclaims what other leaves below a maximum hold from loans and pools, for an owner's unit that the maximum
// does not bear and that would fit otherwise. It tells whether all of that was reclaimed.
func (g *slots) makeWay(s *sub) bool {
	leaf, k := s.alloc.leaf, s.slots()
	var chosen []*unit
	for _, n := range slices.Backward(g.way(leaf)) {
		over := func() bool { return g.most(n) != plan.Unlimited && g.claimed(n)+k-g.of(n, chosen) > g.most(n) }
		for _, origin := range []string{borrowed, sharePool} {
			list := g.victims(func(u *unit) bool {
				return g.under(n, u.leaf()) && u.leaf() != leaf && g.as(u) == origin && !slices.Contains(chosen, u) &&
					!g.breaks(u, nil)
			})
			slices.SortStableFunc(list, func(a, b *unit) int { return order(!g.ok(a.host)) - order(!g.ok(b.host)) })
			for _, u := range list {
				if over() && !g.breaks(u, chosen) {
					chosen = append(chosen, u)
				}
			}
		}
		if over() {
			return false
		}
	}
	if len(chosen) == 0 || !g.fitsOwner(s, chosen) {
		return false
	}
	for _, u := range chosen {
		if !g.rule(u, "over_limit") {
			g.denied[s] = true
			return false
		}
		g.notes["made way for an owner below a maximum"]++
	}
	return true
}

// fitsOwner tells whether a unit of an owner fits, but for maximums, once some units are gone: slots that are its own
// by then, or that it has lent, on one host.
func (g *slots) fitsOwner(s *sub, gone []*unit) bool {
	k, leaf := s.slots(), s.alloc.leaf
	own := total(gone, func(u *unit) int64 {
		if u.lender == leaf {
			return u.slots()
		}
		return 0
	})
	if g.netAccount(leaf)+own >= k && slices.ContainsFunc(g.hosts, func(h *host) bool {
		here := slices.DeleteFunc(slices.Clone(gone), func(u *unit) bool { return u.host != h })
		return g.takes(s, h) && g.netFree(h)+g.of(plan.Root, here) >= k
	}) {
		return true
	}
	return slices.ContainsFunc(g.hosts, func(h *host) bool {
		var gone []*unit
		for _, u := range g.loans(leaf) {
			if u.host == h && !g.breaks(u, gone) { // for a gang nothing makes way (D-177)
				gone = append(gone, u)
			}
		}
		lent := g.of(plan.Root, gone)
		joins := g.free(h) >= k && g.netAccount(leaf) >= k // it needs no victims there
		return g.takes(s, h) && !joins && g.free(h)+lent >= k && g.netAccount(leaf)+lent >= k
	})
}
