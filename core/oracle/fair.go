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

// net is the units that a sub-allocation holds through the pool and is promised there, without those under reclaim
// (CYC-7).
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

// review lets sets lapse as far as their takers no longer want or fit what they were promised, in order of number; then
// those for a share as far as what they move does not lower the sum of squares any more, the latest first.
func (g *round) review() {
	g.reviewed = 0
	for _, s := range g.mine(every) {
		g.reviewed = s.number
		g.lapseUnless(s, func() bool { return g.stands(s) })
	}
	g.reviewed = math.MaxInt64
	list := g.mine(func(s *set) bool { return s.reason == "fair_share" })
	g.due = map[plan.Node]map[plan.Node]uint64{}
	for _, s := range list {
		if q := g.pool(g.meet(s.taker.alloc.leaf, s.owner)); g.due[q.at] == nil {
			g.due[q.at] = q.deserved(q.stake(q.at))
		}
	}
	slices.Reverse(list)
	for _, s := range list {
		q := g.pool(g.meet(s.taker.alloc.leaf, s.owner))
		g.lapseUnless(s, func() bool {
			victims := g.units(func(u *unit) bool { return u.set == s })
			if g.Mended {
				return len(victims) == 0 || q.stillAllowed(s, victims)
			}
			return len(victims) == 0 || q.stillNearer(s, victims)
		})
	}
	g.giveUp(false)
	g.keepWhole()
}

// lapseUnless lowers a set as long as something does not hold.
func (g *round) lapseUnless(s *set, ok func() bool) {
	for s.n > 0 && !ok() {
		if g.lapse(s); s.reason == "fair_share" {
			s.taker.took()
		}
	}
}

// stands tells whether a set's taker still wants, fits and deserves all its units, and its victims still make room for
// it.
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
	return !slices.ContainsFunc(g.units(func(u *unit) bool { return u.set == s }), func(u *unit) bool {
		if g.Mended && q.elsewhere(s, u) {
			return false
		}
		return u.host != s.target || u.owner != s.owner || s.reason == "fair_share" && !g.under(q.at, u.leaf())
	})
}

// elsewhere tells whether a unit may be a victim of a set for a share though it is on another parcel than the target
// (MD-17.7, MD-18.2).
func (q pool) elsewhere(s *set, u *unit) bool {
	return s.reason == "fair_share" && q.under(q.at, u.leaf()) && (u.sub.least > 1 ||
		slices.ContainsFunc(q.way(s.taker.alloc.leaf), func(n plan.Node) bool {
			return q.under(n, u.leaf()) && q.hasLimit(n)
		}))
}

// hasLimit tells whether a consumer has a share limit.
func (g *round) hasLimit(n plan.Node) bool {
	for d := range g.p.Dimensions {
		if g.limit(n, d) != plan.Unlimited {
			return true
		}
	}
	return false
}

// takes tells whether a parcel may take a unit of a sub-allocation beside those promised to it on the host and some
// more.
func (g *round) takes(s *sub, to parcel, more int64) bool {
	for _, t := range g.mine(func(t *set) bool {
		return t.taker == s && t.target == to.host &&
			t.number <= g.reviewed
	}) {
		more += t.n
	}
	return g.ok(to.host) && g.meets(s, to.host) && fits(s.size, to.size) && !full(s, to.host, more)
}

// promised grants what sets hold room for, once the room is free.
func (g *round) promised() {
	var waiting []*sub
	for _, s := range g.mine(every) {
		if !g.formed(s.taker) {
			if !slices.Contains(waiting, s.taker) {
				waiting = append(waiting, s.taker)
			}
			continue
		}
		for s.n > 0 && g.frees(s) {
			g.grantOn(s.taker, g.parcel(s.target, s.owner))
			if s.n--; s.n == 0 {
				g.trim(s, s.room())
			}
		}
	}
	for _, s := range waiting {
		g.promisedWhole(s)
	}
	g.giveUp(true)
}

// slack is by how much shares may differ and still count as equal, as usages and quotas are rounded (D-5): 2⁻³² of the
// pool.
const slack = 1 << 16

