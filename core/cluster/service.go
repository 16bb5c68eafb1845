package cluster

import (
	"fmt"
	"slices"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// Frozen is the names as they are now, for readers of other goroutines: names added later do not show in it. The memory
// is shared. It finds nothing by name. O(1).
func (n *Names) Frozen() *Names {
	return &Names{bytes: n.bytes[:len(n.bytes):len(n.bytes)], end: n.end[:len(n.end):len(n.end)]}
}

// CheckPolicy tells whether SetPolicy would take a policy, and changes nothing. O(everything).
func (s *State) CheckPolicy(p *plan.Policy, forced bool) error {
	_, err := s.checkPolicy(p, forced)
	return err
}

// CheckDemand tells whether SetDemand would take a table, and changes nothing. O(rows).
func (s *State) CheckDemand(source string, t *DemandTable) error {
	f := Faults{Table: t.title()}
	s.bindDemand(source, t, &f)
	return f.Err()
}

// ChangeDemand applies changes to what a source said before: rows are added, or replace what has their key; a row with
// 0 units takes its sub-allocation away. Units held beyond what is wanted now are released by the next cycle (CYC-5).
// It is refused as a table of SetDemand is, save that a row with 0 units needs no size. O(rows).
func (s *State) ChangeDemand(source string, t *DemandTable) error {
	if len(t.Size) != len(s.Policy.Dimensions) {
		panic(fmt.Sprintf("BUG: a demand table with %d dimensions, the policy has %d", len(t.Size),
			len(s.Policy.Dimensions)))
	}
	f := Faults{Table: t.title()}
	s.scratch.changes = true
	s.bindDemand(source, t, &f)
	s.scratch.changes = false
	if err := f.Err(); err != nil {
		return err
	}
	src := SourceID(s.Source.InternString(source))
	s.snapshot++
	last, by := rowMemo{alloc: NoID, shape: NoID}, namesakes{s: s}
	for i := range t.Rows {
		kept := SubID(NoID)
		if t.Units[i] > 0 {
			s.applyRow(src, t, i, &last)
			kept = s.scratch.found[i]
		}
		s.dropNamesakes(&by, t, i, kept)
	}
	return nil
}

// find is the sub-allocation of a bound row, its size included; NoID when there is none.
func (s *State) find(t *DemandTable, i int) SubID {
	a, name := s.findAlloc(t, i)
	if a == NoID {
		return NoID
	}
	if shape, ok := s.Shape.find(s.rowSize(t, i)); ok && len(s.Shape.of) == s.Shape.Len() {
		if q, ok := s.subOf[subKey{a, name, shape}]; ok {
			return q
		}
		return NoID
	}
	size := s.rowSize(t, i)
	for q := s.Alloc.First[a]; q != NoID; q = s.Sub.Next[q] { // two sizes may be one since dimensions went
		if s.Sub.Name[q] == name && equal(size, s.Size(q)) {
			return q
		}
	}
	return NoID
}

// findAlloc is the allocation of a bound row, NoID when there is none, and the label of its sub-allocation.
func (s *State) findAlloc(t *DemandTable, i int) (a AllocID, name int32) {
	b := &s.scratch
	code := t.Consumer.At(i)
	c := ConsumerID(NoID)
	if node := b.node[code]; node != plan.None {
		c = s.ConsumerOf[node]
	} else if id, ok := s.Consumer.Find(t.Consumer.Names.Bytes(code)); ok {
		c = ConsumerID(id)
	}
	label := b.alloc[t.Allocation.At(i)] - 1
	if sub := t.Sub.At(i); sub != Null {
		name = b.sub[sub] - 1
	}
	if c == NoID || label < 0 || name < 0 {
		return NoID, 0
	}
	a, ok := s.allocOf[allocKey{b.rows[i], c, label}]
	if !ok {
		return NoID, 0
	}
	return a, name
}

// dropNamesakes has sub-allocations of a row's name want nothing any more, but the one kept.
func (s *State) dropNamesakes(by *namesakes, t *DemandTable, i int, kept SubID) {
	var a AllocID
	var name int32
	if kept != NoID {
		a, name = s.Sub.Alloc[kept], s.Sub.Name[kept]
	} else if a, name = s.findAlloc(t, i); a == NoID {
		return
	}
	if first := s.Alloc.First[a]; first == kept && s.Sub.Next[first] == NoID {
		return // it has no other
	}
	for _, q := range by.find(a, name) {
		if q != kept && s.Sub.seen[q] != unnamed {
			s.Sub.seen[q] = unnamed
			s.want(q, 0)
		}
	}
}

// HeldBy is how many units the sub-allocations of a source hold. O(those).
func (s *State) HeldBy(source string) (units int64) {
	src, ok := s.Source.Find([]byte(source))
	if !ok {
		return 0
	}
	s.eachOfSource(SourceID(src), func(sub SubID) { units += s.Sub.Held[sub] })
	return units
}

// WouldKeep is how many of the units that a source holds it would keep with a table of demand (API-6, the shrink
// guard). A table with faults keeps nothing: it will be refused anyway. O(rows).
func (s *State) WouldKeep(source string, t *DemandTable) (units int64) {
	f := Faults{}
	s.bindDemand(source, t, &f)
	if f.Count > 0 {
		return 0
	}
	for i, sub := range s.scratch.found {
		if sub == NoID {
			sub = s.find(t, i)
		}
		if sub == NoID {
			continue
		}
		// else the gang is broken (REQ-3)
		if kept := min(s.Sub.Held[sub], t.Units[i]); t.MinUnits == nil || kept >= t.MinUnits[i] {
			units += kept
		}
	}
	return units
}

// bindRunning resolves what a table says is running of a source: its rows, and the units of each. Sums saturate at
// 2^53.
func (s *State) bindRunning(source string, t *HoldingTable) (
	rows []boundHolding, units map[boundHolding]int64, err error,
) {
	f := Faults{Table: t.title()}
	rows, units = s.bindHoldings(t, runs, &f), map[boundHolding]int64{}
	src, known := s.Source.Find([]byte(source))
	for i, r := range rows {
		if r.sub == NoID {
			continue
		}
		rows[i].parcel = s.Plans[s.Sub.Plan[r.sub]].Parcels.Begin(r.parcel)
		r = rows[i]
		if !known || s.Sub.Source[r.sub] != SourceID(src) {
			f.Add(i+1, "allocation", t.Allocation.Names.String(t.Allocation.At(i)),
				fmt.Sprintf("belongs to another source than %q", source))
			continue
		}
		units[r] = min(units[r]+t.Units[i], NumberMax)
	}
	return rows, units, f.Err()
}

// WouldRun is how many units a source would hold by a table of what is running (API-6, the shrink guard). It saturates
// at 2^53. Errors are those of SetRunning. O(rows).
func (s *State) WouldRun(source string, t *HoldingTable) (units int64, err error) {
	_, by, err := s.bindRunning(source, t)
	for _, n := range by {
		units = min(units+n, NumberMax)
	}
	return units, err
}

// SetRunning makes what a source holds what a table says is running (SPEC chapter 7, a resynchronisation): units held
// that the table does not name are released, units named that are not held are held as if just granted, in row order.
// What a host then holds beyond its capacity, CYC-5 takes in the next cycle. It is refused as AddRunning is, but for
// want of room. O(holdings).
func (s *State) SetRunning(source string, t *HoldingTable) (released, added int64, err error) {
	rows, left, err := s.bindRunning(source, t)
	src, known := s.Source.Find([]byte(source))
	if err != nil || !known {
		return 0, 0, err
	}
	var holding []SubID
	s.eachOfSource(SourceID(src), func(sub SubID) {
		if s.Sub.Held[sub] > 0 {
			holding = append(holding, sub)
		}
	})
	slices.Sort(holding)
	for _, sub := range holding {
		newest := s.newestFirst(nil, sub)
		for i := len(newest) - 1; i >= 0; i-- { // the oldest stay
			q := newest[i]
			key := boundHolding{sub, s.Plans[s.Sub.Plan[sub]].Parcels.Begin(s.Holding.Parcel[q])}
			have := s.Holding.Units[q]
			stays := min(have, left[key])
			left[key] -= stays
			if have > stays {
				released += have - stays
				s.release(q, have-stays, decision.CauseClient)
			}
		}
	}
	for _, r := range rows {
		units := left[r]
		if units <= 0 {
			continue
		}
		left[r] = 0
		p := &s.Plans[s.Sub.Plan[r.sub]]
		for _, to := range s.spread(p, r.sub, r.parcel, units) {
			s.run(r.sub, to.parcel, to.units)
			p.Changed = append(p.Changed, to.parcel)
		}
		p.Dirty = true
		s.excess = append(s.excess, r.sub)
		added += units
	}
	return released, added, nil
}

// Silence has a source get no new grants until its next snapshot; what it holds stays (API-6, source_ttl).
func (s *State) Silence(source string) {
	if src, ok := s.Source.Find([]byte(source)); ok && !s.isSilent(SourceID(src)) {
		s.silent = append(s.silent, SourceID(src))
	}
}

// RemoveSource has a source want nothing any more, and be heard: what it holds is released by the next cycle (CYC-5).
// O(sub-allocations).
func (s *State) RemoveSource(source string) {
	id, ok := s.Source.Find([]byte(source))
	if !ok {
		return
	}
	src := SourceID(id)
	s.heard(src)
	if int(src) < len(s.scratch.told) {
		s.scratch.told[src] = told{}
	}
	for sub := range s.Sub.Live() {
		if s.Sub.Source[sub] == src && s.Sub.seen[sub] != unnamed {
			s.Sub.seen[sub] = unnamed
			s.want(sub, 0)
		}
	}
}

// BusySources are the names of the sources that have allocations. O(allocations).
func (s *State) BusySources() map[string]bool {
	has := make([]bool, s.Source.Len())
	for a := range s.Alloc.Live() {
		has[s.Alloc.Source[a]] = true
	}
	names := map[string]bool{}
	for src, is := range has {
		if is {
			names[s.Source.String(int32(src))] = true
		}
	}
	return names
}

// SilentSources are the names of the sources that are silenced.
func (s *State) SilentSources() map[string]bool {
	names := make(map[string]bool, len(s.silent))
	for _, src := range s.silent {
		names[s.Source.String(int32(src))] = true
	}
	return names
}

// Silent tells whether a source is silenced.
func (s *State) Silent(source string) bool {
	src, ok := s.Source.Find([]byte(source))
	return ok && s.isSilent(SourceID(src))
}

func (s *State) isSilent(src SourceID) bool {
	for _, o := range s.silent {
		if o == src {
			return true
		}
	}
	return false
}

// heard ends the silence of a source.
func (s *State) heard(src SourceID) {
	for i, o := range s.silent {
		if o == src {
			s.silent = append(s.silent[:i], s.silent[i+1:]...)
			return
		}
	}
}

// hush has silent sources want no more than they hold. It ends settle: what comes back is not asked for again.
// O(sub-allocations) while a source is silent.
func (s *State) hush() {
	if len(s.silent) == 0 {
		return
	}
	silent := make([]bool, s.Source.Len())
	for _, src := range s.silent {
		silent[src] = true
	}
	for sub := range s.Sub.Live() {
		if !s.Sub.Orphan[sub] && s.Sub.Wanted[sub] > s.Sub.Held[sub] && silent[s.Sub.Source[sub]] {
			s.want(sub, s.Sub.Held[sub])
		}
	}
}

// AllocConsumers calls visit once for every consumer that a source has demand for or holdings of, in no order. O(its
// sub-allocations).
func (s *State) AllocConsumers(source string, visit func(ConsumerID)) {
	src, ok := s.Source.Find([]byte(source))
	if !ok {
		return
	}
	seen := map[ConsumerID]bool{}
	s.eachOfSource(SourceID(src), func(sub SubID) {
		if c := s.Sub.Consumer[sub]; !seen[c] {
			seen[c] = true
			visit(c)
		}
	})
}

// reserve makes room for a table of demand that is much longer than what there is, so that thirty columns and three
// hash tables do not grow step by step.
func (s *State) reserve(rows int) {
	l, b := &s.Alloc, &s.Sub
	if rows < 1024 || rows < 2*(len(b.Source)-len(b.free)) {
		return
	}
	s.Label.Reserve(rows)
	if len(s.allocOf) == 0 && len(s.subOf) == 0 {
		s.allocOf, s.subOf = make(map[allocKey]AllocID, rows), make(map[subKey]SubID, rows)
	}
	l.Plan, l.Consumer, l.Source = slices.Grow(l.Plan, rows), slices.Grow(l.Consumer, rows), slices.Grow(l.Source, rows)
	l.Name, l.Arrival, l.First = slices.Grow(l.Name, rows), slices.Grow(l.Arrival, rows), slices.Grow(l.First, rows)
	l.Last, l.Next, l.prev = slices.Grow(l.Last, rows), slices.Grow(l.Next, rows), slices.Grow(l.prev, rows)
	b.Source, b.Plan, b.Consumer = slices.Grow(b.Source, rows), slices.Grow(b.Plan, rows), slices.Grow(b.Consumer, rows)
	b.Alloc, b.Name, b.Shape = slices.Grow(b.Alloc, rows), slices.Grow(b.Name, rows), slices.Grow(b.Shape, rows)
	b.Need, b.MaxPerHost = slices.Grow(b.Need, rows), slices.Grow(b.MaxPerHost, rows)
	b.MinUnits = slices.Grow(b.MinUnits, rows)
	b.Together, b.Wanted = slices.Grow(b.Together, rows), slices.Grow(b.Wanted, rows)
	b.Held, b.Pair, b.First = slices.Grow(b.Held, rows), slices.Grow(b.Pair, rows), slices.Grow(b.First, rows)
	b.Next, b.Seq, b.Orphan = slices.Grow(b.Next, rows), slices.Grow(b.Seq, rows), slices.Grow(b.Orphan, rows)
	b.FirstSeen, b.Turns = slices.Grow(b.FirstSeen, rows), slices.Grow(b.Turns, rows)
	b.seen, b.noted = slices.Grow(b.seen, rows), slices.Grow(b.noted, rows)
	b.prev, b.after, b.before = slices.Grow(b.prev, rows), slices.Grow(b.after, rows), slices.Grow(b.before, rows)
}

// CheckChanges tells whether ChangeDemand would take a table, and changes nothing. O(rows).
func (s *State) CheckChanges(source string, t *DemandTable) error {
	s.scratch.changes = true
	defer func() { s.scratch.changes = false }()
	return s.CheckDemand(source, t)
}

// CheckRelease tells whether Release would take a table, and changes nothing. O(rows).
func (s *State) CheckRelease(t *HoldingTable) error {
	f := Faults{Table: t.title()}
	s.bindHoldings(t, givenBack, &f)
	t.devices(&f)
	return f.Err()
}
