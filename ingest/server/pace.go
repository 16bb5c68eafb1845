package server

import "time"

// pace is the least rate of a transfer. Whoever is faster gets no credit for it beyond the grace: a transfer that
// stands still ends a grace later, however much came before.
type pace struct {
	rate  int64 // bytes a second
	grace time.Duration
	due   time.Time // when the transfer is too slow, unless more comes
	last  time.Time // the end of all
}

func newPace(rate int64, grace, most time.Duration) pace {
	now := time.Now()
	return pace{rate: rate, grace: grace, due: now.Add(min(grace, most)), last: now.Add(most)}
}

// moved counts bytes, and gives the new end.
func (p *pace) moved(bytes int64) time.Time {
	p.due = p.due.Add(time.Duration(float64(bytes) / float64(p.rate) * float64(time.Second)))
	for _, most := range []time.Time{time.Now().Add(p.grace), p.last} {
		if p.due.After(most) {
			p.due = most
		}
	}
	return p.due
}
