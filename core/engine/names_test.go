package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
)

// text writes a table down as it is read, in words.
func text(t *decision.Table) string {
	var b strings.Builder
	for row := range t.Rows {
		for i := range t.Columns {
			switch c := &t.Columns[i]; {
			case c.Type == decision.Text && c.Code[row] == decision.Null, len(c.Null) > 0 && c.Null[row]:
				b.WriteString("-")
			case c.Type == decision.Text:
				b.Write(c.Dict.Bytes(c.Code[row]))
			case c.Type == decision.Float:
				fmt.Fprint(&b, c.Float[row])
			default:
				fmt.Fprint(&b, c.Int[row])
			}
			b.WriteString(" ")
		}
		b.WriteString("\n")
	}
	return b.String()
}

// readable is all that a view gives of names.
func readable(t testing.TB, r *rig) string {
	t.Helper()
	v := r.View()
	first := v.Recent[0].Summary.Cycle - 1
	out := ""
	for _, source := range []string{"", "one", "two", "none"} {
		c, upTo, err := v.Changes(source, first, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		out += fmt.Sprintln(source, upTo, text(c))
	}
	held := strings.Split(text(&v.Holdings.Table), "\n")
	slices.Sort(held)
	out += fmt.Sprintln(held)
	shortfalls := v.Last.Shortfalls.Schema().Table()
	return out + text(&shortfalls) + v.Last.Summary.Digest
}

// TestForgetNames gives two engines the same input, of which one forgets before each cycle the names that nothing has:
// both decide the same, log the same, and give readers the same, also after a start from a checkpoint or from the
// journal.
func TestForgetNames(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var rigs [2]*rig
		for i := range rigs {
			rigs[i] = ready(t, func(r *rig) { r.o.ForgetAlways, r.o.RecentCyclesMax = i == 1, 4 })
			defer rigs[i].stop()
		}
		for range rapid.IntRange(1, 5).Draw(rt, "cycles") {
			for range rapid.IntRange(0, 3).Draw(rt, "inputs") {
				kind, source, rows := drawInput(rt)
				var said [2]string
				for i, r := range rigs {
					receipt, err := r.give(kind, source, rows, shrunk)
					said[i] = fmt.Sprint(receipt, err)
				}
				if said[0] != said[1] {
					rt.Fatalf("%s of %s:\n%s\n%s and names forgotten: %s", kind, source, rows, said[0], said[1])
				}
			}
			end := rapid.SampledFrom([]string{"", "", "", "journal", "checkpoint"}).Draw(rt, "start again")
			var read [2]string
			for i, r := range rigs {
				r.cycle()
				if end != "" {
					r.o.CheckpointAtEnd = end == "checkpoint"
					r.Engine.o.CheckpointAtEnd = r.o.CheckpointAtEnd
					r.restart()
				}
				read[i] = readable(t, r)
			}
			if read[0] != read[1] {
				rt.Fatalf("%s\nand with names forgotten\n%s", read[0], read[1])
			}
		}
		rigs[0].stop() // the log is written behind
		rigs[1].stop()
		if !slices.Equal(rigs[0].log.digests, rigs[1].log.digests) {
			rt.Fatal("the logs differ")
		}
	})
}

