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

// is notes an error.
func (k *soundness) is(err error) {
	if k.err == nil {
		k.err = err
	}
}

// amounts checks the columns by dimension that have a length of their own; nil ones may be missing altogether.
func (k *soundness) amounts(what string, dims, rows int, columns [][]int64) {
	if columns == nil {
		return
	}
	if len(columns) != dims || slices.ContainsFunc(columns, func(c []int64) bool { return len(c) != rows }) {
		k.fail("%s: columns of %d dimensions, not of %d with %d rows each", what, len(columns), dims, rows)
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
	k, dims := &soundness{}, len(s.Policy.Dimensions)
	if s.Shape.dims != dims || len(s.Shape.size)%max(dims, 1) != 0 {
		k.fail("shapes of %d dimensions of %d", s.Shape.dims, dims)
	}
	s.soundPlans(k)
	k.is(known(s.tables(), s.rowsOf(nil)))
	nodes, consumers, hosts := len(s.ConsumerOf), len(s.NodeOf), len(s.Host.State)
	if nodes != s.Policy.Len() || consumers != s.Consumer.Len() || hosts != s.Host.Len() ||
		len(s.Host.listed) != hosts || len(s.Set.kept) != len(s.Set.Number)*dims ||
		s.anyDevicesIn() && len(s.Holding.Device) != s.Holding.Len() {
		k.fail("tables have other rows than their dictionaries, or columns are missing")
	}
	k.amounts("hosts", dims, hosts, s.Host.Size)
	if len(s.Host.Size) != dims {
		k.fail("hosts: %d dimensions of %d", len(s.Host.Size), dims)
	}
	if k.err != nil {
		return k.err
	}
	s.soundHosts(k, dims)
	s.soundRows(k, hidden)
	s.soundParcels(k)
	s.soundLists(k)
	return k.err
}

// within checks that a row of a table that something names is there.
func (s *State) within(k *soundness, what, table string, id int32) {
	if n := s.rowsOf(nil)(table); id < 0 || int(id) >= n {
		k.fail("%s: row %d of %s, which has %d", what, id, table, n)
	}
}

func (s *State) soundHosts(k *soundness, dims int) {
	h, n := &s.Host, s.Host.Len()
	for i := range s.last {
		s.within(k, "hosts noted", ofHosts, int32(s.last[i].host))
		if len(s.last[i].size) != dims {
			k.fail("hosts noted: a size of %d dimensions of %d", len(s.last[i].size), dims)
		}
	}
	for i := range h.Attr {
		a, rows := &h.Attr[i], 0
		switch a.Kind {
		case plan.Number:
			rows = len(a.Number)
		case plan.Boolean:
			rows = len(a.Bool)
		case plan.Text:
			rows = len(a.Text.Code)
		default:
			k.fail("attribute %s is of kind %d", a.Name, a.Kind)
		}
		if len(a.Valid) != n || rows != n {
			k.fail("attribute %s: %d values for %d hosts, of which %d are known", a.Name, rows, n, len(a.Valid))
			return
		}
		for row := 0; a.Kind == plan.Text && row < n; row++ {
			if c := a.Text.Code[row]; a.Valid[row] && (c < 0 || int(c) >= a.Text.Names.Len()) {
				k.fail("attribute %s, host %d: code %d of a dictionary of %d", a.Name, row, c, a.Text.Names.Len())
			}
		}
	}
}

// soundRows looks at what stands in lists, and in columns for which there is more to know than a table's rows.
func (s *State) soundRows(k *soundness, hidden []AllocID) {
	for _, a := range hidden {
		s.within(k, "hidden allocations", ofAllocs, int32(a))
	}
	for _, o := range s.orphans {
		s.within(k, "orphans", ofSubs, int32(o.sub))
	}
	for _, a := range s.asked {
		s.within(k, "sub-allocations noted", ofSubs, int32(a.sub))
		s.within(k, "attributes of sub-allocations noted", ofLabels, a.together)
	}
	for _, r := range s.Released {
		s.within(k, "releases", ofSubs, int32(r.Sub))
	}
	for _, r := range s.Reclaims {
		s.within(k, "reclaims", ofSubs, int32(r.Sub))
	}
	h := &s.Holding
	for q, sub := range h.Sub {
		if sub != NoID && h.Set[q] != NoID && (h.NextOfSet[q] < NoID || int(h.NextOfSet[q]) >= h.Len()) {
			k.fail("holding %d: no victim %d", q, h.NextOfSet[q])
		}
	}
}

// soundParcels checks that parcels and pairs are there that are named together with a plan.
func (s *State) soundParcels(k *soundness) {
	for host, p := range s.Host.Plan {
		if at := s.Host.Parcel[host]; p != NoID && (at < 0 || int(at) >= s.Plans[p].Parcels.Len()) {
			k.fail("host %d: no parcel %d", host, at)
		}
	}
	for sub := range s.Sub.Live() {
		p := s.Sub.Plan[sub]
		if p != NoID && (s.Sub.Pair[sub] < 0 || int(s.Sub.Pair[sub]) >= len(s.Plans[p].Pairs.Leaf)) {
			k.fail("sub-allocation %d: no pair %d", sub, s.Sub.Pair[sub])
		}
	}
	h := &s.Holding
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
		if err := known(p.tables(), s.rowsOf(p)); err != nil {
			k.fail("%s: %w", what, err)
		}
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
		if len(c.Open) < c.Words() || len(c.Cap) != dims || len(c.Free) != dims || c.Left < 0 || c.Left > n ||
			p.Seen < 0 || p.Seen > len(p.Changed) {
			k.fail("%s: its parcels do not fit together", what)
		}
		k.amounts(what, dims, n, c.Kept)
		k.amounts(what, dims, n, c.Owed)
		if len(p.Lost) > s.Consumer.Len() || slices.ContainsFunc(p.Lost, func(ms int64) bool { return ms < 0 }) {
			k.fail("%s: work lost of consumers that there are not, or below 0", what)
		}
		s.soundBudgets(k, what, &p.Budgets, plans[i].Terms.Budget)
		s.soundHistory(k, what, p, plans[i].MD)
		if len(p.FirstAlloc) != nodes || p.Window != NoID && len(p.RankOrder) != nodes {
			k.fail("%s: figures of %d consumers, and ranks of %d of %d", what, len(p.FirstAlloc), len(p.RankOrder),
				nodes)
		}
		d := &p.Deeds
		k.amounts(what+": deeds", dims, len(d.Host), d.Amount)
		k.amounts(what+": configured", dims, nodes, d.Configured)
		k.amounts(what+": reserved", dims, nodes, d.Reserved)
		k.amounts(what+": what is kept", dims, len(d.Keeper), d.KeptAmount)
		if d.Unmet != nil && len(d.Unmet) != nodes {
			k.fail("%s: rules of %d consumers of %d", what, len(d.Unmet), nodes)
		}
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

// soundLists checks that linked lists end. All rows that the lists name were found before.
func (s *State) soundLists(k *soundness) {
	chains(k, "sub-allocations", s.Alloc.First, s.Sub.Next, nil)
	chains(k, "holdings of sub-allocations", s.Sub.First, s.Holding.NextOfSub, s.Sub.schema().Live)
	chains(k, "victims", s.Set.First, s.Holding.NextOfSet, s.Set.schema().Live)
	for i := range s.Plans {
		p := &s.Plans[i]
		chains(k, "allocations", p.FirstAlloc, s.Alloc.Next, nil)
		chains(k, "holdings on parcels", p.Parcels.First, s.Holding.NextOnParcel, nil)
		chains(k, "pairs", p.FirstPair, p.Pairs.Next, nil)
	}
}
