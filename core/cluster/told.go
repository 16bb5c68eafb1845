package cluster

import (
	"bytes"

	"github.com/stintd/stint/core/plan"
)

// told is what a source's last snapshot said. A site sends mostly the same rows again and again, in the same
// order: where a row names what the one told next did, its sub-allocation is known, and that no other row of the
// table names it, without a look at any key.
type told struct {
	sub []SubID // by row
	// State.sequence then: a sub-allocation that came later has a higher number, also where it took an id over
	sequence int64
}

// follower goes along a source's last snapshot while a table is bound.
type follower struct {
	told *told // nil: there is nothing to go by
	src  SourceID
	next int // row that is expected next
}

// ahead is how many rows of the last snapshot a row is compared with: so many that are gone are passed over.
const ahead = 8

// unasked is the node of a consumer code that was not looked for yet.
const unasked plan.Node = plan.None - 1

// follow has rows of a source's table be compared with its last snapshot. Nothing is kept where two sizes are one, or
// where a key finds another allocation than the one that has it, as may be after a revision.
func (s *State) follow(source string) (f follower) {
	src, ok := s.Source.Find([]byte(source))
	if ok && int(src) < len(s.scratch.told) && len(s.Shape.of) == s.Shape.Len() && !s.anyHidden() {
		f.told, f.src = &s.scratch.told[src], SourceID(src)
	}
	return f
}

// remember keeps the sub-allocations of a snapshot's rows, which the scratch has, as what a source told last.
func (s *State) remember(src SourceID) {
	b := &s.scratch
	for len(b.told) <= int(src) {
		b.told = append(b.told, told{})
	}
	t := &b.told[src]
	t.sub, b.found, t.sequence = b.found, t.sub, s.sequence
	b.place = resize(b.place, len(s.Sub.Source))
	for i, sub := range t.sub {
		b.place[sub] = int32(i)
	}
}

// repeats finds the rows that name what the source's last snapshot named in their places, without any fault: as most
// do. What they name is in the scratch then, NoID for all others, which are looked at one by one; no other row can be
// found to name it. The two halves of the rows are done at once. O(rows).
func (s *State) repeats(f *follower, t *DemandTable) {
	b := &s.scratch
	for i := range b.found {
		b.found[i] = NoID
	}
	if f.told == nil {
		return
	}
	n := min(t.Rows, len(f.told.sub))
	s.both(n >= repeatsMin, func() { s.repeatsIn(f, t, 0, n/2) }, func() { s.repeatsIn(f, t, n/2, n) })
}

// repeatsMin is from how many rows on two halves at once are worth it.
const repeatsMin = 1 << 10

// repeatsIn is repeats for rows from one to another. It writes nothing but their places in the scratch.
func (s *State) repeatsIn(f *follower, t *DemandTable, from, to int) {
	b, u := &s.scratch, &s.Sub
	var who, alloc, name spelt
	only := int32(planNone)
	for i := from; i < to; i++ {
		sub := f.told.sub[i]
		a := u.Alloc[sub]
		if a == NoID || u.Seq[sub] > f.told.sequence || u.Source[sub] != f.src || t.Units[i] < 0 ||
			t.Units[i] > NumberMax {
			continue
		}
		changed, same := who.is(&t.Consumer, i, &s.Consumer, int32(u.Consumer[sub]))
		if changed {
			only = s.onlyPlan(s.NodeOf[u.Consumer[sub]])
		}
		p := only
		if code := t.Plan.At(i); code != Null && len(t.Plan.Names.Bytes(code)) > 0 {
			p = b.named[code]
		}
		if !same || p < 0 || p != u.Plan[sub] || s.Plans[p].Slots != nil || !s.isSized(t, i, u.Shape[sub]) ||
			s.gangFault(t, i, p) != "" || s.togetherFault(t, i) != "" {
			continue
		}
		if _, same = alloc.is(&t.Allocation, i, &s.Label, s.Alloc.Name[a]); !same {
			continue
		}
		if _, same = name.is(&t.Sub, i, &s.Label, u.Name[sub]); same {
			b.found[i], b.rows[i] = sub, p
		}
	}
}

