package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stintd/stint/core/plan"
)

// TestCheckPlan holds what a check tells of a first policy, of the same one, of some changes and of very many.
func TestCheckPlan(t *testing.T) {
	s := start(t, nil)
	check := func(text string) (c planCheck) {
		t.Helper()
		if err := json.Unmarshal([]byte(s.must(200, "POST", "/v1/plan/check", text).body), &c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	if c := check(policyText); !c.OK || c.Revision != 0 || c.ChangesCount != len(c.Changes) ||
		c.Changes[0].Kind != plan.Added {
		t.Errorf("of a first policy: %+v", c)
	}
	s.must(200, "PUT", "/v1/plan", policyText)
	if c := check(policyText); !c.Same || c.Revision != 1 || c.ChangesCount != 0 || c.Changes == nil {
		t.Errorf("of the same policy: %+v", c)
	}
	edited := strings.Replace(policyText, "{path: /Research}]", "{path: /Research, share: {ratio: 3}}]", 1)
	want := plan.Change{Kind: plan.Changed, Where: "plan grid, /Research", Key: "share.ratio", Was: "1", Is: "3",
		Plan: "grid", About: "/Research"}
	if c := check(edited); c.Same || c.ChangesCount != 1 || len(c.Changes) != 1 || c.Changes[0] != want {
		t.Errorf("of another ratio: %+v", c)
	}
	var many strings.Builder
	for i := range 1_500 {
		fmt.Fprintf(&many, "  - {path: /Risk/n%d}\n", i)
	}
	grown := "stint: 1\ndimensions: [ncpus]\nresource_groups: [{name: All, select: \"select(ncpus > " +
		"0)\"}]\nconsumers:\n  - {path: /Risk}\n" + many.String()
	c := check(grown)
	if len(c.Changes) != changesMax || c.ChangesCount < 1_500 {
		t.Errorf("of 1,500 consumers more: %d changes listed, of %d", len(c.Changes), c.ChangesCount)
	}
}

// TestExplainRequirement holds that a service counts hosts by the conditions of a requirement, and tells which are
// closed, of its last cycle.
func TestExplainRequirement(t *testing.T) {
	s := ready(t, nil)
	s.must(200, "PUT", "/v1/hosts", "host,ncpus,model,state\nh1,8,A100,closed\nh2,8,A100,ok\nh3,64,V100,ok\n")
	s.must(200, "PUT", "/v1/demand/feed", "consumer,allocation,units,ncpus,requirement\n/Research,a,2,1,select(A100 "+
		"&& ncpus > 32)\n/Risk/Day,b,9,1,select(A100)\n")
	s.cycle()
	for path, want := range map[string]string{
		"/v1/explain/Research": `"requirement":{"text":"select(A100 \u0026\u0026 ncpus \u003e 32)","hosts":3,"match":0,"open":0,"clauses":[` +
			`{"text":"A100","match":2,"open":1},{"text":"ncpus \u003e 32","match":1,"open":1}]}`,
		"/v1/explain/Research?format=text": "none of the plan's 3 hosts meets all that it requires: 2 meet A100 " +
			"and 1 meets",
		"/v1/explain/Risk/Day?format=text": "the only open host that meets select(A100) has no room for a unit, and " +
			"it has its share of the pool: it uses 11.1 %, and deserves 11.1 %. More comes when work of others " +
			"ends, or with more hosts. 1 of the plan's 3 hosts takes nothing new: h1 closed.",
	} {
		if got := strings.Join(strings.Fields(s.must(200, "GET", path, "").body), " "); !strings.Contains(got, want) {
			t.Errorf("%s has no %s: %s", path, want, got)
		}
	}
	s.must(200, "PATCH", "/v1/hosts", "host,state\nh2,closed\n")
	s.cycle() // the inventory follows the hosts
	if got := s.must(200, "GET", "/v1/explain/Risk/Day?format=text", "").body; !strings.Contains(got,
		"the 2 hosts that meet select(A100) take nothing new") {
		t.Error(got)
	}
}
