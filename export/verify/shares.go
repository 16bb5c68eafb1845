//go:build !rounds

package verify

import "slices"

// share is a consumer's figures in a pool.
type share struct {
	usage, demand, quota int64
	held, wanted         int64
}

// shareFigures computes what the table shares says of a pool (MD-12 … MD-14). What of a pile with several labels is
// under reclaim is in no table: quotas that would rest on it are vague.
func (v *verifier) shareFigures(t *plan, pool *pool, of drawers) (all map[string]*share, vague bool) {
	all = map[string]*share{pool.at: {}}
	at := func(path string) *share {
		if all[path] == nil {
			all[path] = &share{}
		}
		return all[path]
	}
	type pair struct {
		leaf string
		size sizeKey
	}
	held, leaving, sizes, mine := map[pair]int64{}, map[pair]int64{}, map[sizeKey][]int64{}, map[key]int64{}
	for _, p := range of.piles[pool.at] {
		n, leaves, sure := p.through(pool.at)
		leaf := p.consumer
		if s := v.m.subs[p.key]; s != nil && s.orphan {
			leaf = pool.at // counts for the whole
		} else {
			mine[p.key] += n
		}
		k := pair{leaf, keyOf(p.size)}
		held[k] += n
		leaving[k] += leaves
		sizes[k.size], vague = p.size, vague || !sure
	}
	outstanding := false
	for _, s := range of.subs[pool.at] {
		short := int64(0)
		if pool.exists(s.consumer) && v.brokeBelow(t.name, s.consumer, pool.at) == "" {
			short = max(0, s.units-s.held)
		}
		a, n := at(s.consumer), mine[s.key]
		a.held += n
		a.wanted += n + short
		a.demand += demandOf(n+short, pool.capacity(s.size))
		outstanding = outstanding || short > 0
	}
	for k, n := range held {
		a, c := at(k.leaf), pool.capacity(sizes[k.size])
		a.usage += usageOf(n, c)
		if !outstanding {
			a.quota += usageOf(n-leaving[k], max(c, n))
		}
	}
	if v.unsteady(t) {
		v.correct(t, pool, all)
	}
	v.sumUp(t, pool, all, outstanding)
	return all, vague && !outstanding
}

// sumUp adds up the figures of leaves, and divides the pool's usage among consumers when anything is outstanding.
func (v *verifier) sumUp(t *plan, pool *pool, all map[string]*share, outstanding bool) {
	for _, path := range slices.Backward(v.m.policy.paths) {
		if a := all[path]; a != nil && path != pool.at {
			if all[parentOf(path)] == nil {
				all[parentOf(path)] = &share{}
			}
			up := all[parentOf(path)]
			up.usage, up.demand, up.quota = up.usage+a.usage, up.demand+a.demand, up.quota+a.quota
			up.held, up.wanted = up.held+a.held, up.wanted+a.wanted
		}
	}
	if outstanding {
		all[pool.at].quota = all[pool.at].usage
		w := t.at(v.now, v.m.policy.zone)
		for _, path := range append([]string{"/"}, v.m.policy.paths...) {
			if a := all[path]; a != nil && a.quota > 0 {
				v.m.policy.divide(w, path, all, func(c string) int64 { return v.ratioIn(t, w, pool.at, c) })
			}
		}
	}
}

// unsteady tells whether units may have been granted in a plan in this cycle and taken back again (CYC-1), which no row
// tells: pools that lend what nearer ones leave count those as held there.
func (v *verifier) unsteady(t *plan) bool {
	e := v.m.estates[t.name]
	return e != nil && len(e.parts) > 0 && v.stirred[t.name]
}

// correct takes over the usages and demands of leaves that the table says, where they are those of a pool that is
// smaller than what is held makes it. All else must follow from them.
func (v *verifier) correct(t *plan, pool *pool, all map[string]*share) {
	table := v.table["shares"]
	plan, consumer, in := table.words["plan"], table.words["consumer"], table.words["pool"]
	for row := range table.n {
		a := all[consumer.text(row)]
		if plan.text(row) != t.name || in.text(row) != pool.at || a == nil || !v.m.policy.leaf(consumer.text(row)) {
			continue
		}
		usage := int64(table.number["usage"].float(row) * float64(one))
		demand := int64(table.number["usage_demand"].float(row) * float64(one))
		if usage > a.usage && a.usage > 0 || demand != a.demand && a.demand > 0 {
			if a.quota == a.usage {
				a.quota = max(a.usage, usage)
			}
			a.usage, a.demand = max(a.usage, usage), demand
		}
	}
}

// quotaOf is the quota that the table must have of a consumer.
func (v *verifier) quotaOf(_ string, a *share, _ float64) int64 { return a.quota }
