package ownership

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stintd/stint/core/plan"
)

// grid is a generated plan of four levels: 10 consumers at the first, 10 below each of them, 10 below each of these,
// and at the last the rest of the owners. Each level has numbers, percentages and amounts of hosts; a tenth of the
// owners, all of the last level, own parts of hosts. Hosts are of four shapes in four groups; every tenth host of a
// domain or so is left to it. By seed; what is held is drawn by use.
func grid(hosts, owners int, seed uint64) *Ground {
	r := rand.New(rand.NewPCG(seed, 2))
	g := &Ground{Tree: gridTree(owners), Plan: &plan.MDPlan{Groups: make([]plan.PlanGroup, 4)}, Cap: make([][]int64, 4)}
	nodes := g.Tree.Len()
	g.Plan.Member = make([]bool, nodes)
	g.Window = &plan.MDWindow{Own: make([][]plan.OwnRule, nodes), Reserve: make([]plan.Reserve, nodes),
		Rank: make([]int32, nodes)}
	shapes := [4][4]int64{{32, 128_000, 0, 32}, {64, 256_000, 0, 64}, {64, 512_000, 4, 64}, {128, 1_024_000, 8, 128}}
	g.Closed = make([]uint64, (hosts+63)/64)
	for range 4 {
		g.Group = append(g.Group, make([]uint64, (hosts+63)/64))
	}
	for h := range hosts {
		shape := r.IntN(4)
		for d, v := range shapes[shape] {
			g.Cap[d] = append(g.Cap[d], v)
		}
		g.Group[shape][h/64] |= 1 << (h % 64)
	}
	g.Listed = func(string) int32 { return -1 }
	g.Known = func(string, int) int64 { return 0 }
	for n := plan.Node(1); int(n) < nodes; n++ {
		g.Plan.Member[n] = true
		g.Window.Rank[n] = int32(r.IntN(3))
		g.Window.Own[n] = gridRules(g.Tree, n, hosts, r)
	}
	g.Rank = rankOrder(g.Tree, g.Window.Rank)
	return g
}

// gridTree is a tree of 10 · 10 · 10 consumers and the rest below these, or of fewer where there are not so many.
func gridTree(owners int) *plan.Tree {
	t := &plan.Tree{}
	left := owners
	last := max(1, (owners-1110)/1000)
	var grow func(up plan.Node, depth int32)
	grow = func(up plan.Node, depth int32) {
		n := plan.Node(t.Len())
		path := fmt.Sprintf("/c%d", n)
		t.Path, t.Parent, t.Depth = append(t.Path, path), append(t.Parent, up), append(t.Depth, depth)
		t.First, t.Next, t.End = append(t.First, plan.None), append(t.Next, plan.None), append(t.End, 0)
		before := plan.None
		for range [5]int{10, 10, 10, last, 0}[depth] {
			if left == 0 {
				break
			}
			left--
			c := plan.Node(t.Len())
			if before == plan.None {
				t.First[n] = c
			} else {
				t.Next[before] = c
			}
			before = c
			grow(n, depth+1)
		}
		t.End[n] = plan.Node(t.Len())
	}
	grow(plan.None, 0)
	return t
}

// gridRules draws what a consumer owns of about a tenth of what is above it.
func gridRules(t *plan.Tree, n plan.Node, hosts int, r *rand.Rand) (list []plan.OwnRule) {
	depth := t.Depth[n]
	each := hosts / [5]int{1, 10, 100, 1000, 10000}[depth] / 4 // of a group
	for group := range 4 {
		rule := plan.OwnRule{Group: group, Hosts: plan.Unlimited, Percent: plan.Unlimited}
		whole := int64([4]int{32, 64, 64, 128}[group])
		kind := r.IntN(10)
		if depth < 4 {
			kind = min(kind, 5)
		}
		switch {
		case depth == 4 && kind > 6:
			if group > 0 {
				return list // of one group alone
			}
			rule.PerHost = []plan.Part{{Amount: plan.Unlimited, Percent: 25_000},
				{Amount: plan.Unlimited, Percent: plan.Unlimited}, {Amount: plan.Unlimited, Percent: plan.Unlimited},
				{Amount: plan.Unlimited, Percent: plan.Unlimited}}
			if kind > 7 {
				rule.PerHost = nil
				rule.Amount = []int64{whole*2 + 7, plan.Unlimited, plan.Unlimited, plan.Unlimited}
				rule.Partial = true
			}
		case kind == 5:
			rule.Amount = []int64{whole * int64(each), plan.Unlimited, plan.Unlimited, plan.Unlimited}
		case kind == 4:
			rule.Percent = 9_500
		default:
			rule.Hosts = int64(each) * 19 / 20
			if depth == 4 {
				rule.Hosts = int64(2 + r.IntN(2))
			}
		}
		list = append(list, rule)
	}
	return list
}

