package oracle

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// Fair reclaim in MD plans, by docs/shares.md.

// net is the units that a sub-allocation holds through the pool and is promised there, without those under reclaim (CYC-7).
func (q pool) net(s *sub) int64 {
	n := q.pledgedOn(s, func(owner plan.Node) bool { return q.meet(s.alloc.leaf, owner) == q.at })
	return n + int64(len(q.units(func(u *unit) bool { return u.sub == s && q.drawn(u) && stays(u) })))
}

// drawn tells whether a unit is held through the pool.
func (q pool) drawn(u *unit) bool { return u.pool == q.at }

// stake is a consumer's share usage by what is net.
func (q pool) stake(n plan.Node) uint64 {
	sum := uint64(0)
	for leaf := n; leaf < q.p.End[n]; leaf++ {
		if !q.p.Leaf(leaf) {
			continue
		}
		sizes, units := q.bysize(leaf, q.net)
		for i, u := range units {
			sum += q.fraction(u, sizes[i])
		}
	}
	return sum
}

// step is what units of a size more or less change the stake of a leaf by.
func (q pool) step(leaf plan.Node, size []int64, more int64) int64 {
	sizes, units := q.bysize(leaf, q.net)
	i := slices.IndexFunc(sizes, func(other []int64) bool { return slices.Equal(size, other) })
	return int64(q.fraction(units[i]+more, size)) - int64(q.fraction(units[i], size))
}

// claimed is the vector that a consumer and all below it hold net from pools above it (MD-18).
func (g *round) claimed(n plan.Node) []int64 {
	v := make([]int64, len(g.p.Dimensions))
	for _, s := range g.holders(n) {
		plus(v, s.size, g.pledgedOn(s, func(owner plan.Node) bool { return g.meet(s.alloc.leaf, owner) < n }))
	}
	for _, u := range g.units(stays) {
		if g.limitedBy(u, n) {
			plus(v, u.sub.size, 1)
		}
	}
	return v
}

// limitedBy tells whether a unit counts in the share limit of a consumer: it is held below it, from a pool above it.
func (g *round) limitedBy(u *unit, n plan.Node) bool {
	return g.under(n, u.leaf()) && u.pool != plan.None && u.pool < n
}

// review lets sets lapse as far as their takers no longer want, fit or deserve what they were promised, in order of number.
func (g *round) review() {
	g.reviewed = 0
	for _, s := range g.mine(every) {
		g.reviewed = s.number
		for s.n > 0 && !g.stands(s) {
			if g.lapse(s); s.reason == "fair_share" {
				s.taker.took()
			}
		}
	}
	g.reviewed = math.MaxInt64
}

// stands tells whether a set's taker still wants, fits and deserves all its units, and its victims still make room for it.
func (g *round) stands(s *set) bool {
	t, leaf := s.taker, s.taker.alloc.leaf
	q, to := g.pool(g.meet(leaf, s.owner)), g.parcel(s.target, s.owner)
	if t.short() < g.pledged(t) || g.small(t) || !g.takes(t, to, -1) || g.tooSlow(leaf, to) || q.barred(leaf) {
		return false
	}
	for _, n := range q.way(leaf) {
		if slices.Contains(g.beyond(n, make([]int64, len(t.size)), g.claimed), true) {
			return false
		}
	}
	room := g.room(leaf, to)
	for d, n := range g.kept(s) {
		if n > 0 && room[d] < 0 {
			return false
		}
	}
	defer func(was int64) { g.reviewed = was }(g.reviewed)
	g.reviewed = math.MaxInt64 // stakes are with all that is promised
	return len(g.units(func(u *unit) bool {
		return u.set == s && (u.host != s.target || u.owner != s.owner || s.reason == "fair_share" && !q.ahead(u.leaf(), leaf, nil, nil))
	})) == 0
}

// takes tells whether a parcel may take a unit of a sub-allocation beside those promised to it on the host and some more.
func (g *round) takes(s *sub, to parcel, more int64) bool {
	for _, t := range g.mine(func(t *set) bool { return t.taker == s && t.target == to.host && t.number <= g.reviewed }) {
		more += t.n
	}
	return g.ok(to.host) && g.meets(s, to.host) && fits(s.size, to.size) && !full(s, to.host, more)
}

// promised grants what sets hold room for, once the room is free.
func (g *round) promised() {
	for _, s := range g.mine(every) {
		to := g.parcel(s.target, s.owner)
		for s.n > 0 && fits(s.taker.size, plus(g.room(s.taker.alloc.leaf, to), g.kept(s), 1)) {
			g.grantOn(s.taker, to)
			if s.n--; s.n == 0 {
				g.trim(s, s.room())
			}
		}
	}
}

