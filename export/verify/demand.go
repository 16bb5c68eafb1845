package verify

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// claimant is a sub-allocation below a pool with the units that it may use of it (MD-13).
type claimant struct {
	sub          *sub
	net, usable  int64
	own, demand  int64  // share usage: before and after the caps
	restrictedTo *class // nil: all parcels
}

// class is a set of parcels of a pool that requirements and graces select, by their rows.
type class struct {
	on     []bool
	count  int
	amount []int64
}

// classKey is what sub-allocations of a class have in common; a fit differs between sides, the children of the pool's
// consumer, and sizes too.
type classKey struct {
	need  string
	grace int64
	side  string
	size  sizeKey
}

// demanding computes the usage demands of sub-allocations in a pool (MD-13).
type demanding struct {
	*verifier
	t       *plan
	w       *window
	pool    *pool
	list    []claimant
	classes map[classKey]*class
	order   []*class // by first sight
	fits    map[classKey]int64
	staying map[key]map[any]bool // the values to which gangs are held that must be together
}

// demandsIn gives the claimants of a pool with their demands, and whether one may use more than it has. Mine is what
// sub-allocations hold through the pool; nothing of the plan is under reclaim or promised.
func (v *verifier) demandsIn(t *plan, pool *pool, subs []*sub, mine map[key]int64) (list []claimant, more bool) {
	d := &demanding{verifier: v, t: t, w: t.at(v.now, v.m.policy.zone), pool: pool, classes: map[classKey]*class{},
		fits: map[classKey]int64{}, staying: v.staying()}
	small := map[key]bool{}
	for _, f := range v.shortfallRows() {
		small[f.key] = small[f.key] || f.reason == "too_small"
	}
	for _, s := range v.inOrderOfAsks(subs) {
		net := mine[s.key]
		c := claimant{sub: s, net: net, usable: net}
		if pool.exists(s.consumer) && v.brokeBelow(t.name, s.consumer, pool.at) == "" && takes(d.w, s.consumer) &&
			!barredBelow(d.w, s.consumer, pool.at) && !small[s.key] {
			if fit := d.fit(s); !s.gang() || fit >= s.least {
				c.usable = max(net, min(s.units-(s.held-net), fit))
			}
		}
		if c.usable <= 0 {
			continue
		}
		whole := pool.capacity(s.size)
		c.own = max(demandOf(c.usable, whole), usageOf(c.usable, max(whole, c.usable)))
		c.demand, c.restrictedTo = c.own, d.classOf(s)
		d.list, more = append(d.list, c), more || c.usable > net
	}
	d.capByRequirements()
	d.capByLimits()
	return d.list, more
}

// inOrderOfAsks sorts sub-allocations by their leaf, then by the arrival of their allocation, then by their own.
func (v *verifier) inOrderOfAsks(subs []*sub) []*sub {
	first, at := map[[2]string]int64{}, map[string]int{}
	for _, s := range subs {
		id := [2]string{s.consumer, s.allocation}
		if n, ok := first[id]; !ok || s.arrival < n {
			first[id] = s.arrival
		}
	}
	for i, path := range v.m.policy.paths {
		at[path] = i
	}
	return slices.SortedFunc(slices.Values(subs), func(a, b *sub) int {
		return cmp.Or(cmp.Compare(at[a.consumer], at[b.consumer]),
			cmp.Compare(first[[2]string{a.consumer, a.allocation}], first[[2]string{b.consumer, b.allocation}]),
			cmp.Compare(a.arrival, b.arrival))
	})
}

// fit is how many units of a sub-allocation the parcels that it may use would take, were nothing of the pool used.
func (d *demanding) fit(s *sub) int64 {
	id := classKey{s.need, d.m.policy.grace[s.consumer], childToward(s.consumer, d.pool.at), keyOf(s.size)}
	together := s.mustBeTogether()
	if n, ok := d.fits[id]; ok && s.perHost == none && together == "" {
		return n
	}
	sum, byHost, byValue := int64(0), map[*host]int64{}, map[any]int64{}
	for _, one := range d.pool.ok {
		if d.m.may(s, one.host) && meet(s.consumer, one.owner) == d.pool.at && d.admits(one.owner, id.grace) {
			byHost[one.host] = add(byHost[one.host], d.pool.fit(s.size, one.rest))
		}
	}
	for h, n := range byHost {
		if s.perHost != none {
			n = min(n, max(0, s.perHost-d.elsewhere(s, h)))
		}
		sum = add(sum, n)
		if together != "" && h.value(together) != nil {
			byValue[h.value(together)] = add(byValue[h.value(together)], n)
		}
	}
	if together != "" {
		sum = 0
		for value, n := range byValue {
			if on := d.staying[s.key]; len(on) == 0 || on[value] {
				sum = max(sum, n)
			}
		}
	} else if s.perHost == none {
		d.fits[id] = sum
	}
	return sum
}

// childToward is the child of a pool's consumer above a leaf, or the leaf itself.
func childToward(leaf, pool string) string {
	for parentOf(leaf) != pool && parentOf(leaf) != "" {
		leaf = parentOf(leaf)
	}
	return leaf
}

// admits tells whether a parcel of an owner in the pool is for those with such a grace (MD-9).
func (d *demanding) admits(owner string, grace int64) bool {
	most := d.t.graceIn(d.w, owner, d.pool.at)
	return most == none || grace <= most
}

