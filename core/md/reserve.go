package md

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// reserves are what consumers reserve of parcels, their own and those of consumers below them (MD-5), in rows: of a parcel
// its owner's first, then upwards.
type reserves struct {
	first  []int32 // by ParcelID: its first row, NoID: none. nil: nothing is reserved
	parcel []cluster.ParcelID
	node   []plan.Node // whose reserve
	amount []int64     // dimension-minor
	safe   []uint64    // kept from cycle to cycle: the shifts of its host when outsiders held no more than it leaves them, and one more

	beside []int64 // scratch
}

// reservations are what of consumers' parts of hosts is reserved, as a pass told it.
type reservations struct {
	keeper []cluster.ConsumerID
	on     []cluster.HostID
	amount [][]int64 // by dimension, then row
}

// reservedBy copies what deeds say of it. O(rows).
func reservedBy(d *cluster.Deeds) *reservations {
	r := &reservations{keeper: slices.Clone(d.Keeper), on: slices.Clone(d.KeptOn)}
	for _, column := range d.KeptAmount {
		r.amount = append(r.amount, slices.Clone(column))
	}
	return r
}

// is tells whether deeds say the same, row by row.
func (r *reservations) is(d *cluster.Deeds) bool {
	return slices.Equal(r.keeper, d.Keeper) && slices.Equal(r.on, d.KeptOn) && slices.EqualFunc(r.amount, d.KeptAmount, slices.Equal)
}

// layReserves lays what is reserved of consumers' parts of hosts on their parcels (docs/ownership.md): the consumer's own
// first, then those of consumers below it, in tree order.
func (m *Planner) layReserves() {
	r, p, deeds := &m.reserve, &m.p.Parcels, &m.p.Deeds
	r.first, r.parcel, r.node, r.amount, r.safe = nil, r.parcel[:0], r.node[:0], r.amount[:0], r.safe[:0]
	type row struct {
		k      cluster.ParcelID
		node   plan.Node
		amount []int64
	}
	var rows []row
	for i, c := range deeds.Keeper {
		n, h := m.s.NodeOf[c], deeds.KeptOn[i]
		if n == plan.None || m.s.Host.Plan[h] != m.p.Index {
			continue
		}
		left := make([]int64, len(p.Cap))
		for d := range left {
			left[d] = deeds.KeptAmount[d][i]
		}
		for k, end := m.s.Host.Parcel[h], p.End(m.s.Host.Parcel[h]); k < end; k++ {
			if p.Owner[k] == cluster.NoID || !m.policy.Within(m.s.NodeOf[p.Owner[k]], n) {
				continue
			}
			amount, some := make([]int64, len(left)), false
			for d := range left {
				amount[d] = min(left[d], p.Cap[d][k])
				left[d] -= amount[d]
				some = some || amount[d] > 0
			}
			if some {
				rows = append(rows, row{k, n, amount})
			}
		}
	}
	if len(rows) == 0 {
		return
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Or(cmp.Compare(a.k, b.k), cmp.Compare(b.node, a.node)) })
	r.first = make([]int32, p.Len())
	for k := range r.first {
		r.first[k] = cluster.NoID
	}
	for i := len(rows) - 1; i >= 0; i-- {
		r.first[rows[i].k] = int32(i)
	}
	for i := range rows {
		r.parcel, r.node, r.amount = append(r.parcel, rows[i].k), append(r.node, rows[i].node), append(r.amount, rows[i].amount...)
	}
}

// reserved tells whether anything of a parcel is reserved by one of those who lend it in the pool of a consumer.
func (m *Planner) reserved(k cluster.ParcelID, top plan.Node) bool {
	i := m.firstReserve(k)
	return i != cluster.NoID && m.reserve.node[i] != top && !m.policy.Within(top, m.reserve.node[i])
}

func (m *Planner) firstReserve(k cluster.ParcelID) int32 {
	if m.reserve.first == nil || mutant == 15 {
		return cluster.NoID
	}
	return m.reserve.first[k]
}

// eachReserve calls f for the reserves on a parcel of those who lend it in the pool of a consumer: all below that. amount is by
// dimension.
func (m *Planner) eachReserve(k cluster.ParcelID, top plan.Node, f func(keeper plan.Node, amount []int64)) {
	r, dims := &m.reserve, len(m.p.Parcels.Cap)
	for i := m.firstReserve(k); i != cluster.NoID && int(i) < len(r.parcel) && r.parcel[i] == k; i++ {
		if n := r.node[i]; n != top && m.policy.Within(n, top) && (mutant != 16 || m.s.NodeOf[m.p.Parcels.Owner[k]] == n) {
			f(n, r.amount[int(i)*dims:(int(i)+1)*dims])
		}
	}
}

// reservedBeyond is how much more than its insiders hold is reserved of a parcel, by any of those who lend it in a pool of some
// depth.
func (m *Planner) reservedBeyond(k cluster.ParcelID, d int, depth int32) (most int64) {
	r, dims, h := &m.reserve, len(m.p.Parcels.Cap), &m.s.Holding
	for i := m.firstReserve(k); i != cluster.NoID && int(i) < len(r.parcel) && r.parcel[i] == k; i++ {
		at := m.policy.Depth[r.node[i]]
		if at <= depth {
			break
		}
		beyond := r.amount[int(i)*dims+d]
		for q := m.p.Parcels.First[k]; q != cluster.NoID && beyond > 0; q = h.NextOnParcel[q] {
			if m.depthOf(q) >= at {
				beyond -= h.Units[q] * m.s.Size(h.Sub[q])[d]
			}
		}
		most = max(most, beyond)
	}
	return most
}

