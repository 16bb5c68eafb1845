package md

import (
	"math/bits"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/ownership"
	"github.com/stintd/stint/core/plan"
)

// So many hosts may move, or one of so many, before a pass over all of them is as cheap as an update, where what they have may have changed. Where it is
// what is held there alone, most claims take what they had, and an update is cheaper however many there are.
const (
	updateMin  = 64
	updatePart = 8
)

// footing is what the last pass saw and gave, so that the next one need look only at what has changed. Without a ground
// there was none.
type footing struct {
	set     *plan.MDWindow
	ground  *ownership.Ground
	host    []cluster.HostID // by number in the ground
	place   []int32          // by HostID: that number
	gave    *ownership.Deeds
	changed []int32
	vectors []int64 // memory for what is held, of which no ground has anything yet
	was, is []int64 // scratch
}

// Touched is how many rows the plan's last pass over its ownership looked at (ownership.Assigner.Touched).
func (m *Planner) Touched() int64 { return m.owners.assigner.Touched() }

// movedHosts gives the hosts that moved since this Planner's last pass, by their numbers in its ground; not ok when there
// was none, when something else than hosts is not what it was, or when so many may have other sizes that all had better be
// looked at. What a Planner knows is of one policy.
func (m *Planner) movedHosts() (hosts []int32, ok bool) {
	f, moved := &m.owners.footing, m.p.Parcels.Moved
	if f.ground == nil || f.set != m.set || moved == nil || m.p.Reassign && popcount(moved) > max(updateMin, len(f.host)/updatePart) {
		return nil, false
	}
	f.changed = f.changed[:0]
	for w, set := range moved {
		for ; set != 0; set &= set - 1 {
			h := cluster.HostID(w<<6 + bits.TrailingZeros64(set))
			if m.s.Host.Plan[h] == m.p.Index {
				f.changed = append(f.changed, f.place[h])
			}
		}
	}
	return f.changed, true
}

// update is pass when only these hosts have changed: it gives the same deeds and changes, and splits the hosts by them.
func (m *Planner) update(moved []int32) {
	p, f := m.p, &m.owners.footing
	f.ground.Use = f.ground.Use[:0]
	var anew []cluster.HostID // to be split anew: what was public of a host may be more or less, though no part is
	for _, i := range moved {
		h := f.host[i]
		f.was = capOf(f.ground, i, f.was)
		m.survey(f.ground, i, m.s.Host.Parcel[h])
		if f.is = capOf(f.ground, i, f.is); !slices.Equal(f.was, f.is) {
			anew = append(anew, h)
		}
	}
	had := f.gave
	f.gave = m.owners.assigner.Update(f.ground, moved)
	clear(p.Parcels.Moved)
	m.setDeeds(f.gave)
	m.note()
	m.s.DivideAt(p, append(anew, m.compareMoved(had)...))
}

// capOf copies out what a host has, into the memory of v.
func capOf(g *ownership.Ground, i int32, v []int64) []int64 {
	v = v[:0]
	for _, column := range g.Cap {
		v = append(v, column[i])
	}
	return v
}

// compareMoved is compare after an update, and gives the hosts of the parts that changed, of some several times.
func (m *Planner) compareMoved(had *ownership.Deeds) (hosts []cluster.HostID) {
	o, f, last := &m.owners, &m.owners.footing, plan.None
	nodes, numbers := o.assigner.Moved()
	m.forgetReserved(nodes)
	for i, n := range nodes {
		if n != last {
			m.noteReserved(n)
			last = n
		}
		f.was, f.is = partOf(had, n, numbers[i], f.was), partOf(f.gave, n, numbers[i], f.is)
		if slices.Equal(f.was, f.is) {
			continue
		}
		h := f.host[numbers[i]]
		o.note(m.s.ConsumerOf[n], h, f.was, f.is)
		hosts = append(hosts, h)
	}
	m.orderReserved()
	return hosts
}

// partOf is what a consumer has of a host, all pieces together, by dimension, in the memory of sum. O(log deeds).
func partOf(d *ownership.Deeds, n plan.Node, host int32, sum []int64) []int64 {
	sum = zeroed(sum, len(d.Amount))
	from, to := run(d.Node, 0, len(d.Node), n)
	from, to = run(d.Host, from, to, host)
	for ; from < to; from++ {
		for dim, column := range d.Amount {
			sum[dim] += column[from]
		}
	}
	return sum
}

// run is where v stands in rows from … to-1 of a sorted column.
func run[T ~int32](column []T, from, to int, v T) (first, end int) {
	first, _ = slices.BinarySearch(column[from:to], v)
	end, _ = slices.BinarySearch(column[from:to], v+1)
	return from + first, from + end
}
