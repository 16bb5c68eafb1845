// Package datasets makes clusters of any size by seed, and reads public traces: a
// policy file, a hosts table and a demand table that go together.
package datasets

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// Options is the size of a dataset. The same options give the same dataset, on any machine.
type Options struct {
	Hosts     int    // hosts, of the profile's types
	Consumers int    // leaves of the consumer tree; the divisions and desks above them come on top
	Units     int64  // units wanted in all, exactly
	Shapes    int    // distinct unit sizes; 0: six
	Seed      uint64 // of the PCG that makes every choice
	Owners    bool   // gpu only: divisions and desks own parts of the GPU hosts
}

// Dataset is a policy file and the tables that go with it.
type Dataset struct {
	Plan       []byte // YAML, one MD plan
	Dimensions []string
	Hosts      *cluster.HostTable
	Demand     *cluster.DemandTable
}

// Bounds of Options. A demand row has about unitsPerRow units, and a demand table 20 million rows at most.
const (
	hostsMax     = 10_000_000
	consumersMax = 900_000
	unitsMax     = 400_000_000
	shapesMax    = 10_000
	unitsPerRow  = 25
)

// validate reports all that is wrong with the options for a profile.
func (o Options) validate(profile string) error {
	faults := cluster.Faults{Table: profile}
	check := func(name string, v, low, high int64) {
		if v < low || v > high {
			faults.Add(0, name, strconv.FormatInt(v, 10), fmt.Sprintf("must be from %d to %d", low, high))
		}
	}
	check("hosts", int64(o.Hosts), 1, hostsMax)
	check("consumers", int64(o.Consumers), 2, consumersMax)
	check("units", o.Units, 1, unitsMax)
	check("shapes", int64(o.Shapes), 0, shapesMax)
	return faults.Err()
}

// The dimensions of all profiles, in the order of their policy files. Memory and scratch are GiB.
const (
	ncpus = iota
	maxmem
	scratch
	gpus
	dimensions
)

var dimensionNames = [dimensions]string{"ncpus", "maxmem", "scratch", "gpus"}

type vector [dimensions]int64

// profile is what kind of cluster a dataset is.
type profile struct {
	name   string // of cluster and plan, and in messages
	title  string // in the policy file's comment
	groups []group
	types  []hostType // their proportions; each dimension is scaled to the demand
	order  []int      // hosts take their types in this order, over and over
	shapes []weighted // the first unit sizes
	gpuOne int        // of so many further sizes one has GPUs
	// fill is how many percent of each dimension the demand would take if it could be poured.
	fill vector
}

// group is a resource group of the plan.
type group struct{ name, rule string }

type hostType struct {
	name  string // its first letter begins the names of its hosts
	model string // of its GPUs
	size  vector
}

// weighted is a unit size and how many rows of a hundred have it.
type weighted struct {
	size   vector
	weight int
}

var siteNames = [...]string{"north", "south", "harbour"}

// grid's sizes are small, medium and large valuations, a memory hog, a Monte-Carlo unit with scratch, and one
// on a GPU. Processors are the scarce thing: a few units are left over, with reasons to look at. The others
// have room to spare, since hosts whose processors are taken strand what is left of them.
var grid = profile{
	name: "grid", title: "grid",
	groups: []group{{"Grid", "select(ncpus > 0)"}},
	types: []hostType{
		{name: "standard", size: vector{32, 128, 400, 0}},
		{name: "himem", size: vector{32, 256, 400, 0}},
		{name: "large", size: vector{64, 256, 800, 0}},
		{name: "gpu", size: vector{48, 256, 800, 4}},
	},
	order: []int{0, 1, 2, 3, 0, 0, 1, 0, 2, 0}, // four hosts have all four
	shapes: []weighted{
		{vector{1, 4, 2, 0}, 30},
		{vector{2, 8, 10, 0}, 24},
		{vector{4, 16, 20, 0}, 18},
		{vector{4, 64, 20, 0}, 10},
		{vector{8, 24, 120, 0}, 12},
		{vector{2, 32, 40, 1}, 6},
	},
	gpuOne: 16,
	fill:   vector{104, 65, 55, 60},
}

