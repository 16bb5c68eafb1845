package act

import (
	"slices"
	"time"

	"github.com/stintd/stint/ingest/client"
)

const (
	reportEvery = 5 * time.Second
	effectsMost = 1000      // of which the percentiles are told
	effectsLast = time.Hour // likewise
)

// effects are the last starts and stops that took effect, the oldest first.
type effects []effect

type effect struct {
	at  time.Time // local clock
	lag time.Duration
}

// add notes an effect and forgets those that are too many or too old.
func (e *effects) add(now time.Time, lag time.Duration) {
	list := append(*e, effect{at: now, lag: lag})
	first := max(0, len(list)-effectsMost)
	for now.Sub(list[first].at) > effectsLast {
		first++
	}
	*e = slices.Delete(list, 0, first)
}

// percentiles are the lags by nearest rank, in seconds; nil without an effect.
func (e effects) percentiles(of ...int) []*float64 {
	lags := make([]time.Duration, len(e))
	for i := range e {
		lags[i] = e[i].lag
	}
	slices.Sort(lags)
	out := make([]*float64, len(of))
	for i, p := range of {
		if len(lags) > 0 {
			seconds := lags[(p*len(lags)+99)/100-1].Seconds()
			out[i] = &seconds
		}
	}
	return out
}

// effect notes that a start or a stop took effect.
func (a *actor) effect(kind string, lag time.Duration) {
	lag = max(0, lag)
	a.m.lag.WithLabelValues(kind).Observe(lag.Seconds())
	a.effects.add(time.Now(), lag)
}

// reports tells the service the actor's figures, so that they are seen where its decisions are. A report that does not
// arrive is not repeated: the next one replaces it.
func (a *actor) reports() {
	if a.reporting || time.Since(a.reported) < reportEvery {
		return
	}
	a.reporting, a.reported = true, time.Now()
	d, lag := a.drift(), a.effects.percentiles(50, 99)
	r := client.ActorReport{
		NotRunning: int64(d.NotRunning), NotHeld: int64(d.NotHeld), LagP50: lag[0], LagP99: lag[1],
		Effects: int64(len(a.effects)), Late: a.lates, Began: a.clock.at(a.runs), Listed: a.clock.at(a.began),
	}
	for _, rows := range a.running {
		r.Running += int64(len(rows))
	}
	a.spawn(func() func() {
		ctx, cancel := a.call()
		defer cancel()
		err := a.c.PutActor(ctx, a.o.Source, r)
		return func() {
			a.reporting = false
			if err != nil {
				a.log.Debug("the service did not take the actor's figures", "error", err)
			}
		}
	})
}
