package reclaim

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/pool"
	"github.com/stintd/stint/core/room"
	"github.com/stintd/stint/core/view"
	"github.com/stintd/stint/datasets"
)

// TestKept plays cycles of clusters in which everybody wants something else each time, and holds what a stage keeps
// from one beginning to the next against one that keeps nothing: rooms, and what lists of them promise. Between the
// turns of fair reclaim it holds what parcels offer, and the units that are looked through, against what is held there.
func TestKept(t *testing.T) {
	for seed := range uint64(4) {
		d, err := datasets.Hetero(datasets.Options{Hosts: 150, Consumers: 24, Units: 1_800, Shapes: 9, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.Parse("plan.yaml", d.Plan)
		if err != nil {
			t.Fatal(err)
		}
		s, err := cluster.New(p)
		if err == nil {
			err = s.SetHosts(d.Hosts, true)
		}
		if err != nil {
			t.Fatal(err)
		}
		w := &keeper{T: t, s: s, p: &s.Plans[0], r: rand.New(rand.NewPCG(seed, 1))}
		for w.now = 60e6; w.now < 10*60e6; w.now += 60e6 {
			next := *d.Demand
			next.Units = slices.Clone(d.Demand.Units)
			for row := range next.Units {
				next.Units[row] *= int64(w.r.IntN(4))
			}
			if err := s.SetDemand("s", &next); err != nil {
				t.Fatal(err)
			}
			w.cycle()
		}
		if w.kept == 0 || w.turns == 0 || w.taken == 0 {
			t.Errorf("seed %d: %d beginnings kept anything, %d turns, %d units taken back", seed, w.kept, w.turns,
				w.taken)
		}
	}
}

// keeper plays cycles of one stage.
type keeper struct {
	*testing.T
	s     *cluster.State
	p     *cluster.Plan
	r     *rand.Rand
	now   int64
	views view.Views
	stage Stage

	kept, turns int
	taken       int64
}

// cycle reviews, grants and takes back.
func (w *keeper) cycle() {
	s := w.s
	s.Settle(w.now)
	of := NewCycle(s, w.p)
	w.step(of, func(g *Stage) { g.Review() })
	w.give()
	w.step(of, func(g *Stage) {
		g.Rules()
		g.Recall()
		for g.beginFair(); g.nextPool(); {
			for g.nextPass() {
				for g.takeTurn() {
					w.turns++
					w.offers(g)
				}
			}
		}
	})
	w.taken += s.Leaving()
	s.Finish(s.Cycle+1, w.now)
}

// step begins a stage, holds it against one that keeps nothing, lets it decide, and books it.
func (w *keeper) step(of *Cycle, decide func(g *Stage)) {
	w.views.Follow(w.s, w.p)
	e := &Env{
		Env: pool.New(w.s, w.p, &w.views), Cycle: of, NowUS: w.now,
		Selected: func(need cluster.NeedID) []uint64 {
			set, _ := w.views.Needs.Of(w.s, w.p, need)
			return set
		},
	}
	var out, none Decisions
	anew, g := new(Stage), &w.stage
	anew.Begin(e, &none)
	g.Begin(e, &out)
	if slices.ContainsFunc(g.waits, func(l *waitList) bool { return l != nil }) {
		w.kept++
	}
	if !slices.Equal(g.free, anew.free) || !slices.Equal(g.stay, anew.stay) || !slices.Equal(g.due, anew.due) ||
		!slices.Equal(g.below, anew.below) || !slices.Equal(g.short, anew.short) {
		w.Fatalf("rooms at %d are not those of a stage that begins anew", w.now)
	}
	for top, l := range g.waits {
		if l == nil {
			continue
		}
		for row, k := range l.parcel {
			net := make([]int64, g.dims)
			if g.netFree(k, net); !w.p.Parcels.IsOpen(k) {
				continue
			}
			_, least := g.rooms(k, plan.Node(top))
			if now := l.index.Free(room.Row(row)); !slices.Equal(now, net) && !slices.Equal(now, least) {
				w.Fatalf("parcel %d has %v net, the list of %d says %v", k, net, top, now)
			}
		}
	}
	decide(g)
	out.Book(w.s, w.p, w.now)
	if err := w.s.Verify(); err != nil {
		w.Fatal(err)
	}
}

// give gives units to whoever is short, wherever they fit, in any order.
func (w *keeper) give() {
	s, p := w.s, &w.p.Parcels
	for _, sub := range w.r.Perm(len(s.Sub.Wanted)) {
		sub := cluster.SubID(sub)
		if s.Sub.Alloc[sub] == cluster.NoID { // a row that waits
			continue
		}
		leaf := s.Node(sub)
		if leaf == plan.None || s.Sub.Plan[sub] != w.p.Index {
			continue
		}
		for short, k := s.Short(sub), 0; short > 0 && k < p.Len(); k++ {
			fits := p.IsOpen(cluster.ParcelID(k))
			for d, u := range s.Size(sub) {
				fits = fits && p.Available(d, cluster.ParcelID(k)) >= u
			}
			if !fits {
				continue
			}
			origin, from, lender := s.CountsAs(leaf, p.Owner[k])
			row := cluster.Holding{Sub: sub, Granted: s.Cycle + 1, Origin: origin, Pool: from, Lender: lender}
			s.HoldAll(nil, []cluster.Run{{Holding: row, From: 0, To: 1}}, []cluster.ParcelID{cluster.ParcelID(k)})
			short--
			k--
		}
	}
}

// offers holds what victims are looked for by against what is held.
func (w *keeper) offers(g *Stage) {
	c := &g.choice
	w.offer(g, &c.all, g.fair.gives)
	w.offer(g, &c.keen, func(leaf plan.Node) bool { return g.fair.gives(leaf) && g.anyKeen(leaf) })
	for id, list := range c.units {
		listed := map[unit]int64{}
		for _, one := range list {
			listed[unit{granted: one.granted, sub: one.sub, parcel: one.parcel}] = one.units
		}
		for k := range w.p.Parcels.Host {
			for at := g.open(cluster.ParcelID(k)); at > 0; at = g.row[at].next {
				one := &g.row[at]
				key := unit{granted: one.granted, sub: one.sub, parcel: one.parcel}
				if one.leaf == id && g.isInPool(one) && !g.isYoung(id, one.granted) && listed[key] < one.units {
					w.Fatalf("%d units of %d on parcel %d are not looked through: %d are", one.units, id, k,
						listed[key])
				}
			}
		}
	}
}

// offer holds offers of some leaves against what these hold.
func (w *keeper) offer(g *Stage, o *offers, counts func(leaf plan.Node) bool) {
	for row, k := range g.choice.list.parcel {
		if !o.known || !w.p.Parcels.IsOpen(k) {
			continue
		}
		want := slices.Clone(g.choice.list.index.Free(room.Row(row)))
		for at := g.open(k); at > 0; at = g.row[at].next {
			if one := &g.row[at]; g.isInPool(one) && counts(one.leaf) {
				add(want, g.s.Shape.Size(one.shape), one.units)
			}
		}
		if got := o.index.Free(room.Row(row)); !slices.Equal(got, want) || !o.set.Has(room.Row(row)) {
			w.Fatalf("parcel %d offers %v, want %v", k, got, want)
		}
	}
}
