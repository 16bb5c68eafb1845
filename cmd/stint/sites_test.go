package main

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/ingest/foreign"
)

// siteFiles is where small files lie that use the settings of public ones; the first line of each names the one that it
// was written after. figures.csv beside them has what the other system's own rules give each queue.
const siteFiles = foreignData + "/sites"

// sitesLeast is how many files of each system there must be.
const sitesLeast = 10

// siteRows reads figures.csv of a system. It fails where a file has no figures or figures have no file.
func siteRows(t *testing.T, system string) (rows [][]string) {
	t.Helper()
	f, err := os.Open(filepath.Join(siteFiles, system, "figures.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err = csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	rows = rows[1:]
	var told []string
	for _, row := range rows {
		told = append(told, row[0])
	}
	slices.Sort(told)
	told = slices.Compact(told)
	entries, err := os.ReadDir(filepath.Join(siteFiles, system))
	if err != nil {
		t.Fatal(err)
	}
	var there []string
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); ext != ".csv" && ext != ".cfg" {
			there = append(there, e.Name())
		}
	}
	if !slices.Equal(told, there) || len(there) < sitesLeast {
		t.Errorf("%s: figures of %q, files %q: want the same, and %d at least", system, told, there, sitesLeast)
	}
	return rows
}

// siteArgs are the arguments of the import of a file.
func siteArgs(system, file string) []string {
	path := filepath.Join(siteFiles, system, file)
	switch system {
	case "yarn":
		return []string{"yarn", "--queues", path, "--hosts", "4", "--size", "memory-mb=65536,vcores=16"}
	case "kueue":
		return []string{"kueue", "--manifests", path}
	case "yunikorn":
		return []string{"yunikorn", "--queues", path, "--hosts", "10", "--size", "vcore=16,memory=64Gi"}
	case "queues":
		kind, _, _ := strings.Cut(file, "-")
		return []string{kind, "--manifests", path, "--hosts", "10", "--size", "cpu=16,memory=64Gi,nvidia.com/gpu=2"}
	}
	args := []string{"slurm", "--conf", path}
	accounts := strings.TrimSuffix(path, ".conf") + ".cfg"
	if _, err := os.Stat(accounts); err == nil {
		args = append(args, "--accounts", accounts)
	}
	return args
}

// TestSites compares the import of files after public ones with the figures that the other system's rules give: what a
// queue owns by itself, what it gets when all ask for everything, and the most that it may hold.
func TestSites(t *testing.T) {
	for _, system := range []string{"slurm", "yarn", "kueue", "yunikorn", "queues"} {
		t.Run(system, func(t *testing.T) {
			rows := siteRows(t, system)
			dir := t.TempDir()
			plans, guaranteed := map[string]*plan.Policy{}, map[string]map[string]float64{}
			for _, row := range rows {
				file := row[0]
				if plans[file] == nil {
					out := filepath.Join(dir, file)
					told(t, slices.Concat([]string{"import"}, siteArgs(system, file), []string{"--out", out, "--format",
						"csv"})...)
					text, err := os.ReadFile(filepath.Join(out, "plan.yaml"))
					if err != nil {
						t.Fatal(err)
					}
					plans[file], err = plan.Parse("plan.yaml", text)
					if err != nil {
						t.Fatal(err)
					}
					guaranteed[file] = guaranteedBy(t, out)
				}
				siteFigures(t, plans[file], guaranteed[file], row)
			}
			t.Logf("%s: %d figures of %d files", system, 3*len(rows), len(plans))
		})
	}
}

// siteFigures compares a row of figures.csv: file, plan, queue, dimension, owned, guaranteed, most (- where there is no
// limit).
func siteFigures(t *testing.T, p *plan.Policy, guaranteed map[string]float64, row []string) {
	t.Helper()
	at := slices.IndexFunc(p.MDPlans, func(m plan.MDPlan) bool { return m.Name == row[1] })
	n, ok := p.Find(row[2])
	d, known := p.Dimension(row[3])
	if at < 0 || !ok || !known {
		t.Errorf("%s: no plan, queue or dimension of %q", row[0], row)
		return
	}
	w := &p.MDPlans[at].Windows[0]
	owned := int64(0)
	for i := range w.Own[n] {
		if amount := w.Own[n][i].Amount; amount != nil && amount[d] > 0 {
			owned += amount[d]
		}
	}
	if want := siteFigure(t, row[4]); float64(owned) != want {
		t.Errorf("%s: %s owns %d %s, want %s", row[0], row[2], owned, row[3], row[4])
	}
	got, want := guaranteed[row[1]+" "+row[2]+" "+row[3]], siteFigure(t, row[5])
	if math.Abs(got-want) > 1+want/10_000 { // check gives whole units
		t.Errorf("%s: %s is guaranteed %.1f %s, want %s", row[0], row[2], got, row[3], row[5])
	}
	most := "-"
	switch limit := w.Limit[d][n]; {
	case w.Ratio[n] == 0: // it has no part of what it does not own
		most = strconv.FormatInt(owned, 10)
	case limit != plan.Unlimited:
		most = strconv.FormatInt(owned+limit, 10)
	}
	if most != row[6] {
		t.Errorf("%s: %s may have %s %s at most, want %s", row[0], row[2], most, row[3], row[6])
	}
}

func siteFigure(t *testing.T, text string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestSiteLogs compares workload logs after public ones: the hosts and processors of the machine (queue -), and how
// many jobs, processors and processor-seconds each consumer has.
func TestSiteLogs(t *testing.T) {
	read := map[string]map[string][3]int64{}
	rows := siteRows(t, "swf")
	for _, row := range rows {
		if read[row[0]] == nil {
			read[row[0]] = siteLog(t, row[0])
		}
		got, want := read[row[0]][row[1]], [3]int64{}
		for i := range want {
			want[i] = int64(siteFigure(t, row[2+i]))
		}
		if got != want {
			t.Errorf("%s: %s has %v, want %v", row[0], row[1], got, want)
		}
	}
	t.Logf("swf: %d figures of %d files", 3*len(rows), len(read))
}

// siteLog imports a workload log by user.
func siteLog(t *testing.T, file string) map[string][3]int64 {
	t.Helper()
	f, err := os.Open(filepath.Join(siteFiles, "swf", file))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := foreign.SWF(file, f, foreign.SWFOptions{By: "user"})
	if err != nil {
		t.Fatal(err)
	}
	by := map[string][3]int64{"-": {int64(r.Dataset.Hosts.Rows), sum(r.Dataset.Hosts.Size[0]), 0}}
	d := r.Dataset.Demand
	for i := range d.Rows {
		consumer := d.Consumer.Names.String(d.Consumer.Code[i])
		was := by[consumer]
		by[consumer] = [3]int64{was[0] + 1, was[1] + d.Units[i], was[2] + d.Units[i]*r.Lives.Runs[i]}
	}
	return by
}
