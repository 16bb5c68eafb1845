package cluster

import (
	"slices"
	"testing"
)

// TestChangeLogKeepsTheLatest fills the log beyond what it keeps: who knows old rows alone is told so, who knows later
// ones gets the rest.
func TestChangeLogKeepsTheLatest(t *testing.T) {
	var l ChangeLog
	for i := range logMost + 10 {
		l.add(ChangeResized, 0, ParcelID(i))
	}
	if n := int64(logMost + 10); l.Count() != n {
		t.Fatalf("%d rows so far, want %d", l.Count(), n)
	}
	if _, ok := l.Since(5); ok {
		t.Fatal("rows are there that were dropped")
	}
	row, ok := l.Since(logMost + 7)
	if got := l.Parcel.Values()[row:]; !ok || !slices.Equal(got, []ParcelID{logMost + 7, logMost + 8, logMost + 9}) {
		t.Fatalf("the last three rows are of parcels %v (%v)", got, ok)
	}
	if _, ok := l.Since(l.Count() + 1); ok {
		t.Fatal("rows are there that did not come yet")
	}
	c := l.clone()
	l.skip()
	if _, ok := l.Since(logMost + 10); ok || l.Kind.Len() != 0 {
		t.Fatal("a row that was skipped is there")
	}
	if row, ok := l.Since(logMost + 11); !ok || row != 0 {
		t.Fatalf("after the row that was skipped: %d, %v", row, ok)
	}
	if c.Count() != logMost+10 || c.Parcel.At(c.Parcel.Len()-1) != logMost+9 {
		t.Fatal("the copy changed with the log")
	}
}
