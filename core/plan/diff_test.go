package plan

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestDifference edits the bank's policy and holds what is told, line by line.
func TestDifference(t *testing.T) {
	text, err := os.ReadFile("../../cmd/stint/init/bank/plan.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		edit []string // old and new text, in turn
		want string
	}{
		{"nothing", nil, ""},
		{"a key in all windows", []string{"lend: {limit: 60}, borrow: {limit: 40, from: [siblings, any]}",
			"lend: {limit: 50, to: siblings}, borrow: {}"}, `
plan Compute, /Trading/Pricing: lend 60 to any → 50 to siblings
plan Compute, /Trading/Pricing: borrow 40 from siblings, any → any number from any`},
		{"a key in one window", []string{"{path: /Risk/EOD, owns: 130}", "{path: /Risk/EOD, owns: 120}"}, `
plan Compute, window night, /Risk/EOD: owns 130 → 120`},
		{"settings of the file, a group and a plan",
			[]string{"interval: 60s ", "interval: 2m ", `"(ncpus*1)"`, `"(ncpus*2)"`,
				"lead: 10m ", "reclaim_budget: 20\n    gang_wait: 20m "}, `
policy: interval 1m → 2m
resource group Compute: slots (ncpus*1) → (ncpus*2)
plan Compute: reclaim_budget none → 20
plan Compute: lead 10m → 0s
plan Compute: gang_wait 10m → 20m`},
		{"a consumer that comes, one that goes",
			[]string{"  - {path: /Research, rank: 2}", "  - {path: /Study, rank: 2, reclaim_grace: 30s}",
				"{path: /Research, policy: ownership, share: {ratio: 1, max: 150}, borrow: {limit: 100}}",
				"{path: /Study, policy: ownership, borrow: {limit: 10}}"}, `
consumer /Study added: rank 2, reclaim_grace 30s
plan Compute, /Study added: policy ownership, borrow 10 from any
consumer /Research removed: rank 2
plan Compute, /Research removed: policy ownership, borrow 100 from any, share.max 150`},
		{"a consumer of another name", []string{"  - {path: /Research, rank: 2}",
			"  - {path: /Study, rank: 3, renamed_from: /Research}",
			"{path: /Research, policy", "{path: /Study, policy"}, `
consumer /Study: was /Research
consumer /Study: rank 2 → 3
plan Compute, /Study: rank 2 → 3`},
		{"hours", []string{`"07:00-20:00"`, `"08:00-19:00"`, `"20:00-07:00"`, `"19:00-08:00"`}, `
plan Compute, window day: hours 07:00-20:00 → 08:00-19:00
plan Compute, window night: hours 20:00-07:00 → 19:00-08:00`},
		{"windows that go", []string{"    lead: 10m ", "    placement: balanced ", "windows:\n      - {name: day",
			"wind: [\n      - {name: day"}, `
plan Compute: placement stacked → balanced
plan Compute: lead 10m → 0s
plan Compute, window night, /Trading: owns 60 → 120
plan Compute, window night, /Trading/Pricing: owns 30 → 80
plan Compute, window night, /Trading/Intraday: owns 20 → 40
plan Compute, window night, /Risk: owns 180 → 100
plan Compute, window night, /Risk/EOD: owns 130 → 60
plan Compute, window night, /Risk/Regulatory: owns 50 → 40
plan Compute, window day removed: hours 07:00-20:00
plan Compute, window night removed: hours 20:00-07:00`},
	} {
		edited := string(text)
		for i := 0; i < len(c.edit); i += 2 {
			if !strings.Contains(edited, c.edit[i]) {
				t.Fatalf("%s: no %q", c.name, c.edit[i])
			}
			edited = strings.Replace(edited, c.edit[i], c.edit[i+1], 1)
		}
		if before, _, ok := strings.Cut(edited, "    wind: ["); ok {
			edited = before
		}
		if got := told(t, string(text), edited); got != strings.TrimPrefix(c.want, "\n") {
			t.Errorf("%s:\n%s\nexpected\n%s", c.name, got, c.want)
		}
	}
}

// TestDifferenceMD does so for what MD plans alone have.
func TestDifferenceMD(t *testing.T) {
	const was = `stint: 1
dimensions: [gpus, ncpus]
resource_groups: [{name: Big, hosts: [b1, b2]}, {name: Small, hosts: [s1]}]
consumers: [{path: /A}, {path: /B}]
md_plans:
  - name: p
    resource_groups: [{name: Big}, {name: Small}]
    consumers:
      - {path: /A, own: [{group: Big, hosts: 1}], reserve: {hosts: 1}}
      - {path: /B}
`
	const is = `stint: 1
dimensions: [ncpus, gpus]
resource_groups: [{name: Big, hosts: [b1, b2]}, {name: Small, hosts: [s1]}]
consumers: [{path: /A}, {path: /B}]
md_plans:
  - name: p
    resource_groups: [{name: Big, preference: 1}, {name: Small}]
    overcommit: {ncpus: 1.5}
    placement: stacked
    public_pool: {grace: 5m}
    consumers:
      - {path: /A, own: [{group: Big, per_host: {ncpus: 25%, gpus: 1}}, {host_list: [s1]}], reserve: {percent: 12.5}, share: {priority: 1}}
      - {path: /B, own: [{group: Big, amount: {gpus: 8}, partial: true}], preference: {Small: 2}, lend_grace: 90s, share: {ratio: 2, limit: {gpus: 4}}}
`
	want := `policy: dimensions gpus, ncpus → ncpus, gpus
plan p: resource_groups Big, Small → Big (preference 1), Small
plan p: overcommit none → ncpus 1.5
plan p: placement best_fit → stacked
plan p: public_pool.grace none → 5m
plan p, /A: own 1 hosts of Big → ncpus 25 %, gpus 1 of each host of Big; hosts s1
plan p, /A: reserve 1 hosts → 12.5 %
plan p, /A: share.priority 0 → 1
plan p, /B: own none → gpus 8 of Big (partial)
plan p, /B: preference none → Small 2
plan p, /B: lend_grace none → 1m30s
plan p, /B: share.ratio 1 → 2
plan p, /B: share.limit none → gpus 4`
	if got := told(t, was, is); got != want {
		t.Errorf("got\n%s\nexpected\n%s", got, want)
	}
}

