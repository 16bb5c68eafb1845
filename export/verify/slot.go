package verify

import (
	"math/big"
	"slices"
)

// slots are the figures of a slot plan as they stand before a cycle's grants, by consumer (docs/slots.md).
type slots struct {
	*plan
	w        *window
	whole    int64 // S
	okay     int64 // of ok hosts
	owned    map[string]int64
	reserved map[string]int64
	pool     map[string]int64 // F
	hybrid   int64            // H
	demand   map[string]int64 // D
	need     map[string]int64
	left     map[string]int64
	asks     map[string]int64 // of that, what is for the pool that is being divided
	dynamic  map[string]int64
	static   map[string]int64
	scaled   map[string]int64 // ⌊E⌋
	keeps    map[string]int64 // R
	use      map[string]int64
	quota    map[string]int64 // of hybrid branches
	drawn    map[string]int64 // held from pools before the cycle's grants
	vague    bool             // D is not told: a gang that must be together is on several values, or on none
	known    bool             // whether what is borrowed and not under reclaim is known exactly
}

// hostsOf are a plan's hosts that take part: those in it, and those that left it with work on them.
func (v *verifier) hostsOf(p *plan, visit func(h *host, in bool)) {
	for _, h := range v.m.hosts {
		if h.plan == p.name {
			visit(h, true)
			continue
		}
		for at := range v.m.onHost[h.name] {
			if at.plan == p.name {
				visit(h, false)
				break
			}
		}
	}
}

// entitle computes a slot plan's figures before grants.
func (v *verifier) entitle(p *plan) *slots { return v.entitleBy(p, p.at(v.now, v.m.policy.zone)) }

// entitleBy computes them as they are in a window.
func (v *verifier) entitleBy(p *plan, w *window) *slots {
	s := &slots{plan: p, w: w, owned: map[string]int64{}, reserved: map[string]int64{}, pool: map[string]int64{},
		demand: map[string]int64{}, need: map[string]int64{}, left: map[string]int64{}, dynamic: map[string]int64{},
		static: map[string]int64{},
		scaled: map[string]int64{}, keeps: map[string]int64{}, use: map[string]int64{}, quota: map[string]int64{},
		known: !v.dim()}
	shut := map[key]int64{}
	v.hostsOf(p, func(h *host, in bool) {
		if in && h.state == "ok" {
			s.okay += h.cap[0]
			return
		}
		used := int64(0)
		for at, pile := range v.m.onHost[h.name] {
			if at.plan == p.name {
				shut[at.key] += pile.units
				used += pile.units * pile.size[0]
			}
		}
		if p.exclusive != "" && used > 0 {
			if used = 0; in || h.plan == "" && !h.gone {
				used = v.m.worth(h, p)[0]
			}
		}
		s.whole += used
	})
	s.whole += s.okay
	s.own(v.m.policy)
	v.demands(s, shut)
	v.needs(s)
	s.hybrids(v.m.policy)
	v.pour(s, s.dynamic, false)
	v.pour(s, s.static, true)
	return s
}

// own is SLOT-13: by rank, level by level, reserved before the rest.
func (s *slots) own(p *policy) {
	for _, path := range slices.Backward(p.paths) {
		if !s.member[path] {
			continue
		}
		e := s.w.entry[path]
		if p.leaf(path) && e.kind != "hybrid" {
			s.reserved[path] = e.owns - min(e.lend, e.owns)
		}
		s.reserved[parentOf(path)] += s.reserved[path]
	}
	s.owned["/"] = s.whole
	hybrid := false
	for _, path := range append([]string{"/"}, p.paths...) {
		if path != "/" && (!s.member[path] || p.leaf(path) || s.w.entry[path].kind == "hybrid") {
			continue
		}
		left := s.owned[path]
		children := p.sorted(s.plan, s.w, path)
		owns := func(c string) int64 {
			if s.w.entry[c].kind == "hybrid" {
				hybrid = true
				return 0
			}
			return s.w.entry[c].owns
		}
		for _, c := range children {
			s.reserved[c] = min(s.reserved[c], owns(c))
			s.owned[c] = min(s.reserved[c], left)
			left -= s.owned[c]
		}
		for _, c := range children {
			more := min(owns(c)-s.reserved[c], left)
			s.owned[c] += more
			left -= more
		}
		for _, c := range children {
			s.reserved[c] = min(s.reserved[c], s.owned[c])
		}
		s.pool[path] = left
	}
	if hybrid {
		s.hybrid, s.pool["/"] = s.pool["/"], 0
	}
}

