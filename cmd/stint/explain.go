package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/stintd/stint/bench/measure"
	"github.com/stintd/stint/core/explain"
	"github.com/stintd/stint/export"
)

func newExplain() *cobra.Command {
	var from place
	var cycle, output string
	var bound bool
	c := &cobra.Command{
		Use:   "explain --log LOG|--server URL [--cycle N] CONSUMER[:ALLOCATION]",
		Short: "Tells why a consumer or an allocation has what it has",
		Long: `Tells why a consumer, or one of its allocations, has what it has after a cycle: each figure with what
it follows from, beside those of its siblings and of all above it; what the cycle gave and took; why
it has no more, from its own limit up the tree to what stands in the way; what is being taken back of it
and for it, from whom and by when. Each sentence ends with the rules that it follows from.

It goes by the log alone, or by what a running service knows: what the cycles decided, and the policy file
that was in force. With --bound the cycle of a log is decided again, and where units are short for want of
room (fragmented, pool_exhausted) it is told which dimensions are scarce in the plan as a whole.`,
		Example: `  stint explain --log demo/log /Markets/Credit/Pricing
  stint explain --log demo/log --bound /Markets/Credit/Pricing
  stint explain --log demo/log --cycle 3 /Markets/Credit/Pricing:nightly
  stint explain --log demo/log /Markets --output json
  stint explain --server http://grid:7468 --token-file token /Markets/Credit:nightly`,
		Args: takes("a consumer, such as /Risk, or one of its allocations, such as /Risk:a"),
		RunE: func(c *cobra.Command, args []string) error {
			if output != "table" && output != "json" {
				return fmt.Errorf("--output %q: must be table or json", output)
			}
			if err := from.check(); err != nil {
				return err
			}
			var bounds []measure.PlanBound
			if bound {
				var err error
				if bounds, err = boundOf(&from, cycle, c.ErrOrStderr()); err != nil {
					return err
				}
			}
			e, err := from.explanation(c.Context(), args[0], cycle)
			if err != nil {
				return err
			}
			for i := range bounds {
				e.Name(bounds[i].Plan, prices(&bounds[i]))
			}
			if output == "json" {
				return encode(c.OutOrStdout(), e)
			}
			return e.Write(c.OutOrStdout(), styleOf(c.OutOrStdout()))
		},
	}
	f := c.Flags()
	from.flags(f)
	f.StringVar(&cycle, "cycle", "last", "a cycle's number, or last")
	f.BoolVar(&bound, "bound", false, "with --log, also which dimensions are scarce, where there is no room")
	f.StringVar(&output, "output", "table", "table or json")
	return c
}

// prices are the prices of the capacity of each dimension of a plan, by the plan's bound.
func prices(b *measure.PlanBound) (all []explain.Price) {
	for d, name := range b.Dimensions {
		all = append(all, explain.Price{Dimension: name, Cost: b.Scarcity[d]})
	}
	return all
}

// explained explains a consumer or an allocation by a log.
func explained(log, name, cycle string) (*explain.Explanation, error) {
	f, err := facts(log, cycle)
	if err != nil {
		return nil, err
	}
	target, err := f.Find(name)
	if err != nil {
		return nil, err
	}
	return explain.Explain(f, target)
}

// facts gathers the facts of a cycle from a log.
func facts(log, cycle string) (*explain.Facts, error) {
	r, err := openLog(log)
	if err != nil {
		return nil, err
	}
	n, err := oneCycle(r, log, cycle)
	if err != nil {
		return nil, err
	}
	return factsAt(r, log, n)
}

// factsAt is facts by a reader that is open.
func factsAt(r *export.Reader, log string, n int64) (*explain.Facts, error) {
	f, err := explain.Read(r, n, log)
	if err != nil {
		return nil, err
	}
	f.Asked = func() (*explain.Asked, error) { return askedOf(r, log, n) }
	return f, nil
}

// oneCycle reads --cycle: a number, or last.
func oneCycle(r *export.Reader, log, cycle string) (int64, error) {
	cycles := r.Cycles()
	if len(cycles) == 0 {
		return 0, fmt.Errorf("log %s has no cycle yet", log)
	}
	if cycle == "last" {
		return cycles[len(cycles)-1], nil
	}
	n, err := strconv.ParseInt(cycle, 10, 64)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("--cycle %q: must be a number from 1, or last", cycle)
	}
	_, err = r.Holder("cycles", n) // names the cycles that there are
	return n, err
}

// encode writes a value as JSON for people too.
func encode(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// styleOf is how explanations are written to w.
func styleOf(w io.Writer) explain.Style {
	p := painter(w)
	return explain.Style{Width: widthOf(w), Bold: p.bold, Bad: p.bad, Mark: p.faint}
}
