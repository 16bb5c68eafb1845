package main

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

const (
	everythingUnits  = 100_000 // into how many units what there is of a dimension is divided at least, if it can be
	everythingMax    = 1_000_000
	everythingCycles = 10 // until who takes what is settled
)

// gets has the holdings of consumers when everybody asks for everything, in one dimension of one plan in one window.
type gets struct {
	dimension string
	there     int64            // what the plan's hosts have
	held      map[string]int64 // by consumer
}

// everything plays the cycle in which every leaf of a plan asks for as much of one dimension, and of nothing else, as
// there is of it, on the batch's hosts, on which nothing is held. A plan's window is that of the last cycle.
func (b *batch) everything(name, dimension string, member []bool) gets {
	there, unit := b.divided(name, dimension)
	g := gets{dimension: dimension, there: there, held: map[string]int64{}}
	if there == 0 {
		return g
	}
	p := b.state.Policy
	t := &cluster.DemandTable{Name: "everything", Size: make([][]int64, len(p.Dimensions))}
	for _, c := range []*cluster.TextColumn{&t.Consumer, &t.Allocation, &t.Sub, &t.Plan, &t.Requirement} {
		c.Names = new(cluster.Names)
	}
	d, _ := p.Dimension(dimension)
	for n := plan.Root + 1; int(n) < p.Len(); n++ {
		if !p.Leaf(n) || !member[n] {
			continue
		}
		t.Rows++
		t.Consumer.Code = append(t.Consumer.Code, t.Consumer.Names.InternString(p.Path[n]))
		t.Allocation.Code = append(t.Allocation.Code, t.Allocation.Names.InternString("everything"))
		t.Plan.Code = append(t.Plan.Code, t.Plan.Names.InternString(name))
		t.Units = append(t.Units, there/unit)
		if b.isMD(name) {
			t.Size[d] = append(t.Size[d], unit)
		}
	}
	s := b.state.Clone()
	if err := s.SetDemand(sourceDefault, t); err != nil {
		panic("BUG: " + err.Error())
	}
	var runner cycle.Runner
	var out decision.Cycle
	for range everythingCycles { // at one instant, so that the window stays
		if runner.Run(s, b.state.NowUS, &out); out.Summary.Stable() {
			break
		}
	}
	if !b.isMD(name) {
		for row, held := range out.Consumers.Held {
			if out.Consumers.Plan.At(row) == name {
				g.held[out.Consumers.Consumer.At(row)] = held
			}
		}
		return g
	}
	for row, held := range out.Amounts.Held {
		if out.Amounts.Plan.At(row) == name && out.Amounts.Dimension.At(row) == dimension {
			g.held[out.Amounts.Consumer.At(row)] = held
		}
	}
	return g
}

func (b *batch) isMD(name string) bool {
	return slices.ContainsFunc(b.state.Policy.MDPlans, func(m plan.MDPlan) bool { return m.Name == name })
}

// divided tells how much of a dimension a plan's open hosts have, and how large units are to be so that there are not
// too many: a power of two by which what every host has can be divided, where there is one.
func (b *batch) divided(name, dimension string) (there, unit int64) {
	if !b.out.Keyframe {
		b.runner.Keyframe(&b.out)
	}
	h := &b.out.Hosts
	all := int64(0)
	for row, has := range h.Capacity {
		if h.Plan.At(row) == name && h.Dimension.At(row) == dimension && h.State.At(row) == "ok" {
			there += has
			all |= has
		}
	}
	if !b.isMD(name) {
		return there, 1
	}
	unit = 1
	if all > 0 {
		for n := bits.TrailingZeros64(uint64(all)); n > 0 && there/(2*unit) >= everythingUnits; n-- {
			unit *= 2
		}
	}
	if there/unit > everythingMax {
		unit = there / everythingMax
	}
	return there, unit
}

// occasion is when a plan's window opens.
type occasion struct {
	atUS   int64
	plan   int // MD plans first
	window int
}

// occasions are the windows of all plans in the order in which they open next.
func (b *batch) occasions() (list []occasion) {
	p := b.state.Policy
	add := func(of int, first []int64) {
		for w, at := range first {
			if at != never {
				list = append(list, occasion{at, of, w})
			}
		}
	}
	for i := range p.MDPlans {
		m := &p.MDPlans[i]
		windows := make([]*plan.Window, len(m.Windows))
		for w := range windows {
			windows[w] = &m.Windows[w].Window
		}
		add(i, opens(windows, func(us int64) int { return m.WindowAt(us, p.Location) }, b.state.NowUS))
	}
	for i := range p.SlotPlans {
		s := &p.SlotPlans[i]
		windows := make([]*plan.Window, len(s.Windows))
		for w := range windows {
			windows[w] = &s.Windows[w].Window
		}
		add(len(p.MDPlans)+i, opens(windows, func(us int64) int { return s.WindowAt(us, p.Location) }, b.state.NowUS))
	}
	slices.SortStableFunc(list, func(a, b occasion) int { return cmp.Compare(a.atUS, b.atUS) })
	return list
}
