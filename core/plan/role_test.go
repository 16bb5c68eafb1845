package plan

import (
	"os"
	"strings"
	"testing"
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
		{"what another holds", "{path: /Risk/Intraday}\n", "{path: /Risk/Intraday}\n  - {path: /Risk/New, renamed_from: /Research}\n", "consumer /Risk/New: renamed_from"},
		{"its own entry", "reclaim_grace: 60s, admins", "reclaim_grace: 61s, admins", "consumers[/Risk].reclaim_grace "},
		{"its own entry in a plan", "policy: ownership, owns: 60", "policy: ownership, owns: 61", "slot_plans[0].consumers[/Risk].owns "},
		{"another's branch", "{path: /Research, rank: 1}", "{path: /Research, rank: 2}", "consumers[/Research].rank "},
		{"the file", "cluster: grid-east", "cluster: grid-west", "cluster"},
		{"a like name", "{path: /Research, rank: 1}", "{path: /Research, rank: 1}\n  - {path: /RiskToo}", "consumers[/RiskToo] "},
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
