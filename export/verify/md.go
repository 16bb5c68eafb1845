package verify

import (
	"math"
	"math/bits"
	"slices"
)

// one is the share 1: shares are whole numbers of 2⁻⁴⁸ (D-5).
const one = int64(1) << 48

// times is ⌊a × one ÷ c⌋ for 0 ≤ a < c, and whether something was cut off.
func times(a, c int64) (int64, bool) {
	hi, lo := bits.Mul64(uint64(a), uint64(one))
	q, r := bits.Div64(hi, lo, uint64(c))
	return int64(q), r > 0
}

// usageOf is a share of a pool (MD-12).
func usageOf(units, capacity int64) int64 {
	switch {
	case units <= 0:
		return 0
	case units >= capacity:
		return one
	}
	v, _ := times(units, capacity)
	return v
}

// demandOf is a share that is wanted of a pool (MD-13), rounded up.
func demandOf(units, capacity int64) int64 {
	switch {
	case capacity <= 0 || units <= 0:
		return 0
	case units >= capacity:
		return one
	}
	v, cut := times(units, capacity)
	if cut {
		v++
	}
	return v
}

// sizeKey tells unit sizes apart.
type sizeKey [16]int64

func keyOf(size []int64) (k sizeKey) {
	copy(k[:], size)
	return k
}

// fitOf is how many units of a size an amount takes, -1 when the size is nothing.
func fitOf(size, amount []int64) int64 {
	n := int64(math.MaxInt64)
	for d, u := range size {
		if u > 0 {
			n = min(n, max(0, amount[d])/u)
		}
	}
	return n
}

// share is a consumer's figures in a pool.
type share struct {
	usage, demand, quota int64
	held, wanted         int64
}

// drawers are, by pool, the piles of which anything is held through it, and the sub-allocations of leaves below it.
type drawers struct {
	piles map[string][]*pile
	subs  map[string][]*sub
}

