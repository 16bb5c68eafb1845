package cluster

import "github.com/stintd/stint/core/decision"

// SetID is a row of Sets; it is reused once nothing of the set is left.
type SetID int32

// Sets are the reclaims under way (CYC-6), by SetID: units that a taker or a rule
// takes back, by when. Their victims are chained rows of Holdings.
type Sets struct {
	Number   []int64 // the log's id, from 1; 0: the row is free
	Plan     []int32
	Reason   []int32 // decision.ReclaimReasons
	Issued   []int64 // µs
	Deadline []int64 // µs
	First    []HoldingID
	free     []SetID
}

// Reclaimed is a step of a reclaim, for the table reclaims.
type Reclaimed struct {
	Number           int64
	Action           int32 // decision.Actions
	Sub              SubID
	Parcel           ParcelID
	Host             HostID
	Units            int64
	Reason           int32
	Issued, Deadline int64
}

// Leaving is how many units are under reclaim in all.
func (s *State) Leaving() (units int64) {
	for i, n := range s.Set.Number {
		if n > 0 {
			for q := s.Set.First[i]; q != NoID; q = s.Holding.NextOfSet[q] {
				units += s.Holding.Units[q]
			}
		}
	}
	return units
}

// Reclaim puts units of a holding under reclaim for a rule: a set of its own, due
// after the grace. The holding must not be under reclaim; when only part of it is
// taken, it is split. O(1).
func (s *State) Reclaim(q HoldingID, units, nowUS, graceUS int64, reason int32) {
	sub := s.Holding.Sub[q]
	p := &s.Plans[s.Sub.Plan[sub]]
	if units < s.Holding.Units[q] {
		s.Holding.Units[q] -= units
		q = s.add(p, &Holding{sub, s.Holding.Parcel[q], units, s.Holding.Granted[q], s.Holding.Origin[q], s.Holding.Pool[q], s.Holding.Lender[q]})
	}
	t := &s.Set
	var id SetID
	if n := len(t.free); n > 0 {
		id, t.free = t.free[n-1], t.free[:n-1]
	} else {
		id = SetID(len(t.Number))
		t.Number = append(t.Number, 0)
		t.Plan = append(t.Plan, 0)
		t.Reason = append(t.Reason, 0)
		t.Issued = append(t.Issued, 0)
		t.Deadline = append(t.Deadline, 0)
		t.First = append(t.First, NoID)
	}
	s.reclaims++
	t.Number[id], t.Plan[id], t.Reason[id], t.First[id] = s.reclaims, p.Index, reason, q
	t.Issued[id], t.Deadline[id] = nowUS, nowUS+graceUS
	s.Holding.Set[q], s.Holding.NextOfSet[q] = id, NoID
	p.Pairs.Leaving[s.Sub.Pair[sub]] += units
	p.Dirty, p.again = true, true
	s.step(q, units, decision.ActionIssued)
}

// Cancel takes units of a holding off its reclaim; they stay with their holder.
// O(holdings of the sub-allocation).
func (s *State) Cancel(q HoldingID, units int64) {
	s.step(q, units, decision.ActionCancelled)
	sub := s.Holding.Sub[q]
	p := &s.Plans[s.Sub.Plan[sub]]
	p.Pairs.Leaving[s.Sub.Pair[sub]] -= units
	p.Dirty = true
	k, granted := s.Holding.Parcel[q], s.Holding.Granted[q]
	for twin := s.Sub.First[sub]; twin != NoID; twin = s.Holding.NextOfSub[twin] {
		if s.Holding.Parcel[twin] == k && s.Holding.Granted[twin] == granted && s.Holding.Set[twin] == NoID {
			s.Holding.Units[twin] += units // what Reclaim split off
			if s.Holding.Units[q] -= units; s.Holding.Units[q] == 0 {
				s.unlink(q)
			}
			return
		}
	}
	if units < s.Holding.Units[q] {
		s.Holding.Units[q] -= units
		s.add(p, &Holding{sub, k, units, granted, s.Holding.Origin[q], s.Holding.Pool[q], s.Holding.Lender[q]})
		return
	}
	s.leave(q)
}

// step records a step of a reclaim.
func (s *State) step(q HoldingID, units int64, action int32) {
	id, sub, k := s.Holding.Set[q], s.Holding.Sub[q], s.Holding.Parcel[q]
	s.Reclaims = append(s.Reclaims, Reclaimed{
		s.Set.Number[id], action, sub, k, s.Plans[s.Sub.Plan[sub]].Parcels.Host[k], units,
		s.Set.Reason[id], s.Set.Issued[id], s.Set.Deadline[id],
	})
}

// leave takes a holding out of its set, and the set away with its last one.
func (s *State) leave(q HoldingID) {
	id := s.Holding.Set[q]
	if id == NoID {
		return
	}
	for at := &s.Set.First[id]; ; at = &s.Holding.NextOfSet[*at] {
		if *at == q {
			*at = s.Holding.NextOfSet[q]
			break
		}
	}
	s.Holding.Set[q] = NoID
	if s.Set.First[id] == NoID {
		s.Set.Number[id] = 0
		s.Set.free = append(s.Set.free, id)
	}
}

// expire releases what is under reclaim and due (SLOT-9, `release: assumed` of CYC-8).
func (s *State) expire(nowUS int64) {
	for id := range s.Set.Number {
		if s.Set.Number[id] == 0 || s.Set.Deadline[id] > nowUS {
			continue
		}
		for q := s.Set.First[id]; q != NoID; {
			next := s.Holding.NextOfSet[q]
			s.release(q, s.Holding.Units[q], decision.CauseGraceExpired)
			q = next
		}
	}
}
