package server

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"
)

// divisionsFolder has a folder for each division of a service that is divided.
const divisionsFolder = "divisions"

// ServiceDivision is a division as a process has it.
type ServiceDivision struct {
	Name    string
	Cluster *Cluster // its journal and log; nil: they are in a folder of its own
	Far     bool     // other processes decide it: this one knows who leads it, and passes calls on
}

// runDivided is Run of a service whose plans are divided: each division has an engine, a journal and a log of its own,
// and of the server its own share of memory. They have the socket and the callers in common.
func runDivided(ctx context.Context, o ServiceOptions) error {
	metrics := dividedMetrics(o.MetricsLevel)
	names := make([]string, len(o.Divisions))
	for i, d := range o.Divisions {
		names[i] = d.Name
	}
	shared := o.Server
	shared.Divisions = names
	shared.Limits = shared.Limits.withDefaults()
	shared.Limits.MemoryMax /= int64(len(names) + 1)
	shared.Limits = shared.Limits.ofMemory()
	if o.Divisions[0].Cluster == nil {
		if err := CheckDivisions(o.Dir, names); err != nil {
			return errors.Join(err, o.Listener.Close())
		}
	}
	front := shared
	front.Metrics, front.Audit = metrics(""), false
	s, err := New(front)
	if err != nil {
		return errors.Join(err, o.Listener.Close())
	}
	shared.Limits.ConnsMax = s.o.Limits.ConnsMax // what that is has been told
	var services []*ServiceOptions
	for _, d := range o.Divisions {
		one := o.ofDivision(d, shared)
		one.Server.Metrics = metrics(d.Name)
		one.Engine.OnCycle = one.Server.Metrics.Cycle
		of, err := New(one.Server)
		if err != nil {
			return errors.Join(err, o.Listener.Close())
		}
		of.far = d.Far
		s.divisions, services = append(s.divisions, of), append(services, one)
	}
	if o.Started != nil {
		o.Started(s)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() {
		err := s.Serve(o.Listener)
		cancel()
		served <- err
	}()
	ended := make([]error, len(services))
	var all sync.WaitGroup
	for i, d := range s.divisions {
		all.Go(func() {
			defer cancel() // one that cannot go on ends all: whoever supervises the process starts it again
			if err := d.divisionUntil(ctx, services[i]); err != nil {
				ended[i] = fmt.Errorf("division %s: %w", d.o.Division, err)
			}
		})
	}
	all.Wait()
	timed, stop := context.WithTimeout(context.Background(), shutdownMax)
	defer stop()
	for _, d := range s.divisions {
		close(d.closing)
	}
	shut := s.Shutdown(timed)
	if errors.Is(shut, context.DeadlineExceeded) {
		shut = nil // clients that do not end their requests
	}
	return errors.Join(errors.Join(ended...), shut, <-served)
}

// ofMemory are the limits with those of memory made anew of MemoryMax.
func (l Limits) ofMemory() Limits {
	bodies := l.InflightBytesMax
	l.InflightBytesMax, l.DecodedMemoryMax = bodies, 0
	l.ChecksMemoryMax, l.AnswersMemoryMax, l.HistoryMemoryMax = 0, 0, 0
	return l.withDefaults()
}

// ofDivision are the options of one division's service.
func (o *ServiceOptions) ofDivision(d ServiceDivision, shared Options) *ServiceOptions {
	one := *o
	one.Server = shared
	one.Server.Division, one.Cluster = d.Name, d.Cluster
	one.Server.Log = shared.Log.With("division", d.Name)
	n := len(o.Divisions) + 1
	one.Engine.BacklogBytesMax /= int64(n)
	one.Engine.RecentRowsMax = max(1, one.Engine.RecentRowsMax/n)
	one.Dir = filepath.Join(o.Dir, divisionsFolder, d.Name)
	one.Server.Dir = one.Dir
	switch {
	case d.Far:
		one.Server.Audit = false
	case o.NoLog:
		one.Server.Audit = false
	case d.Cluster != nil:
		one.Server.LogDir = filepath.Join(one.Dir, tailFolder)
	default:
		one.Server.LogDir = filepath.Join(one.Dir, "log")
	}
	if d.Cluster == nil {
		one.Server.JournalBytesMax = o.Journal.BytesMax
	}
	return &one
}

// divisionUntil runs a division until ctx is done.
func (s *Server) divisionUntil(ctx context.Context, o *ServiceOptions) error {
	if o.Plan != nil {
		if _, _, err := s.parsesPlan(o.PlanName, o.Plan); err != nil {
			return err
		}
	}
	switch {
	case s.far:
		return s.observeUntil(ctx, o)
	case o.Cluster != nil:
		return s.memberUntil(ctx, o)
	}
	return s.engineUntil(ctx, o)
}

// observeUntil knows who leads a division of others, until ctx is done.
func (s *Server) observeUntil(ctx context.Context, o *ServiceOptions) error {
	s.NotReady("other processes decide this division")
	for {
		j, err := o.Cluster.Open(ctx)
		if err == nil {
			s.shared.Store(&j)
			err = errors.Join(j.Observe(ctx), j.Close())
		}
		if ctx.Err() != nil {
			return nil
		}
		if s.member() == nil {
			return err // the start is refused
		}
		s.o.Log.Error("this process cannot see who leads the division; it is tried again", "error", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(reopenPause):
		}
	}
}
