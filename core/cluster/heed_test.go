package cluster_test

import (
	"strings"
	"testing"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/ingest/table"
)

// TestHostsThatComeBack: only what hosts are when a cycle begins counts as other input than in the last one, and as another capacity (docs/ownership.md,
// "When").
func TestHostsThatComeBack(t *testing.T) {
	policy, err := plan.Parse("p", []byte("stint: 1\ncluster: c\ndimensions: [ncpus, mem]\nresource_groups: [{name: g, hosts: [h1, h2]}]\n"+
		"consumers: [{path: /A}]\nmd_plans: [{name: p, resource_groups: [{name: g}], consumers: [{path: /A}]}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name              string
		tables            []string
		stirred, reassign bool
	}{
		{"nothing", nil, false, false},
		{"fails", []string{`{"host":"h1","state":"unavail"}`}, true, true},
		{"fails and comes back", []string{`{"host":"h1","state":"unavail"}`, `{"host":"h1","state":"ok"}`}, false, false},
		{"closes", []string{`{"host":"h1","state":"closed"}`}, true, false},
		{"shrinks", []string{`{"host":"h1","ncpus":3}`}, true, true},
		{"shrinks and grows", []string{`{"host":"h1","ncpus":3}`, `{"host":"h1","ncpus":2}`, `{"host":"h1","ncpus":4}`}, false, false},
		{"comes back smaller", []string{`{"host":"h1","state":"unavail"}`, `{"host":"h1","state":"ok","mem":7}`}, true, true},
		{"is another while the first comes back", []string{`{"host":"h1","state":"unavail"}`, `{"host":"h1","state":"ok"}`, `{"host":"h2","ncpus":1}`}, true, true},
		{"with attributes", []string{`{"host":"h1","state":"unavail","rack":"x"}`, `{"host":"h1","state":"ok","rack":"x"}`}, true, false},
		{"with attributes it had", []string{`{"host":"h2","state":"unavail","model":"y"}`, `{"host":"h2","state":"ok","model":"y"}`}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := cluster.New(policy)
			if err != nil {
				t.Fatal(err)
			}
			set := func(rows string, full bool) {
				change, err := table.ReadHosts(strings.NewReader(rows), table.Options{Format: table.NDJSON, Dimensions: policy.Dimensions})
				if err == nil {
					err = s.SetHosts(change, full)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			set(`{"host":"h1","ncpus":4,"mem":8}`+"\n"+`{"host":"h2","ncpus":4,"mem":8,"model":"y"}`, true)
			s.Settle(1)
			s.Plans[0].Reassign = false // as stage own does
			s.Finish(1, 1)
			for i, rows := range c.tables {
				set(rows, false)
				if i > 0 {
					if s, err = s.Copy(); err != nil { // what is noted is saved
						t.Fatal(err)
					}
				}
			}
			s.Settle(2)
			if p := &s.Plans[0]; p.Stirred != c.stirred || p.Reassign != c.reassign {
				t.Errorf("stirred %t, a pass over ownership %t; want %t, %t", p.Stirred, p.Reassign, c.stirred, c.reassign)
			}
		})
	}
}