// outside adds up, by dimension, what outsiders of a consumer hold on a parcel of its, or net: what of it is not
// under reclaim. The result is borrowed until the next call.
func (m *Planner) outside(k cluster.ParcelID, keeper plan.Node, net bool) []int64 {
	m.reserve.beside = resized(m.reserve.beside, len(m.p.Parcels.Cap))
	m.addOutside(k, keeper, net, m.reserve.beside)
	return m.reserve.beside
}

// addOutside is outside in memory of the caller's.
func (m *Planner) addOutside(k cluster.ParcelID, keeper plan.Node, net bool, out []int64) {
	h, depth := &m.s.Holding, m.policy.Depth[keeper]
	clear(out)
	for q := m.p.Parcels.First[k]; q != cluster.NoID; q = h.NextOnParcel[q] {
		if m.depthOf(q) < depth && !(net && h.Set[q] != cluster.NoID) {
			add(out, m.s.Size(h.Sub[q]), h.Units[q])
		}
	}
}

// spare is what reserves leave, in a dimension, of a parcel for those who draw on it through the pool of a consumer: the least,
// over those who lend it there, of its amount less what is reserved, what outsiders hold and what their sets keep. Net:
// less what outsiders hold net and what their sets and those who joined are promised.
func (m *Planner) spare(k cluster.ParcelID, top plan.Node, net bool, least []int64) {
	m.reserve.beside = resized(m.reserve.beside, len(least))
	m.spareBeside(k, top, net, least, m.reserve.beside)
}

// spareBeside is spare with scratch memory of the caller's.
func (m *Planner) spareBeside(k cluster.ParcelID, top plan.Node, net bool, least, out []int64) {
	for d := range least {
		least[d] = 1 << 62
	}
	m.eachReserve(k, top, func(keeper plan.Node, amount []int64) {
		m.addOutside(k, keeper, net, out)
		m.eachSetOn(k, func(id cluster.SetID) {
			sub := m.s.Set.Taker[id]
			if m.policy.Within(m.s.Node(sub), keeper) || mutant == 17 {
				return
			}
			for d := range out {
				if net {
					out[d] += m.s.Size(sub)[d] * m.s.Set.Units[id]
				} else {
					out[d] += m.s.Kept(id, d)
				}
			}
		})
		if net {
			for _, sub := range m.fairness.joinedOn[k] {
				if !m.policy.Within(m.s.Node(sub), keeper) {
					add(out, m.s.Size(sub), 1)
				}
			}
		}
		for d := range least {
			least[d] = min(least[d], m.p.Parcels.Cap[d][k]-amount[d]-out[d])
		}
	})
}

// eachSetOn calls f for the sets of takers on a parcel.
func (m *Planner) eachSetOn(k cluster.ParcelID, f func(id cluster.SetID)) {
	v := &m.promise
	if int(k) >= len(v.firstOn) {
		return
	}
	for id := v.firstOn[k]; id != cluster.NoID; id = v.nextOn[id] {
		if m.s.Set.Number[id] > 0 && m.s.Set.Plan[id] == m.p.Index && m.s.Set.Taker[id] != cluster.NoID && m.s.Aim(id) == k {
			f(id)
		}
	}
}

// note puts a set on the list of its parcel.
func (m *Planner) noteSet(id cluster.SetID, k cluster.ParcelID) {
	v := &m.promise
	for len(v.nextOn) < len(m.s.Set.Number) {
		v.nextOn, v.listed = append(v.nextOn, cluster.NoID), append(v.listed, cluster.NoID)
	}
	if v.listed[id] == k {
		return // its row was used for another one there
	}
	for len(v.firstOn) < m.p.Parcels.Len() {
		v.firstOn = append(v.firstOn, cluster.NoID)
	}
	if was := v.listed[id]; was != cluster.NoID {
		at := &v.firstOn[was]
		for *at != id {
			at = &v.nextOn[*at]
		}
		*at = v.nextOn[id]
	}
	v.nextOn[id], v.firstOn[k], v.listed[id] = v.firstOn[k], id, k
}

// roomFor tells whether a unit fits the room of a parcel for those who draw on it through the pool of a consumer, with so
// much besides; nil: nothing.
func (m *Planner) roomFor(k cluster.ParcelID, top plan.Node, size, besides []int64) bool {
	for d, u := range size {
		if u == 0 {
			continue
		}
		if besides != nil {
			u -= besides[d]
		}
		if m.p.Parcels.Available(d, k) < u {
			return false
		}
	}
	if !m.reserved(k, top) {
		return true
	}
	least := make([]int64, len(size))
	m.spare(k, top, false, least)
	for d, u := range size {
		if besides != nil {
			u -= besides[d]
		}
		if size[d] > 0 && least[d] < u {
			return false
		}
	}
	return true
}
