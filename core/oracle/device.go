package oracle

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Devices in MD plans (D-185): a unit's part of one dimension lies on devices of its host.

// devicesMax is how many devices of a host count.
const devicesMax = 64

// devices tells which dimension of a plan lies on devices, and what each of them has.
func (c *Cluster) devices(in int) (d int, per int64, ok bool) {
	if in < 0 || in >= len(c.p.MDPlans) || c.p.MDPlans[in].Device < 0 {
		return 0, 0, false
	}
	m := &c.p.MDPlans[in]
	return m.Device, m.DevicePer, true
}

// devicesOf are the units' devices that a host has for a plan.
func (c *Cluster) devicesOf(in int, h *host) int64 {
	d, per, ok := c.devices(in)
	if !ok {
		return 0
	}
	return min(h.size[d]/per, devicesMax)
}

// freeDevices is what each device of a host has left beside the plan's units there.
func (c *Cluster) freeDevices(in int, h *host) []int64 {
	d, per, _ := c.devices(in)
	free := make([]int64, c.devicesOf(in, h))
	for i := range free {
		free[i] = per
	}
	for _, u := range h.units {
		for _, i := range u.devices {
			if u.sub.alloc.plan == in && i < len(free) { // one that is gone has nothing left
				free[i] -= min(per, u.sub.size[d])
			}
		}
	}
	return free
}

// seat finds the devices of a host for one unit more of a sub-allocation, if it has them: that with the least room of
// those that have enough, or the first empty ones; the lowest numbers among equals. One that takes nothing needs none.
func (c *Cluster) seat(s *sub, h *host) (list []int, ok bool) {
	in := s.alloc.plan
	d, per, has := c.devices(in)
	if !has || s.size[d] == 0 {
		return nil, true
	}
	free, need := c.freeDevices(in, h), s.size[d]
	if need <= per {
		best := -1
		for i, n := range free {
			if n >= need && (best < 0 || n < free[best]) {
				best = i
			}
		}
		if best < 0 {
			return nil, false
		}
		return []int{best}, true
	}
	for i, n := range free {
		if n == per && int64(len(list)) < need/per {
			list = append(list, i)
		}
	}
	if int64(len(list)) < need/per {
		return nil, false
	}
	return list, true
}

// seated is seat for a unit that is known to go there.
func (c *Cluster) seated(s *sub, h *host) []int {
	list, ok := c.seat(s, h)
	if !ok {
		panic(fmt.Sprintf("oracle: a unit of %v finds no devices on %s", c.key(s), h.Name))
	}
	return list
}

// sits tells whether one unit more of a sub-allocation finds devices on a host.
func (c *Cluster) sits(s *sub, h *host) bool {
	_, ok := c.seat(s, h)
	return ok
}

// goesOn tells whether one unit more of a sub-allocation goes on a parcel: it has room, and its host has devices.
func (g *round) goesOn(s *sub, t parcel) bool {
	return fits(s.size, g.room(s.alloc.leaf, t)) && g.sits(s, t.host)
}

// packs is how many units of a size an empty host takes that has so much for a plan; of a host that counts with what is
// held there, what is beyond whole devices is a smaller one.
func (c *Cluster) packs(in int, size, room []int64) int64 {
	d, per, ok := c.devices(in)
	if !ok || size[d] == 0 {
		return packs(size, room)
	}
	units := room[d] / per / max(1, size[d]/per)
	if size[d] <= per {
		units = room[d]/per*(per/size[d]) + room[d]%per/size[d]
	}
	rest := slices.Clone(size)
	if rest[d] = 0; zero(rest) {
		return units
	}
	return min(units, packs(rest, room))
}

// unseated tells whether a unit lies on a device that its host has not any more.
func (c *Cluster) unseated(u *unit) bool {
	return len(u.devices) > 0 && int64(slices.Max(u.devices)) >= c.devicesOf(u.sub.alloc.plan, u.host)
}

// deviceText is a unit's devices as the tables have them.
func deviceText(list []int) string {
	var b strings.Builder
	for i, n := range list {
		if i > 0 {
			b.WriteByte('+')
		}
		fmt.Fprint(&b, n)
	}
	return b.String()
}

// byDevices orders units by their devices as numbers of bits, the greater first.
func byDevices(a, b *unit) int {
	for i := range devicesMax {
		k := devicesMax - 1 - i
		if x, y := slices.Contains(a.devices, k), slices.Contains(b.devices, k); x != y {
			return cmp.Compare(order(y), order(x))
		}
	}
	return 0
}
