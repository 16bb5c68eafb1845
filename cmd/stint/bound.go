package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/stintd/stint/bench/measure"
)

// boundOf is the bounds of a log's cycle: its state is decided again from the inputs that the log has.
func boundOf(from *place, cycle string, stderr io.Writer) ([]measure.PlanBound, error) {
	if from.server != "" {
		return nil, errors.New("--bound: is told of a log (--log), by deciding its cycle again")
	}
	r, err := openLog(from.log)
	if err != nil {
		return nil, err
	}
	n, err := oneCycle(r, from.log, cycle)
	if err != nil {
		return nil, err
	}
	b := newReplay()
	if err := b.restore(r, from.log, n); err != nil {
		return nil, err
	}
	err = b.run(r, from.log, n, stderr, func(o *otherwise, _ int64) error { return acceptable(o, from.log, stderr) })
	if err != nil {
		return nil, err
	}
	return measure.Bounds(b.state)
}

// printBounds prints of each plan first the part of the bound that is held, then the parts of the bound and of the
// rest.
func printBounds(w io.Writer, bounds []measure.PlanBound) error {
	for i, b := range bounds {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "plan %s: held %.1f of at most %.1f mean hosts, %s\n\n", b.Plan, b.Granted, b.Bound,
			percent(b.Ratio))
		part := func(v float64) string { return percent(v / max(b.Bound, 1e-300)) }
		g := grid{head: []string{"part of the bound", "scarcity", "not held"}}
		for d, name := range b.Dimensions {
			g.add(name, part(b.Scarcity[d]), part(b.Idle[d]))
		}
		g.add("wanted beyond its price", part(b.Wanted), part(b.Unmet))
		g.add("held where it is dear", "", part(b.Elsewhere))
		if _, err := fmt.Fprintln(w, g.render()); err != nil {
			return err
		}
	}
	return nil
}
