package cluster

import (
	"fmt"
	"math"
	"slices"

	"github.com/stintd/stint/core/plan"
)

// soundness is the first thing that is wrong with a state that was loaded.
type soundness struct{ err error }

func (k *soundness) fail(format string, args ...any) {
	if k.err == nil {
		k.err = fmt.Errorf(format, args...)
	}
}

// rows checks that columns have so many rows.
func (k *soundness) rows(what string, n int, columns ...int) {
	for i, got := range columns {
		if got != n {
			k.fail("%s: column %d has %d rows of %d", what, i, got, n)
		}
	}
}

// amounts checks the columns by dimension; nil ones may be missing altogether.
func (k *soundness) amounts(what string, dims, n int, columns [][]int64) {
	if columns == nil {
		return
	}
	if len(columns) != dims {
		k.fail("%s: %d dimensions of %d", what, len(columns), dims)
	}
	for _, column := range columns {
		k.rows(what, n, len(column))
	}
}

// within checks that the ids of live rows are from least on and below n. A nil live is all.
func within[T ~int32](k *soundness, what string, ids []T, least, n int, live func(i int) bool) {
	if k.err != nil {
		return
	}
	for i, id := range ids {
		if (int(id) < least || int(id) >= n) && (live == nil || live(i)) {
			k.fail("%s: row %d names %d, there are %d", what, i, id, n)
			return
		}
	}
}

// chains checks that lists end.
func chains[T, U ~int32](k *soundness, what string, first []T, next []U, live func(i int) bool) {
	if k.err != nil {
		return
	}
	left := len(next)
	for i, q := range first {
		for q != NoID && (live == nil || live(i)) {
			if left--; left < 0 {
				k.fail("%s: the lists are longer than there are rows", what)
				return
			}
			q = T(next[q])
		}
	}
}

// sound tells what of a state that was loaded does not fit together: columns of other lengths, rows that name rows that
// are not there, lists without end. Whether the figures add up it does not look at; checksums tell damage. O(rows).
func (s *State) sound(hidden []AllocID) error {
	k := &soundness{}
	dims := len(s.Policy.Dimensions)
	if s.Shape.dims != dims || len(s.Shape.size)%max(dims, 1) != 0 {
		k.fail("shapes of %d dimensions of %d", s.Shape.dims, dims)
	}
	k.rows("consumers", s.Consumer.Len(), len(s.NodeOf))
	k.rows("consumers of the policy", s.Policy.Len(), len(s.ConsumerOf))
	within(k, "consumers", s.NodeOf, NoID, s.Policy.Len(), nil)
	within(k, "consumers of the policy", s.ConsumerOf, 0, s.Consumer.Len(), nil)
	s.soundPlans(k)
	s.soundHosts(k, dims)
	s.soundDemand(k)
	within(k, "hidden allocations", hidden, 0, len(s.Alloc.First), nil)
	s.soundHoldings(k)
	s.soundSets(k, dims)
	if k.err != nil {
		return k.err
	}
	s.soundLists(k)
	return k.err
}

func (s *State) soundHosts(k *soundness, dims int) {
	h, n := &s.Host, s.Host.Len()
	k.rows("hosts", n, len(h.State), len(h.Plan), len(h.Parcel))
	if h.listed != nil || n > 0 {
		k.rows("hosts", n, len(h.listed))
	}
	if len(h.Size) != dims {
		k.fail("hosts: %d dimensions of %d", len(h.Size), dims)
	}
	k.amounts("hosts", dims, n, h.Size)
	within(k, "order of hosts", h.Order, 0, n, nil)
	for i := range s.last {
		within(k, "hosts noted", []HostID{s.last[i].host}, 0, n, nil)
		k.rows("hosts noted", dims, len(s.last[i].size))
	}
	within(k, "plans of hosts", h.Plan, NoID, len(s.Plans), nil)
	for i, state := range h.State {
		if int(state) >= len(HostStates) {
			k.fail("host %d is in state %d", i, state)
		}
	}
	for i := range h.Attr {
		a := &h.Attr[i]
		k.rows("attribute "+a.Name, n, len(a.Valid))
		switch a.Kind {
		case plan.Number:
			k.rows("attribute "+a.Name, n, len(a.Number))
		case plan.Boolean:
			k.rows("attribute "+a.Name, n, len(a.Bool))
		case plan.Text:
			k.rows("attribute "+a.Name, n, len(a.Text.Code))
			if k.err == nil {
				within(k, "attribute "+a.Name, a.Text.Code, 0, a.Text.Names.Len(), func(i int) bool {
					return a.Valid[i]
				})
			}
		default:
			k.fail("attribute %s is of kind %d", a.Name, a.Kind)
		}
	}
	for host, p := range h.Plan {
		if k.err == nil && p != NoID && (h.Parcel[host] < 0 || int(h.Parcel[host]) >= s.Plans[p].Parcels.Len()) {
			k.fail("host %d: no parcel %d", host, h.Parcel[host])
		}
	}
}

