package oracle

import (
	"cmp"
	"fmt"
	"math/big"
	"math/bits"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// one is the share 1 in fixed point (D-5).
const one = 1 << 48

// Share is a consumer's share in a pool. Usage is exact, the other shares are 2⁻⁴⁸ fixed point (D-5).
type Share struct {
	Plan, Path, Pool       string
	Priority, Ratio        int64
	Usage                  *big.Rat
	Fixed, Demand, Quota   uint64
	UnitsHeld, UnitsWanted int64
	Decayed, Lowered       int64 // decayed usage as it is told, and hundredths of the ratio that count
}

// muldiv is ⌊a × b ÷ c⌋, which must fit, and what remains.
func muldiv(a, b, c uint64) (q, rest uint64) {
	hi, lo := bits.Mul64(a, b)
	return bits.Div64(hi, lo, c)
}

// pack is how many units of a size the empty pool takes, packed parcel by parcel (MD-11, D-4).
func (q pool) pack(size []int64) int64 {
	id := fmt.Sprint(size)
	if n, ok := q.packs[q.at][id]; ok {
		return n
	}
	sum := int64(0)
	for _, v := range q.counts() {
		sum += q.Cluster.packs(q.in, size, v)
	}
	if q.packs[q.at] == nil {
		q.packs[q.at] = map[string]int64{}
	}
	q.packs[q.at][id] = sum
	return sum
}

// packs is how many units of a size a vector holds.
func packs(size, room []int64) int64 {
	least := int64(-1)
	for d, n := range size {
		if n > 0 && (least < 0 || room[d]/n < least) {
			least = room[d] / n
		}
	}
	return max(least, 0)
}

// holders are the sub-allocations of a consumer and all below it, and those that hold and want nothing any more, but
// are promised something yet: until the review of their sets.
func (g *round) holders(n plan.Node) []*sub {
	list := g.below(n)
	for _, t := range g.mine(every) {
		if g.under(n, t.taker.alloc.leaf) && !slices.Contains(list, t.taker) {
			list = append(list, t.taker)
		}
	}
	return list
}

// bysize counts the units of a leaf by unit size, sizes in order of arrival.
func (g *round) bysize(leaf plan.Node, count func(s *sub) int64) (sizes [][]int64, units []int64) {
	for _, s := range g.holders(leaf) {
		i := slices.IndexFunc(sizes, func(size []int64) bool { return slices.Equal(size, s.size) })
		if i < 0 {
			i = len(sizes)
			sizes, units = append(sizes, s.size), append(units, 0)
		}
		units[i] += count(s)
	}
	return sizes, units
}

// holds is how many units of a sub-allocation are held from the pool.
func (q pool) holds(s *sub) int64 {
	return int64(len(q.units(func(u *unit) bool { return u.sub == s && q.drawn(u) })))
}

// usage is a consumer's share usage in fixed point (MD-12, D-5).
func (q pool) usage(n plan.Node) uint64 {
	sum := uint64(0)
	if !q.p.Leaf(n) {
		for _, k := range q.children(n) {
			sum += q.usage(k)
		}
		return sum
	}
	sizes, units := q.bysize(n, q.holds)
	for i, u := range units {
		sum += q.fraction(u, sizes[i])
	}
	return sum
}

// fraction is what so many units of a size are of the pool.
func (q pool) fraction(units int64, size []int64) uint64 {
	if units == 0 {
		return 0
	}
	share, _ := muldiv(uint64(units), one, uint64(max(q.pack(size), units)))
	return share
}

// exact is MD-12's usage without any rounding.
func (q pool) exact(n plan.Node) *big.Rat {
	sum := new(big.Rat)
	for _, k := range q.children(n) {
		sum.Add(sum, q.exact(k))
	}
	if q.p.Leaf(n) {
		sizes, units := q.bysize(n, q.holds)
		for i, u := range units {
			if u > 0 {
				sum.Add(sum, big.NewRat(u, max(q.pack(sizes[i]), u)))
			}
		}
	}
	return sum
}

// outstanding is how many units a sub-allocation is short of that the pool may have.
func (q pool) outstanding(s *sub) int64 {
	if q.exists(s.alloc.leaf) && q.usedUp(q.way(s.alloc.leaf)) == plan.None {
		return s.short()
	}
	return 0
}

// quotas is the share usage quota in the pool of every consumer below it (MD-14).
func (q pool) quotas() map[plan.Node]uint64 {
	quota := map[plan.Node]uint64{q.at: q.usage(q.at)}
	outstanding, demand := q.wants(), q.demands()
	for n := q.at; n < q.p.End[q.at]; n++ { // parents come before their children
		switch {
		case !q.member[n]:
		case outstanding:
			q.splitBy(n, quota, demand)
		default: // what is to be given back is no longer deserved
			quota[n] = q.usage(n) - q.leaving(n)
		}
	}
	return quota
}

// leaving is the part of a consumer's usage that is under reclaim.
func (q pool) leaving(n plan.Node) uint64 {
	sum := uint64(0)
	if !q.p.Leaf(n) {
		for _, k := range q.children(n) {
			sum += q.leaving(k)
		}
		return sum
	}
	sizes, units := q.bysize(n, q.holds)
	for i, size := range sizes {
		if units[i] == 0 {
			continue
		}
		leave := len(q.units(func(u *unit) bool {
			return q.under(n, u.leaf()) && q.drawn(u) && u.leaves() && slices.Equal(u.sub.size, size)
		}))
		whole := uint64(max(q.pack(size), units[i]))
		all, _ := muldiv(uint64(units[i]), one, whole)
		rest, _ := muldiv(uint64(units[i])-uint64(leave), one, whole)
		sum += all - rest
	}
	return sum
}

// classes are the children of a consumer by falling share priority, those of equal priority together.
func (g *round) classes(n plan.Node) [][]plan.Node {
	kids := g.children(n)
	slices.SortStableFunc(kids, func(a, b plan.Node) int { return cmp.Compare(g.w.Priority[b], g.w.Priority[a]) })
	var list [][]plan.Node
	for i, k := range kids {
		if i == 0 || g.w.Priority[k] != g.w.Priority[kids[i-1]] {
			list = append(list, nil)
		}
		list[len(list)-1] = append(list[len(list)-1], k)
	}
	return list
}

// splitBy is split where each consumer gets at most so much (MD-14).
func (q pool) splitBy(n plan.Node, quota, demand map[plan.Node]uint64) {
	left := quota[n]
	for _, class := range q.classes(n) {
		caps, ratios := make([]uint64, len(class)), make([]uint64, len(class))
		for i, k := range class {
			caps[i], ratios[i] = demand[k], uint64(q.counting(k))
		}
		for i, part := range fill(left, caps, ratios) {
			quota[class[i]] = part
			left -= part
		}
	}
}

// fill divides an amount in proportion to ratios, none above its cap (water-filling). The parts are whole: what is
// lost by rounding down goes one each to the first that had a fraction (D-5, SLOT-24).
func fill(amount uint64, caps, ratios []uint64) []uint64 {
	parts, rests, full := make([]uint64, len(caps)), make([]uint64, len(caps)), make([]bool, len(caps))
	for again := true; again; {
		rest, sum := amount, uint64(0)
		for i := range parts {
			switch {
			case ratios[i] == 0:
				full[i] = true
			case full[i]:
				rest -= parts[i]
			default:
				sum += ratios[i]
			}
		}
		again = false
		for i, r := range ratios {
			if !full[i] {
				if parts[i], rests[i] = muldiv(rest, r, sum); parts[i] >= caps[i] {
					parts[i], rests[i], full[i], again = caps[i], 0, true, true
				}
			}
		}
	}
	left := amount
	for _, part := range parts {
		left -= part
	}
	for i := range parts {
		if left > 0 && rests[i] > 0 {
			parts[i]++
			left--
		}
	}
	return parts
}

// static is the pool's part of static share quotas (MD-15): its capacity, divided as if every leaf wanted everything,
// so that the highest priority takes all of it (D-8).
func (q pool) static() map[plan.Node][]int64 {
	parts := map[plan.Node][]int64{}
	for n := q.at; n < q.p.End[q.at]; n++ {
		parts[n] = make([]int64, len(q.p.Dimensions))
	}
	for _, v := range q.ownCounts() {
		plus(parts[q.at], v, 1)
	}
	for n := q.at; n < q.p.End[q.at]; n++ {
		for _, class := range q.classes(n) {
			takers := slices.DeleteFunc(class, func(k plan.Node) bool { return q.ratio[k] == 0 || !q.hasLeaf(k) })
			sum := uint64(0)
			for _, k := range takers {
				sum += uint64(q.ratio[k])
			}
			for _, k := range takers {
				for d, whole := range parts[n] {
					part, _ := muldiv(uint64(whole), uint64(q.ratio[k]), sum)
					parts[k][d] = int64(part)
				}
			}
			if len(takers) > 0 {
				break
			}
		}
	}
	return parts
}

// hasLeaf tells whether a consumer is a leaf, or has one below it that takes part in the plan.
func (g *round) hasLeaf(n plan.Node) bool {
	return g.p.Leaf(n) || slices.ContainsFunc(g.children(n), g.hasLeaf)
}
