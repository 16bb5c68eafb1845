package cluster

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/stintd/stint/core/plan"
)

// demandScratch is what binding a demand table needs between its two passes, kept for the next.
type demandScratch struct {
	node     []plan.Node // by the table's consumer code: None unknown, or unasked
	plan     []int32     // by the table's consumer code: its only plan, or planNone, planMany
	named    []int32     // by the table's plan code
	need     []NeedID    // by the table's requirement code
	rows     []int32     // plan of each row
	found    []SubID     // by row: its sub-allocation, NoID where it is not known yet
	table    []int32     // hash table of rows, for duplicates
	alloc    []int32     // by the table's allocation code: label + 1, -1 there is none yet, 0 not asked for
	sub      []int32     // by the table's sub code: the same
	together []int32     // by the table's together code: the same
	apart    []string    // by the table's together code: why it can be none, "" where it can
	size     []int64

	told  []told  // by SourceID; nothing is told since the last revision where there is none
	place []int32 // by SubID: its row in what its source told, if it is there

	steps needSteps

	near, nearby []HoldingID // of heldOn and who calls it

	changes bool // the table is of changes: a row with 0 units needs no size
}

// unnamed is Subs.seen of a sub-allocation that its source's last snapshot left out.
const unnamed = 0

const (
	planNone = -1 // the consumer takes part in no plan
	planMany = -2 // in several: the row must name one
	planBad  = -3 // there is none of that name
)

// SetDemand replaces all that a source said before with a demand table (SPEC
// chapter 7). Units held beyond what is wanted now are released by the next
// cycle (CYC-5). Refused whole, with every bad row: an unknown consumer (unless
// ReportUnknown), one with children, a plan it does not take part in, a unit of
// no size, a bad requirement, a key named twice, an allocation of another source.
// O(rows + sub-allocations of the source).
func (s *State) SetDemand(source string, t *DemandTable) error {
	if len(t.Size) != len(s.Policy.Dimensions) {
		panic(fmt.Sprintf("BUG: a demand table with %d dimensions, the policy has %d", len(t.Size),
			len(s.Policy.Dimensions)))
	}
	f := Faults{Table: t.title()}
	s.bindDemand(source, t, &f)
	if err := f.Err(); err != nil {
		return err
	}
	src := SourceID(s.Source.InternString(source))
	s.heard(src)
	s.reserve(t.Rows)
	s.snapshot++
	last := rowMemo{alloc: NoID, shape: NoID}
	for i := range t.Rows {
		s.applyRow(src, t, i, &last)
	}
	s.remember(src)
	s.dropUnnamed(src)
	return nil
}

// dropUnnamed has the sub-allocations of a source want nothing any more that its latest snapshot left out.
func (s *State) dropUnnamed(src SourceID) {
	var gone []SubID
	s.eachOfSource(src, func(sub SubID) {
		if seen := s.Sub.seen[sub]; seen != s.snapshot && seen != unnamed {
			gone = append(gone, sub)
		}
	})
	slices.Sort(gone)
	for _, sub := range gone {
		s.Sub.seen[sub] = unnamed
		s.want(sub, 0)
	}
}

// bindDemand checks a table and leaves each row's plan in the scratch, and its sub-allocation
// where the source's last snapshot tells it.
func (s *State) bindDemand(source string, t *DemandTable, f *Faults) {
	b := &s.scratch
	s.bindNames(t, f)
	b.rows, b.found = resize(b.rows, t.Rows), resize(b.found, t.Rows)
	src, known := s.Source.Find([]byte(source))
	last, listed := follower{}, false
	if !b.changes {
		last = s.follow(source)
	}
	s.repeats(&last, t)
	s.budgetNeeds(source, t, f)
	for i := range t.Rows {
		a := AllocID(NoID)
		if b.found[i] != NoID {
			last.next = max(last.next, i+1)
		} else {
			a = s.bindOne(t, i, &last, f)
		}
		if b.found[i] == NoID && !listed { // rows that the last snapshot had in this order are not the same
			s.listRows(t, i)
			listed = true
		}
		if listed {
			if first := s.duplicate(t, i); first >= 0 {
				f.Add(i+1, "allocation", t.Allocation.Names.String(t.Allocation.At(i)),
					fmt.Sprintf("row %d names the same sub-allocation", first+1))
			}
		}
		if a != NoID && (!known || s.Alloc.Source[a] != SourceID(src)) {
			f.Add(i+1, "allocation", t.Allocation.Names.String(t.Allocation.At(i)),
				fmt.Sprintf("belongs to source %q already", s.Source.String(int32(s.Alloc.Source[a]))))
		}
	}
}

