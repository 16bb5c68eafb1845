package main

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
)

// lendingSuite is the suite in which half of the consumers own hosts and lend them; those whose names begin with it are a tenth
// of it in one respect.
const lendingSuite = "lending"

// stormPart is one of how many owning leaves that want their hosts back at once in a storm.
const stormPart = 5

// storm is what a cycle takes in which many owners recall at once.
type storm struct {
	MS      quantile `json:"ms"`
	Recalls int64    `json:"recalled_units"`
	ms      []float64
}

// stirs is how often a cluster at its fixed point is stirred.
const stirs = 12

// rested is what a snapshot with one row of a hundred changed, and its cycle, take in a cluster at its fixed point: the cycle after a cold one
// has what that one left to be taken back to deal with, too.
type rested struct {
	Less quantile `json:"less_ms"` // those rows want half of what they did
	More quantile `json:"more_ms"` // as much as before again: others have it meanwhile
	Both quantile `json:"both_ms"` // half of them the one, half of them the other: the demand as a whole is what it was
	less []float64
	more []float64
	both []float64
}

// stir measures such cycles, each after the cluster has come to rest from the one before. Other rows change each time.
func (r *result) stir(s *cluster.State, runner *cycle.Runner, out *decision.Cycle) error {
	r.Rested = &rested{}
	units := r.data.Demand.Units
	was := slices.Clone(units)
	for n := range stirs {
		for i := n + 1; i < len(units); i += 100 {
			units[i] = units[i]/2 + 1
		}
		if err := r.stirOnce(s, runner, out, &r.Rested.less); err != nil {
			return err
		}
		copy(units, was)
		if err := r.stirOnce(s, runner, out, &r.Rested.more); err != nil {
			return err
		}
	}
	return r.stirBoth(s, runner, out, was)
}

// stirBoth is stir with half of the rows that change wanting less, half as much as before again.
func (r *result) stirBoth(s *cluster.State, runner *cycle.Runner, out *decision.Cycle, was []int64) error {
	units := r.data.Demand.Units
	defer copy(units, was)
	var ms []float64
	for n := range stirs + 1 {
		copy(units, was)
		for i := stirs + 1 + n; i < len(units); i += 200 {
			units[i] = units[i]/2 + 1
		}
		if err := r.stirOnce(s, runner, out, &ms); err != nil {
			return err
		}
	}
	r.Rested.both = ms[1:] // before the first none wanted less
	return nil
}

// stirOnce measures a cycle with the demand as it is now, and brings the cluster to rest.
func (r *result) stirOnce(s *cluster.State, runner *cycle.Runner, out *decision.Cycle, ms *[]float64) error {
	start := time.Now()
	if err := s.SetDemand("bench", r.data.Demand); err != nil {
		return err
	}
	runner.Run(s, s.NowUS+60e6, out)
	*ms = append(*ms, time.Since(start).Seconds()*1e3)
	return settle(s, runner, out)
}

// blow measures a cycle in which one of five owning leaves, which wanted nothing so far, wants all of its demand.
func (r *result) blow() error {
	if r.Storm == nil {
		r.Storm = &storm{}
	}
	s, err := cluster.New(r.policy)
	if err != nil {
		return err
	}
	if err := s.SetHosts(r.data.Hosts, true); err != nil {
		return err
	}
	d := r.data.Demand
	units, calm := slices.Clone(d.Units), r.calm()
	defer func() { copy(d.Units, units) }()
	for row := range d.Units {
		if calm[d.Consumer.Code[row]] {
			d.Units[row] = 0
		} else {
			d.Units[row] += d.Units[row] / 4 // others take what they leave, and stay
		}
	}
	if err := s.SetDemand("bench", d); err != nil {
		return err
	}
	runner := cycle.Runner{Clock: func() int64 { return time.Now().UnixMicro() }}
	var out decision.Cycle
	for range 3 {
		runner.Run(s, s.NowUS+60e6, &out)
	}
	for row, of := range d.Consumer.Code {
		if calm[of] {
			d.Units[row] = units[row]
		}
	}
	start := time.Now()
	if err := s.SetDemand("bench", d); err != nil {
		return err
	}
	runner.Run(s, s.NowUS+60e6, &out)
	r.Storm.ms = append(r.Storm.ms, time.Since(start).Seconds()*1e3)
	r.Storm.Recalls = 0
	for i, n := range out.Reclaims.Units {
		if out.Reclaims.Reason.At(i) == "recall" {
			r.Storm.Recalls += n
		}
	}
	return nil
}

// calm is which consumers, by their code in the demand table, keep still before the storm.
func (r *result) calm() []bool {
	names := r.data.Demand.Consumer.Names
	calm, n := make([]bool, names.Len()), 0
	for code := range calm {
		node, ok := r.policy.Find(names.String(int32(code)))
		if ok && len(r.policy.MDPlans[0].Windows[0].Own[node]) > 0 && r.policy.Leaf(node) {
			calm[code] = n%stormPart == 0
			n++
		}
	}
	return calm
}

// showLending prints what only lending suites measure, and how their time grows.
func showLending(results []*result) {
	byName := named(results)
	r := byName[lendingSuite]
	if r == nil {
		return
	}
	if r.Storm != nil {
		fmt.Printf("\nlending: one of %d owners recalls at once: %.0f ms (%.0f … %.0f, %d runs), × %.2f of the cold cycle, %d units recalled\n",
			stormPart, r.Storm.MS.P50, r.Storm.MS.Min, r.Storm.MS.Max, r.Storm.MS.N, r.Storm.MS.P50/r.ColdMS.P50, r.Storm.Recalls)
	}
	if r.Rested != nil {
		less, more, both := &r.Rested.Less, &r.Rested.More, &r.Rested.Both
		fmt.Printf("lending: a snapshot in which 1 %% of the rows want half as much, and its cycle, at the fixed point: %.1f ms (%.1f … %.1f, %d runs)\n"+
			"lending: one in which they want as much as before again: %.1f ms (%.1f … %.1f, %d runs)\n"+
			"lending: one in which half of them want half as much, half as much as before again: %.1f ms (%.1f … %.1f, %d runs)\n",
			less.P50, less.Min, less.Max, less.N, more.P50, more.Min, more.Max, more.N, both.P50, both.Min, both.Max, both.N)
	}
	if public := byName["ten times the cluster"]; public != nil {
		fmt.Printf("lending: time per unit against %s: × %.2f\n", public.Name, r.UnitNS/public.UnitNS)
	}
	for _, of := range []string{"hosts", "consumers", "units"} {
		if tenth := byName[lendingSuite+", a tenth of the "+of]; tenth != nil {
			fmt.Printf("lending: log-log slope of the cold cycle against %s: %.2f\n", of, math.Log10(r.ColdMS.P50/tenth.ColdMS.P50))
		}
	}
	fmt.Printf("peak memory of all that was measured: %.2f GiB\n", float64(peakRSS())/(1<<30))
}

// peakRSS is the most memory that the process has had, in bytes; 0 where the system does not tell.
func peakRSS() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if kib, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, _ := strconv.ParseInt(strings.Fields(kib)[0], 10, 64)
			return n << 10
		}
	}
	return 0
}
