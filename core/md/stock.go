package md

import (
	"fmt"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/vecpack"
)

// takeDown takes down what is held on a parcel, in the place of what was, if there is room for it.
func (m *Planner) takeDown(k cluster.ParcelID, one *onParcel) {
	h := &m.s.Holding
	one.to = one.from
	for q := m.p.Parcels.First[k]; q != cluster.NoID; q = h.NextOnParcel[q] {
		one.to++
	}
	m.makeRows(k)
	for q := m.p.Parcels.First[k]; q != cluster.NoID; q = h.NextOnParcel[q] {
		m.addRow(one, q, m.stockAt(q))
	}
	m.sumUpFree(k)
}

// places is, for some of the leaves, how many rows of a parcel are theirs, then where their next one goes: forward from the first that is held from the
// root's pool, backward from the last of the others.
type places struct{ from, to int32 }

// takeAllDown takes down what is held on all parcels. The two halves of the leaves are done at once. O(parcels × dimensions + holdings).
func (m *Planner) takeAllDown() {
	v, n := &m.fairness.onHand, len(m.p.FirstAlloc)
	for half := range v.place {
		v.place[half] = zeroed(v.place[half], len(v.parcel))
	}
	inHalves(n, func(begin, end int) { m.countDown(v.place[min(begin, 1)], plan.Node(begin), plan.Node(end)) })
	rows := int32(0)
	for k := range v.parcel {
		one, a, b := &v.parcel[k], &v.place[0][k], &v.place[1][k]
		one.from = rows
		rows += a.from + a.to + b.from + b.to
		one.to = rows
		*a, *b = places{one.from, one.to}, places{one.from + a.from, one.to - a.to}
	}
	room := int(rows) + int(rows)/8 // with some for what comes
	v.row, v.held, v.dead = slices.Grow(v.row[:0], room)[:rows], slices.Grow(v.held[:0], room)[:rows], 0
	inHalves(n, func(begin, end int) { m.takeLeaves(v.place[min(begin, 1)], plan.Node(begin), plan.Node(end)) })
	inHalves(len(v.parcel), func(begin, end int) {
		for k := cluster.ParcelID(begin); int(k) < end; k++ {
			one := &v.parcel[k]
			v.stand[k] = standing{shifts: m.s.Shifts.OnHost(m.p.Parcels.Host[k]) + 1, room: one.to - one.from}
			m.sumUpFree(k)
		}
	})
	for k := range v.parcel {
		v.fresh[k>>6] |= 1 << (uint(k) & 63)
	}
}

// eachTaken calls f for what leaves from one to another hold and is not under reclaim, by sub-allocation.
func (m *Planner) eachTaken(begin, end plan.Node, f func(sub cluster.SubID, q cluster.HoldingID)) {
	h := &m.s.Holding
	for leaf := begin; leaf < end; leaf++ {
		m.eachSubOf(leaf, func(sub cluster.SubID) {
			for q := m.s.Sub.First[sub]; q != cluster.NoID; q = h.NextOfSub[q] {
				if h.Set[q] == cluster.NoID {
					f(sub, q)
				}
			}
		})
	}
}

// countDown counts the rows that leaves from one to another have on parcels.
func (m *Planner) countDown(place []places, begin, end plan.Node) {
	h, root := &m.s.Holding, m.s.ConsumerOf[plan.Root]
	m.eachTaken(begin, end, func(_ cluster.SubID, q cluster.HoldingID) {
		if at := &place[h.Parcel[q]]; h.Pool[q] == root {
			at.from++
		} else {
			at.to++
		}
	})
}

// takeLeaves takes down what leaves from one to another hold, for which there is room.
func (m *Planner) takeLeaves(place []places, begin, end plan.Node) {
	v, h := &m.fairness.onHand, &m.s.Holding
	of, last := stock{}, cluster.SubID(cluster.NoID)
	pool := cluster.ConsumerID(cluster.NoID)
	m.eachTaken(begin, end, func(sub cluster.SubID, q cluster.HoldingID) {
		if sub != last || h.Pool[q] != pool {
			last, pool, of = sub, h.Pool[q], m.stockOf(sub, h.Pool[q])
		}
		place := &place[h.Parcel[q]]
		at := place.from
		if of.pool != elsewhere {
			place.from++
		} else {
			place.to--
			at = place.to
		}
		of.units = uint8(min(h.Units[q], many))
		v.row[at], v.held[at] = of, q
	})
}