// bindOne is bindDemand for a row that does not repeat the last snapshot's in its place; it gives the allocation
// that its key names, if that was looked for.
func (s *State) bindOne(t *DemandTable, i int, last *follower, f *Faults) AllocID {
	b, a := &s.scratch, AllocID(NoID)
	s.bindConsumer(t, i, last.expected())
	b.rows[i] = s.bindRow(t, i, f)
	if b.found[i] = s.match(last, t, i); b.found[i] == NoID {
		if a = s.bindKey(t, i); a != NoID && s.resume(last, a) {
			b.found[i] = s.match(last, t, i)
		}
	}
	return a
}

// listRows begins to look for duplicates, with the rows before one, which are none of each other.
func (s *State) listRows(t *DemandTable, before int) {
	b, size := &s.scratch, 16
	for size < 2*t.Rows {
		size *= 2
	}
	b.table = resize(b.table, size)
	clear(b.table)
	for i := range before {
		s.duplicate(t, i)
	}
}

// bindKey looks for the labels of a row that is not known from the last snapshot, and for
// its allocation; NoID when there is none yet.
func (s *State) bindKey(t *DemandTable, i int) AllocID {
	b := &s.scratch
	if b.rows[i] < planNone {
		return NoID // it has a fault
	}
	s.lookUp(b.alloc, t.Allocation.Names, t.Allocation.At(i))
	s.lookUp(b.sub, t.Sub.Names, t.Sub.At(i))
	label := b.alloc[t.Allocation.At(i)] - 1
	if b.rows[i] < 0 || label < 0 {
		return NoID
	}
	if a, ok := s.allocOf[allocKey{b.rows[i], s.ConsumerOf[b.node[t.Consumer.At(i)]], label}]; ok {
		return a
	}
	return NoID
}

// bindNames resolves the distinct names of a table's plans and requirements. Those of consumers and labels wait for
// their first row, which may tell what they are.
func (s *State) bindNames(t *DemandTable, f *Faults) {
	b := &s.scratch
	n := t.Consumer.Names.Len()
	b.node, b.plan = resize(b.node, n), resize(b.plan, n)
	for c := range b.node {
		b.node[c] = unasked
	}
	b.named = resize(b.named, t.Plan.Names.Len())
	for c := range b.named {
		b.named[c] = planBad
		for p := range s.Plans {
			if s.Plans[p].Name == string(t.Plan.Names.Bytes(int32(c))) {
				b.named[c] = int32(p)
			}
		}
	}
	s.bindTogether(t)
	b.need = resize(b.need, t.Requirement.Names.Len())
	s.bindNeeds(t, f)
	b.alloc, b.sub = resize(b.alloc, t.Allocation.Names.Len()), resize(b.sub, t.Sub.Names.Len())
	clear(b.alloc)
	clear(b.sub)
}

// bindConsumer resolves the consumer of a row, and in which plans it takes part.
// It may be that of a sub-allocation, or NoID.
func (s *State) bindConsumer(t *DemandTable, i int, like SubID) {
	b, c := &s.scratch, t.Consumer.At(i)
	if b.node[c] != unasked {
		return
	}
	path := t.Consumer.Names.Bytes(c)
	b.node[c] = plan.None
	if like != NoID && string(path) == string(s.Consumer.Bytes(int32(s.Sub.Consumer[like]))) {
		b.node[c] = s.NodeOf[s.Sub.Consumer[like]]
	} else if node, ok := s.Policy.Find(string(path)); ok {
		b.node[c] = node
	}
	b.plan[c] = s.onlyPlan(b.node[c])
}

