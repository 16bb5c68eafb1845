package cluster

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/bits-and-blooms/bitset"

	"github.com/stintd/stint/core/plan"
)

// Parcels are the parcels of one plan, by ParcelID in host order: the part of a
// host that has one owner. While nobody owns parts, a host is one parcel.
type Parcels struct {
	Host  []HostID
	Owner []ConsumerID // NoID: public
	Cap   [][]int64    // by dimension, then parcel: ⌊capacity × overcommit⌋, in a slot plan the host's slots; 0 when the host is lost
	Free  [][]int64    // Cap less what is held; below 0 only until settle
	Kept  [][]int64    // of Free, what is held for takers (CYC-6); may be above Free until a set is reviewed; nil: nothing was yet
	Open  []uint64     // bitset: the host is `ok` and may get grants
	First []HoldingID  // holdings on it, newest first
	Left  int          // the last so many are of hosts that left the plan with work on them
}

// Len is the number of parcels.
func (p *Parcels) Len() int { return len(p.Host) }

// Words is the number of words of a bitset over the parcels.
func (p *Parcels) Words() int { return (p.Len() + 63) / 64 }

// IsOpen tells whether a parcel may get grants.
func (p *Parcels) IsOpen(i ParcelID) bool { return p.Open[i>>6]>>(uint(i)&63)&1 == 1 }

// take takes units of a size off a parcel's free room.
func (p *Parcels) take(k ParcelID, size []int64, units int64) {
	for d, u := range size {
		if u != 0 {
			p.Free[d][k] -= u * units
		}
	}
}

// layout is which hosts are where under a policy.
type layout struct {
	order    [][]HostID       // by plan: its hosts in host order (docs/decisions.md, D-1)
	slots    []*plan.Bound    // by plan: the slot expression, nil: the dimension `slots`, or no slot plan
	selects  []*plan.Bound    // by group: nil when its hosts are listed
	selected []*bitset.BitSet // by group: the hosts that selects matches
	warnings []string
}

