package md

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/vecpack"
)

// onHand is what is held from a pool on parcels that takers asked for, in one piece of memory for each: what they could give at
// most, since while a pool's takers are served it only becomes less.
type onHand struct {
	loop  int64    // of which pool's takers it is
	seen  []int64  // by ParcelID: the loop in which it was taken down
	most  []uint64 // by ParcelID: its room if all of it were given back, packed as the field does
	first []int32  // by ParcelID: its rows in pair and units; they end with a pair of NoID
	pair  []cluster.PairID
	units []int64

	want  uint64  // the taker's unit, packed
	round int64   // of the taker: even
	gives []int64 // by PairID: round when it does not give to the taker, round + 1 when it does
	sum   []int64
}

// begin forgets what was taken down, before another pool's takers are served.
func (v *onHand) begin() {
	v.loop++
	v.pair, v.units = v.pair[:0], v.units[:0]
}

// mayGive tells whether one unit of a pair may be taken for the taker of this round.
func (m *Planner) mayGive(o *pool, pair cluster.PairID, taker plan.Node, gets int64) bool {
	v := &m.fairness.onHand
	if int(pair) >= len(v.gives) {
		v.gives = append(v.gives, make([]int64, len(m.p.Pairs.Leaf)-len(v.gives))...)
	}
	if known := v.gives[pair] - v.round; known == 0 || known == 1 {
		return known == 1
	}
	victim := m.p.Pairs.Leaf[pair]
	v.gives[pair] = v.round
	if victim != taker && m.promise.net[pair] > 0 && m.givesOf(o, pair, victim, taker, 0, gets) && m.bear(o, victim, taker, -m.change(pair, -1), gets) {
		v.gives[pair]++
		return true
	}
	return false
}

// mayDo tells whether a parcel might have room for a unit if all who may give did. O(what is held there), in order.
func (m *Planner) mayDo(o *pool, k cluster.ParcelID, size []int64, taker plan.Node, gets int64) bool {
	f, v := &m.fairness, &m.fairness.onHand
	if len(v.seen) <= int(k) || v.seen[k] != v.loop {
		m.takeDown(o, k)
	}
	if !vecpack.Covers(v.most[k], v.want) {
		return false
	}
	v.sum = zeroed(v.sum, len(size))
	for i := v.first[k]; v.pair[i] != cluster.NoID; i++ {
		if m.mayGive(o, v.pair[i], taker, gets) {
			add(v.sum, m.s.Shape.Size(m.p.Pairs.Shape[v.pair[i]]), v.units[i])
		}
	}
	for d, u := range size {
		if u > 0 && v.sum[d]+min(f.room[d][k], m.p.Parcels.Available(d, k)) < u {
			return false
		}
	}
	return true
}

// takeDown takes down what is held from a pool on a parcel.
func (m *Planner) takeDown(o *pool, k cluster.ParcelID) {
	v, h := &m.fairness.onHand, &m.s.Holding
	if n := m.p.Parcels.Len(); len(v.seen) < n {
		v.seen, v.first, v.most = make([]int64, n), make([]int32, n), make([]uint64, n)
	}
	v.seen[k], v.first[k] = v.loop, int32(len(v.pair))
	v.sum = resized(v.sum, len(m.p.Parcels.Cap))
	for d := range v.sum {
		v.sum[d] = min(m.fairness.room[d][k], m.p.Parcels.Available(d, k))
	}
	for q := m.p.Parcels.First[k]; q != cluster.NoID; q = h.NextOnParcel[q] {
		if h.Set[q] == cluster.NoID && h.Pool[q] == o.id && m.s.Node(h.Sub[q]) != plan.None {
			v.pair, v.units = append(v.pair, m.pairIn(o, h.Sub[q])), append(v.units, h.Units[q])
			add(v.sum, m.s.Size(h.Sub[q]), h.Units[q])
		}
	}
	v.most[k] = m.desk.Field.Pack(v.sum)
	v.pair, v.units = append(v.pair, cluster.NoID), append(v.units, 0)
}
