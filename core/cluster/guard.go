package cluster

import "github.com/stintd/stint/core/plan"

// The shrink guard (API-6) asks how many units an input would release before the input is taken. Of demand and of
// running units it is told exactly. Of hosts a bound is enough most of the time; the exact number needs a copy of the
// state.

// HostRisk bounds what a table of hosts does to the units held.
type HostRisk struct {
	Held  int64 // units held of all sources
	Units int64 // at most so many of them are lost
	// Worse are the hosts that are there and would be lost, closed or smaller, or have other attributes.
	Worse []HostID
}

// HostRisk computes the bound for a full table, or for changes, and changes nothing. O(rows × columns + units on hosts
// that change + sub-allocations), of a full table O(hosts) besides.
func (s *State) HostRisk(t *HostTable, full bool) (r HostRisk) {
	for _, units := range s.Sub.Held {
		r.Held += units
	}
	named, risky := make([]bool, s.Host.Len()), make([]bool, s.Host.Len())
	note := func(h HostID, worse bool) {
		risky[h] = true
		if worse && s.Host.State[h] != Unavail {
			r.Worse = append(r.Worse, h)
		}
	}
	for row := range t.Rows {
		id, ok := s.Host.Find(t.Host.Names.Bytes(t.Host.At(row)))
		if !ok {
			continue
		}
		named[id] = true
		if differs, worse := s.compared(t, row, HostID(id), full); differs {
			note(HostID(id), worse)
		}
	}
	for h := range named {
		if full && !named[h] && s.Host.State[h] != Unavail {
			note(HostID(h), true)
		}
	}
	r.Units = s.atRisk(risky)
	return r
}

// compared tells whether a row gives a host other figures than it has, and whether units may be lost by them.
func (s *State) compared(t *HostTable, row int, h HostID, full bool) (differs, worse bool) {
	state := s.Host.State[h]
	switch {
	case t.State != nil && t.State[row] != Keep:
		state = t.State[row]
	case full:
		state = OK
	}
	differs, worse = state != s.Host.State[h], state != OK
	for d := range s.Host.Size {
		was, is := s.Host.Size[d][h], s.Host.Size[d][h]
		if col := t.Size[d]; col != nil && col[row] != NotGiven {
			is = col[row]
		} else if full {
			is = 0
		}
		differs, worse = differs || is != was, worse || is < was
	}
	if s.attributesDiffer(t, row, h, full) {
		return true, true
	}
	return differs, worse
}

// attributesDiffer tells whether a row gives a host other attributes than it has.
func (s *State) attributesDiffer(t *HostTable, row int, h HostID, full bool) bool {
	given := 0
	for i := range t.Attr {
		is := &t.Attr[i]
		at := s.Host.attribute(is.Name)
		if is.Keep != nil && is.Keep[row] || at < 0 && !is.Valid[row] {
			continue
		}
		if at < 0 || s.Host.Attr[at].Valid[h] != is.Valid[row] {
			return true
		}
		was := &s.Host.Attr[at]
		if !is.Valid[row] {
			continue
		}
		given++
		if was.Kind != is.Kind || was.Kind == plan.Number && was.Number[h] != is.Number[row] ||
			was.Kind == plan.Boolean && was.Bool[h] != is.Bool[row] ||
			was.Kind == plan.Text && string(was.Text.Names.Bytes(was.Text.Code[h])) !=
				string(is.Text.Names.Bytes(is.Text.Code[row])) {
			return true
		}
	}
	has := 0
	for i := range s.Host.Attr {
		if s.Host.Attr[i].Valid[h] {
			has++
		}
	}
	return full && has != given
}

// atRisk counts the units that a loss of hosts may release: those on them, and all of a gang that has one there.
func (s *State) atRisk(hosts []bool) (units int64) {
	gangs := map[SubID]bool{}
	count := func(p *Plan, k ParcelID) {
		for q := p.Parcels.First[k]; q != NoID; q = s.Holding.NextOnParcel[q] {
			sub := s.Holding.Sub[q]
			switch {
			case s.Sub.MinUnits[sub] <= 1:
				units += s.Holding.Units[q]
			case !gangs[sub]:
				gangs[sub] = true
				units += s.Sub.Held[sub]
			}
		}
	}
	for h, risky := range hosts {
		if i := s.Host.Plan[h]; risky && i != NoID {
			p := &s.Plans[i]
			for k, end := s.Host.Parcel[h], p.Parcels.End(s.Host.Parcel[h]); k < end; k++ {
				count(p, k)
			}
		}
	}
	for i := range s.Plans { // hosts that have left their plans
		p := &s.Plans[i]
		for k := p.Parcels.Len() - p.Parcels.Left; k < p.Parcels.Len(); k++ {
			if hosts[p.Parcels.Host[k]] {
				count(p, ParcelID(k))
			}
		}
	}
	return units
}

// WouldLose is how many units the next cycle releases, or takes back of hosts that leave their plans, because of a full
// table of hosts or of changes. Error: the table is refused. It changes nothing and takes two copies of the state, one
// after the other.
func (s *State) WouldLose(t *HostTable, full bool, nowUS int64) (units int64, err error) {
	with := s.Clone()
	if err := with.SetHosts(t, full); err != nil {
		return 0, err
	}
	return max(0, with.losing(nowUS)-s.Clone().losing(nowUS)), nil
}

// losing settles, and counts the units released and those on hosts that have left their plans.
func (s *State) losing(nowUS int64) (units int64) {
	s.Settle(max(nowUS, s.NowUS))
	for i := range s.Released {
		units += s.Released[i].Units
	}
	for i := range s.Plans {
		p := &s.Plans[i]
		for k := p.Parcels.Len() - p.Parcels.Left; k < p.Parcels.Len(); k++ {
			for q := p.Parcels.First[k]; q != NoID; q = s.Holding.NextOnParcel[q] {
				units += s.Holding.Units[q]
			}
		}
	}
	return units
}

// WouldDrop is how many of the units that a source holds changes to its demand would release. Changes with errors
// release nothing: they are refused. O(rows).
func (s *State) WouldDrop(source string, t *DemandTable) (units int64) {
	f := Faults{}
	s.scratch.changes = true
	s.bindDemand(source, t, &f)
	s.scratch.changes = false
	if f.Count > 0 {
		return 0
	}
	by := namesakes{s: s}
	for i := range t.Rows {
		kept := SubID(NoID)
		if t.Units[i] > 0 {
			kept = s.find(t, i)
		}
		if kept != NoID {
			stays := min(s.stays(kept), t.Units[i])
			if t.MinUnits != nil && stays < t.MinUnits[i] { // the gang is broken (REQ-3)
				stays = 0
			}
			units += s.stays(kept) - stays
		}
		a, name := s.findAlloc(t, i)
		if a == NoID {
			continue
		}
		for _, sub := range by.find(a, name) {
			if sub != kept {
				units += s.stays(sub)
			}
		}
	}
	return units
}

// stays is how many of its units a sub-allocation keeps in the next cycle as things are.
func (s *State) stays(sub SubID) int64 { return min(s.Sub.Held[sub], s.Sub.Wanted[sub]) }
