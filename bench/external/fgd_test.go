package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stintd/stint/core/cluster"
)

func TestDevices(t *testing.T) {
	h := &cluster.HostTable{Rows: 1, Host: cluster.TextColumn{Names: new(cluster.Names)},
		Size: [][]int64{{0}, {0}, {3000}}}
	h.Host.Code = []int32{h.Host.Names.InternString("h")}
	d := newDevices(h)
	for i, c := range []struct {
		on           string
		devices, per int64
		want         bool
	}{
		{"0", 1, 600, true}, {"1", 1, 500, true}, {"0", 1, 400, true}, {"", 0, 0, true},
		{"1+2", 2, 1000, false}, // 500 of one are taken
		{"2", 1, 1000, true}, {"2", 1, 1, false}, {"3", 1, 1, false},
		{"", 1, 500, false}, {"1", 2, 1000, false}, {"1", 0, 0, false}, {"x", 1, 1, false},
	} {
		if err := d.put("h", c.on, pod{devices: c.devices, per: c.per}); (err == nil) != c.want {
			t.Errorf("pod %d: %v; free %v", i, err, d["h"])
		}
	}
	if err := devices(nil).put("h", "", pod{devices: 1, per: 1}); err != nil {
		t.Errorf("where the plan has no devices: %v", err)
	}
}

const nodesText = `sn,cpu_milli,memory_mib,gpu,model
n1,64000,1000,2,A
n2,64000,1000,2,A
c1,64000,1000,0,
`

const podsText = `name,cpu_milli,memory_mib,num_gpu,gpu_milli
p1,1000,1,1,700
p2,1000,1,1,700
p3,1000,1,2,1000
p4,1000,1,0,0
`

func lists(t *testing.T, nodes, pods string) (string, string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"nodes.csv": nodes, "pods.csv": pods} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "nodes.csv"), filepath.Join(dir, "pods.csv")
}

// TestFGDPlay: of two hosts of two GPUs one of two whole GPUs fills one, and of three pods of 600 thousandths the other
// takes three as a sum, where two of them are on one device and another's, and two on its devices.
func TestFGDPlay(t *testing.T) {
	c, err := readPods(lists(t, nodesText, strings.ReplaceAll(podsText, ",700", ",600")))
	if err != nil {
		t.Fatal(err)
	}
	if c.total != 4000 || len(c.pods) != 4 {
		t.Fatalf("%d thousandths, %d pods", c.total, len(c.pods))
	}
	for file, want := range map[string]float64{fgdPolicy: 95, fgdDevices: 80} {
		allocated, err := c.play([]pod{c.pods[2], c.pods[0], c.pods[0], c.pods[0]}, file)
		if err != nil {
			t.Fatal(err)
		}
		if last := allocated[fgdSteps-1]; math.Abs(last-want) > 1e-9 {
			t.Errorf("%g %%, want %g", last, want)
		}
	}
}

func TestFGDArrivals(t *testing.T) {
	c, err := readPods(lists(t, nodesText, podsText))
	if err != nil {
		t.Fatal(err)
	}
	for seed := range int64(20) {
		var asked int64
		for _, p := range c.arrivals(seed) {
			asked += p.milli()
		}
		// At most 130 %, save for the last pod's GPUs beyond one; at least all but one pod.
		if asked > 6200 || asked < 4200 {
			t.Errorf("seed %d asks for %d of %d", seed, asked, c.total)
		}
	}
}

func TestFGDRefused(t *testing.T) {
	for _, c := range []struct{ nodes, pods, want string }{
		{strings.ReplaceAll(nodesText, ",2,A", ",0,"), podsText, "no GPU in it"},
		{nodesText, strings.Replace(podsText, ",2,1000", ",2,500", 1), "parts of several GPUs"},
		{nodesText, strings.Replace(podsText, "num_gpu", "gpus", 1), "num_gpu"},
	} {
		if _, err := readPods(lists(t, c.nodes, c.pods)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	path := filepath.Join(t.TempDir(), "curves.csv")
	if err := os.WriteFile(path, []byte("workload,mood\na,b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readCurves(path); err == nil || !strings.Contains(err.Error(), "its columns are not") {
		t.Errorf("%v", err)
	}
}

// TestFGDPublished: where the published files lie, pods arrive as in the published runs of all ten seeds.
func TestFGDPublished(t *testing.T) {
	dir, openb := "../../../shared/external/fgd", "../../../shared/data/openb"
	if given := os.Getenv("STINT_FGD"); given != "" {
		dir, openb = given, os.Getenv("STINT_OPENB")
	}
	nodes := filepath.Join(openb, "openb_node_list_all_node.csv")
	for _, path := range []string{dir, nodes} {
		if _, err := os.Stat(path); err != nil {
			t.Skipf("there is no %s: make test-shared SHARED=DIR names another folder", path)
		}
	}
	theirs, err := readCurves(filepath.Join(dir, "analysis_allo_discrete.csv"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := readPods(nodes, filepath.Join(filepath.Dir(nodes), "openb_pod_list_default.csv"))
	if err != nil {
		t.Fatal(err)
	}
	curves := theirs["openb_pod_list_default"]["06-FGD"]
	for seed := range fgdSeeds {
		pods := c.arrivals(int64(fgdSeed + seed))
		if err := c.asPublished(pods, curves[fgdSeed+seed]); err != nil {
			t.Errorf("seed %d: %v", fgdSeed+seed, err)
		}
		pods[0], pods[len(pods)/2] = pods[len(pods)/2], pods[0]
		if seed == 0 && c.asPublished(append(pods[100:], pods[:100]...), curves[fgdSeed]) == nil {
			t.Error("another order passes for the published one")
		}
	}
}
