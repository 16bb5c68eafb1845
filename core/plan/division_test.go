package plan

import (
	"errors"
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

// TestDivisionMisspelt reads plans whose names have errors of their own, beside divisions that name the plans
// correctly.
func TestDivisionMisspelt(t *testing.T) {
	for _, c := range []struct{ was, is, want string }{
		{"resource_group: G,", "resource_group: GG,", `p:6:22: slot_plans[0].resource_group: "GG": `},
		{"{name: m, resource", "{nam: m, resource", `p:8:6: md_plans[0].nam: unknown key`},
	} {
		text := strings.Replace(divided, c.was, c.is, 1)
		for _, division := range []string{"", "east", "north"} {
			whole := []byte(text)
			if division != "" {
				whole = ForDivision(whole, division)
			}
			_, err := Parse("p", whole)
			var faults Faults
			if !errors.As(err, &faults) || faults.Bug() != "" {
				t.Fatalf("%s, division %q: %v\n%s", c.is, division, err, faults.Bug())
			}
			if text := err.Error(); !strings.Contains(text, c.want) || strings.Contains(text, "no such plan") {
				t.Errorf("%s, division %q: %v", c.is, division, err)
			}
		}
	}
}

// TestParseBug holds how a panic of the parser is reported.
func TestParseBug(t *testing.T) {
	read := func() (err error) {
		c := collector{file: "p"}
		defer func() {
			if v := recover(); v != nil {
				err = c.bug(v)
			}
		}()
		c.add(Fault{Line: 3, Column: 1, Path: "rank", Reason: "must be a whole number"})
		none := -1
		_ = c.found[none]
		return nil
	}
	err := read()
	var faults Faults
	if !errors.As(err, &faults) || len(faults) != 2 || !strings.Contains(faults.Bug(), "TestParseBug") {
		t.Fatalf("%v: %s", err, faults.Bug())
	}
	for _, want := range []string{
		"p:3:1: rank: must be a whole number\np: stint cannot check the file", "division_test.go:",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	if faults[:1].Bug() != "" || Faults(nil).Bug() != "" {
		t.Error("a fault of the file is called a bug")
	}
}
