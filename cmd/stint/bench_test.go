package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// benchKeys are what SPEC chapter 9 wants of bench's JSON, as paths; those of times and memory, which alone differ
// between two runs, are the first.
var (
	benchVarying = []string{
		"cold_ms.p50", "cold_ms.p99", "cold_ms.max", "warm_ms.p50", "warm_ms.p99", "warm_ms.max",
		"unchanged_ms.p50", "unchanged_ms.p99", "unchanged_ms.max", "floor_ms.p50", "floor_ms.p99", "floor_ms.max",
		"cold_over_floor", "warm_over_floor", "decisions_per_second", "peak_rss_bytes", "allocs_per_warm_cycle",
		"alloc_bytes_per_warm_cycle",
		"cold_stage_us.settle", "cold_stage_us.own", "cold_stage_us.entitle", "cold_stage_us.grant",
		"cold_stage_us.reclaim", "cold_stage_us.explain",
		"cold_stage_us.emit", "warm_stage_us.settle", "warm_stage_us.own", "warm_stage_us.entitle",
		"warm_stage_us.grant", "warm_stage_us.reclaim",
		"warm_stage_us.explain", "warm_stage_us.emit", "machine.load1",
	}
	benchSteady = []string{
		"cold_ms.n", "warm_ms.n", "unchanged_ms.n", "floor_ms.n", "floor_bytes", "units_placed", "utilisation",
		"max_share_error",
		"units_reclaimed", "unit_seconds_lost", "profile", "hosts", "consumers", "leaves", "units", "shapes",
		"demand_rows", "change", "cycles", "seed", "machine.cpu", "machine.commit",
	}
)

// TestBenchJSON: all figures are there that are promised, and two runs of the same flags differ in times and memory
// only.
func TestBenchJSON(t *testing.T) {
	run := func() map[string]any {
		var out, problems bytes.Buffer
		line := strings.Fields("bench --profile grid --hosts 40 --consumers 6 --units 900 --shapes 5 --seed 3 " +
			"--change 10% --cycles 3 --bound --output json")
		if exit := execute(line, &out, &problems); exit != exitFine {
			t.Fatalf("exit code %d: %s", exit, &problems)
		}
		var v any
		if err := json.Unmarshal(out.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		flat := map[string]any{}
		flatten(flat, "", v)
		return flat
	}
	first, second := run(), run()
	for _, key := range slices.Concat(benchVarying, benchSteady) {
		found := slices.ContainsFunc(slices.Collect(maps.Keys(first)), func(k string) bool {
			return k == key || strings.HasPrefix(k, key+".")
		})
		if !found {
			t.Errorf("there is no %s", key)
		}
	}
	for _, key := range benchVarying {
		delete(first, key)
		delete(second, key)
	}
	for _, key := range slices.Sorted(maps.Keys(first)) {
		if !reflect.DeepEqual(first[key], second[key]) {
			t.Errorf("%s: %v in one run, %v in another", key, first[key], second[key])
		}
	}
	if len(first) != len(second) {
		t.Errorf("%d figures in one run, %d in another", len(first), len(second))
	}
	for key, want := range map[string]any{
		"cold_ms.n": 3.0, "units": 900.0, "hosts": 40.0, "shapes": 5.0, "leaves": 6.0, "seed": 3.0, "change": 0.1,
		"cycles": 3.0, "profile": "grid",
		"utilisation.0.dimension": "ncpus", "bounds.0.plan": "grid",
	} {
		if first[key] != want {
			t.Errorf("%s: %v, want %v", key, first[key], want)
		}
	}
}

// flatten notes the values of a JSON tree by their paths, as a.b.0.c.
func flatten(into map[string]any, path string, v any) {
	below := func(key any, v any) { flatten(into, strings.TrimPrefix(fmt.Sprintf("%s.%v", path, key), "."), v) }
	switch v := v.(type) {
	case map[string]any:
		for key, one := range v {
			below(key, one)
		}
	case []any:
		for i, one := range v {
			below(i, one)
		}
	default:
		into[path] = v
	}
}
