package reason

import (
	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/room"
)

// need is a size as the rooms of a depth have it.
func (r *Reasons) need(depth int, size []int64) room.Need {
	if r.rooms.per > 0 {
		most, empty := cluster.NeedOfDevices(r.rooms.per, size[r.env.Plan.MD.Device])
		size = append(size[:len(size):len(size)], most, empty)
	}
	return r.rooms.level[depth].index.Need(size)
}

// onNoDevice is the verdict on a unit that the sums of some hosts would take, where none of those has the devices for
// it (D-185). Where there are devices nobody owns anything, so that all rows are of the root's pool.
func (r *Reasons) onNoDevice(a *ask, spans []span, us int64, stopped int32, full []room.Row) (v verdict, is bool) {
	e := r.env
	if e.Plan.OnDevices(a.size) == 0 {
		return verdict{}, false
	}
	hosts := 0
	for i := range spans {
		o := &spans[i]
		if o.depth <= stopped {
			continue
		}
		mask, l := r.maskOf(a, o, us).within, &r.rooms.level[o.depth]
		sums := l.index.Need(append(a.size[:len(a.size):len(a.size)], 0, 0))
		key := search{place{o.depth, o.pool}, &mask[0]}
		n, known := a.bySums[key]
		if !known {
			if n = l.index.Count(&l.set, &sums, mask); a.bySums == nil {
				a.bySums = map[search]int{}
			}
			a.bySums[key] = n
		}
		hosts += n
		for _, row := range full {
			if has(mask, row) && l.set.Has(row) && l.index.Fits(row, &sums) {
				hosts--
			}
		}
	}
	if hosts == 0 {
		return verdict{}, false
	}
	d := e.Plan.MD.Device
	v = because(decision.ReasonFragmented,
		decision.DeviceDetail(a.size[d], r.rooms.per, e.State.Policy.Dimensions[d], hosts))
	v.dimension = int32(d)
	return v, true
}