// onlyPlan is the plan that a consumer takes part in, if it is one.
func (s *State) onlyPlan(node plan.Node) int32 {
	only := int32(planNone)
	for p := range s.Plans {
		if node != plan.None && s.Plans[p].Terms.Member[node] {
			if only != planNone {
				return planMany
			}
			only = int32(p)
		}
	}
	return only
}

// bindNeeds checks each requirement of a table once.
func (s *State) bindNeeds(t *DemandTable, f *Faults) {
	b, bad := &s.scratch, map[int32]string{}
	for c := range b.need {
		var err error
		if b.need[c], err = s.bindNeed(t.Requirement.Names.Bytes(int32(c))); err != nil {
			bad[int32(c)] = err.Error()
		}
	}
	for i := 0; len(bad) > 0 && i < t.Rows; i++ {
		if why, ok := bad[t.Requirement.At(i)]; ok {
			f.Add(i+1, "requirement", t.Requirement.Names.String(t.Requirement.At(i)), why)
		}
	}
}

// bindNeed checks a requirement; its id is that of the state, or NoID when it is new or empty.
func (s *State) bindNeed(text []byte) (NeedID, error) {
	if len(text) == 0 {
		return NoID, nil
	}
	if id, ok := s.Need.Find(text); ok {
		return NeedID(id), nil
	}
	r, err := plan.ParseRequirement(string(text))
	if err == nil && s.Host.Len() > 0 {
		_, err = r.Bind(s)
	}
	return NoID, err
}

// bindRow checks one row by itself and gives its plan, negative when it has none.
func (s *State) bindRow(t *DemandTable, i int, f *Faults) int32 {
	b, code := &s.scratch, t.Consumer.At(i)
	node, path := b.node[code], t.Consumer.Names
	switch {
	case node == plan.None && s.ReportUnknown:
		return planNone
	case node == plan.None:
		f.Add(i+1, "consumer", path.String(code), "no such consumer in the policy")
		return planBad
	case !s.Policy.Leaf(node):
		f.Add(i+1, "consumer", path.String(code), "has children; only leaves have demand")
		return planBad
	}
	p := b.plan[code]
	if named := t.Plan.At(i); named != Null && len(t.Plan.Names.Bytes(named)) > 0 {
		if p = b.named[named]; p == planBad {
			f.Add(i+1, "plan", t.Plan.Names.String(named), "no such plan; there are "+s.planNames(plan.None))
			return planBad
		}
		if !s.Plans[p].Terms.Member[node] {
			f.Add(i+1, "plan", t.Plan.Names.String(named),
				fmt.Sprintf("%s takes no part in this plan", path.String(code)))
			return planBad
		}
	}
	switch {
	case p == planMany:
		f.Add(i+1, "plan", "", fmt.Sprintf("%s takes part in several plans, name one of %s", path.String(code),
			s.planNames(node)))
	case p == planNone && !s.ReportUnknown:
		f.Add(i+1, "consumer", path.String(code), "takes part in no plan")
		return planBad
	}
	if t.Units[i] < 0 || t.Units[i] > NumberMax {
		f.Add(i+1, "units", fmt.Sprint(t.Units[i]), "not a whole number from 0 to 2^53")
	}
	if why := s.gangFault(t, i, p); why != "" {
		f.Add(i+1, "min_units", fmt.Sprint(t.MinUnits[i]), why)
	} else if why := s.togetherFault(t, i); why != "" {
		f.Add(i+1, "together", t.Together.Names.String(t.Together.At(i)), why)
	}
	s.bindSize(t, i, p, f)
	return p
}