// stockOf is a row for what a sub-allocation holds from a pool.
func (m *Planner) stockOf(sub cluster.SubID, pool cluster.ConsumerID) stock {
	of := stock{pair: m.s.PairOf(sub, pool), shape: uint16(min(m.s.Sub.Shape[sub], strange)), pool: elsewhere}
	if pool == m.s.ConsumerOf[plan.Root] {
		of.pool = 0
	}
	return of
}

// stockAt is a holding as a row; without units: it is under reclaim, or an orphan's.
func (m *Planner) stockAt(q cluster.HoldingID) stock {
	h := &m.s.Holding
	sub := h.Sub[q]
	if h.Set[q] != cluster.NoID || m.s.Node(sub) == plan.None {
		return stock{}
	}
	of := m.stockOf(sub, h.Pool[q])
	of.units = uint8(min(h.Units[q], many))
	return of
}

// sumUpFree sets what is free on a parcel. One on which more is held than words can add up, or than it has, counts as having room for
// anything: rounding adds no more than one a unit.
func (m *Planner) sumUpFree(k cluster.ParcelID) {
	v, p := &m.fairness.onHand, &m.p.Parcels
	one := &v.parcel[k]
	var lane [vecpack.Lanes]int64
	units, over := int64(0), false
	for d := range p.Cap {
		if over = over || p.Free[d][k] < 0; d < len(lane) {
			lane[d] = min(m.netFree(d, k), p.Available(d, k))
			over = over || p.Cap[d][k]>>v.shift[d] > vecpack.LaneMax/2
		}
	}
	v.free[k] = v.pack(lane[:min(len(lane), len(p.Cap))], true)
	one.all = v.free[k]
	for i := one.from; i < one.to; i++ {
		of, n := &v.row[i], m.unitsOf(i)
		if over = over || of.shape == strange; over {
			break
		}
		if units += n; of.pool != elsewhere {
			one.all += v.word[of.shape] * uint64(n)
		}
	}
	if over || units >= vecpack.LaneMax/2 {
		v.free[k], one.all = v.most, v.most
	}
}

// touchUp brings up the rows of holdings that were touched. Two halves of the parcels are done at once. O(touches × what is held beside them).
func (m *Planner) touchUp(touched []cluster.Touch) {
	p := &m.p.Parcels
	n := cluster.ParcelID(p.Len())
	half := n / 2 &^ 63
	for half < n && p.Begin(half) != half { // no host, nor word of a bitset, is of both halves
		half += 64
	}
	half = min(half, n)
	read := [2]uint8{}
	cluster.Both(len(touched) >= 1<<8, func() { read[0] = m.touchRange(touched, half, n) }, func() { read[1] = m.touchRange(touched, 0, half) })
	m.fairness.onHand.read += read[0] + read[1]
}

// touchRange brings up the rows of holdings that were touched on parcels from one to another, reading what touchRow will of some at once: see fetch.
func (m *Planner) touchRange(touched []cluster.Touch, from, to cluster.ParcelID) (read uint8) {
	v, p, h := &m.fairness.onHand, &m.p.Parcels, &m.s.Holding
	last := int32(len(v.held) - 1)
	var some [ahead]*cluster.Touch
	for i := 0; i < len(touched); {
		n := 0
		for ; i < len(touched) && n < len(some); i++ {
			one := &touched[i]
			if one.Plan != m.p.Index || one.Parcel < from || one.Parcel >= to {
				continue
			}
			some[n], n = one, n+1
			read += uint8(v.stand[one.Parcel].room) + uint8(v.held[min(v.parcel[one.Parcel].from, last)])
			read += uint8(h.Sub[one.Holding]) + uint8(h.Parcel[one.Holding]) + uint8(h.Set[one.Holding]) + uint8(h.Pool[one.Holding]) + uint8(h.Units[one.Holding])
		}
		for _, one := range some[:n] {
			if mutant != 61 {
				m.touchRow(one.Parcel, one.Holding)
			}
			k := p.Begin(one.Parcel)
			shifts := m.s.Shifts.OnHost(p.Host[k]) + 1
			for end := p.End(k); k < end; k++ {
				if v.doubt(k); v.stand[k].shifts != 0 {
					v.stand[k].shifts = shifts
				}
			}
		}
	}
	return read
}

