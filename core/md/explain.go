package md

import (
	"fmt"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/ownership"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
	"github.com/stintd/stint/vecpack"
)

// reason is why a sub-allocation's next unit is not granted (docs/decisions.md, D-7).
type reason struct {
	code      int32     // decision.Reasons
	dimension int32     // index into the policy's dimensions, decision.Null when none is to blame
	blocker   plan.Node // plan.None when nobody is
	detail    string
	until     int64 // µs, 0: not known
}

// ask is what a reason of the unit itself depends on.
type ask struct {
	shape cluster.ShapeID
	need  cluster.NeedID
	owner plan.Node // the leaf, when it has parcels of its own; else None
}

// reasons is what depends on shape, requirement and the parcels that a leaf may use alone, found once a cycle for each.
type reasons struct {
	byAsk   map[ask]reason
	mask    []uint64
	free    [][]int64                          // by dimension, then parcel: free beside what sets keep and what is missing on the host
	leaving map[cluster.HostID][]cluster.SetID // by target, those with victims
	all     []cluster.SetID
}

// fits is the code of "nothing about the unit itself stands against it": then priority and quota decide.
const fits = -1

// why gives the reason of a sub-allocation that is short. Leaves' usages, quotas
// and the parcels must be those after granting.
func (m *Planner) why(sub cluster.SubID) reason {
	leaf := m.s.Node(sub)
	key := ask{m.s.Sub.Shape[sub], m.s.Sub.Need[sub], plan.None}
	if len(m.owned(leaf)) > 0 {
		key.owner = leaf
	}
	bound, ok := m.reason.byAsk[key]
	if !ok {
		bound = m.ofUnit(key, nil)
		m.reason.byAsk[key] = bound
	}
	if bound.code == decision.ReasonNoHostMatches {
		return bound
	}
	limit, limited := m.stopped(leaf, sub)
	if limited && key.owner == plan.None {
		return limit
	}
	if bound.code != decision.ReasonTooBig && m.s.Sub.MaxPerHost[sub] != plan.Unlimited {
		bound = m.ofUnit(key, m.blocked(sub))
	}
	if bound.code != decision.ReasonTooBig && bound.code != decision.ReasonMaxPerHost {
		if r, unmet := m.unmet(leaf, sub); unmet {
			return r
		}
		if limited {
			return limit
		}
	}
	if bound.code != fits {
		return bound
	}
	if m.fairness.denied[sub] {
		return reason{code: decision.ReasonReclaimBudget, dimension: decision.Null, blocker: plan.None,
			detail: fmt.Sprintf("the plan reclaims at most %d units a cycle", m.p.Terms.ReclaimBudget)}
	}
	bound.code, bound.blocker = m.rival(leaf, m.s.Sub.Shape[sub])
	return bound
}

// stopped tells whether a share limit, or a ratio of 0, keeps a unit of a sub-allocation from pools.
func (m *Planner) stopped(leaf plan.Node, sub cluster.SubID) (r reason, limited bool) {
	for n := leaf; n != plan.Root; n = m.policy.Parent[n] {
		if m.set.Ratio[n] == 0 {
			return reason{code: decision.ReasonShareLimit, dimension: decision.Null, blocker: n, detail: "share ratio 0"}, true
		}
	}
	for _, pooled := range [][][]int64{m.pooled, m.claimed} { // as granted; then with what is promised since
		if n, d, over := m.overLimitOf(pooled, leaf, sub); over {
			return reason{code: decision.ReasonShareLimit, dimension: int32(d), blocker: n, detail: fmt.Sprintf("holds %d of at most %d %s from pools",
				pooled[d][n], m.limit(n, d), m.policy.Dimensions[d])}, true
		}
	}
	return r, false
}

// unmet tells whether a rule of what a leaf owns that is not met stands against a unit: what it holds as its own is,
// with the unit, within what its rules ask for.
func (m *Planner) unmet(leaf plan.Node, sub cluster.SubID) (r reason, yes bool) {
	deeds := &m.p.Deeds
	if deeds.Unmet == nil || deeds.Unmet[leaf] == ownership.None {
		return r, false
	}
	for d, u := range m.s.Size(sub) {
		if u == 0 {
			continue
		}
		for q := m.p.FirstPair[leaf]; q != cluster.NoID; q = m.p.Pairs.Next[q] {
			if m.p.Pairs.Pool[q] == cluster.NoID {
				u = share.Add(u, share.Mul(m.p.Pairs.Units[q], m.s.Shape.Size(m.p.Pairs.Shape[q])[d]))
			}
		}
		if u > deeds.Configured[d][leaf] {
			return r, false
		}
	}
	rule := m.set.Own[leaf][deeds.Unmet[leaf]]
	return reason{code: decision.ReasonOwnershipUnmet, dimension: decision.Null, blocker: plan.None,
		detail: fmt.Sprintf("the rule on line %d of the policy is not met", rule.Line)}, true
}

