package ownership

import (
	"slices"
	"testing"

	"github.com/stintd/stint/core/plan"
)

// TestHalves holds passes in two halves, and updates after them, against passes in one.
func TestHalves(t *testing.T) {
	const hosts = 4000
	g := grid(hosts, 2000, 3)
	w := &world{t: t, g: *g, hosts: hosts, dims: 4, filled: map[int32][]Use{}, draw: seeded(t, 7).draw}
	one, two := Assigner{cramped: true}, Assigner{halved: 1}
	had := nothingHad(4)
	for pass := range 4 {
		g := w.ground()
		want, got := one.Pass(g, had), two.Pass(g, had)
		if two.cramped || difference(got, want) != "" || one.Touched() != two.Touched() {
			t.Fatalf("pass %d: %s, cramped %v, looked at %d rows, want %d", pass, difference(got, want), two.cramped,
				two.Touched(), one.Touched())
		}
		had = want
		for step := range 5 {
			var changed []int32
			for range 10 {
				h := int32(w.n("host", 0, hosts-1))
				w.hold(h, had, false)
				changed = append(changed, h)
			}
			w.g.Cap[0][changed[0]] = int64(step)
			g := w.ground()
			if got, want = two.Update(g, changed), one.Update(g, changed); difference(got, want) != "" {
				t.Fatalf("pass %d, step %d: %s", pass, step, difference(got, want))
			}
			had = want
		}
	}
}

// TestCramped makes a pass for which the store is made too small: the first host of the group is not like the others.
func TestCramped(t *testing.T) {
	const hosts = 3000
	w := seeded(t, 1)
	w.hosts, w.dims = hosts, 1
	w.g.Tree = &plan.Tree{
		Path: []string{"/", "/a", "/a/x", "/b", "/b/x"}, Parent: []plan.Node{plan.None, 0, 1, 0, 3},
		Depth: []int32{0, 1, 2, 1, 2}, First: []plan.Node{1, 2, plan.None, 4, plan.None},
		Next: []plan.Node{plan.None, 3, plan.None, plan.None, plan.None}, End: []plan.Node{5, 3, 3, 5, 5},
	}
	own := func(hosts int64, amount []int64) []plan.OwnRule {
		return []plan.OwnRule{{Hosts: hosts, Percent: plan.Unlimited, Amount: amount}}
	}
	most := own(plan.Unlimited, []int64{1_400})
	w.g.Window = &plan.MDWindow{Own: [][]plan.OwnRule{nil, own(1_500, nil), most, own(1_500, nil), most},
		Reserve: make([]plan.Reserve, 5)}
	w.g.Rank = []int32{0, 1, 2, 3, 4}
	w.g.Plan = &plan.MDPlan{Groups: make([]plan.PlanGroup, 1), Member: slices.Repeat([]bool{true}, 5)}
	w.g.Cap, w.g.Group = [][]int64{slices.Repeat([]int64{1}, hosts)}, [][]uint64{make([]uint64, (hosts+63)/64)}
	w.g.Closed = make([]uint64, (hosts+63)/64)
	w.g.Cap[0][0] = 1_000_000
	for h := range hosts {
		w.g.Group[0][h>>6] |= 1 << (h & 63)
	}
	a, one := Assigner{halved: 1}, Assigner{cramped: true}
	got, want := a.Pass(w.ground(), nothingHad(1)), one.Pass(w.ground(), nothingHad(1))
	if !a.cramped || difference(got, want) != "" || len(got.Node) != 5_800 {
		t.Fatalf("cramped %v, %s, %d pieces", a.cramped, difference(got, want), len(got.Node))
	}
}
