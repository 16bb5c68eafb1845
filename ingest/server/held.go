package server

import (
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/export"
)

// heldKey is what a holding of the log is told by. Releases do not say of which pool their units were.
type heldKey struct {
	plan, consumer, allocation, sub, host, origin, lender, device, pool, source int32
}

// place is where units are: a reclaim names no more.
type place struct{ plan, consumer, allocation, sub, host, device int32 }

func (k heldKey) place() place {
	return place{k.plan, k.consumer, k.allocation, k.sub, k.host, k.device}
}

// ledger adds up what is held: a keyframe, and the grants and releases since.
type ledger struct {
	m     melding
	keys  []heldKey
	units []int64
	of    map[heldKey][]int32 // by key without pool and source: places in keys
}

// add takes the rows of a table into account: releases take away.
func (l *ledger) add(t *decision.Table) {
	if l.of == nil {
		l.of = map[heldKey][]int32{}
	}
	c := func(name string) []int32 { return l.m.codes(t.Column(name)) }
	plan, consumer, allocation, sub, host := c("plan"), c("consumer"), c("allocation"), c("sub"), c("host")
	origin, lender, pool, source := c("origin"), c("lender"), c("pool"), c("source")
	device := c("device")
	back := t.Column("cause") != nil
	for row, units := range t.Column("units").Int {
		k := heldKey{
			at(plan, row), at(consumer, row), at(allocation, row), at(sub, row), at(host, row), at(origin, row),
			at(lender, row), at(device, row), decision.Null, decision.Null,
		}
		if back {
			l.release(k, units)
			continue
		}
		l.grant(k, at(pool, row), at(source, row), units)
	}
}

func (l *ledger) grant(k heldKey, pool, source int32, units int64) {
	for _, i := range l.of[k] {
		if l.keys[i].pool == pool {
			l.units[i] += units
			return
		}
	}
	l.of[k] = append(l.of[k], int32(len(l.keys)))
	k.pool, k.source = pool, source
	l.keys, l.units = append(l.keys, k), append(l.units, units)
}

// release takes units off those of a holder, of the first pool that has some.
func (l *ledger) release(k heldKey, units int64) {
	for _, i := range l.of[k] {
		n := min(l.units[i], units)
		l.units[i] -= n
		units -= n
	}
}

// leaving is what is under reclaim at a place, and by when it goes.
type leaving struct {
	units, reclaim, deadline int64
}

// leavingOf adds up what is under reclaim: issued, less what was cancelled or came back.
func (l *ledger) leavingOf(reclaims, releases *decision.Table) map[place]*leaving {
	type step struct {
		at      place
		reclaim int64
	}
	open := map[step]int64{}
	due := map[step]int64{}
	read := func(t *decision.Table, add func(k step, row int)) {
		c := func(name string) []int32 { return l.m.codes(t.Column(name)) }
		plan, consumer, allocation, sub, host := c("plan"), c("consumer"), c("allocation"), c("sub"), c("host")
		device := c("device")
		for row, id := range t.Column("reclaim").Int {
			if id != 0 {
				add(step{place{at(plan, row), at(consumer, row), at(allocation, row), at(sub, row), at(host, row),
					at(device, row)}, id}, row)
			}
		}
	}
	action := l.m.codes(reclaims.Column("action"))
	units, deadline := reclaims.Column("units").Int, reclaims.Column("deadline").Int
	cancelled := l.m.names.InternString("cancelled")
	read(reclaims, func(k step, row int) {
		if action[row] == cancelled {
			open[k] -= units[row]
			return
		}
		open[k] += units[row]
		due[k] = deadline[row]
	})
	units = releases.Column("units").Int
	read(releases, func(k step, row int) { open[k] -= units[row] })
	of := map[place]*leaving{}
	for k, n := range open {
		if n <= 0 {
			continue
		}
		if of[k.at] == nil {
			of[k.at] = &leaving{reclaim: k.reclaim, deadline: due[k]}
		}
		at := of[k.at]
		if at.units += n; k.reclaim < at.reclaim {
			at.reclaim, at.deadline = k.reclaim, due[k]
		}
	}
	return of
}

// reclaimedMax is how many cycles back reclaims are looked for that are still under way.
const reclaimedMax = 20_000

// held is what is held after a cycle, as the log tells it, with the reclaim that units are under: a row for what the
// service's own table of holdings has one or more for.
func (h *history) held(n int64) (*decision.Table, error) {
	return h.made(n, "held", func(r *export.Reader) (*decision.Table, error) {
		frame, err := r.Holder("holdings", n)
		if err != nil {
			return nil, err
		}
		var l ledger
		t, err := r.Table("holdings", frame)
		if err != nil {
			return nil, err
		}
		l.add(t)
		for _, name := range []string{"grants", "releases"} {
			if frame == n {
				break
			}
			if t, err = r.Rows(name, frame+1, n); err != nil {
				return nil, err
			}
			l.add(t)
		}
		first := max(r.Cycles()[0], n-reclaimedMax)
		reclaims, err := r.Rows("reclaims", first, n)
		if err != nil {
			return nil, err
		}
		releases, err := r.Rows("releases", first, n)
		if err != nil {
			return nil, err
		}
		return l.table(l.leavingOf(reclaims, releases)), nil
	})
}

// table is what is held, as the table holdings of a view has it. Of units at one place that count as different things
// those under reclaim are the first ones, as far as the log tells.
func (l *ledger) table(under map[place]*leaving) *decision.Table {
	var keys []heldKey
	var units, reclaim, deadline []int64
	var null []bool
	put := func(k heldKey, n int64, r, due int64) {
		if n > 0 {
			keys, units, reclaim = append(keys, k), append(units, n), append(reclaim, r)
			deadline, null = append(deadline, due), append(null, r == 0)
		}
	}
	for i, k := range l.keys {
		n := l.units[i]
		if u := under[k.place()]; u != nil && n > 0 {
			part := min(n, u.units)
			u.units -= part
			put(k, part, u.reclaim, u.deadline)
			n -= part
		}
		put(k, n, 0, 0)
	}
	text := func(name string, of func(k *heldKey) int32) decision.Column {
		codes := make([]int32, len(keys))
		for row := range keys {
			codes[row] = of(&keys[row])
		}
		return l.m.text(name, codes)
	}
	return &decision.Table{Name: "holdings", Rows: len(keys), Columns: []decision.Column{
		text("plan", func(k *heldKey) int32 { return k.plan }), text("source", func(k *heldKey) int32 {
			return k.source
		}),
		text("consumer", func(k *heldKey) int32 { return k.consumer }), text("allocation", func(k *heldKey) int32 {
			return k.allocation
		}),
		text("sub", func(k *heldKey) int32 { return k.sub }), text("host", func(k *heldKey) int32 { return k.host }),
		ints("units", units),
		text("origin", func(k *heldKey) int32 { return k.origin }), text("pool", func(k *heldKey) int32 {
			return k.pool
		}),
		text("lender", func(k *heldKey) int32 { return k.lender }), ints("reclaim", reclaim),
		{Name: "deadline", Type: decision.Time, Int: deadline, Null: null, Optional: true},
		text("device", func(k *heldKey) int32 { return k.device }),
	}}
}
