package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stintd/stint/core/plan"
)

const generatorText = `cohorts:
  - className: cohort
    count: 2
    queuesSets:
    - className: cq
      count: 3
      nominalQuota: 20
      borrowingLimit: 100
      reclaimWithinCohort: Any
      withinClusterQueue: LowerPriority
      workloadsSets:
      - count: 5
        creationIntervalMs: 100
        workloads: [{className: small, runtimeMs: 200, priority: 50, request: 1}]
      - count: 2
        creationIntervalMs: 700
        workloads: [{className: large, runtimeMs: 1000, priority: 200, request: 20}]
`

const rangesText = `cmd: {maxWallMs: 425_000}
clusterQueueClassesMinUsage: {cq: 50}
wlClassesMaxAvgTimeToAdmissionMs: {large: 23_000, small: 260_000}
`

func read(t *testing.T, generator, ranges string) (*generatorFiles, error) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"x-generator.yaml": generator, "x-rangespec.yaml": ranges} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	g, r, err := readKueue(dir, "x")
	return &generatorFiles{g, r}, err
}

type generatorFiles struct {
	generator
	ranges
}

// TestKueueCluster holds the policy, which must be a good one, and the jobs against the generator.
func TestKueueCluster(t *testing.T) {
	f, err := read(t, generatorText, rangesText)
	if err != nil {
		t.Fatal(err)
	}
	if f.Cmd.MaxWallMS != 425_000 || f.MinUsage["cq"] != 50 || f.MaxAdmission["small"] != 260_000 {
		t.Errorf("ranges %+v", f.ranges)
	}
	c := f.cluster(20 * time.Millisecond)
	p, err := plan.Parse("plan.yaml", []byte(c.plan))
	if err != nil {
		t.Fatalf("%v in\n%s", err, c.plan)
	}
	if len(p.MDPlans) != 2 || p.Len() != 1+2*(1+3*3) {
		t.Errorf("%d plans, %d consumers", len(p.MDPlans), p.Len())
	}
	if len(c.jobs) != 6*7 || c.quota != 120 || strings.Count(c.hosts, "\n") != 7 {
		t.Errorf("%d jobs, quota %d, hosts\n%s", len(c.jobs), c.quota, c.hosts)
	}
	if want := (5*200 + 2*20*1000) * time.Millisecond / 20; c.ideal != want {
		t.Errorf("ideal %s, want %s", c.ideal, want)
	}
	for i, j := range c.jobs[1:] {
		if j.from < c.jobs[i].from {
			t.Fatalf("job %d comes before job %d", i+1, i)
		}
	}
}

func TestKueueRefused(t *testing.T) {
	for _, c := range []struct{ name, generator, ranges, want string }{
		{"unknown field", strings.Replace(generatorText, "nominalQuota", "nominalQouta", 1), rangesText,
			`unknown field "nominalQouta"`},
		{"unknown range", generatorText, rangesText + "maxMood: 3\n", `unknown field "maxMood"`},
		{"unknown preemption", strings.Replace(generatorText, "Any", "Never", 1), rangesText,
			`reclaimWithinCohort "Never"`},
		{"no interval", strings.Replace(generatorText, "creationIntervalMs: 100", "creationIntervalMs: 0", 1),
			rangesText, "need a count, an interval and a class"},
		{"empty", "cohorts: []\n", rangesText, "no cohort in it"},
	} {
		if _, err := read(t, c.generator, c.ranges); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if _, _, err := readKueue(t.TempDir(), "x"); !os.IsNotExist(err) {
		t.Errorf("no files: %v", err)
	}
}
