package datasets

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/stintd/stint/core/cluster"
)

// slotFan is how many levels the consumers of Slots have.
const slotLevels = 4

// Slots makes a cluster that is divided by slots under the ownership policy: consumers in four
// levels, half of the slots owned by the leaves, the rest in the pools of branches and cluster. Every
// second leaf has little demand and lends all it owns; the others want more than they own, share and
// borrow. Shapes is the largest unit, in slots; half of the rows have units of one slot. The
// hosts' slots add up to about what is wanted. The cost is one pass over rows and hosts.
func Slots(o Options) (*Dataset, error) {
	if err := o.validate("slots"); err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(o.Seed, 0x57_49_4e_54))
	leaves, branches := slotTree(o.Consumers)
	demand, total := slotDemand(r, o, leaves)
	return &Dataset{
		Plan:       slotPolicy(leaves, branches, total),
		Dimensions: []string{"slots"},
		Hosts:      slotHosts(o, total),
		Demand:     demand,
	}, nil
}

// slotTree gives the paths of n leaves in four levels, and of every branch with the leaves below
// it: the first, and how many.
func slotTree(n int) (leaves []string, branches []slotBranch) {
	fan := int(math.Ceil(math.Pow(float64(n), 1.0/slotLevels)))
	words := [slotLevels][]string{{"Region"}, divisionNames, deskNames, bookNames}
	var grow func(path string, level, count int)
	grow = func(path string, level, count int) {
		if level == slotLevels {
			leaves = append(leaves, path)
			return
		}
		if level > 0 {
			branches = append(branches, slotBranch{path, level, len(leaves), count})
		}
		for i, left := 0, count; left > 0; i++ {
			part := (left + fan - i - 1) / max(1, fan-i)
			if level == slotLevels-1 {
				part = 1
			}
			grow(path+"/"+name(words[level], i), level+1, part)
			left -= part
		}
	}
	grow("", 0, n)
	return leaves, branches
}

// slotBranch is a consumer that has children.
type slotBranch struct {
	path         string
	level        int
	first, count int
}

// slotDemand gives the demand table and the slots wanted in all: nine rows of ten are of the
// leaves that want much, the even ones.
func slotDemand(r *rand.Rand, o Options, leaves []string) (*cluster.DemandTable, int64) {
	rows := int((o.Units + unitsPerRow - 1) / unitsPerRow)
	t := &cluster.DemandTable{Rows: rows, Size: [][]int64{make([]int64, rows)}, Units: make([]int64, rows)}
	consumer, allocation := newText(rows), newText(rows)
	t.Sub, t.Plan, t.Requirement = newText(0).TextColumn, newText(0).TextColumn, newText(0).TextColumn
	jobs := make([]int, len(leaves))
	var total int64
	left := o.Units
	for row := range rows {
		leaf := r.IntN((len(leaves)+1)/2) * 2
		if r.IntN(10) == 0 {
			leaf = min(leaf+1, len(leaves)-1)
		}
		jobs[leaf]++
		t.Units[row] = drawUnits(r, left, int64(rows-row))
		left -= t.Units[row]
		size := int64(1)
		if o.Shapes > 1 && r.IntN(2) == 0 {
			size += r.Int64N(int64(o.Shapes))
		}
		t.Size[0][row] = size
		total += size * t.Units[row]
		consumer.set(row, leaves[leaf])
		allocation.set(row, "job-"+strconv.Itoa(jobs[leaf]))
	}
	t.Consumer, t.Allocation = consumer.TextColumn, allocation.TextColumn
	return t, total
}

// slotHosts makes hosts of equal size, at least that of the largest unit.
func slotHosts(o Options, total int64) *cluster.HostTable {
	t := &cluster.HostTable{Rows: o.Hosts, Size: [][]int64{make([]int64, o.Hosts)}}
	host := newText(o.Hosts)
	each := max(int64(o.Shapes), 1, total/int64(o.Hosts))
	for i := range o.Hosts {
		host.set(i, fmt.Sprintf("s%06d", i+1))
		t.Size[0][i] = each
	}
	t.Host = host.TextColumn
	return t
}

// slotPolicy writes the policy file: leaves own half of the slots between them, a branch a tenth
// more than its leaves, as a pool for its family.
func slotPolicy(leaves []string, branches []slotBranch, total int64) []byte {
	each := max(1, total/2/int64(len(leaves)))
	var top, in bytes.Buffer
	next := 0
	branch := func(upTo int) {
		for ; next < len(branches) && branches[next].first <= upTo; next++ {
			b := branches[next]
			owns := each * int64(b.count)
			policy := ""
			if b.level == 1 {
				policy = "policy: ownership, "
				owns += owns / 10 // children's parts are below it
			}
			fmt.Fprintf(&top, "  - {path: %q}\n", b.path)
			fmt.Fprintf(&in, "      - {path: %q, %sowns: %d, share: {ratio: %d}}\n", b.path, policy, owns, 1+b.first%4)
		}
	}
	for i, leaf := range leaves {
		branch(i)
		fmt.Fprintf(&top, "  - {path: %q, rank: %d}\n", leaf, i%3)
		fmt.Fprintf(&in, "      - {path: %q, owns: %d, lend: {limit: %d}, borrow: {}, share: {ratio: %d}}\n", leaf,
			each, each, 1+i%3)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "# A cluster divided by slots, as made by stint gen slots.\nstint: 1\ncluster: "+
		"slots\ndimensions: [slots]\n"+
		"resource_groups:\n  - {name: slots, select: \"select(slots > 0)\"}\nconsumers: # order here breaks ties\n%s"+
		"slot_plans:\n  - resource_group: slots\n    consumers:\n%s", &top, &in)
	return b.Bytes()
}
