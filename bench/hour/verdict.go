package main

import (
	"errors"
	"fmt"
	"strings"
)

// part is what a part of the hour comes to.
type part struct {
	minutes          float64
	cycles           int64
	failed           int     // calls so far
	resident         float64 // MB, most
	heap             float64 // MB, least: what a collection leaves
	routines, open   float64 // most
	logFiles, logMB  float64 // least: after compaction
	journalMB        float64 // most
	push, read, back float64 // ms, p99
}

// of takes over what samples show.
func (p *part) of(samples []sample) {
	p.heap, p.logFiles, p.logMB = samples[0].heap, samples[0].logFiles, samples[0].logMB
	for _, s := range samples {
		p.resident, p.routines, p.open = max(p.resident, s.resident), max(p.routines, s.routines), max(p.open, s.open)
		p.journalMB, p.heap = max(p.journalMB, s.journalMB), min(p.heap, s.heap)
		if s.logFiles < p.logFiles {
			p.logFiles, p.logMB = s.logFiles, s.logMB
		}
	}
}

const heading = `                memory MB           open  log, compacted  journal    p99 ms
minute  cycle    RSS  heap  tasks  files  files     MB       MB   push read log
────────────────────────────────────────────────────────────────────────────────
`

func (p part) String() string {
	return fmt.Sprintf("%6.1f %6d %6.0f %5.0f %6.0f %6.0f %6.0f %6.1f %8.1f  %5.0f %4.0f %3.0f", p.minutes, p.cycles,
		p.resident, p.heap, p.routines, p.open, p.logFiles, p.logMB, p.journalMB, p.push, p.read, p.back)
}

// A figure is flat when the most of the hour's last third is at most so much above that of the third before. In the
// first third things fill up that have a bound: the changes that are kept, and names before they are forgotten.
const (
	flatFactor  = 1.2
	minutesFlat = 30 // of a run that is judged by all figures
)

// flat are figures that must not grow, with what each may be above the factor: the journal a segment, since it is
// dropped by segments.
var flat = []struct {
	name  string
	slack float64
	of    func(part) float64
}{
	{"resident memory, MB", 10, func(p part) float64 { return p.resident }},
	{"heap, MB", 10, func(p part) float64 { return p.heap }},
	{"goroutines", 20, func(p part) float64 { return p.routines }},
	{"open files", 20, func(p part) float64 { return p.open }},
	{"files of the log after compaction", 40, func(p part) float64 { return p.logFiles }},
	{"journal, MB", 270, func(p part) float64 { return p.journalMB }},
	{"p99 of pushes, ms", 200, func(p part) float64 { return p.push }},
	{"p99 of reads, ms", 50, func(p part) float64 { return p.read }},
	{"p99 of reads from the log, ms", 200, func(p part) float64 { return p.back }},
}

// verdict is an error when calls have failed or a figure goes on growing.
func (h *hour) verdict() error {
	var faults []string
	if h.failed > 0 {
		faults = append(faults, fmt.Sprintf("%d calls failed, the first of them:", h.failed))
		faults = append(faults, h.why...)
	}
	if h.part*partsCount < minutesFlat*60e9 {
		fmt.Printf("in less than %d minutes no figure is held to be flat or not\n", minutesFlat)
	} else {
		faults = append(faults, growing(h.parts)...)
	}
	if len(faults) > 0 {
		return errors.New(strings.Join(faults, "\n"))
	}
	return nil
}

// growing names what grows from the second third to the last.
func growing(parts []part) (faults []string) {
	third := len(parts) / 3
	second, last := parts[third:2*third], parts[2*third:]
	most := func(of func(part) float64, parts []part) (v float64) {
		for _, p := range parts {
			v = max(v, of(p))
		}
		return v
	}
	for _, f := range flat {
		before, now := most(f.of, second), most(f.of, last)
		if now > before*flatFactor+f.slack {
			faults = append(faults, fmt.Sprintf("%s: %.0f, and %.0f a third of the hour later", f.name, before, now))
		}
	}
	// The log has every cycle; what it takes for one must not grow.
	before, now := perCycle(parts[third-1], second), perCycle(second[len(second)-1], last)
	if now > before*flatFactor+1 {
		faults = append(faults, fmt.Sprintf("the log after compaction: %.1f kB a cycle, and %.1f a third of the "+
			"hour later", before, now))
	}
	return faults
}

// perCycle is how many kB the log has grown by for a cycle of some parts, behind one.
func perCycle(behind part, parts []part) float64 {
	last := parts[len(parts)-1]
	if last.cycles == behind.cycles {
		return 0
	}
	return 1e3 * (last.logMB - behind.logMB) / float64(last.cycles-behind.cycles)
}