// fair is MD-17: those who go short take from those of lower priority, and from those who have more for their ratio.
func (q pool) fair() {
	q.passed, q.vain = map[*sub]bool{}, map[string]bool{}
	has := map[plan.Node]uint64{} // leaves' stakes, what is taken back here counted in
	for n := q.at; n < q.p.End[q.at]; n++ {
		if q.p.Leaf(n) {
			has[n] = q.stake(n)
		}
	}
	turn := func(n plan.Node) uint64 {
		sum := uint64(0)
		for leaf := n; leaf < q.p.End[n]; leaf++ {
			sum += has[leaf]
		}
		return sum
	}
	q.race(turn, func(s *sub) bool {
		if !q.w.ShareReclaim[s.alloc.leaf] || q.passed[s] {
			return false
		}
		_, _, hit := q.limited(s, q.claimed)
		gets := q.step(s.alloc.leaf, s.size, 1)
		if q.passed[s] = hit || !q.waits(s) && !q.seize(s); !q.passed[s] {
			has[s.alloc.leaf] += uint64(gets)
		}
		return !q.passed[s]
	})
}

// waits lets a unit join sets under way, if there are any.
func (q pool) waits(s *sub) bool {
	joins := (len(q.mine(every)) > 0 || len(q.units((*unit).leaves)) > 0) && q.join(s, q.usable(s))
	if joins && q.at != plan.Root {
		q.notes["joined in a private pool"]++
	}
	return joins
}

// join lets a unit wait for sets under way, when it will fit one of some parcels once they are done (CYC-6).
func (g *round) join(s *sub, list []parcel) bool {
	for _, t := range list {
		if g.takes(s, t, 0) && fits(s.size, g.netRoom(s.alloc.leaf, t)) {
			g.joined = append(g.joined, joined{sub: s, host: t.host, owner: t.owner})
			return true
		}
	}
	return false
}

// seize makes a set for a unit, on the parcel of the first candidate where victims make it fit.
func (q pool) seize(s *sub) bool {
	kind := fmt.Sprint(s.alloc.leaf, s.size, s.req)
	if s.perHost != plan.Unlimited {
		kind = fmt.Sprint("sub ", s.arrival)
	}
	if q.vain[kind] || s.turns >= 5 {
		return false
	}
	list, may := q.victims(s), q.usable(s)
	for _, u := range list {
		i := slices.IndexFunc(may, func(t parcel) bool { return lies(u, t) })
		tried := fmt.Sprint(kind, u.host.Name, u.owner)
		if q.vain[tried] || i < 0 || !q.takes(s, may[i], 0) {
			continue
		}
		if chosen, ok := q.pick(s, may[i], list); ok && q.bears(s, chosen) {
			q.noteSet(len(chosen))
			if q.at != plan.Root {
				q.notes["fair reclaim in a private pool"]++
			}
			q.noteVictim(u.leaf(), s.alloc.leaf)
			return q.exchange(&set{reason: "fair_share", target: u.host, owner: u.owner, taker: s}, chosen)
		}
		q.vain[tried] = true
	}
	q.vain[kind] = true
	return false
}

// exchange makes a set for a taker, and counts whose turn it was.
func (q pool) exchange(t *set, chosen []*unit) bool {
	if !q.claim(t, chosen) {
		return false
	}
	t.taker.turns += t.taker.turns % 2
	for _, u := range chosen {
		if u.cycle < q.cycle {
			u.sub.took()
		}
		if u.sub.turns >= 5 {
			q.notes["turned as often as may be"]++
		}
	}
	return true
}

// took notes that fair share took from a sub-allocation.
func (s *sub) took() {
	if s.turns%2 == 0 {
		s.turns++
	}
}

// bears tells whether sets that this cycle made for fair share in the pool still have to give to their takers, those that do now, when some units are
// given for a taker.
func (q pool) bears(s *sub, units []*unit) bool {
	gives, gets := map[plan.Node]*big.Rat{}, map[plan.Node]*big.Rat{}
	add := func(to map[plan.Node]*big.Rat, leaf plan.Node, r *big.Rat) {
		for _, n := range q.way(leaf) {
			if to[n] == nil {
				to[n] = new(big.Rat)
			}
			to[n].Add(to[n], r)
		}
	}
	add(gets, s.alloc.leaf, q.gets(s))
	done := map[string]bool{}
	for _, u := range units {
		alike := func(o *unit) bool { return o.leaf() == u.leaf() && slices.Equal(o.sub.size, u.sub.size) }
		if kind := fmt.Sprint(u.leaf(), u.sub.size); !done[kind] {
			done[kind] = true
			n := len(slices.DeleteFunc(slices.Clone(units), func(o *unit) bool { return !alike(o) }))
			add(gives, u.leaf(), q.differs(u.sub, 0, int64(-n)))
		}
	}
	for _, t := range q.mine(func(t *set) bool {
		return t.reason == "fair_share" && t.cycle == q.cycle && q.meet(t.taker.alloc.leaf, t.owner) == q.at
	}) {
		for _, u := range q.units(func(u *unit) bool { return u.set == t }) {
			a, b := q.part(u.leaf(), t.taker.alloc.leaf)
			less, more := new(big.Rat), new(big.Rat)
			for r, n := range map[*big.Rat]plan.Node{less: a, more: b} {
				if gives[n] != nil {
					r.Add(r, gives[n])
				}
				if gets[n] != nil {
					r.Sub(r, gets[n])
				}
			}
			if q.ahead(u.leaf(), t.taker.alloc.leaf, nil, nil) && !q.ahead(u.leaf(), t.taker.alloc.leaf, less, more.Neg(more)) {
				q.notes["a set that another stands on"]++
				return false
			}
		}
	}
	return true
}

