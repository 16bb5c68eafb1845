package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stintd/stint/bench/measure"
	"github.com/stintd/stint/bench/page"
	"github.com/stintd/stint/export"
	"github.com/stintd/stint/export/verify"
)

// playTrace plays a trace into a log, verifies the log, and tells what came of it.
func playTrace(t *trace, o *options) (*page.Section, error) {
	dir, err := os.MkdirTemp("", "stint-external-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	p, err := newReplay(t, o.every, o.logged, dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	p.predict.every = o.predict
	bar := newBar(t.name)
	err = p.play(bar)
	bar(1, 1)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	checks, err := verifyLog(filepath.Join(dir, "log"))
	if err == nil && t.gangs && checks["REQ-3"] == 0 {
		err = errors.New("the log has no gang that could be checked")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	if o.log != "" {
		if err := os.Rename(filepath.Join(dir, "log"), o.log); err != nil {
			return nil, err
		}
	}
	return p.section(o.every, checks), nil
}

// newBar shows on a terminal how far a replay has come.
func newBar(name string) func(done, all int) {
	if info, err := os.Stderr.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return func(int, int) {}
	}
	last := time.Time{}
	return func(done, all int) {
		if time.Since(last) > 200*time.Millisecond || done == all {
			last = time.Now()
			fmt.Fprintf(os.Stderr, "\r%s: %d of %d jobs have come\033[K", name, done, all)
		}
	}
}

// verifyLog verifies a log and tells how much was checked, by rule. Error: faults, or it cannot be read.
func verifyLog(dir string) (checks map[string]int64, err error) {
	log, err := export.OpenLog(dir)
	if err != nil {
		return nil, err
	}
	report, err := verify.Log(log, verify.Options{})
	if err != nil {
		return nil, err
	}
	if !report.OK() {
		return nil, fmt.Errorf("the log has %d faults, the first of them: %+v", report.Count, report.Faults[0])
	}
	if len(report.Checks) == 0 {
		return nil, errors.New("nothing of the log was checked")
	}
	return report.Checks, nil
}

// section tells what a replay came to.
func (p *replay) section(every time.Duration, checks map[string]int64) *page.Section {
	s := &page.Section{Title: p.name, About: p.about + " " + sentence(p.remarks)}
	s.Tables = append(s.Tables, p.waitsTable(), p.sums(checks))
	s.After = fmt.Sprintf("A cycle every %s in which something came or ended. "+
		"A wait ends when all units of a job have begun.", every)
	if len(p.predict.made) > 0 {
		s.Tables = append(s.Tables, p.predictions(every))
		s.After += " " + p.predict.asking()
	}
	return s
}

// sentence joins remarks with capitals and stops.
func sentence(remarks []string) string {
	var b strings.Builder
	for i, r := range remarks {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(strings.ToUpper(r[:1]) + r[1:] + ".")
	}
	return b.String()
}

// waitsTable is waits by the size of jobs.
func (p *replay) waitsTable() page.Table {
	t := page.Table{Head: []string{p.amount + " of a job", "jobs", "wait p50", "p90", "p99", "longest", "never began"}}
	waits, never := make([][]int64, len(p.bounds)+1), make([]int, len(p.bounds)+1)
	for row, job := range p.jobs {
		amount := p.set.Demand.Units[row] * p.set.Demand.Size[0][row]
		class, _ := slices.BinarySearch(p.bounds, amount)
		if job.fullS < 0 {
			never[class]++
			continue
		}
		waits[class] = append(waits[class], job.fullS-p.lives.From[row])
	}
	line := func(name string, waits []int64, never int) {
		if len(waits)+never == 0 {
			return
		}
		slices.Sort(waits)
		at := func(part float64) string {
			if len(waits) == 0 {
				return "–"
			}
			return span(waits[min(len(waits)-1, int(part*float64(len(waits))))])
		}
		t.Add(name, grouped(int64(len(waits)+never)), at(0.5), at(0.9), at(0.99), at(1), grouped(int64(never)))
	}
	for i := range waits {
		line(p.className(i), waits[i], never[i])
	}
	line("all", slices.Concat(waits...), sum(never))
	return t
}

func sum(values []int) (s int) {
	for _, v := range values {
		s += v
	}
	return s
}

// className is the range of amounts of a class.
func (p *replay) className(i int) string {
	switch from := int64(1); {
	case i == len(p.bounds):
		return fmt.Sprintf("more than %d", p.bounds[i-1])
	default:
		if i > 0 {
			from = p.bounds[i-1] + 1
		}
		if from == p.bounds[i] {
			return strconv.FormatInt(from, 10)
		}
		return fmt.Sprintf("%d to %d", from, p.bounds[i])
	}
}

// sums are the figures of a replay as a whole.
func (p *replay) sums(checks map[string]int64) page.Table {
	var all int64
	for _, n := range checks {
		all += n
	}
	ideal := max(p.longestS, p.capacityS)
	part := func(a, b int64) string { return fmt.Sprintf("%.2f %%", 100*float64(a)/float64(max(1, b))) }
	t := page.Table{Head: []string{"in all", ""}}
	t.Add("cycles", grouped(p.cycles))
	t.Add("units granted", grouped(p.granted))
	t.Add("units reclaimed", grouped(p.reclaimed)+" ("+part(p.reclaimed, p.granted)+")")
	t.Add("unit-seconds run to their end", grouped(p.usedS))
	t.Add("unit-seconds lost to reclaim", grouped(p.lostS)+" ("+part(p.lostS, p.usedS+p.lostS)+")")
	t.Add("of the capacity, used until the last end", part(p.capacityS-p.lives.From[p.order[0]], p.lastS))
	t.Add("last end", span(p.lastS))
	t.Add("the earliest that work and capacity allow",
		span(ideal)+fmt.Sprintf(": × %.3f", float64(p.lastS)/float64(ideal)))
	t.Add("time deciding", p.decided.Round(10*time.Millisecond).String())
	t.Add("time with the log", p.all.Round(10*time.Millisecond).String())
	t.Add("cycles logged and verified", grouped(p.loggedCycles))
	t.Add("checks of the log, without a fault", grouped(all))
	if p.gangs {
		t.Add("of them, that no gang is partial", grouped(checks["REQ-3"]))
	}
	return t
}

// span is a time for people.
func span(s int64) string {
	switch {
	case s < 120:
		return fmt.Sprintf("%d s", s)
	case s < 2*3600:
		return fmt.Sprintf("%.1f min", float64(s)/60)
	case s < 2*86400:
		return fmt.Sprintf("%.1f h", float64(s)/3600)
	}
	return fmt.Sprintf("%.1f d", float64(s)/86400)
}

// grouped is a number with commas.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// machine is where figures were measured.
func machine() string {
	m := measure.Here()
	text := m.String()
	if m.Commit != "unknown" {
		text += fmt.Sprintf(", commit %.12s", m.Commit)
	}
	return text + ", load average at the end " + m.Load1 + "."
}
