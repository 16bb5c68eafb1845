package oracle

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// Fair reclaim in MD plans, by docs/shares.md.

// net is the units that a sub-allocation holds from the pool and is promised, without those under reclaim (CYC-7).
func (g *round) net(s *sub) int64 {
	return g.pledged(s) + int64(len(g.units(func(u *unit) bool { return u.sub == s && drawn(u) && stays(u) })))
}

// drawn tells whether a unit is held from the public pool.
func drawn(u *unit) bool { return u.origin == publicPool }

// stake is a consumer's share usage by what is net.
func (g *round) stake(n plan.Node) uint64 {
	sum := uint64(0)
	for leaf := n; leaf < g.p.End[n]; leaf++ {
		if !g.p.Leaf(leaf) {
			continue
		}
		sizes, units := g.bysize(leaf, g.net)
		for i, u := range units {
			sum += g.fraction(u, sizes[i])
		}
	}
	return sum
}

// step is what units of a size more or less change the stake of a leaf by.
func (g *round) step(leaf plan.Node, size []int64, more int64) int64 {
	sizes, units := g.bysize(leaf, g.net)
	i := slices.IndexFunc(sizes, func(other []int64) bool { return slices.Equal(size, other) })
	return int64(g.fraction(units[i]+more, size)) - int64(g.fraction(units[i], size))
}

// claimed is the vector that a consumer and all below it hold net from pools above it (MD-18).
func (g *round) claimed(n plan.Node) []int64 {
	v := make([]int64, len(g.p.Dimensions))
	for _, s := range g.below(n) {
		plus(v, s.size, g.pledged(s))
	}
	for _, u := range g.units(stays) {
		if g.limitedBy(u, n) {
			plus(v, u.sub.size, 1)
		}
	}
	return v
}

// limitedBy tells whether a unit counts in the share limit of a consumer: it is held below it, from a pool above it.
func (g *round) limitedBy(u *unit, n plan.Node) bool {
	return g.under(n, u.leaf()) && u.pool != plan.None && u.pool < n
}

// review lets sets lapse as far as their takers no longer want, fit or deserve what they were promised, in order of number.
func (g *round) review() {
	g.reviewed = 0
	for _, s := range g.mine(every) {
		g.reviewed = s.number
		for s.n > 0 && !g.stands(s) {
			g.lapse(s)
		}
	}
	g.reviewed = math.MaxInt64
}

// stands tells whether a set's taker still wants, fits and deserves all its units.
func (g *round) stands(s *set) bool {
	t, h := s.taker, s.target
	if t.short() < g.pledged(t) || !g.takes(t, h, -1) || g.barred(t.alloc.leaf) {
		return false
	}
	for _, n := range g.way(t.alloc.leaf) {
		if slices.Contains(g.beyond(n, make([]int64, len(t.size)), g.claimed), true) {
			return false
		}
	}
	free := g.free(g.public(h))
	for d, n := range g.kept(s) {
		if n > 0 && free[d] < 0 {
			return false
		}
	}
	return len(g.units(func(u *unit) bool { return u.set == s && !g.ahead(u.leaf(), t.alloc.leaf, nil, nil) })) == 0
}

// takes tells whether a host may take a unit of a sub-allocation beside those promised to it there and some more.
func (g *round) takes(s *sub, h *host, more int64) bool {
	for _, t := range g.mine(func(t *set) bool { return t.taker == s && t.target == h && t.number <= g.reviewed }) {
		more += t.n
	}
	return g.ok(h) && g.meets(s, h) && fits(s.size, g.public(h).size) && !full(s, h, more)
}

// promised grants what sets hold room for, once the room is free.
func (g *round) promised() {
	for _, s := range g.mine(every) {
		for s.n > 0 && fits(s.taker.size, plus(g.free(g.public(s.target)), g.kept(s), 1)) {
			g.put(s.taker, s.target)
			if s.n--; s.n == 0 {
				g.trim(s, s.room())
			}
		}
	}
}