// noteSet counts what a set takes.
func (g *round) noteSet(victims int) {
	if victims > 1 {
		g.notes["several victims for one unit"]++
	}
}

// noteVictim counts why a victim gives to a taker.
func (q pool) noteVictim(victim, taker plan.Node) {
	switch a, b := q.part(victim, taker); {
	case q.w.Priority[a] < q.w.Priority[b]:
		q.notes["taken from a lower priority"]++
	case q.ratio[a] == 0:
		q.notes["taken from a ratio of 0"]++
	default:
		q.notes["taken from a greater share"]++
	}
}

// lies tells whether a unit is on a parcel.
func lies(u *unit, t parcel) bool { return u.host == t.host && u.owner == t.owner }

// victims are the units that may be taken for a sub-allocation: where the branches part, from the pool down.
func (q pool) victims(s *sub) []*unit {
	var list []*unit
	up, gets := q.at, q.gets(s)
	for _, n := range q.way(s.alloc.leaf) {
		for _, k := range q.giving(up) {
			if k != n && q.ahead(k, n, nil, gets) {
				list = append(list, q.unitsOf(k)...)
			}
		}
		up = n
	}
	return slices.DeleteFunc(list, func(u *unit) bool {
		return !q.ahead(u.leaf(), s.alloc.leaf, q.gives(u), gets) || !q.bears(s, []*unit{u})
	})
}

// giving is a consumer's children in the order in which they give.
func (q pool) giving(n plan.Node) []plan.Node {
	kids := q.children(n)
	slices.SortFunc(kids, func(a, b plan.Node) int {
		ratio := func(n plan.Node) uint64 { return uint64(q.ratio[n]) }
		order := cmp.Compare(q.w.Priority[a], q.w.Priority[b])
		if order == 0 {
			order = cmp.Compare(min(ratio(a), 1), min(ratio(b), 1))
		}
		if order == 0 && ratio(a) > 0 {
			order = less(q.stake(b), ratio(a), q.stake(a), ratio(b))
		}
		return cmp.Or(order, q.rankOrder(q.in, b, a))
	})
	return kids
}

// unitsOf are the net units that a consumer holds through the pool, in the order in which it gives them.
func (q pool) unitsOf(n plan.Node) []*unit {
	var list []*unit
	if q.p.Leaf(n) {
		list = q.units(func(u *unit) bool { return u.leaf() == n && q.drawn(u) && stays(u) })
		slices.SortFunc(list, q.newest)
	}
	for _, k := range q.giving(n) {
		list = append(list, q.unitsOf(k)...)
	}
	return list
}

// gives is what its leaf's share loses with a unit, gets what it gains with one.
func (q pool) gives(u *unit) *big.Rat { return q.differs(u.sub, 0, -1) }
func (q pool) gets(s *sub) *big.Rat   { return q.differs(s, 1, 0) }

// differs is by how much a leaf's share is larger with some units of a size more than with some others more.
func (q pool) differs(s *sub, a, b int64) *big.Rat {
	sizes, units := q.bysize(s.alloc.leaf, q.net)
	n := units[slices.IndexFunc(sizes, func(other []int64) bool { return slices.Equal(s.size, other) })]
	return new(big.Rat).Sub(q.portion(n+a, s.size), q.portion(n+b, s.size))
}

// worth is a consumer's share by what is net, without any roundinq.
func (q pool) worth(n plan.Node) *big.Rat {
	sum := new(big.Rat)
	for leaf := n; leaf < q.p.End[n]; leaf++ {
		if !q.p.Leaf(leaf) {
			continue
		}
		sizes, units := q.bysize(leaf, q.net)
		for i, u := range units {
			sum.Add(sum, q.portion(u, sizes[i]))
		}
	}
	return sum
}

// portion is what fraction rounds.
func (q pool) portion(units int64, size []int64) *big.Rat {
	if units == 0 {
		return new(big.Rat)
	}
	return big.NewRat(units, max(q.pack(size), units))
}

