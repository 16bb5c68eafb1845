package md

import (
	"slices"

	"github.com/stintd/stint/core/cluster"
)

// asks is what those who are short ask for, each ask once. They are dealt out to two goroutines: judging one changes nothing that another one goes
// by, once the rungs of all are laid.
type asks struct {
	order  []int32       // places of the short, those that ask for the same together
	from   []int32       // by ask, and one more: where its own begin in order
	rung   []*rung       // of the asks that are dealt out, by dimension needed
	first  []int32       // by ask that is dealt out, and one more: where its rungs begin
	listed chan struct{} // closed when they are listed
	laid   chan struct{} // closed when all is laid that judging goes by
	deal   chan int32    // the asks that nobody has taken
	by     [2]asked
}

// begin readies it for a cycle's judging: who helps waits until the asks are laid.
func (l *asks) begin() {
	l.listed, l.laid, l.deal = make(chan struct{}), make(chan struct{}), make(chan int32)
	l.order, l.first = l.order[:0], l.first[:0]
	close(l.deal) // so far there is nothing to be taken
	for side := range l.by {
		l.by[side].side, l.by[side].borne = side, l.by[side].borne[:0]
	}
}

// askedAt is what one asks for, by its place among those who may be short.
type askedAt struct {
	ask
	at int32
}

// list lists the asks of those who have a place among the short. O(those who may be).
func (l *asks) list(subs []judged, asked []askedAt, place []int32) {
	l.from = l.from[:0]
	for i := range asked {
		at := place[asked[i].at]
		if at == cluster.NoID {
			continue
		}
		if n := len(l.order); n == 0 || subs[l.order[n-1]].ask != asked[i].ask {
			l.from = append(l.from, int32(n))
		}
		l.order = append(l.order, at)
	}
	l.from = append(l.from, int32(len(l.order)))
}

// count is how many asks there are.
func (l *asks) count() int { return len(l.from) - 1 }

// of is the places of the short who ask one.
func (l *asks) of(i int) []int32 { return l.order[l.from[i]:l.from[i+1]] }

// rungs is those of an ask, nil where it was not dealt out.
func (l *asks) rungs(i int) []*rung {
	if i+1 < len(l.first) {
		return l.rung[l.first[i]:l.first[i+1]]
	}
	return nil
}

// layAsks lays what judging goes by and does not make itself: rungs, as many as are kept, graces and requirements. It deals out the asks that have all
// their rungs, and tells how many these are.
func (m *Planner) layAsks(subs []judged) (dealt int) {
	v, l := &m.sight, &m.reason.asks
	v.ask++
	l.rung, l.first = l.rung[:0], append(l.first, 0)
	for dealt < l.count() && v.words <= lastBelow {
		key := subs[l.of(dealt)[0]].ask
		m.desk.Selected(key.need)
		for d, u := range m.s.Shape.Size(key.shape) {
			if u > 0 {
				l.rung = append(l.rung, v.rung(d, u))
			}
		}
		l.first, dealt = append(l.first, int32(len(l.rung))), dealt+1
	}
	var graces []int64
	for i := range subs {
		if us := m.policy.ReclaimUS[subs[i].leaf]; !slices.Contains(graces, us) {
			graces = append(graces, us)
		}
	}
	for depth := range v.tier {
		for _, us := range graces {
			m.withinGrace(int32(depth), us)
		}
	}
	l.deal = make(chan int32, dealt)
	for i := range dealt {
		l.deal <- int32(i)
	}
	close(l.deal)
	return dealt
}

// judgeDealt judges asks until none is left to be taken.
func (m *Planner) judgeDealt(subs []judged, side int) {
	l := &m.reason.asks
	for i := range l.deal {
		m.judgeAsk(&l.by[side], subs, int(i))
	}
}

// helpJudge judges what judgeShort deals out beside that.
func (m *Planner) helpJudge() {
	<-m.reason.asks.laid
	m.judgeDealt(m.reason.subs, 1)
}

// bearing is a parcel that is large enough for a unit.
type bearing struct {
	of ask
	k  cluster.ParcelID
}

// keepBears keeps what was found of such parcels, after judging.
func (m *Planner) keepBears() {
	r := &m.reason
	for side := range r.asks.by {
		for _, one := range r.asks.by[side].borne {
			if len(r.bears) > lastBearing || r.bears == nil {
				r.bears = map[ask]cluster.ParcelID{}
			}
			r.bears[one.of] = one.k
		}
	}
}
