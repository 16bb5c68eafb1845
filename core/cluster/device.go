package cluster

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// Devices is a set of the devices of one host: bit k is device k (D-185). A unit that takes none of them has the empty
// set.
type Devices uint64

// Code is the code of the devices in a dictionary of their texts, decision.Null of no device. A text that the
// dictionary does not have is added to the dictionary.
func (on Devices) Code(devices *Names) int32 {
	if on == 0 {
		return decision.Null
	}
	text := decision.DeviceText(uint64(on))
	if code, ok := devices.Find([]byte(text)); ok {
		return code
	}
	return devices.InternString(text)
}

// noDevice is what is free on a device that a host has not.
const noDevice = -1

// HasDevices tells whether a dimension of the plan is the sum of a host's devices.
func (p *Plan) HasDevices() bool { return p.MD != nil && p.MD.HasDevices() }

// OnDevices is what a unit of a size takes of devices, 0 where the plan has none.
func (p *Plan) OnDevices(size []int64) int64 {
	if !p.HasDevices() {
		return 0
	}
	return size[p.MD.Device]
}

// MayLieOn tells whether a unit that takes g of devices of so much can lie on any: on a part of one, or on whole ones.
func MayLieOn(per, g int64) bool { return g <= per || g%per == 0 }

// ChooseDevices gives the devices for a unit that takes g of devices of so much each: of those with room the one with
// the least, or for several whole ones the first that are empty, ties by number. Free is by device. O(devices).
func ChooseDevices(free []int64, per, g int64) (chosen Devices, ok bool) {
	if g > per {
		left := g / per
		for i, n := range free {
			if n == per && left > 0 {
				chosen |= 1 << i
				left--
			}
		}
		return chosen, left == 0
	}
	best := -1
	for i, n := range free {
		if n >= g && (best < 0 || n < free[best]) {
			best = i
		}
	}
	if best < 0 {
		return 0, false
	}
	return 1 << best, true
}

// RoomOfDevices is the most that is free on any device, and how many are empty: by one of them a unit finds its devices
// or does not. O(devices).
func RoomOfDevices(free []int64, per int64) (most, empty int64) {
	for _, n := range free {
		if most = max(most, n); n == per {
			empty++
		}
	}
	return most, empty
}

// NeedOfDevices is what a unit needs of RoomOfDevices.
func NeedOfDevices(per, g int64) (most, empty int64) {
	if g > per {
		return 0, g / per
	}
	return g, 0
}

// TakeOfDevices takes units that lie on some devices off what is free on them.
func TakeOfDevices(free []int64, on Devices, per, g, units int64) {
	for ; on != 0; on &= on - 1 {
		if i := bits.TrailingZeros64(uint64(on)); i < len(free) && free[i] != noDevice {
			free[i] -= min(g, per) * units
		}
	}
}

// DeviceFree is what is free on each device of a parcel's host, below 0 where it has none of that number. Read it only.
func (p *Parcels) DeviceFree(k ParcelID) []int64 {
	at := int(k) * p.Stride
	return p.Device[at : at+p.Stride : at+p.Stride]
}

// takeDevices takes units of a size that lie on some devices off a parcel.
func (p *Plan) takeDevices(k ParcelID, on Devices, size []int64, units int64) {
	if on != 0 && p.HasDevices() {
		TakeOfDevices(p.Parcels.DeviceFree(k), on, p.MD.DevicePer, size[p.MD.Device], units)
	}
}

// devicesOf is how many devices a parcel has.
func (p *Plan) devicesOf(k ParcelID) int { return int(p.Parcels.Cap[p.MD.Device][k] / p.MD.DevicePer) }

// layDevices makes anew what is free on the devices of a plan's hosts. O(parcels × devices, and what is held on them).
func (s *State) layDevices(p *Plan) {
	if p.Parcels.Device, p.Parcels.Stride = p.Parcels.Device[:0], 0; !p.HasDevices() {
		p.Parcels.Device = nil
		return
	}
	n := ParcelID(p.Parcels.Len())
	for k := range n {
		p.Parcels.Stride = max(p.Parcels.Stride, p.devicesOf(k))
	}
	p.Parcels.Device = slices.Grow(p.Parcels.Device, int(n)*p.Parcels.Stride)[:int(n)*p.Parcels.Stride]
	for k := range n {
		s.layDevicesOf(p, k)
	}
}

