package oracle

import (
	"math/big"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// hybrid is the origin of all units of hybrid branches; common is the account that they have together.
const (
	hybrid = "hybrid"
	common = plan.Node(-2)
)

// hybrids are the figures of hybrid branches that stay what they are while the cycle lasts.
type hybrids struct {
	all      int64                  // H
	owned    map[plan.Node]*big.Rat // E
	reserves map[plan.Node]int64    // R
	gives    map[plan.Node]int64    // what leaves are to give back in this step (SLOT-27)
	start    map[plan.Node]int64    // what they held, net, when it began
	divides  int64                  // what of it the budget lets through yet
}

// hybrid tells whether a consumer is under the hybrid policy.
func (g *slots) hybrid(n plan.Node) bool { return n > plan.Root && g.w.Policy[n] == plan.Hybrid }

// blended are the hybrid children of a consumer, in rank order.
func (g *slots) blended(n plan.Node) []plan.Node {
	return g.ranked(slices.DeleteFunc(g.children(n), func(k plan.Node) bool { return !g.hybrid(k) }))
}

// hybridLeaves are the hybrid leaves in rank order.
func (g *slots) hybridLeaves() []plan.Node {
	return g.ranked(slices.DeleteFunc(g.leaves(), func(n plan.Node) bool { return !g.hybrid(n) }))
}

// scale settles what hybrid consumers own and reserve of all that hybrid branches have (SLOT-21, SLOT-30).
func (g *slots) scale(all int64) {
	whole := int64(0) // C
	for _, n := range g.blended(plan.Root) {
		whole += g.w.Owns[n]
	}
	if g.s.ConfiguredSlots != plan.Unlimited && len(g.blended(plan.Root)) == len(g.children(plan.Root)) {
		whole = g.s.ConfiguredSlots
	}
	g.all, g.owned, g.reserves = all, map[plan.Node]*big.Rat{}, map[plan.Node]int64{}
	for n := plan.Node(g.p.Len() - 1); n > plan.Root; n-- { // children come before their parents
		if !g.member[n] || !g.hybrid(n) {
			continue
		}
		e := new(big.Rat)
		if whole > 0 {
			e.Mul(rat(g.w.Owns[n]), big.NewRat(all, whole))
		}
		g.owned[n] = e
		g.reserves[n] = min(g.w.Reserves[n], floor(e))
		if g.w.Limit[n] != plan.Unlimited {
			g.reserves[n] = min(g.reserves[n], g.w.Limit[n])
		}
		g.reserves[n] = max(g.reserves[n], total(g.children(n), func(k plan.Node) int64 { return g.reserves[k] }))
	}
}

func rat(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

// floor rounds a fraction of at least 0 down.
func floor(x *big.Rat) int64 { return new(big.Int).Quo(x.Num(), x.Denom()).Int64() }

// quotasOf are the quotas of all hybrid consumers, from what they can use (SLOT-22), level by level (SLOT-23).
func (g *slots) quotasOf() map[plan.Node]int64 {
	use := map[plan.Node]int64{}
	for n := plan.Node(g.p.Len() - 1); n > plan.Root; n-- { // children come before their parents
		if !g.member[n] || !g.hybrid(n) {
			continue
		}
		if g.p.Leaf(n) {
			use[n] = g.wanted[n]
		}
		for _, k := range g.children(n) {
			use[n] += use[k]
		}
		use[n] = max(use[n], g.reserves[n])
		if g.w.Limit[n] != plan.Unlimited {
			use[n] = min(use[n], g.w.Limit[n])
		}
	}
	quota := map[plan.Node]int64{plan.Root: g.all}
	for n := plan.Root; int(n) < g.p.Len(); n++ {
		if kids := g.blended(n); g.s.DistributeEvenly {
			g.evenly(quota[n], kids, use, quota)
		} else {
			g.portion(quota[n], kids, use, quota)
		}
	}
	return quota
}

// portion divides a quota among children (SLOT-23).
func (g *slots) portion(amount int64, kids []plan.Node, use, quota map[plan.Node]int64) {
	var owns, some, reserves, most, mine []*big.Rat
	all, kept := new(big.Rat), int64(0)
	for _, k := range kids {
		u := rat(use[k])
		m := u
		if g.owned[k].Cmp(u) < 0 {
			m = g.owned[k]
		}
		owns, some = append(owns, rat(g.w.Owns[k])), append(some, new(big.Rat))
		reserves = append(reserves, rat(g.reserves[k]))
		if mine = append(mine, m); g.w.Owns[k] == 0 {
			u = new(big.Rat) // its turn is later
		}
		most = append(most, u)
		all.Add(all, m)
		kept += g.reserves[k]
	}
	var parts []int64
	switch {
	case rat(amount).Cmp(all) >= 0:
		parts = level(amount, owns, some, most)
		left := amount
		for i, k := range kids {
			left -= parts[i]
			owns[i], most[i] = rat(1), rat(use[k])
			if g.w.Owns[k] > 0 {
				most[i] = new(big.Rat)
			}
		}
		for i, more := range level(left, owns, some, most) {
			parts[i] += more
		}
	case kept > amount:
		parts = level(amount, mine, some, reserves)
	default:
		parts = level(amount, mine, reserves, mine)
	}
	for i, k := range kids {
		quota[k] = parts[i]
	}
}

// evenly divides a quota among children when what is beyond what they own goes to all alike (SLOT-25).
func (g *slots) evenly(amount int64, kids []plan.Node, use, quota map[plan.Node]int64) {
	var owns, one, some, reserves, most []*big.Rat
	all, kept := int64(0), int64(0)
	for _, k := range kids {
		owns, one, some = append(owns, rat(g.w.Owns[k])), append(one, rat(1)), append(some, new(big.Rat))
		reserves = append(reserves, rat(min(g.reserves[k], g.w.Owns[k])))
		most = append(most, rat(min(use[k], g.w.Owns[k])))
		all += g.w.Owns[k]
		kept += min(g.reserves[k], g.w.Owns[k])
	}
	var parts []int64
	switch {
	case amount >= all:
		parts = level(amount, owns, most, most)
	case kept > amount:
		parts = level(amount, owns, some, reserves)
	default:
		parts = level(amount, owns, reserves, most)
	}
	left := amount
	for i, k := range kids {
		left -= parts[i]
		most[i] = rat(use[k] - parts[i])
	}
	for i, more := range level(left, one, some, most) {
		quota[kids[i]] = parts[i] + more
	}
}

// level divides an amount in proportion to weights, nobody below its least nor above its most: with the λ for which
// max(least, min(most, λ × weight)) add up to it. The parts are whole: floors, then one each to the first that had a
// fraction (SLOT-24).
func level(amount int64, weights, least, most []*big.Rat) []int64 {
	at := func(lambda *big.Rat) (parts []*big.Rat, sum *big.Rat) {
		sum = new(big.Rat)
		for i, w := range weights {
			x := new(big.Rat).Mul(lambda, w)
			if x.Cmp(most[i]) > 0 {
				x.Set(most[i])
			}
			if x.Cmp(least[i]) < 0 {
				x.Set(least[i])
			}
			parts, sum = append(parts, x), sum.Add(sum, x)
		}
		return parts, sum
	}
	bends := []*big.Rat{new(big.Rat)} // between two neighbours of them the sum is a straight line
	for i, w := range weights {
		if w.Sign() > 0 {
			bends = append(bends, new(big.Rat).Quo(least[i], w), new(big.Rat).Quo(most[i], w))
		}
	}
	slices.SortFunc(bends, (*big.Rat).Cmp)
	parts, sum := at(bends[0])
	for i, b := range bends[1:] {
		next, more := at(b)
		if more.Cmp(rat(amount)) > 0 {
			step := new(big.Rat).Sub(rat(amount), sum)
			step.Quo(step, new(big.Rat).Sub(more, sum)).Mul(step, new(big.Rat).Sub(b, bends[i]))
			parts, sum = at(step.Add(step, bends[i]))
			break
		}
		parts, sum = next, more
	}
	whole := make([]int64, len(parts))
	left := floor(sum)
	for i, x := range parts {
		whole[i] = floor(x)
		left -= whole[i]
	}
	for i, x := range parts {
		if left > 0 && !x.IsInt() {
			whole[i]++
			left--
		}
	}
	return whole
}

// blend is what hybrid leaves hold.
func (g *slots) blend(net bool) int64 {
	return g.draws(plan.Root, net)
}

// promisedTo is the room that is promised to a consumer and all below it.
func (g *slots) promisedTo(n plan.Node) int64 {
	return g.rooms(func(s *set) bool { return g.under(n, s.taker.alloc.leaf) }) + g.joins(func(j joined) bool {
		return g.under(n, j.sub.alloc.leaf)
	})
}

// unfilled is what of all reserves nobody holds (SLOT-28's free), if a leaf held k slots more.
func (g *slots) unfilled(leaf plan.Node, k int64) int64 {
	return g.lacking(plan.Root, g.filling(leaf, k, nil))
}

// filling is what is promised to a consumer and all below it, if a leaf held k slots more and victims were gone.
func (g *slots) filling(leaf plan.Node, k int64, victims []*unit) func(n plan.Node) int64 {
	return func(n plan.Node) int64 {
		if g.under(n, leaf) {
			return g.promisedTo(n) + k - g.of(n, victims)
		}
		return g.promisedTo(n) - g.of(n, victims)
	}
}

// lacking is what of the reserves at and below a consumer is neither held nor promised.
func (g *slots) lacking(n plan.Node, promised func(n plan.Node) int64) int64 {
	return max(0, g.lackingBelow(n, promised), g.reserves[n]-g.draws(n, false)-promised(n))
}

// lackingBelow is what of the reserves below it is: the consumer's limit is for those first (SLOT-26).
func (g *slots) lackingBelow(n plan.Node, promised func(n plan.Node) int64) int64 {
	return total(g.blended(n), func(k plan.Node) int64 { return g.lacking(k, promised) })
}

// beside is what a consumer has by some count, and what reserves below it still need if a leaf held k slots more.
func (g *slots) beside(has func(n plan.Node) int64, leaf plan.Node, k int64) func(n plan.Node) int64 {
	return func(n plan.Node) int64 { return has(n) + g.lackingBelow(n, g.filling(leaf, k, nil)) }
}

// netFor is what will be free of an account for a unit once victims are gone too: of the common one not what reserves
// of others need, nor what they need then that victims filled so far.
func (g *slots) netFor(s *sub, account plan.Node, victims []*unit) int64 {
	if account == plan.Root {
		return g.netPool(s.alloc.leaf, victims)
	}
	if account != common {
		return g.netAccount(account) + g.of(plan.Root, victims)
	}
	// Where hybrid leaves hold more than their part, as nobody else needs it, units move among them all the same.
	if g.netAccount(common) < 0 {
		g.notes["moved within more than the hybrid branches' part"]++
	}
	// Beside victims it is no more than what is idle and no owner's: S counts what is held on closed hosts too.
	kept := g.unfilled(s.alloc.leaf, s.slots())
	has := min(max(0, g.netAccount(common))-kept, max(0, g.spared(g.netFree, g.netAccount)))
	return has + g.of(plan.Root, victims) - (g.lacking(plan.Root, g.filling(s.alloc.leaf, s.slots(), victims)) - kept)
}

// arrives tells whether a set whose victims are all gone takes nothing that reserves need, beside the sets before it.
func (g *slots) arrives(s *set) bool {
	before := func(o *set) bool { return o.number <= s.number }
	idle := g.all - g.blend(false) - g.keeps(func(o *set) bool { return o.account == common && before(o) })
	return max(0, idle) >= g.lacking(plan.Root, func(n plan.Node) int64 {
		return g.rooms(func(o *set) bool { return before(o) && g.under(n, o.taker.alloc.leaf) })
	})
}

// deal hands idle slots to hybrid leaves: in rank order to those below their quota, then to all (SLOT-26).
func (g *slots) deal() {
	for _, all := range []bool{false, true} {
		for _, leaf := range g.hybridLeaves() {
			for g.serve(leaf, held, func(s *sub) bool {
				return g.serveBy(s, func(s *sub) bool { return (all || g.due(s)) && g.blendIn(s) })
			}) {
			}
		}
	}
}

// due tells whether a unit more is within a leaf's quota; one that is promised counts already.
func (g *slots) due(s *sub) bool {
	leaf, k := s.alloc.leaf, s.slots()
	if g.pledged(s) >= s.short() {
		k = 0
	}
	return g.draws(leaf, true)+g.promisedTo(leaf)+k <= g.quota[leaf]
}

// blendIn grants a unit to a hybrid leaf.
func (g *slots) blendIn(s *sub) bool {
	h, k, more := g.host(s), s.slots(), s.slots()
	if g.pledged(s) >= s.short() { // what it fills of a reserve is counted as promised already
		more = 0
	}
	if h == nil || g.account(common) < k || g.spare() < k || g.account(common)-k < g.unfilled(s.alloc.leaf, more) ||
		!g.lasts(s, hybrid, plan.None) {
		return false
	}
	g.give(s, h, hybrid, plan.None)
	return true
}

// hybridFigures are the columns of a hybrid consumer.
func (g *slots) hybridFigures(n plan.Node, free map[plan.Node]int64) *SlotFigures {
	own, mine, lent := floor(g.owned[n]), int64(0), int64(0)
	for _, leaf := range g.hybridLeaves() {
		if g.under(n, leaf) {
			mine += min(g.draws(leaf, false), floor(g.owned[leaf]))
			lent += g.lent(leaf, false) // from before it was hybrid
		}
	}
	return &SlotFigures{OwnedConfigured: g.w.Owns[n], Owned: own, Reserved: g.reserves[n], Limit: g.w.Limit[n],
		StaticQuota: own,
		Quota:       g.quota[n], HeldOwned: mine, HeldBorrowed: g.holds(n) - mine, Lent: lent, Free: free[n]}
}

// idleParts is the column free of hybrid consumers (SLOT-28).
func (g *slots) idleParts() map[plan.Node]int64 {
	free := map[plan.Node]int64{}
	short := slices.ContainsFunc(g.hybridLeaves(), func(leaf plan.Node) bool {
		return g.draws(leaf, false) < g.wanted[leaf]
	})
	var walk func(n plan.Node, amount int64)
	walk = func(n plan.Node, amount int64) {
		kids := g.blended(n)
		var owns, caps []uint64
		for _, k := range kids {
			owns, caps = append(owns, uint64(g.w.Owns[k])), append(caps, uint64(amount))
		}
		for i, part := range fill(uint64(amount), caps, owns) {
			free[kids[i]] = int64(part)
			walk(kids[i], int64(part))
		}
	}
	if !short {
		walk(plan.Root, max(0, g.all-g.blend(false)))
		return free
	}
	for n := plan.Node(g.p.Len() - 1); n > plan.Root; n-- {
		if g.member[n] && g.hybrid(n) {
			free[n] = max(0, total(g.blended(n), func(k plan.Node) int64 { return free[k] }),
				g.reserves[n]-g.draws(n, false))
		}
	}
	return free
}
