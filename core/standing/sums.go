package standing

import "github.com/stintd/stint/core/cluster"

// HostSum is what the hosts of one plan that are in one state have together.
type HostSum struct {
	Plan       string // "": the hosts are in no plan
	State      string
	Hosts      int64
	Dimensions []string // slots alone in a slot plan
	Capacity   []int64  // by these; what the plan counts, overcommit included, of hosts in no plan their own
	Used       []int64
}

// HostSums adds up hosts: for each plan, and then for the hosts of none, a row for each state. The rows are all there,
// also those without a host. O(hosts + parcels).
func (k *Columns) HostSums() []HostSum {
	states := cluster.HostStates[:]
	var rows []HostSum
	grow := func(plan string, dimensions []string) {
		for _, state := range states {
			n := len(dimensions)
			rows = append(rows, HostSum{plan, state, 0, dimensions, make([]int64, n), make([]int64, n)})
		}
	}
	for i := range k.plans {
		p := &k.plans[i]
		dimensions := k.policy.Dimensions
		if p.slots {
			dimensions = []string{"slots"}
		}
		grow(p.name, dimensions)
		of := rows[len(rows)-len(states):]
		for at := 0; at < len(p.host); at = p.end(at) {
			of[k.state[p.host[at]]].Hosts++
		}
		for parcel, host := range p.host {
			row := &of[k.state[host]]
			for d := range dimensions {
				row.Capacity[d] += p.cap[d][parcel]
				row.Used[d] += p.cap[d][parcel] - p.free[d][parcel]
			}
		}
	}
	grow("", k.policy.Dimensions)
	of := rows[len(rows)-len(states):]
	for _, host := range k.order {
		if k.planOf[host] != cluster.NoID {
			continue
		}
		row := &of[k.state[host]]
		row.Hosts++
		for d := range row.Capacity {
			row.Capacity[d] += k.size[d][host]
		}
	}
	return rows
}
