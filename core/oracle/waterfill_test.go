package oracle_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stintd/stint/core/oracle"
	"github.com/stintd/stint/core/plan"
)

// node is a consumer of a random plan of one dimension.
type node struct {
	path            string
	kids            []*node
	ratio, priority int
	limit           int // -1: none
	want            int // of a leaf
	slow            bool
}

// drawTree draws a tree of at most three levels. A third of the consumers has a limit.
func drawTree(r *rand.Rand, path string, depth int) []*node {
	var list []*node
	for i := range 1 + r.IntN(4) {
		n := &node{path: fmt.Sprintf("%s/c%d", path, i), ratio: 1 + r.IntN(4), priority: []int{0, 0, 1}[r.IntN(3)],
			limit: -1}
		if r.IntN(10) < 3 {
			n.limit = r.IntN(12)
		}
		if depth < 2 && r.IntN(2) == 0 {
			n.kids = drawTree(r, n.path, depth+1)
		} else {
			n.want, n.slow = r.IntN(16), r.IntN(8) == 0
		}
		list = append(list, n)
	}
	return list
}

// walk calls f for all nodes, parents first.
func walk(list []*node, f func(n *node)) {
	for _, n := range list {
		f(n)
		walk(n.kids, f)
	}
}

// cap is the most that a consumer can use.
func (n *node) cap() float64 {
	sum := float64(n.want)
	if n.slow {
		sum = 0
	}
	for _, k := range n.kids {
		sum += k.cap()
	}
	if n.limit >= 0 {
		sum = min(sum, float64(n.limit))
	}
	return sum
}

// pour divides an amount among siblings by priority, then ratio, none above its cap. It knows nothing of the rules
// but this.
func pour(list []*node, amount float64, into map[string]float64) {
	for _, priority := range []int{1, 0} {
		var open []*node
		for _, n := range list {
			if n.priority == priority {
				open = append(open, n)
			}
		}
		got := map[*node]float64{}
		for amount > 1e-12 && len(open) > 0 {
			weight, level := 0.0, math.Inf(1)
			for _, n := range open {
				weight += float64(n.ratio)
				level = min(level, (n.cap()-got[n])/float64(n.ratio))
			}
			level = min(level, amount/weight)
			for _, n := range open {
				got[n] += level * float64(n.ratio)
				amount -= level * float64(n.ratio)
			}
			open = slices.DeleteFunc(open, func(n *node) bool { return got[n] >= n.cap()-1e-9 })
		}
		for n, part := range got {
			into[n.path] = part
			pour(n.kids, part, into)
		}
	}
}

// TestWaterFilling holds that a plan of one dimension rests where an independent solver fills it to: no leaf is more
// than a unit off.
func TestWaterFilling(t *testing.T) {
	cases := 100
	if n, err := strconv.Atoi(os.Getenv("STINT_CASES")); err == nil {
		cases = n
	}
	for seed := range cases {
		if miss := fillCase(t, uint64(seed)); miss != "" {
			t.Errorf("seed %d: %s", seed, miss)
		}
	}
}

// fillCase plays a random plan to its rest and tells which leaf is off.
func fillCase(t *testing.T, seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 1))
	tree := drawTree(r, "", 0)
	var consumers, entries []any
	walk(tree, func(n *node) {
		c := map[string]any{"path": n.path}
		if n.slow {
			c["reclaim_grace"] = "60s"
		}
		share := map[string]any{"ratio": n.ratio, "priority": n.priority}
		if n.limit >= 0 {
			share["limit"] = map[string]any{"ncpus": n.limit}
		}
		consumers, entries = append(consumers, c), append(entries, map[string]any{"path": n.path, "share": share})
	})
	policy := compiled(t, map[string]any{"stint": 1, "dimensions": []string{"ncpus"},
		"resource_groups": []any{map[string]any{"name": "G", "select": "select(ncpus > 0)"}}, "consumers": consumers,
		"md_plans": []any{map[string]any{"name": "p", "resource_groups": []any{map[string]any{"name": "G"}},
			"public_pool": map[string]any{"grace": "0s"}, "fair_band": 0, "consumers": entries}}})
	c := oracle.New(policy)
	hosts, whole := []oracle.Host{}, 0
	for i := range 1 + r.IntN(4) {
		size := 1 + r.IntN(12)
		whole += size
		hosts = append(hosts, oracle.Host{Name: fmt.Sprint("h", i), Size: map[string]int64{"ncpus": int64(size)}})
	}
	c.SetHosts(hosts, true)
	var early, all []oracle.Demand
	walk(tree, func(n *node) {
		if len(n.kids) > 0 || n.want == 0 {
			return
		}
		row := oracle.Demand{Consumer: n.path, Allocation: "a", Units: int64(n.want),
			Size: map[string]int64{"ncpus": 1}, MaxPerHost: plan.Unlimited, MinUnits: 1}
		if all = append(all, row); r.IntN(2) == 0 {
			early = append(early, row)
		}
	})
	c.SetDemand("default", early)
	c.Cycle()
	c.Cycle()
	c.SetDemand("default", all)
	var last oracle.Result
	rests := false
	for range 200 {
		if last = c.Cycle(); len(last.Grants)+len(last.Reclaims)+len(last.Releases)+last.Leaving == 0 {
			rests = true
			break
		}
	}
	if !rests {
		return "no rest after 200 cycles"
	}
	target := map[string]float64{}
	pour(tree, float64(whole), target)
	var off []string
	walk(tree, func(n *node) {
		for _, row := range last.Consumers {
			if row.Path == n.path && len(n.kids) == 0 && math.Abs(float64(row.Held)-target[n.path]) > 1+1e-6 {
				off = append(off,
					fmt.Sprintf("%s holds %d, the solver gives it %.2f", n.path, row.Held, target[n.path]))
			}
		}
	})
	return strings.Join(off, "; ")
}
