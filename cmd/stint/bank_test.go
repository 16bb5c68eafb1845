package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBank checks a bank's plan by day and night, written from the documentation in one draft: it has neither faults
// nor warnings, and what check calls guaranteed is what each consumer holds when everybody asks for everything in
// cycles that run to their end, in each plan, window and dimension.
func TestBank(t *testing.T) {
	const plan, hosts = "testdata/bank/plan.yaml", "testdata/bank/hosts.csv"
	var checked struct {
		OK         bool             `json:"ok"`
		Warnings   []string         `json:"warnings"`
		Guarantees []map[string]any `json:"guarantees"`
	}
	if err := json.Unmarshal([]byte(command(t, 0, "check", plan, "--hosts", hosts, "--output", "json")),
		&checked); err != nil {
		t.Fatal(err)
	}
	if !checked.OK || len(checked.Warnings) > 0 {
		t.Errorf("ok %v, warnings %q", checked.OK, checked.Warnings)
	}
	leaves := map[string][]string{
		"Management": {"/Services/Core"},
		"Grid": {"/Trading/Pricing", "/Trading/Algo", "/Risk/Intraday", "/Risk/EOD", "/Research/Models",
			"/Research/Sandbox"},
	}
	leaves["gpu"] = leaves["Grid"]
	compared := 0
	for window, at := range map[string]string{"day": "2026-01-05T12:00:00Z", "night": "2026-01-05T23:00:00Z"} {
		for _, dimension := range []string{"ncpus", "maxmem", "gpus"} {
			held := heldByAll(t, plan, hosts, at, dimension, leaves)
			for _, g := range checked.Guarantees {
				if g["window"] != nil && g["window"] != window {
					continue
				}
				of := dimension
				if g["plan"] != "gpu" {
					of = "slots"
				}
				compared++
				if want, got := g["guaranteed_"+of], held[fmt.Sprint(g["plan"], " ", g["consumer"])]; want != got {
					t.Errorf("plan %v, window %s, %v: guaranteed %v %s, held %v", g["plan"], window, g["consumer"],
						want, of, got)
				}
			}
		}
	}
	if compared != 2*3*(2+9+9) {
		t.Errorf("%d figures were compared", compared)
	}
}

// heldByAll runs cycles until nothing changes in which every leaf asks for a million units: of slots in slot plans, in
// the other plan of one dimension alone. It gives what consumers hold, by plan and path.
func heldByAll(t *testing.T, plan, hosts, at, dimension string, leaves map[string][]string) map[string]any {
	t.Helper()
	dir := t.TempDir()
	rows := []string{"consumer,allocation,units,plan,slots," + dimension}
	for name, paths := range leaves {
		size := "1,0"
		if name == "gpu" {
			size = "0,1"
		}
		for _, path := range paths {
			rows = append(rows, fmt.Sprintf("%s,all of %s,1000000,%s,%s", path, name, name, size))
		}
	}
	demand, log := filepath.Join(dir, "demand.csv"), filepath.Join(dir, "log")
	if err := os.WriteFile(demand, []byte(strings.Join(rows, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	command(t, 0, "run", "--plan", plan, "--hosts", hosts, "--demand", demand, "--at", at, "--until-stable", "--out",
		log)
	command(t, 0, "verify", "--log", log)
	var consumers []map[string]any
	if err := json.Unmarshal([]byte(command(t, 0, "query", "--log", log, "consumers", "--output", "json")),
		&consumers); err != nil {
		t.Fatal(err)
	}
	held := map[string]any{}
	for _, c := range consumers {
		held[fmt.Sprint(c["plan"], " ", c["consumer"])] = c["held"]
	}
	return held
}
