// Command gate tells whether stint became slower: it measures small clusters and tables, and fails where one takes
// longer than the committed file allows. Times are processor time ÷ that of a kernel that no change of stint touches,
// measured in turn on one processor, so that a figure means the same on a slower machine; of each the shortest of many
// short runs counts, since what others do on a machine only makes runs longer. A figure that fails is measured again,
// some times over, before it is one.
//
// The gate fails too where a figure takes so much less than the file says that a slowdown of 30 % would pass: a gate
// that passes would have told of one.
package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
)

const (
	runsOfRound = 40 // of each suite
	roundsLeast = 3
	roundsMost  = 12 // while a figure fails

	// A planted slowdown of 30 % must fail and no slowdown must not, whatever a busy machine adds: the limit leaves
	// both as much room, 1.14 = √1.3 (docs/decisions.md, D-121).
	slower  = 1.14
	noticed = 1.3
)

func main() {
	file := flag.String("ratios", "bench/gate/ratios.json", "the ratios that are held")
	write := flag.Bool("write", false, "write the ratios of this run there, in place of comparing")
	flag.Parse()
	failed, err := gate(*file, *write)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gate:", err)
		os.Exit(2)
	}
	if failed > 0 {
		os.Exit(1)
	}
}

// gate measures, and compares or writes. It gives how many figures fail.
func gate(file string, write bool) (failed int, err error) {
	held := &ratios{Of: map[figure]float64{}}
	if !write {
		if held, err = readRatios(file); err != nil {
			return 0, err
		}
	}
	runtime.GOMAXPROCS(1)
	debug.SetGCPercent(-1) // the collector comes between runs
	dir, err := os.MkdirTemp("", "stint-gate")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	all, err := suites(dir)
	if err != nil {
		return 0, err
	}
	m := newMeasured(all)
	if err := held.name(m.figures()); err != nil && !write {
		return 0, fmt.Errorf("%s: %w", file, err)
	}
	for round := range roundsMost {
		if err := m.round(); err != nil {
			return 0, err
		}
		if !write && round+1 >= roundsLeast && m.fails(held) == 0 {
			break
		}
	}
	if write {
		return 0, m.ratios().write(file)
	}
	return m.fails(held), m.show(os.Stdout, held)
}

// measured is the shortest time of each figure so far.
type measured struct {
	suites []suite
	kernel *kernel
	base   float64   // the kernel's
	least  []float64 // by figure, in the order of the suites
	runs   int
}

func newMeasured(all []suite) *measured {
	m := &measured{suites: all, kernel: newKernel(), base: math.Inf(1)}
	for range m.figures() {
		m.least = append(m.least, math.Inf(1))
	}
	return m
}

func (m *measured) figures() (all []figure) {
	for _, s := range m.suites {
		all = append(all, s.figures...)
	}
	return all
}

// round runs every suite some times more, the kernel between them.
func (m *measured) round() error {
	for range runsOfRound {
		i := 0
		for _, s := range m.suites {
			runtime.GC()
			m.base = min(m.base, m.kernel.us())
			took, err := s.run()
			if err != nil {
				return err
			}
			for _, us := range took {
				m.least[i] = min(m.least[i], us)
				i++
			}
		}
		m.runs++
	}
	return nil
}

// verdict is the gate's word on a figure, "" where the figure passes.
type verdict string

const (
	tooSlow verdict = "slower" // than the limit
	tooFast verdict = "faster" // so much that a slowdown of 30 % would pass
)

// judge gives the verdict on each figure.
func (m *measured) judge(held *ratios) []verdict {
	all := make([]verdict, len(m.least))
	for i, f := range m.figures() {
		switch times := m.least[i] / m.base / held.Of[f]; {
		case times > slower:
			all[i] = tooSlow
		case times*noticed <= slower:
			all[i] = tooFast
		}
	}
	return all
}

// fails is how many figures do not pass.
func (m *measured) fails(held *ratios) (n int) {
	for _, v := range m.judge(held) {
		if v != "" {
			n++
		}
	}
	return n
}
