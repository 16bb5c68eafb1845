package oracle

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// Filling in rounds (MD-16), by docs/spec/md.md. Functions name the rule that they play.

// kind is all units of one size and requirement that a pool treats alike (MD-16.1).
type kind struct {
	number  int
	subs    []*sub // in the order of asks
	alone   bool   // a kind of one sub-allocation
	left    bool   // it gets nothing more in this turn
	carrier *sub   // holds what was placed until it is dealt (MD-16.9)
	placed  []*unit
	room    int64 // units that would fit now
}

// filling is a pool's turn.
type filling struct {
	pool
	kinds   []*kind
	of      map[*sub]*kind
	net     map[*sub]int64        // as the turn began
	begun   map[plan.Node][]int64 // what limits looked at as the turn began
	given   map[*sub]int64        // in this turn
	planned map[*sub]int64        // in this step
	passed  map[*sub]bool         // in this step
	claim   map[*sub]int64        // units, in this step
	weigh   map[plan.Node]uint64  // claims of consumers, in this step
	bound   uint64                // of steps, where bounded
	bounded bool
}

// rounds fills the pool (MD-16).
func (q pool) rounds() {
	f := &filling{pool: q, of: map[*sub]*kind{}, net: map[*sub]int64{}, begun: map[plan.Node][]int64{},
		given: map[*sub]int64{}}
	for n := q.at; n < q.p.End[q.at]; n++ {
		f.begun[n] = q.claimed(n)
	}
	f.sort()
	for f.step() {
	}
	f.deal()
}

// sort finds the kinds (MD-16.1).
func (f *filling) sort() {
	lent := slices.ContainsFunc(f.Cluster.hosts, func(h *host) bool {
		return slices.ContainsFunc(f.parcels(f.in, h), func(t parcel) bool {
			return t.owner != f.at && f.under(f.at, t.owner)
		})
	})
	byName := map[string]*kind{}
	for _, s := range f.below(f.at) {
		leaf := s.alloc.leaf
		f.net[s] = f.pool.net(s)
		if f.barred(leaf) || f.outstanding(s) <= 0 || len(f.usable(s)) == 0 {
			continue
		}
		name, alone := fmt.Sprint(s.size, s.req), s.perHost != plan.Unlimited || f.forming[s] || s.together != ""
		if lent {
			name = fmt.Sprint(name, " ", f.p.ReclaimUS[leaf], " ", f.way(leaf)[0])
		}
		if alone {
			name = fmt.Sprint("alone ", s.arrival)
		}
		k := byName[name]
		if k == nil {
			carrier := *s
			carrier.held = 0
			k = &kind{number: len(f.kinds), alone: alone, carrier: &carrier}
			byName[name] = k
			f.kinds = append(f.kinds, k)
		}
		k.subs, f.of[s] = append(k.subs, s), k
	}
}

// outstanding is how many units of a sub-allocation nobody promised or gave it yet.
func (f *filling) outstanding(s *sub) int64 {
	if s.short() <= 0 || f.undone[s] || f.small(s) || f.partial[s] {
		return 0
	}
	return max(0, s.short()-f.pledged(s)-f.given[s])
}

// unit is how many units of a sub-allocation go at once.
func (f *filling) unit(s *sub) int64 {
	if f.forming[s] {
		return s.least
	}
	return 1
}

// weight is what a unit counts in claims and parts (NUM-3).
func (f *filling) weight(s *sub) uint64 { return max(1, one/uint64(max(1, f.pack(s.size)))) }

// usage is a consumer's usage with what this turn gave and this step plans (MD-12).
func (f *filling) usage(n plan.Node) uint64 {
	sum := uint64(0)
	for leaf := n; leaf < f.p.End[n]; leaf++ {
		if !f.p.Leaf(leaf) {
			continue
		}
		sizes, units := f.bysize(leaf, func(s *sub) int64 {
			net, ok := f.net[s]
			if !ok {
				net = f.pool.net(s) // it wants nothing, but is promised something
			}
			return net + f.given[s] + f.planned[s]
		})
		for i, u := range units {
			sum += f.fraction(u, sizes[i])
		}
	}
	return sum
}

// bears tells whether the limits below the pool bear so many units more (MD-18.1), given and planned ones included.
func (f *filling) bears(s *sub, units int64) bool {
	for _, n := range f.way(s.alloc.leaf) {
		has := plus(slices.Clone(f.begun[n]), s.size, units)
		for _, o := range f.below(n) {
			plus(has, o.size, f.given[o]+f.planned[o])
		}
		for d, amount := range has {
			if most := f.limit(n, d); s.size[d] > 0 && most != plan.Unlimited && amount > most {
				return false
			}
		}
	}
	return true
}

