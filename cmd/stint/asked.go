package main

import (
	"github.com/stintd/stint/core/engine"
	"github.com/stintd/stint/core/explain"
	"github.com/stintd/stint/core/standing"
	"github.com/stintd/stint/export"
)

// askedOf finds the demand after a cycle of a log, and the hosts: from the last state that was saved up to the cycle
// and the inputs since. No cycle is decided again, so that holdings are not known.
func askedOf(r *export.Reader, log string, cycle int64) (*explain.Asked, error) {
	b := newReplay()
	if err := b.restore(r, log, cycle+1); err != nil {
		return nil, err
	}
	since := int64(0)
	if b.state != nil {
		since = b.state.Cycle
	}
	var inputs []export.Input
	for _, n := range r.Cycles() {
		if n <= since || n > cycle {
			continue
		}
		of, err := r.Inputs(n)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, of...)
	}
	for _, in := range lastInputs(inputs) {
		content, err := r.InputContent(in.Kind, in.Digest)
		if err != nil {
			return nil, err
		}
		g := &given{kind: in.Kind, source: in.Source, format: in.Format, name: in.Kind + " " + in.Digest,
			content: content}
		if err := b.apply(g); err != nil {
			return nil, err
		}
	}
	stands := standing.Keep(b.state, nil, standing.Frozen())
	return &explain.Asked{Requests: stands.Requests(), Inventory: stands.Inventory()}, nil
}

// lastInputs leaves of inputs, in order, the inputs that make the demand at their end: policies, and of hosts and of
// each source's demand the last whole table with the changes behind it.
func lastInputs(inputs []export.Input) (list []export.Input) {
	type subject struct{ what, source string }
	about := func(in *export.Input) (s subject, whole, counts bool) {
		switch in.Kind {
		case kindPlan:
			return subject{}, false, true
		case kindHosts, kindHostChanges:
			return subject{what: kindHosts}, in.Kind == kindHosts, true
		case kindDemand, engine.InputDemandChanges, engine.InputDemandDelete:
			return subject{kindDemand, in.Source}, in.Kind != engine.InputDemandChanges, true
		}
		return subject{}, false, false
	}
	last := map[subject]int{}
	for i := range inputs {
		if s, whole, _ := about(&inputs[i]); whole {
			last[s] = i
		}
	}
	for i := range inputs {
		if s, _, counts := about(&inputs[i]); counts && i >= last[s] {
			list = append(list, inputs[i])
		}
	}
	return list
}
