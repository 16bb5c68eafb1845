package datasets

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

// owned has hosts of four types, a resource group of each.
var owned = profile{
	name: "owned", title: "cluster of owners",
	groups: []group{
		{"Small", "select(type == 'small')"}, {"Large", "select(type == 'large')"},
		{"Memory", "select(type == 'memory')"}, {"Gpu", "select(type == 'gpu')"},
	},
	types: []hostType{
		{name: "small", size: vector{32, 128, 400, 0}},
		{name: "large", size: vector{64, 256, 800, 0}},
		{name: "memory", size: vector{64, 512, 800, 0}},
		{name: "gpu", size: vector{128, 1024, 1600, 8}},
	},
	order: []int{0, 1, 2, 3, 0, 1, 2},
	shapes: []weighted{
		{vector{1, 4, 2, 0}, 40},
		{vector{2, 8, 10, 0}, 30},
		{vector{4, 16, 20, 0}, 20},
		{vector{2, 32, 40, 1}, 10},
	},
	gpuOne: 16,
	fill:   vector{100, 100, 100, 100}, // of what the hosts add up to, not of the demand
}

// lending is owned with larger units, of which, hosts being sized for them, about as much is wanted as there is.
var lending = profile{
	name: "lending", title: "cluster of lenders", groups: owned.groups, types: owned.types, order: owned.order,
	shapes: []weighted{
		{vector{2, 8, 4, 0}, 40},
		{vector{4, 16, 20, 0}, 30},
		{vector{8, 32, 40, 0}, 20},
		{vector{4, 64, 80, 1}, 10},
	},
	gpuOne: 16,
	fill:   vector{104, 65, 55, 60},
}

// ownerLevels is how many levels the consumers of Owners have.
const ownerLevels = 4

// Owners makes a cluster all of whose Consumers, at least four and not leaves alone, own hosts: in four levels, as many
// below each of the first three, the rest at the last. They own hosts of each of four groups, 19 of 20 of their
// parent's between siblings, by number, by percentage or as an amount; a tenth, all of the last level, own parts of
// hosts of the first group instead. Hosts are of fixed sizes, whatever is wanted. The cost is one pass over consumers,
// rows and hosts.
func Owners(o Options) (*Dataset, error) { return owners(o, &owned, false) }

// Lenders makes a cluster like that of Owners in which every second consumer of the first level, and all below it, own
// nothing, and what owners leave idle is lent: some lend for short graces alone, some keep a reserve, shares have
// ratios and, rarely, priorities. Hosts are sized so that processors are a little scarce.
func Lenders(o Options) (*Dataset, error) { return owners(o, &lending, true) }

func owners(o Options, p *profile, lend bool) (*Dataset, error) {
	if err := o.validate(p.name); err != nil {
		return nil, err
	}
	if o.Shapes == 0 {
		o.Shapes = len(p.shapes)
	}
	r := rand.New(rand.NewPCG(o.Seed, 0x57_49_4e_54))
	t := &ownerTree{r: r, profile: p, lend: lend, owners: o.Consumers,
		fan: max(1, int(math.Sqrt(math.Sqrt(float64(o.Consumers)))))}
	t.parents = t.fan * t.fan * t.fan
	t.last = max(0, o.Consumers-t.fan-t.fan*t.fan-t.parents)
	var whole vector
	for i := range o.Hosts {
		k := p.order[i%len(p.order)]
		t.hosts[k]++
		for d, v := range p.types[k].size {
			whole[d] += v
		}
	}
	t.grow("", 0, true)
	shapes := p.makeShapes(r, o.Shapes, o.Hosts >= len(p.order))
	demand, total := p.makeDemand(r, o, &tree{leaves: t.leaves}, shapes)
	if lend {
		whole = total
	}
	return &Dataset{Plan: t.policy(), Dimensions: dimensionNames[:], Hosts: p.makeHosts(o.Hosts, shapes, whole),
		Demand: demand}, nil
}

// ownerTree is the consumers of Owners while they are written.
type ownerTree struct {
	r             *rand.Rand
	profile       *profile
	lend          bool
	owners        int
	hosts         [4]int // by group
	fan           int    // children of each consumer above the last level but one
	parents, last int    // consumers of the last level but one, and of the last
	parent        int    // the next of those
	top, in       bytes.Buffer
	leaves        []string
}

