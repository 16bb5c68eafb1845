package cluster

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// SetPolicy puts a policy in force from the next cycle on (PLAN-3). Consumers are matched by path,
// or by the one that they are renamed from, plans by name. Refused, with nothing changed, when a
// dimension that demand uses is gone, when a host would be in two plans, when a requirement names what no host
// has, or when a consumer with holdings would leave its plan; forced, what such a consumer holds is
// reclaimed with its grace instead (PLAN-4). O(everything).
func (s *State) SetPolicy(p *plan.Policy, forced bool) error {
	if s.Policy == nil {
		s.Shape = NewShapes(len(p.Dimensions))
		s.Host.Size = make([][]int64, len(p.Dimensions))
		return s.adopt(p, nil, nil)
	}
	leaving, err := s.checkPolicy(p, forced)
	if err != nil {
		return err
	}
	return s.adopt(p, leaving, s.moved(p))
}

// adopt puts a policy in force that fits: leaving are the sub-allocations without a place in it, from
// says which dimensions its are, nil when none changed.
func (s *State) adopt(p *plan.Policy, leaving []SubID, from []int) error {
	was, hosts := s.Policy, s.Host
	if from != nil {
		s.Host.measure(was.Dimensions, p.Dimensions, from)
	}
	s.Policy = p
	order, err := s.hostOrder(p)
	if err != nil {
		s.Policy, s.Host = was, hosts
		return err
	}
	if was != nil {
		s.orphan(leaving, was)
		s.inherit(p)
	}
	if from != nil {
		s.measure(from)
	}
	s.Revision++
	s.NewPlan, s.scratch.told = true, nil
	s.mapConsumers()
	s.resplitNoted()
	s.mapPlans()
	s.Holding.lay(s.anyDevices())
	s.Changes.add(ChangeRelaid, NoID, NoID)
	s.lay(order)
	return nil
}

// members is who takes part in a plan of a policy, nil when there is no such plan.
func members(p *plan.Policy, name string, md bool) []bool {
	for i := range p.MDPlans {
		if md && p.MDPlans[i].Name == name {
			return p.MDPlans[i].Member
		}
	}
	for i := range p.SlotPlans {
		if !md && p.Groups[p.SlotPlans[i].Group].Name == name {
			return p.SlotPlans[i].Member
		}
	}
	return nil
}

// mdPlan is an MD plan of a policy by name, nil when there is none.
func mdPlan(p *plan.Policy, name string) *plan.MDPlan {
	for i := range p.MDPlans {
		if p.MDPlans[i].Name == name {
			return &p.MDPlans[i]
		}
	}
	return nil
}

// mapConsumers maps the durable ids of consumers onto the policy's rows.
func (s *State) mapConsumers() {
	for i := range s.NodeOf {
		s.NodeOf[i] = plan.None
	}
	s.ConsumerOf = resize(s.ConsumerOf, s.Policy.Len())
	for n, path := range s.Policy.Path {
		c := s.internConsumer([]byte(path))
		s.ConsumerOf[n], s.NodeOf[c] = c, plan.Node(n)
	}
}

func (s *State) internConsumer(path []byte) ConsumerID {
	c := ConsumerID(s.Consumer.Intern(path))
	if int(c) == len(s.NodeOf) {
		s.NodeOf = append(s.NodeOf, plan.None)
	}
	return c
}

// mapPlans makes the plans' states those of the policy, each keeping the parcels
// of the plan of its name, and hangs allocations and pairs onto the new rows.
func (s *State) mapPlans() {
	to := make([]int32, len(s.Plans))
	plans := s.newPlans()
	for i := range plans {
		p := &plans[i]
		p.Index, p.Dirty, p.Rebuilt = int32(i), true, true
		p.Reassign, p.Stirred = true, true
		p.Window, p.Before, p.Coming = NoID, NoID, NoID
		n := s.Policy.Len()
		p.FirstAlloc, p.LastAlloc = filled[AllocID](n), filled[AllocID](n)
		p.FirstPair = filled[PairID](n)
		var before *Plan
		for j := range s.Plans {
			if was := &s.Plans[j]; was.Name == p.Name && (was.MD == nil) == (p.MD == nil) {
				p.Parcels, p.Unlabelled, p.Deeds, to[j] = was.Parcels, was.Unlabelled, was.Deeds, int32(i)
				p.Lost, before = was.Lost, was
				// hosts may have shrunk since the last cycle
				p.Changed, p.shifted = was.Changed, was.shifted
				p.Deeds.Unmet, p.Deeds.Open, p.Deeds.Configured, p.Deeds.Reserved = nil, false, nil, nil // by Node
				p.Deeds.Keeper, p.Deeds.KeptOn, p.Deeds.KeptAmount = nil, nil, nil
			}
		}
		s.budgetRows(p, before)
		s.historyRows(p, before)
	}
	s.Plans = plans
	clear(s.Sub.Turns) // they are of the policy before
	for id := range s.Set.Live() {
		s.Set.Plan[id] = to[s.Set.Plan[id]]
	}
	s.mapAllocations(to)
}