// demands is D, the placeable demand of every leaf.
func (v *verifier) demands(s *slots, shut map[key]int64) {
	reach := map[string]map[string]bool{} // exclusive: hosts that any of a leaf's sub-allocations may use
	type kind struct {
		cond         *expr
		each, atMost int64
		together     string // an attribute of which all hosts have one value
		value        any    // the one that it has, nil: none, so that it is the one that would take the most
	}
	fits := map[kind]int64{}
	var stays map[key]map[any]bool
	for k, b := range v.m.subs {
		if k.plan != s.name || b.orphan {
			continue
		}
		each := b.size[0]
		id := kind{b.cond, each, b.perHost, b.mustBeTogether(), nil}
		if id.together != "" {
			if stays == nil {
				stays = v.staying()
			}
			for value := range stays[k] {
				s.vague = s.vague || value == nil || len(stays[k]) > 1 // it goes by one of them
				id.value = value
			}
		}
		room, ok := fits[id]
		if !ok {
			by := map[any]int64{}
			for _, h := range v.m.hosts {
				value := h.value(id.together)
				if !v.m.may(b, h) || id.together != "" && (value == nil || id.value != nil && id.value != value) {
					continue
				}
				n := h.cap[0] / each
				if b.perHost != none {
					n = min(n, b.perHost)
				}
				by[value] += n
				room = max(room, by[value])
			}
			fits[id] = room
		}
		units := min(b.units, room+shut[k])
		if units < b.least {
			units = 0 // none of it is ever of use (REQ-3)
		}
		s.demand[k.consumer] += each * units
		if s.exclusive != "" && b.units > 0 {
			if reach[k.consumer] == nil {
				reach[k.consumer] = map[string]bool{}
			}
			for _, h := range v.m.hosts {
				if v.m.may(b, h) && h.cap[0] >= each {
					reach[k.consumer][h.name] = true
				}
			}
		}
	}
	if s.exclusive != "" {
		v.boundByHosts(s, reach)
	}
}

// boundByHosts limits the demand of leaves of an exclusive plan to the slots of the hosts that they may use, or hold.
func (v *verifier) boundByHosts(s *slots, reach map[string]map[string]bool) {
	for leaf := range s.demand {
		most := int64(0)
		v.hostsOf(s.plan, func(h *host, in bool) {
			switch {
			case in && h.state == "ok":
				if reach[leaf][h.name] {
					most += h.cap[0]
				}
			case v.holderOf(h.name, s.plan) == leaf:
				if in || h.plan == "" && !h.gone {
					most += v.m.worth(h, s.plan)[0]
				}
			}
		})
		s.demand[leaf] = min(s.demand[leaf], most)
	}
}

// holderOf is the leaf that holds a host exclusively: that of its oldest units.
func (v *verifier) holderOf(host string, p *plan) string {
	leaf, first := "", int64(0)
	for at, pile := range v.m.onHost[host] {
		if at.plan != p.name {
			continue
		}
		for cycle, n := range pile.lots {
			if n > 0 && (leaf == "" || cycle < first) {
				leaf, first = at.consumer, cycle
			}
		}
	}
	return leaf
}

// needs is what leaves need beyond what they own and borrow, under every share.max.
func (v *verifier) needs(s *slots) {
	borrowed, shared := map[string]int64{}, map[string]int64{}
	for _, pile := range v.m.piles {
		if pile.plan != s.name {
			continue
		}
		loans, pooled := int64(0), int64(0)
		for l, n := range pile.label {
			switch l.origin {
			case "borrowed":
				loans += n
			case "share_pool":
				pooled += n
			}
			s.known = s.known && l.origin != ""
		}
		switch {
		case loans == 0:
		case s.exclusive != "":
			s.known = false
		case pile.leaving == 0 || loans == pile.units:
			borrowed[pile.consumer] += (loans - pile.leaving) * pile.size[0]
		default: // which of them are under reclaim is not told
			s.known = false
		}
		switch {
		case pooled == 0 || v.brokeBelow(s.name, pile.consumer, "/") == "":
		case pile.leaving == 0 || pooled == pile.units:
			shared[pile.consumer] += (pooled - pile.leaving) * pile.size[0]
		default:
			s.known = false
		}
	}
	use := map[string]int64{}
	for _, path := range slices.Backward(v.m.policy.paths) {
		if !s.member[path] {
			continue
		}
		e := s.w.entry[path]
		if v.m.policy.leaf(path) && e.kind != "hybrid" {
			use[path] = min(s.demand[path], s.owned[path]) + borrowed[path]
			if e.ratio > 0 {
				s.need[path] = max(0, s.demand[path]-use[path])
			}
			if v.brokeBelow(s.name, path, "/") != "" {
				s.need[path] = min(s.need[path], shared[path])
			}
		}
		if e.most != none {
			s.need[path] = min(s.need[path], max(0, e.most-use[path]))
		}
		use[parentOf(path)] += use[path]
		s.need[parentOf(path)] += s.need[path]
	}
}

