package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/stintd/stint/ingest/client"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
)

// feed keeps what stint was asked for and what it granted, by workload. It follows the service's cycles; workloads
// about which a cycle has news are named in news.
type feed struct {
	stint     *client.Client
	source    string
	resources []divided
	news      chan event.TypedGenericEvent[*kueue.Workload]
	pause     time.Duration // between two tries to reach the service
	look      time.Duration // how long a call waits for changes
	version   string        // of the last cycle that was read

	mu    sync.Mutex
	began bool                            // what stint has was read
	gangs bool                            // the service knows min_units
	cycle int64                           // the last one that was read
	down  time.Time                       // since when the service does not answer; zero: it does
	why   error                           // the last error of that
	of    map[types.NamespacedName]*asked // those that stint has rows or units of
}

// asked is what stint has of a workload.
type asked struct {
	rows  map[rowKey]row
	cycle int64           // the first cycle that goes by the rows
	again bool            // asked for when it was admitted already, as after a loss of stint's data
	held  map[place]units // what was granted
	short string          // its rows of shortfalls, as text
	said  time.Time       // when its message was changed last
}

// place is where units are held; reclaim is the number of the reclaim that they are under, 0: none.
type place struct {
	rowKey
	host    string
	reclaim int64
}

type units struct {
	count int64
	due   time.Time // of a reclaim
}

// newsMax is how many workloads may wait in news.
const newsMax = 1024

func newFeed(stint *client.Client, source string, resources []divided) *feed {
	return &feed{
		stint: stint, source: source, resources: resources, pause: time.Second, look: 10 * time.Second,
		news: make(chan event.TypedGenericEvent[*kueue.Workload], newsMax), of: map[types.NamespacedName]*asked{},
	}
}

// errBehind says that changes are not kept any more, or do not fit what is known: all is read again.
var errBehind = errors.New("changes were missed")

// Start follows the service until ctx is done.
func (f *feed) Start(ctx context.Context) error {
	for {
		err := f.begin(ctx)
		if err == nil {
			err = f.follow(ctx)
		}
		if ctx.Err() != nil {
			return nil
		}
		if !errors.Is(err, errBehind) {
			f.failed(err)
			log.FromContext(ctx).Info("stint does not answer", "error", err.Error())
			f.tell(ctx, f.names()) // who waits learns how long that has been so
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(f.pause):
		}
	}
}

// begin reads what stint has of the source.
func (f *feed) begin(ctx context.Context) error {
	gangs, err := f.knowsGangs(ctx)
	if err != nil {
		return err
	}
	held, cycle, err := f.stint.Holdings(ctx, f.source)
	if err != nil && !client.Is(err, "no-cycle") {
		return err
	}
	wanted, err := f.demand(ctx)
	if err != nil {
		return err
	}
	versions, err := f.versions(ctx)
	if err != nil {
		return err
	}
	f.mu.Lock()
	same := f.cycle == 0 || versions[f.cycle] == f.version // else the service is another, or has lost its data
	f.version = versions[cycle]
	before := f.of
	f.of = wanted
	for name, a := range before {
		if now := f.of[name]; a.cycle > cycle && same { // what was asked for since stands in no cycle
			f.of[name] = a
			a.held = map[place]units{}
		} else if now != nil {
			now.again = a.again
		}
	}
	for _, h := range held {
		a := f.asked(h.Allocation)
		a.add(place{rowKey{h.Consumer, h.Sub}, h.Host, h.Reclaim}, h.Units, h.Deadline)
	}
	f.began, f.gangs, f.cycle, f.down, f.why = true, gangs, cycle, time.Time{}, nil
	f.mu.Unlock()
	f.tell(ctx, append(f.names(), slices.Collect(maps.Keys(before))...))
	return nil
}

// knowsGangs tells whether the service can grant all units of a row or none.
func (f *feed) knowsGangs(ctx context.Context) (bool, error) {
	text, err := f.stint.Get(ctx, "/openapi.json", nil, "application/json")
	var api struct {
		Components struct {
			Schemas struct {
				DemandRow struct{ Properties map[string]json.RawMessage }
			}
		}
	}
	if err == nil {
		err = json.Unmarshal(text, &api)
	}
	return api.Components.Schemas.DemandRow.Properties["min_units"] != nil, err
}

