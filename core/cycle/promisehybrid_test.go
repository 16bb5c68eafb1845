package cycle_test

import (
	"slices"

	"github.com/stintd/stint/core/oracle"
)

// The promises of SPEC chapter 11 for hybrid branches.

// first are the members of the first level under a policy, or not under it.
func (v *slotView) first(hybrid bool) (list []*slotMember) {
	for i := range v.members {
		if e := &v.members[i]; v.consumers[e.consumer].parent < 0 && (e.policy == "hybrid") == hybrid {
			list = append(list, e)
		}
	}
	return list
}

// isHybrid tells whether a consumer is under the hybrid policy; who has no place in the plan is not.
func (v *slotView) isHybrid(path string) bool {
	return slices.ContainsFunc(v.members, func(e slotMember) bool { return v.path(&e) == path && e.policy == "hybrid" })
}

// all is what a consumer and all below it hold.
func (v *slotView) all(path string) int64 {
	return v.sum(func(h slotHolding) bool { return below(h.Consumer, path) })
}

// lacking is what of the reserves at and below some hybrid members is idle still, if somebody held so much more.
func (v *slotView) lacking(list []*slotMember, taker string, more int64) (slots int64) {
	for _, e := range list {
		path := v.path(e)
		lacks := v.rows[path].Reserved - v.all(path)
		if below(taker, path) {
			lacks -= more
		}
		slots += max(0, lacks, v.lacking(v.kids(e), taker, more))
	}
	return slots
}

// kids are the hybrid members right below one.
func (v *slotView) kids(e *slotMember) (list []*slotMember) {
	for i := range v.members {
		if v.consumers[v.members[i].consumer].parent == e.consumer && v.members[i].policy == "hybrid" {
			list = append(list, &v.members[i])
		}
	}
	return list
}

// blend is what hybrid branches have, and what of it nobody holds.
func (v *slotView) blend() (all, idle int64) {
	all = v.sum(func(h slotHolding) bool { _, ok := v.idle[h.host]; return !ok })
	for host := range v.idle {
		all += v.size[host]
	}
	for _, e := range v.first(false) {
		all -= v.rows[v.path(e)].Owned
	}
	all = max(0, all)
	idle = all
	for _, e := range v.first(true) {
		idle -= v.all(v.path(e))
	}
	return all, idle
}

// keptIdle holds INV-3: after a cycle that granted units to hybrid leaves, all that their reserves lack is idle, or
// under reclaim.
func (v *slotView) keptIdle() {
	granted := false
	for i := range v.out.Grants.Units {
		granted = granted || v.out.Grants.Plan.At(i) == v.name && v.out.Grants.Origin.At(i) == "hybrid"
	}
	_, idle := v.blend()
	for h, n := range v.leaving {
		if h.Plan == v.name && v.isHybrid(h.Consumer) {
			idle += n * v.slotsOf(h.Key)
		}
	}
	if lacks := v.lacking(v.first(true), "", 0); granted && lacks > max(0, idle) && !v.trickles() {
		v.t.Fatalf("INV-3: cycle %d: %d slots of hybrid branches are idle, their reserves lack %d", v.cycles, idle,
			lacks)
	}
}

// trickles tells whether a switch of windows may take its time (CYC-4): until all is settled, reserves have to wait.
func (v *slotView) trickles() bool { return len(v.cuts) > 0 && v.budget >= 0 }

// wasted holds INV-6 for a hybrid leaf: none goes short whose unit would fit idle slots that nobody reserves.
func (v *slotView) wasted(k oracle.Key, spare int64) {
	_, idle := v.blend()
	each := v.slotsOf(k)
	if idle >= each && spare >= each && idle-each >= v.lacking(v.first(true), k.Consumer, each) {
		v.t.Fatalf("INV-6: %v is short, and %d slots of the hybrid branches are idle", k, idle)
	}
}

// deserved holds SLOT-27 at a fixed point: no leaf goes short of a unit of one slot within its quota where such a unit
// of another above its quota, on a host that the first may use, could be taken for it: one that fills a branch's
// reserve could not, as that needs its slot again. (Units of several sizes may not make up what is to be given.)
func (v *slotView) deserved(k oracle.Key) {
	each := v.slotsOf(k)
	if each > 1 || v.capped(k) || v.all(k.Consumer)+each > v.rows[k.Consumer].Quota {
		return
	}
	for i, h := range v.held {
		_, ok := v.idle[h.host]
		if ok && v.least(h.Key) == 1 && v.spared(i, k.Consumer) && h.origin == "hybrid" && h.each == each &&
			v.mayUse(k, h.host) && !v.shrunk() && v.budget < 0 &&
			v.all(h.Consumer)-each >= v.rows[h.Consumer].Quota {
			v.t.Fatalf("SLOT-27: %v is short of its quota, and %v is above its", k, h.Key)
		}
	}
}

// spared tells whether all that reserves lack would be idle yet if a unit of a holding went to another leaf.
func (v *slotView) spared(i int, taker string) bool {
	after := *v
	after.held = slices.Clone(v.held)
	after.held[i].units--
	_, idle := after.blend()
	return idle-v.held[i].each >= after.lacking(v.first(true), taker, v.held[i].each)
}

// shrunk tells whether the plan does not reclaim what shrinkage alone took away.
func (v *slotView) shrunk() bool {
	for _, line := range v.settings {
		if line == "disable_reclaim_on_shrink: true" {
			return true
		}
	}
	return false
}
