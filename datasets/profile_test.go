package datasets

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/ingest/table"
)

var profiles = map[string]func(Options) (*Dataset, error){"grid": Grid, "gpu": GPU, "hetero": Hetero}

func generate(t *testing.T, profile string, o Options) *Dataset {
	t.Helper()
	d, err := profiles[profile](o)
	if err != nil {
		t.Fatalf("%s %+v: %v", profile, o, err)
	}
	return d
}

// TestProfiles checks what every profile promises, over small and lopsided sizes: exact totals, names of its
// own, a policy that compiles, tables that the state takes.
func TestProfiles(t *testing.T) {
	for profile := range profiles {
		for _, o := range []Options{
			{Hosts: 1, Consumers: 2, Units: 1, Seed: 1},
			{Hosts: 2, Consumers: 5, Units: 300, Shapes: 1, Seed: 2},
			{Hosts: 40, Consumers: 20, Units: 1000, Seed: 3},
			{Hosts: 500, Consumers: 10, Units: 30, Seed: 4},
			{Hosts: 300, Consumers: 100, Units: 20_000, Shapes: 90, Seed: 5},
		} {
			d := generate(t, profile, o)
			var units int64
			for _, n := range d.Demand.Units {
				units += n
			}
			if d.Hosts.Rows != o.Hosts || units != o.Units {
				t.Errorf("%s %+v: %d hosts, %d units", profile, o, d.Hosts.Rows, units)
			}
			s := accept(t, d, d.Hosts, d.Demand)
			if p := s.Policy; len(p.MDPlans) != 1 || p.MDPlans[0].Name != profile ||
				!slices.Equal(p.Dimensions, d.Dimensions) {
				t.Errorf("%s %+v: the policy is\n%s", profile, o, d.Plan)
			}
			if n := s.Plans[0].Parcels.Len(); n != o.Hosts {
				t.Errorf("%s %+v: %d hosts in the plan", profile, o, n)
			}
		}
	}
}

// TestProfileSeed checks that options decide all, to the byte, and that the seed matters.
func TestProfileSeed(t *testing.T) {
	for profile := range profiles {
		files := func(seed uint64) (all [][]byte) {
			d := generate(t, profile, Options{Hosts: 60, Consumers: 12, Units: 2000, Shapes: 9, Seed: seed})
			dir := t.TempDir()
			if err := d.Write(dir, "csv"); err != nil {
				t.Fatal(err)
			}
			for _, n := range []string{"plan.yaml", "hosts.csv", "demand.csv"} {
				b, err := os.ReadFile(filepath.Join(dir, n))
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, b)
			}
			return all
		}
		a, b, c := files(1), files(1), files(2)
		for i := range a {
			if !bytes.Equal(a[i], b[i]) {
				t.Errorf("%s: the same options give two files:\n%s\n%s", profile, a[i], b[i])
			}
			if bytes.Equal(a[i], c[i]) {
				t.Errorf("%s: two seeds give the same file\n%s", profile, a[i])
			}
		}
	}
}