// fair is MD-17: those who go short take from those of lower priority, and from those who have more for their ratio.
func (g *round) fair() {
	has := map[plan.Node]uint64{} // leaves' stakes, what is taken back here counted in
	for n := range plan.Node(g.p.Len()) {
		if g.p.Leaf(n) {
			has[n] = g.stake(n)
		}
	}
	turn := func(n plan.Node) uint64 {
		sum := uint64(0)
		for leaf := n; leaf < g.p.End[n]; leaf++ {
			sum += has[leaf]
		}
		return sum
	}
	g.race(turn, func(s *sub) bool {
		if !g.w.ShareReclaim[s.alloc.leaf] || g.passed[s] {
			return false
		}
		_, _, hit := g.limited(s, g.claimed)
		gets := g.step(s.alloc.leaf, s.size, 1)
		if g.passed[s] = hit || !g.join(s) && !g.seize(s); !g.passed[s] {
			has[s.alloc.leaf] += uint64(gets)
		}
		return !g.passed[s]
	})
}

// netFree is what a host will have for the pool once all sets under way are done.
func (g *round) netFree(h *host) []int64 {
	v := g.spare(g.public(h), stays)
	for _, s := range g.mine(func(s *set) bool { return s.target == h }) {
		plus(v, s.room(), -1)
	}
	for _, j := range g.joined {
		if j.host == h {
			plus(v, j.sub.size, -1)
		}
	}
	return v
}

// join lets a unit wait for sets under way, when it will fit once they are done (CYC-6).
func (g *round) join(s *sub) bool {
	if len(g.mine(every)) == 0 && len(g.units((*unit).leaves)) == 0 {
		return false
	}
	for _, h := range g.hosts {
		if g.takes(s, h, 0) && fits(s.size, g.netFree(h)) {
			g.joined = append(g.joined, joined{s, h, plan.Root})
			return true
		}
	}
	return false
}

// seize makes a set for a unit, on the host of the first candidate where victims make it fit.
func (g *round) seize(s *sub) bool {
	kind := fmt.Sprint(s.alloc.leaf, s.size, s.req)
	if s.perHost != plan.Unlimited {
		kind = fmt.Sprint("sub ", s.arrival)
	}
	if g.vain[kind] {
		return false
	}
	list := g.victims(s)
	for _, u := range list {
		if g.vain[kind+u.host.Name] || !g.takes(s, u.host, 0) {
			continue
		}
		if chosen := g.pick(s, u.host, list); chosen != nil {
			return g.claim(&set{reason: "fair_share", target: u.host, taker: s, account: plan.Root}, chosen)
		}
		g.vain[kind+u.host.Name] = true
	}
	g.vain[kind] = true
	return false
}

// victims are the units that may be taken for a sub-allocation: where the branches part, from the root down.
func (g *round) victims(s *sub) []*unit {
	var list []*unit
	up, gets := plan.Root, g.gets(s)
	for _, n := range g.way(s.alloc.leaf) {
		for _, k := range g.giving(up) {
			if k != n && g.ahead(k, n, nil, gets) {
				list = append(list, g.unitsOf(k)...)
			}
		}
		up = n
	}
	return slices.DeleteFunc(list, func(u *unit) bool { return !g.ahead(u.leaf(), s.alloc.leaf, g.gives(u), gets) })
}

// giving is a consumer's children in the order in which they give.
func (g *round) giving(n plan.Node) []plan.Node {
	kids := g.children(n)
	slices.SortFunc(kids, func(a, b plan.Node) int {
		ratio := func(n plan.Node) uint64 { return uint64(g.ratio[n]) }
		order := cmp.Compare(g.w.Priority[a], g.w.Priority[b])
		if order == 0 {
			order = cmp.Compare(min(ratio(a), 1), min(ratio(b), 1))
		}
		if order == 0 && ratio(a) > 0 {
			order = less(g.stake(b), ratio(a), g.stake(a), ratio(b))
		}
		return cmp.Or(order, g.rankOrder(g.in, b, a))
	})
	return kids
}

// unitsOf are the net units of a consumer on public parcels in the order in which it gives them.
func (g *round) unitsOf(n plan.Node) []*unit {
	var list []*unit
	if g.p.Leaf(n) {
		list = g.units(func(u *unit) bool { return u.leaf() == n && u.owner == plan.Root && stays(u) })
		slices.SortFunc(list, g.newest)
	}
	for _, k := range g.giving(n) {
		list = append(list, g.unitsOf(k)...)
	}
	return list
}

// gives is what its leaf's share loses with a unit, gets what it gains with one.
func (g *round) gives(u *unit) *big.Rat { return g.differs(u.sub, 0, -1) }
func (g *round) gets(s *sub) *big.Rat   { return g.differs(s, 1, 0) }

