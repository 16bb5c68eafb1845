package main

import (
	"bytes"
	"container/heap"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/datasets"
	"github.com/stintd/stint/export"
	"github.com/stintd/stint/ingest/table"
)

// trace is a published log of jobs as a cluster whose demand comes over time. A job is a row of demand: an allocation
// of its consumer with units that run as long as the job did.
type trace struct {
	name    string
	about   string // the workload in a sentence
	set     *datasets.Dataset
	lives   *datasets.Lives
	amount  string   // the unit of Size[0], such as GPUs
	bounds  []int64  // of the classes of jobs by amount: the largest of each but the last
	gangs   bool     // all units of a job begin at once
	remarks []string // differences to the cluster that the log comes from
}

// run is units of a job that were granted together on a host.
type run struct {
	host    string
	units   int64
	sinceUS int64
}

// traceJob is a row of a trace's demand while it is played.
type traceJob struct {
	runs  []run // in order of grant
	done  int64 // units that have run to their end
	began int64 // units that have run at some time: the most of done and running together
	fullS int64 // when all units had begun, seconds of the trace; -1: not yet
}

// replay is a trace being played on a simulated clock, with the log that a service would have written.
type replay struct {
	*trace
	policy  *plan.Policy
	state   *cluster.State
	runner  cycle.Runner
	out     decision.Cycle
	log     *export.Writer
	inputs  []export.Input
	lastUS  int64
	logged  int64 // until which second cycles are logged
	logging bool  // the cycle at hand is

	jobs  []traceJob
	row   map[string]int // of "consumer:allocation"
	order []int          // rows by time
	next  int            // of order
	ends  ends

	predict predictor
	figures
}

// figures are the counts of a replay.
type figures struct {
	cycles              int64
	loggedCycles        int64
	decided, all        time.Duration // of the cycles; with the log
	granted, reclaimed  int64         // units
	usedS, lostS        int64         // unit-seconds that ran to their end; of units that were stopped
	lastS               int64         // when the last unit ended
	longestS, capacityS int64         // lower bounds of lastS: the latest end without waiting; work ÷ capacity
}

// beginUS is the now of a replay's first cycle: a Monday.
var beginUS = time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC).UnixMicro()

// source is the source of the demand.
const source = "trace"

// newReplay prepares a trace and an empty log in dir. Cycles are logged as long as the trace's clock is below logged.
func newReplay(t *trace, every, logged time.Duration, dir string) (*replay, error) {
	p := &replay{trace: t, row: map[string]int{}, logged: int64(logged / time.Second), logging: true}
	text := append(fmt.Appendf(nil, "interval: %s\n", every), t.set.Plan...)
	var err error
	if p.policy, err = plan.Parse("plan.yaml", text); err != nil {
		return nil, err
	}
	if p.state, err = cluster.New(p.policy); err != nil {
		return nil, err
	}
	if p.log, err = export.Open(filepath.Join(dir, "log"), export.Options{Lazy: true}); err != nil {
		return nil, err
	}
	if err := p.take("plan", "", "yaml", text, 0); err != nil {
		return nil, err
	}
	if err := p.hosts(filepath.Join(dir, "tables")); err != nil {
		return nil, err
	}
	d := t.set.Demand
	p.jobs = make([]traceJob, d.Rows)
	for row := range d.Rows {
		p.row[p.key(row)] = row
		p.order = append(p.order, row)
		p.jobs[row].fullS = -1
		p.longestS = max(p.longestS, t.lives.From[row]+t.lives.Runs[row])
	}
	slices.SortStableFunc(p.order, func(a, b int) int { return int(t.lives.From[a] - t.lives.From[b]) })
	p.capacityS = t.lives.From[p.order[0]] + p.work()
	return p, nil
}

// hosts gives the state the trace's hosts, by way of the bytes that the log keeps.
func (p *replay) hosts(dir string) error {
	const format = "csv"
	if err := p.set.Write(dir, format); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(dir, "hosts."+format))
	if err != nil {
		return err
	}
	t, err := table.ReadHosts(bytes.NewReader(text), p.options("hosts."+format))
	if err != nil {
		return err
	}
	if err := p.state.SetHosts(t, true); err != nil {
		return err
	}
	return p.take("hosts", "", format, text, t.Rows)
}

func (p *replay) options(name string) table.Options {
	return table.Options{Name: name, Dimensions: p.policy.Dimensions}
}

