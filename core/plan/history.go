package plan

import (
	"slices"
	"time"
)

// Bounds of share: {half_life, weight} on a plan (D-164).
var (
	halfLifeLeastUS = time.Minute.Microseconds()
	halfLifeMostUS  = (365 * 24 * time.Hour).Microseconds()
)

const (
	historyMax = 10 * milli
	// lowerableMax is the greatest ratio in a plan with a half-life: hundredths of the ratios of all siblings have a
	// sum.
	lowerableMax int64 = 1_000_000_000_000
)

// history reads share: {half_life: 24h, weight: 0.5} of a plan.
func (r *reader) history(d *MDPlan, v value) {
	f, ok := r.fields(v, mdHistoryObject.names...)
	if !ok {
		return
	}
	if at, ok := r.need(v, f, "half_life"); ok {
		us, ok := r.duration(at)
		switch {
		case ok && us < halfLifeLeastUS:
			r.fault(at, "a half-life is at least %s; without share.half_life what was used does not count",
				Lasting(halfLifeLeastUS))
		case ok && us > halfLifeMostUS:
			r.fault(at, "a half-life is at most %s", Lasting(halfLifeMostUS))
		case ok:
			d.HalfLifeUS = us
		}
	}
	if at, ok := f.get("weight"); ok {
		if n, ok := r.thousandths(at, 1, historyMax); ok {
			d.HistoryMilli = n
		}
	}
}

// withoutHistory reads the mapping of a slot plan, and refuses the half-life that MD plans alone have.
func (r *reader) withoutHistory(v value) (f fields, ok bool) {
	f, ok = r.fields(v, append(slices.Clone(slotObject.names), "share")...)
	if at, has := f.get("share"); has {
		r.fault(at,
			"a slot plan does not remember what was used: half_life lowers the ratios of MD plans alone (D-164)")
	}
	return f, ok
}

// ratio reads a share ratio of a plan; with a half-life it is bounded, as hundredths of it are divided by.
func (r *reader) ratio(d *MDPlan, v value) int64 {
	n, ok := r.whole(v)
	if ok && d.HalfLifeUS > 0 && n > lowerableMax {
		r.fault(v, "in a plan with share.half_life a ratio is at most %d", lowerableMax)
	}
	return n
}
