package cluster

import "github.com/stintd/stint/core/plan"

// Parcels are the parcels of one plan, by ParcelID in host order: the part of a
// host that has one owner. Those of a host stand together, the public one first,
// then by their owners in tree order. A host of which nobody owns anything is one
// parcel, and so is every host of a slot plan.
type Parcels struct {
	Host  []HostID
	Owner []ConsumerID // NoID: public
	// by dimension, then parcel: ⌊capacity × overcommit⌋, in a slot plan the host's slots; 0 when the host is lost.
	// What a host gained or lost since its parcels were made is its first one's
	Cap [][]int64
	// Cap less what is held; of a host together below 0 only until settle, of a parcel as long as a new split leaves
	// more on it than it has
	Free [][]int64
	// of Free, what is held for takers (CYC-6); may be above Free until a set is reviewed; nil: nothing was yet
	Kept [][]int64
	// of Free, what is missing on the host because other parcels of it hold more than they have; nil: nothing was yet
	Owed  [][]int64
	Open  []uint64    // bitset: the host is `ok` and may get grants
	First []HoldingID // holdings on it, newest first
	Left  int         // the last so many are of hosts that left the plan with work on them; they are one parcel each
	Owned bool        // some parcel has an owner

	Device []int64 // of a plan with devices, by parcel and device: what is free on it; made of the holdings
	Stride int     // how many devices a parcel has in Device

	// Moved is a bitset by HostID: hosts whose capacity, or what is held on them, changed since the plan's last pass
	// over ownership; nil: there was none, or hosts and groups are not those that it saw.
	Moved []uint64
}

// Watch starts to note which hosts move, from none on. Rows is the number of hosts that the state knows.
func (p *Parcels) Watch(rows int) { p.Moved = make([]uint64, (rows+63)/64) }

// moved notes that the host of a parcel moved.
func (p *Parcels) moved(k ParcelID) {
	if p.Moved == nil {
		return
	}
	if h := p.Host[k]; int(h>>6) < len(p.Moved) { // a host that is newer than that is of no plan that was seen
		p.Moved[h>>6] |= 1 << (uint(h) & 63)
	}
}

// Len is the number of parcels.
func (p *Parcels) Len() int { return len(p.Host) }

// Words is the number of words of a bitset over the parcels.
func (p *Parcels) Words() int { return (p.Len() + 63) / 64 }

// IsOpen tells whether a parcel may get grants.
func (p *Parcels) IsOpen(i ParcelID) bool { return p.Open[i>>6]>>(uint(i)&63)&1 == 1 }

// Hosts is the number of hosts in the plan.
func (p *Parcels) Hosts() int {
	n := p.Len() - p.Left
	if !p.Owned {
		return n
	}
	hosts := 0
	for k := 0; k < n; k = int(p.End(ParcelID(k))) {
		hosts++
	}
	return hosts
}

// End is one past the last parcel of the host that a parcel is of.
func (p *Parcels) End(k ParcelID) ParcelID {
	h := p.Host[k]
	for k++; int(k) < len(p.Host) && p.Host[k] == h; k++ {
	}
	return k
}

// Begin is the first parcel of the host that a parcel is of.
func (p *Parcels) Begin(k ParcelID) ParcelID {
	for k > 0 && p.Host[k-1] == p.Host[k] {
		k--
	}
	return k
}

// Whole tells whether a parcel is all there is of its host.
func (p *Parcels) Whole(k ParcelID) bool {
	return (k == 0 || p.Host[k-1] != p.Host[k]) && (int(k) == len(p.Host)-1 || p.Host[k+1] != p.Host[k])
}

// of is an owner's parcel of the host whose first parcel is k, NoID when it has none.
func (p *Parcels) of(k ParcelID, owner ConsumerID) ParcelID {
	for end := p.End(k); k < end; k++ {
		if p.Owner[k] == owner {
			return k
		}
	}
	return NoID
}

// freeOn is what is free on a host in a dimension, over all its parcels; k is the first.
func (p *Parcels) freeOn(k ParcelID, d int) (free int64) {
	for end := p.End(k); k < end; k++ {
		free += p.Free[d][k]
	}
	return free
}

// room is how many units of a size the free room of a parcel takes.
func (p *Parcels) room(k ParcelID, size []int64) int64 {
	units := NumberMax
	for d, column := range p.Free {
		if u := size[d]; u > 0 {
			units = min(units, max(0, column[k])/u)
		}
	}
	return units
}

// take takes units of a size off a parcel's free room.
func (p *Parcels) take(k ParcelID, size []int64, units int64) {
	p.moved(k)
	for d, u := range size {
		if u != 0 {
			p.Free[d][k] -= u * units
		}
	}
}

// dimensions is the number of figures by which the plan measures: see Dimensions, which needs parcels.
func (p *Plan) dimensions(policy *plan.Policy) int {
	if p.Slots != nil {
		return 1
	}
	return len(policy.Dimensions)
}

// keep makes the columns of what is held for takers.
func (p *Parcels) keep() {
	for range p.Cap {
		p.Kept = append(p.Kept, make([]int64, p.Len()))
	}
}

// Available is what a parcel has free beside what is held for takers and what
// is missing on its host; it may be below 0.
func (p *Parcels) Available(d int, k ParcelID) int64 {
	free := p.Free[d][k]
	if p.Kept != nil {
		free -= p.Kept[d][k]
	}
	if p.Owed != nil {
		free -= p.Owed[d][k]
	}
	return free
}

// Owe keeps Owed of hosts that are overfull on a parcel (docs/ownership.md): units beyond a parcel's capacity are
// taken off the free room of the host's other parcels, in their order, so that a grant fits its parcel and its host.
// Owe looks at the hosts of changed parcels, and adds the parcels whose Owed changes to them. A grant within the
// available room changes no Owed. O(changed parcels × dimensions).
func (p *Plan) Owe() {
	if k := &p.Parcels; k.Owned {
		for _, at := range p.Changed {
			if !k.Whole(at) {
				p.owe(k.Begin(at), k.End(at))
			}
		}
	}
}

// owe is Owe for the parcels of one host.
func (p *Plan) owe(begin, end ParcelID) {
	parcels := &p.Parcels
	for d, free := range parcels.Free {
		var missing int64
		for k := begin; k < end; k++ {
			missing += max(0, -free[k])
		}
		if missing > 0 && parcels.Owed == nil {
			for range parcels.Free {
				parcels.Owed = append(parcels.Owed, make([]int64, parcels.Len()))
			}
		}
		if parcels.Owed == nil {
			continue
		}
		for k := begin; k < end; k++ {
			off := min(missing, max(0, free[k]))
			if missing -= off; parcels.Owed[d][k] != off {
				parcels.Owed[d][k] = off
				p.Changed = append(p.Changed, k)
			}
		}
	}
}
