package md

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// outlook is what this cycle would be under the window that comes (docs/shares.md, "Lead").
type outlook struct {
	given []prospect              // what would be granted and last, in the order of D-14
	taken map[spot]prospect       // what would be under reclaim
	busy  map[cluster.HostID]bool // hosts of which anything would be under reclaim
}

// spot is a sub-allocation on a host.
type spot struct {
	sub  cluster.SubID
	host cluster.HostID
}

// prospect is units there; due is the last deadline of those under reclaim.
type prospect struct {
	spot
	units, due int64
}

// nears tells whether another window will be in force a `lead` from now.
func (m *Planner) nears() bool { return m.p.Coming != cluster.NoID && mutant != 56 }

// foresee tries what the coming window would do, where one is, on a copy of the state: nobody can tell without doing it. O(everything), as
// the copy's planner knows nothing.
func (m *Planner) foresee() outlook {
	if !m.nears() {
		return outlook{}
	}
	s := m.s.Clone()
	p := &s.Plans[m.p.Index]
	p.Window, p.Coming = m.p.Coming, cluster.NoID
	p.RankOrder = cluster.RankOrder(&m.policy.Tree, p.MD.Windows[p.Window].Rank)
	p.Reassign, p.Rebuilt = true, true
	var trial Planner
	trial.Attach(s, p, m.nowUS)
	trial.Own()
	trial.Entitle()
	trial.Grant(func() {})
	trial.Reclaim(func() {})
	if !slices.Equal(m.s.Sub.Turns, s.Sub.Turns) { // what goes before the switch for fair share's sake took turns too (INV-10)
		copy(m.s.Sub.Turns, s.Sub.Turns)
		m.p.Turned = m.p.Turned || p.Turned
		m.p.Continue() // the next trial may end otherwise
	}
	if trial.fairness.protects {
		m.p.Continue() // what the trial left alone it may take when it has run for longer
	}
	return trial.outcome()
}

// outcome adds up what a cycle granted and what is under reclaim after it. What was granted of the leaf's own lasts; of others
// what is on hosts of which nothing is promised: there somebody else waits, who would have it back.
func (m *Planner) outcome() outlook {
	h, promised := &m.s.Holding, m.promisedHosts()
	o := outlook{taken: map[spot]prospect{}, busy: map[cluster.HostID]bool{}}
	m.eachSub(func(sub cluster.SubID) {
		from := len(o.given)
		for q := m.s.Sub.First[sub]; q != cluster.NoID; q = h.NextOfSub[q] {
			at := spot{sub, m.p.Parcels.Host[h.Parcel[q]]}
			switch {
			case h.Set[q] != cluster.NoID:
				o.taken[at] = prospect{at, o.taken[at].units + h.Units[q], max(o.taken[at].due, h.Due[q], m.nowUS)}
				o.busy[at.host] = true
			case h.Granted[q] > m.s.Cycle && (h.Pool[q] == cluster.NoID || !promised[at.host] || mutant == 57):
				o.given = append(o.given, prospect{at, h.Units[q], 0})
			}
		}
		o.given = append(o.given[:from], m.gathered(o.given[from:])...)
	})
	return o
}

// gathered is one sub-allocation's units, those of a host together, in host order.
func (m *Planner) gathered(list []prospect) (hosts []prospect) {
	slices.SortFunc(list, func(a, b prospect) int { return cmp.Compare(m.s.Host.Parcel[a.host], m.s.Host.Parcel[b.host]) })
	for _, one := range slices.Clone(list) {
		if n := len(hosts); n > 0 && hosts[n-1].host == one.host {
			hosts[n-1].units += one.units
		} else {
			hosts = append(hosts, one)
		}
	}
	return hosts
}

// promisedHosts is the hosts of which anything is promised, by sets or by joining them.
func (m *Planner) promisedHosts() map[cluster.HostID]bool {
	hosts := map[cluster.HostID]bool{}
	for _, id := range m.takers() {
		if m.s.Set.Units[id] > 0 {
			hosts[m.s.Set.Target[id]] = true
		}
	}
	for _, list := range m.fairness.joinedAt { // a set: in any order
		for _, k := range list {
			hosts[m.p.Parcels.Host[k]] = true
		}
	}
	return hosts
}

