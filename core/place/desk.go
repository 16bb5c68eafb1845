package place

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// Desk says where the next unit of a sub-allocation goes: a plan's field, the parcels that each
// requirement selects, and the finders of a grant stage. Requirements are evaluated once for a
// table of hosts; finders are shared by sub-allocations of one size and requirement. The zero
// value is ready; Sync comes first.
type Desk struct {
	Field Field
	Bonds cluster.Bonds // what gangs require that are together

	s      *cluster.State
	p      *cluster.Plan
	tables int64 // State.HostTables that the next two were made at
	codes  cluster.HostCodes
	own    selections // by NeedID
	bound  selections // of requirements of gangs that are held to a value

	Finders
}

// selections are what requirements select.
type selections struct {
	of    []*plan.Requirement // whose it is, as ids may be given anew
	bits  [][]uint64
	order [][]cluster.ParcelID
}

// reset forgets all of them.
func (l *selections) reset() { l.of, l.bits, l.order = l.of[:0], l.bits[:0], l.order[:0] }

// Finders are the finders of a grant stage. Begin comes first.
type Finders struct {
	desk *Desk

	finds []Finding // one per size and requirement; per sub-allocation with max_per_host
	byAsk map[ask]int32
}

// ask is what a finder looks for.
type ask struct {
	shape cluster.ShapeID
	need  cluster.NeedID
}

// Finding is the finder of sub-allocations that ask for the same, and what max_per_host leaves them.
type Finding struct {
	Finder
	most int64                      // max_per_host, plan.Unlimited when not given
	on   map[cluster.ParcelID]int64 // units by the first parcel of a host, when most is given
}

// Sync points the desk at a plan and brings its field up to the parcels. Cost as Field.Sync.
func (d *Desk) Sync(s *cluster.State, p *cluster.Plan) {
	if d.tables != s.HostTables || d.p != p {
		d.tables = s.HostTables
		d.own.reset()
		d.bound.reset()
	}
	d.s, d.p = s, p
	d.Field.Sync(p)
}

// Begin forgets the finders of the last grant stage.
func (f *Finders) Begin(d *Desk) {
	if f.byAsk == nil {
		f.byAsk = map[ask]int32{}
	}
	clear(f.byAsk)
	f.desk, f.finds = d, f.finds[:0]
}

// Selected is the bitset of parcels that a requirement selects and, when it has one, the
// order it gives them; nil, nil for no requirement. O(hosts) on first sight. Read them only.
func (d *Desk) Selected(need cluster.NeedID) (bitset []uint64, order []cluster.ParcelID) {
	if need == cluster.NoID {
		return nil, nil
	}
	l, at := &d.own, int(need)
	if place, ok := cluster.Bound(need); ok {
		l, at = &d.bound, place
	}
	for at >= len(l.bits) {
		l.of, l.bits, l.order = append(l.of, nil), append(l.bits, nil), append(l.order, nil)
	}
	if r := d.Bonds.Requirement(d.s, need); l.of[at] != r {
		l.of[at] = r
		l.bits[at], l.order[at] = d.selects(r)
	}
	return l.bits[at], l.order[at]
}

// selects evaluates a requirement. One that names what no host has any more, since
// hosts changed after the demand was taken, selects nothing.
func (d *Desk) selects(r *plan.Requirement) ([]uint64, []cluster.ParcelID) {
	set := make([]uint64, d.p.Parcels.Words())
	bound, err := r.Bind(d.s)
	if err != nil {
		return set, nil
	}
	d.codes.Reset(d.s)
	selector := bound.Selector(&d.codes, d.s.Host.Len())
	for k, h := range d.p.Parcels.Host {
		if selector.Match(int(h)) {
			set[k>>6] |= 1 << (uint(k) & 63)
		}
	}
	if !r.Ordered() {
		return set, nil
	}
	return set, Order(bound, &d.p.Parcels, set)
}

// Lookup gives the number of a sub-allocation's finding in this grant stage. O(1) but for the first
// of its shape and requirement, and for those with max_per_host: O(its holdings).
func (f *Finders) Lookup(sub cluster.SubID) int32 {
	b := &f.desk.s.Sub
	most, key := b.MaxPerHost[sub], ask{b.Shape[sub], f.desk.Bonds.Need(f.desk.s, sub)}
	i, ok := f.byAsk[key]
	if !ok || most != plan.Unlimited {
		i = f.open(sub, key, most)
		if most == plan.Unlimited {
			f.byAsk[key] = i
		}
	}
	return i
}

// At is the finding of a number; good until the next Lookup.
func (f *Finders) At(i int32) *Finding { return &f.finds[i] }

// open adds a finding.
func (f *Finders) open(sub cluster.SubID, key ask, most int64) int32 {
	f.finds = resize(f.finds, len(f.finds)+1)
	one, d := &f.finds[len(f.finds)-1], f.desk
	selected, order := d.Selected(key.need)
	allowed := selected
	if most != plan.Unlimited {
		allowed = f.ownBits(selected)
	}
	one.most, one.on = most, nil
	one.Reset(&d.Field, d.s.Shape.Size(key.shape)[0], allowed, order)
	if most != plan.Unlimited {
		one.on = map[cluster.ParcelID]int64{}
		for q := d.s.Sub.First[sub]; q != cluster.NoID; q = d.s.Holding.NextOfSub[q] {
			one.Count(d.s.Holding.Parcel[q], d.s.Holding.Units[q])
		}
	}
	return int32(len(f.finds) - 1)
}

// ownBits copies a bitset of parcels; nil becomes all.
func (f *Finders) ownBits(from []uint64) []uint64 {
	bits := make([]uint64, f.desk.p.Parcels.Words())
	if from == nil {
		from = f.desk.p.Parcels.Open
	}
	copy(bits, from)
	return bits
}

// Give takes a unit off the parcel that Find found.
func (f *Finding) Give(k cluster.ParcelID) {
	f.field.Take(k, f.slots)
	f.Count(k, 1)
}

// Count notes units of the sub-allocation on a parcel: with max_per_host on its host, no more go there.
func (f *Finding) Count(k cluster.ParcelID, units int64) {
	if f.on == nil {
		return
	}
	p := f.field.parcels
	k = p.Begin(k)
	if f.on[k] += units; f.on[k] >= f.most {
		for end := p.End(k); k < end; k++ {
			f.Forbid(k)
		}
	}
}
