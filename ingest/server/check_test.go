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
	if c := check(policyText); !c.OK || c.Revision != 0 || c.ChangesCount != len(c.Changes) || c.Changes[0].Kind != plan.Added {
		t.Errorf("of a first policy: %+v", c)
	}
	s.must(200, "PUT", "/v1/plan", policyText)
	if c := check(policyText); !c.Same || c.Revision != 1 || c.ChangesCount != 0 || c.Changes == nil {
		t.Errorf("of the same policy: %+v", c)
	}
	edited := strings.Replace(policyText, "{path: /Research}]", "{path: /Research, share: {ratio: 3}}]", 1)
	want := plan.Change{Kind: plan.Changed, Where: "plan grid, /Research", Key: "share.ratio", Was: "1", Is: "3", Plan: "grid", About: "/Research"}
	if c := check(edited); c.Same || c.ChangesCount != 1 || len(c.Changes) != 1 || c.Changes[0] != want {
		t.Errorf("of another ratio: %+v", c)
	}
	var many strings.Builder
	for i := range 1_500 {
		fmt.Fprintf(&many, "  - {path: /Risk/n%d}\n", i)
	}
	grown := "stint: 1\ndimensions: [ncpus]\nresource_groups: [{name: All, select: \"select(ncpus > 0)\"}]\nconsumers:\n  - {path: /Risk}\n" + many.String()
	c := check(grown)
	if len(c.Changes) != changesMax || c.ChangesCount < 1_500 {
		t.Errorf("of 1,500 consumers more: %d changes listed, of %d", len(c.Changes), c.ChangesCount)
	}
}
