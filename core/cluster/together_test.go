package cluster

import (
	"slices"
	"strings"
	"testing"

	"github.com/stintd/stint/core/plan"
)

// apart gives a table of demand the column together, row by row, and has all rows be gangs of two.
func apart(t *DemandTable, by ...string) *DemandTable {
	t.Together = texts(by...)
	return gangs(t, slices.Repeat([]int64{2}, t.Rows)...)
}

// TestTogetherFaults refuses gangs that cannot be together, also in rows that are known from the last snapshot. All
// rows ask for two units.
func TestTogetherFaults(t *testing.T) {
	s := newState(t)
	hosts := hostTable("a1", "b1")
	hosts.Attr = append(hosts.Attr,
		AttrColumn{Name: "row", Kind: plan.Number, Valid: []bool{true, true}, Number: []float64{1, 2}},
		AttrColumn{Name: "fast", Kind: plan.Boolean, Valid: []bool{true, true}, Bool: []bool{true, false}})
	if err := s.SetHosts(hosts, true); err != nil {
		t.Fatal(err)
	}
	if err := s.SetDemand("s", demandTable("/R a - -")); err != nil {
		t.Fatal(err)
	}
	const places = " is no attribute that tells places apart: name one that is text or numbers"
	const form = "write the name of an attribute of hosts, such as rack, or prefer and a name"
	single := func(t *DemandTable) *DemandTable { return gangs(t, 1) }
	for _, c := range []struct {
		table *DemandTable
		want  string // of the error behind the value; "": it is taken
	}{
		{apart(demandTable("/R a - -"), "zone"), ""},
		{apart(demandTable("/R a - -"), "prefer zone"), ""},
		{apart(demandTable("/R a - -"), "row"), ""},
		{apart(demandTable("/R a - -"), "host"), ""},
		{apart(demandTable("/R a - -"), ""), ""},
		{single(apart(demandTable("/R a - -"), "")), ""},
		{withUnits(single(apart(demandTable("/R a - -"), "zone")), 0), ""},
		{single(apart(demandTable("/R a - -"), "zone")),
			"only units of a gang are together: give min_units, more than 1"},
		{single(apart(demandTable("/R b - -"), "zone")),
			"only units of a gang are together: give min_units, more than 1"},
		{apart(demandTable("/R a - -"), "shelf"), "no host has an attribute shelf; there are host, row, zone"},
		{apart(demandTable("/R a - -"), "prefer shelf"), "no host has an attribute shelf; there are host, row, zone"},
		{apart(demandTable("/R a - -"), "state"), "state" + places},
		{apart(demandTable("/R a - -"), "ncpus"), "ncpus" + places},
		{apart(demandTable("/R a - -"), "fast"), "fast" + places},
		{apart(demandTable("/R a - -"), "prefer "), form},
		{apart(demandTable("/R a - -"), " zone"), form},
		{apart(demandTable("/R a - -"), "prefer  zone"), form},
	} {
		err := s.CheckDemand("s", c.table)
		by := c.table.Together.Names.String(0)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%q: %v", by, err)
		case c.want != "" && (err == nil || err.Error() != `demand: row 1, column together, value "`+by+`": `+c.want):
			t.Errorf("%q: got %v, want %s", by, err, c.want)
		}
	}
}

// TestTogether follows by what gangs are together through snapshots, and when names are forgotten.
func TestTogether(t *testing.T) {
	s := newState(t)
	s.ReportUnknown = true
	rows := []string{"/S a - -", "/S b - -"}
	for _, by := range [][]string{{"zone", "prefer zone"}, {"-", "zone"}, {"zone", "zone"}} {
		if err := s.SetDemand("s", apart(demandTable(rows...), by...)); err != nil {
			t.Fatal(err)
		}
		s.Forget(nil)
		copied, err := s.Copy()
		if err != nil {
			t.Fatal(err)
		}
		for what, s := range map[string]*State{"it": s, "saved and loaded": copied, "a copy": s.Clone()} {
			for sub, want := range by {
				if got := s.Label.String(s.Sub.Together[sub]); got != strings.Trim(want, "-") {
					t.Errorf("%s: together by %q, want %q", what, got, want)
				}
			}
		}
	}
}
