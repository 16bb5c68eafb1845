package md

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// sight is the plan's parcels as reasons of shortfalls see them, in rows: those with owners in the order of owners.parcel, so that what
// a consumer and those below it own is a range of rows, then the others. It is kept from cycle to cycle: the rooms of parcels that were
// touched, or that it is told of, are compared with what they were.
type sight struct {
	parcel []cluster.ParcelID // by row
	row    []int32            // by ParcelID
	owned  int32              // rows of parcels with owners
	shut   []uint64           // Parcels.Open, as it was when open was laid
	open   []uint64           // bitset of rows
	every  []uint64           // all rows
	room   [][]int64          // by dimension, then row: what is free beside what sets keep and what is missing on the host
	known  bool               // it is what it is now, but on stale rows and where anything was touched since
	stale  []uint64           // bitset of rows
	touch  int64              // State.Shifts.Touches, as of which it is
	some   [][]uint64         // by dimension: rows with room
	ladder []ladder           // by dimension
	tier   []tier             // by depth of the consumer through whose pool parcels are drawn on

	first    []int32 // reserves.first, of which reserved is
	reserved []int32 // rows of which something is reserved, ascending
	laid     int64   // how often that was laid anew

	words      int   // of all rungs
	ask, round int64 // numbers of the ask, or asks, at hand, and of the last time that all was looked at
	version    int64 // of the tier that was last laid anew
}

// tier is the parcels as those see them who draw on them through pools of one depth.
type tier struct {
	depth   int32
	tight   []int32   // rows that lenders' reserves leave less room on, ascending
	left    [][]int64 // by dimension, then place in tight: that room
	spare   [][]int64 // by dimension, then place in tight: what reserves leave
	stamp   []uint64  // by place in tight: Shifts.OnHost when spare was found, and one more; 0: it has to be found anew
	laid    int64     // sight.laid, of which tight is
	tables  int64     // State.HostTables, of which stamps are
	version int64     // another one when tight is
	at      []int32   // by word: its place among those with tight rows, NoID: it has none; nil: none has
	word    []int32   // by place of the word
	isTight []uint64  // tight rows, by place of the word
	first   []int32   // the place in tight of the first of them

	set    *plan.MDWindow // that least and within are of; nil: of none, or of other owners
	least  []int64        // by Node, for owners of that depth and more: the grace of their parcels
	within map[int64]*grace
}

// grace is the rows whose grace a reclaim_grace is within.
type grace struct {
	rows  []uint64 // nil: all
	place int      // 0: all; others have one each
}

// anyGrace is the grace of own parcels: none.
var anyGrace = &grace{}

// place is where a word stands among those with tight rows, -1: nowhere. A tier of nil has none.
func (t *tier) place(w int32) int32 {
	if t == nil || t.at == nil {
		return -1
	}
	return t.at[w]
}

// tell notes parcels whose room or state changed: at the end of a cycle the plan forgets those that it named before it began to grant. O(those).
func (v *sight) tell(p *cluster.Plan) {
	if v.known = v.known && !p.Rebuilt && len(v.stale) == p.Parcels.Words(); v.known {
		for _, k := range p.Changed {
			v.doubt(k)
		}
	}
}

// doubt notes that the room of a parcel may be another.
func (v *sight) doubt(k cluster.ParcelID) {
	row := v.row[k]
	v.stale[row>>6] |= 1 << (uint(row) & 63)
}

// laySight looks at the parcels as they are after granting. O(parcels that changed × dimensions + consumers × depth), and what they
// cost is the rungs that they pass.
func (m *Planner) laySight() {
	v, p := &m.sight, &m.p.Parcels
	if !m.isLaid() {
		m.layRows()
	}
	if v.round++; !slices.Equal(v.shut, p.Open) {
		v.shut, v.open = append(v.shut[:0], p.Open...), zeroed(v.open, p.Words())
		for row, k := range v.parcel {
			if p.IsOpen(k) {
				v.open[row>>6] |= 1 << (uint(row) & 63)
			}
		}
	}
	m.layRooms()
	if r := m.reserve.first; len(r) != len(v.first) || len(r) > 0 && &r[0] != &v.first[0] {
		v.first, v.reserved, v.laid = r, v.reserved[:0], v.laid+1
		for row, k := range v.parcel[:v.owned] {
			if r != nil && r[k] != cluster.NoID {
				v.reserved = append(v.reserved, int32(row))
			}
		}
	}
	v.tier = resized(v.tier, max(1, len(m.pools.restOf)))
	for depth := range v.tier {
		m.layTier(int32(depth))
	}
}

// ownedRows is the parcels with owners, in the order of their rows.
func (m *Planner) ownedRows() []cluster.ParcelID {
	if !m.p.Parcels.Owned {
		return nil
	}
	return m.owners.parcel
}

