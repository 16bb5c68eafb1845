package cluster

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// heirs are the new paths of consumers that a policy renames, by their old ones (`renamed_from`).
func heirs(p *plan.Policy) map[string]string {
	to := map[string]string{}
	for n, old := range p.RenamedFrom {
		if old != "" {
			to[old] = p.Path[n]
		}
	}
	return to
}

// checkPolicy tells why a policy cannot follow the one in force (PLAN-3, PLAN-4). It gives the
// sub-allocations that would have no place in it any more. O(consumers × plans, and sub-allocations).
func (s *State) checkPolicy(p *plan.Policy, forced bool) (leaving []SubID, err error) {
	if err := s.checkDimensions(p); err != nil {
		return nil, err
	}
	to := heirs(p)
	for n, old := range p.RenamedFrom {
		path := p.Path[n]
		if _, is := s.Policy.Find(path); is && old != "" {
			return nil, fmt.Errorf("%s: %s is to be renamed to %s, but there is a consumer %s already", p.File, old,
				path, path)
		}
	}
	node, member, is := s.placesIn(p, to), make([][]bool, len(s.Plans)), make([]*plan.MDPlan, len(s.Plans))
	for i := range s.Plans {
		member[i], is[i] = members(p, s.Plans[i].Name, s.Plans[i].MD != nil), mdPlan(p, s.Plans[i].Name)
	}
	if err := s.checkGangs(p, node); err != nil {
		return nil, err
	}
	for sub := range s.Sub.Live() {
		if s.Sub.Plan[sub] < 0 {
			continue
		}
		was, member, node := &s.Plans[s.Sub.Plan[sub]], member[s.Sub.Plan[sub]], node[s.Sub.Consumer[sub]]
		stays := node != plan.None && member != nil && member[node] && p.Leaf(node) && !s.Sub.Orphan[sub]
		if err := s.checkDevices(p, sub, was, is[s.Sub.Plan[sub]], stays); err != nil {
			return nil, err
		}
		if stays {
			continue
		}
		path := s.Consumer.String(int32(s.Sub.Consumer[sub]))
		if heir, ok := to[path]; ok {
			path = heir
		}
		if s.Sub.Held[sub] > 0 && member == nil {
			return nil, fmt.Errorf("%s: plan %s is gone, and %s still holds %d units in it: it must give them "+
				"back first", p.File, was.Name, path, s.Sub.Held[sub])
		}
		if s.Sub.Held[sub] > 0 && !forced && !s.Sub.Orphan[sub] {
			return nil, fmt.Errorf("%s: %s holds %d units in plan %s and would no longer be a leaf of it; when "+
				"forced, they are reclaimed with its grace",
				p.File, path, s.Sub.Held[sub], was.Name)
		}
		leaving = append(leaving, sub)
	}
	return leaving, nil
}

// placesIn gives each consumer's row in a policy, that of its heir if it has one; None where there is none.
func (s *State) placesIn(p *plan.Policy, heirs map[string]string) []plan.Node {
	nodes := make([]plan.Node, s.Consumer.Len())
	for c := range nodes {
		path := s.Consumer.String(int32(c))
		if heir, ok := heirs[path]; ok {
			path = heir
		}
		node, ok := p.Find(path)
		if nodes[c] = node; !ok {
			nodes[c] = plan.None
		}
	}
	return nodes
}

// checkDimensions refuses to drop a dimension that demand uses.
func (s *State) checkDimensions(p *plan.Policy) error {
	for d, name := range s.Policy.Dimensions {
		if _, ok := p.Dimension(name); ok {
			continue
		}
		for sub := range s.Sub.Live() {
			if (s.Sub.Plan[sub] < 0 || s.Plans[s.Sub.Plan[sub]].MD != nil) && s.Size(sub)[d] > 0 {
				return fmt.Errorf("%s: the dimension %s is gone, and demand of %s uses it", p.File, name,
					s.Consumer.String(int32(s.Sub.Consumer[sub])))
			}
		}
	}
	return nil
}

// moved tells which of the old dimensions each of a policy's is, -1 for new ones; nil when none changed.
func (s *State) moved(p *plan.Policy) (from []int) {
	if slices.Equal(s.Policy.Dimensions, p.Dimensions) {
		return nil
	}
	from = make([]int, len(p.Dimensions))
	for d, name := range p.Dimensions {
		from[d] = slices.Index(s.Policy.Dimensions, name)
	}
	return from
}