// touchRow makes the row of a holding on a parcel what that is now, or drops it. Where there is no room for a row more, the parcel is taken down
// when it is looked at.
func (m *Planner) touchRow(k cluster.ParcelID, q cluster.HoldingID) {
	v, h := &m.fairness.onHand, &m.s.Holding
	one, stand := &v.parcel[k], &v.stand[k]
	if stand.shifts == 0 {
		return
	}
	for i := one.from; i < one.to; i++ {
		if v.held[i] == q {
			one.to--
			copy(v.row[i:one.to], v.row[i+1:])
			copy(v.held[i:one.to], v.held[i+1:])
			break
		}
	}
	if sub := h.Sub[q]; sub == cluster.NoID || h.Parcel[q] != k || m.s.Sub.Plan[sub] != m.p.Index {
		return
	}
	if of := m.stockAt(q); of.units > 0 && one.to-one.from == stand.room {
		stand.shifts = 0
	} else {
		m.addRow(one, q, of)
	}
}

// layStale lists the parcels of which other rows are taken down than what is held there now. The others are as they were, but for what is free.
func (m *Planner) layStale() {
	v := &m.fairness.onHand
	v.stale = v.stale[:0]
	for k, host := range m.p.Parcels.Host {
		if stand := &v.stand[k]; stand.shifts != m.s.Shifts.OnHost(host)+1 && (mutant != 61 || stand.shifts == 0) {
			v.stale = append(v.stale, cluster.ParcelID(k))
		} else if v.free[k] != unclear {
			v.fresh[k>>6] |= 1 << (uint(k) & 63)
		}
	}
}

// takeStaleDown takes down what is held on those parcels. The two halves of them are done at once.
func (m *Planner) takeStaleDown() {
	v := &m.fairness.onHand
	inHalves(len(v.stale), m.findStale)
	for _, k := range v.stale {
		m.makeRows(k)
		v.fresh[k>>6] |= 1 << (uint(k) & 63)
	}
	inHalves(len(v.stale), m.takeFoundDown)
}

// findStale lists what is held on some of those parcels, and counts it.
func (m *Planner) findStale(from, to int) {
	v, p := &m.fairness.onHand, &m.p.Parcels
	found := v.found[min(from, 1)][:0]
	for _, k := range v.stale[from:to] {
		v.parcel[k].to = v.parcel[k].from
		if p.First[k] != cluster.NoID {
			found = append(found, p.First[k])
		}
	}
	found = follow(found, m.s.Holding.NextOnParcel)
	for _, q := range found {
		v.parcel[m.s.Holding.Parcel[q]].to++
	}
	v.found[min(from, 1)] = found
}

// takeFoundDown takes down what was found.
func (m *Planner) takeFoundDown(from, to int) {
	v, h := &m.fairness.onHand, &m.s.Holding
	var some [ahead]stock // read first, without asking what it is
	for rest := v.found[min(from, 1)]; len(rest) > 0; {
		list := rest[:min(ahead, len(rest))]
		rest = rest[len(list):]
		for i, q := range list {
			some[i] = m.stockAt(q)
		}
		for i, q := range list {
			m.addRow(&v.parcel[h.Parcel[q]], q, some[i])
		}
	}
	for _, k := range v.stale[from:to] {
		v.stand[k].shifts = m.s.Shifts.OnHost(m.p.Parcels.Host[k]) + 1
		m.sumUpFree(k)
	}
}

