//go:build !rounds

package verify

import (
	"math"
	"math/big"
	"slices"
)

// staticQuotas adds a pool's capacity, divided as if every leaf wanted without end: at each level among those of the
// highest priority, in proportion to ratio, rounded down (MD-15, D-8).
func (v *verifier) staticQuotas(t *plan, pool *pool, sum map[string][]int64) {
	p, w := v.m.policy, t.at(v.now, v.m.policy.zone)
	leafy := v.leafy(t)
	quota := map[string][]int64{pool.at: make([]int64, len(p.dimensions))}
	for _, one := range pool.ok {
		plus(quota[pool.at], one.rest, 1)
	}
	for _, c := range pool.shut {
		plus(quota[pool.at], c, 1)
	}
	for _, path := range append([]string{"/"}, p.paths...) {
		if quota[path] == nil {
			continue
		}
		heirs, whole := p.heirs(w, path, leafy)
		for _, c := range heirs {
			quota[c] = make([]int64, len(p.dimensions))
			for d, n := range quota[path] {
				quota[c][d] = fraction{w.entry[c].ratio, whole}.of(n)
			}
			if sum[c] == nil {
				sum[c] = make([]int64, len(p.dimensions))
			}
			plus(sum[c], quota[c], 1)
		}
	}
}

// leafy are the consumers of a plan that are leaves, or above one.
func (v *verifier) leafy(t *plan) map[string]bool {
	all := map[string]bool{}
	for _, path := range slices.Backward(v.m.policy.paths) {
		if t.member[path] && (v.m.policy.leaf(path) || all[path]) {
			all[path], all[parentOf(path)] = true, true
		}
	}
	return all
}

// heirs are the children among whom a consumer's static quota is divided, and the sum of their ratios.
func (p *policy) heirs(w *window, path string, leafy map[string]bool) (heirs []string, whole int64) {
	first := int64(math.MinInt64)
	for _, c := range p.children[path] {
		e := w.entry[c]
		if !leafy[c] || e.ratio == 0 || e.priority < first {
			continue
		}
		if e.priority > first {
			first, heirs, whole = e.priority, nil, 0
		}
		heirs, whole = append(heirs, c), whole+e.ratio
	}
	return heirs, whole
}

// agree checks static quotas where pools may be smaller than what is held makes them: in each dimension some capacity
// of every pool must give what the table says of all below it, level by level from the root.
func (v *verifier) agree(t *plan, said map[string][]int64) {
	p, w := v.m.policy, t.at(v.now, v.m.policy.zone)
	leafy := v.leafy(t)
	for d, name := range p.dimensions {
		from := map[string][]int64{} // of each consumer its parts of the pools above it, from the root down
		for _, path := range append([]string{"/"}, p.paths...) {
			heirs, whole := p.heirs(w, path, leafy)
			low, high := int64(0), int64(1<<62)
			for _, c := range heirs {
				if said[c] == nil {
					return // a row is missing
				}
				ratio, rest := w.entry[c].ratio, said[c][d]
				for _, n := range from[path] {
					part := fraction{ratio, whole}.of(n)
					from[c], rest = append(from[c], part), rest-part
				}
				from[c] = append(from[c], rest)
				low, high = max(low, atLeast(rest, whole, ratio)), min(high, atLeast(rest+1, whole, ratio)-1)
				v.is(of("MD-15", "amounts", t.name, c,
					"static_quota "+name+": less than its part of the pools above "+path), rest >= 0)
			}
			v.is(of("MD-15", "amounts", t.name, path,
				"static_quota "+name+": that of those below it is of no one pool"), low <= high)
		}
	}
}

// atLeast is the least n of which a part is at least so much: ⌈part × whole ÷ ratio⌉.
func atLeast(part, whole, ratio int64) int64 {
	if part <= 0 {
		return 0
	}
	n := new(big.Int).Mul(big.NewInt(part), big.NewInt(whole))
	n.Add(n, big.NewInt(ratio-1)).Quo(n, big.NewInt(ratio))
	if !n.IsInt64() {
		return 1 << 62
	}
	return n.Int64()
}

// staticRow holds a row of static quotas against what it should be.
func (v *verifier) staticRow(p *plan, f *figuresOf, say Fault, path string, d int, got int64) {
	if !v.unsteady(p) {
		v.equal(say, figureOf(f.static, path, d), got)
		return
	}
	v.limit(say, figureOf(f.static, path, d), got)
	if f.said[path] == nil {
		f.said[path] = make([]int64, len(v.m.policy.dimensions))
	}
	f.said[path][d] = got
}

// staticsAgree checks the static quotas of a plan together, where pools may be smaller than what is held makes them.
func (v *verifier) staticsAgree(p *plan, f *figuresOf) {
	if f.static != nil && v.unsteady(p) {
		v.agree(p, f.said)
	}
}
