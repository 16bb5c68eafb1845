package foreign

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stintd/stint/core/plan"
)

// TestReal imports files shaped after real sites' files. Each import ends in a run of its own demand (prove), so that a
// file which passes gives tables that stint takes. A row says what the plan, the report or the error must have.
func TestReal(t *testing.T) {
	for _, c := range []struct {
		file    string
		refused string   // in the error; "" where the file must pass
		plan    []string // in the policy
		report  []string // in the report
		missing []string // not in the policy
	}{
		{file: "slurm/feature-gpu.conf", plan: []string{"dimensions: [cpus, memory_mb, gpu]"},
			report: []string{"renamed: feature gpu is feature_gpu here"}},
		{file: "slurm/feature-names.conf", report: []string{"renamed: feature cpus is feature_cpus here",
			"renamed: feature memory_mb is feature_memory_mb here", "renamed: feature host is feature_host here",
			"renamed: feature weight is feature_weight here", "renamed: feature gpu-type is gpu_type here"}},
		{file: "slurm/spaces.conf", plan: []string{`cluster: "lab"`}},
		{file: "slurm/memory-not-counted.conf", missing: []string{"memory_mb"},
			report: []string{":3: memory of nodes: SelectTypeParameters=CR_Core does not count memory"}},
		{file: "slurm/fairshare-parent-number.cfg", missing: []string{"2147483647"},
			report: []string{":6: Fairshare=2147483647: "}},
		{file: "slurm/limit-of-the-cluster.cfg", missing: []string{"limit: {"},
			report: []string{":1: limits of the cluster: "}},
		{file: "slurm/typed-gres-limit.cfg", plan: []string{"limit: {cpus: 8, gpu: 3}"},
			report: []string{"GrpTRES of gres/gpu:a100: a type of a generic resource is an attribute"}},
		{file: "kueue/eighteen-resources.yaml",
			refused: "the files name 18 resources; a policy has at most 16 dimensions"},
		{file: "kueue/two-groups.yaml", report: []string{"flavor tokens apart from nodes"},
			plan: []string{"dimensions: [cpu_milli, memory_mib, example_com_ip]"}},
		{file: "kueue/large-quota.yaml", plan: []string{"cpu_milli: 20000000"}},
		{file: "kueue/unlimited-1E.yaml",
			refused: "unlimited-1E.yaml:15: ClusterQueue q: nominalQuota 1E of cpu: is above"},
		{file: "kueue/no-resources.yaml", refused: "no-resources.yaml:1: ClusterQueue q: no queue has resourceGroups"},
		{file: "yarn/min-above-max.xml", plan: []string{"memory_mb: 20480"},
			report: []string{":4: queue root.a: its minimum of memory_mb is above its maximum"}},
		{file: "yarn/maximum-minus-one.xml", missing: []string{"limit"}},
		{file: "yarn/no-queue.xml", plan: []string{`path: "/default"`},
			report: []string{"<allocations> without a queue"}},
	} {
		t.Run(c.file, func(t *testing.T) {
			r, err := importReal(t, c.file)
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) ||
					strings.Contains(err.Error(), "plan.yaml") {
					t.Fatalf("got %v, want %q", err, c.refused)
				}
				return
			}
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
			for _, wrong := range c.missing {
				if bytes.Contains(r.Dataset.Plan, []byte(wrong)) {
					t.Errorf("the plan has %q:\n%s", wrong, r.Dataset.Plan)
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

// importReal imports a file of testdata/real by the importer of its folder.
func importReal(t *testing.T, file string) (*Result, error) {
	f := open(t, filepath.Join("real", file))
	switch folder := filepath.Dir(file); {
	case folder == "kueue":
		return Kueue([]File{f})
	case folder == "yarn":
		return YARN(f, YARNOptions{Hosts: 4, Size: map[string]int64{"memory-mb": 65536, "vcores": 16}})
	case strings.HasSuffix(file, ".cfg"):
		return Slurm(open(t, "real/slurm/base.conf"), SlurmOptions{Accounts: &f})
	}
	return Slurm(f, SlurmOptions{})
}

// mustBeTheirs fails a fuzz target where an import ends in an error for which the importer is to blame.
func mustBeTheirs(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, ErrImporter) {
		t.Fatal(err)
	}
}

// TestNames holds that no two things get one name, whatever their names in the other system.
func TestNames(t *testing.T) {
	var n names
	n.fix("rack")
	seen := map[string]bool{"rack": true}
	long := strings.Repeat("a", 40)
	for _, one := range []thing{
		{"resource", "gpu"}, {"feature", "gpu"}, {"partition", "a-b"}, {"partition", "a.b"}, {"resource", "rack"},
		{"resource", "units"}, {"feature", ""}, {"feature", "-"}, {"feature", "名"}, {"feature", long},
		{"feature", long + "b"}, {"feature", "state"}, {"resource", "state"}, {"feature", "1"},
		{"resource", "true"}, {"resource", "Null"}, {"feature", "no"},
	} {
		name := n.of(one.kind, one.name)
		if seen[name] || slices.Contains(yamlWords, name) || plan.ReservedName(name) || len(name) > nameBytesMax ||
			name == "" {
			t.Errorf("%v is %q, which is taken or no name", one, name)
		}
		seen[name] = true
		if again := n.of(one.kind, one.name); again != name {
			t.Errorf("%v is %q first and %q then", one, name, again)
		}
	}
	if !slices.Contains(n.renamed, Renaming{What: "feature gpu", Name: "feature_gpu"}) {
		t.Errorf("the renaming of the feature gpu is not listed: %v", n.renamed)
	}
}

// TestReconcile holds that an entry which the policy does not say is an error.
func TestReconcile(t *testing.T) {
	r, err := importReal(t, "slurm/typed-gres-limit.cfg")
	if err != nil {
		t.Fatal(err)
	}
	read, err := plan.Parse("plan.yaml", bytes.Replace(r.Dataset.Plan, []byte("gpu: 3"), []byte("gpu: 2"), 1))
	if err != nil {
		t.Fatal(err)
	}
	limit := filled(3, none)
	limit[0], limit[2] = 8, 3
	p := policy{dims: read.Dimensions, consumers: []string{"/root", "/q", "/q/u1"}, plans: []madePlan{{name: slurmPlan,
		entries: []*entry{{path: "/q", ratio: 100, limit: limit}}}}}
	want := "/q: a limit of 3 gpu was read, plan slurm has 2"
	if err := p.reconcile(read); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// TestUnfit holds that units which fit nowhere are found.
func TestUnfit(t *testing.T) {
	r, err := importReal(t, "slurm/spaces.conf")
	if err != nil {
		t.Fatal(err)
	}
	read, err := plan.Parse("plan.yaml", r.Dataset.Plan)
	if err != nil {
		t.Fatal(err)
	}
	r.Dataset.Demand = demandTable(r.Dataset.Dimensions, []demandRow{
		{consumer: "/jobs", allocation: "large", units: 2, size: []int64{9, 1}},
		{consumer: "/jobs", allocation: "small", units: 2, size: []int64{1, 1}},
	})
	large, err := prove(read, r.Dataset, false)
	if err != nil || large.units != 2 || !strings.Contains(large.reason, "/jobs, allocation large: too_big") {
		t.Errorf("got %+v, %v", large, err)
	}
	if some := head(r.Dataset.Demand, 1); some.Rows != 1 || len(some.Units) != 1 || len(some.Size[0]) != 1 {
		t.Errorf("the first row: %+v", some)
	}
}
