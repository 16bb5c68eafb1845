package foreign

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stintd/stint/core/plan"
)

// The nodes of the tests: with a GPU beside cores and memory.
func tenNodes() Nodes {
	return Nodes{Hosts: 10, Size: map[string]string{"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "2"}}
}

// queueReader is one of the importers of queues.
type queueReader func(text string) (*Result, error)

func yunikornOf(text string) (*Result, error) {
	return YuniKorn(File{"queues.yaml", strings.NewReader(text)}, tenNodes())
}

func manifestsOf(text string) (*Result, error) {
	return Queues([]File{{"queues.yaml", strings.NewReader(text)}}, tenNodes())
}

// TestQueueFiles imports a file of each system. Each import ends in a run of its own demand.
func TestQueueFiles(t *testing.T) {
	for _, c := range []struct {
		file   string
		read   queueReader
		plan   []string
		report []string
	}{
		{file: "yunikorn/queues.yaml", read: yunikornOf,
			plan: []string{
				`- {path: "/sales/reports"}`,
				`own:
          - {group: "default", amount: {cpu_milli: 40000, memory_mib: 163840}, partial: true}
        share: {priority: 5, ratio: 5, limit: {cpu_milli: 40000, memory_mib: 163840}}`,
				`- path: "/sales/adhoc"  # queues.yaml, line 31
        share: {ratio: 8}`,
				"share: {priority: 5, ratio: 1}",
				"share_reclaim: false",
				"amount: {cpu_milli: 20000, memory_mib: 81920, nvidia_com_gpu: 8}",
			},
			report: []string{
				"queues.yaml:12: partition: placementrules: a row of demand names its consumer itself",
				"queues.yaml:30: properties: application.sort.policy: ",
				"queues.yaml:32: queue: maxapplications: ",
				"queues.yaml:37: queue: childtemplate: ",
				"queues.yaml:33: parent: true of a queue without queues",
				"queues.yaml:41: queue: limits: ",
				"renamed: resource nvidia.com/gpu is nvidia_com_gpu here",
			}},
		{file: "volcano/queues.yaml", read: manifestsOf,
			plan: []string{
				`amount: {cpu_milli: 64000, memory_mib: 262144, nvidia_com_gpu: 8}, partial: true}
        share: {ratio: 3, limit: {cpu_milli: 32000, nvidia_com_gpu: 4}}`,
				"reserve: {amount: {cpu_milli: 16000, memory_mib: 65536}}",
				"share: {priority: 10, ratio: 1}",
				"share: {ratio: 1, limit: {cpu_milli: 20000}}",
			},
			report: []string{"queues.yaml:16: reclaimable: false: who holds more than its part gives it back"}},
		{file: "kai/queues.yaml", read: manifestsOf,
			plan: []string{
				`- {path: "/lab/vision", min_runtime: 600s}`,
				`{gpu_milli: 12000, cpu_milli: 96000, memory_mb: 256000}`,
				`own:
          - {group: "kai", amount: {gpu_milli: 4000}, partial: true}
        share: {priority: 50, ratio: 0, limit: {gpu_milli: 0}}`,
				"limit: {gpu_milli: 4000}",
			},
			report: []string{
				"queues.yaml:8: Queue: displayName: ", "queues.yaml:12: quota: -1 of memory: ",
				"queues.yaml:20: overQuotaWeight of cpu",
			}},
	} {
		t.Run(c.file, func(t *testing.T) {
			text, err := os.ReadFile("testdata/" + c.file)
			if err != nil {
				t.Fatal(err)
			}
			r, err := c.read(string(text))
			if err != nil {
				t.Fatal(err)
			}
			var report bytes.Buffer
			if err := r.Report.Write(&report); err != nil {
				t.Fatal(err)
			}
			for _, want := range c.plan {
				if !bytes.Contains(r.Dataset.Plan, []byte(want)) {
					t.Errorf("the plan does not have %q:\n%s", want, r.Dataset.Plan)
				}
			}
			for _, want := range c.report {
				if !strings.Contains(report.String(), want) {
					t.Errorf("the report does not have %q:\n%s", want, &report)
				}
			}
		})
	}
}

// TestPromiseOfOne holds that a promise of GPUs alone takes the other resources of their hosts along: units that need
// cores beside them fit what is owned. All GPUs are promised, so that nothing else is left for them.
func TestPromiseOfOne(t *testing.T) {
	queue := "apiVersion: scheduling.run.ai/v2\nkind: Queue\nmetadata: {name: %s}\nspec: {resources: {" +
		"gpu: {quota: 10}, cpu: {quota: 0, limit: -1}, memory: {quota: 0}}}\n---\n"
	r, err := manifestsOf(fmt.Sprintf(queue, "a") + fmt.Sprintf(queue, "b"))
	if err != nil {
		t.Fatal(err)
	}
	if report := reportOf(t, r); strings.Contains(report, "units of demand") ||
		strings.Contains(string(r.Dataset.Plan), "cpu_milli: 0") {
		t.Errorf("units do not fit what is owned:\n%s%s", report, r.Dataset.Plan)
	}
}

// TestUnevenPromises holds that promises which leave no part of a host that a unit fits are listed, not refused.
func TestUnevenPromises(t *testing.T) {
	queue := "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: %s}\n" +
		"spec: {deserved: {%s}}\n---\n"
	r, err := manifestsOf(fmt.Sprintf(queue, "a", "nvidia.com/gpu: 20, cpu: 1") + fmt.Sprintf(queue, "b", "cpu: 159"))
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, reportOf(t, r), "volcano: 40 units of demand: they fit hosts but no part of a host that is owned")
}

// TestQueueFaults imports files that contradict themselves: the error names file, line, value and reason.
func TestQueueFaults(t *testing.T) {
	const queue = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: a}\nspec: "
	const kai = "apiVersion: scheduling.run.ai/v2\nkind: Queue\nmetadata: {name: a}\nspec: "
	for _, c := range []struct {
		text string
		read queueReader
		want string
	}{
		{"queues: []\n", yunikornOf, "queues.yaml: has no `partitions`"},
		{"partitions: [{name: default}]\n", yunikornOf, "queues.yaml:1: partition default has no queues"},
		{"partitions:\n- {name: a, queues: [{name: x}]}\n- {name: a, queues: [{name: x}]}\n", yunikornOf,
			`queues.yaml:3: partition "a" is there twice`},
		{"partitions: [{queues: [{name: x}, {name: X}]}]\n", yunikornOf, `queues.yaml:1: queue "x" is there twice`},
		{"partitions: [{queues: [{name: a.b}]}]\n", yunikornOf, `queue "a.b" has a point in it`},
		{"partitions: [{queues: [{name: a, resources: {max: {vcore: lots}}}]}]\n", yunikornOf,
			`queues.yaml:1: queue a: max "lots" of cpu: must be a quantity`},
		{"partitions: [{queues: [{name: a, resources: {max: {vcore: -4}}}]}]\n", yunikornOf,
			`queues.yaml:1: queue a: max "-4" of cpu: must be a quantity`},
		{"partitions: [{queues: [{name: a, properties: {priority.offset: high}}]}]\n", yunikornOf,
			`queue /a: priority.offset "high": must be a whole number`},
		{"kind: Pod\n", manifestsOf, "queues.yaml: has no Queue of scheduling.volcano.sh or scheduling.run.ai"},
		{queue + "{weight: many}\n", manifestsOf, `queues.yaml:4: Queue a: weight "many"`},
		{queue + "{parent: a}\n", manifestsOf, "queues.yaml:1: Queue a lies below itself"},
		{queue + "{parent: b}\n", manifestsOf, `queues.yaml:1: Queue a: there is no queue "b" above it`},
		{queue + "{}\n---\n" + queue + "{}\n", manifestsOf,
			"queues.yaml:6: Queue a is there twice, first in queues.yaml:1"},
		{queue + "{}\n---\n" + kai + "{}\n", manifestsOf, "is of scheduling.run.ai, those before it are of"},
		{kai + "{resources: {gpu: {quota: -2}}}\n", manifestsOf, `Queue a: quota "-2" of gpu: must be -1 or`},
		{kai + "{resources: {gpu: {quota: 1e99}}}\n", manifestsOf, `Queue a: quota "1e99" of gpu: must be -1 or`},
		{queue + "{}\n---\nkind: Node\nmetadata: {name: n}\n---\nkind: Node\nmetadata: {name: n}\n", manifestsOf,
			"queues.yaml:9: Node n is there twice"},
		{kai + "{reclaimMinRuntime: soon}\n", manifestsOf, `reclaimMinRuntime "soon": must be a duration`},
	} {
		r, err := c.read(c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "plan.yaml") {
			t.Errorf("%s\ngot %v (%v), want %q", c.text, err, r != nil, c.want)
		}
	}
}

// FuzzQueues holds that a file either is refused for what it says, or gives a policy that stint reads and runs.
func FuzzQueues(f *testing.F) {
	for _, name := range []string{"yunikorn", "volcano", "kai"} {
		text, err := os.ReadFile("testdata/" + name + "/queues.yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, read := range []queueReader{yunikornOf, manifestsOf} {
			r, err := read(text)
			if err != nil {
				mustBeTheirs(t, err)
				continue
			}
			if _, err := plan.Parse("plan.yaml", r.Dataset.Plan); err != nil {
				t.Fatal(err)
			}
		}
	})
}