// hostOrder lays out the hosts under a policy. An error names a host that is in two
// plans. O(hosts × groups).
func (s *State) hostOrder(p *plan.Policy) (*layout, error) {
	l := &layout{selects: make([]*plan.Bound, len(p.Groups)), selected: make([]*bitset.BitSet, len(p.Groups))}
	members, err := s.groupMembers(p, l)
	if err != nil {
		return nil, err
	}
	in := make([]int32, s.Host.Len()) // plan + 1
	l.order, l.slots = make([][]HostID, len(p.MDPlans)+len(p.SlotPlans)), make([]*plan.Bound, len(p.MDPlans)+len(p.SlotPlans))
	join := func(i, group int) error {
		for _, h := range members[group] {
			switch in[h] {
			case int32(i) + 1:
			case 0:
				in[h] = int32(i) + 1
				l.order[i] = append(l.order[i], h)
			default:
				return fmt.Errorf("host %s is in two plans: %s and, by resource group %s, %s",
					s.Host.String(int32(h)), planName(p, int(in[h]-1)), p.Groups[group].Name, planName(p, i))
			}
		}
		return nil
	}
	for i := range p.MDPlans {
		for _, g := range p.MDPlans[i].Groups {
			if err := join(i, g.Group); err != nil {
				return nil, err
			}
		}
	}
	for i := range p.SlotPlans {
		at, g := len(p.MDPlans)+i, p.SlotPlans[i].Group
		if err := join(at, g); err != nil {
			return nil, err
		}
		if l.slots[at], err = s.bindSlots(&p.Groups[g]); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// bindSlots binds a group's slot expression to the hosts; nil when it has none, or when there are no hosts yet.
func (s *State) bindSlots(g *plan.Group) (*plan.Bound, error) {
	if g.Slots == nil || s.Host.Len() == 0 {
		return nil, nil
	}
	b, err := g.Slots.Bind(s)
	if err != nil {
		return nil, fmt.Errorf("resource group %s: slots: %w", g.Name, err)
	}
	return b, nil
}

// planName is the name of the plan with an index into State.Plans.
func planName(p *plan.Policy, i int) string {
	if i < len(p.MDPlans) {
		return p.MDPlans[i].Name
	}
	return p.Groups[p.SlotPlans[i-len(p.MDPlans)].Group].Name
}

// groupMembers is the hosts of every resource group, in the group's order: as
// listed, or as in the hosts table. Listed hosts that do not exist are left out.
func (s *State) groupMembers(p *plan.Policy, l *layout) ([][]HostID, error) {
	members := make([][]HostID, len(p.Groups))
	s.Host.words = nil
	for i := range p.Groups {
		g := &p.Groups[i]
		for _, name := range g.Hosts {
			if h, ok := s.Host.Find([]byte(name)); ok {
				members[i] = append(members[i], HostID(h))
			} else if s.Host.Len() > 0 {
				l.warnings = append(l.warnings, fmt.Sprintf("resource group %s: no host is called %s", g.Name, name))
			}
		}
		if g.Select == nil || s.Host.Len() == 0 {
			continue
		}
		bound, err := g.Select.Bind(s)
		if err != nil {
			return nil, fmt.Errorf("resource group %s: %w", g.Name, err)
		}
		l.selects[i], l.selected[i] = bound, bitset.MustNew(uint(s.Host.Len()))
		for _, h := range s.Host.Order {
			if bound.Match(int(h)) {
				members[i] = append(members[i], h)
				l.selected[i].Set(uint(h))
			}
		}
		if len(members[i]) == 0 {
			l.warnings = append(l.warnings, fmt.Sprintf("resource group %s: %s matches no host", g.Name, g.Select.Text))
		}
	}
	return members, nil
}

// Warnings are what is suspect about hosts and groups: a group that selects
// nothing, a listed host that does not exist.
func (s *State) Warnings() []string {
	if s.at == nil {
		return nil
	}
	return s.at.warnings
}

// lay brings every plan's parcels up to the hosts: the figures of parcels whose
// host changed, or all of them when a plan's hosts or their order did.
func (s *State) lay(l *layout) {
	n, order := s.Host.Len(), l.order
	s.at = l
	s.HostTables++
	s.Host.Plan = slices.Grow(s.Host.Plan[:0], n)[:n]
	s.Host.Parcel = slices.Grow(s.Host.Parcel[:0], n)[:n]
	for h := range n {
		s.Host.Plan[h], s.Host.Parcel[h] = NoID, NoID
	}
	for i := range s.Plans {
		p := &s.Plans[i]
		left := p.Parcels.abandoned(order[i])
		s.Host.sort(left)
		hosts := slices.Concat(order[i], left)
		if p.Parcels.Cap == nil || !slices.Equal(hosts, p.Parcels.Host) {
			s.relay(p, hosts)
		}
		p.Parcels.Left = len(left)
		for k, h := range order[i] {
			s.Host.Plan[h], s.Host.Parcel[h] = int32(i), ParcelID(k)
		}
	}
	for i := range s.Plans {
		p := &s.Plans[i]
		for k, h := range p.Parcels.Host {
			state := s.Host.State[h]
			switch in := k < p.Parcels.Len()-p.Parcels.Left; {
			case in:
			case s.Host.Plan[h] == NoID && state != Unavail:
				state = Closed // until what is on it has been reclaimed
			default:
				state = Unavail
			}
			s.refresh(p, ParcelID(k), state)
		}
	}
	s.rekeep()
}

// sort puts hosts in the order of the hosts table; those that are not in it any more come last. O(hosts), if there are several.
func (h *Hosts) sort(hosts []HostID) {
	if len(hosts) < 2 {
		return
	}
	at := make([]int, h.Len())
	for i, id := range h.Order {
		at[id] = i - len(h.Order)
	}
	slices.SortStableFunc(hosts, func(a, b HostID) int { return cmp.Compare(at[a], at[b]) })
}

// abandoned is the hosts outside of the new order on which something is held. They
// stay as parcels behind it: closed while the host lives and is in no other plan, so
// that its work is reclaimed with grace (REQ-2), else as lost ones.
func (p *Parcels) abandoned(order []HostID) (hosts []HostID) {
	if p.Len() == 0 || slices.Equal(order, p.Host) {
		return nil
	}
	stays := make(map[HostID]bool, len(order))
	for _, h := range order {
		stays[h] = true
	}
	for k, h := range p.Host {
		if !stays[h] && p.First[k] != NoID {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// relay lays out a plan's parcels anew for hosts and moves the holdings along.
func (s *State) relay(p *Plan, hosts []HostID) {
	old, n := p.Parcels, len(hosts)
	p.Parcels = Parcels{
		Host: hosts, Owner: make([]ConsumerID, n), First: make([]HoldingID, n),
		Open: make([]uint64, (n+63)/64),
	}
	for range p.dimensions(s.Policy) {
		p.Parcels.Cap = append(p.Parcels.Cap, make([]int64, n))
		p.Parcels.Free = append(p.Parcels.Free, make([]int64, n))
	}
	if old.Kept != nil {
		p.Parcels.keep() // filled by rekeep
	}
	was := make(map[HostID]int, old.Len())
	for k, h := range old.Host {
		was[h] = k
	}
	for k, h := range hosts {
		p.Parcels.Owner[k], p.Parcels.First[k] = NoID, NoID
		if j, ok := was[h]; ok {
			p.Parcels.First[k] = old.First[j]
			for d := range old.Cap {
				p.Parcels.Cap[d][k], p.Parcels.Free[d][k] = old.Cap[d][j], old.Free[d][j]
			}
			for q := old.First[j]; q != NoID; q = s.Holding.NextOnParcel[q] {
				s.Holding.Parcel[q] = ParcelID(k)
			}
		}
	}
	p.Rebuilt, p.Dirty, p.Changed = true, true, p.Changed[:0]
	for k := range hosts { // those named before had other numbers
		p.Changed = append(p.Changed, ParcelID(k))
	}
}

// refresh brings one parcel up to its host's capacity and a state.
func (s *State) refresh(p *Plan, k ParcelID, state HostState) {
	h := p.Parcels.Host[k]
	changed := p.Parcels.IsOpen(k) != (state == OK)
	p.Parcels.Open[k>>6] &^= 1 << (uint(k) & 63)
	if state == OK {
		p.Parcels.Open[k>>6] |= 1 << (uint(k) & 63)
	}
	for d := range p.Parcels.Cap {
		var c int64
		if state != Unavail {
			c = s.capacity(p, d, h)
		}
		if delta := c - p.Parcels.Cap[d][k]; delta != 0 {
			p.Parcels.Cap[d][k], p.Parcels.Free[d][k], changed = c, p.Parcels.Free[d][k]+delta, true
		}
	}
	if changed {
		p.Changed, p.Dirty, p.Resized = append(p.Changed, k), true, true
	}
	if state != OK && p.Parcels.First[k] != NoID {
		p.Dirty = true // it may drain now, or not any more
	}
}

// capacity is what a plan counts a host for in a dimension: its amount with overcommit,
// or its slots by the group's expression, rounded down and never below 0 (SPEC chapter 3).
func (s *State) capacity(p *Plan, d int, h HostID) int64 {
	if p.MD != nil {
		return overcommitted(s.Host.Size[d][h], p.MD.OvercommitMilli[d])
	}
	if b := s.at.slots[p.Index]; b != nil {
		v, _ := b.Number(int(h))
		return min(max(v, 0), NumberMax)
	}
	if d, ok := s.Policy.Dimension("slots"); ok {
		return s.Host.Size[d][h]
	}
	return 0
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

// Available is what a parcel has free beside what is held for takers; it may be below 0.
func (p *Parcels) Available(d int, k ParcelID) int64 {
	if p.Kept == nil {
		return p.Free[d][k]
	}
	return p.Free[d][k] - p.Kept[d][k]
}
