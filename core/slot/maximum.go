package slot

import (
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// Within a share.max owned comes first (SLOT-4): what leaves below it hold from pools or loans makes way for an owner's
// unit that nothing else keeps out.

// makeWay takes back, for an owner's unit that a maximum on its way does not bear, as much as that takes of what other
// leaves below the maximum hold from loans and pools. Nothing is taken where all of it is not enough, or where the
// unit would not fit its owner's slots either. It tells whether anything was.
func (m *Planner) makeWay(w *want, loans []cluster.HoldingID) bool {
	m.s.Yield()
	if !m.tree.maxed || m.roomyNet(w.leaf, w.k) {
		return false
	}
	var found []victim
	for n := w.leaf; n != plan.Root; n = m.policy.Parent[n] {
		most := m.tree.most[n]
		if most == plan.Unlimited {
			continue
		}
		var ok bool
		if found, ok = m.wayBelow(w, n, m.figure.stays[n]+w.k-most, found); !ok {
			return false
		}
	}
	if !m.fitsOwner(w, loans, found) {
		return false
	}
	for _, v := range found {
		k, slots := m.s.Holding.Parcel[v.q], v.units*m.slots(m.s.Holding.Sub[v.q])
		taken := m.takeBack(v.q, v.units, decision.ReclaimOverLimit)
		if m.p.Parcels.IsOpen(k) {
			m.shift(k, slots/v.units*taken)
		}
		if taken < v.units {
			m.reclaim.denied[w.sub] = true
			return false
		}
	}
	return true
}

// wayBelow adds victims below a consumer until they make up so many slots, those counted that are
// chosen already: loans, then what is shared; of each what is on ok hosts, then last rank first,
// newest first. It is false where they do not.
func (m *Planner) wayBelow(w *want, n plan.Node, over int64, found []victim) ([]victim, bool) {
	for _, v := range found {
		over -= v.units * m.slots(m.s.Holding.Sub[v.q]) // those are below it as well
	}
	for _, kind := range [...]int{kindBorrow, kindShare} {
		var rows []cluster.HoldingID
		for leaf := n; leaf < m.policy.End[n] && over > 0; leaf++ {
			if m.policy.Leaf(leaf) && leaf != w.leaf {
				rows = append(rows, m.stays(leaf, kind)...)
			}
		}
		slices.SortFunc(rows, m.lastRank)
		for _, q := range m.okFirst(rows) {
			v, units := m.slots(m.s.Holding.Sub[q]), m.s.Holding.Units[q]
			for _, one := range found {
				if one.q == q {
					units -= one.units
				}
			}
			if m.isGang(m.s.Holding.Sub[q]) {
				units = min(units, m.spareUnits(m.s.Holding.Sub[q])-m.chosenOf(m.s.Holding.Sub[q], found))
			}
			if units = min(units, max(0, over+v-1)/v); units > 0 {
				over, found = over-units*v, append(found, victim{q, units})
			}
		}
	}
	return found, over <= 0
}

// fitsOwner tells whether, once victims are gone, the unit of an owner would fit slots that are its own by then, or
// that it has lent, on a host that may take it.
func (m *Planner) fitsOwner(w *want, loans []cluster.HoldingID, found []victim) bool {
	m.s.Yield()
	h, r := &m.s.Holding, &m.reclaim
	room, account := map[cluster.ParcelID]int64{}, w.account
	for _, v := range found {
		room[h.Parcel[v.q]] += v.units * m.slots(h.Sub[v.q])
		if h.Lender[v.q] == m.s.ConsumerOf[w.leaf] {
			account += v.units * m.slots(h.Sub[v.q])
		}
	}
	clear(w.failed)
	if account >= w.k {
		for k := range r.net {
			if at := cluster.ParcelID(k); m.p.Parcels.IsOpen(at) && r.net[k]+room[at] >= w.k && m.mayUse(w, at) {
				return true
			}
		}
	}
	w.boundless = true
	victims := m.loanVictims(w, loans)
	w.boundless = false
	clear(w.failed)
	return victims != nil
}
