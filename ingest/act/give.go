package act

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/stintd/stint/ingest/client"
)

// subKey is a sub-allocation.
type subKey struct{ consumer, allocation, sub string }

func subOf(u *Unit) subKey { return subKey{u.Consumer, u.Allocation, u.Sub} }

// rowKey is the sub-allocation of a row of demand, and how many units it wants.
func rowKey(row map[string]any) (subKey, int64) {
	text := func(name string) string { s, _ := row[name].(string); return s }
	units, _ := row["units"].(json.Number)
	n, _ := units.Int64()
	return subKey{text("consumer"), text("allocation"), text("sub")}, n
}

// check refuses a list that lacks what the actor needs.
func (l *Listing) check() error {
	for i, row := range l.Demand {
		k, _ := rowKey(row)
		units, ok := row["units"].(json.Number)
		if _, err := units.Int64(); k.consumer == "" || k.allocation == "" || !ok || err != nil {
			return fmt.Errorf("list: demand row %d: consumer, allocation or units is missing: print all three", i+1)
		}
	}
	for i, u := range l.Running {
		if u.ID == "" || u.Consumer == "" || u.Allocation == "" {
			return fmt.Errorf("list: running row %d: id, consumer or allocation is missing: print what start was given",
				i+1)
		}
	}
	return nil
}

// releases gives ended units back: first those of an earlier call whose answer was lost, under its key, then all
// others.
func (a *actor) releases() {
	if a.giving || time.Now().Before(a.giveAt) {
		return
	}
	byKey := map[string][]*entry{}
	for _, e := range a.led.units {
		if e.State == ended {
			byKey[e.Key] = append(byKey[e.Key], e)
		}
	}
	var key string
	for k := range byKey {
		key = max(key, k)
	}
	units := byKey[key]
	if len(units) == 0 {
		return
	}
	if key == "" {
		var b [16]byte
		_, _ = rand.Read(b[:]) // never fails
		key = hex.EncodeToString(b[:])
		lowered := a.lowered()
		for _, e := range units {
			sub := subOf(&e.Unit)
			if e.Key, e.Done = key, lowered[sub] > 0; e.Done {
				lowered[sub]--
				a.demand.wanted[sub]--
			}
		}
		if !a.record(&record{Units: units}) {
			return
		}
	}
	// The same units under the same key make the same bytes, also after a restart.
	slices.SortFunc(units, func(a, b *entry) int { return strings.Compare(a.ID, b.ID) })
	rows := make([]client.Unit, len(units))
	for i, e := range units {
		rows[i] = client.Unit{Consumer: e.Consumer, Allocation: e.Allocation, Sub: e.Sub, Host: e.Host, Units: 1,
			Done: e.Done, Device: e.Device}
	}
	a.giving = true
	a.spawn(func() func() {
		ctx, cancel := a.call()
		defer cancel()
		receipt, err := a.c.ReleaseOnce(ctx, key, rows)
		return func() { a.gave(units, receipt, err) }
	})
}

func (a *actor) gave(units []*entry, receipt client.Receipt, err error) {
	a.giving = false
	if a.ctx.Err() != nil {
		return
	}
	if err != nil {
		a.giveAt = later(a.giveBy)
		a.log.Warn("ended units could not be given back yet", "units", describe(unitsOf(units)), "error", err,
			"again", a.giveAt)
		return
	}
	a.giveBy.Reset()
	r := &record{}
	for _, e := range units {
		if a.led.units[e.ID] == e {
			e.State, e.Released = released, receipt.Cycle
			r.Units = append(r.Units, e)
		}
	}
	a.m.releases.Add(float64(len(units)))
	a.record(r)
}

// refusedAgain is how long after a refusal the same row is tried again.
const refusedAgain = time.Minute

