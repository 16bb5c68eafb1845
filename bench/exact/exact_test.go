package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stintd/stint/bench/bound"
)

// two is a class of two hosts of 10 and 7, and two sizes: one takes 3 of the first, the other 4 of it and 2 of the
// second.
func two() *bound.Problem {
	return &bound.Problem{Dimensions: 2, Hosts: []int64{2}, Capacity: []int64{10, 7}, Used: make([]int64, 2),
		Size: []int64{3, 0, 4, 2}, Demand: []int64{3, 5}, Granted: make([]int64, 2)}
}

func TestPatterns(t *testing.T) {
	all, err := patterns(two(), 0, 10)
	if got := fmt.Sprint(all); err != nil || got != "[[3 0] [2 1] [0 2]]" {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := patterns(two(), 0, 2); !errors.Is(err, errPatterns) {
		t.Errorf("three patterns where two are allowed: %v", err)
	}
}

func TestProgram(t *testing.T) {
	var b strings.Builder
	if err := writeProgram(&b, two(), []float64{0.25, 0.5}, [][]pattern{{{3, 0}, {0, 2}}}); err != nil {
		t.Fatal(err)
	}
	const want = `Maximize
 held:
 + 0.25 y0
 + 0.5 y1
Subject To
 size0: y0
 - 3 z0_0 <= 0
 size1: y1
 - 2 z0_1 <= 0
 class0: 0 y0
 + z0_0
 + z0_1 <= 2
Bounds
 0 <= y0 <= 3
 0 <= y1 <= 5
Generals
 z0_0
 z0_1
End
`
	if b.String() != want {
		t.Errorf("got\n%s", b.String())
	}
}

// must skips a test where there is no solver, unless STINT_EXACT says that there must be one.
func must(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath(solver); err != nil {
		if os.Getenv("STINT_EXACT") == "must" {
			t.Fatal(errSolver)
		}
		t.Skip(errSolver)
	}
}

// TestByHand: the first size counts 0.3 (3 of 10), the second 0.4. There are three units of the first: with two of
// them on one host beside one of the second, and two of the second on the other, 2 × 0.3 + 3 × 0.4 are held. All
// three on one host would make 1.7.
func TestByHand(t *testing.T) {
	must(t)
	got, err := solve(two(), 10)
	if err != nil || math.Abs(got-1.8) > 1e-6 {
		t.Errorf("%g, %v, want 1.8", got, err)
	}
}

// TestOrder: in small clusters of every kind the bound is at least the optimum, and that at least what is held.
func TestOrder(t *testing.T) {
	must(t)
	for _, p := range profiles {
		row, err := p.small(6, 8, 10)
		if err != nil {
			t.Errorf("%s: %v", p.name, err)
		} else if strings.HasPrefix(row[1], "0 of") {
			t.Errorf("%s: none was solved", p.name)
		}
	}
}

// TestOrdered: a bound below the optimum, or an optimum below what is held, is noticed.
func TestOrdered(t *testing.T) {
	b := &bound.Result{Granted: 2, Bound: 3}
	for best, want := range map[float64]string{3.1: "the optimum 3.1", 1.9: "the optimum is 1.9"} {
		if err := ordered(b, best); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("optimum %g: %v", best, err)
		}
	}
	if err := ordered(b, 2.5); err != nil {
		t.Error(err)
	}
}

// TestOpenB: so many times a cluster holds so many times the units, under names of their own.
func TestOpenB(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"openb_node_list_all_node.csv": "sn,cpu_milli,memory_mib,gpu,model\na,1000,10,1,T\nb,2000,10,0,\n",
		"openb_pod_list_default.csv": "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\np,600,1,1,500,T\n" +
			"q,400,1,0,0,\nr,500,1,0,0,\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, times := range []int{1, 3} {
		d, err := readOpenB(dir, times)
		if err != nil {
			t.Fatal(err)
		}
		p, err := held(d)
		if err != nil {
			t.Fatal(err)
		}
		var hosts, units, placed int64
		for _, n := range p.Hosts {
			hosts += n
		}
		for i := range p.Demand {
			units, placed = units+p.Demand[i], placed+p.Granted[i]
		}
		if n := int64(times); hosts != 2*n || units != 3*n || placed != 3*n {
			t.Errorf("× %d: %d hosts, %d units, %d placed", times, hosts, units, placed)
		}
	}
	if _, err := readOpenB(t.TempDir(), 1); !os.IsNotExist(err) {
		t.Errorf("no files: %v", err)
	}
}
