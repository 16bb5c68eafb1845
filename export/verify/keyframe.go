package verify

import (
	"maps"
	"slices"
)

// stale finds the leaves of which a table says that they hold other kinds of units than grants and
// releases make: some of theirs came to count as something else in this cycle.
func (v *verifier) stale(relabel map[string]bool) {
	t := v.table["consumers"]
	plan, consumer := t.words["plan"], t.words["consumer"]
	own, shared := t.number["held_owned"], t.number["held_shared"]
	borrowed, lent := t.number["held_borrowed"], t.number["lent"]
	for row := range t.n {
		p := v.m.policy.byName[plan.text(row)]
		if p == nil {
			continue
		}
		leaf := consumer.text(row)
		a := v.m.account(p.name, leaf)
		if p.md || p.exclusive != "" || v.hybrid(p, leaf) || a.owned != own.at(row) || a.shared != shared.at(row) ||
			a.borrowed != borrowed.at(row) {
			relabel[p.name+leaf] = true
		}
		if a.lent != lent.at(row) {
			relabel[p.name+">"+leaf] = true
		}
	}
}

// hybrid tells whether a consumer's branch is under the hybrid policy now.
func (v *verifier) hybrid(t *plan, path string) bool {
	e := t.at(v.now, v.m.policy.zone).entry[path]
	return e != nil && e.kind == "hybrid"
}

// counted holds what units count as against a keyframe, and goes on with what it says. Units may have come
// to count as something else in this cycle, where the figures of their leaf and its lenders say so.
func (v *verifier) counted(stated map[spot]map[label]int64, relabel map[string]bool) {
	for at, have := range stated {
		p := v.m.piles[at]
		t := v.m.policy.byName[at.plan]
		if p == nil || t == nil || maps.Equal(p.label, have) {
			continue
		}
		if p.loose && maps.Equal(poolless(p.label), poolless(have)) {
			v.m.relabel(p, have)
			continue
		}
		may := relabel[at.plan+at.consumer]
		for _, l := range slices.Concat(slices.Collect(maps.Keys(p.label)), slices.Collect(maps.Keys(have))) {
			may = may || l.origin == "" || l.lender != "" && relabel[at.plan+">"+l.lender]
		}
		same := maps.Equal(poolless(p.label), poolless(have)) && !p.loose
		if t.md && !v.strange[t.name] {
			// it ran at the start, or the host is split otherwise
			may, same = p.label[label{}] > 0 || v.moved[at.host], false
		}
		v.is(Fault{Rule: "INV-9", Table: "holdings", Plan: at.plan, Consumer: at.consumer, Allocation: at.allocation,
			Sub: at.sub, Host: at.host,
			What:     "what units count as is not what they were granted as, and nothing was relabelled",
			Expected: list(p.label), Got: list(have)},
			may && !same)
		v.relabelled = true
		v.m.relabel(p, have)
	}
	for _, p := range v.m.piles {
		p.loose = false
	}
}

func poolless(labels map[label]int64) map[label]int64 {
	out := map[label]int64{}
	for l, n := range labels {
		out[label{origin: l.origin, lender: l.lender}] += n
	}
	return out
}

// list writes labels with their units.
func list(labels map[label]int64) string {
	keys := slices.SortedFunc(maps.Keys(labels), func(a, b label) int {
		if a.words() < b.words() {
			return -1
		}
		return 1
	})
	text := ""
	for i, l := range keys {
		if i > 0 {
			text += ", "
		}
		text += grouped(labels[l]) + " " + l.words()
	}
	return text
}
