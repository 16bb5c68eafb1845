// Package measure times cycles of one cluster: cold, warm and unchanged ones, beside a floor that moves the same bytes
// in a plain loop (SPEC chapter 9, `bench`). The command and the suites use the package; a decision never depends on
// it.
package measure

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// Options are the cluster to be measured and the number of measurements.
type Options struct {
	Policy *plan.Policy
	Hosts  *cluster.HostTable
	Demand *cluster.DemandTable // its units change while warm cycles are measured, and are put back
	Change float64              // the part of the demand's rows that a warm cycle finds changed: above 0, at most 1
	Cycles int                  // values of each figure, at least 1; one cycle more comes first and does not count
	Seed   uint64               // of the choice of changed rows
	Bound  bool                 // also how much any placement could hold at most

	// Progress, when set, is called after each of the measured cycles.
	Progress func(done, all int)
}

// settleMax is how many cycles may pass until a cluster is at its fixed point (CYC-2).
const settleMax = 10_000

// source is the source of the demand.
const source = "bench"

// Result has the figures of a measurement. Times are milliseconds of the wall clock.
type Result struct {
	ColdMS      Quantiles `json:"cold_ms"`      // a state without anything: hosts, demand, seven stages
	WarmMS      Quantiles `json:"warm_ms"`      // at the fixed point: a snapshot with changed rows, seven stages
	UnchangedMS Quantiles `json:"unchanged_ms"` // at the fixed point: seven stages, nothing changed
	FloorMS     Quantiles `json:"floor_ms"`     // the cold cycle's input read and its decisions written in a plain loop

	FloorBytes         int64            `json:"floor_bytes"`
	ColdOverFloor      float64          `json:"cold_over_floor"`
	WarmOverFloor      float64          `json:"warm_over_floor"`
	DecisionsPerSecond float64          `json:"decisions_per_second"` // units granted or refused in a cold cycle
	UnitsPlaced        int64            `json:"units_placed"`         // by a cold cycle
	UnitsWanted        int64            `json:"units_wanted"`
	UnitsReclaimed     int64            `json:"units_reclaimed"`   // from the cold cycle to its fixed point
	UnitSecondsLost    float64          `json:"unit_seconds_lost"` // run time of these; a cycle is an interval
	SettledAfter       int              `json:"settled_after"`     // cycles from the cold one to its fixed point
	Utilisation        []Utilisation    `json:"utilisation"`       // after a cold cycle
	Bounds             []PlanBound      `json:"bounds,omitempty"`  // after a cold cycle, by plan
	MaxShareError      float64          `json:"max_share_error"`   // at the fixed point, see ShareError
	AllocsPerWarmCycle uint64           `json:"allocs_per_warm_cycle"`
	BytesPerWarmCycle  uint64           `json:"alloc_bytes_per_warm_cycle"`
	PeakRSSBytes       int64            `json:"peak_rss_bytes"` // of the process; 0 where the system does not tell
	ColdStageUS        map[string]int64 `json:"cold_stage_us"`  // medians
	WarmStageUS        map[string]int64 `json:"warm_stage_us"`

	Hosts     int `json:"hosts"`
	Consumers int `json:"consumers"` // of the policy, without the root
	Rows      int `json:"demand_rows"`
	Changed   int `json:"changed_rows"`
}

// Utilisation is the part of one dimension's capacity that is used, on the hosts of all plans.
type Utilisation struct {
	Dimension string  `json:"dimension"`
	Used      int64   `json:"used"`
	Capacity  int64   `json:"capacity"`
	Part      float64 `json:"part"`
}

// run is a measurement under way.
type run struct {
	o      Options
	result *Result

	cold, warm, still, floor []float64
	coldStage, warmStage     [len(decision.Stages)][]float64
	allocs, bytes            []float64
	done                     int
}

// Run measures. Errors: tables that the policy refuses, no fixed point after 10,000 cycles, options out of bounds.
func Run(o Options) (*Result, error) {
	if o.Cycles < 1 {
		return nil, fmt.Errorf("cycles: %d must be at least 1", o.Cycles)
	}
	if !(o.Change > 0 && o.Change <= 1) {
		return nil, fmt.Errorf("change: %g must be above 0 and at most 1", o.Change)
	}
	if o.Demand.Rows == 0 {
		return nil, errors.New("demand: no row in it, there is nothing to decide")
	}
	if o.Progress == nil {
		o.Progress = func(int, int) {}
	}
	m := &run{o: o, result: &Result{Hosts: o.Hosts.Rows, Consumers: o.Policy.Len() - 1, Rows: o.Demand.Rows}}
	for n := range o.Cycles + 1 {
		if err := m.once(n); err != nil {
			return nil, err
		}
	}
	m.summarise()
	return m.result, nil
}

// once measures a cold cycle, then on its state at the fixed point an unchanged and a warm one. The times of the first
// round do not count; figures that are the same in all rounds are taken in the first.
func (m *run) once(round int) error {
	begin := time.Now()
	s, err := cluster.New(m.o.Policy)
	if err == nil {
		err = s.SetHosts(m.o.Hosts, true)
	}
	if err == nil {
		err = s.SetDemand(source, m.o.Demand)
	}
	if err != nil {
		return err
	}
	runner := cycle.Runner{Clock: monotonicUS}
	var out decision.Cycle
	runner.Run(s, 0, &out)
	cold := since(begin)
	if round == 0 {
		if err := m.figures(s, &runner, &out); err != nil {
			return err
		}
	} else {
		m.cold = append(m.cold, cold)
		note(&m.coldStage, &out)
		m.floor = append(m.floor, m.move(&out))
	}
	m.step()
	if err := m.settle(s, &runner, &out, round == 0); err != nil {
		return err
	}
	begin = time.Now()
	runner.Run(s, s.NowUS+m.o.Policy.IntervalUS, &out)
	if still := since(begin); round > 0 {
		m.still = append(m.still, still)
	}
	return m.change(s, &runner, &out, round)
}

