//go:build !rounds

package verify

import "math/big"

// slack is by how much shares may differ and count as equal (docs/shares.md), with the rounding of both.
const slack = one>>32 + 64

// fairPools checks INV-5 at a fixed point, in every pool of an MD plan, by the figures of the table shares: no unit of
// who is above its quota, nor several of one leaf and size, would make room for one of who goes short and is below its
// own, and lower the sum of the squares of distances from quotas (MD-17).
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
		if f.plan != t.name || s == nil || s.orphan || s.perHost != none || v.turned(s.key) || !takes(w, s.consumer) {
			continue
		}
		if id := (reachKey{s.consumer, keyOf(s.size), s.cond}); !asked[id] {
			asked[id] = true
			v.fairTo(t, w, s, pools)
		}
	}
}

// above is a leaf that holds units on a parcel and is above its quota.
type above struct {
	holder
	surplus, quota, unit int64 // unit: what one of them counts
}

// fairTo looks at what others hold of the pools that a sub-allocation draws on.
func (v *verifier) fairTo(t *plan, w *window, s *sub, pools map[string]*pool) {
	for _, one := range v.reachOf(t, w, s).all {
		pool, all := pools[one.pool], v.shareOf[t.name][one.pool]
		if pool == nil || one.slow || all[s.consumer] == nil {
			continue
		}
		deficit, unit := all[s.consumer].quota-all[s.consumer].usage, usageOf(1, pool.capacity(s.size))
		if _, stopped := v.stopped(t, w, s, one.pool); stopped || deficit <= slack {
			continue
		}
		by := deficit-slack >= t.bandOf(all[s.consumer].quota, unit)
		list := v.aboveOn(t, pool, all, one, s)
		for i := range list {
			x, ok := &list[i], true
			v.eachFits(one, x, s, func(n int64) {
				ok = !(by || x.surplus-n*x.unit+x.unit-slack >= t.bandOf(x.quota, x.unit)) ||
					!lowers(deficit-slack, unit, x.surplus-slack, n*x.unit)
			})
			v.is(spot{s.key, one.host.name}.about("INV-5", "shortfalls",
				"it is short and below its quota, and %s, which is above its own, holds units there "+
					"that would make room in the pool %s and bring them nearer to their quotas", x.leaf, one.pool), ok)
		}
	}
}

// eachFits calls f with the least number of units with which a unit fits a parcel, if there is one and the leaf is
// above its quota until the last of them is given.
func (v *verifier) eachFits(one seat, x *above, s *sub, f func(n int64)) {
	for n := int64(1); n <= x.units && x.surplus-(n-1)*x.unit > slack; n++ {
		fits := true
		for d, u := range s.size {
			fits = fits && (u == 0 || one.room[d]+n*x.size[d] >= u)
		}
		if fits {
			f(n)
			return
		}
	}
}

// aboveOn are the leaves that hold units of a pool on a parcel and are above their quotas. Units that run for less than
// their min_runtime, or whose age is not known, are left out, as are those of gangs, whose last units go together.
func (v *verifier) aboveOn(t *plan, pool *pool, all map[string]*share, one seat, s *sub) (list []above) {
	for _, x := range one.on {
		if x.owner != one.owner || x.pool != one.pool || !t.member[x.leaf] || !v.m.policy.leaf(x.leaf) ||
			all[x.leaf] == nil || v.young(x) || x.gang {
			continue
		}
		surplus, whole := all[x.leaf].usage-all[x.leaf].quota, pool.capacity(x.size)
		if surplus > slack && x.leaf != s.consumer && whole >= x.units {
			list = append(list, above{x, surplus, all[x.leaf].quota, usageOf(1, whole)})
		}
	}
	return list
}

// young tells whether any of what is held may have run for less than its min_runtime (REQ-4).
func (v *verifier) young(x holder) bool {
	us := v.m.policy.runtime[x.leaf]
	for cycle := range x.lots {
		at, known := v.times[max(cycle, 1)]
		if us > 0 && (!known || v.now-at < us) {
			return true
		}
	}
	return us > 0 && len(x.lots) == 0
}

// bandOf is how far from its quota one must be before a unit that counts so much moves.
func (t *plan) bandOf(quota, unit int64) int64 {
	part := new(big.Int).Mul(big.NewInt(quota), big.NewInt(t.band))
	return max(unit, part.Div(part, big.NewInt(1000)).Int64())
}

// lowers tells whether the sum of squares is lower when one who is so far below its quota gets so much of one who is so
// far above its own.
func lowers(deficit, gets, surplus, gives int64) bool {
	square := func(distance, moved int64) *big.Int {
		d := big.NewInt(2*distance - moved)
		return d.Mul(d, big.NewInt(moved))
	}
	sum := square(deficit, gets)
	return sum.Add(sum, square(surplus, gives)).Sign() > 0
}

// liesElsewhere tells whether the victims of a set may lie on several hosts.
func liesElsewhere(_ *plan, _ *claim) bool { return false }
