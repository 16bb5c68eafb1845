package act

import (
	"context"
	"encoding/json"
	"maps"
	"time"

	"github.com/stintd/stint/ingest/client"
)

// cycleRow is what tells a cycle from that of any other log, and when it ran. Its now is in the journal: a service that
// was killed gives the cycle the same one when it decides it again, unlike the time at which it was started.
type cycleRow struct {
	Cycle  int64     `json:"cycle"`
	Now    time.Time `json:"now"`
	Digest string    `json:"decisions_digest"`
}

func (r *cycleRow) version() string { return r.Now.UTC().Format(time.RFC3339Nano) + " " + r.Digest }

// follow reads what the service decides until ctx is done.
func (a *actor) follow() {
	by := newBackOff(retryMost)
	for a.ctx.Err() == nil {
		err := a.begin()
		if err == nil {
			by.Reset()
			err = a.changes()
		}
		if a.ctx.Err() != nil {
			return
		}
		pause := tick // what did not fit is read again at once
		if err != nil {
			pause = by.NextBackOff()
			a.log.Warn("the service does not answer; what runs goes on", "error", err, "again_in", pause)
		}
		select {
		case <-a.ctx.Done():
		case <-time.After(pause):
		}
	}
}

// begin reads all that is held. A service that lost its data is told what runs first.
func (a *actor) begin() error {
	ctx, cancel := a.call()
	defer cancel()
	rows, cycle, err := a.c.Holdings(ctx, a.o.Source)
	if client.Is(err, "no-cycle") {
		rows, cycle, err = nil, 0, nil
	}
	if err != nil {
		return err
	}
	last, err := a.cycles(ctx)
	if err != nil {
		return err
	}
	told, err := a.told(ctx)
	if err != nil {
		return err
	}
	lost := false
	a.do(func() { lost = a.led.cycle > cycle || other(last, a.led.cycle, a.led.version) })
	if lost {
		if err := a.restore(ctx); err != nil {
			return err
		}
		return a.begin()
	}
	a.do(func() {
		a.held, a.since, a.begun, a.dirty = holdings(rows), cycle, true, true
		maps.Copy(told, a.demand.accepted)
		a.demand.accepted = told
		a.progress(last, cycle)
	})
	return nil
}

// restore tells a service that lost its data, as from an older copy, what is wanted and what runs. Nothing is stopped
// until it has answered.
func (a *actor) restore(ctx context.Context) error {
	a.log.Warn("the service is not the one that was followed, or lost its data; it is told what runs")
	var demand, hosts []map[string]any
	units := map[place]int64{}
	a.do(func() {
		a.begun, hosts = false, a.list.Hosts
		var whole bool
		if demand, whole = a.wants(); !whole {
			demand = a.list.Demand
		}
		for _, rows := range a.running {
			units[placeOf(&rows[0])]++
		}
	})
	if a.o.Hosts { // without its hosts the service would not take what runs there
		body, err := jsonBody(hosts)
		if err != nil {
			return err
		}
		if _, err := a.c.PutHosts(ctx, body, client.Options{AllowShrink: true}); err != nil {
			return err
		}
	}
	body, err := jsonBody(demand)
	if err != nil {
		return err
	}
	if _, err := a.c.PutDemand(ctx, a.o.Source, body, client.Options{AllowShrink: true}); err != nil {
		return err
	}
	runs := []client.Unit{}
	for p, n := range units {
		runs = append(runs, client.Unit{Consumer: p.consumer, Allocation: p.allocation, Sub: p.sub, Host: p.host,
			Units: n})
	}
	if body, err = runningBody(runs); err != nil {
		return err
	}
	receipt, err := a.c.PutRunning(ctx, a.o.Source, body, client.Options{AllowShrink: true})
	if err != nil {
		return err
	}
	for {
		_, cycle, err := a.c.Holdings(ctx, a.o.Source)
		if err != nil && !client.Is(err, "no-cycle") {
			return err
		}
		if err == nil && cycle >= receipt.Cycle {
			last, err := a.cycles(ctx)
			if err == nil {
				a.do(func() { a.demand.pushed = nil; a.progress(last, cycle) })
			}
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(2 * tick):
		}
	}
}

// changes follows the service until changes do not fit, which is no error: all is read again then.
func (a *actor) changes() error {
	since := int64(0)
	if !a.do(func() { since = a.since }) {
		return a.ctx.Err()
	}
	for {
		ctx, cancel := context.WithTimeout(a.ctx, changesWait+callTime)
		rows, next, err := a.c.Changes(ctx, a.o.Source, since, changesWait)
		if client.Is(err, "compacted") || client.Is(err, "future") {
			cancel()
			return nil
		}
		var last []cycleRow
		if err == nil && next != since {
			last, err = a.cycles(ctx)
		}
		cancel()
		if err != nil {
			return err
		}
		fits := true
		a.do(func() {
			if fits = !other(last, since, a.led.version); !fits {
				return
			}
			if next != since {
				a.progress(last, next)
			}
			for i := range rows {
				fits = book(a.held, &rows[i]) && fits
			}
			a.since, a.dirty = next, true
			a.m.heard.SetToCurrentTime()
		})
		if !fits || a.ctx.Err() != nil {
			return a.ctx.Err()
		}
		since = next
	}
}

// other reports whether a cycle is another one than that of the version.
func other(last []cycleRow, cycle int64, version string) bool {
	for i := range last {
		if last[i].Cycle == cycle {
			return version != "" && last[i].version() != version
		}
	}
	return false
}

// progress notes up to which cycle of which log the ledger goes, and how the clocks differ.
func (a *actor) progress(last []cycleRow, cycle int64) {
	clear(a.decided)
	r := &record{}
	for i := range last {
		a.decided[last[i].Cycle] = last[i].Now
		if last[i].Cycle == cycle {
			r.Cycle, r.Version = cycle, last[i].version()
		}
	}
	if d := a.clock.difference(); (d - a.led.skew).Abs() > time.Second {
		r.Skew = d
	}
	if r.Cycle == a.led.cycle && r.Version == a.led.version {
		r.Cycle = 0
	}
	a.record(r)
}

// cycles reads the last cycles.
func (a *actor) cycles(ctx context.Context) (last []cycleRow, err error) {
	text, err := a.c.Get(ctx, "/v1/cycles", nil, "application/json")
	if client.Is(err, "no-cycle") {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &last)
	}
	return last, err
}
