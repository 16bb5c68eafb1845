package oracle

import (
	"slices"

	"github.com/stintd/stint/core/plan"
)

// explain gives every shortfall its reasons: what is promised waits, the rest is stopped by something.
func (g *slots) explain(r *Result) {
	g.tell()
	g.shortfalls(r, func(s *sub, units int64) []Shortfall {
		row := g.why(s, false)
		row.Units = units
		return []Shortfall{row}
	})
}

// why is what stops the next unit that nothing is promised to, the first that applies; alone: whatever of a gang there
// is.
func (g *slots) why(s *sub, alone bool) Shortfall {
	if g.small(s) {
		return Shortfall{Reason: "too_small"}
	}
	k, leaf := s.slots(), s.alloc.leaf
	hosts := g.candidates(s)
	big := func(h *host) bool { return g.size[h] < k }
	room := func(h *host) bool { return g.free(h) >= k }
	large := slices.DeleteFunc(slices.Clone(hosts), big)
	open := slices.DeleteFunc(slices.Clone(large), func(h *host) bool { return full(s, h, 0) })
	all := func(list []*host, ok func(h *host) bool) bool {
		return !slices.ContainsFunc(list, func(h *host) bool { return !ok(h) })
	}
	var why Shortfall
	over, most := g.over(leaf, k, g.beside(g.bound, leaf, k)), g.w.BorrowLimit[leaf]
	switch {
	case len(hosts) == 0 && (s.req != "" || g.isHeld(s)):
		return Shortfall{Reason: "no_host_matches"}
	case len(hosts) > 0 && all(hosts, big):
		return Shortfall{Reason: "too_big"}
	case !alone && g.waits(s) && g.pledged(s) == 0 && g.fewerFit(s, &why):
		return Shortfall{Reason: "gang", Blocker: why.Blocker, UntilUS: why.UntilUS, Fits: why.Fits, Where: g.where(s)}
	case over != plan.None:
		return Shortfall{Reason: "consumer_limit", Blocker: g.path(over)}
	case len(large) > 0 && len(open) == 0 || slices.ContainsFunc(large, room) && !slices.ContainsFunc(open, room):
		return Shortfall{Reason: "max_per_host"} // D-7
	case g.denied[s]:
		return Shortfall{Reason: "reclaim_budget"}
	case g.broke[g.in][leaf]:
		return Shortfall{Reason: "budget", Blocker: g.path(leaf), UntilUS: g.renewed(g.in, leaf)}
	case most > 0 && g.held(leaf, borrowed, false)+k > most:
		return Shortfall{Reason: "borrow_limit"}
	case len(hosts) > 0 && !slices.ContainsFunc(open, room) && g.payable(leaf, k):
		return Shortfall{Reason: "fragmented"}
	}
	if over := g.draws(leaf, false)+g.promisedTo(leaf)+k > g.quota[leaf]; g.hybrid(leaf) && over {
		return Shortfall{Reason: "over_quota"}
	} else if g.hybrid(leaf) {
		return Shortfall{Reason: "pool_exhausted"}
	}
	for _, n := range slices.Backward(g.way(leaf)) { // the nearest is named (D-26)
		if g.ratio[n] == 0 && g.pooled(n) < g.pooled(plan.Root) {
			return Shortfall{Reason: "share_limit", Blocker: g.path(n)}
		}
	}
	if g.held(leaf, sharePool, false) > 0 && g.usage(leaf)+k > g.deserved[leaf] &&
		g.deserved[leaf] < g.pooled(plan.Root) {
		return Shortfall{Reason: "over_quota"}
	}
	return Shortfall{Reason: "pool_exhausted"}
}

// payable tells whether an account that a leaf may use has k slots.
func (g *slots) payable(leaf plan.Node, k int64) bool {
	if g.hybrid(leaf) {
		return g.account(common) >= k && g.draws(leaf, false)+g.promisedTo(leaf)+k <= g.quota[leaf]
	}
	return g.ownIdle(leaf) >= k || g.idlePool(leaf) >= k && g.spare() >= k && !g.barred(leaf) ||
		g.mayLend(k) && g.lender(leaf, k, 0, plan.None) != plan.None
}

// keepsBorrowed is what a leaf borrowed and its quota shows: what is not being recalled, of each lender no more than
// that one can do without; what would be recalled first does not count (SLOT-11).
func (g *slots) keepsBorrowed(leaf plan.Node) int64 {
	sum := int64(0)
	for _, m := range g.leaves() {
		beyond := g.lent(m, true) - max(0, g.owns[m]-min(g.wanted[m], g.owns[m]))
		for _, u := range g.loans(m) {
			if beyond -= u.slots(); beyond+u.slots() <= 0 && u.leaf() == leaf {
				sum += u.slots()
			}
		}
	}
	return sum
}

// figures adds the consumers' columns.
func (g *slots) figures(r *Result) {
	idle := g.idleParts()
	for n := plan.Root + 1; int(n) < g.p.Len(); n++ {
		if !g.member[n] {
			continue
		}
		c := Consumer{Plan: g.name, Path: g.path(n), Held: g.holds(n)}
		for _, s := range g.below(n) {
			c.Demand += s.wanted * s.slots()
		}
		c.Short = c.Demand - c.Held
		if g.hybrid(n) {
			c.Slots = g.hybridFigures(n, idle)
			r.Consumers = append(r.Consumers, c)
			continue
		}
		f := &SlotFigures{OwnedConfigured: g.w.Owns[n], Owned: g.owns[n], Reserved: min(g.reserved(n), g.owns[n]),
			Limit:     g.w.Max[n],
			HeldOwned: g.held(n, owned, false), HeldShared: g.held(n, sharePool, false),
			HeldBorrowed: g.held(n, borrowed, false)}
		for _, leaf := range g.leaves() {
			if g.under(n, leaf) {
				f.StaticQuota += g.static[leaf]
				f.Quota += min(g.wanted[leaf], g.owns[leaf]) + g.dynamic[leaf] + g.keepsBorrowed(leaf)
				f.Lent += g.lent(leaf, false)
				f.Free += max(0, g.account(leaf))
			}
		}
		c.Slots = f
		r.Consumers = append(r.Consumers, c)
	}
}