// waiting says until when and for whom a sub-allocation waits: the last deadline of the victims of
// its sets, and of what leaves the hosts that units of it joined; where nothing does, of all that leaves.
func (m *Planner) waiting(sub cluster.SubID) reason {
	ids := slices.Clone(m.promise.ofSub[sub])
	joined := m.fairness.joinedAt[sub]
	for _, k := range joined {
		ids = append(ids, m.leaving(m.p.Parcels.Host[k])...)
	}
	r := m.lastDue(ids)
	if r.until == 0 && len(joined) > 0 {
		m.leaving(cluster.NoID)
		r = m.lastDue(m.reason.all)
	}
	return r
}

// lastDue is the last deadline of the victims of some sets; of equal ones that of the set made first, the first in
// the tree, is named.
func (m *Planner) lastDue(ids []cluster.SetID) reason {
	r := reason{code: decision.ReasonWaitingForReclaim, dimension: decision.Null, blocker: plan.None}
	h, number := &m.s.Holding, int64(0)
	for _, id := range ids {
		for q, n := m.s.Set.First[id], m.s.Set.Number[id]; q != cluster.NoID; q = h.NextOfSet[q] {
			leaf, due := m.s.Node(h.Sub[q]), h.Due[q]
			if due > r.until || due == r.until && (n < number || n == number && leaf < r.blocker) {
				r.until, r.blocker, number = due, leaf, n
			}
		}
	}
	return r
}

// leaving lists the sets with victims on a host.
func (m *Planner) leaving(host cluster.HostID) []cluster.SetID {
	r := &m.reason
	if r.leaving == nil {
		r.leaving = map[cluster.HostID][]cluster.SetID{}
		for id, number := range m.s.Set.Number {
			if number > 0 && m.s.Set.Plan[id] == m.p.Index && m.s.Set.First[id] != cluster.NoID {
				target := m.s.Set.Target[id]
				r.leaving[target], r.all = append(r.leaving[target], cluster.SetID(id)), append(r.all, cluster.SetID(id))
			}
		}
	}
	return r.leaving[host]
}

// blocked is the parcels of hosts on which a sub-allocation holds its max_per_host.
func (m *Planner) blocked(sub cluster.SubID) []uint64 {
	set := make([]uint64, m.p.Parcels.Words())
	on := map[cluster.ParcelID]int64{}
	for q := m.s.Sub.First[sub]; q != cluster.NoID; q = m.s.Holding.NextOfSub[q] {
		k := m.p.Parcels.Begin(m.s.Holding.Parcel[q])
		if on[k] += m.s.Holding.Units[q]; on[k] >= m.s.Sub.MaxPerHost[sub] {
			for end := m.p.Parcels.End(k); k < end; k++ {
				set[k>>6] |= 1 << (uint(k) & 63)
			}
		}
	}
	return set
}

