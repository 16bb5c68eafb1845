package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stintd/stint/core/decision"
)

// TestPages reads changes in parts of each size: they are the rows of the whole, in order.
func TestPages(t *testing.T) {
	r := ready(t, nil)
	r.cycle()
	r.must(InputDemand, "one", "consumer,allocation,units,ncpus\n/A,a,3,1\n/A,x,1,2\n/A,y,2,1\n")
	r.cycle()
	r.cycle()
	r.must(InputDemand, "two", "consumer,allocation,units,ncpus\n/B,b,5,1\n/B,c,2,1\n")
	r.cycle()
	lines := func(t *decision.Table) (lines []string) {
		for row := range t.Rows {
			line := ""
			for _, c := range t.Columns {
				switch {
				case c.Type == decision.Text && c.Code[row] != decision.Null:
					line += " " + string(c.Dict.Bytes(c.Code[row]))
				case c.Type != decision.Text:
					line += fmt.Sprint(" ", c.Int[row])
				}
			}
			lines = append(lines, line)
		}
		return lines
	}
	for _, source := range []string{"", "one", "two", "nobody"} {
		whole, upTo, err := r.View().Changes(source, 0, 1000)
		if err != nil || upTo != 4 {
			t.Fatal(upTo, err)
		}
		for size := 1; size < 9; size++ {
			p, err := r.View().Pages(source, 0, 1000)
			if err != nil || p.Rows() < whole.Rows {
				t.Fatal(p.Rows(), err)
			}
			var got []string
			for p.More() {
				part, err := p.Next(r.View(), size)
				if err != nil || part.Rows > size {
					t.Fatalf("%d rows of %d, %v", part.Rows, size, err)
				}
				got = append(got, lines(part)...)
			}
			if want := lines(whole); strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("changes of %q in parts of %d:\n%s\nas one:\n%s", source, size, strings.Join(got, "\n"),
					strings.Join(want, "\n"))
			}
		}
	}
}

// TestPagesForgotten reads so slowly that the cycles are forgotten meanwhile: that is told, and nothing is left out
// unseen.
func TestPagesForgotten(t *testing.T) {
	r := ready(t, func(r *rig) { r.o.RecentCyclesMax = 2 })
	r.cycle()
	p, err := r.View().Pages("", 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Next(r.View(), 1); err != nil {
		t.Fatal(err)
	}
	r.cycle()
	r.cycle()
	var e *Error
	if _, err := p.Next(r.View(), 1); !errors.As(err, &e) || e.Kind != Compacted {
		t.Error("rows of a cycle that is forgotten:", err)
	}
}

// TestWait has a cycle wake those whom it concerns and nobody else, however long they waited.
func TestWait(t *testing.T) {
	r := ready(t, func(r *rig) { r.o.RecentCyclesMax = 2 })
	woken := func(w *Waiter) bool {
		select {
		case <-w.Woken():
			return true
		default:
			return false
		}
	}
	r.cycle()
	one, two, any, nobody := r.Wait("one"), r.Wait("two"), r.Wait(""), r.Wait("nobody")
	for range 5 {
		r.cycle() // without changes
	}
	if woken(one) || woken(two) || woken(any) || woken(nobody) {
		t.Fatal("a cycle without changes wakes somebody")
	}
	r.must(InputDemand, "two", "consumer,allocation,units,ncpus\n/B,b,5,1\n/B,c,2,1\n")
	r.cycle()
	if woken(one) || !woken(two) || !woken(any) || woken(nobody) {
		t.Error("a cycle with changes of two alone wakes:", woken(one), woken(two), woken(any), woken(nobody))
	}
	r.cycle()
	// Cycles 2 to 6 are forgotten by now. Who waited knows of them all the same that they had nothing.
	if quiet := two.Stop(); quiet != 6 {
		t.Errorf("two had nothing up to cycle %d, not 6", quiet)
	}
	if _, _, err := r.View().Changes("two", 6, 1000); err != nil {
		t.Error(err)
	}
	if quiet := one.Stop(); quiet != 8 {
		t.Errorf("one had nothing up to cycle %d, not 8", quiet)
	}
	any.Stop()
	nobody.Stop()
	if n := len(r.waiting.of); n != 0 {
		t.Errorf("%d sources are still waited for", n)
	}
}

// BenchmarkWake is what a cycle of 200,000 events costs where 5,000 wait for sources that have none, beside one that
// does.
func BenchmarkWake(b *testing.B) {
	c := &decision.Cycle{}
	words := decision.Words{"busy"}
	for range 200_000 {
		c.Grants.Source.Add(0)
		c.Grants.Units = append(c.Grants.Units, 1)
	}
	c.Grants.Source.Dict = words
	e := &Engine{}
	for i := range 5_000 {
		e.Wait(fmt.Sprint("none", i))
	}
	for b.Loop() {
		w := e.Wait("busy")
		e.waiting.wake(c, bySource(c))
		<-w.Woken()
	}
}