// soundPlans looks at plans, which come first: what others name of them depends on their lengths.
func (s *State) soundPlans(k *soundness) {
	nodes, plans := s.Policy.Len(), s.newPlans()
	if len(plans) != len(s.Plans) {
		k.fail("%d plans, %d in the policy", len(s.Plans), len(plans))
		return
	}
	for i := range s.Plans {
		p, n := &s.Plans[i], s.Plans[i].Parcels.Len()
		what, c := "plan "+p.Name, &p.Parcels
		var windows int
		if m := plans[i].MD; m != nil {
			windows = len(m.Windows)
		} else {
			windows = len(plans[i].Slots.Windows)
		}
		for _, w := range []int{p.Window, p.Before, p.Coming} {
			if w < NoID || w >= windows {
				k.fail("%s: no window %d", what, w)
			}
		}
		dims := plans[i].dimensions(s.Policy)
		k.rows(what, n, len(c.Owner), len(c.First))
		if len(c.Open) < c.Words() || len(c.Cap) != dims || len(c.Free) != dims || c.Left < 0 || c.Left > n ||
			p.Seen < 0 || p.Seen > len(p.Changed) {
			k.fail("%s: its parcels do not fit together", what)
		}
		for _, columns := range [][][]int64{c.Cap, c.Free, c.Kept, c.Owed} {
			k.amounts(what, dims, n, columns)
		}
		within(k, what, c.Host, 0, s.Host.Len(), nil)
		within(k, what, c.Owner, NoID, s.Consumer.Len(), nil)
		within(k, what, c.First, NoID, s.Holding.Len(), nil)
		within(k, what, p.Changed, 0, n, nil)
		within(k, what, p.Unlabelled, 0, s.Holding.Len(), nil)
		within(k, what, p.shifted, 0, s.Host.Len(), nil)
		if len(p.Lost) > s.Consumer.Len() || slices.ContainsFunc(p.Lost, func(ms int64) bool { return ms < 0 }) {
			k.fail("%s: work lost of consumers that there are not, or below 0", what)
		}
		s.soundBudgets(k, what, &p.Budgets, plans[i].Terms.Budget)
		s.soundHistory(k, what, p, plans[i].MD)
		k.rows(what+": consumers", nodes, len(p.FirstAlloc), len(p.LastAlloc), len(p.FirstPair))
		if p.RankOrder != nil || p.Window != NoID {
			k.rows(what+": ranks", nodes, len(p.RankOrder))
		}
		within(k, what, p.FirstAlloc, NoID, len(s.Alloc.First), nil)
		within(k, what, p.LastAlloc, NoID, len(s.Alloc.First), nil)
		s.soundPairs(k, what, p)
		s.soundDeeds(k, what, &p.Deeds, dims)
	}
}

// soundBudgets looks at what was used of budgets: a row for each budget of the plan, in tree order.
func (s *State) soundBudgets(k *soundness, what string, b *Budgets, list []plan.Budget) {
	var of []ConsumerID
	for n, budget := range list {
		if budget.Hours > 0 && n < len(s.ConsumerOf) {
			of = append(of, s.ConsumerOf[n])
		}
	}
	if !slices.Equal(of, b.Consumer) {
		k.fail("%s: budgets of other consumers than in the policy", what)
		return
	}
	for i, column := range b.columns() {
		k.rows(what+": budgets", len(of), len(*column))
		most := int64(hoursMost)
		switch i {
		case 1, 4:
			most = hourUS - 1
		case 2:
			most = math.MaxInt64
		}
		if slices.ContainsFunc(*column, func(v int64) bool { return v < 0 || v > most }) {
			k.fail("%s: what was used of a budget is out of bounds", what)
		}
	}
}

func (s *State) soundPairs(k *soundness, what string, p *Plan) {
	q, n := &p.Pairs, len(p.Pairs.Leaf)
	k.rows(what+": pairs", n, len(q.Shape), len(q.Pool), len(q.Units), len(q.Leaving), len(q.Next))
	within(k, what+": pairs", q.Leaf, 0, s.Policy.Len(), nil)
	within(k, what+": pairs", q.Shape, 0, s.Shape.Len(), nil)
	within(k, what+": pairs", q.Pool, NoID, s.Consumer.Len(), nil)
	within(k, what+": pairs", q.Next, NoID, n, nil)
	within(k, what+": pairs", p.FirstPair, NoID, n, nil)
}

