package emit

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// Keyframe adds a plan's rows to the tables holdings, hosts and owners. Devices is the dictionary of texts of devices.
func Keyframe(c *decision.Cycle, s *cluster.State, p *cluster.Plan, devices *cluster.Names) {
	var rows []cluster.HoldingID
	held := func(sub cluster.SubID) { rows = addHoldings(&c.Holdings, s, p, sub, rows, devices) }
	for leaf := range p.FirstAlloc {
		for a := p.FirstAlloc[plan.Node(leaf)]; a != cluster.NoID; a = s.Alloc.Next[a] {
			for sub := s.Alloc.First[a]; sub != cluster.NoID; sub = s.Sub.Next[sub] {
				held(sub)
			}
		}
	}
	s.EachOrphan(p, held)
	addHosts(&c.Hosts, s, p)
	addOwners(&c.Owners, p)
}

// addHoldings adds the holdings of a sub-allocation, a row for each parcel, cycle of grant and set of devices. Rows is
// memory that is used again.
func addHoldings(t *decision.Holdings, s *cluster.State, p *cluster.Plan, sub cluster.SubID,
	rows []cluster.HoldingID, devices *cluster.Names,
) []cluster.HoldingID {
	h := &s.Holding
	rows = rows[:0]
	for q := s.Sub.First[sub]; q != cluster.NoID; q = h.NextOfSub[q] {
		rows = append(rows, q)
	}
	slices.SortFunc(rows, func(a, b cluster.HoldingID) int {
		return cmp.Or(cmp.Compare(h.Parcel[a], h.Parcel[b]), cmp.Compare(h.Granted[a], h.Granted[b]),
			cmp.Compare(h.On(a), h.On(b)))
	})
	for i, q := range rows {
		if i > 0 && h.Parcel[q] == h.Parcel[rows[i-1]] && h.Granted[q] == h.Granted[rows[i-1]] &&
			h.On(q) == h.On(rows[i-1]) {
			t.Units[len(t.Units)-1] += h.Units[q]
			continue
		}
		t.Key.Add(p.Index, int32(s.Sub.Consumer[sub]), s.Alloc.Name[s.Sub.Alloc[sub]], s.Sub.Name[sub])
		t.Source.Add(int32(s.Sub.Source[sub]))
		t.Host.Add(int32(p.Parcels.Host[h.Parcel[q]]))
		t.Units = append(t.Units, h.Units[q])
		t.Origin.Add(h.Origin[q])
		t.Pool.Add(int32(h.Pool[q]))
		t.Lender.Add(int32(h.Lender[q]))
		t.Granted = append(t.Granted, h.Granted[q])
		t.Device.Add(h.On(q).Code(devices))
	}
	return rows
}

// addHosts adds the capacity and use of each host, all parcels of a host together.
func addHosts(t *decision.Hosts, s *cluster.State, p *cluster.Plan) {
	parcels := &p.Parcels
	for k, end := cluster.ParcelID(0), cluster.ParcelID(0); int(k) < parcels.Len(); k = end {
		end = parcels.End(k)
		for d := range s.Policy.Dimensions {
			whole, free := int64(0), int64(0)
			for i := k; i < end; i++ {
				whole, free = whole+parcels.Cap[d][i], free+parcels.Free[d][i]
			}
			t.Plan.Add(p.Index)
			t.Host.Add(int32(parcels.Host[k]))
			t.State.Add(int32(s.Host.State[parcels.Host[k]]))
			t.Dimension.Add(int32(d))
			t.Capacity = append(t.Capacity, whole)
			t.Used = append(t.Used, whole-free)
		}
	}
}

// addOwners adds the deeds: owner, rule, order, and how long the last pass is ago, from which a reader of the log can
// make the next pass.
func addOwners(t *decision.Owners, p *cluster.Plan) {
	for i, consumer := range p.Deeds.Consumer {
		for d, column := range p.Deeds.Amount {
			if column[i] == 0 {
				continue
			}
			t.Plan.Add(p.Index)
			t.Consumer.Add(int32(consumer))
			t.Host.Add(int32(p.Deeds.Host[i]))
			t.Dimension.Add(int32(d))
			t.Rule, t.Part = append(t.Rule, int64(p.Deeds.Rule[i])+1), append(t.Part, p.Deeds.Number[i]+1)
			t.Since, t.Amount = append(t.Since, int64(p.Since)), append(t.Amount, column[i])
		}
	}
}