// isLaid tells whether the parcels have the rows that they had.
func (m *Planner) isLaid() bool {
	v, p := &m.sight, &m.p.Parcels
	return len(v.row) == p.Len() && len(v.room) == len(p.Free) && slices.Equal(v.parcel[:v.owned], m.ownedRows())
}

// layRows gives the parcels their rows and forgets all that was known of others.
func (m *Planner) layRows() {
	owned := m.ownedRows()
	p, words := &m.p.Parcels, m.p.Parcels.Words()
	v := &m.sight
	*v = sight{
		parcel: append(v.parcel[:0], owned...), row: resized(v.row, p.Len()), owned: int32(len(owned)), every: zeroed(v.every, words),
		room: resized(v.room, len(p.Free)), some: resized(v.some, len(p.Free)),
		open: zeroed(v.open, words), shut: v.shut[:0], ladder: make([]ladder, len(p.Free)), ask: v.ask, round: v.round, version: v.version,
	}
	for k := range cluster.ParcelID(p.Len()) {
		if p.Owner[k] == cluster.NoID {
			v.parcel = append(v.parcel, k)
		}
	}
	for row, k := range v.parcel {
		v.row[k] = int32(row)
		v.every[row>>6] |= 1 << (uint(row) & 63)
	}
	for d := range v.room {
		v.room[d], v.some[d] = zeroed(v.room[d], p.Len()), zeroed(v.some[d], words)
	}
}

// laySome is laySight for rooms that are others by now, if that is known. What else there will be laySight looks at.
func (m *Planner) laySome() {
	if m.sight.known && m.isLaid() {
		m.layRooms()
	}
}

// layEarly is laySight for rooms, where anybody is short: what changes them from here on is known.
func (m *Planner) layEarly() {
	laid := m.isLaid()
	if !laid && len(m.grant.hungry.leaf) > 0 {
		m.layRows()
		laid = true
	}
	if laid && (m.sight.known || len(m.grant.hungry.leaf) > 0) {
		m.layRooms()
	}
}

// layRooms brings rooms up to what they are now.
func (m *Planner) layRooms() {
	v, p := &m.sight, &m.p.Parcels
	touched, ok := m.s.Shifts.Touched(v.touch)
	if v.touch = m.s.Shifts.Touches(); !ok || !v.known {
		v.stale, v.known = append(v.stale[:0], v.every...), true
	} else {
		for _, k := range m.p.Changed[m.p.Seen:] {
			v.doubt(k)
		}
		for i := range touched {
			if one := &touched[i]; one.Plan == m.p.Index && mutant != 73 {
				v.doubt(one.Parcel)
			}
		}
	}
	v.compare(p)
	clear(v.stale)
}

// verifyRooms tells of a row whose room, brought up, is not what its parcel has.
func (m *Planner) verifyRooms() error {
	v, p := &m.sight, &m.p.Parcels
	if !v.known || m.p.Rebuilt || !m.isLaid() {
		return nil // it will be looked at anew
	}
	m.layRooms()
	for d, room := range v.room {
		for row, k := range v.parcel {
			if is := p.Available(d, k); room[row] != is {
				return fmt.Errorf("parcel %d, dimension %d: the room on row %d is %d, not %d", k, d, row, room[row], is)
			}
		}
	}
	return nil
}

// compare looks for stale rows whose room, Parcels.Available, is not what it was: as rows stand, which is how rungs do.
func (v *sight) compare(p *cluster.Parcels) {
	for d := range v.room {
		for w, set := range v.stale {
			for ; set != 0; set &= set - 1 {
				row := w<<6 + bits.TrailingZeros64(set)
				if was, is := v.room[d][row], p.Available(d, v.parcel[row]); was != is {
					v.move(d, int32(row), was, is)
				}
			}
		}
	}
}

// move notes that the room of a row is another.
func (v *sight) move(d int, row int32, was, is int64) {
	w, bit := row>>6, uint64(1)<<(uint(row)&63)
	if v.room[d][row] = is; is > 0 {
		v.some[d][w] |= bit
	} else {
		v.some[d][w] &^= bit
	}
	v.ladder[d].move(w, bit, was, is)
}

// layTier looks at the parcels through the pools of a depth.
func (m *Planner) layTier(depth int32) {
	v := &m.sight
	t := &v.tier[depth]
	if t.set != m.set {
		t.set, t.depth = m.set, depth
		m.layGraces(t)
	}
	if t.laid != v.laid {
		t.laid = v.laid
		m.findTight(t)
	}
	if t.tables != m.s.HostTables {
		t.tables = m.s.HostTables
		clear(t.stamp)
	}
	for place, row := range t.tight {
		m.findSpare(t, int32(place))
		for d := range t.left {
			if was, is := t.left[d][place], min(t.spare[d][place], v.room[d][row]); is != was {
				t.left[d][place] = is
				v.ladder[d].moveTight(t, row>>6, 1<<(uint(row)&63), was, is)
			}
		}
	}
}