// take keeps an input for the log's next cycle.
func (p *replay) take(kind, from, format string, content []byte, rows int) error {
	if !p.logging {
		return nil
	}
	in, err := p.log.Input(kind, from, format, content)
	in.Rows = int64(rows)
	p.inputs = append(p.inputs, in)
	return err
}

// work is how long all the cluster's capacity would be busy with the jobs, in seconds, in the dimension that takes
// longest.
func (p *replay) work() (most int64) {
	for d := range p.policy.Dimensions {
		var capacity, work float64
		for _, v := range p.set.Hosts.Size[d] {
			capacity += float64(v)
		}
		for row, units := range p.set.Demand.Units {
			work += float64(units) * float64(p.set.Demand.Size[d][row]) * float64(p.lives.Runs[row])
		}
		if capacity > 0 {
			most = max(most, int64(work/capacity))
		}
	}
	return most
}

// key names a row of the demand.
func (p *replay) key(row int) string {
	d := p.set.Demand
	return d.Consumer.Names.String(d.Consumer.Code[row]) + ":" + d.Allocation.Names.String(d.Allocation.Code[row])
}

// play runs a cycle at each tick at which something has come or ended, and goes on from tick to tick until a fixed
// point (CYC-2): cycles between would decide nothing.
func (p *replay) play(progress func(done, all int)) error {
	begin := time.Now()
	everyS := p.policy.IntervalUS / 1e6
	rest := true
	for tick := int64(0); ; {
		due, any := p.due()
		if !any && rest {
			break
		}
		if at := (due + everyS - 1) / everyS; rest && at > tick {
			tick = at
		}
		if err := p.cycle(tick * everyS); err != nil {
			return err
		}
		rest = p.out.Summary.Stable()
		tick++
		progress(p.next, len(p.order))
	}
	p.all = time.Since(begin)
	return p.log.Close()
}

// due is the second at which the next job comes or the next unit ends.
func (p *replay) due() (s int64, any bool) {
	if p.next < len(p.order) {
		s, any = p.lives.From[p.order[p.next]], true
	}
	if len(p.ends) > 0 && (!any || p.ends[0].dueS < s) {
		s, any = p.ends[0].dueS, true
	}
	return s, any
}

// cycle gives back the units that have ended by a second, adds the jobs that have come, decides, and notes decisions.
func (p *replay) cycle(now int64) error {
	p.logging = now < p.logged
	if err := p.release(now); err != nil {
		return err
	}
	if err := p.arrive(now); err != nil {
		return err
	}
	start := time.Now()
	p.runner.Clock = func() int64 { return time.Since(start).Microseconds() }
	p.runner.Run(p.state, beginUS+now*1e6, &p.out)
	s := &p.out.Summary
	s.StartedUS, s.FinishedUS = start.UnixMicro(), time.Now().UnixMicro()
	p.decided += time.Since(start)
	p.cycles++
	p.granted, p.reclaimed = p.granted+s.UnitsGranted, p.reclaimed+s.UnitsReclaimed
	p.stopped(now)
	p.started(now)
	if !p.logging {
		return nil
	}
	p.loggedCycles++
	if s.Digest = decision.Digest(p.out.Tables()); s.KeyframeDue(p.lastUS) {
		p.runner.Keyframe(&p.out)
		if s.StateDue(p.lastUS) {
			p.out.State = p.state.Frame()
		}
	}
	p.lastUS = s.NowUS
	err := p.log.Cycle(&p.out, p.inputs)
	p.inputs = p.inputs[:0]
	return err
}

// demand is jobs as a table of demand, and as the bytes of an input.
func (p *replay) demand(name string, rows []int32) (*cluster.DemandTable, []byte, error) {
	var text bytes.Buffer
	if err := table.Write(&text, p.set.Demand.Schema(p.policy.Dimensions), rows); err != nil {
		return nil, nil, err
	}
	t, err := table.ReadDemand(bytes.NewReader(text.Bytes()), p.options(name))
	return t, text.Bytes(), err
}

// arrive tells the state of the jobs that have come.
func (p *replay) arrive(now int64) error {
	var rows []int32
	for ; p.next < len(p.order) && p.lives.From[p.order[p.next]] <= now; p.next++ {
		row := p.order[p.next]
		if err := p.predict.ask(p, row, now); err != nil {
			return err
		}
		rows = append(rows, int32(row))
	}
	if len(rows) == 0 {
		return nil
	}
	t, text, err := p.demand("demand.csv", rows)
	if err == nil {
		err = p.state.ChangeDemand(source, t)
	}
	if err != nil {
		return err
	}
	return p.take("demand_change", source, "csv", text, len(rows))
}