// mapAllocations hangs allocations and pairs onto the rows of new plans, whose indices are in to.
func (s *State) mapAllocations(to []int32) {
	byArrival := slices.SortedFunc(s.Alloc.Live(), func(a, b AllocID) int {
		return cmp.Compare(s.Alloc.Arrival[a], s.Alloc.Arrival[b])
	})
	clear(s.allocOf)
	outside := s.places(byArrival, to)
	for _, a := range byArrival {
		if s.Alloc.Plan[a] >= 0 {
			s.Alloc.Plan[a] = to[s.Alloc.Plan[a]]
		} else {
			s.Alloc.Plan[a] = outside[a]
		}
		orphan := s.Sub.Orphan[s.Alloc.First[a]]
		if !orphan {
			s.allocOf[allocKey{s.Alloc.Plan[a], s.Alloc.Consumer[a], s.Alloc.Name[a]}] = a
		}
		if s.Alloc.Plan[a] < 0 {
			continue
		}
		p := &s.Plans[s.Alloc.Plan[a]]
		if s.Alloc.Next[a] = NoID; !orphan {
			p.append(s, a)
		}
		for sub := s.Alloc.First[a]; sub != NoID; sub = s.Sub.Next[sub] {
			s.Sub.Plan[sub] = p.Index
			leaf := plan.Root // what orphans hold counts for the whole
			if !orphan {
				leaf = s.Node(sub)
			}
			s.Sub.Pair[sub] = p.pair(leaf, s.Sub.Shape[sub], s.ConsumerOf[plan.Root])
			for q := s.Sub.First[sub]; q != NoID; q = s.Holding.NextOfSub[q] {
				s.tell(q, s.Holding.Units[q])
			}
		}
	}
}

// newPlans are the plans of the policy in force, with nothing in them yet.
func (s *State) newPlans() (plans []Plan) {
	for i := range s.Policy.MDPlans {
		m := &s.Policy.MDPlans[i]
		plans = append(plans, Plan{
			Name: m.Name, MD: m, Owns: m.Owns(),
			Terms: Terms{m.Member, m.Placement, m.ReclaimBudget, m.ReleaseConfirmed, m.OverdueAfterUS, m.Budget},
		})
	}
	for i := range s.Policy.SlotPlans {
		m := &s.Policy.SlotPlans[i]
		plans = append(plans, Plan{
			Name: s.Policy.Groups[m.Group].Name, Slots: m,
			Terms: Terms{m.Member, m.Placement, m.ReclaimBudget, m.ReleaseConfirmed, m.OverdueAfterUS, m.Budget},
		})
	}
	return plans
}

// openWindows puts the time windows of an instant in force (PLAN-1). A plan whose window
// is another than before has changed. O(plans), and consumers where a window opens.
func (s *State) openWindows(nowUS int64) {
	for i := range s.Plans {
		p := &s.Plans[i]
		now, coming := 0, 0
		switch {
		case p.MD != nil && len(p.MD.Windows) > 1:
			now = p.MD.WindowAt(nowUS, s.Policy.Location)
			coming = p.MD.WindowAt(nowUS+p.MD.LeadUS, s.Policy.Location)
		case p.Slots != nil && len(p.Slots.Windows) > 1:
			now = p.Slots.WindowAt(nowUS, s.Policy.Location)
			coming = p.Slots.WindowAt(nowUS+p.Slots.LeadUS, s.Policy.Location)
		}
		if coming == now {
			coming = NoID
		}
		if p.Coming != coming {
			p.Coming, p.Dirty = coming, true
		}
		if p.Window == now {
			continue
		}
		// a plan's first window is no switch: Before is NoID
		p.Before, p.Window, p.Dirty, p.Reassign = p.Window, now, true, true
		rank := []int32(nil)
		if p.MD != nil {
			rank = p.MD.Windows[now].Rank
			s.stir(p)
		} else {
			rank = p.Slots.Windows[now].Rank
		}
		p.RankOrder = RankOrder(&s.Policy.Tree, rank)
	}
}

func filled[T ~int32](n int) []T {
	s := make([]T, n)
	for i := range s {
		s[i] = NoID
	}
	return s
}

// RankOrder is every consumer's place when they are sorted by rank, level by
// level from the root, ties in tree order.
func RankOrder(t *plan.Tree, rank []int32) []int32 {
	order := make([]int32, t.Len())
	var place int32
	var visit func(n plan.Node)
	visit = func(n plan.Node) {
		order[n] = place
		place++
		var children []plan.Node
		for c := t.First[n]; c != plan.None; c = t.Next[c] {
			children = append(children, c)
		}
		slices.SortStableFunc(children, func(a, b plan.Node) int { return cmp.Compare(rank[a], rank[b]) })
		for _, c := range children {
			visit(c)
		}
	}
	visit(plan.Root)
	return order
}

// AmountMax is where a capacity after overcommit saturates: high above any
// sensible figure, and low enough that the sums over dimensions of core/place hold.
const AmountMax int64 = 1 << 58

// overcommitted is ⌊capacity × milli ÷ 1000⌋, exact; it saturates at AmountMax.
func overcommitted(capacity, milli int64) int64 {
	if milli == 1000 {
		return capacity
	}
	hi, lo := bits.Mul64(uint64(capacity), uint64(milli))
	if hi >= 1000 {
		return AmountMax
	}
	q, _ := bits.Div64(hi, lo, 1000)
	return int64(min(q, uint64(AmountMax)))
}

// saturatingMul is a × b for amounts ≥ 0; it saturates at the largest int64.
func saturatingMul(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > 1<<63-1 {
		return 1<<63 - 1
	}
	return int64(lo)
}
