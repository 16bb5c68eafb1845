package slurm

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// minutes is how long jobs are submitted and run.
func minutes(t *testing.T) time.Duration {
	t.Helper()
	n, err := strconv.ParseFloat(os.Getenv("STINT_MINUTES"), 64)
	if err != nil || n < 1 {
		t.Fatalf("STINT_MINUTES=%q: must be a number from 1", os.Getenv("STINT_MINUTES"))
	}
	return time.Duration(n * float64(time.Minute))
}

// submission is one call of sbatch. Its name is its own: slurmctld gives a number again that it has forgotten, and may
// have taken a job of which sbatch heard no answer.
type submission struct {
	name, id string // id is "" where there was no answer
	at       time.Time
}

// run is one run of a job, as the job itself wrote it down.
type run struct {
	name, id     string
	nodes        string // sorted
	began, ended time.Time
}

const jobsPerMinute = 20

// stateLag is how long slurmctld may take to save what it did: it saves its state every five seconds at most, and
// takes some time to write it.
const stateLag = 10 * time.Second

// forgot tells whether slurmctld was killed so soon after something that it may know nothing of it.
func (b *bed) forgot(at time.Time) bool {
	return slices.ContainsFunc(b.killedSlurm, func(killed time.Time) bool {
		return at.Before(killed.Add(time.Second)) && killed.Sub(at) < stateLag
	})
}

// TestConformance has the hooks pass the suite of faults in a Slurm.
func TestConformance(t *testing.T) {
	b := newBed(t)
	t.Logf("\n%s", b.command(b.stint, "act", "--config", filepath.Join(b.dir, "act.yaml"), "--conformance"))
}

// TestSlurm has 20 jobs a minute of two owners and a borrower run where stint says.
func TestSlurm(t *testing.T) { play(t, nil) }

// TestSlurmKilled is TestSlurm with stint, actor and slurmctld each killed every 30 s.
func TestSlurmKilled(t *testing.T) { play(t, []string{"actor", "stint", "slurmctld"}) }

func play(t *testing.T, killed []string) {
	b := newBed(t)
	b.start("actor")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go b.follow(ctx)
	go b.scrape(ctx)
	lasts := minutes(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %s, killed: %v", seed, lasts, killed)
	random := rand.New(rand.NewPCG(seed, 0))
	stopKills := b.kills(ctx, killed)
	log := filepath.Join(b.dir, "runs.log")
	submitted := b.submit(random, lasts, log)
	most := b.finish(ctx, lasts, len(submitted))
	stopKills()
	b.actors(ctx)
	cancel()
	b.judge(log, submitted, most, killed != nil)
}

// submit submits jobs over most of a time: the borrower's come early in each quarter, the owners' in bursts behind
// them.
func (b *bed) submit(random *rand.Rand, lasts time.Duration, log string) (submitted []submission) {
	began, n := time.Now(), int(lasts.Minutes()*jobsPerMinute)
	lasts = lasts * 7 / 8
	var at []time.Duration
	for range n {
		at = append(at, time.Duration(random.Int64N(int64(lasts))))
	}
	slices.Sort(at)
	for i, when := range at {
		time.Sleep(time.Until(began.Add(when)))
		account := "batch"
		if quarter := float64(when%(lasts/4)) / float64(lasts/4); quarter > .4 {
			account = []string{"risk", "research"}[random.IntN(2)]
		}
		nodes, cpus := 1+random.IntN(4), []int{4, 8, 16}[random.IntN(3)]
		seconds := 30 + random.IntN(120)
		for try := 0; ; try++ {
			name := fmt.Sprintf("job-%d.%d", i, try)
			note := name + " $SLURM_JOB_ID $SLURM_JOB_NODELIST $EPOCHREALTIME >>" + log
			script := fmt.Sprintf("#!/bin/bash\necho begin %[1]s\nsleep %[2]d || exit\necho end %[1]s\n", note, seconds)
			cmd := exec.Command("sbatch", "--parsable", "--hold", "--requeue", "-J", name, "-A", account,
				"-N", strconv.Itoa(nodes), "--ntasks-per-node=1", "-c", strconv.Itoa(cpus), "-t", "5",
				"-o", "/dev/null", "-D", b.dir)
			cmd.Stdin = strings.NewReader(script)
			out, err := cmd.Output()
			if err == nil {
				id := strings.TrimSpace(string(out))
				submitted = append(submitted, submission{name: name, id: id, at: time.Now()})
				break
			}
			submitted = append(submitted, submission{name: name, at: time.Now()})
			time.Sleep(time.Second) // slurmctld is down
		}
	}
	return submitted
}

// kills kills one process after the other, every ten seconds, until it is told to stop.
func (b *bed) kills(ctx context.Context, names []string) (stop func()) {
	if len(names) == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-time.After(30 * time.Second / time.Duration(len(names))):
			}
			b.kill(names[i%len(names)])
			b.start(names[i%len(names)])
		}
	}()
	return func() { cancel(); <-ended }
}

