package cycle_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/view"
)

// TestViews plays random cases and holds, before their cycles, the views that followed the change log against views
// made of the state alone. What happened is counted, as a log that says nothing would pass.
func TestViews(t *testing.T) {
	n := casesMin / 40
	if testing.Short() {
		n /= 5
	}
	setRapid(t, n, seedMin)
	var all follower
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			var f follower
			rapid.Check(t, func(t *rapid.T) { f.play(t, k) })
			t.Logf("brought up %d times, of these made anew %d; rows by kind: %v", f.asked, f.rebuilt, f.rows)
			if !testing.Short() && 2*f.rebuilt > f.asked {
				t.Errorf("most views were made anew")
			}
			for change, rows := range f.rows {
				all.rows[change] += rows
			}
		})
	}
	for change, rows := range all.rows {
		if rows == 0 && !testing.Short() {
			t.Errorf("no change of kind %d: a log without them would pass", change)
		}
	}
}

// follower follows states, and counts what the log said.
type follower struct {
	views   []view.Views
	asked   int // how often views were brought up
	rebuilt int // of these, how often they were made anew
	rows    [cluster.ChangeRelaid + 1]int
	seen    int64
}

// play plays a case, whose views are brought up before some cycles.
func (f *follower) play(t *rapid.T, k kind) {
	p := newPlayer(t, k)
	f.views, f.seen = nil, 0
	p.watch = func(t *rapid.T) {
		if f.count(&p.engine.Changes); p.cycles%3 != 1 { // else what two cycles did comes at once
			f.follow(t, p.engine)
		}
	}
	for i := range p.upTo(t, "steps", 1+2*p.eager(), 6) {
		p.step(t, i)
	}
	p.end(t)
	f.follow(t, p.engine)
	for i := range f.views {
		f.rebuilt += f.views[i].Rebuilt()
	}
}

// count counts what the log said since it was asked last.
func (f *follower) count(l *cluster.ChangeLog) {
	row, ok := l.Since(f.seen)
	for ; ok && row < l.Kind.Len(); row++ {
		f.rows[l.Kind.At(row)]++
	}
	f.seen = l.Count()
}

// follow brings the views of all plans up and compares them with such as know nothing.
func (f *follower) follow(t *rapid.T, s *cluster.State) {
	for len(f.views) < len(s.Plans) {
		f.views = append(f.views, view.Views{})
	}
	for i := range s.Plans {
		var anew view.Views
		p, v := &s.Plans[i], &f.views[i]
		v.Follow(s, p)
		anew.Follow(s, p)
		f.asked++
		if diff := viewsDiffer(s, p, v, &anew); diff != "" {
			t.Fatalf("plan %s: %s", p.Name, diff)
		}
	}
}

// viewsDiffer is the first group of rows, or capacity, in which two views of a plan differ.
func viewsDiffer(s *cluster.State, p *cluster.Plan, a, b *view.Views) string {
	differ := func(name string, i int, x, y view.Group) string {
		if slices.Equal(x.Key, y.Key) && slices.Equal(x.Units, y.Units) && slices.Equal(x.Leaving, y.Leaving) {
			return ""
		}
		return fmt.Sprintf("%s %d: applied %v, rebuilt %v", name, i, x, y)
	}
	for k := range p.Parcels.Len() {
		at := cluster.ParcelID(k)
		if d := differ("on parcel", k, a.ByParcel.On(at), b.ByParcel.On(at)); d != "" {
			return d
		}
		if a.Owned.RowOf(at) != b.Owned.RowOf(at) {
			return fmt.Sprintf("parcel %d: row %d, rebuilt %d", k, a.Owned.RowOf(at), b.Owned.RowOf(at))
		}
	}
	for n := range s.Policy.Len() {
		at := plan.Node(n)
		if d := differ("of leaf", n, a.ByLeaf.Of(at), b.ByLeaf.Of(at)); d != "" {
			return d
		}
		if d := differ("usage of", n, a.Usage.Of(at), b.Usage.Of(at)); d != "" {
			return d
		}
		for shape := range cluster.ShapeID(s.Shape.Len()) {
			if p.MD == nil || s.Policy.Leaf(at) {
				break
			}
			if x, y := a.Capacity.Of(s, at, shape), b.Capacity.Of(s, at, shape); x != y {
				return fmt.Sprintf("pool of %s, shape %d: capacity %d, rebuilt %d", s.Policy.Path[n], shape, x, y)
			}
		}
	}
	for c := range s.Consumer.Len() {
		if d := differ("lent by", c, a.Loans.By(cluster.ConsumerID(c)), b.Loans.By(cluster.ConsumerID(c))); d != "" {
			return d
		}
	}
	return ""
}