// deserved is the usage quota in the pool of every consumer below it (MD-14) when so much is divided.
func (q pool) deserved(total uint64) map[plan.Node]uint64 {
	quota := map[plan.Node]uint64{q.at: total}
	var demand map[plan.Node]uint64
	if q.Mended {
		demand = q.demands()
	}
	for n := q.at; n < q.p.End[q.at]; n++ { // parents come before their children
		switch {
		case q.member[n] && q.Mended:
			q.splitBy(n, quota, demand)
		case q.member[n]:
			q.split(n, quota)
		}
	}
	return quota
}

// deficit is how far a leaf is below its quota by what is net; a surplus is below 0.
func (q pool) deficit(leaf plan.Node) int64 {
	if _, ok := q.has[leaf]; !ok {
		q.has[leaf] = q.stake(leaf)
	}
	return int64(q.due[q.at][leaf]) - int64(q.has[leaf])
}

// band is how far a leaf must be from its quota before a unit of its own that counts so much moves for that.
func (q pool) band(leaf plan.Node, unit int64) int64 {
	part, _ := muldiv(q.due[q.at][leaf], uint64(q.m.FairBandMilli), 1000)
	return max(unit, int64(part))
}

// step is what units of a size more or less, here below 0, change the stake of a leaf by.
func (q pool) step(leaf plan.Node, size []int64, more int64) int64 {
	sizes, units := q.bysize(leaf, q.net)
	i := slices.IndexFunc(sizes, func(other []int64) bool { return slices.Equal(size, other) })
	return int64(q.fraction(units[i]+more, size)) - int64(q.fraction(units[i], size))
}

// nearer is by how much the sum of squares gets less when a leaf that is so far from its quota comes so much nearer, or
// passes it.
func nearer(distance, moved int64) *big.Int {
	d := big.NewInt(2*distance - moved)
	return d.Mul(d, big.NewInt(moved))
}

// fair is MD-17: units move from those above their quotas to those below, where that brings all nearer to them. Takers
// have turns by deficit ÷ ratio; who is not below its quota may still join what is under way.
func (q pool) fair() {
	q.begin()
	tree := map[plan.Node]bool{}
	for _, s := range q.below(q.at) {
		if leaf := s.alloc.leaf; !q.barred(leaf) && q.w.ShareReclaim[leaf] {
			tree[leaf] = true
		}
	}
	for len(tree) > 0 {
		best := plan.None
		for leaf := q.at; leaf < q.p.End[q.at]; leaf++ {
			if tree[leaf] && (best == plan.None || q.farther(q.deficit(leaf), leaf, q.deficit(best), best) > 0) {
				best = leaf
			}
		}
		if !q.serve(best, q.counted,
			func(s *sub) bool { return !q.forming[s] && q.pledged(s) < s.short() && !q.passed[s] && q.promise(s) }) {
			delete(tree, best)
		}
	}
}

// begin readies the turns of the pool.
func (q pool) begin() {
	q.passed, q.vain, q.only = map[*sub]bool{}, map[string]bool{}, map[string]map[parcelKey]bool{}
	clear(q.has)
}

// farther compares how far two leaves are from their quotas for their ratios, in steps of the slack. A ratio of 0 is
// farther than any other.
func (q pool) farther(x int64, a plan.Node, y int64, b plan.Node) int {
	if q.ratio[a] == 0 || q.ratio[b] == 0 {
		return cmp.Compare(min(q.ratio[b], 1), min(q.ratio[a], 1))
	}
	m, n := big.NewInt((x+slack/2)>>16), big.NewInt((y+slack/2)>>16)
	return m.Mul(m, big.NewInt(q.counting(b))).Cmp(n.Mul(n, big.NewInt(q.counting(a))))
}

