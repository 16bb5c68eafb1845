// Package conform tests hooks of an actor with faults that happen: calls that are repeated and cut off, an actor that
// is killed and comes back with an old ledger, a clock that differs, reclaims with little time. The suite plays the
// service itself, so that it needs a cluster and its hooks only.
package conform

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/stintd/stint/ingest/act"
	"github.com/stintd/stint/ingest/client"
)

// Subject is what is tested.
type Subject interface {
	act.Hooks
	// Submit makes work that waits to be granted and names it.
	Submit(ctx context.Context, w Work) (Work, error)
	// Cancel ends work for good, as its owner would.
	Cancel(ctx context.Context, w Work) error
}

// Options of the suite.
type Options struct {
	Consumer string        // of the work that is submitted
	Folder   string        // for ledgers
	Within   time.Duration // in which a start or the end of work must show in list (10 s)
	Grace    time.Duration // of reclaims (10 s)
	Every    time.Duration // between two lists (500 ms)
	Settle   time.Duration // in which a wrong effect would show (2 s)
	Log      *slog.Logger
}

// Check is the result of one check.
type Check struct {
	Name string
	Err  error // nil: it passed
}

// suite is a run of the checks.
type suite struct {
	o       Options
	hooks   Subject
	service *service
	web     *httptest.Server
	stop    func() error // the actor
	hosts   []string
	work    Work
	units   []act.Unit // of work, as they run
}

// errSkip ends a run: what follows needs what failed.
var errSkip = errors.New("not tried, as an earlier check failed")

// Run runs all checks and returns their results in order. It submits work of its own and cancels it in the end. The
// error says why the suite could not run at all.
func Run(ctx context.Context, hooks Subject, o Options) ([]Check, error) {
	if o.Within == 0 {
		o.Within = 10 * time.Second
	}
	if o.Grace == 0 {
		o.Grace = 10 * time.Second
	}
	if o.Every == 0 {
		o.Every = 500 * time.Millisecond
	}
	if o.Settle == 0 {
		o.Settle = 2 * time.Second
	}
	s := &suite{o: o, hooks: hooks, service: newService(10 * time.Minute)}
	s.web = httptest.NewServer(s.service)
	defer s.web.Close()
	if err := os.MkdirAll(o.Folder, 0o700); err != nil {
		return nil, err
	}
	var all []Check
	failed := false
	for _, c := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"list reports hosts, and work that was submitted", s.lists},
		{"a granted unit runs once, on its host", s.grants},
		{"start, repeated and cut off, makes no second copy", s.repeats},
		{"an actor with an old ledger starts and stops nothing", s.oldLedger},
		{"stop of a unit that never ran succeeds", s.stopsNothing},
		{"a reclaimed unit is gone before its deadline", s.reclaims},
		{"a stopped unit is given back", s.givesBack},
		{"work that was stopped runs again under a new name", s.runsAgain},
		{"stop of an old unit leaves the new one alone", s.stopsOld},
		{"a reclaim without grace stops at once", s.reclaimsNow},
		{"work that ends is given back and wanted no more", s.ends},
		{"work that its owner cancels is given back", s.cancels},
	} {
		check := Check{Name: c.name, Err: errSkip}
		if !failed {
			check.Err = c.run(ctx)
		}
		failed = failed || check.Err != nil
		all = append(all, check)
		if ctx.Err() != nil {
			return all, ctx.Err()
		}
	}
	return all, s.end(ctx)
}

func (s *suite) end(ctx context.Context) error {
	var err error
	if s.stop != nil {
		err = s.stop()
	}
	if s.work.Allocation == "" {
		return err
	}
	return errors.Join(err, s.hooks.Cancel(ctx, s.work))
}

// act begins an actor.
func (s *suite) act(ctx context.Context, ledger string) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- act.Run(ctx, &client.Client{Base: s.web.URL}, s.hooks, act.Options{
			Source: "conformance", Ledger: ledger, Every: s.o.Every, Log: s.o.Log,
		})
	}()
	s.stop = func() error { cancel(); return <-ended }
}

// eventually waits until something is so; why tells what is wrong until then.
func (s *suite) eventually(ctx context.Context, within time.Duration, so func() (why string, err error)) error {
	for end := time.Now().Add(within); ; {
		why, err := so()
		if err != nil || why == "" {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("after %s: %s", within, why)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// running are the rows of the work in a list.
func (s *suite) running(ctx context.Context, w Work) (units []act.Unit, err error) {
	l, err := s.hooks.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	for _, u := range l.Running {
		if u.Allocation == w.Allocation {
			units = append(units, u)
		}
	}
	return units, nil
}

// once says what is wrong with units that should run once, on a host.
func once(units []act.Unit, host string) string {
	switch {
	case len(units) != 1:
		return fmt.Sprintf("%d units of the work run, not 1", len(units))
	case units[0].Host != host:
		return fmt.Sprintf("unit %s runs on %q, not on %s", units[0].ID, units[0].Host, host)
	}
	return ""
}

func (s *suite) submit(ctx context.Context, seconds float64) (Work, error) {
	w, err := s.hooks.Submit(ctx, Work{Consumer: s.o.Consumer, Units: 1, Seconds: seconds})
	if err != nil {
		return w, fmt.Errorf("submit: %w", err)
	}
	return w, s.eventually(ctx, s.o.Within, func() (string, error) {
		if n := s.service.wants(w); n != 1 {
			return fmt.Sprintf("list wants %d units of %s, not 1", n, w.Allocation), nil
		}
		return "", nil
	})
}

func (s *suite) lists(ctx context.Context) error {
	l, err := s.hooks.List(ctx)
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	if len(l.Running) > 0 {
		return fmt.Errorf("%d units run already: the suite needs a cluster without granted work", len(l.Running))
	}
	for _, h := range l.Hosts {
		if name, ok := h["host"].(string); ok {
			s.hosts = append(s.hosts, name)
		}
	}
	if len(s.hosts) < 2 {
		return errors.New("list reports fewer than two hosts: the suite grants units on those that it reports")
	}
	s.act(ctx, filepath.Join(s.o.Folder, "ledger"))
	s.work, err = s.submit(ctx, 3600)
	return err
}