// releaseRow is a row of the table releases.
type releaseRow struct {
	Consumer   string `json:"consumer"`
	Allocation string `json:"allocation"`
	Host       string `json:"host"`
	Units      int64  `json:"units"`
	Done       bool   `json:"done"`
}

// release gives back units whose run time is over.
func (p *replay) release(now int64) error {
	var text bytes.Buffer
	d, rows := p.set.Demand, 0
	for len(p.ends) > 0 && p.ends[0].dueS <= now {
		e := heap.Pop(&p.ends).(end)
		job := &p.jobs[e.row]
		i := slices.IndexFunc(job.runs, func(r run) bool { return r.sinceUS == e.sinceUS && r.host == e.host })
		if i < 0 {
			continue // the unit was stopped
		}
		r := job.runs[i]
		job.runs = slices.Delete(job.runs, i, i+1)
		job.done += r.units
		p.usedS += r.units * p.lives.Runs[e.row]
		p.lastS = e.dueS
		if job.done == d.Units[e.row] {
			p.predict.ended(d.Consumer.Names.String(d.Consumer.Code[e.row]), p.lives.Runs[e.row])
		}
		err := json.NewEncoder(&text).Encode(releaseRow{d.Consumer.Names.String(d.Consumer.Code[e.row]),
			d.Allocation.Names.String(d.Allocation.Code[e.row]), r.host, r.units, true})
		if err != nil {
			return err
		}
		rows++
	}
	if rows == 0 {
		return nil
	}
	t, err := table.ReadHoldings(bytes.NewReader(text.Bytes()), p.options("releases.ndjson"), true)
	if err != nil {
		return err
	}
	released, beyond, err := p.state.Release(t)
	if err != nil {
		return err
	}
	if beyond > 0 {
		return fmt.Errorf("second %d: %d units more than are held were given back, %d were", now, beyond, released)
	}
	return p.take("releases", "", "ndjson", text.Bytes(), rows)
}

// stopped notes units that came back before their end: they have to run anew.
func (p *replay) stopped(now int64) {
	r := &p.out.Releases
	for i, units := range r.Units {
		if c := r.Cause.Code[i]; c == decision.CauseDone {
			continue
		}
		row := p.row[r.Consumer.At(i)+":"+r.Allocation.At(i)]
		job, host := &p.jobs[row], r.Host.At(i)
		for k := len(job.runs) - 1; k >= 0 && units > 0; k-- { // the newest first (CYC-5)
			run := &job.runs[k]
			if run.host != host {
				continue
			}
			n := min(run.units, units)
			p.lostS += n * (beginUS/1e6 + now - run.sinceUS/1e6)
			run.units -= n
			units -= n
		}
		job.runs = slices.DeleteFunc(job.runs, func(r run) bool { return r.units == 0 })
	}
}

// started notes the grants of a cycle.
func (p *replay) started(now int64) {
	g := &p.out.Grants
	for i, units := range g.Units {
		row := p.row[g.Consumer.At(i)+":"+g.Allocation.At(i)]
		job := &p.jobs[row]
		r := run{g.Host.At(i), units, beginUS + now*1e6}
		if k := slices.IndexFunc(job.runs,
			func(o run) bool { return o.host == r.host && o.sinceUS == r.sinceUS }); k >= 0 {
			job.runs[k].units += units // the same host by another origin
		} else {
			job.runs = append(job.runs, r)
			heap.Push(&p.ends, end{now + p.lives.Runs[row], row, r.host, r.sinceUS})
		}
		running := job.done
		for _, r := range job.runs {
			running += r.units
		}
		if job.began = max(job.began, running); job.fullS < 0 && job.began == p.set.Demand.Units[row] {
			job.fullS = now
		}
	}
}

// end is when units of a job that were granted together are done.
type end struct {
	dueS    int64
	row     int
	host    string
	sinceUS int64
}

// ends is a heap: the earliest first, then by row.
type ends []end

func (h ends) Len() int      { return len(h) }
func (h ends) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h ends) Less(i, j int) bool {
	return h[i].dueS < h[j].dueS || h[i].dueS == h[j].dueS && h[i].row < h[j].row
}
func (h *ends) Push(x any) { *h = append(*h, x.(end)) }
func (h *ends) Pop() any {
	all, last := *h, len(*h)-1
	e := all[last]
	*h = all[:last]
	return e
}
