package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// Policies of the histories that follow.
const (
	openPolicy = `{stint: 1, dimensions: [ncpus], resource_groups: [{name: G, select: "select(ncpus > 0)"}],
consumers: [{path: /A}, {path: /B}], md_plans: [{name: p, resource_groups: [{name: G}], consumers: [{path: /A}, {path: /B}]}]}`
	partPolicy = `{stint: 1, dimensions: [ncpus], resource_groups: [{name: G, select: "select(ncpus > 0)"}],
consumers: [{path: /A}, {path: /B}], md_plans: [{name: p, resource_groups: [{name: G}],
consumers: [{path: /A, own: [{group: G, per_host: {ncpus: 50%}}]}, {path: /B, own: [{group: G, per_host: {ncpus: 25%}}]}]}]}`
	slotPolicy = `{stint: 1, dimensions: [slots], resource_groups: [{name: G, select: "select(slots > 0)"}],
consumers: [{path: /A}, {path: /B, reclaim_grace: 120s}],
slot_plans: [{resource_group: G, configured_slots: 4, consumers: [{path: /A, policy: hybrid, owns: 2}, {path: /B, policy: hybrid, owns: 2}]}]}`
)

// TestHistoriesFound plays histories that random ones found: logs of them were called faulty, or their service failed.
// A line is a call: method, path, body; a line of one word is a cycle, or a start anew.
func TestHistoriesFound(t *testing.T) {
	for _, c := range []struct{ name, calls string }{
		{"another unit size and back within a cycle", `
PUT /v1/plan ` + openPolicy + `
PUT /v1/hosts [{"host":"h1","ncpus":8},{"host":"h2","ncpus":8}]
PUT /v1/demand/s [{"consumer":"/A","allocation":"a","units":5,"ncpus":1}]
cycle
PATCH /v1/demand/s?allow_shrink=true [{"consumer":"/A","allocation":"a","units":5,"ncpus":2}]
PATCH /v1/demand/s [{"consumer":"/A","allocation":"a","units":5,"ncpus":1}]
cycle
cycle`},
		{"another unit size, then units of the old one are done", `
PUT /v1/plan ` + openPolicy + `
PUT /v1/hosts [{"host":"h1","ncpus":8}]
PUT /v1/demand/s [{"consumer":"/A","allocation":"a","units":5,"ncpus":1}]
cycle
PATCH /v1/demand/s?allow_shrink=true [{"consumer":"/A","allocation":"a","units":5,"ncpus":2}]
POST /v1/releases [{"consumer":"/A","allocation":"a","host":"h1","units":2,"done":true}]
cycle
cycle`},
		{"units are done, then they have another size", `
PUT /v1/plan ` + openPolicy + `
PUT /v1/hosts [{"host":"h1","ncpus":8}]
PUT /v1/demand/s [{"consumer":"/A","allocation":"a","units":5,"ncpus":1}]
cycle
POST /v1/releases [{"consumer":"/A","allocation":"a","host":"h1","units":2,"done":true},{"consumer":"/A","allocation":"a","host":"h1","units":1}]
PATCH /v1/demand/s?allow_shrink=true [{"consumer":"/A","allocation":"a","units":5,"ncpus":2}]
cycle
cycle`},
		{"more is said to run than a host has", `
PUT /v1/plan ` + openPolicy + `
PUT /v1/hosts [{"host":"h1","ncpus":4},{"host":"h2","ncpus":4}]
PUT /v1/demand/s [{"consumer":"/A","allocation":"a","units":9,"ncpus":1}]
cycle
PUT /v1/running/s [{"consumer":"/A","allocation":"a","host":"h1","units":7}]
cycle
cycle`},
		{"more is said to run than hosts have of which parts are owned", `
PUT /v1/plan ` + partPolicy + `
PUT /v1/hosts [{"host":"h1","ncpus":8},{"host":"h2","ncpus":8}]
PUT /v1/demand/s [{"consumer":"/A","allocation":"a","units":9,"ncpus":1},{"consumer":"/B","allocation":"b","units":3,"ncpus":1}]
cycle
PUT /v1/running/s [{"consumer":"/A","allocation":"a","host":"h1","units":9},{"consumer":"/B","allocation":"b","host":"h2","units":3}]
cycle
cycle`},
		{"a host of which parts are owned shrinks, and more is said to run there", `
PUT /v1/plan ` + partPolicy + `
PUT /v1/hosts [{"host":"h1","ncpus":8}]
PUT /v1/demand/s [{"consumer":"/A","allocation":"a","units":4,"ncpus":1},{"consumer":"/B","allocation":"b","units":4,"ncpus":1}]
cycle
PATCH /v1/hosts [{"host":"h1","ncpus":4}]
PUT /v1/running/s [{"consumer":"/A","allocation":"a","host":"h1","units":6}]
cycle
cycle`},
		{"a host that was left out is changed", `
PUT /v1/plan ` + openPolicy + `
PUT /v1/hosts [{"host":"h1","ncpus":8},{"host":"h2","ncpus":8}]
PUT /v1/demand/s [{"consumer":"/A","allocation":"a","units":12,"ncpus":1}]
cycle
PUT /v1/hosts?allow_shrink=true [{"host":"h1","ncpus":8}]
cycle
PATCH /v1/hosts [{"host":"h2","zone":"x"}]
cycle
PATCH /v1/hosts [{"host":"h2","state":"ok"}]
cycle
cycle`},
		{"units are said to run of a consumer that a policy takes away before the next cycle", `
PUT /v1/plan ` + slotPolicy + `
PUT /v1/hosts [{"host":"h1","slots":4}]
PUT /v1/demand/s [{"consumer":"/A","allocation":"a","units":1},{"consumer":"/B","allocation":"b","units":3}]
cycle
PUT /v1/running/s [{"consumer":"/A","allocation":"a","host":"h1","units":1},{"consumer":"/B","allocation":"b","host":"h1","units":3}]
POST /v1/releases [{"consumer":"/B","allocation":"b","host":"h1","units":3}]
PUT /v1/running/s [{"consumer":"/A","allocation":"a","host":"h1","units":1},{"consumer":"/B","allocation":"b","host":"h1","units":3}]
PUT /v1/plan?force=true ` + strings.ReplaceAll(strings.ReplaceAll(slotPolicy, ", {path: /B, policy: hybrid, owns: 2}", ""), ", {path: /B, reclaim_grace: 120s}", "") + `
cycle
cycle
start
cycle`},
		{"another unit size, then a policy renames one consumer and takes another away", `
PUT /v1/plan ` + openPolicy + `
PUT /v1/hosts [{"host":"h1","ncpus":8},{"host":"h2","ncpus":8}]
PUT /v1/demand/s [{"consumer":"/A","allocation":"a","units":5,"ncpus":1},{"consumer":"/B","allocation":"b","units":2,"ncpus":1}]
cycle
PATCH /v1/demand/s?allow_shrink=true [{"consumer":"/A","allocation":"a","units":5,"ncpus":2},{"consumer":"/B","allocation":"b","units":2,"ncpus":2}]
PATCH /v1/demand/s [{"consumer":"/B","allocation":"c","units":2,"ncpus":2}]
PATCH /v1/demand/s [{"consumer":"/B","allocation":"c","units":2,"ncpus":1}]
PUT /v1/plan?force=true {stint: 1, dimensions: [ncpus], resource_groups: [{name: G, select: "select(ncpus > 0)"}], ` +
			`consumers: [{path: /N, renamed_from: /A}], md_plans: [{name: p, resource_groups: [{name: G}], consumers: [{path: /N}]}]}
cycle
cycle`},
		{"from hybrid to ownership and back", `
PUT /v1/plan ` + slotPolicy + `
PUT /v1/hosts [{"host":"h1","slots":4}]
PUT /v1/demand/s [{"consumer":"/A","allocation":"a","units":4},{"consumer":"/B","allocation":"b","units":1}]
cycle
cycle
PUT /v1/plan ` + strings.ReplaceAll(slotPolicy, "hybrid", "ownership") + `
cycle
cycle
PUT /v1/plan ` + slotPolicy + `
cycle
cycle`},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := bareHistory(t)
			h.start(t)
			defer h.end()
			for line := range strings.Lines(strings.ReplaceAll(c.calls[1:], ",\n", ", ") + "\n") {
				h.line(t, strings.TrimSpace(line))
			}
			h.stop(t)
			checkLog(t, c.name, filepath.Join(h.data, "log"))
		})
	}
}

