package cycle

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/grant"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/pool"
	"github.com/stintd/stint/core/reclaim"
)

// forecast is what this cycle would be under the window that comes (docs/shares.md, "Lead").
type forecast struct {
	given grant.Prospects // grants that would last
	taken []reclaim.Taken // units that would be under reclaim, by host
}

// foresee plays the cycle on a copy of the state as if the coming window held. O(state), as the planner of the copy
// begins without views.
func (m *mdPlan) foresee() *forecast {
	s := m.s.Clone()
	p := &s.Plans[m.p.Index]
	p.Window, p.Coming = p.Coming, cluster.NoID
	p.RankOrder = cluster.RankOrder(&s.Policy.Tree, p.MD.Windows[p.Window].Rank)
	p.Reassign, p.Rebuilt = true, true
	if p.MD.HalfLifeUS > 0 {
		pool.Lower(s, p)
	}
	trial := newMD(m.reasons.Eager, m.devices)
	trial.Attach(s, p, m.nowUS)
	trial.Own()
	trial.Entitle()
	trial.Grant()
	trial.Reclaim()
	if !slices.Equal(m.s.Sub.Turns, s.Sub.Turns) { // turns of fair reclaim in the trial count (INV-10)
		copy(m.s.Sub.Turns, s.Sub.Turns)
		m.p.Turned = m.p.Turned || p.Turned
		m.p.Continue() // the next trial may end otherwise
	}
	if trial.young {
		m.p.Continue() // a later trial may take units that min_runtime protects now
	}
	return trial.outcome()
}

// grantForecast grants what the trial of the coming window granted, within the rules of the present window.
func (m *mdPlan) grantForecast() {
	e := m.grantEnv()
	var out grant.Decisions
	grant.Follow(e, &m.forecast.given, &out)
	if m.book(e, &out) {
		m.gave = true
		m.p.Continue()
		m.views.Follow(m.s, m.p)
	}
	m.stood = pool.NewLimits(&e.Env, e.Promises)
}

// outcome is what a trial granted, and what is under reclaim after the trial. A grant on a leaf's own parcel lasts; a
// grant from a pool lasts only on a host of which nothing is promised, since a taker would have the unit back.
func (m *mdPlan) outcome() *forecast {
	f := &forecast{taken: m.underReclaim()}
	h, promised := &m.s.Holding, m.promisedHosts()
	e := m.env()
	for leaf := range m.p.FirstAlloc {
		e.EachSub(plan.Node(leaf), func(sub cluster.SubID) {
			var rows []cluster.HoldingID
			for q := m.s.Sub.First[sub]; q != cluster.NoID; q = h.NextOfSub[q] {
				lasts := h.Pool[q] == cluster.NoID || !promised[m.p.Parcels.Host[h.Parcel[q]]]
				if h.Set[q] == cluster.NoID && h.Granted[q] > m.s.Cycle && lasts {
					rows = append(rows, q)
				}
			}
			m.addProspects(&f.given, sub, rows)
		})
	}
	return f
}

// addProspects adds units of a sub-allocation, those of a host together, in host order.
func (m *mdPlan) addProspects(t *grant.Prospects, sub cluster.SubID, rows []cluster.HoldingID) {
	h := &m.s.Holding
	slices.SortFunc(rows, func(a, b cluster.HoldingID) int { return cmp.Compare(h.Parcel[a], h.Parcel[b]) })
	last := cluster.HostID(cluster.NoID)
	for _, q := range rows {
		host := m.p.Parcels.Host[h.Parcel[q]]
		if at := t.Units.Len() - 1; host == last {
			t.Units.Values()[at] += h.Units[q]
			continue
		}
		last = host
		t.Sub.Add(sub)
		t.Host.Add(host)
		t.Units.Add(h.Units[q])
	}
}

// underReclaim is what is under reclaim, a row for each sub-allocation and host, in host order.
func (m *mdPlan) underReclaim() (list []reclaim.Taken) {
	h, p, from := &m.s.Holding, &m.p.Parcels, 0
	for k, host := range p.Host {
		if k > 0 && p.Host[k-1] != host {
			from = len(list)
		}
		for q := p.First[k]; q != cluster.NoID; q = h.NextOnParcel[q] {
			if h.Set[q] == cluster.NoID {
				continue
			}
			at := from + slices.IndexFunc(list[from:], func(t reclaim.Taken) bool { return t.Sub == h.Sub[q] })
			if at < from {
				at = len(list)
				list = append(list, reclaim.Taken{Sub: h.Sub[q], Host: host})
			}
			list[at].Units += h.Units[q]
			list[at].Due = max(list[at].Due, h.Due[q], m.nowUS)
		}
	}
	return list
}

// promisedHosts is the hosts of which a unit is promised, to the taker of a set or to a unit that joined one.
func (m *mdPlan) promisedHosts() map[cluster.HostID]bool {
	hosts, t := map[cluster.HostID]bool{}, &m.s.Set
	for id, number := range t.Number {
		if number > 0 && t.Plan[id] == m.p.Index && t.Taker[id] != cluster.NoID && t.Units[id] > 0 {
			hosts[t.Target[id]] = true
		}
	}
	for _, j := range m.cycle.Joined {
		hosts[m.p.Parcels.Host[j.Parcel]] = true
	}
	return hosts
}
