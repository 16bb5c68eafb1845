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

// pool is the public pool of an MD plan in which nobody owns anything.
type pool struct {
	ok     [][]int64 // capacities of ok hosts
	shut   [][]int64 // what is held on the others, which is all they count (D-4)
	fits   map[sizeKey]int64
	shutBy map[sizeKey]int64
}

// public makes the pool of a plan. What ok hosts take is kept until hosts or policy change.
func (v *verifier) public(t *plan) *pool {
	if v.pools == nil {
		v.pools = map[string]*pool{}
	}
	p := v.pools[t.name]
	if p == nil || v.resized {
		p = &pool{fits: map[sizeKey]int64{}}
		for _, name := range sortedKeys(v.m.hosts) {
			if h := v.m.hosts[name]; h.plan == t.name && h.state == "ok" {
				p.ok = append(p.ok, h.cap)
			}
		}
		v.pools[t.name] = p
	}
	p.shut, p.shutBy = p.shut[:0], map[sizeKey]int64{}
	v.hostsOf(t, func(h *host, in bool) {
		if !in || h.state != "ok" {
			p.shut = append(p.shut, v.m.used(h.name, t.name, len(v.m.policy.dimensions)))
		}
	})
	return p
}

// capacity is how many units of a size the pool would take were it empty (MD-11).
func (p *pool) capacity(size []int64) int64 {
	k := keyOf(size)
	n, ok := p.fits[k]
	if !ok {
		for _, c := range p.ok {
			n += fitOf(size, c)
		}
		p.fits[k] = n
	}
	s, ok := p.shutBy[k]
	if !ok {
		for _, c := range p.shut {
			s += fitOf(size, c)
		}
		p.shutBy[k] = s
	}
	return n + s
}

// share is a consumer's figures in a pool.
type share struct {
	usage, demand, quota int64
	held, wanted         int64
}

// shareFigures computes the table shares of a plan (MD-12 … MD-14).
func (v *verifier) shareFigures(t *plan) (map[string]*share, bool) {
	pool := v.public(t)
	all := map[string]*share{"/": {}}
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
	held, leaving, sizes := map[pair]int64{}, map[pair]int64{}, map[sizeKey][]int64{}
	for _, p := range v.m.piles {
		if p.plan != t.name {
			continue
		}
		leaf := p.consumer
		if s := v.m.subs[p.key]; s != nil && s.orphan {
			leaf = "/" // counts for the whole
		}
		k := pair{leaf, keyOf(p.size)}
		held[k] += p.units
		leaving[k] += p.leaving
		sizes[k.size] = p.size
	}
	outstanding := false
	for k, s := range v.m.subs {
		if k.plan != t.name || s.orphan {
			continue
		}
		a := at(k.consumer)
		a.held += s.held
		a.wanted += s.units
		a.demand += demandOf(max(s.units, s.held), pool.capacity(s.size))
		outstanding = outstanding || s.units > s.held
	}
	for k, n := range held {
		a, c := at(k.leaf), pool.capacity(sizes[k.size])
		a.usage += usageOf(n, c)
		if !outstanding {
			a.quota += usageOf(n-leaving[k], max(c, n))
		}
	}
	for _, path := range slices.Backward(v.m.policy.paths) {
		if a := all[path]; a != nil {
			up := at(parentOf(path))
			up.usage, up.demand, up.quota = up.usage+a.usage, up.demand+a.demand, up.quota+a.quota
			up.held, up.wanted = up.held+a.held, up.wanted+a.wanted
		}
	}
	if outstanding {
		all["/"].quota = all["/"].usage
		w := t.at(v.now, v.m.policy.zone)
		for _, path := range append([]string{"/"}, v.m.policy.paths...) {
			if a := all[path]; a != nil && a.quota > 0 {
				v.m.policy.divide(w, path, all)
			}
		}
	}
	return all, outstanding
}

