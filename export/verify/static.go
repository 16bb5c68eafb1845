package verify

import (
	"math"
	"slices"
)

// staticQuotas adds what a pool's consumer owns itself, divided as if every leaf wanted without end: at each level
// among those of the highest priority, in proportion to ratio, rounded down (MD-15).
func (v *verifier) staticQuotas(t *plan, pool *pool, sum map[string][]int64) {
	p, w := v.m.policy, t.at(v.now, v.m.policy.zone)
	leafy := v.leafy(t)
	quota := map[string][]int64{pool.at: make([]int64, len(p.dimensions))}
	for _, one := range pool.ok {
		if one.whole != nil {
			plus(quota[pool.at], one.whole, 1)
		}
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

// staticRow holds a row of static quotas against what it should be.
func (v *verifier) staticRow(_ *plan, f *figuresOf, say Fault, path string, d int, got int64) {
	v.equal(say, figureOf(f.static, path, d), got)
}

// staticsAgree has nothing to check: each static quota is known.
func (v *verifier) staticsAgree(_ *plan, _ *figuresOf) {}
