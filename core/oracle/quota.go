package oracle

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// Usable demand and static quotas (MD-13, MD-15), by docs/spec/md.md.

// fit is how many units of a sub-allocation the pool would take were nothing of it used (MD-13.1).
func (q pool) fit(s *sub) int64 {
	on, seen := map[*host]int64{}, []*host{}
	for _, t := range q.usable(s) {
		if !slices.Contains(seen, t.host) {
			seen = append(seen, t.host)
		}
		on[t.host] += q.Cluster.packs(q.in, s.size, q.restAt(t))
	}
	all, byValue := int64(0), map[any]int64{}
	for _, h := range seen {
		n := on[h]
		if s.perHost != plan.Unlimited {
			elsewhere := q.units(func(u *unit) bool { return u.sub == s && u.host == h && !q.drawn(u) })
			n = min(n, max(0, s.perHost-int64(len(elsewhere))))
		}
		all += n
		if v := s.place(h); v != nil {
			byValue[v] += n
		}
	}
	if name, prefers := s.asksFor(); name == "" || prefers {
		return all
	}
	best := int64(0)
	for _, n := range byValue {
		best = max(best, n)
	}
	return best
}

// netOf is what a sub-allocation holds anywhere and is promised, without what is under reclaim.
func (g *round) netOf(s *sub) int64 { return int64(len(g.staying(s))) + g.pledged(s) }

// usableUnits is how many units of a sub-allocation count in the pool's demand (MD-13.2).
func (q pool) usableUnits(s *sub) int64 {
	net, leaf := q.net(s), s.alloc.leaf
	if !q.exists(leaf) || q.barred(leaf) || !q.w.ShareReclaim[leaf] || q.small(s) {
		return net
	}
	fit := q.fit(s)
	if s.gang() && fit < s.least {
		return net
	}
	return max(net, min(s.wanted-(q.netOf(s)-net), fit))
}

// class is a set of parcels that some sub-allocations are restricted to (MD-13.4).
type class struct {
	on     map[parcelKey]bool
	amount []int64
}

// demands is the usage demand of every consumer in the pool (MD-13.6).
func (q pool) demands() map[plan.Node]uint64 {
	subs := q.below(q.at)
	units, own, capped := map[*sub]int64{}, map[*sub]uint64{}, map[*sub]uint64{}
	for _, s := range subs {
		if units[s] = q.usableUnits(s); units[s] > 0 {
			room := q.pack(s.size)
			own[s] = q.fraction(units[s], s.size)
			if room > 0 && units[s] <= room {
				share, rest := muldiv(uint64(units[s]), one, uint64(room))
				own[s] = max(own[s], share+min(rest, 1))
			}
			capped[s] = own[s]
		}
	}
	limit := func(top plan.Node, of []*sub, amount []int64, dims func(d int) bool) {
		whole, use := uint64(0), make([]int64, len(amount))
		for _, s := range of {
			whole += own[s]
			plus(use, s.size, units[s])
		}
		total, hit := whole, false
		for d, n := range use {
			if dims(d) && n > amount[d] {
				part, _ := muldiv(whole, uint64(amount[d]), uint64(n))
				total, hit = min(total, part), true
			}
		}
		if hit {
			q.ration(top, of, total, capped)
		}
	}
	uses := slices.DeleteFunc(slices.Clone(subs), func(s *sub) bool { return units[s] == 0 })
	for _, c := range q.restrictions(uses) {
		var of []*sub
		for _, s := range uses {
			if on, _ := q.classOf(s); within(on, c.on) {
				of = append(of, s)
			}
		}
		limit(q.at, of, c.amount, func(int) bool { return true })
	}
	for n := q.p.End[q.at] - 1; n > q.at; n-- {
		if q.member[n] && q.hasLimit(n) {
			limit(n, q.below(n), q.limitHere(n), func(d int) bool { return q.limit(n, d) != plan.Unlimited })
		}
	}
	demand := map[plan.Node]uint64{}
	for n := q.p.End[q.at] - 1; n >= q.at; n-- {
		for _, k := range q.children(n) {
			demand[n] += demand[k]
		}
		for _, s := range subs {
			if s.alloc.leaf == n {
				demand[n] += capped[s]
			}
		}
	}
	return demand
}

