package verify

import (
	"cmp"
	"slices"
)

// ownershipRows reads the table ownership: by plan and part, what came and what went, by dimension.
func (v *verifier) ownershipRows() map[string]map[part][]int64 {
	t := v.table["ownership"]
	if t == nil {
		return nil
	}
	plan, consumer, host := t.words["plan"], t.words["consumer"], t.words["host"]
	action, dim, amount := t.words["action"], t.words["dimension"], t.number["amount"]
	all := map[string]map[part][]int64{}
	for row := range t.n {
		f := Fault{Rule: "MD-4", Table: "ownership", Plan: plan.text(row), Consumer: consumer.text(row),
			Host: host.text(row)}
		d, ok := v.m.policy.dimension(dim.text(row))
		sign := map[string]int64{"assigned": 1, "trimmed": -1}[action.text(row)]
		f.What = "a row of no dimension or action, or of no amount"
		if !v.is(f, ok && sign != 0 && amount.at(row) > 0) {
			continue
		}
		if all[f.Plan] == nil {
			all[f.Plan] = map[part][]int64{}
		}
		k := part{f.Consumer, f.Host}
		if all[f.Plan][k] == nil {
			all[f.Plan][k] = make([]int64, len(v.m.policy.dimensions))
		}
		f.What = "the dimension " + dim.text(row) + " stands twice"
		v.is(f, all[f.Plan][k][d] == 0)
		all[f.Plan][k][d] += sign * amount.at(row)
	}
	return all
}

// owning holds what a table says that changed against what did.
func (v *verifier) owning(t *plan, change, said map[part][]int64) {
	for k := range said {
		if change[k] == nil {
			change[k] = make([]int64, len(v.m.policy.dimensions))
		}
	}
	for k, want := range change {
		got := said[k]
		if got == nil {
			got = make([]int64, len(want))
		}
		for d, name := range v.m.policy.dimensions {
			v.equal(Fault{Rule: "MD-4", Table: "ownership", Plan: t.name, Consumer: k.of, Host: k.host,
				What: "what it gets or loses of " + name}, want[d], got[d])
		}
	}
}

// cut splits the hosts among those who own parts of them: of each consumer what none of its children has.
func (v *verifier) cut(t *plan, e *estate) {
	dims := len(v.m.policy.dimensions)
	on := map[string]map[string][]int64{}
	add := func(host, owner string, amount []int64, times int64) {
		if on[host] == nil {
			on[host] = map[string][]int64{"/": slices.Clone(v.m.hosts[host].cap)}
		}
		if on[host][owner] == nil {
			on[host][owner] = make([]int64, dims)
		}
		plus(on[host][owner], amount, times)
	}
	for k, amount := range e.parts {
		add(k.host, k.of, amount, 1)
		add(k.host, parentOf(k.of), amount, -1)
	}
	for host, owners := range on {
		var list []parcel
		for owner, size := range owners {
			v.is(Fault{Rule: "MD-2", Table: "ownership", Plan: t.name, Consumer: owner, Host: host,
				What: "those below it own more of the host than it does"},
				slices.Min(size) >= 0)
			if !zero(size) {
				list = append(list, parcel{owner, size})
			}
		}
		slices.SortFunc(list, func(a, b parcel) int {
			return cmp.Compare(v.m.policy.place[a.owner], v.m.policy.place[b.owner])
		})
		e.split[host] = list
	}
}

// unsettle finds the hosts whose units may lie elsewhere now, since their parcels changed: those on which not
// everything fits where it was.
func (v *verifier) unsettle(t *plan, was, is *estate, used map[string]map[string][]int64) {
	for host, owners := range used {
		now := v.m.parcels(is, t, host)
		for owner, held := range owners {
			i := slices.IndexFunc(now, func(p parcel) bool { return p.owner == owner })
			if i < 0 || !covers(now[i].size, held) {
				v.moved[host] = !slices.EqualFunc(v.m.parcels(was, t, host), now, func(a, b parcel) bool {
					return a.owner == b.owner && slices.Equal(a.size, b.size)
				})
			}
		}
	}
}

// parcels are those of a host. One of which nobody owns anything is one parcel.
func (m *model) parcels(e *estate, t *plan, host string) []parcel {
	if e != nil && e.split[host] != nil {
		return e.split[host]
	}
	h := m.hosts[host]
	if h == nil || h.gone || h.plan != t.name && h.plan != "" {
		return []parcel{{"/", make([]int64, len(m.policy.dimensions))}}
	}
	return []parcel{{"/", m.worth(h, t)}}
}

// lay is what consumers reserve of their parts, and on which parcels it lies (MD-5).
func (e *estate) lay(m *model, t *plan) {
	of := map[string][]part{}
	for k := range e.parts {
		of[k.of] = append(of[k.of], k)
	}
	for path, list := range of {
		r := e.window.entry[path].reserve
		if r.hosts == none && r.percent == none && r.amount == nil {
			continue
		}
		slices.SortFunc(list, func(a, b part) int { return cmp.Compare(e.number[a], e.number[b]) })
		rest, sum := make([]int64, len(m.policy.dimensions)), make([]int64, len(m.policy.dimensions))
		named := func(d int) bool { return r.amount == nil || r.amount[d] != none }
		for d := range rest {
			switch {
			case r.percent != none:
				rest[d] = fraction{r.percent, 100_000}.of(e.owned[path][d])
			case r.amount != nil && named(d):
				rest[d] = r.amount[d]
			}
		}
		for i, k := range list {
			have := e.parts[k]
			take := least(have, rest)
			switch {
			case r.hosts != none && int64(i) < r.hosts:
				take = slices.Clone(have)
			case r.hosts != none:
				clear(take)
			default:
				along(have, take, named)
				for d := range rest {
					if named(d) {
						rest[d] -= take[d]
					}
				}
			}
			plus(sum, take, 1)
			e.put(path, k.host, take)
		}
		e.reserved[path] = sum
	}
}

// put lays what a consumer reserves of a host on its own parcel there first, then on those of consumers below it.
func (e *estate) put(path, host string, amount []int64) {
	rest := slices.Clone(amount)
	for _, p := range e.split[host] {
		if v := least(p.size, rest); under(p.owner, path) && !zero(v) {
			e.aside[aside{path, p.owner, host}] = v
			plus(rest, v, -1)
		}
	}
}

// estateOf is what is owned in a plan.
func (v *verifier) estateOf(plan string) *estate {
	if e := v.m.estates[plan]; e != nil {
		return e
	}
	return newEstate()
}

// lent is what outsiders hold of what consumers own.
func (v *verifier) lent(t *plan) map[string][]int64 {
	all := map[string][]int64{}
	for at, p := range v.m.piles {
		if at.plan != t.name {
			continue
		}
		for l, n := range p.label {
			for path := l.owner(at.consumer); path != "/" && path != "" && !under(at.consumer,
				path); path = parentOf(path) {
				if all[path] == nil {
					all[path] = make([]int64, len(v.m.policy.dimensions))
				}
				plus(all[path], p.size, n)
			}
		}
	}
	return all
}
