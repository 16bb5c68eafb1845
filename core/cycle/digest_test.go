package cycle_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/cycle"
	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/datasets"
)

// TestDigest plays cycles on generated clusters and compares the digests of their decisions with those on file (INV-8).
// `make test` runs it with one processor too, `make check` without assembly and with GOAMD64=v3. A change of decisions
// that is meant replaces the file: STINT_REWRITE=1 go test -run TestDigest ./core/cycle
func TestDigest(t *testing.T) {
	var got strings.Builder
	for _, c := range []struct {
		options   datasets.Options
		placement string
	}{
		{datasets.Options{Hosts: 500, Consumers: 20, Units: 10_000, Shapes: 6, Seed: 1}, "best_fit"},
		{datasets.Options{Hosts: 300, Consumers: 90, Units: 9_000, Shapes: 60, Seed: 2}, "best_fit"},
		{datasets.Options{Hosts: 300, Consumers: 30, Units: 9_000, Shapes: 20, Seed: 3}, "stacked"},
		{datasets.Options{Hosts: 300, Consumers: 30, Units: 9_000, Shapes: 20, Seed: 4}, "balanced"},
	} {
		for _, d := range digests(t, c.options, c.placement) {
			got.WriteString(c.placement + " " + d + "\n")
		}
	}
	file := filepath.Join("testdata", "digests.txt")
	if os.Getenv("STINT_REWRITE") != "" {
		if err := os.WriteFile(file, []byte(got.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("digests differ from %s:\n%s", file, got.String())
	}
}

// digests plays three cycles: from nothing, with a third of the hosts closed and
// a tenth lost, and with half of the demand gone.
func digests(t *testing.T, o datasets.Options, placement string) (out []string) {
	d, err := datasets.Grid(o)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(d.Plan), "  - name: grid\n", "  - name: grid\n    placement: "+placement+"\n", 1)
	p, err := plan.Parse("plan.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]plan.Placement{"best_fit": plan.BestFit, "stacked": plan.Stacked,
		"balanced": plan.Balanced}[placement]; p.MDPlans[0].Placement != want {
		t.Fatalf("the generated policy does not take placement %s", placement)
	}
	s, err := cluster.New(p)
	if err != nil {
		t.Fatal(err)
	}
	var r cycle.Runner
	run := func(now int64) {
		var c decision.Cycle
		r.Run(s, now, &c)
		if err := s.Verify(); err != nil {
			t.Fatal(err)
		}
		out = append(out, decision.Digest(c.Tables()))
	}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.SetHosts(d.Hosts, true))
	must(s.SetDemand("grid", d.Demand))
	run(0)
	d.Hosts.State = make([]cluster.HostState, d.Hosts.Rows)
	for i := range d.Hosts.State {
		switch {
		case i%3 == 0:
			d.Hosts.State[i] = cluster.Closed
		case i%10 == 1:
			d.Hosts.State[i] = cluster.Unavail
		}
	}
	must(s.SetHosts(d.Hosts, false))
	run(60_000_000)
	for i := range d.Demand.Units {
		if i%2 == 0 {
			d.Demand.Units[i] /= 3
		}
	}
	must(s.SetDemand("grid", d.Demand))
	run(120_000_000)
	return out
}