// layGraces finds the graces of owners' parcels through the pools of a tier. O(consumers).
func (m *Planner) layGraces(t *tier) {
	tree := &m.policy.Tree
	t.within, t.least = map[int64]*grace{}, resized(t.least, m.policy.Len())
	for n := range plan.Node(m.policy.Len()) {
		switch at := tree.Depth[n]; {
		case at == t.depth:
			t.least[n] = m.poolGrace(n)
		case at > t.depth:
			t.least[n] = min(t.least[tree.Parent[n]], unlessSet(m.set.LendGraceUS[n]))
		}
	}
}

// forgetGraces has them found anew: others own the parcels.
func (v *sight) forgetGraces() {
	for depth := range v.tier {
		v.tier[depth].set = nil
	}
}

// findTight lists the rows of a tier that reserves leave less room on. What rungs say of them is told anew when it is asked for.
func (m *Planner) findTight(t *tier) {
	v, p := &m.sight, &m.p.Parcels
	t.tight, t.left, t.spare = t.tight[:0], resized(t.left, len(p.Free)), resized(t.spare, len(p.Free))
	for _, row := range v.reserved {
		k := v.parcel[row]
		if top := m.topAt(k, t.depth); m.policy.Depth[top] == t.depth && m.reserved(k, top) {
			t.tight = append(t.tight, row)
		}
	}
	for d := range t.left {
		t.left[d], t.spare[d] = zeroed(t.left[d], len(t.tight)), zeroed(t.spare[d], len(t.tight))
	}
	v.version++
	t.stamp, t.word = zeroed(t.stamp, len(t.tight)), t.word[:0]
	t.version, t.isTight, t.first, t.at = v.version, t.isTight[:0], t.first[:0], resized(t.at, len(v.open))
	for w := range t.at {
		t.at[w] = cluster.NoID
	}
	for place, row := range t.tight {
		w := row >> 6
		if t.at[w] == cluster.NoID {
			t.at[w] = int32(len(t.isTight))
			t.word, t.isTight, t.first = append(t.word, w), append(t.isTight, 0), append(t.first, int32(place))
		}
		t.isTight[t.at[w]] |= 1 << (uint(row) & 63)
	}
	if len(t.tight) == 0 {
		t.at = nil
	}
}

// topAt is the consumer at a depth on the way up from the owner of a parcel, or that when it is higher up.
func (m *Planner) topAt(k cluster.ParcelID, depth int32) plan.Node {
	top := m.s.NodeOf[m.p.Parcels.Owner[k]]
	for m.policy.Depth[top] > depth {
		top = m.policy.Parent[top]
	}
	return top
}

// findSpare finds what reserves leave of a tight row, unless it is what it was: nothing on its host has changed, and no set was or is
// there.
func (m *Planner) findSpare(t *tier, place int32) {
	k, set := m.sight.parcel[t.tight[place]], false
	m.eachSetOn(k, func(cluster.SetID) { set = true })
	stamp := m.s.Shifts.OnHost(m.p.Parcels.Host[k]) + 1
	if !set && t.stamp[place] == stamp {
		return
	}
	if t.stamp[place] = stamp; set {
		t.stamp[place] = 0
	}
	var least [plan.DimensionsMax]int64
	m.spare(k, m.topAt(k, t.depth), false, least[:len(t.spare)])
	for d := range t.spare {
		t.spare[d][place] = least[d]
	}
}

// withinGrace is the rows that leaves of a reclaim_grace may have through pools of a depth.
func (m *Planner) withinGrace(depth int32, us int64) *grace {
	t, v := &m.sight.tier[depth], &m.sight
	if g, ok := t.within[us]; ok {
		return g
	}
	set, all := make([]uint64, len(v.open)), true
	allow := func(from, to int32, least int64) {
		if us > least {
			all = false
			return
		}
		for row := from; row < to; row++ {
			set[row>>6] |= 1 << (uint(row) & 63)
		}
	}
	for n := range plan.Node(m.policy.Len()) {
		if from, to, _ := m.parcelRange(n); from < to && m.policy.Depth[n] >= depth {
			allow(from, to, t.least[n])
		}
	}
	if depth == 0 {
		allow(v.owned, int32(len(v.parcel)), t.least[plan.Root])
	}
	g := &grace{rows: set, place: 1 + len(t.within)}
	if all {
		g = &grace{}
	}
	t.within[us] = g
	return g
}
