package datasets

import (
	"math/rand/v2"

	"github.com/stintd/stint/core/cluster"
)

// Hetero makes the demand and consumers of a grid over hosts that all differ in size: processors from 8 to 136
// in proportion, the other dimensions by themselves, GPUs on one host in five.
func Hetero(o Options) (*Dataset, error) {
	p := grid
	p.name, p.title = "hetero", "grid of hosts that all differ"
	if err := o.validate(p.name); err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(o.Seed, 0x48_45_54_52))
	p.types, p.order = make([]hostType, o.Hosts), make([]int, o.Hosts)
	for i := range p.types {
		cpu := 8_000 + r.Int64N(128_000) // thousandths, as are the others: proportions need to be fine
		p.order[i] = i
		p.types[i] = hostType{name: "compute",
			size: vector{cpu, cpu * (2 + r.Int64N(7)), 100_000 + r.Int64N(1_900_000), 0}}
		if i%5 == 0 {
			p.types[i].name, p.types[i].size[gpus] = "gpu", 1000+r.Int64N(7000)
		}
	}
	d, _ := p.build(o)
	separate(d.Hosts)
	return d, nil
}

// separate gives a host of a size that an earlier one has more scratch than any other has.
func separate(t *cluster.HostTable) {
	var most int64
	for _, v := range t.Size[scratch] {
		most = max(most, v)
	}
	seen := make(map[vector]bool, t.Rows)
	for i := range t.Rows {
		var v vector
		for d := range v {
			v[d] = t.Size[d][i]
		}
		if seen[v] {
			most++
			v[scratch], t.Size[scratch][i] = most, most
		}
		seen[v] = true
	}
}
