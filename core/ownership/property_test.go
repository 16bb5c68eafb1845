package ownership

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/plan"
)

// left is what of a consumer's hosts none of its children has.
func left(w *world, deeds *Deeds, n plan.Node) [][]int64 {
	out := owned(&w.g, deeds, n)
	for c := w.g.Tree.First[n]; c != plan.None; c = w.g.Tree.Next[c] {
		for h, v := range owned(&w.g, deeds, c) {
			for d, x := range v {
				out[h][d] -= x
			}
		}
	}
	return out
}

// sound checks what holds of all deeds: nothing is owned that is not the parent's, rows stand in order, numbers name
// parts.
func (w *world) sound(deeds *Deeds) {
	for n := range plan.Node(w.g.Tree.Len()) {
		for h, v := range left(w, deeds, n) {
			if slices.Min(v) < 0 {
				w.t.Fatalf("the children of %s have more of h%d than it: %v is left\n%s", w.g.Tree.Path[n], h, v,
					text(&w.g, deeds))
			}
		}
	}
	part := map[int64]int{}
	for i, n := range deeds.Node {
		v := column(deeds.Amount, i)
		if zero(v) || slices.Min(v) < 0 || deeds.Rule[i] < 0 || deeds.Number[i] >= deeds.Next {
			w.t.Fatalf("row %d is no piece\n%s", i, text(&w.g, deeds))
		}
		if i > 0 {
			last := []int32{int32(deeds.Node[i-1]), deeds.Host[i-1], deeds.Rule[i-1]}
			if slices.Compare(last, []int32{int32(n), deeds.Host[i], deeds.Rule[i]}) >= 0 {
				w.t.Fatalf("row %d does not come after the one before\n%s", i, text(&w.g, deeds))
			}
		}
		if other, known := part[deeds.Number[i]]; known &&
			(deeds.Node[other] != n || deeds.Host[other] != deeds.Host[i]) {
			w.t.Fatalf("rows %d and %d have the same number\n%s", i, other, text(&w.g, deeds))
		}
		part[deeds.Number[i]] = i
	}
}

// exhausted checks that claims are unmet only where nothing is left: of hosts on which the claim has nothing when it is
// of a number of hosts, of a dimension that is missing when it is of an amount with `partial`.
func (w *world) exhausted(a *Assigner, deeds *Deeds) {
	for id := range a.claims {
		c := &a.claims[id]
		r := a.ruleOf(c)
		if !c.unmet || c.form == list || c.form == amount && !r.Partial {
			continue
		}
		has := make([]bool, w.hosts)
		for i, n := range deeds.Node {
			has[deeds.Host[i]] = has[deeds.Host[i]] || n == c.node && deeds.Rule[i] == c.rule
		}
		for h, v := range left(w, deeds, w.g.Tree.Parent[c.node]) {
			for d, x := range v {
				if x > 0 && a.belongs(int32(h), r.Group) &&
					(c.form == amount && a.shortOf(claimID(id))[d] > 0 || c.form != amount && !has[h]) {
					w.t.Fatalf("rule %d of %s is unmet, but %v is left of h%d\n%s", c.rule, w.g.Tree.Path[c.node], v, h,
						text(&w.g, deeds))
				}
			}
		}
	}
}

// TestSound checks passes and updates of changing ground.
func TestSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawn(t)
		w.make(w.n("hosts", 1, 12))
		var a Assigner
		had := a.Pass(w.ground(), nothingHad(w.dims))
		for range w.n("steps", 1, 5) {
			w.sound(had)
			w.exhausted(&a, had)
			changed := w.change(had)
			if w.odds("reform", 1, 3) {
				had = w.reform(had)
				had = a.Pass(w.ground(), had)
			} else {
				had = a.Update(w.ground(), changed)
			}
		}
	})
}

