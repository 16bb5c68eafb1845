package cluster

import (
	"cmp"
	"slices"

	"github.com/bits-and-blooms/bitset"

	"github.com/stintd/stint/core/plan"
)

// Divide splits the hosts of an MD plan as its deeds say, and places the units anew on those whose parcels
// change by that (docs/ownership.md, "Parcels"). O(parcels × dimensions), and the holdings there.
func (s *State) Divide(p *Plan) { s.divide(p, nil) }

// DivideAt is Divide when since the last Divide only the deeds and capacities of some hosts have changed, named once or
// several times: it leaves the others' parcels as they are.
func (s *State) DivideAt(p *Plan, hosts []HostID) {
	if len(hosts) == 0 && len(p.shifted) == 0 {
		return
	}
	only := s.shiftedOf(p)
	for _, h := range hosts {
		only.Set(uint(h))
	}
	s.divide(p, only)
}

// shiftedOf is the plan's split hosts whose capacity changed.
func (s *State) shiftedOf(p *Plan) *bitset.BitSet {
	set := bitset.MustNew(uint(s.Host.Len()))
	for _, h := range p.shifted {
		set.Set(uint(h))
	}
	return set
}

// divide is Divide for some hosts, or with nil all.
func (s *State) divide(p *Plan, only *bitset.BitSet) {
	old, shifted := p.Parcels, s.shiftedOf(p)
	row, start := p.byHost(s, only)
	p.Parcels = old.empty(len(old.Cap), old.Len()+len(row.node))
	p.Parcels.Moved = old.Moved
	var at parts
	var anew []ParcelID // the first parcels of hosts that change, as they were and as they are
	public := make([]int64, len(old.Cap))
	for j, end := ParcelID(0), ParcelID(0); int(j) < old.Len(); j = end {
		if end = old.End(j); only != nil && !only.Test(uint(old.Host[j])) {
			for end < ParcelID(old.Len()) && !only.Test(uint(old.Host[end])) {
				end++
			}
			s.keepParcels(p, &old, j, end)
			continue
		}
		for d := range public {
			public[d] = 0
			for k := j; k < end; k++ {
				public[d] += old.Cap[d][k]
			}
		}
		at.fill(row, start[j], start[j+1])
		at.rest(&s.Policy.Tree, public)
		k := ParcelID(p.Parcels.Len())
		p.Parcels.split(s, old.Host[j], public, &at)
		if p.Parcels.alike(k, &old, j, end) && !shifted.Test(uint(old.Host[j])) {
			for i := j; i < end; i++ {
				for d := range public {
					p.Parcels.Cap[d][k+i-j], p.Parcels.Free[d][k+i-j] = 0, 0
				}
				s.carry(p, &old, i, k+i-j)
			}
		} else {
			anew = append(anew, j, k)
		}
	}
	p.shifted = p.shifted[:0]
	if len(anew) == 0 {
		p.Parcels = old
		s.nameAll(p)
		return
	}
	p.renumbered()
	s.Changes.add(ChangeRelaid, p.Index, NoID)
	s.locate(p)
	s.HostTables++
	width := len(s.Policy.Dimensions)
	for id := range s.Set.Of(p) {
		clear(s.Set.kept[int(id)*width : (int(id)+1)*width])
	}
	for i := 0; i < len(anew); i += 2 {
		s.replace(p, &old, anew[i], anew[i+1])
	}
	s.layDevices(p)
	for id := range s.Set.Of(p) {
		s.keep(id)
	}
	s.nameAll(p)
}

// keepParcels appends old parcels j … end-1 as they were, with what is on them.
func (s *State) keepParcels(p *Plan, old *Parcels, j, end ParcelID) {
	n, k := &p.Parcels, ParcelID(p.Parcels.Len())
	n.Host, n.Owner = append(n.Host, old.Host[j:end]...), append(n.Owner, old.Owner[j:end]...)
	n.First = append(n.First, old.First[j:end]...)
	n.Owned = n.Owned || slices.ContainsFunc(old.Owner[j:end], func(c ConsumerID) bool { return c != NoID })
	for d := range old.Cap {
		n.Cap[d], n.Free[d] = append(n.Cap[d], old.Cap[d][j:end]...), append(n.Free[d], old.Free[d][j:end]...)
	}
	for d := range n.Kept {
		n.Kept[d] = append(n.Kept[d], make([]int64, end-j)...)
	}
	n.Open = append(n.Open, make([]uint64, n.Words()-len(n.Open))...)
	for i := j; i < end; i++ {
		n.open(k+i-j, old.IsOpen(i))
		for q := old.First[i]; q != NoID && j != k; q = s.Holding.NextOnParcel[q] {
			s.Holding.Parcel[q] = k + i - j
		}
	}
}

