package standing_test

import (
	"fmt"
	"testing"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/standing"
)

// checkSums holds the sums of hosts against the table of hosts, added up row by row.
func checkSums(t *testing.T, k *standing.Columns) (hosts int64) {
	t.Helper()
	text := func(c *decision.Column, row int) string {
		if c.Code[row] == decision.Null {
			return ""
		}
		return string(c.Dict.Bytes(c.Code[row]))
	}
	want, got := map[string]int64{}, map[string]int64{}
	table := k.Hosts()
	for row := range table.Rows {
		key := text(table.Column("plan"), row) + " " + text(table.Column("state"), row)
		want[key+" hosts"]++
		for _, dimension := range []string{"slots", "ncpus"} {
			for _, what := range []string{"capacity_", "used_"} {
				c := table.Column(what + dimension)
				if c.Null == nil || !c.Null[row] {
					want[fmt.Sprint(key, " ", what, dimension)] += c.Int[row]
				}
			}
		}
	}
	for _, sum := range k.HostSums() {
		key := sum.Plan + " " + sum.State
		got[key+" hosts"] = sum.Hosts
		hosts += sum.Hosts
		for d, dimension := range sum.Dimensions {
			got[key+" capacity_"+dimension] = sum.Capacity[d]
			got[key+" used_"+dimension] = sum.Used[d]
		}
	}
	for key, v := range want {
		if got[key] != v {
			t.Errorf("%s: %d, expected %d", key, got[key], v)
		}
	}
	for key, v := range got {
		if want[key] != v {
			t.Errorf("%s: %d, expected %d", key, v, want[key])
		}
	}
	return hosts
}
