package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stintd/stint/datasets"
	"github.com/stintd/stint/ingest/foreign"
)

// small is a log of three jobs on one host of two processors: the first takes both for 100 s, the second comes at 30
// s and waits for one, the third comes when both are free. A job is a gang: it has all its processors or none.
const small = `; MaxNodes: 1
; MaxProcs: 2
1   0 -1 100 2 -1 -1 -1 -1 -1 1 -1 -1 -1 0 -1 -1 -1
2  30 -1  60 1 -1 -1 -1 -1 -1 1 -1 -1 -1 0 -1 -1 -1
3 200 -1  60 2 -1 -1 -1 -1 -1 1 -1 -1 -1 0 -1 -1 -1
`

func smallTrace(t *testing.T) *trace {
	t.Helper()
	r, err := foreign.SWF("small.swf", strings.NewReader(small), foreign.SWFOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return &trace{name: "small", amount: "processors", bounds: []int64{1, 2}, set: r.Dataset, lives: r.Lives}
}

// TestReplay holds a replay against what can be told by hand: cycles are a minute apart.
func TestReplay(t *testing.T) {
	p, err := newReplay(smallTrace(t), time.Minute, time.Hour, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.play(func(int, int) {}); err != nil {
		t.Fatal(err)
	}
	// Job 1 begins at 0 and ends at 100, which the cycle at 120 sees; job 2 begins then, having come at 30. Job 3
	// came at 200: both its units begin at 240 and end at 300.
	for row, want := range []int64{0, 120, 240} {
		if got := p.jobs[row].fullS; got != want {
			t.Errorf("job %d has all its units at %d s, want %d", row+1, got, want)
		}
	}
	if p.granted != 5 || p.reclaimed != 0 || p.usedS != 2*100+60+2*60 || p.lostS != 0 || p.lastS != 300 {
		t.Errorf("figures %+v", p.figures)
	}
	if p.longestS != 260 || p.capacityS != (200+60+120)/2 {
		t.Errorf("bounds %d and %d s", p.longestS, p.capacityS)
	}
	table := p.waitsTable()
	for _, want := range []string{"1 1 90 s", "2 2 40 s", "all 3 40 s"} {
		found := false
		for _, row := range table.Rows {
			found = found || strings.HasPrefix(strings.Join(row, " "), want)
		}
		if !found {
			t.Errorf("no row %q in %v", want, table.Rows)
		}
	}
}

// TestPredict: where all jobs run for as long, and come faster than they end, the time at which each begins can be
// told.
func TestPredict(t *testing.T) {
	var log strings.Builder
	log.WriteString("; MaxNodes: 1\n; MaxProcs: 2\n")
	for i := range 200 {
		fmt.Fprintf(&log, "%d %d -1 600 1 -1 -1 -1 -1 -1 1 -1 -1 -1 0 -1 -1 -1\n", i+1, 240*i)
	}
	r, err := foreign.SWF("queue.swf", strings.NewReader(log.String()), foreign.SWFOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := newReplay(&trace{name: "queue", bounds: []int64{1}, set: r.Dataset, lives: r.Lives}, time.Minute, 0,
		t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p.predict.every = 10
	if err := p.play(func(int, int) {}); err != nil {
		t.Fatal(err)
	}
	waited := int64(0)
	for _, m := range p.predict.made {
		full := p.jobs[m.row].fullS
		if m.p50 != full || m.p10 != full || m.p90 != full {
			t.Errorf("job %d began at %d s; predicted %d, from %d to %d", m.row+1, full, m.p50, m.p10, m.p90)
		}
		waited = max(waited, full-p.lives.From[m.row])
	}
	if n := len(p.predict.made); n < 5 || waited < 3600 {
		t.Errorf("%d predictions, the longest wait %d s", n, waited)
	}
	table := p.predictions(time.Minute)
	if len(table.Rows) == 0 || table.Rows[0][2] != "0 s" {
		t.Errorf("table %v", table.Rows)
	}
}

// TestLost: what fair reclaim stops has run in vain, and runs anew.
func TestLost(t *testing.T) {
	d := newDemand(1)
	d.add("/a", "long", "", 4, 1)
	d.add("/b", "late", "", 2, 1)
	hosts, _ := phillyCluster(phillyHosts) // one host of 8
	hosts.Size[0][0] = 4
	tr := &trace{name: "lost", amount: "GPUs", bounds: []int64{1},
		lives: &datasets.Lives{From: []int64{0, 600}, Runs: []int64{6000, 600}},
		set:   &datasets.Dataset{Dimensions: []string{"gpus"}, Hosts: hosts, Demand: &d.DemandTable}}
	tr.set.Plan = phillyPlan(tr.set.Demand, &datasets.Lives{Runs: []int64{1, 2}}, 0)
	dir := t.TempDir()
	p, err := newReplay(tr, time.Minute, time.Hour, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.play(func(int, int) {}); err != nil {
		t.Fatal(err)
	}
	// At 600 two of four units are reclaimed, which is done in the cycle at 660: each has run 660 s in vain.
	if p.reclaimed != 2 || p.lostS != 2*660 || p.usedS != 4*6000+2*600 {
		t.Errorf("figures %+v", p.figures)
	}
	if _, err := verifyLog(filepath.Join(dir, "log")); err != nil {
		t.Error(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "log", "grants")); err != nil {
		t.Fatal(err)
	}
	if _, err := verifyLog(filepath.Join(dir, "log")); err == nil {
		t.Error("a log without grants: no fault")
	}
}

// TestPhillyGangs reads jobs as gangs of all their GPUs, and has consumers keep what is young.
func TestPhillyGangs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "philly.csv")
	const jobs = "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,8,528.0,a\n2017-10-09 " +
		"07:02:55,66.0,1,66.0,b\n"
	if err := os.WriteFile(file, []byte(jobs), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, gangs := range []bool{false, true} {
		tr, err := philly(file, 1, gangs, 10*time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if got := tr.set.Demand.MinUnits; gangs != slices.Equal(got, []int64{8, 1}) {
			t.Errorf("gangs %v: min_units are %v", gangs, got)
		}
		if !strings.Contains(string(tr.set.Plan), "{path: /a, min_runtime: 10m}") {
			t.Errorf("no min_runtime in\n%s", tr.set.Plan)
		}
	}
}

func TestPhillyRefused(t *testing.T) {
	const head = "timestamp,duration,num_gpus,gpu_time,cluster\n"
	for _, c := range []struct{ text, want string }{
		{"", "EOF"},
		{"timestamp,duration,num_gpus,gpu_time\n", "its columns are"},
		{"timestamp,duration,num_gpus,gpu_time,cluster,mood\n", "mood"},
		{head, "no job in it"},
		{head + "today,66.0,1,66.0,a\n", `row 1, column timestamp, value "today"`},
		{head + "2017-10-09 07:01:55,0,1,66.0,a\n", `column duration, value "0"`},
		{head + "2017-10-09 07:01:55,66.0,1.5,66.0,a\n", `column num_gpus, value "1.5"`},
		{head + "2017-10-09 07:01:55,66.0,1,66.0,a/b\n", `column cluster, value "a/b"`},
		{head + "2017-10-09 07:01:55,66.0,1\n", "wrong number of fields"},
	} {
		if _, _, err := phillyJobs("philly.csv",
			strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}

func TestSlurmLine(t *testing.T) {
	e := newEvents()
	err := e.read(strings.NewReader("-dt 10.5 -e submit_batch_job | -sim-walltime 6.00 --uid=u -J j1 -N 2 -n 18 " +
		"-t 1-0:0:0 -q debug -p general-compute --gres=gpu:2 --mem=2G --constraint=CPU-Gold-6130 pseudo.job\n" +
		"-dt 11.5 -e submit_batch_job | -sim-walltime 0.00 --uid=u -J j2 -n 1 --exclusive -p debug pseudo.job\n"))
	if err != nil {
		t.Fatal(err)
	}
	d := e.demand
	if d.Units[0] != 2 || d.Size[0][0] != 9 || d.Size[1][0] != 2048 || d.Size[2][0] != 2 || d.MaxPerHost[0] != 1 {
		t.Errorf("the first job: %d units of %d, %d, %d", d.Units[0], d.Size[0][0], d.Size[1][0], d.Size[2][0])
	}
	const want = "select(partition_general_compute && cpu_gold_6130)"
	if got := d.Requirement.Names.String(d.Requirement.Code[0]); got != want {
		t.Errorf("requirement %s", got)
	}
	if d.Size[0][1] != slurmWhole || d.Size[1][1] != slurmWhole*slurmPerCPU ||
		e.lives.From[1] != 1 || e.lives.Runs[1] != 1 {
		t.Errorf("the second job: %d, %d, from %d, %d s", d.Size[0][1], d.Size[1][1], e.lives.From[1], e.lives.Runs[1])
	}
}

func newEvents() *slurmEvents {
	return &slurmEvents{users: map[string]string{"u": "/a/u"}, dims: []string{slurmCPUs, slurmMemory, slurmGPU},
		demand: newDemand(3), lives: &datasets.Lives{}}
}

func TestSlurmRefused(t *testing.T) {
	const good = "-dt 1 -e submit_batch_job | -sim-walltime 6 --uid=u -J j -p debug"
	for _, c := range []struct{ text, want string }{
		{"", "no job in it"},
		{good + " --burst=yes pseudo.job\n", "an option that is not known"},
		{good + " --mem=many pseudo.job\n", "must be such as 500M"},
		{good + " --gres=tape:1 pseudo.job\n", "only gpu:N is known"},
		{good + " -n 0 pseudo.job\n", "must be a whole number from 1"},
		{good + " -N\n", "has no value"},
		{strings.Replace(good, "=u", "=v", 1) + "\n", "no account has a user"},
		{strings.Replace(good, "submit_batch_job", "cancel_job", 1) + "\n", "only submit_batch_job"},
		{strings.Replace(good, "-dt 1", "-dt soon", 1) + "\n", "must be seconds"},
	} {
		if err := newEvents().read(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
	for _, c := range []struct{ text, want string }{
		{"add account Fairshare=1\n", "account without a name"},
		{"add user Name=u\n", "without a DefaultAccount"},
		{"# nothing\n", "no user in it"},
	} {
		path := filepath.Join(t.TempDir(), "sacctmgr.script")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := slurmAccounts(path); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}

// TestNotThere: files that are missing, and words that are wrong, are errors that say so.
func TestNotThere(t *testing.T) {
	o := options{every: time.Minute, part: 1, seeds: 1}
	none := t.TempDir()
	for _, args := range [][]string{
		{"kueue", none, "baseline"}, {"philly", filepath.Join(none, "philly.csv")}, {"slurm", none},
		{"swf", filepath.Join(none, "x.swf")},
		{"fgd", none, filepath.Join(none, "nodes.csv")},
	} {
		if _, _, err := o.play(args); !os.IsNotExist(err) {
			t.Errorf("%v: %v", args, err)
		}
	}
	for want, args := range map[string][]string{"nothing to play": nil, "no such workload": {"borg", none},
		"1 arguments follow, not 0": {"swf"}} {
		if _, _, err := o.play(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
	for want, bad := range map[string]options{"whole seconds": {every: time.Millisecond, part: 1},
		"for philly alone": {every: time.Minute, part: 2}} {
		if _, _, err := bad.play([]string{"swf", none}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", bad, err, want)
		}
	}
}