func (v *verifier) drawersOf(t *plan, pools map[string]*pool) drawers {
	d := drawers{map[string][]*pile{}, map[string][]*sub{}}
	for at, p := range v.m.piles {
		if at.plan != t.name {
			continue
		}
		for l := range p.label {
			// of several labels of a pool it stands once
			if list := d.piles[l.pool]; len(list) == 0 || list[len(list)-1] != p {
				d.piles[l.pool] = append(list, p)
			}
		}
	}
	for k, s := range v.m.subs {
		for path := k.consumer; k.plan == t.name && !s.orphan && path != ""; path = parentOf(path) {
			if pools[path] != nil {
				d.subs[path] = append(d.subs[path], s)
			}
		}
	}
	return d
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

// divide hands a consumer's usage quota to its children: by falling priority, in proportion to ratio as it counts in
// the pool (MD-14, D-165).
func (p *policy) divide(w *window, path string, all map[string]*share, ratioOf func(c string) int64) {
	by := map[int64][]string{}
	var order []int64
	for _, c := range p.children[path] {
		if a := all[c]; a != nil && a.demand > 0 {
			k := w.entry[c].priority
			if by[k] == nil {
				order = append(order, k)
			}
			by[k] = append(by[k], c)
		}
	}
	slices.Sort(order)
	left := all[path].quota
	for _, k := range slices.Backward(order) {
		ratio, limit := []int64{}, []int64{}
		for _, c := range by[k] {
			ratio, limit = append(ratio, ratioOf(c)), append(limit, all[c].demand)
		}
		var part []int64
		part, left = fill(left, ratio, limit)
		for i, c := range by[k] {
			all[c].quota = part[i]
		}
	}
}

// shares holds the table shares against what is held and wanted.
func (v *verifier) shares() {
	v.shareOf = map[string]map[string]map[string]*share{}
	vague := map[[2]string]bool{}
	for _, p := range v.m.policy.plans {
		if !p.md {
			continue
		}
		if v.hazy[p.name] {
			v.report.cannot("shares of the plan %s in cycles in which it is not known of which pool some units are",
				p.name)
			continue
		}
		if !v.fresh("shares") && !v.fresh("shortfalls") && !v.busy(p.name) && !v.awaited[p.name] {
			continue
		}
		v.shareOf[p.name] = v.sharesOf(p, v.poolsOf(p), vague)
	}
	seen := v.shareRows(vague)
	for name, pools := range v.shareOf {
		for at, all := range pools {
			for path, a := range all {
				if path != at && (a.held > 0 || a.wanted > 0) {
					v.is(of("log", "shares", name, path, "no row of the pool "+at), seen[[3]string{name, path, at}])
				}
			}
		}
	}
}

// sharesOf computes the figures of a plan's pools, and which of them are vague.
func (v *verifier) sharesOf(p *plan, pools map[string]*pool, vague map[[2]string]bool) map[string]map[string]*share {
	all, of := map[string]map[string]*share{}, v.drawersOf(p, pools)
	for at, pool := range pools {
		all[at], vague[[2]string{p.name, at}] = v.shareFigures(p, pool, of)
	}
	return all
}

// shareRows holds the rows of the table shares against what they should say, and gives those that there are.
func (v *verifier) shareRows(vague map[[2]string]bool) map[[3]string]bool {
	t := v.table["shares"]
	plan, consumer, in := t.words["plan"], t.words["consumer"], t.words["pool"]
	seen := map[[3]string]bool{}
	for row := range t.n {
		name, path, at := plan.text(row), consumer.text(row), in.text(row)
		p := v.m.policy.byName[name]
		if !v.is(of("log", "shares", name, path, "there is no such plan, or the consumer takes no part in it"),
			p != nil && p.md && p.member[path]) {
			continue
		}
		if v.shareOf[name] == nil {
			continue
		}
		id := [3]string{name, path, at}
		v.is(of("log", "shares", name, path, "a row of the pool "+at+" stands twice"), !seen[id])
		seen[id] = true
		all := v.shareOf[name][at]
		if !v.is(of("MD-12", "shares", name, path, "there is no pool "+at+", or it is not above the consumer"),
			all != nil && under(path, at) && path != at) {
			continue
		}
		a := all[path]
		if a == nil {
			a = &share{}
		}
		e := p.at(v.now, v.m.policy.zone).entry[path]
		say := func(rule, what string) Fault { return of(rule, "shares", name, path, what+" in the pool "+at) }
		v.equal(say("MD-14", "ratio"), e.ratio, t.number["ratio"].at(row))
		v.equal(say("MD-14", "priority"), e.priority, t.number["priority"].at(row))
		v.equal(say("INV-9", "units_held"), a.held, t.number["units_held"].at(row))
		v.equal(say("INV-9", "units_wanted"), a.wanted, t.number["units_wanted"].at(row))
		v.is(say("INV-9", "a row of nothing held or wanted"), a.wanted > 0)
		v.real(say("MD-12", "usage"), a.usage, t.number["usage"].float(row))
		v.real(say("MD-13", "usage_demand"), a.demand, t.number["usage_demand"].float(row))
		if !v.dim() && !vague[[2]string{name, at}] {
			v.real(say("MD-14", "usage_quota"), a.quota, t.number["usage_quota"].float(row))
		}
		v.historyRow(t, row, p, path, at)
	}
	return seen
}

// real holds a share against what it should be, exactly: both are the same whole number of 2⁻⁴⁸.
func (v *verifier) real(f Fault, want int64, got float64) {
	v.report.Checks[f.Rule]++
	if float64(want)/float64(one) != got {
		f.Expected, f.Got = decimal(float64(want)/float64(one)), decimal(got)
		v.fault(f)
	}
}

// busy tells whether anything happened in a plan in this cycle.
func (v *verifier) busy(plan string) bool {
	if v.resized || v.inputs > 0 {
		return true
	}
	for at := range v.begun {
		if at.plan == plan {
			return true
		}
	}
	return false
}
