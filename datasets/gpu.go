package datasets

import (
	"slices"
	"strings"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
)

// gpu's hosts have GPUs of four models, or none. GPUs are the scarce thing.
var gpu = profile{
	name: "gpu", title: "GPU cluster",
	groups: []group{{"GPUs", "select(gpus > 0)"}, {"CPUs", "select(gpus == 0)"}},
	types: []hostType{
		{name: "training", model: "A100", size: vector{128, 1024, 3200, 8}},
		{name: "training", model: "H100", size: vector{192, 2048, 6400, 8}},
		{name: "inference", model: "L40", size: vector{64, 512, 1600, 4}},
		{name: "inference", model: "T4", size: vector{48, 192, 800, 4}},
		{name: "compute", size: vector{64, 256, 800, 0}},
	},
	order: []int{0, 4, 3, 2, 1, 3, 0, 4, 2, 3},
	shapes: []weighted{
		{vector{1, 4, 2, 0}, 20},
		{vector{8, 32, 20, 0}, 10},
		{vector{4, 16, 10, 1}, 36},
		{vector{8, 64, 40, 2}, 20},
		{vector{16, 128, 80, 4}, 10},
		{vector{2, 8, 4, 1}, 4},
	},
	gpuOne: 2,
	fill:   vector{60, 40, 50, 104},
}

// gpuChoices are the models that a demand row may ask for together.
var gpuChoices = [...][]string{{"A100", "H100"}, {"T4", "L40"}, {"H100"}, {"A100"}, {"T4"}, {"L40", "A100", "H100"}}

// GPU makes a cluster of hosts with GPUs of different models (the attribute `model`) and hosts without: the
// consumers and sizes are made as Grid makes them. Of the rows that want GPUs two in five name models in a
// requirement, and one row in eight has max_per_host.
func GPU(o Options) (*Dataset, error) {
	if err := o.validate(gpu.name); err != nil {
		return nil, err
	}
	d, r := gpu.build(o)
	t := d.Demand
	var choices []string // of models that some host has: a requirement may name no others
	for _, models := range gpuChoices {
		if models = slices.DeleteFunc(slices.Clone(models), func(m string) bool {
			return !slices.ContainsFunc(gpu.order[:min(o.Hosts, len(gpu.order))], func(k int) bool {
				return gpu.types[k].model == m
			})
		}); len(models) > 0 {
			choices = append(choices, "select("+strings.Join(models, " || ")+")")
		}
	}
	requirement := newText(t.Rows)
	t.MaxPerHost = make([]int64, t.Rows)
	for row := range t.Rows {
		requirement.Code[row], t.MaxPerHost[row] = cluster.Null, plan.Unlimited
		if t.Size[gpus][row] > 0 && r.IntN(5) < 2 {
			requirement.set(row, choices[r.IntN(len(choices))])
		}
		if r.IntN(8) == 0 {
			t.MaxPerHost[row] = 1 + r.Int64N(4)
		}
	}
	t.Requirement = requirement.TextColumn
	return d, nil
}
