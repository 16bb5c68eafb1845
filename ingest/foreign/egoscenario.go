package foreign

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/stintd/stint/datasets"
)

// Bounds of a scenario that is made of a history, and of its steps.
const (
	historyRowsMax   = 2_000_000
	historyCyclesMax = 10_000
	historyInterval  = time.Minute // between cycles: the policy's interval
)

// writeScenario writes a scenario file of what was asked in a part of a history, beside plan.yaml and the hosts: a step
// for each instant, with cycles until the next one. It overwrites nothing.
func (h *History) writeScenario(path, name, format string, o datasets.ScenarioOptions) (err error) {
	from, to := h.part(o)
	if from == to {
		return errors.New("the reporting table has no row in that time (--start, --length)")
	}
	several := slices.ContainsFunc(h.Lines, func(l HistoryLine) bool { return l.Plan != h.Lines[0].Plan })
	rows := 0
	for i := range h.Lines {
		for _, n := range h.Lines[i].Demand[from:to] {
			if n > 0 {
				rows++
			}
		}
	}
	if rows > historyRowsMax {
		return fmt.Errorf("the scenario would have %d rows of demand, %d are the most; choose a shorter --length", rows,
			historyRowsMax)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	defer func() { err = errors.Join(err, w.Flush(), f.Close()) }()
	fmt.Fprintf(w, "name: %s\nplan_file: plan.yaml\nhosts_file: hosts.%s\nsteps:\n", name, format)
	for at := from; at < to; at++ {
		length := h.StepUS
		if at+1 < len(h.AtUS) {
			length = h.AtUS[at+1] - h.AtUS[at]
		}
		cycles := min(max(1, length/historyInterval.Microseconds()), historyCyclesMax)
		fmt.Fprintf(w, "  - at: %s\n    cycles: %d\n    demand:", time.UnixMicro(h.AtUS[at]).UTC().Format(time.RFC3339),
			cycles)
		some := false
		for i := range h.Lines {
			l := &h.Lines[i]
			if l.Demand[at] <= 0 {
				continue
			}
			if !some {
				fmt.Fprintln(w)
			}
			some = true
			fmt.Fprintf(w, "      - {consumer: %s, allocation: %s, units: %d", quoted(l.Consumer), egoAllocation,
				l.Demand[at])
			if several {
				fmt.Fprintf(w, ", plan: %s", quoted(l.Plan))
			}
			fmt.Fprintln(w, "}")
		}
		if !some {
			fmt.Fprintln(w, " []")
		}
	}
	return nil
}

// part is the instants of a part of the history: the first, and the one behind the last.
func (h *History) part(o datasets.ScenarioOptions) (from, to int) {
	start := h.AtUS[0] + o.Start.Microseconds()
	from, _ = slices.BinarySearch(h.AtUS, start)
	to = len(h.AtUS)
	if o.Length > 0 {
		to, _ = slices.BinarySearch(h.AtUS, start+o.Length.Microseconds())
	}
	return from, to
}