// gridUse draws what is held: on two of three hosts something, on the parcels of their owners.
func gridUse(g *Ground, deeds *Deeds, seed uint64) (list []Use) {
	r := rand.New(rand.NewPCG(seed, 3))
	for i, n := range deeds.Node {
		if g.Tree.First[n] == plan.None && r.IntN(3) > 0 {
			v := make([]int64, len(g.Cap))
			for d := range v {
				v[d] = r.Int64N(deeds.Amount[d][i] + 1)
			}
			list = append(list, Use{deeds.Host[i], n, v})
		}
	}
	return list
}

// TestGrid holds updates of a middling cluster, in which hosts are lost, come back and are put to use, against passes
// that know nothing, and sees that they look at little.
func TestGrid(t *testing.T) {
	const hosts = 4000
	g := grid(hosts, 2000, 1)
	var a Assigner
	had := a.Pass(g, nothingHad(4))
	full := slices.Clone(g.Cap)
	for d := range g.Cap {
		full[d] = slices.Clone(g.Cap[d])
	}
	w := &world{t: t, g: *g, hosts: hosts, dims: 4, filled: map[int32][]Use{}, draw: seeded(t, 7).draw}
	for _, u := range gridUse(g, had, 1) {
		w.filled[u.Host] = append(w.filled[u.Host], u)
	}
	had = a.Pass(w.ground(), had)
	all := a.Touched()
	for step := range 40 {
		var changed []int32
		for range w.n("changes", 1, 1+step) {
			h := w.n("host", 0, hosts-1)
			changed = append(changed, int32(h))
			if w.odds("held", 1, 2) {
				w.hold(int32(h), had, false)
				continue
			}
			lost := w.g.Cap[0][h] > 0
			for d := range w.g.Cap {
				w.g.Cap[d][h] = full[d][h]
				if lost {
					w.g.Cap[d][h] = 0
				}
			}
		}
		now := a.Update(w.ground(), changed)
		if one := a.Touched() / int64(len(changed)); one > 2000 || one > all/10 {
			t.Errorf("step %d: looked at %d rows for each of %d changes, a pass looks at %d", step, one, len(changed),
				all)
		}
		var fresh Assigner
		if want := fresh.Pass(w.ground(), had); difference(now, want) != "" {
			t.Fatalf("step %d: %s", step, difference(now, want))
		}
		had = now
	}
}

const (
	gridHosts  = 100_000
	gridOwners = 10_000
)

// BenchmarkPass makes a pass over 100,000 hosts and 10,000 owners: from nothing, and again with what is held.
func BenchmarkPass(b *testing.B) {
	g := grid(gridHosts, gridOwners, 1)
	var a Assigner
	had := a.Pass(g, nothingHad(4))
	b.Run("fresh", func(b *testing.B) {
		for b.Loop() {
			var fresh Assigner
			fresh.Pass(g, nothingHad(4))
		}
	})
	b.Run("from nothing", func(b *testing.B) {
		for b.Loop() {
			a.Pass(g, nothingHad(4))
		}
		b.ReportMetric(float64(a.Touched()), "touched/op")
	})
	g.Use = gridUse(g, had, 1)
	b.Run("again", func(b *testing.B) {
		for b.Loop() {
			a.Pass(g, had)
		}
		b.ReportMetric(float64(a.Touched()), "touched/op")
		b.ReportMetric(float64(len(had.Node)), "pieces")
	})
}

// BenchmarkUpdate loses a host of the same ground and gets it back.
func BenchmarkUpdate(b *testing.B) {
	g := grid(gridHosts, gridOwners, 1)
	var a Assigner
	had := a.Pass(g, nothingHad(4))
	g.Use = gridUse(g, had, 1)
	a.Pass(g, had)
	r := rand.New(rand.NewPCG(1, 4))
	g.Use = nil
	var touched, skipped int64
	for b.Loop() {
		h := r.Int32N(gridHosts)
		var was [4]int64
		for d := range was {
			was[d], g.Cap[d][h] = g.Cap[d][h], 0
		}
		a.Update(g, []int32{h})
		touched, skipped = touched+a.Touched(), skipped+a.Skipped()
		for d := range was {
			g.Cap[d][h] = was[d]
		}
		a.Update(g, []int32{h})
	}
	b.ReportMetric(float64(touched)/float64(b.N), "touched/lost")
	b.ReportMetric(float64(skipped)/float64(b.N), "blocks/lost")
}