// fit counts the units of a kind that have room now (MD-16.2).
func (f *filling) fit(k *kind) int64 {
	s := k.subs[0]
	byValue, all := map[any]int64{}, int64(0)
	on := map[*host]int64{}
	for _, t := range f.usable(s) {
		if !f.goesOn(s, t) {
			continue
		}
		n := packs(s.size, f.room(s.alloc.leaf, t))
		if s.perHost != plan.Unlimited {
			n = max(0, min(n, s.perHost-f.onHost(k, t.host)-on[t.host]))
		}
		on[t.host] += n
		all += n
		if v := s.place(t.host); v != nil {
			byValue[v] += n
		}
	}
	if name, prefers := s.asksFor(); name == "" || prefers || f.isHeld(s) {
		return all
	}
	best := int64(0)
	for _, n := range byValue {
		best = max(best, n)
	}
	return best
}

// onHost counts the units of a kind of its own on a host.
func (f *filling) onHost(k *kind, h *host) int64 {
	return int64(len(slices.DeleteFunc(slices.Clone(h.units), func(u *unit) bool {
		return u.sub != k.subs[0] && u.sub != k.carrier
	})))
}

// claims finds what asks and consumers claim (MD-16.2), and tells whether anything is.
func (f *filling) claims() bool {
	f.claim, f.weigh, f.planned, f.passed = map[*sub]int64{}, map[plan.Node]uint64{}, map[*sub]int64{}, map[*sub]bool{}
	for _, k := range f.kinds {
		if k.left {
			continue
		}
		k.room = f.fit(k)
		for _, s := range k.subs {
			n := min(f.outstanding(s), k.room)
			if n >= f.unit(s) && f.bears(s, f.unit(s)) {
				f.claim[s] = n
			}
		}
	}
	for n := f.p.End[f.at] - 1; n >= f.at; n-- {
		if f.member[n] {
			f.weigh[n] = f.claimOf(n)
		}
	}
	return f.weigh[f.at] > 0
}

// claimOf is a consumer's claim, within its limit.
func (f *filling) claimOf(n plan.Node) (sum uint64) {
	for _, k := range f.children(n) {
		sum += f.weigh[k]
	}
	amount, has := make([]int64, len(f.p.Dimensions)), slices.Clone(f.begun[n])
	for _, s := range f.below(n) {
		if s.alloc.leaf == n {
			sum += uint64(f.claim[s]) * f.weight(s)
		}
		plus(amount, s.size, f.claim[s])
		plus(has, s.size, f.given[s])
	}
	if n == f.at {
		return sum
	}
	least := sum
	for d, a := range amount {
		most := f.limit(n, d)
		if left := max(0, most-has[d]); most != plan.Unlimited && a > left {
			part, _ := muldiv(sum, uint64(left), uint64(a))
			least = min(least, part)
		}
	}
	return least
}

// front are the children of a consumer that take part (MD-16.3).
func (f *filling) front(n plan.Node) (list []plan.Node) {
	for _, k := range f.children(n) {
		switch {
		case f.weigh[k] == 0:
		case len(list) == 0 || f.w.Priority[k] > f.w.Priority[list[0]]:
			list = []plan.Node{k}
		case f.w.Priority[k] == f.w.Priority[list[0]]:
			list = append(list, k)
		}
	}
	return list
}

// takePart are the leaves below a consumer that take part.
func (f *filling) takePart(n plan.Node) (list []plan.Node) {
	if f.p.Leaf(n) {
		return []plan.Node{n}
	}
	for _, k := range f.front(n) {
		list = append(list, f.takePart(k)...)
	}
	return list
}

// size is the step (MD-16.3).
func (f *filling) size() uint64 {
	volume, smallest := uint64(0), uint64(0)
	need, free := make([]int64, len(f.p.Dimensions)), make([]int64, len(f.p.Dimensions))
	leaves := f.takePart(f.at)
	for _, k := range f.kinds {
		sum := int64(0)
		for _, s := range k.subs {
			if f.claim[s] > 0 && slices.Contains(leaves, s.alloc.leaf) {
				sum += f.claim[s]
				if w := f.weight(s); smallest == 0 || w < smallest {
					smallest = w
				}
			}
		}
		sum = min(sum, k.room)
		volume += uint64(sum) * f.weight(k.subs[0])
		plus(need, k.subs[0].size, sum)
	}
	for _, h := range f.hosts {
		for _, t := range f.parcels(f.in, h) {
			if f.ok(h) && f.under(f.at, t.owner) {
				for d, n := range f.roomOf(t) {
					free[d] += max(0, n)
				}
			}
		}
	}
	whole, _ := muldiv(min(f.weigh[f.at], volume), 6, 10)
	step := whole
	for d, n := range need {
		if n > free[d] {
			part, _ := muldiv(whole, uint64(free[d]), uint64(n))
			step = min(step, part)
		}
	}
	step = max(step, smallest)
	if f.bounded {
		step = min(step, f.bound)
	}
	return step
}

