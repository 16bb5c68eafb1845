package foreign

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// TestKueueTopology holds that hosts have the places of their flavor's topology, racks of two blocks apart, that gangs
// ask for them, and that the engine then puts a gang in one of them.
func TestKueueTopology(t *testing.T) {
	r, err := Kueue([]File{open(t, "kueue/topology.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	places := map[string][]string{}
	for _, a := range r.Dataset.Hosts.Attr {
		for i, code := range a.Text.Code {
			place := ""
			if a.Valid[i] {
				place = a.Text.Names.String(code)
			}
			places[a.Name] = append(places[a.Name], place)
		}
	}
	for name, want := range map[string][]string{"topology_block": {"b1", "b1", "b2", ""},
		"topology_rack": {"b1/r1", "b1/r2", "b2/r1", ""}} {
		if !slices.Equal(places[name], want) {
			t.Errorf("%s: %q, want %q", name, places[name], want)
		}
	}
	d := r.Dataset.Demand
	var asks []string
	for i := range d.Rows {
		asks = append(asks, fmt.Sprintf("%s %d of %d %s", d.Allocation.Names.String(d.Allocation.Code[i]),
			d.MinUnits[i], d.Units[i], d.Together.Names.String(d.Together.Code[i])))
	}
	if want := []string{"ns.in-a-block 4 of 4 topology_block",
		"ns.rather-in-a-rack 2 of 3 prefer topology_rack", "ns.on-a-node 2 of 2 host",
		"ns.anywhere 2 of 2 ", "ns.elsewhere 2 of 2 "}; !slices.Equal(asks, want) {
		t.Errorf("demand: %q, want %q", asks, want)
	}
	wantLines(t, reportOf(t, r),
		"topology.yaml:52: a node's place: it has no label cloud.provider.com/topology-rack",
		"topology.yaml:65: Workload: topologyRequest.podIndexLabel: units have no numbers",
		"topology.yaml:77: Workload: levels above the preferred one, cloud.provider.com/topology-rack: ",
		"topology.yaml:107: Workload: topology level cloud.provider.com/zone: no node of the files has a place",
		"topology.yaml:110: a workload: it is not active",
		"renamed: label cloud.provider.com/topology-rack is topology_rack here")
	if in := hostsOfGang(t, r, "ns.in-a-block"); !slices.Equal(in, []string{"n1", "n2"}) {
		t.Errorf("the gang that must be in one block lies on %q", in)
	}
	if in := hostsOfGang(t, r, "ns.on-a-node"); len(in) != 1 {
		t.Errorf("the gang that must be on one node lies on %q", in)
	}
}

// hostsOfGang runs a cycle on an import and returns the hosts on which an allocation has units then.
func hostsOfGang(t *testing.T, r *Result, allocation string) (hosts []string) {
	t.Helper()
	policy, err := plan.Parse("plan.yaml", r.Dataset.Plan)
	if err != nil {
		t.Fatal(err)
	}
	state, err := cluster.New(policy)
	if err != nil {
		t.Fatal(err)
	}
	if err := state.SetHosts(r.Dataset.Hosts, true); err != nil {
		t.Fatal(err)
	}
	if err := state.SetDemand("import", r.Dataset.Demand); err != nil {
		t.Fatal(err)
	}
	var runner cycle.Runner
	var out decision.Cycle
	runner.Run(state, 0, &out)
	for i := range out.Grants.Units {
		if out.Grants.Allocation.At(i) == allocation {
			hosts = append(hosts, out.Grants.Host.At(i))
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// TestKueueTopologyRefused gives topologies that contradict themselves.
func TestKueueTopologyRefused(t *testing.T) {
	text, err := os.ReadFile("testdata/kueue/topology.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, old, new, want string }{
		{"a level twice", "cloud.provider.com/topology-rack\n", "cloud.provider.com/topology-block\n",
			`k.yaml:9: Topology default: nodeLabel "cloud.provider.com/topology-block" is empty or there twice`},
		{"both", "{required: kubernetes.io/hostname}",
			"{required: kubernetes.io/hostname, preferred: kubernetes.io/hostname}",
			"Workload on-a-node: its topology is both required and preferred"},
		{"half a pod", "minCount: 2", "minCount: 1.5", `Workload rather-in-a-rack: minCount "1.5"`},
		{"no levels", "  levels:\n", "  stages:\n", "k.yaml:3: Topology default: has no levels"},
	} {
		t.Run(c.name, func(t *testing.T) {
			changed := strings.Replace(string(text), c.old, c.new, 1)
			_, err := Kueue([]File{{"k.yaml", strings.NewReader(changed)}})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	r, err := Kueue([]File{{"k.yaml", strings.NewReader(strings.Replace(string(text), "topologyName: default",
		"topologyName: other", 1))}})
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, reportOf(t, r), "k.yaml:17: topologyName other: there is no Topology of that name",
		"k.yaml:3: Topology default: no ResourceFlavor names it")
}