// change measures a warm cycle: changed rows exchange their units, so that the sum of the demand stays.
func (m *run) change(s *cluster.State, runner *cycle.Runner, out *decision.Cycle, round int) error {
	rows := changedRows(m.o, round)
	m.result.Changed = len(rows)
	units := m.o.Demand.Units
	first := units[rows[0]]
	for i, row := range rows[1:] {
		units[rows[i]] = units[row]
	}
	units[rows[len(rows)-1]] = first
	defer func() { // the other way round
		last := units[rows[len(rows)-1]]
		for i := len(rows) - 1; i > 0; i-- {
			units[rows[i]] = units[rows[i-1]]
		}
		units[rows[0]] = last
	}()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := time.Now()
	err := s.SetDemand(source, m.o.Demand)
	runner.Run(s, s.NowUS+m.o.Policy.IntervalUS, out)
	warm := since(begin)
	runtime.ReadMemStats(&after)
	if round > 0 {
		m.warm = append(m.warm, warm)
		note(&m.warmStage, out)
		m.allocs = append(m.allocs, float64(after.Mallocs-before.Mallocs))
		m.bytes = append(m.bytes, float64(after.TotalAlloc-before.TotalAlloc))
	}
	m.step()
	return err
}

// changedRows are the rows that change in a round, in order: the part that Change names, at least two of two or more.
func changedRows(o Options, round int) []int {
	n := min(max(2, int(o.Change*float64(o.Demand.Rows))), o.Demand.Rows)
	rows := rand.New(rand.NewPCG(o.Seed, uint64(round))).Perm(o.Demand.Rows)[:n]
	return rows
}

// settle runs cycles until the fixed point (CYC-2). In the first round it counts reclaims and measures fairness.
func (m *run) settle(s *cluster.State, runner *cycle.Runner, out *decision.Cycle, count bool) error {
	lostMS := int64(0)
	for n := range settleMax {
		if count {
			m.result.UnitsReclaimed += out.Summary.UnitsReclaimed
			lostMS += out.Summary.UnitMSLost
		}
		if out.Summary.Stable() {
			if count {
				m.result.SettledAfter, m.result.UnitSecondsLost = n, decision.Seconds(lostMS)
				m.result.MaxShareError = ShareError(&out.Shares)
			}
			return nil
		}
		runner.Run(s, s.NowUS+m.o.Policy.IntervalUS, out)
	}
	return fmt.Errorf("the cluster is not at rest after %d cycles", settleMax)
}

// figures takes the figures of a cold cycle, which are the same in every round.
func (m *run) figures(s *cluster.State, runner *cycle.Runner, out *decision.Cycle) (err error) {
	r := m.result
	r.UnitsPlaced, r.UnitsWanted = out.Summary.UnitsGranted, out.Summary.UnitsWanted
	runner.Keyframe(out)
	at := map[string]int{}
	for i, h := 0, &out.Hosts; i < len(h.Used); i++ {
		name := h.Dimension.At(i)
		n, known := at[name]
		if !known {
			n = len(r.Utilisation)
			at[name] = n
			r.Utilisation = append(r.Utilisation, Utilisation{Dimension: name})
		}
		r.Utilisation[n].Used += h.Used[i]
		r.Utilisation[n].Capacity += h.Capacity[i]
	}
	for i := range r.Utilisation {
		if u := &r.Utilisation[i]; u.Capacity > 0 {
			u.Part = float64(u.Used) / float64(u.Capacity)
		}
	}
	if m.o.Bound {
		r.Bounds, err = Bounds(s)
	}
	return err
}

// ShareError is the largest distance of a consumer's usage of a pool from its quota there (MD-14), as a part of the
// pool; 0 where no plan has pools.
func ShareError(s *decision.Shares) (most float64) {
	for i := range s.Usage {
		d := s.UsageQuota[i] - s.Usage[i]
		most = max(most, d, -d)
	}
	return most
}

func (m *run) step() {
	m.done++
	m.o.Progress(m.done, 2*(m.o.Cycles+1))
}

func (m *run) summarise() {
	r := m.result
	r.ColdMS, r.WarmMS, r.UnchangedMS, r.FloorMS = quantiles(m.cold), quantiles(m.warm), quantiles(m.still),
		quantiles(m.floor)
	if r.FloorMS.P50 > 0 {
		r.ColdOverFloor, r.WarmOverFloor = r.ColdMS.P50/r.FloorMS.P50, r.WarmMS.P50/r.FloorMS.P50
	}
	r.DecisionsPerSecond = float64(r.UnitsWanted) / r.ColdMS.P50 * 1e3
	r.AllocsPerWarmCycle, r.BytesPerWarmCycle = uint64(quantiles(m.allocs).P50), uint64(quantiles(m.bytes).P50)
	r.ColdStageUS, r.WarmStageUS = stages(&m.coldStage), stages(&m.warmStage)
	r.PeakRSSBytes = peakRSS()
}

func note(of *[len(decision.Stages)][]float64, out *decision.Cycle) {
	for i, us := range out.Summary.StageUS {
		of[i] = append(of[i], float64(us))
	}
}

func stages(of *[len(decision.Stages)][]float64) map[string]int64 {
	by := map[string]int64{}
	for i, name := range decision.Stages {
		by[name] = int64(quantiles(of[i]).P50)
	}
	return by
}

var processStart = time.Now()

func monotonicUS() int64 { return time.Since(processStart).Microseconds() }

// since is the milliseconds since an instant.
func since(begin time.Time) float64 { return time.Since(begin).Seconds() * 1e3 }