// pour divides every pool, the deepest first; what nobody below needs goes up.
func (v *verifier) pour(s *slots, quota map[string]int64, static bool) {
	p := v.m.policy
	for path, n := range s.need {
		s.left[path] = n
	}
	live := map[string]bool{} // takes from pools above it: a ratio of 0 stops what is at and below it there (SLOT-4)
	for _, path := range slices.Backward(p.paths) {
		if !s.member[path] || s.w.entry[path].kind == "hybrid" || s.w.entry[path].ratio == 0 {
			continue
		}
		if live[path] = live[path] || p.leaf(path); live[path] {
			live[parentOf(path)] = true
		}
	}
	up := map[string]int64{}
	for _, n := range branches(p, s.plan) {
		amount := s.pool[n] + up[n]
		if amount == 0 {
			continue
		}
		given, part := int64(0), amount
		if !static {
			for c := n; c != ""; c = parentOf(c) {
				part = min(part, s.left[c])
			}
		}
		if part > 0 {
			s.ask(p, n)
			given = s.below(p, n, part, quota, static, live)
			for c := n; c != ""; c = parentOf(c) {
				s.left[c] -= given
				quota[c] += given
			}
		}
		if n != "/" {
			up[parentOf(n)] += amount - given
		}
	}
}

// branches are the consumers of a plan that have children, and the root: the deepest first, equally deep ones in tree
// order.
func branches(p *policy, t *plan) []string {
	depth := func(path string) (n int) {
		for ; path != "/"; path = parentOf(path) {
			n++
		}
		return n
	}
	all := []string{"/"}
	for _, path := range p.paths {
		if t.member[path] && !p.leaf(path) {
			all = append(all, path)
		}
	}
	slices.SortStableFunc(all, func(a, b string) int { return depth(b) - depth(a) })
	return all
}

// ask computes what those below a branch would take of its pool: nobody behind a ratio of 0 does.
func (s *slots) ask(p *policy, branch string) {
	s.asks = map[string]int64{}
	for _, path := range slices.Backward(p.paths) {
		if !s.member[path] || path == branch || !under(path, branch) {
			continue
		}
		if p.leaf(path) {
			s.asks[path] = s.left[path]
		}
		if s.asks[path] = min(s.asks[path], s.left[path]); s.w.entry[path].ratio > 0 {
			s.asks[parentOf(path)] += s.asks[path]
		}
	}
}

// below divides an amount among a consumer's children and on down.
func (s *slots) below(
	p *policy, n string, amount int64, quota map[string]int64, static bool, live map[string]bool,
) (given int64) {
	children := p.sorted(s.plan, s.w, n)
	ratio, limit := make([]int64, len(children)), make([]int64, len(children))
	for i, c := range children {
		if live[c] {
			ratio[i] = s.w.entry[c].ratio
		}
		if limit[i] = s.asks[c]; static {
			limit[i] = 1 << 62
		}
	}
	part, _ := fill(amount, ratio, limit)
	for i, c := range children {
		if part[i] == 0 {
			continue
		}
		given += part[i]
		quota[c] += part[i]
		s.left[c] -= part[i]
		if !p.leaf(c) {
			s.below(p, c, part[i], quota, static, live)
		}
	}
	return given
}

// fill is water-filling (SLOT-6, MD-14): a total in proportion to ratios, none above its limit, what that leaves over
// divided again. Parts are whole; what rounding leaves goes one each to the first that had a fraction.
func fill(total int64, ratio, limit []int64) (part []int64, left int64) {
	part = make([]int64, len(ratio))
	var active []int
	for i := range ratio {
		if ratio[i] > 0 && limit[i] > 0 {
			active = append(active, i)
		}
	}
	var x, y, sum big.Int
	for {
		sum.SetInt64(0)
		for _, i := range active {
			sum.Add(&sum, x.SetInt64(ratio[i]))
		}
		var kept []int
		given := int64(0)
		for _, i := range active {
			x.Mul(x.SetInt64(limit[i]), &sum)
			y.Mul(y.SetInt64(total), big.NewInt(ratio[i]))
			if x.Cmp(&y) <= 0 { // its limit is reached at the common level
				part[i] = limit[i]
				given += limit[i]
			} else {
				kept = append(kept, i)
			}
		}
		total -= given
		if len(kept) == len(active) {
			break
		}
		active = kept
	}
	if len(active) == 0 || total == 0 {
		return part, total
	}
	left = total
	fraction := make([]bool, len(ratio))
	for _, i := range active {
		x.Mul(x.SetInt64(total), big.NewInt(ratio[i]))
		x.QuoRem(&x, &sum, &y)
		part[i], fraction[i] = x.Int64(), y.Sign() != 0
		left -= part[i]
	}
	for _, i := range active {
		if left > 0 && fraction[i] {
			part[i]++
			left--
		}
	}
	return part, left
}
