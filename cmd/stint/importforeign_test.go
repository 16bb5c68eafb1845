package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// foreignData is where the files of other systems lie that the tests import.
const foreignData = "../../ingest/foreign/testdata"

// told runs a command line, which must end with exit code 0, and gives its standard output.
func told(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := execute(args, &out, &errs); code != exitFine {
		t.Fatalf("stint %s: exit code %d\n%s", strings.Join(args, " "), code, errs.String())
	}
	return out.String()
}

// guaranteedBy is what `stint check` says that consumers of an import are guaranteed: by plan, consumer and dimension.
func guaranteedBy(t *testing.T, dir string) map[string]float64 {
	t.Helper()
	var checked struct{ Guarantees []map[string]any }
	text := told(t, "check", filepath.Join(dir, "plan.yaml"), "--hosts", filepath.Join(dir, "hosts.csv"), "--output",
		"json")
	if err := json.Unmarshal([]byte(text), &checked); err != nil {
		t.Fatal(err)
	}
	by := map[string]float64{}
	for _, row := range checked.Guarantees {
		for column, n := range row {
			if d, ok := strings.CutPrefix(column, "guaranteed_"); ok {
				by[fmt.Sprintf("%v %v %s", row["plan"], row["consumer"], d)] = n.(float64)
			}
		}
	}
	return by
}

// TestImportGuarantees holds what consumers of an imported policy are guaranteed against what the other system's own
// rules give its queues when all ask for everything. Each case says how the figures come about.
func TestImportGuarantees(t *testing.T) {
	data := func(name string) string { return filepath.Join(foreignData, name) }
	six := []string{"--hosts", "6", "--size", "memory-mb=131072,vcores=32"} // 786,432 MiB, 192 cores
	for _, c := range []struct {
		name string
		args []string
		want map[string]float64
	}{
		{"yarn capacity", []string{"yarn", "--queues", data("yarn/capacity-scheduler.xml"), "--nodes",
			data("yarn/nodes.json")}, map[string]float64{
			// 7 nodes without a label are open: 917,504 MiB, 224 cores; prod 60 %, in it etl 37.5 %; dev 40, adhoc 0 %
			"default /prod memory_mb": 917504 * .6, "default /prod/etl memory_mb": 917504 * .6 * .375,
			"default /prod/serving memory_mb": 917504 * .6 * .625,
			"default /dev memory_mb":          917504 * .4, "default /dev vcores": 224 * .4,
			"default /adhoc memory_mb": 0, "gpu /prod memory_mb": 262144 * .7, "gpu /dev memory_mb": 262144 * .3,
			"gpu /prod/serving vcores": 64 * .7,
		}},
		{"yarn amounts", append([]string{"yarn", "--queues", data("yarn/absolute.xml")}, six...), map[string]float64{
			// what nobody has a capacity of is divided beside: 131,072 MiB, of which a has 3 parts, b 2
			"default /a memory_mb": 393216 + 131072*3/5., "default /b memory_mb": 262144 + 131072*2/5.,
			"default /a/a1 memory_mb": 262144 + 131072*2/5.,
		}},
		{"yarn weights", append([]string{"yarn", "--queues", data("yarn/weights.xml")}, six...), map[string]float64{
			"default /a memory_mb": 786432 * 2 / 3., "default /b memory_mb": 786432 / 3.,
		}},
		{"yarn fair", append([]string{"yarn", "--queues", data("yarn/fair-scheduler.xml")}, six...), map[string]float64{
			// trading has its minimum, half of the cluster, and of the other half science has two parts, adhoc one
			"default /trading memory_mb": 393216, "default /science memory_mb": 262144,
			"default /adhoc memory_mb":           131072,
			"default /science/physics memory_mb": 65536, "default /science/biology memory_mb": 196608,
		}},
		{"yunikorn", []string{"yunikorn", "--queues", data("yunikorn/plain.yaml"), "--hosts", "10", "--size",
			"vcore=16,memory=64Gi"}, map[string]float64{
			// usage ÷ guaranteed is equal: of 160 cores a has two thirds
			"default /a cpu_milli": 160000 * 2 / 3., "default /b cpu_milli": 160000 / 3.,
		}},
		{"kai", []string{"kai", "--manifests", data("kai/plain.yaml"), "--hosts", "10", "--size",
			"cpu=16,memory=64Gi,gpu=2"}, map[string]float64{
			// of 20 GPUs 8 and 4 are promised; of the other 8 b has three parts, a one
			"kai /a gpu_milli": 10000, "kai /b gpu_milli": 10000,
		}},
		{"kueue", []string{"kueue", "--manifests", data("kueue/queues.yaml")}, map[string]float64{
			// nominal quotas of both flavors; of a cohort its own beside, which its
			// only queue gets; local queues by their weights
			"kueue /company/team-a cpu_milli": 60000, "kueue /company/team-a memory_mib": 245760,
			"kueue /company/team-b cpu_milli":   20500,
			"kueue /company/research cpu_milli": 40000, "kueue /company/research/genome memory_mib": 163840,
			"kueue /alone cpu_milli":                                  12000,
			"kueue /company/team-a/team-a-night.user-queue cpu_milli": 45000,
		}},
		{"slurm", []string{"slurm", "--conf", data("slurm/slurm.conf"), "--accounts", data("slurm/accounts.cfg")},
			map[string]float64{
				// 4,608 CPUs that are up; ml and guests have at most 1,024 and 256; the rest goes 50 : 1, in physics 1
				// : 3
				"slurm /ml cpus": 1024, "slurm /guests cpus": 256, "slurm /physics cpus": 3328 * 50 / 51.,
				"slurm /root cpus":               3328 / 51.,
				"slurm /physics/experiment cpus": 3328 * 50 / 51. * .75, "slurm /ml/alan cpus": 1024 * 2 / 3.,
				"slurm /guests memory_mb": 1 << 20,
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			told(t, append(append([]string{"import"}, c.args...), "--out", dir, "--format", "csv")...)
			got := guaranteedBy(t, dir)
			for key, want := range c.want {
				have, ok := got[key]
				if d := have - want; !ok || d < -1-want/10_000 || d > 1+want/10_000 { // check gives whole units
					t.Errorf("%s: %.1f guaranteed, want %.1f", key, have, want)
				}
			}
			if _, err := os.Stat(filepath.Join(dir, "demand.csv")); err == nil {
				told(t, "run", "--plan", filepath.Join(dir, "plan.yaml"), "--hosts", filepath.Join(dir, "hosts.csv"),
					"--demand", filepath.Join(dir, "demand.csv"), "--until-stable", "--out", filepath.Join(dir, "log"))
				told(t, "verify", "--log", filepath.Join(dir, "log"))
			}
		})
	}
}