// measure makes what is held and promised count by other dimensions; the hosts were measured before.
func (s *State) measure(from []int) {
	s.Shape.measure(from, s.slotShapes())
	for i := range s.Plans {
		if k := &s.Plans[i].Parcels; s.Plans[i].MD != nil && k.Cap != nil {
			k.Cap, k.Free = columns(k.Cap, from, k.Len()), columns(k.Free, from, k.Len())
			k.Kept, k.Owed = nil, nil
			if d := &s.Plans[i].Deeds; len(d.Host) > 0 {
				d.Amount = columns(d.Amount, from, len(d.Host))
			}
		}
	}
	s.Set.kept = make([]int64, len(s.Set.Number)*len(from))
}

// slotShapes is which shapes are of slot plans: their first figure stays where it is.
func (s *State) slotShapes() []bool {
	slots := make([]bool, s.Shape.Len())
	for sub := range s.Sub.Live() {
		if s.Sub.Plan[sub] >= 0 && s.Plans[s.Sub.Plan[sub]].Slots != nil {
			slots[s.Sub.Shape[sub]] = true
		}
	}
	return slots
}

// columns picks the columns of the new dimensions out of those of the old ones.
func columns(old [][]int64, from []int, n int) [][]int64 {
	picked := make([][]int64, len(from))
	for d, was := range from {
		if was >= 0 {
			picked[d] = old[was]
		} else {
			picked[d] = make([]int64, n)
		}
	}
	return picked
}

// measure makes the sizes those of other dimensions; ids stay.
func (h *Shapes) measure(from []int, slots []bool) {
	old := *h
	*h = NewShapes(len(from))
	size := make([]int64, len(from))
	for i := range ShapeID(old.Len()) {
		clear(size)
		for d, was := range from {
			if was >= 0 && !slots[i] {
				size[d] = old.Size(i)[was]
			}
		}
		if slots[i] {
			size[0] = old.Size(i)[0]
		}
		if n := h.Len(); int(h.Intern(size)) < n { // no demand has it, or the other one: it keeps its row, not its name
			h.size = append(h.size, size...)
		}
	}
}

// measure makes a host's amounts those of other dimensions.
func (h *Hosts) measure(was, now []string, from []int) {
	old := h.Size
	h.Size, h.Attr = columns(old, from, h.Len()), slices.Clone(h.Attr)
	for d, name := range now {
		i := h.attribute(name)
		if from[d] >= 0 || i < 0 || h.Attr[i].Kind != plan.Number {
			continue
		}
		for row, ok := range h.Attr[i].Valid {
			if v := h.Attr[i].Number[row]; ok && v > 0 {
				h.Size[d][row] = int64(min(v, float64(NumberMax)))
			}
		}
		h.Attr = slices.Delete(h.Attr, i, i+1)
	}
	for d, name := range was {
		if slices.Contains(now, name) || h.attribute(name) >= 0 {
			continue
		}
		a := AttrColumn{Name: name, Kind: plan.Number}
		a.Text.Names = &Names{}
		a.grow(h.Len())
		for row, v := range old[d] {
			a.Valid[row], a.Number[row] = true, float64(v)
		}
		h.Attr = append(h.Attr, a)
	}
}

// inherit moves the demand, holdings and reclaims of renamed consumers to their new names. New ids are given in the
// order of the tree: tables sort by lenders' and pools' ids, and must be the same for the same inputs (INV-8).
// O(state) when a consumer is renamed.
func (s *State) inherit(p *plan.Policy) {
	heir := map[ConsumerID]ConsumerID{}
	for n, old := range p.RenamedFrom {
		if c, ok := s.Consumer.Find([]byte(old)); ok && old != "" {
			heir[ConsumerID(c)] = s.internConsumer([]byte(p.Path[n]))
		}
	}
	if len(heir) == 0 {
		return
	}
	change := func(id int32) int32 {
		if to, ok := heir[ConsumerID(id)]; ok {
			return int32(to)
		}
		return id
	}
	for _, t := range []column.Schema{s.Alloc.schema(), s.Sub.schema(), s.Holding.schema(), s.Set.schema()} {
		t.Renumber(ofConsumers, NoID, change)
	}
	for i := range s.Released {
		s.Released[i].Lender = ConsumerID(change(int32(s.Released[i].Lender)))
	}
	for i := range s.Plans {
		for _, t := range s.Plans[i].tables() {
			t.Renumber(ofConsumers, NoID, change)
		}
		s.Plans[i].inheritBudgets(heir)
		s.Plans[i].inheritHistory(heir)
		for _, old := range p.RenamedFrom { // in the order of the tree, as one may take another's name
			if c, ok := s.Consumer.Find([]byte(old)); ok && old != "" {
				s.Plans[i].inheritLost(ConsumerID(c), heir[ConsumerID(c)])
			}
		}
	}
}

