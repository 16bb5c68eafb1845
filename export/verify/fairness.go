package verify

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
)

// slack is by how much shares may differ and count as equal (NUM-5).
const slack = one >> 32

// fairPools checks INV-5 and INV-11 at a fixed point, in every pool of an MD plan, by shares that are computed from
// holdings, demand and sizes: no move that MD-17 allows is left. Looked for are units of one leaf and size on a parcel,
// and all units of lower share priority there.
func (v *verifier) fairPools(t *plan) {
	w, pools := t.at(v.now, v.m.policy.zone), v.poolsOf(t)
	if v.hazy[t.name] {
		return
	}
	if v.shareOf[t.name] == nil {
		v.shareOf[t.name] = v.sharesOf(t, pools, map[[2]string]bool{})
	}
	asked := map[reachKey]bool{}
	for _, f := range v.shorts() {
		s := v.m.subs[f.key]
		if f.plan != t.name || s == nil || s.orphan || v.turned(s.key) || !takes(w, s.consumer) {
			continue
		}
		if id := (reachKey{s.consumer, keyOf(s.size), s.cond}); s.perHost != none || !asked[id] {
			asked[id] = asked[id] || s.perHost == none
			v.fairTo(&taking{v: v, t: t, w: w, s: s}, pools)
		}
	}
}

// taking is a sub-allocation that is short, in a pool.
type taking struct {
	v             *verifier
	t             *plan
	w             *window
	s             *sub
	pool          *pool
	all           map[string]*share
	deficit, unit int64 // unit: what one more adds to its usage
}

// above is a leaf that holds units of a size on a parcel and is above its quota.
type above struct {
	holder
	surplus, quota int64
	has, whole     int64 // units of the size that the leaf has of the pool, and the pool's capacity for them
}

// gives is what the leaf's usage loses with so many of its units.
func (x *above) gives(n int64) int64 {
	return usageOf(x.has, max(x.whole, x.has)) - usageOf(x.has-n, max(x.whole, x.has-n))
}

// fairTo looks at what others hold of the pools that a sub-allocation draws on.
func (v *verifier) fairTo(k *taking, pools map[string]*pool) {
	for _, one := range v.reachOf(k.t, k.w, k.s).all {
		if k.pool, k.all = pools[one.pool], v.shareOf[k.t.name][one.pool]; k.pool == nil || one.slow ||
			k.all[k.s.consumer] == nil || k.s.perHost != none && v.on(k.s, one.host) >= k.s.perHost {
			continue
		}
		if k.deficit = k.all[k.s.consumer].quota - k.all[k.s.consumer].usage; k.deficit <= slack {
			continue
		}
		if _, stopped := v.stopped(k.t, k.w, k.s, one.pool); stopped {
			continue
		}
		whole, has := k.pool.capacity(k.s.size), v.heldOf(k.t, k.pool, k.s.consumer, k.s.size)
		k.unit = usageOf(has+1, max(whole, has+1)) - usageOf(has, max(whole, has))
		k.look(one)
	}
}

// look looks for moves on a parcel.
func (k *taking) look(one seat) {
	list := k.aboveOn(one)
	for i := range list {
		x := &list[i]
		n := k.fewest(one, x)
		if n == 0 {
			continue
		}
		rule := "INV-5"
		if k.first(x) {
			rule = "INV-11"
		}
		k.v.is(spot{k.s.key, one.host.name}.about(rule, "shortfalls",
			"it is short and below its quota, and %s, which is above its own, holds units there that would make "+
				"room in the pool %s and may move", x.leaf, one.pool), !k.allowed(x, n))
	}
	k.v.is(spot{k.s.key, one.host.name}.about("INV-11", "shortfalls",
		"it is short and below its quota, and units of lower share priority there would make room in the pool %s",
		one.pool), !k.allFirst(one, list))
}

// fewest is the least number of units of a leaf and size with which a unit fits a parcel, 0 when there is none or the
// leaf has no surplus before the last of them.
func (k *taking) fewest(one seat, x *above) int64 {
	for n := int64(1); n <= x.units && x.surplus-x.gives(n-1) > slack; n++ {
		if covers(plus(slices.Clone(one.room), x.size, n), k.s.size) {
			return n
		}
	}
	return 0
}

// allFirst tells whether all units of lower share priority on a parcel would make room, of leaves that stay above their
// quotas until the last of theirs.
func (k *taking) allFirst(one seat, list []above) bool {
	room, leaves := slices.Clone(one.room), map[string]int64{}
	for i := range list {
		x := &list[i]
		if !k.first(x) {
			continue
		}
		if leaves[x.leaf]++; leaves[x.leaf] > 1 || x.surplus-x.gives(x.units-1) <= slack {
			return false // in which order its units go matters
		}
		plus(room, x.size, x.units)
	}
	return len(leaves) > 0 && covers(room, k.s.size)
}

