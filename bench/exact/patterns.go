package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/stintd/stint/bench/bound"
)

// pattern is how many units of each size stand on a host together.
type pattern []int64

// errPatterns is that there are too many ways to fill a host.
var errPatterns = errors.New("too many ways to fill a host")

// patterns are all ways to fill a host of a class so that nothing that is wanted fits beside it, in order of the
// sizes. Error: there are more than most.
func patterns(p *bound.Problem, class, most int) (all []pattern, err error) {
	dims := p.Dimensions
	free := append([]int64(nil), p.Capacity[class*dims:(class+1)*dims]...)
	given := make(pattern, len(p.Demand))
	fits := func(i int) int64 { // units of size i beside what is given
		n := p.Demand[i] - given[i]
		for d, v := range p.Size[i*dims : (i+1)*dims] {
			if v > 0 {
				n = min(n, free[d]/v)
			}
		}
		return n
	}
	take := func(i int, units int64) {
		given[i] += units
		for d, v := range p.Size[i*dims : (i+1)*dims] {
			free[d] -= units * v
		}
	}
	var fill func(i int) error
	fill = func(i int) error {
		if i == len(p.Demand) {
			for k := range p.Demand {
				if fits(k) > 0 {
					return nil
				}
			}
			if len(all) == most {
				return errPatterns
			}
			all = append(all, append(pattern(nil), given...))
			return nil
		}
		for n := fits(i); n >= 0; n-- {
			take(i, n)
			err := fill(i + 1)
			take(i, -n)
			if err != nil {
				return err
			}
		}
		return nil
	}
	return all, fill(0)
}

// writeProgram writes the problem as a program in CPLEX's LP format, over the patterns of each class: z hosts of a
// class are filled by a pattern, y units of a size are placed. Its optimum is the most that any placement holds, in
// mean hosts.
func writeProgram(w io.Writer, p *bound.Problem, weights []float64, ways [][]pattern) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "Maximize\n held:")
	for i, v := range weights {
		fmt.Fprintf(b, "\n + %.17g y%d", v, i)
	}
	fmt.Fprintf(b, "\nSubject To\n")
	for i := range p.Demand {
		fmt.Fprintf(b, " size%d: y%d", i, i)
		for c, all := range ways {
			for k, one := range all {
				if one[i] > 0 {
					fmt.Fprintf(b, "\n - %d z%d_%d", one[i], c, k)
				}
			}
		}
		fmt.Fprintf(b, " <= 0\n")
	}
	for c, all := range ways {
		fmt.Fprintf(b, " class%d: 0 y0", c)
		for k := range all {
			fmt.Fprintf(b, "\n + z%d_%d", c, k)
		}
		fmt.Fprintf(b, " <= %d\n", p.Hosts[c])
	}
	fmt.Fprintf(b, "Bounds\n")
	for i, n := range p.Demand {
		fmt.Fprintf(b, " 0 <= y%d <= %d\n", i, n)
	}
	fmt.Fprintf(b, "Generals\n")
	for c, all := range ways {
		for k := range all {
			fmt.Fprintf(b, " z%d_%d\n", c, k)
		}
	}
	fmt.Fprintf(b, "End\n")
	return b.Flush()
}
