package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// crashSite is a policy under which a service is killed, in two variants between
// which it changes, and what its hosts have.
type crashSite struct {
	name, dimension string
	policy          string // %d is 2 or 3
}

var crashSites = []crashSite{
	{"public pool", "ncpus", `
stint: 1
dimensions: [ncpus]
resource_groups: [{name: All, select: "select(ncpus > 0)"}]
consumers: [{path: /A}, {path: /B}, {path: /C}]
md_plans:
  - {name: grid, resource_groups: [{name: All}], consumers: [{path: /A}, {path: /B, share: {ratio: %d}}, {path: /C}]}
`}, {"slots with graces", "slots", `
stint: 1
dimensions: [slots]
resource_groups: [{name: All, select: "select(slots > 0)"}]
consumers: [{path: /A, reclaim_grace: 30ms}, {path: /B, reclaim_grace: 150ms, rank: 1}, {path: /C}]
slot_plans:
  - resource_group: All
    reclaim_budget: 20
    consumers:
      - {path: /A, policy: ownership, owns: %d0, lend: {limit: 15}, borrow: {}}
      - {path: /B, policy: ownership, owns: 25, lend: {limit: 25}, borrow: {limit: 20}, share: {ratio: 2}}
      - {path: /C, policy: share_ratio, share: {ratio: 1}}
`}, {"owned hosts", "ncpus", `
stint: 1
dimensions: [ncpus]
resource_groups: [{name: All, select: "select(ncpus > 0)"}]
consumers: [{path: /A, reclaim_grace: 100ms}, {path: /B, rank: 1}, {path: /C, reclaim_grace: 20ms}]
md_plans:
  - name: grid
    resource_groups: [{name: All}]
    ownership_rebalance: 3
    consumers:
      - {path: /A, own: [{group: All, hosts: %d}]}
      - {path: /B, own: [{group: All, per_host: {ncpus: 25%%}}, {group: All, amount: {ncpus: 10}, partial: true}]}
      - {path: /C}
`}}

// crashDir is a folder for a service that is killed: in memory where there is such a file system. SIGKILL takes nothing
// away that was written, flushed or not, and there flushing costs nothing, so that more happens before the next one.
func crashDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "stint-crash-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// begin gives a service its policy and hosts.
func (m *model) begin(t *testing.T, c *child) {
	var hosts strings.Builder
	hosts.WriteString("host," + m.site.dimension + "\n")
	for i := range 10 {
		fmt.Fprintf(&hosts, "h%d,8\n", i)
	}
	for _, put := range [][2]string{{"/v1/plan", fmt.Sprintf(m.site.policy, 2)}, {"/v1/hosts", hosts.String()}} {
		if status, text, _, _ := send(c.base, "PUT", put[0], put[1], ""); status != 200 {
			t.Fatal(string(text))
		}
	}
}
