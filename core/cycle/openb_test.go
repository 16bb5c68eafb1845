package cycle_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/datasets"
)

// openbTasks is what the public GPU trace wants.
const openbTasks = 8152

var placements = []struct {
	name  string
	value plan.Placement
}{{"best_fit", plan.BestFit}, {"stacked", plan.Stacked}, {"balanced", plan.Balanced}}

// openb reads the public GPU trace from STINT_OPENB, or from beside the repository; the test is skipped when it is
// not there.
func openb(t *testing.T) *datasets.Dataset {
	t.Helper()
	dir, given := os.LookupEnv("STINT_OPENB")
	if !given {
		dir = filepath.Join("..", "..", "..", "shared", "data", "openb")
	}
	var files [2][]byte
	for i, name := range [...]string{"openb_node_list_all_node.csv", "openb_pod_list_default.csv"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) && !given {
			t.Skipf("the openb trace is not in %s; STINT_OPENB may name another folder", dir)
		} else if err != nil {
			t.Fatal(err)
		}
		files[i] = text
	}
	d, err := datasets.OpenB(bytes.NewReader(files[0]), bytes.NewReader(files[1]))
	if err != nil {
		t.Fatal(err)
	}
	if d.Hosts.Rows != 1523 || d.Demand.Rows != openbTasks {
		t.Fatalf("%d hosts, %d tasks", d.Hosts.Rows, d.Demand.Rows)
	}
	return d
}

// packed is what one cycle made of the trace.
type packed struct {
	granted   int64
	gpu, gpus int64 // GPU-milli allocated, and of all hosts
}

// pack runs one cycle on the trace under a placement and checks the grants against the hosts' capacity, from the
// tables alone.
func pack(t *testing.T, d *datasets.Dataset, placement plan.Placement) (r packed) {
	t.Helper()
	p, err := plan.Parse("plan.yaml", d.Plan)
	if err != nil {
		t.Fatal(err)
	}
	p.MDPlans[0].Placement = placement
	s, err := cluster.New(p)
	if err == nil {
		err = s.SetHosts(d.Hosts, true)
	}
	if err == nil {
		err = s.SetDemand("default", d.Demand)
	}
	if err != nil {
		t.Fatal(err)
	}
	var out decision.Cycle
	cycle.Run(s, 0, &out)
	task, host := map[string]int{}, map[string]int{}
	for i := range d.Demand.Rows {
		task[d.Demand.Allocation.Names.String(d.Demand.Allocation.Code[i])] = i
	}
	for i := range d.Hosts.Rows {
		host[d.Hosts.Host.Names.String(d.Hosts.Host.Code[i])] = i
	}
	got := make([]int64, d.Demand.Rows)
	for i, units := range out.Grants.Units {
		got[task[out.Grants.Allocation.At(i)]] += units
		r.granted += units
	}
	for i, units := range got {
		if units > d.Demand.Units[i] {
			t.Errorf("placement %d: task %d gets %d units and wants %d", placement, i, units, d.Demand.Units[i])
		}
	}
	for dim, name := range d.Dimensions {
		left := slices.Clone(d.Hosts.Size[dim])
		var used int64
		for i, units := range out.Grants.Units {
			size := units * d.Demand.Size[dim][task[out.Grants.Allocation.At(i)]]
			left[host[out.Grants.Host.At(i)]] -= size
			used += size
		}
		for h, v := range left {
			if v < 0 {
				t.Errorf("placement %d: host %d holds %d %s more than it has", placement, h, -v, name)
			}
			if name == "gpu_milli" {
				r.gpus += d.Hosts.Size[dim][h]
			}
		}
		if name == "gpu_milli" {
			r.gpu = used
		}
	}
	if r.gpus == 0 {
		t.Fatal("there are no GPUs")
	}
	return r
}

// TestOpenB places the public GPU trace in one cycle.
func TestOpenB(t *testing.T) {
	d := openb(t)
	for _, p := range placements {
		r := pack(t, d, p.value)
		t.Logf("%s: %d of %d tasks placed", p.name, r.granted, openbTasks)
		if p.value == plan.BestFit && r.granted < 7800 {
			t.Errorf("best_fit: %d of %d tasks placed, at least 7800 should be", r.granted, openbTasks)
		}
	}
}

// TestOpenBTripled wants three of every task, more than there is room for: what counts is how full the GPUs get.
func TestOpenBTripled(t *testing.T) {
	d := openb(t)
	for i := range d.Demand.Units {
		d.Demand.Units[i] *= 3
	}
	var filled []int64
	for _, p := range placements {
		r := pack(t, d, p.value)
		t.Logf("%s: %d of %d GPU-milli, %.1f %%", p.name, r.gpu, r.gpus, 100*float64(r.gpu)/float64(r.gpus))
		filled = append(filled, r.gpu)
		if p.value == plan.BestFit && r.gpu*100 < r.gpus*97 {
			t.Errorf("best_fit fills %d of %d GPU-milli, at least 97 %% should be", r.gpu, r.gpus)
		}
	}
	if filled[0] < filled[1] || filled[0] < filled[2] {
		t.Errorf("best_fit, stacked and balanced fill %v GPU-milli; best_fit should fill most", filled)
	}
}
