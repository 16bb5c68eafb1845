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
				if path != at && (a.held > 0 || a.wanted > 0 || a.demand > 0) {
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
		v.is(say("INV-9", "a row of nothing held, wanted or demanded"), a.wanted > 0 || a.demand > 0)
		v.real(say("MD-12", "usage"), a.usage, t.number["usage"].float(row))
		v.real(say("MD-13", "usage_demand"), a.demand, t.number["usage_demand"].float(row))
		if !v.dim() && !vague[[2]string{name, at}] {
			quota := t.number["usage_quota"].float(row)
			v.real(say("MD-14", "usage_quota"), v.quotaOf(name, a, quota), quota)
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