// bareHistory is a history without a scenario.
func bareHistory(t *testing.T) *history {
	h := newHistoryOf(1, map[string]int{})
	h.data = filepath.Join(crashDir(t), "service")
	h.now.Store(1_800_000_000_000_000)
	return h
}

// line makes the call that a line says; it must be taken.
func (h *history) line(t *testing.T, line string) {
	t.Helper()
	switch line {
	case "cycle":
		h.now.Add(60_000_000)
		line = "POST /v1/cycles "
	case "start":
		h.stop(t)
		h.start(t)
		return
	}
	method, rest, _ := strings.Cut(line, " ")
	path, body, _ := strings.Cut(rest, " ")
	media := "application/json"
	if strings.HasPrefix(path, "/v1/plan") {
		media = "application/yaml"
	}
	if text, ok := h.send(method, path, media, body); !ok {
		t.Fatalf("%s: %s", line, text)
	}
}

// TestRunAsIs has a source say that what it holds is what runs, on hosts of which parts are owned: nothing comes back,
// and nothing is added.
func TestRunAsIs(t *testing.T) {
	h := bareHistory(t)
	h.start(t)
	defer h.end()
	for _, line := range []string{
		"PUT /v1/plan " + strings.ReplaceAll(partPolicy, "\n", " "),
		`PUT /v1/hosts [{"host":"h1","ncpus":8},{"host":"h2","ncpus":8}]`,
		`PUT /v1/demand/s [{"consumer":"/A","allocation":"a","units":10,"ncpus":1},{"consumer":"/B","allocation":"b","units":5,"ncpus":1}]`, "cycle",
	} {
		h.line(t, line)
	}
	rows := h.body(h.runs("s"))
	text, ok := h.send("PUT", "/v1/running/s", "application/json", rows)
	var r struct{ Released, Added int64 }
	if err := json.Unmarshal(text, &r); err != nil || !ok || r.Released != 0 || r.Added != 0 {
		t.Errorf("%s: %s", rows, text)
	}
}