// demandState is what the service was told is wanted.
type demandState struct {
	pushed   []byte                    // the table that it accepted last
	whole    bool                      // that is all that is wanted
	wanted   map[subKey]int64          // units in it, less what was done since
	accepted map[subKey]map[string]any // its rows
	refused  map[string]string         // rows that it refuses, as JSON, with the reason
	asked    time.Time                 // when refused was emptied last
	hosts    []byte                    // the table of hosts that it accepted last
	changed  bool                      // a list or the ledger is another since the last look
	busy     bool
	at       time.Time // not before
	by       *backoff.ExponentialBackOff
}

// wants are the rows of the last list as they are pushed. Rows that the service refused are replaced by their last good
// version, if there is one. No sub-allocation wants fewer units than the ledger has of it: the service would choose
// others to release, which run, and grant their room at once. whole is false where of such a sub-allocation no good row
// is known: it is left out, and the service keeps the row that it has.
func (a *actor) wants() (rows []map[string]any, whole bool) {
	d, live := &a.demand, map[subKey]int64{}
	for _, e := range a.led.units {
		if (e.State == granted || e.State == started) && !e.overrun {
			live[subOf(&e.Unit)]++
		}
	}
	rows = []map[string]any{}
	for _, row := range a.list.Demand {
		k, _ := rowKey(row)
		row = d.good(atLeast(row, live[k]), atLeast(d.accepted[k], live[k]))
		if row == nil {
			continue
		}
		rows = append(rows, row)
		delete(live, k)
	}
	for _, k := range slices.SortedFunc(maps.Keys(live), func(a, b subKey) int {
		return cmp.Or(cmp.Compare(a.consumer, b.consumer), cmp.Compare(a.allocation, b.allocation),
			cmp.Compare(a.sub, b.sub))
	}) {
		if row := d.good(atLeast(d.accepted[k], live[k])); row != nil {
			rows = append(rows, row)
			delete(live, k)
		}
	}
	return rows, len(live) == 0
}

// good is the first of some rows of demand that the service does not refuse; nil: there is none.
func (d *demandState) good(rows ...map[string]any) map[string]any {
	for _, row := range rows {
		if row != nil && len(d.refused) == 0 {
			return row
		}
		text, _ := json.Marshal(row) // it was decoded
		if _, bad := d.refused[string(text)]; row != nil && !bad {
			return row
		}
	}
	return nil
}

// atLeast is a row of demand, or nil, that wants no fewer units than that.
func atLeast(row map[string]any, units int64) map[string]any {
	if _, n := rowKey(row); n >= units || row == nil {
		return row
	}
	row = maps.Clone(row)
	row["units"] = json.Number(strconv.FormatInt(units, 10))
	return row
}

// told are the rows of demand that the service has, perhaps from an earlier process.
func (a *actor) told(ctx context.Context) (map[subKey]map[string]any, error) {
	told := map[subKey]map[string]any{}
	text, err := a.c.Get(ctx, "/v1/demand/"+url.PathEscape(a.o.Source), nil, "application/json")
	if client.Is(err, "no-source") || client.Is(err, "no-cycle") {
		return told, nil
	}
	if err != nil {
		return nil, err
	}
	var rows []map[string]any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&rows); err != nil {
		return nil, fmt.Errorf("the demand of source %s: %w", a.o.Source, err)
	}
	for _, row := range rows {
		row["units"] = row["wanted"]
		for _, name := range []string{"source", "wanted", "held"} {
			delete(row, name)
		}
		maps.DeleteFunc(row, func(_ string, v any) bool { return v == nil })
		k, _ := rowKey(row)
		told[k] = row
	}
	return told, nil
}

