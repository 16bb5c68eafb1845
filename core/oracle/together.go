package oracle

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stintd/stint/core/plan"
)

// Gangs whose hosts have one value of an attribute, by docs/shares.md and docs/slots.md, "Together".

// noValue is a value that no host has.
type noValue struct{}

// asksFor is the attribute by which a gang is to be together, "" where it may be anywhere, or is none.
func (s *sub) asksFor() (name string, prefers bool) {
	if !s.gang() {
		return "", false
	}
	return strings.CutPrefix(s.together, "prefer ")
}

// place is the value of a host by which a gang is together, nil where it has none.
func (s *sub) place(h *host) any {
	name, _ := s.asksFor()
	if name == "host" {
		return h.Name
	}
	if _, is := h.Attr[name].(bool); is {
		return nil
	}
	return h.Attr[name]
}

// isHeld tells whether a gang is held to a value.
func (f *frame) isHeld(s *sub) bool {
	_, held := f.bonds[s]
	return held
}

// hold holds the gangs that must be together to the value of what they have: of the first host, in host order, on which
// any of it stays, else of the target of the first set for it.
func (f *frame) hold() {
	f.bonds = map[*sub]any{}
	for _, s := range f.below(plan.Root) {
		name, prefers := s.asksFor()
		if name == "" || prefers {
			continue
		}
		stay, sets := f.staying(s), f.mine(func(t *set) bool { return t.taker == s && t.n > 0 })
		slices.SortStableFunc(stay, func(a, b *unit) int { return cmp.Compare(f.place(a), f.place(b)) })
		valued := slices.DeleteFunc(slices.Clone(stay), func(u *unit) bool { return s.place(u.host) == nil })
		switch {
		case len(valued) > 0:
			f.bonds[s] = s.place(valued[0].host)
		case len(stay) == 0 && len(sets) > 0 && slices.Contains(f.Cluster.hosts, sets[0].target) &&
			s.place(sets[0].target) != nil:
			f.bonds[s] = s.place(sets[0].target)
		case len(stay) > 0 || len(sets) > 0:
			f.bonds[s] = noValue{}
		}
	}
}

// values are those of a gang's attribute, in host order.
func (f *frame) values(s *sub) (values []any) {
	for _, h := range f.hosts {
		if v := s.place(h); v != nil && !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	return values
}

// somewhere tries something for a gang for each value of its attribute in host order, until it does; of one that may do
// without, then anywhere.
func (f *frame) somewhere(s *sub, try func() bool) bool {
	return f.among(s, func() []any { return f.values(s) }, try)
}

// among is somewhere for some values.
func (f *frame) among(s *sub, values func() []any, try func() bool) bool {
	name, prefers := s.asksFor()
	if name == "" || f.isHeld(s) {
		return try()
	}
	for _, v := range values() {
		f.bonds[s] = v
		if try() {
			if f.notes["a gang is together"]++; prefers {
				delete(f.bonds, s)
			}
			return true
		}
	}
	delete(f.bonds, s)
	if prefers && try() {
		f.notes["a gang does without what it prefers"]++
		return true
	}
	return false
}

// roomiest orders values, those first where the most units of a gang fit now, and gives at most 64.
func (f *frame) roomiest(s *sub, values []any, room func(s *sub, v any) int64) []any {
	units := map[any]int64{}
	for _, v := range values {
		units[v] = min(s.least, room(s, v))
	}
	slices.SortStableFunc(values, func(a, b any) int { return cmp.Compare(units[b], units[a]) })
	return values[:min(len(values), 64)]
}

// roomAt is how many units of a gang fit hosts with a value now, on own parcels and from all pools together, limits
// left aside.
func (g *round) roomAt(s *sub, v any) (units int64) {
	on := map[*host]int64{}
	for n := s.alloc.leaf; n != plan.None; n = g.p.Parent[n] {
		q := g.pool(n)
		if q.barred(s.alloc.leaf) {
			continue
		}
		for _, t := range q.usable(s) {
			if s.place(t.host) != v {
				continue
			}
			room, fit := q.room(s.alloc.leaf, t), int64(math.MaxInt64)
			for d, n := range s.size {
				if n > 0 {
					fit = min(fit, max(0, room[d])/n)
				}
			}
			if s.perHost != plan.Unlimited {
				held := int64(len(slices.DeleteFunc(slices.Clone(t.host.units), func(u *unit) bool {
					return u.sub != s
				})))
				fit = min(fit, max(0, s.perHost-held-on[t.host]))
			}
			on[t.host] += fit
			units += fit
		}
	}
	return units
}

// where tells to which value a gang is held.
func (f *frame) where(s *sub) string {
	name, _ := s.asksFor()
	in := "in " + name
	if name == "host" {
		in = "on host"
	}
	switch v := f.bonds[s].(type) {
	case string:
		return in + " " + v
	case float64:
		return in + " " + strconv.FormatFloat(v, 'f', -1, 64)
	case nil, noValue:
		return ""
	default:
		panic(fmt.Sprintf("oracle: a value %v", v))
	}
}
