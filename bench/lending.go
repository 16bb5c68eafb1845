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

// lendingSuite is the suite in which half of the consumers own hosts and lend them. Suites whose names begin with it
// are a tenth of it in one respect.
const lendingSuite = "lending"

// stormPart is the part of the owning leaves that want their hosts back at once in a storm: one of so many.
const stormPart = 5

// storm is the time of a cycle in which many owners recall at once.
type storm struct {
	MS      quantile `json:"ms"`
	Recalls int64    `json:"recalled_units"`
	ms      []float64
}

// stirs is how often a cluster at its fixed point is stirred.
const stirs = 24

// change is the time of a snapshot with one row of a hundred changed, and of its cycle, in a cluster at its fixed
// point: a cycle that follows a cold one also has that one's reclaims to decide.
type change struct {
	Want string   `json:"want"` // the change of these rows
	MS   quantile `json:"ms"`
	ms   []float64
}

// stir measures such cycles, each after the cluster has come to rest from the last change. Other rows change each time.
func (r *result) stir(s *cluster.State, runner *cycle.Runner, out *decision.Cycle) error {
	less, more, both, swap := &change{Want: "half as much"}, &change{Want: "as much as before again"},
		&change{Want: "half of them half as much, half as much as before again"},
		&change{Want: "what another of them did"}
	r.Changes = []*change{less, more, both, swap}
	units := r.data.Demand.Units
	was := slices.Clone(units)
	defer copy(units, was)
	halve := func(first, every int) {
		for i := first; i < len(units); i += every {
			units[i] = units[i]/2 + 1
		}
	}
	for n := range stirs {
		halve(n+1, 100)
		if err := r.stirOnce(s, runner, out, less); err != nil {
			return err
		}
		copy(units, was)
		if err := r.stirOnce(s, runner, out, more); err != nil {
			return err
		}
	}
	for n := range stirs + 1 {
		copy(units, was)
		halve(stirs+1+n, 200)
		if err := r.stirOnce(s, runner, out, both); err != nil {
			return err
		}
	}
	both.ms = both.ms[1:] // before the first none wanted less
	for n := range stirs + 1 {
		turn(units, n, 100)
		if err := r.stirOnce(s, runner, out, swap); err != nil {
			return err
		}
	}
	swap.ms = swap.ms[1:] // before the first some wanted less
	return nil
}

// turn gives each of the rows from first on, so many apart, what the next of them had, and the last what the first had.
func turn(units []int64, first, every int) {
	had, i := units[first], first
	for ; i+every < len(units); i += every {
		units[i] = units[i+every]
	}
	units[i] = had
}

// stirOnce measures a cycle with the demand as it is now, and brings the cluster to rest.
func (r *result) stirOnce(s *cluster.State, runner *cycle.Runner, out *decision.Cycle, of *change) error {
	start := time.Now()
	if err := s.SetDemand("bench", r.data.Demand); err != nil {
		return err
	}
	runner.Run(s, s.NowUS+60e6, out)
	of.ms = append(of.ms, time.Since(start).Seconds()*1e3)
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
		fmt.Printf("\nlending: one of %d owners recalls at once: %.0f ms (%.0f … %.0f, %d runs), × %.2f of the cold "+
			"cycle, %d units recalled\n",
			stormPart, r.Storm.MS.P50, r.Storm.MS.Min, r.Storm.MS.Max, r.Storm.MS.N, r.Storm.MS.P50/r.ColdMS.P50,
			r.Storm.Recalls)
	}
	for i, of := range r.Changes {
		if i == 0 {
			fmt.Printf("lending: at the fixed point, a snapshot in which 1 %% of the rows want something else, and "+
				"its cycle, %d runs each; they want\n", of.MS.N)
		}
		fmt.Printf("         %-55s  %5.1f ms  (%.1f … %.1f)\n", of.Want, of.MS.P50, of.MS.Min, of.MS.Max)
	}
	if public := byName["ten times the cluster"]; public != nil {
		fmt.Printf("lending: time per unit against %s: × %.2f\n", public.Name, r.UnitNS/public.UnitNS)
	}
	for _, of := range []string{"hosts", "consumers", "units"} {
		if tenth := byName[lendingSuite+", a tenth of the "+of]; tenth != nil {
			fmt.Printf("lending: log-log slope of the cold cycle against %s: %.2f\n", of,
				math.Log10(r.ColdMS.P50/tenth.ColdMS.P50))
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