// layDevicesOf is layDevices for one parcel.
func (s *State) layDevicesOf(p *Plan, k ParcelID) {
	n := p.devicesOf(k)
	if n > p.Parcels.Stride {
		s.layDevices(p)
		return
	}
	for i := range p.Parcels.DeviceFree(k) {
		p.Parcels.DeviceFree(k)[i] = noDevice
		if i < n {
			p.Parcels.DeviceFree(k)[i] = p.MD.DevicePer
		}
	}
	h := &s.Holding
	for q := p.Parcels.First[k]; q != NoID; q = h.NextOnParcel[q] {
		p.takeDevices(k, h.On(q), s.Size(h.Sub[q]), h.Units[q])
	}
}

// On is the devices on which each unit of a holding lies.
func (h *Holdings) On(q HoldingID) Devices {
	if !h.onDevices {
		return 0
	}
	return h.Device[q]
}

// lay gives holdings a column of devices where some plan has devices, and takes it from them where none has.
func (h *Holdings) lay(onDevices bool) {
	if h.onDevices = onDevices; !onDevices {
		h.Device = nil
	} else if len(h.Device) != len(h.Sub) {
		h.Device = make([]Devices, len(h.Sub))
	}
}

// anyDevices tells whether some plan has devices.
func (s *State) anyDevices() bool {
	return slices.ContainsFunc(s.Plans, func(p Plan) bool { return p.HasDevices() })
}

// anyDevicesIn is anyDevices by the policy, for a state whose plans have no settings yet.
func (s *State) anyDevicesIn() bool {
	return slices.ContainsFunc(s.Policy.MDPlans, func(m plan.MDPlan) bool { return m.HasDevices() })
}

// strays tells whether units of a holding find no devices where they are: they never did, or the host has lost those.
func (s *State) strays(p *Plan, q HoldingID) bool {
	on := s.Holding.On(q)
	return p.OnDevices(s.Size(s.Holding.Sub[q])) > 0 &&
		(on == 0 || bits.Len64(uint64(on)) > p.devicesOf(s.Holding.Parcel[q]))
}

// evict releases the units on a parcel that have no devices there, in CYC-5's order.
func (s *State) evict(p *Plan, k ParcelID) {
	any := false
	for q := p.Parcels.First[k]; q != NoID && !any; q = s.Holding.NextOnParcel[q] {
		any = s.strays(p, q)
	}
	if !any {
		return
	}
	for _, q := range s.LastFirst(p, k, k+1) {
		if s.strays(p, q) {
			s.release(q, s.Holding.Units[q], decision.CauseHostLost)
		}
	}
}

// runOnDevices puts units that are running on a parcel on its devices, one after the other: those that find none lie on
// none.
func (s *State) runOnDevices(p *Plan, sub SubID, k ParcelID, units int64, f func(on Devices, units int64)) {
	g, per := p.OnDevices(s.Size(sub)), int64(0)
	if g == 0 {
		f(0, units)
		return
	}
	per = p.MD.DevicePer
	for units > 0 {
		free, n := p.Parcels.DeviceFree(k), units
		on, ok := ChooseDevices(free, per, g)
		if !ok {
			on = 0
		} else {
			n = min(n, fill(free, on, per, g))
		}
		f(on, n)
		units -= n
	}
}

// fill is how many units in a row go on the devices that were chosen for the first: what is left of one has the least.
func fill(free []int64, on Devices, per, g int64) int64 {
	if g > per {
		return 1
	}
	return free[bits.TrailingZeros64(uint64(on))] / g
}

// runsOnDevices takes units off what is free on devices; false where some of them find none.
func runsOnDevices(free []int64, per, g, units int64) bool {
	for units > 0 && g > 0 {
		on, ok := ChooseDevices(free, per, g)
		if !ok {
			return false
		}
		n := min(units, fill(free, on, per, g))
		TakeOfDevices(free, on, per, g, n)
		units -= n
	}
	return true
}

// deviceFault is why a unit cannot take g of a plan's devices, "" where it can.
func deviceFault(p *Plan, g int64) string {
	if g < 0 || MayLieOn(p.MD.DevicePer, g) {
		return ""
	}
	return fmt.Sprintf("a unit takes a part of one device of plan %s or whole ones: at most %d, or a multiple of it",
		p.Name, p.MD.DevicePer)
}

