package conform

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/stintd/stint/ingest/act"
)

// Fault is a planted error of a Cluster, for tests of the suite.
type Fault string

// The planted errors.
const (
	None             Fault = ""
	DoubleStart      Fault = "double start"      // a repeated start makes a second copy
	LostStop         Fault = "lost stop"         // stop succeeds and stops nothing
	LateStop         Fault = "late stop"         // stop takes longer than there is time
	ForgottenRelease Fault = "forgotten release" // what ended is listed as if it ran
	StaleLedger      Fault = "stale ledger"      // list names units as they were called at their first start
)

// Work is an allocation that a cluster can run: units of it are granted one by one or together.
type Work struct {
	Consumer   string  `json:"consumer"`
	Allocation string  `json:"allocation"` // made by Submit
	Units      int64   `json:"units"`
	Seconds    float64 `json:"seconds"` // that a unit runs if nobody stops it
}

// Cluster is a cluster in memory with its hooks. Its work takes time and nothing else. It watches itself: Problems are
// what a real cluster could not do without harm.
type Cluster struct {
	Fault Fault
	Size  map[string]any // of a unit, by dimension
	Room  int            // units that a host has room for; 0: any number
	Slow  time.Duration  // that a stop without force takes

	mu       sync.Mutex
	work     map[string]*Work
	runs     []*run
	first    map[string]string // the name of the first unit of an allocation
	number   int
	down     bool
	problems []string
}

// run is a copy of a unit.
type run struct {
	act.Unit
	ends    time.Time
	stopped bool
	over    bool
}

// Submit adds work that waits to be granted.
func (c *Cluster) Submit(_ context.Context, w Work) (Work, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.work == nil {
		c.work, c.first = map[string]*Work{}, map[string]string{}
	}
	c.number++
	w.Allocation = fmt.Sprintf("work-%d", c.number)
	c.work[w.Allocation] = &w
	return w, nil
}

// Cancel ends work for good.
func (c *Cluster) Cancel(_ context.Context, w Work) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.work, w.Allocation)
	for _, r := range c.runs {
		if r.Allocation == w.Allocation {
			r.over = true
		}
	}
	return nil
}

// SetDown has all hooks fail, as when a cluster's own server is gone.
func (c *Cluster) SetDown(down bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down = down
}

// Problems are units that ran twice at once, and hosts with more units than they have room for.
func (c *Cluster) Problems() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.problems
}

// settle ends what is over; c.mu is held.
func (c *Cluster) settle(now time.Time) error {
	if c.down {
		return fmt.Errorf("the cluster is down")
	}
	runs := c.runs[:0]
	for _, r := range c.runs {
		if !r.over && now.After(r.ends) {
			r.over = true
			if w := c.work[r.Allocation]; w != nil && !r.stopped {
				if w.Units--; w.Units == 0 {
					delete(c.work, r.Allocation)
				}
			}
		}
		if !r.over || c.Fault == ForgottenRelease {
			runs = append(runs, r)
		}
	}
	c.runs = runs
	return nil
}

// List reports the work and what runs of it.
func (c *Cluster) List(context.Context) (*act.Listing, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.settle(time.Now()); err != nil {
		return nil, err
	}
	l := &act.Listing{Demand: []map[string]any{}, Running: []act.Unit{}}
	for _, w := range c.work {
		row := map[string]any{"consumer": w.Consumer, "allocation": w.Allocation,
			"units": json.Number(fmt.Sprint(w.Units))}
		for name, amount := range c.Size {
			row[name] = amount
		}
		l.Demand = append(l.Demand, row)
	}
	for _, r := range c.runs {
		u := r.Unit
		if c.Fault == StaleLedger {
			u.ID = c.first[u.Allocation]
		}
		l.Running = append(l.Running, u)
	}
	for _, host := range []string{"h1", "h2"} {
		l.Hosts = append(l.Hosts, map[string]any{"host": host})
	}
	return l, nil
}

// Start starts units that do not run yet.
func (c *Cluster) Start(_ context.Context, units []act.Unit) (act.Failed, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, failed := time.Now(), act.Failed{}
	if err := c.settle(now); err != nil {
		return nil, err
	}
	for _, u := range units {
		w := c.work[u.Allocation]
		switch {
		case w == nil:
			failed[u.ID] = "there is no such work"
		case c.copies(u.ID) == 0 || c.Fault == DoubleStart:
			c.runs = append(c.runs, &run{Unit: u, ends: now.Add(time.Duration(w.Seconds * float64(time.Second)))})
			if c.first[u.Allocation] == "" {
				c.first[u.Allocation] = u.ID
			}
			c.watch(u)
		}
	}
	return failed, nil
}

func (c *Cluster) copies(id string) (n int) {
	for _, r := range c.runs {
		if r.ID == id && !r.over {
			n++
		}
	}
	return n
}

// watch notes what must not be.
func (c *Cluster) watch(u act.Unit) {
	if c.copies(u.ID) > 1 {
		c.problems = append(c.problems, "two copies of "+u.ID)
	}
	n := 0
	for _, r := range c.runs {
		if r.Host == u.Host && !r.over {
			n++
		}
	}
	if c.Room > 0 && n > c.Room {
		c.problems = append(c.problems, fmt.Sprintf("%d units on %s", n, u.Host))
	}
}

// Stop stops units. Work that was stopped waits to be granted again.
func (c *Cluster) Stop(_ context.Context, units []act.Stopping) (act.Failed, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if err := c.settle(now); err != nil {
		return nil, err
	}
	for _, u := range units {
		for _, r := range c.runs {
			if r.ID != u.ID || r.over || r.stopped || c.Fault == LostStop {
				continue
			}
			r.stopped, r.ends = true, now.Add(c.Slow)
			switch left := time.Duration(u.SecondsLeft * float64(time.Second)); {
			case c.Fault == LateStop:
				r.ends = now.Add(left + 2*time.Second)
			case u.Force:
				r.ends = now
			}
		}
	}
	return nil, nil
}
