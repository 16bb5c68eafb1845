package grant

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/pool"
	"github.com/stintd/stint/core/room"
)

// placed is where the units of a turn lie, in the order of placement: segments of rows of one kind in one lot.
type placed struct {
	segment []segment
	row     []room.Row
	on      []cluster.Devices // of plans with devices
	devices bool
	from    int             // the first segment of the step
	unused  []lotRow        // rows that were out of use before the step
	held    []cluster.SubID // gangs that were held to a value in the step
}

// segment is rows from … to-1 of a lot that a kind's units took, one each.
type segment struct {
	kind, lot int32
	by        int32 // the kind whose finders found them
	from, to  int32

	next, back int32 // segments of the kind, 1 more; 0: none
}

type lotRow struct {
	lot int32
	row room.Row
}

func (p *placed) reset(devices bool) {
	p.segment, p.row, p.on, p.devices, p.from = p.segment[:0], p.row[:0], p.on[:0], devices, 0
	p.step()
}

// step begins a step.
func (p *placed) step() { p.from, p.unused, p.held = len(p.segment), p.unused[:0], p.held[:0] }

// placeStep places the units of a step kind by kind, the largest size first. Where some find no room it is false, or in
// a small step what found room stays and the kind leaves.
func (g *Granter) placeStep(small bool) bool {
	for _, i := range g.rounds.order {
		n := g.kind[i].planned
		if n == 0 {
			continue
		}
		got := g.placeKind(i, n)
		switch {
		case got == n:
		case !small:
			return false
		default:
			g.shorten(i, got)
		}
	}
	return true
}

// placeKind takes room for up to n units of a kind, lot by lot, and returns how many found some; of a gang that waits
// all or none.
func (g *Granter) placeKind(i int32, n int64) (units int64) {
	if a := g.gangOf(i); a != nil {
		return g.placeGang(a)
	}
	return g.placeUnits(i, i, n)
}

// placeUnits is placeKind for units of kind i that another kind's finders find.
func (g *Granter) placeUnits(i, by int32, n int64) (units int64) {
	p := &g.rounds.placed
	for at := range g.lots.list {
		from, f := int32(len(p.row)), g.finder(by, at)
		f.start = cursor{f.from, f.next}
		for units < n {
			rows := g.find(by, at, n-units)
			if len(rows) == 0 {
				break
			}
			units += g.takeAll(by, at, rows)
		}
		if to := int32(len(p.row)); to > from {
			g.addSegment(segment{kind: i, lot: int32(at), by: by, from: from, to: to})
		}
		if units == n {
			break
		}
	}
	return units
}

// takeAll takes a unit off each of some rows, but where max_per_host stops it, and returns how many units those are.
func (g *Granter) takeAll(i int32, at int, rows []room.Row) (units int64) {
	p, k, l := &g.rounds.placed, &g.kind[i], g.lots.list[at]
	f := &k.unit[at]
	stacked := l.rules.placement == plan.Stacked
	for _, row := range rows {
		if k.on != nil && !g.mayUse(k, l, f, row) {
			continue
		}
		if stacked && l.unused.Has(row) {
			p.unused = append(p.unused, lotRow{int32(at), row})
		}
		_, on := g.take(i, at, row)
		p.row = append(p.row, row)
		if p.devices {
			p.on = append(p.on, on)
		}
		units++
	}
	return units
}

// addSegment adds a segment behind the others of its kind.
func (g *Granter) addSegment(s segment) {
	p, k := &g.rounds.placed, &g.kind[s.kind]
	s.back = k.last
	p.segment = append(p.segment, s)
	at := int32(len(p.segment))
	if k.last == 0 {
		k.first, k.row = at, s.from
	} else {
		p.segment[k.last-1].next = at
	}
	k.last = at
}

// gangOf returns the ask of a kind that is a gang that waits, nil for other kinds.
func (g *Granter) gangOf(i int32) *pool.Ask {
	sub := g.kind[i].key.sub
	if sub == cluster.NoID {
		return nil
	}
	for _, at := range g.rounds.touched {
		if a := &g.queue.Ask[at]; a.Sub == sub && a.Least > 1 {
			return a
		}
	}
	return nil
}

// placeGang takes room for all min_units of a gang, or for none.
func (g *Granter) placeGang(a *pool.Ask) int64 {
	g.addLimits(a, -a.Least) // fitsWhole counts them
	a.Has -= a.Least
	own := a.Kind
	fits := g.fitsWhole(a)
	by := a.Kind
	a.Kind = own
	a.Has += a.Least
	g.addLimits(a, a.Least)
	if !fits {
		return 0
	}
	if _, held := g.env.Views.Needs.Held(a.Sub); held {
		g.rounds.placed.held = append(g.rounds.placed.held, a.Sub)
	}
	units := g.placeUnits(own, by, a.Least)
	if by != own {
		g.kind[own].on = g.kind[by].on
	}
	return units
}

// unplace gives back the room of the step's units.
func (g *Granter) unplace() {
	p := &g.rounds.placed
	for s := len(p.segment) - 1; s >= p.from; s-- {
		one := &p.segment[s]
		l, by, owner := g.lots.list[one.lot], &g.kind[one.by], &g.kind[one.kind]
		need := &by.unit[one.lot].need
		for i := one.to - 1; i >= one.from; i-- {
			row, on := p.row[i], cluster.Devices(0)
			if p.devices {
				on = p.on[i]
			}
			if l.giveBack(row, need, on); by.on != nil {
				by.on[g.env.Plan.Parcels.Host[l.parcel[row]]]--
			}
		}
		p.row = p.row[:one.from]
		if p.devices {
			p.on = p.on[:one.from]
		}
		if owner.last = one.back; one.back == 0 {
			owner.first = 0
		} else {
			p.segment[one.back-1].next = 0
		}
	}
	p.segment = p.segment[:p.from]
	for _, u := range p.unused {
		l := g.lots.list[u.lot]
		l.rows.Remove(u.row)
		l.unused.Add(&l.index, u.row)
	}
	for _, sub := range p.held {
		g.env.Views.Needs.Free(sub)
	}
	for i := range g.kind {
		k := &g.kind[i]
		for at := range k.unit {
			f := &k.unit[at]
			f.from, f.next = f.start.from, f.start.next
			f.begun = f.begun && k.on == nil // bits were cleared of its mask
		}
	}
}

// deal gives the rows of each kind, in the order of placement, to the kind's asks, in the order of leaves and D-14.
func (g *Granter) deal(out *Decisions) {
	r, e := &g.rounds, g.env
	p := &r.placed
	for at := range g.queue.Ask {
		a := &g.queue.Ask[at]
		k := &g.kind[a.Kind]
		for left := r.given[at]; left > 0; left-- {
			one := &p.segment[k.first-1]
			on := cluster.Devices(0)
			if p.devices {
				on = p.on[k.row]
			}
			out.add(e, a.Sub, g.lots.list[one.lot].parcel[p.row[k.row]], on)
			if k.row++; k.row == one.to && one.next > 0 {
				k.first = one.next
				k.row = p.segment[k.first-1].from
			}
		}
	}
}