// roomOf is the room of a parcel for leaves that are outsiders of all who lend it.
func (f *filling) roomOf(t parcel) []int64 {
	room := f.free(t)
	for _, x := range f.lenders(t.owner, f.at) {
		if reserve := f.aside[aside{x, t.owner, t.host}]; reserve != nil {
			rest := plus(slices.Clone(t.size), reserve, -1)
			room = least(room, plus(rest, f.taken(t, asIs, func(n plan.Node) bool { return !f.under(x, n) }), -1))
		}
	}
	return room
}

// step plays one step; false when the turn ends.
func (f *filling) step() bool {
	if !f.claims() {
		return false
	}
	was := f.usage(f.at)
	step := f.size()
	f.divide(f.at, step)
	if 2*f.worth() < step {
		for f.worth() < step && f.loop() {
		}
	}
	if f.worth() == 0 {
		return false
	}
	single := 0
	for s, n := range f.planned {
		single += int(n / f.unit(s))
	}
	hi, lo := bits.Mul64(step, 1000)
	small := hi == 0 && lo <= was+step || single == 1
	if !f.place(small) {
		f.bounded, f.bound = true, max(1, step/4, was/1000)
	}
	return true
}

// worth is what the step plans.
func (f *filling) worth() (sum uint64) {
	for s, n := range f.planned {
		sum += uint64(n) * f.weight(s)
	}
	return sum
}

// divide divides a part of the step below a consumer (MD-16.4).
func (f *filling) divide(n plan.Node, part uint64) {
	part = min(part, f.weigh[n])
	if f.p.Leaf(n) {
		f.units(n, part)
		return
	}
	front := f.front(n)
	if len(front) == 0 || part == 0 {
		return
	}
	use, sum := map[plan.Node]uint64{}, uint64(0)
	for _, k := range front {
		use[k] = f.usage(k)
		sum += f.weigh[k]
	}
	parts := map[plan.Node]uint64{}
	at := func(level uint64) (sum uint64) {
		for _, k := range front {
			hi, lo := bits.Mul64(level, uint64(f.counting(k)))
			switch {
			case hi > 0 || lo >= use[k]+f.weigh[k]:
				parts[k] = f.weigh[k]
			case lo > use[k]:
				parts[k] = lo - use[k]
			default:
				parts[k] = 0
			}
			sum += parts[k]
		}
		return sum
	}
	if sum <= part {
		at(1 << 62)
	} else {
		low, high := uint64(0), uint64(1<<62) // at(low) <= part < at(high)
		for high-low > 1 {
			if mid := low + (high-low)/2; at(mid) <= part {
				low = mid
			} else {
				high = mid
			}
		}
		at(low)
	}
	given := parts
	for _, k := range front {
		f.divide(k, given[k])
	}
}

// next is a leaf's next ask by CYC-10 with units claimed and not planned.
func (f *filling) next(leaf plan.Node) *sub {
	for _, a := range f.allocs {
		if a.plan != f.in || a.leaf != leaf {
			continue
		}
		var best *sub
		for _, s := range a.subs {
			if f.passed[s] || f.claim[s]-f.planned[s] < f.unit(s) || f.forming[s] && f.planned[s] > 0 {
				continue
			}
			has := func(s *sub) uint64 { return uint64(f.counted(s) + f.given[s] + f.planned[s]) }
			if best == nil || less(has(s), uint64(best.wanted), has(best), uint64(s.wanted)) < 0 {
				best = s
			}
		}
		if best != nil {
			return best
		}
	}
	return nil
}

// units turns a leaf's part into whole units (MD-16.5).
func (f *filling) units(leaf plan.Node, part uint64) {
	for s := f.next(leaf); s != nil; s = f.next(leaf) {
		n := f.unit(s)
		if cost := uint64(n) * f.weight(s); cost > part || !f.bears(s, n) {
			return
		} else {
			part -= cost
		}
		f.planned[s] += n
	}
}

