package act

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
)

func workOf(u *Unit) workKey { return workKey{u.Consumer, u.Allocation} }

// attempt is the work on the allocation of a unit.
func (a *actor) attempt(u *Unit) *attempt {
	w := a.work[workOf(u)]
	if w == nil {
		w = &attempt{by: newBackOff(retryMost)}
		a.work[workOf(u)] = w
	}
	return w
}

// leaves reports whether a unit must not be started any more.
func (e *entry) leaves() bool { return e.Reclaim != 0 || e.overrun || e.faulty || e.stopped }

// starts calls the hook for units that are granted and do not run.
func (a *actor) starts() {
	ready := map[workKey][]*entry{}
	r := &record{}
	for _, e := range a.led.units {
		switch {
		case e.State != granted:
		case e.leaves() && !e.tried: // reclaimed before anything was begun
			e.State = ended
			r.Units = append(r.Units, e)
		case e.leaves():
		case e.tried && !a.began.After(e.since): // whether it runs is not known
		default:
			ready[workOf(&e.Unit)] = append(ready[workOf(&e.Unit)], e)
		}
	}
	a.record(r)
	for key, units := range ready {
		w := a.attempt(&units[0].Unit)
		if w.action != "" || time.Now().Before(w.next) || !a.takeSlot("start") {
			continue
		}
		slices.SortFunc(units, func(a, b *entry) int { return strings.Compare(a.ID, b.ID) })
		a.start(key, w, units)
	}
}

func (a *actor) takeSlot(action string) bool {
	select {
	case a.slot[action] <- struct{}{}:
		return true
	default:
		return false
	}
}

// start calls the hook start for units of one allocation.
func (a *actor) start(key workKey, w *attempt, entries []*entry) {
	ctx, cancel := context.WithCancel(a.ctx)
	w.action, w.cancel = "start", cancel
	units := make([]Unit, len(entries))
	for i, e := range entries {
		e.tried, units[i] = true, e.Unit
	}
	began := time.Now()
	a.spawn(func() func() {
		failed, err := a.hooks.Start(ctx, units)
		cancel()
		a.m.hook("start", began, err)
		<-a.slot["start"]
		return func() { a.startEnded(key, w, entries, failed, err) }
	})
}

// startEnded notes what a start did. Where the whole call failed, nothing is known: a list will tell.
func (a *actor) startEnded(key workKey, w *attempt, entries []*entry, failed Failed, err error) {
	w.action, w.cancel = "", nil
	if err != nil && a.ctx.Err() != nil {
		return // an actor that ends
	}
	now, ok := a.clock.now(), err == nil
	r := &record{}
	for _, e := range entries {
		e.since = time.Now()
		reason, bad := failed[e.ID]
		if err == nil && !bad {
			if e.State == granted {
				e.State = started
				r.Units = append(r.Units, e)
				a.effect("start", now.Sub(e.decided))
			}
			continue
		}
		ok = false
		if bad {
			err = errors.Join(err, errors.New(e.ID+": "+reason))
		}
	}
	a.record(r)
	if ok {
		w.by.Reset()
		return
	}
	w.next = later(w.by)
	a.soon()
	a.log.Error("start failed; it is tried again", "consumer", key.consumer, "allocation", key.allocation, "units",
		describe(unitsOf(entries)), "error", err, "again", w.next)
}

func unitsOf(entries []*entry) []Unit {
	units := make([]Unit, len(entries))
	for i, e := range entries {
		units[i] = e.Unit
	}
	return units
}

