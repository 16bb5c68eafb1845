package measure

import "github.com/stintd/stint/core/decision"

// held is where units of a sub-allocation stand, by the codes of a cycle's dictionaries.
type held struct{ plan, consumer, allocation, sub, host int32 }

// batch is units that were granted at an instant.
type batch struct {
	units   int64
	sinceUS int64
}

// lost counts the work that reclaim stops: of units that come back because they were reclaimed, how long they had run.
type lost struct {
	firstUS int64 // when units that are in no batch were granted: by the first cycle
	batches map[held][]batch
	unitUS  int64
}

// after takes note of a cycle after the first.
func (l *lost) after(out *decision.Cycle) {
	now := out.Summary.NowUS
	r := &out.Releases
	for i, units := range r.Units {
		at := held{r.Plan.Code[i], r.Consumer.Code[i], r.Allocation.Code[i], r.Sub.Code[i], r.Host.Code[i]}
		reclaimed := r.Reclaim[i] > 0 && r.Cause.Code[i] != decision.CauseDone
		for units > 0 {
			n, since := units, l.firstUS
			if all := l.batches[at]; len(all) > 0 { // the newest first (CYC-5)
				last := &all[len(all)-1]
				n, since = min(units, last.units), last.sinceUS
				if last.units -= n; last.units == 0 {
					l.batches[at] = all[:len(all)-1]
				}
			}
			if reclaimed {
				l.unitUS += n * (now - since)
			}
			units -= n
		}
	}
	g := &out.Grants
	for i, units := range g.Units {
		at := held{g.Plan.Code[i], g.Consumer.Code[i], g.Allocation.Code[i], g.Sub.Code[i], g.Host.Code[i]}
		l.batches[at] = append(l.batches[at], batch{units, now})
	}
}