// finish waits until Slurm has no job and the actor no drift. most is the most cpus that the service held on a host.
func (b *bed) finish(ctx context.Context, lasts time.Duration, submitted int) (most int64) {
	var names []string
	var err error
	for end := time.Now().Add(lasts/2 + 10*time.Minute); time.Now().Before(end); time.Sleep(time.Second) {
		if used, err := b.held(ctx); err == nil {
			for _, n := range used {
				most = max(most, n)
			}
		}
		if names, err = b.queued(); err == nil && len(names) == 0 {
			time.Sleep(5 * time.Second)
			return most
		}
	}
	b.t.Errorf("%d of %d jobs are left: %v %v", len(names), submitted, names[:min(5, len(names))], err)
	return most
}

var begun = regexp.MustCompile(`(begin|end) (\S+) (\d+) (\S+)(?: (\d+)\.(\d+))?`)

// runs reads what the jobs wrote down.
func (b *bed) runs(log string) (list []*run) {
	text, err := os.ReadFile(log)
	if err != nil {
		b.t.Fatal(err)
	}
	open := map[string]*run{}
	for _, m := range begun.FindAllStringSubmatch(string(text), -1) {
		seconds, _ := strconv.ParseInt(m[5], 10, 64) // the pattern has digits only
		micros, _ := strconv.ParseInt(m[6], 10, 64)
		at := time.Unix(seconds, micros*1000)
		if m[1] == "begin" {
			open[m[2]] = &run{name: m[2], id: m[3], nodes: expand(m[4]), began: at}
			list = append(list, open[m[2]])
		} else if r := open[m[2]]; r != nil {
			r.ended = at
		}
	}
	return list
}

// expand gives the hosts of n[1-3,7],n9, sorted.
func expand(list string) string {
	var hosts []string
	for _, m := range regexp.MustCompile(`([a-z]+)(\d+|\[[^\]]*\])`).FindAllStringSubmatch(list, -1) {
		for part := range strings.SplitSeq(strings.Trim(m[2], "[]"), ",") {
			from, to, ok := strings.Cut(part, "-")
			first, _ := strconv.Atoi(from) // the pattern has digits only
			last, _ := strconv.Atoi(to)
			if !ok {
				last = first
			}
			for n := first; n <= last; n++ {
				hosts = append(hosts, m[1]+strconv.Itoa(n))
			}
		}
	}
	slices.Sort(hosts)
	return strings.Join(hosts, ",")
}

// verdict counts what befell the jobs.
type verdict struct {
	ended, requeued                  int
	elsewhere, unasked, twice, never int // each is a fault
	unanswered, forgotten            int // by slurmctld: submissions without an answer, and jobs that it lost
	undone                           int // by slurmctld: starts and ends that it lost
}

