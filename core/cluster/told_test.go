package cluster

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/plan"
)

// TestTold applies snapshots that resemble the ones before, and changes of them, to a state that goes by what its
// sources told last and to one that never does: they stay the same, and refuse the same.
func TestTold(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		states := [2]*State{newState(t), newState(t)}
		rows := map[string][]string{"s": drawRows(r, "s"), "o": nil}
		for _, s := range states {
			if err := s.SetHosts(hostTable("a1", "b1"), true); err != nil {
				r.Fatal(err)
			}
		}
		for range rapid.IntRange(1, 10).Draw(r, "steps") {
			source := rapid.SampledFrom([]string{"s", "s", "o"}).Draw(r, "source")
			list := drawNext(r, source, rows[source])
			table := drawTable(r, list)
			act := rapid.IntRange(0, 9).Draw(r, "act")
			var said [2]string
			for i, s := range states {
				if i == 1 {
					s.scratch = demandScratch{}
				}
				said[i] = act10(s, act, source, table)
			}
			if said[0] != said[1] {
				r.Fatalf("%s\nand when it goes by nothing\n%s", said[0], said[1])
			}
			if said[0] == "" && act < 6 {
				rows[source] = list
			}
			a, b := states[0], states[1]
			if !bytes.Equal(bytesOf(t, a), bytesOf(t, b)) || !reflect.DeepEqual(a.allocOf, b.allocOf) ||
				!reflect.DeepEqual(a.subOf, b.subOf) {
				r.Fatalf("after %q the states differ", list)
			}
		}
	})
}

// act10 does one of ten things to a state with a table, and tells what came of it.
func act10(s *State, act int, source string, table *DemandTable) string {
	var err error
	s.ReportUnknown = act&1 == 1
	switch {
	case act < 6:
		kept := s.WouldKeep(source, table)
		if err = s.SetDemand(source, table); err != nil {
			return fmt.Sprint(kept, err)
		}
	case act == 6:
		if err = s.ChangeDemand(source, table); err != nil {
			return fmt.Sprint(err)
		}
	case act == 7:
		var p *plan.Policy
		text := policyText
		if s.Revision&1 == 1 { // /R takes no part in a plan any more, or does again
			text = strings.ReplaceAll(text, "{path: /Q}, {path: /R}]", "{path: /Q}]")
		}
		if p, err = plan.Parse("policy.yaml", []byte(text)); err == nil {
			err = s.SetPolicy(p, true)
		}
		return fmt.Sprint(err)
	case act == 8:
		_ = s.AddRunning(source, running("/R s0 - a1", "/P/L s0 - a1")) // refused where it is not wanted
	default:
		s.Settle(s.NowUS)
		s.Finish(s.Cycle+1, s.NowUS)
	}
	return ""
}

// drawRows is rows of a source as demandTable takes them, with more than one sub-allocation of most allocations.
func drawRows(r *rapid.T, source string) (rows []string) {
	for i := range rapid.IntRange(0, 40).Draw(r, "rows") {
		leaf := rapid.SampledFrom([]string{"/P/L - ", "/R - ", "/Q one", "/Q two", "/S - "}).Draw(r, "leaf")
		consumer, of, _ := strings.Cut(leaf, " ")
		if of == "- " {
			of = "-"
		}
		rows = append(rows, fmt.Sprintf("%s %s%d %s %s", consumer, source, i/3,
			rapid.SampledFrom([]string{"-", "u", "v", fmt.Sprint(i)}).Draw(r, "sub"), of))
	}
	return rows
}

// drawNext is rows like others: some are gone, some are new, some have changed places, some are named twice or belong
// to somebody else, and the allocation of some has another name of the same length.
func drawNext(r *rapid.T, source string, rows []string) []string {
	next := slices.Clone(rows)
	for range rapid.IntRange(0, 3).Draw(r, "changes") {
		at := rapid.IntRange(0, len(next)).Draw(r, "at")
		switch rapid.IntRange(0, 5).Draw(r, "change") {
		case 0:
			next = slices.Delete(next, at, min(len(next), at+rapid.IntRange(1, 20).Draw(r, "gone")))
		case 1:
			next = slices.Insert(next, at, drawRows(r, fmt.Sprint(source, at))...)
		case 2:
			next = append(slices.Clone(next[at:]), next[:at]...)
		case 3:
			next = slices.Insert(next, at,
				fmt.Sprintf("%s %s%d - -", rapid.SampledFrom([]string{"/R", "/P/L", "/T", "/P"}).Draw(r, "consumer"),
					rapid.SampledFrom([]string{"s", "o"}).Draw(r, "owner"), at))
		case 4:
			for i := at; i < min(at+3, len(next)); i++ {
				f := strings.Fields(next[i])
				next[i] = strings.Join([]string{f[0], "t" + f[1][1:], f[2], f[3]}, " ")
			}
		default:
			if at < len(next) {
				next = slices.Insert(next, at+rapid.IntRange(0, len(next)-at).Draw(r, "behind"), next[at])
			}
		}
	}
	if rapid.IntRange(0, 3).Draw(r, "duplicates too") > 0 {
		seen := map[string]bool{}
		next = slices.DeleteFunc(next, func(row string) bool {
			was := seen[row]
			seen[row] = true
			return was
		})
	}
	return next
}

