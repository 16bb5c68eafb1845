package grant

import (
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/pool"
	"github.com/stintd/stint/core/view"
	"github.com/stintd/stint/ingest/table"
)

// TestRace holds the order of turns against the words of MD-16 over random trees: go down to the child of the highest
// priority, among equals to the one with the least usage ÷ ratio, ties in plan order.
func TestRace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "nodes")
		tree := &plan.Tree{Parent: make([]plan.Node, n), End: make([]plan.Node, n)}
		w := &plan.MDWindow{Priority: make([]int32, n), Ratio: make([]int64, n)}
		usage := make([]int64, n)
		leaf := make([]bool, n)
		up := []plan.Node{plan.Root} // the way to the node before
		tree.Parent[0] = plan.None
		for i := 1; i < n; i++ {
			up = up[:rapid.IntRange(1, len(up)).Draw(t, "depth")]
			tree.Parent[i] = up[len(up)-1]
			up = append(up, plan.Node(i))
			w.Priority[i] = rapid.Int32Range(0, 1).Draw(t, "priority")
			w.Ratio[i] = rapid.Int64Range(0, 3).Draw(t, "ratio")
			usage[i], leaf[i] = rapid.Int64Range(0, 5).Draw(t, "usage"), true
		}
		for i := n - 1; i >= 0; i-- {
			if tree.End[i] = max(tree.End[i], plan.Node(i+1)); i > 0 {
				p := tree.Parent[i]
				tree.End[p], leaf[p] = max(tree.End[p], tree.End[i]), false
			}
		}
		var leaves []int32
		in := make([]bool, n)
		for i := range n {
			if leaf[i] && rapid.Bool().Draw(t, "takes part") {
				leaves, in[i] = append(leaves, int32(i)), true
			}
		}
		e := &pool.Env{State: &cluster.State{Policy: &plan.Policy{Tree: *tree}}, Plan: &cluster.Plan{}, Window: w}
		var r race
		r.begin(e, plan.Root, leaves, slices.Clone(usage))
		for range 60 {
			want := turnOf(tree, w, usage, in, 0)
			if got := r.next(); got != want {
				t.Fatalf("it is the turn of %d, want %d", got, want)
			}
			if want == nobody {
				return
			}
			more, stays := rapid.Int64Range(0, 3).Draw(t, "more"), rapid.IntRange(0, 4).Draw(t, "stays") > 0
			r.served(want, more, stays)
			for i := plan.Node(want); i != plan.None; i = tree.Parent[i] {
				usage[i] += more
			}
			in[want] = stays
		}
	})
}

// turnOf is the leaf below a node whose turn it is, by a plain search.
func turnOf(t *plan.Tree, w *plan.MDWindow, usage []int64, in []bool, node plan.Node) int32 {
	best, leaf := plan.None, int32(nobody)
	less := func(a, b plan.Node) bool {
		x := new(big.Int).Mul(big.NewInt(usage[a]), big.NewInt(w.Ratio[b]))
		y := new(big.Int).Mul(big.NewInt(usage[b]), big.NewInt(w.Ratio[a]))
		return w.Priority[a] > w.Priority[b] || w.Priority[a] == w.Priority[b] && x.Cmp(y) < 0
	}
	for k := node + 1; k < t.End[node]; k++ {
		if t.Parent[k] != node || w.Ratio[k] == 0 {
			continue
		}
		below := int32(k)
		if t.End[k] > k+1 {
			below = turnOf(t, w, usage, in, k)
		} else if !in[k] {
			below = nobody
		}
		if below != nobody && (best == plan.None || less(k, best)) {
			best, leaf = k, below
		}
	}
	return leaf
}

// failer is a test, or one of many cases of one.
type failer interface {
	Helper()
	Fatal(args ...any)
}

// stateOf is a state after settle on a policy, hosts and demand, and the environment of its first plan.
func stateOf(t failer, policy, hosts, demand string) *Env {
	t.Helper()
	p, err := plan.Parse("policy.yaml", []byte(policy))
	if err != nil {
		t.Fatal(err)
	}
	s, err := cluster.New(p)
	if err != nil {
		t.Fatal(err)
	}
	o := table.Options{Format: table.CSV, Dimensions: p.Dimensions}
	h, err := table.ReadHosts(strings.NewReader(hosts), o)
	if err == nil {
		err = s.SetHosts(h, true)
	}
	if err != nil {
		t.Fatal(err)
	}
	d, err := table.ReadDemand(strings.NewReader(demand), o)
	if err == nil {
		err = s.SetDemand("s", d)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.Settle(60e6)
	return envOf(s)
}

// envOf is the environment of a state's first plan.
func envOf(s *cluster.State) *Env {
	v := new(view.Views)
	v.Follow(s, &s.Plans[0])
	e := &Env{Env: pool.New(s, &s.Plans[0], v), Promises: new(pool.Promises)}
	e.Promises.Sum(e.Env)
	e.Limits = pool.NewLimits(&e.Env, e.Promises)
	return e
}

const twoLeaves = `
stint: 1
dimensions: [ncpus]
resource_groups: [{name: G, select: "select(ncpus > 0)"}]
consumers: [{path: /A}, {path: /B}]
md_plans: [{name: p, resource_groups: [{name: G}], consumers: [{path: /A}, {path: /B}]}]
`

// TestPromised holds that a promised unit is not granted by another step, and that the room that is held for it is
// kept free (CYC-6, CYC-7).
func TestPromised(t *testing.T) {
	e := stateOf(t, twoLeaves, "host,ncpus\nh1,10\n", "consumer,allocation,units,ncpus\n/A,a,3,2\n/B,b,9,1\n")
	s := e.State
	taker := cluster.SubID(0)
	set := s.OpenSet(e.Plan, 0, decision.ReclaimFairShare, taker, 60e6)
	s.Promise(set, 2)
	e = envOf(s)
	var g Granter
	var out Decisions
	g.Pool(e, plan.Root, &out)
	var units [2]int64
	for _, sub := range out.Sub.Values() {
		units[sub]++
	}
	if units != [2]int64{1, 4} { // of 10, 4 are held for two units of /A; its third takes 2, /B the rest
		t.Fatalf("/A is given %d and /B %d units, want 1 and 4", units[0], units[1])
	}
}

// TestRuns holds that what is decided is booked sub by sub in the order of D-14, units on one parcel together.
func TestRuns(t *testing.T) {
	e := stateOf(t, twoLeaves, "host,ncpus\nh1,4\nh2,4\n",
		"consumer,allocation,units,ncpus\n/B,b,3,1\n/A,a,2,2\n/A,a2,1,1\n")
	var g Granter
	var out Decisions
	g.Pool(e, plan.Root, &out)
	runs, parcels := out.Runs(e, 7, nil)
	var order []string
	units := 0
	for _, r := range runs {
		order = append(order, e.State.Label.String(e.State.Alloc.Name[e.State.Sub.Alloc[r.Sub]]))
		if units += int(r.To - r.From); r.Granted != 7 || r.Origin != decision.OriginPublicPool {
			t.Errorf("a run is %+v", r)
		}
	}
	if !slices.Equal(order, []string{"a", "a2", "b"}) || units != out.Sub.Len() || units != len(parcels) {
		t.Fatalf("runs of %v, %d units of %d", order, units, out.Sub.Len())
	}
	e.State.HoldAll(nil, runs, parcels)
	if err := e.State.Verify(); err != nil {
		t.Fatal(err)
	}
}
