package cluster

import (
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// SetID is a row of Sets; it is reused once nothing of the set is left.
type SetID int32

// Sets are the reclaims under way (CYC-6), by SetID: units that a taker or a rule takes back, and the room on one
// parcel that is held for the taker. Their victims are chained rows of Holdings, the last chosen first; they were
// chosen on its parcel, and may lie on another of the host since that was split anew. A set ends when its taker is to
// get nothing more of it, or, without a taker, when nothing of its victims is left.
type Sets struct {
	Number []int64 // the log's id, from 1; 0: the row is free
	Plan   []int32
	Reason []int32      // decision.ReclaimReasons
	Issued []int64      // µs
	Taker  []SubID      // NoID: a rule
	Target []HostID     // of its victims and its room
	Owner  []ConsumerID // of the parcel there; that may be gone, then nothing is held for the taker
	Units  []int64      // of the taker, still to be given to it
	First  []HoldingID
	kept   []int64 // dimension-minor: what it adds to Parcels.Kept of its parcel
	free   []SetID
}

// Reclaimed is a step of a reclaim, for the table reclaims.
type Reclaimed struct {
	Number           int64
	Action           int32 // decision.Actions
	Sub, Taker       SubID
	Parcel           ParcelID
	Host             HostID
	Units            int64
	Reason           int32
	Issued, Deadline int64
	Devices          Devices
	WaitedUS         int64 // for how long the taker had been short when it was issued; -1: it has none, or is cancelled
}

// Leaving is how many units are under reclaim in all.
func (s *State) Leaving() (units int64) {
	for id := range s.Set.Live() {
		for q := s.Set.First[id]; q != NoID; q = s.Holding.NextOfSet[q] {
			units += s.Holding.Units[q]
		}
	}
	return units
}

// Promised is how many units takers are to get from sets under way.
func (s *State) Promised() (units int64) {
	for _, n := range s.Set.Units {
		units += n // 0 in free rows
	}
	return units
}

// Reclaim puts units of a holding under reclaim for a rule: a set of its own, due
// after the grace. The holding must not be under reclaim; when only part of it is
// taken, it is split. O(1).
func (s *State) Reclaim(q HoldingID, units, nowUS, graceUS int64, reason int32) {
	id := s.OpenSet(&s.Plans[s.Sub.Plan[s.Holding.Sub[q]]], s.Holding.Parcel[q], reason, NoID, nowUS)
	s.TakeBack(id, q, units, nowUS+graceUS)
}

// OpenSet begins a reclaim on a parcel for a taker, or for a rule when taker is NoID. The caller
// adds victims and units of the taker. O(1).
func (s *State) OpenSet(p *Plan, k ParcelID, reason int32, taker SubID, nowUS int64) SetID {
	t := &s.Set
	if rows := more(len(t.Number)); len(t.free) == 0 {
		t.free = spare(t.free, t.schema().Spare(rows), rows)
		t.kept = append(t.kept, make([]int64, rows*len(s.Policy.Dimensions))...)
	}
	id := take(&t.free)
	s.reclaims++
	t.Number[id], t.Plan[id], t.Reason[id], t.Issued[id] = s.reclaims, p.Index, reason, nowUS
	t.Taker[id], t.Target[id] = taker, p.Parcels.Host[k]
	t.Owner[id], t.Units[id], t.First[id] = p.Parcels.Owner[k], 0, NoID
	p.Dirty, p.again = true, true
	return id
}

// Aim is the parcel of a set, NoID when it is gone: with its host, or since nothing of that is its owner's any more.
func (s *State) Aim(id SetID) ParcelID {
	t := &s.Set
	p, host := &s.Plans[t.Plan[id]], t.Target[id]
	if s.Host.Plan[host] != p.Index {
		return NoID
	}
	return p.Parcels.of(s.Host.Parcel[host], t.Owner[id])
}

// TakeBack adds units of a holding on the set's parcel to its victims, due at dueUS. The holding must
// not be under reclaim; when only part of it is taken, it is split. O(1), and what Promise costs.
func (s *State) TakeBack(id SetID, q HoldingID, units, dueUS int64) {
	h, t, sub := &s.Holding, &s.Set, s.Holding.Sub[q]
	p := &s.Plans[s.Sub.Plan[sub]]
	first := t.First[id]
	switch {
	case first != NoID && h.Sub[first] == sub && h.Due[first] == dueUS && s.alike(first, q):
		// more of what was split off before
		h.Units[first] += units
		if h.Units[q] -= units; h.Units[q] == 0 {
			s.unlink(q)
		}
		q = first
	case units < h.Units[q]:
		h.Units[q] -= units
		q = s.add(p, &Holding{sub, h.Parcel[q], units, h.Granted[q], h.Origin[q], h.Pool[q], h.Lender[q], h.On(q)})
		fallthrough
	default:
		h.Set[q], h.NextOfSet[q], h.Due[q] = id, first, dueUS
		t.First[id] = q
	}
	pair := s.PairOf(sub, h.Pool[q])
	p.Pairs.Leaving[pair] += units
	s.recordOf(ChangeReclaimed, q, 0, units)
	p.Dirty, p.again = true, true
	s.step(q, units, decision.ActionIssued)
	s.keep(id)
}

// Promise sets how many units the taker is to get of a set, and holds the room for them on its
// parcel as far as victims do not occupy it. Without any units the set ends, once its victims are
// gone. O(victims × dimensions).
func (s *State) Promise(id SetID, units int64) {
	s.Set.Units[id] = units
	s.keep(id)
	s.end(id)
}

// SetAside makes the room that a set holds for its taker free, for as long as it takes to look whether the taker fits
// otherwise: Promise comes next, or the set is left to its victims. O(victims × dimensions).
func (s *State) SetAside(id SetID) {
	s.Set.Units[id] = 0
	s.keep(id)
}

// divert takes units of an orphan's holding from its set to one without a taker, due at the same time. What else the
// orphan holds may be due at another. O(victims of the set).
func (s *State) divert(q HoldingID, units int64) {
	h, sub, due := &s.Holding, s.Holding.Sub[q], s.Holding.Due[q]
	if id := h.Set[q]; units < h.Units[q] {
		h.Units[q] -= units
		q = s.add(&s.Plans[s.Sub.Plan[sub]],
			&Holding{sub, h.Parcel[q], units, h.Granted[q], h.Origin[q], h.Pool[q], h.Lender[q], h.On(q)})
		s.keep(id)
	} else {
		s.leave(q)
	}
	s.Reclaim(q, units, s.orphanUS, due-s.orphanUS, decision.ReclaimPlanChange)
}

// alike tells whether holdings of one sub-allocation differ in nothing but reclaim.
func (s *State) alike(a, b HoldingID) bool {
	h := &s.Holding
	return h.Parcel[a] == h.Parcel[b] && h.Granted[a] == h.Granted[b] && h.Origin[a] == h.Origin[b] &&
		h.Pool[a] == h.Pool[b] && h.Lender[a] == h.Lender[b] && h.On(a) == h.On(b)
}

// Cancel takes units of a holding off its reclaim; they stay with their holder, or go at the same time without a taker
// when that is an orphan. O(holdings of the sub-allocation, victims of the set).
func (s *State) Cancel(q HoldingID, units int64) {
	s.step(q, units, decision.ActionCancelled)
	h, sub, id := &s.Holding, s.Holding.Sub[q], s.Holding.Set[q]
	p := &s.Plans[s.Sub.Plan[sub]]
	pair := s.PairOf(sub, h.Pool[q])
	p.Pairs.Leaving[pair] -= units
	s.recordOf(ChangeCancelled, q, 0, -units)
	p.Dirty, p.again = true, true // what counts as net changed after quotas were computed and foreign units settled
	if s.Sub.Orphan[sub] {
		s.divert(q, units)
		return
	}
	twin := s.Sub.First[sub]
	for twin != NoID && (h.Set[twin] != NoID || !s.alike(twin, q)) {
		twin = h.NextOfSub[twin]
	}
	switch {
	case twin != NoID: // what TakeBack split off
		h.Units[twin] += units
		if h.Units[q] -= units; h.Units[q] == 0 {
			s.unlink(q)
			return
		}
	case units < h.Units[q]:
		h.Units[q] -= units
		s.add(p, &Holding{sub, h.Parcel[q], units, h.Granted[q], h.Origin[q], h.Pool[q], h.Lender[q], h.On(q)})
	default:
		s.leave(q)
		return
	}
	s.keep(id)
}

// HandOver moves units of a holding that is under reclaim over to another set on its parcel: one reclaim of them is
// cancelled, the other is issued with the deadline of the first. O(victims of both sets).
func (s *State) HandOver(q HoldingID, units int64, to SetID) {
	s.step(q, units, decision.ActionCancelled)
	s.recordOf(ChangeCancelled, q, 0, -units)
	s.recordOf(ChangeReclaimed, q, 0, units)
	h, due := &s.Holding, s.Holding.Due[q]
	from := h.Set[q]
	if units < h.Units[q] {
		h.Units[q] -= units
		q = s.add(&s.Plans[s.Set.Plan[from]],
			&Holding{h.Sub[q], h.Parcel[q], units, h.Granted[q], h.Origin[q], h.Pool[q], h.Lender[q], h.On(q)})
	} else {
		for at := &s.Set.First[from]; ; at = &h.NextOfSet[*at] {
			if *at == q {
				*at = h.NextOfSet[q]
				break
			}
		}
	}
	h.Set[q], h.NextOfSet[q], h.Due[q] = to, s.Set.First[to], due
	s.Set.First[to] = q
	s.step(q, units, decision.ActionIssued)
	s.keep(from)
	s.keep(to)
}

// step records a step of a reclaim, in the row of the step before when it is more of the same.
func (s *State) step(q HoldingID, units int64, action int32) {
	id, sub, k := s.Holding.Set[q], s.Holding.Sub[q], s.Holding.Parcel[q]
	if n := len(s.Reclaims) - 1; n >= 0 && s.Reclaims[n].Number == s.Set.Number[id] && s.Reclaims[n].Action == action &&
		s.Reclaims[n].Sub == sub && s.Reclaims[n].Parcel == k && s.Reclaims[n].Deadline == s.Holding.Due[q] &&
		s.Reclaims[n].Devices == s.Holding.On(q) {
		s.Reclaims[n].Units += units
		return
	}
	s.Reclaims = append(s.Reclaims, Reclaimed{
		s.Set.Number[id], action, sub, s.Set.Taker[id], k, s.Plans[s.Sub.Plan[sub]].Parcels.Host[k], units,
		s.Set.Reason[id], s.Set.Issued[id], s.Holding.Due[q], s.Holding.On(q), s.waited(id, action),
	})
}

// waited is for how long the taker of a set had been short when the set was issued; -1 for steps of which none tells.
func (s *State) waited(id SetID, action int32) int64 {
	taker := s.Set.Taker[id]
	if taker == NoID || action != decision.ActionIssued {
		return -1
	}
	if since := s.Sub.ShortSince[taker]; since > 0 {
		return max(0, s.Set.Issued[id]-since)
	}
	return 0 // it came to be short since the last cycle
}

// leave takes a holding out of its set. O(victims of the set).
func (s *State) leave(q HoldingID) {
	id := s.Holding.Set[q]
	for at := &s.Set.First[id]; ; at = &s.Holding.NextOfSet[*at] {
		if *at == q {
			*at = s.Holding.NextOfSet[q]
			break
		}
	}
	s.Holding.Set[q] = NoID
	s.keep(id)
	s.end(id)
}

// end frees a set that has neither victims nor units to give.
func (s *State) end(id SetID) {
	if t := &s.Set; t.First[id] == NoID && t.Units[id] == 0 {
		t.Number[id] = 0
		t.free = append(t.free, id)
	}
}

// keep brings what a set adds to its parcel's Kept up to its units and victims: the taker's
// room less what victims still occupy of it. O(victims × dimensions).
func (s *State) keep(id SetID) {
	t := &s.Set
	if t.Taker[id] == NoID {
		return // no room is held for a rule
	}
	p, k := &s.Plans[t.Plan[id]], s.Aim(id)
	if k == NoID {
		return // nor on a parcel that is gone
	}
	width, changed := len(s.Policy.Dimensions), false
	for d := range p.Dimensions() {
		room := s.Size(t.Taker[id])[d] * t.Units[id]
		for q := t.First[id]; q != NoID; q = s.Holding.NextOfSet[q] {
			if limitsAreRoom && s.Holding.Parcel[q] != k {
				continue // it leaves room within a share limit, or goes with its gang
			}
			room -= s.Size(s.Holding.Sub[q])[d] * s.Holding.Units[q]
		}
		was := &t.kept[int(id)*width+d]
		if delta := max(0, room) - *was; delta != 0 {
			if p.Parcels.Kept == nil {
				p.Parcels.keep()
			}
			p.Parcels.Kept[d][k] += delta
			*was, changed = max(0, room), true
		}
	}
	if changed {
		p.Changed, p.Dirty = append(p.Changed, k), true
		s.Changes.add(ChangeKept, p.Index, k)
	}
}

// Kept is what a set holds on its parcel for its taker beside what victims occupy, in a dimension.
func (s *State) Kept(id SetID, d int) int64 { return s.Set.kept[int(id)*len(s.Policy.Dimensions)+d] }

// rekeep computes what all sets hold anew, for parcels that were laid out anew.
func (s *State) rekeep() {
	clear(s.Set.kept)
	for i := range s.Plans {
		for _, column := range s.Plans[i].Parcels.Kept {
			clear(column)
		}
	}
	for id := range s.Set.Live() {
		s.keep(id)
	}
}

// expire releases what is under reclaim and due (SLOT-9). Where clients confirm releases, that is
// only what they have not confirmed in time, if there is a time (CYC-8).
func (s *State) expire(nowUS int64) {
	for id := range s.Set.Live() {
		terms, wait := &s.Plans[s.Set.Plan[id]].Terms, int64(0)
		if terms.Confirmed {
			if terms.OverdueAfterUS == plan.Unlimited {
				continue
			}
			wait = terms.OverdueAfterUS
		}
		for q := s.Set.First[id]; q != NoID; {
			next := s.Holding.NextOfSet[q]
			if s.Holding.Due[q]+wait <= nowUS {
				s.release(q, s.Holding.Units[q], decision.CauseGraceExpired)
			}
			q = next
		}
	}
}

// Overdue is how many units are held past the deadline of their reclaim at nowUS (CYC-8).
func (s *State) Overdue(nowUS int64) (units int64) {
	for id := range s.Set.Live() {
		if !s.Plans[s.Set.Plan[id]].Terms.Confirmed {
			continue
		}
		for q := s.Set.First[id]; q != NoID; q = s.Holding.NextOfSet[q] {
			if s.Holding.Due[q] <= nowUS {
				units += s.Holding.Units[q]
			}
		}
	}
	return units
}
