package plan

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

func TestChangedOutside(t *testing.T) {
	old, err := os.ReadFile("testdata/spec.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, from, to, want string }{
		{"nothing", "", "", ""},
		{"below", "{path: /Risk/Overnight, rank: 1}", "{path: /Risk/Overnight, rank: 2}", ""},
		{"below, in a plan", "{path: /Risk/Intraday, owns: 40,", "{path: /Risk/Intraday, owns: 41,", ""},
		{"below, in a window", "{path: /Risk/Overnight, owns: 20}", "{path: /Risk/Overnight, owns: 21}", ""},
		{"another below", "{path: /Risk/Intraday}\n", "{path: /Risk/Intraday}\n  - {path: /Risk/New}\n", ""},
		{"what another holds", "{path: /Risk/Intraday}\n",
			"{path: /Risk/Intraday}\n  - {path: /Risk/New, renamed_from: /Research}\n",
			"consumer /Risk/New: renamed_from"},
		{"its own entry", "reclaim_grace: 60s, admins", "reclaim_grace: 61s, admins",
			"consumers[/Risk].reclaim_grace "},
		{"its own entry in a plan", "policy: ownership, owns: 60", "policy: ownership, owns: 61",
			"slot_plans[0].consumers[/Risk].owns "},
		{"another's branch", "{path: /Research, rank: 1}", "{path: /Research, rank: 2}", "consumers[/Research].rank "},
		{"the file", "cluster: grid-east", "cluster: grid-west", "cluster"},
		{"a like name", "{path: /Research, rank: 1}", "{path: /Research, rank: 1}\n  - {path: /RiskToo}",
			"consumers[/RiskToo] "},
		{"another's entry gone", "  - {path: /Research, rank: 1}\n", "", "consumers[/Research] "},
	} {
		text := strings.Replace(string(old), c.from, c.to, 1)
		if c.from != "" && text == string(old) {
			t.Fatalf("%s: nothing was replaced", c.name)
		}
		err := ChangedOutside(old, []byte(text), []string{"/Risk"})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// A file of many consumers is compared in time that grows with its length alone: before, 40,000 took more than 20 s.
func TestChangedOutsideIsLinear(t *testing.T) {
	entries := func(last int) (list []any) {
		for i := range 60_000 {
			list = append(list, map[string]any{"path": fmt.Sprintf("/c%d", i)})
		}
		return append(list, map[string]any{"path": "/last", "rank": last})
	}
	done := make(chan error)
	go func() {
		was, is := map[string]any{"consumers": entries(1)}, map[string]any{"consumers": entries(2)}
		below := newBranches([]string{"/c0"})
		prune(was, below)
		prune(is, below)
		done <- differs("", was, is)
	}()
	select {
	case err := <-done:
		if err == nil || !strings.HasPrefix(err.Error(), "consumers[/last].rank ") {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("comparing 60,000 entries takes more than 10 s")
	}
}
