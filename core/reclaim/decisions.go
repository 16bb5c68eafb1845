package reclaim

import (
	"fmt"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
)

// Kind is what a row of Decisions says.
type Kind uint8

// The kinds of rows.
const (
	Opened     Kind = iota // a set begins on a parcel: for the taker Sub, or for a rule
	Promised               // the set's taker is to get so many units of it from now on
	Reclaimed              // units that stayed go under the set, to be given back by Due
	HandedOver             // units that were under another set go over to the set, with their deadline
	Cancelled              // units under the set stay
	Undone                 // units granted in this cycle are not granted (CYC-1)
	Turned                 // fair reclaim takes for the sub-allocation; Units 1: from it (INV-10)
	Joined                 // a unit waits for room on the parcel that sets under way will leave
)

// Row is a row of Decisions. Units are told by sub-allocation, parcel, label, devices and cycle of grant.
type Row struct {
	Kind         Kind
	Set, Other   cluster.SetID // Other: under which units were that are handed over
	Reason       int32         // of Opened: decision.ReclaimReasons
	Sub          cluster.SubID
	Parcel       cluster.ParcelID
	Pool, Lender cluster.ConsumerID
	Granted      int64
	Units, Due   int64
	On           cluster.Devices // on which each unit lies
}

// Decisions are what steps decided, a row for each thing in the order in which they were. Sets that a step opens have
// numbers behind those of the state.
type Decisions struct {
	Kind         column.Vector[Kind]
	Set, Other   column.Vector[cluster.SetID]
	Reason       column.Vector[int32]
	Sub          column.Vector[cluster.SubID]
	Parcel       column.Vector[cluster.ParcelID]
	Pool, Lender column.Vector[cluster.ConsumerID]
	Granted      column.Vector[int64]
	Units, Due   column.Vector[int64]
	On           column.Vector[cluster.Devices]
	Again        bool // the next cycle may decide more with the same input
	Young        bool // as units were left alone that have not run for long enough (REQ-4)

	first cluster.SetID // of the sets that are opened
	next  cluster.SetID
}

// begin readies decisions over a state.
func (d *Decisions) begin(s *cluster.State) {
	*d = Decisions{first: cluster.SetID(len(s.Set.Number)), next: cluster.SetID(len(s.Set.Number))}
}

// Len is the number of rows.
func (d *Decisions) Len() int { return d.Kind.Len() }

// At is a row.
func (d *Decisions) At(i int) Row {
	return Row{
		d.Kind.At(i), d.Set.At(i), d.Other.At(i), d.Reason.At(i), d.Sub.At(i), d.Parcel.At(i), d.Pool.At(i),
		d.Lender.At(i), d.Granted.At(i), d.Units.At(i), d.Due.At(i), d.On.At(i),
	}
}

// add adds a row. Units that are handed over like those of the row before are told together with them, as one step.
func (d *Decisions) add(r Row) {
	if last := d.Len() - 1; r.Kind == HandedOver && last >= 0 {
		alike := d.At(last)
		if alike.Units = r.Units; alike == r {
			d.Units.Values()[last] += r.Units
			return
		}
	}
	d.Kind.Add(r.Kind)
	d.Set.Add(r.Set)
	d.Other.Add(r.Other)
	d.Reason.Add(r.Reason)
	d.Sub.Add(r.Sub)
	d.Parcel.Add(r.Parcel)
	d.Pool.Add(r.Pool)
	d.Lender.Add(r.Lender)
	d.Granted.Add(r.Granted)
	d.Units.Add(r.Units)
	d.Due.Add(r.Due)
	d.On.Add(r.On)
}

// open adds a set and gives its number.
func (d *Decisions) open(reason int32, taker cluster.SubID, k cluster.ParcelID) cluster.SetID {
	id := d.next
	d.next++
	d.add(Row{Kind: Opened, Set: id, Reason: reason, Sub: taker, Parcel: k})
	return id
}

// Book carries decisions out in the state that they were made over. O(rows × what is held on one parcel).
func (d *Decisions) Book(s *cluster.State, p *cluster.Plan, nowUS int64) {
	made := make([]cluster.SetID, d.next-d.first)
	set := func(id cluster.SetID) cluster.SetID {
		if id >= d.next {
			panic(fmt.Sprintf("BUG: set %d is not made here, where %d to %d are", id, d.first, d.next-1))
		}
		if id >= d.first {
			return made[id-d.first]
		}
		return id
	}
	for i := range d.Len() {
		r := d.At(i)
		switch id := set(r.Set); r.Kind {
		case Opened:
			made[r.Set-d.first] = s.OpenSet(p, r.Parcel, r.Reason, r.Sub, nowUS)
		case Promised:
			s.Promise(id, r.Units)
		case Reclaimed:
			r.each(s, p, cluster.NoID, func(q cluster.HoldingID, units int64) { s.TakeBack(id, q, units, r.Due) })
		case HandedOver:
			r.each(s, p, set(r.Other), func(q cluster.HoldingID, units int64) { s.HandOver(q, units, id) })
		case Cancelled:
			r.each(s, p, id, s.Cancel)
		case Undone:
			r.each(s, p, cluster.NoID, s.Shrink)
		case Turned:
			s.Turn(r.Sub, r.Units == 1)
		}
	}
	if d.Again {
		p.Continue()
	}
}

// each calls f for the holdings that have a row's units: of those on the parcel under a set, or that stay. A reclaim
// splits holdings and makes one of two, so that they have no name that lasts.
func (r *Row) each(s *cluster.State, p *cluster.Plan, set cluster.SetID, f func(q cluster.HoldingID, units int64)) {
	h, left := &s.Holding, r.Units
	for q := p.Parcels.First[r.Parcel]; left > 0; {
		if q == cluster.NoID {
			panic(fmt.Sprintf("BUG: %d units of %+v are not held", left, *r))
		}
		next := h.NextOnParcel[q]
		same := h.Sub[q] == r.Sub && h.Granted[q] == r.Granted && h.Pool[q] == r.Pool && h.Lender[q] == r.Lender &&
			h.On(q) == r.On
		if same && h.Set[q] == set && (set == cluster.NoID || h.Due[q] == r.Due) {
			units := min(left, h.Units[q])
			left -= units
			f(q, units)
		}
		q = next
	}
}
