package oracle

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// The pools of MD plans (MD-2, MD-7 to MD-9), by docs/shares.md.

// pool is the pool of a consumer: the parcels that it owns itself, and those that
// are lent in it. A leaf's are its own parcels.
type pool struct {
	*round
	at plan.Node
}

func (g *round) pool(at plan.Node) pool { return pool{g, at} }

// pools are those of all consumers but leaves, from the deepest up, equally deep ones in tree order.
func (g *round) pools() []pool {
	var list []pool
	for n := range plan.Node(g.p.Len()) {
		if g.member[n] && !g.p.Leaf(n) {
			list = append(list, g.pool(n))
		}
	}
	slices.SortStableFunc(list, func(a, b pool) int { return cmp.Compare(g.p.Depth[b.at], g.p.Depth[a.at]) })
	return list
}

// exists tells whether there is anything that a leaf draws on through a pool; the root's is always there.
func (q pool) exists(leaf plan.Node) bool {
	if q.at == plan.Root {
		return true
	}
	return slices.ContainsFunc(q.hosts, func(h *host) bool {
		return slices.ContainsFunc(q.parcels(q.in, h), func(t parcel) bool { return q.meet(leaf, t.owner) == q.at })
	})
}

// way are a leaf and those above it as far as they are below the pool, the uppermost first.
func (q pool) way(leaf plan.Node) []plan.Node { return q.Cluster.way(leaf)[q.p.Depth[q.at]:] }

// barred tells whether a ratio of 0 (D-6), or a budget that is used up, keeps a leaf from the pool.
func (q pool) barred(leaf plan.Node) bool {
	return q.usedUp(q.way(leaf)) != plan.None || slices.ContainsFunc(q.way(leaf), func(n plan.Node) bool {
		return q.ratio[n] == 0
	})
}

// lenders are those who lend a parcel in a pool: its owner and all above it, below the pool.
func (c *Cluster) lenders(owner, pool plan.Node) []plan.Node {
	var list []plan.Node
	for n := owner; n != pool; n = c.p.Parent[n] {
		list = append(list, n)
	}
	return list
}

// graceOf is the most grace that whoever holds a parcel through a pool may have (MD-9), plan.Unlimited when any.
func (c *Cluster) graceOf(in int, owner, pool plan.Node) int64 {
	if c.p.Leaf(pool) {
		return plan.Unlimited // it is its own
	}
	w := c.mdWindow(in)
	list := []int64{w.PrivateUS[pool]}
	if pool == plan.Root {
		list[0] = c.p.MDPlans[in].PublicGraceUS
	}
	for _, n := range c.lenders(owner, pool) {
		list = append(list, w.LendGraceUS[n])
	}
	list = slices.DeleteFunc(list, func(us int64) bool { return us == plan.Unlimited })
	if len(list) == 0 {
		return plan.Unlimited
	}
	return slices.Min(list)
}

// grace is how long a unit may go on once it is reclaimed: its holder's, and no longer than the parcel's in its pool.
func (c *Cluster) grace(u *unit) int64 {
	us, in := c.p.ReclaimUS[u.leaf()], u.sub.alloc.plan
	if in >= len(c.p.MDPlans) || u.pool == plan.None {
		return us
	}
	if most := c.graceOf(in, u.owner, u.pool); most != plan.Unlimited {
		us = min(us, most)
	}
	return us
}

// tooSlow tells whether a leaf's grace keeps a parcel from it.
func (g *round) tooSlow(leaf plan.Node, t parcel) bool {
	most := g.graceOf(g.in, t.owner, g.meet(leaf, t.owner))
	return most != plan.Unlimited && g.p.ReclaimUS[leaf] > most
}

// usable are the parcels that a sub-allocation draws on through the pool and may be given, full or not.
func (q pool) usable(s *sub) []parcel {
	leaf := s.alloc.leaf
	return slices.DeleteFunc(q.reach(s), func(t parcel) bool {
		if q.meet(leaf, t.owner) != q.at {
			return true
		}
		if slow := q.tooSlow(leaf, t); !slow {
			return false
		}
		if q.graceOf(q.in, t.owner, q.at) == q.graceOf(q.in, q.at, q.at) {
			q.notes["kept out by a pool's grace"] = 1
		} else {
			q.notes["kept out by a lender's grace"] = 1
		}
		return true
	})
}

// reach are all parcels on hosts that a sub-allocation may use.
func (g *round) reach(s *sub) []parcel {
	var list []parcel
	for _, h := range g.candidates(s) {
		list = append(list, g.parcels(g.in, h)...)
	}
	return list
}

// view is how room is counted: as it is, or as it will be once all sets under way are done.
type view struct {
	holds func(u *unit) bool             // units that count
	keeps func(f *frame, s *set) []int64 // what a set takes
	joins bool                           // what joined sets counts too
}

var (
	asIs   = view{present, (*frame).kept, false}
	atLast = view{stays, func(_ *frame, s *set) []int64 { return s.room() }, true}
)

// taken is what leaves that ok accepts hold of a parcel, and what is kept for them there.
func (g *round) taken(t parcel, v view, ok func(leaf plan.Node) bool) []int64 {
	sum := g.heldOn(t, func(u *unit) bool { return v.holds(u) && ok(u.leaf()) })
	return plus(sum, g.awaited(t, v, ok), 1)
}