// TestImportExamples runs the examples of each kind's help, in a folder that has the files of its testdata.
func TestImportExamples(t *testing.T) {
	for _, kind := range newImport().Commands() {
		if kind.Name() == "openb" || kind.Name() == "swf" { // their files are other people's logs
			continue
		}
		t.Run(kind.Name(), func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(filepath.Join(foreignData, kind.Name()))); err != nil {
				t.Fatal(err)
			}
			t.Chdir(dir)
			for line := range strings.Lines(kind.Example) {
				told(t, strings.Fields(line)[1:]...)
			}
		})
	}
}

// TestImportWidth: what people read fits into 80 columns, but for the commands to go on with.
func TestImportWidth(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	dir := t.TempDir()
	text := told(t, "import", "yarn", "--queues", filepath.Join(foreignData, "yarn/capacity-scheduler.xml"),
		"--nodes", filepath.Join(foreignData, "yarn/nodes.json"), "--out", filepath.Join(dir, "o"))
	text, _, _ = strings.Cut(text, "\nnext: ")
	for line := range strings.Lines(strings.ReplaceAll(text, dir, "")) {
		if line = strings.TrimSuffix(line, "\n"); len(line) > 80 || strings.HasSuffix(line, " ") {
			t.Errorf("%d columns: %q", len(line), line)
		}
	}
}

// TestImportEGO imports a reporting table with hosts: the answer of the comparison is told, with a table of all
// consumers, within 80 columns; the scenario of its first day can be played, and its log holds.
func TestImportEGO(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	dir := t.TempDir()
	data := func(name string) string { return filepath.Join(foreignData, "ego", name) }
	out := filepath.Join(dir, "o")
	text := told(t, "import", "ego", "--allocation", data("allocation.csv"), "--groups", data("ResourceGroups.xml"),
		"--resources", data("resources.csv"),
		"--trees", data("ConsumerTrees.xml"), "--length", "3h", "--format", "csv", "--out", out)
	for _, want := range []string{
		"of what was asked 87.64 % were given; stint would have given 9",
		"asked, in slot-hours: 6,216 from 2026-01-05 00:00 to 2026-01-06 23:00 UTC\n",
		"Risk (ComputeHosts)      3,960  3,240", "6 ordered consumers,", "next: stint check",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it is not told: %s\n%s", want, text)
		}
	}
	before, _, _ := strings.Cut(text, "\nnext: ")
	for line := range strings.Lines(strings.ReplaceAll(before, dir, "")) {
		if line = strings.TrimSuffix(line, "\n"); utf8.RuneCountInString(line) > 80 || strings.HasSuffix(line, " ") {
			t.Errorf("%d columns: %q", utf8.RuneCountInString(line), line)
		}
	}
	table, err := os.ReadFile(filepath.Join(out, "comparison.csv"))
	if err != nil || strings.Count(string(table), "\n") != 1+4+3 ||
		!strings.Contains(string(table), "\nComputeHosts,/Risk/Overnight,true,48,2160.00,1680.00,") {
		t.Errorf("%v\n%s", err, table)
	}
	got := guaranteedBy(t, out) // of windows the last: the night
	for key, want := range map[string]float64{"ComputeHosts /Research slots": 28,
		"ComputeHosts /Risk/Overnight slots": 50, "GPUHosts /Research slots": 12} {
		if have := got[key]; have != want {
			t.Errorf("%s: %.0f guaranteed, want %.0f", key, have, want)
		}
	}
	told(t, "simulate", "--scenario", filepath.Join(out, "scenario.yaml"), "--out", filepath.Join(out, "log"))
	told(t, "verify", "--log", filepath.Join(out, "log"))
}
