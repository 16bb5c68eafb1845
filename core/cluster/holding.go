package cluster

import (
	"fmt"
	"slices"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// Holdings are units of one sub-allocation on one parcel with the same origin,
// lender, pool and grant cycle, by HoldingID. Rows of one sub-allocation and of
// one parcel are chained, the newest first.
type Holdings struct {
	Sub          []SubID // NoID: the row is free
	Parcel       []ParcelID
	Units        []int64
	Origin       []int32 // decision.Origins
	Pool         []ConsumerID
	Lender       []ConsumerID
	Granted      []int64 // cycle
	NextOfSub    []HoldingID
	PrevOfSub    []HoldingID
	NextOnParcel []HoldingID
	PrevOnParcel []HoldingID
	Set          []SetID     // the reclaim that the units are under, NoID: none
	NextOfSet    []HoldingID // set with Set
	Due          []int64     // set with Set: µs, when the units are to be given back
	Device       []Devices   // on which each unit lies; nil: no plan has devices
	onDevices    bool        // some plan has
	free         []HoldingID
}

// Len is the number of rows, free ones included.
func (h *Holdings) Len() int { return len(h.Sub) }

// Used is the number of rows that are not free.
func (h *Holdings) Used() int { return len(h.Sub) - len(h.free) }

// slackPart is which part of all rows are kept free when columns have to grow.
const slackPart = 16

// ReserveHoldings makes at least so many free rows of holdings, so that adding them does not grow all
// columns step by step. Their columns but Sub are not set.
func (s *State) ReserveHoldings(rows int) {
	h := &s.Holding
	first := len(h.Sub)
	rows -= len(h.free)
	if rows <= 0 {
		return
	}
	rows += (first + rows) / slackPart // or those of the next cycle would move all columns to new memory
	t, rest := h.schema(), h.schema()
	t.Lines, rest.Lines = t.Lines[:len(t.Lines)/2], t.Lines[len(t.Lines)/2:]
	s.both(rows >= twoMin, func() { t.Resize(first + rows) }, func() { rest.Resize(first + rows) })
	for q := first; q < first+rows; q++ {
		h.Sub[q] = NoID
	}
	h.free = spare(h.free, first, rows)
}

// spare appends rows that are new to those that are free, so that the lowest is taken first.
func spare[ID ~int32](free []ID, first, rows int) []ID {
	free = slices.Grow(free, rows)
	for id := first + rows - 1; id >= first; id-- {
		free = append(free, ID(id))
	}
	return free
}

// take takes a row of a table that is free; there are some.
func take[ID ~int32](free *[]ID) ID {
	n := len(*free) - 1
	id := (*free)[n]
	*free = (*free)[:n]
	return id
}

// more is how many rows a table without free ones grows by.
func more(rows int) int { return max(16, rows/slackPart) }

// Release is units that came back.
type Release struct {
	Sub     SubID
	Parcel  ParcelID
	Host    HostID
	Units   int64
	Cause   int32 // decision.Causes
	Number  int64 // of the reclaim that the units were under, 0: none
	Origin  int32
	Lender  ConsumerID
	Granted int64 // cycle
	Devices Devices
	LostMS  int64 // unit-milliseconds of work that a reclaim stopped before their end; computed in settle
}

// Holding is one row of Holdings.
type Holding struct {
	Sub          SubID
	Parcel       ParcelID
	Units        int64
	Granted      int64
	Origin       int32
	Pool, Lender ConsumerID
	Devices      Devices // on which each unit lies
}

// hold adds a row and takes its units off the parcel.
func (s *State) hold(row Holding) HoldingID {
	p := &s.Plans[s.Sub.Plan[row.Sub]]
	q := s.add(p, &row)
	s.Holding.Units[q] = 0
	s.Grow(q, row.Units)
	return q
}

// add adds a row.
func (s *State) add(p *Plan, row *Holding) HoldingID {
	q := s.row()
	s.put(p, q, row)
	return q
}

// put fills a row and links it at the head of its sub-allocation's and its parcel's lists.
func (s *State) put(p *Plan, q HoldingID, row *Holding) {
	s.fill(q, row)
	s.link(p, q, row.Parcel)
}

// fill fills a row and links it at the head of its sub-allocation's list.
func (s *State) fill(q HoldingID, row *Holding) {
	h, sub := &s.Holding, row.Sub
	first := s.Sub.First[sub]
	h.Sub[q], h.Parcel[q], h.Units[q], h.Granted[q] = sub, row.Parcel, row.Units, row.Granted
	h.Origin[q], h.Pool[q], h.Lender[q], h.Set[q] = row.Origin, row.Pool, row.Lender, NoID
	if h.onDevices {
		h.Device[q] = row.Devices
	}
	if h.PrevOfSub[q], h.NextOfSub[q] = NoID, first; first != NoID {
		h.PrevOfSub[first] = q
	}
	s.Sub.First[sub] = q
}

// link links a row at the head of its parcel's list.
func (s *State) link(p *Plan, q HoldingID, k ParcelID) {
	h, first := &s.Holding, p.Parcels.First[k]
	if h.PrevOnParcel[q], h.NextOnParcel[q] = NoID, first; first != NoID {
		h.PrevOnParcel[first] = q
	}
	p.Parcels.First[k] = q
}

// count adds units to what a sub-allocation and its leaf hold, from a pool and of what a lender lends.
func (s *State) count(sub SubID, pool, lender ConsumerID, units int64) {
	s.Sub.Held[sub] += units
	pair := s.PairOf(sub, pool)
	s.Plans[s.Sub.Plan[sub]].Pairs.Units[pair] += units
}

// row is a row to be filled: a free one, else a new one. New rows come a good many at
// once, and wait as free ones.
func (s *State) row() HoldingID {
	h := &s.Holding
	if len(h.free) == 0 {
		s.ReserveHoldings(more(len(h.Sub)))
	}
	return take(&h.free)
}

// Grow adds units to a holding (of the same grant cycle) from its parcel's free room.
func (s *State) Grow(q HoldingID, units int64) {
	s.recordOf(ChangeGranted, q, units, 0)
	s.grow(q, units)
}

// grow is Grow without a word in the change log.
func (s *State) grow(q HoldingID, units int64) {
	sub := s.Holding.Sub[q]
	s.Holding.Units[q] += units
	s.count(sub, s.Holding.Pool[q], s.Holding.Lender[q], units)
	p := &s.Plans[s.Sub.Plan[sub]]
	p.Parcels.take(s.Holding.Parcel[q], s.Size(sub), units)
	p.takeDevices(s.Holding.Parcel[q], s.Holding.On(q), s.Size(sub), units)
}

// Relabel makes units of a holding that is not under reclaim count as something else: another
// origin, pool and lender. That is no reclaim and no grant (CYC-3). O(1).
func (s *State) Relabel(q HoldingID, units int64, origin int32, pool, lender ConsumerID) {
	h := &s.Holding
	sub := h.Sub[q]
	p := &s.Plans[s.Sub.Plan[sub]]
	p.Dirty, p.again, s.Relabelled = true, true, true
	s.recordOf(ChangeRelabelled, q, -units, 0)
	s.record(ChangeRelabelled, sub, h.Parcel[q], pool, lender, units, 0)
	row := Holding{sub, h.Parcel[q], units, h.Granted[q], origin, pool, lender, h.On(q)}
	if first := s.Sub.First[sub]; first != q && h.Set[first] == NoID && h.Parcel[first] == row.Parcel &&
		h.Granted[first] == row.Granted && h.Origin[first] == origin && h.Pool[first] == pool &&
		h.Lender[first] == lender && h.On(first) == row.Devices {
		h.Units[first] += units // what was relabelled just before
	} else if units < h.Units[q] {
		s.add(p, &row)
	} else {
		h.Origin[q], h.Pool[q], h.Lender[q] = origin, pool, lender
		return
	}
	if h.Units[q] -= units; h.Units[q] == 0 {
		s.unlink(q)
	}
}

// Merge makes one holding of two that differ in nothing but units and place in the lists. O(1).
func (s *State) Merge(into, from HoldingID) {
	s.Holding.Units[into] += s.Holding.Units[from]
	s.Holding.Units[from] = 0
	s.unlink(from)
}

// Shrink takes units off a holding and frees their room; a holding without units
// is removed. It records no release. O(dimensions).
func (s *State) Shrink(q HoldingID, units int64) {
	s.recordOf(ChangeGranted, q, -units, 0)
	s.shrink(q, units)
}

// shrink is Shrink without a word in the change log.
func (s *State) shrink(q HoldingID, units int64) {
	s.grow(q, -units)
	sub, k := s.Holding.Sub[q], s.Holding.Parcel[q]
	p := &s.Plans[s.Sub.Plan[sub]]
	p.Changed, p.Dirty = append(p.Changed, k), true
	if id := s.Holding.Set[q]; s.Holding.Units[q] == 0 {
		s.unlink(q)
	} else if id != NoID {
		s.keep(id)
	}
}

// unlink takes a row that has no units off its lists.
func (s *State) unlink(q HoldingID) {
	if s.Holding.Set[q] != NoID {
		s.leave(q)
	}
	h := &s.Holding
	sub := h.Sub[q]
	s.unlinkOfSub(q, sub)
	s.unlinkOnParcel(&s.Plans[s.Sub.Plan[sub]], q, h.Parcel[q])
	h.drop(q)
}

// unlinkOfSub takes a row off its sub-allocation's list.
func (s *State) unlinkOfSub(q HoldingID, sub SubID) {
	h := &s.Holding
	if n := h.NextOfSub[q]; n != NoID {
		h.PrevOfSub[n] = h.PrevOfSub[q]
	}
	if v := h.PrevOfSub[q]; v != NoID {
		h.NextOfSub[v] = h.NextOfSub[q]
	} else {
		s.Sub.First[sub] = h.NextOfSub[q]
	}
}

// unlinkOnParcel takes a row off its parcel's list.
func (s *State) unlinkOnParcel(p *Plan, q HoldingID, k ParcelID) {
	h := &s.Holding
	if n := h.NextOnParcel[q]; n != NoID {
		h.PrevOnParcel[n] = h.PrevOnParcel[q]
	}
	if v := h.PrevOnParcel[q]; v != NoID {
		h.NextOnParcel[v] = h.NextOnParcel[q]
	} else {
		p.Parcels.First[k] = h.NextOnParcel[q]
	}
}

// drop makes a row that is on no list a free one.
func (h *Holdings) drop(q HoldingID) {
	h.Sub[q], h.Units[q] = NoID, 0
	h.free = append(h.free, q)
}

// release takes units off a holding and records why.
func (s *State) release(q HoldingID, units int64, cause int32) {
	sub, k, number, leaving := s.Holding.Sub[q], s.Holding.Parcel[q], int64(0), int64(0)
	if id := s.Holding.Set[q]; id != NoID {
		number, leaving = s.Set.Number[id], units
		pair := s.PairOf(sub, s.Holding.Pool[q])
		s.Plans[s.Sub.Plan[sub]].Pairs.Leaving[pair] -= units
	}
	s.noteRelease(q, sub, k, units, number, cause)
	s.recordOf(ChangeReleased, q, -units, -leaving)
	s.shrink(q, units)
}

// noteRelease records that units of a holding are released, those of a reclaim with its number.
func (s *State) noteRelease(q HoldingID, sub SubID, k ParcelID, units, number int64, cause int32) {
	s.Released = append(s.Released, Release{
		Number: number, Sub: sub, Parcel: k, Host: s.Plans[s.Sub.Plan[sub]].Parcels.Host[k], Units: units, Cause: cause,
		Origin: s.Holding.Origin[q], Lender: s.Holding.Lender[q], Granted: s.Holding.Granted[q],
		Devices: s.Holding.On(q),
	})
}

// Release gives units back (SPEC chapter 7, `releases`): of a sub-allocation's units on the host the newest first,
// where the row names devices of those there alone. Rows that are done also lower what is wanted. Units beyond what is
// held are counted, not refused, and so are those of an allocation, a host or a consumer that is gone: who gives them
// back may not know yet. A consumer or host that there never was is a bad row. Sums saturate at 2^53.
func (s *State) Release(t *HoldingTable) (released, beyond int64, err error) {
	f := Faults{Table: t.title()}
	rows := s.bindHoldings(t, givenBack, &f)
	of := t.devices(&f)
	if err := f.Err(); err != nil {
		return 0, 0, err
	}
	for i, r := range rows {
		left, cause, on := t.Units[i], decision.CauseClient, Devices(0)
		if of != nil {
			on = of[i]
		}
		if r.sub == NoID {
			beyond = min(beyond+left, NumberMax)
			continue
		}
		if t.Done != nil && t.Done[i] {
			cause = decision.CauseDone
		}
		s.scratch.near = s.heldOn(s.scratch.near, r.sub, r.parcel)
		s.sortNewest(s.scratch.near)
		for _, q := range s.scratch.near {
			if n := min(left, s.Holding.Units[q]); n > 0 && (on == 0 || s.Holding.On(q) == on) {
				s.release(q, n, cause)
				left -= n
				released += n
			}
		}
		if cause == decision.CauseDone {
			s.want(r.sub, max(0, s.Sub.Wanted[r.sub]-(t.Units[i]-left)))
		}
		beyond = min(beyond+left, NumberMax)
	}
	return released, beyond, nil
}

// about is what the rows of a holdings table are about.
type about int

const (
	willRun   about = iota // units that are to be held
	runs                   // units that are held, or will be
	givenBack              // units that may be held, of what may be gone
)

type boundHolding struct {
	sub    SubID
	parcel ParcelID // the first of the host
}

// on tells whether units of a holding are on the host that a parcel is of.
func (s *State) on(q HoldingID, k ParcelID) bool {
	p, at := &s.Plans[s.Sub.Plan[s.Holding.Sub[q]]].Parcels, s.Holding.Parcel[q]
	return at == k || p.Host[at] == p.Host[k]
}

// bindHoldings resolves the rows of a holdings table. Rows with faults have sub NoID, and so have
// those of units given back that are of nothing any more.
func (s *State) bindHoldings(t *HoldingTable, what about, f *Faults) []boundHolding {
	rows, held := make([]boundHolding, t.Rows), what != willRun
	by, away := namesakes{s: s}, absence{}
	if held {
		away = s.absent()
	}
	for i := range t.Rows {
		rows[i].sub = NoID
		host := t.Host.Names.Bytes(t.Host.At(i))
		h, ok := s.Host.Find(host)
		switch {
		case !ok:
			f.Add(i+1, "host", string(host), "no host is called this")
			continue
		case t.Units[i] < 0 || t.Units[i] > NumberMax:
			f.Add(i+1, "units", fmt.Sprint(t.Units[i]), "not a whole number from 0 to 2^53")
			continue
		}
		if held {
			if rows[i] = s.orphaned(&away, HostID(h), t, i); rows[i].sub != NoID {
				continue
			}
			if rows[i] = s.onAbandoned(&away, &by, HostID(h), t, i); rows[i].sub != NoID {
				continue
			}
		}
		if what == givenBack {
			if path := t.Consumer.Names.Bytes(t.Consumer.At(i)); !s.knows(path) {
				f.Add(i+1, "consumer", string(path), "no such consumer in the policy")
				continue
			}
			if s.Host.Plan[h] == NoID {
				continue
			}
		}
		if s.Host.Plan[h] == NoID {
			f.Add(i+1, "host", string(host), "the host is in no plan")
			continue
		}
		rows[i].parcel = s.Host.Parcel[h]
		if what == givenBack {
			rows[i].sub = s.lookup(&by, s.Host.Plan[h], t, i)
		} else {
			rows[i].sub = s.findSub(&by, s.Host.Plan[h], t, i, f)
		}
		if held && rows[i].sub != NoID && !s.holdsOn(rows[i].sub, rows[i].parcel) {
			rows[i].sub = s.otherSize(&by, rows[i].sub, rows[i].parcel)
		}
	}
	return rows
}

// knows tells whether a consumer is in the policy, or was in an earlier one.
func (s *State) knows(path []byte) bool {
	_, ok := s.Consumer.Find(path)
	return ok
}

// onAbandoned is what a row names on a host that left a plan with work on it; its sub is NoID when
// that holds nothing there.
func (s *State) onAbandoned(away *absence, by *namesakes, h HostID, t *HoldingTable, i int) boundHolding {
	for _, at := range away.parcel[h] {
		if sub := s.lookup(by, at.plan, t, i); sub != NoID {
			if sub = s.otherSize(by, sub, at.parcel); s.holdsOn(sub, at.parcel) {
				return boundHolding{sub, at.parcel}
			}
		}
	}
	return boundHolding{sub: NoID}
}

// otherSize is the sub-allocation of the same name and another unit size that holds
// units on the host of a parcel, from before the size changed; sub itself when there is none.
func (s *State) otherSize(by *namesakes, sub SubID, k ParcelID) SubID {
	for _, q := range by.find(s.Sub.Alloc[sub], s.Sub.Name[sub]) {
		if s.holdsOn(q, k) {
			return q
		}
	}
	return sub
}

// holdsOn tells whether a sub-allocation holds units on the host that a parcel is of.
func (s *State) holdsOn(sub SubID, k ParcelID) bool {
	s.scratch.near = s.heldOn(s.scratch.near, sub, k)
	return len(s.scratch.near) > 0
}

// heldOn lists what a sub-allocation holds on the host that a parcel is of, in the memory of dst. It goes along its
// holdings and those on the host at once, until either end: a sub-allocation may hold something on every host, and a
// host may carry something of everybody. O(the shorter of both lists).
func (s *State) heldOn(dst []HoldingID, sub SubID, k ParcelID) []HoldingID {
	h, p := &s.Holding, &s.Plans[s.Sub.Plan[sub]].Parcels
	both := p.Left == 0 // a host that left with work on it may be back, with parcels in two places
	ours, theirs, at, end := s.Sub.First[sub], HoldingID(NoID), p.Begin(k), p.End(k)
	of, on := dst[:0], s.scratch.nearby[:0]
	for ours != NoID {
		if s.on(ours, k) {
			of = append(of, ours)
		}
		ours = h.NextOfSub[ours]
		if !both {
			continue
		}
		for theirs == NoID && at < end {
			theirs = p.First[at]
			at++
		}
		if theirs == NoID {
			s.scratch.nearby = on
			return append(of[:0], on...)
		}
		if h.Sub[theirs] == sub {
			on = append(on, theirs)
		}
		theirs = h.NextOnParcel[theirs]
	}
	s.scratch.nearby = on
	return of
}

// findSub is the sub-allocation of a plan that a row names: of several sizes the
// one that is wanted, then the latest. A fault is recorded when there is none.
func (s *State) findSub(by *namesakes, p int32, t *HoldingTable, i int, f *Faults) SubID {
	path, name := t.Consumer.Names.Bytes(t.Consumer.At(i)), t.Allocation.Names.Bytes(t.Allocation.At(i))
	if c, ok := s.Consumer.Find(path); !ok || s.NodeOf[c] == plan.None {
		f.Add(i+1, "consumer", string(path), "no such consumer in the policy")
		return NoID
	}
	found := s.lookup(by, p, t, i)
	if found == NoID {
		f.Add(i+1, "allocation", string(name),
			fmt.Sprintf("%s has no such sub-allocation in plan %s", path, s.Plans[p].Name))
	}
	return found
}

// lookup is findSub without a fault.
func (s *State) lookup(by *namesakes, p int32, t *HoldingTable, i int) SubID {
	c, ok := s.Consumer.Find(t.Consumer.Names.Bytes(t.Consumer.At(i)))
	if !ok {
		return NoID
	}
	name, found := int32(0), SubID(NoID)
	if code := t.Sub.At(i); code != Null {
		if name, ok = s.Label.Find(t.Sub.Names.Bytes(code)); !ok {
			return NoID
		}
	}
	if label, ok := s.Label.Find(t.Allocation.Names.Bytes(t.Allocation.At(i))); ok {
		if a, ok := s.allocOf[allocKey{p, ConsumerID(c), label}]; ok {
			for _, q := range by.find(a, name) {
				if found == NoID || s.Sub.Wanted[q] > 0 || s.Sub.Wanted[found] == 0 {
					found = q
				}
			}
		}
	}
	return found
}
