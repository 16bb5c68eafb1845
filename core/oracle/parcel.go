package oracle

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// How hosts of MD plans are split among their owners, and what that means for units, by docs/ownership.md.

// parcel is the part of a host that one consumer owns and none of its children; the root's is public.
type parcel struct {
	host  *host
	owner plan.Node
	size  []int64
}

// parcels are those of a host in tree order of their owners, as of the plan's last pass.
func (c *Cluster) parcels(in int, h *host) []parcel {
	if list, ok := c.estates[in].split[h]; ok {
		return list
	}
	return []parcel{{h, plan.Root, c.capacity(in, h)}} // nothing of it is owned
}

// resplit splits the hosts by what is owned now, and places the units of those that changed anew.
func (p *pass) resplit(old, next *estate) {
	next.split = map[*host][]parcel{}
	for _, h := range p.hosts {
		next.split[h] = p.cut(h)
	}
	for _, h := range p.Cluster.hosts {
		same := func(a, b parcel) bool { return a.owner == b.owner && slices.Equal(a.size, b.size) }
		if now := p.parcels(p.in, h); !slices.EqualFunc(old.split[h], now, same) {
			p.move(h, now)
		}
	}
}

// cut makes the parcels of a host: of each consumer what none of its children has; at least one.
func (p *pass) cut(h *host) []parcel {
	var list []parcel
	for n := range plan.Node(p.p.Len()) {
		p.up = n // left is what no child has
		if v := p.left(h); !zero(v) {
			list = append(list, parcel{h, n, v})
		}
	}
	return list
}

// move places the plan's units of a host anew, those not under reclaim first, the oldest first: where they were, as far
// as they fit there; else on the first parcel for their leaf that they fit; else, where they were or on the first.
func (p *pass) move(h *host, list []parcel) {
	units := slices.DeleteFunc(slices.Clone(h.units), func(u *unit) bool { return u.sub.alloc.plan != p.in })
	slices.SortStableFunc(units, func(a, b *unit) int {
		if a.leaves() != b.leaves() {
			return cmp.Compare(leaving(a), leaving(b))
		}
		return p.newest(b, a)
	})
	free, at := map[plan.Node][]int64{}, map[*unit]plan.Node{}
	for _, s := range list {
		free[s.owner] = slices.Clone(s.size)
	}
	settle := func(u *unit, owner plan.Node) {
		plus(free[owner], u.sub.size, -1)
		at[u] = owner
	}
	fit := func(u *unit, owner plan.Node) bool { return free[owner] != nil && fits(u.sub.size, free[owner]) }
	for _, u := range units {
		if fit(u, u.owner) {
			settle(u, u.owner)
		}
	}
	for _, u := range units {
		if _, settled := at[u]; settled {
			continue
		}
		way := p.nearest(u.leaf(), list)
		i := slices.IndexFunc(way, func(n plan.Node) bool { return fit(u, n) })
		switch {
		case i >= 0:
			settle(u, way[i])
		case free[u.owner] != nil:
			settle(u, u.owner)
		default:
			settle(u, way[0])
		}
	}
	for _, u := range units {
		p.label(u, at[u])
	}
}

// lay puts a running unit on the first parcel of its host that it fits, else on the first for its leaf.
func (c *Cluster) lay(u *unit) {
	in := u.sub.alloc.plan
	if in >= len(c.p.MDPlans) {
		return
	}
	list := c.parcels(in, u.host)
	way := c.nearest(u.leaf(), list)
	i := slices.IndexFunc(way, func(owner plan.Node) bool {
		t := list[slices.IndexFunc(list, func(t parcel) bool { return t.owner == owner })]
		room := slices.Clone(t.size)
		for _, v := range u.host.units {
			if v != u && v.sub.alloc.plan == in && v.owner == owner {
				plus(room, v.sub.size, -1)
			}
		}
		return fits(u.sub.size, room)
	})
	c.label(u, way[max(i, 0)])
}

// leaving is 1 for a unit under reclaim, else 0.
func leaving(u *unit) int {
	if u.leaves() {
		return 1
	}
	return 0
}

// nearest are the owners of parcels in the order in which a leaf uses them: itself, then pools from the nearest up, in
// each its own parcel before lent ones (MD-7).
func (c *Cluster) nearest(leaf plan.Node, list []parcel) []plan.Node {
	var owners []plan.Node
	for _, s := range list {
		owners = append(owners, s.owner)
	}
	slices.SortStableFunc(owners, func(a, b plan.Node) int {
		x, y := c.meet(leaf, a), c.meet(leaf, b)
		// what a pool owns stands before what is below it
		return cmp.Or(cmp.Compare(c.p.Depth[y], c.p.Depth[x]), cmp.Compare(a, b))
	})
	return owners
}

// meet is where the ways up from two consumers meet.
func (c *Cluster) meet(a, b plan.Node) plan.Node {
	for n := a; ; n = c.p.Parent[n] {
		if b >= n && b < c.p.End[n] {
			return n
		}
	}
}

// label puts a unit on an owner's parcel: what it counts as follows from that.
func (c *Cluster) label(u *unit, owner plan.Node) {
	leaf := u.leaf()
	u.owner, u.origin, u.pool, u.lender = owner, owned, plan.None, plan.None
	if owner == leaf {
		return
	}
	u.pool, u.origin = c.meet(leaf, owner), privatePool
	if u.pool == plan.Root {
		u.origin = publicPool
	}
	if owner != u.pool {
		u.lender = owner
	}
}

