package grant

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/cluster"
)

// Runs are decisions as the state takes them (cluster.State.HoldAll): sub by sub in the order of D-14, the parcels of
// each in order, those together that count as the same. Parcels are in the memory of dst.
func (d *Decisions) Runs(e *Env, cycle int64, dst []cluster.ParcelID) (runs []cluster.Run, parcels []cluster.ParcelID) {
	s, n := e.State, d.Sub.Len()
	units, next := make([]int32, len(s.Sub.Wanted)), make([]int32, len(s.Sub.Wanted)) // by SubID
	var subs []cluster.SubID
	for _, sub := range d.Sub.Values() {
		if units[sub]++; units[sub] == 1 {
			subs = append(subs, sub)
		}
	}
	slices.SortFunc(subs, func(a, b cluster.SubID) int {
		return cmp.Or(cmp.Compare(s.Node(a), s.Node(b)),
			cmp.Compare(s.Alloc.Arrival[s.Sub.Alloc[a]], s.Alloc.Arrival[s.Sub.Alloc[b]]),
			cmp.Compare(s.Sub.Seq[a], s.Sub.Seq[b]))
	})
	at := int32(0)
	for _, sub := range subs {
		next[sub], at = at, at+units[sub]
	}
	parcels = slices.Grow(dst[:0], n)[:n]
	var on []cluster.Devices // beside parcels, where the plan has devices
	if e.Plan.HasDevices() {
		on = make([]cluster.Devices, n)
	}
	for i, sub := range d.Sub.Values() {
		if parcels[next[sub]] = d.Parcel.At(i); on != nil {
			on[next[sub]] = d.On.At(i)
		}
		next[sub]++
	}
	at = 0
	for _, sub := range subs {
		list := parcels[at : at+units[sub]]
		if on == nil {
			slices.Sort(list)
			runs = e.label(runs, sub, cycle, list, at)
		} else {
			runs = e.labelOn(runs, sub, cycle, list, on[at:at+units[sub]], at)
		}
		at += units[sub]
	}
	return runs, parcels
}

// label adds the runs of one sub-allocation: units on parcels of different owners count as different things.
func (e *Env) label(
	runs []cluster.Run, sub cluster.SubID, cycle int64, list []cluster.ParcelID, at int32,
) []cluster.Run {
	s, begin := e.State, len(runs)
	leaf, owners := s.Node(sub), e.Plan.Parcels.Owner
	for i, k := range list {
		if i > 0 && owners[k] == owners[list[i-1]] {
			runs[len(runs)-1].To++
			continue
		}
		origin, from, lender := s.CountsAs(leaf, owners[k])
		row := cluster.Holding{Sub: sub, Granted: cycle, Origin: origin, Pool: from, Lender: lender}
		if last := len(runs) - 1; last >= begin && runs[last].Holding == row {
			runs[last].To++
			continue
		}
		runs = append(runs, cluster.Run{Holding: row, From: at + int32(i), To: at + int32(i) + 1})
	}
	return runs
}

// labelOn is label where the plan has devices, on of each unit: units on the same ones of a parcel are a run. It sorts
// both lists.
func (e *Env) labelOn(
	runs []cluster.Run, sub cluster.SubID, cycle int64, list []cluster.ParcelID, on []cluster.Devices, at int32,
) []cluster.Run {
	type lie struct {
		k  cluster.ParcelID
		on cluster.Devices
	}
	lies := make([]lie, len(list))
	for i, k := range list {
		lies[i] = lie{k, on[i]}
	}
	slices.SortFunc(lies, func(a, b lie) int { return cmp.Or(cmp.Compare(a.k, b.k), cmp.Compare(a.on, b.on)) })
	for i := 0; i < len(lies); {
		n := i
		for ; n < len(lies) && lies[n] == lies[i]; n++ {
			list[n] = lies[n].k
		}
		begin := len(runs)
		runs = e.label(runs, sub, cycle, list[i:n], at+int32(i))
		runs[begin].Devices = lies[i].on
		i = n
	}
	return runs
}
