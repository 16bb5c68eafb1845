package cluster

import (
	"fmt"
	"slices"

	"github.com/stintd/stint/core/decision"
)

// AddRunning takes units as held (SPEC chapter 7, `running`), labelled as if they had been granted
// in the last cycle, in row order: of an MD plan on the parcels of their hosts that they fit, in the
// order of docs/ownership.md. It is refused whole when a row names no sub-allocation of the source that
// is wanted, or a host of another plan, or holds more than the host's free capacity.
func (s *State) AddRunning(source string, t *HoldingTable) error {
	f := Faults{Table: t.title()}
	rows := s.bindHoldings(t, willRun, &f)
	type room struct {
		k ParcelID
		p int32
	}
	used, devices := map[room][]int64{}, map[room][]int64{}
	for i, r := range rows {
		if r.sub == NoID {
			continue
		}
		if src, ok := s.Source.Find([]byte(source)); !ok || s.Sub.Source[r.sub] != SourceID(src) {
			f.Add(i+1, "allocation", t.Allocation.Names.String(t.Allocation.At(i)),
				fmt.Sprintf("belongs to another source than %q", source))
			continue
		}
		p := &s.Plans[s.Sub.Plan[r.sub]]
		u := used[room{r.parcel, p.Index}]
		if u == nil {
			u = make([]int64, p.Dimensions())
			used[room{r.parcel, p.Index}] = u
		}
		fits := true
		for d, size := range s.Size(r.sub)[:p.Dimensions()] {
			free := p.Parcels.freeOn(r.parcel, d) - u[d]
			if need := saturatingMul(size, t.Units[i]); need > free {
				f.Add(i+1, "units", fmt.Sprint(t.Units[i]), fmt.Sprintf("host %s has %d %s free, %d are needed",
					t.Host.Names.String(t.Host.At(i)), free, s.dimension(p, d), need))
				fits = false
				break
			} else {
				u[d] += need
			}
		}
		if g := p.OnDevices(s.Size(r.sub)); fits && g > 0 {
			left := devices[room{r.parcel, p.Index}]
			if left == nil {
				left = slices.Clone(p.Parcels.DeviceFree(r.parcel))
				devices[room{r.parcel, p.Index}] = left
			}
			if !runsOnDevices(left, p.MD.DevicePer, g, t.Units[i]) {
				f.Add(i+1, "units", fmt.Sprint(t.Units[i]),
					fmt.Sprintf("host %s has no devices for them beside those before: each takes %d %s",
						t.Host.Names.String(t.Host.At(i)), g, s.dimension(p, p.MD.Device)))
			}
		}
	}
	if err := f.Err(); err != nil {
		return err
	}
	for i, r := range rows {
		if t.Units[i] == 0 {
			continue
		}
		p := &s.Plans[s.Sub.Plan[r.sub]]
		for _, to := range s.spread(p, r.sub, r.parcel, t.Units[i]) {
			s.run(r.sub, to.parcel, to.units)
			p.Changed = append(p.Changed, to.parcel)
		}
		p.Dirty = true
		s.excess = append(s.excess, r.sub)
	}
	return nil
}

// dimension is the name of a plan's dimension.
func (s *State) dimension(p *Plan, d int) string {
	if p.Slots != nil {
		return "slots"
	}
	return s.Policy.Dimensions[d]
}

// run adds units to what a sub-allocation is running on a parcel as of the last cycle.
func (s *State) run(sub SubID, k ParcelID, units int64) {
	p := &s.Plans[s.Sub.Plan[sub]]
	s.runOnDevices(p, sub, k, units, func(on Devices, units int64) { s.runOn(p, sub, k, on, units) })
}

// runOn is run for units on some devices.
func (s *State) runOn(p *Plan, sub SubID, k ParcelID, on Devices, units int64) {
	row := Holding{sub, k, units, s.Cycle, decision.Null, NoID, NoID, on}
	if p.MD != nil {
		row.Origin, row.Pool, row.Lender = s.CountsAs(s.leafOf(sub), p.Parcels.Owner[k])
	}
	s.scratch.near = s.heldOn(s.scratch.near, sub, k)
	for _, q := range s.scratch.near {
		if s.Holding.Granted[q] >= s.Cycle && s.Holding.Parcel[q] == k && s.Holding.Set[q] == NoID &&
			s.Holding.Origin[q] == row.Origin &&
			s.Holding.On(q) == on {
			s.Grow(q, units)
			return
		}
	}
	q := s.hold(row)
	if p.Slots != nil {
		p.Unlabelled = append(p.Unlabelled, q)
	}
}
