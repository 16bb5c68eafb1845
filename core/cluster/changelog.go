package cluster

import (
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/plan"
)

// Change is what a row of the change log tells.
type Change uint8

// The changes. A row adds its units to what a sub-allocation holds on a parcel under a label, and its leaving to what
// of that is under reclaim; both may be below 0.
const (
	ChangeGranted    Change = iota // units that came; below 0: units that a cycle granted and took back before its end
	ChangeReleased                 // units that went, and as many under reclaim where they were
	ChangeReclaimed                // units that were put under reclaim
	ChangeCancelled                // units that stay
	ChangeRelabelled               // units that count as something else: a row of what they were, one of what they are
	// the capacity or state of a parcel is another; the row has a plan and a parcel alone
	ChangeResized
	ChangeKept // what sets keep of a parcel is another; as ChangeResized
	// parcels have other numbers: what is known of the plan (NoID: of all) is to be made anew
	ChangeRelaid
)

// ChangeLog is what happened to holdings and hosts, a row for each change in the order in which they came, as columns.
// Rows are numbered from the state's beginning on; the latest rows are kept, at most logMost of them. Who follows the
// log and finds that rows are missing makes anew what it keeps, which costs less than that many rows.
type ChangeLog struct {
	Kind         column.Vector[Change]
	Plan         column.Vector[int32]
	Leaf         column.Vector[plan.Node] // for whom the units count; of orphans the root
	Sub          column.Vector[SubID]
	Shape        column.Vector[ShapeID]
	Parcel       column.Vector[ParcelID]
	Pool, Lender column.Vector[ConsumerID]
	Units        column.Vector[int64]
	Leaving      column.Vector[int64]

	gone int64 // rows that are not kept any more, all before those that are
}

// logMost is how many rows of the log are kept, at most; at least half of it are.
const logMost = 1 << 16

// Count is how many rows there were so far.
func (l *ChangeLog) Count() int64 { return l.gone + int64(l.Kind.Len()) }

// Since is at which row of the columns the changes after the first so many begin. It is not ok when some of them are
// not kept.
func (l *ChangeLog) Since(count int64) (row int, ok bool) {
	if count < l.gone || count > l.Count() {
		return 0, false
	}
	return int(count - l.gone), true
}

// Follow is Since for who knows the parcels of a plan: it is not ok, either, when a later row says that these have
// other numbers.
func (l *ChangeLog) Follow(count int64, p int32) (row int, ok bool) {
	row, ok = l.Since(count)
	for i := row; ok && i < l.Kind.Len(); i++ {
		ok = l.Kind.At(i) != ChangeRelaid || l.Plan.At(i) != p && l.Plan.At(i) != NoID
	}
	return row, ok
}

// columns are all columns of the log.
func (l *ChangeLog) columns() []interface{ Drop(rows int) } {
	return []interface{ Drop(rows int) }{
		&l.Kind, &l.Plan, &l.Leaf, &l.Sub, &l.Shape, &l.Parcel, &l.Pool, &l.Lender, &l.Units, &l.Leaving,
	}
}

// drop forgets the first rows.
func (l *ChangeLog) drop(rows int) {
	for _, c := range l.columns() {
		c.Drop(rows)
	}
	l.gone += int64(rows)
}

// skip forgets all rows, and that one more came.
func (l *ChangeLog) skip() {
	l.drop(l.Kind.Len())
	l.gone++
}

// add adds a row without units: see ChangeResized, ChangeKept and ChangeRelaid.
func (l *ChangeLog) add(kind Change, p int32, k ParcelID) {
	l.append(kind, p, plan.None, NoID, NoID, k, NoID, NoID, 0, 0)
}

func (l *ChangeLog) append(kind Change, p int32, leaf plan.Node, sub SubID, shape ShapeID, k ParcelID,
	pool, lender ConsumerID, units, leaving int64,
) {
	if l.Kind.Len() == logMost {
		l.drop(logMost / 2)
	}
	l.Kind.Add(kind)
	l.Plan.Add(p)
	l.Leaf.Add(leaf)
	l.Sub.Add(sub)
	l.Shape.Add(shape)
	l.Parcel.Add(k)
	l.Pool.Add(pool)
	l.Lender.Add(lender)
	l.Units.Add(units)
	l.Leaving.Add(leaving)
}

// clone is a copy of the log.
func (l *ChangeLog) clone() ChangeLog {
	return ChangeLog{
		l.Kind.Clone(), l.Plan.Clone(), l.Leaf.Clone(), l.Sub.Clone(), l.Shape.Clone(), l.Parcel.Clone(),
		l.Pool.Clone(), l.Lender.Clone(), l.Units.Clone(), l.Leaving.Clone(), l.gone,
	}
}

// record notes that units of a sub-allocation on a parcel under a label came or went, or that their reclaim did. O(1).
func (s *State) record(kind Change, sub SubID, k ParcelID, pool, lender ConsumerID, units, leaving int64) {
	s.Changes.append(kind, s.Sub.Plan[sub], s.leafOf(sub), sub, s.Sub.Shape[sub], k, pool, lender, units, leaving)
}

// recordOf is record for units of a holding, with its parcel and label as they are.
func (s *State) recordOf(kind Change, q HoldingID, units, leaving int64) {
	h := &s.Holding
	s.record(kind, h.Sub[q], h.Parcel[q], h.Pool[q], h.Lender[q], units, leaving)
}
