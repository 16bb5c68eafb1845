package reason

import (
	"math/bits"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/room"
)

// masks are which rows those may use who have a requirement and a grace, as bitsets by row. They are kept as long as
// rows, open hosts, attributes and the window are the same.
type masks struct {
	tables int64 // State.HostTables
	window *plan.MDWindow
	reach  map[*plan.Requirement]reach // by requirement, nil: none; ids may be given anew
	grace  map[graceKey][]uint64
	usable map[maskKey]mask
}

// reach is the open rows that a requirement selects.
type reach struct {
	rows  []uint64
	count int
}

// mask is the rows within a grace, of those that a requirement selects on open hosts, and those that only it keeps out.
type mask struct {
	within []uint64
	beyond []uint64 // nil: there are none
}

type graceKey struct {
	depth int32
	us    int64
}

type maskKey struct {
	of *plan.Requirement
	graceKey
}

// masksMost is how many bitsets of each kind are kept at most.
const masksMost = 1 << 9

// reset forgets all.
func (v *masks) reset(e *Env) {
	v.tables, v.window = e.State.HostTables, e.Window
	v.reach, v.grace, v.usable = map[*plan.Requirement]reach{}, map[graceKey][]uint64{}, map[maskKey]mask{}
}

// stale tells whether attributes or the window are others.
func (v *masks) stale(e *Env) bool { return v.tables != e.State.HostTables || v.window != e.Window }

// requirement is that of an id, nil for none.
func requirement(e *Env, need cluster.NeedID) *plan.Requirement {
	return e.Views.Needs.Requirement(e.State, need)
}

// of is the open rows that a requirement selects. O(rows) for the first time.
func (v *masks) of(e *Env, open []uint64, need cluster.NeedID) reach {
	by := requirement(e, need)
	r, ok := v.reach[by]
	if ok {
		return r
	}
	if len(v.reach) == masksMost {
		v.reset(e)
	}
	r.rows = open
	if selected, _ := e.Views.Needs.Of(e.State, e.Plan, need); selected != nil {
		r.rows = make([]uint64, len(open))
		for row, k := range e.Views.Owned.Parcel {
			if has(open, room.Row(row)) && selected[k>>6]>>(uint(k)&63)&1 == 1 {
				r.rows[row>>6] |= 1 << (row & 63)
			}
		}
	}
	for _, w := range r.rows {
		r.count += bits.OnesCount64(w)
	}
	v.reach[by] = r
	return r
}

// within is the rows in whose graces a leaf's is, of those that are drawn on through pools of one depth; nil: all.
// O(consumers × depth) for the first time.
func (v *masks) within(e *Env, key graceKey) []uint64 {
	set, ok := v.grace[key]
	if ok {
		return set
	}
	if len(v.grace) == masksMost {
		v.reset(e)
	}
	t, all := &e.State.Policy.Tree, true
	set = make([]uint64, (len(e.Views.Owned.Parcel)+63)/64)
	for n := range plan.Node(t.Len()) {
		from, to := e.Views.Owned.Own(n)
		pool := n
		for from < to && t.Depth[pool] > key.depth {
			pool = t.Parent[pool]
		}
		if from == to || t.Depth[n] < key.depth {
			continue
		}
		if key.us > e.Grace(n, pool) {
			all = false
			continue
		}
		for row := from; row < to; row++ {
			set[row>>6] |= 1 << (uint(row) & 63)
		}
	}
	if all {
		set = nil
	}
	v.grace[key] = set
	return set
}

// usableBy is the rows that a requirement and a grace let somebody use through pools of one depth. O(rows ÷ 64) for the
// first time.
func (v *masks) usableBy(e *Env, open []uint64, need cluster.NeedID, key graceKey) mask {
	at := maskKey{requirement(e, need), key}
	m, ok := v.usable[at]
	if ok {
		return m
	}
	reach, within := v.of(e, open, need), v.within(e, key)
	if m.within = reach.rows; within != nil {
		m.within, m.beyond = make([]uint64, len(within)), make([]uint64, len(within))
		for w, rows := range reach.rows {
			m.within[w], m.beyond[w] = rows&within[w], rows&^within[w]
		}
	}
	if len(v.usable) == masksMost {
		clear(v.usable)
	}
	v.usable[at] = m
	return m
}