// loop plans one unit or gang in the source text's order (MD-16.5); false when there is none left.
func (f *filling) loop() bool {
	for {
		tree := map[plan.Node]bool{}
		for leaf := f.at; leaf < f.p.End[f.at]; leaf++ {
			if f.p.Leaf(leaf) && f.member[leaf] && f.next(leaf) != nil {
				tree[leaf] = true
			}
		}
		if len(tree) == 0 {
			return false
		}
		s := f.next(f.choose(f.at, tree, func(a, b plan.Node) bool { return f.before(a, b, f.usage) }))
		if n := f.unit(s); f.bears(s, n) {
			f.planned[s] += n
			return true
		}
		f.passed[s] = true
	}
}

// place places the step's units, kind by kind (MD-16.6, 7); false when the step is undone.
func (f *filling) place(small bool) bool {
	order := slices.Clone(f.kinds)
	slices.SortStableFunc(order, func(a, b *kind) int {
		return cmp.Compare(f.largest(b.subs[0]), f.largest(a.subs[0]))
	})
	was, held := map[*kind]int{}, map[*kind]bool{}
	for _, k := range order {
		was[k], held[k] = len(k.placed), f.isHeld(k.subs[0])
	}
	for _, k := range order {
		n := int64(0)
		for _, s := range k.subs {
			n += f.planned[s]
		}
		if n == 0 {
			continue
		}
		got := f.put(k, n)
		if got == n {
			continue
		}
		if !small {
			for _, o := range order {
				f.takeBack(o, was[o])
				if !held[o] {
					delete(f.bonds, o.subs[0])
				}
			}
			return false
		}
		f.share(k, got)
	}
	for s, n := range f.planned {
		if f.given[s] += n; n > 0 && f.forming[s] {
			delete(f.forming, s)
			f.loose = true
		}
	}
	return true
}

// takeBack drops the units of a kind beyond so many.
func (f *filling) takeBack(k *kind, keep int) {
	for _, u := range k.placed[keep:] {
		f.drop(u)
	}
	k.placed = k.placed[:keep]
}

// share gives what found room of a kind to those who planned it, in the loop's order (MD-16.7).
func (f *filling) share(k *kind, got int64) {
	k.left = true
	want := map[*sub]int64{}
	for _, s := range k.subs {
		want[s] = f.planned[s]
	}
	all := f.planned
	f.planned = map[*sub]int64{}
	for range got {
		tree := map[plan.Node]bool{}
		for _, s := range k.subs {
			if want[s] > 0 {
				tree[s.alloc.leaf] = true
			}
		}
		leaf := f.choose(f.at, tree, func(a, b plan.Node) bool { return f.before(a, b, f.usage) })
		i := slices.IndexFunc(k.subs, func(s *sub) bool { return want[s] > 0 && s.alloc.leaf == leaf })
		f.planned[k.subs[i]]++
		want[k.subs[i]]--
	}
	for s, n := range all {
		if f.of[s] != k {
			f.planned[s] = n
		}
	}
}

// put places n units of a kind, lot by lot (MD-20), and tells how many found room; a gang that waits goes whole.
func (f *filling) put(k *kind, n int64) (done int64) {
	s := k.subs[0]
	if !f.forming[s] {
		return f.putAll(k, n)
	}
	if f.somewhere(s, func() bool {
		from := len(k.placed)
		if f.putAll(k, n) == n {
			return true
		}
		f.takeBack(k, from)
		return false
	}) {
		return n
	}
	return 0
}

// putAll is put without regard to gangs.
func (f *filling) putAll(k *kind, n int64) (done int64) {
	list := f.lots(k.subs[0])
	for len(list) > 0 && done < n {
		spots := f.spots(k, list[0], n-done)
		if len(spots) == 0 {
			list = list[1:]
			continue
		}
		for _, t := range spots {
			if !f.carries(k, t) {
				continue
			}
			u := f.Cluster.put(k.carrier, t.host)
			f.Cluster.label(u, t.owner)
			k.placed = append(k.placed, u)
			done++
		}
	}
	return done
}

// carries tells whether a unit of a kind goes on a parcel now.
func (f *filling) carries(k *kind, t parcel) bool {
	s := k.subs[0]
	return f.goesOn(s, t) && (s.perHost == plan.Unlimited || f.onHost(k, t.host) < s.perHost)
}

// spots are the parcels of a lot that take the next units of a kind, at most n, one each.
func (f *filling) spots(k *kind, lot []parcel, n int64) []parcel {
	s := k.subs[0]
	if f.m.Placement != plan.BestFit || f.ordered(s) != nil {
		open := slices.DeleteFunc(slices.Clone(lot), func(t parcel) bool { return !f.carries(k, t) })
		if t, ok := f.spot(s, open); ok {
			return []parcel{t}
		}
		return nil
	}
	return f.best(s, f.frontier(lot, n, func(t parcel) bool { return f.carries(k, t) }), n)
}
