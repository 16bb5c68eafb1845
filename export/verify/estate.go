package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// part is what a consumer has of a host, as a key.
type part struct{ of, host string }

// parcel is the part of a host that one consumer owns and none of its children; the root's is public.
type parcel struct {
	owner string
	size  []int64
}

// aside is a consumer's reserve on a parcel, as a key.
type aside struct{ of, owner, host string }

// estate is what is owned in an MD plan since its last pass (docs/ownership.md).
type estate struct {
	pieces     []piece
	parts      map[part][]int64 // Σ of them
	number     map[part]int64   // parts in the order in which they were taken
	last       int64            // the last number
	lists      map[string]string
	unmet      map[string]bool
	open       bool // a claim is unmet, or would rather have other hosts (MD-3)
	configured map[string][]int64
	// what is configured is not known: it goes by hosts as they were in the pass, and some are not there
	guessed  bool
	reserved map[string][]int64
	owned    map[string][]int64
	split    map[string][]parcel // by host of which anybody owns anything
	aside    map[aside][]int64
	window   *window
	basis    string // what the pass went by, but for what is held
	was      string // the rest of the input that the plan went by in the last cycle, where a claim is open
	changes  int64  // cycles since the pass in which that changed
}

func newEstate() *estate {
	return &estate{parts: map[part][]int64{}, number: map[part]int64{}, lists: map[string]string{},
		unmet:      map[string]bool{},
		configured: map[string][]int64{}, reserved: map[string][]int64{}, owned: map[string][]int64{},
		split: map[string][]parcel{}, aside: map[aside][]int64{}}
}

// give adds a piece.
func (e *estate) give(q piece) {
	e.pieces = append(e.pieces, q)
	k := part{q.of, q.host}
	if e.parts[k] == nil {
		e.parts[k] = make([]int64, len(q.v))
	}
	plus(e.parts[k], q.v, 1)
	if e.owned[q.of] == nil {
		e.owned[q.of] = make([]int64, len(q.v))
	}
	plus(e.owned[q.of], q.v, 1)
}

// partOf is what a consumer has of a host. Read it only.
func (e *estate) partOf(of, host string, dims int) []int64 {
	if v := e.parts[part{of, host}]; v != nil {
		return v
	}
	return make([]int64, dims)
}

// asked is what a consumer's rules ask for, to be added to.
func (e *estate) asked(of string, dims int) []int64 {
	if e.configured[of] == nil {
		e.configured[of] = make([]int64, dims)
	}
	return e.configured[of]
}

// rename gives what consumers own to those that a policy renames them to.
func (e *estate) rename(name func(string) string) {
	for i := range e.pieces {
		e.pieces[i].of = name(e.pieces[i].of)
	}
	e.parts, e.number = renamedParts(e.parts, name), renamedParts(e.number, name)
	lists := map[string]string{}
	for path, text := range e.lists {
		lists[name(path)] = text
	}
	e.lists = lists
	for h, list := range e.split {
		for i := range list {
			e.split[h][i].owner = name(list[i].owner)
		}
	}
}

func renamedParts[V any](m map[part]V, name func(string) string) map[part]V {
	out := map[part]V{}
	for k, v := range m {
		out[part{name(k.of), k.host}] = v
	}
	return out
}

// own makes a pass over the ownership of every plan in which it is time for one, and holds the table ownership against
// it.
func (v *verifier) own() {
	v.moved = map[string]bool{}
	rows := v.ownershipRows()
	for _, t := range v.m.policy.plans {
		if !t.md {
			continue
		}
		e := v.m.estates[t.name]
		if v.strange[t.name] {
			v.report.cannot("who owns what in the plan %s: what was owned before the first cycle that can be read is "+
				"in no table", t.name)
			continue
		}
		change := map[part][]int64{}
		if t.owners || e != nil {
			if e == nil {
				e = newEstate()
				v.m.estates[t.name] = e
			}
			if v.passDue(t, e) {
				change = v.pass(t, e)
			}
		}
		v.owning(t, change, rows[t.name])
		delete(rows, t.name)
	}
	for name := range rows {
		if !v.strange[name] {
			v.fault(Fault{Rule: "MD-4", Table: "ownership", Plan: name, What: "there is no such MD plan"})
		}
	}
}

// passDue tells whether it is time for a pass: what it goes by changed, or a claim is open and input changed often
// enough.
func (v *verifier) passDue(t *plan, e *estate) bool {
	w := t.at(v.now, v.m.policy.zone)
	if v.inputs == 0 && w == e.window && len(v.silent) == 0 {
		return false
	}
	e.window = w
	if basis := v.basis(t, v.m.grouped(t)); basis != e.basis {
		e.basis = basis
		return true
	}
	if !e.open {
		return false
	}
	if now := v.asks(t); now != e.was {
		e.was = now
		e.changes++
	}
	return e.changes >= t.rebalance
}

// basis is all that a pass goes by, but for what is held: policy, window, and which hosts there are in which groups.
func (v *verifier) basis(t *plan, groups map[string][]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %q", v.m.revision, t.at(v.now, v.m.policy.zone).name)
	for _, g := range t.groups {
		fmt.Fprintf(&b, "\n%q", g)
		for _, name := range v.m.policy.groups[g].hosts {
			fmt.Fprintf(&b, " %t", v.m.hosts[name] != nil) // one that was there once stands in its place
		}
		for _, name := range groups[g] {
			if h := v.m.hosts[name]; h.state != "unavail" && !zero(h.cap) {
				fmt.Fprintf(&b, " %q%v%t", name, h.cap, h.state == "closed" || h.state == "draining")
			} else if v.m.policy.groups[g].cond != nil {
				fmt.Fprintf(&b, " %q", name)
			}
		}
	}
	return b.String()
}

