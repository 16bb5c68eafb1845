package ownership

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/plan"
)

// world is a small random ground that changes.
type world struct {
	t      rapid.TB
	draw   func(label string, from, to int) int
	g      Ground
	hosts  int
	dims   int
	filled map[int32][]Use
}

// drawn are worlds that rapid draws and shrinks: many of them small.
func drawn(t *rapid.T) *world {
	return &world{t: t, draw: func(label string, from, to int) int { return rapid.IntRange(from, to).Draw(t, label) }}
}

// seeded are worlds evenly drawn.
func seeded(t *testing.T, seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 1))
	return &world{t: t, draw: func(_ string, from, to int) int { return from + r.IntN(to-from+1) }}
}

func (w *world) n(label string, from, to int) int { return w.draw(label, from, to) }

func (w *world) odds(label string, one, of int) bool { return w.n(label, 1, of) <= one }

// make draws a tree of up to three levels, groups, so many hosts, and rules.
func (w *world) make(hosts int) *world {
	w.filled = map[int32][]Use{}
	w.hosts, w.dims = hosts, w.n("dims", 1, 3)
	groups := w.n("groups", 1, 3)
	w.g.Plan = &plan.MDPlan{Groups: make([]plan.PlanGroup, groups)}
	w.g.Cap = make([][]int64, w.dims)
	for d := range w.g.Cap {
		w.g.Cap[d] = make([]int64, w.hosts)
	}
	for range groups {
		w.g.Group = append(w.g.Group, make([]uint64, (hosts+63)/64))
	}
	w.g.Closed = make([]uint64, (hosts+63)/64)
	for h := range w.hosts {
		w.resize(h)
		w.regroup(h)
		w.shut(h, w.odds("closed", 1, 6))
	}
	w.g.Listed = func(name string) int32 {
		if h, _ := strconv.Atoi(name[1:]); h < w.hosts {
			return int32(h)
		}
		return -1
	}
	w.g.Known = func(_ string, d int) int64 { return int64(100 + d) }
	w.tree()
	nodes := w.g.Tree.Len()
	w.g.Window = &plan.MDWindow{Own: make([][]plan.OwnRule, nodes), Reserve: make([]plan.Reserve, nodes),
		Rank: make([]int32, nodes)}
	for n := 1; n < nodes; n++ {
		w.g.Window.Own[n] = w.rules()
		w.g.Window.Rank[n] = int32(w.n("rank", 0, 2))
	}
	w.g.Rank = rankOrder(w.g.Tree, w.g.Window.Rank)
	return w
}

// tree draws a tree in pre-order.
func (w *world) tree() {
	t := &plan.Tree{Path: []string{"/"}, Parent: []plan.Node{plan.None}, First: []plan.Node{plan.None},
		Next: []plan.Node{plan.None}, End: []plan.Node{0}, Depth: []int32{0}}
	var grow func(up plan.Node, depth int32, children int)
	grow = func(up plan.Node, depth int32, children int) {
		last := plan.None
		for range children {
			c := plan.Node(t.Len())
			t.Path = append(t.Path, fmt.Sprintf("%s/%d", t.Path[up], c))
			t.Parent, t.Depth = append(t.Parent, up), append(t.Depth, depth)
			t.First, t.Next, t.End = append(t.First, plan.None), append(t.Next, plan.None), append(t.End, 0)
			if last == plan.None {
				t.First[up] = c
			} else {
				t.Next[last] = c
			}
			last = c
			if depth < 3 {
				grow(c, depth+1, max(0, w.n("children", -2, 3)))
			}
		}
		t.End[up] = plan.Node(t.Len())
	}
	grow(plan.Root, 1, w.n("first", 1, 7))
	w.g.Tree = t
	w.g.Plan.Member = slices.Repeat([]bool{true}, t.Len())
}

// rules draws a consumer's list.
func (w *world) rules() (list []plan.OwnRule) {
	for range max(0, w.n("rules", -1, 3)) {
		r := plan.OwnRule{Group: w.n("group", 0, len(w.g.Group)-1), Hosts: plan.Unlimited, Percent: plan.Unlimited}
		switch w.n("form", 0, 6) {
		case 0:
			r.Group = -1
			for range w.n("listed", 1, 3) {
				r.HostList = append(r.HostList, fmt.Sprintf("h%d", w.n("host", 0, w.hosts+1)))
			}
			slices.Sort(r.HostList)
			r.HostList = slices.Compact(r.HostList)
		case 1, 2:
			r.Hosts = int64(w.n("of", 0, 5))
		case 3:
			r.Percent = int64(w.n("percent", 0, 100)) * 1000
		case 4:
			r.Amount, r.Partial = slices.Repeat([]int64{plan.Unlimited}, w.dims), w.odds("partial", 2, 3)
			for d := range w.dims {
				if d == 0 || w.odds("named", 1, 2) {
					r.Amount[d] = int64(w.n("amount", 0, 30))
				}
			}
		case 5:
			r.PerHost = slices.Repeat([]plan.Part{{Amount: plan.Unlimited, Percent: plan.Unlimited}}, w.dims)
			for d := range w.dims {
				if named := d == 0 || w.odds("named", 1, 2); named && w.odds("absolute", 1, 2) {
					r.PerHost[d].Amount = int64(w.n("each", 0, 5))
				} else if named {
					r.PerHost[d].Percent = int64(w.n("part", 0, 100)) * 1000
				}
			}
		case 6:
			r.Remaining = true
		}
		list = append(list, r)
	}
	return list
}