// drawTable is a table of rows with units and sizes, and codes that are not those of the table before.
func drawTable(r *rapid.T, rows []string) *DemandTable {
	t := demandTable(rows...)
	if len(rows) == 0 {
		t.Consumer, t.Allocation, t.Sub, t.Plan = texts(), texts(), texts(), texts()
	}
	other := rapid.IntRange(0, 9).Draw(r, "other sizes")
	for i := range t.Units {
		t.Units[i] = int64(rapid.IntRange(0, 5).Draw(r, "units"))
		if other == 0 {
			t.Size[0][i] = int64(rapid.IntRange(0, 2).Draw(r, "size"))
		}
	}
	if len(rows) > 0 && rapid.IntRange(0, 3).Draw(r, "gangs") == 0 {
		t.MinUnits = slices.Repeat([]int64{1}, len(rows))
		at := rapid.IntRange(0, len(rows)-1).Draw(r, "gang")
		t.MinUnits[at] = int64(rapid.IntRange(0, 3).Draw(r, "min_units"))
		t.Together = texts(slices.Repeat([]string{"-"}, len(rows))...)
		t.Together.Code[at] = t.Together.Names.InternString(rapid.SampledFrom([]string{"", "zone", "prefer zone",
			"prefer "}).Draw(r, "together"))
	}
	if rapid.Bool().Draw(r, "no sub is the empty one") {
		for i, code := range t.Sub.Code {
			if code == Null {
				t.Sub.Code[i] = t.Sub.Names.InternString("")
			}
		}
	}
	return t
}

// TestToldInOrder looks that rows are found by what was told: the same ones again,
// and those between which some are new or gone.
func TestToldInOrder(t *testing.T) {
	s, rows := newState(t), []string{}
	for i := range 100 {
		rows = append(rows, fmt.Sprintf("/R a%d u%d -", i/4, i))
	}
	found := func(rows []string) (n int) {
		t.Helper()
		table := demandTable(rows...)
		if s.WouldKeep("s", table); len(s.scratch.found) != len(rows) {
			t.Fatalf("%d rows of %d", len(s.scratch.found), len(rows))
		}
		for _, sub := range s.scratch.found {
			if sub != NoID {
				n++
			}
		}
		return n
	}
	if n := found(rows); n != 0 {
		t.Errorf("%d rows are known before any was told", n)
	}
	if err := s.SetDemand("s", demandTable(rows...)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		rows []string
		want int
	}{
		{"the same", rows, 100},
		{"some new", slices.Insert(slices.Clone(rows), 7, "/P/L n - -", "/R n - -"), 100},
		{"few gone", slices.Delete(slices.Clone(rows), 10, 15), 95},
		{"many gone", slices.Delete(slices.Clone(rows), 20, 60), 60},
	} {
		if n := found(c.rows); n != c.want {
			t.Errorf("%s: %d rows are known, not %d", c.name, n, c.want)
		}
	}
}

// TestToldByAnother has a sub-allocation come to the id of one that was told and is gone: its row
// may be of the key of another that was told.
func TestToldByAnother(t *testing.T) {
	s := newState(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	sized := func(units, ncpus int64, rows ...string) *DemandTable {
		d := demandTable(rows...)
		d.Units[0], d.Size[0][0] = units, ncpus
		return d
	}
	must(s.SetHosts(hostTable("a1"), true))
	must(s.SetDemand("s", demandTable("/R x - one", "/R y - one")))
	must(s.AddRunning("s", running("/R y - a1")))
	must(s.ChangeDemand("s", sized(0, 1, "/R x - one")))
	s.Settle(s.NowUS)
	s.Finish(1, s.NowUS) // the first id is free
	must(s.ChangeDemand("s", sized(1, 2, "/R y - one")))
	if s.Sub.Alloc[0] == NoID || s.Sub.Name[0] != s.Sub.Name[1] || s.Sub.Alloc[0] != s.Sub.Alloc[1] {
		t.Fatal("the sub-allocation of the other size has not the id that came free")
	}
	if err := s.SetDemand("s", sized(1, 2, "/R y - one", "/R y - one")); err == nil ||
		!strings.Contains(err.Error(), "row 1 names the same") {
		t.Errorf("two rows of one key: %v", err)
	}
}
