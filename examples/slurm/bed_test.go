// Package slurm tests the hooks of stint act for Slurm in a Slurm of its own: make test-slurm.
package slurm

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stintd/stint/ingest/client"
)

// bed is a Slurm, a stint service and an actor, each a process that can be killed.
type bed struct {
	t         *testing.T
	dir       string
	stint     string // the program
	c         *client.Client
	processes map[string]*exec.Cmd

	killedSlurm []time.Time // when slurmctld was killed

	mu       sync.Mutex
	grants   map[string][]string // of an allocation: hosts granted in a cycle, sorted
	reclaims map[string]int      // of an allocation: cycles that took units from it
	causes   map[string]int64    // units released, by cause
	figures  figures             // of actors that were killed
	current  figures             // of the actor
	load     load
}

// load is how busy the machine was, by its average of a minute.
type load struct{ sum, count, most float64 }

func (l *load) note() {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return
	}
	word, _, _ := strings.Cut(string(text), " ")
	if v, err := strconv.ParseFloat(word, 64); err == nil {
		l.sum, l.count, l.most = l.sum+v, l.count+1, max(l.most, v)
	}
}

func (l *load) mean() float64 { return l.sum / max(1, l.count) }

const (
	service  = "http://127.0.0.1:7468"
	actor    = "http://127.0.0.1:7469"
	bedNodes = 48
)

// newBed starts all. The test runs in namespaces of its own, so that ports are free and processes end with it.
func newBed(t *testing.T) *bed {
	t.Helper()
	program := os.Getenv("STINT_SLURM")
	if program == "" {
		t.Skip("STINT_SLURM names no stint: make test-slurm installs Slurm and runs this test in a network of its own")
	}
	b := &bed{t: t, dir: t.TempDir(), stint: program, c: &client.Client{Base: service},
		processes: map[string]*exec.Cmd{},
		grants:    map[string][]string{}, reclaims: map[string]int{},
		causes: map[string]int64{}, figures: figures{}, current: figures{}}
	t.Setenv("SLURM_CONF", filepath.Join(b.dir, "slurm.conf"))
	b.command("./bed.sh", b.dir, strconv.Itoa(bedNodes))
	b.start("stint")
	for range 100 {
		if _, err := b.c.Get(t.Context(), "/healthz", nil, "text/plain"); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	b.command(b.stint, "push", "--plan", "plan.yaml")
	text, err := os.ReadFile("act.yaml")
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.NewReplacer("/var/lib/stint-act", filepath.Join(b.dir, "ledger"), "./hooks.py",
		filepath.Join(here, "hooks.py")).Replace(string(text)))
	if err := os.WriteFile(filepath.Join(b.dir, "act.yaml"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for name := range b.processes {
			b.kill(name)
		}
		b.endSlurm()
		if t.Failed() {
			for _, name := range []string{"actor", "stint"} {
				log, _ := os.ReadFile(filepath.Join(b.dir, name+".err")) // what there is of it helps
				t.Logf("the end of %s's log:\n%s", name, log[max(0, len(log)-6000):])
			}
		}
	})
	return b
}

// endSlurm ends what bed.sh began, so that the next bed finds its ports free.
func (b *bed) endSlurm() {
	text, err := os.ReadFile(filepath.Join(b.dir, "ids"))
	if err != nil {
		b.t.Error(err)
	}
	for _, id := range strings.Fields(string(text)) {
		if pid, err := strconv.Atoi(id); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL) // the test may have killed it
		}
	}
}

func (b *bed) command(name string, args ...string) string {
	b.t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		b.t.Fatalf("%s %v: %v: %s", name, args, err, out)
	}
	return string(out)
}