// resize draws the capacity of a host; it may be lost.
func (w *world) resize(h int) {
	lost, same := w.odds("lost", 1, 8), w.odds("same", 2, 3)
	for d := range w.g.Cap {
		w.g.Cap[d][h] = int64(8 * (d + 1))
		if !same {
			w.g.Cap[d][h] = int64(w.n("cap", 0, 16))
		}
		if lost {
			w.g.Cap[d][h] = 0
		}
	}
}

// shut closes a host, or opens it.
func (w *world) shut(h int, closed bool) {
	w.g.Closed[h/64] &^= 1 << (h % 64)
	w.g.Closed[h/64] |= bit(closed) << (h % 64)
}

func (w *world) regroup(h int) {
	for g := range w.g.Group {
		w.g.Group[g][h/64] &^= 1 << (h % 64)
		if w.odds("in", 2, 3) {
			w.g.Group[g][h/64] |= 1 << (h % 64)
		}
	}
}

// hold draws what is held on a host, by any owners or by those who have a part of it.
func (w *world) hold(h int32, deeds *Deeds, any bool) {
	owners := []plan.Node{plan.Root}
	for i, n := range deeds.Node {
		if deeds.Host[i] == h {
			owners = append(owners, n)
		}
	}
	if any {
		owners = append(owners, plan.Node(w.n("owner", 0, w.g.Tree.Len()-1)))
	}
	w.filled[h] = nil
	for _, n := range owners {
		if w.odds("held", 1, 2) {
			v := make([]int64, w.dims)
			for d := range v {
				v[d] = int64(w.n("use", 0, 4))
			}
			w.filled[h] = append(w.filled[h], Use{h, n, v})
		}
	}
}

// ground is the ground as it stands.
func (w *world) ground() *Ground {
	g := w.g
	g.Use = nil
	for h := range int32(w.hosts) {
		g.Use = append(g.Use, w.filled[h]...)
	}
	return &g
}

// change changes something about some hosts, and names them.
func (w *world) change(deeds *Deeds) (changed []int32) {
	for range w.n("changes", 0, 3) {
		h := w.n("host", 0, w.hosts-1)
		switch w.n("what", 0, 5) {
		case 0:
			w.resize(h)
		case 1:
			w.regroup(h)
		case 2:
			w.shut(h, w.odds("closed", 1, 2))
		default:
			w.hold(int32(h), deeds, w.odds("any", 1, 4))
		}
		changed = append(changed, int32(h))
	}
	return changed
}

// reform changes some consumers' lists or ranks, and gives the deeds as the next pass has them.
func (w *world) reform(deeds *Deeds) *Deeds {
	window := *w.g.Window
	window.Own, window.Rank = slices.Clone(window.Own), slices.Clone(window.Rank)
	for range w.n("reforms", 1, 3) {
		n := w.n("node", 1, w.g.Tree.Len()-1)
		if w.odds("rank", 1, 3) {
			window.Rank[n] = int32(w.n("to", 0, 2))
		} else {
			window.Own[n] = w.rules()
		}
	}
	had := carried(deeds, w.g.Window.Own, window.Own)
	w.g.Window, w.g.Rank = &window, rankOrder(w.g.Tree, window.Rank)
	return had
}

// nothingHad are no deeds.
func nothingHad(dims int) *Deeds { return &Deeds{Amount: make([][]int64, dims), Next: 1} }

