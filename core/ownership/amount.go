package ownership

import (
	"slices"

	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/share"
)

// amount takes hosts that fit in what is missing, and with `partial` parts of hosts for the rest.
func (t *taking) amount() (missing []int64, met bool) {
	short := slices.Clone(t.rule.Amount)
	fit := func(h int32, v []int64) {
		if fits(v, short) {
			t.take(h, v)
			pay(short, v)
		}
	}
	for _, h := range t.own() {
		fit(h, least(t.had[h], t.left[h]))
	}
	for _, h := range t.candidates() {
		fit(h, slices.Clone(t.left[h]))
	}
	if t.rule.Partial && owing(short) {
		for _, h := range append(t.own(), t.candidates()...) {
			v := cut(short, t.left[h])
			t.take(h, v)
			pay(short, v)
		}
	}
	missing = make([]int64, t.dims)
	for d, v := range short {
		missing[d] = max(0, v)
	}
	return missing, !owing(short)
}

// owing tells whether something of a named dimension is missing.
func owing(short []int64) bool {
	return slices.ContainsFunc(short, func(v int64) bool { return v > 0 })
}

// fits tells whether all of v may be taken: it has something that is missing, and of no named dimension too much.
func fits(v, short []int64) bool {
	some := false
	for d, want := range short {
		if want == plan.Unlimited {
			continue
		}
		if v[d] > want {
			return false
		}
		some = some || v[d] > 0
	}
	return some
}

// pay takes off what is missing what was taken.
func pay(short, v []int64) {
	for d := range short {
		if short[d] != plan.Unlimited {
			short[d] -= v[d]
		}
	}
}

// cut is what is taken of v for at most so much of named dimensions: of these what there is,
// of the others the largest named fraction, rounded down. Nothing when no named dimension gives any.
func cut(most, v []int64) []int64 {
	out := make([]int64, len(v))
	part, whole := int64(0), int64(1)
	for d, want := range most {
		if want == plan.Unlimited {
			continue
		}
		out[d] = min(want, v[d])
		if out[d] > 0 && share.Less(part, whole, out[d], v[d]) {
			part, whole = out[d], v[d]
		}
	}
	for d, want := range most {
		if want == plan.Unlimited {
			out[d], _ = share.Scale(v[d], part, whole)
		}
	}
	return out
}

// perHost takes a part of each host.
func (t *taking) perHost() (missing []int64, met bool) {
	missing, met = make([]int64, t.dims), true
	for _, h := range t.domain.host {
		if !t.in(h) {
			continue
		}
		ask := cut(asked(t.rule.PerHost, t.whole[h]), t.whole[h])
		give := least(ask, t.left[h])
		t.take(h, give)
		for d := range ask {
			met = met && give[d] == ask[d]
			missing[d] = share.Add(missing[d], ask[d]-give[d])
		}
	}
	return missing, met
}

// asked is what `per_host` names of a host, Unlimited where it names nothing.
func asked(rule []plan.Part, whole []int64) []int64 {
	ask := make([]int64, len(rule))
	for d, r := range rule {
		ask[d] = r.Amount
		if r.Percent != plan.Unlimited {
			ask[d], _ = share.Scale(whole[d], r.Percent, hundred)
		}
	}
	return ask
}
