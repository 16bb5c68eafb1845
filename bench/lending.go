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