// bindSize checks the size of a row's unit. In a slot plan only slots may be given
// (docs/slots.md): nothing would look at anything else.
func (s *State) bindSize(t *DemandTable, i int, p int32, f *Faults) {
	some, slots := false, p >= 0 && s.Plans[p].Slots != nil
	for d, col := range t.Size {
		if col == nil {
			continue
		}
		if col[i] < 0 || col[i] > NumberMax {
			f.Add(i+1, s.Policy.Dimensions[d], fmt.Sprint(col[i]), "not a whole number from 0 to 2^53")
		}
		if slots && col[i] != 0 && s.Policy.Dimensions[d] != "slots" {
			f.Add(i+1, s.Policy.Dimensions[d], fmt.Sprint(col[i]),
				fmt.Sprintf("plan %s counts slots, leave this empty", s.Plans[p].Name))
		}
		if p >= 0 && s.Plans[p].HasDevices() && d == s.Plans[p].MD.Device && !(s.scratch.changes && t.Units[i] == 0) {
			if why := deviceFault(&s.Plans[p], col[i]); why != "" {
				f.Add(i+1, s.Policy.Dimensions[d], fmt.Sprint(col[i]), why)
			}
		}
		some = some || col[i] > 0
	}
	if some && p >= 0 || slots {
		s.bindSmall(t, i, p, f)
	}
	if !some && p >= 0 && !slots && !(s.scratch.changes && t.Units[i] == 0) {
		f.Add(i+1, "", "", "a unit has no size: all of "+strings.Join(s.Policy.Dimensions, ", ")+" are 0")
	}
}

// bindSmall checks that a row's unit is not so small that the plan's hosts, as far as
// they are known, would hold too many of it.
func (s *State) bindSmall(t *DemandTable, i int, p int32, f *Faults) {
	if s.Accepted || s.scratch.changes && t.Units[i] == 0 {
		return
	}
	s.scratch.rows[i] = p
	size, plan := s.rowSize(t, i), &s.Plans[p]
	if slices.ContainsFunc(size, func(v int64) bool { return v < 0 }) {
		return // that is a fault already
	}
	if _, many := s.tooMany(plan, size); !many {
		return
	}
	column, value := "slots", size[0]
	if plan.MD != nil {
		d := slices.IndexFunc(size, func(v int64) bool { return v > 0 })
		column, value = s.Policy.Dimensions[d], size[d]
	}
	hosts := len(plan.sizing.hosts)
	f.Add(i+1, column, fmt.Sprint(value), fmt.Sprintf("a unit is too small: the %d hosts of plan %s would hold more "+
		"than %d of this size; ask for fewer, larger units", hosts, plan.Name, s.unitsMost(hosts)))
}

// planNames lists the plans in which a consumer takes part; None: all there are.
func (s *State) planNames(node plan.Node) string {
	var names []string
	for p := range s.Plans {
		if node == plan.None || s.Plans[p].Terms.Member[node] {
			names = append(names, s.Plans[p].Name)
		}
	}
	return strings.Join(names, ", ")
}

// duplicate is the earlier row with the same key as row i, -1 when there is none.
func (s *State) duplicate(t *DemandTable, i int) int {
	b := &s.scratch
	key := func(i int) [4]int32 {
		k := [4]int32{t.Consumer.At(i), t.Allocation.At(i), t.Sub.At(i), b.rows[i]}
		if k[2] != Null && len(t.Sub.Names.Bytes(k[2])) == 0 {
			k[2] = Null
		}
		return k
	}
	mine := key(i)
	var words [16]byte
	for at, v := range mine {
		binary.LittleEndian.PutUint32(words[4*at:], uint32(v))
	}
	mask := uint64(len(b.table) - 1)
	for h := maphash.Bytes(nameSeed, words[:]) & mask; ; h = (h + 1) & mask {
		switch j := int(b.table[h]) - 1; {
		case j < 0:
			b.table[h] = int32(i) + 1
			return -1
		case key(j) == mine:
			return j
		}
	}
}

// rowMemo is what the row before was resolved to: most rows share much with it.
type rowMemo struct {
	key   allocKey
	alloc AllocID
	shape ShapeID
}

