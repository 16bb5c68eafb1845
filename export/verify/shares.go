package verify

import "slices"

// share is a consumer's figures in a pool.
type share struct {
	usage, demand, quota int64
	net                  int64 // usage but for what is under reclaim
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
	for _, s := range of.subs[pool.at] {
		short := int64(0)
		if pool.exists(s.consumer) && v.brokeBelow(t.name, s.consumer, pool.at) == "" {
			short = max(0, s.units-s.held)
		}
		a, n := at(s.consumer), mine[s.key]
		a.held += n
		a.wanted += n + short
	}
	for k, n := range held {
		a, c := at(k.leaf), pool.capacity(sizes[k.size])
		a.usage += usageOf(n, c)
		a.net += usageOf(n-leaving[k], max(c, n))
	}
	if v.stirred[t.name] || v.dim() {
		v.correct(t, pool, all)
		v.sumUp(pool, all)
		v.believeDemands(t, pool, all)
		v.quotas(t, pool, all, true)
		return all, vague
	}
	list, more := v.demandsIn(t, pool, of.subs[pool.at], mine)
	for _, c := range list {
		a := at(c.sub.consumer)
		a.demand = add(a.demand, c.demand)
	}
	v.sumUp(pool, all)
	v.quotas(t, pool, all, more)
	return all, vague && !more
}

// sumUp adds up the figures of leaves.
func (v *verifier) sumUp(pool *pool, all map[string]*share) {
	for _, path := range slices.Backward(v.m.policy.paths) {
		if a := all[path]; a != nil && path != pool.at {
			if all[parentOf(path)] == nil {
				all[parentOf(path)] = &share{}
			}
			up := all[parentOf(path)]
			up.usage, up.demand, up.net = up.usage+a.usage, add(up.demand, a.demand), up.net+a.net
			up.held, up.wanted = up.held+a.held, up.wanted+a.wanted
		}
	}
}

// quotas divides the pool's usage among consumers when anything is outstanding (MD-14).
func (v *verifier) quotas(t *plan, pool *pool, all map[string]*share, outstanding bool) {
	for _, a := range all {
		a.quota = 0
		if !outstanding {
			a.quota = a.net
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

// believeDemands takes over the demands of the table, since no table says how many units sets promise. A leaf whose
// units are all held has no row, and counts in those above it nevertheless when they are under reclaim.
func (v *verifier) believeDemands(t *plan, pool *pool, all map[string]*share) {
	table := v.table["shares"]
	plan, consumer, in := table.words["plan"], table.words["consumer"], table.words["pool"]
	below := map[string]int64{}
	for row := range table.n {
		if a := all[consumer.text(row)]; plan.text(row) == t.name && in.text(row) == pool.at && a != nil {
			a.demand = int64(table.number["usage_demand"].float(row) * float64(one))
			below[parentOf(consumer.text(row))] = add(below[parentOf(consumer.text(row))], a.demand)
		}
	}
	for path, sum := range below {
		if path != pool.at && all[path] != nil {
			v.is(of("MD-13", "shares", t.name, path, "usage_demand in the pool "+pool.at+
				" is less than that of those below it"), all[path].demand >= sum)
		}
	}
}

// correct takes over the usages of leaves that the table says, where they are those of a pool that is smaller than what
// is held makes it. All else must follow from them.
func (v *verifier) correct(t *plan, pool *pool, all map[string]*share) {
	if !v.unsteady(t) {
		return
	}
	table := v.table["shares"]
	plan, consumer, in := table.words["plan"], table.words["consumer"], table.words["pool"]
	for row := range table.n {
		a := all[consumer.text(row)]
		if plan.text(row) != t.name || in.text(row) != pool.at || a == nil || !v.m.policy.leaf(consumer.text(row)) {
			continue
		}
		usage := int64(table.number["usage"].float(row) * float64(one))
		if usage > a.usage && a.usage > 0 {
			if a.net == a.usage {
				a.net = usage
			}
			a.usage = usage
		}
	}
}

// quotaOf is the quota that the table must have of a consumer. While anything is promised, the one or the other: nobody
// may use more than it has, or some may.
func (v *verifier) quotaOf(plan string, a *share, got float64) int64 {
	if v.stirred[plan] && float64(a.net)/float64(one) == got {
		a.quota = a.net
	}
	return a.quota
}
