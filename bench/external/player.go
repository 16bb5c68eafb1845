package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/stintd/stint/ingest/client"
)

// service is a process of stint under measurement.
type service struct {
	*client.Client
	dir     string
	process *exec.Cmd
	log     bytes.Buffer
}

// startService starts `stint serve` on a free port, in a folder of its own, and waits until it is ready.
func startService(ctx context.Context, binary string) (*service, error) {
	dir, err := os.MkdirTemp("", "stint-external-")
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := ln.Addr().String()
	if err := ln.Close(); err != nil {
		return nil, err
	}
	s := &service{dir: dir, Client: &client.Client{Base: "http://" + address}}
	s.process = exec.Command(binary, "serve", "--data", filepath.Join(dir, "data"), "--listen", address)
	s.process.Stderr = &s.log
	if err := s.process.Start(); err != nil {
		return nil, err
	}
	for range 200 {
		resp, err := http.Get(s.Base + "/readyz")
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			return s, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(25 * time.Millisecond):
		}
	}
	_ = s.process.Process.Kill()
	return nil, errors.New("the service does not answer: " + s.log.String())
}

func (s *service) stop() {
	_ = s.process.Process.Signal(syscall.SIGTERM)
	_ = s.process.Wait()
	_ = os.RemoveAll(s.dir)
}

// tick is the time between two pushes of new jobs and of releases.
const tick = 10 * time.Millisecond

// player creates jobs on the clock, learns from the service which jobs run, and gives the units of a job back when its
// run time is over.
type player struct {
	service *service
	cluster *kueueCluster

	mu      sync.Mutex
	byKey   map[string]*job
	queue   map[string][]*job // by source, in order of their time: jobs that have not come yet
	begin   time.Time
	left    int
	ended   time.Duration
	done    map[string][]client.Unit // by source: to be given back
	used    time.Duration            // slots × time of work that ended
	lost    time.Duration            // of work that was stopped
	stopped int
	failed  error
}

// play returns when all jobs are done. Errors: the service fails, or jobs are not done in time.
func (p *player) play(ctx context.Context, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit+time.Minute)
	defer cancel()
	p.queue = map[string][]*job{}
	for _, j := range p.cluster.jobs {
		p.byKey[j.consumer+":"+j.allocation] = j
		p.queue[j.source] = append(p.queue[j.source], j)
	}
	if _, err := p.service.PutPlan(ctx, client.Bytes([]byte(p.cluster.plan), "application/yaml"),
		client.Options{}); err != nil {
		return err
	}
	if _, err := p.service.PutHosts(ctx, client.Bytes([]byte(p.cluster.hosts), "text/csv"),
		client.Options{}); err != nil {
		return err
	}
	for _, source := range p.cluster.sources { // changes of a source that is unknown yet are not found
		if _, err := p.service.ChangeDemand(ctx, source, client.Bytes([]byte(demandHead), "text/csv"),
			client.Options{}); err != nil {
			return err
		}
	}
	p.left, p.begin, p.done = len(p.cluster.jobs), time.Now(), map[string][]client.Unit{}
	var all sync.WaitGroup
	for _, source := range p.cluster.sources {
		all.Go(func() { p.until(ctx, cancel, func() error { return p.push(ctx, source) }) })
		all.Go(func() { p.follow(ctx, cancel, source) })
	}
	all.Wait()
	if p.failed != nil {
		return p.failed
	}
	if p.left > 0 {
		return fmt.Errorf("%d workloads are not done after %s", p.left, time.Since(p.begin).Round(time.Second))
	}
	return nil
}

// until calls a function at each tick until all jobs are done.
func (p *player) until(ctx context.Context, cancel func(), do func() error) {
	for ctx.Err() == nil {
		if err := do(); err != nil {
			p.fail(ctx, err)
			cancel()
			return
		}
		p.mu.Lock()
		left := p.left
		p.mu.Unlock()
		if left == 0 {
			cancel()
			return
		}
		time.Sleep(tick)
	}
}

// fail keeps the first error, unless the player has ended.
func (p *player) fail(ctx context.Context, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed == nil && p.left > 0 && ctx.Err() == nil {
		p.failed = err
	}
}

const demandHead = "consumer,allocation,units,cpu\n"

// push tells the service of a source's new jobs, and gives back the units of jobs whose run time is over.
func (p *player) push(ctx context.Context, source string) error {
	var body bytes.Buffer
	p.mu.Lock()
	now := time.Since(p.begin)
	queue := p.queue[source]
	for ; len(queue) > 0 && queue[0].from <= now; queue = queue[1:] {
		j := queue[0]
		fmt.Fprintf(&body, "%s,%s,1,%d\n", j.consumer, j.allocation, j.size)
	}
	p.queue[source] = queue
	done := p.done[source]
	p.done[source] = nil
	p.mu.Unlock()
	if len(done) > 0 {
		if _, err := p.service.ReleaseUnits(ctx, done); err != nil {
			return err
		}
	}
	if body.Len() > 0 {
		_, err := p.service.ChangeDemand(ctx, source,
			client.Bytes(append([]byte(demandHead), body.Bytes()...), "text/csv"), client.Options{})
		return err
	}
	return nil
}

// follow starts and stops jobs as the service says.
func (p *player) follow(ctx context.Context, cancel func(), source string) {
	var since int64
	for ctx.Err() == nil {
		changes, next, err := p.service.Changes(ctx, source, since, time.Second)
		if err != nil {
			p.fail(ctx, err)
			cancel()
			return
		}
		p.mu.Lock()
		for _, c := range changes {
			p.change(source, &c)
		}
		p.mu.Unlock()
		since = next
	}
}

// change starts or stops a job. The caller holds the lock.
func (p *player) change(source string, c *client.Change) {
	j := p.byKey[c.Consumer+":"+c.Allocation]
	now := time.Since(p.begin)
	switch c.Change {
	case "grant":
		if j.done { // the unit was reclaimed while its release was under way, so that the service still wants it
			p.giveBack(j, source, c.Host)
			return
		}
		if j.admitted == 0 {
			j.admitted = now
		}
		j.attempt++
		j.running, j.since = true, now
		attempt, host := j.attempt, c.Host
		time.AfterFunc(j.runs, func() { p.end(j, attempt, source, host) })
	case "release":
		if j.running && !j.done { // a job that loses its unit before its end begins anew with the next grant
			j.running = false
			p.stopped++
			p.lost += (now - j.since) * time.Duration(j.size)
		}
	}
}

// end is called when a job has run.
func (p *player) end(j *job, attempt int, source, host string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if j.attempt != attempt || !j.running {
		return
	}
	j.running, j.done = false, true
	p.used += j.runs * time.Duration(j.size)
	p.giveBack(j, source, host)
	if p.left--; p.left == 0 {
		p.ended = time.Since(p.begin)
	}
}

// giveBack has a job's unit released at the next tick. The caller holds the lock.
func (p *player) giveBack(j *job, source, host string) {
	p.done[source] = append(p.done[source], client.Unit{Consumer: j.consumer, Allocation: j.allocation, Host: host,
		Units: 1, Done: true})
}

// admission is the mean time from a job's creation to its first grant, by class.
func (p *player) admission() map[string]time.Duration {
	sum, n := map[string]time.Duration{}, map[string]int{}
	for _, j := range p.cluster.jobs {
		sum[j.class] += j.admitted - j.from
		n[j.class]++
	}
	for class := range sum {
		sum[class] /= time.Duration(n[class])
	}
	return sum
}