// drawInput draws rows of few allocations and sub-allocations, most of which come and go.
func drawInput(t *rapid.T) (kind, source, rows string) {
	source = rapid.SampledFrom([]string{"one", "two"}).Draw(t, "source")
	consumer := map[string]string{"one": "/A", "two": "/B"}[source]
	kind = rapid.SampledFrom([]string{
		InputDemand, InputDemand, InputDemandChanges, InputReleases, InputRunning, InputDemandDelete, InputPlan,
	}).Draw(t, "kind")
	switch kind {
	case InputDemandDelete:
		return kind, source, ""
	case InputPlan:
		return kind, "", policyText + "# " + fmt.Sprint(rapid.IntRange(0, 99).Draw(t, "comment")) + "\n"
	}
	names := rapid.SliceOfNDistinct(rapid.IntRange(0, 9), 0, 4, rapid.ID[int]).Draw(t, "names")
	for _, n := range names {
		units := rapid.IntRange(0, 9).Draw(t, "units")
		if name := fmt.Sprintf("%s,a%d,s%d", consumer, n/3, n); kind == InputDemand || kind == InputDemandChanges {
			least := rapid.IntRange(0, 9).Draw(t, "requirement")
			rows += fmt.Sprintf("%s,%d,1,select(ncpus > %d)\n", name, units, least)
		} else {
			rows += fmt.Sprintf("%s,h%d,%d\n", name, 1+n%2, units)
		}
	}
	if kind == InputReleases {
		source = ""
	}
	if kind == InputDemand || kind == InputDemandChanges {
		return kind, source, "consumer,allocation,sub,units,ncpus,requirement\n" + rows
	}
	return kind, source, "consumer,allocation,sub,host,units\n" + rows
}

// Names of allocations that are gone, and of sources, do not stay: not in memory, not in checkpoints, not after a
// start.
func TestNamesGo(t *testing.T) {
	r := ready(t, func(r *rig) {
		r.o.CheckpointAtEnd, r.o.RecentCyclesMax = true, 2
		r.o.SourcesMax, r.o.SourcesPerCallerMax = 100_000, 100_000
	})
	known := func() (names int) {
		if err := r.Ask(func(s *cluster.State) error { names = s.NamesKnown(); return nil }); err != nil {
			t.Fatal(err)
		}
		return names
	}
	most := 0
	for round := range 30 {
		var rows strings.Builder
		rows.WriteString("consumer,allocation,units,ncpus\n")
		for i := range 4000 {
			fmt.Fprintf(&rows, "/A,job-%d-%d,%d,1\n", round, i, i%2)
		}
		r.must(InputDemand, "one", rows.String(), shrunk)
		r.cycle()
		most = max(most, known())
	}
	r.must(InputDemand, "one", "consumer,allocation,units,ncpus\n/A,x,1,1\n", shrunk)
	for range 4 {
		r.cycle()
	}
	// Twice what a cycle has, and what is nothing to speak of, before the names are looked through; all of a round
	// stand beside those of the next.
	if limit := 2*(2*2*4000) + 1<<14 + 4*4000; most > limit {
		t.Errorf("%d names were known at once, more than %d", most, limit)
	}
	if n := known(); n > 1<<14+2*10 {
		t.Errorf("%d names of 2 allocations", n)
	}
	r.restart()
	if n := known(); n > 1<<14+2*10 {
		t.Errorf("%d names of 2 allocations after a start", n)
	}
	// What is refused leaves none behind.
	before := known()
	r.refused(BadRows, InputDemand, "new",
		"consumer,allocation,sub,units,ncpus\n/A,refused,also,1,1\n/Nobody,x,x,1,1\n")
	if n := known(); n != before {
		t.Errorf("%d names after a table that was refused, %d before", n, before)
	}
}

// Requirements that no demand has any more do not stay either.
func TestRequirementsGo(t *testing.T) {
	r := ready(t, nil)
	for round := range 8 {
		var rows strings.Builder
		rows.WriteString("consumer,allocation,units,ncpus,requirement\n")
		for i := range 500 {
			fmt.Fprintf(&rows, "/A,a%d,1,1,select(ncpus > %d)\n", i, 1000*round+i)
		}
		r.must(InputDemand, "one", rows.String(), shrunk)
		r.cycle()
	}
	r.must(InputDemand, "one", "consumer,allocation,units,ncpus,requirement\n/A,x,1,1,select(ncpus > 7)\n", shrunk)
	r.cycle()
	r.cycle()
	if err := r.Ask(func(s *cluster.State) error {
		if n := s.Need.Len(); n > 1<<10+2*2 {
			t.Errorf("%d requirements of one allocation", n)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