// demand reads what the source asks for, as of the last cycle.
func (f *feed) demand(ctx context.Context) (map[types.NamespacedName]*asked, error) {
	all := map[types.NamespacedName]*asked{}
	text, err := f.stint.Get(ctx, "/v1/demand/"+f.source, nil, "application/json")
	if client.Is(err, "no-cycle") || client.Is(err, "no-source") {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	var table []map[string]any
	if err := json.Unmarshal(text, &table); err != nil {
		return nil, fmt.Errorf("/v1/demand: %w", err)
	}
	for _, r := range table {
		size := map[string]int64{}
		for _, d := range f.resources {
			if amount, ok := r[d.dimension].(float64); ok && amount > 0 {
				size[d.dimension] = int64(amount)
			}
		}
		text, err := json.Marshal(size)
		if err != nil {
			return nil, err
		}
		consumer, _ := r["consumer"].(string)
		named, _ := r["allocation"].(string)
		sub, _ := r["sub"].(string)
		wanted, _ := r["wanted"].(float64)
		name := workloadOf(named)
		if all[name] == nil {
			all[name] = newAsked()
		}
		all[name].rows[rowKey{consumer, sub}] = row{int64(wanted), string(text)}
	}
	return all, nil
}

func newAsked() *asked { return &asked{rows: map[rowKey]row{}, held: map[place]units{}} }

// asked is what is known of an allocation; f.mu is held.
func (f *feed) asked(allocation string) *asked {
	name := workloadOf(allocation)
	a := f.of[name]
	if a == nil {
		a = newAsked()
		f.of[name] = a
	}
	return a
}

// add books units; what falls to 0 is forgotten. It tells whether the figures stay possible.
func (a *asked) add(p place, count int64, due *time.Time) bool {
	u := a.held[p]
	u.count += count
	if due != nil {
		u.due = *due
	}
	a.held[p] = u
	if u.count <= 0 {
		delete(a.held, p)
	}
	return u.count >= 0
}

// readAgain is how long what is known is brought up by changes alone; then all is read again, whatever went wrong.
const readAgain = 10 * time.Minute

// follow reads what happened to the source's units, again and again.
func (f *feed) follow(ctx context.Context) error {
	for end := time.Now().Add(readAgain); time.Now().Before(end); {
		f.mu.Lock()
		since := f.cycle
		f.mu.Unlock()
		changes, next, err := f.stint.Changes(ctx, f.source, since, f.look)
		if client.Is(err, "compacted") || client.Is(err, "future") {
			return errBehind
		}
		if err != nil {
			return err
		}
		if next != since {
			if err := f.sameLog(ctx, since, next); err != nil {
				return err
			}
		}
		touched := map[types.NamespacedName]bool{}
		waiting, fits := f.take(changes, next, touched)
		if !fits {
			return errBehind
		}
		if waiting && next > 0 {
			if err := f.shortfalls(ctx, touched); err != nil {
				return err
			}
		}
		f.tell(ctx, slices.Collect(maps.Keys(touched)))
	}
	return errBehind
}

// sameLog holds that the cycle up to which changes were read is still the one that it was: a service that lost its data
// counts from 1 again.
func (f *feed) sameLog(ctx context.Context, since, next int64) error {
	versions, err := f.versions(ctx)
	switch {
	case err != nil:
		return err
	case since > 0 && versions[since] != f.version:
		return errBehind
	}
	f.version = versions[next]
	return nil
}

// versions are words that tell the last cycles from those of any other log, by number.
func (f *feed) versions(ctx context.Context) (map[int64]string, error) {
	text, err := f.stint.Get(ctx, "/v1/cycles", nil, "application/json")
	if client.Is(err, "no-cycle") {
		return nil, nil
	}
	var table []struct {
		Cycle   int64     `json:"cycle"`
		Started time.Time `json:"started"`
		Digest  string    `json:"decisions_digest"`
	}
	if err == nil {
		err = json.Unmarshal(text, &table)
	}
	versions := map[int64]string{}
	for _, row := range table {
		versions[row.Cycle] = row.Started.Format(time.RFC3339Nano) + " " + row.Digest
	}
	return versions, err
}

// take books changes up to a cycle, and adds whose they are, and whose demand was decided first. It tells whether
// anybody waits for units, and whether the changes fit what was known.
func (f *feed) take(changes []client.Change, next int64, touched map[types.NamespacedName]bool) (waiting, fits bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fits = true
	for i := range changes {
		fits = f.apply(&changes[i]) && fits
		touched[workloadOf(changes[i].Allocation)] = true
	}
	for name, a := range f.of {
		if a.cycle > f.cycle && a.cycle <= next || !f.down.IsZero() {
			touched[name] = true
		}
		a.again = a.again && a.lacks()
		waiting = waiting || a.lacks()
		if len(a.rows) == 0 && len(a.held) == 0 && a.cycle <= next {
			delete(f.of, name)
		}
	}
	f.cycle, f.down, f.why = next, time.Time{}, nil
	return waiting, fits
}

// apply books a change; f.mu is held. It tells whether it fits what is known.
func (f *feed) apply(c *client.Change) bool {
	a := f.asked(c.Allocation)
	free, under := place{rowKey{c.Consumer, c.Sub}, c.Host, 0}, place{rowKey{c.Consumer, c.Sub}, c.Host, c.Reclaim}
	switch c.Change {
	case "grant":
		return a.add(free, c.Units, nil)
	case "release":
		return a.add(under, -c.Units, nil)
	case "reclaim":
		return a.add(free, -c.Units, nil) && a.add(under, c.Units, c.Deadline)
	case "cancel":
		return a.add(under, -c.Units, nil) && a.add(free, c.Units, nil)
	}
	return true // a change of a later stint, which moves no units of this one
}

// lacks tells whether less is held than asked for.
func (a *asked) lacks() bool {
	wanted, held := int64(0), int64(0)
	for _, r := range a.rows {
		wanted += r.units
	}
	for _, u := range a.held {
		held += u.count
	}
	return held < wanted
}

// shortfalls reads why workloads wait, and adds those whose reasons are others than before.
func (f *feed) shortfalls(ctx context.Context, touched map[types.NamespacedName]bool) error {
	text, err := f.stint.Get(ctx, "/v1/cycles/latest/shortfalls", nil, "application/json")
	if err != nil {
		return err
	}
	var table []struct {
		Consumer   string `json:"consumer"`
		Allocation string `json:"allocation"`
		Sub        string `json:"sub"`
		Units      int64  `json:"units_short"`
		Reason     string `json:"reason"`
		Dimension  string `json:"dimension"`
		Blocker    string `json:"blocker"`
	}
	if err := json.Unmarshal(text, &table); err != nil {
		return fmt.Errorf("shortfalls: %w", err)
	}
	short := map[types.NamespacedName]string{}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range table {
		name := workloadOf(s.Allocation)
		if a := f.of[name]; a != nil && a.rows[rowKey{s.Consumer, s.Sub}] != (row{}) { // others may call theirs alike
			short[name] += fmt.Sprintf("%s %d %s %s %s\n", s.Sub, s.Units, s.Reason, s.Dimension, s.Blocker)
		}
	}
	for name, a := range f.of {
		if a.short != short[name] {
			a.short = short[name]
			touched[name] = true
		}
	}
	return nil
}

// ask has stint know what a workload wants: rows that are others than before, and those that are wanted no more. No
// rows: it wants nothing. ready tells that it may run already.
func (f *feed) ask(ctx context.Context, name types.NamespacedName, want map[rowKey]row, ready bool) error {
	named, err := allocation(name)
	if err != nil {
		return err
	}
	f.mu.Lock()
	began, gangs, told := f.began, f.gangs, map[rowKey]row{}
	if a := f.of[name]; a != nil {
		told = a.rows
	}
	f.mu.Unlock()
	if !began {
		return errors.New("stint was not reached yet")
	}
	change := difference(named, told, want, gangs)
	if len(change) == 0 {
		return nil
	}
	text, err := json.Marshal(change)
	if err != nil {
		return err
	}
	// A row of 0 units is a workload that has ended or was evicted: the shrink guard has nothing to ask.
	receipt, err := f.stint.ChangeDemand(ctx, f.source, client.Bytes(text, "application/json"),
		client.Options{AllowShrink: true})
	var p *client.Problem
	switch {
	case errors.As(err, &p) && p.Status == 422:
		return refused{p.Detail}
	case errors.As(err, &p) && p.Status != 503:
		return err
	case err != nil:
		f.failed(err)
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.asked(named)
	a.again = a.again || ready && len(told) == 0 && len(want) > 0
	a.rows, a.cycle = want, receipt.Cycle
	return nil
}

// difference is the rows of demand that lead from what stint was told to what is wanted.
func difference(named string, told, want map[rowKey]row, gangs bool) (change []map[string]any) {
	line := func(k rowKey, units int64) map[string]any {
		return map[string]any{"consumer": k.consumer, "allocation": named, "sub": k.sub, "units": units}
	}
	for k, r := range want {
		if told[k] == r {
			continue
		}
		l := line(k, r.units)
		var size map[string]int64
		_ = json.Unmarshal([]byte(r.size), &size) // made by rows
		for dimension, amount := range size {
			l[dimension] = amount
		}
		if gangs && r.units > 1 {
			l["min_units"] = r.units
		}
		change = append(change, l)
	}
	for k := range told {
		if _, ok := want[k]; !ok {
			change = append(change, line(k, 0))
		}
	}
	return change
}

// failed notes that the service did not answer.
func (f *feed) failed(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down.IsZero() {
		f.down = time.Now()
	}
	f.why = err
}

// answers is an error once the service has not answered for longer than patience, or was never reached.
func (f *feed) answers(now time.Time, patience time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down.IsZero() || f.began && now.Sub(f.down) < patience {
		return nil
	}
	return fmt.Errorf("stint does not answer since %s: %w", f.down.UTC().Format(time.TimeOnly), f.why)
}

// hush is how long a message about a workload has to wait for the one before it; 0: it is changed now.
func (f *feed) hush(name types.NamespacedName, now time.Time, quiet time.Duration) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.of[name]
	if a == nil {
		return 0
	}
	if rest := quiet - now.Sub(a.said); rest > 0 {
		return rest
	}
	a.said = now
	return 0
}

func (f *feed) names() []types.NamespacedName {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Keys(f.of))
}

// tell names workloads about which there is news.
func (f *feed) tell(ctx context.Context, names []types.NamespacedName) {
	for _, n := range names {
		wl := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: n.Namespace, Name: n.Name}}
		select {
		case f.news <- event.TypedGenericEvent[*kueue.Workload]{Object: wl}:
		case <-ctx.Done():
			return
		}
	}
}
