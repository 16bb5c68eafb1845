package grant

import (
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/column"
	"github.com/stintd/stint/core/plan"
)

const (
	preferences = 10 // that there are, from 1
	tiers       = 2*preferences + 2
)

// lots are the lots of the pool in turn, in the order in which they are used, and memory for more of them.
type lots struct {
	list  []*lot
	spare []*lot
	mixed bool    // some parcels of the pool are lent by consumers below it
	free  []int64 // by dimension: the room of all parcels of the pool
	in    [tiers][]cluster.ParcelID

	rules *rules
	of    source
	seen  int64 // rows of the change log that the rules know
}

// source is what rules are of.
type source struct {
	state  *cluster.State
	plan   string
	window *plan.MDWindow
	tables int64 // State.HostTables
}

// follow brings the rules up. Parcels that have other numbers come with other host tables. O(rows of the log since the
// last turn), or O(parcels × dimensions).
func (v *lots) follow(e *Env) {
	log := &e.State.Changes
	from, ok := log.Since(v.seen)
	v.seen = log.Count()
	now := source{e.State, e.Plan.Name, e.Window, e.State.HostTables}
	ok = ok && v.of == now
	for i := from; ok && i < log.Kind.Len(); i++ {
		ok = log.Kind.At(i) != cluster.ChangeResized || log.Plan.At(i) != e.Plan.Index
	}
	if !ok {
		v.of, v.rules = now, rulesOf(e.Plan)
	}
}

// layLots makes lots of the pool's parcels: its own before those that are lent, own ones by its consumer's preference,
// the best first, lent ones by their owners', the worst first (MD-6, MD-7). Parcels with less than the least, unless
// that is nil, are left out. O(parcels of the pool).
func (g *Granter) layLots(least []int64) {
	e, v := g.env, &g.lots
	v.follow(e)
	from, to := e.Views.Owned.Below(g.top)
	own, end := e.Views.Owned.Own(g.top)
	v.list, v.mixed = v.list[:0], to-from > end-own
	dims := len(e.Plan.Parcels.Cap)
	v.free = column.Zeros(v.free, dims)
	for i := range v.in {
		v.in[i] = v.in[i][:0]
	}
	free, rest := make([]int64, dims), make([]int64, dims)
	tier, owner, group := 0, plan.None, int32(-1)
	for _, k := range e.Views.Owned.Parcel[from:to] {
		if least != nil {
			if !e.Plan.Parcels.IsOpen(k) {
				continue
			}
			g.room(k, free, rest)
			for d, amount := range rest {
				v.free[d] += max(0, amount)
			}
			if !covers(rest, least) {
				continue
			}
		}
		is, of := e.Owner(k), e.Views.Needs.Group(e.State, e.Plan, e.Plan.Parcels.Host[k])
		if is != owner || of != group {
			tier, owner, group = g.tier(k), is, of
		}
		v.in[tier] = append(v.in[tier], k)
	}
	for tier, list := range v.in {
		if len(list) == 0 {
			continue
		}
		if !slices.IsSorted(list) { // those of several owners
			slices.Sort(list)
		}
		if len(v.spare) == len(v.list) {
			v.spare = append(v.spare, &lot{})
		}
		l := v.spare[len(v.list)]
		g.layLot(l, list, tier > preferences)
		v.list = append(v.list, l)
	}
}

// tier is the place of a parcel of the pool in the order of lots.
func (g *Granter) tier(k cluster.ParcelID) int {
	switch owner := g.env.Owner(k); {
	case owner != g.top:
		return tiers - 1 - int(g.env.preference(owner, k))
	case g.top != plan.Root:
		return int(g.env.preference(g.top, k))
	}
	return 0
}

// layLot makes a lot of some parcels.
func (g *Granter) layLot(l *lot, list []cluster.ParcelID, lent bool) {
	e := g.env
	l.begin(g.lots.rules, len(e.Plan.Parcels.Cap))
	side, owner, grace := plan.None, plan.None, int64(0)
	for _, k := range list {
		if at := e.Owner(k); at != owner || len(l.parcel) == 0 {
			if owner, grace = at, e.Grace(at, g.top); lent {
				side = e.Toward(at, g.top)
			}
		}
		l.add(k, side, grace)
	}
	l.mixed = lent
	l.lay(e.Plan, g.room)
}

// covers tells whether an amount of room is at least the least that anybody asks for, and not nothing.
func covers(room, least []int64) bool {
	some := false
	for d, amount := range room {
		if some = some || amount > 0; least[d] > 0 && amount < least[d] {
			return false
		}
	}
	return some
}
