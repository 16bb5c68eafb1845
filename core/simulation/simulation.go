// Package simulation plays forward what demand that is not there would get: from whom, what would stop for it, and when
// it would have all of it. It decides by cycles of a copy of the state; units end after the run times that are known.
package simulation

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
)

// Source is whose demand it is that is asked for. No client's source may have a slash, so that it meets none.
const Source = "/simulated"

// Asked is what is not there.
type Asked struct {
	Demand    *cluster.DemandTable
	RuntimeUS []int64            // by row of Demand: how long a unit runs; 0: not said. nil: of none
	Hosts     *cluster.HostTable // hosts that are added, or have other capacity; nil: none
	Runtimes  Runtimes           // of consumers
}

// Options bound a simulation.
type Options struct {
	HorizonUS int64 // how far it looks ahead; 0: no further than the next cycle
	EveryUS   int64 // between two cycles; 0: the interval of the policy
	// how many futures are drawn where run times are spread; 1: none, there is the one that is as expected
	Plays     int
	CyclesMax int // of a future
}

// stopsMax bounds the rows of what would stop.
const stopsMax = 1_000

// ErrStopped is the error of a simulation whose first cycle was given up.
var ErrStopped = errors.New("the next cycle takes longer than a simulation may")

// Run plays what is asked for on a state that is the caller's own, from the cycle at nowUS on, until it has all, the
// horizon comes, or ctx is done: then the cycle under way is given up, and the answer is as far as cycles were decided.
// Errors: tables that the state refuses; ErrStopped.
func Run(ctx context.Context, s *cluster.State, nowUS int64, asked *Asked, o Options) (*Answer, error) {
	s.Stop = done(ctx)
	if asked.Hosts != nil && asked.Hosts.Rows > 0 {
		if err := s.SetHosts(asked.Hosts, false); err != nil {
			return nil, err
		}
	}
	if err := s.SetDemand(Source, asked.Demand); err != nil {
		return nil, err
	}
	every := o.EveryUS
	if every <= 0 {
		every = s.Policy.IntervalUS
	}
	nowUS = max(nowUS, s.NowUS)
	first := newPlay(s, asked, 0, nowUS)
	drawn := first.spread && o.Plays > 1 && o.HorizonUS > 0
	plays := 1
	if drawn {
		plays += o.Plays
	}
	a := &Answer{Cycle: s.Cycle + 1, Revision: s.Revision, Every: time.Duration(every * 1000).String(), Stops: []Stop{}}
	a.Rows = first.rows()
	until := int64(0)
	times := make([]struct{ first, all []int64 }, len(a.Rows))
	for n := range plays {
		if n > 0 && ctx.Err() != nil {
			break
		}
		own := s
		if n < plays-1 {
			own = s.Clone()
		}
		p := first
		if n > 0 {
			p = newPlay(own, asked, n, nowUS)
		}
		p.s = own
		whole := p.run(ctx, nowUS, every, &o, a)
		if n == 0 && !p.decided {
			return nil, ErrStopped
		}
		until = max(until, p.lastUS)
		if n == 0 {
			p.tell(a, whole)
			if whole && a.Cycles == 1 { // which is the same in all futures
				break
			}
			continue
		}
		if !whole { // what it did not come to is not known
			break
		}
		a.Plays++
		for i := range times {
			times[i].first, times[i].all = append(times[i].first, p.firstUS[i]), append(times[i].all, p.allUS[i])
		}
	}
	a.Until = rfc3339(until)
	if a.Drawn = a.Plays > 0; a.Drawn {
		for i := range a.Rows {
			a.Rows[i].First, a.Rows[i].All = quantiles(times[i].first), quantiles(times[i].all)
		}
	}
	return a, nil
}

// done tells whether a context is done, at little cost.
func done(ctx context.Context) func() bool {
	return func() bool {
		select {
		case <-ctx.Done():
			return true
		default:
			return false
		}
	}
}

// key is what a sub-allocation is called, in the codes of the state.
type key struct{ plan, consumer, allocation, sub int32 }