// spelt is what a row was found to name in a column of text: the next mostly names
// the same, or is the next one that is told.
type spelt struct {
	known bool
	same  bool
	code  int32
	id    int32
}

// is tells whether a row names in a column what stands for an id, and whether
// that was not what the row before was asked.
func (o *spelt) is(c *TextColumn, row int, names *Names, id int32) (changed, same bool) {
	code := c.At(row)
	if o.known && code == o.code && id == o.id {
		return false, o.same
	}
	*o = spelt{true, code == Null && id == 0 || code != Null && bytes.Equal(c.Names.Bytes(code), names.Bytes(id)), code,
		id}
	return true, o.same
}

// isSized tells whether a row's unit is of a shape. Shapes have some size.
func (s *State) isSized(t *DemandTable, i int, shape ShapeID) bool {
	for d, amount := range s.Shape.Size(shape) {
		if col := t.Size[d]; col == nil && amount != 0 || col != nil && col[i] != amount {
			return false
		}
	}
	return true
}

// expected is the sub-allocation that the next row should name, NoID when nothing is expected.
func (f *follower) expected() SubID {
	if f.told == nil || f.next >= len(f.told.sub) {
		return NoID
	}
	return f.told.sub[f.next]
}

// match gives the sub-allocation that row i of a table names when it is one
// that the last snapshot named next, NoID else.
func (s *State) match(f *follower, t *DemandTable, i int) SubID {
	if f.told == nil || s.scratch.rows[i] < 0 {
		return NoID
	}
	for at := f.next; at < min(f.next+ahead, len(f.told.sub)); at++ {
		sub := f.told.sub[at]
		if at < t.Rows && s.scratch.found[at] == sub {
			continue // by its own row
		}
		if s.names(f, t, i, sub) {
			f.next = at + 1
			return sub
		}
	}
	return NoID
}

// resume goes on behind rows that are gone, to the first of an allocation. It is false when the
// last snapshot had it before, or not at all.
func (s *State) resume(f *follower, a AllocID) bool {
	b, sub := &s.scratch, s.Alloc.First[a]
	if f.told == nil || sub == NoID || int(sub) >= len(b.place) {
		return false
	}
	at := int(b.place[sub])
	if at < f.next+ahead || at >= len(f.told.sub) || f.told.sub[at] != sub {
		return false
	}
	f.next = at
	return true
}

// names tells whether a row names a sub-allocation that the last snapshot named, its size included.
func (s *State) names(f *follower, t *DemandTable, i int, sub SubID) bool {
	b, u := &s.scratch, &s.Sub
	a := u.Alloc[sub]
	if a == NoID || u.Seq[sub] > f.told.sequence || u.Source[sub] != f.src || u.Plan[sub] != b.rows[i] ||
		u.Consumer[sub] != s.ConsumerOf[b.node[t.Consumer.At(i)]] ||
		!s.isLabel(b.alloc, t.Allocation.Names, t.Allocation.At(i), s.Alloc.Name[a]) ||
		!s.isLabel(b.sub, t.Sub.Names, t.Sub.At(i), u.Name[sub]) {
		return false
	}
	return equal(s.rowSize(t, i), s.Shape.Size(u.Shape[sub]))
}

// isLabel tells whether a code of a table's names stands for a label, and notes it when it does.
func (s *State) isLabel(memo []int32, names *Names, code, label int32) bool {
	switch {
	case code == Null:
		return label == 0
	case memo[code] == 0 && bytes.Equal(names.Bytes(code), s.Label.Bytes(label)):
		memo[code] = label + 1
	}
	return memo[code] == label+1
}

// lookUp gives a table's code the label that its name has, unless it has it already; -1 in
// the memo: the state has no such label yet.
func (s *State) lookUp(memo []int32, names *Names, code int32) {
	if code == Null || memo[code] != 0 {
		return
	}
	memo[code] = -1
	if label, ok := s.Label.Find(names.Bytes(code)); ok {
		memo[code] = label + 1
	}
}