// differs is by how much a leaf's share is larger with some units of a size more than with some others more.
func (g *round) differs(s *sub, a, b int64) *big.Rat {
	sizes, units := g.bysize(s.alloc.leaf, g.net)
	n := units[slices.IndexFunc(sizes, func(other []int64) bool { return slices.Equal(s.size, other) })]
	return new(big.Rat).Sub(g.portion(n+a, s.size), g.portion(n+b, s.size))
}

// worth is a consumer's share by what is net, without any rounding.
func (g *round) worth(n plan.Node) *big.Rat {
	sum := new(big.Rat)
	for leaf := n; leaf < g.p.End[n]; leaf++ {
		if !g.p.Leaf(leaf) {
			continue
		}
		sizes, units := g.bysize(leaf, g.net)
		for i, u := range units {
			sum.Add(sum, g.portion(u, sizes[i]))
		}
	}
	return sum
}

// portion is what fraction rounds.
func (g *round) portion(units int64, size []int64) *big.Rat {
	if units == 0 {
		return new(big.Rat)
	}
	return big.NewRat(units, max(g.pack(size), units))
}

// ahead tells whether a victim that gives and a taker that gets so much stake may be so, where their ways part.
func (g *round) ahead(victim, taker plan.Node, gives, gets *big.Rat) bool {
	a, b := g.part(victim, taker)
	switch {
	case g.w.Priority[a] != g.w.Priority[b]:
		return g.w.Priority[a] < g.w.Priority[b]
	case g.ratio[a] == 0 || g.ratio[b] == 0:
		return g.ratio[a] == 0 && g.ratio[b] > 0
	}
	x, y := g.worth(a), g.worth(b)
	if gives != nil {
		x.Sub(x, gives)
	}
	if gets != nil {
		y.Add(y, gets)
	}
	return x.Sign() >= 0 && x.Mul(x, big.NewRat(g.ratio[b], 1)).Cmp(y.Mul(y, big.NewRat(g.ratio[a], 1))) >= 0
}

// pick chooses the victims for a unit on a host, nil when they cannot make it fit: one alone if there is such a one,
// else one after the other, as long as what their branch gave allows it; those not needed are dropped again.
func (g *round) pick(s *sub, h *host, list []*unit) []*unit {
	room := func(chosen []*unit) []int64 {
		room := g.netFree(h)
		for d, n := range g.free(g.public(h)) {
			room[d] = min(room[d], n)
		}
		for _, u := range chosen {
			plus(room, u.sub.size, 1)
		}
		return room
	}
	enough := func(chosen []*unit) bool { return fits(s.size, room(chosen)) }
	here := slices.DeleteFunc(slices.Clone(list), func(u *unit) bool { return u.host != h })
	for _, u := range here {
		if enough([]*unit{u}) {
			return []*unit{u}
		}
	}
	var chosen []*unit
	given, gets := map[plan.Node]*big.Rat{}, g.gets(s)
	for _, u := range here {
		helps, now := false, room(chosen)
		for d, n := range s.size {
			helps = helps || n > max(0, now[d]) && u.sub.size[d] > 0
		}
		a, _ := g.part(u.leaf(), s.alloc.leaf)
		gives := g.gives(u)
		if given[a] != nil {
			gives.Add(gives, given[a])
		}
		if helps && g.ahead(u.leaf(), s.alloc.leaf, gives, gets) {
			given[a] = gives
			chosen = append(chosen, u)
		}
	}
	if !enough(chosen) {
		return g.alike(s, here, enough)
	}
	for _, u := range slices.Clone(chosen) {
		if rest := slices.DeleteFunc(slices.Clone(chosen), func(v *unit) bool { return v == u }); enough(rest) {
			chosen = rest
		}
	}
	return chosen
}

// alike chooses units of one leaf and size that make a unit fit by themselves, of those of which it takes the fewest.
func (g *round) alike(s *sub, here []*unit, enough func(chosen []*unit) bool) (best []*unit) {
	for _, first := range here {
		var chosen []*unit
		gives := new(big.Rat)
		for _, u := range here {
			if u.leaf() != first.leaf() || !slices.Equal(u.sub.size, first.sub.size) || enough(chosen) {
				continue
			}
			if gives.Add(gives, g.gives(u)); g.ahead(u.leaf(), s.alloc.leaf, gives, g.gets(s)) {
				chosen = append(chosen, u)
			}
		}
		if enough(chosen) && (best == nil || len(chosen) < len(best)) {
			best = chosen
		}
	}
	return best
}