// Grid makes a bank-style compute grid: divisions, desks and books as consumers in three levels, four
// types of hosts, few unit shapes, about 25 units a demand row. Each dimension's capacity follows the
// demand, so that it fits to about 100 %, save where there are so many hosts that each, to hold the
// largest unit, is already more than enough. Rows of demand stand in order of arrival, consumers mixed.
// The cost is one pass over rows and hosts.
func Grid(o Options) (*Dataset, error) {
	if err := o.validate(grid.name); err != nil {
		return nil, err
	}
	d, _ := grid.build(o)
	return d, nil
}

// build makes a dataset by valid options. The random numbers are good for further choices.
func (p *profile) build(o Options) (*Dataset, *rand.Rand) {
	if o.Shapes == 0 {
		o.Shapes = len(p.shapes)
	}
	r := rand.New(rand.NewPCG(o.Seed, 0x57_49_4e_54))
	tree := newTree(o.Consumers)
	policy := tree.policy(r, p, o.Owners)
	withGPU := false
	for i := range min(o.Hosts, len(p.order)) {
		withGPU = withGPU || p.types[p.order[i]].size[gpus] > 0
	}
	shapes := p.makeShapes(r, o.Shapes, withGPU)
	demand, total := p.makeDemand(r, o, tree, shapes)
	return &Dataset{
		Plan:       policy,
		Dimensions: dimensionNames[:],
		Hosts:      p.makeHosts(o.Hosts, shapes, total),
		Demand:     demand,
	}, r
}

// makeShapes gives n different unit sizes. Past the profile's own they are drawn at random. Where no host
// has a GPU, no shape has one.
func (p *profile) makeShapes(r *rand.Rand, n int, withGPU bool) []vector {
	var shapes []vector
	seen := map[vector]bool{}
	add := func(v vector) {
		if !withGPU {
			v[gpus] = 0
		}
		if !seen[v] && len(shapes) < n {
			seen[v] = true
			shapes = append(shapes, v)
		}
	}
	for _, b := range p.shapes {
		add(b.size)
	}
	for len(shapes) < n {
		cpu := 1 + r.Int64N(16)
		v := vector{cpu, cpu*(2+r.Int64N(7)) + r.Int64N(4), 1 + r.Int64N(160), 0}
		if r.IntN(p.gpuOne) == 0 {
			v[gpus] = 1 + r.Int64N(2)
		}
		add(v)
	}
	return shapes
}

// pickShape draws a shape: the first by their weights, the others together as often as those.
func (p *profile) pickShape(r *rand.Rand, n int) int {
	first := p.shapes[:min(n, len(p.shapes))]
	if n > len(first) && r.IntN(2) == 0 {
		return len(first) + r.IntN(n-len(first))
	}
	total := 0
	for _, b := range first {
		total += b.weight
	}
	at := r.IntN(total)
	for i, b := range first {
		if at < b.weight {
			return i
		}
		at -= b.weight
	}
	panic("BUG: weights do not add up")
}

// makeDemand gives the demand table and the sum of its sizes. Every leaf has an allocation while there are
// enough; a fifth of the leaves gets half of the others, as desks differ. One allocation in four has a second
// sub-allocation of another size.
func (p *profile) makeDemand(r *rand.Rand, o Options, tree *tree, shapes []vector) (*cluster.DemandTable, vector) {
	rows := int((o.Units + unitsPerRow - 1) / unitsPerRow)
	t := &cluster.DemandTable{Rows: rows, Size: make([][]int64, dimensions)}
	consumer, allocation, sub := newText(rows), newText(rows), newText(rows)
	t.Plan, t.Requirement = newText(0).TextColumn, newText(0).TextColumn
	for d := range t.Size {
		t.Size[d] = make([]int64, rows)
	}
	t.Units = make([]int64, rows)
	jobs := make([]int, len(tree.leaves))
	var total vector
	left, second, leaf, allocations := o.Units, false, 0, 0
	for row := range rows {
		if !second {
			leaf = pickLeaf(r, allocations, len(tree.leaves))
			jobs[leaf]++
			allocations++
		}
		t.Units[row] = drawUnits(r, left, int64(rows-row))
		left -= t.Units[row]
		size := shapes[p.pickShape(r, len(shapes))]
		for d, v := range size {
			t.Size[d][row] = v
			total[d] += v * t.Units[row]
		}
		consumer.set(row, tree.leaves[leaf])
		allocation.set(row, "job-"+strconv.Itoa(jobs[leaf]))
		if second {
			sub.set(row, "aggregate")
		} else {
			sub.set(row, "")
		}
		second = !second && r.IntN(4) == 0
	}
	t.Consumer, t.Allocation, t.Sub = consumer.TextColumn, allocation.TextColumn, sub.TextColumn
	return t, total
}