func (s *State) soundDeeds(k *soundness, what string, d *Deeds, dims int) {
	n, nodes := len(d.Host), s.Policy.Len()
	k.rows(what+": deeds", n, len(d.Consumer), len(d.Rule), len(d.Number))
	k.rows(what+": lists of rules", len(d.Lister), len(d.List))
	within(k, what+": deeds", d.Consumer, 0, s.Consumer.Len(), nil)
	within(k, what+": deeds", d.Lister, 0, s.Consumer.Len(), nil)
	within(k, what+": deeds", d.Host, 0, s.Host.Len(), nil)
	k.amounts(what+": deeds", dims, n, d.Amount)
	k.amounts(what+": configured", dims, nodes, d.Configured)
	k.amounts(what+": reserved", dims, nodes, d.Reserved)
	k.rows(what+": what is kept", len(d.Keeper), len(d.KeptOn))
	within(k, what+": what is kept", d.Keeper, 0, s.Consumer.Len(), nil)
	within(k, what+": what is kept", d.KeptOn, 0, s.Host.Len(), nil)
	k.amounts(what+": what is kept", dims, len(d.Keeper), d.KeptAmount)
	if d.Unmet != nil {
		k.rows(what+": rules", nodes, len(d.Unmet))
	}
}

func (s *State) soundDemand(k *soundness) {
	l, n := &s.Alloc, len(s.Alloc.First)
	k.rows("allocations", n, len(l.Plan), len(l.Consumer), len(l.Source), len(l.Name), len(l.Arrival), len(l.Last),
		len(l.Next))
	b, subs := &s.Sub, len(s.Sub.Alloc)
	k.rows("sub-allocations", subs, len(b.Source), len(b.Plan), len(b.Consumer), len(b.Name), len(b.Shape), len(b.Need),
		len(b.MaxPerHost), len(b.MinUnits), len(b.Together),
		len(b.Wanted), len(b.Held), len(b.Pair), len(b.First), len(b.Next), len(b.Seq), len(b.FirstSeen), len(b.Orphan),
		len(b.Turns), len(b.seen))
	within(k, "allocations", l.First, NoID, subs, nil)
	within(k, "sub-allocations", b.Alloc, NoID, n, nil)
	within(k, "free allocations", l.free, 0, n, nil)
	within(k, "free sub-allocations", b.free, 0, subs, nil)
	within(k, "sub-allocations", s.excess, 0, subs, nil)
	within(k, "sub-allocations", s.gone, 0, subs, nil)
	if k.err != nil {
		return
	}
	live := func(a int) bool { return l.First[a] != NoID }
	within(k, "plans of allocations", l.Plan, NoID, len(s.Plans), live)
	within(k, "consumers of allocations", l.Consumer, 0, s.Consumer.Len(), live)
	within(k, "sources of allocations", l.Source, 0, s.Source.Len(), live)
	within(k, "names of allocations", l.Name, 0, s.Label.Len(), live)
	within(k, "allocations", l.Last, 0, subs, live)
	within(k, "allocations", l.Next, NoID, n, live)
	named := func(sub int) bool { return b.Alloc[sub] != NoID }
	within(k, "plans of sub-allocations", b.Plan, NoID, len(s.Plans), named)
	within(k, "consumers of sub-allocations", b.Consumer, 0, s.Consumer.Len(), named)
	within(k, "sources of sub-allocations", b.Source, 0, s.Source.Len(), named)
	within(k, "names of sub-allocations", b.Name, 0, s.Label.Len(), named)
	within(k, "attributes of sub-allocations", b.Together, 0, s.Label.Len(), named)
	within(k, "sizes of sub-allocations", b.Shape, 0, s.Shape.Len(), named)
	within(k, "requirements of sub-allocations", b.Need, NoID, s.Need.Len(), named)
	within(k, "holdings of sub-allocations", b.First, NoID, s.Holding.Len(), named)
	within(k, "sub-allocations", b.Next, NoID, subs, named)
	for sub, p := range b.Plan {
		if k.err == nil && named(sub) && p != NoID && (b.Pair[sub] < 0 ||
			int(b.Pair[sub]) >= len(s.Plans[p].Pairs.Leaf)) {
			k.fail("sub-allocation %d: no pair %d", sub, b.Pair[sub])
		}
	}
	within(k, "silent sources", s.silent, 0, s.Source.Len(), nil)
	for _, o := range s.orphans {
		within(k, "orphans", []SubID{o.sub}, 0, subs, nil)
	}
	for _, a := range s.asked {
		within(k, "sub-allocations noted", []SubID{a.sub}, 0, subs, nil)
		within(k, "attributes of sub-allocations noted", []int32{a.together}, 0, s.Label.Len(), nil)
	}
	for _, r := range s.Released {
		within(k, "releases", []SubID{r.Sub}, 0, subs, nil)
	}
	for _, r := range s.Reclaims {
		within(k, "reclaims", []SubID{r.Sub}, 0, subs, nil)
	}
}