// parcel is a consumer's parcel of a host, with nothing in it when there is none.
func (g *round) parcel(h *host, owner plan.Node) parcel {
	list := g.parcels(g.in, h)
	if i := slices.IndexFunc(list, func(s parcel) bool { return s.owner == owner }); i >= 0 {
		return list[i]
	}
	return parcel{h, owner, make([]int64, len(g.p.Dimensions))}
}

// heldOn is what the units of a parcel that ok accepts take.
func (g *round) heldOn(s parcel, ok func(u *unit) bool) []int64 {
	v := make([]int64, len(s.size))
	for _, u := range s.host.units {
		if u.sub.alloc.plan == g.in && u.owner == s.owner && ok(u) {
			plus(v, u.sub.size, 1)
		}
	}
	return v
}

func present(*unit) bool { return true }

// spare is what the units that ok accepts leave of a parcel, beside what is missing of the host
// because other parcels hold more than they have.
func (g *round) spare(s parcel, ok func(u *unit) bool) []int64 {
	list := g.parcels(g.in, s.host)
	missing := make([]int64, len(s.size))
	left := map[plan.Node][]int64{}
	for _, t := range list {
		left[t.owner] = plus(slices.Clone(t.size), g.heldOn(t, ok), -1)
		for d, n := range left[t.owner] {
			missing[d] += max(0, -n)
		}
	}
	for _, t := range list {
		for d, n := range left[t.owner] {
			less := max(0, min(n, missing[d]))
			left[t.owner][d] -= less
			missing[d] -= less
		}
	}
	if v := left[s.owner]; v != nil {
		return v
	}
	return make([]int64, len(s.size))
}

// begun tells whether something is held on a parcel, kept there for a taker (D-3) or missing on its host.
func (g *round) begun(t parcel) bool { return !slices.Equal(g.free(t), t.size) }

// crowded puts under reclaim what parcels hold beyond what they have.
func (g *round) crowded() {
	for _, h := range g.hosts {
		for _, s := range g.parcels(g.in, h) {
			for {
				over := make([]bool, len(s.size))
				for d, n := range g.heldOn(s, stays) {
					over[d] = n > s.size[d]
				}
				u := g.firstBut(h.units, func(u *unit) bool {
					return u.sub.alloc.plan == g.in && u.owner == s.owner && stays(u) && touches(u.sub.size, over)
				})
				if u == nil {
					break
				}
				if !g.rule(u, "ownership_change") {
					return
				}
			}
		}
	}
}

// bearsThere tells whether a unit's parcel would bear it if it stayed, beside all that is held there but for rules'
// reclaims, and what sets keep: so that none of them can lapse and leave too much there again.
func (g *round) bearsThere(u *unit) bool {
	if !g.formed(u.sub) {
		return false // a gang that goes whole
	}
	s := g.parcel(u.host, u.owner)
	v := plus(slices.Clone(s.size), g.heldOn(s, func(u *unit) bool { return stays(u) || u.set.taker != nil }), -1)
	for _, t := range g.setsOn(s) {
		plus(v, g.kept(t), -1)
	}
	return fits(u.sub.size, v)
}

// owners lets every leaf use its own parcels, the preferred groups first (MD-6, MD-7).
func (g *round) owners() {
	g.mark()
	for leaf := range plan.Node(g.p.Len()) {
		if !g.p.Leaf(leaf) || !g.member[leaf] {
			continue
		}
		for g.serve(leaf, held, g.placeOwn) {
		}
	}
}

// placeOwn grants one unit of a sub-allocation on its leaf's own parcels, or promises it one of them
// where the plan reclaims for preference; false when it can do neither. When all its units are promised,
// the latest set lapses for what is granted.
func (g *round) placeOwn(s *sub) bool {
	if g.forming[s] {
		return g.form(s, g.placeFree)
	}
	leaf, worst := s.alloc.leaf, int8(10)
	prefers := func(h *host) int8 { return g.w.Preference[g.group[h]][leaf] }
	sets, promised := g.mine(func(t *set) bool { return t.taker == s }), g.pledged(s) >= s.short()
	if promised && len(sets) == 0 {
		return false
	}
	if promised && g.m.ReclaimForPref {
		if last := sets[len(sets)-1]; last.owner == leaf {
			worst = prefers(last.target)
		}
	}
	own := g.pool(leaf).usable(s)
	for preference := int8(1); preference <= worst; preference++ {
		list := slices.DeleteFunc(slices.Clone(own), func(t parcel) bool { return prefers(t.host) != preference })
		if to, ok := g.spot(s, list); ok {
			if promised {
				g.notes["promised unit given on own parcels"]++
				g.lapse(sets[len(sets)-1])
				g.loose = true
			}
			g.grantOn(s, to)
			return true
		}
		if g.m.ReclaimForPref && !promised && g.recallOn(s, leaf, list) == served {
			g.notes["recalled for preference"]++
			return true
		}
	}
	return false
}

// grantOn grants a unit on a parcel.
func (g *round) grantOn(s *sub, to parcel) { g.Cluster.label(g.put(s, to.host), to.owner) }
