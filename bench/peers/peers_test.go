package main

import (
	"strings"
	"testing"
)

func small() *options {
	return &options{hosts: 40, units: 600, departments: 2, teams: 2, apps: 3, fit: 2, cycles: 2,
		nodeSort: "binpacking", appSort: "fifo", idleSeconds: 3, limitSecs: 60}
}

// TestBoth: with twice the room that is wanted both place every unit, of the same cluster.
func TestBoth(t *testing.T) {
	o := small()
	ours, err := stint(o)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := yunikorn(o)
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]*placed{"stint": ours, "YuniKorn": theirs} {
		if p.Units != 600 || p.Seconds <= 0 || p.PeakBytes <= 0 || p.Ended != "all" {
			t.Errorf("%s: %+v", name, *p)
		}
	}
}

// TestSame holds what both are given against each other: the demand's units and sizes, the hosts' capacity.
func TestSame(t *testing.T) {
	o := small()
	hosts, demand := o.tables()
	want, have := o.wanted().vector(), [3]int64{}
	for _, s := range o.hostSizes() {
		for d, v := range s.vector() {
			have[d] += v
		}
	}
	var units int64
	var asked, there [3]int64
	for row, n := range demand.Units {
		units += n
		for d := range asked {
			asked[d] += n * demand.Size[d][row]
		}
	}
	for row := range hosts.Rows {
		for d := range there {
			there[d] += hosts.Size[d][row]
		}
	}
	if units != int64(o.units) || asked != want || there != have {
		t.Errorf("%d units that take %v on %v; want %d, %v on %v", units, asked, there, o.units, want, have)
	}
	for d := range want {
		if there[d] < 2*want[d] {
			t.Errorf("dimension %d: %d, less than twice %d", d, there[d], want[d])
		}
	}
	if got := strings.Count(o.queues(), "name: team"); got != 4 {
		t.Errorf("%d leaf queues", got)
	}
}

func TestRefused(t *testing.T) {
	for want, change := range map[string]func(*options){
		"-hosts 0": func(o *options) { o.hosts = 0 }, "-apps -1": func(o *options) { o.apps = -1 },
		"-fit 0":           func(o *options) { o.fit = 0 },
		"-limit and -idle": func(o *options) { o.limitSecs = 0 },
	} {
		o := small()
		change(o)
		if err := o.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