// awaited is what is kept of a parcel for leaves that ok accepts.
func (g *round) awaited(t parcel, v view, ok func(leaf plan.Node) bool) []int64 {
	sum := make([]int64, len(t.size))
	for _, s := range g.setsOn(t) {
		if ok(s.taker.alloc.leaf) {
			plus(sum, v.keeps(&g.frame, s), 1)
		}
	}
	for _, j := range g.joined {
		if v.joins && j.host == t.host && j.owner == t.owner && ok(j.sub.alloc.leaf) {
			plus(sum, j.sub.size, 1)
		}
	}
	return sum
}

// setsOn are the sets for takers of a parcel.
func (g *round) setsOn(t parcel) []*set {
	return g.mine(func(s *set) bool { return s.target == t.host && s.owner == t.owner })
}

func anyone(plan.Node) bool { return true }

// free is what is free of a parcel beside what sets keep there.
func (g *round) free(t parcel) []int64 {
	return plus(g.spare(t, present), g.awaited(t, asIs, anyone), -1)
}

// room is what a parcel has for a leaf: what is free there beside what sets
// keep, and beside the reserves of its lenders.
func (g *round) room(leaf plan.Node, t parcel) []int64 { return g.roomBy(leaf, t, asIs) }

// netRoom is what it will have once all sets under way are done.
func (g *round) netRoom(leaf plan.Node, t parcel) []int64 { return g.roomBy(leaf, t, atLast) }

func (g *round) roomBy(leaf plan.Node, t parcel, v view) []int64 {
	room := plus(g.spare(t, v.holds), g.awaited(t, v, anyone), -1)
	for _, x := range g.lenders(t.owner, g.meet(leaf, t.owner)) {
		if reserve := g.aside[aside{x, t.owner, t.host}]; reserve != nil {
			rest := plus(slices.Clone(t.size), reserve, -1)
			room = least(room, plus(rest, g.taken(t, v, func(n plan.Node) bool { return !g.under(x, n) }), -1))
		}
	}
	return room
}

// counted is with what parcels count into a pool, as of its turn to grant (MD-8, MD-11).
type counted struct {
	list [][]int64
	of   map[parcelKey][]int64 // parcels of open hosts alone
}

// counts are the vectors with which parcels count into the pool.
func (q pool) counts() [][]int64 { return q.countedIn().list }

// restAt is rest, as of the pool's turn to grant, of a parcel on an open host.
func (q pool) restAt(t parcel) []int64 { return q.countedIn().of[parcelKey{t.host, t.owner}] }

func (q pool) countedIn() *counted {
	if c, ok := q.rests[q.at]; ok {
		return c
	}
	c := &counted{of: map[parcelKey][]int64{}}
	for _, h := range q.Cluster.hosts { // those that left the plan hold something yet, or count nothing
		for _, t := range q.parcels(q.in, h) {
			switch {
			case !q.under(q.at, t.owner):
			case !q.ok(h):
				c.list = append(c.list, q.heldOn(t, q.drawn))
			default:
				rest := q.rest(t)
				c.list, c.of[parcelKey{h, t.owner}] = append(c.list, rest), rest
			}
		}
	}
	q.rests[q.at] = c
	return c
}

// rest is what of a parcel has reached the pool: all of its own; what is lent
// less what each lender's side uses or reserves.
func (q pool) rest(t parcel) []int64 {
	rest, lenders := slices.Clone(t.size), q.lenders(t.owner, q.at)
	for _, x := range lenders {
		top := lenders[len(lenders)-1]
		inside := q.heldOn(t, func(u *unit) bool { return q.under(x, u.leaf()) })
		near := q.heldOn(t, func(u *unit) bool { return q.under(top, u.leaf()) && !q.under(x, u.leaf()) })
		reserve := q.aside[aside{x, t.owner, t.host}]
		for d, n := range inside {
			if reserve != nil {
				n = max(n, reserve[d])
			}
			rest[d] = max(0, min(rest[d], t.size[d]-n-near[d]))
		}
	}
	return rest
}

// before compares two siblings: the highest priority first, among equals the one that has least for its ratio.
func (q pool) before(a, b plan.Node, has func(n plan.Node) uint64) bool {
	if x, y := q.w.Priority[a], q.w.Priority[b]; x != y {
		return x > y
	}
	return less(has(a), uint64(q.counting(b)), has(b), uint64(q.counting(a))) < 0
}

// place grants one unit of a sub-allocation from the pool; false when it fits nowhere. What the pool owns comes before
// what is lent, its best preference first; of what is lent what its owner prefers least (MD-6).
func (q pool) place(s *sub) bool {
	if q.forming[s] {
		return q.form(s, q.place)
	}
	if _, _, hit := q.limited(s, q.claimed); hit {
		return false
	}
	for _, lot := range q.lots(s) {
		if to, ok := q.spot(s, lot); ok {
			q.grantOn(s, to)
			return true
		}
	}
	return false
}

// limited finds the share limit (MD-18) that one unit more from the pool would exceed, that nearest to the leaf.
func (q pool) limited(s *sub, has func(n plan.Node) []int64) (blocker plan.Node, dim int, hit bool) {
	for _, n := range slices.Backward(q.way(s.alloc.leaf)) {
		over := q.beyond(n, s.size, has)
		for d, u := range s.size {
			if u > 0 && over[d] {
				return n, d, true
			}
		}
	}
	return plan.None, 0, false
}