// divide hands a consumer's usage quota to its children: by falling priority, in proportion to ratio (MD-14).
func (p *policy) divide(w *window, path string, all map[string]*share) {
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
			ratio, limit = append(ratio, w.entry[c].ratio), append(limit, all[c].demand)
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
	t := v.table["shares"]
	plan, consumer, in := t.words["plan"], t.words["consumer"], t.words["pool"]
	v.shareOf = map[string]map[string]*share{}
	w := map[string]*window{}
	for _, p := range v.m.policy.plans {
		if !p.md {
			continue
		}
		if p.owners {
			v.report.cannot("shares of the plan %s, in which consumers own hosts", p.name)
			continue
		}
		if !v.fresh("shares") && !v.fresh("shortfalls") && !v.busy(p.name) {
			continue
		}
		v.shareOf[p.name], _ = v.shareFigures(p)
		w[p.name] = p.at(v.now, v.m.policy.zone)
	}
	seen := map[[2]string]bool{}
	for row := range t.n {
		name, path := plan.text(row), consumer.text(row)
		p := v.m.policy.byName[name]
		if !v.is(of("log", "shares", name, path, "there is no such plan, or the consumer takes no part in it"), p != nil && p.md && p.member[path]) {
			continue
		}
		if v.shareOf[name] == nil {
			continue
		}
		id := [2]string{name, path}
		v.is(of("log", "shares", name, path, "a row stands twice"), !seen[id])
		seen[id] = true
		f := of("MD-12", "shares", name, path, "pool")
		f.Expected, f.Got = "/", in.text(row)
		v.is(f, f.Got == "/")
		a := v.shareOf[name][path]
		if a == nil {
			a = &share{}
		}
		e := w[name].entry[path]
		v.equal(of("MD-14", "shares", name, path, "ratio"), e.ratio, t.number["ratio"].at(row))
		v.equal(of("MD-14", "shares", name, path, "priority"), e.priority, t.number["priority"].at(row))
		v.equal(of("INV-9", "shares", name, path, "units_held"), a.held, t.number["units_held"].at(row))
		v.equal(of("INV-9", "shares", name, path, "units_wanted"), a.wanted, t.number["units_wanted"].at(row))
		v.real(of("MD-12", "shares", name, path, "usage"), a.usage, t.number["usage"].float(row))
		v.real(of("MD-13", "shares", name, path, "usage_demand"), a.demand, t.number["usage_demand"].float(row))
		if !v.dim() {
			v.real(of("MD-14", "shares", name, path, "usage_quota"), a.quota, t.number["usage_quota"].float(row))
		}
	}
	for name, all := range v.shareOf {
		for path, a := range all {
			if path != "/" && (a.held > 0 || a.wanted > 0) {
				v.is(of("log", "shares", name, path, "no row"), seen[[2]string{name, path}])
			}
		}
	}
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

// amounts holds the table amounts against what is held, and static share quotas against the pool (MD-15).
func (v *verifier) amounts() {
	t := v.table["amounts"]
	plan, consumer, dim := t.words["plan"], t.words["consumer"], t.words["dimension"]
	static, lent := map[string]map[string][]int64{}, map[string]map[string][]int64{}
	seen := map[[3]string]bool{}
	for row := range t.n {
		name, path, d := plan.text(row), consumer.text(row), dim.text(row)
		p := v.m.policy.byName[name]
		at, ok := v.m.policy.dimension(d)
		if !v.is(of("log", "amounts", name, path, "there is no such plan, consumer in it, or dimension "+d), p != nil && p.md && p.member[path] && ok) {
			continue
		}
		id := [3]string{name, path, d}
		v.is(of("log", "amounts", name, path, "a row of "+d+" stands twice"), !seen[id])
		seen[id] = true
		n := func(column string) int64 { return t.number[column].at(row) }
		v.equal(of("INV-9", "amounts", name, path, "held "+d), v.m.account(name, path).size[at], n("held"))
		limit, set := p.at(v.now, v.m.policy.zone).entry[path].limit[d]
		missing := t.number["limit"].missing(row)
		if v.is(of("MD-18", "amounts", name, path, "limit of "+d), missing == !set) && set {
			v.equal(of("MD-18", "amounts", name, path, "limit of "+d), limit, n("limit"))
		}
		if v.strange[name] {
			continue
		}
		if lent[name] == nil {
			lent[name] = v.lent(p)
		}
		for column, of := range v.estateOf(name).figures(lent[name]) {
			want := int64(0)
			if of[path] != nil {
				want = of[path][at]
			}
			v.equal(Fault{Rule: "MD-1", Table: "amounts", Plan: name, Consumer: path, What: column + " " + d}, want, n(column))
		}
		if p.owners {
			continue
		}
		if !v.fresh("amounts") && !v.busy(name) {
			continue
		}
		if static[name] == nil {
			static[name] = v.staticQuotas(p)
		}
		want := int64(0)
		if q := static[name][path]; q != nil {
			want = q[at]
		}
		v.equal(of("MD-15", "amounts", name, path, "static_quota "+d), want, n("static_quota"))
	}
	for _, p := range v.m.policy.plans {
		for _, path := range v.m.policy.paths {
			for _, d := range v.m.policy.dimensions {
				if p.md && p.member[path] {
					v.is(of("log", "amounts", p.name, path, "no row of "+d), seen[[3]string{p.name, path, d}])
				}
			}
		}
	}
}

// staticQuotas is the pool's capacity divided as if every leaf wanted without end: at each level among those of the
// highest priority, in proportion to ratio, rounded down (MD-15, D-8).
func (v *verifier) staticQuotas(t *plan) map[string][]int64 {
	p, w := v.m.policy, t.at(v.now, v.m.policy.zone)
	leafy := map[string]bool{}
	for _, path := range slices.Backward(p.paths) {
		if t.member[path] && (p.leaf(path) || leafy[path]) {
			leafy[path], leafy[parentOf(path)] = true, true
		}
	}
	quota := map[string][]int64{"/": make([]int64, len(p.dimensions))}
	pool := v.public(t)
	for _, c := range slices.Concat(pool.ok, pool.shut) {
		for d := range c {
			quota["/"][d] += c[d]
		}
	}
	for _, path := range append([]string{"/"}, p.paths...) {
		if quota[path] == nil {
			continue
		}
		first, sum := int64(math.MinInt64), int64(0)
		for _, c := range p.children[path] {
			if e := w.entry[c]; leafy[c] && e.ratio > 0 {
				if e.priority > first {
					first, sum = e.priority, 0
				}
				if e.priority == first {
					sum += e.ratio
				}
			}
		}
		for _, c := range p.children[path] {
			if e := w.entry[c]; leafy[c] && e.ratio > 0 && e.priority == first {
				quota[c] = make([]int64, len(p.dimensions))
				for d, n := range quota[path] {
					hi, lo := bits.Mul64(uint64(n), uint64(e.ratio))
					q, _ := bits.Div64(hi, lo, uint64(sum))
					quota[c][d] = int64(q)
				}
			}
		}
	}
	return quota
}
