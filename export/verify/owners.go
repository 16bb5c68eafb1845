package verify

import (
	"cmp"
	"maps"
	"slices"
)

// claimed names the piece that a rule has of a host.
type claimed struct {
	of, host string
	rule     int
}

// deeds is what a keyframe says of a plan.
type deeds struct {
	piece  map[claimed][]int64
	number map[part]int64
	since  int64
}

// owners holds who owns what against a keyframe. Of plans of which that is not known it goes on with what the keyframe
// says.
func (v *verifier) owners() {
	t := v.table["owners"]
	if t == nil {
		return
	}
	said := v.deeds(t)
	for _, t := range v.m.policy.plans {
		d := said[t.name]
		delete(said, t.name)
		switch {
		case !t.md:
			v.is(Fault{Rule: "MD-4", Table: "owners", Plan: t.name, What: "nobody owns hosts in a slot plan"}, d == nil)
		case v.strange[t.name]:
			v.inherit(t, d)
		case !v.strange[t.name]:
			v.deeded(t, v.estateOf(t.name), d)
		}
	}
	for name := range said {
		v.fault(Fault{Rule: "MD-4", Table: "owners", Plan: name, What: "there is no such plan"})
	}
}

// deeds reads a keyframe, by plan.
func (v *verifier) deeds(t *rows) map[string]*deeds {
	plan, consumer, host, dim := t.words["plan"], t.words["consumer"], t.words["host"], t.words["dimension"]
	rule, number, since, amount := t.number["rule"], t.number["part"], t.number["since"], t.number["amount"]
	all := map[string]*deeds{}
	for row := range t.n {
		f := Fault{Rule: "MD-4", Table: "owners", Plan: plan.text(row), Consumer: consumer.text(row),
			Host: host.text(row)}
		n, ok := v.m.policy.dimension(dim.text(row))
		f.What = "a row of no dimension, consumer or host that there is, or of no amount"
		if _, is := v.m.policy.place[f.Consumer]; !v.is(f, ok && is && v.m.hosts[f.Host] != nil && amount.at(row) > 0) {
			continue
		}
		d := all[f.Plan]
		if d == nil {
			d = &deeds{map[claimed][]int64{}, map[part]int64{}, since.at(row)}
			all[f.Plan] = d
		}
		k, p := claimed{f.Consumer, f.Host, int(rule.at(row)) - 1}, part{f.Consumer, f.Host}
		if d.piece[k] == nil {
			d.piece[k] = make([]int64, len(v.m.policy.dimensions))
		}
		f.What = "the dimension " + dim.text(row) + " stands twice"
		v.is(f, d.piece[k][n] == 0)
		d.piece[k][n] += amount.at(row)
		f.What = "since is not the same in the plan, or part not on the host"
		v.is(f, since.at(row) == d.since && (d.number[p] == 0 || d.number[p] == number.at(row)))
		d.number[p] = number.at(row)
	}
	return all
}

// deeded holds what is owned in a plan against what a keyframe says.
func (v *verifier) deeded(t *plan, e *estate, d *deeds) {
	if d == nil {
		d = &deeds{}
	}
	have := map[claimed][]int64{}
	for _, q := range e.pieces {
		k := claimed{q.of, q.host, q.rule}
		if have[k] == nil {
			have[k] = make([]int64, len(q.v))
		}
		plus(have[k], q.v, 1)
	}
	for k, got := range d.piece {
		if have[k] == nil {
			have[k] = make([]int64, len(got))
		}
	}
	for k, want := range have {
		got := d.piece[k]
		if got == nil {
			got = make([]int64, len(want))
		}
		for i, name := range v.m.policy.dimensions {
			v.equal(Fault{Rule: "MD-4", Table: "owners", Plan: t.name, Consumer: k.of, Host: k.host,
				What: "what a rule has of " + name}, want[i], got[i])
		}
	}
	for i, list := 1, e.inOrder(d.number); i < len(list); i++ {
		v.is(Fault{Rule: "MD-5", Table: "owners", Plan: t.name, Consumer: list[i].of, Host: list[i].host,
			What: "the part came before that of " + list[i-1].host},
			list[i].of != list[i-1].of || d.number[list[i-1]] < d.number[list[i]])
	}
	if e.open && len(d.piece) > 0 {
		v.equal(Fault{Rule: "MD-4", Table: "owners", Plan: t.name, What: "cycles with other input since the last pass"},
			e.changes, d.since)
	}
}

// inOrder are the parts that a keyframe has too, by consumer in the order in which they were taken.
func (e *estate) inOrder(there map[part]int64) []part {
	list := slices.DeleteFunc(slices.Collect(maps.Keys(e.number)), func(k part) bool {
		return there[k] == 0 || e.parts[k] == nil
	})
	slices.SortFunc(list, func(a, b part) int {
		return cmp.Or(cmp.Compare(a.of, b.of), cmp.Compare(e.number[a], e.number[b]))
	})
	return list
}

// inherit goes on with what a keyframe says: with it the claims are gone through as in a pass, to see which are met and
// what they ask for. Where nobody owns anything no row tells when unmet claims are tried again: then it is not known
// until somebody does.
func (v *verifier) inherit(t *plan, d *deeds) {
	empty := d == nil
	if empty {
		d = &deeds{number: map[part]int64{}}
	}
	w := t.at(v.now, v.m.policy.zone)
	p := v.newPass(t, w)
	p.given = map[string][]piece{}
	for k, amount := range d.piece {
		p.given[k.of] = append(p.given[k.of], piece{k.of, k.rule, k.host, amount})
	}
	p.divideAll()
	n := p.next
	for k, amount := range d.piece {
		v.is(Fault{Rule: "MD-4", Table: "owners", Plan: t.name, Consumer: k.of, Host: k.host,
			What: "a piece of a rule that there is not, or of a host that the parent has nothing of"},
			n.parts[part{k.of, k.host}] != nil && slices.ContainsFunc(n.pieces, func(q piece) bool {
				return q.of == k.of && q.host == k.host && q.rule == k.rule && slices.Equal(q.v, amount)
			}))
	}
	n.number, n.window, n.basis, n.changes = d.number, w, v.basis(t, v.m.grouped(t)), d.since
	for _, number := range d.number {
		n.last = max(n.last, number)
	}
	if n.open {
		n.was = v.asks(t)
	}
	for _, h := range v.m.hosts {
		n.guessed = n.guessed || h.plan == t.name && h.state == "unavail"
	}
	if n.guessed {
		v.report.cannot("what is configured in the plan %s until its next pass: hosts are unavail, and what they had "+
			"in the last one is told nowhere", t.name)
	}
	if empty && len(n.unmet) > 0 {
		return
	}
	v.m.estates[t.name], v.strange[t.name] = n, false
	v.cut(t, n)
	n.lay(v.m, t)
}