// pushes tells the service what is wanted, and which hosts there are, where that changed. It waits for ended units to
// be given back: they lower what is wanted, and the service would choose other units to release.
func (a *actor) pushes() {
	if a.demand.busy || a.giving || time.Now().Before(a.demand.at) {
		return
	}
	for _, e := range a.led.units {
		if e.State == ended {
			return
		}
	}
	if a.demand.changed && a.o.Hosts && a.list.Hosts != nil {
		text, err := json.Marshal(a.list.Hosts)
		if err == nil && string(text) != string(a.demand.hosts) {
			a.push("hosts", func(ctx context.Context) error {
				_, err := a.c.PutHosts(ctx, client.Bytes(text, "application/json"),
					client.Options{AllowShrink: a.o.AllowShrink})
				return err
			}, func() { a.demand.hosts = text })
			return
		}
	}
	if len(a.demand.refused) > 0 && time.Since(a.demand.asked) > refusedAgain {
		clear(a.demand.refused) // another policy may take them
		a.demand.asked, a.demand.changed = time.Now(), true
	}
	if !a.demand.changed {
		return
	}
	rows, whole := a.wants()
	body, err := json.Marshal(rows)
	if err != nil || whole == a.demand.whole && string(body) == string(a.demand.pushed) {
		a.demand.changed = false
		return
	}
	tell := a.c.PutDemand
	if !whole {
		tell = a.c.ChangeDemand
	}
	a.push("demand", func(ctx context.Context) error {
		_, err := tell(ctx, a.o.Source, client.Bytes(body, "application/json"),
			client.Options{AllowShrink: a.o.AllowShrink})
		return a.refuse(err, rows)
	}, func() {
		a.demand.pushed, a.demand.whole = body, whole
		if whole {
			clear(a.demand.wanted)
			clear(a.demand.accepted)
		}
		for _, row := range rows {
			k, _ := rowKey(row)
			delete(a.demand.wanted, k)
		}
		for _, row := range rows {
			k, n := rowKey(row)
			a.demand.wanted[k] += n
			a.demand.accepted[k] = row
		}
	})
}

// refuse notes which rows of demand the service refuses, so that the others can go without them.
func (a *actor) refuse(err error, rows []map[string]any) error {
	a.do(func() { a.refused(rows, err) })
	return err
}

func (a *actor) refused(rows []map[string]any, err error) {
	var p *client.Problem
	if !errors.As(err, &p) || p.Status != 422 {
		return
	}
	for _, bad := range p.Rows {
		if bad.Row < 1 || bad.Row > len(rows) {
			continue
		}
		if a.demand.refused == nil {
			a.demand.refused = map[string]string{}
		}
		row := rows[bad.Row-1]
		text, _ := json.Marshal(row) // it was encoded before
		a.demand.refused[string(text)] = bad.Reason
		k, _ := rowKey(row)
		if was, _ := json.Marshal(a.demand.accepted[k]); string(was) == string(text) {
			delete(a.demand.accepted, k)
		}
		a.m.refused.Inc()
		a.log.Error("the service refuses a row of demand; the others are pushed without it", "consumer", k.consumer,
			"allocation", k.allocation, "sub", k.sub, "column", bad.Column, "value", bad.Value, "error", bad.Reason)
	}
}

// push makes a call that tells the service something, and notes that it was taken.
func (a *actor) push(what string, call func(context.Context) error, taken func()) {
	a.demand.busy = true
	a.spawn(func() func() {
		ctx, cancel := a.call()
		defer cancel()
		err := call(ctx)
		return func() {
			a.demand.busy = false
			switch {
			case err == nil:
				a.demand.by.Reset()
				taken()
			case a.ctx.Err() == nil:
				a.demand.at = later(a.demand.by)
				a.log.Warn("the service did not take the "+what, "error", err, "again", a.demand.at)
			}
		}
	})
}

func jsonBody(rows any) (client.Body, error) {
	text, err := json.Marshal(rows)
	return client.Bytes(text, "application/json"), err
}

// runningBody is a table of running units, which has fewer columns than releases.
func runningBody(units []client.Unit) (client.Body, error) {
	rows := make([]map[string]any, len(units))
	for i, u := range units {
		rows[i] = map[string]any{"consumer": u.Consumer, "allocation": u.Allocation, "sub": u.Sub, "host": u.Host,
			"units": u.Units}
	}
	return jsonBody(rows)
}
