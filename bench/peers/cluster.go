package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// size is what a host has, or a unit takes: thousandths of CPUs, MiB of memory, GPUs.
type size struct{ cpu, memory, gpu int64 }

func (s size) vector() [3]int64 { return [3]int64{s.cpu, s.memory, s.gpu} }

// options are the cluster that both get: four kinds of hosts and six sizes of units, in turn; queues on two levels,
// with as many applications in each leaf.
type options struct {
	hosts, units           int
	departments, teams     int // teams are leaves, so many in each department
	apps                   int // in each team
	fit                    float64
	cycles                 int // measured of stint
	nodeSort, appSort      string
	idleSeconds, limitSecs float64
}

func (o *options) check() error {
	var faults []error
	for _, f := range []struct {
		name      string
		v         int
		from, max int
	}{{"hosts", o.hosts, 1, 100_000}, {"units", o.units, 6, 10_000_000}, {"departments", o.departments, 1, 1000},
		{"teams", o.teams, 1, 1000},
		{"apps", o.apps, 1, 100_000}, {"cycles", o.cycles, 1, 1000}} {
		if f.v < f.from || f.v > f.max {
			faults = append(faults, fmt.Errorf("-%s %d: must be from %d to %d", f.name, f.v, f.from, f.max))
		}
	}
	if !(o.fit > 0 && o.fit <= 100) {
		faults = append(faults, fmt.Errorf("-fit %g: must be above 0 and at most 100", o.fit))
	}
	if !(o.limitSecs > 0) || !(o.idleSeconds > 0) {
		faults = append(faults, errors.New("-limit and -idle must be above 0"))
	}
	return errors.Join(faults...)
}

// The kinds, before they are scaled to the demand.
var (
	unitSizes = []size{{500, 1024, 0}, {1000, 4096, 0}, {2000, 8192, 0}, {4000, 8192, 0}, {4000, 32768, 1},
		{8000, 65536, 2}}
	hostKinds = []size{{32, 128, 0}, {64, 256, 0}, {96, 768, 8}, {64, 512, 4}}
)

// unitSize is the size of a unit: by turns.
func unitSize(unit int) size { return unitSizes[unit%len(unitSizes)] }

// appOf is the application of a unit: one has a unit of each size in turn.
func (o *options) appOf(unit int) int { return unit / len(unitSizes) % o.appsInAll() }

func (o *options) appsInAll() int { return o.departments * o.teams * o.apps }

// team is where an application belongs.
func (o *options) team(app int) (department, team int) {
	leaf := app / o.apps
	return leaf / o.teams, leaf % o.teams
}

// wanted is what all units take.
func (o *options) wanted() (all size) {
	for i := range o.units {
		s := unitSize(i)
		all.cpu, all.memory, all.gpu = all.cpu+s.cpu, all.memory+s.memory, all.gpu+s.gpu
	}
	return all
}

// hostSizes are the hosts: of each dimension they have fit times what is wanted, each rounded up.
func (o *options) hostSizes() []size {
	want, have := o.wanted(), size{}
	for i := range o.hosts {
		k := hostKinds[i%len(hostKinds)]
		have.cpu, have.memory, have.gpu = have.cpu+k.cpu, have.memory+k.memory, have.gpu+k.gpu
	}
	scale := func(v, want, have int64) int64 {
		if have == 0 {
			return 0
		}
		return int64(o.fit*float64(want)*float64(v)/float64(have)) + 1
	}
	all := make([]size, o.hosts)
	for i := range all {
		k := hostKinds[i%len(hostKinds)]
		all[i] = size{scale(k.cpu, want.cpu, have.cpu), scale(k.memory, want.memory, have.memory), 0}
		if k.gpu > 0 {
			all[i].gpu = scale(k.gpu, want.gpu, have.gpu)
		}
	}
	return all
}

// policy is the queues as consumers: departments limited to all that is wanted, which never binds and is checked, as
// in the peer; teams share equally, as all have the same guarantee there.
func (o *options) policy() (*plan.Policy, error) {
	var consumers, entries strings.Builder
	want := o.wanted()
	for d := range o.departments {
		fmt.Fprintf(&consumers, "  - {path: /dept%d}\n", d)
		fmt.Fprintf(&entries, "      - {path: /dept%d, share: {limit: {cpu: %d, memory: %d}}}\n", d, want.cpu,
			want.memory)
		for t := range o.teams {
			fmt.Fprintf(&consumers, "  - {path: /dept%d/team%d}\n", d, t)
			fmt.Fprintf(&entries, "      - {path: /dept%d/team%d}\n", d, t)
		}
	}
	return plan.Parse("peers.yaml",
		[]byte("stint: 1\ncluster: peers\ndimensions: [cpu, memory, gpu]\nresource_groups:\n"+
			"  - {name: all, select: \"select(cpu > 0)\"}\nconsumers:\n"+consumers.String()+
			"md_plans:\n  - name: peers\n    resource_groups: [{name: all}]\n    consumers:\n"+entries.String()))
}

// tables are the hosts and the demand for stint: an allocation for each application, a sub-allocation for each of its
// sizes.
func (o *options) tables() (*cluster.HostTable, *cluster.DemandTable) {
	h := &cluster.HostTable{Host: names(), Size: make([][]int64, 3)}
	for i, s := range o.hostSizes() {
		h.Rows++
		h.Host.Code = append(h.Host.Code, h.Host.Names.InternString(fmt.Sprintf("node-%05d", i)))
		for d, v := range s.vector() {
			h.Size[d] = append(h.Size[d], v)
		}
	}
	units := make([]int64, o.appsInAll()*len(unitSizes))
	for i := range o.units {
		units[o.appOf(i)*len(unitSizes)+i%len(unitSizes)]++
	}
	d := &cluster.DemandTable{Consumer: names(), Allocation: names(), Sub: names(), Plan: names(),
		Requirement: names(), Size: make([][]int64, 3)}
	for i, n := range units {
		if n == 0 {
			continue
		}
		app := i / len(unitSizes)
		department, team := o.team(app)
		d.Rows++
		d.Consumer.Code = append(d.Consumer.Code, d.Consumer.Names.InternString(fmt.Sprintf("/dept%d/team%d",
			department, team)))
		d.Allocation.Code = append(d.Allocation.Code, d.Allocation.Names.InternString(fmt.Sprintf("app-%d", app)))
		d.Sub.Code = append(d.Sub.Code, d.Sub.Names.InternString(fmt.Sprintf("size-%d", i%len(unitSizes))))
		d.Units = append(d.Units, n)
		for k, v := range unitSize(i).vector() {
			d.Size[k] = append(d.Size[k], v)
		}
	}
	return h, d
}

func names() cluster.TextColumn { return cluster.TextColumn{Names: new(cluster.Names)} }
