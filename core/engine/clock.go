package engine

import "time"

const (
	// slewTenths is how fast now goes on while the clock is behind it, in tenths: slower than time, so that the clock,
	// which goes with time, comes closer by a tenth of what passes.
	slewTenths = 9
	// clockStepUS is how far the clock may be off before the log tells of it.
	clockStepUS = 1_000_000
	// clockLeapUS is how much further than time the clock may go ahead before the log tells of it.
	clockLeapUS = 60 * 1_000_000
)

// reckoned is what the engine takes for the time.
type reckoned struct {
	latestUS int64 // the last that was given
	atUS     int64 // what Options.Elapsed said then
	known    bool  // it was given by this process

	behind  bool  // the clock is behind that: time is reckoned from
	fromUS  int64 // this
	sinceUS int64 // when Options.Elapsed said this
	told    bool  // in the log
}

// clock gives the time: the clock's, and never less than the last that was given (CYC-9) and nine tenths of what has
// passed since. So where the clock has gone back time goes on all the same, somewhat slower, until the clock has caught
// up: else nothing would fall due while the clock repeats itself.
func (e *Engine) clock() int64 {
	r, clock, elapsed := &e.time, e.o.Clock(), e.o.Elapsed()
	if leap := clock - r.latestUS - (elapsed - r.atUS); r.known && !r.behind && leap >= clockLeapUS {
		e.o.Log.Warn("the clock has gone ahead; what was due until then is due now", "ahead",
			time.Duration(leap)*time.Microsecond)
	}
	if !r.behind {
		r.fromUS, r.sinceUS = r.latestUS, r.atUS
	}
	now := r.fromUS + (elapsed-r.sinceUS)*slewTenths/10
	switch {
	case clock >= now:
		if now = clock; r.told {
			e.o.Log.Info("the clock has caught up")
		}
		r.behind, r.told = false, false
	case !r.told && now-clock >= clockStepUS:
		r.told = true
		e.o.Log.Warn("the clock is behind the last cycle; time goes on slower than it until it has caught up", "behind",
			time.Duration(now-clock)*time.Microsecond)
		fallthrough
	default:
		r.behind = true
	}
	e.behindUS.Store(now - clock)
	r.latestUS, r.atUS, r.known = now, elapsed, true
	return now
}

// Now estimates the now of a cycle that would start at this moment. Clients compare deadlines with it, because their
// own clocks may differ. It may be called from any goroutine.
func (e *Engine) Now() time.Time {
	return time.UnixMicro(e.o.Clock() + max(0, e.behindUS.Load()))
}