// asks is the rest of the input that a plan goes by: its hosts, and what is wanted.
func (v *verifier) asks(t *plan) string {
	var list []string
	for _, h := range v.m.hosts {
		if h.plan == t.name {
			list = append(list, fmt.Sprintf("%q %s %v %v", h.name, h.state, h.size, h.attr))
		}
	}
	for k, s := range v.m.subs {
		if k.plan == t.name && s.units > 0 && !s.orphan {
			list = append(list, fmt.Sprintf("%q %d %v %q %d", k, s.units, s.size, s.need, s.perHost))
		}
	}
	slices.Sort(list)
	return strings.Join(list, "\n")
}

// grouped are the hosts of a plan's groups, each in its order (D-1).
func (m *model) grouped(t *plan) map[string][]string {
	all := map[string][]string{}
	for _, name := range t.groups {
		g := m.policy.groups[name]
		for _, h := range g.hosts {
			if m.hosts[h] != nil && !m.hosts[h].gone {
				all[name] = append(all[name], h)
			}
		}
		for _, h := range m.order {
			if g.cond != nil && !m.hosts[h].gone && g.cond.truth(m.hosts[h], m) {
				all[name] = append(all[name], h)
			}
		}
	}
	return all
}

// newPass is a pass in which nothing has been taken yet.
func (v *verifier) newPass(t *plan, w *window) *pass {
	p := &pass{m: v.m, plan: t, w: w, group: map[string]map[string]bool{}, had: map[string][]piece{}, next: newEstate()}
	groups, seen := v.m.grouped(t), map[string]bool{}
	for _, g := range t.groups {
		p.group[g] = map[string]bool{}
		for _, name := range groups[g] {
			p.group[g][name] = true
			if h := v.m.hosts[name]; !seen[name] && h.state != "unavail" && !zero(h.cap) {
				seen[name] = true
				p.hosts = append(p.hosts, name)
			}
		}
	}
	p.group[""] = seen // of rules that name no group
	for _, path := range v.m.policy.paths {
		if text := v.m.policy.words(p.w.entry[path].own); text != "" && t.member[path] {
			p.next.lists[path] = text
		}
	}
	return p
}

// divideAll gives all consumers what their claims take, parents before their children.
func (p *pass) divideAll() {
	for _, path := range append([]string{"/"}, p.m.policy.paths...) {
		if path == "/" || p.plan.member[path] && !p.m.policy.leaf(path) {
			p.divide(path)
		}
	}
}

// pass makes a pass, and gives what it changed.
func (v *verifier) pass(t *plan, e *estate) map[part][]int64 {
	p := v.newPass(t, e.window)
	p.used = v.m.usedBy(t)
	for _, q := range e.pieces {
		if p.next.lists[q.of] != e.lists[q.of] {
			q.rule = -1
		}
		p.had[q.host] = append(p.had[q.host], q)
	}
	p.divideAll()
	n := p.next
	n.last = e.last
	for _, q := range n.pieces {
		if k := (part{q.of, q.host}); n.number[k] == 0 {
			if n.number[k] = e.number[k]; n.number[k] == 0 {
				n.last++
				n.number[k] = n.last
			}
		}
	}
	n.basis, n.window = e.basis, e.window
	if n.open {
		n.was = v.asks(t)
	}
	v.m.estates[t.name] = n
	v.cut(t, n)
	v.unsettle(t, e, n, p.used)
	n.lay(v.m, t)
	return changes(e.parts, n.parts)
}

// changes is by how much parts changed.
func changes(was, is map[part][]int64) map[part][]int64 {
	all := map[part][]int64{}
	for k, now := range is {
		all[k] = slices.Clone(now)
	}
	for k, old := range was {
		if all[k] == nil {
			all[k] = make([]int64, len(old))
		}
		plus(all[k], old, -1)
	}
	return all
}

// usedBy is what is held on each host of a plan by the owner of the parcel.
func (m *model) usedBy(t *plan) map[string]map[string][]int64 {
	all := map[string]map[string][]int64{}
	for at, p := range m.piles {
		if at.plan != t.name {
			continue
		}
		if all[at.host] == nil {
			all[at.host] = map[string][]int64{}
		}
		for l, n := range p.label {
			owner := l.owner(at.consumer)
			if all[at.host][owner] == nil {
				all[at.host][owner] = make([]int64, len(m.policy.dimensions))
			}
			plus(all[at.host][owner], p.size, n)
		}
	}
	return all
}

// owner is whose parcel units of a leaf are on that count as this; the root's are public.
func (l label) owner(leaf string) string {
	switch {
	case l.origin == "owned":
		return leaf
	case l.lender != "":
		return l.lender
	}
	return cmp.Or(l.pool, "/")
}

// estranged gives up on who owns what, but for what a keyframe tells: the table ownership has only what changes.
func (v *verifier) estranged() {
	v.m.estates, v.strange = map[string]*estate{}, map[string]bool{}
	for _, t := range v.m.policy.plans {
		v.strange[t.name] = t.md && t.owners
	}
	v.owners()
}
