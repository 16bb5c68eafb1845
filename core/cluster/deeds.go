package cluster

import (
	"slices"

	"github.com/bits-and-blooms/bitset"

	"github.com/stintd/stint/core/plan"
)

// Deeds are the pieces of an MD plan's hosts that consumers own: what the last pass over the plan's ownership
// assigned (docs/ownership.md), by durable ids, in tree order of the consumers, then in host order. They
// outlive revisions of the policy; a piece goes with its consumer. What else the pass told stands beside them.
type Deeds struct {
	Consumer []ConsumerID
	Host     []HostID
	Rule     []int32   // of the consumer's list
	Number   []int64   // of the part
	Amount   [][]int64 // by dimension, then row
	Next     int64     // the number that the next new part gets

	Lister []ConsumerID // the consumers that had rules then
	List   []string     // and these, as plan.Policy.RuleText has them

	// By Node of the policy that was in force then; good until another comes.
	Unmet      []int32   // the first rule that was not met, NoID: none
	Open       bool      // whether a claim is tried again: an unmet one, or one that would rather have other hosts
	Configured [][]int64 // by dimension
	Reserved   [][]int64 // by dimension

	// What of consumers' parts of hosts is reserved (MD-5); good as long.
	Keeper     []ConsumerID
	KeptOn     []HostID
	KeptAmount [][]int64 // by dimension, then row
}

// parts are the deeds of one host: a consumer's pieces made one, in tree order.
type parts struct {
	node   []plan.Node
	amount []int64 // by row, then dimension
	dims   int
}

// of is what the part in a row is.
func (t *parts) of(row int) []int64 { return t.amount[row*t.dims : (row+1)*t.dims] }

// byHost sorts the deeds' rows by host: those of the host whose first parcel is k are start[k] … start[k+1]-1, each a
// piece. When only is not nil, hosts that are not in it have none.
func (p *Plan) byHost(s *State, only *bitset.BitSet) (row *parts, start []int32) {
	d := &p.Deeds
	start = make([]int32, p.Parcels.Len()+2)
	at := func(i int) ParcelID {
		h := d.Host[i]
		if only != nil && !only.Test(uint(h)) || s.Host.Plan[h] != p.Index || s.nodeOf(d.Consumer[i]) == plan.None {
			return NoID
		}
		return s.Host.Parcel[h]
	}
	for i := range d.Host {
		if k := at(i); k != NoID {
			start[k+2]++
		}
	}
	for k := 2; k < len(start); k++ {
		start[k] += start[k-1]
	}
	rows, dims := int(start[len(start)-1]), len(d.Amount)
	row = &parts{node: make([]plan.Node, rows), amount: make([]int64, rows*dims), dims: dims}
	for i := range d.Host {
		if k := at(i); k != NoID {
			to := int(start[k+1])
			row.node[to] = s.NodeOf[d.Consumer[i]]
			for dim, column := range d.Amount {
				row.amount[to*dims+dim] = column[i]
			}
			start[k+1]++
		}
	}
	return row, start[:len(start)-1]
}

// fill makes the parts those of some pieces.
func (t *parts) fill(pieces *parts, from, to int32) {
	t.node, t.amount, t.dims = t.node[:0], t.amount[:0], pieces.dims
	for i := int(from); i < int(to); i++ {
		n := pieces.node[i]
		if last := len(t.node) - 1; last < 0 || t.node[last] != n {
			t.node, t.amount = append(t.node, n), append(t.amount, pieces.of(i)...)
			continue
		}
		sum := t.of(len(t.node) - 1)
		for dim, v := range pieces.of(i) {
			sum[dim] += v
		}
	}
}

// rest takes what children have off their parents' parts, and what the first level has off public.
func (t *parts) rest(tree *plan.Tree, public []int64) {
	for i := range t.node { // parents before their children, while they have it all
		from := public
		if up := tree.Parent[t.node[i]]; up != plan.Root {
			j, ok := slices.BinarySearch(t.node, up)
			if !ok {
				panic("BUG: a consumer owns of a host of which its parent owns nothing")
			}
			from = t.of(j)
		}
		for d, v := range t.of(i) {
			from[d] -= v
		}
	}
}