// follow adds to the first rows of some lists all that come after them. It goes along all lists at once: along one after the other it would wait for memory
// at each row.
func follow(rows, next []cluster.HoldingID) []cluster.HoldingID {
	for from := 0; from < len(rows); {
		to := len(rows)
		for _, q := range rows[from:to] {
			if q = next[q]; q != cluster.NoID {
				rows = append(rows, q)
			}
		}
		from = to
	}
	return rows
}

// makeRows makes room for as many rows of a parcel as it has by its to, which is set back to its from.
func (m *Planner) makeRows(k cluster.ParcelID) {
	v := &m.fairness.onHand
	one, stand := &v.parcel[k], &v.stand[k]
	if n := one.to - one.from; n > stand.room {
		v.dead += int(stand.room)
		one.from, stand.room = int32(len(v.row)), n
		v.row, v.held = resized(v.row, len(v.row)+int(n)), resized(v.held, len(v.held)+int(n))
	}
	one.to = one.from
}

// addRow adds a holding as a row to those of its parcel, where it belongs, if it is any.
func (m *Planner) addRow(one *onParcel, q cluster.HoldingID, of stock) {
	if of.units == 0 {
		return
	}
	v := &m.fairness.onHand
	at := one.to
	for ; at > one.from && v.row[at-1].pool > of.pool; at-- {
		v.row[at], v.held[at] = v.row[at-1], v.held[at-1]
	}
	v.row[at], v.held[at] = of, q
	one.to++
}

// give takes in that units of a holding on a parcel were taken, and that nothing else changed on its host since it had so many shifts.
func (m *Planner) give(k cluster.ParcelID, q cluster.HoldingID, shifts uint64) {
	v, h := &m.fairness.onHand, &m.s.Holding
	if int(k) >= len(v.parcel) {
		return
	}
	v.doubt(k)
	v.gave[k>>6] |= 1 << (uint(k) & 63)
	one, stand := &v.parcel[k], &v.stand[k]
	if stand.shifts != shifts+1 {
		return
	}
	if mutant == 60 {
		stand.shifts = m.s.Shifts.OnHost(m.p.Parcels.Host[k]) + 1
		return
	}
	for i := one.from; i < one.to; i++ {
		if v.held[i] != q {
			continue
		}
		if h.Sub[q] == cluster.NoID || h.Set[q] != cluster.NoID {
			one.to--
			copy(v.row[i:one.to], v.row[i+1:])
			copy(v.held[i:one.to], v.held[i+1:])
		} else {
			v.row[i].units = uint8(min(h.Units[q], many))
		}
		stand.shifts = m.s.Shifts.OnHost(m.p.Parcels.Host[k]) + 1
		return
	}
}

// Verify checks what is kept on hand from cycle to cycle against what is held, and rooms against parcels. O(holdings).
func (m *Planner) Verify() error {
	if err := m.verifyRooms(); err != nil {
		return err
	}
	v, h := &m.fairness.onHand, &m.s.Holding
	touched, ok := m.s.Shifts.Touched(v.touches)
	if !ok || len(v.row) == 0 || m.p.Rebuilt {
		return nil // it will be taken down anew
	}
	m.tellLeaves(touched, true)
	v.touches = m.s.Shifts.Touches()
	m.touchUp(touched)
	for k := range cluster.ParcelID(len(v.parcel)) {
		one := &v.parcel[k]
		if v.stand[k].shifts == 0 {
			continue
		}
		is := map[cluster.HoldingID]stock{}
		for i := one.from; i < one.to; i++ {
			is[v.held[i]] = v.row[i]
		}
		n := 0
		for q := m.p.Parcels.First[k]; q != cluster.NoID; q = h.NextOnParcel[q] {
			if of := m.stockAt(q); of.units > 0 {
				if n++; is[q] != of {
					return fmt.Errorf("parcel %d: holding %d is on hand as %v, not %v", k, q, is[q], of)
				}
			}
		}
		if n != len(is) || n != int(one.to-one.from) {
			return fmt.Errorf("parcel %d: %d rows are on hand, not %d", k, one.to-one.from, n)
		}
	}
	return m.verifyLeaves()
}