// pickLeaf draws the leaf of an allocation; the first allocations go round all leaves.
func pickLeaf(r *rand.Rand, allocation, leaves int) int {
	if allocation < leaves {
		return allocation
	}
	if busy := (leaves + 4) / 5; r.IntN(2) == 0 {
		return r.IntN(busy) * 5 % leaves
	}
	return r.IntN(leaves)
}

// drawUnits gives a row from 1 to twice the mean of what is left, and leaves at least a unit for each later row.
func drawUnits(r *rand.Rand, left, rows int64) int64 {
	if rows == 1 {
		return left
	}
	mean := left / rows
	return min(mean/2+1+r.Int64N(mean+1), left-(rows-1))
}

// makeHosts sizes the hosts for the demand.
func (p *profile) makeHosts(n int, shapes []vector, total vector) *cluster.HostTable {
	sizes := p.scale(n, shapes, total)
	t := &cluster.HostTable{Rows: n, Size: make([][]int64, dimensions)}
	for d := range t.Size {
		t.Size[d] = make([]int64, n)
	}
	host, kind, model, site := newText(n), newText(n), newText(n), newText(n)
	valid, hasModel := make([]bool, n), make([]bool, n)
	for i := range n {
		k := p.order[i%len(p.order)]
		ht := &p.types[k]
		host.set(i, fmt.Sprintf("%s%06d", ht.name[:1], i+1))
		kind.set(i, ht.name)
		model.set(i, ht.model)
		site.set(i, siteNames[i*len(siteNames)/n])
		valid[i], hasModel[i] = true, ht.model != ""
		for d := range t.Size {
			t.Size[d][i] = sizes[k][d]
		}
	}
	t.Host = host.TextColumn
	t.Attr = []cluster.AttrColumn{
		{Name: "type", Kind: plan.Text, Valid: valid, Text: kind.TextColumn},
		{Name: "site", Kind: plan.Text, Valid: valid, Text: site.TextColumn},
	}
	if slices.Contains(hasModel, true) {
		t.Attr = append(t.Attr, cluster.AttrColumn{Name: "model", Kind: plan.Text, Valid: hasModel,
			Text: model.TextColumn})
	}
	return t
}

// scale gives each type its size: by dimension, the proportions of the types scaled so that the sum over n
// hosts is what fill asks for, but never below the largest unit.
func (p *profile) scale(n int, shapes []vector, total vector) []vector {
	var largest, base vector
	for _, s := range shapes {
		for d, v := range s {
			largest[d] = max(largest[d], v)
		}
	}
	for i := range n {
		for d, v := range p.types[p.order[i%len(p.order)]].size {
			base[d] += v
		}
	}
	sizes := make([]vector, len(p.types))
	for k, ht := range p.types {
		for d, v := range ht.size {
			if v == 0 || total[d] == 0 {
				continue
			}
			scaled := float64(v) * (float64(total[d]) * 100 / float64(p.fill[d]) / float64(base[d]))
			sizes[k][d] = max(largest[d], int64(math.Round(scaled)))
		}
	}
	return sizes
}

// textColumn is a text column of known length while it is filled.
type textColumn struct{ cluster.TextColumn }

func newText(rows int) textColumn {
	c := textColumn{cluster.TextColumn{Names: new(cluster.Names)}}
	if rows > 0 {
		c.Code = make([]int32, rows)
	}
	return c
}

func (c *textColumn) set(row int, s string) { c.Code[row] = c.Names.InternString(s) }