// play is one future.
type play struct {
	s       *cluster.State
	number  int // 0: each unit runs for the median of what is left to it
	runner  cycle.Runner
	out     decision.Cycle
	source  int32
	row     map[key]int // of what is asked for
	keys    []key
	asked   *Asked
	of      [][]quantile // by consumer, as far as it was looked up
	known   []bool
	spread  bool
	unknown int64 // units that go on for ever, as nobody said how long they run
	pending []end
	draws   uint64

	wanted, got, most, hosts []int64
	firstUS, allUS           []int64 // 0: it did not come to that
	runtime                  []int64
	sources                  []map[origin]int64
	stops                    map[stop]*stopped
	victims                  map[key]bool // those of stops
	others                   int64
	lastUS                   int64
	decided                  bool // one cycle was
}

// origin is where units come from.
type origin struct{ origin, pool, lender int32 }

// stop is what is taken back of somebody for what is asked for.
type stop struct {
	key
	reason int32
}

type stopped struct {
	units, earliest, latest int64
}

// end is units that will be done at an instant.
type end struct {
	key
	host  int32
	units int64
	dueUS int64
}

func newPlay(s *cluster.State, asked *Asked, number int, nowUS int64) *play {
	p := &play{
		s: s, number: number, asked: asked, row: map[key]int{}, stops: map[stop]*stopped{}, victims: map[key]bool{},
		of: make([][]quantile, s.Consumer.Len()), known: make([]bool, s.Consumer.Len()), source: cluster.NoID,
	}
	if id, ok := s.Source.Find([]byte(Source)); ok {
		p.source = id
	}
	var subs []cluster.SubID
	for sub := range s.Sub.Live() {
		if int32(s.Sub.Source[sub]) == p.source {
			subs = append(subs, sub)
		}
	}
	slices.SortFunc(subs, func(a, b cluster.SubID) int { return int(s.Sub.Seq[a] - s.Sub.Seq[b]) })
	for _, sub := range subs {
		k := p.keyOf(sub)
		p.row[k], p.keys = len(p.keys), append(p.keys, k)
		p.wanted = append(p.wanted, s.Sub.Wanted[sub])
		p.runtime = append(p.runtime, 0)
		p.sources = append(p.sources, map[origin]int64{})
	}
	n := len(p.keys)
	for _, column := range []*[]int64{&p.got, &p.most, &p.hosts, &p.firstUS, &p.allUS} {
		*column = make([]int64, n)
	}
	p.runtimes()
	p.running(nowUS)
	return p
}

// keyOf is what a sub-allocation is called.
func (p *play) keyOf(sub cluster.SubID) key {
	s := p.s
	return key{s.Sub.Plan[sub], int32(s.Sub.Consumer[sub]), s.Alloc.Name[s.Sub.Alloc[sub]], s.Sub.Name[sub]}
}

// runtimes notes how long units of what is asked for run, by the rows of the table.
func (p *play) runtimes() {
	t := p.asked.Demand
	if p.asked.RuntimeUS == nil {
		return
	}
	code := func(names *cluster.Names, c *cluster.TextColumn, row int) int32 {
		if at := c.At(row); at != cluster.Null {
			if id, ok := names.Find(c.Names.Bytes(at)); ok {
				return id
			}
		}
		return 0 // of labels the empty one
	}
	type rowKey struct{ consumer, allocation, sub int32 }
	us := map[rowKey]int64{}
	for row := range t.Rows {
		k := rowKey{code(&p.s.Consumer, &t.Consumer, row), code(&p.s.Label, &t.Allocation, row),
			code(&p.s.Label, &t.Sub, row)}
		us[k] = p.asked.RuntimeUS[row]
	}
	for i, k := range p.keys {
		p.runtime[i] = us[rowKey{k.consumer, k.allocation, k.sub}]
	}
}

// running draws when what runs now ends: not before now, or it would have been told.
func (p *play) running(nowUS int64) {
	h := &p.s.Holding
	for q, sub := range h.Sub {
		if sub == cluster.NoID || h.Units[q] == 0 || p.s.Sub.Orphan[sub] {
			continue
		}
		k := p.keyOf(sub)
		list := p.spreadOf(k.consumer)
		if len(list) == 0 {
			p.unknown += h.Units[q]
			continue
		}
		host := int32(p.s.Plans[k.plan].Parcels.Host[h.Parcel[q]])
		age := max(0, nowUS-p.s.Times.Of(h.Granted[q]))
		p.ends(k, host, h.Units[q], nowUS-age, age, list)
	}
}