// follow grants what the coming window would, as far as the present one bears it, so that nothing is given that the
// switch would take back. Promised units wait for what they were promised.
func (g *granter) follow() {
	for _, one := range g.outlook.given {
		for n := g.givenNow(one.spot); n < one.units && g.s.Short(one.sub) > g.promise.units[one.sub] && !g.p.TooSmall(g.s, one.sub); n++ {
			k := g.bearing(one.spot)
			if k == cluster.NoID {
				break
			}
			row := g.row(one.sub, k)
			g.s.Hold(nil, row, []cluster.ParcelID{k})
			g.count(g.s.PairOf(one.sub, row.Pool), 1)
			g.shift(one.sub, row.Pool, 1)
			g.stir(k, len(g.pools.restOf))
			g.desk.Field.Regain(k)
			g.promise.moved, g.gave = true, true
			g.p.Continue()
		}
	}
}

// givenNow is how many units a sub-allocation was granted on a host in this cycle.
func (m *Planner) givenNow(at spot) (units int64) {
	h := &m.s.Holding
	for q := m.s.Sub.First[at.sub]; q != cluster.NoID; q = h.NextOfSub[q] {
		if h.Granted[q] > m.s.Cycle && m.p.Parcels.Host[h.Parcel[q]] == at.host {
			units += h.Units[q]
		}
	}
	return units
}

// bearing is the first parcel of a host that may take a unit now, the nearest pool's first; NoID when none may.
func (m *Planner) bearing(at spot) cluster.ParcelID {
	p, leaf, size := &m.p.Parcels, m.s.Node(at.sub), m.s.Size(at.sub)
	best, depth := cluster.ParcelID(cluster.NoID), int32(-1)
	for k, end := m.s.Host.Parcel[at.host], p.End(m.s.Host.Parcel[at.host]); k < end; k++ {
		top := m.meet(leaf, k)
		if m.policy.Depth[top] > depth && m.bears(leaf, at.sub, k, top) && m.roomFor(k, top, size, nil) {
			best, depth = k, m.policy.Depth[top]
		}
	}
	return best
}

// bears tells whether graces, ratios and share limits let a leaf have a unit of a parcel that it draws on through a pool.
func (m *Planner) bears(leaf plan.Node, sub cluster.SubID, k cluster.ParcelID, top plan.Node) bool {
	if top == leaf {
		return true
	}
	_, _, over := m.overLimitOf(m.pooled, leaf, sub, top)
	return (!over || mutant == 58) && !m.barred(leaf, top) && m.policy.ReclaimUS[leaf] <= m.grace(m.p.Parcels.Owner[k], top)
}

// makeWay puts under reclaim what the coming window would take back and is not, host by host.
func (m *Planner) makeWay() {
	p, h := &m.p.Parcels, &m.s.Holding
	for k, end := cluster.ParcelID(0), cluster.ParcelID(0); int(k) < p.Len(); k = end {
		if end = p.End(k); !m.outlook.busy[p.Host[k]] {
			continue
		}
		rows, leaving := m.s.LastFirst(m.p, k, end), map[cluster.SubID]int64{}
		for _, q := range rows {
			if h.Set[q] != cluster.NoID {
				leaving[h.Sub[q]] += h.Units[q]
			}
		}
		for _, q := range rows {
			sub := h.Sub[q]
			one := m.outlook.taken[spot{sub, p.Host[k]}]
			if units := min(h.Units[q], one.units-leaving[sub], m.budget); units > 0 && h.Set[q] == cluster.NoID && h.Granted[q] <= m.s.Cycle {
				leaving[sub] += units
				if mutant == 59 {
					one.due = m.due(q)
				}
				m.takeBackBy(q, units, one.due, decision.ReclaimWindowSwitch)
			}
		}
	}
}
