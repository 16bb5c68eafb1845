package slot

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// Gangs whose hosts have one value of an attribute (D-108, docs/slots.md, "Together").

// nearestMost is for how many values of its attribute a gang tries to make room in a cycle, at most (D-109).
const nearestMost = 64

// fitBy is what the numbers of units that fit by value of an attribute depend on.
type fitBy struct {
	fit
	by *cluster.Places
}

// need is what a sub-allocation requires, the value that its gang is held to included.
func (m *Planner) need(sub cluster.SubID) cluster.NeedID { return m.desk.Bonds.Need(m.s, sub) }

// asksPlace tells whether a sub-allocation is a gang that is to be together, where it must or where it can.
func (m *Planner) asksPlace(sub cluster.SubID) bool {
	return m.isGang(sub) && m.s.Sub.Together[sub] != 0
}

// bind holds the gangs that must be together to the value of what they have.
func (m *Planner) bind() { m.desk.Bonds.Begin(m.s, m.p, m.gang.subs) }

// holdTo holds a gang to a value, letGo to none.
func (m *Planner) holdTo(sub cluster.SubID, value int32) {
	m.desk.Bonds.Hold(sub, value)
	m.findAnew(sub)
}

func (m *Planner) letGo(sub cluster.SubID) {
	if m.asksPlace(sub) {
		m.desk.Bonds.Free(sub)
		m.findAnew(sub)
	}
}

// findAnew forgets where units of a gang go, as it may use other hosts now.
func (m *Planner) findAnew(sub cluster.SubID) {
	if int(sub) < len(m.line.Sub) {
		m.line.Sub[sub].Find = 0
	}
}

// rooms is where a kind of gang had room in a cycle. Until the next set lapses there is no more.
type rooms struct {
	lapses int
	most   int64 // on hosts with one value
}

// holdWhereRoom holds a gang that waits to the first value that has room for all of its first units, and tells whether
// there is any, or it may be anywhere. What it may have in all is the same on all hosts: it is enough to look at one
// value. O(parcels).
func (m *Planner) holdWhereRoom(sub cluster.SubID) bool {
	if !m.asksPlace(sub) {
		return true
	}
	places, prefers := m.desk.Bonds.Seeks(sub)
	least, key := m.s.Sub.MinUnits[sub], m.kindBy(sub, places)
	// Of these the room depends on what the gang itself holds, or is promised.
	alone := key.most != plan.Unlimited || len(m.setsOf[sub]) > 0
	if last, known := m.gang.rooms[key]; known && !alone && last.lapses == m.lapses && last.most < least {
		return prefers
	}
	room := m.roomBy(sub, places)
	if value := slices.IndexFunc(room, func(units int64) bool { return units >= least }); value >= 0 {
		m.holdTo(sub, int32(value))
		return true
	}
	if !alone && len(room) > 0 {
		m.gang.rooms[key] = rooms{m.lapses, slices.Max(room)}
	}
	return prefers
}

// nearest lists the values of an attribute of which the hosts would take all of a gang's first units were they empty:
// those first where the most of them fit now, of as many in the order of the plan's hosts. O(parcels).
func (m *Planner) nearest(sub cluster.SubID, places *cluster.Places) (values []int32) {
	least := m.s.Sub.MinUnits[sub]
	room, most := m.roomBy(sub, places), m.placeableBy(sub, places)
	for i := range room {
		if room[i] = min(room[i], least); most[i] >= least {
			values = append(values, int32(i))
		}
	}
	slices.SortStableFunc(values, func(a, b int32) int { return cmp.Compare(room[b], room[a]) })
	return values[:min(len(values), nearestMost)]
}

// roomBy adds up by value of an attribute how many units of a gang that is held to none hosts have room for now,
// accounts left aside. All that was given must be booked. O(parcels).
func (m *Planner) roomBy(sub cluster.SubID, places *cluster.Places) []int64 {
	p, h, k := &m.p.Parcels, &m.s.Holding, m.slots(sub)
	sum, most := make([]int64, places.Own), m.s.Sub.MaxPerHost[sub]
	var on map[cluster.ParcelID]int64
	for q := m.s.Sub.First[sub]; most != plan.Unlimited && q != cluster.NoID; q = h.NextOfSub[q] {
		if on == nil {
			on = map[cluster.ParcelID]int64{}
		}
		on[h.Parcel[q]] += h.Units[q]
	}
	for at := range cluster.ParcelID(p.Len()) {
		value := places.Of[p.Host[at]]
		if value == cluster.NoID || int(value) >= places.Own || !m.usable(sub, at) {
			continue
		}
		units := max(0, p.Available(0, at)) / k
		if most != plan.Unlimited {
			units = min(units, max(0, most-on[at]))
		}
		sum[value] += units
	}
	return sum
}

// placeableTogether is placeable for a gang that must be together: by hosts with the value that it is held to, of one
// that waits with the value that would take the most. O(parcels) for a new kind, then O(values).
func (m *Planner) placeableTogether(sub cluster.SubID, places *cluster.Places) int64 {
	units := m.placeableBy(sub, places)
	switch value, held := m.desk.Bonds.Held(sub); {
	case len(units) == 0:
		return 0
	case !held || m.waits(sub):
		return slices.Max(units)
	case value == cluster.NoID:
		return 0
	default:
		return units[value]
	}
}

// placeableBy is how many units of a gang the ok hosts with each value would take were they empty. O(1), and O(parcels)
// for a new kind.
func (m *Planner) placeableBy(sub cluster.SubID, places *cluster.Places) []int64 {
	key := m.kindBy(sub, places)
	units, known := m.quota.apart[key]
	if !known {
		units = make([]int64, len(places.Text))
		m.eachPlaceable(key.fit, m.slots(sub), func(k cluster.ParcelID, n int64) {
			if value := places.Of[m.p.Parcels.Host[k]]; value != cluster.NoID {
				units[value] += n
			}
		})
		m.quota.apart[key] = units
	}
	return units
}

// kindBy is what gangs have in common whose units fit the same values.
func (m *Planner) kindBy(sub cluster.SubID, places *cluster.Places) fitBy {
	return fitBy{fit{m.s.Sub.Shape[sub], m.s.Sub.Need[sub], m.s.Sub.MaxPerHost[sub]}, places}
}

// bindShort holds gangs for what shortfalls tell: one that waits and must be together to the value of what it is
// promised, or where it is promised nothing to the one where the most of it fit. O(gangs), and O(parcels) for a kind of
// gang.
func (m *Planner) bindShort() {
	m.bind()
	var rooms map[fitBy][]int64
	for _, sub := range m.gang.subs {
		places, prefers := m.desk.Bonds.Seeks(sub)
		if places == nil || prefers || m.s.Short(sub) <= 0 {
			continue
		}
		if at := m.reclaim.joinedAt[sub]; len(at) > 0 {
			m.holdTo(sub, places.Of[m.p.Parcels.Host[at[0]]])
			continue
		}
		key := m.kindBy(sub, places)
		room, known := rooms[key]
		if !known || key.most != plan.Unlimited {
			if room = m.roomBy(sub, places); rooms == nil {
				rooms = map[fitBy][]int64{}
			}
			rooms[key] = room
		}
		best, most := int32(cluster.NoID), int64(-1)
		for value, units := range room {
			if units = min(units, m.s.Sub.MinUnits[sub]); units > most {
				best, most = int32(value), units
			}
		}
		m.holdTo(sub, best)
	}
}
