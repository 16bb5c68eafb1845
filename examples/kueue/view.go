package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// view is what the feed knows of a workload.
type view struct {
	known     bool // stint has rows of it
	decided   bool // a cycle has gone by them
	cycle     int64
	wanted    int64
	held      int64 // units under reclaim included
	taken     int64 // units under reclaim
	due       time.Time
	again     bool
	shortfall bool
	reserved  time.Time // since when Kueue has quota reserved for it
	down      time.Time
	why       error
	units     map[rowKey]map[string]int64 // by host
}

func (f *feed) view(name types.NamespacedName) view {
	f.mu.Lock()
	defer f.mu.Unlock()
	v := view{down: f.down, why: f.why, units: map[rowKey]map[string]int64{}}
	a := f.of[name]
	if a == nil || !f.began {
		return v
	}
	v.known, v.cycle, v.again, v.shortfall = len(a.rows) > 0, a.cycle, a.again, a.short != ""
	v.decided = a.cycle <= f.cycle
	for _, r := range a.rows {
		v.wanted += r.units
	}
	for p, u := range a.held {
		v.held += u.count
		if p.reclaim != 0 {
			v.taken += u.count
			if v.due.IsZero() || u.due.Before(v.due) {
				v.due = u.due
			}
		}
		if v.units[p.rowKey] == nil {
			v.units[p.rowKey] = map[string]int64{}
		}
		v.units[p.rowKey][p.host] += u.count
	}
	return v
}

// consumer is the one that a workload's rows are of, "": there are none.
func (f *feed) consumer(name types.NamespacedName) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if a := f.of[name]; a != nil {
		for k := range a.rows {
			return k.consumer
		}
	}
	return ""
}

// explain is what stint says of a workload that waits: how many units are short, why, and what would change it.
func (f *feed) explain(ctx context.Context, name types.NamespacedName) string {
	e, err := f.stint.Explain(ctx, f.consumer(name), name.String(), 0)
	if err != nil {
		return "Why is not known: " + err.Error()
	}
	var answers []string
	for _, p := range e.Plans {
		answers = append(answers, p.Answer)
	}
	return strings.Join(answers, " ")
}

// subs are the pod sets that hold something, in order.
func (v *view) subs() (subs []string) {
	for k := range v.units {
		subs = append(subs, k.sub)
	}
	slices.Sort(subs)
	return slices.Compact(subs)
}

// on is where the units of a pod set are, host=units in order.
func (v *view) on(sub string) (on []string) {
	for k, hosts := range v.units {
		if k.sub == sub {
			for _, host := range slices.Sorted(maps.Keys(hosts)) {
				on = append(on, fmt.Sprintf("%s=%d", host, hosts[host]))
			}
		}
	}
	return on
}

// hostsShown is how many places a message names.
const hostsShown = 8

// hosts tells where a workload's units are.
func (v *view) hosts() string {
	var parts []string
	for _, sub := range v.subs() {
		on := v.on(sub)
		if more := len(on) - hostsShown; more > 0 {
			on = append(on[:hostsShown], fmt.Sprintf("%d more hosts", more))
		}
		parts = append(parts, sub+" on "+strings.Join(on, ", "))
	}
	return strings.Join(parts, "; ")
}