// spreadOf is the distribution of a consumer's run times: its own, or that of the nearest above it that has one.
func (p *play) spreadOf(consumer int32) []quantile {
	if !p.known[consumer] {
		p.known[consumer], p.of[consumer] = true, p.asked.Runtimes.of(p.s.Consumer.String(consumer))
	}
	list := p.of[consumer]
	p.spread = p.spread || len(list) > 1
	return list
}

// ends notes the ends of units that began at an instant and have run for so long.
func (p *play) ends(k key, host int32, units, beganUS, age int64, list []quantile) {
	if len(list) == 1 || p.number == 0 {
		p.pending = append(p.pending, end{k, host, units, beganUS + longer(list, age, partsWhole/2)})
		return
	}
	for range units {
		p.pending = append(p.pending, end{k, host, 1, beganUS + longer(list, age, p.draw())})
	}
}

// draw is a part of partsWhole by lot: the same for the same play and number of the draw (splitmix64).
func (p *play) draw() int64 {
	p.draws++
	z := (uint64(p.number)<<40 + p.draws) * 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return int64((z ^ z>>31) % partsWhole)
}

// run decides cycles until all that is asked for is there, the horizon comes, or nothing will change any more; false:
// it was ended before.
func (p *play) run(ctx context.Context, nowUS, everyUS int64, o *Options, a *Answer) bool {
	until := nowUS + o.HorizonUS
	for n := 1; ; n++ {
		if n > 1 {
			p.finish(nowUS)
		}
		if !p.runner.Try(p.s, nowUS, &p.out) {
			return false
		}
		p.lastUS, p.decided = nowUS, true
		p.observe(nowUS)
		if n == 1 && p.number == 0 {
			p.next(a)
		}
		if !slices.Contains(p.allUS, 0) {
			return true
		}
		next := nowUS + everyUS
		if p.out.Summary.Stable() { // until something of nextDue, cycles would decide the same
			due := p.nextDue(until)
			if due > until {
				return true
			}
			next = max(next, nowUS+(due-nowUS+everyUS-1)/everyUS*everyUS)
		}
		if next > until {
			return true
		}
		if n >= o.CyclesMax || ctx.Err() != nil {
			return false
		}
		nowUS = next
	}
}

// nextDue is when the first unit ends, window opens, budget is used up or renewed, or ratio counts otherwise after the
// last cycle; beyond until: not before.
func (p *play) nextDue(until int64) int64 {
	due := until + 1
	for i := range p.pending {
		due = min(due, p.pending[i].dueUS)
	}
	return p.nextWindow(cycle.NextDue(p.s, due))
}

// minuteUS is how finely windows begin and end.
const minuteUS = 60_000_000

// nextWindow is when a plan's window, or the one that it prepares for, is another, if that is before an instant.
func (p *play) nextWindow(before int64) int64 {
	where := p.s.Policy.Location
	for i := range p.s.Plans {
		pl := &p.s.Plans[i]
		at, lead, windows := (func(int64) int)(nil), int64(0), 0
		if pl.MD != nil {
			at = func(us int64) int { return pl.MD.WindowAt(us, where) }
			lead, windows = pl.MD.LeadUS, len(pl.MD.Windows)
		} else {
			at = func(us int64) int { return pl.Slots.WindowAt(us, where) }
			lead, windows = pl.Slots.LeadUS, len(pl.Slots.Windows)
		}
		if windows < 2 {
			continue
		}
		now, coming := at(p.lastUS), at(p.lastUS+lead)
		for us := p.lastUS - p.lastUS%minuteUS + minuteUS; us < before; us += minuteUS {
			if at(us) != now || at(us+lead) != coming {
				before = us
			}
		}
	}
	return before
}

