package explain

import (
	"testing"

	"github.com/stintd/stint/core/decision"
	"github.com/stintd/stint/core/plan"
)

// TestGangText tells of gangs that wait how many units would fit, and what stands in the way of the next one.
func TestGangText(t *testing.T) {
	policy, err := plan.Parse("p", []byte(`
stint: 1
dimensions: [ncpus]
resource_groups: [{name: G, hosts: [h]}]
consumers: [{path: /A}]
md_plans: [{name: p, resource_groups: [{name: G}], consumers: [{path: /A}]}]
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ detail, want string }{
		{decision.GangDetail(5, 8, "", decision.ReasonFragmented, "3 ncpus free, 1 on one host"),
			"8 units must start together, and 5 fit now; of the next one: there is room enough in sum, but on no " +
				"single host: 3 ncpus free, 1 on one host"},
		{decision.GangDetail(1, 2, "", decision.ReasonTooBig, ""),
			"2 units must start together, and 1 fits now; of the next one: a unit is larger than any host that it " +
				"may use, even when that is empty"},
		{decision.GangDetail(0, 1000, "", decision.ReasonFragmented, ""),
			"1,000 units must start together, and none fits now; of the next one: there is room enough in sum, but " +
				"on no single host"},
		{decision.GangDetail(3, 4, "in rack r7", decision.ReasonGang, ""),
			"4 units must start together on hosts of one rack, and 3 fit now in rack r7, where the most do"},
		{decision.GangDetail(3, 4, "on host h7", decision.ReasonGang, ""),
			"4 units must start together on one host, and 3 fit now on host h7, where the most do"},
		{decision.GangDetail(2, 2, "", decision.ReasonPoolExhausted, ""),
			"2 units must start together, and all of them fit now, as room came free after its turn in this cycle"},
		{decision.GangDetail(3, 4, "", decision.ReasonGang, ""), "4 units must start together, and 3 fit now"},
		{"of another version", "fewer units fit than must start together: of another version"},
	} {
		p := &part{f: &Facts{Policy: policy}}
		s := &Shortfall{Consumer: "/A", Allocation: "a", Reason: "gang", Detail: c.detail}
		if p.why(s); s.Text != c.want {
			t.Errorf("%q:\ngot  %s\nwant %s", c.detail, s.Text, c.want)
		}
	}
}