// TestProfileRefused checks that each profile names itself when its options are bad.
func TestProfileRefused(t *testing.T) {
	for profile, f := range profiles {
		d, err := f(Options{Hosts: -1, Consumers: 2, Units: 1})
		if want := profile + `, column hosts, value "-1": must be from 1 to 10000000`; err == nil ||
			err.Error() != want || d != nil {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestGPU checks what sets the GPU cluster apart: models, hosts without GPUs, requirements, max_per_host.
func TestGPU(t *testing.T) {
	d := generate(t, "gpu", Options{Hosts: 100, Consumers: 20, Units: 50_000, Seed: 1})
	models, without := map[string]int{}, 0
	model := d.Hosts.Attr[slices.IndexFunc(d.Hosts.Attr, func(a cluster.AttrColumn) bool { return a.Name == "model" })]
	for i := range d.Hosts.Rows {
		if model.Valid[i] != (d.Hosts.Size[gpus][i] > 0) {
			t.Fatalf("host %d: a model is %v, with %d GPUs", i, model.Valid[i], d.Hosts.Size[gpus][i])
		}
		if model.Valid[i] {
			models[model.Text.Names.String(model.Text.Code[i])]++
		} else {
			without++
		}
	}
	if !reflect.DeepEqual(models, map[string]int{"A100": 20, "H100": 10, "L40": 20, "T4": 30}) || without != 20 {
		t.Errorf("models %v, %d hosts without", models, without)
	}
	withGPU, restricted, most := 0, 0, 0
	for row := range d.Demand.Rows {
		need := d.Demand.Requirement.Code[row]
		if d.Demand.Size[gpus][row] > 0 {
			withGPU++
		} else if need != cluster.Null {
			t.Errorf("row %d wants no GPU and has a requirement", row)
		}
		if need != cluster.Null {
			restricted++
		}
		if n := d.Demand.MaxPerHost[row]; n != plan.Unlimited {
			most++
			if n < 1 || n > 4 {
				t.Errorf("row %d: max_per_host %d", row, n)
			}
		}
	}
	if _, ok := d.Demand.Requirement.Names.Find([]byte("select(A100 || H100)")); !ok {
		t.Error("no row has select(A100 || H100)")
	}
	if withGPU*3/10 > restricted || restricted > withGPU/2 || d.Demand.Rows/16 > most || most > d.Demand.Rows/4 {
		t.Errorf("%d rows, %d with GPUs, %d with a requirement, %d with max_per_host", d.Demand.Rows, withGPU,
			restricted, most)
	}
}

// TestOwners checks that owned parts add up on both levels, and that only the flag makes them.
func TestOwners(t *testing.T) {
	for _, consumers := range []int{2, 20, 1000} {
		o := Options{Hosts: 50, Consumers: consumers, Units: 100, Seed: 1}
		if d := generate(t, "gpu", o); bytes.Contains(d.Plan, []byte("own:")) {
			t.Errorf("owners without the option:\n%s", d.Plan)
		}
		o.Owners = true
		d := generate(t, "gpu", o)
		p, err := plan.Parse("plan.yaml", d.Plan)
		if err != nil {
			t.Fatalf("%d leaves: %v", consumers, err)
		}
		sum := make([]int64, p.Tree.Len())
		own := p.MDPlans[0].Windows[0].Own
		for n := range own {
			for _, rule := range own[n] {
				sum[p.Parent[n]] += rule.Percent
			}
			if has := len(own[n]) == 1; has != (p.Depth[n] == 1 || p.Depth[n] == 2) {
				t.Errorf("%d leaves: %s has %d rules", consumers, p.Path[n], len(own[n]))
			}
		}
		if sum[plan.Root] < 70_000 || slices.Max(sum) > 100_000 { // thousandths of a percent
			t.Errorf("%d leaves: the first level owns %d, one consumer's children %d", consumers, sum[plan.Root],
				slices.Max(sum))
		}
	}
}

// TestHetero checks that no two hosts are of one size, not even where every host is of the least size.
func TestHetero(t *testing.T) {
	for _, o := range []Options{
		{Hosts: 1000, Consumers: 20, Units: 50_000, Seed: 1},
		{Hosts: 5000, Consumers: 2, Units: 5, Seed: 2},
	} {
		d := generate(t, "hetero", o)
		seen := map[vector]bool{}
		for i := range d.Hosts.Rows {
			var v vector
			for k := range v {
				v[k] = d.Hosts.Size[k][i]
			}
			if seen[v] {
				t.Errorf("%+v: two hosts are of size %v", o, v)
			}
			seen[v] = true
		}
		for k, name := range dimensionNames {
			distinct := slices.Compact(slices.Sorted(slices.Values(d.Hosts.Size[k])))
			if o.Units > 1000 && len(distinct) < 5 {
				t.Errorf("%+v: %s has only the values %v", o, name, distinct)
			}
		}
	}
}

// readBack reads the files that Write made.
func readBack(t *testing.T, dir, format string, dims []string) (*cluster.HostTable, *cluster.DemandTable) {
	t.Helper()
	open := func(name string) (*os.File, table.Options) {
		path := filepath.Join(dir, name+"."+format)
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f, table.Options{Name: path, Dimensions: dims}
	}
	hosts, err := table.ReadHosts(open("hosts"))
	if err != nil {
		t.Fatal(err)
	}
	demand, err := table.ReadDemand(open("demand"))
	if err != nil {
		t.Fatal(err)
	}
	return hosts, demand
}

// TestWriteRead checks that all columns come back from every format: attributes of all kinds with gaps, texts that
// need quoting, requirement and max_per_host.
func TestWriteRead(t *testing.T) {
	text := func(values ...string) cluster.TextColumn {
		c := newText(len(values))
		for i, v := range values {
			if c.Code[i] = cluster.Null; v != "" {
				c.set(i, v)
			}
		}
		return c.TextColumn
	}
	d := &Dataset{
		Plan: []byte("stint: 1\n"), Dimensions: []string{"ncpus"},
		Hosts: &cluster.HostTable{Rows: 3, Host: text("h,1", `h"2`, "hé"), Size: [][]int64{{1, 2, 1 << 53}},
			Attr: []cluster.AttrColumn{
				{Name: "speed", Kind: plan.Number, Valid: []bool{true, false, true}, Number: []float64{1.5, 0, -3e20}},
				{Name: "fast", Kind: plan.Boolean, Valid: []bool{true, true, false}, Bool: []bool{true, false, false}},
				{Name: "full", Kind: plan.Boolean, Valid: []bool{true, true, true}, Bool: []bool{true, false, true}},
				{Name: "weight", Kind: plan.Number, Valid: []bool{true, true, true}, Number: []float64{1, 2, 0.1}},
				{Name: "model", Kind: plan.Text, Valid: []bool{false, true, true}, Text: text("", "A100", "x y")},
			}},
		Demand: &cluster.DemandTable{Rows: 2, Consumer: text("/A", "/A"), Allocation: text("a", "b"),
			Units: []int64{3, 4},
			Size:  [][]int64{{1, 2}}, Requirement: text("", "select(A100 && speed > 1)"),
			MaxPerHost: []int64{2, plan.Unlimited}},
	}
	for _, format := range Formats {
		dir := t.TempDir()
		if err := d.Write(dir, format); err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		hosts, demand := readBack(t, dir, format, d.Dimensions)
		if got, want := show(hosts.Host, hosts.Rows), show(d.Hosts.Host, 3); got != want ||
			!reflect.DeepEqual(hosts.Size, d.Hosts.Size) {
			t.Errorf("%s: hosts %s %v", format, got, hosts.Size)
		}
		if len(hosts.Attr) != len(d.Hosts.Attr) {
			t.Fatalf("%s: %d attributes", format, len(hosts.Attr))
		}
		for _, want := range d.Hosts.Attr {
			i := slices.IndexFunc(hosts.Attr, func(a cluster.AttrColumn) bool { return a.Name == want.Name })
			if got := hosts.Attr[i]; !sameAttribute(got, want) {
				t.Errorf("%s: got %+v\nwant %+v", format, got, want)
			}
		}
		if show(demand.Requirement, 2) != show(d.Demand.Requirement, 2) || show(demand.Allocation, 2) != "a|b" ||
			!slices.Equal(demand.MaxPerHost, d.Demand.MaxPerHost) ||
			!slices.Equal(demand.Units, d.Demand.Units) || demand.Sub.Code != nil {
			t.Errorf("%s: demand %+v", format, demand)
		}
	}
}

func show(c cluster.TextColumn, rows int) string {
	texts := make([]string, rows)
	for i := range texts {
		if texts[i] = "-"; c.At(i) != cluster.Null {
			texts[i] = c.Names.String(c.At(i))
		}
	}
	return strings.Join(texts, "|")
}

// sameAttribute compares the values that there are.
func sameAttribute(a, b cluster.AttrColumn) bool {
	if a.Kind != b.Kind || !slices.Equal(a.Valid, b.Valid) {
		return false
	}
	for i, ok := range a.Valid {
		switch {
		case !ok:
		case a.Kind == plan.Number && a.Number[i] != b.Number[i],
			a.Kind == plan.Boolean && a.Bool[i] != b.Bool[i],
			a.Kind == plan.Text && a.Text.Names.String(a.Text.Code[i]) != b.Text.Names.String(b.Text.Code[i]):
			return false
		}
	}
	return true
}
