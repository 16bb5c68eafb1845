package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stintd/stint/bench/page"
	"github.com/stintd/stint/core/simulation"
)

// How a prediction is made.
const (
	predictPlays     = 9                   // futures that are drawn
	predictCycles    = 20_000              // of a future, at most
	predictHorizonUS = 14 * 86400 * 1e6    // how far it looks ahead
	predictKnown     = 100                 // jobs that must have ended before: of fewer no run times can be told
	predictRemember  = 2_000               // jobs of a consumer whose run times are remembered, the latest
	predictNever     = int64(1)<<62 - 1<<8 // seconds: not within the horizon
)

// predictor asks, when a job comes, when all of it would run, and compares that with when it did. It knows what a site
// would: how long the jobs of each consumer ran that have ended, and not how long those take that run or wait.
type predictor struct {
	every int // of so many jobs one is asked about; 0: none
	come  int
	ran   map[string][]int64 // by consumer, "/" being all: seconds, in order of their ends
	made  []prediction
	took  []time.Duration
}

// prediction is when a job would have all its units, in seconds of the trace.
type prediction struct {
	row           int
	p10, p50, p90 int64
}

// ended takes note of how long a job ran.
func (p *predictor) ended(consumer string, seconds int64) {
	if p.every == 0 {
		return
	}
	if p.ran == nil {
		p.ran = map[string][]int64{}
	}
	for _, of := range []string{consumer, "/"} {
		list := append(p.ran[of], seconds)
		if len(list) > 2*predictRemember {
			list = slices.Delete(list, 0, len(list)-predictRemember)
		}
		p.ran[of] = list
	}
}

// runtimes are the percentiles of what is known of run times.
func (p *predictor) runtimes() (simulation.Runtimes, error) {
	known := simulation.Runtimes{}
	for consumer, list := range p.ran {
		list = slices.Clone(list[max(0, len(list)-predictRemember):])
		if len(list) < predictKnown {
			continue
		}
		slices.Sort(list)
		at := map[string]string{"p0.1": fmt.Sprintf("%ds", list[0])}
		for _, percent := range []int{5, 10, 25, 50, 75, 90, 95, 99, 100} {
			at[fmt.Sprintf("p%d", percent)] = fmt.Sprintf("%ds", list[(len(list)*percent+99)/100-1])
		}
		if err := known.Add(consumer, at); err != nil {
			return nil, err
		}
	}
	return known, nil
}

// ask predicts a job of a trace on a copy of the state, before the job is told to it.
func (p *predictor) ask(of *replay, row int, now int64) error {
	if p.every == 0 {
		return nil
	}
	if p.come++; p.come%p.every != 0 || len(p.ran["/"]) < predictKnown {
		return nil
	}
	known, err := p.runtimes()
	if err != nil {
		return err
	}
	t, _, err := of.demand("prediction.csv", []int32{int32(row)})
	if err != nil {
		return err
	}
	begin := time.Now()
	answer, err := simulation.Run(context.Background(), of.state.Clone(), beginUS+now*1e6,
		&simulation.Asked{Demand: t, Runtimes: known},
		simulation.Options{HorizonUS: predictHorizonUS, Plays: predictPlays, CyclesMax: predictCycles})
	if err != nil {
		return err
	}
	p.took = append(p.took, time.Since(begin))
	all := answer.Rows[0].All
	made := prediction{row: row}
	for _, at := range []struct {
		to   *int64
		text *string
	}{{&made.p10, all.P10}, {&made.p50, all.P50}, {&made.p90, all.P90}} {
		*at.to = predictNever
		if at.text == nil {
			continue
		}
		when, err := time.Parse(time.RFC3339, *at.text)
		if err != nil {
			return err
		}
		*at.to = when.Unix() - beginUS/1e6
	}
	p.made = append(p.made, made)
	return nil
}

// predictions is how far predictions were from what came, by how long jobs waited.
func (p *replay) predictions(every time.Duration) page.Table {
	t := page.Table{Head: []string{"waited", "jobs asked about", "error p50", "p90", "within p10 to p90",
		"not in the horizon"}}
	tick := int64(every / time.Second)
	bounds := []int64{tick, 3600, 86400, predictNever}
	names := []string{"at most a cycle", "up to an hour", "up to a day", "longer"}
	type class struct {
		errors        []int64
		within, never int
	}
	classes := make([]class, len(bounds))
	for _, m := range p.predict.made {
		full := p.jobs[m.row].fullS
		if full < 0 { // it never ran
			continue
		}
		at, _ := slices.BinarySearch(bounds, full-p.lives.From[m.row])
		c := &classes[at]
		if m.p10 <= full+tick && full-tick <= m.p90 {
			c.within++
		}
		if m.p50 == predictNever {
			c.never++
			continue
		}
		c.errors = append(c.errors, max(m.p50-full, full-m.p50))
	}
	for i, c := range classes {
		n := len(c.errors) + c.never
		if n == 0 {
			continue
		}
		slices.Sort(c.errors)
		at := func(percent int) string {
			if len(c.errors) == 0 {
				return "–"
			}
			return span(c.errors[(len(c.errors)*percent+99)/100-1])
		}
		t.Add(names[i], grouped(int64(n)), at(50), at(90), fmt.Sprintf("%.0f %%", 100*float64(c.within)/float64(n)),
			grouped(int64(c.never)))
	}
	return t
}

// asking is how long predictions took.
func (p *predictor) asking() string {
	took := slices.Sorted(slices.Values(p.took))
	return fmt.Sprintf("Before one job in %d came, stint was asked when all of it would run (core/simulation, %d "+
		"futures drawn, %d days ahead), given how long the jobs of each consumer ran that had ended, and no more. "+
		"The error is between the median of these futures and what came. An answer took %s (p50), %s (longest).",
		p.every, predictPlays, int64(predictHorizonUS/86400/1e6), took[len(took)/2].Round(time.Millisecond),
		took[len(took)-1].Round(time.Millisecond))
}
