package cluster_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stintd/stint/core/cluster"
	"github.com/stintd/stint/core/plan"
	"github.com/stintd/stint/ingest/table"
)

// TestHostChanges: in changes, what a row object does not name keeps its value, and null is a value; a new host and a
// full table take what is not named as ok, 0 and no attribute (SPEC chapter 7).
func TestHostChanges(t *testing.T) {
	s := ofTwo(t)
	for _, step := range []struct {
		rows, want string
		full       bool
	}{
		{`{"host":"h1","state":"closed","ncpus":4,"mem":8,"model":"x","load":1.5} {"host":"h2","ncpus":2}`,
			"h1 closed 4 8 x 1.5, h2 ok 2 0 - -", true},
		{`{"host":"h1","ncpus":6} {"host":"h2","mem":3,"load":2} {"host":"h3","state":"draining"} {"host":"h4","mem":1}`,
			"h1 closed 6 8 x 1.5, h2 ok 2 3 - 2, h3 draining 0 0 - -, h4 ok 0 1 - -", false},
		{`{"host":"h1","state":null,"mem":null,"model":null} {"host":"h2","load":3}`,
			"h1 ok 6 0 - 1.5, h2 ok 2 3 - 3, h3 draining 0 0 - -, h4 ok 0 1 - -", false},
		{`{"host":"h1","mem":9} {"host":"h2","state":"closed","ncpus":1,"load":4} {"host":"h3"}`,
			"h1 ok 0 9 - -, h2 closed 1 0 - 4, h3 ok 0 0 - -, h4 unavail 0 1 - -", true},
	} {
		tell(t, s, step.rows, step.full)
		if got := hostsText(s); got != step.want {
			t.Errorf("%s\n%s, want\n%s", step.rows, got, step.want)
		}
	}
}

// ofTwo is a state whose only plan is of the hosts h1 and h2.
func ofTwo(t *testing.T) *cluster.State {
	t.Helper()
	policy, err := plan.Parse("p", []byte("stint: 1\ncluster: c\ndimensions: [ncpus, mem]\nresource_groups: [{name: "+
		"g, hosts: [h1, h2]}]\n"+
		"consumers: [{path: /A}]\nmd_plans: [{name: p, resource_groups: [{name: g}], consumers: [{path: /A}]}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := cluster.New(policy)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// tell gives a state a table of hosts.
func tell(t *testing.T, s *cluster.State, rows string, full bool) {
	t.Helper()
	hosts, err := table.ReadHosts(strings.NewReader(strings.ReplaceAll(rows, "} {", "}\n{")),
		table.Options{Format: table.NDJSON, Dimensions: s.Policy.Dimensions})
	if err == nil {
		err = s.SetHosts(hosts, full)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func hostsText(s *cluster.State) string {
	var hosts []string
	for h := range s.Rows() {
		text := fmt.Sprint(s.Host.String(int32(h)), " ", cluster.HostStates[s.Host.State[h]], " ", s.Host.Size[0][h],
			" ", s.Host.Size[1][h])
		for _, name := range []string{"model", "load"} {
			col, kind, _ := s.Column(name)
			value := "-"
			if kind == plan.Number {
				if v, ok := s.NumberAt(col, h); ok {
					value = fmt.Sprint(v)
				}
			} else if v, ok := s.TextAt(col, h); ok {
				value = string(v)
			}
			text += " " + value
		}
		hosts = append(hosts, text)
	}
	return strings.Join(hosts, ", ")
}
