package grant

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/room"
)

// devices is the dimension of a plan that is the sum of a host's devices, and how much each device has (D-185). The
// index of a lot then has two figures more of each row, by which a unit finds its devices or does not: the most that is
// free on a device, and how many are empty. Both only fall while a pool grants, as free room does.
type devices struct {
	dimension int
	per       int64 // 0: the plan has no devices
	most      int   // that a host has
}

// devicesOf is the devices of a plan.
func devicesOf(p *cluster.Plan) devices {
	if !p.HasDevices() {
		return devices{}
	}
	return devices{p.MD.Device, p.MD.DevicePer, p.Parcels.Stride}
}

// room is what a row of an index has at most: most by dimension, and the figures of devices.
func (v *devices) room(most []int64) []int64 {
	if v.per == 0 {
		return most
	}
	return append(most[:len(most):len(most)], v.per, int64(v.most))
}

// need is a size as an index of the plan has it.
func (v *devices) need(size []int64) []int64 {
	if v.per == 0 {
		return size
	}
	most, empty := cluster.NeedOfDevices(v.per, size[v.dimension])
	return append(size[:len(size):len(size)], most, empty)
}

// withDevices is a row's free room with the figures of its devices, which it copies from the parcel, in memory that is
// used again.
func (l *lot) withDevices(p *cluster.Plan, row int, free []int64) []int64 {
	v := &l.rules.devices
	if v.per == 0 {
		return free
	}
	copy(l.deviceFree(row), p.Parcels.DeviceFree(l.parcel[row]))
	most, empty := cluster.RoomOfDevices(l.deviceFree(row), v.per)
	l.figures = append(append(l.figures[:0], free...), most, empty)
	return l.figures
}

// deviceFree is what is free on each device of a row.
func (l *lot) deviceFree(row int) []int64 {
	n := l.rules.devices.most
	return l.device[row*n : (row+1)*n]
}

// takeDevices takes a unit off a row that it fits, and gives the devices on which it lies.
func (l *lot) takeDevices(row room.Row, need *room.Need) cluster.Devices {
	v, free := &l.rules.devices, l.deviceFree(int(row))
	g := need.Size()[v.dimension]
	if g == 0 {
		l.index.Take(row, need)
		return 0
	}
	on, ok := cluster.ChooseDevices(free, v.per, g)
	if !ok {
		panic("BUG: a unit finds no devices where it fits")
	}
	cluster.TakeOfDevices(free, on, v.per, g, 1)
	most, empty := cluster.RoomOfDevices(free, v.per)
	left := append(l.figures[:0], l.index.Free(row)...)
	for d := range l.dims {
		left[d] -= need.Size()[d]
	}
	left[l.dims], left[l.dims+1] = most, empty
	l.figures = left
	l.index.Put(row, left)
	return on
}
