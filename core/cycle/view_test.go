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

// follower holds, before cycles, the views that followed the change log against views made of the state alone. What
// happened is counted, as a log that says nothing would pass.
type follower struct {
	views   []view.Views
	asked   int // how often views were brought up
	rebuilt int // of these, how often they were made anew
	rows    [cluster.ChangeRelaid + 1]int
	seen    int64
}

func (f *follower) begin(*player) { f.views, f.seen = nil, 0 }

func (f *follower) look(t *rapid.T, p *player) {
	if f.count(&p.engine.Changes); p.cycles%3 != 1 { // else what two cycles did comes at once
		f.follow(t, p.engine)
	} else {
		f.followHeld(p.engine)
	}
}

func (f *follower) end(t *rapid.T, p *player) {
	f.follow(t, p.engine)
	for i := range f.views {
		f.rebuilt += f.views[i].Rebuilt()
	}
}

func (f *follower) report(t *testing.T, _ int) {
	t.Logf("core/view: brought up %d times, of these made anew %d; rows by kind: %v", f.asked, f.rebuilt, f.rows)
	if !testing.Short() && 2*f.rebuilt > f.asked {
		t.Errorf("core/view: most views were made anew")
	}
}

// changesSeen tells which changes no log told, of any kind of cases, when all kinds were played.
func changesSeen(t *testing.T, logs []follower) {
	if testing.Short() || slices.ContainsFunc(logs, func(f follower) bool { return f.asked == 0 }) {
		return
	}
	for change := range logs[0].rows {
		rows := 0
		for i := range logs {
			rows += logs[i].rows[change]
		}
		if rows == 0 {
			t.Errorf("core/view: no change of kind %d: a log without them would pass", change)
		}
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

// followHeld brings the views up but for capacities.
func (f *follower) followHeld(s *cluster.State) {
	for i := range f.views {
		f.views[i].FollowHeld(s, &s.Plans[i])
		f.asked++
	}
}

// follow brings the views of all plans up and compares them with such as know nothing.
func (f *follower) follow(t *rapid.T, s *cluster.State) {
	for len(f.views) < len(s.Plans) {
		f.views = append(f.views, view.Views{})
	}
	for i := range s.Plans {
		var anew view.Views
		p, v := &s.Plans[i], &f.views[i]
		if f.asked%2 > 0 { // capacities come behind
			v.FollowHeld(s, p)
		}
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
	for need := range cluster.NeedID(s.Need.Len()) {
		x, turn := a.Needs.Of(s, p, need)
		if y, again := b.Needs.Of(s, p, need); !slices.Equal(x, y) || !slices.Equal(turn, again) {
			return fmt.Sprintf("requirement %q: %x %v, rebuilt %x %v", s.Need.String(int32(need)), x, turn, y, again)
		}
	}
	for _, h := range p.Parcels.Host {
		if p.MD != nil && a.Needs.Group(s, p, h) != b.Needs.Group(s, p, h) {
			return fmt.Sprintf("host %d: group %d, rebuilt %d", h, a.Needs.Group(s, p, h), b.Needs.Group(s, p, h))
		}
	}
	for c := range s.Consumer.Len() {
		if d := differ("lent by", c, a.Loans.By(cluster.ConsumerID(c)), b.Loans.By(cluster.ConsumerID(c))); d != "" {
			return d
		}
	}
	return ""
}