// elsewhere is what a sub-allocation holds on a host outside the pool.
func (d *demanding) elsewhere(s *sub, h *host) (n int64) {
	if p := d.m.piles[spot{s.key, h.name}]; p != nil {
		for l, units := range p.label {
			if l.pool != d.pool.at {
				n += units
			}
		}
	}
	return n
}

// classOf is the set of parcels that a sub-allocation's requirement and grace restrict it to, nil where that is all.
func (d *demanding) classOf(s *sub) *class {
	id := classKey{need: s.need, grace: d.m.policy.grace[s.consumer]}
	c, ok := d.classes[id]
	if ok {
		return c
	}
	c = &class{on: make([]bool, len(d.pool.ok)), amount: make([]int64, len(s.size))}
	for i, one := range d.pool.ok {
		if d.m.may(s, one.host) && d.admits(one.owner, id.grace) {
			c.on[i] = true
			c.count++
			for k, n := range one.rest {
				c.amount[k] = add(c.amount[k], n)
			}
		}
	}
	same := slices.IndexFunc(d.order, func(o *class) bool { return slices.Equal(o.on, c.on) })
	switch {
	case c.count == len(d.pool.ok):
		c = nil
	case same >= 0:
		c = d.order[same]
	default:
		d.order = append(d.order, c)
	}
	d.classes[id] = c
	return c
}

// within tells whether a set has no parcel beside those of another, and any.
func (c *class) within(o *class) bool {
	for i, on := range c.on {
		if on && !o.on[i] {
			return false
		}
	}
	return c.count > 0
}

// capByRequirements caps what those restricted to some parcels claim together, the fewest parcels first (MD-13.4).
func (d *demanding) capByRequirements() {
	slices.SortStableFunc(d.order, func(a, b *class) int { return cmp.Compare(a.count, b.count) })
	for _, c := range d.order {
		if c.count > 0 {
			d.limitTo(d.pool.at, c.amount, func(int) bool { return true }, func(o *claimant) bool {
				return o.restrictedTo != nil && o.restrictedTo.within(c)
			})
		}
	}
}

// capByLimits caps what those below a consumer with a share limit claim together, children before parents (MD-13.5).
func (d *demanding) capByLimits() {
	for _, path := range slices.Backward(d.m.policy.paths) {
		e := d.w.entry[path]
		if e == nil || !d.t.member[path] || path == d.pool.at || !under(path, d.pool.at) ||
			len(e.limit) == 0 && e.ratio != 0 {
			continue
		}
		amount := make([]int64, len(d.m.policy.dimensions))
		limited := func(k int) bool {
			_, ok := e.limit[d.m.policy.dimensions[k]]
			return ok || e.ratio == 0
		}
		counts := d.drawnBeside(path)
		for k, name := range d.m.policy.dimensions {
			if n, ok := e.limit[name]; ok && e.ratio != 0 {
				amount[k] = max(0, n-counts[k])
			}
		}
		d.limitTo(path, amount, limited, func(o *claimant) bool { return under(o.sub.consumer, path) })
	}
}

// drawnBeside is what a consumer has from pools above it but for this one.
func (d *demanding) drawnBeside(path string) []int64 {
	sum := make([]int64, len(d.m.policy.dimensions))
	for _, p := range d.m.piles {
		if s := d.m.subs[p.key]; p.plan != d.t.name || !under(p.consumer, path) || s != nil && s.orphan {
			continue
		}
		for l, n := range p.label {
			if l.pool != "" && l.pool != d.pool.at && under(path, l.pool) && path != l.pool {
				plus(sum, p.size, n)
			}
		}
	}
	return sum
}

// limitTo divides among some claimants below a consumer no more than an amount holds of what they may use.
func (d *demanding) limitTo(top string, amount []int64, limited func(k int) bool, in func(o *claimant) bool) {
	whole, use, tree := int64(0), make([]int64, len(amount)), map[string]*share{}
	node := func(path string) *share {
		if tree[path] == nil {
			tree[path] = &share{}
		}
		return tree[path]
	}
	for i := range d.list {
		o := &d.list[i]
		if !in(o) {
			continue
		}
		whole = add(whole, o.own)
		for k, n := range o.sub.size {
			use[k] = add(use[k], product(n, o.usable))
		}
		for path := o.sub.consumer; ; path = parentOf(path) {
			if node(path).demand = add(node(path).demand, o.demand); path == top {
				break
			}
		}
	}
	total, hit := whole, false
	for k, n := range use {
		if limited(k) && n > amount[k] {
			total, hit = min(total, fraction{amount[k], n}.of(whole)), true
		}
	}
	if !hit {
		return
	}
	node(top).quota = min(total, node(top).demand)
	for _, path := range append([]string{"/"}, d.m.policy.paths...) {
		if a := tree[path]; a != nil && a.quota > 0 {
			d.m.policy.divide(d.w, path, tree, func(c string) int64 { return d.ratioIn(d.t, d.w, d.pool.at, c) })
		}
	}
	for i := range d.list {
		if o := &d.list[i]; in(o) {
			left := node(o.sub.consumer)
			o.demand = min(o.demand, left.quota)
			left.quota -= o.demand
		}
	}
}

// add is the sum of two amounts, at most the largest number.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// product is the product of two amounts, at most the largest number.
func product(a, b int64) int64 {
	if hi, lo := bits.Mul64(uint64(a), uint64(b)); hi == 0 && lo <= math.MaxInt64 {
		return int64(lo)
	}
	return math.MaxInt64
}