// ahead tells whether a victim that gives and a taker that gets so much stake may be so, where their ways part.
func (q pool) ahead(victim, taker plan.Node, gives, gets *big.Rat) bool {
	a, b := q.part(victim, taker)
	switch {
	case q.w.Priority[a] != q.w.Priority[b]:
		return q.w.Priority[a] < q.w.Priority[b]
	case q.ratio[a] == 0 || q.ratio[b] == 0:
		return q.ratio[a] == 0 && q.ratio[b] > 0
	}
	x, y := q.worth(a), q.worth(b)
	if gives != nil {
		x.Sub(x, gives)
	}
	if gets != nil {
		y.Add(y, gets)
	}
	return x.Sign() >= 0 && x.Mul(x, big.NewRat(q.ratio[b], 1)).Cmp(y.Mul(y, big.NewRat(q.ratio[a], 1))) >= 0
}

// pick chooses the victims for a unit on a parcel among the candidates, each as long as what its branch gave allows it.
func (q pool) pick(s *sub, t parcel, list []*unit) (chosen []*unit, ok bool) {
	here := slices.DeleteFunc(slices.Clone(list), func(u *unit) bool { return !lies(u, t) })
	given, gets := map[plan.Node]*big.Rat{}, q.gets(s)
	chosen, ok = q.pickOf(s, t, here, func(u *unit) bool {
		a, _ := q.part(u.leaf(), s.alloc.leaf)
		gives := q.gives(u)
		if given[a] != nil {
			gives.Add(gives, given[a])
		}
		may := q.ahead(u.leaf(), s.alloc.leaf, gives, gets)
		if may {
			given[a] = gives
		}
		return may
	})
	if !ok {
		if chosen = q.alike(s, t, here); chosen != nil {
			q.notes["victims of one leaf alone"]++
		}
	}
	return chosen, chosen != nil
}

// fitter tells whether a unit fits a parcel, both now and net, when some units on it are gone; and whether another one there would help.
func (g *round) fitter(s *sub, t parcel) (enough func(chosen []*unit) bool, helps func(chosen []*unit, u *unit) bool) {
	room := least(g.room(s.alloc.leaf, t), g.netRoom(s.alloc.leaf, t))
	with := func(chosen []*unit) []int64 {
		v := slices.Clone(room)
		for _, u := range chosen {
			plus(v, u.sub.size, 1)
		}
		return v
	}
	return func(chosen []*unit) bool { return fits(s.size, with(chosen)) }, func(chosen []*unit, u *unit) bool {
		now := with(chosen)
		for d, n := range s.size {
			if n > max(0, now[d]) && u.sub.size[d] > 0 {
				return true
			}
		}
		return false
	}
}

// pickOf chooses among units of a parcel those that make a unit fit: one alone if there is such a one, else one after the other
// that helps and may be taken; those not needed are dropped again, of each sub-allocation the last chosen first.
func (g *round) pickOf(s *sub, t parcel, here []*unit, may func(u *unit) bool) (chosen []*unit, ok bool) {
	enough, helps := g.fitter(s, t)
	for _, u := range here {
		if enough([]*unit{u}) {
			return []*unit{u}, true
		}
	}
	for _, u := range here {
		if helps(chosen, u) && may(u) {
			chosen = append(chosen, u)
		}
	}
	if !enough(chosen) {
		return nil, false
	}
	for _, u := range slices.Clone(chosen) {
		last := len(chosen) - 1 // of the sub-allocation's: those granted in this cycle are chosen first (CYC-1)
		for last >= 0 && chosen[last].sub != u.sub {
			last--
		}
		if last < 0 {
			continue
		}
		if rest := slices.Delete(slices.Clone(chosen), last, last+1); enough(rest) {
			if chosen[last] != u && u.cycle == g.cycle {
				g.notes["kept an older unit than one of this cycle"]++
			}
			chosen = rest
		}
	}
	return chosen, true
}

// alike chooses units of one leaf and size that make a unit fit by themselves, of those of which it takes the fewest.
func (q pool) alike(s *sub, t parcel, here []*unit) (best []*unit) {
	enough, _ := q.fitter(s, t)
	for _, first := range here {
		var chosen []*unit
		gives := new(big.Rat)
		for _, u := range here {
			if u.leaf() != first.leaf() || !slices.Equal(u.sub.size, first.sub.size) || enough(chosen) {
				continue
			}
			if gives.Add(gives, q.gives(u)); q.ahead(u.leaf(), s.alloc.leaf, gives, q.gets(s)) {
				chosen = append(chosen, u)
			}
		}
		if enough(chosen) && (best == nil || len(chosen) < len(best)) {
			best = chosen
		}
	}
	return best
}
