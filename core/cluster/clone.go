package cluster

import (
	"maps"
	"slices"

	"github.com/bits-and-blooms/bitset"

	"github.com/stintd/stint/core/plan"
)

// Clone is a copy of the state that shares nothing with it but what nobody changes: policies, requirements, texts.
// Cycles on the copy decide what they would on the state, and leave the state as it is. O(everything), mostly the
// copying of columns: some 200 bytes a holding.
func (s *State) Clone() *State {
	c := *s
	c.Consumer, c.Source, c.Label = s.Consumer.clone(), s.Source.clone(), s.Label.clone()
	c.ConsumerOf, c.NodeOf = slices.Clone(s.ConsumerOf), slices.Clone(s.NodeOf)
	c.Host, c.Shape = s.Host.clone(), s.Shape.clone()
	c.Need = Needs{Names: s.Need.Names.clone(), Parsed: slices.Clone(s.Need.Parsed)}
	c.Alloc, c.Sub, c.Holding, c.Set = s.Alloc.clone(), s.Sub.clone(), s.Holding.clone(), s.Set.clone()
	c.Plans = slices.Clone(s.Plans)
	for i := range c.Plans {
		c.Plans[i].part()
	}
	c.Times = s.Times.clone()
	c.Released, c.Reclaims = slices.Clone(s.Released), slices.Clone(s.Reclaims)
	c.Changes = s.Changes.clone()
	c.orphans, c.asked = slices.Clone(s.orphans), slices.Clone(s.asked)
	c.excess, c.gone, c.silent = slices.Clone(s.excess), slices.Clone(s.gone), slices.Clone(s.silent)
	c.last, c.noted = slices.Clone(s.last), bitset.BitSet{}
	for i := range c.last {
		c.last[i].size = slices.Clone(c.last[i].size)
	}
	s.noted.CopyFull(&c.noted)
	// memory that is used again, nothing more
	c.victim, c.aged, c.parting, c.scratch = nil, [2][]aged{}, [2][]parting{}, demandScratch{}
	c.Accepted = false
	c.ofSource = slices.Clone(s.ofSource)
	c.allocOf, c.subOf = maps.Clone(s.allocOf), maps.Clone(s.subOf)
	c.at = s.at.clone(&c)
	return &c
}

// cloned copies columns that stand in a slice.
func cloned[T any](from [][]T) [][]T {
	to := slices.Clone(from)
	for i := range to {
		to[i] = slices.Clone(to[i])
	}
	return to
}

func (h *Hosts) clone() Hosts {
	c := *h
	c.Names, c.State, c.Size, c.Attr = h.Names.clone(), slices.Clone(h.State), cloned(h.Size), slices.Clone(h.Attr)
	for i := range c.Attr {
		c.Attr[i] = c.Attr[i].clone()
	}
	c.Order, c.Plan, c.Parcel = slices.Clone(h.Order), slices.Clone(h.Plan), slices.Clone(h.Parcel)
	c.listed, c.words = slices.Clone(h.listed), maps.Clone(h.words)
	return c
}

func (h *Shapes) clone() Shapes {
	return Shapes{dims: h.dims, size: slices.Clone(h.size), of: maps.Clone(h.of)}
}

func (a *Allocs) clone() Allocs {
	return Allocs{
		Plan: slices.Clone(a.Plan), Consumer: slices.Clone(a.Consumer), Source: slices.Clone(a.Source),
		Name: slices.Clone(a.Name), Arrival: slices.Clone(a.Arrival), First: slices.Clone(a.First),
		Last: slices.Clone(a.Last), Next: slices.Clone(a.Next), prev: slices.Clone(a.prev), free: slices.Clone(a.free),
	}
}

func (u *Subs) clone() Subs {
	return Subs{
		Source: slices.Clone(u.Source), Plan: slices.Clone(u.Plan), Consumer: slices.Clone(u.Consumer),
		Alloc: slices.Clone(u.Alloc), Name: slices.Clone(u.Name), Shape: slices.Clone(u.Shape),
		Need: slices.Clone(u.Need), MaxPerHost: slices.Clone(u.MaxPerHost), MinUnits: slices.Clone(u.MinUnits),
		Together: slices.Clone(u.Together), Wanted: slices.Clone(u.Wanted), Held: slices.Clone(u.Held),
		Pair: slices.Clone(u.Pair), First: slices.Clone(u.First), Next: slices.Clone(u.Next), Seq: slices.Clone(u.Seq),
		FirstSeen: slices.Clone(u.FirstSeen), Orphan: slices.Clone(u.Orphan), Turns: slices.Clone(u.Turns),
		seen: slices.Clone(u.seen), noted: slices.Clone(u.noted), prev: slices.Clone(u.prev),
		after: slices.Clone(u.after), before: slices.Clone(u.before), free: slices.Clone(u.free),
	}
}