// limitHere is what other pools leave of a consumer's share limit (MD-13.5).
func (q pool) limitHere(n plan.Node) []int64 {
	amount, other := make([]int64, len(q.p.Dimensions)), q.claimed(n)
	for _, s := range q.below(n) {
		plus(other, s.size, -q.net(s))
	}
	for d := range amount {
		amount[d] = max(0, q.limit(n, d)-other[d])
	}
	return amount
}

// ration divides a total among some sub-allocations below a consumer, none above what it has (MD-13.4).
func (q pool) ration(top plan.Node, of []*sub, total uint64, has map[*sub]uint64) {
	demand := map[plan.Node]uint64{}
	for n := q.p.End[top] - 1; n >= top; n-- {
		for _, k := range q.children(n) {
			demand[n] += demand[k]
		}
		for _, s := range of {
			if s.alloc.leaf == n {
				demand[n] += has[s]
			}
		}
	}
	part := map[plan.Node]uint64{top: min(total, demand[top])}
	for n := top; n < q.p.End[top]; n++ {
		if q.member[n] {
			q.splitBy(n, part, demand)
		}
	}
	for _, s := range of {
		leaf := s.alloc.leaf
		has[s] = min(has[s], part[leaf])
		part[leaf] -= has[s]
	}
}

// classOf are the parcels on open hosts that meet a sub-allocation's requirement and admit its grace in the pool, and
// the amount of them (MD-13.4).
func (q pool) classOf(s *sub) (on map[parcelKey]bool, amount []int64) {
	on, amount = map[parcelKey]bool{}, make([]int64, len(s.size))
	ok := q.matches(parsed(s.req))
	for i, h := range q.Cluster.hosts {
		for _, t := range q.parcels(q.in, h) {
			if !q.ok(h) || !ok[i] || !q.under(q.at, t.owner) {
				continue
			}
			most := q.graceOf(q.in, t.owner, q.at)
			if most == plan.Unlimited || q.p.ReclaimUS[s.alloc.leaf] <= most {
				on[parcelKey{h, t.owner}] = true
				plus(amount, q.restAt(t), 1)
			}
		}
	}
	return on, amount
}

func within(a, b map[parcelKey]bool) bool {
	for k := range a {
		if !b[k] {
			return false
		}
	}
	return len(a) > 0
}

// restrictions are the sets of parcels that cap demand, the smallest first (MD-13.4).
func (q pool) restrictions(subs []*sub) (list []class) {
	all := 0
	for _, h := range q.Cluster.hosts {
		for _, t := range q.parcels(q.in, h) {
			if q.ok(h) && q.under(q.at, t.owner) {
				all++
			}
		}
	}
	seen := map[string]bool{}
	for _, s := range subs {
		name := fmt.Sprint(s.req, " ", q.p.ReclaimUS[s.alloc.leaf])
		if seen[name] {
			continue
		}
		seen[name] = true
		on, amount := q.classOf(s)
		same := slices.ContainsFunc(list, func(c class) bool { return len(c.on) == len(on) && within(on, c.on) })
		if len(on) > 0 && len(on) < all && !same {
			list = append(list, class{on, amount})
		}
	}
	slices.SortStableFunc(list, func(a, b class) int { return cmp.Compare(len(a.on), len(b.on)) })
	return list
}

// waits tells whether a sub-allocation of the pool may use more than it has there (MD-14).
func (q pool) wants() bool {
	return slices.ContainsFunc(q.below(q.at), func(s *sub) bool { return q.usableUnits(s) > q.net(s) })
}

// ownCounts are the amounts of the parcels on open hosts that the pool's consumer owns itself (MD-15).
func (q pool) ownCounts() (list [][]int64) {
	for _, h := range q.hosts {
		for _, t := range q.parcels(q.in, h) {
			if q.ok(h) && t.owner == q.at {
				list = append(list, t.size)
			}
		}
	}
	return list
}