// orphan takes sub-allocations out of their plan. Allocations that hold nothing are forgotten; what
// the others hold is reclaimed with the grace that they had under the policy before, from the next cycle on (PLAN-4).
func (s *State) orphan(leaving []SubID, was *plan.Policy) {
	slices.SortFunc(leaving, func(a, b SubID) int { return cmp.Compare(s.Sub.Seq[a], s.Sub.Seq[b]) })
	holds := map[AllocID]bool{}
	for _, sub := range leaving {
		if s.Sub.Held[sub] > 0 {
			holds[s.Sub.Alloc[sub]] = true
		}
	}
	for _, sub := range leaving {
		a := s.Sub.Alloc[sub]
		switch {
		case s.Sub.Orphan[sub]:
		case holds[a]:
			s.Sub.Orphan[sub], s.Sub.Wanted[sub], s.Sub.seen[sub] = true, s.Sub.Held[sub], unnamed
			s.Sub.MinUnits[sub] = 1 // all that it holds is going
			s.orphans = append(s.orphans, orphan{sub, was.ReclaimUS[s.NodeOf[s.Sub.Consumer[sub]]]})
		default:
			s.want(sub, 0)
			s.Sub.Plan[sub], s.Alloc.Plan[a], s.Sub.seen[sub] = NoID, NoID, unnamed
		}
	}
}

// settleOrphans ends the sets of takers that a new policy has no place for, and puts what orphans hold under reclaim.
func (s *State) settleOrphans(nowUS int64) {
	if s.orphanUS = nowUS; s.NewPlan {
		s.unpromise()
	}
	for _, o := range s.orphans {
		s.detain(o.sub, nowUS+o.graceUS)
		s.Sub.Wanted[o.sub] = s.Sub.Held[o.sub]
	}
}

// forgetOrphans forgets those that hold nothing any more, with this cycle.
func (s *State) forgetOrphans() {
	s.orphans = slices.DeleteFunc(s.orphans, func(o orphan) bool {
		if s.Sub.Held[o.sub] > 0 {
			return false
		}
		s.gone = append(s.gone, o.sub)
		return true
	})
}

// detain puts what an orphan holds and is not under reclaim there, due at dueUS. O(holdings of the sub-allocation).
func (s *State) detain(sub SubID, dueUS int64) {
	for q := s.Sub.First[sub]; q != NoID; q = s.Holding.NextOfSub[q] {
		if s.Holding.Set[q] == NoID {
			s.Reclaim(q, s.Holding.Units[q], s.orphanUS, dueUS-s.orphanUS, decision.ReclaimPlanChange)
		}
	}
}

// unpromise ends the sets of takers that have no place any more, or that are in a plan with devices, which takes
// nothing back for anybody: what was not taken back yet stays with its holders. O(sets).
func (s *State) unpromise() {
	t := &s.Set
	for id := range SetID(len(t.Number)) {
		number, taker := t.Number[id], t.Taker[id]
		if number == 0 || taker == NoID ||
			s.Sub.Plan[taker] >= 0 && !s.Sub.Orphan[taker] && !s.Plans[t.Plan[id]].HasDevices() {
			continue
		}
		s.Promise(id, 0)
		for t.Number[id] == number {
			s.Cancel(t.First[id], s.Holding.Units[t.First[id]])
		}
	}
}

// EachOrphan calls f for the sub-allocations that hold something in a plan and have no
// place in it any more, in order of arrival.
func (s *State) EachOrphan(p *Plan, f func(sub SubID)) {
	for _, o := range s.orphans {
		if s.Sub.Plan[o.sub] == p.Index {
			f(o.sub)
		}
	}
}

// orphan is a sub-allocation that no plan has any more, but that still holds something.
type orphan struct {
	sub     SubID
	graceUS int64
}

// orphaned is what a row names of what orphans hold on a host: clients give that back too. Its sub is NoID when that is
// nothing. O(what orphans of that name hold).
func (s *State) orphaned(away *absence, h HostID, t *HoldingTable, i int) boundHolding {
	if len(away.orphan) == 0 {
		return boundHolding{sub: NoID}
	}
	c, named := s.Consumer.Find(t.Consumer.Names.Bytes(t.Consumer.At(i)))
	label, labelled := s.Label.Find(t.Allocation.Names.Bytes(t.Allocation.At(i)))
	name, known := int32(0), true
	if code := t.Sub.At(i); code != Null {
		name, known = s.Label.Find(t.Sub.Names.Bytes(code))
	}
	if !named || !labelled || !known {
		return boundHolding{sub: NoID}
	}
	for _, sub := range away.orphan[absentKey{ConsumerID(c), label, name}] {
		parcels := &s.Plans[s.Sub.Plan[sub]].Parcels
		for q := s.Sub.First[sub]; q != NoID; q = s.Holding.NextOfSub[q] {
			if k := s.Holding.Parcel[q]; parcels.Host[k] == h {
				return boundHolding{sub, k}
			}
		}
	}
	return boundHolding{sub: NoID}
}
