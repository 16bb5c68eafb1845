package verify

import "math/bits"

// slack is by how much shares may differ and count as equal (docs/shares.md, "Ahead"), with the rounding of both.
const slack = one>>32 + 64

// fairPools checks INV-5 at a fixed point, in every pool of an MD plan: of nobody who goes short and takes its share back does
// another hold one unit that alone would make room for its own, and stay ahead of it after that.
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

// fairTo looks at what others hold of the pools that a sub-allocation draws on.
func (v *verifier) fairTo(t *plan, w *window, s *sub, pools map[string]*pool) {
	for _, one := range v.reachOf(t, w, s).all {
		pool := pools[one.pool]
		if pool == nil || one.slow {
			continue
		}
		if _, stopped := v.stopped(t, w, s, one.pool); stopped {
			continue
		}
		for _, x := range one.on {
			if x.owner != one.owner || x.pool != one.pool || x.leaf == s.consumer || !t.member[x.leaf] || !v.m.policy.leaf(x.leaf) {
				continue
			}
			fits := true
			for d, u := range s.size {
				fits = fits && (u == 0 || one.room[d]+x.size[d] >= u)
			}
			ok := !fits || !v.ahead(w, pool, v.shareOf[t.name][one.pool], x, s)
			v.is(spot{s.key, one.host.name}.about("INV-5", "shortfalls", "it is short, and %s, which would be ahead of it even then, holds a unit there that would make room in the pool %s", x.leaf, one.pool), ok)
		}
	}
}

// ahead tells whether who holds something would be ahead of another, where their ways up part, after giving it a unit.
func (v *verifier) ahead(w *window, pool *pool, all map[string]*share, x holder, s *sub) bool {
	up := meet(x.leaf, s.consumer)
	a, b := below(x.leaf, up), below(s.consumer, up)
	if p, q := w.entry[a].priority, w.entry[b].priority; p != q {
		return p < q
	}
	ra, rb := w.entry[a].ratio, w.entry[b].ratio
	ca, cb := pool.capacity(x.size), pool.capacity(s.size)
	if ra == 0 || rb == 0 || ca < x.units || cb < 1 || all[a] == nil || all[b] == nil {
		return false
	}
	left, right := all[a].usage-usageOf(1, ca)-slack, all[b].usage+usageOf(1, cb)+slack
	if left <= 0 {
		return false
	}
	h1, l1 := bits.Mul64(uint64(left), uint64(rb))
	h2, l2 := bits.Mul64(uint64(right), uint64(ra))
	return h1 > h2 || h1 == h2 && l1 > l2
}

// below is the consumer next below another on the way down to a leaf.
func below(leaf, up string) string {
	for parentOf(leaf) != up {
		leaf = parentOf(leaf)
	}
	return leaf
}
