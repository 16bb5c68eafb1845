package owner

import (
	"cmp"
	"slices"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// deed is a row of deeds that are compared with others.
type deed struct {
	node  plan.Node // plan.None: the consumer is gone
	place int32     // of the host in host order; those that left come behind
	row   int32
}

// compare notes the parts of hosts that are not the same in what was had and in what is, and which hosts they are of.
func (e Env) compare(had, now *cluster.Deeds, out *Decisions) {
	was, is := e.inOrder(had), e.inOrder(now)
	before, after := make([]int64, len(now.Amount)), make([]int64, len(now.Amount))
	for len(was) > 0 || len(is) > 0 {
		var c cluster.ConsumerID
		var h cluster.HostID
		if len(is) == 0 || len(was) > 0 && inOrder(had, now, was[0], is[0]) <= 0 {
			c, h = had.Consumer[was[0].row], had.Host[was[0].row]
		} else {
			c, h = now.Consumer[is[0].row], now.Host[is[0].row]
		}
		was, is = sumOf(before, had, was, c, h), sumOf(after, now, is, c, h)
		if out.note(c, h, before, after) {
			out.split = append(out.split, h)
		}
	}
}

// inOrder is the rows of deeds by consumers in tree order, those that are gone last, and the places of their hosts.
// They stand so already where no new policy or table of hosts has come in between.
func (e Env) inOrder(d *cluster.Deeds) []deed {
	rows, place := make([]deed, len(d.Consumer)), e.places()
	for i, c := range d.Consumer {
		rows[i] = deed{e.State.NodeOf[c], int32(place(d.Host[i])), int32(i)}
	}
	order := func(a, b deed) int { return inOrder(d, d, a, b) }
	if !slices.IsSortedFunc(rows, order) {
		slices.SortStableFunc(rows, order)
	}
	return rows
}

// inOrder compares rows a of one table of deeds and b of another.
func inOrder(one, other *cluster.Deeds, a, b deed) int {
	if (a.node == plan.None) != (b.node == plan.None) {
		return cmp.Compare(b.node, a.node) // those that are gone last
	}
	if a.node != b.node {
		return cmp.Compare(a.node, b.node)
	}
	return cmp.Or(cmp.Compare(one.Consumer[a.row], other.Consumer[b.row]), cmp.Compare(a.place, b.place))
}

// sumOf adds up the pieces of a consumer's part of a host, which come first among the rows, and gives the rows behind
// them.
func sumOf(sum []int64, d *cluster.Deeds, rows []deed, c cluster.ConsumerID, h cluster.HostID) []deed {
	clear(sum)
	for ; len(rows) > 0 && d.Consumer[rows[0].row] == c && d.Host[rows[0].row] == h; rows = rows[1:] {
		for dim := range sum {
			sum[dim] += d.Amount[dim][rows[0].row]
		}
	}
	return rows
}

// places gives hosts their places in host order; those that left the plan stand behind, in the order of the hosts
// table.
func (e Env) places() func(h cluster.HostID) int {
	s, parcels := e.State, e.Plan.Parcels.Len()
	var order map[cluster.HostID]int
	return func(h cluster.HostID) int {
		if s.Host.Plan[h] == e.Plan.Index {
			return int(s.Host.Parcel[h])
		}
		if order == nil {
			order = make(map[cluster.HostID]int, len(s.Host.Order))
			for i, id := range s.Host.Order {
				order[id] = i
			}
		}
		if i, ok := order[h]; ok {
			return parcels + i
		}
		return parcels + len(order) + int(h)
	}
}
