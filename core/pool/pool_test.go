package pool_test

import (
	"strings"
	"testing"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/core/pool"
	"github.com/stintd/stint/core/share"
	"github.com/stintd/stint/core/view"
	"github.com/stintd/stint/ingest/table"
)

// played is a state after cycles of the engine on a policy, hosts and demand, and the environment of its first plan.
func played(t *testing.T, policy, hosts, demand string) pool.Env {
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
	var r cycle.Runner
	var out decision.Cycle
	for i := range 3 {
		r.Run(s, int64(i+1)*60e6, &out)
	}
	v := new(view.Views)
	v.Follow(s, &s.Plans[0])
	return pool.New(s, &s.Plans[0], v)
}

// TestQuotas is the example of MD-14: A and B before C, A1 : A2 = 1 : 2, B1 above B2, all want much.
func TestQuotas(t *testing.T) {
	e := played(t, `
stint: 1
dimensions: [ncpus]
resource_groups: [{name: G, select: "select(ncpus > 0)"}]
consumers: [{path: /A}, {path: /A/A1}, {path: /A/A2}, {path: /B}, {path: /B/B1}, {path: /B/B2}, {path: /C}]
md_plans:
  - name: p
    resource_groups: [{name: G}]
    consumers:
      - {path: /A, share: {priority: 1}}
      - {path: /A/A1}
      - {path: /A/A2, share: {ratio: 2}}
      - {path: /B, share: {priority: 1, ratio: 2}}
      - {path: /B/B1, share: {priority: 1}}
      - {path: /B/B2}
      - {path: /C}
`, "host,ncpus\nh1,450\nh2,450\n",
		"consumer,allocation,units,ncpus\n/A/A1,a,900,1\n/A/A2,a,900,1\n/B/B1,a,900,1\n/B/B2,a,900,1\n/C,a,900,1\n")
	var f pool.Figures
	f.Sum(&e, plan.Root, new(pool.Promises), nil)
	for path, ninths := range map[string]int64{"/": 9, "/A": 3, "/A/A1": 1, "/A/A2": 2, "/B": 6, "/B/B1": 6, "/B/B2": 0,
		"/C": 0} {
		n, _ := e.State.Policy.Find(path)
		want := share.Part(share.One, ninths, 9)
		if got := f.Quota[n]; got < want-4 || got > want+4 { // each size's usage is rounded down
			t.Errorf("the quota of %s is %d, want %d ninths: %d", path, got, ninths, want)
		}
	}
}

// TestPoolsOfOwners looks at who has a pool, who draws on it, and within which grace.
func TestPoolsOfOwners(t *testing.T) {
	e := played(t, `
stint: 1
dimensions: [ncpus]
resource_groups: [{name: G, select: "select(ncpus > 0)"}]
consumers: [{path: /A}, {path: /A/A1}, {path: /A/A2}, {path: /B}, {path: /B/B1}, {path: /C}]
md_plans:
  - name: p
    resource_groups: [{name: G}]
    public_pool: {grace: 10m}
    consumers:
      - {path: /A, own: [{group: G, hosts: 2}], private_pool_grace: 5m}
      - {path: /A/A1, own: [{group: G, hosts: 1}], lend_grace: 1m}
      - {path: /A/A2}
      - {path: /B}
      - {path: /B/B1}
      - {path: /C, share: {ratio: 0}}
`, "host,ncpus\nh1,4\nh2,4\nh3,4\n", "consumer,allocation,units,ncpus\n/C,c,1,1\n")
	node := func(path string) plan.Node {
		n, ok := e.State.Policy.Find(path)
		if !ok {
			t.Fatal(path)
		}
		return n
	}
	a, a1, a2, b1, c := node("/A"), node("/A/A1"), node("/A/A2"), node("/B/B1"), node("/C")
	if list := e.List(); len(list) != 2 || list[0] != a || list[1] != plan.Root {
		t.Fatalf("pools of %v, want those of /A (%d) and the root", list, a)
	}
	for k := range cluster.ParcelID(e.Plan.Parcels.Len()) {
		want := map[plan.Node][2]plan.Node{plan.Root: {plan.Root, plan.Root}, a: {a, plan.Root},
			a1: {a, plan.Root}}[e.Owner(k)]
		if x, y := e.Meet(a2, k), e.Meet(b1, k); x != want[0] || y != want[1] {
			t.Errorf("parcel %d of %d: /A/A2 draws through %d, /B/B1 through %d, want %v", k, e.Owner(k), x, y, want)
		}
	}
	if e.Meet(a1, parcelOf(t, e, a1)) != a1 {
		t.Error("/A/A1's own parcel is not its own")
	}
	if !e.Exists(a, a2) || !e.Exists(a, a1) || !e.Exists(plan.Root, c) {
		t.Error("a pool with parcels that does not exist for a leaf")
	}
	for _, x := range []struct{ owner, pool plan.Node }{{a1, a1}, {a, a}, {a1, a}, {a, plan.Root}, {a1, plan.Root},
		{plan.Root, plan.Root}} {
		want := map[[2]plan.Node]int64{{a, a}: 300e6, {a1, a}: 60e6, {a, 0}: 600e6, {a1, 0}: 60e6,
			{0, 0}: 600e6}[[2]plan.Node{x.owner, x.pool}]
		if got := e.Grace(x.owner, x.pool); got != want && x.owner != x.pool ||
			x.owner == x.pool && x.owner == a1 && got < 1<<60 {
			t.Errorf("the grace of a parcel of %d in the pool of %d is %d, want %d", x.owner, x.pool, got, want)
		}
	}
	if !e.Barred(plan.Root, c) || e.Barred(plan.Root, b1) {
		t.Error("a ratio of 0 bars /C from the public pool, and nobody else")
	}
	if got := e.Views.Capacity.Of(e.State, plan.Root, 0); got != 12 {
		t.Errorf("the public pool has room for %d units of 1, want 12: what is lent counts", got)
	}
	if got := e.Views.Capacity.Of(e.State, a, 0); got != 8 {
		t.Errorf("the pool of /A has room for %d units of 1, want 8", got)
	}
}

// parcelOf is the first parcel of an owner.
func parcelOf(t *testing.T, e pool.Env, owner plan.Node) cluster.ParcelID {
	t.Helper()
	from, to := e.Views.Owned.Own(owner)
	if from == to {
		t.Fatalf("consumer %d owns nothing", owner)
	}
	return e.Views.Owned.Parcel[from]
}