func (h *Holdings) clone() Holdings {
	return Holdings{
		Sub: slices.Clone(h.Sub), Parcel: slices.Clone(h.Parcel), Units: slices.Clone(h.Units),
		Origin: slices.Clone(h.Origin), Pool: slices.Clone(h.Pool), Lender: slices.Clone(h.Lender),
		Granted: slices.Clone(h.Granted), NextOfSub: slices.Clone(h.NextOfSub), PrevOfSub: slices.Clone(h.PrevOfSub),
		NextOnParcel: slices.Clone(h.NextOnParcel), PrevOnParcel: slices.Clone(h.PrevOnParcel),
		Set: slices.Clone(h.Set), NextOfSet: slices.Clone(h.NextOfSet), Due: slices.Clone(h.Due),
		Device: slices.Clone(h.Device), onDevices: h.onDevices, free: slices.Clone(h.free),
	}
}

func (t *Sets) clone() Sets {
	return Sets{
		Number: slices.Clone(t.Number), Plan: slices.Clone(t.Plan), Reason: slices.Clone(t.Reason),
		Issued: slices.Clone(t.Issued), Taker: slices.Clone(t.Taker), Target: slices.Clone(t.Target),
		Owner: slices.Clone(t.Owner), Units: slices.Clone(t.Units), First: slices.Clone(t.First),
		kept: slices.Clone(t.kept), free: slices.Clone(t.free),
	}
}

// part makes what a plan has its own, when it was copied from another. Terms.Member is the policy's.
func (p *Plan) part() {
	k, r := &p.Parcels, &p.Pairs
	k.Host, k.Owner, k.Open = slices.Clone(k.Host), slices.Clone(k.Owner), slices.Clone(k.Open)
	k.First, k.Moved = slices.Clone(k.First), slices.Clone(k.Moved)
	k.Device = slices.Clone(k.Device)
	k.Cap, k.Free, k.Kept, k.Owed = cloned(k.Cap), cloned(k.Free), cloned(k.Kept), cloned(k.Owed)
	r.Leaf, r.Shape, r.Pool = slices.Clone(r.Leaf), slices.Clone(r.Shape), slices.Clone(r.Pool)
	r.Units, r.Leaving, r.Next = slices.Clone(r.Units), slices.Clone(r.Leaving), slices.Clone(r.Next)
	r.many = maps.Clone(r.many)
	z := &p.sizing
	z.hosts, z.total, z.small = slices.Clone(z.hosts), slices.Clone(z.total), slices.Clone(z.small)
	p.FirstAlloc = slices.Clone(p.FirstAlloc)
	p.LastAlloc, p.FirstPair = slices.Clone(p.LastAlloc), slices.Clone(p.FirstPair)
	p.RankOrder, p.Changed = slices.Clone(p.RankOrder), slices.Clone(p.Changed)
	p.shifted, p.Unlabelled = slices.Clone(p.shifted), slices.Clone(p.Unlabelled)
	p.Lost, p.Budgets, p.Spent = slices.Clone(p.Lost), p.Budgets.clone(), slices.Clone(p.Spent)
	p.History = p.History.clone()
	d := &p.Deeds
	d.Consumer, d.Host = slices.Clone(d.Consumer), slices.Clone(d.Host)
	d.Rule, d.Number = slices.Clone(d.Rule), slices.Clone(d.Number)
	d.Amount, d.Configured, d.Reserved = cloned(d.Amount), cloned(d.Configured), cloned(d.Reserved)
	d.Keeper, d.KeptOn, d.KeptAmount = slices.Clone(d.Keeper), slices.Clone(d.KeptOn), cloned(d.KeptAmount)
	d.Lister, d.List, d.Unmet = slices.Clone(d.Lister), slices.Clone(d.List), slices.Clone(d.Unmet)
}

// clone is the layout over the hosts of another state, which are the same.
func (l *layout) clone(s *State) *layout {
	if l == nil {
		return nil
	}
	c := &layout{order: cloned(l.order), members: cloned(l.members), warnings: slices.Clone(l.warnings)}
	c.slots, c.selects, c.selected = slices.Clone(l.slots), slices.Clone(l.selects), slices.Clone(l.selected)
	for _, bounds := range [][]*plan.Bound{c.slots, c.selects} {
		for i, b := range bounds {
			if b != nil {
				bounds[i] = b.On(s)
			}
		}
	}
	for i, set := range c.selected {
		if set != nil {
			c.selected[i] = set.Clone()
		}
	}
	return c
}
