package datasets

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stintd/stint/core/cluster"
)

// traceSecondsMax bounds a trace's times: 100 years.
const traceSecondsMax = 100 * 365 * 86400

// Lives are when the rows of a trace's demand came and how long they ran, in seconds since the trace's start.
type Lives struct {
	From []int64 // when a row was created
	Runs []int64 // how long it ran once it was scheduled; how long it was there, where it never was
}

// OpenBLives reads the times of an openb pod list, a row for each row of OpenB's demand. Faults name row,
// column, value and reason.
func OpenBLives(pods io.Reader) (*Lives, error) {
	t, err := openTrace("pods", pods, "creation_time", "deletion_time", "scheduled_time")
	if err != nil {
		return nil, err
	}
	l := &Lives{}
	for t.next() {
		from, to := t.amount("creation_time", traceSecondsMax), t.amount("deletion_time", traceSecondsMax)
		began := from
		if t.text("scheduled_time") != "" {
			began = t.amount("scheduled_time", traceSecondsMax)
		}
		if to < began {
			t.faults.Add(t.row, "deletion_time", t.text("deletion_time"), "is before the pod's creation or scheduling")
		}
		l.From, l.Runs = append(l.From, from), append(l.Runs, max(1, to-began))
	}
	return l, t.faults.Err()
}

// ScenarioOptions say which part of a trace becomes a scenario.
type ScenarioOptions struct {
	Start  time.Duration // of the trace: what is there by then comes with the first cycle
	Length time.Duration // of the trace that is played; 0: until nothing comes any more
	Speed  int64         // seconds of the trace in one of the scenario; 0: 1
}

// Validate reports all that is wrong with the options.
func (o ScenarioOptions) Validate() error {
	var faults []error
	if o.Start < 0 || o.Start%time.Second != 0 {
		faults = append(faults, fmt.Errorf("start %s: must be whole seconds from 0 on", o.Start))
	}
	if o.Length < 0 || o.Length%time.Second != 0 {
		faults = append(faults, fmt.Errorf("length %s: must be whole seconds", o.Length))
	}
	if o.Speed < 0 || o.Speed > 1_000_000 {
		faults = append(faults, fmt.Errorf("speed %d: must be from 1 to 1,000,000", o.Speed))
	}
	return errors.Join(faults...)
}

// Bounds of a scenario's steps. Its clock starts on a Monday.
const (
	stepCyclesMax   = 10_000
	scenarioSeconds = 60 // between cycles: the policy's interval
	scenarioStart   = "2026-01-05T00:00:00Z"
)

// arrivals are the rows that come with a cycle.
type arrivals struct {
	cycle int64 // from 0
	rows  []int
}

// WriteScenario writes a scenario file to path, beside the dataset's own files as Write makes them: each row of demand
// comes with the first cycle after its creation, as a source of its cycle, and ends (`runtime`) when it has run as long
// as it did in the trace. name is the scenario's. It returns how many cycles and rows that are. It overwrites nothing.
func (d *Dataset) WriteScenario(
	path, name, format string, l *Lives, o ScenarioOptions,
) (cycles, rows int64, err error) {
	if err := o.Validate(); err != nil {
		return 0, 0, err
	}
	if len(l.From) != d.Demand.Rows {
		panic(fmt.Sprintf("BUG: %d rows of demand with the lives of %d", d.Demand.Rows, len(l.From)))
	}
	o.Speed = max(1, o.Speed)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return 0, 0, err
	}
	w := bufio.NewWriter(f)
	defer func() { err = errors.Join(err, w.Flush(), f.Close()) }()
	come, cycles := d.arrivals(l, o)
	if len(come) == 0 {
		return 0, 0, errors.New("the trace has nothing in that time")
	}
	fmt.Fprintf(w, "name: %s\nplan_file: plan.yaml\nhosts_file: hosts.%s\nsteps:\n", name, format)
	if come[0].cycle > 0 {
		come = slices.Insert(come, 0, arrivals{})
	}
	for i, a := range come {
		end := cycles
		if i+1 < len(come) {
			end = come[i+1].cycle
		}
		rows += int64(len(a.rows))
		d.writeStep(w, a, end-a.cycle, i == 0, l, o)
	}
	return cycles, rows, nil
}

// arrivals are the rows that come in each cycle that any come in, and how many cycles there are.
func (d *Dataset) arrivals(l *Lives, o ScenarioOptions) (come []arrivals, cycles int64) {
	start, length := int64(o.Start/time.Second), int64(o.Length/time.Second)
	each := scenarioSeconds * o.Speed
	by := map[int64][]int{}
	for row, from := range l.From {
		if from+l.Runs[row] <= start || length > 0 && from >= start+length {
			continue
		}
		cycle := (max(0, from-start) + each - 1) / each
		by[cycle] = append(by[cycle], row)
		cycles = max(cycles, cycle+1)
	}
	for cycle, rows := range by {
		come = append(come, arrivals{cycle, rows})
	}
	slices.SortFunc(come, func(a, b arrivals) int { return int(a.cycle - b.cycle) })
	if length > 0 {
		cycles = max(cycles, length/each+1)
	}
	return come, cycles
}

// writeStep writes a cycle's arrivals and the cycles until the next ones.
func (d *Dataset) writeStep(w *bufio.Writer, a arrivals, cycles int64, first bool, l *Lives, o ScenarioOptions) {
	at := ""
	if first {
		at = "at: " + scenarioStart + "\n    "
	}
	fmt.Fprintf(w, "  - %scycles: %d\n", at, min(cycles, stepCyclesMax))
	if len(a.rows) > 0 {
		fmt.Fprintf(w, "    demand:\n      c%06d:\n", a.cycle)
	}
	for _, row := range a.rows {
		runs := l.Runs[row]
		if start := int64(o.Start / time.Second); l.From[row] < start { // it has run for a while
			runs = min(runs, l.From[row]+runs-start)
		}
		fmt.Fprintf(w, "        - %s\n", d.demandRow(row, time.Duration(runs)*time.Second/time.Duration(o.Speed)))
	}
	for cycles -= stepCyclesMax; cycles > 0; cycles -= stepCyclesMax {
		fmt.Fprintf(w, "  - cycles: %d\n", min(cycles, stepCyclesMax))
	}
}

// demandRow is a row of demand as YAML writes it on one line.
func (d *Dataset) demandRow(row int, runtime time.Duration) string {
	t := d.Demand
	text := func(c *cluster.TextColumn) string { return strconv.Quote(c.Names.String(c.Code[row])) }
	var b strings.Builder
	fmt.Fprintf(&b, "{consumer: %s, allocation: %s, units: %d", text(&t.Consumer), text(&t.Allocation), t.Units[row])
	for i, name := range d.Dimensions {
		if v := t.Size[i][row]; v > 0 {
			fmt.Fprintf(&b, ", %s: %d", name, v)
		}
	}
	if t.Requirement.Code != nil && t.Requirement.Code[row] != cluster.Null {
		fmt.Fprintf(&b, ", requirement: %s", text(&t.Requirement))
	}
	fmt.Fprintf(&b, ", runtime: %s}", runtime.Round(time.Microsecond))
	return b.String()
}