// same holds a pass against the plain one.
func (w *world) same(what string, a *Assigner, got *Deeds, g *Ground, had *Deeds) {
	p := newPlain(g, had)
	p.domains()
	want := p.deeds()
	if difference(got, want) != "" {
		w.t.Fatalf("%s: %s\ngot\n%swant\n%s", what, difference(got, want), text(g, got), text(g, want))
	}
	if a.Open() != p.staysOpen {
		w.t.Fatalf("%s: a claim stays open: %t, want %t", what, a.Open(), p.staysOpen)
	}
	for n := range plan.Node(g.Tree.Len()) {
		if a.Unmet(n) != p.unmet[n] {
			w.t.Fatalf("%s: of %s rule %d is unmet, want %d\n%s", what, g.Tree.Path[n], a.Unmet(n), p.unmet[n],
				text(g, got))
		}
		for d := range w.dims {
			if a.Configured(n, d) != p.configured[d][n] {
				w.t.Fatalf("%s: %s has %d configured of dimension %d, want %d", what, g.Tree.Path[n],
					a.Configured(n, d), d, p.configured[d][n])
			}
		}
	}
}

// difference tells in what deeds differ, "" when in nothing.
func difference(a, b *Deeds) string {
	switch {
	case !slices.Equal(a.Node, b.Node) || !slices.Equal(a.Host, b.Host) || !slices.Equal(a.Rule, b.Rule):
		return "other pieces"
	case !slices.EqualFunc(a.Amount, b.Amount, slices.Equal[[]int64]):
		return "other amounts"
	case !slices.Equal(a.Number, b.Number) || a.Next != b.Next:
		return fmt.Sprintf("other numbers (next %d and %d)", a.Next, b.Next)
	}
	return ""
}

// text shows deeds.
func text(g *Ground, t *Deeds) (s string) {
	for i, n := range t.Node {
		s += fmt.Sprintf("%s h%d rule %d #%d %s\n", g.Tree.Path[n], t.Host[i], t.Rule[i], t.Number[i],
			joined(column(t.Amount, i)))
	}
	return s
}

// passes makes passes over changing ground, of all kinds of deeds had.
func (w *world) passes() {
	a := Assigner{halved: w.n("halved", 0, 1)}
	had := nothingHad(w.dims)
	for range w.n("passes", 1, 4) {
		g := w.ground()
		deeds := a.Pass(g, had)
		w.same("pass", &a, deeds, g, had)
		had = deeds
		w.change(had)
		if w.odds("reform", 1, 2) {
			had = w.reform(had)
		}
	}
}

// updates makes updates of changing ground.
func (w *world) updates() {
	a := Assigner{halved: w.n("halved", 0, 1)}
	had := a.Pass(w.ground(), nothingHad(w.dims))
	for range w.n("steps", 1, 8) {
		changed := w.change(had)
		if w.odds("reform", 1, 8) {
			had = w.reform(had)
			had = a.Pass(w.ground(), had)
			continue
		}
		g := w.ground()
		deeds := a.Update(g, changed)
		w.same("update", &a, deeds, g, had)
		w.moved(&a, had, deeds)
		had = deeds
	}
}

// owned is what a consumer has of each host, by host, then dimension; the root has the hosts.
func owned(g *Ground, deeds *Deeds, n plan.Node) [][]int64 {
	out := make([][]int64, len(g.Cap[0]))
	for h := range out {
		out[h] = make([]int64, len(g.Cap))
		if n == plan.Root {
			copy(out[h], column(g.Cap, h))
		}
	}
	for i, of := range deeds.Node {
		if of == n {
			add(out[deeds.Host[i]], column(deeds.Amount, i))
		}
	}
	return out
}

// moved checks that an update names the parts that it changed.
func (w *world) moved(a *Assigner, was, is *Deeds) {
	node, host := a.Moved()
	for n := plan.Node(1); int(n) < w.g.Tree.Len(); n++ {
		before, after := owned(&w.g, was, n), owned(&w.g, is, n)
		for h := range before {
			named := false
			for i := range node {
				named = named || node[i] == n && host[i] == int32(h)
			}
			if !named && !slices.Equal(before[h], after[h]) {
				w.t.Fatalf("%s and h%d changed, Moved says not", w.g.Tree.Path[n], h)
			}
		}
	}
}

// TestPlain holds passes against the plain one.
func TestPlain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawn(t)
		w.make(w.n("hosts", 1, 12)).passes()
	})
	for seed := range seeds(t) {
		w := seeded(t, seed)
		w.make(w.n("hosts", 1, 40)).passes()
	}
}

// TestUpdate holds updates against plain passes over all of the ground.
func TestUpdate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawn(t)
		w.make(w.n("hosts", 1, 12)).updates()
	})
	for seed := range seeds(t) {
		w := seeded(t, seed)
		w.make(w.n("hosts", 1, 40)).updates()
	}
}

// seeds are how many worlds to draw: STINT_SOAK, else a few.
func seeds(t *testing.T) uint64 {
	n := uint64(300)
	if s := os.Getenv("STINT_SOAK"); s != "" {
		var err error
		if n, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	return n
}