func (s *State) soundHoldings(k *soundness) {
	h, n := &s.Holding, s.Holding.Len()
	k.rows("holdings", n, len(h.Parcel), len(h.Units), len(h.Origin), len(h.Pool), len(h.Lender), len(h.Granted),
		len(h.NextOfSub),
		len(h.PrevOfSub), len(h.NextOnParcel), len(h.PrevOnParcel), len(h.Set), len(h.NextOfSet), len(h.Due))
	if len(h.Device) > 0 || s.anyDevicesIn() {
		k.rows("devices of holdings", n, len(h.Device))
	}
	within(k, "holdings", h.Sub, NoID, len(s.Sub.Alloc), nil)
	within(k, "free holdings", h.free, 0, n, nil)
	if k.err != nil {
		return
	}
	live := func(q int) bool { return h.Sub[q] != NoID }
	within(k, "pools of holdings", h.Pool, NoID, s.Consumer.Len(), live)
	within(k, "lenders of holdings", h.Lender, NoID, s.Consumer.Len(), live)
	within(k, "sets of holdings", h.Set, NoID, len(s.Set.Number), live)
	within(k, "holdings of a sub-allocation", h.NextOfSub, NoID, n, live)
	within(k, "holdings of a sub-allocation", h.PrevOfSub, NoID, n, live)
	within(k, "holdings on a parcel", h.NextOnParcel, NoID, n, live)
	within(k, "holdings on a parcel", h.PrevOnParcel, NoID, n, live)
	within(k, "victims", h.NextOfSet, NoID, n, func(q int) bool { return live(q) && h.Set[q] != NoID })
	for q, sub := range h.Sub {
		if k.err != nil || sub == NoID {
			continue
		}
		p := s.Sub.Plan[sub]
		if p == NoID || s.Sub.Alloc[sub] == NoID || h.Parcel[q] < 0 || int(h.Parcel[q]) >= s.Plans[p].Parcels.Len() {
			k.fail("holding %d: no parcel %d of its plan", q, h.Parcel[q])
		}
	}
}

func (s *State) soundSets(k *soundness, dims int) {
	t, n := &s.Set, len(s.Set.Number)
	k.rows("sets", n, len(t.Plan), len(t.Reason), len(t.Issued), len(t.Taker), len(t.Target), len(t.Owner),
		len(t.Units), len(t.First))
	k.rows("sets", n*dims, len(t.kept))
	within(k, "free sets", t.free, 0, n, nil)
	live := func(id int) bool { return t.Number[id] != 0 }
	within(k, "plans of sets", t.Plan, 0, len(s.Plans), live)
	within(k, "takers", t.Taker, NoID, len(s.Sub.Alloc), live)
	within(k, "hosts of sets", t.Target, 0, s.Host.Len(), live)
	within(k, "owners of sets", t.Owner, NoID, s.Consumer.Len(), live)
	within(k, "victims", t.First, NoID, s.Holding.Len(), live)
}

// soundLists checks that linked lists end. All rows that the lists name were found before.
func (s *State) soundLists(k *soundness) {
	chains(k, "sub-allocations", s.Alloc.First, s.Sub.Next, nil)
	chains(k, "holdings of sub-allocations", s.Sub.First, s.Holding.NextOfSub, func(sub int) bool {
		return s.Sub.Alloc[sub] != NoID
	})
	chains(k, "victims", s.Set.First, s.Holding.NextOfSet, func(id int) bool { return s.Set.Number[id] != 0 })
	for i := range s.Plans {
		p := &s.Plans[i]
		chains(k, "allocations", p.FirstAlloc, s.Alloc.Next, nil)
		chains(k, "holdings on parcels", p.Parcels.First, s.Holding.NextOnParcel, nil)
		chains(k, "pairs", p.FirstPair, p.Pairs.Next, nil)
	}
}