// finish gives back what is done by now.
func (p *play) finish(nowUS int64) {
	s := p.s
	t := &cluster.HoldingTable{Name: "simulated ends"}
	t.Consumer.Names, t.Allocation.Names, t.Sub.Names, t.Host.Names = &s.Consumer, &s.Label, &s.Label, &s.Host.Names
	p.pending = slices.DeleteFunc(p.pending, func(e end) bool {
		if e.dueUS > nowUS {
			return false
		}
		t.Consumer.Code = append(t.Consumer.Code, e.consumer)
		t.Allocation.Code = append(t.Allocation.Code, e.allocation)
		t.Sub.Code, t.Host.Code = append(t.Sub.Code, e.sub), append(t.Host.Code, e.host)
		t.Units, t.Done = append(t.Units, e.units), append(t.Done, true)
		t.Rows++
		return true
	})
	if t.Rows == 0 {
		return
	}
	if _, _, err := s.Release(t); err != nil {
		panic("BUG: units that run cannot end: " + err.Error())
	}
}

// observe takes note of what a cycle gave, and of what came back before it was done.
func (p *play) observe(nowUS int64) {
	p.lost()
	g := &p.out.Grants
	for row, units := range g.Units {
		k := key{g.Plan.Code[row], g.Consumer.Code[row], g.Allocation.Code[row], g.Sub.Code[row]}
		i, ours := p.row[k]
		list := []quantile(nil)
		if ours = ours && g.Source.Code[row] == p.source; ours {
			p.got[i] += units
			p.hosts[i]++
			p.sources[i][origin{g.Origin.Code[row], g.Pool.Code[row], g.Lender.Code[row]}] += units
			if p.runtime[i] > 0 {
				list = []quantile{{partsWhole, p.runtime[i]}}
			}
		}
		if list == nil {
			list = p.spreadOf(k.consumer)
		}
		if len(list) > 0 {
			p.ends(k, g.Host.Code[row], units, nowUS, 0, list)
		}
	}
	for i := range p.keys {
		p.most[i] = max(p.most[i], p.got[i])
		if p.got[i] > 0 && p.firstUS[i] == 0 {
			p.firstUS[i] = nowUS
		}
		if p.got[i] >= p.wanted[i] && p.allUS[i] == 0 {
			p.allUS[i] = nowUS
		}
	}
	if p.number == 0 {
		p.taken()
	}
}

// lost forgets the ends of units that came back before, the newest first.
func (p *play) lost() {
	type where struct {
		key
		host int32
	}
	var lost map[where]int64
	r := &p.out.Releases
	for row, units := range r.Units {
		if c := r.Cause.Code[row]; c == decision.CauseDone || c == decision.CauseClient {
			continue
		}
		if lost == nil {
			lost = map[where]int64{}
		}
		k := key{r.Plan.Code[row], r.Consumer.Code[row], r.Allocation.Code[row], r.Sub.Code[row]}
		lost[where{k, r.Host.Code[row]}] += units
		if i, ours := p.row[k]; ours {
			p.got[i] -= units
		}
	}
	if lost == nil {
		return
	}
	for i := len(p.pending) - 1; i >= 0; i-- {
		e := &p.pending[i]
		at := where{e.key, e.host}
		if n := min(lost[at], e.units); n > 0 {
			e.units -= n
			lost[at] -= n
		}
	}
	p.pending = slices.DeleteFunc(p.pending, func(e end) bool { return e.units == 0 })
}

// taken takes note of what is taken back for what is asked for, with the rest of gangs that lose units to it, and
// otherwise.
func (p *play) taken() {
	t := &p.out.Reclaims
	for row, units := range t.Units {
		if t.Action.Code[row] == decision.ActionCancelled {
			units = -units
		}
		for_ := key{t.Plan.Code[row], t.ForConsumer.Code[row], t.ForAllocation.Code[row], t.ForSub.Code[row]}
		k := stop{key{t.Plan.Code[row], t.Consumer.Code[row], t.Allocation.Code[row], t.Sub.Code[row]},
			t.Reason.Code[row]}
		_, ours := p.row[for_]
		if !ours && (k.reason != decision.ReclaimGang || !p.victims[k.key]) {
			p.others += units
			continue
		}
		p.victims[k.key] = true
		at := p.stops[k]
		if at == nil {
			at = &stopped{earliest: t.Deadline[row], latest: t.Deadline[row]}
			p.stops[k] = at
		}
		at.units += units
		at.earliest, at.latest = min(at.earliest, t.Deadline[row]), max(at.latest, t.Deadline[row])
	}
}