// ofUnit tells what stands against a unit of a shape and requirement by itself:
// requirement, size, max_per_host (blocked parcels, nil: none), a scattered pool.
// O(parcels × dimensions).
func (m *Planner) ofUnit(key ask, blocked []uint64) reason {
	size, p := m.s.Shape.Size(key.shape), &m.p.Parcels
	mask := append(m.reason.mask[:0], p.Open...)
	m.reason.mask = mask
	m.reach(mask, key.owner)
	if set, _ := m.desk.Selected(key.need); set != nil {
		for w := range mask {
			mask[w] &= set[w]
		}
		if empty(mask) {
			return reason{code: decision.ReasonNoHostMatches, dimension: decision.Null, blocker: plan.None, detail: m.s.Need.String(int32(key.need))}
		}
	}
	none := reason{code: fits, dimension: decision.Null, blocker: plan.None}
	if empty(mask) {
		return none
	}
	need := make([]int, 0, len(size))
	for d, u := range size {
		if u > 0 {
			need = append(need, d)
		}
	}
	if vecpack.FirstAtLeast(mask, nil, 0, p.Cap, size, need) < 0 {
		return m.scarce(decision.ReasonTooBig, mask, p.Cap, size, "are smaller")
	}
	free := m.freeNow()
	fit := vecpack.FirstAtLeast(mask, nil, 0, free, size, need) >= 0
	if blocked != nil {
		for w := range mask {
			mask[w] &^= blocked[w]
		}
		within := fit
		if fit = vecpack.FirstAtLeast(mask, nil, 0, free, size, need) >= 0; within && !fit {
			return reason{code: decision.ReasonMaxPerHost, dimension: decision.Null, blocker: plan.None, detail: "it would fit, but only where max_per_host is reached"}
		}
		if empty(mask) {
			return reason{code: decision.ReasonMaxPerHost, dimension: decision.Null, blocker: plan.None, detail: "max_per_host is reached on every host that it may use"}
		}
	}
	if fit { // on room that was not granted after all (CYC-1)
		none.dimension = m.scarce(fits, mask, free, size, "have less free").dimension
		return none
	}
	for _, d := range need {
		if vecpack.Sum(mask, free[d]) < size[d] {
			none.dimension = m.scarce(fits, mask, free, size, "have less free").dimension
			return none
		}
	}
	return m.scarce(decision.ReasonFragmented, mask, free, size, "have less free")
}

// reach takes parcels that a leaf may not use off a bitset: those that are neither of the public pool nor its own.
func (m *Planner) reach(mask []uint64, owner plan.Node) {
	if m.public.parcels == nil {
		return
	}
	own := make([]uint64, len(mask))
	if owner != plan.None {
		for _, k := range m.owned(owner) {
			own[k>>6] |= 1 << (uint(k) & 63)
		}
	}
	for w := range mask {
		mask[w] &= m.public.parcels[w] | own[w]
	}
}

// freeNow is what is free on every parcel beside what sets keep there and what is missing on its host, at least 0.
func (m *Planner) freeNow() [][]int64 {
	p := &m.p.Parcels
	if p.Kept == nil && p.Owed == nil {
		return p.Free
	}
	if m.reason.free == nil {
		m.reason.free = make([][]int64, len(p.Free))
		for d, column := range p.Free {
			m.reason.free[d] = make([]int64, len(column))
			for k := range column {
				m.reason.free[d][k] = max(0, p.Available(d, cluster.ParcelID(k)))
			}
		}
	}
	return m.reason.free
}

// scarce names the dimension in which most parcels of a set have less than a unit takes.
func (m *Planner) scarce(code int32, mask []uint64, column [][]int64, size []int64, what string) reason {
	r, most := reason{code: code, dimension: decision.Null, blocker: plan.None}, 0
	for d, u := range size {
		if u > 0 {
			if n := vecpack.CountBelow(mask, column[d], u); n > most {
				most, r.dimension = n, int32(d)
			}
		}
	}
	if r.dimension != decision.Null {
		r.detail = fmt.Sprintf("a unit takes %d %s, %d of %d hosts %s",
			size[r.dimension], m.policy.Dimensions[r.dimension], most, popcount(mask), what)
	}
	return r
}

// rival tells what stands against a leaf in a pool that is used up: a sibling of
// higher share priority on its way from the root, its own quota, or nothing but
// the pool's size.
func (m *Planner) rival(leaf plan.Node, shape cluster.ShapeID) (code int32, blocker plan.Node) {
	unit, over := share.Fraction(1, m.public.capacity.of(shape)), false
	blocker = plan.None
	for n := leaf; n != plan.Root; n = m.policy.Parent[n] {
		if b := m.superior(n); b != plan.None {
			blocker = b // the one nearest to the root counts
		}
		over = over || m.public.usage[n] > 0 && m.public.usage[n]-unit >= m.quota.quota[n]
	}
	switch {
	case blocker != plan.None:
		return decision.ReasonLowerPriority, blocker
	case over:
		return decision.ReasonOverQuota, plan.None
	}
	return decision.ReasonPoolExhausted, plan.None
}

// superior is the sibling of higher share priority that uses most of the pool.
func (m *Planner) superior(n plan.Node) plan.Node {
	best := plan.None
	for c := m.policy.First[m.policy.Parent[n]]; c != plan.None; c = m.policy.Next[c] {
		if m.set.Priority[c] > m.set.Priority[n] && m.public.usage[c] > 0 && (best == plan.None || m.public.usage[c] > m.public.usage[best]) {
			best = c
		}
	}
	return best
}