// stops calls the hook for units whose time has come: those under reclaim from Notice before their deadlines on, and at
// once those that the service does not hold.
func (a *actor) stops() {
	now := a.clock.now()
	due := map[workKey][]*entry{}
	for _, e := range a.led.units {
		if e.State != started && (e.State != granted || !e.tried) {
			continue
		}
		at, ok := a.stopAt(e, now)
		if !ok {
			e.due = time.Time{}
			continue
		}
		if e.due.IsZero() {
			e.due = at
		}
		if e.Deadline != nil && !e.late && e.acked.IsZero() && now.After(*e.Deadline) {
			a.late(e)
		}
		if !now.Before(e.due) && e.mayStop(a.began) {
			due[workOf(&e.Unit)] = append(due[workOf(&e.Unit)], e)
		}
	}
	if a.begun && !a.o.KeepOrphans {
		for _, e := range a.orphans {
			if e.missing >= orphanLists && e.mayStop(a.began) {
				due[workOf(&e.Unit)] = append(due[workOf(&e.Unit)], e)
			}
		}
	}
	for key, units := range due {
		w := a.attempt(&units[0].Unit)
		if w.action == "start" {
			w.cancel() // the start hangs, or is about to fail: stopping comes first
		}
		if w.action != "" || !a.takeSlot("stop") {
			continue
		}
		slices.SortFunc(units, func(a, b *entry) int { return strings.Compare(a.ID, b.ID) })
		a.stop(key, w, units, now)
	}
}

// stopAt is when a unit has to be stopped, by the service's clock.
func (a *actor) stopAt(e *entry, now time.Time) (at time.Time, ok bool) {
	switch {
	case e.overrun || e.faulty:
		return now, true
	case e.Reclaim == 0:
		return now, e.stopped // cancelled after stop was called: it goes on to stop
	case a.o.Notice == 0:
		if at, ok = a.decided[e.taken]; !ok {
			at = now
		}
		return at, true
	}
	if at = e.Deadline.Add(-a.o.Notice); at.Before(now) {
		at = now
	}
	return at, true
}

// mayStop reports whether stop may be called: the first time, or again after a list that still has the unit.
func (e *entry) mayStop(listed time.Time) bool {
	return !e.stopped || listed.After(e.since) && time.Now().After(e.again)
}

// late counts a unit that runs past its deadline.
func (a *actor) late(e *entry) {
	e.late = true
	a.lates++
	a.m.late.Inc()
	a.log.Error("a unit runs past its deadline", append(unitAttrs(&e.Unit), "deadline", *e.Deadline)...)
}

// stop calls the hook stop for units of one allocation.
func (a *actor) stop(key workKey, w *attempt, entries []*entry, now time.Time) {
	units := make([]Stopping, len(entries))
	soonest := a.o.Force
	for i, e := range entries {
		u := Stopping{Unit: e.Unit, Deadline: now}
		if e.Deadline != nil && !e.overrun {
			u.Deadline = *e.Deadline
		}
		left := max(0, u.Deadline.Sub(now))
		u.SecondsLeft, u.Force = left.Seconds(), left <= a.o.Force
		units[i], e.stopped, e.tried = u, true, true
		soonest = max(soonest, left/2)
	}
	// A call that hangs must leave time for another before the deadline.
	ctx, cancel := context.WithTimeout(a.ctx, soonest)
	w.action, w.cancel = "stop", cancel
	began := time.Now()
	a.spawn(func() func() {
		failed, err := a.hooks.Stop(ctx, units)
		cancel()
		a.m.hook("stop", began, err)
		<-a.slot["stop"]
		return func() { a.stopEnded(key, w, entries, failed, err) }
	})
}

// stopEnded notes what a stop did. Whether the units are gone is for the next list to say: until then stop is repeated.
func (a *actor) stopEnded(key workKey, w *attempt, entries []*entry, failed Failed, err error) {
	w.action, w.cancel = "", nil
	if a.ctx.Err() != nil {
		return
	}
	now := a.clock.now()
	for _, e := range entries {
		if e.by == nil {
			e.by = newBackOff(stopRetryMax)
		}
		e.since, e.again = time.Now(), later(e.by)
		if reason, bad := failed[e.ID]; bad {
			err = errors.Join(err, errors.New(e.ID+": "+reason))
		} else if err == nil {
			e.acked = now
		}
	}
	a.soon()
	if err != nil {
		a.log.Error("stop failed; it is tried again", "consumer", key.consumer, "allocation", key.allocation, "units",
			describe(unitsOf(entries)), "error", err)
	}
}
