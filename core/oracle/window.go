package oracle

import (
	"time"

	"github.com/stintd/stint/core/plan"
)

// epochUS is the time 0 of the oracle, 2026-01-05T00:00:00Z, a Monday.
const epochUS = 1767571200e6

// window is the window of an MD plan that is open now, by the wall clock of the policy's time zone (PLAN-1): one that
// began today, or one that began yesterday and passes midnight.
func (c *Cluster) window(in int) *plan.MDWindow {
	at := time.UnixMicro(epochUS + c.nowUS).In(c.p.Location)
	minute, today := int32(at.Hour()*60+at.Minute()), (int(at.Weekday())+6)%7
	m := &c.p.MDPlans[in]
	for i := range m.Windows {
		w := &m.Windows[i]
		begins := func(day int) bool { return w.Days>>day&1 == 1 }
		overnight := w.To <= w.From
		if begins(today) && minute >= w.From && (overnight || minute < w.To) ||
			begins((today+6)%7) && overnight && minute < w.To {
			return w
		}
	}
	panic("oracle: no window is open")
}
