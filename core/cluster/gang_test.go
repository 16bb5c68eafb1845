package cluster

import (
	"slices"
	"testing"
)

// gangs gives a table of demand min_units, row by row.
func gangs(t *DemandTable, least ...int64) *DemandTable {
	t.MinUnits = least
	return t
}

// TestGangFaults refuses what no gang can be, also in rows that are known from the last snapshot. All rows ask for two
// units.
func TestGangFaults(t *testing.T) {
	s := newState(t)
	if err := s.SetDemand("s", demandTable("/R a - -", "/R b - -")); err != nil {
		t.Fatal(err)
	}
	s.ReportUnknown = true
	for _, c := range []struct {
		name  string
		table *DemandTable
		want  string // of the error; "": it is taken
	}{
		{"none", gangs(demandTable("/R a - -", "/R b - -"), 1, 1), ""},
		{"more than there are units", gangs(demandTable("/R a - -", "/R b - -"), 1, 3),
			`demand: row 2, column min_units, value "3": more than the 2 units of the row`},
		{"more, of a row that is new", gangs(demandTable("/R x - -"), 4),
			`demand: row 1, column min_units, value "4": more than the 2 units of the row`},
		{"more, of a consumer in no plan", gangs(demandTable("/S a - -"), 3),
			`demand: row 1, column min_units, value "3": more than the 2 units of the row`},
		{"none at all", gangs(demandTable("/R a - -"), 0),
			`demand: row 1, column min_units, value "0": not a whole number from 1 to 2^53`},
		{"below none", gangs(demandTable("/R a - -", "/R b - -"), -1, 1),
			`demand: row 1, column min_units, value "-1": not a whole number from 1 to 2^53`},
		{"all units, of a consumer in no plan", gangs(demandTable("/S a - -"), 2), ""},
	} {
		err := s.CheckDemand("s", c.table)
		if c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != c.want) {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
	}
}

// TestGangsTaken takes a gang, and a row that wants nothing whatever its min_units.
func TestGangsTaken(t *testing.T) {
	s := newState(t)
	if err := s.CheckDemand("s", gangs(demandTable("/R a - -"), 2)); err != nil {
		t.Error(err)
	}
	if err := s.CheckDemand("s", gangs(withUnits(demandTable("/R a - -"), 0), 2)); err != nil {
		t.Errorf("a row that wants nothing: %v", err)
	}
}

// withUnits has all rows want so many.
func withUnits(t *DemandTable, units int64) *DemandTable {
	for i := range t.Units {
		t.Units[i] = units
	}
	return t
}

// TestMinUnits follows the least number of a gang through snapshots, changes and what is done: it is the same
// sub-allocation, and the number is never above what is wanted, nor below 1.
func TestMinUnits(t *testing.T) {
	s := newState(t)
	s.ReportUnknown = true
	step := func(what string, do func() error, want ...int64) {
		t.Helper()
		if err := do(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got := s.Sub.MinUnits[:len(want)]; !slices.Equal(got, want) {
			t.Errorf("%s: min_units are %v, want %v", what, got, want)
		}
		copied, err := s.Copy()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got := copied.Sub.MinUnits[:len(want)]; !slices.Equal(got, want) {
			t.Errorf("%s: saved and loaded they are %v, want %v", what, got, want)
		}
		if got := s.Clone().Sub.MinUnits[:len(want)]; !slices.Equal(got, want) {
			t.Errorf("%s: of a copy they are %v, want %v", what, got, want)
		}
	}
	rows := []string{"/S a - -", "/S b - -"}
	snapshot := func(units int64, least ...int64) func() error {
		return func() error { return s.SetDemand("s", gangs(withUnits(demandTable(rows...), units), least...)) }
	}
	step("a gang and none", snapshot(9, 4, 1), 4, 1)
	step("another number", snapshot(9, 6, 2), 6, 2)
	step("without the column", snapshot(9), 1, 1)
	step("a change", func() error { return s.ChangeDemand("s", gangs(withUnits(demandTable(rows[0]), 5), 5)) }, 5, 1)
	step("units are done", func() error { s.want(0, 3); return nil }, 3, 1)
	step("and the others", func() error { s.want(0, 0); return nil }, 1, 1)
	step("nothing is wanted", snapshot(0, 7, 7), 1, 1)
	step("it comes again", snapshot(8, 8, 7), 8, 7)
	step("it is gone", func() error { return s.SetDemand("s", demandTable(rows[0])) }, 1, 1)
}

// TestStirredByGang stirs a plan in which a gang's least number is another than in the last cycle, unless it is what it
// was again.
func TestStirredByGang(t *testing.T) {
	s := newState(t)
	if err := s.SetDemand("s", demandTable("/R a - -")); err != nil {
		t.Fatal(err)
	}
	s.heed()
	for _, c := range []struct {
		least []int64
		want  bool
	}{{[]int64{2}, true}, {[]int64{2, 1}, false}} {
		s.Plans[0].Stirred = false
		for _, n := range c.least {
			if s.Sub.MinUnits[0] != n {
				s.note(0)
				s.Sub.MinUnits[0] = n
			}
		}
		s.heed()
		if got := s.Plans[0].Stirred; got != c.want {
			t.Errorf("min_units become %v: stirred is %v, want %v", c.least, got, c.want)
		}
		s.Sub.MinUnits[0] = 1
	}
}

// TestKeepsOfGang tells the shrink guard that a table keeps nothing of a gang that it breaks.
func TestKeepsOfGang(t *testing.T) {
	s := newState(t)
	if err := s.SetHosts(hostTable("a1"), true); err != nil {
		t.Fatal(err)
	}
	if err := s.SetDemand("s", demandTable("/R a - -")); err != nil {
		t.Fatal(err)
	}
	if err := s.AddRunning("s", running("/R a - a1")); err != nil {
		t.Fatal(err)
	}
	held := s.HeldBy("s")
	if held == 0 {
		t.Fatalf("%d units are held", held)
	}
	for _, c := range []struct{ units, least, want int64 }{{held, 1, held}, {held + 1, held + 1, 0}} {
		table := gangs(withUnits(demandTable("/R a - -"), c.units), c.least)
		if kept := s.WouldKeep("s", table); kept != c.want {
			t.Errorf("%d units, at least %d: %d are kept, want %d", c.units, c.least, kept, c.want)
		}
	}
}