// TestStays checks that what was taken from nothing stays, whatever is held then and on whom.
func TestStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawn(t)
		w.make(w.n("hosts", 1, 12))
		var a Assigner
		had := a.Pass(w.ground(), nothingHad(w.dims))
		for h := range int32(w.hosts) {
			w.hold(h, had, true)
		}
		if now := a.Pass(w.ground(), had); difference(now, had) != "" {
			t.Fatalf("was\n%sis\n%s", text(&w.g, had), text(&w.g, now))
		}
	})
}

// ceding tells whether a number of hosts has one that another child lists: it is left to that one when another comes.
func (w *world) ceding(deeds *Deeds) bool {
	for i, n := range deeds.Node {
		if w.g.Window.Own[n][deeds.Rule[i]].Hosts == plan.Unlimited {
			continue
		}
		up := w.g.Tree.Parent[n]
		for c := w.g.Tree.First[up]; c != plan.None; c = w.g.Tree.Next[c] {
			for _, r := range w.g.Window.Own[c] {
				if c != n && slices.ContainsFunc(r.HostList,
					func(name string) bool { return w.g.Listed(name) == deeds.Host[i] }) {
					return true
				}
			}
		}
	}
	return false
}

// TestComes checks that a host that comes, or comes back, changes nothing on others; percentages, of which it makes
// more, are left out, and so are hosts that others list and claims that would rather have other hosts.
func TestComes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawn(t)
		w.make(w.n("hosts", 2, 12)).withoutPercent()
		h := w.n("new", 0, w.hosts-1)
		var capacity []int64
		for d := range w.g.Cap {
			capacity = append(capacity, w.g.Cap[d][h])
			w.g.Cap[d][h] = 0
		}
		var a Assigner
		had := a.Pass(w.ground(), nothingHad(w.dims))
		if w.ceding(had) || slices.ContainsFunc(a.claims, func(c claim) bool { return a.wants(&c) }) {
			return
		}
		for d := range w.g.Cap {
			w.g.Cap[d][h] = capacity[d]
		}
		now := a.Pass(w.ground(), had)
		for n := plan.Node(1); int(n) < w.g.Tree.Len(); n++ {
			before, after := owned(&w.g, had, n), owned(&w.g, now, n)
			for other := range before {
				if other != h && !slices.Equal(before[other], after[other]) {
					t.Fatalf("h%d came, h%d changed: was\n%sis\n%s", h, other, text(&w.g, had), text(&w.g, now))
				}
			}
		}
	})
}

// TestGoes checks that when a host is lost, first-level consumers all of whose claims come before those that had
// something of it keep what they have, and those below them too.
func TestGoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawn(t)
		w.make(w.n("hosts", 2, 12)).withoutPercent()
		var a Assigner
		had := a.Pass(w.ground(), nothingHad(w.dims))
		h := int32(w.n("lost", 0, w.hosts-1))
		concerned := int32(1 << 30)
		for i, n := range had.Node {
			if had.Host[i] == h && w.g.Tree.Depth[n] == 1 {
				concerned = min(concerned, a.claims[a.base[n]+claimID(had.Rule[i])].place)
			}
		}
		for d := range w.g.Cap {
			w.g.Cap[d][h] = 0
		}
		now := a.Update(w.ground(), []int32{h})
		for n := w.g.Tree.First[plan.Root]; n != plan.None; n = w.g.Tree.Next[n] {
			for c := n; c < w.g.Tree.End[n] && a.last[n] < concerned; c++ {
				if !slices.EqualFunc(owned(&w.g, had, c), owned(&w.g, now, c), slices.Equal[[]int64]) {
					t.Fatalf("h%d was lost, %s changed: was\n%sis\n%s", h, w.g.Tree.Path[c], text(&w.g, had),
						text(&w.g, now))
				}
			}
		}
	})
}

// withoutPercent has rules of a percentage of hosts be of a number.
func (w *world) withoutPercent() {
	for _, list := range w.g.Window.Own {
		for i := range list {
			if list[i].Percent != plan.Unlimited {
				list[i].Hosts, list[i].Percent = list[i].Percent/40_000, plan.Unlimited
			}
		}
	}
}