// nameAll makes units count as what a new policy's tree says: a consumer that was renamed may be below another.
func (s *State) nameAll(p *Plan) {
	if !s.NewPlan || !p.Parcels.Owned {
		return
	}
	for k, first := range p.Parcels.First {
		for q := first; q != NoID && p.Parcels.Owner[k] != NoID; q = s.Holding.NextOnParcel[q] {
			s.name(p, q)
		}
	}
}

// split appends the parcels of a host: the public part, and for each owner the part that no consumer below the owner
// owns. Of the parcels' figures split sets capacities; carry and replace set the others.
func (p *Parcels) split(s *State, h HostID, public []int64, at *parts) {
	some := func(v int64) bool { return v != 0 }
	if len(at.node) == 0 || slices.ContainsFunc(public, some) {
		p.grant(p.add(h, NoID), public)
	}
	for i, n := range at.node {
		if slices.ContainsFunc(at.of(i), some) {
			p.grant(p.add(h, s.ConsumerOf[n]), at.of(i))
		}
	}
}

// grant gives a parcel its capacity, all of it free.
func (p *Parcels) grant(k ParcelID, amount []int64) {
	for d, v := range amount {
		p.Cap[d][k], p.Free[d][k] = v, v
	}
}

// alike tells whether the last parcels, from k on, have the owners and the capacities of the old ones j … end-1.
func (p *Parcels) alike(k ParcelID, old *Parcels, j, end ParcelID) bool {
	if p.Len()-int(k) != int(end-j) || !slices.Equal(p.Owner[k:], old.Owner[j:end]) {
		return false
	}
	for d := range p.Cap {
		if !slices.Equal(p.Cap[d][k:], old.Cap[d][j:end]) {
			return false
		}
	}
	return true
}

// portion is units that go to a parcel.
type portion struct {
	parcel ParcelID
	units  int64
}

// mover is a holding that is placed anew.
type mover struct {
	q    HoldingID
	was  ParcelID // its owner's parcel, NoID when that has none any more
	left int64    // units that have no place yet
	put  []portion
}

// replace places the units of a host anew: k is its first parcel, j was. First what fits the parcel
// of the owner on which it was stays there, then the others go where they fit.
func (s *State) replace(p *Plan, old *Parcels, j, k ParcelID) {
	h := &s.Holding
	var rows []mover
	for i, end := j, old.End(j); i < end; i++ {
		was := p.Parcels.of(k, old.Owner[i])
		for q := old.First[i]; q != NoID; q = h.NextOnParcel[q] {
			rows = append(rows, mover{q: q, was: was, left: h.Units[q]})
		}
	}
	for i, end := k, p.Parcels.End(k); i < end; i++ {
		p.Parcels.open(i, old.IsOpen(j))
	}
	slices.SortFunc(rows, func(a, b mover) int { // the oldest first, what is under reclaim behind
		return cmp.Or(s.leavingFirst(b.q, a.q), s.newer(b.q, a.q), s.newerOnHost(b.q, a.q))
	})
	for i := range rows {
		if r := &rows[i]; r.was != NoID {
			s.settleOn(p, r, r.was, p.Parcels.room(r.was, s.Size(h.Sub[r.q])))
		}
	}
	for i := range rows {
		r := &rows[i]
		way := s.way(p, s.leafOf(h.Sub[r.q]), k)
		for _, to := range way {
			s.settleOn(p, r, to, p.Parcels.room(to, s.Size(h.Sub[r.q])))
		}
		if r.was == NoID {
			r.was = way[0]
		}
		s.settleOn(p, r, r.was, r.left)
	}
	for i := range rows {
		s.move(p, &rows[i])
	}
	s.join(p, k)
}

// settleOn gives a parcel units that have no place yet, at most so many.
func (s *State) settleOn(p *Plan, r *mover, k ParcelID, most int64) {
	n := min(r.left, most)
	if n <= 0 {
		return
	}
	r.left -= n
	p.Parcels.take(k, s.Size(s.Holding.Sub[r.q])[:len(p.Parcels.Cap)], n)
	if last := len(r.put) - 1; last >= 0 && r.put[last].parcel == k {
		r.put[last].units += n
		return
	}
	r.put = append(r.put, portion{k, n}) // victims of a set keep the order in which they were chosen
}

