package plan

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestSettings lists what is set in each window: a window's entry in place of the plan's, and no key that nobody has
// set.
func TestSettings(t *testing.T) {
	p, err := Parse("plan", []byte(`
stint: 1
dimensions: [slots, gpus]
resource_groups:
  - {name: pool, select: "select(slots > 0)"}
  - {name: big, select: "select(gpus > 0 && slots == 0)"}
consumers: [{path: /A, rank: 1}, {path: /B}, {path: /M}]
slot_plans:
  - resource_group: pool
    configured_slots: 8
    consumers:
      - {path: /A, policy: ownership, owns: 6, lend: {limit: 4}}
      - {path: /B, policy: ownership, owns: 2, borrow: {from: [/A]}}
    windows:
      - {name: day, hours: "08:00-20:00"}
      - {name: night, hours: "20:00-08:00", consumers: [{path: /A, owns: 5}]}
md_plans:
  - name: md
    resource_groups: [{name: big}]
    consumers: [{path: /M, own: [{group: big, hosts: 2}], share: {ratio: 3}}]
`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(p.Settings())
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"plan":"pool","kind":"slots","windows":[{"name":"day","when":"08:00-20:00"},{"name":"night","when":"20:00-08:00"}],` +
		`"keys":["policy","owns","lend","borrow"],"consumers":[` +
		`{"path":"/A","values":[["ownership","6","4 to any",""],["ownership","5","4 to any",""]]},` +
		`{"path":"/B","values":[["ownership","2","","any number from /A"],["ownership","2","","any number from /A"]]}]},` +
		`{"plan":"md","kind":"md","windows":[{"name":"","when":""}],"keys":["own","share.ratio"],"consumers":[` +
		`{"path":"/M","values":[["2 hosts of big","3"]]}]}]`
	if string(got) != want {
		t.Errorf("%s\nexpected\n%s", got, want)
	}
	if empty := (&Policy{}).Settings(); len(empty) != 0 {
		t.Error(empty)
	}
	if strings.Contains(string(got), "rank") {
		t.Error("a rank of the consumer itself stands as one of the plan")
	}
}
