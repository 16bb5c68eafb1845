package act

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

const (
	vanishLeast = 10 // units that may vanish at once before a list is doubted
	vanishLists = 3  // lists that must agree then
	orphanLists = 2  // lists that must agree before a unit that the ledger lacks is stopped
)

// lists has the cluster listed when it is time.
func (a *actor) lists() {
	if a.listing || time.Now().Before(a.listAt) {
		return
	}
	a.listing = true
	began := time.Now()
	a.spawn(func() func() {
		l, err := a.hooks.List(a.ctx)
		if err == nil {
			err = l.check()
		}
		a.m.hook("list", began, err)
		return func() {
			a.listing = false
			if err != nil {
				if a.ctx.Err() == nil {
					a.listAt = later(a.listFail)
					a.log.Error("list failed; the last list counts until it succeeds", "error", err)
				}
				return
			}
			a.listFail.Reset()
			a.listAt = began.Add(a.o.Every)
			first := a.list == nil
			a.took(l, began)
			if first {
				a.spawn(func() func() { a.follow(); return nil })
			}
		}
	})
}

// soon has the cluster listed as soon as possible, because a call changed it.
func (a *actor) soon() {
	if at := a.began.Add(2 * tick); at.Before(a.listAt) {
		a.listAt = at
	}
}

// took compares the ledger with a list.
func (a *actor) took(l *Listing, began time.Time) {
	first := a.list == nil
	a.list, a.began, a.dirty = l, began, true
	clear(a.running)
	orphans := map[string]*entry{}
	for _, u := range l.Running {
		a.running[u.ID] = append(a.running[u.ID], u)
		if a.led.units[u.ID] != nil || orphans[u.ID] != nil {
			continue
		}
		if orphans[u.ID] = a.orphans[u.ID]; orphans[u.ID] == nil {
			orphans[u.ID] = &entry{Unit: u, State: started, tried: true, seen: true, overrun: true}
		}
		orphans[u.ID].missing++
	}
	a.orphans = orphans
	a.prune()
	r := &record{}
	if first {
		a.swap(r)
	}
	needed := a.doubted(began)
	lowered := a.lowered()
	units := slices.SortedFunc(maps.Values(a.led.units), func(a, b *entry) int {
		return cmp.Or(cmp.Compare(standing(b), standing(a)), cmp.Compare(a.ID, b.ID)) // what ran is finished first
	})
	for _, e := range units {
		var changed bool
		if rows := a.running[e.ID]; len(rows) > 0 {
			changed = a.present(e, rows)
		} else if e.since.Before(began) && a.work[workOf(&e.Unit)].idle() {
			changed = a.absent(e, needed, lowered)
		}
		if changed {
			r.Units = append(r.Units, e)
		}
	}
	a.record(r)
	a.m.listed.SetToCurrentTime()
}

// swap replaces units of the ledger that do not run by running units of the same place that the ledger lacks. They come
// from a ledger that is older than the cluster.
func (a *actor) swap(r *record) {
	for _, e := range a.led.units {
		if len(a.running[e.ID]) > 0 || e.State == released {
			continue
		}
		for id := range a.orphans {
			u := a.orphans[id].Unit
			if placeOf(&u) == placeOf(&e.Unit) {
				a.log.Warn("the ledger is older than the cluster; a running unit takes the place of another", "unit",
					u.ID,
					"was", e.ID, "allocation", u.Allocation, "host", u.Host)
				r.Units = append(r.Units, &entry{Unit: u, State: started, tried: true, seen: true, Reclaim: e.Reclaim,
					Deadline: e.Deadline})
				r.Gone = append(r.Gone, e.ID)
				delete(a.orphans, id)
				break
			}
		}
	}
	for _, id := range r.Gone {
		delete(a.led.units, id)
	}
}

// doubted is how many successive lists must lack a unit before it counts as ended: one, or more when most units vanish
// at once, which may be an error of the hook.
func (a *actor) doubted(began time.Time) int {
	runs, vanished := 0, 0
	for _, e := range a.led.units {
		if e.State != started || !e.seen {
			continue
		}
		runs++
		if len(a.running[e.ID]) == 0 && e.since.Before(began) && !e.stopped {
			vanished++
		}
	}
	if vanished > vanishLeast && vanished > runs/2 {
		a.log.Warn("most units are missing in a list; they count as ended when further lists agree", "missing",
			vanished, "of", runs)
		return vanishLists
	}
	return 1
}

// lowered is by how much fewer units a list wants than the service was told, or than the ledger has where that is more.
// So many units that do not run are finished work.
func (a *actor) lowered() map[subKey]int64 {
	left := map[subKey]int64{}
	for _, e := range a.led.units {
		if e.State != released && e.Key == "" && !e.overrun {
			left[subOf(&e.Unit)]++
		}
	}
	for k, n := range a.demand.wanted {
		left[k] = max(left[k], n)
	}
	for _, row := range a.list.Demand {
		k, n := rowKey(row)
		left[k] -= n
	}
	return left
}

// present notes that a unit runs. It reports whether the ledger has to be written.
func (a *actor) present(e *entry, rows []Unit) bool {
	e.missing, e.seen, e.tried = 0, true, true
	host := rows[0].Host
	switch faulty := len(rows) > 1 || host != "" && host != e.Host; {
	case !faulty:
		e.faulty = false
	case !e.faulty:
		e.faulty = true
		a.m.faults.Inc()
		a.log.Error("a unit runs twice or on another host; it is stopped and given back",
			append(unitAttrs(&e.Unit), "copies", len(rows), "runs_on", host)...)
	}
	if e.State == granted || e.State == ended && e.Key == "" {
		e.State = started
		return true
	}
	if d := e.Deadline; d != nil && !e.late && a.clock.at(a.began).After(*d) {
		a.late(e)
	}
	return false
}

// prune forgets the work on allocations of which the ledger has nothing.
func (a *actor) prune() {
	known := map[workKey]bool{}
	for _, e := range a.led.units {
		known[workOf(&e.Unit)] = true
	}
	for key, w := range a.work {
		if !known[key] && w.action == "" {
			delete(a.work, key)
		}
	}
}

// absent notes that a list lacks a unit. It reports whether the ledger has to be written.
func (a *actor) absent(e *entry, needed int, lowered map[subKey]int64) bool {
	sub := subOf(&e.Unit)
	switch {
	case e.State == ended || e.State == released:
		return false
	case !a.begun && !e.stopped:
		return false // what is wanted of it is not known yet
	case e.State == granted && !e.stopped && lowered[sub] <= 0:
		return false // its start is tried, or tried again
	}
	if e.missing++; e.missing < needed && !e.stopped {
		return false
	}
	if lowered[sub]--; e.State == started && !e.seen && !e.stopped && lowered[sub] < 0 {
		a.log.Error("start succeeded and the unit is in no list; it is started again", unitAttrs(&e.Unit)...)
		e.State = granted
		at := a.attempt(&e.Unit)
		at.next = later(at.by)
		return true
	}
	e.State = ended
	if e.stopped && !e.acked.IsZero() && !e.due.IsZero() {
		a.effect("stop", e.acked.Sub(e.due))
	}
	return true
}

// idle reports whether no hook is at work.
func (w *attempt) idle() bool { return w == nil || w.action == "" }
