package oracle

import (
	"math"
	"math/big"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// Fair reclaim in MD plans (MD-17): shares, stakes and the review of sets; moves.go makes the moves.

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
// those for a share as far as MD-17.10 does not allow their moves any more, the latest first.
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
			return len(victims) == 0 || q.stillAllowed(s, victims)
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
		if q.elsewhere(s, u) {
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
			return q.limitedBy(u, n) && q.lowers(u, n)
		}))
}

// lowers tells whether a unit has a part of a dimension in which a consumer is limited.
func (g *round) lowers(u *unit, n plan.Node) bool {
	for d, amount := range u.sub.size {
		if amount > 0 && g.limit(n, d) != plan.Unlimited {
			return true
		}
	}
	return false
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
	quota, demand := map[plan.Node]uint64{q.at: total}, q.demands()
	for n := q.at; n < q.p.End[q.at]; n++ { // parents come before their children
		if q.member[n] {
			q.splitBy(n, quota, demand)
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

// begin readies the turns of the pool.
func (q pool) begin() {
	q.passed, q.vain, q.only = map[*sub]bool{}, map[string]bool{}, map[string]map[parcelKey]bool{}
	clear(q.has)
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
