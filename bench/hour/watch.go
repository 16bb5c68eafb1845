package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintd/stint/ingest/client"
)

// hour is a run: traffic, and what is seen of the service meanwhile.
type hour struct {
	s     *service
	c     client.Client
	part  time.Duration
	cycle atomic.Int64 // the last one that was seen

	mu      sync.Mutex
	now     measured // of the part that runs
	samples []sample // of it
	failed  int      // calls, in all
	why     []string // of the first of them

	parts []part
}

// measured is how long calls took that were answered.
type measured struct{ push, read, back []time.Duration }

// sample is what is seen of the service at a moment. The journal's size is with its checkpoints.
type sample struct {
	resident, heap, routines, open float64
	logFiles, logMB, journalMB     float64
}

// play has all run for so long, and tells of each part when it is over.
func (h *hour) play(ctx context.Context, long time.Duration) error {
	h.c = client.Client{Base: h.s.base}
	if err := h.prepare(ctx); err != nil {
		return err
	}
	traffic, stop := context.WithTimeout(ctx, long)
	defer stop()
	var all sync.WaitGroup
	for feed := range feedsCount {
		all.Go(func() { h.feed(traffic, feed) })
	}
	for _, f := range []func(context.Context){h.changes, h.work, h.operate, h.whatif, h.listen, h.listen, h.readBack} {
		all.Go(func() { f(traffic) })
	}
	for _, path := range reads {
		all.Go(func() { h.read(traffic, path) })
	}
	err := h.watch(traffic)
	stop()
	all.Wait()
	if err == nil {
		err = ctx.Err() // of who interrupted it
	}
	return err
}

// watch takes samples until the traffic's time is over.
func (h *hour) watch(ctx context.Context) error {
	fmt.Print(heading)
	begin := time.Now()
	ticks := time.NewTicker(5 * time.Second)
	defer ticks.Stop()
	for {
		select {
		case err := <-h.s.ended:
			h.s.ended <- err
			return fmt.Errorf("the service ended: %w", err)
		case <-ctx.Done():
			h.close(time.Since(begin))
			return nil
		case <-ticks.C:
		}
		s, err := h.sample(ctx)
		if ctx.Err() != nil {
			continue
		}
		if err != nil {
			return err
		}
		h.samples = append(h.samples, s)
		if time.Since(begin) >= time.Duration(len(h.parts)+1)*h.part {
			h.close(time.Since(begin))
		}
	}
}

// sample looks at the process, its figures and its folder.
func (h *hour) sample(ctx context.Context) (s sample, err error) {
	pid := h.s.process.Process.Pid
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return s, err
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kib, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	if s.resident, err = strconv.ParseFloat(kib, 64); err != nil {
		return s, fmt.Errorf("VmRSS: %w", err)
	}
	s.resident *= 1024 / 1e6
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return s, err
	}
	figures, err := h.figures(ctx)
	if err != nil {
		return s, err
	}
	s.open, s.heap = float64(len(open)), figures["go_memstats_heap_alloc_bytes"]/1e6
	s.routines = figures["go_goroutines"]
	h.cycle.Store(int64(figures["stint_cycle_number"]))
	if behind := figures["stint_log_behind_cycles"]; behind > 60 {
		h.count(fmt.Errorf("the decision log is %g cycles behind", behind))
	}
	s.logFiles, s.logMB = sizeOf(filepath.Join(h.s.dir, "log"))
	_, s.journalMB = sizeOf(filepath.Join(h.s.dir, "journal"))
	return s, nil
}

// figures are those of /metrics that have no labels.
func (h *hour) figures(ctx context.Context) (map[string]float64, error) {
	r, err := http.NewRequestWithContext(ctx, "GET", h.s.base+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	all := map[string]float64{}
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if strings.ContainsAny(name, "#{") {
			continue
		}
		if all[name], err = strconv.ParseFloat(value, 64); err != nil {
			return nil, fmt.Errorf("/metrics: %s: %w", name, err)
		}
	}
	return all, lines.Err()
}

// sizeOf adds up the files below a folder; those that are removed meanwhile do not count.
func sizeOf(dir string) (files, mb float64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			files, mb = files+1, mb+float64(info.Size())/1e6
		}
		return nil
	})
	return files, mb
}

// count notes a call that failed.
func (h *hour) count(err error) {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failed++; len(h.why) < 10 {
		h.why = append(h.why, fmt.Sprintf("cycle %d: %s", h.cycle.Load(), err))
	}
}

// took notes how long a call took.
func (h *hour) took(of *[]time.Duration, begin time.Time, err error) {
	if err != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	*of = append(*of, time.Since(begin))
}

// close ends a part of the hour and prints it.
func (h *hour) close(at time.Duration) {
	if len(h.samples) == 0 {
		return
	}
	h.mu.Lock()
	p := part{minutes: at.Minutes(), cycles: h.cycle.Load(), failed: h.failed,
		push: p99(h.now.push), read: p99(h.now.read), back: p99(h.now.back)}
	h.now = measured{}
	h.mu.Unlock()
	p.of(h.samples)
	h.samples = nil
	h.parts = append(h.parts, p)
	fmt.Println(p)
}

// p99 is the time that one of a hundred exceeds, in milliseconds.
func p99(d []time.Duration) float64 {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return float64(d[(len(d)-1)*99/100]) / 1e6
}
