package plan

import (
	"strings"
	"testing"
)

// TestWarningsOfOwners holds what is said of owners, lenders and services, and that nothing is said of what is usual.
func TestWarningsOfOwners(t *testing.T) {
	const slots = `stint: 1
dimensions: [slots]
resource_groups: [{name: G, hosts: [h1]}, {name: H, hosts: [h2]}]
consumers: [{path: /A}, {path: /A/x}, {path: /A/y}, {path: /B}, {path: /S, system: true}]
slot_plans:
`
	const md = `stint: 1
dimensions: [ncpus]
resource_groups: [{name: G, select: "select(ncpus > 0)"}]
consumers: [{path: /A}, {path: /A/x}, {path: /B}]
md_plans:
`
	for _, c := range []struct {
		what, text string
		want       string // the warnings, without those of who is in no plan
	}{
		{"an owner without a leaf in the plan", slots + `  - resource_group: G
    consumers: [{path: /A, policy: ownership, owns: 4}, {path: /B, policy: ownership, owns: 2}, {path: /S, policy: ownership, owns: 1}]
`, "p:4: plan G: /A owns slots, but no leaf below it takes part in the plan, so that none has them as its own"},
		{"one with a leaf", slots + `  - resource_group: G
    consumers: [{path: /A, policy: ownership, owns: 4}, {path: /A/y}, {path: /S, policy: ownership, owns: 1}]
`, ""},
		{"an owner of hosts without a leaf in the plan",
			md + `  - {name: m, resource_groups: [{name: G}], consumers: [{path: /A, own: [{group: G, hosts: 2}]}, {path: /B}]}
`, "p:4: plan m: /A owns hosts, but no leaf below it takes part in the plan, so that none has them as its own"},
		{"a lend limit above what is owned", slots + `  - resource_group: G
    consumers:
      - {path: /A, policy: ownership, owns: 4}
      - {path: /A/x, owns: 4, lend: {limit: 6}}
      - {path: /B, policy: ownership, borrow: {}, lend: {limit: 2}}
      - {path: /S, policy: ownership, owns: 1}
`, "p:4: plan G: lend.limit of /A/x is 6, above the 4 that it owns at most|p:4: plan G: lend.limit of /B is 2, but it owns no slot"},
		{"a lend limit above what is owned at night alone, and a day and a night that own differently",
			slots + `  - resource_group: G
    consumers:
      - {path: /A, policy: ownership, owns: 4}
      - {path: /A/x, owns: 4, lend: {limit: 3}}
      - {path: /B, policy: ownership, borrow: {}}
      - {path: /S, policy: ownership, owns: 1}
    windows:
      - {name: day, hours: "08:00-20:00"}
      - {name: night, hours: "20:00-08:00", consumers: [{path: /A, owns: 2}, {path: /A/x, owns: 2}, {path: /B, owns: 2}]}
`, ""},
		{"a service that lends its only slot, while another plan keeps it alive", slots + `  - resource_group: G
    consumers: [{path: /S, policy: ownership, owns: 1, lend: {limit: 1}}, {path: /B, policy: ownership, borrow: {}}]
  - resource_group: H
    consumers: [{path: /S, policy: ownership, owns: 1}]
`, "p:4: plan G: the system service /S may lend all its slots, 1 of 1"},
		{"a min_runtime in slot plans alone", strings.Replace(slots, "{path: /B", "{path: /B, min_runtime: 5m", 1) +
			`  - resource_group: G
    consumers: [{path: /A, policy: ownership, owns: 4}, {path: /A/x}, {path: /B, policy: ownership}, {path: /S, policy: ownership, owns: 1}]
`, "p:4: /B has a min_runtime, which decides nothing in slot plans, and is in no multidimensional one"},
		{"a min_runtime that leaves of a multidimensional plan inherit",
			strings.Replace(md, "{path: /A}", "{path: /A, min_runtime: 5m}", 1) +
				`  - {name: m, resource_groups: [{name: G}], consumers: [{path: /A}, {path: /A/x}, {path: /B}]}
`, ""},
		{"room for gangs that is held for less than a grace, and for as long",
			strings.Replace(slots, "{path: /B", "{path: /B, reclaim_grace: 5m", 1) + `  - resource_group: G
    gang_wait: 4m
    consumers: [{path: /A, policy: ownership, owns: 4}, {path: /A/x}, {path: /B, policy: ownership}, {path: /S, policy: ownership, owns: 1}]
  - {resource_group: H, gang_wait: 301s, consumers: [{path: /B, policy: ownership}, {path: /S, policy: ownership, owns: 1}]}
`, "p:6: plan G: gang_wait is 4m, and /B has 5m to give units back, so that no gang gets what it takes of it"},
		{"a grace longer than the room for gangs that the plan does not set",
			strings.Replace(md, "{path: /A}", "{path: /A, reclaim_grace: 20m}", 1) +
				`  - {name: m, resource_groups: [{name: G}], consumers: [{path: /A}, {path: /A/x}, {path: /B}]}
`, ""},
		{"owners of equal rank, whose rules may all be met", md + `  - name: m
    resource_groups: [{name: G}]
    consumers: [{path: /A, own: [{group: G, hosts: 2}]}, {path: /A/x}, {path: /B, own: [{group: G, percent: 20}]}]
`, ""},
		{"owners of equal rank of what remains", md + `  - name: m
    resource_groups: [{name: G}]
    consumers: [{path: /A, own: [{group: G, remaining: true}]}, {path: /A/x}, {path: /B, own: [{group: G, remaining: true}]}]
`, "p:8: plan m: /A and /B both own what remains of G, and have the same rank: /A gets all of it"},
	} {
		var lines []string
		for _, w := range parsed(t, c.text).Warnings() {
			if !strings.Contains(w.Text, "is in no plan") && !strings.Contains(w.Text, "no slot plan has it") {
				lines = append(lines, w.String())
			}
		}
		if got := strings.Join(lines, "|"); got != c.want {
			t.Errorf("%s:\n%s\nexpected\n%s", c.what, got, c.want)
		}
	}
}
