package foreign

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stintd/stint/core/plan"
)

func TestKueue(t *testing.T) {
	r, err := Kueue([]File{open(t, "kueue/queues.yaml"), open(t, "kueue/cluster.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	text := string(r.Dataset.Plan)
	p, err := plan.Parse("plan.yaml", r.Dataset.Plan)
	if err != nil {
		t.Fatal(err)
	}
	w := &p.MDPlans[0].Windows[0]
	for _, want := range []struct {
		path         string
		ratio, limit int64 // of cpu_milli
		owns, keeps  string
	}{
		{"/company", 0, plan.Unlimited,
			`{group: "on-demand", amount: {cpu_milli: 100500, memory_mib: 393216}, partial: true}`,
			"reserve: {percent: 100}"},
		{"/company/research", 4, 20000,
			`{group: "on-demand", amount: {cpu_milli: 40000, memory_mib: 163840}, partial: true}`,
			"reserve: {amount: {cpu_milli: 35000}}"},
		{"/company/team-a", 3, 20000, `{group: "spot", amount: {cpu_milli: 20000, memory_mib: 81920}, partial: true}`,
			"reserve: {amount: {cpu_milli: 10000}}"},
		{"/company/team-b", 2, plan.Unlimited,
			`{group: "on-demand", amount: {cpu_milli: 20500, memory_mib: 65536}, partial: true}`, ""},
		{"/company/team-a/team-a-night.user-queue", 3, plan.Unlimited, "", ""},
		{"/alone", 0, plan.Unlimited, `{group: "on-demand", amount: {cpu_milli: 12000, memory_mib: 0}, partial: true}`,
			"reserve: {percent: 100}"},
	} {
		n, ok := p.Find(want.path)
		if !ok || w.Ratio[n] != want.ratio || w.Limit[0][n] != want.limit {
			t.Errorf("%s: ratio %d, limit %d, want %+v", want.path, w.Ratio[n], w.Limit[0][n], want)
		}
		_, entry, _ := strings.Cut(text, "- path: \""+want.path+"\"  #")
		entry, _, _ = strings.Cut(entry, "- path: ")
		if !strings.Contains(entry, want.owns) || !strings.Contains(entry, want.keeps) {
			t.Errorf("%s: no %q or %q in its entry:\n%s", want.path, want.owns, want.keeps, entry)
		}
	}
	h, d := r.Dataset.Hosts, r.Dataset.Demand
	if h.Rows != 6 || h.Size[0][0] != 32000 || h.Size[1][4] != 65536 || h.State[5] != 1 {
		t.Errorf("hosts: %d, sizes %v, states %v", h.Rows, h.Size, h.State)
	}
	if d.Rows != 1 || d.Units[0] != 12 || d.Size[0][0] != 2500 || d.Size[1][0] != 4608 ||
		d.Allocation.Names.String(d.Allocation.Code[0]) != "genome.job-train-5f1a" {
		t.Errorf("demand: %+v", d)
	}
	wantLines(t, reportOf(t, r), "queues.yaml:17: ResourceFlavor: nodeTaints: ",
		"queues.yaml:54: ClusterQueue: queueingStrategy: ", "queues.yaml:55: ClusterQueue: flavorFungibility: ",
		"queues.yaml:60: withinClusterQueue: LowerPriority: ", "queues.yaml:157: kind WorkloadPriorityClass: ",
		"cluster.yaml:121: a workload: it is finished",
		"queues.yaml:100: reclaimWithinCohort: Never, which is the default (2 times): ",
		"cluster.yaml:16: a node's ephemeral-storage (6 times): ")
}

const oneQueue = `apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: a}
spec:
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - name: f
      resources:
      - name: cpu
        nominalQuota: 4
`

// TestKueueNothingDropped holds every key that is used nowhere, and what the nodes lack, in the report.
func TestKueueNothingDropped(t *testing.T) {
	text := strings.Replace(oneQueue, "spec:\n", "spec:\n  wholly: new\n", 1) +
		"        hasToBe: read\n---\nkind: Node\nmetadata: {name: n}\nstatus:\n  allocatable:\n    cpu: " +
		"3\n---\nkind: LocalQueue\nmetadata: {name: l}\nspec: {clusterQueue: a, more: 1}\n"
	r, err := Kueue([]File{{"k.yaml", strings.NewReader(text)}})
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, reportOf(t, r), "k.yaml:5: ClusterQueue: wholly: is unknown here",
		"k.yaml:13: ClusterQueue: resources.hasToBe: is unknown here",
		"k.yaml:23: LocalQueue: more: is unknown here", "k.yaml:11: flavor f: there is no ResourceFlavor of that name",
		"k.yaml: quotas of cpu_milli in flavor f: 4000 in all: its nodes have 3000")
}

func TestKueueRefused(t *testing.T) {
	cohort := func(name, parent string) string {
		return fmt.Sprintf("---\nkind: Cohort\nmetadata: {name: %s}\nspec: {parent: %s}\n", name, parent)
	}
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "k.yaml: no ClusterQueue in it"},
		{"no manifest", "a: 1\n", "k.yaml:1: is no manifest: it has no kind"},
		{"anchor", oneQueue + "---\na: &x [1]\nb: [*x, *x]\n",
			"k.yaml:13: anchor is not read: anchors, aliases and tags must be written out"},
		{"tag", "a: !!binary aGFsbG8=\n", "k.yaml:1: tag is not read"},
		{"half", oneQueue[:strings.Index(oneQueue, "[cpu]")+3], "k.yaml:6: "},
		{"brackets", "a: " + strings.Repeat("[", 100), "k.yaml:1: has more than 64 brackets within each other"},
		{"not utf-8", oneQueue + "# \xe9\n", "k.yaml:12: is not valid UTF-8"},
		{"quota", strings.Replace(oneQueue, ": 4", ": lots", 1),
			`k.yaml:11: ClusterQueue a: nominalQuota "lots" of cpu: must be a quantity such as 1500m, 36Gi or 4`},
		{"below 0", strings.Replace(oneQueue, ": 4", ": -4", 1), `nominalQuota "-4" of cpu`},
		{"huge", strings.Replace(oneQueue, ": 4", ": 9e99", 1), `nominalQuota 9e99 of cpu: is above 9007199254740, the largest amount`},
		{"lends more", oneQueue + "        lendingLimit: 5\n",
			"k.yaml:10: ClusterQueue a: lendingLimit 5 is above nominalQuota 4"},
		{"twice", oneQueue + "---\n" + oneQueue, "k.yaml:13: ClusterQueue a is there twice, first in k.yaml:1"},
		{"resource twice", oneQueue + "      - name: cpu\n        nominalQuota: 1\n",
			"k.yaml:12: ClusterQueue a: resource cpu of flavor f is there twice"},
		{"circle", oneQueue + cohort("x", "y") + cohort("y", "x"), "k.yaml:13: cohort x lies below itself"},
		{"slash", strings.Replace(oneQueue, "name: a", "name: a/b", 1), `metadata.name "a/b" has a / in it`},
		{"no cluster queue", oneQueue + "---\nkind: LocalQueue\nmetadata: {name: l}\nspec: {clusterQueue: b}\n",
			`k.yaml:13: LocalQueue l: there is no ClusterQueue "b"`},
		{"weight", oneQueue + "---\nkind: LocalQueue\nmetadata: {name: l}\nspec:\n  clusterQueue: a\n  " +
			"fairSharing:\n    weight: much\n", `k.yaml:18: LocalQueue l: weight "much"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Kueue([]File{{"k.yaml", strings.NewReader(c.text)}})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestYAMLTime: what the YAML library takes long for is refused before it sees it.
func TestYAMLTime(t *testing.T) {
	for name, text := range map[string]string{
		"values left out":          "items:\n" + strings.Repeat("- a:\n", 400_000),
		"values left out in a row": "[" + strings.Repeat("{a: },", 400_000) + "]",
		"keys":                     strings.Repeat("a: 1\n", 400_000),
		"dashes":                   strings.Repeat("- ", 400_000),
	} {
		start := time.Now()
		if _, err := readYAML(File{"k.yaml", strings.NewReader(text)}); err == nil {
			t.Errorf("%s: not refused", name)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%s: took %s", name, took)
		}
	}
}

func TestQuantity(t *testing.T) {
	for text, want := range map[string]int64{"2": 2000, "1500m": 1500, "0.5": 500, ".5": 500, "1e3": 1_000_000,
		"1k": 1_000_000, "3Ki": 3_072_000, "1u": 0} {
		if n, exact, ok := quantity(text, kubeUnits["cpu"].unit); n != want || !ok || exact != (text != "1u") {
			t.Errorf("%s: %d, exact %v, ok %v, want %d", text, n, exact, ok, want)
		}
	}
	for _, text := range []string{"", "x", "-1", "1 G", "1e999", "0x1", "1.2.3", "9999999999999999999", "99E"} {
		if n, _, ok := quantity(text, kubeUnits["cpu"].unit); ok {
			t.Errorf("%q: %d, want none", text, n)
		}
	}
}

// FuzzKueue: whatever the manifests say, the policy that comes of them is one that stint accepts.
func FuzzKueue(f *testing.F) {
	for _, name := range []string{"queues.yaml", "cluster.yaml"} {
		text, err := os.ReadFile("testdata/kueue/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(oneQueue))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := Kueue([]File{{"k.yaml", strings.NewReader(string(text))}})
		if err != nil {
			mustBeTheirs(t, err)
			return
		}
		if _, err := plan.Parse("plan.yaml", r.Dataset.Plan); err != nil {
			t.Fatal(err)
		}
	})
}