// grow writes the consumers below a path, of a level, owning or not.
func (t *ownerTree) grow(path string, level int, own bool) {
	words := [ownerLevels][]string{{"Region"}, divisionNames, deskNames, bookNames}
	children := t.fan
	if level == ownerLevels-1 {
		children = (t.parent+1)*t.last/t.parents - t.parent*t.last/t.parents
		t.parent++
	}
	if children == 0 {
		t.leaves = append(t.leaves, path)
	}
	for i := range children {
		child := path + "/" + name(words[level], i)
		if t.lend && level == 0 {
			own = i%2 == 0
		}
		entry, owns := fmt.Sprintf("path: %q", child), false
		if own {
			rules := t.rules(level, children)
			entry += fmt.Sprintf(", own: [%s]", strings.Join(rules, ", "))
			owns = len(rules) > 0
		}
		fmt.Fprintf(&t.top, "  - {path: %q, rank: %d%s}\n", child, t.r.IntN(3), t.grace())
		fmt.Fprintf(&t.in, "      - {%s%s}\n", entry, t.share(owns))
		if level < ownerLevels-1 {
			t.grow(child, level+1, own)
		} else {
			t.leaves = append(t.leaves, child)
		}
	}
}

// grace draws how long a consumer's work may go on, where hosts are lent.
func (t *ownerTree) grace() string {
	if !t.lend {
		return ""
	}
	return fmt.Sprintf(", reclaim_grace: %ds", []int{0, 60, 300}[t.r.IntN(3)])
}

// share draws how a consumer shares and lends.
func (t *ownerTree) share(own bool) string {
	if !t.lend {
		return ""
	}
	s := fmt.Sprintf(", share: {ratio: %d}", 1+t.r.IntN(3))
	if t.r.IntN(32) == 0 {
		s = ", share: {priority: 1}"
	}
	if own && t.r.IntN(8) == 0 {
		s += ", lend_grace: 120s"
	}
	if own && t.r.IntN(16) == 0 {
		s += ", reserve: {percent: 10}"
	}
	return s
}

// rules draws what one of some siblings of a level owns.
func (t *ownerTree) rules(level, siblings int) (list []string) {
	if level == ownerLevels-1 {
		if t.r.IntN(t.last) < t.owners/10 {
			return []string{[2]string{
				fmt.Sprintf("{group: %s, per_host: {ncpus: 25%%}}", owned.groups[0].name),
				fmt.Sprintf("{group: %s, amount: {ncpus: %d}, partial: true}", owned.groups[0].name,
					owned.types[0].size[ncpus]*2+7),
			}[t.r.IntN(2)]}
		}
	}
	for i, g := range owned.groups {
		each := t.hosts[i] * 19 / 20
		for range min(level+1, ownerLevels-1) {
			each /= t.fan
		}
		if level == ownerLevels-1 {
			each /= siblings
		}
		switch kind := t.r.IntN(6); {
		case each == 0:
		case kind == 5 && !t.lend: // hosts that are lent have no fixed size
			list = append(list, fmt.Sprintf("{group: %s, amount: {ncpus: %d}}", g.name,
				owned.types[i].size[ncpus]*int64(each)))
		case kind == 4:
			list = append(list, fmt.Sprintf("{group: %s, percent: %.1f}", g.name, math.Floor(950/float64(siblings))/10))
		default:
			list = append(list, fmt.Sprintf("{group: %s, hosts: %d}", g.name, each))
		}
	}
	return list
}

// policy writes the policy file: one MD plan over all hosts.
func (t *ownerTree) policy() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# A made-up %s.\nstint: 1\ncluster: %s\ndimensions: [%s]\nresource_groups:\n", t.profile.title,
		t.profile.name, strings.Join(dimensionNames[:], ", "))
	var names []string
	for _, g := range owned.groups {
		fmt.Fprintf(&b, "  - {name: %s, select: %q}\n", g.name, g.rule)
		names = append(names, "{name: "+g.name+"}")
	}
	fmt.Fprintf(&b, "consumers:\n%smd_plans:\n  - name: %s\n    resource_groups: [%s]\n    consumers:\n%s",
		&t.top, t.profile.name, strings.Join(names, ", "), &t.in)
	return b.Bytes()
}