// applyRow makes a checked row's sub-allocation what the row says, and leaves it in the scratch.
func (s *State) applyRow(src SourceID, t *DemandTable, i int, last *rowMemo) {
	b := &s.scratch
	if b.found[i] == NoID {
		b.found[i] = s.rowSub(src, t, i, last)
	}
	id, need, most, least, together := b.found[i], NeedID(NoID), plan.Unlimited, int64(1), int32(0)
	if code := t.Requirement.At(i); code != Null {
		need = s.need(t, code)
	}
	if t.MaxPerHost != nil {
		most = t.MaxPerHost[i]
	}
	if t.MinUnits != nil {
		least = max(1, min(t.MinUnits[i], t.Units[i]))
	}
	if code := t.Together.At(i); code != Null {
		together = s.label(b.together, t.Together.Names, code)
	}
	if s.Sub.Need[id] != need || s.Sub.MaxPerHost[id] != most || s.Sub.MinUnits[id] != least ||
		s.Sub.Together[id] != together {
		if s.Sub.Wanted[id] > 0 { // else it asks for nothing, or want says so
			s.note(id)
		}
		s.Sub.Need[id], s.Sub.MaxPerHost[id], s.Sub.MinUnits[id], s.Sub.Together[id] = need, most, least, together
	}
	s.Sub.seen[id] = s.snapshot
	s.want(id, t.Units[i])
}

// rowSub finds a row's sub-allocation by its keys, or adds it.
func (s *State) rowSub(src SourceID, t *DemandTable, i int, last *rowMemo) SubID {
	b := &s.scratch
	code := t.Consumer.At(i)
	var c ConsumerID
	if node := b.node[code]; node != plan.None {
		c = s.ConsumerOf[node]
	} else {
		c = s.internConsumer(t.Consumer.Names.Bytes(code))
	}
	key := allocKey{b.rows[i], c, s.label(b.alloc, t.Allocation.Names, t.Allocation.At(i))}
	if last.alloc == NoID || key != last.key {
		last.key, last.alloc = key, s.allocation(src, key)
	}
	sub := int32(0)
	if code := t.Sub.At(i); code != Null {
		sub = s.label(b.sub, t.Sub.Names, code)
	}
	shape := s.rowShape(t, i, last)
	if s.Alloc.First[last.alloc] != NoID { // else the allocation is new: a look into a large table for nothing
		if id, ok := s.subOf[subKey{last.alloc, sub, shape}]; ok {
			return id
		}
	}
	return s.newSub(subKey{last.alloc, sub, shape})
}

// label interns a table's name once and remembers it for the table's other rows.
func (s *State) label(memo []int32, names *Names, code int32) int32 {
	if memo[code] <= 0 {
		memo[code] = s.Label.Intern(names.Bytes(code)) + 1
	}
	return memo[code] - 1
}

// rowShape interns a row's size; rows of one size mostly follow one another.
func (s *State) rowShape(t *DemandTable, i int, last *rowMemo) ShapeID {
	size := s.rowSize(t, i)
	if last.shape != NoID && equal(size, s.Shape.Size(last.shape)) {
		return last.shape
	}
	last.shape = s.Shape.Intern(size)
	return last.shape
}

// rowSize is the size of a bound row's unit, in scratch memory: see Size.
func (s *State) rowSize(t *DemandTable, i int) []int64 {
	b := &s.scratch
	b.size = resize(b.size, len(t.Size))
	for d, col := range t.Size {
		b.size[d] = 0
		if col != nil {
			b.size[d] = col[i]
		}
	}
	if p := b.rows[i]; p >= 0 && s.Plans[p].Slots != nil {
		s.slotSize(b.size)
	}
	return b.size
}

// slotSize makes a row's size that of a unit of a slot plan: see Size.
func (s *State) slotSize(size []int64) {
	slots := int64(1)
	if d, ok := s.Policy.Dimension("slots"); ok {
		slots = max(slots, size[d])
	}
	clear(size)
	size[0] = slots
}

// need is the state's requirement for a table's code, parsed on first sight.
func (s *State) need(t *DemandTable, code int32) NeedID {
	b := &s.scratch
	text := t.Requirement.Names.Bytes(code)
	if b.need[code] == NoID && len(text) > 0 {
		id := NeedID(s.Need.Intern(text))
		if int(id) == len(s.Need.Parsed) {
			r, err := plan.ParseRequirement(string(text))
			if err != nil {
				panic("BUG: a requirement was accepted and does not parse: " + err.Error())
			}
			s.Need.Parsed = append(s.Need.Parsed, r)
		}
		b.need[code] = id
	}
	return b.need[code]
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/4)
	}
	return s[:n]
}

func equal(a, b []int64) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