// parting are the siblings under which the ways to the taker and to a leaf part.
func (k *taking) parting(leaf string) (a, b string) {
	m := meet(k.s.consumer, leaf)
	return childToward(k.s.consumer, m), childToward(leaf, m)
}

// first tells whether a leaf gives by share priority alone (MD-17.4 i).
func (k *taking) first(x *above) bool {
	a, b := k.parting(x.leaf)
	return k.w.entry[a].priority > k.w.entry[b].priority
}

// allowed tells whether so many units of a leaf and size may move (MD-17.4).
func (k *taking) allowed(x *above, n int64) bool {
	a, b := k.parting(x.leaf)
	if first := k.w.entry[a].priority - k.w.entry[b].priority; first != 0 {
		return first > 0
	}
	if k.unit <= k.deficit+slack && k.staysAhead(a, b, x.gives(n)) {
		return true
	}
	sum := square(k.deficit-slack, k.unit)
	for i := range n {
		sum.Add(sum, square(x.surplus-x.gives(i)-slack, x.gives(i+1)-x.gives(i)))
	}
	near := sum.Sign() > 0
	for i := range n {
		near = near && (k.deficit+slack >= k.t.bandOf(k.all[k.s.consumer].quota, k.unit) ||
			x.surplus-x.gives(i)+slack >= k.t.bandOf(x.quota, x.gives(i+1)-x.gives(i)))
	}
	return near
}

// staysAhead tells whether a giver's branch b is not behind the taker's branch a after a move (MD-17.4 iii).
func (k *taking) staysAhead(a, b string, gives int64) bool {
	ratioA, ratioB := k.v.ratioIn(k.t, k.w, k.pool.at, a), k.v.ratioIn(k.t, k.w, k.pool.at, b)
	if k.w.entry[b].ratio == 0 {
		return true
	}
	x := new(big.Int).Mul(big.NewInt(k.all[b].usage-gives+slack), big.NewInt(ratioA))
	return x.Cmp(new(big.Int).Mul(big.NewInt(k.all[a].usage+k.unit), big.NewInt(ratioB))) >= 0
}

// aboveOn are the leaves that hold units of a pool on a parcel and are above their quotas. Units that run for less than
// their min_runtime, or whose age is not known, are left out, as are those of gangs, whose last units go together.
func (k *taking) aboveOn(one seat) (list []above) {
	units := map[string]int{}
	for _, x := range one.on {
		if x.owner != one.owner || x.pool != one.pool || !k.t.member[x.leaf] || !k.v.m.policy.leaf(x.leaf) ||
			k.all[x.leaf] == nil || k.v.young(x) || x.gang || x.leaf == k.s.consumer {
			continue
		}
		id := fmt.Sprint(x.leaf, x.size)
		if i, ok := units[id]; ok { // of several sub-allocations
			list[i].units += x.units
			continue
		}
		a := k.all[x.leaf]
		if surplus := a.usage - a.quota; surplus > slack {
			units[id] = len(list)
			list = append(list, above{x, surplus, a.quota, k.v.heldOf(k.t, k.pool, x.leaf, x.size),
				k.pool.capacity(x.size)})
		}
	}
	slices.SortFunc(list, func(a, b above) int {
		return cmp.Or(cmp.Compare(a.leaf, b.leaf), slices.Compare(a.size, b.size))
	})
	return list
}

// heldOf is how many units of a size a leaf holds of a pool.
func (v *verifier) heldOf(t *plan, pool *pool, leaf string, size []int64) (n int64) {
	for _, p := range v.m.piles {
		if p.plan != t.name || p.consumer != leaf || !slices.Equal(p.size, size) {
			continue
		}
		for l, units := range p.label {
			if l.pool == pool.at {
				n += units
			}
		}
	}
	return n
}

// young tells whether any of what is held may have run for less than its min_runtime (REQ-4).
func (v *verifier) young(x holder) bool {
	us := v.m.policy.runtime[x.leaf]
	if us == 0 {
		return false
	}
	for cycle := range x.lots {
		at, known := v.times[max(cycle, 1)]
		if !known || v.now-at < us {
			return true
		}
	}
	return len(x.lots) == 0
}

// bandOf is how far from its quota one must be before a unit that counts so much moves.
func (t *plan) bandOf(quota, unit int64) int64 {
	part := new(big.Int).Mul(big.NewInt(quota), big.NewInt(t.band))
	return max(unit, part.Div(part, big.NewInt(1000)).Int64())
}

// square is by how much the square of a distance is less when so much of it is moved.
func square(distance, moved int64) *big.Int {
	d := new(big.Int).Lsh(big.NewInt(distance), 1)
	d.Sub(d, big.NewInt(moved))
	return d.Mul(d, big.NewInt(moved))
}

// liesElsewhere tells whether the victims of a set may lie on several hosts: those of one for a share may be a gang's,
// or lie below a limit (MD-17.7, MD-18.2).
func liesElsewhere(t *plan, c *claim) bool { return t.md && c.reason == "fair_share" }