// checkDevices refuses a policy by which what is held in a plan would lie on devices that are others, and one by which
// units that are asked for cannot. Was is the sub-allocation's plan, is what the policy makes of it. O(1).
func (s *State) checkDevices(p *plan.Policy, sub SubID, was *Plan, is *plan.MDPlan, stays bool) error {
	if is == nil || was.MD == nil {
		return nil
	}
	name := func(dims []string, m *plan.MDPlan) string {
		if !m.HasDevices() {
			return ""
		}
		return dims[m.Device]
	}
	amount := func(dimension string) int64 {
		if d := slices.Index(s.Policy.Dimensions, dimension); d >= 0 {
			return s.Size(sub)[d]
		}
		return 0
	}
	before, after := name(s.Policy.Dimensions, was.MD), name(p.Dimensions, is)
	if (before != after || was.MD.DevicePer != is.DevicePer) && s.Sub.Held[sub] > 0 {
		for _, dimension := range []string{before, after} {
			if amount(dimension) > 0 {
				return fmt.Errorf("%s: plan %s would have other devices, and %s holds %d units with %s in it, which "+
					"lie where they lie: it must give them back first", p.File, was.Name,
					s.Consumer.String(int32(s.Sub.Consumer[sub])), s.Sub.Held[sub], dimension)
			}
		}
	}
	if after == "" || !stays || s.Sub.Wanted[sub] == 0 && s.Sub.Held[sub] == 0 {
		return nil
	}
	if g := amount(after); !MayLieOn(is.DevicePer, g) {
		return fmt.Errorf("%s: plan %s would have devices of %d %s each, and %s has units of %d there: neither a "+
			"part of one nor whole ones",
			p.File, was.Name, is.DevicePer, after, s.Consumer.String(int32(s.Sub.Consumer[sub])), g)
	}
	if least := s.Sub.MinUnits[sub]; least > 1 {
		return fmt.Errorf("%s: plan %s would have devices, where there are no gangs, and %s asks for one (min_units "+
			"%d) there",
			p.File, was.Name, s.Consumer.String(int32(s.Sub.Consumer[sub])), least)
	}
	return nil
}

// verifyDevices compares what is kept of devices with what holdings say.
func (s *State) verifyDevices(p *Plan) error {
	if !p.HasDevices() {
		return nil
	}
	per := p.MD.DevicePer
	for k := range ParcelID(p.Parcels.Len()) {
		free, n := make([]int64, p.Parcels.Stride), p.devicesOf(k)
		for i := range free {
			if free[i] = noDevice; i < n {
				free[i] = per
			}
		}
		for q := p.Parcels.First[k]; q != NoID; q = s.Holding.NextOnParcel[q] {
			g, on, needs := p.OnDevices(s.Size(s.Holding.Sub[q])), s.Holding.On(q), 0
			if g > 0 {
				needs = max(1, int(g/per))
			}
			if bits.OnesCount64(uint64(on)) != needs || bits.Len64(uint64(on)) > n {
				return fmt.Errorf("holding %d lies on the devices %b of %d, each unit takes %d of %d", q, on, n, g, per)
			}
			TakeOfDevices(free, on, per, g, s.Holding.Units[q])
		}
		for i, kept := range p.Parcels.DeviceFree(k) {
			if free[i] != kept || i < n && kept < 0 {
				return fmt.Errorf("parcel %d, device %d: free %d, kept %d", k, i, free[i], kept)
			}
		}
	}
	return nil
}

// devices are the devices that the rows of a table name, none where they name none; nil where none does.
func (t *HoldingTable) devices(f *Faults) []Devices {
	if t.Device.Code == nil {
		return nil
	}
	of := make([]Devices, t.Rows)
	for i := range of {
		code := t.Device.At(i)
		if code == Null {
			continue
		}
		text := t.Device.Names.String(code)
		set, ok := decision.ReadDevices(text)
		if of[i] = Devices(set); !ok {
			f.Add(i+1, "device", text, "not numbers of devices in order, joined by +, such as 0 or 4+5")
		}
	}
	return of
}