// compare compares what ran with what stint decided. A job that slurmctld forgot when it was killed never ends; one
// whose start it forgot is killed, and one whose end it forgot runs again: neither is a fault of the hooks.
func (b *bed) compare(runs []*run, submitted []submission) (v verdict) {
	b.mu.Lock()
	grants, reclaims := maps.Clone(b.grants), maps.Clone(b.reclaims)
	b.mu.Unlock()
	byName := map[string][]*run{}
	for _, r := range runs {
		byName[r.name] = append(byName[r.name], r)
		if !slices.Contains(grants[r.id], r.nodes) {
			v.elsewhere++
			b.t.Errorf("%s (%s) ran on %s; stint chose %v", r.name, r.id, r.nodes, grants[r.id])
		}
	}
	for _, s := range submitted {
		ends, cut, undone, id := 0, 0, 0, s.id
		for i, r := range byName[s.name] {
			id = r.id
			switch {
			case r.ended.IsZero() && b.forgot(r.began):
				undone++
			case r.ended.IsZero():
				cut++
			case i < len(byName[s.name])-1 && b.forgot(r.ended):
				undone++
			default:
				ends++
			}
		}
		v.undone += undone
		if len(byName[s.name]) > 1 {
			v.requeued++
		}
		if cut > reclaims[id] {
			v.unasked++
			b.t.Logf("%s (%s) was cut off %d times and reclaimed %d times", s.name, id, cut, reclaims[id])
			b.said(id)
		}
		switch {
		case ends > 1:
			v.twice++
			b.t.Logf("%s (%s) ended %d times", s.name, id, ends)
			b.said(id)
		case ends == 1:
			v.ended++
		case s.id == "":
			v.unanswered++
		case b.forgot(s.at):
			v.forgotten++ // it may have run for a moment
		default:
			v.never++
			b.t.Logf("%s (%s) never ended: %d runs", s.name, id, len(byName[s.name]))
			b.said(id)
		}
	}
	return v
}

// said logs what slurmctld said of a job number, and what the job with that number wrote down.
func (b *bed) said(id string) {
	for _, name := range []string{"log/slurmctld.log", "runs.log"} {
		text, err := os.ReadFile(filepath.Join(b.dir, name))
		if err != nil {
			b.t.Error(err)
		}
		of := regexp.MustCompile(`JobId=` + id + `\b|(begin|end) \S+ ` + id + ` |slurmctld version`)
		for line := range strings.Lines(string(text)) {
			if of.MatchString(line) {
				b.t.Logf("  %s", strings.TrimSpace(line))
			}
		}
	}
	for _, at := range b.killedSlurm {
		b.t.Logf("  killed at %s", at.Format("15:04:05.000"))
	}
}

// judge fails the test where what ran is not what stint decided.
func (b *bed) judge(log string, submitted []submission, most int64, killed bool) {
	runs := b.runs(log)
	v := b.compare(runs, submitted)
	f := b.all()
	for _, effect := range []string{"start", "stop"} {
		p50, _ := f.lag(effect, .5)
		p99, n := f.lag(effect, .99)
		b.t.Logf("lag of %.0f %ss: p50 at most %s s, p99 at most %s s", n, effect, p50, p99)
		if bound, err := strconv.ParseFloat(p99, 64); !killed && (err != nil || bound > 2) {
			b.t.Errorf("the lag of %ss is above 2 s", effect)
		}
	}
	for _, hook := range []string{"list", "start", "stop"} {
		labels := `{hook="` + hook + `"}`
		if n := f["stint_act_hook_seconds_count"+labels]; n > 0 {
			b.t.Logf("%.0f calls of %s: %.2f s each, %.0f failed", n, hook, f["stint_act_hook_seconds_sum"+labels]/n,
				f["stint_act_hook_errors_total"+labels])
		}
	}
	b.t.Logf("units released by cause: %v", b.causes)
	b.t.Logf("load of the machine: mean %.1f, most %.1f", b.load.mean(), b.load.most)
	drift := b.current[`stint_act_drift_units{kind="held_not_running"}`] +
		b.current[`stint_act_drift_units{kind="running_not_held"}`]
	b.t.Logf("%d submissions, %d runs, %d jobs reclaimed, at most %d cpus on a host, drift %.0f, %.0f late stops, "+
		"%.0f faulty units: %+v", len(submitted), len(runs), len(b.reclaims), most, drift,
		f["stint_act_late_stops_total"], f["stint_act_faulty_units_total"], v)
	if v.never+v.twice+v.unasked+v.elsewhere > 0 || most > 16 || most == 0 || drift != 0 {
		b.t.Error("not as it should be")
	}
	if len(submitted) >= 100 && len(b.reclaims) == 0 {
		b.t.Error("nothing was reclaimed: the run shows too little")
	}
}
