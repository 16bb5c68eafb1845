package act

import (
	"cmp"
	"slices"
	"time"

	"github.com/stintd/stint/ingest/client"
)

// place is what the service tells units apart by: those of one place are alike.
type place struct{ consumer, allocation, sub, host, device string }

func placeOf(u *Unit) place { return place{u.Consumer, u.Allocation, u.Sub, u.Host, u.Device} }

// reclaim is a part of the units of a place that the service takes back.
type reclaim struct {
	units    int64
	deadline time.Time
	cycle    int64 // that decided it, where the changes told
}

// holding is how many units the service holds for the source at a place.
type holding struct {
	free    int64
	taken   map[int64]reclaim // by number of the reclaim
	granted int64             // cycle of the latest grant
}

func (h *holding) total() (n int64) {
	n = h.free
	for _, r := range h.taken {
		n += r.units
	}
	return n
}

// book applies a change to the holdings. It reports whether the change fits them; if not, all must be read again.
func book(held map[place]*holding, c *client.Change) bool {
	at := place{c.Consumer, c.Allocation, c.Sub, c.Host, c.Device}
	h := held[at]
	if h == nil {
		h = &holding{}
		held[at] = h
	}
	switch c.Change {
	case "grant":
		h.free, h.granted = h.free+c.Units, c.Cycle
	case "release":
		if c.Reclaim != 0 {
			h.take(c.Reclaim, -c.Units, 0, nil)
		} else {
			h.free -= c.Units
		}
	case "reclaim":
		h.free -= c.Units
		h.take(c.Reclaim, c.Units, c.Cycle, c.Deadline)
	case "cancel":
		h.free += c.Units
		h.take(c.Reclaim, -c.Units, 0, nil)
	}
	fits := h.free >= 0
	for _, r := range h.taken {
		fits = fits && r.units >= 0
	}
	if h.total() == 0 {
		delete(held, at)
	}
	return fits
}

func (h *holding) take(number, units, cycle int64, deadline *time.Time) {
	if h.taken == nil {
		h.taken = map[int64]reclaim{}
	}
	r := h.taken[number]
	r.units += units
	if deadline != nil {
		r.deadline, r.cycle = *deadline, cycle
	}
	if r.units == 0 {
		delete(h.taken, number)
		return
	}
	h.taken[number] = r
}

// holdings are the holdings of an answer.
func holdings(rows []client.Holding) map[place]*holding {
	held := map[place]*holding{}
	for i := range rows {
		r := &rows[i]
		at := place{r.Consumer, r.Allocation, r.Sub, r.Host, r.Device}
		h := held[at]
		if h == nil {
			h = &holding{}
			held[at] = h
		}
		h.granted = max(h.granted, r.Granted)
		if r.Reclaim != 0 {
			h.take(r.Reclaim, r.Units, 0, r.Deadline)
		} else {
			h.free += r.Units
		}
	}
	return held
}

// matched is what follows from the difference between ledger and holdings.
type matched struct {
	create  []*entry // units that the service granted and the ledger lacks
	adopt   []*entry // units that run, are held, and were not in the ledger
	gone    []*entry // units that neither run nor are held
	changed []*entry // units whose reclaim changed
}

// match compares the units of a ledger with what the service holds after a cycle. orphans are running units that the
// ledger lacks; those of a place where more is held than the ledger has are adopted. It marks units that the service
// does not hold any more as overrun, and those under a reclaim with its deadline.
func match(units map[string]*entry, held map[place]*holding, cycle int64, orphans []Unit, id func() string) matched {
	var m matched
	at := map[place][]*entry{}
	for _, e := range units {
		if e.State == released && e.Released <= cycle {
			m.gone = append(m.gone, e)
			continue
		}
		at[placeOf(&e.Unit)] = append(at[placeOf(&e.Unit)], e)
	}
	for p, h := range held {
		lacking := h.total() - int64(len(at[p]))
		for i := range orphans {
			if lacking > 0 && placeOf(&orphans[i]) == p {
				e := &entry{Unit: orphans[i], State: started, seen: true, tried: true}
				m.adopt, at[p], lacking = append(m.adopt, e), append(at[p], e), lacking-1
			}
		}
		for ; lacking > 0; lacking-- {
			e := &entry{State: granted, Unit: Unit{ID: id(), Consumer: p.consumer, Allocation: p.allocation, Sub: p.sub,
				Host: p.host, Device: p.device, Cycle: h.granted}}
			m.create, at[p] = append(m.create, e), append(at[p], e)
		}
	}
	for p, list := range at {
		m.settle(list, held[p])
	}
	return m
}

// settle assigns what is held at a place to the units there. The order in which units lose their places is the
// service's: those under reclaim, then the newest; before all of them what does not run.
func (m *matched) settle(list []*entry, h *holding) {
	slices.SortFunc(list, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(standing(a), standing(b)), cmp.Compare(b.Cycle, a.Cycle), cmp.Compare(a.ID, b.ID))
	})
	total := int64(0)
	if h != nil {
		total = h.total()
	}
	excess := max(0, int64(len(list))-total)
	for _, e := range list[:excess] {
		if e.State == ended || e.State == granted && !e.tried || e.State == released {
			m.gone = append(m.gone, e)
		} else {
			e.overrun = true
		}
	}
	list = list[excess:]
	for _, e := range list {
		e.overrun = false
	}
	if h != nil {
		m.reclaim(list, h)
	}
}

// standing orders units by how readily they lose their place.
func standing(e *entry) int {
	switch {
	case e.State == ended || e.State == released:
		return 0
	case e.State == granted && !e.tried:
		return 1
	case e.overrun:
		return 2
	case e.Reclaim != 0:
		return 3
	case e.State == granted:
		return 4
	}
	return 5
}

// reclaim marks as many units with a reclaim as are under it. A unit keeps the reclaim that it has.
func (m *matched) reclaim(list []*entry, h *holding) {
	left := map[int64]int64{}
	for number, r := range h.taken {
		left[number] = r.units
	}
	var open []*entry
	for _, e := range list {
		if e.Reclaim != 0 && left[e.Reclaim] > 0 {
			left[e.Reclaim]--
			if d := h.taken[e.Reclaim].deadline; !d.Equal(*e.Deadline) {
				e.Deadline = &d
				m.changed = append(m.changed, e)
			}
			continue
		}
		open = append(open, e)
	}
	numbers := make([]int64, 0, len(left))
	for n := range left {
		numbers = append(numbers, n)
	}
	slices.SortFunc(numbers, func(a, b int64) int {
		return cmp.Or(h.taken[a].deadline.Compare(h.taken[b].deadline), cmp.Compare(a, b))
	})
	for _, n := range numbers {
		for ; left[n] > 0 && len(open) > 0; left[n]-- {
			d := h.taken[n].deadline
			open[0].Reclaim, open[0].Deadline, open[0].taken = n, &d, h.taken[n].cycle
			m.changed, open = append(m.changed, open[0]), open[1:]
		}
	}
	for _, e := range open {
		if e.Reclaim != 0 { // cancelled; a unit whose stop was called stops all the same and is given back
			e.Reclaim, e.Deadline = 0, nil
			m.changed = append(m.changed, e)
		}
	}
}
