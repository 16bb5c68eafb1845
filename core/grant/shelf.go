//go:build !rounds

package grant

import (
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// shelf keeps the lots of pools with many parcels from turn to turn, brought up by the change log, and lays those of
// the others anew in each.
type shelf struct {
	source
	seen  int64 // rows of the log as of which the rules are
	rules *Rules
	kept  map[plan.Node]*keptLots
	spare []*lot // memory for lots that are laid anew
}

// source is what lots that are kept are of.
type source struct {
	state    *cluster.State
	plan     string
	window   *plan.MDWindow
	tables   int64 // State.HostTables
	reserves int   // Reserves.Version
}

// keptLots are the lots of one pool.
type keptLots struct {
	list []*lot
	at   [tiers]int8 // by tier: its place in the list, -1: none
	seen int64       // rows of the log that they know
}

const (
	preferences = 10 // that there are, from 1
	tiers       = 2*preferences + 2
	manyParcels = 1 << 10
)

// follow drops what is kept where it is of something else, and brings the rules up. Parcels that have other numbers
// come with other host tables. O(rows of the log since the last turn), or O(parcels × dimensions).
func (v *shelf) follow(e *Env) {
	log := &e.State.Changes
	from, ok := log.Since(v.seen)
	v.seen = log.Count()
	now := source{e.State, e.Plan.Name, e.Window, e.State.HostTables, e.Views.Reserves.Version()}
	if v.source != now {
		v.source = now
		v.rules, v.kept = NewRules(e.Plan), map[plan.Node]*keptLots{}
		return
	}
	for i := from; ok && i < log.Kind.Len(); i++ {
		ok = log.Kind.At(i) != cluster.ChangeResized || log.Plan.At(i) != e.Plan.Index
	}
	if ok {
		return
	}
	if rules := NewRules(e.Plan); !rules.equal(v.rules) {
		v.rules, v.kept = rules, map[plan.Node]*keptLots{}
	}
}

// layLots makes lots of the pool's parcels: its own before those that are lent, own ones by its consumer's preference,
// the best first, lent ones by their owners', the worst first (MD-6, MD-7). Where they are laid anew, parcels with less
// than the least, unless that is nil, are left out.
func (g *Granter) layLots(least []int64) {
	e, v := g.env, &g.shelf
	v.follow(e)
	g.lots, g.mixed = g.lots[:0], false
	from, to := e.Views.Owned.Below(g.top)
	if to-from < manyParcels && !g.Eager || g.sets != nil {
		g.lots = g.layAll(g.lots, v.spare, least)
		for len(v.spare) < len(g.lots) {
			v.spare = append(v.spare, g.lots[len(v.spare)])
		}
	} else {
		g.lots = append(g.lots, g.keep()...)
	}
	for _, l := range g.lots {
		g.mixed = g.mixed || l.mixed
	}
}

// keep gives the lots that are kept of the pool in turn, brought up. O(rows of the log since the pool's last turn), or
// O(parcels) for the first time and where the log does not have them all any more.
func (g *Granter) keep() []*lot {
	e, v := g.env, &g.shelf
	log := &e.State.Changes
	kept := v.kept[g.top]
	if kept == nil {
		kept = &keptLots{seen: log.Count(), list: g.layAll(nil, nil, nil)}
		for tier := range kept.at {
			kept.at[tier] = -1
		}
		for i, l := range kept.list {
			kept.at[g.tier(l.parcel[0])] = int8(i)
		}
		v.kept[g.top] = kept
		return kept.list
	}
	from, ok := log.Since(kept.seen)
	kept.seen = log.Count()
	if !ok {
		for _, l := range kept.list {
			l.lay(e.Plan, g.room)
		}
		return kept.list
	}
	for i := from; i < log.Kind.Len(); i++ {
		if log.Plan.At(i) != e.Plan.Index {
			continue
		}
		k := e.Plan.Parcels.Begin(log.Parcel.At(i)) // what one parcel of a host has too little may be missing on all
		for end := e.Plan.Parcels.End(k); k < end; k++ {
			if !e.State.Policy.Within(e.Owner(k), g.top) {
				continue
			}
			l := kept.list[kept.at[g.tier(k)]]
			row, _ := slices.BinarySearch(l.parcel, k)
			l.bring(e.Plan, row, g.room)
		}
	}
	for _, l := range kept.list {
		l.lower()
	}
	return kept.list
}

// tier is where a parcel of the pool stands in the order of lots.
func (g *Granter) tier(k cluster.ParcelID) int {
	switch owner := g.env.Owner(k); {
	case owner != g.top:
		return tiers - 1 - int(g.env.preference(owner, k))
	case g.top != plan.Root:
		return int(g.env.preference(g.top, k))
	}
	return 0
}

// layAll lays lots of all parcels of the pool, in the memory of spare ones as far as there are any.
func (g *Granter) layAll(lots, spare []*lot, least []int64) []*lot {
	e := g.env
	from, to := e.Views.Owned.Below(g.top)
	var in [tiers][]cluster.ParcelID
	for _, k := range e.Views.Owned.Parcel[from:to] {
		if least == nil || e.Plan.Parcels.IsOpen(k) && covers(e.Plan, k, least) {
			tier := g.tier(k)
			in[tier] = append(in[tier], k)
		}
	}
	for tier, list := range in {
		if len(list) == 0 {
			continue
		}
		slices.Sort(list) // those of several owners
		if len(spare) <= len(lots) {
			spare = append(slices.Clip(spare), &lot{})
		}
		l := spare[len(lots)]
		g.layLot(l, list, tier > preferences)
		lots = append(lots, l)
	}
	return lots
}

// layLot makes a lot of some parcels.
func (g *Granter) layLot(l *lot, list []cluster.ParcelID, lent bool) {
	e := g.env
	l.begin(g.shelf.rules, len(e.Plan.Parcels.Cap))
	side, owner, grace := plan.None, plan.None, int64(0)
	for _, k := range list {
		if at := e.Owner(k); at != owner || len(l.parcel) == 0 {
			if owner, grace = at, e.Grace(at, g.top); lent {
				side = e.Toward(at, g.top)
			}
		}
		l.add(k, side, grace)
	}
	own := e.Grace(g.top, g.top)
	l.mixed = lent || slices.ContainsFunc(l.grace, func(us int64) bool { return us != own })
	l.lay(e.Plan, g.room)
}

// covers tells whether a parcel has at least so much free beside what sets keep.
func covers(p *cluster.Plan, k cluster.ParcelID, least []int64) bool {
	some := false
	for d := range p.Parcels.Free {
		free := p.Parcels.Available(d, k)
		if some = some || free > 0; least[d] > 0 && free < least[d] {
			return false
		}
	}
	return some
}
