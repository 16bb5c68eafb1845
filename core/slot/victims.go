package slot

import (
	"iter"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// loanVictims chooses among an owner's loans: in order, the first on whose host enough of them are.
func (m *Planner) loanVictims(w *want, loans []cluster.HoldingID) []victim {
	h, whose := &m.s.Holding, m.s.ConsumerOf[w.leaf]
	open := func(q cluster.HoldingID) bool {
		return h.Sub[q] != cluster.NoID && h.Lender[q] == whose && h.Set[q] == cluster.NoID && m.mayLose(q, 0)
	}
	for i, q := range loans {
		if !open(q) || !m.tryHost(w, h.Parcel[q]) {
			continue
		}
		if m.suffices(w, h.Parcel[q], nil) {
			w.failed[h.Parcel[q]] = true // it would join
			continue
		}
		if found := m.enough(w, h.Parcel[q], func(yield func(cluster.HoldingID) bool) {
			for _, other := range loans[i:] {
				for range h.Units[other] {
					if !open(other) || h.Parcel[other] != h.Parcel[q] {
						break
					}
					if !yield(other) {
						return
					}
				}
			}
		}); found != nil {
			return found
		}
		w.failed[h.Parcel[q]] = true
	}
	return nil
}

// enoughOf chooses units of one host that may be taken once so many slots of each leaf are chosen: one after the other,
// each of the leaf that then has most to give, last rank first, newest first. Where these come to an end before the
// taker's unit would fit, as they leave too little that may be taken, it is the first of them that does alone (D-96).
func (m *Planner) enoughOf(w *want, k cluster.ParcelID, gives func(leaf plan.Node) int64,
	may func(q cluster.HoldingID, chosen map[plan.Node]int64) bool) []victim {
	if m.suffices(w, k, nil) {
		return nil // it would join
	}
	h := &m.s.Holding
	chosen, used := map[plan.Node]int64{}, map[cluster.HoldingID]int64{} // slots by victim leaf, units
	lost := func(q cluster.HoldingID) (units int64) {                    // of its gang
		for other, n := range used {
			if m.isGang(h.Sub[q]) && h.Sub[other] == h.Sub[q] {
				units += n
			}
		}
		return units
	}
	before := func(a, b cluster.HoldingID) bool {
		x, y := m.s.Node(h.Sub[a]), m.s.Node(h.Sub[b])
		gx, gy := gives(x)-chosen[x], gives(y)-chosen[y]
		switch {
		case gx != gy:
			return gx > gy
		case x != y:
			return m.tree.rankOf[x] > m.tree.rankOf[y]
		}
		return m.newest(a, b) < 0
	}
	first := func(alone bool) cluster.HoldingID {
		best := cluster.HoldingID(cluster.NoID)
		for q := m.p.Parcels.First[k]; q != cluster.NoID; q = h.NextOnParcel[q] {
			if used[q] < h.Units[q] && may(q, chosen) && m.mayLose(q, lost(q)) &&
				(best == cluster.NoID || before(q, best)) &&
				(!alone || m.suffices(w, k, []victim{{q, 1}})) {
				best = q
			}
		}
		return best
	}
	found := m.enough(w, k, func(yield func(cluster.HoldingID) bool) {
		for q := first(false); q != cluster.NoID; q = first(false) {
			chosen[m.s.Node(h.Sub[q])] += m.slots(h.Sub[q])
			used[q]++
			if !yield(q) {
				return
			}
		}
	})
	if found != nil {
		return found
	}
	clear(chosen)
	clear(used)
	alone := first(true)
	if alone == cluster.NoID {
		return nil
	}
	return []victim{{alone, 1}}
}

// enough takes units of one host in order until the taker's unit would fit, its account and every limit on its way bear
// it, then drops each that is not needed after all; nil when they are too few.
func (m *Planner) enough(w *want, k cluster.ParcelID, order iter.Seq[cluster.HoldingID]) (found []victim) {
	m.s.Yield()
	for q := range order {
		if len(m.gang.subs) > 0 && !m.mayLose(q, m.chosenOf(m.s.Holding.Sub[q], found)) {
			continue
		}
		if n := len(found); n > 0 && found[n-1].q == q {
			found[n-1].units++
		} else {
			found = append(found, victim{q, 1})
		}
		if m.suffices(w, k, found) {
			m.spareVictims(w, k, found)
			return slices.DeleteFunc(found, func(v victim) bool { return v.units == 0 })
		}
	}
	return nil
}

// suffices tells whether victims on a host make a taker's unit fit there.
func (m *Planner) suffices(w *want, k cluster.ParcelID, found []victim) bool {
	var freed int64
	for _, v := range found {
		freed += v.units * m.slots(m.s.Holding.Sub[v.q])
	}
	if m.p.Parcels.Available(0, k)+freed < w.k {
		return false
	}
	reserves := m.reservesWith(w, found)
	if short := w.k - w.account - freed; m.isHybrid(w.leaf) && w.reason != decision.ReclaimRecall {
		if short+reserves(plan.Root)-m.freeAfter(w.leaf, w.k) > 0 {
			return false
		}
	} else if short > 0 {
		return false
	}
	from := func(n plan.Node) (slots int64) { // of it from those below a consumer
		for _, v := range found {
			if m.below0(m.s.Node(m.s.Holding.Sub[v.q]), n) {
				slots += v.units * m.slots(m.s.Holding.Sub[v.q])
			}
		}
		return slots
	}
	if m.drawsPool(w) && !m.zeroesBear(w.leaf, w.k, from) {
		return false
	}
	for n := w.leaf; m.tree.maxed && !w.boundless && n != plan.Root; n = m.policy.Parent[n] {
		holds := m.figure.total[n] + m.figure.pend[n]
		if w.reason == decision.ReclaimRecall { // what makes way for it is on its way
			holds = m.figure.stays[n]
		}
		if most := m.tree.most[n]; most != plan.Unlimited && holds+w.k-from(n)+reserves(n) > most {
			return false
		}
	}
	return true
}

// spareVictims drops, the last chosen first, each unit that is not needed.
func (m *Planner) spareVictims(w *want, k cluster.ParcelID, found []victim) {
	for i := len(found) - 1; i >= 0; i-- {
		for found[i].units > 0 {
			if found[i].units--; !m.suffices(w, k, found) {
				found[i].units++
				break
			}
		}
	}
}
