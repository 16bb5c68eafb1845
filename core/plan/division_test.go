package plan

import (
	"reflect"
	"strings"
	"testing"
)

const divided = `stint: 1
dimensions: [slots]
resource_groups: [{name: G, hosts: [a]}, {name: H, hosts: [b]}, {name: I, hosts: [c]}]
consumers: [{path: /A}]
slot_plans:
  - {resource_group: G, consumers: [{path: /A, policy: share_ratio}]}
md_plans:
  - {name: m, resource_groups: [{name: H}], consumers: [{path: /A}]}
  - {name: n, resource_groups: [{name: I}], consumers: [{path: /A}]}
divisions:
  - {name: east, plans: [G, m]}
  - {name: west, plans: [n]}
`

// TestDivision reads a file whole and as it is in force for each division.
func TestDivision(t *testing.T) {
	for _, c := range []struct {
		division, plans, foreign string
	}{{"", "m n G", ""}, {"east", "m G", "n/west"}, {"west", "n", "m/east G/east"}} {
		text := []byte(divided)
		if c.division != "" {
			text = ForDivision(text, c.division)
			if got := string(Whole(text, c.division)); got != divided {
				t.Errorf("%s: the whole file is %q", c.division, got)
			}
		}
		p, err := Parse("p", text)
		if err != nil {
			t.Fatal(err)
		}
		var foreign []string
		for _, o := range p.Foreign {
			foreign = append(foreign, o.Name+"/"+o.Division)
		}
		if got := strings.Join(p.PlanNames(), " "); got != c.plans || strings.Join(foreign, " ") != c.foreign ||
			p.Division != c.division {
			t.Errorf("division %q has plans %s, others %v", c.division, got, foreign)
		}
	}
}

// TestDivisionMoves holds which plans go from one division to another.
func TestDivisionMoves(t *testing.T) {
	was, err := Parse("p", []byte(divided))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		east, west string
		gives      []bool // east, west
		fault      string
	}{
		{"G, m", "n", []bool{false, false}, ""},
		{"G", "m, n", []bool{true, false}, ""},
		{"G, m, n", "", []bool{false, true}, ""},
		{"G, n", "m", []bool{true, true},
			"p: division east would give m away and get n: put them in force one after the other"},
	} {
		text := strings.Replace(strings.Replace(divided, "[G, m]", "["+c.east+"]", 1), "west, plans: [n]",
			"west, plans: ["+c.west+"]", 1)
		if c.west == "" {
			text = strings.Replace(text, "  - {name: west, plans: []}\n", "", 1)
		}
		p, err := Parse("p", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		fault := ""
		if err := p.MovesBothWays(was); err != nil {
			fault = err.Error()
		}
		if gives := []bool{p.Gives(was, "east"), p.Gives(was, "west")}; fault != c.fault ||
			!reflect.DeepEqual(gives, c.gives) {
			t.Errorf("east has %s, west %s: %q, they give plans away: %v", c.east, c.west, fault, gives)
		}
	}
}
