package simulation

import (
	"cmp"
	"slices"
	"time"

	"github.com/stintd/stint/core/decision"
)

// Answer is what demand that is not there would get.
type Answer struct {
	Cycle    int64  `json:"cycle"` // the next one
	Now      string `json:"now"`
	Revision int64  `json:"revision"`
	Until    string `json:"until"` // as far as was looked
	Whole    bool   `json:"whole"` // false: time or cycles ran out before the horizon
	Every    string `json:"every"` // between two cycles that were decided: times are true to that
	Cycles   int64  `json:"cycles"`
	// times are percentiles of futures that were drawn; else of one, that is as expected
	Drawn   bool  `json:"drawn"`
	Plays   int   `json:"plays"`           // futures that were drawn and played to the end
	Unknown int64 `json:"units_unknown"`   // units that run now, of which nobody said how long: they go on for ever
	Others  int64 `json:"units_otherwise"` // put under reclaim in the same time, for others or by a rule
	Rows    []Row `json:"rows"`

	RowsMore int `json:"rows_more,omitempty"` // rows that an answer left out

	Stops []Stop `json:"stops"`
	More  int    `json:"stops_more,omitempty"` // rows of stops that were left out
}

// Row is a sub-allocation that is asked for.
type Row struct {
	Plan       string `json:"plan"`
	Consumer   string `json:"consumer"`
	Allocation string `json:"allocation"`
	Sub        string `json:"sub"`
	Units      int64  `json:"units"`
	Now        int64  `json:"units_now"`  // that the next cycle would give
	Most       int64  `json:"units_most"` // that it would have had by the end, those that are done among them
	Hosts      int64  `json:"hosts_now"`
	From       []From `json:"from"`
	Short      []Why  `json:"short"` // after the next cycle
	First      Times  `json:"first"` // when it would have a unit
	All        Times  `json:"all"`   // when it would have had all of them
}

// From is whose units are given.
type From struct {
	Origin string  `json:"origin"`
	Pool   *string `json:"pool"`
	Lender *string `json:"lender"`
	Units  int64   `json:"units"`
}

// Why is why units are short.
type Why struct {
	Reason    string  `json:"reason"`
	Dimension *string `json:"dimension"`
	Blocker   *string `json:"blocker"`
	Units     int64   `json:"units_short"`
}

// Stop is what would be taken back of somebody for what is asked for.
type Stop struct {
	Plan       string  `json:"plan"`
	Consumer   string  `json:"consumer"`
	Allocation *string `json:"allocation"` // null: not for the caller to know
	Sub        *string `json:"sub"`
	Units      int64   `json:"units"`
	Reason     string  `json:"reason"`
	Earliest   string  `json:"earliest"` // deadlines
	Latest     string  `json:"latest"`
}

// Times are when something would be, null: not as far as was looked. Without drawn futures all three are the same.
type Times struct {
	P10 *string `json:"p10"`
	P50 *string `json:"p50"`
	P90 *string `json:"p90"`
}

func rfc3339(us int64) string { return time.UnixMicro(us).UTC().Format(time.RFC3339) }

// quantiles are times of futures, 0: it did not come to that.
func quantiles(us []int64) Times {
	list := slices.Clone(us)
	slices.SortFunc(list, func(a, b int64) int { return cmp.Compare(uint64(a-1), uint64(b-1)) }) // 0 is last
	at := func(percent int) *string {
		if v := list[(len(list)*percent+99)/100-1]; v != 0 {
			text := rfc3339(v)
			return &text
		}
		return nil
	}
	return Times{at(10), at(50), at(90)}
}

// rows are what is asked for, without what comes of it.
func (p *play) rows() []Row {
	s := p.s
	rows := make([]Row, len(p.keys))
	for i, k := range p.keys {
		rows[i] = Row{
			Plan: s.Plans[k.plan].Name, Consumer: s.Consumer.String(k.consumer),
			Allocation: s.Label.String(k.allocation), Sub: s.Label.String(k.sub), Units: p.wanted[i], From: []From{},
			Short: []Why{},
		}
	}
	return rows
}

// next tells what the next cycle gives.
func (p *play) next(a *Answer) {
	a.Now, a.Unknown = rfc3339(p.lastUS), p.unknown
	for i := range p.keys {
		a.Rows[i].Now, a.Rows[i].Hosts = p.got[i], p.hosts[i]
	}
	t := &p.out.Shortfalls
	for row, units := range t.UnitsShort {
		k := key{t.Plan.Code[row], t.Consumer.Code[row], t.Allocation.Code[row], t.Sub.Code[row]}
		if i, ours := p.row[k]; ours {
			why := Why{t.Reason.At(row), word(&t.Dimension, row), word(&t.Blocker, row), units}
			a.Rows[i].Short = append(a.Rows[i].Short, why)
		}
	}
}

// word is a text, nil where there is none.
func word(c *decision.Coded, row int) *string {
	if c.Code[row] == decision.Null {
		return nil
	}
	text := c.At(row)
	return &text
}

// consumer is the path of a consumer, nil for none.
func (p *play) consumer(code int32) *string {
	if code == decision.Null {
		return nil
	}
	path := p.s.Consumer.String(code)
	return &path
}

// tell writes down what came of the first play. whole tells whether it was played to its end.
func (p *play) tell(a *Answer, whole bool) {
	s := p.s
	a.Whole, a.Others, a.Cycles = whole, p.others, s.Cycle-a.Cycle+1
	for i := range p.keys {
		r := &a.Rows[i]
		r.Most, r.First, r.All = p.most[i], quantiles(p.firstUS[i:i+1]), quantiles(p.allUS[i:i+1])
		for from, units := range p.sources[i] {
			f := From{Origin: decision.Origins[from.origin], Units: units}
			f.Pool, f.Lender = p.consumer(from.pool), p.consumer(from.lender)
			r.From = append(r.From, f)
		}
		slices.SortFunc(r.From, func(a, b From) int {
			return cmp.Or(cmp.Compare(b.Units, a.Units), cmp.Compare(a.Origin, b.Origin),
				cmp.Compare(of(a.Pool), of(b.Pool)), cmp.Compare(of(a.Lender), of(b.Lender)))
		})
	}
	for k, at := range p.stops {
		if at.units <= 0 {
			continue
		}
		allocation, sub := s.Label.String(k.allocation), s.Label.String(k.sub)
		a.Stops = append(a.Stops, Stop{
			Plan: s.Plans[k.plan].Name, Consumer: s.Consumer.String(k.consumer), Allocation: &allocation, Sub: &sub,
			Units: at.units, Reason: decision.ReclaimReasons[k.reason], Earliest: rfc3339(at.earliest),
			Latest: rfc3339(at.latest),
		})
	}
	slices.SortFunc(a.Stops, func(a, b Stop) int {
		return cmp.Or(cmp.Compare(b.Units, a.Units), cmp.Compare(a.Plan, b.Plan), cmp.Compare(a.Consumer, b.Consumer),
			cmp.Compare(*a.Allocation, *b.Allocation), cmp.Compare(*a.Sub, *b.Sub), cmp.Compare(a.Reason, b.Reason))
	})
	if n := len(a.Stops); n > stopsMax {
		a.Stops, a.More = a.Stops[:stopsMax], n-stopsMax
	}
}

func of(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
