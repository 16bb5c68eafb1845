package conform

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/stintd/stint/ingest/act"
)

const cutOffTries = 5

// runs waits until the work runs once on a host.
func (s *suite) runs(ctx context.Context, w Work, host string) error {
	return s.eventually(ctx, s.o.Within, func() (string, error) {
		units, err := s.running(ctx, w)
		if err == nil {
			s.units = units
		}
		return once(units, host), err
	})
}

// stays checks that the work goes on to run once on a host, as the unit that it is.
func (s *suite) stays(ctx context.Context, host string) error {
	id := s.units[0].ID
	for end := time.Now().Add(s.o.Settle); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		units, err := s.running(ctx, s.work)
		if err != nil {
			return err
		}
		if why := once(units, host); why != "" {
			return fmt.Errorf("%s", why)
		}
		if units[0].ID != id {
			return fmt.Errorf("unit %s runs in place of %s", units[0].ID, id)
		}
	}
	return nil
}

// gone waits until no unit of the work runs, and says when that was.
func (s *suite) gone(ctx context.Context, w Work, within time.Duration) (at time.Time, err error) {
	err = s.eventually(ctx, within, func() (string, error) {
		units, err := s.running(ctx, w)
		if at = time.Now(); len(units) > 0 {
			return fmt.Sprintf("unit %s still runs", units[0].ID), err
		}
		return "", err
	})
	return at, err
}

// free waits until the service holds nothing of the work.
func (s *suite) free(ctx context.Context, w Work) error {
	return s.eventually(ctx, s.o.Within, func() (string, error) {
		if n := s.service.holds(w); n > 0 {
			return fmt.Sprintf("%d units of %s ended and were not given back", n, w.Allocation), nil
		}
		return "", nil
	})
}

func (s *suite) grants(ctx context.Context) error {
	s.service.grant(s.work, s.hosts[0])
	if err := s.runs(ctx, s.work, s.hosts[0]); err != nil {
		return err
	}
	return s.stays(ctx, s.hosts[0])
}

// repeats calls start again: one after the other, side by side, and cut off after a moment.
func (s *suite) repeats(ctx context.Context) error {
	for range 2 {
		if failed, err := s.hooks.Start(ctx, s.units); err != nil || len(failed) > 0 {
			return fmt.Errorf("start of a unit that runs must succeed: %v %v", failed, err)
		}
	}
	var beside sync.WaitGroup
	for range 2 {
		beside.Add(1)
		go func() {
			defer beside.Done()
			_, _ = s.hooks.Start(ctx, s.units) // what it leaves behind is looked at
		}()
	}
	beside.Wait()
	for try := range cutOffTries {
		short, cancel := context.WithTimeout(ctx, time.Duration(try*try)*10*time.Millisecond)
		_, _ = s.hooks.Start(short, s.units) // likewise
		cancel()
	}
	return s.stays(ctx, s.hosts[0])
}

// oldLedger ends the actor and starts one with the ledger as it was before the unit was granted.
func (s *suite) oldLedger(ctx context.Context) error {
	if err := s.stop(); err != nil {
		return err
	}
	s.stop = nil
	ledger := filepath.Join(s.o.Folder, "ledger")
	if err := os.Rename(ledger, ledger+"-new"); err != nil {
		return err
	}
	s.act(ctx, ledger)
	return s.stays(ctx, s.hosts[0])
}

func (s *suite) stopsNothing(ctx context.Context) error {
	u := s.units[0]
	u.ID = "u0000000000000000"
	failed, err := s.hooks.Stop(ctx, []act.Stopping{{Unit: u, Deadline: time.Now(), Force: true}})
	if err != nil || len(failed) > 0 {
		return fmt.Errorf("%v %v", failed, err)
	}
	return s.stays(ctx, s.hosts[0])
}

func (s *suite) reclaims(ctx context.Context) error {
	due := s.service.reclaim(s.work, s.hosts[0], s.o.Grace)
	at, err := s.gone(ctx, s.work, s.o.Grace+s.o.Within)
	if err == nil && at.After(due) {
		err = fmt.Errorf("the unit was gone %s after its deadline", at.Sub(due).Round(time.Millisecond))
	}
	return err
}

func (s *suite) givesBack(ctx context.Context) error {
	if err := s.free(ctx, s.work); err != nil {
		return err
	}
	return s.eventually(ctx, s.o.Within, func() (string, error) {
		if n := s.service.wants(s.work); n != 1 {
			return fmt.Sprintf("work that was stopped and not finished wants %d units, not 1", n), nil
		}
		return "", nil
	})
}

func (s *suite) runsAgain(ctx context.Context) error {
	was := s.units[0].ID
	s.service.grant(s.work, s.hosts[1])
	if err := s.runs(ctx, s.work, s.hosts[1]); err != nil {
		return err
	}
	if s.units[0].ID == was {
		return fmt.Errorf("list calls the new unit %s, as the one that was stopped", was)
	}
	s.units = append(s.units, act.Unit{ID: was})
	return s.stays(ctx, s.hosts[1])
}

func (s *suite) stopsOld(ctx context.Context) error {
	old := s.units[0]
	old.ID, s.units = s.units[1].ID, s.units[:1]
	failed, err := s.hooks.Stop(ctx, []act.Stopping{{Unit: old, Deadline: time.Now(), Force: true}})
	if err != nil || len(failed) > 0 {
		return fmt.Errorf("%v %v", failed, err)
	}
	return s.stays(ctx, s.hosts[1])
}

func (s *suite) reclaimsNow(ctx context.Context) error {
	s.service.reclaim(s.work, s.hosts[1], 0)
	if _, err := s.gone(ctx, s.work, s.o.Within); err != nil {
		return err
	}
	return s.free(ctx, s.work)
}

func (s *suite) ends(ctx context.Context) error {
	w, err := s.submit(ctx, 1)
	if err != nil {
		return err
	}
	s.service.grant(w, s.hosts[0])
	if err := s.eventually(ctx, s.o.Within+s.o.Grace, func() (string, error) {
		if s.service.holds(w) > 0 {
			return "the unit was not given back after its work ended", nil
		}
		return "", nil
	}); err != nil {
		return err
	}
	return s.wantsNothing(ctx, w)
}

func (s *suite) wantsNothing(ctx context.Context, w Work) error {
	return s.eventually(ctx, s.o.Within, func() (string, error) {
		if n := s.service.wants(w); n != 0 {
			return fmt.Sprintf("list wants %d units of work that is over", n), nil
		}
		return "", nil
	})
}

func (s *suite) cancels(ctx context.Context) error {
	w, err := s.submit(ctx, 3600)
	if err != nil {
		return err
	}
	s.service.grant(w, s.hosts[1])
	if err := s.runs(ctx, w, s.hosts[1]); err != nil {
		return err
	}
	if err := s.hooks.Cancel(ctx, w); err != nil {
		return fmt.Errorf("cancel: %w", err)
	}
	if err := s.free(ctx, w); err != nil {
		return err
	}
	return s.wantsNothing(ctx, w)
}