// start starts a process, again or for the first time.
func (b *bed) start(name string) {
	b.t.Helper()
	var cmd *exec.Cmd
	switch name {
	case "stint":
		cmd = exec.Command(b.stint, "serve", "--data", filepath.Join(b.dir, "data"))
	case "actor":
		cmd = exec.Command(b.stint, "act", "--config", filepath.Join(b.dir, "act.yaml"))
	case "slurmctld":
		cmd = exec.Command("slurmctld", "-D")
	}
	log, err := os.OpenFile(filepath.Join(b.dir, name+".err"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		b.t.Fatal(err)
	}
	defer log.Close()
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.processes[name] = cmd
}

// kill is kill -9.
func (b *bed) kill(name string) {
	if name == "slurmctld" {
		b.killedSlurm = append(b.killedSlurm, time.Now())
	}
	cmd := b.processes[name]
	if cmd == nil { // the slurmctld that bed.sh began
		text, err := os.ReadFile(filepath.Join(b.dir, "slurmctld.id"))
		pid, err2 := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil || err2 != nil {
			b.t.Error(err, err2)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			b.t.Errorf("slurmctld: %v", err)
		}
		time.Sleep(100 * time.Millisecond)
		return
	}
	_ = cmd.Process.Kill() // it may have ended
	_ = cmd.Wait()
	if name == "actor" {
		b.mu.Lock()
		b.figures.add(b.current)
		b.current = figures{}
		b.mu.Unlock()
	}
}

// follow notes what the service decides for the actor.
func (b *bed) follow(ctx context.Context) {
	since := int64(0)
	for ctx.Err() == nil {
		changes, next, err := b.c.Changes(ctx, "slurm", since, 5*time.Second)
		if err != nil {
			time.Sleep(200 * time.Millisecond)
			continue
		}
		since = next
		hosts := map[string][]string{}
		taken := map[string]bool{}
		b.mu.Lock()
		for _, c := range changes {
			key := fmt.Sprint(c.Allocation, " ", c.Cycle)
			if c.Change == "grant" {
				hosts[key] = append(hosts[key], c.Host)
			}
			if c.Change == "release" {
				b.causes[c.Cause] += c.Units
			}
			given := c.Cause == "client" || c.Cause == "done"
			// a reclaim may be cancelled when its job is requeued already
			asked := c.Change == "reclaim" || c.Change == "release" && c.Reclaim == 0 && !given
			if asked && !taken[key] {
				taken[key] = true
				b.reclaims[c.Allocation]++
			}
		}
		for key, list := range hosts {
			allocation, _, _ := strings.Cut(key, " ")
			slices.Sort(list)
			b.grants[allocation] = append(b.grants[allocation], strings.Join(list, ","))
		}
		b.mu.Unlock()
	}
}

// figures are the actor's metrics by name and labels.
type figures map[string]float64

func (f figures) add(other figures) {
	for k, v := range other {
		f[k] += v
	}
}

// scrape reads the actor's metrics once a second.
func (b *bed) scrape(ctx context.Context) {
	for ctx.Err() == nil {
		now, err := scraped(ctx)
		b.mu.Lock()
		if err == nil {
			b.current = now
		}
		b.load.note()
		b.mu.Unlock()
		time.Sleep(time.Second)
	}
}

func scraped(ctx context.Context) (figures, error) {
	r, err := http.NewRequestWithContext(ctx, "GET", actor+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	f := figures{}
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if v, err := strconv.ParseFloat(value, 64); ok && err == nil && strings.HasPrefix(name, "stint_act") {
			f[name] = v
		}
	}
	return f, lines.Err()
}

// all are the figures of all actors.
func (b *bed) all() figures {
	b.mu.Lock()
	defer b.mu.Unlock()
	sum := figures{}
	sum.add(b.figures)
	sum.add(b.current)
	return sum
}

// lag is the upper bound of the bucket in which a part of all effects lies.
func (f figures) lag(effect string, part float64) (bound string, count float64) {
	labels := `{effect="` + effect + `"`
	count = f["stint_act_lag_seconds_count"+labels+"}"]
	for _, le := range []string{"0.1", "0.25", "0.5", "1", "2", "5", "10", "30", "60", "300"} {
		if f["stint_act_lag_seconds_bucket"+labels+`,le="`+le+`"}`] >= part*count {
			return le, count
		}
	}
	return "+Inf", count
}

// actors waits for the service to tell of an actor without drift, and shows what it tells.
func (b *bed) actors(ctx context.Context) {
	var text []byte
	var err error
	for range 20 { // an actor reports every 5 s
		text, err = b.c.Get(ctx, "/v1/actors", nil, "application/json")
		if strings.Contains(string(text), `"running":0,"drift":0,`) {
			b.t.Logf("GET /v1/actors: %s", text)
			return
		}
		time.Sleep(time.Second)
	}
	b.t.Errorf("GET /v1/actors: %s %v", text, err)
}

// queued are the jobs that Slurm has.
func (b *bed) queued() (names []string, err error) {
	out, err := exec.Command("squeue", "-h", "-o", "%j %T %r").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		names = append(names, strings.TrimSpace(line))
	}
	return names, nil
}

// held is how many cpus the service holds on each host.
func (b *bed) held(ctx context.Context) (map[string]int64, error) {
	r, err := http.NewRequestWithContext(ctx, "GET", service+"/v1/hosts", nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	var rows []struct {
		Host string `json:"host"`
		Used int64  `json:"used_cpus"`
	}
	if err == nil {
		err = json.Unmarshal(text, &rows)
	}
	used := map[string]int64{}
	for _, r := range rows {
		used[r.Host] += r.Used
	}
	return used, err
}