// promise lets a unit join sets under way, or makes one for it; when it can do neither the sub-allocation is passed
// over from now on.
func (q pool) promise(s *sub) bool {
	_, _, hit := q.limited(s, q.claimed)
	q.passed[s] = hit || !q.waits(s) && !q.seize(s)
	clear(q.has)
	return !q.passed[s]
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

// choicesMost is among how many parcels that of the fewest victims is chosen.
const choicesMost = 16

// seize makes a set for a unit whose leaf is below its quota: of one victim, the first that alone makes it fit; else of
// several, on that of the first parcels where they do that takes the fewest.
func (q pool) seize(s *sub) bool {
	kind := fmt.Sprint(s.alloc.leaf, s.size, s.req, q.bonds[s])
	if s.perHost != plan.Unlimited {
		kind = fmt.Sprint("sub ", s.arrival)
	}
	if q.vain[kind] || s.turns >= 5 || q.deficit(s.alloc.leaf) <= slack {
		return false
	}
	list, may := q.victims(s), q.usable(s)
	at := func(u *unit) (t parcel, ok bool) {
		i := slices.IndexFunc(may, func(t parcel) bool { return lies(u, t) })
		if i < 0 || !q.takes(s, may[i], 0) {
			return t, false
		}
		return may[i], true
	}
	for _, u := range list {
		if t, ok := at(u); ok && !q.vain["alone "+kind] && q.may(s, nil, u) && q.lower(s, []*unit{u}).Sign() > 0 {
			if enough, _ := q.fitter(s, t); enough([]*unit{u}) {
				return q.exchange(s, t, []*unit{u})
			}
		}
	}
	q.vain["alone "+kind] = true
	var best []*unit
	var to parcel
	looked, found := map[parcelKey]bool{}, map[parcelKey]bool{}
	for _, u := range list {
		key := parcelKey{u.host, u.owner}
		t, ok := at(u)
		if only := q.only[kind]; !ok || looked[key] || only != nil && !only[key] || len(found) == choicesMost ||
			!q.may(s, nil, u) {
			continue
		}
		looked[key] = true
		chosen := q.pick(s, t, list)
		if chosen == nil {
			continue
		}
		if found[key] = true; best == nil || len(chosen) < len(best) {
			if best != nil {
				q.notes["fewer victims on another parcel"]++
			}
			best, to = chosen, t
		}
	}
	if len(found) < choicesMost {
		q.only[kind] = found // the others do not count from now on
	}
	if q.vain[kind] = best == nil; best == nil {
		return false
	}
	return q.exchange(s, to, best)
}

// parcelKey is what parcels are told apart by.
type parcelKey struct {
	host  *host
	owner plan.Node
}

// exchange makes a set for a taker, and counts whose turn it was.
func (q pool) exchange(s *sub, t parcel, chosen []*unit) bool {
	for _, u := range chosen {
		q.noteVictim(u.leaf(), s.alloc.leaf)
	}
	if !q.claim(&set{reason: "fair_share", target: t.host, owner: t.owner, taker: s}, chosen) {
		return false
	}
	q.noteSet(len(chosen))
	if q.at != plan.Root {
		q.notes["fair reclaim in a private pool"]++
	}
	s.turns += s.turns % 2
	for _, u := range chosen {
		u.sub.took()
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

// victims are the units that may be taken for a sub-allocation: of leaves above their quotas, by surplus ÷ ratio, ties
// last rank first; of a leaf the newest first.
func (q pool) victims(s *sub) []*unit {
	var leaves []plan.Node
	for leaf := q.at; leaf < q.p.End[q.at]; leaf++ {
		if q.member[leaf] && q.p.Leaf(leaf) && -q.deficit(leaf) > slack {
			leaves = append(leaves, leaf)
		}
	}
	slices.SortFunc(leaves, func(a, b plan.Node) int {
		return cmp.Or(q.farther(-q.deficit(b), b, -q.deficit(a), a), q.rankOrder(q.in, b, a))
	})
	var list []*unit
	for _, leaf := range leaves {
		units := q.units(func(u *unit) bool { return u.leaf() == leaf && q.drawn(u) && stays(u) })
		slices.SortFunc(units, q.newest)
		for _, u := range units {
			switch {
			case leaf == s.alloc.leaf:
			case q.core[u]:
				q.notes["spared a gang"]++
			case q.young(u):
				q.notes["too young to be taken"]++
			default:
				list = append(list, u)
			}
		}
	}
	return list
}

// young tells whether a unit has run for less than its consumer's min_runtime. What this cycle granted does not run yet
// (CYC-1).
func (c *Cluster) young(u *unit) bool {
	return !gone(u.leaf()) && u.cycle < c.cycle && c.nowUS-c.times[max(u.cycle, 1)] < c.p.RuntimeUS[u.leaf()]
}

// given is what a unit counts beside some others that are given before it.
func (q pool) given(chosen []*unit, u *unit) int64 {
	n := int64(0)
	for _, v := range chosen {
		if q.drawn(v) && v.leaf() == u.leaf() && slices.Equal(v.sub.size, u.sub.size) {
			n++
		}
	}
	return q.step(u.leaf(), u.sub.size, -n) - q.step(u.leaf(), u.sub.size, -n-1)
}

// surplus is how far a unit's leaf is above its quota when some units are given.
func (q pool) surplus(chosen []*unit, u *unit) int64 {
	x := -q.deficit(u.leaf())
	for i, v := range chosen {
		if v.leaf() == u.leaf() {
			x -= q.given(chosen[:i], v)
		}
	}
	return x
}

// lower is by how much the sum of squares gets less when some units are given for a unit of a sub-allocation.
func (q pool) lower(s *sub, chosen []*unit) *big.Int {
	sum := nearer(q.deficit(s.alloc.leaf)-slack, q.step(s.alloc.leaf, s.size, 1))
	for i, u := range chosen {
		sum.Add(sum, nearer(q.surplus(chosen[:i], u)-slack, q.given(chosen[:i], u)))
	}
	return sum
}

// may tells whether a unit may be given beside some others: its leaf is above its quota then, and it or the taker is by
// its band.
func (q pool) may(s *sub, chosen []*unit, u *unit) bool {
	surplus, leaf := q.surplus(chosen, u), s.alloc.leaf
	if surplus <= slack {
		return false
	}
	if surplus+slack < q.band(u.leaf(), q.given(chosen, u)) &&
		q.deficit(leaf)+slack < q.band(leaf, q.step(leaf, s.size, 1)) {
		q.notes["within its band"]++
		return false
	}
	return true
}

// pick chooses the victims for a unit on a parcel among the candidates, nil when there are none: one after the other,
// each that brings its own leaf nearer to its quota, or leaves the sum lower all the same.
func (q pool) pick(s *sub, t parcel, list []*unit) []*unit {
	here := slices.DeleteFunc(slices.Clone(list), func(u *unit) bool { return !lies(u, t) })
	var before []*unit
	chosen, ok := q.inTurn(s, t, here, func(u *unit) bool {
		if !q.may(s, before, u) {
			return false
		}
		own := nearer(q.surplus(before, u)-slack, q.given(before, u))
		if own.Sign() <= 0 && q.lower(s, append(slices.Clone(before), u)).Sign() <= 0 {
			q.notes["a victim that would make the move one for the worse"]++
			return false
		}
		before = append(before, u)
		return true
	})
	if !ok || q.lower(s, chosen).Sign() <= 0 {
		if chosen = q.alike(s, t, here); chosen != nil {
			q.notes["victims of one leaf alone"]++
		}
	}
	return chosen
}

// alike chooses units of one leaf and size that make a unit fit by themselves, of those of which it takes the fewest.
func (q pool) alike(s *sub, t parcel, here []*unit) (best []*unit) {
	enough, _ := q.fitter(s, t)
	for _, first := range here {
		var chosen []*unit
		for _, u := range here {
			if u.leaf() == first.leaf() && slices.Equal(u.sub.size, first.sub.size) && !enough(chosen) &&
				q.may(s, chosen, u) {
				chosen = append(chosen, u)
			}
		}
		if enough(chosen) && (best == nil || len(chosen) < len(best)) && q.lower(s, chosen).Sign() > 0 {
			best = chosen
		}
	}
	return best
}

// stillNearer tells whether what a set moves still lowers the sum of squares.
func (q pool) stillNearer(s *set, victims []*unit) bool {
	type kind struct {
		leaf plan.Node
		size string
	}
	leaf, sum := s.taker.alloc.leaf, new(big.Int)
	clear(q.has)
	gets := -q.step(leaf, s.taker.size, -s.n)
	sum.Add(sum, nearer(q.deficit(leaf)+gets+slack, gets))
	gives, counted := map[plan.Node]int64{}, map[kind]bool{}
	for _, u := range victims {
		if u.pool != q.at {
			continue
		}
		if k := (kind{u.leaf(), fmt.Sprint(u.sub.size)}); !counted[k] {
			counted[k] = true
			n := len(slices.DeleteFunc(slices.Clone(victims), func(v *unit) bool {
				return v.pool != q.at || v.leaf() != u.leaf() || !slices.Equal(v.sub.size, u.sub.size)
			}))
			gives[u.leaf()] += q.step(u.leaf(), u.sub.size, int64(n))
		}
	}
	for leaf, n := range gives {
		sum.Add(sum, nearer(n-q.deficit(leaf)+slack, n))
	}
	if sum.Sign() <= 0 {
		q.notes["a set that lowers the sum no more"]++
	}
	return sum.Sign() > 0
}