// TestDifferenceBounded lists no more changes than are asked for, the first ones, and counts all; of a first policy all
// came.
func TestDifferenceBounded(t *testing.T) {
	const first = `stint: 1
cluster: c
dimensions: [slots]
resource_groups: [{name: G, hosts: [h]}]
consumers: [{path: /A}, {path: /B}]
slot_plans: [{resource_group: G, consumers: [{path: /A, policy: ownership, owns: 2}]}]
`
	was, err := Parse("was", []byte(first))
	if err != nil {
		t.Fatal(err)
	}
	is, err := Parse("is",
		[]byte(strings.Replace(strings.Replace(first, "owns: 2", "owns: 3", 1), "cluster: c", "cluster: d", 1)))
	if err != nil {
		t.Fatal(err)
	}
	for most, want := range []string{"", "policy: cluster c → d", "policy: cluster c → d|plan G, /A: owns 2 → 3",
		"policy: cluster c → d|plan G, /A: owns 2 → 3"} {
		list, count := Difference(was, is, most)
		var lines []string
		for _, c := range list {
			lines = append(lines, c.String())
		}
		if got := strings.Join(lines, "|"); got != want || count != 2 {
			t.Errorf("%d at most: %q of %d, expected %q of 2", most, got, count, want)
		}
	}
	const came = "policy added: cluster c, dimensions slots|resource group G added: hosts h|consumer /A " +
		"added|consumer /B added|plan G added|plan G, /A added: policy ownership, owns 2"
	list, count := Difference(nil, was, math.MaxInt)
	var lines []string
	for _, c := range list {
		lines = append(lines, c.String())
	}
	if got := strings.Join(lines, "|"); got != came || count != len(list) {
		t.Errorf("of a first policy, %d: %s", count, got)
	}
}

func told(t *testing.T, was, is string) string {
	t.Helper()
	parsed := func(name, text string) *Policy {
		p, err := Parse(name, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	var lines []string
	list, _ := Difference(parsed("was", was), parsed("is", is), math.MaxInt)
	for _, c := range list {
		lines = append(lines, c.String())
	}
	return strings.Join(lines, "\n")
}

// TestDifferenceOfKeys holds that a difference can tell every key of the policy file: each has a fact.
func TestDifferenceOfKeys(t *testing.T) {
	files, err := filepath.Glob("../../cmd/stint/init/*/plan.yaml")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Parse(file, text)
		if err != nil {
			t.Fatal(err)
		}
		p.items(same, func(it item) {
			for _, f := range it.facts(0, nil) {
				key, _, _ := strings.Cut(f.key, ".")
				known[key] = true
			}
		})
	}
	p, err := Parse("divided", []byte(divided))
	if err != nil {
		t.Fatal(err)
	}
	p.items(same, func(it item) {
		for _, f := range it.facts(0, nil) {
			known[f.key] = true
		}
	})
	other := map[string]bool{ // told as the name of an item, or not part of a policy
		"stint": true, "resource_groups": true, "consumers": true, "slot_plans": true, "md_plans": true, "name": true,
		"path": true, "renamed_from": true, "resource_group": true, "windows": true, "divisions": true,
		"division": true,
	}
	for _, o := range []*object{fileObject, groupObject, consumerObject, slotObject, slotConsumerObject, mdObject,
		mdConsumerObject, windowObject, divisionObject} {
		for _, name := range o.names {
			if !known[name] && !other[name] {
				t.Errorf("no difference tells %s", name)
			}
		}
	}
}

// TestDifferenceMemory holds that two large policies are compared in a small part of the memory that reading one takes:
// POST /v1/plan/check does both.
func TestDifferenceMemory(t *testing.T) {
	var consumers, plan strings.Builder
	for i := range 5_000 {
		fmt.Fprintf(&consumers, "  - {path: /n%d}\n", i)
		fmt.Fprintf(&plan, "      - {path: /n%d, share: {ratio: 3}}\n", i)
	}
	text := "stint: 1\ndimensions: [n]\nresource_groups: [{name: All, select: \"select(n > 0)\"}]\nconsumers:\n" +
		consumers.String() + "md_plans:\n  - name: G\n    resource_groups: [{name: All}]\n    consumers:\n" +
		plan.String()
	var is *Policy
	allocated := func(of func()) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		of()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	read := func(text string) (p *Policy) {
		p, err := Parse("p", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	was := read(text)
	reading := allocated(func() { is = read(strings.Replace(text, "ratio: 3", "ratio: 4", 1)) })
	count := 0
	comparing := allocated(func() { _, count = Difference(was, is, 1_000) })
	if count != 1 || comparing > reading/8 {
		t.Errorf("%d changes; comparing allocates %d bytes, reading %d", count, comparing, reading)
	}
}