// way lists the parcels of a host, whose first is k, in the order in which units of a leaf go there when they
// may not stay: its own; then by pools from the nearest up, in each the pool's
// own before lent ones, these in tree order.
func (s *State) way(p *Plan, leaf plan.Node, k ParcelID) []ParcelID {
	end := p.Parcels.End(k)
	if end == k+1 {
		return []ParcelID{k}
	}
	type stop struct {
		parcel ParcelID
		depth  int32 // of the pool
		lent   bool
	}
	var stops []stop
	for ; k < end; k++ {
		_, pool, lender := s.CountsAs(leaf, p.Parcels.Owner[k])
		at := leaf
		if pool != NoID {
			at = s.NodeOf[pool]
		}
		stops = append(stops, stop{k, s.Policy.Depth[at], lender != NoID})
	}
	slices.SortStableFunc(stops, func(a, b stop) int {
		if c := cmp.Compare(b.depth, a.depth); c != 0 || a.lent == b.lent {
			return c
		}
		if b.lent {
			return -1
		}
		return 1
	})
	way := make([]ParcelID, len(stops))
	for i := range stops {
		way[i] = stops[i].parcel
	}
	return way
}

// spread divides so many more units of a sub-allocation among the parcels of a host, whose first parcel is k: each
// parcel takes the units that fit, in the order of way. Units that fit no parcel go to the first.
func (s *State) spread(p *Plan, sub SubID, k ParcelID, units int64) (to []portion) {
	way := s.way(p, s.leafOf(sub), k)
	if len(way) == 1 {
		return []portion{{k, units}}
	}
	for _, at := range way {
		if n := min(units, p.Parcels.room(at, s.Size(sub))); n > 0 {
			to = append(to, portion{at, n})
			units -= n
		}
	}
	switch {
	case units > 0 && len(to) > 0 && to[0].parcel == way[0]:
		to[0].units += units
	case units > 0:
		to = append(to, portion{way[0], units})
	}
	return to
}

// move links a holding to the parcels that it was given, as a row for each of them.
func (s *State) move(p *Plan, r *mover) {
	h := &s.Holding
	s.tell(r.q, -h.Units[r.q])
	h.Units[r.q] = 0
	last := r.q
	for i, to := range r.put {
		q := r.q
		if i > 0 {
			q = s.twin(p, last)
			last = q
		}
		h.Parcel[q], h.Units[q] = to.parcel, to.units
		first := p.Parcels.First[to.parcel]
		h.PrevOnParcel[q], h.NextOnParcel[q] = NoID, first
		if first != NoID {
			h.PrevOnParcel[first] = q
		}
		p.Parcels.First[to.parcel] = q
		origin, pool, lender := s.CountsAs(s.leafOf(h.Sub[q]), p.Parcels.Owner[to.parcel])
		if h.Origin[q] != origin || h.Pool[q] != pool || h.Lender[q] != lender {
			h.Origin[q], h.Pool[q], h.Lender[q] = origin, pool, lender
			p.Dirty, p.again, s.Relabelled = true, true, true
		}
		s.tell(q, to.units)
	}
}

// twin adds a row like another, under the same reclaim, of which it counts as chosen later; it hangs on no parcel
// yet and has no units. O(victims of the set).
func (s *State) twin(p *Plan, q HoldingID) HoldingID {
	t, h := s.row(), &s.Holding
	sub := h.Sub[q]
	h.Sub[t], h.Parcel[t], h.Granted[t] = sub, h.Parcel[q], h.Granted[q]
	h.Origin[t], h.Pool[t], h.Lender[t] = h.Origin[q], h.Pool[q], h.Lender[q]
	if h.onDevices {
		h.Device[t] = h.Device[q]
	}
	next := h.NextOfSub[q]
	h.NextOfSub[q], h.PrevOfSub[t], h.NextOfSub[t] = t, q, next
	if next != NoID {
		h.PrevOfSub[next] = t
	}
	if h.Set[t] = h.Set[q]; h.Set[q] != NoID {
		at := &s.Set.First[h.Set[q]]
		for *at != q {
			at = &h.NextOfSet[*at]
		}
		h.Due[t], h.NextOfSet[t], *at = h.Due[q], q, t
	}
	return t
}

// join makes one holding of those on a host that differ in nothing any more. Victims of a set that were not chosen
// one after the other stay apart: the last chosen is the first to be let go.
func (s *State) join(p *Plan, k ParcelID) {
	type key struct {
		sub          SubID
		granted, due int64
		set          SetID
		on           Devices
	}
	h := &s.Holding
	for end := p.Parcels.End(k); k < end; k++ {
		first := p.Parcels.First[k]
		if first == NoID || h.NextOnParcel[first] == NoID {
			continue
		}
		seen := map[key]HoldingID{}
		for q := first; q != NoID; {
			next, as := h.NextOnParcel[q], key{h.Sub[q], h.Granted[q], 0, h.Set[q], h.On(q)}
			if as.set != NoID {
				as.due = h.Due[q]
			}
			one, ok := seen[as]
			switch apart := as.set != NoID && ok && h.NextOfSet[one] != q && h.NextOfSet[q] != one; {
			case ok && !apart:
				s.Merge(one, q)
			default:
				seen[as] = q
			}
			q = next
		}
	}
}
