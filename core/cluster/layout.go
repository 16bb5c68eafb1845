package cluster

import (
	"fmt"

	"github.com/bits-and-blooms/bitset"

	"github.com/stintd/stint/core/plan"
)

// layout is which hosts are where under a policy.
type layout struct {
	order    [][]HostID       // by plan: its hosts in host order (docs/decisions.md, D-1)
	slots    []*plan.Bound    // by plan: the slot expression, nil: the dimension `slots`, or no slot plan
	selects  []*plan.Bound    // by group: nil when its hosts are listed
	selected []*bitset.BitSet // by group: the hosts that selects matches
	members  [][]HostID       // by group: its hosts in its order
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
	l.members = members
	in := make([]int32, s.Host.Len()) // plan + 1
	l.order = make([][]HostID, len(p.MDPlans)+len(p.SlotPlans))
	l.slots = make([]*plan.Bound, len(p.MDPlans)+len(p.SlotPlans))
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
	for _, other := range p.Foreign { // what is in two of them their own divisions see
		for _, g := range other.Groups {
			for _, h := range members[g] {
				if in[h] != 0 {
					return nil, fmt.Errorf("host %s is in two plans: %s and, by resource group %s, %s of division %s",
						s.Host.String(int32(h)), planName(p, int(in[h]-1)), p.Groups[g].Name, other.Name,
						other.Division)
				}
			}
		}
	}
	return l, nil
}

// sameGroups tells whether the groups of a plan have the hosts that they had in another layout under the same
// policy. Where groups list their hosts, the plan's hosts tell it.
func (l *layout) sameGroups(was *layout, m *plan.MDPlan) bool {
	for _, g := range m.Groups {
		if was == nil || g.Group >= len(was.selected) {
			return false
		}
		a, b := l.selected[g.Group], was.selected[g.Group]
		if (a == nil) != (b == nil) || a != nil && a.SymmetricDifferenceCardinality(b) > 0 {
			return false
		}
	}
	return true
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

// Members is the hosts of a resource group, in its order. Read them only.
func (s *State) Members(group int) []HostID { return s.at.members[group] }

// Stated is what the hosts table says of a host in a dimension, with a plan's overcommit; 0 when it does not name it.
func (s *State) Stated(p *Plan, name string, d int) int64 {
	h, ok := s.Host.Find([]byte(name))
	if !ok || !s.Host.listed[h] {
		return 0
	}
	return s.capacity(p, d, HostID(h))
}
